"""Which pull request and which comment are those of a run: by the markers that our own identity left in them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.github.markers import find_markers
from accord.results.implementor.texts import OUTCOME, REVISION, runs_before

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from accord.github.comments import Comment
    from accord.github.port import Identity
    from accord.github.pull_port import Pull


def our_pull(
    pulls: Sequence[Pull], identity: Identity, token: str, commits: Collection[str] = ()
) -> tuple[Pull | None, bool]:
    """Choose the pull request of the branch that this run goes on with; tell whether this run wrote it already.

    An open one comes first. One that this run wrote counts when it was merged, and when a person closed it while it
    had the run's commit (``commits`` are that one and those after it): there is nothing to open again then.
    """
    written = [pull for pull in pulls if _is_of_run(pull, identity, token)]
    still = [pull for pull in pulls if pull.state == "open"]
    if still:
        return next(((pull, True) for pull in still if pull in written), (still[0], False))
    return next(((pull, True) for pull in written if pull.is_merged or pull.head_sha in commits), (None, False))


def is_over(pulls: Sequence[Pull], identity: Identity, token: str, *, has_branch: bool) -> bool:
    """Tell whether this run's pull request was merged, and the branch is gone or another one is open for it."""
    is_merged = any(pull.is_merged and _is_of_run(pull, identity, token) for pull in pulls)
    return is_merged and (not has_branch or any(pull.state == "open" for pull in pulls))


def was_followed(pulls: Sequence[Pull], identity: Identity, token: str) -> bool:
    """Tell whether a later run wrote what the open pull request says, also when it had nothing to commit."""
    ours = (pull for pull in pulls if pull.state == "open" and identity.counts(pull.author))
    return any(token in runs_before(pull.body, REVISION) for pull in ours)


def _is_of_run(pull: Pull, identity: Identity, token: str) -> bool:
    marks = find_markers(pull.body, REVISION) if identity.counts(pull.author) else []
    return any(fields.get("run") == token for fields in marks)


def our_comment(comments: Sequence[Comment], identity: Identity, number: int) -> Comment | None:
    """Find the one comment in which we tell of this work item's outcome."""
    for comment in comments:
        if identity.counts(comment.author) and any(
            fields.get("item") == str(number) for fields in find_markers(comment.body, OUTCOME)
        ):
            return comment
    return None


def is_comment_of(comment: Comment, token: str) -> bool:
    """Tell whether this run wrote the comment's present text."""
    return any(fields.get("run") == token for fields in find_markers(comment.body, OUTCOME))
