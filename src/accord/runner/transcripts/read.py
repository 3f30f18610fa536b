"""Reading the output of a run: choose the codec, fold its events into an account in constant memory.

Lists keep their last entries, texts their first or last characters.
"""

from __future__ import annotations

import io
from collections import Counter, deque
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from accord.agents.registry import shipped_registry
from accord.core.suggest import did_you_mean
from accord.runner import record as layout
from accord.runner.classify import RunEvidence
from accord.runner.record import open_regular
from accord.runner.transcripts import events
from accord.runner.transcripts.claude import NO_STRUCTURED_RESULT
from accord.runner.transcripts.events import Account, AgentCommand, FileChange, Usage
from accord.runner.transcripts.formats import FORMATS
from accord.runner.transcripts.gemini import is_document
from accord.runner.transcripts.lines import events_in, is_shallow, json_value_of, lines
from accord.runner.transcripts.wording import cut
from accord.runner.trusted_registry import registry_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from accord.runner.models import InternalError
    from accord.runner.transcripts.events import AgentError, CommandFailure, Event, Todo, TranscriptEnding

MAX_MESSAGE_CHARS = 1_000_000
"""More than an output of a job can hold; the transcript has the rest."""

MAX_COMMANDS = 200
MAX_FILES = 1_000
MAX_TODOS = 500
_MAX_NOTES = 20
_COMMAND_CHARS = 2_000
_OUTPUT_CHARS = 2_000
_TEXT_CHARS = 1_000
_NO_SANDBOX = "bwrap:"


def account_of(found: Iterable[Event], agent: str, codec: str) -> Account:
    """Fold the events of a run into an account."""
    fold = _Fold()
    for event in found:
        fold.add(event)
    return fold.account(agent, codec)


def _with_short_texts(command: AgentCommand) -> AgentCommand:
    return replace(command, command=command.command[:_COMMAND_CHARS], output=command.output[-_OUTPUT_CHARS:])


class _Fold:
    def __init__(self) -> None:
        self.ending: TranscriptEnding = "cut"
        self.has_begun = self.has_worked = False
        self.model = self.message = self.session = ""
        self.structured: Any = None
        self.later_message: events.DeferredEvent | None = None
        self.commands: deque[Event] = deque(maxlen=MAX_COMMANDS)
        self.command_count = self.failed_commands = self.unsandboxed = self.failed_changes = self.unread = 0
        self.files: dict[str, FileChange] = {}
        self.todos: tuple[Todo, ...] = ()
        self.trouble: AgentError | None = None
        self.failure: AgentError | None = None
        self.usage = Usage()
        self.denied: Counter[str] = Counter()
        self.notes: dict[str, None] = {}

    def add(self, event: Event) -> None:
        self.has_begun = True
        match event:
            case events.AgentWorked():
                self.has_worked, self.trouble = True, None
            case events.DeferredEvent("command"):
                self._keep_command(event)
            case events.DeferredEvent():
                self.has_worked, self.trouble, self.later_message = True, None, event
            case AgentCommand() as command:
                self.failed_commands += command.is_failed
                self.unsandboxed += command.is_failed and command.output.startswith(_NO_SANDBOX)
                self._keep_command(_with_short_texts(command))
            case events.MessageUpdated(text):
                self.trouble = None
                self._keep_message(text)
            case events.FilesChanged(files, is_failed):
                self._keep_files(files, is_failed=is_failed)
            case events.ToolDenied(tool):
                self.denied[cut(tool, 60) if len(self.denied) < _MAX_NOTES else "others"] += 1
            case events.WarningReported(text):
                self._note(text)
            case events.EventTruncated():
                self.unread += 1
            case _:
                self._keep_state(event)

    def _keep_state(self, event: Event) -> None:
        match event:
            case events.TodosUpdated(todos):
                self.todos = tuple(replace(todo, text=cut(todo.text, _TEXT_CHARS)) for todo in todos[:MAX_TODOS])
            case events.RunStarted(model, session):
                self.ending, self.model = "cut", cut(model, 100) or self.model
                self.session = session or self.session
            case events.ErrorReported(error):
                self.trouble = error
            case events.RunFailed(error):
                self.ending, self.failure = "failure", self._with_backoff(error)
            case events.RunSucceeded(message, structured):
                self.ending, self.failure, self.trouble = "success", None, None
                self._keep_result(message, structured)
            case events.UsageReported(usage, model):
                self.usage, self.model = _possible(usage), self.model or cut(model, 100)

    def _keep_command(self, event: Event) -> None:
        self.has_worked, self.trouble = True, None
        self.command_count += 1
        self.commands.append(event)

    def _with_backoff(self, error: AgentError) -> AgentError:
        return replace(error, backoff_seconds=self.trouble.backoff_seconds) if self.trouble else error

    def _keep_message(self, text: str) -> None:
        self.later_message = None
        self.has_worked = True
        self.message = text[:MAX_MESSAGE_CHARS]
        if len(text) > MAX_MESSAGE_CHARS:
            self._note(f"The message is longer than {MAX_MESSAGE_CHARS:,} characters. The transcript has the rest.")

    def _keep_files(self, files: tuple[FileChange, ...], *, is_failed: bool) -> None:
        if is_failed:
            self.failed_changes += 1
            return
        for file in files:
            path = file.path[:_TEXT_CHARS]
            if path in self.files or len(self.files) < MAX_FILES:
                kind = "add" if path in self.files and self.files[path].kind == "add" else cut(file.kind, 20)
                self.files[path] = FileChange(path, kind)

    def _keep_result(self, message: str | None, structured: Any) -> None:
        if message is not None:
            self._keep_message(message)
        self.structured = structured if is_shallow(structured) else None
        if self.structured is not structured:
            self._note("The structured result is nested too deeply to be read.")

    def _note(self, text: str) -> None:
        if len(self.notes) < _MAX_NOTES:
            self.notes.setdefault(text)

    def _warnings(self) -> tuple[str, ...]:
        found = list(self.notes)
        if self.denied:
            tools = ", ".join(f"{tool} ({count} times)" if count > 1 else tool for tool, count in self.denied.items())
            found.append(f"The agent was not allowed to use: {tools}. Allow these tools if it needs them.")
        if failure := self._command_failure():
            reason = ": the agent's own sandbox cannot start on this machine" if failure == "sandbox" else ""
            found.append(f"Every command that the agent ran failed{reason}.")
        if self.failed_changes:
            found.append(f"{self.failed_changes} of the agent's file changes failed.")
        if self.unread:
            count = "One event of the transcript was" if self.unread == 1 else f"{self.unread} events were"
            found.append(f"{count} too long to be read completely.")
        if self.ending == "success" and not self.message.strip() and not self.unread:
            found.append("The agent ended without a message.")
        return tuple(found)

    def _command_failure(self) -> CommandFailure:
        if not self.command_count or self.failed_commands < self.command_count:
            return ""
        return "sandbox" if self.unsandboxed == self.command_count else "" if self.denied else "all"

    def _read_commands(self) -> Iterator[AgentCommand]:
        for kept in self.commands:
            for event in kept.read() if isinstance(kept, events.DeferredEvent) else (kept,):
                if isinstance(event, AgentCommand):
                    yield _with_short_texts(event)

    def account(self, agent: str, codec: str) -> Account:
        for event in self.later_message.read() if self.later_message else ():
            if isinstance(event, events.MessageUpdated):
                self._keep_message(event.text)
        last = self.failure if self.ending == "failure" else self.trouble
        return Account(
            agent,
            self.ending,
            model=self.model,
            final_message=self.message,
            structured=self.structured,
            commands=tuple(self._read_commands()),
            command_count=self.command_count,
            command_failure=self._command_failure(),
            files=tuple(self.files.values()),
            todos=self.todos,
            errors=(last,) if last and self.ending != "success" else (),
            usage=self.usage,
            warnings=self._warnings(),
            codec=codec,
            has_begun=self.has_begun,
            has_worked=self.has_worked,
            session=self.session,
        )


def _possible(usage: Usage) -> Usage:
    """Drop negative numbers."""
    spent = {name: count for name, count in asdict(usage).items() if count is not None and count >= 0}
    return Usage(**spent)


_CHUNK_BYTES = 256 * 1024


def plain_account(stream: IO[bytes], agent: str, codec: str = "plain") -> Account:
    """Return an account with the text as the message; of a very long text the end, where agents conclude."""
    kept = b""
    is_cut = False
    while chunk := stream.read(_CHUNK_BYTES):
        kept += chunk
        if len(kept) > 2 * MAX_MESSAGE_CHARS:
            kept, is_cut = kept[-MAX_MESSAGE_CHARS:], True
    text = kept.decode("utf-8", "replace").removeprefix("\ufeff")
    warnings = ("The message is very long. Only its end was read.",) if is_cut else ()
    return Account(
        agent,
        "cut",
        final_message=text[-MAX_MESSAGE_CHARS:],
        warnings=warnings,
        is_structured=False,
        codec=codec,
        has_begun=bool(text.strip()),
        has_worked=bool(text.strip()),
    )


TAIL_BYTES = 32 * 1024
"""How much of the end of stderr and of plain text counts as evidence."""

_STARTS = (b'{"type":"', b'{\n  "session_id"')
_DOCUMENT_BYTES = 1024 * 1024
_LINES_TO_RECOGNISE = 64


def read_account(
    codec: str, agent: str, stdout: Path, *, stderr: Path | None = None, final_message: Path | None = None
) -> Account:
    """Read an agent's output into an account of its run; a missing file counts as empty.

    Without any event, the output of an agent with a structured codec is plain text, too. ``final_message`` is a file
    with the CLI's last message; unless it is empty, it wins.
    """
    account = _structured_account(codec, agent, stdout, stderr) if codec in FORMATS else None
    if account is None:
        with _open_or_empty(stdout) as stream:
            account = plain_account(stream, agent, codec)
    if written := _text(final_message):
        account = replace(account, final_message=written)
    if codec in FORMATS and FORMATS[codec].ends_with_result and account.ending != "failure":
        value = json_value_of(account.final_message) if account.final_message.lstrip().startswith("{") else None
        account = replace(account, structured=value if isinstance(value, dict) and is_shallow(value) else None)
    return account


def read_evidence(
    codec: str,
    agent: str,
    exit_code: int | None,
    stdout: Path,
    *,
    stderr: Path | None = None,
    final_message: Path | None = None,
    error: InternalError | None = None,
) -> RunEvidence:
    """Return the evidence of a run for ``accord.runner.classify``."""
    account = read_account(codec, agent, stdout, stderr=stderr, final_message=final_message)
    text = "" if account.is_structured else tail(stdout)
    return RunEvidence(exit_code, account, stderr=tail(stderr), text=text, error=error)


def evidence_in(
    run_dir: Path, codec: str, agent: str, exit_code: int | None, error: InternalError | None
) -> RunEvidence:
    """Return the evidence in the folder of a run. A submitted result replaces the one in the agent's answer."""
    names = (layout.STDOUT, layout.STDERR, layout.FINAL_MESSAGE)
    stdout, stderr, message = (run_dir / name for name in names)
    evidence = read_evidence(codec, agent, exit_code, stdout, stderr=stderr, final_message=message, error=error)
    value = json_value_of(_text(run_dir / layout.SUBMITTED))
    if not isinstance(value, dict) or not is_shallow(value):
        return evidence
    warnings = tuple(text for text in evidence.account.warnings if text != NO_STRUCTURED_RESULT)
    return replace(evidence, account=replace(evidence.account, structured=value, warnings=warnings))


def codec_of(
    agent: str, stdout: Path, stderr: Path | None = None, directory: Path | None = None
) -> tuple[str, tuple[str, ...]]:
    """Return the codec of an agent's transcript, by the agent's name or else by the first events; and warnings.

    A name is known if it is in the registry of ``directory`` or of accord, or names a codec. Only accord's registry
    decides the codec: the agent may have changed the other one.
    """
    shipped = shipped_registry()
    if agent in shipped.agents:
        return shipped.agents[agent].codec, ()
    if agent in FORMATS or agent == "plain":
        return agent, ()
    codec = recognise(stdout, stderr)
    known = {*FORMATS, *registry_at(directory or Path()).agents}
    if not agent or agent in known:
        return codec, ()
    form = "plain text" if codec == "plain" else f"a transcript of {codec}"
    return codec, (f"Unknown agent `{agent}`. Its output was read as {form}. {did_you_mean(agent, known)}".rstrip(),)


def recognise(stdout: Path, stderr: Path | None = None) -> str:
    """Return the codec of a transcript by its first events; ``plain`` without any."""
    with _open_or_empty(stdout) as stream:
        for line in islice(lines(stream), _LINES_TO_RECOGNISE):
            for event in events_in(line):
                for codec, form in FORMATS.items():
                    if form.is_event(event):
                        return codec
    documents = (codec for codec in FORMATS for path in (stdout, stderr) if _document_events(codec, path))
    return next(documents, "plain")


def tail(path: Path | None, size: int = TAIL_BYTES) -> str:
    """Return the end of a file as text, from the beginning of a line."""
    with _open_or_empty(path) as stream:
        length = stream.seek(0, 2)
        stream.seek(max(0, length - size))
        end = stream.read(size)
    if length > size:
        end = end.partition(b"\n")[2] or end
    return end.decode("utf-8", "replace")


def _structured_account(codec: str, agent: str, stdout: Path, stderr: Path | None) -> Account | None:
    """Read a structured transcript; None if stdout has text that is neither an event nor the beginning of one."""
    with _open_or_empty(stdout) as stream:
        account = account_of(FORMATS[codec].events(lines(stream)), agent, codec)
    if account.has_begun:
        return account
    if found := _document_events(codec, stdout) or _document_events(codec, stderr):
        return account_of(found, agent, codec)
    with _open_or_empty(stdout) as stream:
        all_lines = lines(stream)
        first = next((line for line in all_lines if line.strip()), b"")
        start = first + next(all_lines, b"")
    is_broken = start.startswith(_STARTS) and not events_in(first)
    return replace(account, has_begun=is_broken) if is_broken or not start else None


def _document_events(codec: str, path: Path | None) -> list[Event]:
    """Return the events in the document that ends an output of this format; none without it."""
    if not FORMATS[codec].may_be_document:
        return []
    end = tail(path, _DOCUMENT_BYTES)
    start = end.rfind("\n{\n") + 1 or (0 if end.startswith("{\n") else -1)
    document = json_value_of(end[start:]) if start >= 0 else None
    return list(FORMATS[codec].events([end[start:].replace("\n", " ").encode()])) if is_document(document) else []


def _text(path: Path | None) -> str:
    with _open_or_empty(path) as stream:
        text = stream.read(4 * MAX_MESSAGE_CHARS).decode("utf-8", "replace")
    return text[:MAX_MESSAGE_CHARS] if text.strip() else ""


def _open_or_empty(path: Path | None) -> IO[bytes]:
    """Open a file; a missing one, or one that is not a regular file, counts as empty."""
    if path is None:
        return io.BytesIO()
    try:
        return open_regular(path)
    except FileNotFoundError:
        return io.BytesIO()
