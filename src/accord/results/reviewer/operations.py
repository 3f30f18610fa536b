"""The operations of a review as data, small enough to print, to rehearse, and to carry out one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from accord.results.operations import MoveWorkItem, Operation

if TYPE_CHECKING:
    from accord.github.pull_port import NewReview, Review
    from accord.results.reviewer.layout import Note


@dataclass(frozen=True, slots=True)
class DeletePending(Operation):
    """Delete a review of ours that was never submitted and would block this one."""

    op: ClassVar[str] = "delete-pending-review"
    review: Review


@dataclass(frozen=True, slots=True)
class PostReview(Operation):
    """Post the review with all its inline comments in one request."""

    op: ClassVar[str] = "post-review"
    review: NewReview


@dataclass(frozen=True, slots=True)
class CommentOnFile(Operation):
    """Post a comment on a file as a whole."""

    op: ClassVar[str] = "comment-on-file"
    note: Note
    path: str
    body: str


@dataclass(frozen=True, slots=True)
class AmendReview(Operation):
    """Add to the body of the posted review what found no place elsewhere."""

    op: ClassVar[str] = "amend-review"
    body: str


@dataclass(frozen=True, slots=True)
class FollowUp(Operation):
    """Post what the body has no room for as a comment in the conversation; ``part`` counts from 1."""

    op: ClassVar[str] = "follow-up"
    part: int
    body: str


@dataclass(frozen=True, slots=True)
class DismissReview(Operation):
    """Dismiss an earlier review of ours that this one takes the place of."""

    op: ClassVar[str] = "dismiss-review"
    review: Review


ReviewOperation = DeletePending | PostReview | CommentOnFile | AmendReview | FollowUp | DismissReview | MoveWorkItem
