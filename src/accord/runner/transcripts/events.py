"""What happens in a run, in the same words for every agent: codecs yield these, ``fold`` makes an account of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The CLI is up, or a turn starts: from here on only another terminal event says how it ends."""

    model: str = ""


@dataclass(frozen=True, slots=True)
class AgentWorked:
    """The agent did something that is not told in detail."""


class Slot(Enum):
    """What later events replace: the message by the next one, a command once there are too many after it."""

    MESSAGE = "message"
    COMMAND = "command"


@dataclass(slots=True)
class DeferredEvent:
    """A line that is read only once it is known to matter; ``read`` returns its events."""

    slot: Slot
    read: Callable[[], Iterable[Event]]


@dataclass(frozen=True, slots=True)
class MessageUpdated:
    """The agent's message as it stands now, which replaces the one before."""

    text: str


@dataclass(frozen=True, slots=True)
class CommandFinished:
    """A command ended."""

    command: AgentCommand


@dataclass(frozen=True, slots=True)
class FilesChanged:
    """Files were changed, or could not be."""

    files: tuple[FileChange, ...]
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class TodosUpdated:
    """The to-do list as it stands now."""

    todos: tuple[Todo, ...]


@dataclass(frozen=True, slots=True)
class ErrorReported:
    """An error that the CLI tries to get over; work after it means that it did."""

    error: AgentError


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The terminal event of a failure."""

    error: AgentError


@dataclass(frozen=True, slots=True)
class RunSucceeded:
    """The terminal event of a success. ``message`` is None where the last one said stands."""

    message: str | None = None
    structured: Any = None


@dataclass(frozen=True, slots=True)
class UsageReported:
    """What the run used so far, and by which model where that is told here."""

    usage: Usage
    model: str = ""


@dataclass(frozen=True, slots=True)
class ToolDenied:
    """The agent was not allowed to use a tool."""

    tool: str


@dataclass(frozen=True, slots=True)
class WarningReported:
    """Something was off; a sentence for people."""

    text: str


@dataclass(frozen=True, slots=True)
class EventTruncated:
    """An event was too long to be read whole."""


Event = (
    RunStarted
    | AgentWorked
    | DeferredEvent
    | MessageUpdated
    | CommandFinished
    | FilesChanged
    | TodosUpdated
    | ErrorReported
    | RunFailed
    | RunSucceeded
    | UsageReported
    | ToolDenied
    | WarningReported
    | EventTruncated
)


TranscriptEnding = Literal["success", "failure", "cut"]
"""How the transcript ends: with its terminal success event, with a terminal failure, or with neither."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run cost: tokens summed over its requests, US dollars. None is what the CLI does not tell."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """A command that the agent ran. ``exit_code`` is None where the CLI does not tell one; ``output`` is its tail."""

    command: str
    exit_code: int | None
    is_failed: bool
    output: str = ""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that the agent says it changed; git, not this, tells what did change."""

    path: str
    kind: str


@dataclass(frozen=True, slots=True)
class Todo:
    """An entry of the agent's own to-do list."""

    text: str
    is_done: bool


@dataclass(frozen=True, slots=True)
class AgentError:
    """An error as the CLI reports it in a field of its transcript.

    ``status`` is the HTTP status where a field or the CLI's own wording names one; ``kind`` the class that the CLI
    gives it (``authentication_failed``, ``error_max_turns``); ``retry_after_seconds`` what the provider asks to wait,
    ``backoff_seconds`` what the CLI waited by itself before its last try; ``line`` the line of the transcript, cut, as
    evidence.
    """

    message: str
    status: int | None = None
    kind: str = ""
    retry_after_seconds: float | None = None
    line: str = ""
    backoff_seconds: float | None = None
    is_status_worded: bool = False
    """The status stands in the text only, so any field says more."""


@dataclass(frozen=True)
class Account:
    """What one run did, as its transcript tells it.

    ``errors`` are those that ended the run, never ones that the agent recovered from; where the transcript breaks off,
    the one that the CLI was last retrying. ``structured`` is what the CLI
    returned as structured result, None without one. ``warnings`` say what was off in a run that ended well.
    """

    agent: str
    ending: TranscriptEnding
    model: str = ""
    final_message: str = ""
    structured: Any = None
    commands: tuple[AgentCommand, ...] = ()
    command_count: int = 0
    files: tuple[FileChange, ...] = ()
    todos: tuple[Todo, ...] = ()
    errors: tuple[AgentError, ...] = ()
    usage: Usage = field(default_factory=Usage)
    warnings: tuple[str, ...] = ()
    is_structured: bool = True
    """False for plain text, where nothing but the exit code tells how the run ended; ``ending`` is ``cut`` then."""
    codec: str = "plain"
    has_begun: bool = False
    """An event was read: the CLI came as far as starting its work."""
    has_worked: bool = False
    """The agent said or did something, so what went wrong before that was overcome."""
