"""The operations of a plan as data: items to create, close and update, and what they wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from accord.results.operations import Operation

if TYPE_CHECKING:
    from accord.github.port import Issue


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
