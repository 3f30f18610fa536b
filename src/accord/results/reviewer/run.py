"""Apply a reviewer result: sanitise, gather facts, plan, apply. Everything is decided before the first write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from accord.core.errors import Problem, Refused
from accord.core.findings import warning
from accord.engine.lease import Lease, write_alone
from accord.engine.operations import ApplyOptions, LedgerEntry, OperationStatus, apply_in_order, planned_seconds
from accord.engine.receipts import Receipt, default_run_key, report_errors
from accord.github.models import AnchorRefused, NotThere, Review, VerdictRefused
from accord.results.bodies import has_marker
from accord.results.reviewer.facts import ReviewFacts, gather_facts, own_reviews, posted_numbers
from accord.results.reviewer.placement import PART, Placement, draft_review, lay_out
from accord.results.reviewer.plan import (
    OPPOSABLE,
    AmendReview,
    CommentOnFile,
    DeletePending,
    DismissReview,
    FollowUpComment,
    PostReview,
    ReplyToThread,
    ResolveThread,
    ReviewOperation,
    ReviewState,
    initial_state,
    plan_findings,
    plan_operations,
    require_allowed,
    without_anchors,
    without_reply,
    without_resolving,
    without_verdict,
)
from accord.results.reviewer.rules import reviewer_findings
from accord.results.reviewer.threads import COMMENT, Note
from accord.results.run_options import ReviewOptions
from accord.results.status import MoveWorkItem, apply_move
from accord.results.texts import TextSanitizer, require_postable, with_safe_texts
from accord.text.markers import REVIEW, REVIEW_GONE, run_token

if TYPE_CHECKING:
    from accord.github.client import GitHub
    from accord.results.models import ReviewerResult


def apply_review(github: GitHub, result: ReviewerResult, options: ReviewOptions) -> Receipt:
    """Check a reviewer result, post it exactly once, and report it. Raises no Problem: the receipt has it.

    Reviews are the same when result, pull request, run key and, where given, commit are. Without a commit one at any
    commit counts, so that no verdict reaches a head that the reviewer did not read.
    """
    lease = Lease(github, f"pull-{options.pull}", options)
    return write_alone(lambda: _apply_review(github, result, options, lease))


def _apply_review(github: GitHub, result: ReviewerResult, options: ReviewOptions, lease: Lease) -> Receipt:
    digest = default_run_key(result, options.repository)
    run_key = options.run_key or digest
    receipt = Receipt("reviewer-result", options.repository, run_key)
    with report_errors(github, receipt), lease:
        receipt.require(reviewer_findings(result))
        sanitizer = TextSanitizer(options.redact, options.policy)
        result = with_safe_texts(result, sanitizer)
        scope = f"{run_key}\n{digest}\n"
        token, same = run_token(options.repository, scope + options.commit), run_token(options.repository, scope)
        draft = draft_review(result, sanitizer, token, same)
        require_postable(receipt, sanitizer, partial(reviewer_findings, result))
        lease.wait()
        facts = gather_facts(github, draft, options)
        receipt.findings += facts.findings
        require_allowed(facts)
        receipt.findings += plan_findings(facts)
        state = initial_state(facts)
        if options.is_dry_run:
            receipt.estimated_seconds = planned_seconds(plan_operations(facts, state))
        state, entries, problem = _apply_all(github, facts, state, options, lease)
        receipt.end(entries, problem, is_dry_run=options.is_dry_run)
        receipt.findings += state.findings
        receipt.details = {"review": _details(facts, state, entries, is_dry_run=options.is_dry_run)}
    return receipt


_COUNTS = {"inline": Placement.INLINE, "file_level": Placement.FILE, "in_body": Placement.BODY}
_COUNTS |= {"kept": Placement.KEPT, "settled": Placement.SETTLED, "repeated": Placement.REPEATED}


def _details(
    facts: ReviewFacts, state: ReviewState, entries: Sequence[LedgerEntry], *, is_dry_run: bool
) -> dict[str, Any]:
    """Return how verdict and comments were posted; counts are None for a review whose marker is gone."""
    marks, review = state.marks, state.review
    places = marks.places if marks else ()
    resolved = [entry for entry in entries if entry.op == ResolveThread.op and entry.status.value != "failed"]
    return {
        "id": str(review.id) if review else None,
        "url": review.url if review else None,
        "commit": facts.draft.commit,
        "verdict_requested": facts.draft.verdict,
        "verdict_applied": marks.verdict if marks and (review or is_dry_run) else None,
        **{name: places.count(place) if marks else None for name, place in _COUNTS.items()},
        "resolved": len(resolved),
        "follow_ups": len(lay_out(facts.draft, marks)) - 1 if marks else None,
        "comments": [
            {"path": note.name, "line": note.line, "place": place.value}
            for note, place in zip(facts.draft.notes, places, strict=False)
        ],
    }


def _apply_all(
    github: GitHub, facts: ReviewFacts, state: ReviewState, options: ApplyOptions, lease: Lease
) -> tuple[ReviewState, list[LedgerEntry], Problem | None]:
    """Apply what is to do, unless it is a dry run; return an entry for each operation, and the error that ended it."""

    def apply(operation: ReviewOperation) -> OperationStatus:
        nonlocal state
        state, status = _apply(github, operation, facts, state)
        return status

    entries, problem = apply_in_order(
        plan_operations(facts, state),
        apply,
        is_dry_run=options.is_dry_run,
        on_entry=options.on_entry,
        plan_again=lambda entries: plan_operations(facts, state, entries),
        before_write=lease.keep,
    )
    return state, entries, problem


def _apply(
    github: GitHub, operation: ReviewOperation, facts: ReviewFacts, state: ReviewState
) -> tuple[ReviewState, OperationStatus]:
    try:
        return _send(github, operation, facts, state), OperationStatus.DONE
    except Refused as refused:
        is_about_gone = isinstance(operation, (ResolveThread, ReplyToThread)) and operation.thread in facts.gone
        if isinstance(refused, NotThere) and is_about_gone:
            return state, OperationStatus.DONE  # the thread was deleted meanwhile
        return _after_refusal(github, operation, facts, state, refused)


def _send(github: GitHub, operation: ReviewOperation, facts: ReviewFacts, state: ReviewState) -> ReviewState:
    """Send one operation, what GitHub would post twice only once; return the state after it."""
    number, review = facts.pull.number, state.review
    match operation:
        case DeletePending():
            github.delete_pending_review(number, operation.review.id)
        case PostReview():
            find = partial(_posted_review, github, facts)
            return replace(state, review=github.send_once(lambda: github.create_review(number, operation.review), find))
        case CommentOnFile():
            github.send_once(
                lambda: github.comment_on_file(number, facts.draft.commit, operation.path, operation.body),
                lambda: operation.note.at in posted_numbers(github.review_comments(number), COMMENT, facts) or None,
            )
        case AmendReview() if review:
            return replace(state, review=github.change_review(number, review.id, operation.body), is_stale=False)
        case FollowUpComment():
            github.send_once(
                lambda: github.create_comment(number, operation.body),
                lambda: operation.part in posted_numbers(github.comments(number), PART, facts) or None,
            )
        case DismissReview():
            github.dismiss_review(number, operation.review.id, f"Superseded by {review.url if review else ''}")
        case ResolveThread():
            github.resolve_thread(operation.thread.id)
        case ReplyToThread():
            github.send_once(
                lambda: github.reply(number, operation.thread.comment_id, operation.body),
                lambda: _has_reply(github, operation, facts) or None,
            )
        case MoveWorkItem():
            apply_move(github, operation)
    return state


def _posted_review(github: GitHub, facts: ReviewFacts) -> Review | None:
    _, reviews, _ = own_reviews(github.reviews(facts.pull.number), facts.draft.token, facts.identity)
    return next((review for review in reviews if has_marker(review.body, REVIEW, facts.draft.token)), None)


def _has_reply(github: GitHub, operation: ReplyToThread, facts: ReviewFacts) -> bool:
    ours = [each for each in github.review_comments(facts.pull.number) if facts.identity.counts(each.author)]
    if operation.note:
        return operation.note.at in posted_numbers(ours, COMMENT, facts)
    thread = str(operation.thread.comment_id)
    return any(has_marker(comment.body, REVIEW_GONE, facts.draft.token, thread=thread) for comment in ours)


def _after_refusal(
    github: GitHub, operation: ReviewOperation, facts: ReviewFacts, state: ReviewState, refused: Refused
) -> tuple[ReviewState, OperationStatus]:
    """Return the state from which the rest is planned again. Raises what the review cannot go on without.

    Old reviews and threads matter less than the review and its label: there a refusal is a warning.
    """
    match operation, refused:
        case PostReview(), VerdictRefused() if operation.review.event != "COMMENT":
            return without_verdict(state, refused.message, refused.hint), OperationStatus.PLANNED
        case PostReview(), AnchorRefused() if operation.review.comments:
            return without_anchors(state, refused.message), OperationStatus.PLANNED
        case ReplyToThread(note=Note() as note), _:
            return without_anchors(state, refused.message, note), OperationStatus.PLANNED
        case CommentOnFile(), AnchorRefused():
            return without_anchors(state, refused.message, operation.note), OperationStatus.PLANNED
        case ResolveThread(), _:
            return without_resolving(state, refused), OperationStatus.FAILED
        case ReplyToThread(), _:
            return without_reply(state, operation.thread, refused), OperationStatus.FAILED
        case DismissReview(), _:
            now = next((each for each in github.reviews(facts.pull.number) if each.id == operation.review.id), None)
            if now is None or now.state not in OPPOSABLE:  # a lost request dismissed it
                return state, OperationStatus.DONE
            message = f"An earlier review could not be dismissed. {refused.message}"
            finding = warning("not-dismissed", message, hint=refused.hint)
            return state.with_finding(finding), OperationStatus.FAILED
    raise refused
