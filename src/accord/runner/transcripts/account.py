"""One run according to its transcript, the same for every agent, and the reader that the formats have in common.

It needs constant memory: lists keep their last entries, texts their first or last characters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal

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
_TEXT_CHARS = 1_000
_NO_SANDBOX = "bwrap:"

TranscriptEnding = Literal["success", "failure", "cut"]
"""How the transcript ends: with a terminal success, with a terminal failure, or without a terminal event."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens summed over all requests, and cost in US dollars; None if the CLI does not report it."""

    tokens_input: int | None = None
    tokens_output: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """A command that ended."""

    command: str
    exit_code: int | None  # None if the CLI reports none


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


@dataclass(slots=True)
class Account:
    """One run according to its transcript."""

    agent: str
    ending: TranscriptEnding = "cut"
    model: str = ""
    final_message: str = ""
    structured: Any = None  # the CLI's structured result
    commands: Sequence[AgentCommand] = ()
    files: tuple[FileChange, ...] = ()
    todos: tuple[Todo, ...] = ()
    errors: tuple[AgentError, ...] = ()
    """Those that ended the run, not overcome ones; if the transcript breaks off, the one that the CLI was retrying."""
    usage: Usage = field(default_factory=Usage)
    warnings: tuple[str, ...] = ()
    is_structured: bool = True  # False for plain text: its ending is cut, or a failure where events were asked for
    codec: str = "plain"
    has_begun: bool = False  # an event was read, or the beginning of one
    has_worked: bool = False  # the agent did something, so it overcame earlier errors
    session: str = ""  # the name of the conversation, as the CLI printed it


def bounded_message(text: str) -> str:
    """Return a message, without the middle of a very long one."""
    return without_middle(text, MAX_MESSAGE_CHARS // 2, MAX_MESSAGE_CHARS // 2)


class TranscriptReader(ABC):
    """Reads the events of one format into an account.

    ``exits`` are causes and ``statuses`` those of HTTP, by exit code. ``session_totals`` are numbers of the whole
    conversation after it was resumed. With ``ends_with_result`` the last message is the structured result, and with
    ``fails_on_stderr`` stderr may end with the document of a failure.
    """

    codec: ClassVar[str]
    exits: ClassVar[Mapping[int, str]] = {}
    statuses: ClassVar[Mapping[int, int]] = {}
    session_totals: ClassVar[tuple[str, ...]] = ()
    ends_with_result: ClassVar[bool] = False
    fails_on_stderr: ClassVar[bool] = False

    def __init__(self, agent: str) -> None:
        self._commands = deque[AgentCommand](maxlen=MAX_COMMANDS)
        self.account = Account(agent, commands=self._commands, codec=self.codec)
        self._command_count = self._failed_commands = self._unsandboxed = self._failed_changes = self._unread = 0
        self._files: dict[str, FileChange] = {}
        self._trouble: AgentError | None = None
        self._failure: AgentError | None = None
        self._denied: Counter[str] = Counter()
        self._notes: dict[str, None] = {}

    @staticmethod
    @abstractmethod
    def is_event(event: dict[str, Any]) -> bool:
        """Return whether an object is an event of the format."""

    @abstractmethod
    def take(self, event: dict[str, Any], line: bytes) -> None:
        """Take the next event, and its line."""

    def start(self, model: str = "", session: str = "") -> None:
        """Note that the CLI or a turn started: only a later terminal event says how the run ends."""
        account = self.account
        account.ending, account.model = "cut", cut(model, 100) or account.model
        account.session = session or account.session

    def work(self) -> None:
        """Note that the agent did something, and so recovered from its trouble."""
        self.account.has_worked, self._trouble = True, None

    def set_message(self, text: str) -> None:
        """Replace the agent's message."""
        self.work()
        self.account.final_message = bounded_message(text)

    def add_command(self, command: str, exit_code: int | None, output: str, *, is_failed: bool) -> None:
        """Add a command that ended."""
        self.work()
        self._command_count += 1
        self._failed_commands += is_failed
        self._unsandboxed += is_failed and output.startswith(_NO_SANDBOX)
        self._commands.append(AgentCommand(command[:_COMMAND_CHARS], exit_code))

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
        shown = (replace(todo, text=cut(todo.text, _TEXT_CHARS)) for todo in [*todos][:MAX_TODOS])
        self.account.todos = tuple(shown)

    def set_usage(self, usage: Usage, written: Mapping[str, int] | None = None) -> None:
        """Set the usage of the run so far, without impossible numbers.

        ``written`` are output tokens by model; the model is the one that wrote the most, if none is known yet.
        """
        counts = {name: count for name, count in asdict(usage).items() if count is not None and count >= 0}
        self.account.usage = Usage(**counts)
        if written:
            self.account.model = self.account.model or cut(max(written, key=lambda name: written[name]), 100)

    def deny(self, tool: str) -> None:
        """Note that the agent was not allowed to use a tool."""
        self._denied[cut(tool, 60) if len(self._denied) < _MAX_NOTES else "others"] += 1

    def warn(self, text: str) -> None:
        """Note a problem that did not fail the run, as a sentence."""
        if len(self._notes) < _MAX_NOTES:
            self._notes.setdefault(text)

    def skip_event(self) -> None:
        """Note an event that was too long to be read."""
        self.account.has_begun = True
        self._unread += 1

    def report_trouble(self, error: AgentError) -> None:
        """Note an error that the CLI tries to recover from; work after it means that it did.

        A success before it did not end the run.
        """
        self._trouble = error
        self.account.ending = "cut" if self.account.ending == "success" else self.account.ending

    def fail(self, error: AgentError) -> None:
        """End with a failure."""
        backoff = error.backoff_seconds
        backoff = self._trouble.backoff_seconds if backoff is None and self._trouble else backoff
        self.account.ending, self._failure = "failure", replace(error, backoff_seconds=backoff)

    def succeed(self, message: str | None = None, structured: Any = None) -> None:
        """End with a success. Without a ``message`` the last one counts."""
        self.account.ending, self._failure, self._trouble = "success", None, None
        if message is not None:
            self.set_message(message)
        self.account.structured = structured if is_shallow(structured) else None
        if self.account.structured is not structured:
            self.warn("The structured result is nested too deeply to be read.")

    def finish(self) -> Account:
        """Return the account at the end of the transcript."""
        account = self.account
        error = self._failure if account.ending == "failure" else self._trouble
        account.errors = (error,) if error and account.ending != "success" else ()
        account.files, account.warnings = tuple(self._files.values()), tuple(self._warnings())
        return account

    def _warnings(self) -> Iterator[str]:
        yield from self._notes
        if self._denied:
            tools = ", ".join(f"{tool} ({count} times)" if count > 1 else tool for tool, count in self._denied.items())
            yield f"The agent was not allowed to use: {tools}. Allow these tools if it needs them."
        if self._command_count and self._failed_commands == self._command_count and not self._denied:
            has_no_sandbox = self._unsandboxed == self._command_count
            reason = ": the agent's own sandbox cannot start on this machine" if has_no_sandbox else ""
            yield f"Every command that the agent ran failed{reason}."
        if self._failed_changes:
            yield f"{self._failed_changes} of the agent's file changes failed."
        if self._unread:
            count = "One event of the transcript was" if self._unread == 1 else f"{self._unread} events were"
            yield f"{count} too long to be read."
        if self.account.ending == "success" and not self.account.final_message.strip() and not self._unread:
            yield NO_MESSAGE
