"""From a checked reviewer result, the facts and what was done so far to operations. Pure.

The order is the contract's: post, what hangs on it, dismiss the old, the label last. Where GitHub refuses a step, the
state takes the next step of the ladder and everything after is planned again: nothing is decided while applying.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.github.pull_port import InlineComment, NewReview
from accord.kernel.findings import Finding, pointer, warning
from accord.results.operations import MoveWorkItem, Status
from accord.results.review_layout import Marks, Place, bodies, event_of, file_comment, place_notes
from accord.results.review_operations import (
    AmendReview,
    CommentOnFile,
    DeletePending,
    DismissReview,
    FollowUp,
    Operation,
    PostReview,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accord.github.pull_port import Review
    from accord.results.review_facts import Facts
    from accord.results.review_layout import Note

OPPOSABLE = ("APPROVED", "CHANGES_REQUESTED")
"""The states that GitHub lets anybody dismiss; all others are refused with 422."""

COMMENT_ONLY = "comment"


@dataclass(frozen=True)
class State:
    """How far a review is. ``review`` is the posted one, None before; ``is_stale`` when its body lacks something.

    ``done`` names the operations that this run carried out, by kind and key; ``failed`` those that GitHub refused and
    that nothing else depends on.
    """

    marks: Marks | None
    review: Review | None
    is_stale: bool = False
    done: frozenset[tuple[str, str]] = frozenset()
    failed: frozenset[tuple[str, str]] = frozenset()
    findings: tuple[Finding, ...] = ()


def start(facts: Facts) -> State:
    """Begin where an earlier run stopped, or before anything is posted."""
    if facts.mine:
        return State(facts.marks, facts.mine)
    verdict = facts.draft.verdict
    findings: tuple[Finding, ...] = ()
    if facts.pull.author.lower() == facts.identity.login.lower():
        verdict, findings = COMMENT_ONLY, (as_comment("GitHub takes no verdict on one's own pull request"),)
    return State(Marks(verdict, place_notes(facts.draft.notes, facts.anchors)), None, findings=findings)


def as_comment(reason: str) -> Finding:
    """Say that the verdict stands in the review's text and in the label, but not in GitHub's own field."""
    return warning("verdict-as-comment", f"{reason}; the review is posted as a comment.", pointer("review", "verdict"))


def without_verdict(state: State, reason: str) -> State:
    """Take the next step after GitHub refused to let us approve or request changes."""
    marks = replace(_marks(state), verdict=COMMENT_ONLY)
    return replace(state, marks=marks, findings=(*state.findings, as_comment(reason)))


def without_anchors(state: State, reason: str) -> State:
    """Take the next step after GitHub refused the review for a line of the diff; it does not say which.

    Trying them one by one would cost a request each, so all of them go into the body, with path and line.
    """
    places = tuple(Place.BODY if place is Place.INLINE else place for place in _marks(state).places)
    message = f"No comment could be posted on its line, so they are in the review's body. {reason}"
    finding = warning("anchors-refused", message, pointer("review", "comments"))
    return replace(state, marks=Marks(_marks(state).verdict, places), findings=(*state.findings, finding))


def without_file(state: State, note: Note, reason: str) -> State:
    """Take the next step after GitHub refused a comment on a file: its text is added to the body."""
    places = tuple(Place.BODY if at == note.at else place for at, place in enumerate(_marks(state).places))
    message = f"The comment could not be posted on its file, so it is in the review's body. {reason}"
    finding = warning("anchors-refused", message, pointer("review", "comments", note.at))
    marks = Marks(_marks(state).verdict, places)
    return replace(state, marks=marks, is_stale=True, findings=(*state.findings, finding))


def plan_findings(facts: Facts) -> Iterator[Finding]:
    """Say what of the facts keeps operations from being planned."""
    if facts.is_superseded:
        message = "A later review of ours took the place of this one, so nothing is changed any more."
        yield warning("review-superseded", message)
    elif not facts.may_dismiss and any(review.state in OPPOSABLE for review in facts.standing):
        message = f"{facts.identity.login} has no write access, so earlier reviews are not dismissed."
        yield warning("not-dismissed", message)


def plan_operations(facts: Facts, state: State) -> list[Operation]:
    """List all operations in order, those that are done too, each with what became of it so far."""

    def found(operation: type[Operation], key: str, otherwise: Status | None = None) -> Status | None:
        if (operation.op, key) in state.done:
            return Status.DONE
        return Status.FAILED if (operation.op, key) in state.failed else otherwise

    operations: list[Operation] = []
    if facts.pending and not facts.mine:
        operations.append(DeletePending(facts.pending, found(DeletePending, f"review {facts.pending.id}")))
    operations.append(PostReview(_new_review(facts, state), found(PostReview, "review", _adopted(state))))
    if state.marks and not facts.is_superseded:
        operations += _comments(facts, state, found)
    if not facts.is_superseded:
        operations += [
            DismissReview(review, found(DismissReview, f"review {review.id}"))
            for review in facts.standing
            if review.state in OPPOSABLE and facts.may_dismiss
        ]
    if facts.move:
        operation = MoveWorkItem(facts.move, None)
        unchanged = None if facts.move.is_change else Status.SKIPPED
        operations.append(replace(operation, found=found(MoveWorkItem, operation.key, unchanged)))
    return operations


def _comments(
    facts: Facts, state: State, found: Callable[[type[Operation], str, Status | None], Status | None]
) -> Iterator[Operation]:
    """Plan what hangs on the posted review: comments on files, an amended body, follow-ups."""
    draft, marks = facts.draft, _marks(state)
    for note, place in zip(draft.notes, marks.places, strict=True):
        if place is Place.FILE:
            anchor = facts.anchors.find(note.path, None)
            path = anchor.path if anchor else note.path
            operation = CommentOnFile(note, path, file_comment(draft, note, path), None)
            there = Status.ADOPTED if note.at in facts.on_files else None
            yield replace(operation, found=found(CommentOnFile, operation.key, there))
    body, *rest = bodies(draft, marks, state.review.url if state.review else "")
    if state.is_stale or (AmendReview.op, "review") in state.done:
        yield AmendReview(body, None if state.is_stale else Status.DONE)
    for part, text in enumerate(rest, 1):
        follow_up = FollowUp(part, text, None)
        there = Status.ADOPTED if part in facts.parts else None
        yield replace(follow_up, found=found(FollowUp, follow_up.key, there))


def _new_review(facts: Facts, state: State) -> NewReview:
    marks = state.marks or Marks(facts.draft.verdict, ())
    if state.review:
        return NewReview(event_of(marks.verdict), state.review.body, facts.draft.commit, ())
    comments = []
    for note, place in zip(facts.draft.notes, marks.places, strict=True):
        anchor = facts.anchors.find(note.path, note.line)
        if place is Place.INLINE and anchor and anchor.line is not None:
            comments.append(InlineComment(anchor.path, anchor.line, anchor.side, note.text))
    body = bodies(facts.draft, marks, "")[0]
    return NewReview(event_of(marks.verdict), body, facts.draft.commit, tuple(comments))


def _adopted(state: State) -> Status | None:
    return Status.ADOPTED if state.review else None


def _marks(state: State) -> Marks:
    if state.marks is None:
        raise ValueError("a review that does not say where its comments are has no next step")
    return state.marks
