"""The statuses of a task, the moves between them, and the artifacts that a move requires.

Source: handoff schema, "Stage-gate validation" and "Partial/In-Progress Representation"; the table is accord's choice
(docs/handoffs.md). A draft passes a gate when no required part is missing; superseded ones count as absent. Every
way into review and done is gated, so that no detour avoids a gate; only done itself leads back to review without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from accord.core.findings import Finding
from accord.core.machine import Edge, Machine
from accord.core.suggest import did_you_mean
from accord.handoffs.models import Metadata, StageArtifact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

AWAITING = "awaiting_human"
DONE = "done"

_LEAST_OPTIONS = 2
_REVIEW = "/metadata/reviewArtifact"
_VERIFICATION = "/metadata/verificationArtifact"
_AWAITING = "/metadata/awaitingHumanArtifact"
_DONE = "/metadata/doneArtifact"

Artifact = TypeVar("Artifact", bound=StageArtifact)


def review_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into review: a review artifact and a verification artifact with their required parts."""
    review = _present(metadata.review_artifact)
    if review is None:
        yield _missing_review(_REVIEW, "The reviewArtifact is missing")
    elif not _has_text(review.change_summary):
        yield _missing_review(f"{_REVIEW}/changeSummary", "The reviewArtifact has no changeSummary")
    verification = _present(metadata.verification_artifact)
    if verification is None:
        yield _missing_review(_VERIFICATION, "The verificationArtifact is missing")
        return
    if not _has_text(verification.commands):
        yield _missing_review(f"{_VERIFICATION}/commands", "The verificationArtifact has no commands")
    if verification.result is None:
        yield _missing_review(f"{_VERIFICATION}/result", "The verificationArtifact has no result")


def verification_gate(metadata: Metadata) -> Iterator[Finding]:
    """Forward from review: the artifacts of review, and the decision `approved`."""
    yield from review_gate(metadata)
    review = _present(metadata.review_artifact)
    if review is not None and review.decision != "approved":
        message = (
            "The decision of the reviewArtifact is not `approved`. Fix the findings of the review, then review again."
        )
        yield Finding("review-not-approved", message, f"{_REVIEW}/decision")


def done_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into done: an approved review, verification that passed, and a done artifact."""
    yield from verification_gate(metadata)
    verification = _present(metadata.verification_artifact)
    if verification is not None and verification.result == "failed":
        message = "The result of the verificationArtifact is `failed`. Fix the failures, then verify again."
        yield Finding("verification-not-passed", message, f"{_VERIFICATION}/result")
    done = _present(metadata.done_artifact)
    if done is None:
        yield _missing_done(_DONE, "The doneArtifact is missing")
        return
    if not done.completed_at:
        yield _missing_done(f"{_DONE}/completedAt", "The doneArtifact has no completedAt")
    if not _has_text(done.summary):
        yield _missing_done(f"{_DONE}/summary", "The doneArtifact has no summary")


def awaiting_human_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into awaiting_human: a question, at least two options, one of them recommended, and the time of the request."""
    question = _present(metadata.awaiting_human_artifact)
    if question is None:
        yield _missing_question(_AWAITING, "The awaitingHumanArtifact is missing")
        return
    labels = [option.label for option in question.options if option.label.strip()]
    if not question.question.strip():
        yield _missing_question(f"{_AWAITING}/question", "The awaitingHumanArtifact has no question")
    if len(set(labels)) < _LEAST_OPTIONS:
        yield _missing_question(f"{_AWAITING}/options", "The awaitingHumanArtifact has fewer than two options")
    if question.recommended_option not in labels:
        meant = did_you_mean(question.recommended_option or "", labels)
        what = "The recommendedOption is not the label of an option"
        yield _missing_question(f"{_AWAITING}/recommendedOption", f"{what}. {meant}" if meant else what)
    if not question.requested_at:
        yield _missing_question(f"{_AWAITING}/requestedAt", "The awaitingHumanArtifact has no requestedAt")


GATES: dict[str, Callable[[Metadata], Iterator[Finding]]] = {
    "review": review_gate,
    "verification": verification_gate,
    DONE: done_gate,
    AWAITING: awaiting_human_gate,
}
_NEEDS = {
    "review": "review and verification artifacts",
    "verification": "approved",
    DONE: "approved, passed, done artifact",
    AWAITING: "a question",
}
_MOVES = {
    "backlog": ("planning", "implementing", DONE),
    "planning": ("backlog", "implementing", AWAITING),
    "implementing": ("backlog", "review", AWAITING),
    "review": ("implementing", "verification", DONE, AWAITING),
    "verification": ("implementing", DONE, AWAITING),
    AWAITING: ("planning", "implementing", "review"),
    DONE: ("review",),
    "cancelled": ("backlog",),
}
_UNGATED = {(DONE, "review")}


def gate_findings(source: str, target: str, metadata: Metadata) -> list[Finding]:
    """Return what is missing for a move of the table; empty when the move is allowed."""
    gate = None if (source, target) in _UNGATED else GATES.get(target)
    return list(gate(metadata)) if gate else []


def _edge(source: str, target: str) -> Edge[Metadata]:
    if target not in GATES or (source, target) in _UNGATED:
        return Edge(source, target)

    def guard(metadata: Metadata) -> str:
        return " ".join(finding.text for finding in gate_findings(source, target, metadata))

    return Edge(source, target, _NEEDS[target], guard)


HANDOFF: Machine[Metadata] = Machine(
    "handoff",
    "backlog",
    frozenset(),
    tuple(
        _edge(source, target)
        for source, targets in _MOVES.items()
        for target in (*targets, *(() if source == "cancelled" else ("cancelled",)))
    ),
)


def _present(artifact: Artifact | None) -> Artifact | None:
    return None if artifact is None or artifact.status == "superseded" else artifact


def _has_text(entries: list[str]) -> bool:
    return any(entry.strip() for entry in entries)


def _missing_review(path: str, what: str) -> Finding:
    return Finding("missing-review-artifacts", f"{what}. Add it before the move.", path)


def _missing_done(path: str, what: str) -> Finding:
    return Finding("missing-done-artifact", f"{what}. Add it before the move to done.", path)


def _missing_question(path: str, what: str) -> Finding:
    end = "" if what.endswith("?") else "."
    message = f"{what}{end} Write question, options, recommendedOption (one of their labels) and requestedAt."
    return Finding("missing-awaiting-human-artifact", message, path)
