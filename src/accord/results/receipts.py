"""Receipts: what a run did, complete enough for a program to go on with, and the same for a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from accord.core.errors import Refused
from accord.results.operations import LedgerEntry, OperationStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from accord.core.errors import AccordError
    from accord.core.findings import Finding
    from accord.github.client import GitHub


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
