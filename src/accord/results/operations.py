"""Operations as data: what a plan comes to, small enough to print, to rehearse, and to carry out one by one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
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
class MoveWorkItem(Operation):
    """Move the work item to the status that a verdict or an outcome asks for."""

    op: ClassVar[str] = "move-work-item"
    move: Move


def moving(move: Move) -> MoveWorkItem:
    """Plan a move; one that changes nothing is skipped."""
    return MoveWorkItem(f"#{move.issue.number} to {move.target}", skipped(not move.is_change), move)


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
