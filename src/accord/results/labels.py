"""The label taxonomy of work items: four categories, and which labels of each a new item carries."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class CreationRule:
    """Exactly one of these labels of a category; where ``allowed`` is empty, no label of the category at all."""

    category: Category
    allowed: tuple[str, ...]

    @property
    def word(self) -> str:
        """The word for the category in messages."""
        return self.category.name.lower()


CREATION_RULES: dict[ItemKind, tuple[CreationRule, ...]] = {
    ItemKind.TASK: (
        CreationRule(Category.TYPE, (ItemKind.TASK,)),
        CreationRule(Category.STATUS, (STATUS_AT_CREATION,)),
        CreationRule(Category.PRIORITY, _PRIORITIES),
        CreationRule(Category.COMPLEXITY, _COMPLEXITIES),
    ),
    ItemKind.REFINEMENT: (
        CreationRule(Category.TYPE, (ItemKind.REFINEMENT,)),
        CreationRule(Category.STATUS, (STATUS_AT_CREATION,)),
        CreationRule(Category.PRIORITY, _PRIORITIES[:2]),
        CreationRule(Category.COMPLEXITY, ()),
    ),
}
"""The labels of a new work item; ``accord.results.planner.rules.check_labels`` applies these rules."""

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
    """Replace an item's labels except type and status: an update is not a status transition."""
    kept = {Category.TYPE, Category.STATUS}
    return distinct(
        [
            *(label for label in issue.labels if category_of(label) in kept),
            *(label for label in wanted if category_of(label) not in kept),
        ]
    )


def distinct(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the first of each label; GitHub ignores case when it compares them."""
    first: dict[str, str] = {}
    for label in labels:
        first.setdefault(label.lower(), label)
    return tuple(first.values())
