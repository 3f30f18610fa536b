"""What happens in a run, in the same words for every agent: codecs yield these, ``fold`` makes an account of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from accord.runner.transcripts.account import AgentCommand, AgentError, FileChange, Todo, Usage


@dataclass(frozen=True, slots=True)
class Began:
    """The CLI is up, or a turn starts: from here on only another terminal event says how it ends."""

    model: str = ""


@dataclass(frozen=True, slots=True)
class Worked:
    """The agent did something that is not told in detail."""


class Slot(Enum):
    """What later events replace: the message by the next one, a command once there are too many after it."""

    MESSAGE = "message"
    COMMAND = "command"


@dataclass(slots=True)
class Later:
    """A line that need not be read before it is known that it counts; ``read`` returns its ``Said`` or ``Ran``."""

    slot: Slot
    read: Callable[[], Iterable[Event]]


@dataclass(frozen=True, slots=True)
class Said:
    """The agent's message as it stands now, which replaces the one before."""

    text: str


@dataclass(frozen=True, slots=True)
class Ran:
    """A command ended."""

    command: AgentCommand


@dataclass(frozen=True, slots=True)
class Changed:
    """Files were changed, or could not be."""

    files: tuple[FileChange, ...]
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """The to-do list as it stands now."""

    todos: tuple[Todo, ...]


@dataclass(frozen=True, slots=True)
class Troubled:
    """An error that the CLI tries to get over; work after it means that it did."""

    error: AgentError


@dataclass(frozen=True, slots=True)
class Failed:
    """The terminal event of a failure."""

    error: AgentError


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The terminal event of a success. ``message`` is None where the last one said stands."""

    message: str | None = None
    structured: Any = None


@dataclass(frozen=True, slots=True)
class Counted:
    """What the run used so far, and by which model where that is told here."""

    usage: Usage
    model: str = ""


@dataclass(frozen=True, slots=True)
class Denied:
    """The agent was not allowed to use a tool."""

    tool: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Something was off; a sentence for people."""

    text: str


@dataclass(frozen=True, slots=True)
class Unread:
    """An event was too long to be read whole."""


Event = (
    Began
    | Worked
    | Later
    | Said
    | Ran
    | Changed
    | Planned
    | Troubled
    | Failed
    | Succeeded
    | Counted
    | Denied
    | Noted
    | Unread
)
