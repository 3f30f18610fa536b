"""The label taxonomy of work items: four categories, and which labels of each an item carries at creation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer, warning, with_lines
from accord.files.yaml import read_yaml
from accord.github.limits import LABEL_DESCRIPTION_CHARS, LABEL_NAME_CHARS, LABELS_PER_ITEM

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.github.models import Issue


_COLOR = re.compile(r"[0-9a-fA-F]{6}")
_KEYS = frozenset({"name", "description", "color", "aliases"})


@dataclass(frozen=True)
class LabelEntry:
    """One label as a file wants it; ``color`` in lower case, ``aliases`` its former names."""

    name: str
    description: str
    color: str
    aliases: tuple[str, ...] = ()


def parse_labels(raw: bytes) -> tuple[LabelEntry, ...]:
    """Read a label file. Raises BrokenContract with every finding, each on its line."""
    document = read_yaml(raw)
    entries = document.value
    if not isinstance(entries, list):
        message = "A label file is a list of labels, each with name, description and color."
        raise BrokenContract.of(Finding("schema", message, line=1))
    findings = [finding for i, entry in enumerate(entries) for finding in _entry_findings(entry, pointer(i))]
    if not findings:
        findings = _repetitions(entries)
    if findings:
        placed = with_lines(findings, document.lines)
        raise BrokenContract("The label file does not hold.", findings=placed)
    return tuple(
        LabelEntry(
            entry["name"],
            entry.get("description") or "",
            entry["color"].lower(),
            tuple(entry.get("aliases") or ()),
        )
        for entry in entries
    )


def _entry_findings(entry: Any, path: str) -> list[Finding]:
    if not isinstance(entry, dict):
        return [Finding("schema", "A label is a mapping with name, description and color.", path)]
    found = [
        Finding("schema", f'"{key}" is no key of a label. The keys are {", ".join(sorted(_KEYS))}.', path)
        for key in entry
        if key not in _KEYS
    ]
    found += _name_findings(entry.get("name"), path + "/name")
    description = entry.get("description") or ""
    if not isinstance(description, str) or len(description) > LABEL_DESCRIPTION_CHARS:
        message = f"A description is text of at most {LABEL_DESCRIPTION_CHARS} characters. Shorten it."
        found.append(Finding("schema", message, path + "/description"))
    color = entry.get("color")
    if not isinstance(color, str) or not _COLOR.fullmatch(color):
        message = f"A color is six hex digits without #, in quotes; this is {color!r}."
        found.append(Finding("schema", message, path + "/color"))
    aliases = entry.get("aliases") or []
    if not isinstance(aliases, list):
        return [*found, Finding("schema", "Aliases are a list of former names.", path + "/aliases")]
    for i, alias in enumerate(aliases):
        found += _name_findings(alias, f"{path}/aliases/{i}")
    return found


def _name_findings(name: Any, path: str) -> list[Finding]:
    if isinstance(name, str) and name.strip() == name and 0 < len(name) <= LABEL_NAME_CHARS:
        return []
    message = (
        f"A label's name is text of 1 to {LABEL_NAME_CHARS} characters without blanks around it; this is {name!r}."
    )
    return [Finding("schema", message, path)]


def _repetitions(entries: list[dict[str, Any]]) -> list[Finding]:
    """Find names that two entries claim; GitHub compares label names without case."""
    seen: dict[str, str] = {}
    found = []
    for i, entry in enumerate(entries):
        for j, name in enumerate([entry["name"], *(entry.get("aliases") or ())]):
            path = pointer(i, "name") if j == 0 else pointer(i, "aliases", j - 1)
            if name.lower() in seen:
                message = f'"{name}" is claimed at {seen[name.lower()]} already; names differ by more than case.'
                found.append(Finding("label-repeated", message, path))
            seen.setdefault(name.lower(), path)
    return found


class Category(StrEnum):
    """The categories by their prefix in a label's name (workflow contracts, "Labels at creation")."""

    TYPE = "task"
    STATUS = "status"
    PRIORITY = "priority"
    COMPLEXITY = "complexity"


class ItemKind(StrEnum):
    """What a work item is for. Its type label says so, and its body follows the template of that name."""

    TASK = "task:implement"
    REFINEMENT = "task:refinement"


_BY_PREFIX: dict[str, Category] = {category.value: category for category in Category}
STATUS_AT_CREATION = "status:pending"


@dataclass(frozen=True)
class CreationRule:
    """Which labels of a category an item of some kind may carry when it is created; none means: no such label."""

    category: Category
    allowed: tuple[str, ...]
    word: str


STATUSES = tuple(
    f"status:{name}"
    for name in ("pending", "ready", "in-progress", "blocked", "needs-refinement", "review", "approved")
)
_PRIORITIES = ("priority:high", "priority:medium", "priority:low")
_COMPLEXITIES = ("complexity:trivial", "complexity:low", "complexity:medium", "complexity:high")

CREATION_RULES: dict[ItemKind, tuple[CreationRule, ...]] = {
    ItemKind.TASK: (
        CreationRule(Category.TYPE, (ItemKind.TASK,), "type"),
        CreationRule(Category.STATUS, (STATUS_AT_CREATION,), "status"),
        CreationRule(Category.PRIORITY, _PRIORITIES, "priority"),
        CreationRule(Category.COMPLEXITY, _COMPLEXITIES, "complexity"),
    ),
    ItemKind.REFINEMENT: (
        CreationRule(Category.TYPE, (ItemKind.REFINEMENT,), "type"),
        CreationRule(Category.STATUS, (STATUS_AT_CREATION,), "status"),
        CreationRule(Category.PRIORITY, _PRIORITIES[:2], "priority"),
        CreationRule(Category.COMPLEXITY, (), "complexity"),
    ),
}


@cache
def shipped_labels() -> tuple[LabelEntry, ...]:
    """Return the labels that accord ships: the contract's taxonomy and those of the loops."""
    text = resources.files("accord.results").joinpath("labels.yml").read_bytes()
    return parse_labels(text)


KNOWN_NAMES = frozenset((*ItemKind, *STATUSES, *_PRIORITIES, *_COMPLEXITIES))
"""The labels of the four categories, exactly as they are spelled; the shipped file describes and colours them."""


def category_of(label: str) -> Category | None:
    """Tell the category that a label claims by its prefix, in any case; None for a label of nobody's."""
    prefix, colon, _ = label.partition(":")
    return _BY_PREFIX.get(prefix.strip().lower()) if colon else None


def in_category(labels: Sequence[str], category: Category) -> list[str]:
    """The labels of one category, in their order."""
    return [label for label in labels if category_of(label) is category]


def kind_of(labels: Sequence[str]) -> ItemKind | None:
    """Tell the kind of work item by its type label; None when it has none or several."""
    kinds = {ItemKind(label) for label in labels if label in set(ItemKind)}
    return kinds.pop() if len(kinds) == 1 else None


def status_of(labels: Sequence[str]) -> str | None:
    """The status that the labels give, without its prefix; None when there is none."""
    statuses = in_category(labels, Category.STATUS)
    return statuses[0].partition(":")[2] if statuses else None


def labels_after_update(issue: Issue, wanted: Sequence[str]) -> tuple[str, ...]:
    """Replace an item's labels, keeping its type and status: an update is no status transition."""
    kept = {Category.TYPE, Category.STATUS}
    return distinct(
        [
            *(label for label in issue.labels if category_of(label) in kept),
            *(label for label in wanted if category_of(label) not in kept),
        ]
    )


def distinct(labels: Sequence[str]) -> tuple[str, ...]:
    """Keep the first of each label; GitHub compares them without case."""
    first: dict[str, str] = {}
    for label in labels:
        first.setdefault(label.lower(), label)
    return tuple(first.values())


def creation_findings(labels: Sequence[str], kind: ItemKind, path: str) -> Iterator[Finding]:
    """Check the labels of a new item of this kind. ``path`` points at the list."""
    yield from spelling_findings(labels, path)
    for rule in CREATION_RULES[kind]:
        positions = [i for i, label in enumerate(labels) if category_of(label) is rule.category]
        if not rule.allowed:
            for position in positions:
                message = f'A {_word(kind)} carries no {rule.word} label. Remove "{labels[position]}".'
                yield Finding("label-forbidden", message, path + pointer(position))
            continue
        choice = " or ".join(rule.allowed)
        if not positions:
            yield Finding("label-missing", f"A {_word(kind)} needs one {rule.word} label. Add {choice}.", path)
        yield from _repeated(labels, positions, rule.word, path)
        for position in positions:
            if labels[position] in KNOWN_NAMES and labels[position] not in rule.allowed:
                message = f'A new {_word(kind)} cannot be "{labels[position]}". Use {choice}.'
                yield Finding("label-forbidden", message, path + pointer(position))


def update_findings(labels: Sequence[str], path: str) -> Iterator[Finding]:
    """Check a list that replaces an item's labels; type and status come from the item and may be absent here."""
    yield from spelling_findings(labels, path)
    for category in Category:
        positions = [i for i, label in enumerate(labels) if category_of(label) is category]
        yield from _repeated(labels, positions, category.name.lower(), path)
    if not in_category(labels, Category.PRIORITY):
        yield warning("label-missing", "This list leaves the item without a priority. Add a priority label.", path)


def kept_kind_findings(labels: Sequence[str], kind: ItemKind, path: str) -> Iterator[Finding]:
    """Check that labels which replace those of an item of this kind are ones that it may carry."""
    for rule in CREATION_RULES[kind]:
        if rule.category in (Category.PRIORITY, Category.COMPLEXITY):
            for i, label in enumerate(labels):
                if category_of(label) is rule.category and label in KNOWN_NAMES and label not in rule.allowed:
                    message = f'A {_word(kind)} cannot carry "{label}". Remove it.'
                    yield Finding("label-forbidden", message, path + pointer(i))


def spelling_findings(labels: Sequence[str], path: str) -> Iterator[Finding]:
    """Check what holds for every list of labels: known names in the four categories, and GitHub's limits."""
    if len(labels) > LABELS_PER_ITEM:
        message = f"GitHub takes {LABELS_PER_ITEM} labels an item, these are {len(labels)}. Remove some."
        yield Finding("labels-too-many", message, path)
    for position, label in enumerate(labels):
        here = path + pointer(position)
        category = category_of(label)
        if not label.strip():
            yield Finding("label-unknown", "A label is empty. Name one or remove it.", here)
        elif label != label.strip() or not label.isprintable():
            message = "A label has blanks around it, or characters that cannot be seen. Write it plainly."
            yield Finding("label-unknown", message, here)
        elif len(label) > LABEL_NAME_CHARS:
            message = f"GitHub takes {LABEL_NAME_CHARS} characters a label, this has {len(label)}. Shorten it."
            yield Finding("label-too-long", message, here)
        elif category and label not in KNOWN_NAMES:
            known = ", ".join(sorted(name for name in KNOWN_NAMES if category_of(name) is category))
            message = f'"{label}" is no {category.name.lower()} label. The contract has: {known}.'
            yield Finding("label-unknown", message, here)


def _repeated(labels: Sequence[str], positions: Sequence[int], word: str, path: str) -> Iterator[Finding]:
    for position in positions[1:]:
        message = f'"{labels[position]}" is a second {word} label beside "{labels[positions[0]]}". Keep one.'
        yield Finding("label-repeated", message, path + pointer(position))


def _word(kind: ItemKind) -> str:
    return "task" if kind is ItemKind.TASK else "refinement"
