"""The operations of an implementor's result as data: a branch, a pull request, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from accord.results.operations import MoveWorkItem, Operation

if TYPE_CHECKING:
    from accord.github.comments import Comment
    from accord.github.pull_port import Pull


@dataclass(frozen=True, slots=True)
class PushBranch(Operation):
    """Put a commit on the work item's branch, provided that still ends at ``expected`` (empty: is not there)."""

    op: ClassVar[str] = "push-branch"
    branch: str
    commit: str
    expected: str


@dataclass(frozen=True, slots=True)
class CreateRevision(Operation):
    """Open the pull request."""

    op: ClassVar[str] = "create-revision"
    branch: str
    base: str
    title: str
    body: str
    is_draft: bool


@dataclass(frozen=True, slots=True)
class UpdateRevision(Operation):
    """Bring the open pull request up to date."""

    op: ClassVar[str] = "update-revision"
    pull: Pull
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class LabelRevision(Operation):
    """Ask for a person on the pull request."""

    op: ClassVar[str] = "label-revision"
    label: str


@dataclass(frozen=True, slots=True)
class WriteComment(Operation):
    """Say on the work item why it is not done, in the one comment that is ours."""

    op: ClassVar[str] = "comment-work-item"
    number: int
    comment: Comment | None
    body: str


ImplementOperation = PushBranch | CreateRevision | UpdateRevision | LabelRevision | WriteComment | MoveWorkItem
