"""The command line as tests call it: in this process or in one of its own, with what it left behind."""

from __future__ import annotations

import gc
import io
import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from support.stage import Stage

RUNNER = ("GITHUB_", "ACCORD_", "RUNNER_", "XDG_STATE_HOME")
OUTPUT = re.compile(r"^([\w-]+)<<(\S+)\n(.*?)\n\2$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Step:
    """The files by which the runner of a workflow step gets outputs and a summary."""

    output: Path
    page: Path

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs by name; the last value of each counts."""
        return {name: value for name, _, value in OUTPUT.findall(self.output.read_text(encoding="utf-8"))}

    @property
    def summary(self) -> str:
        """The Markdown of the summary."""
        return self.page.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Accord:
    """Runs ``accord`` the way ``main`` is called, in this process or in one of its own."""

    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    home: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __call__(self, *arguments: object) -> Ended:
        from accord.cli.main import main

        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        threshold = gc.get_threshold()
        self.capsys.readouterr()
        try:
            with pytest.raises(SystemExit) as ended:
                main([str(argument) for argument in arguments])
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            gc.set_threshold(*threshold)
        captured = self.capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    def document(self, *arguments: object, code: int = 0) -> Any:
        """Run with ``--format json``, check the exit code, and return the document."""
        ended = self(*arguments, "--format", "json")
        assert ended.code == code, (ended.out, ended.err)
        return ended.document

    def in_step(self, *, annotates: bool = True) -> Step:
        """Run as a step of a workflow from now on; without ``annotates`` only its files are known."""
        step = Step(self.home / "step-output", self.home / "step-summary")
        for name, path in (("GITHUB_OUTPUT", step.output), ("GITHUB_STEP_SUMMARY", step.page)):
            path.write_text("")
            self.monkeypatch.setenv(name, str(path))
        if annotates:
            self.monkeypatch.setenv("GITHUB_ACTIONS", "true")
        return step

    def on(self, stage: Stage, **more: str) -> None:
        """Point the environment at a stage."""
        variables = {
            "GITHUB_API_URL": stage.server.url,
            "GITHUB_TOKEN": stage.server.token,
            "GITHUB_REPOSITORY": stage.repository,
        }
        for name, value in (variables | more).items():
            self.monkeypatch.setenv(name, value)

    def file(self, name: str, content: Any) -> Path:
        """Write a document into the working directory."""
        path = self.home / name
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
        return path

    def given(self, text: str) -> None:
        """Let the next command in this process read a text from stdin."""
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))

    def start(self, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        """Start a process of its own."""
        command = [sys.executable, "-P", "-m", "accord", *map(str, arguments)]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options
        self.started.append(subprocess.Popen(command, text=True, encoding="utf-8", cwd=self.home, **options))
        return self.started[-1]

    def end(self) -> None:
        """End what a failed test left running, and wait for it."""
        for process in self.started:
            if process.returncode is None:
                process.kill()
            with process:
                pass

    def process(self, *arguments: object, given: str | None = None) -> Ended:
        """Run to its end in a process of its own."""
        with self.start(*arguments, stdin=subprocess.PIPE) as started:
            out, err = started.communicate(given or "", timeout=600)
        return Ended(started.returncode, out, err)
