"""The events of a run, the same for every agent, and the account that they add up to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Event:
    """An event of a run."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The CLI or a turn started: only a later terminal event says how the run ends. ``session`` is its conversation."""

    model: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class AgentWorked(Event):
    """The agent did something that has no event of its own."""


@dataclass(slots=True)
class DeferredEvent(Event):
    """A line that ``read`` parses only if it still counts at the end: the last message, the last commands."""

    kind: Literal["message", "command"]
    read: Callable[[], Iterable[Event]]


@dataclass(frozen=True, slots=True)
class MessageUpdated(Event):
    """The agent's current message, which replaces the previous one."""

    text: str


@dataclass(frozen=True, slots=True)
class FilesChanged(Event):
    """Files were changed, or could not be."""

    files: tuple[FileChange, ...]
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class TodosUpdated(Event):
    """The agent's current to-do list."""

    todos: tuple[Todo, ...]


@dataclass(frozen=True, slots=True)
class ErrorReported(Event):
    """An error that the CLI tries to recover from; work after it means that it did."""

    error: AgentError


@dataclass(frozen=True, slots=True)
class RunFailed(Event):
    """The terminal event of a failure."""

    error: AgentError


@dataclass(frozen=True, slots=True)
class RunSucceeded(Event):
    """The terminal event of a success. With ``message`` None the last message counts."""

    message: str | None = None
    structured: Any = None


@dataclass(frozen=True, slots=True)
class UsageReported(Event):
    """The usage of the run so far, and the model if the event names it."""

    usage: Usage
    model: str = ""


@dataclass(frozen=True, slots=True)
class ToolDenied(Event):
    """The agent was not allowed to use a tool."""

    tool: str


@dataclass(frozen=True, slots=True)
class WarningReported(Event):
    """A problem that did not fail the run, as a sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class EventTruncated(Event):
    """An event was too long to be read completely."""


TranscriptEnding = Literal["success", "failure", "cut"]
"""How the transcript ends: with a terminal success, with a terminal failure, or without a terminal event."""


CommandFailure = Literal["", "sandbox", "all"]
"""Whether every command failed: none could start in the agent's sandbox, or all failed for any reason."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens summed over all requests, and cost in US dollars; None if the CLI does not report it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class AgentCommand(Event):
    """A command that ended. ``exit_code`` is None if the CLI reports none; ``output`` is its tail."""

    command: str
    exit_code: int | None
    is_failed: bool
    output: str = ""


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
    """An error that the CLI reports in a field of its transcript.

    ``kind`` is the CLI's class (``error_max_turns``), ``line`` the shortened line of the transcript. The provider asks
    for ``retry_after_seconds``; ``backoff_seconds`` is the CLI's own wait before its last attempt. ``status`` is that
    of HTTP; ``is_status_worded`` if only the text names it, so that any field is more reliable.
    """

    message: str
    status: int | None = None
    kind: str = ""
    retry_after_seconds: float | None = None
    line: str = ""
    backoff_seconds: float | None = None
    is_status_worded: bool = False


@dataclass(frozen=True)
class Account:
    """One run according to its transcript.

    ``errors`` ended the run: not those that the agent recovered from; in a transcript that breaks off, the one that the
    CLI was retrying. ``structured`` is the CLI's structured result, None without one.

    ``is_structured`` is False for plain text, where only the exit code says how the run ended and ``ending`` is
    ``cut``. ``command_failure`` is empty if a tool was denied: that is the settings' doing. ``has_begun``: an event
    was read, or the beginning of one. ``has_worked``: the agent did something, so it overcame earlier errors.
    ``session`` is the name of the conversation, as the CLI printed it.
    """

    agent: str
    ending: TranscriptEnding
    model: str = ""
    final_message: str = ""
    structured: Any = None
    commands: tuple[AgentCommand, ...] = ()
    command_count: int = 0
    command_failure: CommandFailure = ""
    files: tuple[FileChange, ...] = ()
    todos: tuple[Todo, ...] = ()
    errors: tuple[AgentError, ...] = ()
    usage: Usage = field(default_factory=Usage)
    warnings: tuple[str, ...] = ()
    is_structured: bool = True
    codec: str = "plain"
    has_begun: bool = False
    has_worked: bool = False
    session: str = ""
