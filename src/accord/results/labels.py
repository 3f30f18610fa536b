"""The label taxonomy of work items: four categories, and which labels of each a new item carries."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.github.models import Issue


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


def status_of(labels: Sequence[str]) -> str | None:
    """Return the status that the labels give, without its prefix; None without one."""
    statuses = in_category(labels, Category.STATUS)
    return statuses[0].partition(":")[2] if statuses else None


def labels_after_update(issue: Issue, wanted: Sequence[str]) -> tuple[str, ...]:
    """Replace an item's labels, except type and status, and those of categories that the list leaves out."""
    kept = {Category.TYPE, Category.STATUS}
    rest = [label for label in wanted if category_of(label) not in kept]
    kept |= {category for category in Category if not in_category(rest, category)}
    old = [label for label in issue.labels if category_of(label) in kept]
    return distinct([*old, *rest])


def distinct(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the first of each label; GitHub ignores case when it compares them."""
    first: dict[str, str] = {}
    for label in labels:
        first.setdefault(label.lower(), label)
    return tuple(first.values())
