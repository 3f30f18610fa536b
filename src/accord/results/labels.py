"""The label taxonomy of work items: four categories, which labels of each an item carries, and their rules."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache

from accord.core.findings import Finding, pointer, warning
from accord.core.suggest import did_you_mean
from accord.github.limits import LABEL_NAME_CHARS, LABELS_PER_ITEM, has_address
from accord.github.models import Issue
from accord.text.hidden import strip_hidden


class Category(StrEnum):
    """The categories by their prefix in a label's name (workflow contracts, "Labels at creation")."""

    TYPE = "task"
    STATUS = "status"
    PRIORITY = "priority"
    COMPLEXITY = "complexity"

    @property
    def word(self) -> str:
        """The word for it in messages."""
        return self.name.lower()


class ItemKind(StrEnum):
    """The kind of a work item: its type label, which also chooses the template of its body."""

    TASK = "task:implement"
    REFINEMENT = "task:refinement"

    @property
    def word(self) -> str:
        """The word for it in messages."""
        return "task" if self is ItemKind.TASK else "refinement"


SET_ONCE = (Category.TYPE, Category.STATUS)
"""The categories of labels that no plan changes once an item exists."""

CHANGEABLE = (Category.PRIORITY, Category.COMPLEXITY)

_BY_PREFIX: dict[str, Category] = {category.value: category for category in Category}
STATUS_AT_CREATION = "status:pending"
STATUSES = tuple(
    f"status:{name}"
    for name in ("pending", "ready", "in-progress", "blocked", "needs-refinement", "review", "approved")
)
_PRIORITIES = ("priority:high", "priority:medium", "priority:low")
_COMPLEXITIES = ("complexity:trivial", "complexity:low", "complexity:medium", "complexity:high")


CREATION_RULES: dict[ItemKind, dict[Category, tuple[str, ...]]] = {
    ItemKind.TASK: {
        Category.TYPE: (ItemKind.TASK,),
        Category.STATUS: (STATUS_AT_CREATION,),
        Category.PRIORITY: _PRIORITIES,
        Category.COMPLEXITY: _COMPLEXITIES,
    },
    ItemKind.REFINEMENT: {
        Category.TYPE: (ItemKind.REFINEMENT,),
        Category.STATUS: (STATUS_AT_CREATION,),
        Category.PRIORITY: _PRIORITIES[:2],
        Category.COMPLEXITY: (),
    },
}
"""A new work item has exactly one of these labels of each category, and none where the tuple is empty."""

KNOWN_NAMES = frozenset((*ItemKind, *STATUSES, *_PRIORITIES, *_COMPLEXITIES))
"""The labels of the four categories in their exact spelling; ``labels.yml`` describes and colours them."""


KEEPALIVE = "agents:keepalive"
_LOOPS = frozenset({"keepalive", "autofix", "bot-comments", "verifier", "verify"})
_LISTENERS: Mapping[str, Collection[str]] = {
    KEEPALIVE: {"keepalive"},
    "agents:paused": _LOOPS,
    "agents:plan": {"start"},
    "agents:review": {"start"},
}
"""The loops, or starts, that listen to labels; others are heard by workflows that name them."""

_NAMES = "|".join(sorted(_LOOPS))
_RUNS = re.compile(
    rf"(?:(?:\breusable-|/actions/)({_NAMES})(?:\.yml\b|@)|[.$]/actions/({_NAMES})(?![\w./-])"
    rf"|accord[^\s|;&]{{0,20}}\s{{1,9}}({_NAMES}|start)\s{{1,9}}run\b)",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_CONTINUED = re.compile(r"\\\r?\n[ \t]*")


def loops_in(text: str) -> set[str]:
    """Return the loops that workflows run, and `start`, by the text of the workflows."""
    return {next(filter(None, found)).lower() for found in _RUNS.findall(_CONTINUED.sub("", _COMMENT.sub("", text)))}


def has_listener(label: str, text: str) -> bool:
    """Return whether a workflow listens to a label, by the text of the workflows."""
    listeners = _LISTENERS.get(label.casefold())
    return label in _COMMENT.sub("", text) if listeners is None else not loops_in(text).isdisjoint(listeners)


def category_of(label: str) -> Category | None:
    """Return the category that a label's prefix names, ignoring case; None for any other label."""
    prefix, colon, _ = label.partition(":")
    return _BY_PREFIX.get(prefix.strip().lower()) if colon else None


def in_category(labels: Sequence[str], category: Category) -> list[str]:
    """Return the labels of one category, in their order."""
    return [label for label in labels if category_of(label) is category]


def kind_of(labels: Sequence[str]) -> ItemKind | None:
    """Return the kind that the type label gives; None without exactly one."""
    kinds = {ItemKind(label) for label in labels if label in set(ItemKind)}
    return kinds.pop() if len(kinds) == 1 else None


def status_among(labels: Sequence[str], statuses: Collection[str]) -> str:
    """Return the first of these statuses that a label names; empty without one."""
    named = (label.partition(":")[2].lower() for label in in_category(labels, Category.STATUS))
    return next((status for status in named if status in statuses), "")


def labels_after_update(issue: Issue, wanted: Sequence[str]) -> tuple[str, ...]:
    """Replace an item's labels, except type and status, and those of categories that the list leaves out."""
    kept = {*SET_ONCE}
    rest = [label for label in wanted if category_of(label) not in kept]
    kept |= {category for category in Category if not in_category(rest, category)}
    old = [label for label in issue.labels if category_of(label) in kept]
    return distinct([*old, *rest])


def distinct(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the first of each label; GitHub ignores case when it compares them."""
    first: dict[str, str] = {}
    for label in labels:
        first.setdefault(label.casefold(), label)
    return tuple(first.values())


def check_new_labels(labels: Sequence[str], kind: ItemKind, path: str) -> Iterator[Finding]:
    """Check the labels at creation: exactly one of each category that the kind carries, such as the type label."""
    yield from _check_label_names(labels, path, kind)
    for category, allowed in CREATION_RULES[kind].items():
        if allowed and not in_category(labels, category):
            message = f"A {kind.word} needs exactly one {category.word} label."
            yield Finding("label-missing", message, path, hint=f"Add {_choice(allowed)}.")
    yield from check_allowed(labels, kind, path, CREATION_RULES[kind], _repeated_labels(labels, kind))


def check_allowed(
    labels: Sequence[str], kind: ItemKind, path: str, categories: Collection[Category], skipped: Collection[int] = ()
) -> Iterator[Finding]:
    """Check that an item of this kind may have its labels of some categories."""
    for i, label in enumerate(labels):
        category = category_of(label)
        if category is None or category not in categories or i in skipped:
            continue
        allowed = CREATION_RULES[kind][category]
        if label not in allowed and (label in KNOWN_NAMES or not allowed):
            message = f"`{label}` is not a label of a {'new ' if category in SET_ONCE else ''}{kind.word}."
            if category is Category.TYPE:
                message = f"`{label}` does not fit the body, which has the sections of a {kind.word}."
            hint = f"Use {_choice(allowed)}." if allowed else "Remove it."
            yield Finding("label-forbidden", message, path + pointer(i), hint=hint)


def _choice(labels: Iterable[str]) -> str:
    return " or ".join(f"`{label}`" for label in labels)


def check_updated_labels(labels: Sequence[str], path: str) -> Iterator[Finding]:
    """Check a list that replaces an item's labels; the item keeps its type and status, so they may be absent."""
    yield from _check_label_names(labels, path)
    if not in_category(labels, Category.PRIORITY):
        message = "This list has no priority, so the item keeps its own."
        yield warning("label-kept", message, path, hint="Add a priority label.")


def label_fault(label: str) -> Finding | None:
    """Return why no label may have a name; None for one that GitHub takes, and that can be changed later."""
    if not label.strip():
        return Finding("label-unknown", "A label is empty.", hint="Name one or remove it.")
    if label != label.strip():
        return Finding("label-unknown", "A label has whitespace around it.", hint="Remove the whitespace.")
    if not has_address(label):
        message = "No address of GitHub's API can have this label's name, so it could not be changed."
        return Finding("label-unknown", message, hint="Use letters, and no control characters.")
    if len(label) > LABEL_NAME_CHARS:
        message = f"The label has {len(label)} characters; GitHub allows {LABEL_NAME_CHARS}."
        return Finding("label-too-long", message, hint="Shorten it.")
    return None


def _check_label_names(labels: Sequence[str], path: str, kind: ItemKind | None = None) -> Iterator[Finding]:
    """Check what holds for every list of labels: one known name of each category, and GitHub's limits."""
    if len(labels) > LABELS_PER_ITEM:
        message = f"The item has {len(labels)} labels; GitHub allows {LABELS_PER_ITEM}."
        yield Finding("labels-too-many", message, path, hint="Remove some.")
    repeated = _repeated_labels(labels, kind)
    for position, label in enumerate(labels):
        here, category = path + pointer(position), category_of(label)
        legal = _legal_names(category, kind) if category else ()
        if category and (kept := repeated.get(position)):
            message = f"`{label}` is a second {category.word} label beside `{kept}`."
            hint = "Keep one." if label in legal and label != kept else "Remove it."
            yield Finding("label-repeated", message, here, hint=hint)
        elif fault := label_fault(label):
            yield replace(fault, path=here)
        elif strip_hidden(label) != label or not label.replace("\u200d", "").isprintable():
            yield Finding("label-unknown", "A label contains invisible characters.", here, hint="Remove them.")
        elif category and legal and label not in KNOWN_NAMES:  # without a legal one, `check_allowed` has a finding
            hint = did_you_mean(label, legal) or f"Use {_choice(legal)}."
            yield Finding("label-unknown", f"Unknown {category.word} label `{label}`.", here, hint=hint)


@cache
def _legal_names(category: Category, kind: ItemKind | None) -> tuple[str, ...]:
    return tuple(sorted(CREATION_RULES[kind][category] if kind else in_category([*KNOWN_NAMES], category)))


def _repeated_labels(labels: Sequence[str], kind: ItemKind | None) -> dict[int, str]:
    """Return the positions of labels beside another one of their category, with that: the first legal one if any."""
    found, by_category = dict[int, str](), dict[Category, list[int]]()
    for i, label in enumerate(labels):
        if (category := category_of(label)) and _legal_names(category, kind):
            by_category.setdefault(category, []).append(i)
    for category, own in by_category.items():
        kept = next((i for i in own if labels[i] in _legal_names(category, kind)), own[0])
        found |= {i: labels[kept] for i in own if i != kept}
    return found
