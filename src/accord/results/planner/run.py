"""Apply a planner result: sanitise, gather facts, check, plan, apply. Everything is decided before the first write."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from accord.core.errors import Refused
from accord.core.findings import Finding
from accord.engine.lease import Lease, write_alone
from accord.engine.operations import OperationStatus, apply_in_order, planned_seconds
from accord.engine.receipts import Item, Outcome, Receipt, report_errors
from accord.github.models import Issue, IssueChange, NotThere
from accord.results.bodies import UPDATED, BodyParts, marked_body, split_body
from accord.results.labels import Category, category_of
from accord.results.planner.changes import compare, compare_update, reason_to_keep, to_issue_change, with_numbers
from accord.results.planner.checks import check_facts, check_names
from accord.results.planner.facts import PlanFacts, gather_facts, own_issues
from accord.results.planner.plan import (
    AddDependency,
    ChangePlannedItem,
    CloseWorkItem,
    CreateWorkItem,
    NameOwners,
    PlanOperation,
    RemoveDependency,
    UpdateWorkItem,
    compare_items,
    plan_operations,
)
from accord.results.planner.record import VANISHED, body_digest, record_for, record_of, update_digest, with_record
from accord.results.planner.report import change_findings, differences, item_findings
from accord.results.planner.rules import Plan, limit_findings, with_adopted, with_texts
from accord.results.planner.scope import plan_run_key, requested_issue
from accord.results.planner.structure import (
    AddSubIssue,
    AssignItem,
    SetMilestone,
    SetType,
    StructureOperation,
    apply_structure,
    check_structure,
    gather_structure,
    plan_structure,
)
from accord.results.texts import TextSanitizer, errors_as_posted, with_safe_texts
from accord.text.markers import run_token

if TYPE_CHECKING:
    from accord.github.client import GitHub
    from accord.results.run_options import PlanOptions


def apply_plan(github: GitHub, plan: Plan, options: PlanOptions) -> Receipt:
    """Apply a plan exactly once, and report it. Raises no Problem: the receipt has it."""
    run_key = plan_run_key(plan, options)
    lease = Lease(github, f"plan-{run_token(options.repository, run_key)}", options)
    return write_alone(lambda: _apply_plan(github, plan, run_key, options, lease))


def _apply_plan(github: GitHub, plan: Plan, run_key: str, options: PlanOptions, lease: Lease) -> Receipt:
    closes = options.closes_vanished
    receipt = Receipt("planner-result", options.repository, run_key)
    with report_errors(github, receipt), lease:
        receipt.require([*plan.findings, *limit_findings(plan.result, options.most_items)])
        if not (plan.result.create or plan.result.close or plan.result.update):
            receipt.outcome = Outcome.UNCHANGED
            return receipt
        plan = _sanitised_plan(plan, receipt, options)
        token = run_token(options.repository, run_key)
        lease.wait()
        facts = gather_facts(github, plan, token, options.clock, requested=requested_issue(options))
        plan = _with_adopted_names(plan, facts, receipt)
        comparisons = compare_items(plan, facts)
        # the item tells whether it keeps a label, and which
        receipt.findings = [finding for finding in receipt.findings if finding.code != "label-kept"]
        receipt.require(check_facts(plan, facts, reaches_any=options.reaches_any_issue))
        receipt.require(change_findings(plan, facts, comparisons, closes_vanished=closes))
        operations = plan_operations(plan, facts, comparisons, closes_vanished=closes)
        operations += _plan_structure(github, plan, facts, receipt, options)
        shown = differences(plan, facts, comparisons, closes_vanished=closes, with_texts=options.is_dry_run)
        receipt.details = {"differences": shown} if shown else {}
        ledger = Ledger(plan, facts)
        entries, problem = apply_in_order(
            operations,
            lambda operation: _apply(github, operation, ledger, options),
            is_dry_run=options.is_dry_run,
            on_entry=options.on_entry,
            target=lambda operation: _target(operation, ledger),
            before_write=lease.keep,
        )
        receipt.end(entries, problem, is_dry_run=options.is_dry_run)
        known = {finding.message for finding in receipt.findings}
        receipt.findings += [finding for finding in ledger.findings if finding.message not in known]
        receipt.estimated_seconds = planned_seconds(operations) if options.is_dry_run else None
        receipt.titles = {item.temp_id: item.title for item in plan.items}
        made = {name: ledger.issues[name] for name in receipt.titles if name in ledger.issues}
        receipt.items = {name: Item(str(issue.number), issue.url) for name, issue in made.items()}
        receipt.dependencies = [(each.blocker, each.item) for each in operations if isinstance(each, AddDependency)]
    return receipt


def _with_adopted_names(plan: Plan, facts: PlanFacts, receipt: Receipt) -> Plan:
    """Name the items that an earlier run made, and check again what depends on who blocks whom."""
    named = with_adopted(plan, {issue.number: name for name, issue in facts.items.items()})
    if named is not plan:
        receipt.require([finding for finding in named.findings if finding not in plan.findings])
    return named


def _plan_structure(
    github: GitHub, plan: Plan, facts: PlanFacts, receipt: Receipt, options: PlanOptions
) -> list[StructureOperation]:
    """Plan the structure that the settings ask for; nothing without settings or new items."""
    if options.structure is None or not plan.result.create:
        return []
    structure = gather_structure(github, options.structure, requested_issue(options), facts.items.values())
    operations = plan_structure(plan, facts, structure)
    receipt.require(check_structure(operations, facts, structure))
    return operations


def _sanitised_plan(plan: Plan, receipt: Receipt, options: PlanOptions) -> Plan:
    """Sanitise the texts, and check the result again: above all, lengths change."""
    sanitizer = TextSanitizer(options.redact, options.policy)
    names = check_names(plan, options.redact)
    plan = with_texts(plan, with_safe_texts(plan.result, sanitizer))
    receipt.sanitised = sanitizer.sanitised
    of_names = ("unknown-reference", "ambiguous-reference")  # of an owner, of which sanitising changes only the look
    of_texts = [found for found in plan.findings if found.code not in of_names] if sanitizer.sanitised else []
    receipt.require([*names, *sanitizer.findings, *errors_as_posted(of_texts)])
    return plan


STALE_SECONDS = 30
"""An issue that was read longer ago than this is read again before it is changed."""

CLOCK_SKEW_SECONDS = 120
"""How far the clock of a response's header may be ahead of the one that dates issues."""


@dataclass
class Ledger:
    """The issues by tempID as the run creates and changes them, and warnings that come up meanwhile."""

    plan: Plan
    facts: PlanFacts
    issues: dict[str, Issue] = field(init=False)
    findings: list[Finding] = field(default_factory=list)
    has_dependencies: bool = True

    def __post_init__(self) -> None:
        self.issues = dict(self.facts.items)

    def newest(self, issue: Issue) -> Issue:
        """Return an issue as this run left it."""
        return next((each for each in self.issues.values() if each.number == issue.number), issue)


def _apply(github: GitHub, operation: PlanOperation, ledger: Ledger, options: PlanOptions) -> OperationStatus | None:
    match operation:
        case AddSubIssue() | SetMilestone() | SetType() | AssignItem():
            issue = ledger.issues[operation.item]
            status, finding = apply_structure(github, operation, issue)
            ledger.findings += [finding] if finding else []
            return status
        case CreateWorkItem():
            ledger.issues[operation.key] = _create(github, operation, ledger)
        case AddDependency():
            _add_dependency(github, operation, ledger)
        case ChangePlannedItem():
            ledger.issues[operation.key] = _change(github, operation, ledger)
        case RemoveDependency():
            _remove_dependency(github, operation, ledger)
        case NameOwners():
            issue = _current(github, ledger.issues[operation.key], ledger, options)
            ledger.issues[operation.key] = _name_owners(github, issue, ledger)
        case CloseWorkItem():
            _close(github, operation, ledger, options)
        case UpdateWorkItem():
            _update(github, operation, _current(github, ledger.newest(operation.issue), ledger, options), ledger)
    return None


def _create(github: GitHub, operation: CreateWorkItem, ledger: Ledger) -> Issue:
    token, identity, item = ledger.facts.token, ledger.facts.identity, operation.item
    content = with_numbers(item.content, ledger.plan, ledger.issues)
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

    made = github.send_once(lambda: github.create_issue(item.title, body, item.labels), find)
    if not identity.counts(made.author):
        found = f"GitHub created #{made.number} as {made.author}, not as {identity.login}"
        hint = f"Run the same command again with `--identity '{made.author}'`."
        raise Refused(f"{found}, so another run would not find it.", hint=hint)
    return made


def _add_dependency(github: GitHub, operation: AddDependency, ledger: Ledger) -> None:
    blocked = ledger.issues[operation.item]
    blocker = operation.existing or ledger.issues[operation.blocker]
    if ledger.has_dependencies:
        number, blocker_id = blocked.number, blocker.id
        try:
            github.send_once(
                lambda: github.add_blocker(number, blocker_id),
                lambda: next((issue for issue in github.blockers(number) if issue.id == blocker_id), None),
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
    comparison = compare(operation.item, issue, ledger.plan, ledger.facts, ledger.issues)
    ledger.findings += item_findings(operation.key, comparison)
    if comparison.is_settled or not comparison.parts:
        return issue
    return github.change_issue(issue.number, to_issue_change(comparison, ledger.facts.token))


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
    content = with_numbers(parts.content, ledger.plan, ledger.issues)
    if content == parts.content:
        return issue
    record = record_of(issue, token)
    if record and record.body == body_digest(parts.content):
        parts = with_record(parts, token, replace(record, body=body_digest(content)))
    return _write_body(github, issue, replace(parts, content=content))


def _close(github: GitHub, operation: CloseWorkItem, ledger: Ledger, options: PlanOptions) -> None:
    """Close an item; one that vanished from its plan stays if a person took it up since the facts were read."""
    token, marker = ledger.facts.token, operation.marker
    if marker == VANISHED:
        issue = github.issue(operation.issue.number) or operation.issue
        if not issue.is_open or reason_to_keep(issue, ledger.facts):
            return
    else:
        issue = _current(github, ledger.newest(operation.issue), ledger, options)
    labels = tuple(label for label in issue.labels if category_of(label) is not Category.STATUS)
    body = marked_body(issue, marker, run=token)
    github.change_issue(issue.number, IssueChange(body, labels, "closed", "not_planned"))


def _update(github: GitHub, operation: UpdateWorkItem, issue: Issue, ledger: Ledger) -> None:
    found = compare_update(operation.update, issue, ledger.plan, ledger.facts, ledger.issues)
    sums = {"sum": update_digest(operation.update), "wrote": found.wrote}
    body = marked_body(issue, UPDATED, found.content, run=ledger.facts.token, **sums)
    github.change_issue(issue.number, IssueChange(body, found.labels))


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
