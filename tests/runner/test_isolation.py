"""An agent in a container reaches its work tree, and nothing else of the job."""

from __future__ import annotations

import hashlib
import json
import marshal
import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.agent_bench import CHECKOUT, Bench, Left, bench, has_namespaces, running_with
from support.hostile_agent import POISON

from accord.agents.registry import Agent, AgentSettings
from accord.gha.step import guard_git_settings
from accord.runner import confine, isolation
from accord.runner.isolation import (
    NOT_ISOLATED,
    REACHES_CLOUD,
    WITHOUT_CONTAINER,
    Confinement,
    Container,
    choose_confinement,
    confinement_of,
    container_for,
    reachable_sockets,
)
from accord.runner.models import AgentNotStarted
from accord.runner.proxy import addresses_of, is_allowed, serve_proxy, through_proxy, upstream_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bench"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")
needs_user_namespaces = pytest.mark.skipif(not has_namespaces(), reason="the machine, or its container, has none")
SCRIPT = CHECKOUT / "tests/support/hostile_agent.py"
JOBS = {"GITHUB_TOKEN": "ghs-of-the-job-" + "7c1d" * 6, "OTHER_KEY": "key-of-another-agent-" + "9e2f" * 5}
PLACES = ("env.sh", "home", "home/.bashrc", "tools", "temp", "run", "run/record.json")
NOBODY = 65534


@pytest.fixture(scope="module", autouse=True)
def _containers(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = str(tmp_path_factory.mktemp("container"))
    _, problem = choose_confinement(Container(place, (place,)), {"GITHUB_ACTIONS": "true"}, is_required=False)
    if problem:
        pytest.skip(problem)


def reached(left: Left) -> dict[str, Any]:
    patch = left.text("changes.patch").partition("b/reached.json\n@@")[2].partition("diff --git")[0]
    document: dict[str, Any] = json.loads("".join(line[1:] for line in patch.splitlines() if line.startswith("+")))
    return document


def attack(bench: Bench, entry: dict[str, Any], job: dict[str, str]) -> Left:
    (bench.top / "home/.ssh").mkdir()
    (bench.top / "home/.ssh/id_ed25519").write_text(JOBS["OTHER_KEY"])
    (bench.top / "temp/creds.config").write_text(JOBS["GITHUB_TOKEN"])
    (bench.top / "tools").mkdir()
    (bench.top / "tools/node.js").write_text("run()")
    (bench.top / "env.sh").touch()
    wanted = {
        "hashes": [hashlib.sha256(value.encode()).hexdigest() for value in JOBS.values()],
        "places": [str(bench.top / name) for name in PLACES],
        "sleep": f"600.{time.monotonic_ns()}",
    }
    (bench.top / "wanted.json").write_text(json.dumps(wanted))
    registry = bench.registry({"agents": {"mine": {"command": ["{command}"], "required_secrets": ["MY_KEY"], **entry}}})
    command = shlex.join([sys.executable, str(SCRIPT), str(bench.top / "wanted.json")])
    given = {
        **JOBS,
        "MY_KEY": "key-of-this-agent-" + "1b3d" * 5,
        "GITHUB_ENV": str(bench.top / "env.sh"),
        "RUNNER_TOOL_CACHE": str(bench.top / "tools"),
    }
    left = bench.run(
        *("--agent", "mine", "--command", command, "--prompt-file", "prompt.md", "--registry", registry),
        job={**given, **job},
    )
    assert running_with(str(wanted["sleep"])) == 0
    return left


CONTAINER, JOB = {"isolation": "container"}, {"GITHUB_ACTIONS": "true"}


@pytest.mark.parametrize(
    ("entry", "job", "is_isolated", "is_required"),
    [
        ({}, {}, False, False), ({}, JOB, True, False), ({"isolation": "none"}, JOB, False, False),
        (CONTAINER, {}, True, True), ({"isolation": "none", "network": []}, {}, True, True),
    ],
)  # fmt: skip
def test_an_agent_gets_a_container_in_jobs_and_where_its_entry_demands_one(
    monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any], job: dict[str, str], is_isolated: bool, is_required: bool
) -> None:
    monkeypatch.setattr(isolation, "choose_confinement", lambda *given, is_required: ((given[0], is_required), ""))
    found, _ = confinement_of(Agent(**entry), [], job, Container("scratch"))
    assert found == (Container("scratch") if is_isolated else None, is_required)
    keeps_sudo = [AgentSettings(keeps_sudo=True)]
    with pytest.raises(AgentNotStarted, match="keeps sudo") if is_required else nullcontext():
        assert confinement_of(Agent(**entry), keeps_sudo, job, Container("scratch")) == (None, "")


@pytest.mark.parametrize(("entry", "job"), [pytest.param(CONTAINER, {}, marks=pytest.mark.matrix), ({}, JOB)])
@pytest.mark.slow
def test_an_agent_in_a_container_reaches_nothing_but_its_work_tree(
    bench: Bench, entry: dict[str, Any], job: dict[str, str]
) -> None:
    left = attack(bench, entry, job)
    assert left.outputs["exit-code"] == "0", left.err
    assert reached(left) == {
        "found": [],
        "poisoned": reached(left)["poisoned"],
        "sockets": [],
        "sudo": False,
        "capabilities": ["80000000"] * 3 if os.geteuid() == 0 else [],  # CAP_SETFCAP
        "groups": [],
        "killed": [],
    }
    tree = [path for name in ("home", "tools", "temp", "run", "env.sh") for path in (bench.top / name).rglob("*")]
    assert [str(path) for path in tree if path.is_file() and POISON in path.read_text()] == []
    assert (bench.top / "env.sh").read_text() == ""
    assert POISON not in (bench.work / ".git/config").read_text()
    assert not (bench.work / ".git/hooks/pre-push").exists()
    assert left.record["warnings"] == []


GIT_ATTACKS = {
    "link": "shutil.rmtree('.git/hooks'); os.symlink('../..', '.git/hooks')",
    "pipe": "os.mkdir('.git/hooks') if not os.path.isdir('.git/hooks') else None; os.mkfifo('.git/hooks/pre-commit')",
    "replaced": "os.rename('.git', '../old'); subprocess.run(['cp', '-r', '../old', '.git'])",
    "gone": "shutil.rmtree('.git')",
}


@pytest.mark.parametrize("kind", GIT_ATTACKS)
def test_settings_of_git_are_undone_whatever_is_in_their_place(
    bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bench.work)
    config = (bench.work / ".git/config").read_text()
    hooks = sorted(path.name for path in (bench.work / ".git/hooks").iterdir())
    with guard_git_settings(bench.work / ".git") as changed:
        exec(GIT_ATTACKS[kind], {"os": os, "shutil": shutil, "subprocess": subprocess})
        if kind != "gone":
            (bench.work / ".git/config").write_text("[core] fsmonitor = evil")
    if kind in ("replaced", "gone"):
        assert not (bench.work / ".git").exists()
        return
    assert (bench.work / ".git/config").read_text() == config
    assert not (bench.work / ".git/hooks").is_symlink()
    assert kind == "link" or sorted(path.name for path in (bench.work / ".git/hooks").iterdir()) == hooks
    assert changed


WITHOUT_OVERRIDE = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]
"""Root is an ordinary user below this, whom rights of files stop."""


@pytest.mark.parametrize(
    "script",
    ["rm -rf .git/hooks && ln -s ../.. .git/hooks && chmod 555 .git", "chmod 0 .git/objects", "chmod 0 .git"],
)
def test_settings_of_git_are_undone_with_their_rights_and_in_folders_without(bench: Bench, script: str) -> None:
    file = bench.work / ".git/config"
    file.chmod(0o600)
    before = file.read_text(), file.stat().st_mode
    program = f"""
import subprocess
from pathlib import Path
from accord.gha.step import guard_git_settings
with guard_git_settings(Path(".git")):
    subprocess.run({f"git config core.hooksPath ../evil && {script}"!r}, shell=True, check=True)
"""
    subprocess.run([*WITHOUT_OVERRIDE, sys.executable, "-c", program], cwd=bench.work, check=True)
    assert (file.read_text(), file.stat().st_mode) == before
    assert not (bench.work / ".git/hooks").is_symlink()


@pytest.fixture
def own_server() -> Iterator[str]:
    """Answer every connection with one word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"reached")

        threading.Thread(target=serve, daemon=True).start()
        yield f"localhost:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


CONNECTS = """
import json, os, socket, sys
def ask(target):
    host, port = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as to:
        to.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
        return b"".join(iter(lambda: to.recv(100), b"")).decode().split("\\r\\n")
def is_open(target):
    host, port = target.split(":")
    try:
        socket.create_connection((host, int(port)), 2).close()
    except OSError:
        return False
    return True
print(json.dumps({"allowed": ask(allowed), "other": ask(other), "directly": is_open(allowed)}))
"""


@pytest.mark.slow
def test_an_agent_reaches_the_hosts_of_its_network_and_no_other(bench: Bench, own_server: str) -> None:
    temporary = bench.top / ("long-" * 20)  # longer than the address of a socket
    temporary.mkdir()
    other = f"localhost:{int(own_server.split(':')[1]) + 1}"
    job = {"HTTPS_PROXY": "", "RUNNER_TEMP": str(temporary)}
    left = bench.script_of_mine(
        f"allowed, other = {own_server!r}, {other!r}\n{CONNECTS}", {"network": [own_server]}, job
    )
    assert left.record["error"] is None
    answers = json.loads(left.text("stdout.log"))
    assert answers["allowed"][0] == "HTTP/1.1 200 Connected"
    assert answers["allowed"][-1] == "reached"
    assert answers["other"][0].startswith("HTTP/1.1 403 ")
    assert not answers["directly"]
    assert left.record["warnings"] == [f"The agent's network does not allow: {other}."]


def test_the_jobs_own_proxy_is_used_with_its_password(tmp_path: Path) -> None:
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as upstream:

        def serve() -> None:
            connection, _ = upstream.accept()
            with connection:
                asked.append(connection.recv(1000).decode())
                connection.sendall(b"HTTP/1.1 200 Yes\r\n\r\n")
                connection.sendall(connection.recv(100))

        thread = threading.Thread(target=serve)
        thread.start()
        job = {"HTTPS_PROXY": f"http://me:p%40ss@127.0.0.1:{upstream.getsockname()[1]}"}
        with (
            serve_proxy(["api.example.com"], tmp_path / "proxy", job) as refused,
            socket.socket(socket.AF_UNIX) as agent,
        ):
            agent.settimeout(20)
            agent.connect(str(tmp_path / "proxy"))
            agent.sendall(b"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n")
            answer = agent.recv(100)
            agent.sendall(b"hello")
            answer += b"".join(iter(lambda: agent.recv(100), b""))
        thread.join()
    assert answer == b"HTTP/1.1 200 Yes\r\n\r\nhello"
    assert asked[0].splitlines() == [
        "CONNECT api.example.com:443 HTTP/1.1",
        "Host: api.example.com:443",
        "Proxy-Authorization: Basic bWU6cEBzcw==",
        "",
    ]
    assert refused == []


@pytest.mark.parametrize("no_proxy", ["localhost", "*", "example.com, .localhost,localhost"])
def test_the_jobs_own_proxy_is_not_used_for_its_exceptions(tmp_path: Path, own_server: str, no_proxy: str) -> None:
    job = {"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": no_proxy}
    with serve_proxy([own_server], tmp_path / "proxy", job), socket.socket(socket.AF_UNIX) as agent:
        agent.connect(str(tmp_path / "proxy"))
        agent.sendall(f"CONNECT {own_server} HTTP/1.1\r\n\r\n".encode())
        assert b"".join(iter(lambda: agent.recv(100), b"")).endswith(b"reached")


@pytest.mark.parametrize(
    ("job", "host", "port"),
    [
        ({"HTTPS_PROXY": "proxy:3128"}, "proxy", 3128),
        ({"https_proxy": "me:secret@proxy:3128"}, "proxy", 3128),
        ({"ALL_PROXY": "http://proxy/"}, "proxy", None),
        ({"HTTPS_PROXY": "", "all_proxy": "http://[::1]:3128"}, "::1", 3128),
    ],
)
def test_the_jobs_own_proxy_is_found(job: dict[str, str], host: str, port: int | None) -> None:
    found = upstream_of(job)
    assert found is not None
    assert (found.hostname, found.port) == (host, port)


@pytest.mark.parametrize("address", ["https://me:secret@proxy", "socks5://proxy:1080", "http://proxy:none", "http://"])
def test_other_kinds_of_proxies_are_refused(address: str) -> None:
    with pytest.raises(AgentNotStarted, match="ALL_PROXY") as failed:
        upstream_of({"ALL_PROXY": address})
    assert "secret" not in str(failed.value.error.detail)


def test_a_program_behind_the_proxy_does_not_see_the_jobs_own() -> None:
    environment = through_proxy({"ALL_PROXY": "http://me:secret@proxy", "Https_Proxy": "http://me:secret@proxy"})
    assert "secret" not in str(environment)
    assert environment["HTTPS_PROXY"] == f"http://{confine.PROXY}"


@pytest.mark.parametrize(
    ("entry", "mode", "back"),
    [
        ("temp/venv/bin", 0, "temp/venv"), ("temp/tools", 0, "temp/tools"), ("temp/bin", 0, "temp/bin"),
        ("temp", 0, ""), ("home/.claude/local", 0, "home/.claude/local"), ("home/bin", 0, "home/bin"),
        ("home/.tool/1.0/bin", 0o755, "home/.tool/1.0"), ("home/.tool/1.0/bin", 0o700, "home/.tool/1.0/bin"),
        ("home/.tool/bin", 0o755, "home/.tool/bin"), ("home/.tool/bin", 0o700, "home/.tool/bin"),
        ("home/tool/bin", 0o755, "home/tool"),
    ],
)  # fmt: skip
def test_programs_on_the_path_stay_readable_with_their_prefix_unless_that_is_private_or_shared(
    tmp_path: Path, entry: str, mode: int, back: str
) -> None:
    (tmp_path / entry).mkdir(parents=True)
    for name in ("private", "temp", "home/.claude", "home/.codex"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "home/.codex/auth.json").touch()
    if mode:
        (tmp_path / entry).parent.chmod(mode)
    folders = {name: str(tmp_path / folder) for name, folder in (("HOME", "home"), ("RUNNER_TEMP", "temp"))}
    job = {**folders, "PATH": f"/usr/bin:{tmp_path / entry}"}
    container = container_for(job, tmp_path / "private", [], [], proxy=None)
    assert container.readable == ((str(tmp_path / back),) if back else ())
    assert {str(tmp_path / name) for name in ("temp", "home")} <= set(container.hidden)


CREDENTIALS = """
.aws/credentials .netrc .docker/config.json .config/gh/hosts.yml .ssh/id_ed25519 .npmrc .cargo/credentials.toml
.cargo/credentials .config/composer/auth.json .local/share/opencode/auth.json .local/share/keyrings/login.keyring
.local/share/pypoetry/auth.toml .local/state/a .codex/auth.json .deno/login .bash_history
"""
PROGRAMS = ".local/bin .cargo/bin .config/composer/vendor/bin .dotnet/tools .deno/bin .nvm/versions/node/20/bin"
OTHERS = """
.tool/login.json .tool/share/x/auth.json .unknown-agent/auth .tool/lib/lib.txt .store/1.0/lib.txt .store/1.0/login.json
.store/1.0/bin/other sdk/file.txt .nvm/versions/node/20/lib/npm.js
"""
LOOKS_AT_HOME = """
import json, os, pathlib
def look(path):
    try:
        return path.read_text() if path.is_file() else sorted(each.name for each in path.iterdir())
    except OSError as error:
        return error.strerror
print(json.dumps({name: look(home / name) for name in names}))
"""


@pytest.mark.slow
def test_the_runners_home_is_hidden_whole_apart_from_programs_without_their_logins(bench: Bench) -> None:
    home = bench.top / "home"
    for name in (*CREDENTIALS.split(), *OTHERS.split(), *(f"{folder}/run" for folder in PROGRAMS.split())):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("text")
    (home / ".store/1.0/login.json").chmod(0o600)
    (home / ".tool/bin").mkdir()
    (home / ".tool/bin/other").symlink_to(home / ".store/1.0/bin/other")
    path = ":".join(str(home / name) for name in (".tool/bin", *PROGRAMS.split()))
    job = {"PATH": f"{path}:{os.environ['PATH']}", "JAVA_HOME": str(home / "sdk"), "CARGO_HOME": str(home / ".cargo")}
    names = [*CREDENTIALS.split(), *OTHERS.split(), *(f"{folder}/run" for folder in PROGRAMS.split())]
    program = f"import pathlib\nhome, names = pathlib.Path({str(home)!r}), {names!r}\n{LOOKS_AT_HOME}"
    left = bench.script_of_mine(program, {"isolation": "container"}, job)
    seen = json.loads(left.text("stdout.log"))
    assert {name for name in CREDENTIALS.split() if seen[name] == "text"} == set()
    assert all(seen[f"{folder}/run"] == "text" for folder in PROGRAMS.split())
    assert {name: seen[name] for name in OTHERS.split()} == {
        **dict.fromkeys(OTHERS.split(), "text"),
        **dict.fromkeys(
            (".tool/login.json", ".tool/share/x/auth.json", ".unknown-agent/auth"), "No such file or directory"
        ),
        ".store/1.0/login.json": "Not a directory",  # it is /dev/null
    }


def test_programs_come_back_only_where_they_would_be_hidden(tmp_path: Path) -> None:
    for name in ("private", "temp/accord/env", "tools/python"):
        (tmp_path / name).mkdir(parents=True)
    programs = [tmp_path / "temp/accord/env", tmp_path / "tools/python", Path("/usr")]
    job = {"RUNNER_TEMP": str(tmp_path / "temp")}
    container = container_for(job, tmp_path / "private", [], [], programs, proxy=None)
    assert container.readable == (str(tmp_path / "temp/accord/env"),)


@pytest.mark.parametrize(
    ("target", "is_reached"),
    [
        ("api.example.com:443", True), ("API.example.com:443", True), ("api.example.com:80", False),
        ("evil-api.example.com:443", False), ("api.example.com.evil.test:443", False), ("a.b.example.org:443", True),
        ("example.org:443", False), ("evilexample.org:443", False), ("localhost:8080", True),
        ("localhost:443", False),
    ],
)  # fmt: skip
def test_a_host_is_allowed_by_its_whole_name_and_port(target: str, is_reached: bool) -> None:
    host, _, port = target.lower().rpartition(":")
    assert is_allowed(host, port, ["api.example.com", "*.example.org", "localhost:8080"]) is is_reached


@pytest.mark.parametrize(
    ("host", "answers", "addresses"),
    [
        ("rebound.test", ["169.254.169.254"], []), ("rebound.test", ["fe80::1%2", "::ffff:169.254.1.1"], []),
        ("api.test", ["2001:db8::1", "192.0.2.1", "169.254.0.1"], ["2001:db8::1", "192.0.2.1"]),
        ("169.254.169.254", ["169.254.169.254"], ["169.254.169.254"]), ("gone.test", [], []),
        ("localhost", ["::1", "127.0.0.1"], ["::1", "127.0.0.1"]),
    ],
)  # fmt: skip
def test_a_host_of_the_network_leads_to_no_link_local_address(
    monkeypatch: pytest.MonkeyPatch, host: str, answers: list[str], addresses: list[str]
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (answer, 443)) for answer in answers])
    assert addresses_of(host, "443") == addresses


CONNECTS_TO = """
import errno, json, socket
def reason(family, kind, address):
    with socket.socket(family, kind) as to:
        to.settimeout(0.2)
        try:
            to.sendto(b"x", address) if kind == socket.SOCK_DGRAM else to.connect(address)
        except OSError as error:
            return error.errno == errno.EPERM
    return False
kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
print(json.dumps([address for family, *address in addresses for kind in kinds if reason(family, kind, tuple(address))]))
"""


@pytest.mark.slow
def test_an_agent_in_a_container_of_root_reaches_no_link_local_address_except_for_names(bench: Bench) -> None:
    if os.geteuid():
        pytest.skip("only root can refuse addresses")
    refused = [["169.254.169.254", 80], ["::ffff:169.254.169.254", 80], ["fe80::1", 80, 0, 1], ["febf::1", 80, 0, 1]]
    others = [["127.0.0.1", 9], ["169.254.169.253", 53], ["::1", 9], ["169.253.1.1", 9], ["fec0::1", 9]]
    families = {True: int(socket.AF_INET6), False: int(socket.AF_INET)}
    addresses = [[families[":" in str(address[0])], *address] for address in (*refused, *others)]
    place = Path("/proc/mounts").read_text().partition(" cgroup2 ")[0].rpartition(" ")[2]
    own = Path("/proc/self/cgroup").read_text().rpartition("0::/")[2].strip()
    stale = Path(place or bench.top, own, "accord-4194305")  # no process has such a number
    with suppress(OSError):
        stale.mkdir(exist_ok=True)
    left = bench.script_of_mine(f"addresses = {addresses!r}\n{CONNECTS_TO}", {"isolation": "container"}, {})
    found = json.loads(left.text("stdout.log"))
    if not found:
        pytest.skip("this machine has no control groups for it")
    assert found == [address for address in refused for _ in range(2)]
    assert not stale.exists()


def python_of_everyone() -> str:
    """Return a Python that any user can start."""
    for candidate in ("/usr/bin/python3", sys.executable):
        if subprocess.run([candidate, "-V"], user=NOBODY, capture_output=True, check=False).returncode == 0:
            return candidate
    pytest.skip("no Python that another user can start")


@pytest.fixture
def shared_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that other users reach."""
    folder = Path(f"/run/accord-test-{os.getpid()}")
    if os.geteuid():
        pytest.skip("only root can start programs of other users")
    with socket.socket(socket.AF_UNIX) as listener:
        folder.mkdir(exist_ok=True)
        (folder / "docker.sock").unlink(missing_ok=True)
        listener.bind(str(folder / "docker.sock"))
        listener.listen()
        (folder / "docker.sock").chmod(0o660)
        os.chown(folder / "docker.sock", 0, NOBODY - 1)
        yield folder
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


LOOKS = """
import json, os, socket, sys
status = open("/proc/self/status").read()
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
    docker = "reached"
except OSError as error:
    docker = error.strerror
lines = dict(line.split(":", 1) for line in status.splitlines())
names = ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")
print(json.dumps([os.getuid(), os.getgroups(), docker, int(lines["NoNewPrivs"]), [int(lines[n], 16) for n in names]]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", ["before", "root", "root in a container", pytest.param("user namespace", marks=needs_user_namespaces)]
)
def test_an_agent_loses_docker_groups_and_capabilities(shared_folder: Path, way: str) -> None:
    python = python_of_everyone()
    scratch = shared_folder / "scratch"
    scratch.mkdir(mode=0o777)
    scratch.chmod(0o777)
    container = way in ("root in a container", "user namespace")
    plan = {
        "user": [NOBODY, NOBODY],
        "umask": 0o022,
        "directory": "/",
        "environment": {},
        "masked": [str(shared_folder / "docker.sock")],
        "is_isolated": container,
        **{name: [] for name in ("writable", "readable", "hidden", "discarded")},
        "scratch": str(scratch),
        "proxy": "",
    }
    data = marshal.dumps(plan)
    (scratch / "confine.py").write_text(Path(confine.__file__).read_text())
    looks = [python, "-c", LOOKS, str(shared_folder / "docker.sock")]
    command = looks if way == "before" else [python, "-I", "-S", str(scratch / "confine.py"), str(len(data)), *looks]
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": [NOBODY - 1]}
    if way.startswith("root"):
        user = {"user": 0, "group": 0, "extra_groups": [NOBODY - 1]}
    done = subprocess.run(command, input=data, capture_output=True, check=False, cwd="/", **user)  # type: ignore[call-overload]
    for path in scratch.iterdir():
        path.unlink()
    scratch.rmdir()
    assert done.returncode == 0, done.stderr.decode()
    uid, groups, docker, is_sealed, capabilities = json.loads(done.stdout)
    assert uid == NOBODY
    if way == "before":
        assert (docker, is_sealed) == ("reached", 0)
        return
    assert docker == "Connection refused"
    assert set(groups) <= ({NOBODY} if way == "user namespace" else set())
    assert (is_sealed, capabilities) == (1, [0, 0, 0, 0, 0])


@pytest.mark.slow
@needs_user_namespaces
@pytest.mark.parametrize("proxy", ["", "/run/accord-test.sock"])
def test_a_container_without_root_says_that_it_reaches_link_local_addresses(
    shared_folder: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    python, scratch = python_of_everyone(), shared_folder / "scratch"
    scratch.mkdir(mode=0o777)
    sudo = shared_folder / "sudo"  # one that gives no rights
    sudo.write_text(
        f"#!{python}\nimport os, sys\nos.setgid({NOBODY})\nos.setuid({NOBODY})\nos.execv({python!r}, sys.argv[3:])"
    )
    sudo.chmod(0o755)
    (shared_folder / "confine.py").write_text(Path(confine.__file__).read_text())
    monkeypatch.setenv("PATH", f"{shared_folder}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setattr(confine, "__file__", str(shared_folder / "confine.py"))
    for name in ("getuid", "geteuid", "getgid"):
        monkeypatch.setattr(os, name, lambda: NOBODY)
    container = Container(str(scratch), proxy=proxy)
    found, warning = choose_confinement(container, {"GITHUB_ACTIONS": "true"}, is_required=False)
    scratch.rmdir()
    assert found.container is not None, warning
    assert warning == ("" if proxy else REACHES_CLOUD)


READS_ACCORD = """
import os
pid = os.getpid()
while b"accord" not in open(f"/proc/{pid}/cmdline", "rb").read().split(bytes(1)):
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
for name in ("environ", "mem", "maps", "root/etc/hostname", "fd/0"):
    try:
        open(f"/proc/{pid}/{name}", "rb").read(1)
        print(name, "read")
    except OSError as error:
        print(name, error.strerror)
"""


@pytest.mark.slow
def test_no_other_process_of_the_user_reads_accord(bench: Bench) -> None:
    with bench.start(*bench.scripted(READS_ACCORD), job=JOBS, below=["env"]) as started:
        left = bench.wait(started)
    denied = [f"{name} Permission denied" for name in ("environ", "mem", "maps", "root/etc/hostname", "fd/0")]
    assert left.text("stdout.log").splitlines() == denied


@pytest.fixture
def no_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Confinement, "trial", lambda _: ("unshare: Operation not permitted", []))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.mark.usefixtures("no_way")
def test_a_machine_without_containers_is_reported_once_or_refused(tmp_path: Path) -> None:
    container = container_for({}, tmp_path, [], [], proxy=None)
    confinement, warning = choose_confinement(container, {"GITHUB_ACTIONS": "true"}, is_required=False)
    assert confinement == WITHOUT_CONTAINER
    assert warning.startswith(f"{NOT_ISOLATED} The reason: unshare: Operation not permitted")
    assert choose_confinement(None, {}, is_required=False) == (WITHOUT_CONTAINER, "")
    with pytest.raises(AgentNotStarted, match="cannot isolate"):
        choose_confinement(container, {}, is_required=True)


CANNOT_MOUNT = "import ctypes, os, sys; [ctypes.CDLL(None).prctl(24, 21, 0, 0, 0)]; os.execv(sys.argv[1], sys.argv[1:])"
"""Starts a program without CAP_SYS_ADMIN, as in a container job."""


@pytest.mark.slow
def test_a_socket_that_cannot_be_hidden_is_found_by_the_trial(shared_folder: Path) -> None:
    docker = str(shared_folder / "docker.sock")
    assert Confinement((), [docker]).trial() == ("", [])
    assert Confinement((sys.executable, "-c", CANNOT_MOUNT), [docker]).trial() == ("", [docker])


def test_the_warning_names_the_sockets_that_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    container = container_for({}, tmp_path, [], [], proxy=None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(isolation, "reachable_sockets", lambda *_: ["/run/docker.sock"])  # a machine may have none
    trials = {True: ("no namespaces", []), False: ("", ["/run/docker.sock"])}
    monkeypatch.setattr(Confinement, "trial", lambda self: trials[self.container is not None])
    confinement, warning = choose_confinement(container, {"GITHUB_ACTIONS": "true"}, is_required=False)
    assert confinement.container is None
    assert warning == f"{NOT_ISOLATED} The reason: no namespaces. It also reached /run/docker.sock."


@pytest.mark.parametrize("way", [pytest.param("none", marks=pytest.mark.matrix), "container"])
@pytest.mark.slow
def test_a_program_of_an_unknown_format_is_not_started(bench: Bench, way: str) -> None:
    (bench.work / "agent").write_bytes(bytes(8))
    (bench.work / "agent").chmod(0o755)
    registry = bench.registry({"agents": {"mine": {"command": ["./agent"], "isolation": way}}})
    left = bench.run("--agent", "mine", "--prompt-file", "prompt.md", "--registry", registry)
    assert (left.record["exit_code"], left.record["error"]["kind"]) == (None, "not-started")
    assert "Exec format error" in left.record["error"]["detail"]


def test_sockets_of_root_are_found(shared_folder: Path) -> None:
    assert str(shared_folder / "docker.sock") in reachable_sockets()


@pytest.mark.slow
def test_an_agent_in_a_container_reaches_no_socket_of_its_user_and_cannot_rewrite_its_prompt(bench: Bench) -> None:
    program = (
        "import socket\n"
        f"try:\n    socket.socket(socket.AF_UNIX).connect({str(bench.top / 'agent.sock')!r})\n    print('reached')\n"
        "except OSError as error:\n    print(error.strerror)\n"
        "with open('/proc/self/fd/0', 'w') as file: file.write('forged')\n"
        "for name in ('stdin', 'stdout', 'stderr'): open(f'/dev/{name}').close()\n"
    )
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(bench.top / "agent.sock"))
        listener.listen()
        left = bench.script_of_mine(program, {"isolation": "container"}, {})
    assert (left.text("stdout.log"), left.outputs["exit-code"]) == ("Connection refused\n", "0")
    assert "Add a file." in left.text("prompt.md")
