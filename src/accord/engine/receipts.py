"""The receipt of a run: how its operations ended, what was found, and the exit code that follows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from accord.core.errors import BrokenContract, Problem, Refused
from accord.core.findings import Finding, has_errors
from accord.core.frozen import Frozen
from accord.core.kinds import contract_of
from accord.engine.operations import LedgerEntry, OperationStatus

if TYPE_CHECKING:
    from pydantic import BaseModel

    from accord.github.client import GitHub


class Outcome(StrEnum):
    """How a run ended."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    PLANNED = "planned"
    REJECTED = "rejected"
    STOPPED = "stopped"
    REFUSED = "refused"


EXIT_CODES = dict.fromkeys(Outcome, 0) | {Outcome.REJECTED: 1, Outcome.STOPPED: 3, Outcome.REFUSED: 4}


class Item(Frozen):
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
    error: Problem | None = None
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

    def end(self, entries: Sequence[LedgerEntry], error: Problem | None = None, *, is_dry_run: bool) -> None:
        """Record how the operations ended."""
        self.operations, self.error = entries, error
        self.outcome = Outcome.PLANNED if is_dry_run and error is None else outcome_of(entries, error)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON document of ``accord apply``."""
        document: dict[str, Any] = {
            "kind": self.kind,
            **contract_of(self.kind),
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


@contextmanager
def report_errors(github: GitHub, receipt: Receipt) -> Iterator[None]:
    """Report the errors of this block in the receipt instead of raising them, and count the requests it sends."""
    before = replace(github.requests)
    try:
        yield
    except BrokenContract as broken:
        receipt.findings += broken.findings
    except Problem as error:
        receipt.outcome, receipt.error = outcome_of((), error), error
    receipt.reads = github.requests.read - before.read
    receipt.writes = github.requests.write - before.write


def outcome_of(entries: Sequence[LedgerEntry], error: Problem | None) -> Outcome:
    """Return the outcome of a run that got as far as its operations."""
    if error is not None:
        return Outcome.REFUSED if isinstance(error, Refused) else Outcome.STOPPED
    wrote = any(entry.status is OperationStatus.DONE for entry in entries)
    return Outcome.APPLIED if wrote else Outcome.UNCHANGED


def default_run_key(result: BaseModel, *scope: object) -> str:
    """Derive the run key from the result and its scope: the repository, and an issue that the result does not name."""
    canonical = json.dumps(result.model_dump(by_alias=True), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256("\n".join([*(str(part).lower() for part in scope), canonical]).encode()).hexdigest()[:20]
