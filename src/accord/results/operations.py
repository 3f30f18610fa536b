"""The options of a run, its operations as data, and the receipt that reports them."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from accord.core.errors import AccordError, BrokenContract, Refused
from accord.core.findings import has_errors
from accord.git.sizes import DEFAULT_LIMITS
from accord.github.limits import CONTENT_PER_HOUR
from accord.github.pacing import estimate_seconds
from accord.results.texts import errors_as_posted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

    from accord.core.clock import Clock
    from accord.core.findings import Finding
    from accord.git.branches import Remote
    from accord.git.sizes import ChangeLimits
    from accord.github.client import GitHub
    from accord.results.planner.settings import IssueStructure
    from accord.results.status import StatusMove
    from accord.results.texts import TextSanitizer
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
class MoveWorkItem(Operation):
    """Move the work item to the status that a verdict or an outcome asks for."""

    op: ClassVar[str] = "move-work-item"
    move: StatusMove


def move_operation(move: StatusMove) -> MoveWorkItem:
    """Return the operation of a move; one that changes nothing is skipped."""
    return MoveWorkItem(f"#{move.issue.number} to {move.target}", skipped_if(not move.is_change), move)


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

MOST_COMMENTS = 50
"""New comments that a review posts on lines and files by default; further ones are listed in its body."""

OnEntry: TypeAlias = "Callable[[LedgerEntry, int, int], None]"
"""Called with the entry of each operation that ended, how many ended, and how many there are."""

OnWarnings: TypeAlias = "Callable[[Sequence[Finding]], None]"

MOST_ITEMS = CONTENT_PER_HOUR
"""The most items of a plan unless the caller allows more: GitHub lets no one create more in an hour."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run, passed from the command line down to the last operation.

    ``request``, ``closes_vanished``, ``most_items``, ``structure`` and ``on_warnings``, which is called before the
    first write, are for planner results. ``work_item``, ``remote`` and what follows are for implementor results;
    ``pull`` and ``commit`` (full SHA, empty: the head) for reviewer results, which may name the work item too.
    ``checkout`` lends git objects and is only read. Without ``allows_steering``, a patch that changes steering files is
    refused, and always one beyond the ``limits``. ``keepalive`` starts that loop on a new pull request. A review posts
    at most ``max_comments`` new comments on lines and files.
    """

    repository: str
    clock: Clock
    redact: Redactor
    policy: PostingPolicy
    run_key: str = ""
    is_dry_run: bool = False
    on_entry: OnEntry = lambda *_: None
    request: str = ""
    closes_vanished: bool = False
    most_items: int = MOST_ITEMS
    structure: IssueStructure | None = None
    on_warnings: OnWarnings = lambda _: None
    work_item: int | None = None
    pull: int | None = None
    commit: str = ""
    remote: Remote | None = None
    base: str = ""
    checkout: Path | None = None
    author: str = ""
    co_authors: tuple[str, ...] = ()
    commit_prefix: str = "feat"
    protected: tuple[str, ...] = ()
    allows_steering: bool = False
    limits: ChangeLimits = DEFAULT_LIMITS
    keepalive: bool = False
    max_comments: int = MOST_COMMENTS


def planned_seconds(operations: Sequence[Operation]) -> float:
    """Estimate how long GitHub's rate limits make the operations take that are still to do."""
    coming = [operation for operation in operations if operation.found is None]
    content = sum(operation.is_content for operation in coming)
    return estimate_seconds(content, len(coming) - content)


def default_run_key(result: BaseModel, *scope: object) -> str:
    """Derive the run key from the result and its scope: the repository, and an issue that the result does not name."""
    canonical = json.dumps(result.model_dump(by_alias=True), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256("\n".join([*(str(part).lower() for part in scope), canonical]).encode()).hexdigest()[:20]


def apply_in_order(
    operations: Sequence[Op],
    apply: Callable[[Op], OperationStatus | None],
    entry: Callable[[Op, OperationStatus], LedgerEntry],
    options: RunOptions,
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


class Outcome(StrEnum):
    """How a run ended."""

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


@dataclass
class Receipt:
    """The report of one run, filled while it goes on; ``dependencies`` are pairs of a blocker and a blocked item."""

    kind: str
    repository: str
    run_key: str
    outcome: Outcome = Outcome.REJECTED
    findings: list[Finding] = field(default_factory=list)
    items: Mapping[str, Item] = field(default_factory=dict)
    operations: Sequence[LedgerEntry] = ()
    reads: int = 0
    writes: int = 0
    error: AccordError | None = None
    estimated_seconds: float | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    dependencies: Sequence[tuple[str, str]] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    sanitised: Mapping[str, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """The exit code of the command line for this outcome."""
        return EXIT_CODES[self.outcome]

    def require(self, findings: Iterable[Finding]) -> None:
        """Add findings. Raises BrokenContract when an error is among all of them, which rejects the result."""
        self.findings += findings
        if has_errors(self.findings):
            raise BrokenContract("The result breaks its contract.")

    def end(self, entries: Sequence[LedgerEntry], error: AccordError | None = None, *, is_dry_run: bool) -> None:
        """Record how the operations ended."""
        self.operations, self.error = entries, error
        self.outcome = Outcome.PLANNED if is_dry_run and error is None else outcome_of(entries, error)

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


def require_postable(receipt: Receipt, sanitizer: TextSanitizer, findings: Iterable[Finding]) -> None:
    """Report what sanitising changed. Raises BrokenContract when it left nothing of a text whose content was hidden."""
    receipt.sanitised = sanitizer.sanitised
    empty = [found for found in findings if found.code in ("summary-empty", "comment-empty")]
    receipt.require([*sanitizer.findings, *(errors_as_posted(empty) if sanitizer.sanitised else [])])


@contextmanager
def reporting(github: GitHub, receipt: Receipt) -> Iterator[None]:
    """Report the errors of this block in the receipt instead of raising them, and count the requests it sends."""
    before = replace(github.requests)
    try:
        yield
    except BrokenContract as broken:
        receipt.findings += broken.findings
    except AccordError as error:
        receipt.outcome, receipt.error = outcome_of((), error), error
    receipt.reads = github.requests.read - before.read
    receipt.writes = github.requests.write - before.write


def outcome_of(entries: Sequence[LedgerEntry], error: AccordError | None) -> Outcome:
    """Return the outcome of a run that got as far as its operations."""
    if isinstance(error, Refused):
        return Outcome.REFUSED
    if error is not None:
        return Outcome.STOPPED
    wrote = any(entry.status is OperationStatus.DONE for entry in entries)
    return Outcome.APPLIED if wrote else Outcome.UNCHANGED
