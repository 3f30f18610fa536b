"""Plan the operations of a planner result from the facts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from accord.core.machine import dependency_order
from accord.engine.operations import Operation, adopted_if, skipped_if
from accord.github.models import Issue
from accord.results.bodies import CLOSED, owners_in
from accord.results.planner.changes import Comparison, compare, compare_update, reason_to_keep
from accord.results.planner.checks import existing_issue, is_reopened
from accord.results.planner.record import VANISHED, content_of, record_of
from accord.results.planner.rules import Plan, PlannedItem
from accord.results.planner.structure import StructureOperation

if TYPE_CHECKING:
    from accord.results.models import PlannedWorkItemUpdate
    from accord.results.planner.facts import PlanFacts


class CreateWorkItem(Operation, op="create-work-item", is_content=True):
    """Create an issue; the key is its tempID."""

    item: PlannedItem


class ChangePlannedItem(Operation, op="update-work-item"):
    """Change the issue of an item that a later version of the plan changed; the key is its tempID."""

    item: PlannedItem
    issue: Issue


class AddDependency(Operation, op="add-dependency"):
    """Block an item by another: a tempID of this result, or an ``existing`` issue by its number (``#12``)."""

    item: str
    blocker: str
    existing: Issue | None


class RemoveDependency(Operation, op="remove-dependency"):
    """Remove a dependency that accord added; ``blocker_id`` is 0 where only the body of the item has it."""

    item: str
    blocker: int
    blocker_id: int


class NameOwners(Operation, op="name-owners"):
    """Rewrite ``owned by #temp-3`` in an item that was created before that item had a number."""


class CloseWorkItem(Operation, op="close-work-item"):
    """Close an issue as not planned and remove its status label; ``marker`` says why."""

    issue: Issue
    marker: str = CLOSED


class UpdateWorkItem(Operation, op="update-work-item"):
    """Change an issue as an entry of ``update`` asks for."""

    issue: Issue
    update: PlannedWorkItemUpdate


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


def compare_items(plan: Plan, facts: PlanFacts) -> dict[str, Comparison]:
    """Compare every item that an earlier version of the plan made, by its tempID."""
    issues = facts.items
    return {
        name: compare(item, issues[name], plan, facts, issues)
        for item in plan.items
        if (name := item.temp_id) in issues
    }


def plan_operations(
    plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison], *, closes_vanished: bool = False
) -> list[PlanOperation]:
    """Return all operations, also those that an earlier run did: creates in dependency order come first.

    Dependencies are removed before the record of an item forgets them, and recorded before they are added.
    """
    order = [plan.items[i] for i in dependency_order({i: plan.blockers(i) for i in range(len(plan.items))})]
    creates = [CreateWorkItem(item.temp_id, adopted_if(item.temp_id in facts.items), item) for item in order]
    changes = [
        ChangePlannedItem(item.temp_id, None, item, found.issue, parts=found.parts)
        for item in plan.items
        if (found := comparisons.get(item.temp_id)) and found.parts and not found.is_settled
    ]
    left = facts.vanished if closes_vanished else ()
    vanished = [
        CloseWorkItem(f"#{issue.number}", None, issue, VANISHED) for issue in left if not reason_to_keep(issue, facts)
    ]
    named = (existing_issue(reference, facts) for reference in plan.result.close)
    closable = (issue for issue in named if issue and not is_reopened(issue, facts))
    closes = [CloseWorkItem(f"#{issue.number}", skipped_if(not issue.is_open), issue) for issue in closable]
    return [
        *creates,
        *_removals(plan, facts, comparisons),
        *changes,
        *_dependencies(plan, facts, comparisons),
        *_names(plan, facts, comparisons, order),
        *vanished,
        *closes,
        *_updates(plan, facts),
    ]


def _removals(plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison]) -> Iterator[RemoveDependency]:
    """Plan the removal of dependencies that accord added and the plan has no longer."""
    names = {issue.number: name for name, issue in facts.items.items()}
    for item in plan.items:
        comparison = comparisons.get(item.temp_id)
        record = record_of(comparison.issue, facts.token) if comparison else None
        if comparison is None or record is None or comparison.is_settled:
            continue
        existing = facts.blockers.get(comparison.issue.number, {})
        for number in sorted((record.blockers - item.blocker_numbers(facts.items)) & existing.keys()):
            key = f"{item.temp_id} blocked by {names.get(number, f'#{number}')}"
            yield RemoveDependency(key, None, item.temp_id, number, existing[number])


def _dependencies(plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison]) -> Iterator[AddDependency]:
    for item in plan.items:
        comparison = comparisons.get(item.temp_id)
        existing = facts.blockers.get(comparison.issue.number, {}) if comparison else {}
        record = record_of(comparison.issue, facts.token) if comparison else None
        blockers = [(name, facts.items.get(name), None) for name in item.blockers]
        old = [(f"#{number}", facts.existing[number]) for number in item.numbers]
        for name, issue, other in [*blockers, *((name, issue, issue) for name, issue in old if issue)]:
            found = skipped_if(issue is not None and issue.number in existing)
            is_recorded = issue is not None and record is not None and issue.number in record.blockers
            if found or is_recorded or comparison is None or not comparison.is_settled:
                yield AddDependency(f"{item.temp_id} blocked by {name}", found, item.temp_id, name, other)


def _names(
    plan: Plan, facts: PlanFacts, comparisons: Mapping[str, Comparison], order: Sequence[PlannedItem]
) -> list[NameOwners]:
    """Plan a second edit of items whose text names an owner that has no number yet when they are created.

    An earlier run may have ended between the creation of an item and that of its owner.
    """
    numbered = plan.names & facts.items.keys()
    new = plan.names - numbered
    late = set()
    for item in order:
        comparison = comparisons.get(item.temp_id)
        if comparison is None:
            is_late = not numbered.issuperset(owners_in(item.content, plan.names))
        else:
            is_late = not comparison.is_settled and not new.isdisjoint(
                owners_in(content_of(comparison.issue), plan.names)
            )
        if is_late:
            late.add(item.temp_id)
        numbered |= {item.temp_id}
    return [NameOwners(item.temp_id, None) for item in plan.items if item.temp_id in late]


def _updates(plan: Plan, facts: PlanFacts) -> Iterator[UpdateWorkItem]:
    for update in plan.result.update:
        issue = existing_issue(update.work_item_id, facts)
        if issue and (update.body is not None or update.labels is not None):
            found = compare_update(update, issue, plan, facts, facts.items)
            yield UpdateWorkItem(f"#{issue.number}", skipped_if(found.is_settled or not found.parts), issue, update)
