"""The rights that an agent starts without, and the container around it where this machine can make one."""

from __future__ import annotations

import marshal
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from accord.agents.registry import Agent, AgentSettings
from accord.core.environment import is_in_actions
from accord.core.frozen import Frozen
from accord.git.paths import some_of
from accord.runner import confine
from accord.runner.models import AgentNotStarted

_PROBE_SECONDS = 30
_TRIALS = 3
"""Sockets come and go on a machine: one that another program replaces during a trial is hidden in the next."""

_SUDO = ("sudo", "-n", "--")

_RUNNERS = (".credentials", ".credentials_rsaparams", ".runner", ".env")
"""Files beside a runner's program: its keys and settings."""

_CACHES = ("RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY", "CARGO_HOME", "RUSTUP_HOME")

_SHARED = ("bin", "sbin", "lib", "lib64", "libexec")
"""Folders of programs and their libraries, below one that has more."""

_LIST_SOCKETS = 'for path; do if [ -S "$path" ] && [ -w "$path" ]; then echo "$path"; fi; done'
_IS_OPEN = "; grep -q '/accord-[0-9]*$' /proc/self/cgroup || echo"
"""Prints an empty line if no control group of a container refuses link-local addresses."""

REACHES_CLOUD = (
    "The agent's container was made without root or control groups, so it reached link-local addresses such as "
    "169.254.169.254, where clouds serve the credentials of a machine. Set `network` in the agent's registry entry."
)

NOT_ISOLATED = "The agent was not isolated: it could read and change everything that its user can."


class Container(Frozen):
    """Paths that a container sees differently; ``proxy`` is a socket, its only network, if not empty."""

    scratch: str
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()
    proxy: str = ""


class Confinement(Frozen):
    """How to start a program with fewer rights. ``masked`` are sockets that it does not reach."""

    via: Sequence[str] = ()
    masked: Sequence[str] = ()
    container: Container | None = None

    def command(self, words: Sequence[str], directory: Path, environment: Mapping[str, str]) -> tuple[list[str], bytes]:
        """Return the command that starts a program, and the bytes to put before the program's own input."""
        umask = os.umask(0o077)
        os.umask(umask)
        plan = {
            "user": [os.getuid(), os.getgid()],
            "umask": umask,
            "directory": str(directory),
            "environment": dict(environment),
            "masked": list(self.masked),
            "is_isolated": self.container is not None,
            **(asdict(self.container) if self.container else {}),
        }
        data = marshal.dumps(plan)
        return [*self.via, sys.executable, "-I", "-S", confine.__file__, str(len(data)), *words], data

    def trial(self) -> tuple[str, list[str]]:
        """Return why no program can be started this way, empty if one can; and the masked sockets that it reaches.

        An empty name among them: it reaches link-local addresses.
        """
        script = _LIST_SOCKETS + (_IS_OPEN if self.container and not self.container.proxy else "")
        words, data = self.command(["/bin/sh", "-c", script, "sh", *self.masked], Path("/"), {})
        try:
            tried = subprocess.run(words, input=data, capture_output=True, timeout=_PROBE_SECONDS)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error), []
        if tried.returncode:
            said = tried.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {tried.returncode}"]
            return said[-1].removeprefix(confine.CANNOT_START), []
        return "", tried.stdout.decode(errors="replace").splitlines()


WITHOUT_CONTAINER = Confinement()


def confinement_of(
    agent: Agent, settings: Iterable[AgentSettings], job: Mapping[str, str], container: Container
) -> tuple[Confinement | None, str]:
    """Return the confinement of an agent, and a warning. Raises AgentNotStarted if its entry demands more."""
    is_required = agent.isolation == "container" or agent.network is not None
    if any(setting.keeps_sudo for setting in settings):
        if is_required:
            message = "An agent that keeps sudo cannot be isolated."
            hint = "Use another safety strategy, or remove `isolation` and `network` from the registry entry."
            raise AgentNotStarted("not-started", message, hint=hint)
        return None, ""
    is_isolated = is_required or (agent.isolation == "auto" and is_in_actions(job))
    return choose_confinement(container if is_isolated else None, job, is_required=is_required)


def choose_confinement(
    container: Container | None, job: Mapping[str, str], *, is_required: bool
) -> tuple[Confinement, str]:
    """Return the strongest confinement that works here, and a warning if that is weaker than asked for.

    Outside GitHub Actions sudo is used only if the container is required. Raises AgentNotStarted if it is, and cannot
    be made.
    """
    user, is_step = os.geteuid(), is_in_actions(job)
    with_sudo = [_SUDO] if user and (is_step or is_required) and shutil.which("sudo") else []
    masked, warning = reachable_sockets(), ""
    if container:
        problem = "only Linux has namespaces"
        for via in [*with_sudo, ()] * _TRIALS if sys.platform == "linux" else ():
            others = [path for path in reachable_sockets({0, user}) if path != container.proxy]
            found = Confinement(via, others, container)
            problem, listed = found.trial()
            reached = [path for path in listed if path]
            problem = problem or (f"it still reached {some_of(reached)}" if reached else "")
            if not problem:
                return found, REACHES_CLOUD if "" in listed else ""
        if is_required:
            message = f"This machine cannot isolate the agent, neither with sudo nor with user namespaces: {problem}"
            hint = "Run it on another machine, or remove `isolation` and `network` from its registry entry."
            raise AgentNotStarted("not-started", message, hint=hint)
        warning = f"{NOT_ISOLATED} The reason: {problem.removesuffix('.')}."
    for via in with_sudo if user or not masked else [()]:
        found = Confinement(via, masked)
        problem, reached = found.trial()
        if not problem:
            return found, _with_sockets(warning, reached)
    return WITHOUT_CONTAINER, _with_sockets(warning, masked)


def _with_sockets(warning: str, reached: Sequence[str]) -> str:
    return f"{warning} It also reached {some_of(reached)}." if warning and reached else warning


def reachable_sockets(owners: Collection[int] = (0,)) -> list[str]:
    """Return the sockets of root, or other owners, that this user can write to, such as Docker's."""
    found: dict[str, None] = {}
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines():
            found |= dict.fromkeys(line.split(maxsplit=7)[7:])
    for folder, _, names in os.walk("/run"):
        found |= dict.fromkeys(f"{folder}/{name}" for name in names)
    reached = []
    for path in (path for path in found if path.startswith("/")):
        with suppress(OSError):
            status = os.lstat(path)
            if stat.S_ISSOCK(status.st_mode) and status.st_uid in owners and os.access(path, os.W_OK):
                reached.append(path)
    return reached


def container_for(
    job: Mapping[str, str],
    private: Path,
    writable: Iterable[Path],
    readable: Iterable[Path],
    programs: Iterable[Path] = (),
    *,
    proxy: Path | None,
) -> Container:
    """Return the container for an agent: it writes to its work tree and its private folder.

    Hidden are the runner's HOME, its temporary folder and its keys. Folders on the PATH and ``programs`` can be read
    where they would be hidden; elsewhere, they are as for any agent.
    """
    scratch = private / "layers"
    scratch.mkdir()
    temporary = Path(job["RUNNER_TEMP"]).resolve() if job.get("RUNNER_TEMP") else None
    home = Path(job["HOME"]).resolve() if job.get("HOME") else Path("/")
    hidden = [Path("/run/user"), *([home] if home != Path("/") else [])]
    if temporary:
        hidden += [temporary, *(temporary.parents[1] / name for name in _RUNNERS if len(temporary.parents) > 1)]
    places = {place.resolve() for place in hidden}
    entries = [Path(entry).resolve() for entry in job.get("PATH", "").split(":") if entry.startswith("/")]
    prefixes = [prefix for entry in entries for prefix in _prefixes(entry, places, home)]
    back = [path for path in programs if not places.isdisjoint(path.resolve().parents)]
    logins = (
        [Path(job["CARGO_HOME"], name) for name in ("credentials", "credentials.toml")] if job.get("CARGO_HOME") else []
    )
    own = [path for prefix in prefixes if home in prefix.parents for path in _private_paths(prefix)]
    caches = ["/tmp", "/var/tmp", "/usr/local", "/opt", *(job.get(name, "") for name in _CACHES)]  # noqa: S108
    return Container(
        scratch=str(scratch),
        writable=_existing_paths([*writable, private]),
        readable=_existing_paths([*readable, *prefixes, *back]),
        hidden=_existing_paths([*hidden, *own, *logins]),
        discarded=_existing_paths(Path(name) for name in caches if name),
        proxy=str(proxy or ""),
    )


def _prefixes(entry: Path, hidden: Set[Path], home: Path) -> Iterator[Path]:
    """Yield the folders to bring back for a hidden folder of programs, and for those that its links lead to.

    Of ``…/bin`` it is the one above, unless that is private. In a folder such as ``~/.local``, other programs keep
    logins and state, so only programs and libraries come back.
    """
    folders = [entry]
    with suppress(OSError):
        links = [] if hidden.isdisjoint(entry.parents) else [path for path in entry.iterdir() if path.is_symlink()]
        folders += dict.fromkeys(link.resolve().parent for link in links)
    for folder in (folder for folder in folders if not hidden.isdisjoint(folder.parents)):
        is_bin, above = folder.name in ("bin", "sbin"), folder.parent
        is_whole = (above / "pyvenv.cfg").exists()
        is_private = above not in hidden and _is_own(above) and not is_whole
        if is_bin and above not in hidden and not is_private:
            is_shared = above.parent == home and above.name.startswith(".") and not is_whole
            yield from (above / name for name in _SHARED) if is_shared else (above,)
        elif is_bin or not (_is_own(folder) or is_private):
            yield folder


def _private_paths(prefix: Path) -> Iterator[Path]:
    """Yield what only its owner may read in a folder, such as a login of its program; programs stay.

    A virtual environment of Python holds none, whatever its modes are.
    """
    for place, folders, names in os.walk(prefix):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        kept = ("bin", "sbin") if Path(place) == prefix else ()
        own = [name for name in folders if name not in kept and _is_own(Path(place, name))]
        folders[:] = [name for name in folders if name not in own]
        yield from (Path(place, name) for name in (*own, *(name for name in names if _is_own(Path(place, name)))))


def _is_own(path: Path) -> bool:
    """Return whether only its owner may use a folder, or a file that is not a program."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        return not mode & 0o077 and (stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and not mode & stat.S_IXUSR))
    return False


def _existing_paths(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(path.resolve()) for path in paths if path.exists()))
