"""Apply the operations of a planner result one by one. Nothing is decided here; a failure ends the run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from accord.core.errors import AccordError, Refused
from accord.github.models import IssueChange, NotThere
from accord.github.once import send_once
from accord.results.bodies import (
    ITEM,
    BodyParts,
    closing_body,
    content_digest,
    item_marker,
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

    from accord.github.client import GitHub
    from accord.github.models import Issue
    from accord.results.operations import RunOptions
    from accord.results.planner.facts import PlanFacts


STALE_SECONDS = 30
"""An issue that was read longer ago than this is read again before it is changed."""

CLOCK_SKEW_SECONDS = 120
"""How far the clock of a response's header may be ahead of the one that dates issues."""


@dataclass
class Ledger:
    """The issues by tempID as the run creates and changes them; ``names`` are the tempIDs that bodies may mention."""

    facts: PlanFacts
    names: set[str]
    issues: dict[str, Issue] = field(init=False)
    has_dependencies: bool = True

    def __post_init__(self) -> None:
        self.issues = dict(self.facts.items)

    def numbers(self) -> dict[str, int]:
        """Return the numbers that replace names in bodies."""
        return {key: issue.number for key, issue in self.issues.items() if key in self.names}


def apply_operations(
    github: GitHub, operations: Sequence[PlanOperation], ledger: Ledger, options: RunOptions
) -> tuple[list[LedgerEntry], AccordError | None]:
    """Apply the operations; return an entry for each, and the error that ended the run."""
    return apply_in_order(
        operations,
        lambda operation: _apply(github, operation, ledger, options),
        lambda operation, status: _entry_of(operation, status, ledger),
        options,
    )


def _apply(github: GitHub, operation: PlanOperation, ledger: Ledger, options: RunOptions) -> None:
    match operation:
        case CreateWorkItem():
            ledger.issues[operation.key] = _create(github, operation, ledger, options)
        case AddDependency():
            _add_dependency(github, operation, ledger, options)
        case NameOwners():
            issue = _current(github, ledger.issues[operation.key], ledger, options)
            parts = split_body(issue.body)
            content = name_owners(parts.content, ledger.numbers())
            ledger.issues[operation.key] = _write_body(github, issue, replace(parts, content=content))
        case CloseWorkItem():
            _close(github, _current(github, operation.issue, ledger, options), ledger.facts.token)
        case UpdateWorkItem():
            _update(github, operation, _current(github, operation.issue, ledger, options), ledger)


def _create(github: GitHub, operation: CreateWorkItem, ledger: Ledger, options: RunOptions) -> Issue:
    token, identity = ledger.facts.token, ledger.facts.identity
    digest = content_digest(operation.title, operation.content, operation.labels)
    parts = BodyParts(name_owners(operation.content, ledger.numbers()))
    body = parts.with_marker(ITEM, run=token, id=operation.key, sum=digest).join()
    horizon = github.server_time() - timedelta(seconds=CLOCK_SKEW_SECONDS)

    def find() -> Issue | None:
        """Look for the issue in a listing, which does not lag, back to when sending began."""
        recent = []
        for issue in github.issues():
            if issue.created_at < horizon:
                break
            if item_marker(issue.body, token).get("id") == operation.key:
                recent.append(issue)
        return own_items(recent, token, identity)[0].get(operation.key)

    made = send_once(lambda: github.create_issue(operation.title, body, operation.labels), find, options.clock)
    if not identity.counts(made.author):
        raise Refused(
            f"GitHub created #{made.number} as {made.author}, not as {identity.login}, so another run would not "
            "find it.",
            hint=f"Run the same command again with `--identity '{made.author}'`.",
        )
    return made


def _add_dependency(github: GitHub, operation: AddDependency, ledger: Ledger, options: RunOptions) -> None:
    blocked = ledger.issues[operation.item]
    blocker = operation.existing or ledger.issues[operation.blocker]
    if ledger.has_dependencies:
        number, blocker_id = blocked.number, blocker.id
        try:
            send_once(
                lambda: github.add_blocker(number, blocker_id),
                lambda: next((issue for issue in github.blockers(number) if issue.id == blocker_id), None),
                options.clock,
            )
            return
        except NotThere:
            if blocked.blocker_count is not None:
                raise
            ledger.has_dependencies = False
    parts = split_body(blocked.body)
    blocked_by = tuple(dict.fromkeys((*parts.blocked_by, blocker.number)))
    ledger.issues[operation.item] = _write_body(github, blocked, replace(parts, blocked_by=blocked_by))


def _close(github: GitHub, issue: Issue, token: str) -> None:
    labels = tuple(label for label in issue.labels if category_of(label) is not Category.STATUS)
    github.change_issue(issue.number, IssueChange(closing_body(issue, token), labels, "closed", "not_planned"))


def _update(github: GitHub, operation: UpdateWorkItem, issue: Issue, ledger: Ledger) -> None:
    content = None if operation.content is None else name_owners(operation.content, ledger.numbers())
    labels = None if operation.labels is None else labels_after_update(issue, operation.labels)
    github.change_issue(issue.number, IssueChange(updated_body(issue, content, ledger.facts.token), labels))


def _current(github: GitHub, issue: Issue, ledger: Ledger, options: RunOptions) -> Issue:
    """Read an issue again when the facts are old, so that a long run keeps what people wrote meanwhile."""
    if options.clock.now() - ledger.facts.read_at < timedelta(seconds=STALE_SECONDS):
        return issue
    return github.issue(issue.number) or issue


def _write_body(github: GitHub, issue: Issue, parts: BodyParts) -> Issue:
    body = parts.join()
    github.change_issue(issue.number, IssueChange(body))
    return replace(issue, body=body)


def _entry_of(operation: PlanOperation, status: OperationStatus, ledger: Ledger) -> LedgerEntry:
    match operation:
        case CreateWorkItem() | NameOwners():
            issue = ledger.issues.get(operation.key)
        case AddDependency():
            issue = ledger.issues.get(operation.item)
        case CloseWorkItem() | UpdateWorkItem():
            issue = operation.issue
    return LedgerEntry(operation.op, operation.key, status, str(issue.number) if issue else None)
