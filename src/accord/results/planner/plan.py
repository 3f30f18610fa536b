"""From a checked planner result and the facts to operations. Pure: nothing is read, nothing is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from accord.core.findings import Finding, pointer, warning
from accord.core.graph import dependency_order
from accord.github.limits import BODY_CHARS
from accord.results.bodies import (
    CLOSED,
    UPDATED,
    body_findings,
    body_room,
    closing_body,
    content_digest,
    digest_of,
    likely_kind,
    longest_named,
    name_owners,
    owners_named,
    read_body,
    split_body,
    update_room,
    was_touched,
)
from accord.results.labels import (
    Category,
    ItemKind,
    category_of,
    distinct,
    kept_kind_findings,
    kind_of,
    labels_after_update,
)
from accord.results.operations import Operation, adopted, skipped
from accord.results.planner.rules import Plan, item_number, length_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from accord.github.models import Issue
    from accord.results.models import PlannedWorkItemUpdate
    from accord.results.planner.facts import PlanFacts


@dataclass(frozen=True, slots=True)
class CreateWorkItem(Operation):
    """Create an issue; ``adopted`` is the one that an earlier run of the same result made. The key is the tempID."""

    op: ClassVar[str] = "create-work-item"
    title: str
    content: str
    labels: tuple[str, ...]
    adopted: Issue | None


@dataclass(frozen=True, slots=True)
class AddDependency(Operation):
    """Let an item wait for a blocker: a tempID of this result, or an ``existing`` issue, by its number (``#12``)."""

    op: ClassVar[str] = "add-dependency"
    item: str
    blocker: str
    existing: Issue | None


@dataclass(frozen=True, slots=True)
class NameOwners(Operation):
    """Rewrite ``owned by #temp-3`` in an item that was created before the item it names had a number."""

    op: ClassVar[str] = "name-owners"


@dataclass(frozen=True, slots=True)
class CloseWorkItem(Operation):
    """Close an issue as not planned and take its status label off."""

    op: ClassVar[str] = "close-work-item"
    issue: Issue


@dataclass(frozen=True, slots=True)
class UpdateWorkItem(Operation):
    """Change body and labels of an issue; None leaves either alone. ``labels`` is the whole new list."""

    op: ClassVar[str] = "update-work-item"
    issue: Issue
    content: str | None
    labels: tuple[str, ...] | None


PlanOperation = CreateWorkItem | AddDependency | NameOwners | CloseWorkItem | UpdateWorkItem
"""What a planner's result comes to."""


def fact_findings(plan: Plan, facts: PlanFacts) -> list[Finding]:
    """Check what only GitHub knows: that what the result refers to is there, and still open where it must be."""
    found = list(facts.findings)
    for i, item in enumerate(plan.result.create):
        for j, reference in enumerate(item.blocked_by):
            if reference not in plan.positions:
                found += _missing(reference, facts, pointer("create", i, "blockedBy", j))
    for i, reference in enumerate(plan.result.close):
        found += _missing(reference, facts, pointer("close", i))
        issue = _existing(reference, facts)
        if issue and not issue.is_open and not _closed_by_us(issue, facts):
            found.append(_already_closed(issue, pointer("close", i), facts))
    for i, update in enumerate(plan.result.update):
        path = pointer("update", i)
        found += _missing(update.work_item_id, facts, path + "/workItemID")
        issue = _existing(update.work_item_id, facts)
        if issue and not issue.is_open and not _updated_by_us(issue, facts):
            found.append(_already_closed(issue, path + "/workItemID", facts))
        if issue and update.labels is not None:
            found += _status_kept(issue, update.labels, path + "/labels")
        if issue and (kind := kind_of(issue.labels)):
            found += _kind_findings(update, kind, path)
    return [*found, *_room_findings(plan, facts), *_unknown_labels(plan, facts)]


def name_findings(plan: Plan, redact: Callable[[str], str]) -> Iterator[Finding]:
    """Refuse names that hold a secret: without it they would be other names."""
    names = [(pointer("create", i, "tempID"), item.temp_id) for i, item in enumerate(plan.result.create)]
    lists = [(pointer("create", i, "labels"), item.labels) for i, item in enumerate(plan.result.create)]
    lists += [(pointer("update", i, "labels"), update.labels or []) for i, update in enumerate(plan.result.update)]
    names += [(path + pointer(j), label) for path, labels in lists for j, label in enumerate(labels)]
    for path, name in names:
        if redact(name) != name:
            message = "This name holds a secret, or the value of one of this process's own. Name it differently."
            yield Finding("secret-in-name", message, path)


def plan_operations(plan: Plan, facts: PlanFacts) -> list[PlanOperation]:
    """Turn the result into operations: creates in dependency order, then dependencies, names, closes, updates.

    The texts of the result are as they are posted. Operations whose work an earlier run did are in the list too,
    marked so; a receipt shows the whole plan.
    """
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
        found = adopted(made is not None)
        yield CreateWorkItem(item.temp_id, found, item.title, item.body, distinct(item.labels), made)


def _dependencies(plan: Plan, facts: PlanFacts) -> Iterator[AddDependency]:
    for i, item in enumerate(plan.result.create):
        waiting = facts.items.get(item.temp_id)
        there = facts.blockers.get(waiting.number, frozenset()) if waiting else frozenset()
        for j in plan.blockers(i):
            name = plan.result.create[j].temp_id
            blocker = facts.items.get(name)
            yield _dependency(item.temp_id, name, None, is_there=blocker is not None and blocker.number in there)
        for number in plan.existing_blockers(i):
            issue = facts.existing[number]
            if issue:
                yield _dependency(item.temp_id, f"#{number}", issue, is_there=number in there)


def _dependency(item: str, blocker: str, existing: Issue | None, *, is_there: bool) -> AddDependency:
    return AddDependency(f"{item} blocked by {blocker}", skipped(is_there), item, blocker, existing)


def _names(plan: Plan, facts: PlanFacts, order: Sequence[int]) -> Iterator[NameOwners]:
    """Plan a second look at the items whose text names an owner that has no number when they are created."""
    names = rewritable(plan)
    numbered = {name for name in names if name in facts.items}
    late = []
    for i in order:
        item = plan.result.create[i]
        issue = facts.items.get(item.temp_id)
        text = split_body(issue.body).content if issue else item.body
        if owners_named(text, names if issue else names - numbered):
            late.append(i)
        numbered.add(item.temp_id)
    yield from (NameOwners(plan.result.create[i].temp_id, None) for i in sorted(late))


def adoption_findings(operations: Sequence[PlanOperation], token: str) -> Iterator[Finding]:
    """Say where an earlier run made an item from other words: adopting changes nothing, so the new words are lost."""
    for operation in operations:
        if isinstance(operation, CreateWorkItem) and operation.adopted:
            digest = digest_of(operation.adopted.body, token)
            if digest and digest != content_digest(operation.title, operation.content, operation.labels):
                message = (
                    f'#{operation.adopted.number} is "{operation.key}" of this run key, made from other words; '
                    "it stays as it is. Put the change into update, or use another run key."
                )
                yield warning("adopted-differs", message)


def rewritable(plan: Plan) -> set[str]:
    """The tempIDs that ``owned by #…`` can mean: those that are not spelled like a number, which is one already."""
    return {name for name in plan.positions if item_number(name) is None}


def _closes(plan: Plan, facts: PlanFacts) -> Iterator[CloseWorkItem]:
    for reference in dict.fromkeys(map(item_number, plan.result.close)):
        issue = facts.existing.get(reference) if reference else None
        if issue:
            yield CloseWorkItem(f"#{issue.number}", skipped(not issue.is_open), issue)


def _updates(plan: Plan, facts: PlanFacts) -> Iterator[UpdateWorkItem]:
    for update in plan.result.update:
        issue = _existing(update.work_item_id, facts)
        if issue and (update.body is not None or update.labels is not None):
            content = update.body
            labels = None if update.labels is None else labels_after_update(issue, update.labels)
            done = not issue.is_open or _updated_by_us(issue, facts) or _is_in_state(issue, content, labels, facts)
            yield UpdateWorkItem(f"#{issue.number}", skipped(done), issue, content, labels)


def _is_in_state(issue: Issue, content: str | None, labels: tuple[str, ...] | None, facts: PlanFacts) -> bool:
    numbers = {name: item.number for name, item in facts.items.items() if item_number(name) is None}
    same_body = content is None or split_body(issue.body).content == name_owners(content, numbers)
    same_labels = labels is None or {*map(str.lower, labels)} == {*map(str.lower, issue.labels)}
    return same_body and same_labels


def _updated_by_us(issue: Issue, facts: PlanFacts) -> bool:
    """Trust the marker only in a body that we wrote: its author could put it there."""
    return facts.identity.counts(issue.author) and was_touched(issue.body, UPDATED, facts.token)


def _closed_by_us(issue: Issue, facts: PlanFacts) -> bool:
    return (
        facts.identity.counts(issue.closed_by)
        and issue.state_reason == "not_planned"
        and (was_touched(issue.body, CLOSED, facts.token) or not closing_body(issue, facts.token))
    )


def _kind_findings(update: PlannedWorkItemUpdate, kind: ItemKind, path: str) -> Iterator[Finding]:
    """Hold an update against what the item is; by itself an update does not say."""
    if update.body is not None:
        body = read_body(update.body)
        if likely_kind(body) is not kind:
            yield from body_findings(body, kind, path + "/body")
    if update.labels is not None:
        yield from kept_kind_findings(update.labels, kind, path + "/labels")


def _existing(reference: str, facts: PlanFacts) -> Issue | None:
    number = item_number(reference)
    issue = facts.existing.get(number) if number else None
    return None if issue is None or issue.is_pull else issue


def _room_findings(plan: Plan, facts: PlanFacts) -> Iterator[Finding]:
    """Find bodies that fit only until owners have their numbers, or until what an item keeps is added."""
    names = rewritable(plan)
    for i, item in enumerate(plan.result.create):
        if 2 * len(item.body) > BODY_CHARS:
            room = body_room(item.temp_id, len(item.blocked_by))
            yield from length_findings(longest_named(item.body, names), room, pointer("create", i, "body"))
    for i, update in enumerate(plan.result.update):
        issue = _existing(update.work_item_id, facts)
        if issue and update.body and 2 * len(update.body) > BODY_CHARS:
            room = update_room(issue, facts.token)
            yield from length_findings(longest_named(update.body, names), room, pointer("update", i, "body"))


def _missing(reference: str, facts: PlanFacts, path: str) -> Iterator[Finding]:
    number = item_number(reference)
    if number is None:
        return
    issue = facts.existing.get(number)
    if issue is None:
        message = f"There is no issue #{number} in this repository. Refer to one that exists."
        yield Finding("unknown-reference", message, path)
    elif issue.is_pull:
        message = f"#{number} is a pull request, not a work item. Refer to an issue."
        yield Finding("unknown-reference", message, path)


def _already_closed(issue: Issue, path: str, facts: PlanFacts) -> Finding:
    """Judge an item that somebody closed: an error before anything was written, no obstacle to going on with a run."""
    if facts.items:
        message = f"#{issue.number} was closed since this run began, and is left as it is."
        return warning("already-closed", message, path)
    message = f"#{issue.number} is closed already. Leave it out of the result, or reopen it first."
    return Finding("already-closed", message, path)


def _unknown_labels(plan: Plan, facts: PlanFacts) -> Iterator[Finding]:
    """Warn once of each label that GitHub would have to make up."""
    lists = [(item.labels, pointer("create", i, "labels")) for i, item in enumerate(plan.result.create)]
    lists += [(update.labels or [], pointer("update", i, "labels")) for i, update in enumerate(plan.result.update)]
    seen = set(facts.labels)
    for labels, path in lists:
        for i, label in enumerate(labels):
            if label.lower() not in seen:
                seen.add(label.lower())
                message = (
                    f'The repository has no label "{label}"; GitHub will make a grey one. Run "accord labels sync".'
                )
                yield warning("label-not-there", message, path + pointer(i))


def _status_kept(issue: Issue, labels: Sequence[str], path: str) -> Iterator[Finding]:
    has = {label.lower() for label in issue.labels}
    for i, label in enumerate(labels):
        if category_of(label) in (Category.TYPE, Category.STATUS) and label.lower() not in has:
            message = f'An update changes neither type nor status, so "{label}" is left out. Use "accord items move".'
            yield warning("label-ignored", message, path + pointer(i))
