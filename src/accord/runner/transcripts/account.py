"""One run according to its transcript, the same for every agent, and the builder that the readers of formats fill.

The builder needs constant memory: lists keep their last entries, texts their first or last characters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from accord.core.frozen import Frozen
from accord.runner.transcripts.lines import cut, is_shallow
from accord.text.markdown import without_middle

MAX_MESSAGE_CHARS = 1_000_000
"""More than an output of a job can hold; the transcript has the rest."""

NO_MESSAGE = "The agent ended without a message."

MAX_COMMANDS = 200
MAX_FILES = 1_000
MAX_TODOS = 500
_MAX_NOTES = 20
_COMMAND_CHARS = 2_000
_OUTPUT_CHARS = 2_000
_TEXT_CHARS = 1_000
_NO_SANDBOX = "bwrap:"

TranscriptEnding = Literal["success", "failure", "cut"]
"""How the transcript ends: with a terminal success, with a terminal failure, or without a terminal event."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens summed over all requests, and cost in US dollars; None if the CLI does not report it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """A command that ended."""

    command: str
    exit_code: int | None  # None if the CLI reports none
    output: str = ""  # its tail


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that the agent reports as changed; the real changes come from git."""

    path: str
    kind: str


@dataclass(frozen=True, slots=True)
class Todo:
    """An entry of the agent's own to-do list."""

    text: str
    is_done: bool


@dataclass(frozen=True, slots=True)
class AgentError:
    """An error that the CLI reports in a field of its transcript."""

    message: str
    status: int | None = None  # of HTTP
    kind: str = ""  # the CLI's class, such as error_max_turns
    retry_after_seconds: float | None = None  # the provider asks for it
    line: str = ""  # the shortened line of the transcript
    backoff_seconds: float | None = None  # the CLI's own wait before its last attempt
    classes: tuple[str, ...] = ()  # the provider's, from the most specific
    is_status_worded: bool = False  # only the text names the status, so any field is more reliable


class Account(Frozen):
    """One run according to its transcript."""

    agent: str
    ending: TranscriptEnding
    model: str = ""
    final_message: str = ""
    structured: Any = None  # the CLI's structured result
    commands: tuple[AgentCommand, ...] = ()
    has_no_sandbox: bool = False  # the agent's own sandbox refused every command
    files: tuple[FileChange, ...] = ()
    todos: tuple[Todo, ...] = ()
    errors: tuple[AgentError, ...] = ()
    """Those that ended the run, not overcome ones; if the transcript breaks off, the one that the CLI was retrying."""
    usage: Usage = field(default_factory=Usage)
    warnings: tuple[str, ...] = ()
    is_structured: bool = True  # False for plain text: only the exit code says how the run ended, and ending is cut
    codec: str = "plain"
    has_begun: bool = False  # an event was read, or the beginning of one
    has_worked: bool = False  # the agent did something, so it overcame earlier errors
    session: str = ""  # the name of the conversation, as the CLI printed it


def bounded_message(text: str) -> str:
    """Return a message, without the middle of a very long one."""
    return without_middle(text, MAX_MESSAGE_CHARS // 2, MAX_MESSAGE_CHARS // 2)


class AccountBuilder:
    """Takes what a transcript tells, event by event."""

    def __init__(self) -> None:
        self._usage = Usage()
        self.has_begun = False
        self._ending: TranscriptEnding = "cut"
        self._has_worked = False
        self._model = self._message = self._session = ""
        self._structured: Any = None
        self._commands: deque[AgentCommand] = deque(maxlen=MAX_COMMANDS)
        self._command_count = self._failed_commands = self._unsandboxed = self._failed_changes = self._unread = 0
        self._files: dict[str, FileChange] = {}
        self._todos: tuple[Todo, ...] = ()
        self._trouble: AgentError | None = None
        self._failure: AgentError | None = None
        self._denied: Counter[str] = Counter()
        self._notes: dict[str, None] = {}

    def start(self, model: str = "", session: str = "") -> None:
        """Note that the CLI or a turn started: only a later terminal event says how the run ends."""
        self._ending, self._model = "cut", cut(model, 100) or self._model
        self._session = session or self._session

    def work(self) -> None:
        """Note that the agent did something, and so recovered from its trouble."""
        self._has_worked, self._trouble = True, None

    def set_message(self, text: str) -> None:
        """Replace the agent's message."""
        self.work()
        self._message = bounded_message(text)

    def add_command(self, command: str, exit_code: int | None, output: str, *, is_failed: bool) -> None:
        """Add a command that ended."""
        self.work()
        self._command_count += 1
        self._failed_commands += is_failed
        self._unsandboxed += is_failed and output.startswith(_NO_SANDBOX)
        self._commands.append(AgentCommand(command[:_COMMAND_CHARS], exit_code, output[-_OUTPUT_CHARS:]))

    def add_files(self, files: Iterable[FileChange], *, is_failed: bool = False) -> None:
        """Add files that were changed, or could not be."""
        self._failed_changes += is_failed
        for file in () if is_failed else files:
            path = file.path[:_TEXT_CHARS]
            if path in self._files or len(self._files) < MAX_FILES:
                kind = "add" if path in self._files and self._files[path].kind == "add" else cut(file.kind, 20)
                self._files[path] = FileChange(path, kind)

    def set_todos(self, todos: Iterable[Todo]) -> None:
        """Replace the agent's to-do list."""
        self._todos = tuple(replace(todo, text=cut(todo.text, _TEXT_CHARS)) for todo in [*todos][:MAX_TODOS])

    def set_usage(self, usage: Usage, written: Mapping[str, int] | None = None) -> None:
        """Set the usage of the run so far, without impossible numbers.

        ``written`` are output tokens by model; the model is the one that wrote the most, if none is known yet.
        """
        self._usage = Usage(
            **{name: count for name, count in asdict(usage).items() if count is not None and count >= 0}
        )
        if written:
            self._model = self._model or cut(max(written, key=lambda name: written[name]), 100)

    def deny(self, tool: str) -> None:
        """Note that the agent was not allowed to use a tool."""
        self._denied[cut(tool, 60) if len(self._denied) < _MAX_NOTES else "others"] += 1

    def warn(self, text: str) -> None:
        """Note a problem that did not fail the run, as a sentence."""
        if len(self._notes) < _MAX_NOTES:
            self._notes.setdefault(text)

    def skip_event(self) -> None:
        """Note an event that was too long to be read."""
        self.has_begun = True
        self._unread += 1

    def report_trouble(self, error: AgentError) -> None:
        """Note an error that the CLI tries to recover from; work after it means that it did.

        A success before it did not end the run.
        """
        self._trouble = error
        self._ending = "cut" if self._ending == "success" else self._ending

    def fail(self, error: AgentError) -> None:
        """End with a failure."""
        backoff = error.backoff_seconds
        backoff = self._trouble.backoff_seconds if backoff is None and self._trouble else backoff
        self._ending, self._failure = "failure", replace(error, backoff_seconds=backoff)

    def succeed(self, message: str | None = None, structured: Any = None) -> None:
        """End with a success. Without a ``message`` the last one counts."""
        self._ending, self._failure, self._trouble = "success", None, None
        if message is not None:
            self.set_message(message)
        self._structured = structured if is_shallow(structured) else None
        if self._structured is not structured:
            self.warn("The structured result is nested too deeply to be read.")

    def account(self, agent: str, codec: str) -> Account:
        """Return the account of the events so far."""
        error = self._failure if self._ending == "failure" else self._trouble
        return Account(
            agent,
            self._ending,
            model=self._model,
            final_message=self._message,
            structured=self._structured,
            commands=tuple(self._commands),
            has_no_sandbox=self._has_no_sandbox(),
            files=tuple(self._files.values()),
            todos=self._todos,
            errors=(error,) if error and self._ending != "success" else (),
            usage=self._usage,
            warnings=self._warnings(),
            codec=codec,
            has_begun=self.has_begun,
            has_worked=self._has_worked,
            session=self._session,
        )

    def _warnings(self) -> tuple[str, ...]:
        found = list(self._notes)
        if self._denied:
            tools = ", ".join(f"{tool} ({count} times)" if count > 1 else tool for tool, count in self._denied.items())
            found.append(f"The agent was not allowed to use: {tools}. Allow these tools if it needs them.")
        if self._command_count and self._failed_commands == self._command_count and not self._denied:
            reason = ": the agent's own sandbox cannot start on this machine" if self._has_no_sandbox() else ""
            found.append(f"Every command that the agent ran failed{reason}.")
        if self._failed_changes:
            found.append(f"{self._failed_changes} of the agent's file changes failed.")
        if self._unread:
            count = "One event of the transcript was" if self._unread == 1 else f"{self._unread} events were"
            found.append(f"{count} too long to be read.")
        if self._ending == "success" and not self._message.strip() and not self._unread:
            found.append(NO_MESSAGE)
        return tuple(found)

    def _has_no_sandbox(self) -> bool:
        return 0 < self._command_count == self._unsandboxed


class TranscriptReader(ABC):
    """Reads the events of one format into an account."""

    def __init__(self, account: AccountBuilder) -> None:
        self.account = account

    @abstractmethod
    def take(self, event: dict[str, Any], line: bytes) -> None:
        """Take the next event, and its line."""

    def finish(self) -> None:  # noqa: B027 (a format may end without more)
        """Take the end of the transcript."""
