"""From events to an account, in constant memory: lists keep their last entries, texts their last characters."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from accord.runner.transcripts import events
from accord.runner.transcripts.events import (
    Account,
    AgentCommand,
    AgentError,
    FileChange,
    Todo,
    TranscriptEnding,
    Usage,
)
from accord.runner.transcripts.lines import is_shallow
from accord.runner.transcripts.wording import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_MESSAGE_CHARS = 1_000_000
"""A message that no output of a job can hold; the transcript itself still has it."""

MAX_COMMANDS = 200
MAX_FILES = 1_000
MAX_TODOS = 500
_MAX_NOTES = 20
_COMMAND_CHARS = 2_000
_OUTPUT_CHARS = 2_000
_TEXT_CHARS = 1_000
_NO_SANDBOX = "bwrap:"


def account_of(found: Iterable[events.Event], agent: str, codec: str) -> Account:
    """Fold the events of a run into an account of it."""
    fold = _Fold()
    for event in found:
        fold.add(event)
    return fold.account(agent, codec)


def _shortened(command: AgentCommand) -> AgentCommand:
    return replace(command, command=command.command[:_COMMAND_CHARS], output=command.output[-_OUTPUT_CHARS:])


def _read_commands(kept: AgentCommand | events.DeferredEvent) -> Iterator[AgentCommand]:
    if isinstance(kept, AgentCommand):
        yield kept
    else:
        yield from (_shortened(event.command) for event in kept.read() if isinstance(event, events.CommandFinished))


class _Fold:
    def __init__(self) -> None:
        self.ending: TranscriptEnding = "cut"
        self.has_begun = self.has_worked = False
        self.model = self.message = ""
        self.structured: Any = None
        self.later_message: events.DeferredEvent | None = None
        self.commands: deque[AgentCommand | events.DeferredEvent] = deque(maxlen=MAX_COMMANDS)
        self.command_count = self.unsandboxed = self.failed_changes = self.unread = 0
        self.files: dict[str, FileChange] = {}
        self.todos: tuple[Todo, ...] = ()
        self.trouble: AgentError | None = None
        self.failure: AgentError | None = None
        self.usage = Usage()
        self.denied: Counter[str] = Counter()
        self.notes: dict[str, None] = {}

    def add(self, event: events.Event) -> None:
        self.has_begun = True
        match event:
            case events.AgentWorked():
                self.has_worked, self.trouble = True, None
            case events.DeferredEvent():
                self._keep_for_later(event)
            case events.CommandFinished(command):
                self.has_worked, self.trouble = True, None
                self.command_count += 1
                self.unsandboxed += command.is_failed and command.output.startswith(_NO_SANDBOX)
                self.commands.append(_shortened(command))
            case events.MessageUpdated(text):
                self.trouble = None
                self._keep_message(text)
            case events.FilesChanged(files, is_failed):
                self._keep_files(files, is_failed=is_failed)
            case events.TodosUpdated(todos):
                self.todos = tuple(replace(todo, text=cut(todo.text, _TEXT_CHARS)) for todo in todos[:MAX_TODOS])
            case events.ToolDenied(tool):
                self.denied[cut(tool, 60) if len(self.denied) < _MAX_NOTES else "others"] += 1
            case events.WarningReported(text):
                self._note(text)
            case events.EventTruncated():
                self.unread += 1
            case _:
                self._keep_state(event)

    def _keep_state(self, event: events.Event) -> None:
        match event:
            case events.RunStarted(model):
                self.ending, self.model = "cut", cut(model, 100) or self.model
            case events.ErrorReported(error):
                self.trouble = error
            case events.RunFailed(error):
                self.ending, self.failure = "failure", self._with_backoff(error)
            case events.RunSucceeded(message, structured):
                self.ending, self.failure, self.trouble = "success", None, None
                self._keep_result(message, structured)
            case events.UsageReported(usage, model):
                self.usage, self.model = _possible(usage), self.model or cut(model, 100)

    def _keep_for_later(self, later: events.DeferredEvent) -> None:
        self.has_worked, self.trouble = True, None
        if later.slot is events.Slot.MESSAGE:
            self.later_message = later
        else:
            self.command_count += 1
            self.commands.append(later)

    def _read_message(self) -> None:
        later, self.later_message = self.later_message, None
        for event in later.read() if later else ():
            if isinstance(event, events.MessageUpdated):
                self._keep_message(event.text)

    def _with_backoff(self, error: AgentError) -> AgentError:
        return replace(error, backoff_seconds=self.trouble.backoff_seconds) if self.trouble else error

    def _keep_message(self, text: str) -> None:
        self.later_message = None
        self.has_worked = True
        self.message = text[:MAX_MESSAGE_CHARS]
        if len(text) > MAX_MESSAGE_CHARS:
            self._note(f"The message is longer than {MAX_MESSAGE_CHARS:,} characters; its rest is in the transcript.")

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
            self._note("The structured result nests too deep to be read.")

    def _note(self, text: str) -> None:
        if len(self.notes) < _MAX_NOTES:
            self.notes.setdefault(text)

    def _warnings(self) -> tuple[str, ...]:
        found = list(self.notes)
        if self.denied:
            tools = ", ".join(f"{tool} ({count} times)" if count > 1 else tool for tool, count in self.denied.items())
            found.append(f"The agent was not allowed to use: {tools}. Allow these tools if it needs them.")
        if self.command_count and self.unsandboxed == self.command_count:
            found.append(
                "Every command failed because the agent's sandbox cannot start here. Allow user namespaces on the "
                "runner, or let the agent run without its own sandbox inside a container."
            )
        if self.failed_changes:
            found.append(f"{self.failed_changes} of the agent's file changes failed.")
        if self.unread:
            events_were = "One event of the transcript was" if self.unread == 1 else f"{self.unread} events were"
            found.append(f"{events_were} too long to be read whole.")
        if self.ending == "success" and not self.message.strip() and not self.unread:
            found.append("The agent ended without a message.")
        return tuple(found)

    def account(self, agent: str, codec: str) -> Account:
        self._read_message()
        last = self.failure if self.ending == "failure" else self.trouble
        return Account(
            agent,
            self.ending,
            model=self.model,
            final_message=self.message,
            structured=self.structured,
            commands=tuple(command for kept in self.commands for command in _read_commands(kept)),
            command_count=self.command_count,
            files=tuple(self.files.values()),
            todos=self.todos,
            errors=(last,) if last and self.ending != "success" else (),
            usage=self.usage,
            warnings=self._warnings(),
            codec=codec,
            has_begun=self.has_begun,
            has_worked=self.has_worked,
        )


def _possible(usage: Usage) -> Usage:
    """Leave out what nobody can have used: a number below zero."""
    spent = {name: count for name, count in asdict(usage).items() if count is not None and count >= 0}
    return Usage(**spent)
