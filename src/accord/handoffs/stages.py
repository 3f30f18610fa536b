"""The statuses of a task, the moves between them, and what must be there before a move.

Source: handoff schema, "Stage-gate validation" and "Partial/In-Progress Representation"; the table is accord's choice
(docs/handoffs.md). A draft passes a gate when nothing that is required is missing in it; what is superseded counts as
absent. Every way into review and done is gated, so that no detour (by backlog, or by a question) leads around a gate;
only from done, which was gated itself, review is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from accord.core.findings import Finding
from accord.core.machine import Edge, Machine
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
    """Into review: a review artifact and a verification artifact, with all that is required of them."""
    review = _present(metadata.review_artifact)
    if review is None:
        yield _missing_review(_REVIEW, "There is no reviewArtifact")
    elif not _says_something(review.change_summary):
        yield _missing_review(f"{_REVIEW}/changeSummary", "The reviewArtifact has no changeSummary")
    verification = _present(metadata.verification_artifact)
    if verification is None:
        yield _missing_review(_VERIFICATION, "There is no verificationArtifact")
        return
    if not _says_something(verification.commands):
        yield _missing_review(f"{_VERIFICATION}/commands", "The verificationArtifact names no commands")
    if verification.result is None:
        yield _missing_review(f"{_VERIFICATION}/result", "The verificationArtifact has no result")


def verification_gate(metadata: Metadata) -> Iterator[Finding]:
    """Forward from review: what review asks for, and the decision approved."""
    yield from review_gate(metadata)
    review = _present(metadata.review_artifact)
    if review is not None and review.decision != "approved":
        message = "The decision of the reviewArtifact is not approved. Fix what the review asks for, and review again."
        yield Finding("review-not-approved", message, f"{_REVIEW}/decision")


def done_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into done: an approved review, verification that passed, and a done artifact."""
    yield from verification_gate(metadata)
    verification = _present(metadata.verification_artifact)
    if verification is not None and verification.result == "failed":
        message = "The result of the verificationArtifact is failed. Fix what fails, and verify again."
        yield Finding("verification-not-passed", message, f"{_VERIFICATION}/result")
    done = _present(metadata.done_artifact)
    if done is None:
        yield _missing_done(_DONE, "There is no doneArtifact")
        return
    if not done.completed_at:
        yield _missing_done(f"{_DONE}/completedAt", "The doneArtifact has no completedAt")
    if not _says_something(done.summary):
        yield _missing_done(f"{_DONE}/summary", "The doneArtifact has no summary")


def awaiting_human_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into awaiting_human: a question, at least two options, one of them recommended, and since when."""
    asked = _present(metadata.awaiting_human_artifact)
    if asked is None:
        yield _missing_question(_AWAITING, "There is no awaitingHumanArtifact")
        return
    labels = [option.label for option in asked.options if option.label.strip()]
    if not asked.question.strip():
        yield _missing_question(f"{_AWAITING}/question", "The awaitingHumanArtifact asks no question")
    if len(set(labels)) < _LEAST_OPTIONS:
        yield _missing_question(f"{_AWAITING}/options", "The awaitingHumanArtifact has fewer than two options")
    if asked.recommended_option not in labels:
        yield _missing_question(f"{_AWAITING}/recommendedOption", "No label of an option is recommended")
    if not asked.requested_at:
        yield _missing_question(f"{_AWAITING}/requestedAt", "The awaitingHumanArtifact does not say since when")


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
    """Name what is missing for a move that the table has; nothing when it may be made."""
    gate = None if (source, target) in _UNGATED else GATES.get(target)
    return list(gate(metadata)) if gate else []


def _edge(source: str, target: str) -> Edge[Metadata]:
    if target not in GATES or (source, target) in _UNGATED:
        return Edge(source, target)

    def guard(metadata: Metadata) -> str:
        return " ".join(finding.message for finding in gate_findings(source, target, metadata))

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


def _says_something(entries: list[str]) -> bool:
    return any(entry.strip() for entry in entries)


def _missing_review(path: str, what: str) -> Finding:
    return Finding("missing-review-artifacts", f"{what}. Add it before the task goes on.", path)


def _missing_done(path: str, what: str) -> Finding:
    return Finding("missing-done-artifact", f"{what}. Add it before the task is done.", path)


def _missing_question(path: str, what: str) -> Finding:
    message = f"{what}. Write question, options, recommendedOption (one of their labels) and requestedAt."
    return Finding("missing-awaiting-human-artifact", message, path)
