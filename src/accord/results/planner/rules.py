"""The rules of planner results that need no facts from GitHub (workflow contracts, "PlannerResult")."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from accord.core.findings import Finding, names_of, pointer, warning
from accord.core.frozen import Frozen
from accord.core.machine import ancestors, find_cycle
from accord.core.suggest import did_you_mean
from accord.github.limits import BODY_CHARS, DEPENDENCIES_PER_DIRECTION, TITLE_CHARS
from accord.github.models import Issue
from accord.results.bodies import Body, all_owners, judged_kind, likely_kind, read_body
from accord.results.body_rules import body_findings
from accord.results.labels import ItemKind, check_new_labels, check_updated_labels, distinct, kind_of
from accord.results.planner.record import content_limit
from accord.results.scope_entries import crossing_entries, wider_entries

if TYPE_CHECKING:
    from accord.results.models import PlannedWorkItem, PlannedWorkItemUpdate, PlannerResult

_MOST_SUGGESTIONS = 20

_NUMBER = re.compile(r"#?([1-9][0-9]{0,17})")


_LIKE_NUMBER = re.compile(r"(?ai)(?:(?:GH-|issue )?#?|(https?://\S*/issues/|[\w.-]+/[\w.-]+#))0*([1-9][0-9]{0,17})")
"""A number that is written otherwise, such as ``GH-12``, ``012`` or the address of an issue."""


def item_number(reference: str) -> int | None:
    """Read ``42`` or ``#42``; None when the text is not a work item number."""
    match = _NUMBER.fullmatch(reference)
    return int(match.group(1)) if match else None


_IDENTIFIED = re.compile(r"(.+)#([1-9][0-9]{0,17})", re.DOTALL)


def item_id(name: str, number: int) -> str:
    """Return the tempID of an item whose issue is known, such as ``T001#12``; the name itself without a number."""
    return f"{name}#{number}" if number else name


def split_temp_id(temp_id: str) -> tuple[str, int]:
    """Return the name of a tempID and the number of the issue that it says it is, 0 without one."""
    match = _IDENTIFIED.fullmatch(temp_id)
    return (match[1], int(match[2])) if match else (temp_id, 0)


class PlannedItem(Frozen):
    """An item to create."""

    temp_id: str
    title: str
    content: str
    labels: tuple[str, ...]
    blockers: tuple[str, ...] = ()  # tempIDs, also those that are numbers
    numbers: tuple[int, ...] = ()  # existing issues that block it

    def blocker_numbers(self, issues: Mapping[str, Issue]) -> frozenset[int]:
        """Return the numbers of the blockers that have one."""
        return frozenset([*(issues[name].number for name in self.blockers if name in issues), *self.numbers])


class Plan(Frozen):
    """A planner result with what its rules derive once: positions by tempID, parsed bodies, kinds."""

    result: PlannerResult
    positions: dict[str, int]
    bodies: tuple[Body, ...]
    kinds: tuple[ItemKind, ...]

    @cached_property
    def items(self) -> list[PlannedItem]:
        """The items to create."""
        items = []
        for i, item in enumerate(self.result.create):
            blockers = tuple(self.result.create[j].temp_id for j in self.blockers(i))
            numbers = filter(None, (item_number(name) for name in item.blocked_by if name not in self.positions))
            each_once = tuple(dict.fromkeys(numbers))
            items.append(PlannedItem(item.temp_id, item.title, item.body, distinct(item.labels), blockers, each_once))
        return items

    @cached_property
    def names(self) -> frozenset[str]:
        """The tempIDs that ``owned by #…`` can mean: all that are not spelled like a number."""
        return frozenset(name for name in self.positions if item_number(name) is None)

    @cached_property
    def numbered(self) -> dict[int, str]:
        """The first tempID for each issue that tempIDs such as ``T001#12`` say they are."""
        numbers = [(split_temp_id(name)[1], name) for name in reversed(self.positions)]
        return {number: name for number, name in numbers if number}

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings of every rule."""
        found = [*_check_temp_ids(self)]
        for i, item in enumerate(self.result.create):
            found += _check_item(item, self, i)
        return [
            *found,
            *_check_references(self),
            *_check_owners(self),
            *_check_dependency_counts(self),
            *_check_order(self),
            *_check_changes(self),
        ]

    def blockers(self, position: int) -> list[int]:
        """Return the positions in ``create`` that block this item, each once, without itself."""
        references = dict.fromkeys(self.result.create[position].blocked_by)
        return [self.positions[ref] for ref in references if self.positions.get(ref, position) != position]


def read_plan(result: PlannerResult) -> Plan:
    """Derive what the rules and the later stages share. The number of an issue that a tempID names means that item."""
    positions: dict[str, int] = {}
    for i, item in enumerate(result.create):
        positions.setdefault(item.temp_id, i)
    bodies = tuple(read_body(item.body[:BODY_CHARS]) for item in result.create)
    kinds = tuple(judged_kind(kind_of(item.labels), body) for item, body in zip(result.create, bodies, strict=True))
    plan = Plan(result, positions, bodies, kinds)
    return with_adopted(plan, plan.numbered)


def with_texts(plan: Plan, result: PlannerResult) -> Plan:
    """Return the plan with other titles and bodies; only changed bodies are parsed again."""
    bodies = []
    for old, new, body in zip(plan.result.create, result.create, plan.bodies, strict=True):
        is_same = old.body.rstrip() == new.body.rstrip()
        bodies.append(body if is_same else read_body(new.body[:BODY_CHARS]))
    return replace(plan, result=result, bodies=tuple(bodies))


def with_adopted(plan: Plan, names: Mapping[int, str]) -> Plan:
    """Return the plan with its own items by name where it refers to them by the numbers that they have."""

    def by_name(reference: str) -> str:
        is_name = reference in plan.positions or _spelled_otherwise(reference, plan.positions)
        return reference if is_name else names.get(item_number(reference) or 0, reference)

    old = plan.result.create
    create = [item.model_copy(update={"blocked_by": [*map(by_name, item.blocked_by)]}) for item in old]
    return plan if create == old else replace(plan, result=plan.result.model_copy(update={"create": create}))


def result_findings(result: PlannerResult) -> list[Finding]:
    """Check a planner result."""
    return read_plan(result).findings


def limit_findings(result: PlannerResult, most: int) -> Iterator[Finding]:
    """Refuse a plan that touches more items than the limit."""
    counts = {"creates": len(result.create), "closes": len(result.close), "updates": len(result.update)}
    total = sum(counts.values())
    if total > most:
        shown = ", ".join(f"{word} {count}" for word, count in counts.items() if count)
        message = f"The plan has {total} items ({shown}); the limit is {most}."
        hint = f"Split the plan, or pass `--max-items {total}` to `accord apply`."
        yield Finding("items-too-many", message, hint=hint)


def _check_temp_ids(plan: Plan) -> Iterator[Finding]:
    for i, item in enumerate(plan.result.create):
        path = pointer("create", i, "tempID")
        if not item.temp_id.strip():
            yield Finding("schema", "The tempID is empty.", path, hint="Give the item a name.")
        elif (first := plan.positions[item.temp_id]) != i:
            message = f"The tempID `{item.temp_id}` is already used by create/{first}."
            yield Finding("duplicate-temp-id", message, path, hint="Give this item another one.")
        elif (other := _spelled_otherwise(item.temp_id, plan.positions)) and plan.positions[other] < i:
            yield _ambiguous(item.temp_id, other, path)
        elif plan.numbered.get(number := split_temp_id(item.temp_id)[1], item.temp_id) != item.temp_id:
            yield Finding("item-identity", f"Two items say that they are #{number}.", path, hint=identity_hint(number))


def identity_hint(number: int) -> str:
    """Return the hint for an item that cannot be the issue that its tempID names."""
    return f"Remove `#{number}` from the tempID, or `(#{number})` from its source, to create a new item."


def _spelled_otherwise(reference: str, names: Mapping[str, int]) -> str | None:
    """Return the tempID that is the same number as a reference, once with and once without its sign."""
    other = reference[1:] if reference.startswith("#") else f"#{reference}"
    return other if item_number(reference) and other in names and reference != other else None


def _like_a_number(reference: str, names: Mapping[str, int]) -> str | None:
    """Return the tempID that is the same number as a reference, which may mean an existing item, too."""
    return reference if reference in names and item_number(reference) else _spelled_otherwise(reference, names)


def _ambiguous(reference: str, name: str, path: str) -> Finding:
    message = f"`{reference}` may mean the tempID `{name}` or an existing work item."
    hint = f"Give the items names that are not numbers, such as `task-{name.lstrip('#')}`."
    return Finding("ambiguous-reference", message, path, hint=hint)


def _check_item(item: PlannedWorkItem, plan: Plan, position: int) -> Iterator[Finding]:
    path = pointer("create", position)
    if not item.title.strip():
        yield Finding("title-empty", "The title is empty.", path + "/title", hint="Write what the item achieves.")
    if len(item.title) > TITLE_CHARS:
        message = f"The title has {len(item.title)} characters; GitHub allows {TITLE_CHARS}."
        yield Finding("title-too-long", message, path + "/title", hint="Shorten it.")
    limit = content_limit(item.temp_id, len(item.blocked_by), len(item.labels))
    yield from check_length(len(item.body), limit, path + "/body")
    yield from check_new_labels(item.labels, plan.kinds[position], path + "/labels")
    if len(item.body) <= BODY_CHARS:
        yield from body_findings(plan.bodies[position], plan.kinds[position], path + "/body")


def check_length(length: int, limit: int, path: str) -> Iterator[Finding]:
    """Check that a body of this many characters fits."""
    if length > limit:
        allowed = f"GitHub allows {limit} beside accord's marker"
        message = f"The body has {length} characters; {allowed}."
        yield Finding("body-too-long", message, path, hint="Move details into files and link them.")


def _check_references(plan: Plan) -> Iterator[Finding]:
    closed = {item_number(reference) for reference in plan.result.close}
    unknown = 0
    for i, item in enumerate(plan.result.create):
        for j, reference in enumerate(item.blocked_by):
            path, number = pointer("create", i, "blockedBy", j), item_number(reference)
            if reference == item.temp_id:
                hint = "Remove it from its `blockedBy`."
                yield Finding("self-reference", f"`{reference}` blocks itself.", path, hint=hint)
            elif other := _like_a_number(reference, plan.positions):
                yield _ambiguous(reference, other, path)
            elif reference not in plan.positions and number is None:
                unknown += 1
                yield _unknown_name(reference, plan, item.temp_id, path, unknown)
            elif (number := number or split_temp_id(reference)[1]) in closed:
                message = f"`{item.temp_id}` waits for #{number}, which this plan closes."
                hint = "Remove it from `blockedBy`, or do not close it."
                yield warning("closed-reference", message, path, hint=hint)


def _unknown_name(reference: str, plan: Plan, own: str, path: str, count: int, sign: str = "") -> Finding:
    """Report an unknown name, the first ones with a suggestion: each of those is compared with every other name."""
    owner = "The owner " if sign else ""
    message = f"{owner}`{sign}{reference}` is neither a tempID of this result nor a work item number."
    hint = "Use a number like 42, or a tempID of this result."
    if count <= _MOST_SUGGESTIONS:
        known = [f"{sign}{name}" for name in plan.positions if name != own]
        listed = f", or a tempID of this result: {names_of([f'`{name}`' for name in known])}" if known else ""
        hint = did_you_mean(f"{sign}{reference}", known) or _number_hint(reference, f"Use a number like 42{listed}.")
    return Finding("unknown-reference", message, path, hint=hint)


def _number_hint(reference: str, other: str) -> str:
    """Return the hint to use the number that a reference has, else another hint."""
    like = _LIKE_NUMBER.fullmatch(reference.strip())
    where = " if that is an issue of this repository" if like and like[1] else ""
    return f"Use `{like[2]}`{where}." if like else other


def numbered_owners(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the existing issues that bodies name as owners, each with the pointer of its body."""
    for text, path, _ in _bodies(plan.result):
        owners = all_owners(text[:BODY_CHARS], plan.positions.keys())
        yield from ((owner, path) for owner in owners if owner not in plan.positions and item_number(owner))


def _bodies(result: PlannerResult) -> Iterator[tuple[str, str, str]]:
    yield from ((item.body, pointer("create", i, "body"), item.temp_id) for i, item in enumerate(result.create))
    yield from ((update.body or "", pointer("update", i, "body"), "") for i, update in enumerate(result.update))


def _check_owners(plan: Plan) -> Iterator[Finding]:
    """Check the owners that bodies name, such as ``(owned by #csv-writer)``."""
    names = plan.positions.keys()
    numbered = {str(number): name for name in names if (number := item_number(name))}
    unknown = 0
    for text, path, own in _bodies(plan.result):
        for owner in all_owners(text[:BODY_CHARS], names):
            if owner in numbered:
                yield _ambiguous(f"owned by #{owner}", numbered[owner], path)
            elif not (owner in names or owner.isdigit() or owner.startswith("<")):
                unknown += 1
                yield _unknown_name(owner, plan, own, path, unknown, "#")
        for owner in filter(plan.names.__contains__, all_owners(text[:BODY_CHARS], names, is_bare=True)):
            message = f"The owner `{owner}` has no `#`, so it does not become the number of its issue."
            yield warning("unknown-reference", message, path, hint=f"Did you mean `#{owner}`?")


def _check_dependency_counts(plan: Plan) -> Iterator[Finding]:
    """Count the dependencies of each new item in both directions; GitHub would refuse one too many part-way."""
    blocked = Counter(j for i in range(len(plan.result.create)) for j in plan.blockers(i))
    for i, item in enumerate(plan.result.create):
        counts = {"is blocked by": len(plan.blockers(i)) + len(plan.items[i].numbers), "blocks": blocked[i]}
        for words, count in counts.items():
            if count > DEPENDENCIES_PER_DIRECTION:
                message = f"`{item.temp_id}` {words} {count} items; GitHub allows {DEPENDENCIES_PER_DIRECTION}."
                hint = "Add an item in between that stands for a group of them."
                yield Finding("dependencies-too-many", message, pointer("create", i, "blockedBy"), hint=hint)


def _check_changes(plan: Plan) -> Iterator[Finding]:
    result = plan.result
    closed: set[int] = set()
    for i, reference in enumerate(result.close):
        path, number = pointer("close", i), item_number(reference)
        if wrong := _wrong_number(reference, plan, path):
            yield wrong
        elif number in closed:
            yield Finding("close-repeated", f"#{number} is closed twice.", path, hint="Keep one entry.")
        elif number:
            closed.add(number)
    times = Counter(item_number(update.work_item_id) for update in result.update)
    for i, update in enumerate(result.update):
        path, number = pointer("update", i, "workItemID"), item_number(update.work_item_id)
        if wrong := _wrong_number(update.work_item_id, plan, path):
            yield wrong
        elif number in closed:
            message = f"#{number} is both closed and updated."
            yield Finding("close-and-update", message, path, hint="Keep one of the two.")
        elif times[number] > 1:
            message = f"#{number} has {times[number]} updates."
            yield Finding("update-repeated", message, path, hint="Merge the updates into one.")
        yield from _check_update(update, pointer("update", i))


def _check_update(update: PlannedWorkItemUpdate, path: str) -> Iterator[Finding]:
    if update.body is not None:
        body = read_body(update.body[:BODY_CHARS])
        kind = kind_of(update.labels or ()) or likely_kind(body)
        yield from check_length(len(update.body), content_limit("", 0, 0), path + "/body")
        yield from body_findings(body, kind, path + "/body")
    if update.labels is not None:
        yield from check_updated_labels(update.labels, path + "/labels")


def _wrong_number(reference: str, plan: Plan, path: str) -> Finding | None:
    if item_number(reference) is None:
        message = f"`{reference}` is not a work item number."
        hint = _number_hint(reference, "Use its number, such as `42`.")
        return Finding("unknown-reference", message, path, hint=hint)
    other = _like_a_number(reference, plan.positions)
    return _ambiguous(reference, other, path) if other else None


def _check_order(plan: Plan) -> Iterator[Finding]:
    """Find a cycle; without one, find tasks that may run at the same time and have the same file in scope."""
    create, blockers = plan.result.create, {i: plan.blockers(i) for i in range(len(plan.result.create))}
    cycle = find_cycle(blockers)
    if cycle:
        names = [create[i].temp_id for i in cycle]
        message = f"These items block each other: {' → '.join([*names, names[0]])}."
        hint = "Remove one `blockedBy` entry."
        yield Finding("dependency-cycle", message, pointer("create", cycle[0], "blockedBy"), hint=hint)
        return
    above = ancestors(blockers)
    by_path: dict[str, list[int]] = {}
    for i, body in enumerate(plan.bodies):
        for path in body.in_scope if plan.kinds[i] is ItemKind.TASK else ():
            by_path.setdefault(path, []).append(i)
    excluded = [{*body.out_of_scope} for body in plan.bodies]
    wider = wider_entries([*by_path, *(path for paths in excluded for path in sorted(paths))])
    crossing = crossing_entries(by_path)

    def excludes(i: int, own: str, other: str) -> bool:
        barring = excluded[i] & {*wider[own], *wider[other]}
        return not all(each in wider[own] and own not in wider[each] for each in barring)

    for path in by_path:
        others = [
            (j, entry)
            for entry in dict.fromkeys([*wider[path], *crossing[path]])
            for j in by_path.get(entry, ())
            if not excludes(j, entry, path)
        ]
        for i in by_path[path]:
            found = dict.fromkeys(
                j
                for j, entry in others
                if (j < i or (entry in wider[path] and path not in wider[entry]))
                and (j != i and not (above[i] >> j | above[j] >> i) & 1 and not excludes(i, path, entry))
            )
            if found:
                listed = names_of([f"`{create[j].temp_id}`" for j in found], 3)
                message = (
                    f"`{path}`, in scope of `{create[i].temp_id}`, has paths in scope of {listed}, and none blocks the "
                    "other, so their changes may collide."
                )
                hint = "Add a `blockedBy`, or split the work on the file."
                yield warning("shared-scope", message, pointer("create", i, "body"), hint=hint)
