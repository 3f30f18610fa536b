"""Check a planner result against the facts, and plan its operations. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from accord.core.findings import Finding, pointer, warning
from accord.core.machine import dependency_order
from accord.core.suggest import did_you_mean
from accord.github.limits import BODY_CHARS
from accord.results.bodies import (
    CLOSED,
    UPDATED,
    body_findings,
    closing_body,
    content_digest,
    content_limit,
    has_marker,
    item_marker,
    likely_kind,
    longest_length,
    name_owners,
    owners_in,
    read_body,
    split_body,
    update_limit,
)
from accord.results.labels import Category, ItemKind, category_of, distinct, kind_of, labels_after_update
from accord.results.operations import Operation, adopted_if, skipped_if
from accord.results.planner.rules import Plan, check_labels_of_kind, check_length, item_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from accord.github.models import Issue
    from accord.results.models import PlannedWorkItemUpdate
    from accord.results.planner.facts import PlanFacts


@dataclass(frozen=True, slots=True)
class CreateWorkItem(Operation):
    """Create an issue; the key is its tempID. ``adopted`` is the issue of an earlier run of the same result."""

    op: ClassVar[str] = "create-work-item"
    is_content: ClassVar[bool] = True
    title: str
    content: str
    labels: tuple[str, ...]
    adopted: Issue | None


@dataclass(frozen=True, slots=True)
class AddDependency(Operation):
    """Block an item by another: a tempID of this result, or an ``existing`` issue by its number (``#12``)."""

    op: ClassVar[str] = "add-dependency"
    item: str
    blocker: str
    existing: Issue | None


@dataclass(frozen=True, slots=True)
class NameOwners(Operation):
    """Rewrite ``owned by #temp-3`` in an item that was created before that item had a number."""

    op: ClassVar[str] = "name-owners"


@dataclass(frozen=True, slots=True)
class CloseWorkItem(Operation):
    """Close an issue as not planned and remove its status label."""

    op: ClassVar[str] = "close-work-item"
    issue: Issue


@dataclass(frozen=True, slots=True)
class UpdateWorkItem(Operation):
    """Change an issue; None leaves body or labels unchanged. ``labels`` is the whole new list."""

    op: ClassVar[str] = "update-work-item"
    issue: Issue
    content: str | None
    labels: tuple[str, ...] | None


PlanOperation = CreateWorkItem | AddDependency | NameOwners | CloseWorkItem | UpdateWorkItem


def check_facts(plan: Plan, facts: PlanFacts) -> list[Finding]:
    """Check what only GitHub knows: that issues of the result exist, are open, fit, and keep their kind."""
    found = list(facts.findings)
    for i, item in enumerate(plan.result.create):
        for j, reference in enumerate(item.blocked_by):
            if reference not in plan.positions:
                found += _missing(reference, facts, pointer("create", i, "blockedBy", j))
    for i, reference in enumerate(plan.result.close):
        found += _missing(reference, facts, pointer("close", i))
        issue = _existing(reference, facts)
        if issue and not _closed_by_us(issue, facts):
            found += _check_open(issue, pointer("close", i), facts)
    for i, update in enumerate(plan.result.update):
        path = pointer("update", i)
        found += _missing(update.work_item_id, facts, path + "/workItemID")
        issue = _existing(update.work_item_id, facts)
        if issue and not _updated_by_us(issue, facts):
            found += _check_open(issue, path + "/workItemID", facts)
        if issue and update.labels is not None:
            found += _check_status_kept(issue, update.labels, path + "/labels")
        if issue and (kind := kind_of(issue.labels)):
            found += _check_kind(update, kind, path)
    return [*found, *_check_lengths(plan, facts), *_check_labels_exist(plan, facts)]


def check_names(plan: Plan, redact: Callable[[str], str]) -> Iterator[Finding]:
    """Refuse names that contain a secret: redacting it would change the name."""
    names = [(item.temp_id, pointer("create", i, "tempID")) for i, item in enumerate(plan.result.create)]
    for name, path in [*names, *_labels(plan)]:
        if redact(name) != name:
            message = "This name contains a secret, or a value that is secret in this process."
            hint = "Use another name."
            yield Finding("secret-in-name", message, path, hint=hint)


def plan_operations(plan: Plan, facts: PlanFacts) -> list[PlanOperation]:
    """Return all operations, also those that an earlier run did: creates in dependency order come first."""
    order = dependency_order({i: plan.blockers(i) for i in range(len(plan.result.create))})
    return [
        *_creates(plan, facts, order),
        *_dependencies(plan, facts),
        *_names(plan, facts, order),
        *_closes(plan, facts),
        *_updates(plan, facts),
    ]


def _creates(plan: Plan, facts: PlanFacts, order: Sequence[int]) -> Iterator[CreateWorkItem]:
    for i in order:
        item = plan.result.create[i]
        made = facts.items.get(item.temp_id)
        found = adopted_if(made is not None)
        yield CreateWorkItem(item.temp_id, found, item.title, item.body, distinct(item.labels), made)


def _dependencies(plan: Plan, facts: PlanFacts) -> Iterator[AddDependency]:
    for i, item in enumerate(plan.result.create):
        made = facts.items.get(item.temp_id)
        existing = facts.blockers.get(made.number, frozenset()) if made else frozenset()
        names = [plan.result.create[j].temp_id for j in plan.blockers(i)]
        blockers = [(name, facts.items.get(name), None) for name in names]
        old = [(f"#{number}", facts.existing[number]) for number in plan.existing_blockers(i)]
        for name, issue, other in [*blockers, *((name, issue, issue) for name, issue in old if issue)]:
            found = skipped_if(issue is not None and issue.number in existing)
            yield AddDependency(f"{item.temp_id} blocked by {name}", found, item.temp_id, name, other)


def _names(plan: Plan, facts: PlanFacts, order: Sequence[int]) -> list[NameOwners]:
    """Plan a second edit of the items whose text names an owner that has no number yet when they are created."""
    names = rewritable(plan)
    numbered = {name for name in names if name in facts.items}
    late = set()
    for i in order:
        item = plan.result.create[i]
        issue = facts.items.get(item.temp_id)
        text = split_body(issue.body).content if issue else item.body
        if owners_in(text, names if issue else names - numbered):
            late.add(item.temp_id)
        numbered.add(item.temp_id)
    return [NameOwners(item.temp_id, None) for item in plan.result.create if item.temp_id in late]


def adoption_findings(operations: Sequence[PlanOperation], token: str) -> Iterator[Finding]:
    """Warn where an earlier run made an item from another text: it is adopted without a change."""
    for operation in operations:
        if isinstance(operation, CreateWorkItem) and operation.adopted:
            digest = item_marker(operation.adopted.body, token).get("sum")
            if digest and digest != content_digest(operation.title, operation.content, operation.labels):
                name = f"#{operation.adopted.number} is `{operation.key}` of this run key"
                hint = "Put the change into `update`, or use another run key."
                yield warning("adopted-differs", f"{name}, made from another text, and stays unchanged.", hint=hint)


def rewritable(plan: Plan) -> set[str]:
    """Return the tempIDs that ``owned by #…`` can mean: all that are not spelled like a number."""
    return {name for name in plan.positions if item_number(name) is None}


def _closes(plan: Plan, facts: PlanFacts) -> Iterator[CloseWorkItem]:
    for reference in dict.fromkeys(map(item_number, plan.result.close)):
        issue = facts.existing.get(reference) if reference else None
        if issue:
            yield CloseWorkItem(f"#{issue.number}", skipped_if(not issue.is_open), issue)


def _updates(plan: Plan, facts: PlanFacts) -> Iterator[UpdateWorkItem]:
    for update in plan.result.update:
        issue = _existing(update.work_item_id, facts)
        if issue and (update.body is not None or update.labels is not None):
            content = update.body
            labels = None if update.labels is None else labels_after_update(issue, update.labels)
            done = not issue.is_open or _updated_by_us(issue, facts) or _is_in_state(issue, content, labels, facts)
            yield UpdateWorkItem(f"#{issue.number}", skipped_if(done), issue, content, labels)


def _is_in_state(issue: Issue, content: str | None, labels: tuple[str, ...] | None, facts: PlanFacts) -> bool:
    numbers = {name: item.number for name, item in facts.items.items() if item_number(name) is None}
    same_body = content is None or split_body(issue.body).content == name_owners(content, numbers)
    same_labels = labels is None or {*map(str.lower, labels)} == {*map(str.lower, issue.labels)}
    return same_body and same_labels


def _updated_by_us(issue: Issue, facts: PlanFacts) -> bool:
    """Trust the marker only in a body that we wrote, because its author could have copied it."""
    return facts.identity.counts(issue.author) and has_marker(issue.body, UPDATED, facts.token)


def _closed_by_us(issue: Issue, facts: PlanFacts) -> bool:
    return (
        facts.identity.counts(issue.closed_by)
        and issue.state_reason == "not_planned"
        and (has_marker(issue.body, CLOSED, facts.token) or not closing_body(issue, facts.token))
    )


def _check_kind(update: PlannedWorkItemUpdate, kind: ItemKind, path: str) -> Iterator[Finding]:
    """Check an update against the kind of the item."""
    if update.body is not None:
        body = read_body(update.body)
        if likely_kind(body) is not kind:
            yield from body_findings(body, kind, path + "/body")
    if update.labels is not None:
        yield from check_labels_of_kind(update.labels, kind, path + "/labels")


def _existing(reference: str, facts: PlanFacts) -> Issue | None:
    number = item_number(reference)
    issue = facts.existing.get(number) if number else None
    return None if issue is None or issue.is_pull else issue


def _check_lengths(plan: Plan, facts: PlanFacts) -> Iterator[Finding]:
    """Find bodies that do not fit once owners have numbers, or beside the parts that an item keeps."""
    names = rewritable(plan)
    for i, item in enumerate(plan.result.create):
        if 2 * len(item.body) > BODY_CHARS:
            limit = content_limit(item.temp_id, len(item.blocked_by))
            yield from check_length(longest_length(item.body, names), limit, pointer("create", i, "body"))
    for i, update in enumerate(plan.result.update):
        issue = _existing(update.work_item_id, facts)
        if issue and update.body and 2 * len(update.body) > BODY_CHARS:
            limit = update_limit(issue, facts.token)
            yield from check_length(longest_length(update.body, names), limit, pointer("update", i, "body"))


def _missing(reference: str, facts: PlanFacts, path: str) -> Iterator[Finding]:
    number = item_number(reference)
    issue = facts.existing.get(number) if number else None
    if number and issue is None:
        message = f"The repository has no issue #{number}."
        hint = "Use the number of an existing issue."
        yield Finding("unknown-reference", message, path, hint=hint)
    elif issue and issue.is_pull:
        message = f"#{number} is a pull request, not a work item."
        hint = "Use the number of an issue."
        yield Finding("unknown-reference", message, path, hint=hint)


def _check_open(issue: Issue, path: str, facts: PlanFacts) -> Iterator[Finding]:
    """Report an item that was closed by others: an error at first, a warning when a run continues."""
    if not issue.is_open and facts.items:
        yield warning("already-closed", f"#{issue.number} was closed after this run began, and stays unchanged.", path)
    elif not issue.is_open:
        message = f"#{issue.number} is closed already."
        hint = "Leave it out of the result, or reopen it first."
        yield Finding("already-closed", message, path, hint=hint)


def _check_labels_exist(plan: Plan, facts: PlanFacts) -> Iterator[Finding]:
    """Warn once about each label that GitHub would create by itself."""
    known = facts.labels or ()
    seen = {label.lower() for label in known}
    for label, path in _labels(plan):
        if label.lower() not in seen:
            seen.add(label.lower())
            hint = did_you_mean(label, known) or "Create it, or run `accord labels sync`."
            message = f"The repository has no label `{label}`, so GitHub will create a grey one."
            yield warning("label-not-there", message, path, hint=hint)


def _labels(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield every label of a plan with its pointer."""
    lists = [(item.labels, pointer("create", i, "labels")) for i, item in enumerate(plan.result.create)]
    lists += [(update.labels or [], pointer("update", i, "labels")) for i, update in enumerate(plan.result.update)]
    return ((label, path + pointer(j)) for labels, path in lists for j, label in enumerate(labels))


def _check_status_kept(issue: Issue, labels: Sequence[str], path: str) -> Iterator[Finding]:
    has = {label.lower() for label in issue.labels}
    for i, label in enumerate(labels):
        if category_of(label) in (Category.TYPE, Category.STATUS) and label.lower() not in has:
            message = f"An update keeps type and status, so `{label}` is left out."
            hint = "Move it with `accord items move`."
            yield warning("label-ignored", message, path + pointer(i), hint=hint)
