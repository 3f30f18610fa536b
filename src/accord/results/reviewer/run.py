"""Apply a reviewer result: sanitise, gather facts, plan, apply. Everything is decided before the first write."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accord.core.errors import Refused
from accord.core.findings import warning
from accord.engine.operations import OperationStatus, apply_in_order, planned_seconds
from accord.engine.receipts import Receipt, default_run_key, reporting
from accord.github.models import AnchorRefused, NotThere, VerdictRefused
from accord.github.once import send_once
from accord.results.bodies import has_marker
from accord.results.reviewer.facts import gather_facts, own_reviews, posted_numbers
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
    without_file,
    without_reply,
    without_resolving,
    without_verdict,
)
from accord.results.reviewer.rules import reviewer_findings
from accord.results.reviewer.threads import COMMENT
from accord.results.status import MoveWorkItem, apply_move
from accord.results.texts import TextSanitizer, require_postable, with_safe_texts
from accord.text.markers import REVIEW, REVIEW_GONE, find_markers, run_token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.core.clock import Clock
    from accord.core.errors import AccordError
    from accord.engine.operations import ApplyOptions, LedgerEntry
    from accord.github.client import GitHub
    from accord.github.models import Review
    from accord.results.models import ReviewerResult
    from accord.results.reviewer.facts import ReviewFacts
    from accord.results.reviewer.plan import ReviewState
    from accord.results.run_options import ReviewOptions


def apply_review(github: GitHub, result: ReviewerResult, options: ReviewOptions) -> Receipt:
    """Check a reviewer result, post it exactly once, and report it. Raises no AccordError: the receipt has it.

    Reviews are the same when result, pull request, run key and, where given, commit are. Without a commit one at any
    commit counts, so that no verdict reaches a head that the reviewer did not read.
    """
    digest = default_run_key(result, options.repository)
    run_key = options.run_key or digest
    receipt = Receipt("reviewer-result", options.repository, run_key)
    with reporting(github, receipt):
        receipt.require(reviewer_findings(result))
        sanitizer = TextSanitizer(options.redact, options.policy)
        result = with_safe_texts(result, sanitizer)
        scope = f"{run_key}\n{digest}\n"
        token, same = run_token(options.repository, scope + options.commit), run_token(options.repository, scope)
        draft = draft_review(result, sanitizer, token, same)
        require_postable(receipt, sanitizer, reviewer_findings(result))
        facts = gather_facts(github, draft, options)
        require_allowed(facts)
        receipt.findings += [*facts.findings, *plan_findings(facts)]
        state = initial_state(facts)
        if options.is_dry_run:
            receipt.estimated_seconds = planned_seconds(plan_operations(facts, state))
        state, entries, problem = apply_operations(github, facts, state, options)
        receipt.end(entries, problem, is_dry_run=options.is_dry_run)
        receipt.findings += state.findings
        receipt.details = {"review": _details(facts, state, entries, is_dry_run=options.is_dry_run)}
    return receipt


def _details(
    facts: ReviewFacts, state: ReviewState, entries: Sequence[LedgerEntry], *, is_dry_run: bool
) -> dict[str, Any]:
    """Return how verdict and comments were posted; counts are None for a review whose marker is gone."""
    marks = state.marks
    places = marks.places if marks else ()
    review = state.review
    resolved = [entry for entry in entries if entry.op == ResolveThread.op and entry.status.value != "failed"]
    return {
        "id": str(review.id) if review else None,
        "url": review.url if review else None,
        "commit": facts.draft.commit,
        "verdict_requested": facts.draft.verdict,
        "verdict_applied": marks.verdict if marks and (review or is_dry_run) else None,
        "inline": places.count(Placement.INLINE) if marks else None,
        "file_level": places.count(Placement.FILE) if marks else None,
        "in_body": places.count(Placement.BODY) if marks else None,
        "kept": places.count(Placement.KEPT) if marks else None,
        "settled": places.count(Placement.SETTLED) if marks else None,
        "resolved": len(resolved),
        "follow_ups": len(lay_out(facts.draft, marks)) - 1 if marks else None,
        "comments": [
            {"path": note.name, "line": note.line, "place": place.value}
            for note, place in zip(facts.draft.notes, places, strict=False)
        ],
    }


def apply_operations(
    github: GitHub, facts: ReviewFacts, state: ReviewState, options: ApplyOptions
) -> tuple[ReviewState, list[LedgerEntry], AccordError | None]:
    """Apply what is to do, unless it is a dry run; return an entry for each operation, and the error that ended it."""

    def apply(operation: ReviewOperation) -> OperationStatus:
        nonlocal state
        state, status = _apply(github, operation, facts, state, options.clock)
        return status

    def plan(entries: Sequence[LedgerEntry]) -> list[ReviewOperation]:
        return plan_operations(facts, state, entries)

    entries, problem = apply_in_order(
        plan(()), apply, is_dry_run=options.is_dry_run, on_entry=options.on_entry, plan_again=plan
    )
    return state, entries, problem


_Applied = tuple[ReviewState, OperationStatus]


def _apply(
    github: GitHub, operation: ReviewOperation, facts: ReviewFacts, state: ReviewState, clock: Clock
) -> _Applied:
    number = facts.pull.number
    match operation:
        case DeletePending():
            github.delete_pending_review(number, operation.review.id)
        case PostReview():
            return _post(github, operation, facts, state, clock)
        case CommentOnFile():
            return _comment_on_file(github, operation, facts, state, clock)
        case AmendReview():
            review = state.review
            changed = github.change_review(number, review.id, operation.body) if review else None
            state = replace(state, review=changed, is_stale=False)
        case FollowUpComment():
            _post_comment(
                lambda: github.create_comment(number, operation.body).url,
                lambda: operation.part in posted_numbers(github.comments(number), PART, facts),
                clock,
            )
        case DismissReview():
            return _dismiss(github, operation, facts, state)
        case ResolveThread():
            return _resolve(github, operation, state)
        case ReplyToThread():
            return _reply(github, operation, facts, state, clock)
        case MoveWorkItem():
            apply_move(github, operation)
    return state, OperationStatus.DONE


def _post(github: GitHub, operation: PostReview, facts: ReviewFacts, state: ReviewState, clock: Clock) -> _Applied:
    number, token = facts.pull.number, facts.draft.token

    def find() -> Review | None:
        _, reviews, _ = own_reviews(github.reviews(number), token, facts.identity)
        return next((review for review in reviews if has_marker(review.body, REVIEW, token)), None)

    try:
        review = send_once(lambda: github.create_review(number, operation.review), find, clock)
    except VerdictRefused as refused:
        if operation.review.event == "COMMENT":
            raise
        return without_verdict(state, refused), OperationStatus.PLANNED
    except AnchorRefused as refused:
        if not operation.review.comments:
            raise
        return without_anchors(state, refused.message), OperationStatus.PLANNED
    return replace(state, review=review), OperationStatus.DONE


def _post_comment(send: Callable[[], str], exists: Callable[[], bool], clock: Clock) -> None:
    send_once(send, lambda: "there" if exists() else None, clock)


def _comment_on_file(
    github: GitHub, operation: CommentOnFile, facts: ReviewFacts, state: ReviewState, clock: Clock
) -> _Applied:
    number, at = facts.pull.number, operation.note.at
    try:
        _post_comment(
            lambda: github.comment_on_file(number, facts.draft.commit, operation.path, operation.body),
            lambda: at in posted_numbers(github.review_comments(number), COMMENT, facts),
            clock,
        )
    except AnchorRefused as refused:
        return without_file(state, operation.note, refused.message), OperationStatus.PLANNED
    return state, OperationStatus.DONE


def _resolve(github: GitHub, operation: ResolveThread, state: ReviewState) -> _Applied:
    try:
        github.resolve_thread(operation.thread.id)
    except NotThere:  # deleted meanwhile
        pass
    except Refused as refused:
        return without_resolving(state, refused), OperationStatus.FAILED
    return state, OperationStatus.DONE


def _reply(github: GitHub, operation: ReplyToThread, facts: ReviewFacts, state: ReviewState, clock: Clock) -> _Applied:
    """Reply in a thread. A refusal is a warning: the review and the label matter more than an old thread."""
    number, comment_id = facts.pull.number, operation.thread.comment_id
    marker = {"run": facts.draft.token, "thread": str(comment_id)}

    def exists() -> bool:
        ours = (one for one in github.review_comments(number) if facts.identity.counts(one.author))
        found = (fields for comment in ours for fields in find_markers(comment.body, REVIEW_GONE))
        return any(marker.items() <= fields.items() for fields in found)

    try:
        _post_comment(lambda: github.reply(number, comment_id, operation.body).url, exists, clock)
    except NotThere:  # the thread was deleted meanwhile
        pass
    except Refused as refused:
        return without_reply(state, operation, refused), OperationStatus.FAILED
    return state, OperationStatus.DONE


def _dismiss(github: GitHub, operation: DismissReview, facts: ReviewFacts, state: ReviewState) -> _Applied:
    """Dismiss a review. A refusal is a warning, as the label has the verdict, unless a lost request dismissed it."""
    url = state.review.url if state.review else ""
    try:
        github.dismiss_review(facts.pull.number, operation.review.id, f"Superseded by {url}")
    except Refused as refused:
        reviews = github.reviews(facts.pull.number)
        if any(review.id == operation.review.id and review.state in OPPOSABLE for review in reviews):
            finding = warning("not-dismissed", f"An earlier review could not be dismissed. {refused.message}")
            return replace(state, findings=(*state.findings, finding)), OperationStatus.FAILED
    return state, OperationStatus.DONE
