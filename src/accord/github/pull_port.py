"""Pull requests and reviews as the rest of accord sees them: types of our own, and the operations that somebody uses.

Implemented by ``accord.github.pulls`` and ``accord.github.reviews``, which the adapter puts together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from accord.kernel.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from accord.github.comments import Comment


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request. ``head_repository`` is the owner/name its branch lives in; empty when that is gone.

    ``updated_at`` is when anything last happened to it, a push or else.
    ``merge_commit`` is what came of it in its base, empty until it is merged.
    """

    number: int
    url: str
    title: str
    body: str
    state: str
    is_merged: bool
    is_draft: bool
    is_locked: bool
    author: str
    labels: tuple[str, ...]
    head_branch: str
    head_sha: str
    head_repository: str
    base_branch: str
    base_sha: str
    merge_commit: str = ""
    updated_at: datetime | None = None


class PullPort(Protocol):
    """Pull requests of one repository. Every method may raise Refused or Stopped."""

    def pull(self, number: int) -> Pull | None:
        """Read one pull request; None when there is none of that number."""
        ...

    def pulls_from(self, branch: str, *, state: str = "all") -> list[Pull]:
        """List the pull requests whose head is this branch of this repository, newest first."""
        ...

    def open_pulls(self) -> Iterator[Pull]:
        """List the open pull requests, oldest first, page by page as they are consumed."""
        ...

    def create_pull(self, title: str, body: str, head: str, base: str, *, draft: bool) -> Pull:
        """Open a pull request. Raises AnswerLost when it is unknown whether it was opened."""
        ...

    def change_pull(self, number: int, *, title: str, body: str) -> Pull:
        """Change title and body in one request; safe to repeat."""
        ...

    def change_body(self, number: int, *, was: str, body: str) -> bool:
        """Replace a body that still is what it was; False where somebody else changed it. Safe to repeat."""
        ...

    def add_labels(self, number: int, labels: Sequence[str]) -> None:
        """Add labels to an issue or pull request; those it has stay, so it is safe to repeat."""
        ...


@dataclass(frozen=True, slots=True)
class PullFile:
    """A file of a diff. ``patch`` is its hunks, None where GitHub shows none: binary, too large, or not changed.

    ``status`` is GitHub's word (added, removed, modified, renamed, …), ``previous_path`` what it was called before.
    """

    path: str
    status: str
    previous_path: str
    patch: str | None


@dataclass(frozen=True, slots=True)
class Review:
    """A review as GitHub lists it. ``state`` is PENDING, COMMENTED, APPROVED, CHANGES_REQUESTED or DISMISSED."""

    id: int
    url: str
    author: str
    author_is_bot: bool
    body: str
    state: str
    commit: str


@dataclass(frozen=True, slots=True)
class InlineComment:
    """A comment on one line of a diff; ``side`` is RIGHT for the new version of the file, LEFT for the old one."""

    path: str
    line: int
    side: str
    body: str


@dataclass(frozen=True, slots=True)
class NewReview:
    """A review to post in one request. ``event`` is APPROVE, REQUEST_CHANGES or COMMENT."""

    event: str
    body: str
    commit: str
    comments: tuple[InlineComment, ...]


class AnchorRefused(Refused):
    """A comment has no place in the diff. GitHub does not say which one, and keeps nothing of the review."""


class VerdictRefused(Refused):
    """Our identity may not approve or request changes here; it may still comment."""


class ReviewPort(Protocol):
    """Reviews of pull requests of one repository. Every method may raise Refused or Stopped."""

    def files(self, number: int) -> list[PullFile]:
        """List the files of a pull request at its head; see ``limits.PULL_FILES``."""
        ...

    def files_between(self, base: str, commit: str) -> list[PullFile]:
        """List the files that changed since ``commit`` left ``base``; see ``limits.COMPARED_FILES``."""
        ...

    def reviews(self, number: int) -> list[Review]:
        """List reviews, oldest first; pending ones only where they are our own."""
        ...

    def create_review(self, number: int, review: NewReview) -> Review:
        """Post a review with its inline comments, all or nothing.

        Raises AnswerLost when it is unknown whether it was posted, AnchorRefused, VerdictRefused.
        """
        ...

    def change_review(self, number: int, review_id: int, body: str) -> Review:
        """Replace the body of a review; safe to repeat."""
        ...

    def dismiss_review(self, number: int, review_id: int, message: str) -> None:
        """Dismiss a review that approves or requests changes. GitHub refuses to do it a second time."""
        ...

    def delete_pending_review(self, number: int, review_id: int) -> None:
        """Delete a review that was not submitted; one that is gone counts as deleted."""
        ...

    def comment_on_file(self, number: int, commit: str, path: str, body: str) -> str:
        """Comment on a file as a whole; return the URL. Raises AnswerLost, AnchorRefused."""
        ...

    def review_comments(self, number: int) -> Iterator[Comment]:
        """List the comments on lines and files, oldest first."""
        ...
