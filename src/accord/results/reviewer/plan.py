"""Plan a review from facts and state; an operation that GitHub refuses changes the state, and all is planned again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from accord.core.errors import BrokenContract, Refused
from accord.core.findings import Finding, pointer, sentence, warning
from accord.core.frozen import Frozen
from accord.core.suggest import correct_spelling
from accord.engine.operations import LedgerEntry, Operation, OperationStatus, adopted_if, skipped_if
from accord.engine.owner import is_over, pull_state
from accord.github.models import InlineComment, NewReview, Review
from accord.results.reviewer.facts import MOVE_ITEM, READ_HEAD, TARGETS, ReviewFacts
from accord.results.reviewer.placement import (
    COMMENT_ONLY,
    EVENTS,
    Anchors,
    Placement,
    ReviewMarks,
    bodies,
    earlier_list,
    file_comment,
    found_reply,
    place_comments,
    posted_earlier_list,
)
from accord.results.reviewer.threads import Done, Note, OwnThread, gone_reply
from accord.results.status import MoveWorkItem, StatusFacts, plan_move
from accord.text.markers import REVIEW, find_markers


class DeletePending(Operation, op="delete-pending-review"):
    """Delete a review of ours that was never submitted and blocks this one."""

    review: Review


class PostReview(Operation, op="post-review", is_content=True):
    """Post the review with all its inline comments in one request."""

    review: NewReview


class CommentOnFile(Operation, op="comment-on-file", is_content=True):
    """Post a comment on a file as a whole."""

    note: Note
    path: str
    body: str


class AmendReview(Operation, op="amend-review"):
    """Add comments to the body of the posted review."""

    body: str


class FollowUpComment(Operation, op="follow-up", is_content=True):
    """Post a part of the body that does not fit as a comment in the conversation; ``part`` counts from 1."""

    part: int
    body: str


class DismissReview(Operation, op="dismiss-review"):
    """Dismiss an earlier review of ours that this one replaces."""

    review: Review


class ResolveThread(Operation, op="resolve-thread"):
    """Resolve a thread whose finding is gone."""

    thread: OwnThread


class ReplyToThread(Operation, op="reply-to-thread", is_content=True):
    """Say in a thread that its finding is gone, or post the new words with which ``note`` found it again."""

    thread: OwnThread
    body: str
    note: Note | None = None


ReviewOperation = (
    DeletePending
    | PostReview
    | CommentOnFile
    | AmendReview
    | FollowUpComment
    | DismissReview
    | ResolveThread
    | ReplyToThread
    | MoveWorkItem
)


Ended: TypeAlias = "Mapping[tuple[str, str], OperationStatus]"
"""How operations of this run ended, by kind and key."""

OPPOSABLE = ("APPROVED", "CHANGES_REQUESTED")
"""The states of reviews that can be dismissed; GitHub refuses all others with 422."""

_NOTHING = "Nothing is left to do."


class ReviewState(Frozen):
    """How far a review is."""

    marks: ReviewMarks | None  # None for a posted review whose marker is gone
    review: Review | None  # the posted one
    is_stale: bool = False  # whether its body must change
    may_resolve: bool = True  # until GitHub refuses to resolve a thread
    findings: tuple[Finding, ...] = ()

    @property
    def known_marks(self) -> ReviewMarks:
        """The marks of a review that has them. Raises ValueError."""
        if self.marks is None:
            raise ValueError("the review has no marker, so its comments have no placements")
        return self.marks

    def with_finding(self, finding: Finding, **changes: Any) -> ReviewState:
        """Return the state after what a finding reports."""
        return replace(self, findings=(*self.findings, finding), **changes)


def initial_state(facts: ReviewFacts) -> ReviewState:
    """Return the state from which this run goes on: that of an earlier run, or nothing posted."""
    if facts.mine:
        return ReviewState(facts.marks, facts.mine)
    places = place_comments(facts.draft.notes, facts.anchors, facts.matches, facts.most)
    gone = tuple(thread.comment_id for thread in facts.gone)
    if facts.repeated:
        verdict = next(fields.get("verdict", "") for fields in find_markers(facts.repeated.body, REVIEW))
        return ReviewState(ReviewMarks(verdict, places, gone), facts.repeated)
    state = ReviewState(ReviewMarks(facts.draft.verdict, places, gone), None)
    is_own = facts.pull.author.lower() == facts.identity.login.lower()
    reason = "GitHub does not let you approve your own pull request or request changes on it."
    if is_own or facts.no_approval:
        return without_verdict(state, reason if is_own else facts.no_approval)
    is_advice = facts.draft.verdict == "approve" and facts.approvals == "comment"
    return replace(state, marks=replace(state.known_marks, verdict=COMMENT_ONLY)) if is_advice else state


def without_verdict(state: ReviewState, reason: str, hint: str = "") -> ReviewState:
    """Post a comment where GitHub accepts no verdict: it is in the text and in the label, not in GitHub's own field."""
    message = f"{sentence(reason)} The review is posted as a comment."
    hint = hint or "Let a person give the verdict, if it must count."
    finding = warning("verdict-as-comment", message, pointer("review", "verdict"), hint=hint)
    return state.with_finding(finding, marks=replace(state.known_marks, verdict=COMMENT_ONLY))


def without_anchors(state: ReviewState, reason: str, note: Note | None = None) -> ReviewState:
    """Move the comment on a file or in a thread into the body after GitHub refused it; without one, all on lines."""
    marks, path = state.known_marks, pointer("review", "comments", *([note.at] if note else []))
    moved = {note.at} if note else {at for at, place in enumerate(marks.places) if place is Placement.INLINE}
    places = tuple(Placement.BODY if at in moved else place for at, place in enumerate(marks.places))
    lines = "No comment could be posted on its line, so they are"
    where = "on its file" if note and marks.places[note.at] is Placement.FILE else "in its thread"
    what = f"The comment could not be posted {where}, so it is" if note else lines
    finding = warning("anchors-refused", f"{what} in the review's body. {reason}", path, hint=_NOTHING)
    return state.with_finding(finding, marks=replace(marks, places=places), is_stale=state.is_stale or note is not None)


def without_resolving(state: ReviewState, refused: Refused) -> ReviewState:
    """Leave all further threads open after GitHub refused to resolve one."""
    return state.with_finding(_not_resolved(refused.message, refused.hint), may_resolve=False)


def without_reply(state: ReviewState, thread: OwnThread, refused: Refused) -> ReviewState:
    """Go on after GitHub refused a reply; the first refusal is a warning, the receipt has them all."""
    if any(finding.code == "thread-not-answered" for finding in state.findings):
        return state
    message = f"A thread whose finding is gone has no reply: {thread.url}. {refused.message}"
    return state.with_finding(warning("thread-not-answered", message, hint=refused.hint))


def _not_resolved(reason: str, hint: str = "") -> Finding:
    hint = hint or 'Grant the job "contents: write" and "pull-requests: write", or resolve them by hand.'
    return warning("threads-not-resolved", f"Threads whose finding is gone stay open. {reason}", hint=hint)


def plan_findings(facts: ReviewFacts) -> Iterator[Finding]:
    """Return the reasons why operations are left out."""
    if facts.is_superseded:
        message = "A later review of ours replaced this one, so it changes nothing."
        yield warning("review-superseded", message, hint=_NOTHING)
    elif not facts.may_dismiss and any(review.state in OPPOSABLE for review in facts.standing):
        message = f"{facts.identity.login} has no write access, so earlier reviews are not dismissed."
        yield warning("not-dismissed", message, hint="Dismiss them by hand.")
    if facts.repeated:
        url = facts.repeated.url
        message = f"An earlier review of this commit has this verdict and these findings, so none is posted: {url}"
        yield warning("review-repeated", message, hint=_NOTHING)
    for note in facts.draft.notes:
        if note.repeats is not None:
            message = f"The comment repeats comment {note.repeats + 1} at the same place, so both are posted as one."
            yield warning("comment-repeated", message, pointer("review", "comments", note.at), hint="Write it once.")
    if facts.anchors and facts.anchors.is_whole:
        yield from near_paths([note for note in facts.draft.own_notes if note.at not in facts.matches], facts.anchors)
    if any(not thread.can_resolve and thread.is_open and not thread.has_people for thread in facts.gone):
        yield _not_resolved("The token may not resolve them.")
    _, finding = planned_move(facts)
    if finding:
        yield finding


def near_paths(notes: Iterable[Note], anchors: Anchors) -> Iterator[Finding]:
    """Report paths that are not in the diff but differ from one that is by an edit, or by folders in front of it."""
    for note in (each for each in notes if not anchors.find(each.path, None)):
        pairs = ((path, *sorted([f"/{path}", f"/{note.path}"], key=len)) for path in anchors.files)
        same = [path for path, short, long in pairs if long.endswith(short)]
        if near := correct_spelling(note.path, anchors.files, most=1) or (same[0] if len(same) == 1 else ""):
            message = f"`{note.name}` is not in the diff, so the comment is in the body."
            hint = f"Did you mean `{near}`?"
            yield warning("path-not-in-diff", message, pointer("review", "comments", note.at, "path"), hint=hint)


def planned_move(facts: ReviewFacts) -> tuple[MoveWorkItem | None, Finding | None]:
    """Plan the move of the work item. One in another status than review stays, and a finding says so."""
    if facts.item is None:
        return None, None
    number, target = facts.item.number, TARGETS[facts.draft.verdict]
    reason, hint, move = "", MOVE_ITEM.format(number), None
    try:
        move = plan_move(facts.item, target, facts.item_facts or StatusFacts())
    except BrokenContract as broken:
        reason, hint = broken.message, broken.hint or hint
    if move and move.source not in ("review", target):
        reason = f"#{number} is in {move.source}, not in review."
    if move and move.is_change and is_over(pull_state(facts.pull)):
        reason = f"#{facts.pull.number} is {pull_state(facts.pull).state}."
    if move is None or reason:
        message = f"{reason} Its status label stays unchanged."
        return None, warning("status-not-review", message, hint=hint)
    read, head = facts.draft.commit, facts.pull.head_sha
    if move.is_change and read != head and facts.draft.verdict == "approve":
        head_now = f"the head of #{facts.pull.number} is {head[:12]} now"
        message = f"#{number} stays in review: the review is of {read[:12]}, but {head_now}."
        return None, warning("head-moved", message, hint=READ_HEAD)
    return move, None


def require_allowed(facts: ReviewFacts) -> None:
    """Raise Refused for what GitHub would refuse part-way, such as a second pending review of one person."""
    if facts.mine is None and (over := next((one for one in facts.findings if one.code == "pull-closed"), None)):
        raise Refused(over.message, hint=over.hint)
    pending = facts.pending
    if pending and facts.mine is None and not find_markers(pending.body, REVIEW):
        message = f"{facts.identity.login} has a pending review on #{facts.pull.number}, and GitHub allows only one."
        hint = f"Submit or discard it first: {pending.url}"
        if not facts.identity.is_person:  # only its token sees the review
            owner, name = facts.pull.url.split("/")[-4:-2]
            call = f"repos/{owner}/{name}/pulls/{facts.pull.number}/reviews/{pending.id}"
            hint = f"Discard it with the token of {facts.identity.login}: `gh api -X DELETE {call}`"
        raise Refused(message, hint=hint)
    move, _ = planned_move(facts)
    if move and move.is_change and not facts.may_label:
        hint = "Use a token of a person with the role Triage or higher."
        raise Refused(f"{facts.identity.login} may not label issues here.", hint=hint)


def plan_operations(
    facts: ReviewFacts, state: ReviewState, entries: Sequence[LedgerEntry] = ()
) -> list[ReviewOperation]:
    """Return all operations in order, with how each ended so far; ``entries`` are those of this run."""
    ended = {(entry.op, entry.key): entry.status for entry in entries}
    planned = _plan_operations(facts, state, ended)
    return [replace(each, found=ended.get((each.op, each.key), each.found)) for each in planned]


def _plan_operations(facts: ReviewFacts, state: ReviewState, ended: Ended) -> Iterator[ReviewOperation]:
    """Plan all operations, each with how an earlier run ended it."""
    number = facts.pull.number
    if facts.pending and not facts.mine:
        yield DeletePending(f"review {facts.pending.id}", None, facts.pending, number=number)
    yield PostReview("review", adopted_if(state.review is not None), _new_review(facts, state), number=number)
    if not facts.is_superseded:
        if state.marks and not facts.repeated:
            yield from _comments(facts, state, ended)
        for review in facts.standing:
            if review.state in OPPOSABLE and facts.may_dismiss and review is not facts.repeated:
                yield DismissReview(f"review {review.id}", None, review, number=number)
        for thread in facts.gone:
            yield from _ended_thread(facts, state, thread, ended)
    move, _ = planned_move(facts)
    if move:
        yield move


def _comments(facts: ReviewFacts, state: ReviewState, ended: Ended) -> Iterator[ReviewOperation]:
    """Plan what follows the posted review: comments on files, an amended body, follow-ups."""
    draft, marks, number = facts.draft, state.known_marks, facts.pull.number
    for note, place in zip(draft.notes, marks.places, strict=True):
        if place is Placement.FILE:
            anchor = facts.anchors.find(note.path, None) if facts.anchors else None
            path = anchor.path if anchor else note.path
            key, found = f"comment {note.at + 1} on {note.name}", adopted_if(note.at in facts.on_files)
            yield CommentOnFile(key, found, note, path, file_comment(draft, note, path), number=number)
        thread = facts.matches.get(note.at)
        if thread and place is not Placement.BODY and not thread.has_text(note.text):
            yield ReplyToThread(thread.name, None, thread, found_reply(draft, note), note, number=number)
    earlier = posted_earlier_list(facts.mine.body) if facts.mine else earlier_list(draft.notes, facts.matches)
    body, *rest = bodies(draft, marks, state.review.url if state.review else "", earlier)
    if state.is_stale or (AmendReview.op, "review") in ended:
        yield AmendReview("review", None, body, number=number)
    for part, text in enumerate(rest, 1):
        yield FollowUpComment(f"follow-up {part}", adopted_if(part in facts.parts), part, text, number=number)


def _ended_thread(facts: ReviewFacts, state: ReviewState, thread: OwnThread, ended: Ended) -> Iterator[ReviewOperation]:
    """Plan to resolve a thread whose finding is gone, and to say so in it once; people's threads stay open.

    The reply comes last: where it exists, an earlier run did all, and who opened the thread again wants it open.
    """
    said = thread.replies.get(facts.draft.token)
    is_resolved = thread.is_resolved or said == "resolved"
    resolve = ResolveThread(thread.name, skipped_if(is_resolved), thread, number=facts.pull.number)
    may_resolve = thread.can_resolve and state.may_resolve and not thread.has_people and said is None
    status = ended.get((resolve.op, resolve.key), resolve.found)
    if status or may_resolve:
        yield resolve
    if said or not thread.replies or (ReplyToThread.op, thread.name) in ended:
        done: Done = "left" if status is OperationStatus.FAILED or not (status or may_resolve) else "resolved"
        body = gone_reply(thread, facts.draft.token, facts.draft.commit, done)
        yield ReplyToThread(thread.name, adopted_if(said is not None), thread, body, number=facts.pull.number)


def _new_review(facts: ReviewFacts, state: ReviewState) -> NewReview:
    marks = state.marks or ReviewMarks(facts.draft.verdict, ())
    if state.review:
        return NewReview(EVENTS[marks.verdict], state.review.body, facts.draft.commit, ())
    comments = []
    for note, place in zip(facts.draft.notes, marks.places, strict=True):
        anchor = facts.anchors.find(note.path, note.line) if facts.anchors else None
        if place is Placement.INLINE and anchor and anchor.line is not None:
            comments.append(InlineComment(anchor.path, anchor.line, anchor.side, note.text))
    body = bodies(facts.draft, marks, "", earlier_list(facts.draft.notes, facts.matches))[0]
    return NewReview(EVENTS[marks.verdict], body, facts.draft.commit, tuple(comments))
