"""Operations as data, and applying them in order: every write of every package is one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from accord.core.errors import AccordError
from accord.github.pacing import estimate_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.core.clock import Clock
    from accord.text.posting import PostingPolicy
    from accord.text.redaction import Redactor


class OperationStatus(StrEnum):
    """How an operation ended. ``adopted`` and ``skipped``: an earlier run did its work."""

    PLANNED = "planned"
    DONE = "done"
    ADOPTED = "adopted"
    SKIPPED = "skipped"
    FAILED = "failed"


def skipped_if(is_done: bool) -> OperationStatus | None:
    """Return the status of an operation that may have nothing to do."""
    return OperationStatus.SKIPPED if is_done else None


def adopted_if(exists: bool) -> OperationStatus | None:
    """Return the status of an operation whose object an earlier run may have created."""
    return OperationStatus.ADOPTED if exists else None


@dataclass(frozen=True, slots=True)
class Operation:
    """One write of the object ``key``; ``found`` is how it ended already, ``is_content`` what GitHub limits more."""

    op: ClassVar[str]
    is_content: ClassVar[bool] = False
    key: str
    found: OperationStatus | None


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The line of a receipt about one operation; ``target`` is a number of an issue or the id of a commit.

    ``parts`` are what the operation changes of a planned item, such as its title.
    """

    op: str
    key: str
    status: OperationStatus
    target: str | None
    parts: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of a receipt."""
        entry = {"op": self.op, "key": self.key, "status": self.status.value, "target": self.target}
        return {**entry, "parts": list(self.parts)} if self.parts else entry


Op = TypeVar("Op", bound=Operation)


OnEntry: TypeAlias = "Callable[[LedgerEntry, int, int], None]"
"""Called with the entry of each operation that ended, how many ended, and how many there are."""


@dataclass(frozen=True)
class ApplyOptions:
    """The options that every writing command shares; ``run_key`` is the scope of exactly-once."""

    repository: str
    clock: Clock
    redact: Redactor
    policy: PostingPolicy
    run_key: str = ""
    is_dry_run: bool = False
    on_entry: OnEntry = lambda *_: None


def planned_seconds(operations: Sequence[Operation]) -> float:
    """Estimate how long GitHub's rate limits make the operations take that are still to do."""
    coming = [operation for operation in operations if operation.found is None]
    content = sum(operation.is_content for operation in coming)
    return estimate_seconds(content, len(coming) - content)


def apply_in_order(
    operations: Sequence[Op],
    apply: Callable[[Op], OperationStatus | None],
    entry: Callable[[Op, OperationStatus], LedgerEntry],
    options: ApplyOptions,
) -> tuple[list[LedgerEntry], AccordError | None]:
    """Apply what is to do, unless it is a dry run; return an entry for each operation, and the error that ended it."""
    if options.is_dry_run:
        return [entry(operation, operation.found or OperationStatus.PLANNED) for operation in operations], None
    entries: list[LedgerEntry] = []
    problem: AccordError | None = None
    for operation in operations:
        status = operation.found or OperationStatus.PLANNED
        if status is OperationStatus.PLANNED and problem is None:
            try:
                status = apply(operation) or OperationStatus.DONE
            except AccordError as error:
                problem, status = error, OperationStatus.FAILED
        entries.append(entry(operation, status))
        try:
            options.on_entry(entries[-1], len(entries), len(operations))
        except AccordError as error:
            problem = problem or error
    return entries, problem
