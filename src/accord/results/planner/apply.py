"""Apply the operations of a planner result one by one. Nothing is decided here; a failure ends the run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from accord.core.errors import AccordError, Refused
from accord.engine.operations import LedgerEntry, OperationStatus, apply_in_order
from accord.github.models import IssueChange, NotThere
from accord.github.once import send_once
from accord.results.bodies import CLOSED, BodyParts, closing_body, name_owners, split_body, updated_body
from accord.results.labels import Category, category_of, labels_after_update
from accord.results.planner.changes import PlanRun, compare, reason_to_keep, to_issue_change
from accord.results.planner.facts import own_issues
from accord.results.planner.plan import (
    AddDependency,
    ChangePlannedItem,
    CloseWorkItem,
    CreateWorkItem,
    NameOwners,
    PlanOperation,
    RemoveDependency,
    UpdateWorkItem,
    is_settled,
)
from accord.results.planner.record import VANISHED, body_digest, record_for, record_of, with_record
from accord.results.planner.report import item_findings
from accord.results.planner.structure import AddSubIssue, AssignItem, SetMilestone, SetType, apply_structure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.core.findings import Finding
    from accord.github.client import GitHub
    from accord.github.models import Issue
    from accord.results.planner.facts import PlanFacts
    from accord.results.run_options import PlanOptions


STALE_SECONDS = 30
"""An issue that was read longer ago than this is read again before it is changed."""

CLOCK_SKEW_SECONDS = 120
"""How far the clock of a response's header may be ahead of the one that dates issues."""


@dataclass
class Ledger:
    """The issues by tempID as the run creates and changes them, and warnings that come up meanwhile."""

    facts: PlanFacts
    run: PlanRun
    issues: dict[str, Issue] = field(init=False)
    findings: list[Finding] = field(default_factory=list)
    has_dependencies: bool = True

    def __post_init__(self) -> None:
        self.issues = dict(self.facts.items)

    def numbers(self) -> dict[str, int]:
        """Return the numbers that replace names in bodies."""
        return {key: issue.number for key, issue in self.issues.items() if key in self.run.names}

    def newest(self, issue: Issue) -> Issue:
        """Return an issue as this run left it."""
        return next((each for each in self.issues.values() if each.number == issue.number), issue)


def apply_operations(
    github: GitHub, operations: Sequence[PlanOperation], ledger: Ledger, options: PlanOptions
) -> tuple[list[LedgerEntry], AccordError | None]:
    """Apply the operations; return an entry for each, and the error that ended the run."""
    return apply_in_order(
        operations,
        lambda operation: _apply(github, operation, ledger, options),
        is_dry_run=options.is_dry_run,
        on_entry=options.on_entry,
        target=lambda operation: _target(operation, ledger),
    )


def _apply(github: GitHub, operation: PlanOperation, ledger: Ledger, options: PlanOptions) -> OperationStatus | None:
    match operation:
        case AddSubIssue() | SetMilestone() | SetType() | AssignItem():
            issue = ledger.issues[operation.item]
            return apply_structure(github, operation, issue, options.clock, ledger.findings)
        case CreateWorkItem():
            ledger.issues[operation.key] = _create(github, operation, ledger, options)
        case AddDependency():
            _add_dependency(github, operation, ledger, options)
        case ChangePlannedItem():
            ledger.issues[operation.key] = _change(github, operation, ledger)
        case RemoveDependency():
            _remove_dependency(github, operation, ledger)
        case NameOwners():
            issue = _current(github, ledger.issues[operation.key], ledger, options)
            ledger.issues[operation.key] = _name_owners(github, issue, ledger)
        case CloseWorkItem(marker=marker) if marker == VANISHED:
            _close_vanished(github, operation.issue, ledger)
        case CloseWorkItem():
            _close(github, _current(github, ledger.newest(operation.issue), ledger, options), ledger.facts.token)
        case UpdateWorkItem():
            _update(github, operation, _current(github, ledger.newest(operation.issue), ledger, options), ledger)
    return None


def _create(github: GitHub, operation: CreateWorkItem, ledger: Ledger, options: PlanOptions) -> Issue:
    token, identity, item = ledger.facts.token, ledger.facts.identity, operation.item
    content = name_owners(item.content, ledger.numbers(), ledger.run.names)
    record = record_for(item.temp_id, item.title, content, item.labels, item.blocker_numbers(ledger.issues))
    body = with_record(BodyParts(content), token, record).join()
    horizon = github.server_time() - timedelta(seconds=CLOCK_SKEW_SECONDS)

    def find() -> Issue | None:
        """Look for the issue in a listing, which does not lag, back to when sending began."""
        recent = []
        for issue in github.issues():
            if issue.created_at < horizon:
                break
            found = record_of(issue, token)
            if found and found.temp_id == item.temp_id and issue.number not in ledger.facts.own:
                recent.append(issue)
        return next(iter(own_issues(recent, token, identity)[0]), None)

    made = send_once(lambda: github.create_issue(item.title, body, item.labels), find, options.clock)
    if not identity.counts(made.author):
        raise Refused(
            f"GitHub created #{made.number} as {made.author}, not as {identity.login}, so another run would not "
            "find it.",
            hint=f"Run the same command again with `--identity '{made.author}'`.",
        )
    return made


def _add_dependency(github: GitHub, operation: AddDependency, ledger: Ledger, options: PlanOptions) -> None:
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


def _change(github: GitHub, operation: ChangePlannedItem, ledger: Ledger) -> Issue:
    """Change an item as it is now: what a person edited since the facts were read stays."""
    issue = github.issue(operation.issue.number) or operation.issue
    existing = ledger.facts.blockers.get(issue.number, {}).keys()
    comparison = compare(operation.item, issue, ledger.run, ledger.issues, existing)
    ledger.findings += item_findings(operation.key, issue, comparison)
    if is_settled(issue, comparison) or not comparison.parts:
        return issue
    return github.change_issue(issue.number, to_issue_change(comparison, issue, ledger.facts.token))


def _remove_dependency(github: GitHub, operation: RemoveDependency, ledger: Ledger) -> None:
    blocked = ledger.issues[operation.item]
    if operation.blocker_id:
        github.remove_blocker(blocked.number, operation.blocker_id)
        return
    issue = github.issue(blocked.number) or blocked
    parts = split_body(issue.body)
    left = tuple(number for number in parts.blocked_by if number != operation.blocker)
    ledger.issues[operation.item] = _write_body(github, issue, replace(parts, blocked_by=left))


def _name_owners(github: GitHub, issue: Issue, ledger: Ledger) -> Issue:
    parts, token = split_body(issue.body), ledger.facts.token
    content = name_owners(parts.content, ledger.numbers(), ledger.run.names)
    if content == parts.content:
        return issue
    record = record_of(issue, token)
    if record and record.body == body_digest(parts.content):
        parts = with_record(parts, token, replace(record, body=body_digest(content)))
    return _write_body(github, issue, replace(parts, content=content))


def _close_vanished(github: GitHub, issue: Issue, ledger: Ledger) -> None:
    """Close an item that vanished from its plan, unless a person took it up since the facts were read."""
    issue = github.issue(issue.number) or issue
    if issue.is_open and not reason_to_keep(issue, ledger.facts.token):
        _close(github, issue, ledger.facts.token, VANISHED)


def _close(github: GitHub, issue: Issue, token: str, marker: str = CLOSED) -> None:
    labels = tuple(label for label in issue.labels if category_of(label) is not Category.STATUS)
    github.change_issue(issue.number, IssueChange(closing_body(issue, token, marker), labels, "closed", "not_planned"))


def _update(github: GitHub, operation: UpdateWorkItem, issue: Issue, ledger: Ledger) -> None:
    content = None if operation.content is None else name_owners(operation.content, ledger.numbers(), ledger.run.names)
    labels = None if operation.labels is None else labels_after_update(issue, operation.labels)
    body = updated_body(issue, content, ledger.facts.token, operation.digest)
    github.change_issue(issue.number, IssueChange(body, labels))


def _current(github: GitHub, issue: Issue, ledger: Ledger, options: PlanOptions) -> Issue:
    """Read an issue again when the facts are old, so that a long run keeps what people wrote meanwhile."""
    if options.clock.now() - ledger.facts.read_at < timedelta(seconds=STALE_SECONDS):
        return issue
    return github.issue(issue.number) or issue


def _write_body(github: GitHub, issue: Issue, parts: BodyParts) -> Issue:
    body = parts.join()
    github.change_issue(issue.number, IssueChange(body))
    return replace(issue, body=body)


def _target(operation: PlanOperation, ledger: Ledger) -> str | None:
    match operation:
        case CreateWorkItem() | NameOwners() | ChangePlannedItem():
            issue = ledger.issues.get(operation.key)
        case AddDependency() | RemoveDependency() | AddSubIssue() | SetMilestone() | SetType() | AssignItem():
            issue = ledger.issues.get(operation.item)
        case CloseWorkItem() | UpdateWorkItem():
            issue = operation.issue
    return str(issue.number) if issue else None
