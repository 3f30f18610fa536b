"""Applying a reviewer result: gather, plan, apply, report. Everything is decided before the first write."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accord.core.errors import AccordError, BrokenContract
from accord.core.findings import has_errors
from accord.github.markers import run_token
from accord.github.pacing import estimate_seconds
from accord.results.operations import Outcome, Receipt, default_run_key, outcome_of, with_request_count
from accord.results.reviewer.apply import apply_operations, entries_of
from accord.results.reviewer.facts import Request, gather_facts
from accord.results.reviewer.placement import Placement, lay_out
from accord.results.reviewer.plan import (
    CommentOnFile,
    FollowUpComment,
    PostReview,
    ReviewOperation,
    plan_findings,
    plan_operations,
    require_allowed,
    start,
)
from accord.results.reviewer.rules import reviewer_findings
from accord.results.texts import TextSanitizer, posted_paths, posted_review, says_nothing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.github.client import GitHub
    from accord.results.models import ReviewerResult
    from accord.results.operations import RunOptions
    from accord.results.reviewer.facts import Reviewed, ReviewFacts
    from accord.results.reviewer.plan import ReviewState


def apply_review(github: GitHub, result: ReviewerResult, reviewed: Reviewed, setting: RunOptions) -> Receipt:
    """Check a reviewer result, and post it exactly once. Raises nothing of accord's own: the receipt tells.

    A review is the same one when result, pull request, run key and, where it is given, commit are the same: without a
    commit, what stands at any commit counts, so that no verdict reaches a head that nobody read.
    """
    return with_request_count(github, lambda: _applied(github, result, reviewed, setting))


def _applied(github: GitHub, result: ReviewerResult, reviewed: Reviewed, setting: RunOptions) -> Receipt:
    digest = default_run_key(result, setting.repository)
    run_key = setting.run_key or digest
    receipt = Receipt("reviewer-result", Outcome.REJECTED, run_key, setting.repository, reviewer_findings(result))
    if has_errors(receipt.findings):
        return receipt
    desk = TextSanitizer(setting.redact)
    posted = posted_review(result, desk)
    names = posted_paths(result, desk)
    unfit = says_nothing(reviewer_findings(posted)) if desk.sanitised else []
    receipt = replace(receipt, findings=[*receipt.findings, *desk.findings, *unfit], sanitised=desk.sanitised)
    if unfit:
        return receipt
    request = Request(
        posted,
        reviewed,
        run_token(setting.repository, f"{run_key}\n{digest}\n{reviewed.commit}"),
        run_token(setting.repository, f"{run_key}\n{digest}\n"),
        setting.repository,
        names,
    )
    try:
        facts = gather_facts(github, request)
        require_allowed(facts)
    except BrokenContract as broken:
        return replace(receipt, findings=[*receipt.findings, *broken.findings])
    except AccordError as error:
        return replace(receipt, outcome=outcome_of((), error), error=error)
    said = [*facts.findings, *plan_findings(facts)]
    return _carried_out(github, facts, replace(receipt, findings=[*receipt.findings, *said]), setting)


def _carried_out(github: GitHub, facts: ReviewFacts, receipt: Receipt, setting: RunOptions) -> Receipt:
    state = start(facts)
    if setting.is_dry_run:
        operations = plan_operations(facts, state)
        seconds = estimate_seconds(*_planned_requests(operations))
        entries = entries_of(operations, facts)
        receipt = replace(receipt, outcome=Outcome.PLANNED, operations=entries, estimated_seconds=seconds)
    else:
        state, entries, problem = apply_operations(github, facts, state, setting.clock, setting.tell)
        receipt = replace(receipt, outcome=outcome_of(entries, problem), operations=entries, error=problem)
    details = {"review": _details(facts, state, is_dry_run=setting.is_dry_run)}
    return replace(receipt, findings=[*receipt.findings, *state.findings], details=details)


def _details(facts: ReviewFacts, state: ReviewState, *, is_dry_run: bool) -> dict[str, Any]:
    """Say what became of the verdict and of each comment; counts are None for a review whose marker is gone."""
    marks = state.marks
    places = marks.places if marks else ()
    review = state.review
    return {
        "id": str(review.id) if review else None,
        "url": review.url if review else None,
        "commit": facts.draft.commit,
        "verdict_requested": facts.draft.verdict,
        "verdict_applied": marks.verdict if marks and (review or is_dry_run) else None,
        "inline": places.count(Placement.INLINE) if marks else None,
        "file_level": places.count(Placement.FILE) if marks else None,
        "in_body": places.count(Placement.BODY) if marks else None,
        "follow_ups": len(lay_out(facts.draft, marks)) - 1 if marks else None,
        "comments": [
            {"path": note.name, "line": note.line, "place": place.value}
            for note, place in zip(facts.draft.notes, places, strict=False)
        ],
    }


def _planned_requests(operations: Sequence[ReviewOperation]) -> tuple[int, int]:
    """Count the requests to come: those that create content, and the other writes."""
    coming = [operation for operation in operations if operation.found is None]
    content = sum(isinstance(operation, PostReview | CommentOnFile | FollowUpComment) for operation in coming)
    return content, len(coming) - content
