"""Evidence in a handoff: which verdicts are older than the work that they judge, and which times are impossible.

A verdict is bound to a digest of the work and of its own value, kept in ``workflowRuntime.judged``, and not to a time:
an edit of either by hand changes the digest, too. Without a digest, as in files that other tools wrote, the times of
the artifacts decide.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from accord.core.clock import exact_time, future_problem, time_of
from accord.core.findings import Finding
from accord.handoffs.models import Metadata

PROGRESS = frozenset({"status", "updatedAt", "updatedBy", "reviewReferences"})
"""Keys about the progress of an artifact, and references to it: changing them changes neither plan nor work."""

_RUN = frozenset({"commandsRun", "evidenceLinks", "notes"})
"""Keys of the existing tests that record a run: a decision does not judge it."""

VERDICTS = ("decision", "result")
_DIGEST_CHARS = 16


def verdict_of(metadata: Metadata, verdict: str) -> str | None:
    """Return the decision of the review, or the result of the verification."""
    review, verification = metadata.review_artifact, metadata.verification_artifact
    if verdict == "decision":
        return review.decision if review else None
    return verification.result if verification else None


def digest_of_work(metadata: Metadata, verdict: str) -> str:
    """Return the digest of a verdict and of the work that it judges.

    That is plan, tests and changes; for a result also run and commands.
    """
    plan, tests, review = metadata.planning_artifact, metadata.testing_artifacts, metadata.review_artifact
    work: list[object] = []
    for part in (tests and tests.planned, tests and tests.implemented):
        dumped = part.model_dump(mode="json", by_alias=True, exclude_defaults=True) if part else {}
        ignored = PROGRESS | _RUN if verdict == "decision" and work else PROGRESS
        work.append({key: value for key, value in dumped.items() if key not in ignored})
    work.append([plan.goals, plan.steps, plan.risks] if plan else [[], [], []])
    work.append([review.change_summary, review.files_touched] if review else [[], []])
    if verdict == "result":
        work.append(metadata.verification_artifact.commands if metadata.verification_artifact else [])
    return _digest([*work, verdict_of(metadata, verdict)])


def judged_digests(metadata: Metadata) -> dict[str, str]:
    """Return the digest of the work that each verdict judges: the recorded one; without, that of the present work.

    The digest is empty for a verdict that is older than the work. A missing time says nothing.
    """
    known = metadata.workflow_runtime.judged if metadata.workflow_runtime else {}
    plan, tests = metadata.planning_artifact, metadata.testing_artifacts
    parts = (tests, tests and tests.planned, tests and tests.implemented)
    changed = [part.updated_at for part in parts if part] + [(plan.updated_at or plan.created_at) if plan else None]
    newest = max(filter(None, map(exact_time, changed)), default=None)
    found = {}
    for verdict, artifact in zip(VERDICTS, (metadata.review_artifact, metadata.verification_artifact), strict=True):
        given = exact_time(artifact.updated_at) if artifact else None
        is_older = given is not None and newest is not None and given < newest
        if verdict_of(metadata, verdict):
            found[verdict] = known.get(verdict, "" if is_older else digest_of_work(metadata, verdict))
    return found


def verdict_actors(metadata: Metadata) -> dict[str, str]:
    """Return who gave each verdict last: the recorded actor; without, the last author of its artifact."""
    known = metadata.workflow_runtime.judged_by if metadata.workflow_runtime else {}
    signed = {"decision": metadata.review_artifact, "result": metadata.verification_artifact}
    return {verdict: known.get(verdict, (part and part.updated_by) or "") for verdict, part in signed.items()}


def workers_of(metadata: Metadata) -> list[str | None]:
    """Return who did the work: the recorded actors, the authors of the plan and of the tests, and the owner."""
    runtime, plan, workflow = metadata.workflow_runtime, metadata.planning_artifact, metadata.workflow
    tests = metadata.testing_artifacts and metadata.testing_artifacts.implemented
    signed = (plan and plan.updated_by, tests and tests.updated_by, workflow and workflow.owner)
    return [*(runtime.worked_by if runtime else ()), *signed]


def is_outdated(metadata: Metadata, verdict: str) -> bool:
    """Tell whether the work changed after a verdict about it."""
    known = judged_digests(metadata).get(verdict)
    return known is not None and known != digest_of_work(metadata, verdict)


def judged_after(before: Metadata, after: Metadata, given: Collection[str]) -> dict[str, str]:
    """Return the digest of the work that each verdict judges, after a change of the metadata.

    A verdict that the change gives judges the work after it. Any other still judges what it judged before.
    """
    known = dict(before.workflow_runtime.judged) if before.workflow_runtime else {}
    judged_before = judged_digests(before)
    for verdict in VERDICTS:
        if not verdict_of(after, verdict):
            known.pop(verdict, None)
        elif verdict in given:
            known[verdict] = digest_of_work(after, verdict)
        elif before != after:  # the change has a time of its own, so that times tell nothing after it
            known[verdict] = judged_before.get(verdict, digest_of_work(before, verdict))
    return known


_ARTIFACTS = {name for name in Metadata.model_fields if name.endswith(("_artifact", "_artifacts"))}
_TIMES = ("createdAt", "requestedAt", "completedAt", "updatedAt")


def future_findings(metadata: Metadata, now: datetime) -> list[Finding]:
    """Find times of artifacts in the future: what they date did not happen yet."""

    def found(part: Mapping[str, Any], place: str) -> Iterator[Finding]:
        for key, value in part.items():
            if isinstance(value, dict):
                yield from found(value, f"{place}/{key}")
            elif key in _TIMES and (problem := future_problem(time_of(value), now)):
                yield Finding("timestamp-future", problem, f"{place}/{key}", hint="Write when it happened.")

    return list(found(metadata.model_dump(by_alias=True, include=_ARTIFACTS), "/metadata"))


def question_digest(metadata: Metadata) -> str:
    """Return the digest of the question to a person, with its time; empty without one."""
    asked = metadata.awaiting_human_artifact
    if not asked:
        return ""
    moment, beyond = exact_time(asked.requested_at) or (None, "")
    at = moment and moment.isoformat().replace("+00:00", "Z") + beyond
    return _digest([asked.question, [option.label for option in asked.options], at])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGEST_CHARS]
