"""From a checked reviewer result, the facts and what was done so far to operations. Pure.

The order is the contract's: post, what hangs on it, dismiss the old, the label last. Where GitHub refuses a step, the
state takes the next step of the ladder and everything after is planned again: nothing is decided while applying.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from accord.core.errors import BrokenContract, Refused
from accord.core.findings import Finding, pointer, warning
from accord.github.markers import find_markers
from accord.github.models import InlineComment, NewReview
from accord.results.operations import MoveWorkItem, Operation, OperationStatus, adopted, moving
from accord.results.reviewer.facts import TARGETS
from accord.results.reviewer.placement import (
    REVIEW,
    Placement,
    ReviewMarks,
    bodies,
    event_of,
    file_comment,
    place_notes,
)
from accord.results.status import plan_move

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.github.models import NewReview, Review
    from accord.results.reviewer.facts import ReviewFacts
    from accord.results.reviewer.placement import Note
    from accord.results.status import StatusMove


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
class FollowUpComment(Operation):
    """Post what the body has no room for as a comment in the conversation; ``part`` counts from 1."""

    op: ClassVar[str] = "follow-up"
    part: int
    body: str


@dataclass(frozen=True, slots=True)
class DismissReview(Operation):
    """Dismiss an earlier review of ours that this one takes the place of."""

    op: ClassVar[str] = "dismiss-review"
    review: Review


ReviewOperation = (
    DeletePending | PostReview | CommentOnFile | AmendReview | FollowUpComment | DismissReview | MoveWorkItem
)


OPPOSABLE = ("APPROVED", "CHANGES_REQUESTED")
"""The states that GitHub lets anybody dismiss; all others are refused with 422."""

COMMENT_ONLY = "comment"


@dataclass(frozen=True)
class ReviewState:
    """How far a review is. ``review`` is the posted one, None before; ``is_stale`` when its body lacks something.

    ``done`` names the operations that this run carried out, by kind and key; ``failed`` those that GitHub refused and
    that nothing else depends on.
    """

    marks: ReviewMarks | None
    review: Review | None
    is_stale: bool = False
    done: frozenset[tuple[str, str]] = frozenset()
    failed: frozenset[tuple[str, str]] = frozenset()
    findings: tuple[Finding, ...] = ()

    def became(self, operation: ReviewOperation) -> OperationStatus | None:
        """Return what became of an operation, in this run or before it; None where it is to do."""
        name = (operation.op, operation.key)
        if name in self.done:
            return OperationStatus.DONE
        return OperationStatus.FAILED if name in self.failed else operation.found


def start(facts: ReviewFacts) -> ReviewState:
    """Begin where an earlier run stopped, or before anything is posted."""
    if facts.mine:
        return ReviewState(facts.marks, facts.mine)
    verdict = facts.draft.verdict
    findings: tuple[Finding, ...] = ()
    if facts.pull.author.lower() == facts.identity.login.lower():
        verdict, findings = COMMENT_ONLY, (as_comment("GitHub takes no verdict on one's own pull request"),)
    return ReviewState(ReviewMarks(verdict, place_notes(facts.draft.notes, facts.anchors)), None, findings=findings)


def as_comment(reason: str) -> Finding:
    """Say that the verdict stands in the review's text and in the label, but not in GitHub's own field."""
    return warning("verdict-as-comment", f"{reason}; the review is posted as a comment.", pointer("review", "verdict"))


def without_verdict(state: ReviewState, reason: str) -> ReviewState:
    """Take the next step after GitHub refused to let us approve or request changes."""
    marks = replace(_marks(state), verdict=COMMENT_ONLY)
    return replace(state, marks=marks, findings=(*state.findings, as_comment(reason)))


def without_anchors(state: ReviewState, reason: str) -> ReviewState:
    """Take the next step after GitHub refused the review for a line of the diff; it does not say which.

    Trying them one by one would cost a request each, so all of them go into the body, with path and line.
    """
    places = tuple(Placement.BODY if place is Placement.INLINE else place for place in _marks(state).places)
    message = f"No comment could be posted on its line, so they are in the review's body. {reason}"
    finding = warning("anchors-refused", message, pointer("review", "comments"))
    return replace(state, marks=ReviewMarks(_marks(state).verdict, places), findings=(*state.findings, finding))


def without_file(state: ReviewState, note: Note, reason: str) -> ReviewState:
    """Take the next step after GitHub refused a comment on a file: its text is added to the body."""
    places = tuple(Placement.BODY if at == note.at else place for at, place in enumerate(_marks(state).places))
    message = f"The comment could not be posted on its file, so it is in the review's body. {reason}"
    finding = warning("anchors-refused", message, pointer("review", "comments", note.at))
    marks = ReviewMarks(_marks(state).verdict, places)
    return replace(state, marks=marks, is_stale=True, findings=(*state.findings, finding))


def plan_findings(facts: ReviewFacts) -> Iterator[Finding]:
    """Say what of the facts keeps operations from being planned."""
    if facts.is_superseded:
        message = "A later review of ours took the place of this one, so nothing is changed any more."
        yield warning("review-superseded", message)
    elif not facts.may_dismiss and any(review.state in OPPOSABLE for review in facts.standing):
        message = f"{facts.identity.login} has no write access, so earlier reviews are not dismissed."
        yield warning("not-dismissed", message)
    _, finding = planned_move(facts)
    if finding:
        yield finding


def planned_move(facts: ReviewFacts) -> tuple[StatusMove | None, Finding | None]:
    """Plan the move of the work item. Only one that is in review, or there already, is touched; all else is said."""
    if facts.item is None:
        return None, None
    number, target = facts.item.number, TARGETS[facts.draft.verdict]
    try:
        move = plan_move(facts.item, target, facts.known)
    except BrokenContract as broken:
        return None, warning("status-not-review", f"{broken.message} Its status label is left as it is.")
    if move.source not in ("review", target):
        message = f"#{number} is in {move.source}, not in review. Its status label is left as it is."
        return None, warning("status-not-review", message)
    if move.is_change and target == "approved" and facts.draft.commit != facts.pull.head_sha:
        read, head = facts.draft.commit[:12], facts.pull.head_sha[:12]
        message = f"#{number} is not approved: {read} was read, and the head of #{facts.pull.number} is {head} by now."
        return None, warning("head-moved", message)
    return move, None


def require_allowed(facts: ReviewFacts) -> None:
    """Raise Refused for what GitHub would refuse part-way.

    It allows one pending review a person; one that is not accord's is theirs to submit.
    """
    pending = facts.pending
    if pending and facts.mine is None and not find_markers(pending.body, REVIEW):
        raise Refused(
            f"{facts.identity.login} has a pending review on #{facts.pull.number}, and GitHub takes no second one.",
            hint=f"Submit or discard it first: {pending.url}",
        )
    move, _ = planned_move(facts)
    if move and move.is_change and not facts.may_label:
        raise Refused(
            f"{facts.identity.login} may not label issues here.",
            hint="Use a token of somebody with the role Triage or more.",
        )


def plan_operations(facts: ReviewFacts, state: ReviewState) -> list[ReviewOperation]:
    """List all operations in order, those that are done too, each with what became of it so far."""
    return [replace(operation, found=state.became(operation)) for operation in _planned(facts, state)]


def _planned(facts: ReviewFacts, state: ReviewState) -> Iterator[ReviewOperation]:
    """Plan all operations, each with what an earlier run made of it."""
    if facts.pending and not facts.mine:
        yield DeletePending(f"review {facts.pending.id}", None, facts.pending)
    yield PostReview("review", adopted(state.review is not None), _new_review(facts, state))
    if not facts.is_superseded:
        if state.marks:
            yield from _comments(facts, state)
        for review in facts.standing:
            if review.state in OPPOSABLE and facts.may_dismiss:
                yield DismissReview(f"review {review.id}", None, review)
    move, _ = planned_move(facts)
    if move:
        yield moving(move)


def _comments(facts: ReviewFacts, state: ReviewState) -> Iterator[ReviewOperation]:
    """Plan what hangs on the posted review: comments on files, an amended body, follow-ups."""
    draft, marks = facts.draft, _marks(state)
    for note, place in zip(draft.notes, marks.places, strict=True):
        if place is Placement.FILE:
            anchor = facts.anchors.find(note.path, None)
            path = anchor.path if anchor else note.path
            found = adopted(note.at in facts.on_files)
            yield CommentOnFile(
                f"comment {note.at + 1} on {note.name}", found, note, path, file_comment(draft, note, path)
            )
    body, *rest = bodies(draft, marks, state.review.url if state.review else "")
    amend = AmendReview("review", None, body)
    if state.is_stale or state.became(amend):
        yield amend
    for part, text in enumerate(rest, 1):
        yield FollowUpComment(f"follow-up {part}", adopted(part in facts.parts), part, text)


def _new_review(facts: ReviewFacts, state: ReviewState) -> NewReview:
    marks = state.marks or ReviewMarks(facts.draft.verdict, ())
    if state.review:
        return NewReview(event_of(marks.verdict), state.review.body, facts.draft.commit, ())
    comments = []
    for note, place in zip(facts.draft.notes, marks.places, strict=True):
        anchor = facts.anchors.find(note.path, note.line)
        if place is Placement.INLINE and anchor and anchor.line is not None:
            comments.append(InlineComment(anchor.path, anchor.line, anchor.side, note.text))
    body = bodies(facts.draft, marks, "")[0]
    return NewReview(event_of(marks.verdict), body, facts.draft.commit, tuple(comments))


def _marks(state: ReviewState) -> ReviewMarks:
    if state.marks is None:
        raise ValueError("a review that does not say where its comments are has no next step")
    return state.marks
