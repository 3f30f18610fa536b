"""Starting a program with fewer rights; in a container of its own, if asked to.

This file is also the program that does it, because a process can give up rights only for itself, and a forked Python
must not do much. Root or ``sudo`` runs it, or any user to whom Linux allows user namespaces. It imports nothing of
accord and hardly anything else, so that it starts at once.

The container sees its own processes only. It reads the machine's files, except for credentials and the runner's, and
writes to the given folders; what it writes to caches and to /tmp is gone at its end. With a socket of a proxy, it has
no other network; if root makes it, it reaches no link-local address, where clouds serve the credentials of a machine.
Sources: namespaces(7), mount_setattr(2), capabilities(7), bpf(2), overlayfs.rst, cgroup-v2.rst, prog_cgroup_sockopt.rst
and bpf.h of Linux.
"""

from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import stat
import struct
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable
    from typing import Any, NoReturn

PROXY = "127.0.0.1:3128"
"""Where a container without other network reaches the proxy."""

NOT_STARTED = 126
"""The exit code if the program did not start; then a line that begins with CANNOT_START says why."""

CANNOT_START = "accord: cannot start "

_NEWNS, _NEWUSER, _NEWPID, _NEWIPC, _NEWNET = 0x20000, 0x10000000, 0x20000000, 0x8000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 1, 2, 4, 8, 0x4000, 0x40000
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE, _OPEN_TREE_CLONE = -100, 0x1000, 0x8000, 1
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same on x86-64 and arm64
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 4, 24, 38, 47
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_HUP, _INT, _KILL, _PIPE, _TERM, _XFSZ, _IGNORE = 1, 2, 9, 13, 15, 25, ctypes.c_void_p(1)
_CAPABILITIES, _SETFCAP = struct.pack("Ii", 0x20080522, 0), 31
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_ROOTS_OWN = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
"""Files by which uid 0 changes the whole machine even without capabilities."""

_BPF = {"x86_64": 321, "aarch64": 280}
_LOAD, _ATTACH, _SOCK_ADDR, _ALLOW_MULTI, _MNT_DETACH = 5, 8, 18, 2, 2
_READ, _SET, _AND, _IF, _UNLESS, _EXIT = 0x61, 0xB7, 0x54, 0x16, 0x56, 0x95
_REFUSES_ON_PORT = [(_READ, 2, 1, 24, 0), (_IF, 2, 0, 1, 53 << 8), (_SET, 0, 0, 0, 0), (_EXIT, 0, 0, 0, 0)]
_REFUSES_IP4 = [(_SET, 0, 0, 0, 1), (_READ, 2, 1, 4, 0), (_AND, 2, 0, 0, 0xFFFF), (_UNLESS, 2, 0, 3, 0xFEA9)]
_REFUSES_IP6 = [
    *((_SET, 0, 0, 0, 1), (_READ, 2, 1, 8, 0), (_UNLESS, 2, 0, 6, 0), (_READ, 2, 1, 16, 0)),
    *((_UNLESS, 2, 0, 3, -0x10000), (_READ, 2, 1, 20, 0), (_AND, 2, 0, 0, 0xFFFF), (_IF, 2, 0, 4, 0xFEA9)),
    *((_EXIT, 0, 0, 0, 0), (_READ, 2, 1, 8, 0), (_AND, 2, 0, 0, 0xC0FF), (_UNLESS, 2, 0, 3, 0x80FE)),
]
_HOOKS = {10: _REFUSES_IP4, 14: _REFUSES_IP4, 11: _REFUSES_IP6, 15: _REFUSES_IP6}
"""Programs for connecting, and for sending without: 169.254.0.0/16, also as IPv6, and fe80::/10, apart from DNS.

An instruction has an operation, two registers, an offset and a value. The offset is how far to jump, or where to read
in Linux's ``struct bpf_sock_addr``, which has addresses and ports as networks write them.
"""

_LIBC = ctypes.CDLL(None, use_errno=True)


def forbid_reading() -> None:
    """Keep this process's memory and environment from other processes of its user."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _checked_call(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def _mount(kind: str, place: str, flags: int = _MS_NOSUID | _MS_NODEV, options: str = "") -> None:
    result = _LIBC.mount(kind.encode(), os.fsencode(place), kind.encode(), ctypes.c_ulong(flags), os.fsencode(options))
    _checked_call(result, f"{kind} on {place}")


def _clone(place: str) -> int:
    """Return a copy of the mount at a path, which later mounts there do not hide."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
    return _checked_call(_LIBC.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(place), flags), place)


def _make_read_only(tree: int, place: str, flags: int = _AT_RECURSIVE) -> None:
    attributes = struct.pack("QQQQ", _MS_RDONLY, 0, 0, 0)
    flags |= 0 if place else _AT_EMPTY_PATH
    result = _LIBC.syscall(_MOUNT_SETATTR, tree, os.fsencode(place), flags, attributes, len(attributes))
    _checked_call(result, place or "a mount")


def _put(tree: int, place: str) -> None:
    """Mount a copy at a path, and make that if it is missing."""
    if not os.path.lexists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_CLOEXEC))
    _checked_call(_LIBC.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(place), 4), place)
    os.close(tree)


def _hide(place: str) -> None:
    if os.path.isdir(place):
        _mount("tmpfs", place, options="mode=0755")
    elif os.path.lexists(place):
        _put(_clone("/dev/null"), place)


def _mask(plan: dict[str, Any]) -> None:
    for place in plan["masked"]:
        with suppress(OSError):  # such as a socket that is gone; the trial finds those that stay
            _hide(place)


def _build(plan: dict[str, Any]) -> None:
    writable = [(_clone(place), place) for place in plan["writable"]]
    readable = [(_clone(place), place) for place in plan["readable"]]
    _make_read_only(_AT_FDCWD, "/")
    _mount("tmpfs", plan["scratch"])
    for number, place in enumerate(plan["discarded"]):
        with suppress(OSError):  # it stays read-only
            _discard(place, f"{plan['scratch']}/{number}")
    _build_devices()
    for place in plan["hidden"]:
        _hide(place)
    _mount("proc", "/proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    for place in _ROOTS_OWN if plan["user"][0] == 0 else ():
        if os.path.exists(place):
            tree = _clone(place)
            _make_read_only(tree, "")
            _put(tree, place)
    _bring_back(plan, readable)
    for tree, place in writable:
        _put(tree, place)


def _bring_back(plan: dict[str, Any], readable: list[tuple[int, str]]) -> None:
    """Mount what can be read although its folder is hidden, apart from what is hidden in it."""
    for tree, place in readable:
        _make_read_only(tree, "")
        _put(tree, place)
    seen = tuple(f"{place}/" for _, place in readable)
    for place in plan["discarded"]:
        if f"{place}/".startswith(seen):
            with suppress(OSError):  # it stays read-only
                _discard(place, f"{plan['scratch']}/{place.replace('/', '+')}")
    for place in plan["hidden"]:
        if place.startswith(seen):
            _hide(place)


def _discard(place: str, layer: str) -> None:
    """Let a folder look writable: what is written lands in a layer in memory."""
    status = os.stat(place)
    for name in ("upper", "work"):
        os.makedirs(f"{layer}/{name}")
    os.chmod(f"{layer}/upper", stat.S_IMODE(status.st_mode))
    with suppress(OSError):
        os.chown(f"{layer}/upper", status.st_uid, status.st_gid)
    options = f"lowerdir={place},upperdir={layer}/upper,workdir={layer}/work"
    try:
        _mount("overlay", place, options=options)
    except OSError:
        _mount("overlay", place, options=f"{options},userxattr")


def _build_devices() -> None:
    devices = [(_clone(f"/dev/{name}"), f"/dev/{name}") for name in _DEVICES]
    _mount("tmpfs", "/dev", _MS_NOSUID, "mode=0755")
    for tree, place in devices:
        _put(tree, place)
    for name in ("pts", "shm"):
        os.mkdir(f"/dev/{name}")
    _mount("devpts", "/dev/pts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    _mount("tmpfs", "/dev/shm", options="mode=1777")  # noqa: S108
    links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
    for name, target in links.items():
        os.symlink(target, f"/dev/{name}")
    _make_read_only(_AT_FDCWD, "/dev", 0)


def _unshare(plan: dict[str, Any]) -> None:
    """Enter namespaces of this process's own. Another user than root needs a user namespace for that."""
    flags = _NEWNS
    if plan["is_isolated"]:
        flags |= _NEWPID | _NEWIPC | (_NEWNET if plan["proxy"] else 0)
    is_root = os.geteuid() == 0
    _checked_call(_LIBC.unshare(flags if is_root else flags | _NEWUSER), "namespaces")
    if not is_root:
        user, group = plan["user"]
        for name, text in ("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1"):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _checked_call(_LIBC.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None), "/")


def _bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes)
    return _checked_call(_LIBC.syscall(_BPF[os.uname().machine], command, buffer, len(attributes)), "bpf")


def _refuse_link_local(place: str, name: str) -> int:
    """Make a control group of this name, whose processes reach no link-local address; return the folder that it is in.

    Only root can do that. The limits of the groups above stay.
    """
    _mount("cgroup2", place)
    try:
        with open("/proc/self/cgroup") as groups:
            own = groups.read().rpartition("0::")[2].strip()
        folder = os.open(place + own, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        _LIBC.umount2(os.fsencode(place), _MNT_DETACH)
    for other in os.listdir(folder):
        if other.startswith("accord-") and not os.path.exists(f"/proc/{other[7:]}"):
            with suppress(OSError):  # of a run whose accord was killed
                os.rmdir(other, dir_fd=folder)
    os.mkdir(name, dir_fd=folder)
    try:
        group = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        for hook, checks in _HOOKS.items():
            _attach(group, hook, (*checks, *_REFUSES_ON_PORT))
    except (OSError, KeyError):
        os.rmdir(name, dir_fd=folder)
        raise
    os.close(group)
    return folder


def _attach(group: int, hook: int, program: Iterable[tuple[int, int, int, int, int]]) -> None:
    code = b"".join(
        struct.pack("<BBhi", operation, target | source << 4, offset, value)
        for operation, target, source, offset, value in program
    )
    words = (ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL"))
    at, licence = (ctypes.addressof(word) for word in words)
    attributes = (_SOCK_ADDR, len(code) // 8, at, licence, 0, 0, 0, 0, 0, b"", 0, hook)
    loaded = _bpf(_LOAD, struct.pack("IIQQIIQII16sII", *attributes))
    _bpf(_ATTACH, struct.pack("IIII", group, loaded, hook, _ALLOW_MULTI))
    os.close(loaded)


def _drop(plan: dict[str, Any]) -> None:
    """Give up groups, capabilities, and every way to new ones.

    Root keeps CAP_SETFCAP: without it, Linux lets root map no uid into a user namespace, such as that of an agent's own
    sandbox. Capabilities of files give no more rights than root's setuid programs.
    """
    user, group = plan["user"]
    held = ctypes.create_string_buffer(24)
    _LIBC.capget(_CAPABILITIES, held)
    kept = 1 << _SETFCAP & struct.unpack("6I", held)[1] if user == 0 else 0
    for capability in range(64):
        if not kept >> capability & 1:
            _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _LIBC.prctl(_PR_CAP_AMBIENT, 4, 0, 0, 0)
    with suppress(PermissionError):  # in a user namespace, and without root
        os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    _checked_call(_LIBC.capset(_CAPABILITIES, struct.pack("6I", kept, kept, 0, 0, 0, 0)), "capabilities")
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _execute(plan: dict[str, Any], words: list[str]) -> NoReturn:
    _drop(plan)
    for number in (_PIPE, _XFSZ):  # Python ignores them
        _LIBC.signal(number, None)
    os.umask(plan["umask"])
    try:
        os.chdir(plan["directory"])
        os.execve(words[0], words, plan["environment"])  # noqa: S606
    except OSError as error:
        _fail(words, error)


def _fail(words: list[str], error: OSError) -> NoReturn:
    reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    os.write(2, os.fsencode(f"{CANNOT_START}{words[0]}: {reason}\n"))
    os._exit(NOT_STARTED)


def _connect_proxy(plan: dict[str, Any]) -> None:
    """Start a process that passes connections to the container's proxy address on to the proxy's socket."""
    import socket  # imported here: it takes time, and few programs need it
    import threading

    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    host, port = PROXY.split(":")
    listener = socket.create_server((host, int(port)), backlog=64)
    if os.fork():
        listener.close()
        return
    _drop(plan)
    folder, name = os.path.split(plan["proxy"])
    os.chdir(folder)  # a socket's address has at most 107 bytes
    while True:
        inner, _ = listener.accept()
        outer = socket.socket(socket.AF_UNIX)
        try:
            outer.connect(name)
        except OSError:
            inner.close()
            continue
        for source, target in ((inner, outer), (outer, inner)):
            threading.Thread(target=relay, args=(source, target), daemon=True).start()


def relay(source: socket.socket, target: socket.socket) -> None:
    """Pass everything on from one connection to another, and its end."""
    with suppress(OSError):
        while data := source.recv(64 * 1024):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(1)  # SHUT_WR


def _wait_for(child: int, groups: int = -1, name: str = "") -> NoReturn:
    """Reap processes until this one ends, remove its control group if it has one, and end like it."""
    while True:
        pid, status = os.wait()
        if pid == child:
            with suppress(OSError):
                os.rmdir(name, dir_fd=groups)
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _run(plan: dict[str, Any], words: list[str]) -> NoReturn:
    if not plan["is_isolated"]:
        if plan["masked"]:
            with suppress(OSError):  # without mounts, the rest is given up all the same
                _unshare(plan)
                _mask(plan)
        _execute(plan, words)
    _unshare(plan)
    _LIBC.prctl(_PR_SET_PDEATHSIG, _KILL, 0, 0, 0)
    groups, name = -1, f"accord-{os.getpid()}"
    with suppress(OSError, KeyError):  # without root or control groups, they stay as reachable as elsewhere
        groups = _refuse_link_local(plan["scratch"], name)
    if inside := os.fork():
        for number in (_TERM, _INT, _HUP):
            _LIBC.signal(number, _IGNORE)  # for the program to handle
        _wait_for(inside, groups, name)
    _LIBC.prctl(_PR_SET_PDEATHSIG, _KILL, 0, 0, 0)
    with suppress(OSError):
        procs = os.open(f"{name}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC, dir_fd=groups)
        os.write(procs, b"0")
        os.close(procs)
    _build(plan)
    _mask(plan)
    if plan["proxy"]:
        _connect_proxy(plan)
    agent = os.fork()
    if not agent:
        _execute(plan, words)
    _wait_for(agent)


def _read_plan(size: int) -> dict[str, Any]:
    """Read the plan from the input, and make what follows it the whole input of the program.

    The environment is in the plan: in a file with a name, its secrets could stay on the disk.
    """
    data = b""
    while len(data) < size and (part := os.read(0, size - len(data))):
        data += part
    rest = _checked_call(_LIBC.memfd_create(b"input", 1), "input")
    while part := os.read(0, 64 * 1024):
        os.write(rest, part)
    os.lseek(rest, 0, os.SEEK_SET)
    os.dup2(rest, 0)
    plan: dict[str, Any] = marshal.loads(data)  # noqa: S302 (of accord; the import of json takes long)
    return plan


def main() -> None:
    """Run ``SIZE PROGRAM ...``: the input begins with the plan, as ``marshal`` writes it, of SIZE bytes."""
    size, *words = sys.argv[1:]
    try:
        _run(_read_plan(int(size)), words)
    except OSError as error:
        _fail(words, error)


if __name__ == "__main__":
    main()
