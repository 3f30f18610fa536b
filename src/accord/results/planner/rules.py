"""The rules of planner results that need no facts from GitHub (workflow contracts, "PlannerResult")."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from accord.core.findings import Finding, pointer, warning
from accord.core.machine import ancestors, find_cycle
from accord.core.suggest import did_you_mean
from accord.github.limits import BODY_CHARS, DEPENDENCIES_PER_DIRECTION, LABEL_NAME_CHARS, LABELS_PER_ITEM, TITLE_CHARS
from accord.results.bodies import Body, all_owners, likely_kind, read_body
from accord.results.body_rules import body_findings
from accord.results.labels import CREATION_RULES, KNOWN_NAMES, Category, ItemKind, category_of, in_category, kind_of
from accord.results.planner.record import content_limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from accord.results.models import PlannedWorkItem, PlannerResult

_MOST_SUGGESTIONS = 20
"""References with a suggestion: each is compared with every name of the plan."""

_NUMBER = re.compile(r"#?([1-9][0-9]{0,17})")


def item_number(reference: str) -> int | None:
    """Read ``42`` or ``#42``; None when the text is not a work item number."""
    match = _NUMBER.fullmatch(reference)
    return int(match.group(1)) if match else None


_IDENTIFIED = re.compile(r"(.+)#([1-9][0-9]{0,17})", re.DOTALL)


def numbered(name: str, number: int) -> str:
    """Return the tempID of an item whose issue is known, such as ``T001#12``; the name itself without a number."""
    return f"{name}#{number}" if number else name


def split_temp_id(temp_id: str) -> tuple[str, int]:
    """Return the name of a tempID and the number of the issue that it says it is, 0 without one."""
    match = _IDENTIFIED.fullmatch(temp_id)
    return (match[1], int(match[2])) if match else (temp_id, 0)


@dataclass(frozen=True)
class Plan:
    """A planner result with what its rules derive once: positions by tempID, parsed bodies, kinds."""

    result: PlannerResult
    positions: dict[str, int]
    bodies: tuple[Body, ...]
    kinds: tuple[ItemKind, ...]

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
            *_check_closed(self),
            *_check_dependency_counts(self),
            *_check_order(self),
            *_check_changes(self.result),
        ]

    def blockers(self, position: int) -> list[int]:
        """Return the positions in ``create`` that block this item, each once, without itself."""
        references = dict.fromkeys(self.result.create[position].blocked_by)
        return [self.positions[ref] for ref in references if self.positions.get(ref, position) != position]

    def existing_blockers(self, position: int) -> list[int]:
        """Return the numbers of existing items that block this item, each once. A tempID wins over a number."""
        references = dict.fromkeys(self.result.create[position].blocked_by)
        numbers = (item_number(ref) for ref in references if ref not in self.positions)
        return list(dict.fromkeys(number for number in numbers if number is not None))


def read_plan(result: PlannerResult) -> Plan:
    """Derive what the rules and the later stages share."""
    positions: dict[str, int] = {}
    for i, item in enumerate(result.create):
        positions.setdefault(item.temp_id, i)
    bodies = tuple(read_body(item.body[:BODY_CHARS]) for item in result.create)
    kinds = tuple(kind_of(item.labels) or likely_kind(body) for item, body in zip(result.create, bodies, strict=True))
    return Plan(result, positions, bodies, kinds)


def with_texts(plan: Plan, result: PlannerResult) -> Plan:
    """Return the plan with other titles and bodies; only changed bodies are parsed again."""
    bodies = []
    for old, new, body in zip(plan.result.create, result.create, plan.bodies, strict=True):
        is_same = old.body.rstrip() == new.body.rstrip()
        bodies.append(body if is_same else read_body(new.body[:BODY_CHARS]))
    return replace(plan, result=result, bodies=tuple(bodies))


def result_findings(result: PlannerResult) -> list[Finding]:
    """Check a planner result."""
    return read_plan(result).findings


def limit_findings(result: PlannerResult, most: int) -> Iterator[Finding]:
    """Refuse a plan that touches more items than the limit."""
    counts = {
        "creates": len(result.create),
        "closes": len(result.close),
        "updates": len(result.update),
    }
    total = sum(counts.values())
    if total > most:
        shown = ", ".join(f"{word} {count}" for word, count in counts.items() if count)
        message = f"The plan has {total} items ({shown}); the limit is {most}."
        yield Finding(
            "items-too-many", message, hint=f"Split the plan, or pass `--max-items {total}` to `accord apply`."
        )


def _check_temp_ids(plan: Plan) -> Iterator[Finding]:
    for i, item in enumerate(plan.result.create):
        path = pointer("create", i, "tempID")
        if not item.temp_id.strip():
            yield Finding("schema", "The tempID is empty.", path, hint="Give the item a name.")
        elif plan.positions[item.temp_id] != i:
            first = plan.positions[item.temp_id]
            message = f"The tempID `{item.temp_id}` is already used by create/{first}."
            hint = "Give this item another one."
            yield Finding("duplicate-temp-id", message, path, hint=hint)
        elif (other := _spelled_otherwise(item.temp_id, plan.positions)) and plan.positions[other] < i:
            yield _ambiguous(item.temp_id, other, path)


def _spelled_otherwise(reference: str, names: Mapping[str, int]) -> str | None:
    """Return the tempID that is the same number as a reference, once with and once without its sign."""
    other = reference[1:] if reference.startswith("#") else f"#{reference}"
    return other if item_number(reference) and other in names and reference != other else None


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
        hint = "Shorten it."
        yield Finding("title-too-long", message, path + "/title", hint=hint)
    limit = content_limit(item.temp_id, len(item.blocked_by), len(item.labels))
    yield from check_length(len(item.body), limit, path + "/body")
    yield from check_labels(item.labels, plan.kinds[position], path + "/labels")
    if len(item.body) <= BODY_CHARS:
        yield from body_findings(plan.bodies[position], plan.kinds[position], path + "/body")


def check_length(length: int, limit: int, path: str) -> Iterator[Finding]:
    """Check that a body of this many characters fits."""
    if length > limit:
        allowed = f"GitHub allows {limit} beside accord's marker"
        message = f"The body has {length} characters; {allowed}."
        hint = "Move details into files and link them."
        yield Finding("body-too-long", message, path, hint=hint)


def check_labels(labels: Sequence[str], kind: ItemKind, path: str) -> Iterator[Finding]:
    """Check the labels at creation: exactly one of each category that the kind carries, such as the type label."""
    yield from _check_label_names(labels, path)
    for category, allowed in CREATION_RULES[kind].items():
        positions = [i for i, label in enumerate(labels) if category_of(label) is category]
        if not allowed:
            for position in positions:
                message = f"A {kind.word} has no {category.word} label."
                hint = f"Remove `{labels[position]}`."
                yield Finding("label-forbidden", message, path + pointer(position), hint=hint)
            continue
        choice = " or ".join(f"`{label}`" for label in allowed)
        if not positions:
            message = f"A {kind.word} needs exactly one {category.word} label."
            hint = f"Add {choice}."
            yield Finding("label-missing", message, path, hint=hint)
        yield from _check_repeated(labels, positions, category, path)
        for position in positions:
            if labels[position] in KNOWN_NAMES and labels[position] not in allowed:
                message = f"A new {kind.word} cannot have the label `{labels[position]}`."
                hint = f"Use {choice}."
                yield Finding("label-forbidden", message, path + pointer(position), hint=hint)


def _check_updated_labels(labels: Sequence[str], path: str) -> Iterator[Finding]:
    """Check a list that replaces an item's labels; the item keeps its type and status, so they may be absent."""
    yield from _check_label_names(labels, path)
    for category in Category:
        positions = [i for i, label in enumerate(labels) if category_of(label) is category]
        yield from _check_repeated(labels, positions, category, path)
    if not in_category(labels, Category.PRIORITY):
        message = "This list has no priority, so the item keeps its own."
        yield warning("label-missing", message, path, hint="Add a priority label.")


def check_labels_of_kind(labels: Sequence[str], kind: ItemKind, path: str) -> Iterator[Finding]:
    """Check that an existing item of this kind may have the labels of an update."""
    for category in (Category.PRIORITY, Category.COMPLEXITY):
        for i, label in enumerate(labels):
            if category_of(label) is category and label in KNOWN_NAMES.difference(CREATION_RULES[kind][category]):
                message = f"A {kind.word} cannot have the label `{label}`."
                hint = "Remove it."
                yield Finding("label-forbidden", message, path + pointer(i), hint=hint)


def _check_label_names(labels: Sequence[str], path: str) -> Iterator[Finding]:
    """Check what holds for every list of labels: known names in the four categories, and GitHub's limits."""
    if len(labels) > LABELS_PER_ITEM:
        message = f"The item has {len(labels)} labels; GitHub allows {LABELS_PER_ITEM}."
        hint = "Remove some."
        yield Finding("labels-too-many", message, path, hint=hint)
    for position, label in enumerate(labels):
        here = path + pointer(position)
        category = category_of(label)
        if not label.strip():
            yield Finding("label-unknown", "A label is empty.", here, hint="Name one or remove it.")
        elif label != label.strip() or not label.isprintable():
            message = "A label has whitespace around it or contains invisible characters."
            hint = "Remove them."
            yield Finding("label-unknown", message, here, hint=hint)
        elif len(label) > LABEL_NAME_CHARS:
            message = f"The label has {len(label)} characters; GitHub allows {LABEL_NAME_CHARS}."
            hint = "Shorten it."
            yield Finding("label-too-long", message, here, hint=hint)
        elif category and label not in KNOWN_NAMES:
            known = sorted(name for name in KNOWN_NAMES if category_of(name) is category)
            hint = did_you_mean(label, known) or f"Use {', '.join(f'`{name}`' for name in known)}."
            yield Finding("label-unknown", f"Unknown {category.word} label `{label}`.", here, hint=hint)


def _check_repeated(labels: Sequence[str], positions: list[int], category: Category, path: str) -> Iterator[Finding]:
    for position in positions[1:]:
        message = f"`{labels[position]}` is a second {category.word} label beside `{labels[positions[0]]}`."
        hint = "Keep one."
        yield Finding("label-repeated", message, path + pointer(position), hint=hint)


def _check_references(plan: Plan) -> Iterator[Finding]:
    suggestions = 0
    for i, item in enumerate(plan.result.create):
        for j, reference in enumerate(item.blocked_by):
            path = pointer("create", i, "blockedBy", j)
            if reference == item.temp_id:
                message = f"`{reference}` blocks itself."
                hint = "Remove it from its `blockedBy`."
                yield Finding("self-reference", message, path, hint=hint)
            elif reference in plan.positions:
                continue
            elif other := _spelled_otherwise(reference, plan.positions):
                yield _ambiguous(reference, other, path)
            elif item_number(reference) is None:
                suggestions += 1
                close = did_you_mean(reference, plan.positions) if suggestions <= _MOST_SUGGESTIONS else ""
                hint = close or "Use a tempID of this result or a number like 42."
                message = f"`{reference}` is neither a tempID of this result nor a work item number."
                yield Finding("unknown-reference", message, path, hint=hint)


def _check_owners(plan: Plan) -> Iterator[Finding]:
    """Check the owners that bodies name, such as ``(owned by #csv-writer)``."""
    names, result = plan.positions.keys(), plan.result
    numbered = {str(number): name for name in names if (number := item_number(name))}
    texts = [(item.body, pointer("create", i, "body")) for i, item in enumerate(result.create)]
    texts += [(update.body or "", pointer("update", i, "body")) for i, update in enumerate(result.update)]
    suggestions = 0
    for text, path in texts:
        for owner in all_owners(text[:BODY_CHARS], names):
            if owner in numbered:
                yield _ambiguous(f"owned by #{owner}", numbered[owner], path)
            elif not (owner in names or owner.isdigit() or owner.startswith("<")):
                suggestions += 1
                close = did_you_mean(owner, names) if suggestions <= _MOST_SUGGESTIONS else ""
                hint = close or "Use a tempID of this result or a number like 42."
                message = f"The owner `#{owner}` is neither a tempID of this result nor a work item number."
                yield Finding("unknown-reference", message, path, hint=hint)


def _check_closed(plan: Plan) -> Iterator[Finding]:
    closed = {item_number(reference) for reference in plan.result.close}
    for i, item in enumerate(plan.result.create):
        for j, reference in enumerate(item.blocked_by):
            number = None if reference in plan.positions else item_number(reference)
            if number and number in closed:
                message = f"`{item.temp_id}` waits for #{number}, which this plan closes."
                hint = "Remove it from `blockedBy`, or do not close it."
                yield Finding("closed-reference", message, pointer("create", i, "blockedBy", j), hint=hint)


def _check_dependency_counts(plan: Plan) -> Iterator[Finding]:
    """Count the dependencies of each new item in both directions; GitHub would refuse one too many part-way."""
    blocked = Counter(j for i in range(len(plan.result.create)) for j in plan.blockers(i))
    for i, item in enumerate(plan.result.create):
        counts = {"is blocked by": len(plan.blockers(i)) + len(plan.existing_blockers(i)), "blocks": blocked[i]}
        for words, count in counts.items():
            if count > DEPENDENCIES_PER_DIRECTION:
                message = f"`{item.temp_id}` {words} {count} items; GitHub allows {DEPENDENCIES_PER_DIRECTION}."
                hint = "Add an item in between that stands for a group of them."
                yield Finding("dependencies-too-many", message, pointer("create", i, "blockedBy"), hint=hint)


def _check_changes(result: PlannerResult) -> Iterator[Finding]:
    closed: set[int] = set()
    for i, reference in enumerate(result.close):
        number = item_number(reference)
        if number is None:
            yield _not_a_number(reference, pointer("close", i))
        elif number in closed:
            yield Finding("close-repeated", f"#{number} is closed twice.", pointer("close", i), hint="Keep one entry.")
        else:
            closed.add(number)
    times = Counter(item_number(update.work_item_id) for update in result.update)
    for i, update in enumerate(result.update):
        path = pointer("update", i)
        number = item_number(update.work_item_id)
        if number is None:
            yield _not_a_number(update.work_item_id, path + "/workItemID")
        elif number in closed:
            message = f"#{number} is both closed and updated."
            hint = "Keep one of the two."
            yield Finding("close-and-update", message, path + "/workItemID", hint=hint)
        elif times[number] > 1:
            message = f"#{number} has {times[number]} updates."
            hint = "Merge the updates into one."
            yield Finding("update-repeated", message, path + "/workItemID", hint=hint)
        if update.body is not None:
            body = read_body(update.body[:BODY_CHARS])
            kind = kind_of(update.labels or ()) or likely_kind(body)
            yield from check_length(len(update.body), content_limit("", 0, 0), path + "/body")
            yield from body_findings(body, kind, path + "/body")
        if update.labels is not None:
            yield from _check_updated_labels(update.labels, path + "/labels")


def _not_a_number(reference: str, path: str) -> Finding:
    return Finding("unknown-reference", f"`{reference}` is not a work item number.", path, hint="Use `42` or `#42`.")


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
    for path, tasks in by_path.items():
        for position, i in enumerate(tasks):
            others = [j for j in tasks[:position] if not (above[i] >> j | above[j] >> i) & 1]
            if others:
                listed = ", ".join(f"`{create[j].temp_id}`" for j in others[:3]) + (" …" if len(others) > 3 else "")
                message = (
                    f"`{path}` is in scope of `{create[i].temp_id}` and of {listed}, and none blocks the other, "
                    "so their changes may collide."
                )
                hint = "Add a `blockedBy`, or split the work on the file."
                yield warning("shared-scope", message, pointer("create", i, "body"), hint=hint)
