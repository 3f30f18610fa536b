"""The operations of a review as data, small enough to print, to rehearse, and to carry out one by one.

``found`` says what became of an operation so far; None is still to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from accord.results.operations import MoveWorkItem

if TYPE_CHECKING:
    from accord.github.pull_port import NewReview, Review
    from accord.results.operations import Status
    from accord.results.review_layout import Note


@dataclass(frozen=True, slots=True)
class DeletePending:
    """Delete a review of ours that was never submitted and would block this one."""

    op: ClassVar[str] = "delete-pending-review"
    review: Review
    found: Status | None

    @property
    def key(self) -> str:
        """Which review."""
        return f"review {self.review.id}"


@dataclass(frozen=True, slots=True)
class PostReview:
    """Post the review with all its inline comments in one request."""

    op: ClassVar[str] = "post-review"
    review: NewReview
    found: Status | None
    key: str = "review"


@dataclass(frozen=True, slots=True)
class CommentOnFile:
    """Post a comment on a file as a whole."""

    op: ClassVar[str] = "comment-on-file"
    note: Note
    path: str
    body: str
    found: Status | None

    @property
    def key(self) -> str:
        """Which comment of the result, and the file."""
        return f"comment {self.note.at + 1} on {self.note.name}"


@dataclass(frozen=True, slots=True)
class AmendReview:
    """Add to the body of the posted review what found no place elsewhere."""

    op: ClassVar[str] = "amend-review"
    body: str
    found: Status | None
    key: str = "review"


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Post what the body has no room for as a comment in the conversation; ``part`` counts from 1."""

    op: ClassVar[str] = "follow-up"
    part: int
    body: str
    found: Status | None

    @property
    def key(self) -> str:
        """Which part."""
        return f"follow-up {self.part}"


@dataclass(frozen=True, slots=True)
class DismissReview:
    """Dismiss an earlier review of ours that this one takes the place of."""

    op: ClassVar[str] = "dismiss-review"
    review: Review
    found: Status | None

    @property
    def key(self) -> str:
        """Which review."""
        return f"review {self.review.id}"


Operation = DeletePending | PostReview | CommentOnFile | AmendReview | FollowUp | DismissReview | MoveWorkItem
