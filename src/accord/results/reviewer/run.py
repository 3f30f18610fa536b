"""Apply a reviewer result: sanitise, gather facts, plan, apply. Everything is decided before the first write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.engine.operations import planned_seconds
from accord.engine.receipts import Receipt, default_run_key, reporting
from accord.results.reviewer.apply import apply_operations
from accord.results.reviewer.facts import gather_facts
from accord.results.reviewer.placement import Placement, draft_review, lay_out
from accord.results.reviewer.plan import ResolveThread, initial_state, plan_findings, plan_operations, require_allowed
from accord.results.reviewer.rules import reviewer_findings
from accord.results.texts import TextSanitizer, require_postable, with_safe_texts
from accord.text.markers import run_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.engine.operations import LedgerEntry
    from accord.github.client import GitHub
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
