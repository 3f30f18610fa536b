"""A repository for an agent to work in, and `accord run` there in a process of its own."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.forks import Forked
from support.trees import commit, git

CHECKOUT = Path(__file__).parents[2]
TOOL_CLIENT = Path(__file__).with_name("tool_client.py")


WITHOUT_NAMESPACES = ("unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh")
"""The command to start a program with, so that neither it nor its children can make user namespaces."""


def running_with(word: str, file: str = "cmdline") -> int:
    """Count the processes with a word in their command, or in another file of theirs; they may end meanwhile."""
    found = 0
    for path in Path("/proc").glob(f"[0-9]*/{file}"):
        with suppress(OSError):
            found += word.encode() in path.read_bytes()
    return found


def has_namespaces() -> bool:
    """Return whether user namespaces work here, which the command above needs itself."""
    return subprocess.run([*WITHOUT_NAMESPACES, "true"], capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class Left:
    """The output of ``accord run`` and the folder that it left."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def outputs(self) -> dict[str, str]:
        outputs: dict[str, str] = json.loads(self.out)
        return outputs

    @property
    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.folder / "record.json").read_text())
        return record

    def text(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""


@dataclass(frozen=True)
class Bench:
    """A repository for an agent to work in, and ``accord run`` in a process of its own, without our environment.

    It forks from a process with accord's modules unless the job brings its own, or it starts below another command.
    """

    work: Path
    top: Path

    def git(self, *arguments: str) -> str:
        return git(self.work, *arguments)

    def start(
        self, *arguments: str, job: Mapping[str, str] | None = None, below: Sequence[str] = ()
    ) -> subprocess.Popen[str] | Forked:
        """Start it, under the command ``below`` if there is one."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.top / "home"),
            "RUNNER_TEMP": str(self.top / "temp"),
            "PYTHONPATH": str(CHECKOUT / "src"),
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
            **(job or {}),
        }
        command = ["run", "--no-publish", "--format", "json", "--run-dir", str(self.top / "run"), *arguments]
        if not below and "PYTHONPATH" not in (job or {}):
            return Forked(command, self.work, environment)
        words = [*below, sys.executable, "-P", "-m", "accord", *command]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        return subprocess.Popen(words, cwd=self.work, env=environment, text=True, **streams)  # type: ignore[call-overload,no-any-return]

    def wait(self, started: subprocess.Popen[str] | Forked) -> Left:
        out, err = started.communicate(timeout=600)
        assert started.returncode is not None
        return Left(started.returncode, out, err, self.top / "run")

    def run(self, *arguments: str, job: Mapping[str, str] | None = None) -> Left:
        with self.start(*arguments, job=job) as started:
            return self.wait(started)

    def script(self, program: str, *arguments: str, job: Mapping[str, str] | None = None) -> Left:
        """Run a Python program as the agent."""
        return self.run(*self.scripted(program), *arguments, job=job)

    def script_of_mine(self, program: str, entry: Mapping[str, Any], job: Mapping[str, str]) -> Left:
        """Run a Python program as the agent ``mine`` with this entry of the registry."""
        registry = self.registry({"agents": {"mine": {"command": ["{command}"], **entry}}})
        return self.run(*self.scripted(program, "mine"), "--registry", registry, job=job)

    def scripted(self, program: str, agent: str = "command") -> list[str]:
        path = self.top / "agent.py"
        path.write_text(program)
        shutil.copy(TOOL_CLIENT, self.top)
        return ["--agent", agent, "--command", shlex.join([sys.executable, str(path)]), "--prompt-file", "prompt.md"]

    def registry(self, document: Mapping[str, Any]) -> str:
        path = self.top / "registry.yml"
        path.write_text(json.dumps(document))
        return str(path)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "work", tmp_path)
    for name in ("work", "home", "temp"):
        (tmp_path / name).mkdir()
    bench.git("init", "-q", "-b", "main")
    (bench.work / "README.md").write_text("# Demo\n")
    (bench.work / "prompt.md").write_text("Add a file.\n")
    commit(bench.work)
    return bench
