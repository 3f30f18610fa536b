"""Operations as data: what a plan comes to, small enough to print, to rehearse, and to carry out one by one."""

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
class Operation:
    """One thing that a plan comes to. ``key`` says what it is about, ``found`` what became of it; None is to do."""

    op: ClassVar[str]
    key: str
    found: Status | None


@dataclass(frozen=True, slots=True)
class CreateWorkItem(Operation):
    """Create an issue; ``adopted`` is the one that an earlier run of the same result made. The key is the tempID."""

    op: ClassVar[str] = "create-work-item"
    title: str
    content: str
    labels: tuple[str, ...]
    adopted: Issue | None


@dataclass(frozen=True, slots=True)
class AddDependency(Operation):
    """Let an item wait for a blocker: a tempID of this result, or an ``existing`` issue, by its number (``#12``)."""

    op: ClassVar[str] = "add-dependency"
    item: str
    blocker: str
    existing: Issue | None


@dataclass(frozen=True, slots=True)
class NameOwners(Operation):
    """Rewrite ``owned by #temp-3`` in an item that was created before the item it names had a number."""

    op: ClassVar[str] = "name-owners"


@dataclass(frozen=True, slots=True)
class CloseWorkItem(Operation):
    """Close an issue as not planned and take its status label off."""

    op: ClassVar[str] = "close-work-item"
    issue: Issue


@dataclass(frozen=True, slots=True)
class UpdateWorkItem(Operation):
    """Change body and labels of an issue; None leaves either alone. ``labels`` is the whole new list."""

    op: ClassVar[str] = "update-work-item"
    issue: Issue
    content: str | None
    labels: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class MoveWorkItem(Operation):
    """Move the work item to the status that a verdict or an outcome asks for."""

    op: ClassVar[str] = "move-work-item"
    move: Move


PlanOperation = CreateWorkItem | AddDependency | NameOwners | CloseWorkItem | UpdateWorkItem
"""What a planner's result comes to."""


def moving(move: Move, found: Status | None = None) -> MoveWorkItem:
    """Plan a move; one that changes nothing is skipped."""
    return MoveWorkItem(f"#{move.issue.number} to {move.target}", found or skipped(not move.is_change), move)


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
