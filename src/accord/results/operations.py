"""Operations as data: what a plan comes to, small enough to print, to rehearse, and to carry out one by one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from accord.core.errors import AccordError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import BaseModel

    from accord.core.clock import Clock
    from accord.core.errors import AccordError
    from accord.core.findings import Finding
    from accord.github.client import GitHub
    from accord.results.status import StatusMove
    from accord.text.redaction import Redactor


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


class Outcome(StrEnum):
    """How a run ended, by the exit code it leads to (see ``EXIT_CODES``)."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    PLANNED = "planned"
    REJECTED = "rejected"
    STOPPED = "stopped"
    REFUSED = "refused"


EXIT_CODES = {
    Outcome.APPLIED: 0,
    Outcome.UNCHANGED: 0,
    Outcome.PLANNED: 0,
    Outcome.REJECTED: 1,
    Outcome.STOPPED: 3,
    Outcome.REFUSED: 4,
}


@dataclass(frozen=True)
class Item:
    """A work item of this result on GitHub."""

    id: str
    url: str


@dataclass(frozen=True)
class Dependency:
    """A dependency between two items, for pictures: ``waiting`` waits for ``blocker``."""

    waiting: str
    blocker: str


@dataclass(frozen=True)
class Receipt:
    """The report of one run. ``items`` is in the order of the result; ``error`` says why a run ended early.

    ``details`` holds what only one kind of result has, under the keys of the JSON document. ``sanitised`` counts, by
    kind, what was changed in the agent's texts before they were posted.
    """

    kind: str
    outcome: Outcome
    run_key: str
    repository: str
    findings: Sequence[Finding] = ()
    items: Mapping[str, Item] = field(default_factory=dict)
    operations: Sequence[LedgerEntry] = ()
    reads: int = 0
    writes: int = 0
    error: AccordError | None = None
    estimated_seconds: float | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    edges: Sequence[Dependency] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    sanitised: Mapping[str, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """The exit code of the command line for this outcome."""
        return EXIT_CODES[self.outcome]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON document of ``accord apply``."""
        document: dict[str, Any] = {
            "kind": self.kind,
            "outcome": self.outcome.value,
            "run_key": self.run_key,
            "repository": self.repository,
            "items": {key: {"id": item.id, "url": item.url} for key, item in self.items.items()},
            "findings": [finding.as_json() for finding in self.findings],
            "requests": {"read": self.reads, "write": self.writes},
            "operations": [entry.as_json() for entry in self.operations],
            "sanitised": dict(self.sanitised),
        }
        document |= self.details
        if self.estimated_seconds is not None:
            document["estimated_seconds"] = round(self.estimated_seconds)
        if self.error is not None:
            document["error"] = {"message": self.error.message, "hint": self.error.hint}
        return document


def with_request_count(github: GitHub, run: Callable[[], Receipt]) -> Receipt:
    """Run, and write into the receipt how many requests that took."""
    before = replace(github.requests)
    receipt = run()
    now = github.requests
    return replace(receipt, reads=now.read - before.read, writes=now.write - before.write)


def outcome_of(entries: Sequence[LedgerEntry], error: AccordError | None) -> Outcome:
    """Decide how a run ended that got as far as its operations."""
    if isinstance(error, Refused):
        return Outcome.REFUSED
    if error is not None:
        return Outcome.STOPPED
    wrote = any(entry.status is OperationStatus.DONE for entry in entries)
    return Outcome.APPLIED if wrote else Outcome.UNCHANGED


Tell: TypeAlias = "Callable[[LedgerEntry, int, int], None]"
"""Called with each operation as it ends, how many ended, and how many there are."""


def _say_nothing(entry: LedgerEntry, ended: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class RunOptions:
    """What a run is given besides its result. ``tell`` is called with each operation as it ends."""

    repository: str
    clock: Clock
    redact: Redactor
    run_key: str = ""
    is_dry_run: bool = False
    tell: Tell = _say_nothing


def default_run_key(result: BaseModel, *place: object) -> str:
    """Derive the scope of exactly-once from what is applied and where: the same result there is the same run.

    The place is a repository, and the number of an issue where that is not part of the result.
    """
    canonical = json.dumps(result.model_dump(by_alias=True), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256("\n".join([*(str(part).lower() for part in place), canonical]).encode()).hexdigest()[:20]
