"""One agent, ready to take turns: its HOME, rights and network last until it is done, and are removed then.

Every turn of every agent starts here, so all of them have the same rights.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from accord.agents.registry import Agent
from accord.core.frozen import Frozen
from accord.files.store import write_whole
from accord.git.paths import some_of
from accord.runner import record as layout
from accord.runner.isolation import confinement_of, container_for
from accord.runner.launch import (
    agent_environment,
    check_sandbox,
    command_line,
    find_program,
    settings_of,
    write_home,
)  # fmt: skip
from accord.runner.models import JobContext, RunRequest
from accord.runner.process import Program, ProgramEnd, run_program
from accord.runner.proxy import serve_proxy, through_proxy
from accord.runner.record import RunProgress
from accord.runner.tool_server import PROGRAMS, prepare_folder, server_entry, server_settings, submitted_result
from accord.text.redacted_stream import RedactedStream
from accord.text.redaction import redact_json

_TOOLS = "tools"
"""The folder of the server of accord's tools."""

_MESSAGE_BYTES = 16 * 1024 * 1024
"""Of a longer final message, only the beginning is kept: it would make a folder that no job accepts."""


class ReadyAgent(Frozen):
    """An agent that can start."""

    name: str
    entry: Agent
    request: RunRequest
    prompt: str
    schema: str  # of its result, empty without one
    path: str  # the PATH with its program
    has_tools: bool = False  # it may use accord's tools


class AgentSession(Frozen):
    """An agent with a HOME, in which it keeps what it needs to go on with a conversation."""

    ready: ReadyAgent
    job: JobContext
    progress: RunProgress
    program: Program
    private: Path
    mcp_server: tuple[str, ...] = ()

    def take_turn(
        self, prompt: str, limit_seconds: float, *, resume: str = "", usd_left: float | None = None
    ) -> ProgramEnd:
        """Run the agent once, and keep what it printed in the folder of the run. ``resume`` names a conversation.

        ``usd_left`` is what the run may still spend. Raises AgentNotStarted if its command cannot be made, OSError if
        a file cannot be used.
        """
        request, entry = self.ready.request, self.ready.entry
        message, submitted = self.private / "final-message", self.private / _TOOLS / layout.RESULT
        targets = [request.run_dir / name for name in (layout.FINAL_MESSAGE, layout.SUBMITTED)]
        for path in (message, submitted, *targets):
            _remove(path)
        words = command_line(
            entry, request, prompt, schema=self.ready.schema, final_message=message, session=resume, usd_left=usd_left,
            mcp_server=self.mcp_server,
        )  # fmt: skip
        end = run_program(
            replace(self.program, words=[self.program.words[0], *words[1:]]),
            self.job,
            stdout=request.run_dir / layout.STDOUT,
            stderr=request.run_dir / layout.STDERR,
            limit_seconds=limit_seconds,
            silent_seconds=entry.silent_seconds,
        )
        for path in targets:
            _remove(path)
        if message.is_file() and not message.is_symlink():
            stream = RedactedStream(self.job.redactor)
            with layout.open_regular(message) as read, targets[0].open("xb") as write:
                while read.tell() < _MESSAGE_BYTES and (data := read.read(64 * 1024)):
                    write.write(stream.feed(data))
                write.write(stream.end())
        if (result := submitted_result(submitted, request.kind)) is not None:
            write_whole(targets[1], json.dumps(redact_json(result, self.job.redactor), ensure_ascii=False) + "\n")
        return end


def _named_paths(words: Iterable[str], environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the paths that an agent's command and its variables name, such as the folders of its tool chains."""
    values = (value for name, value in environment.items() if name != "PATH")
    for entry in (*words, *(entry for value in values for entry in value.split(":"))):
        if entry.startswith("/") and "\0" not in entry:
            yield Path(entry)


@contextmanager
def agent_session(ready: ReadyAgent, job: JobContext, progress: RunProgress) -> Iterator[AgentSession]:
    """Make an agent's HOME, rights and network, and check that its sandbox can start. Raises AgentNotStarted."""
    agent, request = ready.entry, ready.request
    settings = settings_of(agent, request)
    with _private_folder(job) as private, ExitStack() as services:
        home, temporary = private / "home", private / "tmp"
        files, mcp_server = agent.home_files, list[str]()
        if ready.has_tools:
            prepare_folder(private / _TOOLS, request, job.redactor)
            entry = server_entry(agent, request, private / _TOOLS, progress.record.base_sha)
            mcp_server, files = server_settings(agent, entry, private)
        write_home(agent, files, job.environment, home)
        words = command_line(agent, request, ready.prompt, schema=ready.schema, mcp_server=mcp_server)
        words[0] = find_program(words[0], ready.path, request.directory)
        environment = agent_environment(agent, {**job.environment, "PATH": ready.path}, home, temporary, settings)
        proxy = private / "proxy" if agent.network is not None else None
        refused = services.enter_context(serve_proxy(agent.network or [], proxy, job.environment)) if proxy else []
        snapshot = progress.snapshot
        writable = [snapshot.top, snapshot.objects.parent] if snapshot else [request.directory]
        readable = [request.run_dir / layout.PROMPT, request.run_dir / layout.SCHEMA]
        readable += [Path(ready.path.split(":")[0]).parents[1]] if agent.install else []
        programs = [*(PROGRAMS if ready.has_tools else ()), *_named_paths(words, environment)]
        container = container_for(job.environment, private, writable, readable, programs, proxy=proxy)
        confinement, warning = confinement_of(agent, settings, job.environment, container)
        progress.warn(warning)
        program = Program(
            words,
            request.directory,
            through_proxy(environment) if proxy else environment,
            stdin=request.run_dir / layout.PROMPT if agent.prompt == "stdin" else None,
            confinement=confinement,
            output_mib=agent.output_mib,
        )
        check_sandbox(settings, program, private, job)
        progress.has_run = True
        try:
            yield AgentSession(ready, job, progress, program, private, tuple(mcp_server))
        finally:
            if refused:
                progress.warn(f"The agent's network does not allow: {some_of(refused)}.")


@contextmanager
def _private_folder(job: JobContext) -> Iterator[Path]:
    """Make a HOME and a TMPDIR that only this user can read, and remove them afterwards, credentials included."""
    private = Path(tempfile.mkdtemp(prefix="accord-agent-", dir=job.environment.get("RUNNER_TEMP") or None))
    try:
        for name in ("home", "tmp"):
            (private / name).mkdir(mode=0o700)
        yield private
    finally:
        shutil.rmtree(private, onerror=_make_removable)


def _make_removable(function: Any, path: str, _error: object) -> None:
    """Retry after adding write permission, which some tools remove (Go's module cache); leave the rest."""
    try:
        Path(path).parent.chmod(0o700)
        Path(path).chmod(0o700)
        function(path)
    except OSError:
        pass


def _remove(path: Path) -> None:
    layout.make_writable(path)
    path.unlink(missing_ok=True)
