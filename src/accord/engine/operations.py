"""Operations as data, and applying them in order: every write of every package is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from accord.core.clock import Clock
from accord.core.errors import Problem
from accord.core.frozen import Frozen
from accord.core.log import log
from accord.github.pacing import estimate_seconds
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

if TYPE_CHECKING:
    from accord.github.rest import Server
    from accord.github.state import Stored, StoredDocument


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


def failed_unless(is_done: bool) -> OperationStatus:
    """Return the status of an operation that may have been refused without an error."""
    return OperationStatus.DONE if is_done else OperationStatus.FAILED


class Operation(Frozen):
    """One write of an object. A class below is a frozen dataclass, and names its ``op``."""

    op: ClassVar[str]
    is_content: ClassVar[bool] = False  # GitHub limits it as content
    key: str  # of the object
    found: OperationStatus | None  # how an earlier run ended it
    number: int = field(default=0, kw_only=True)  # of the issue or pull request that it changes, if that is known
    parts: tuple[str, ...] = field(default=(), kw_only=True)  # what it changes of a planned item, such as its title

    def __init_subclass__(cls, op: str, *, is_content: bool = False) -> None:
        super().__init_subclass__()
        cls.op, cls.is_content = op, is_content


class LedgerEntry(Frozen):
    """The line of a receipt about one operation; ``target`` is a number of an issue or the id of a commit."""

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
SentAnswer = TypeVar("SentAnswer")
OnEntry: TypeAlias = "Callable[[LedgerEntry, int, int], None]"
"""Called with the entry of each operation that ended, how many ended, and how many there are."""


class ApplyOptions(Frozen):
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
    coming = [operation.is_content for operation in operations if operation.found is None]
    return estimate_seconds(sum(coming), len(coming) - sum(coming))


def apply_in_order(
    operations: Sequence[Op],
    apply: Callable[[Op], OperationStatus | None],
    *,
    is_dry_run: bool = False,
    on_entry: OnEntry = lambda *_: None,
    target: Callable[[Op], str | None] = lambda operation: str(operation.number) if operation.number else None,
    plan_again: Callable[[Sequence[LedgerEntry]], Sequence[Op]] | None = None,
    before_write: Callable[[], None] = lambda: None,
) -> tuple[list[LedgerEntry], Problem | None]:
    """Apply what is to do, unless it is a dry run; return an entry for each operation, and the error that ended it.

    ``apply`` returns how the operation ended: None for ``done``; ``failed`` where the rest goes on; ``planned`` where
    GitHub refused it in this form. ``plan_again`` is asked after each with the entries so far: it returns all
    operations as the same plan has them now, first those that ended. ``target`` names what an operation wrote.
    ``before_write`` is called before each that is sent; a Problem that it raises ends the run.
    """

    def entry(operation: Op, status: OperationStatus) -> LedgerEntry:
        return LedgerEntry(operation.op, operation.key, status, target(operation), operation.parts)

    if is_dry_run:
        return [entry(operation, operation.found or OperationStatus.PLANNED) for operation in operations], None
    entries: list[LedgerEntry] = []
    problem: Problem | None = None
    while len(entries) < len(operations):
        operation = operations[len(entries)]
        status = operation.found or OperationStatus.PLANNED
        try:
            if status is OperationStatus.PLANNED and problem is None:
                before_write()
                status = OperationStatus.FAILED
                status = apply(operation) or OperationStatus.DONE
        except Problem as error:
            problem = error
        if plan_again is None or status is not OperationStatus.PLANNED or problem is not None:
            entries.append(entry(operation, status))
            log("operation", "%s %s: %s", operation.op, operation.key, status)
            try:
                on_entry(entries[-1], len(entries), len(operations))
            except Problem as error:
                problem = problem or error
        if plan_again is not None and problem is None:
            operations = plan_again(entries)
    return entries, problem


@dataclass
class OperationLog:
    """The operations of a command that reads again between its writes, in order; a dry run only lists them."""

    is_dry_run: bool = False
    entries: list[LedgerEntry] = field(default_factory=list)

    def write(
        self,
        op: str,
        key: str,
        send: Callable[[], SentAnswer],
        *,
        number: int = 0,
        found: OperationStatus | None = None,
        status_of: Callable[[SentAnswer], OperationStatus] = lambda _: OperationStatus.DONE,
    ) -> SentAnswer | None:
        """Call ``send`` where there is something to do, and return its answer; ``status_of`` says how that ended it."""
        status, answer = found or OperationStatus.PLANNED, None
        try:
            if found is None and not self.is_dry_run:
                status = OperationStatus.FAILED
                answer = send()
                status = status_of(answer)
        finally:
            log("operation", "%s %s: %s", op, key, status)
            self.entries.append(LedgerEntry(op, key, status, str(number) if number else None))
        return answer

    def write_once(
        self,
        op: str,
        key: str,
        send: Callable[[], SentAnswer],
        find: Callable[[], SentAnswer | None],
        github: Server,
        number: int = 0,
    ) -> SentAnswer | None:
        """Adopt what ``find`` finds, or send it once: after a lost answer, ``find`` looks again."""
        known = find()
        write = partial(github.send_once, send, find)
        made = self.write(op, key, write, number=number, found=adopted_if(known is not None))
        return made if known is None else known

    def change(
        self,
        document: StoredDocument[SentAnswer],
        known: Stored[SentAnswer],
        decide: Callable[[SentAnswer], SentAnswer | None],
        number: int,
    ) -> Stored[SentAnswer]:
        """Change a document at a ref, if ``decide`` changes it; a dry run returns what it would write."""
        wanted = decide(known.value)
        if wanted is None:
            return known if self.is_dry_run else document.change(known, decide)
        kept = self.write("store-state", document.name, lambda: document.change(known, decide), number=number)
        return kept or replace(known, value=wanted)

    def as_json(self) -> list[dict[str, Any]]:
        """Return the JSON array of a receipt."""
        return [entry.as_json() for entry in self.entries]
