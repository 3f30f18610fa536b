"""Plan the operations of a planner result from the facts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from accord.core.machine import dependency_order
from accord.engine.operations import Operation, adopted_if, skipped_if
from accord.results.bodies import CLOSED, name_owners, owners_in, split_body
from accord.results.labels import labels_after_update
from accord.results.planner.changes import Comparison, PlannedItem, PlanRun, compare, reason_to_keep
from accord.results.planner.checks import existing_issue, rewritable, updated_by_us
from accord.results.planner.facts import planned_items
from accord.results.planner.record import VANISHED, content_of, record_of, update_digest
from accord.results.planner.rules import Plan, item_number
from accord.results.planner.structure import StructureOperation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from accord.github.models import Issue
    from accord.results.planner.facts import PlanFacts


@dataclass(frozen=True, slots=True)
class CreateWorkItem(Operation):
    """Create an issue; the key is its tempID. ``adopted`` is the issue of an earlier version of the plan."""

    op: ClassVar[str] = "create-work-item"
    is_content: ClassVar[bool] = True
    item: PlannedItem
    adopted: Issue | None


@dataclass(frozen=True, slots=True)
class ChangePlannedItem(Operation):
    """Change the issue of an item that a later version of the plan changed; the key is its tempID."""

    op: ClassVar[str] = "update-work-item"
    item: PlannedItem
    issue: Issue


@dataclass(frozen=True, slots=True)
class AddDependency(Operation):
    """Block an item by another: a tempID of this result, or an ``existing`` issue by its number (``#12``)."""

    op: ClassVar[str] = "add-dependency"
    item: str
    blocker: str
    existing: Issue | None


@dataclass(frozen=True, slots=True)
class RemoveDependency(Operation):
    """Remove a dependency that accord added; ``blocker_id`` is 0 where only the body of the item has it."""

    op: ClassVar[str] = "remove-dependency"
    item: str
    blocker: int
    blocker_id: int


@dataclass(frozen=True, slots=True)
class NameOwners(Operation):
    """Rewrite ``owned by #temp-3`` in an item that was created before that item had a number."""

    op: ClassVar[str] = "name-owners"


@dataclass(frozen=True, slots=True)
class CloseWorkItem(Operation):
    """Close an issue as not planned and remove its status label; ``marker`` says why."""

    op: ClassVar[str] = "close-work-item"
    issue: Issue
    marker: str = CLOSED


@dataclass(frozen=True, slots=True)
class UpdateWorkItem(Operation):
    """Change an issue; None leaves body or labels unchanged. ``labels`` are those that the result asks for."""

    op: ClassVar[str] = "update-work-item"
    issue: Issue
    content: str | None
    labels: tuple[str, ...] | None
    digest: str


PlanOperation = (
    CreateWorkItem
    | ChangePlannedItem
    | AddDependency
    | RemoveDependency
    | NameOwners
    | CloseWorkItem
    | UpdateWorkItem
    | StructureOperation
)


def plan_run(plan: Plan, facts: PlanFacts) -> PlanRun:
    """Return the facts that the comparisons of a run share."""
    return PlanRun(facts.token, facts.identity, frozenset(rewritable(plan)))


def compare_items(plan: Plan, facts: PlanFacts) -> dict[str, Comparison]:
    """Compare every item that an earlier version of the plan made, by its tempID."""
    run = plan_run(plan, facts)
    return {
        item.temp_id: compare(item, issue, run, facts.items, facts.blockers.get(issue.number, {}).keys())
        for item in planned_items(plan)
        if (issue := facts.items.get(item.temp_id))
    }


def plan_operations(
    plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison], *, closes_vanished: bool = False
) -> list[PlanOperation]:
    """Return all operations, also those that an earlier run did: creates in dependency order come first.

    Dependencies are removed before the record of an item forgets them, and recorded before they are added.
    """
    items = planned_items(plan)
    order = dependency_order({i: plan.blockers(i) for i in range(len(items))})
    return [
        *_creates(items, facts, order),
        *_removals(items, facts, comparisons),
        *_changes(items, facts, comparisons),
        *_dependencies(items, facts, comparisons),
        *_names(plan, facts, comparisons, order),
        *(_closes_of_vanished(facts) if closes_vanished else ()),
        *_closes(plan, facts),
        *_updates(plan, facts),
    ]


def is_settled(issue: Issue, comparison: Comparison) -> bool:
    """Return whether an item stays as it is because it is closed."""
    return not issue.is_open and not comparison.reopens


def _creates(items: Sequence[PlannedItem], facts: PlanFacts, order: Sequence[int]) -> Iterator[CreateWorkItem]:
    for item in (items[i] for i in order):
        made = facts.items.get(item.temp_id)
        yield CreateWorkItem(item.temp_id, adopted_if(made is not None), item, made)


def _removals(
    items: Sequence[PlannedItem], facts: PlanFacts, comparisons: Mapping[str, Comparison]
) -> Iterator[RemoveDependency]:
    """Plan the removal of dependencies that accord added and the plan has no longer."""
    names = {issue.number: name for name, issue in facts.items.items()}
    for item in items:
        issue = facts.items.get(item.temp_id)
        record = record_of(issue, facts.token) if issue else None
        if issue is None or record is None or is_settled(issue, comparisons[item.temp_id]):
            continue
        existing = facts.blockers.get(issue.number, {})
        for number in sorted(record.blockers - item.blocker_numbers(facts.items)):
            if number in existing:
                key = f"{item.temp_id} blocked by {names.get(number, f'#{number}')}"
                yield RemoveDependency(key, None, item.temp_id, number, existing[number])


def _changes(
    items: Sequence[PlannedItem], facts: PlanFacts, comparisons: Mapping[str, Comparison]
) -> Iterator[ChangePlannedItem]:
    for item in items:
        issue, comparison = facts.items.get(item.temp_id), comparisons.get(item.temp_id)
        if issue and comparison and comparison.parts and not is_settled(issue, comparison):
            yield ChangePlannedItem(item.temp_id, None, item, issue, parts=comparison.parts)


def _dependencies(
    items: Sequence[PlannedItem], facts: PlanFacts, comparisons: Mapping[str, Comparison]
) -> Iterator[AddDependency]:
    for item in items:
        made = facts.items.get(item.temp_id)
        existing = facts.blockers.get(made.number, {}) if made else {}
        blockers = [(name, facts.items.get(name), None) for name in item.blockers]
        old = [(f"#{number}", facts.existing[number]) for number in item.numbers]
        for name, issue, other in [*blockers, *((name, issue, issue) for name, issue in old if issue)]:
            found = skipped_if(issue is not None and issue.number in existing)
            if found is None and made and is_settled(made, comparisons[item.temp_id]):
                record = record_of(made, facts.token)
                if issue is None or record is None or issue.number not in record.blockers:
                    continue
            yield AddDependency(f"{item.temp_id} blocked by {name}", found, item.temp_id, name, other)


def _names(
    plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison], order: Sequence[int]
) -> list[NameOwners]:
    """Plan a second edit of items whose text names an owner that has no number yet when they are created.

    An earlier run may have ended between the creation of an item and that of its owner.
    """
    names = rewritable(plan)
    new = names - facts.items.keys()
    numbered = {name for name in names if name in facts.items}
    late = set()
    for i in order:
        item = plan.result.create[i]
        issue = facts.items.get(item.temp_id)
        if issue is None:
            is_late = any(owner not in numbered for owner in owners_in(item.body, names))
        else:
            is_kept = is_settled(issue, comparisons[item.temp_id])
            is_late = bool(new) and not is_kept and any(owner in new for owner in owners_in(content_of(issue), names))
        if is_late:
            late.add(item.temp_id)
        numbered.add(item.temp_id)
    return [NameOwners(item.temp_id, None) for item in plan.result.create if item.temp_id in late]


def _closes_of_vanished(facts: PlanFacts) -> Iterator[CloseWorkItem]:
    for issue in facts.vanished:
        if not reason_to_keep(issue, facts.token):
            yield CloseWorkItem(f"#{issue.number}", None, issue, VANISHED)


def _closes(plan: Plan, facts: PlanFacts) -> Iterator[CloseWorkItem]:
    for reference in dict.fromkeys(map(item_number, plan.result.close)):
        issue = facts.existing.get(reference) if reference else None
        if issue:
            yield CloseWorkItem(f"#{issue.number}", skipped_if(not issue.is_open), issue)


def _updates(plan: Plan, facts: PlanFacts) -> Iterator[UpdateWorkItem]:
    for update in plan.result.update:
        issue = existing_issue(update.work_item_id, facts)
        if issue and (update.body is not None or update.labels is not None):
            content = update.body
            labels = None if update.labels is None else labels_after_update(issue, update.labels)
            digest = update_digest(update)
            done = (
                not issue.is_open or updated_by_us(issue, facts, digest) or _is_in_state(issue, content, labels, facts)
            )
            wanted = None if update.labels is None else tuple(update.labels)
            yield UpdateWorkItem(f"#{issue.number}", skipped_if(done), issue, content, wanted, digest)


def _is_in_state(issue: Issue, content: str | None, labels: tuple[str, ...] | None, facts: PlanFacts) -> bool:
    numbers = {name: item.number for name, item in facts.items.items() if item_number(name) is None}
    same_body = content is None or split_body(issue.body).content == name_owners(content, numbers)
    same_labels = labels is None or {*map(str.lower, labels)} == {*map(str.lower, issue.labels)}
    return same_body and same_labels
