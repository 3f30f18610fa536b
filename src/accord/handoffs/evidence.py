"""Evidence in a handoff: which verdicts are older than the work that they judge, and which texts say nothing. Pure.

A verdict is bound to a digest of the work, kept in ``workflowRuntime.judged``, and not to a time: an edit by hand
changes the digest, too. A verdict without a digest counts, as in files that other tools wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from accord.handoffs.models import Metadata

PROGRESS = frozenset({"status", "updatedAt", "updatedBy", "reviewReferences"})
"""Keys about the progress of an artifact, and references to it: changing them changes neither plan nor work."""

VERDICTS = ("decision", "result")
_DIGEST_CHARS = 16


def verdict_of(metadata: Metadata, verdict: str) -> str | None:
    """Return the decision of the review, or the result of the verification."""
    review, verification = metadata.review_artifact, metadata.verification_artifact
    if verdict == "decision":
        return review.decision if review else None
    return verification.result if verification else None


def digest_of_work(metadata: Metadata, verdict: str) -> str:
    """Return the digest of the work that a verdict judges: tests and their evidence, for a decision all of it."""
    plan, tests, review = metadata.planning_artifact, metadata.testing_artifacts, metadata.review_artifact
    judged = [tests and tests.planned, tests and tests.implemented]
    parts = [part and part.model_dump(mode="json", by_alias=True, exclude_defaults=True) for part in judged]
    work = [{key: value for key, value in (part or {}).items() if key not in PROGRESS} for part in parts]
    if verdict == "decision":
        work.append({"plan": [plan.goals, plan.steps, plan.risks] if plan else [[], [], []]})
        work.append({"review": [review.change_summary, review.files_touched] if review else [[], []]})
    return hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()[:_DIGEST_CHARS]


def is_outdated(metadata: Metadata, verdict: str) -> bool:
    """Tell whether the work changed after a verdict about it."""
    known = metadata.workflow_runtime.judged.get(verdict) if metadata.workflow_runtime else None
    return known is not None and known != digest_of_work(metadata, verdict)


def judged_after(before: Metadata, after: Metadata, given: Iterable[str], kept: Iterable[str]) -> dict[str, str]:
    """Return the digest of the work for each verdict, after a change of the metadata.

    The change gives the verdicts in ``given``, for the first time or again, and does not outdate those in ``kept``.
    """
    known = dict(before.workflow_runtime.judged) if before.workflow_runtime else {}
    for verdict in VERDICTS:
        old, new = digest_of_work(before, verdict), digest_of_work(after, verdict)
        if not verdict_of(after, verdict):
            known.pop(verdict, None)
        elif verdict in given or (verdict in kept and known.get(verdict) == old):
            known[verdict] = new
        elif old != new and verdict not in kept:
            known.setdefault(verdict, old)
    return known
