"""Carrying operations out, one by one. Nothing is decided here; what stops one stops all that follow."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from accord.core.errors import AccordError, Refused
from accord.github.models import IssueChange, NotThere
from accord.github.once import send_once
from accord.results.bodies import (
    ITEM,
    Parts,
    closing_body,
    content_digest,
    item_id,
    name_owners,
    split_body,
    updated_body,
)
from accord.results.labels import Category, category_of, labels_after_update
from accord.results.operations import LedgerEntry, OperationStatus, apply_in_order
from accord.results.planner.facts import own_items
from accord.results.planner.plan import (
    AddDependency,
    CloseWorkItem,
    CreateWorkItem,
    NameOwners,
    PlanOperation,
    UpdateWorkItem,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.models import Identity, Issue
    from accord.results.operations import Tell


STALE_SECONDS = 30
"""How long an issue that was read is taken to be as it was."""

CLOCK_SKEW_SECONDS = 120
"""How far the clock in an answer's header may be ahead of the one that dates issues."""


@dataclass
class Ledger:
    """What is known of the issues while operations are carried out."""

    token: str
    identity: Identity
    read_at: datetime
    issues: dict[str, Issue]
    names: set[str] = field(default_factory=set)
    has_dependencies: bool = True

    def numbers(self) -> dict[str, int]:
        """Return the numbers that names in bodies can be rewritten to."""
        return {key: issue.number for key, issue in self.issues.items() if key in self.names}


def apply_operations(
    github: GitHub, operations: Sequence[PlanOperation], ledger: Ledger, clock: Clock, tell: Tell
) -> tuple[list[LedgerEntry], AccordError | None]:
    """Carry out the operations of a planner's result."""
    return apply_in_order(
        operations,
        lambda operation: _do(github, operation, ledger, clock),
        lambda operation, status: entry_of(operation, status, ledger),
        tell,
    )


def _do(github: GitHub, operation: PlanOperation, ledger: Ledger, clock: Clock) -> None:
    match operation:
        case CreateWorkItem():
            ledger.issues[operation.key] = _create(github, operation, ledger, clock)
        case AddDependency():
            _add_dependency(github, operation, ledger, clock)
        case NameOwners():
            issue = _current(github, ledger.issues[operation.key], ledger, clock)
            parts = split_body(issue.body)
            content = name_owners(parts.content, ledger.numbers())
            ledger.issues[operation.key] = _write_body(github, issue, replace(parts, content=content))
        case CloseWorkItem():
            _close(github, _current(github, operation.issue, ledger, clock), ledger.token)
        case UpdateWorkItem():
            _update(github, operation, _current(github, operation.issue, ledger, clock), ledger)


def _create(github: GitHub, operation: CreateWorkItem, ledger: Ledger, clock: Clock) -> Issue:
    parts = Parts(name_owners(operation.content, ledger.numbers()))
    digest = content_digest(operation.title, operation.content, operation.labels)
    body = parts.with_marker(ITEM, run=ledger.token, id=operation.key, sum=digest).join()
    horizon = github.server_time() - timedelta(seconds=CLOCK_SKEW_SECONDS)

    def find() -> Issue | None:
        """Look at what was created since the sending began; a listing does not lag."""
        recent = []
        for issue in github.issues():
            if issue.created_at < horizon:
                break
            if item_id(issue.body, ledger.token) == operation.key:
                recent.append(issue)
        return own_items(recent, ledger.token, ledger.identity)[0].get(operation.key)

    made = send_once(lambda: github.create_issue(operation.title, body, operation.labels), find, clock)
    if not ledger.identity.counts(made.author):
        raise Refused(
            f"GitHub made #{made.number} in the name of {made.author}, not of {ledger.identity.login} as was expected; "
            "another run would not know it for its own.",
            hint=f"Run the same command again with --identity '{made.author}'.",
        )
    return made


def _add_dependency(github: GitHub, operation: AddDependency, ledger: Ledger, clock: Clock) -> None:
    waiting = ledger.issues[operation.item]
    blocker = operation.existing or ledger.issues[operation.blocker]
    if ledger.has_dependencies:
        number, blocker_id = waiting.number, blocker.id
        try:
            send_once(
                lambda: github.add_blocker(number, blocker_id),
                lambda: next((issue for issue in github.blockers(number) if issue.id == blocker_id), None),
                clock,
            )
            return
        except NotThere:
            if waiting.blocker_count is not None:
                raise
            ledger.has_dependencies = False
    parts = split_body(waiting.body)
    blocked_by = tuple(dict.fromkeys((*parts.blocked_by, blocker.number)))
    ledger.issues[operation.item] = _write_body(github, waiting, replace(parts, blocked_by=blocked_by))


def _close(github: GitHub, issue: Issue, token: str) -> None:
    labels = tuple(label for label in issue.labels if category_of(label) is not Category.STATUS)
    body = closing_body(issue, token)
    github.change_issue(issue.number, IssueChange(body, labels, "closed", "not_planned"))


def _update(github: GitHub, operation: UpdateWorkItem, issue: Issue, ledger: Ledger) -> None:
    content = operation.content
    if content is not None:
        content = name_owners(content, ledger.numbers())
    labels = None if operation.labels is None else labels_after_update(issue, operation.labels)
    github.change_issue(issue.number, IssueChange(updated_body(issue, content, ledger.token), labels))


def _current(github: GitHub, issue: Issue, ledger: Ledger, clock: Clock) -> Issue:
    """Read an issue again when the facts are old, so that what people wrote during a long run is kept.

    Creating many items waits for GitHub's limits; a quick run pays nothing for this.
    """
    if clock.now() - ledger.read_at < timedelta(seconds=STALE_SECONDS):
        return issue
    return github.issue(issue.number) or issue


def _write_body(github: GitHub, issue: Issue, parts: Parts) -> Issue:
    body = parts.join()
    github.change_issue(issue.number, IssueChange(body))
    return replace(issue, body=body)


def entry_of(operation: PlanOperation, status: OperationStatus, ledger: Ledger) -> LedgerEntry:
    """Write the receipt's line of an operation."""
    match operation:
        case CreateWorkItem() | NameOwners():
            issue = ledger.issues.get(operation.key)
        case AddDependency():
            issue = ledger.issues.get(operation.item)
        case CloseWorkItem() | UpdateWorkItem():
            issue = operation.issue
    return LedgerEntry(operation.op, operation.key, status, str(issue.number) if issue else None)
