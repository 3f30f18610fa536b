"""Operations as data: what a plan comes to, small enough to print, to rehearse, and to carry out one by one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from accord.core.errors import AccordError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.results.setting import Tell
    from accord.results.status import StatusMove


class OperationStatus(StrEnum):
    """What became of an operation. ``adopted`` and ``skipped`` found their work done by an earlier run."""

    PLANNED = "planned"
    DONE = "done"
    ADOPTED = "adopted"
    SKIPPED = "skipped"
    FAILED = "failed"


def skipped(is_done: bool) -> OperationStatus | None:
    """Return what is found where the work may be done already."""
    return OperationStatus.SKIPPED if is_done else None


def adopted(is_there: bool) -> OperationStatus | None:
    """Return what is found where an earlier run may have made what this one would."""
    return OperationStatus.ADOPTED if is_there else None


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a plan comes to. ``key`` says what it is about, ``found`` what became of it; None is to do."""

    op: ClassVar[str]
    key: str
    found: OperationStatus | None


@dataclass(frozen=True, slots=True)
class MoveWorkItem(Operation):
    """Move the work item to the status that a verdict or an outcome asks for."""

    op: ClassVar[str] = "move-work-item"
    move: StatusMove


def moving(move: StatusMove) -> MoveWorkItem:
    """Plan a move; one that changes nothing is skipped."""
    return MoveWorkItem(f"#{move.issue.number} to {move.target}", skipped(not move.is_change), move)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What a receipt says of one operation; ``target`` is the number of the issue it is about."""

    op: str
    key: str
    status: OperationStatus
    target: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the entry as the JSON object of a receipt."""
        return {"op": self.op, "key": self.key, "status": self.status.value, "target": self.target}


Op = TypeVar("Op", bound=Operation)


def apply_in_order(
    operations: Sequence[Op], do: Callable[[Op], None], entry: Callable[[Op, OperationStatus], LedgerEntry], tell: Tell
) -> tuple[list[LedgerEntry], AccordError | None]:
    """Do what is not done yet, in order; return an entry for every operation, and what stopped the rest."""
    entries: list[LedgerEntry] = []
    problem: AccordError | None = None
    for operation in operations:
        status = operation.found or OperationStatus.PLANNED
        if status is OperationStatus.PLANNED and problem is None:
            try:
                do(operation)
                status = OperationStatus.DONE
            except AccordError as error:
                problem, status = error, OperationStatus.FAILED
        entries.append(entry(operation, status))
        try:
            tell(entries[-1], len(entries), len(operations))
        except AccordError as error:
            problem = problem or error
    return entries, problem
