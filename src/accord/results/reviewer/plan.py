"""Plan a review from facts and state; an operation that GitHub refuses changes the state, and all is planned again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from accord.core.errors import BrokenContract, Refused, sentence
from accord.core.findings import Finding, pointer, warning
from accord.github.markers import REVIEW, find_markers
from accord.github.models import InlineComment, NewReview
from accord.results.operations import MoveWorkItem, Operation, OperationStatus, adopted_if, move_operation
from accord.results.reviewer.facts import TARGETS
from accord.results.reviewer.placement import (
    COMMENT_ONLY,
    EVENTS,
    Placement,
    ReviewMarks,
    bodies,
    file_comment,
    place_comments,
)
from accord.results.status import StatusFacts, plan_move

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.github.models import NewReview, Review
    from accord.results.reviewer.facts import ReviewFacts
    from accord.results.reviewer.placement import Note
    from accord.results.status import StatusMove


@dataclass(frozen=True, slots=True)
class DeletePending(Operation):
    """Delete a review of ours that was never submitted and blocks this one."""

    op: ClassVar[str] = "delete-pending-review"
    review: Review


@dataclass(frozen=True, slots=True)
class PostReview(Operation):
    """Post the review with all its inline comments in one request."""

    op: ClassVar[str] = "post-review"
    is_content: ClassVar[bool] = True
    review: NewReview


@dataclass(frozen=True, slots=True)
class CommentOnFile(Operation):
    """Post a comment on a file as a whole."""

    op: ClassVar[str] = "comment-on-file"
    is_content: ClassVar[bool] = True
    note: Note
    path: str
    body: str


@dataclass(frozen=True, slots=True)
class AmendReview(Operation):
    """Add comments to the body of the posted review."""

    op: ClassVar[str] = "amend-review"
    body: str


@dataclass(frozen=True, slots=True)
class FollowUpComment(Operation):
    """Post a part of the body that does not fit as a comment in the conversation; ``part`` counts from 1."""

    op: ClassVar[str] = "follow-up"
    is_content: ClassVar[bool] = True
    part: int
    body: str


@dataclass(frozen=True, slots=True)
class DismissReview(Operation):
    """Dismiss an earlier review of ours that this one replaces."""

    op: ClassVar[str] = "dismiss-review"
    review: Review


ReviewOperation = (
    DeletePending | PostReview | CommentOnFile | AmendReview | FollowUpComment | DismissReview | MoveWorkItem
)


OPPOSABLE = ("APPROVED", "CHANGES_REQUESTED")
"""The states of reviews that can be dismissed; GitHub refuses all others with 422."""


@dataclass(frozen=True)
class ReviewState:
    """How far a review is: the posted ``review``, None before, and whether its body is stale.

    ``done`` has the operations of this run by kind and key; ``failed`` those that GitHub refused without an effect on
    others. ``marks`` is None for a posted review whose marker is gone.
    """

    marks: ReviewMarks | None
    review: Review | None
    is_stale: bool = False
    done: frozenset[tuple[str, str]] = frozenset()
    failed: frozenset[tuple[str, str]] = frozenset()
    findings: tuple[Finding, ...] = ()

    def status_of(self, operation: ReviewOperation) -> OperationStatus | None:
        """Return how an operation ended, in this run or before it; None while it is to do."""
        name = (operation.op, operation.key)
        if name in self.done:
            return OperationStatus.DONE
        return OperationStatus.FAILED if name in self.failed else operation.found


def initial_state(facts: ReviewFacts) -> ReviewState:
    """Return the state from which this run goes on: that of an earlier run, or nothing posted."""
    if facts.mine:
        return ReviewState(facts.marks, facts.mine)
    verdict = facts.draft.verdict
    findings: tuple[Finding, ...] = ()
    if facts.pull.author.lower() == facts.identity.login.lower():
        verdict, findings = (
            COMMENT_ONLY,
            (_as_comment("GitHub does not let you approve your own pull request or request changes on it."),),
        )
    return ReviewState(ReviewMarks(verdict, place_comments(facts.draft.notes, facts.anchors)), None, findings=findings)


def _as_comment(reason: str, hint: str = "") -> Finding:
    """Return the warning that the verdict is in the review's text and in the label, but not in GitHub's own field."""
    message = f"{reason} The review is posted as a comment."
    return warning("verdict-as-comment", message, pointer("review", "verdict"), hint=hint)


def without_verdict(state: ReviewState, refused: Refused) -> ReviewState:
    """Fall back to a comment after GitHub refused an approval or a request for changes."""
    marks = replace(_marks(state), verdict=COMMENT_ONLY)
    return replace(state, marks=marks, findings=(*state.findings, _as_comment(sentence(refused.message), refused.hint)))


def without_anchors(state: ReviewState, reason: str) -> ReviewState:
    """Move all inline comments into the body after GitHub refused the review for a line without naming it."""
    places = tuple(Placement.BODY if place is Placement.INLINE else place for place in _marks(state).places)
    message = f"No comment could be posted on its line, so they are in the review's body. {reason}"
    finding = warning("anchors-refused", message, pointer("review", "comments"))
    return replace(state, marks=ReviewMarks(_marks(state).verdict, places), findings=(*state.findings, finding))


def without_file(state: ReviewState, note: Note, reason: str) -> ReviewState:
    """Move a comment into the body after GitHub refused it on its file."""
    places = tuple(Placement.BODY if at == note.at else place for at, place in enumerate(_marks(state).places))
    message = f"The comment could not be posted on its file, so it is in the review's body. {reason}"
    finding = warning("anchors-refused", message, pointer("review", "comments", note.at))
    marks = ReviewMarks(_marks(state).verdict, places)
    return replace(state, marks=marks, is_stale=True, findings=(*state.findings, finding))


def plan_findings(facts: ReviewFacts) -> Iterator[Finding]:
    """Return the reasons why operations are left out."""
    if facts.is_superseded:
        message = "A later review of ours replaced this one, so it changes nothing."
        yield warning("review-superseded", message)
    elif not facts.may_dismiss and any(review.state in OPPOSABLE for review in facts.standing):
        message = f"{facts.identity.login} has no write access, so earlier reviews are not dismissed."
        yield warning("not-dismissed", message)
    _, finding = planned_move(facts)
    if finding:
        yield finding


def planned_move(facts: ReviewFacts) -> tuple[StatusMove | None, Finding | None]:
    """Plan the move of the work item. One in another status than review stays, and a finding says so."""
    if facts.item is None:
        return None, None
    number, target = facts.item.number, TARGETS[facts.draft.verdict]
    try:
        move = plan_move(facts.item, target, facts.item_facts or StatusFacts())
    except BrokenContract as broken:
        return None, warning("status-not-review", f"{broken.message} Its status label stays unchanged.")
    if move.source not in ("review", target):
        message = f"#{number} is in {move.source}, not in review. Its status label stays unchanged."
        return None, warning("status-not-review", message)
    if move.is_change and target == "approved" and facts.draft.commit != facts.pull.head_sha:
        read, head = facts.draft.commit[:12], facts.pull.head_sha[:12]
        pull = facts.pull.number
        message = f"#{number} is not approved: the review is of {read}, but the head of #{pull} is {head} now."
        return None, warning("head-moved", message)
    return move, None


def require_allowed(facts: ReviewFacts) -> None:
    """Raise Refused for what GitHub would refuse part-way, such as a second pending review of one person."""
    pending = facts.pending
    if pending and facts.mine is None and not find_markers(pending.body, REVIEW):
        raise Refused(
            f"{facts.identity.login} has a pending review on #{facts.pull.number}, and GitHub allows only one.",
            hint=f"Submit or discard it first: {pending.url}",
        )
    move, _ = planned_move(facts)
    if move and move.is_change and not facts.may_label:
        raise Refused(
            f"{facts.identity.login} may not label issues here.",
            hint="Use a token of a person with the role Triage or higher.",
        )


def plan_operations(facts: ReviewFacts, state: ReviewState) -> list[ReviewOperation]:
    """Return all operations in order, with how each ended so far."""
    return [replace(operation, found=state.status_of(operation)) for operation in _planned(facts, state)]


def _planned(facts: ReviewFacts, state: ReviewState) -> Iterator[ReviewOperation]:
    """Plan all operations, each with how an earlier run ended it."""
    if facts.pending and not facts.mine:
        yield DeletePending(f"review {facts.pending.id}", None, facts.pending)
    yield PostReview("review", adopted_if(state.review is not None), _new_review(facts, state))
    if not facts.is_superseded:
        if state.marks:
            yield from _comments(facts, state)
        for review in facts.standing:
            if review.state in OPPOSABLE and facts.may_dismiss:
                yield DismissReview(f"review {review.id}", None, review)
    move, _ = planned_move(facts)
    if move:
        yield move_operation(move)


def _comments(facts: ReviewFacts, state: ReviewState) -> Iterator[ReviewOperation]:
    """Plan what follows the posted review: comments on files, an amended body, follow-ups."""
    draft, marks = facts.draft, _marks(state)
    for note, place in zip(draft.notes, marks.places, strict=True):
        if place is Placement.FILE:
            anchor = facts.anchors.find(note.path, None) if facts.anchors else None
            path = anchor.path if anchor else note.path
            key, found = f"comment {note.at + 1} on {note.name}", adopted_if(note.at in facts.on_files)
            yield CommentOnFile(key, found, note, path, file_comment(draft, note, path))
    body, *rest = bodies(draft, marks, state.review.url if state.review else "")
    amend = AmendReview("review", None, body)
    if state.is_stale or state.status_of(amend):
        yield amend
    for part, text in enumerate(rest, 1):
        yield FollowUpComment(f"follow-up {part}", adopted_if(part in facts.parts), part, text)


def _new_review(facts: ReviewFacts, state: ReviewState) -> NewReview:
    marks = state.marks or ReviewMarks(facts.draft.verdict, ())
    if state.review:
        return NewReview(EVENTS[marks.verdict], state.review.body, facts.draft.commit, ())
    comments = []
    for note, place in zip(facts.draft.notes, marks.places, strict=True):
        anchor = facts.anchors.find(note.path, note.line) if facts.anchors else None
        if place is Placement.INLINE and anchor and anchor.line is not None:
            comments.append(InlineComment(anchor.path, anchor.line, anchor.side, note.text))
    body = bodies(facts.draft, marks, "")[0]
    return NewReview(EVENTS[marks.verdict], body, facts.draft.commit, tuple(comments))


def _marks(state: ReviewState) -> ReviewMarks:
    if state.marks is None:
        raise ValueError("the review has no marker, so its comments have no placements")
    return state.marks
