"""Operations as data: what a plan comes to, small enough to print, to rehearse, and to carry out one by one.

``found`` says what an earlier run made of an operation; None is still to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from accord.github.port import Issue
    from accord.results.status import Move


class Status(StrEnum):
    """What became of an operation. ``adopted`` and ``skipped`` found their work done by an earlier run."""

    PLANNED = "planned"
    DONE = "done"
    ADOPTED = "adopted"
    SKIPPED = "skipped"
    FAILED = "failed"


def skipped(is_done: bool) -> Status | None:
    """Return what is found where the work may be done already."""
    return Status.SKIPPED if is_done else None


def adopted(is_there: bool) -> Status | None:
    """Return what is found where an earlier run may have made what this one would."""
    return Status.ADOPTED if is_there else None


@dataclass(frozen=True, slots=True)
class CreateWorkItem:
    """Create an issue; ``adopted`` is the one that an earlier run of the same result made."""

    op: ClassVar[str] = "create-work-item"
    key: str
    title: str
    content: str
    labels: tuple[str, ...]
    adopted: Issue | None

    @property
    def found(self) -> Status | None:
        """Whether the work is done already."""
        return Status.ADOPTED if self.adopted else None


@dataclass(frozen=True, slots=True)
class AddDependency:
    """Let an item wait for a blocker: a tempID of this result, or an existing issue."""

    op: ClassVar[str] = "add-dependency"
    item: str
    blocker: str | Issue
    found: Status | None

    @property
    def key(self) -> str:
        """Both ends, as people write them."""
        blocker = self.blocker if isinstance(self.blocker, str) else f"#{self.blocker.number}"
        return f"{self.item} blocked by {blocker}"


@dataclass(frozen=True, slots=True)
class NameOwners:
    """Rewrite ``owned by #temp-3`` in an item that was created before the item it names had a number."""

    op: ClassVar[str] = "name-owners"
    key: str
    found: Status | None = None


@dataclass(frozen=True, slots=True)
class CloseWorkItem:
    """Close an issue as not planned and take its status label off."""

    op: ClassVar[str] = "close-work-item"
    issue: Issue
    found: Status | None

    @property
    def key(self) -> str:
        """The issue's number."""
        return f"#{self.issue.number}"


@dataclass(frozen=True, slots=True)
class UpdateWorkItem:
    """Change body and labels of an issue; None leaves either alone. ``labels`` is the whole new list."""

    op: ClassVar[str] = "update-work-item"
    issue: Issue
    content: str | None
    labels: tuple[str, ...] | None
    found: Status | None

    @property
    def key(self) -> str:
        """The issue's number."""
        return f"#{self.issue.number}"


@dataclass(frozen=True, slots=True)
class MoveWorkItem:
    """Move the work item to the status that a verdict or an outcome asks for."""

    op: ClassVar[str] = "move-work-item"
    move: Move
    found: Status | None

    @property
    def key(self) -> str:
        """The item and where it goes."""
        return f"#{self.move.issue.number} to {self.move.target}"


Operation = CreateWorkItem | AddDependency | NameOwners | CloseWorkItem | UpdateWorkItem


@dataclass(frozen=True, slots=True)
class Entry:
    """What a receipt says of one operation; ``target`` is the number of the issue it is about."""

    op: str
    key: str
    status: Status
    target: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the entry as the JSON object of a receipt."""
        return {"op": self.op, "key": self.key, "status": self.status.value, "target": self.target}
