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
_ADD = "Add it before the move."
_ASK = "Write question, options, recommendedOption (one of their labels) and requestedAt."

Artifact = TypeVar("Artifact", bound=StageArtifact)


def review_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into review: a review artifact and a verification artifact with their required parts."""
    for artifact, parts in (("reviewArtifact", ["changeSummary"]), ("verificationArtifact", ["commands", "result"])):
        yield from _missing("missing-review-artifacts", metadata, artifact, parts, _ADD)


def verification_gate(metadata: Metadata) -> Iterator[Finding]:
    """Forward from review: the artifacts of review, and the decision `approved`."""
    yield from review_gate(metadata)
    review = _present(metadata.review_artifact)
    if review and review.decision != "approved":
        message = "The decision of the reviewArtifact is not `approved`."
        hint = "Fix the findings of the review, then review again."
        yield Finding("review-not-approved", message, "/metadata/reviewArtifact/decision", hint=hint)


def done_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into done: an approved review, verification that passed, and a done artifact."""
    yield from verification_gate(metadata)
    verification = _present(metadata.verification_artifact)
    if verification and verification.result == "failed":
        message = "The result of the verificationArtifact is `failed`."
        hint = "Fix the failures, then verify again."
        yield Finding("verification-not-passed", message, "/metadata/verificationArtifact/result", hint=hint)
    yield from _missing("missing-done-artifact", metadata, "doneArtifact", ["completedAt", "summary"], _ADD)


def awaiting_human_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into awaiting_human: a question, at least two options, one of them recommended, and the time of the request."""
    name = "awaitingHumanArtifact"
    yield from _missing("missing-awaiting-human-artifact", metadata, name, ["question", "requestedAt"], _ASK)
    asked = _present(metadata.awaiting_human_artifact)
    if asked:
        labels = [option.label for option in asked.options if option.label.strip()]
        if len(set(labels)) < _LEAST_OPTIONS:
            yield Finding(
                "missing-awaiting-human-artifact",
                f"The {name} has fewer than two options.",
                f"/metadata/{name}/options",
                hint=_ASK,
            )
        if asked.recommended_option not in labels:
            message = "The recommendedOption is not the label of an option."
            hint = did_you_mean(asked.recommended_option or "", labels) or _ASK
            yield Finding("missing-awaiting-human-artifact", message, f"/metadata/{name}/recommendedOption", hint=hint)


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
    is_gated = target in GATES and (source, target) not in _UNGATED

    def guard(metadata: Metadata) -> str:
        return " ".join(finding.text for finding in gate_findings(source, target, metadata))

    return Edge(source, target, _NEEDS[target] if is_gated else "", guard)


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


def _missing(code: str, metadata: Metadata, name: str, parts: list[str], hint: str) -> Iterator[Finding]:
    """Find an artifact that is missing, or those of its parts that have no text."""
    artifact = metadata.model_dump(by_alias=True)[name]
    if artifact is None or artifact["status"] == "superseded":
        yield Finding(code, f"The {name} is missing.", f"/metadata/{name}", hint=hint)
        return
    for part in parts:
        entries = artifact[part] if isinstance(artifact[part], list) else [artifact[part]]
        if not any(entry and entry.strip() for entry in entries):
            yield Finding(code, f"The {name} has no {part}.", f"/metadata/{name}/{part}", hint=hint)
