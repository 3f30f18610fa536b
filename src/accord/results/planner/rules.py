"""The rules of planner results: what a plan must hold by itself, before anybody asks GitHub."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from accord.core.findings import Finding, pointer, warning
from accord.core.graph import ancestors, find_cycle
from accord.github.limits import BODY_CHARS, DEPENDENCIES_PER_DIRECTION, TITLE_CHARS
from accord.results.bodies import Body, body_findings, body_room, likely_kind, read_body
from accord.results.labels import ItemKind, creation_findings, kind_of, update_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.results.models import PlannedWorkItem, PlannerResult

_NUMBER = re.compile(r"#?([1-9][0-9]{0,17})")


def item_number(reference: str) -> int | None:
    """Read ``42`` or ``#42``; None when the text is no number of a work item."""
    match = _NUMBER.fullmatch(reference)
    return int(match.group(1)) if match else None


@dataclass(frozen=True)
class Plan:
    """A planner result with what its rules worked out once: positions, references, bodies, kinds, findings."""

    result: PlannerResult
    positions: dict[str, int]
    bodies: tuple[Body, ...]
    kinds: tuple[ItemKind, ...]

    @cached_property
    def findings(self) -> list[Finding]:
        """What the rules find by themselves."""
        return planner_findings(self)

    def blockers(self, position: int) -> list[int]:
        """The positions in ``create`` that this item waits for, each once, without itself."""
        references = dict.fromkeys(self.result.create[position].blocked_by)
        return [self.positions[ref] for ref in references if self.positions.get(ref, position) != position]

    def existing_blockers(self, position: int) -> list[int]:
        """The numbers of existing items that this item waits for, each once. A tempID wins over a number."""
        references = dict.fromkeys(self.result.create[position].blocked_by)
        numbers = (item_number(ref) for ref in references if ref not in self.positions)
        return list(dict.fromkeys(number for number in numbers if number is not None))


def read_plan(result: PlannerResult) -> Plan:
    """Work out what the rules and the planner share."""
    positions: dict[str, int] = {}
    for i, item in enumerate(result.create):
        positions.setdefault(item.temp_id, i)
    bodies = tuple(read_body(item.body[:BODY_CHARS]) for item in result.create)
    kinds = tuple(kind_of(item.labels) or likely_kind(body) for item, body in zip(result.create, bodies, strict=True))
    return Plan(result, positions, bodies, kinds)


def with_texts(plan: Plan, result: PlannerResult) -> Plan:
    """Return the plan with other titles and bodies; only what changed is read again."""
    bodies = []
    for old, new, body in zip(plan.result.create, result.create, plan.bodies, strict=True):
        is_same = old.body.rstrip() == new.body.rstrip()
        bodies.append(body if is_same else read_body(new.body[:BODY_CHARS]))
    return replace(plan, result=result, bodies=tuple(bodies))


def result_findings(result: PlannerResult) -> list[Finding]:
    """Check a planner result."""
    return read_plan(result).findings


def planner_findings(plan: Plan) -> list[Finding]:
    """Check every rule that needs no fact from GitHub (workflow contracts, "PlannerResult")."""
    found = [*_identity_findings(plan)]
    for i, item in enumerate(plan.result.create):
        found += _item_findings(item, plan, i)
    found += _reference_findings(plan)
    found += _dependency_counts(plan)
    cycle = find_cycle({i: plan.blockers(i) for i in range(len(plan.result.create))})
    if cycle:
        names = [plan.result.create[i].temp_id for i in cycle]
        message = f"These items wait for each other: {' → '.join([*names, names[0]])}. Remove one blockedBy."
        found.append(Finding("dependency-cycle", message, pointer("create", cycle[0], "blockedBy")))
    else:
        found += _shared_scope(plan)
    return [*found, *_change_findings(plan.result)]


def _identity_findings(plan: Plan) -> Iterator[Finding]:
    for i, item in enumerate(plan.result.create):
        path = pointer("create", i, "tempID")
        if not item.temp_id.strip():
            yield Finding("schema", "A tempID must not be empty. Give the item a name.", path)
        elif plan.positions[item.temp_id] != i:
            first = plan.positions[item.temp_id]
            message = f'The tempID "{item.temp_id}" is taken by create/{first}. Name this item differently.'
            yield Finding("duplicate-temp-id", message, path)


def _item_findings(item: PlannedWorkItem, plan: Plan, position: int) -> Iterator[Finding]:
    path = pointer("create", position)
    if not item.title.strip():
        yield Finding("title-empty", "The title is empty. Say what the item achieves.", path + "/title")
    if len(item.title) > TITLE_CHARS:
        message = f"GitHub takes {TITLE_CHARS} characters of title, this has {len(item.title)}. Shorten it."
        yield Finding("title-too-long", message, path + "/title")
    room = body_room(item.temp_id, len(item.blocked_by))
    yield from length_findings(len(item.body), room, path + "/body")
    yield from creation_findings(item.labels, plan.kinds[position], path + "/labels")
    if len(item.body) <= BODY_CHARS:
        yield from body_findings(plan.bodies[position], plan.kinds[position], path + "/body")


def length_findings(length: int, room: int, path: str) -> Iterator[Finding]:
    """Say that a body of so many characters does not fit."""
    if length > room:
        message = (
            f"The body has {length} characters; with the marker that accord adds, GitHub has room for {room}. "
            "Move detail into files and link them."
        )
        yield Finding("body-too-long", message, path)


def _reference_findings(plan: Plan) -> Iterator[Finding]:
    for i, item in enumerate(plan.result.create):
        for j, reference in enumerate(item.blocked_by):
            path = pointer("create", i, "blockedBy", j)
            if reference == item.temp_id:
                yield Finding("self-reference", f'"{reference}" waits for itself. Remove it.', path)
            elif reference not in plan.positions and item_number(reference) is None:
                near = next((name for name in plan.positions if name.strip() == reference.strip()), None)
                hint = "Name one that exists." if near is None else f'Blanks count too: write "{near}", or rename that.'
                message = f'"{reference}" is neither a tempID of this result nor a number of a work item. {hint}'
                yield Finding("unknown-reference", message, path)


def _dependency_counts(plan: Plan) -> Iterator[Finding]:
    """Count the dependencies of each new item in both directions; GitHub would refuse one too many part-way."""
    waiting = Counter(j for i in range(len(plan.result.create)) for j in plan.blockers(i))
    for i, item in enumerate(plan.result.create):
        counts = {
            "waits for": len(plan.blockers(i)) + len(plan.existing_blockers(i)),
            "is waited for by": waiting[i],
        }
        for words, count in counts.items():
            if count > DEPENDENCIES_PER_DIRECTION:
                message = (
                    f"{item.temp_id} {words} {count} items; GitHub takes {DEPENDENCIES_PER_DIRECTION}. "
                    "Put an item in between that stands for a group of them."
                )
                yield Finding("dependencies-too-many", message, pointer("create", i, "blockedBy"))


def _change_findings(result: PlannerResult) -> Iterator[Finding]:
    closed: set[int] = set()
    for i, reference in enumerate(result.close):
        number = item_number(reference)
        if number is None:
            yield _no_item(reference, pointer("close", i))
        else:
            closed.add(number)
    times = Counter(item_number(update.work_item_id) for update in result.update)
    for i, update in enumerate(result.update):
        path = pointer("update", i)
        number = item_number(update.work_item_id)
        if number is None:
            yield _no_item(update.work_item_id, path + "/workItemID")
        elif number in closed:
            message = f"#{number} is both closed and updated. Keep one of the two."
            yield Finding("close-and-update", message, path + "/workItemID")
        elif times[number] > 1:
            message = f"#{number} is updated {times[number]} times. Merge the updates into one."
            yield Finding("update-repeated", message, path + "/workItemID")
        if update.body is not None:
            body = read_body(update.body[:BODY_CHARS])
            kind = kind_of(update.labels or ()) or likely_kind(body)
            yield from length_findings(len(update.body), body_room("", 0), path + "/body")
            yield from body_findings(body, kind, path + "/body")
        if update.labels is not None:
            yield from update_findings(update.labels, path + "/labels")


def _no_item(reference: str, path: str) -> Finding:
    message = f'"{reference}" is no number of a work item. Write 42 or #42.'
    return Finding("unknown-reference", message, path)


def _shared_scope(plan: Plan) -> Iterator[Finding]:
    """Warn where two tasks that may run at the same time list the same file as theirs."""
    create = plan.result.create
    above = ancestors({i: plan.blockers(i) for i in range(len(create))})
    by_path: dict[str, list[int]] = {}
    for i, body in enumerate(plan.bodies):
        if plan.kinds[i] is ItemKind.TASK:
            for path in body.in_scope:
                by_path.setdefault(path, []).append(i)
    for path, tasks in by_path.items():
        for position, i in enumerate(tasks):
            others = [j for j in tasks[:position] if not (above[i] >> j | above[j] >> i) & 1]
            if others:
                names = ", ".join(create[j].temp_id for j in others[:3]) + (" …" if len(others) > 3 else "")
                message = (
                    f"`{path}` is in scope of {create[i].temp_id} and of {names}, and none waits for the other: "
                    "their changes may collide. Add a blockedBy, or split the file's work."
                )
                yield warning("shared-scope", message, pointer("create", i, "body"))
