"""The statuses of a task, the moves between them with the artifacts that each requires, and the next moves. Pure.

Source: handoff schema, "Stage-gate validation" and "Partial/In-Progress Representation"; the table is accord's choice
(docs/handoffs.md). Every way into review and done is gated; only done itself leads back to review without a gate.
Planning leads to implementing with the outputs of the planner, also by a question.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar

from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.core.machine import Edge, Machine, NextMove
from accord.core.suggest import did_you_mean
from accord.core.texts import is_placeholder
from accord.handoffs.evidence import future_findings, is_outdated, question_digest
from accord.handoffs.models import Metadata, StageArtifact, read_handoff
from accord.text.hidden import comparable_name, strip_hidden

AWAITING = "awaiting_human"
DONE = "done"

_LEAST_OPTIONS = 2
_ADD = "Write {what} with `accord handoff patch TASK.json PATCH.json --role {role}`, or in the `--patch` of the move."
_ASK = "Write question, options, recommendedOption (one of their labels) and requestedAt."

ArtifactT = TypeVar("ArtifactT", bound=StageArtifact)


def planner_gate(metadata: Metadata) -> Iterator[Finding]:
    """From planning into implementing: a plan and planned tests, or notes instead of those."""
    plan, tests = _current_artifact(metadata.planning_artifact), _current_artifact(metadata.testing_artifacts)
    planned = _current_artifact(tests.planned) if tests else None
    intents = [planned.gherkin_scenarios, planned.unit_test_intent, planned.integration_test_intent] if planned else []
    outputs = {
        "planningArtifact": [*plan.goals, *plan.steps, *plan.risks] if plan else [],
        "testingArtifacts.planned": [*chain(*intents), (planned and planned.notes) or ""],
    }
    for name, texts in outputs.items():
        if all(is_placeholder(strip_hidden(text)) for text in texts):
            path, hint = f"/metadata/{name.replace('.', '/')}", _ADD.format(what=f"`{name}`", role="planner")
            yield Finding("missing-planning-artifacts", f"The {name} is missing.", path, hint=hint)


def review_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into review: a review artifact and a verification artifact with their required parts."""
    for artifact, parts in (("reviewArtifact", ["changeSummary"]), ("verificationArtifact", ["commands", "result"])):
        yield from _missing_parts("missing-review-artifacts", metadata, artifact, parts)
    if _current_artifact(metadata.verification_artifact) and is_outdated(metadata, "result"):
        message = "The result of the verificationArtifact is older than the last change of it or of the work."
        hint = "Verify again, and write the `result` once more."
        yield Finding("verification-outdated", message, "/metadata/verificationArtifact/result", hint=hint)


def verification_gate(metadata: Metadata) -> Iterator[Finding]:
    """Forward from review: the artifacts of review, and the decision `approved`."""
    yield from review_gate(metadata)
    review = _current_artifact(metadata.review_artifact)
    if review and review.decision != "approved":
        message = "The decision of the reviewArtifact is not `approved`."
        hint = "Fix the findings of the review, then review again."
        yield Finding("review-not-approved", message, "/metadata/reviewArtifact/decision", hint=hint)
    elif review and is_outdated(metadata, "decision"):
        message = "The decision of the reviewArtifact is older than the last change of it or of the work."
        hint = "Review again, and write the `decision` once more."
        yield Finding("review-outdated", message, "/metadata/reviewArtifact/decision", hint=hint)


def done_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into done: an approved review, verification that passed, and a done artifact."""
    yield from verification_gate(metadata)
    verification = _current_artifact(metadata.verification_artifact)
    if verification and verification.result == "failed":
        message = "The result of the verificationArtifact is `failed`."
        hint = "Fix the failures, then verify again."
        yield Finding("verification-not-passed", message, "/metadata/verificationArtifact/result", hint=hint)
    yield from _missing_parts("missing-done-artifact", metadata, "doneArtifact", ["completedAt", "summary"])


def awaiting_human_gate(metadata: Metadata) -> Iterator[Finding]:
    """Into awaiting_human: a question, at least two options, one of them recommended, and the time of the request."""
    name = "awaitingHumanArtifact"
    yield from _missing_parts("missing-awaiting-human-artifact", metadata, name, ["question", "requestedAt"], _ASK)
    if asked := _current_artifact(metadata.awaiting_human_artifact):
        labels = [option.label for option in asked.options if not is_placeholder(strip_hidden(option.label))]
        if len(set(map(comparable_name, labels))) < _LEAST_OPTIONS:
            message, path = f"The {name} has fewer than two different options.", f"/metadata/{name}/options"
            yield Finding("missing-awaiting-human-artifact", message, path, hint=_ASK)
        if asked.recommended_option not in labels:
            message = "The recommendedOption is not the label of an option."
            hint = did_you_mean(asked.recommended_option or "", labels) or _ASK
            yield Finding("missing-awaiting-human-artifact", message, f"/metadata/{name}/recommendedOption", hint=hint)
        if metadata.workflow_runtime and metadata.workflow_runtime.answered == question_digest(metadata):
            message = f"The task already waited for an answer to the question of the {name}."
            yield Finding("question-answered", message, f"/metadata/{name}/question", hint="Write a new question.")


Gate = Callable[[Metadata], Iterator[Finding]]
GATES: dict[str, Gate] = {
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
    "backlog": ("planning", "implementing", DONE, "cancelled"),
    "planning": ("backlog", "implementing", AWAITING, "cancelled"),
    "implementing": ("backlog", "review", AWAITING, "cancelled"),
    "review": ("implementing", "verification", DONE, AWAITING, "cancelled"),
    "verification": ("implementing", DONE, AWAITING, "cancelled"),
    AWAITING: ("planning", "implementing", "review", "cancelled"),
    DONE: ("review", "cancelled"),
    "cancelled": ("backlog",),
}
_OF_EDGE: dict[tuple[str, str], tuple[str, Gate | None]] = {
    (DONE, "review"): ("", None),
    ("planning", "implementing"): ("plan and planned tests", planner_gate),
}
"""Needs and gate of single edges."""


_TIMES = {DONE: "/metadata/doneArtifact/completedAt", AWAITING: "/metadata/awaitingHumanArtifact/requestedAt"}


def gate_findings(source: str, target: str, metadata: Metadata, now: datetime) -> list[Finding]:
    """Return what is missing for a move of the table; empty when the move is allowed."""
    edge = ("planning" if is_from_planning(source, metadata) else source, target)
    _, gate = _OF_EDGE.get(edge, ("", GATES.get(target)))
    future = [found for found in future_findings(metadata, now) if found.path == _TIMES.get(target)]
    return [*gate(metadata), *future] if gate else []


def is_from_planning(status: str, metadata: Metadata) -> bool:
    """Tell whether a task is in planning, or came from there into its status: with a question, or to be implemented."""
    last = metadata.workflow_runtime.last_transition if metadata.workflow_runtime else None
    came = last and status in (AWAITING, "implementing") and (last.source, last.target) == ("planning", status)
    return status == "planning" or bool(came)


HANDOFF: Machine[None] = Machine(
    "handoff",
    "backlog",
    frozenset(),
    tuple(
        Edge(source, target, _OF_EDGE.get((source, target), (_NEEDS.get(target, ""), None))[0])
        for source, targets in _MOVES.items()
        for target in targets
    ),
)


def _current_artifact(artifact: ArtifactT | None) -> ArtifactT | None:
    return None if artifact is None or artifact.status == "superseded" else artifact


def _missing_parts(code: str, metadata: Metadata, name: str, parts: list[str], hint: str = "") -> Iterator[Finding]:
    """Find an artifact that is missing, or those of its parts that have no text."""
    artifact, role = metadata.model_dump(by_alias=True)[name], _AUTHORS[name]
    if artifact is None or artifact["status"] == "superseded":
        again = [] if artifact is None else ["status"]
        add = _ADD.format(what=f"`{name}` ({', '.join([*parts, *again])})", role=role)
        message = f"The {name} is {'superseded' if again else 'missing'}."
        yield Finding(code, message, f"/metadata/{name}", hint=hint or add)
        return
    for part in parts:
        entries = artifact[part] if isinstance(artifact[part], list) else [artifact[part]]
        if all(not entry or is_placeholder(strip_hidden(entry)) for entry in entries):
            what = "has only a placeholder as" if any(map(str.strip, filter(None, entries))) else "has no"
            add = _ADD.format(what=f"`{part}` of `{name}`", role=role)
            yield Finding(code, f"The {name} {what} {part}.", f"/metadata/{name}/{part}", hint=hint or add)


_MOVERS = {
    "backlog": "planner",
    "planning": "planner",
    "implementing": "developer",
    "review": "reviewer",
    "verification": "tester",
    AWAITING: "human",
    DONE: "human",
    "cancelled": "human",
}
"""The role that usually moves a task out of a status."""

_AUTHORS = {
    "planningArtifact": "planner",
    "testingArtifacts": "planner",
    "reviewArtifact": "developer",
    "reviewArtifact.decision": "reviewer",
    "verificationArtifact": "tester",
    "doneArtifact": "retrospective",
    "awaitingHumanArtifact": "planner",
}
"""The role that usually writes an artifact, or one of its fields."""

_VERDICTS = {"review-not-approved": "approved", "verification-not-passed": "passed"}
_VERDICTS |= {"review-outdated": "approved after the last change", "verification-outdated": "after the last change"}
_VERDICTS |= {"question-answered": "that is new", "timestamp-future": "not in the future"}


class HandoffCommand(Frozen):
    """How to name a handoff in a command."""

    place: str  # its file, or options for its work item
    role: str = ""  # of the one who just wrote
    actor: str = ""  # who just wrote

    def text(self, words: str, role: str) -> str:
        """Return a command for this handoff; the actor stays where the role does."""
        verb, _, more = words.partition(" ")
        actor = f" --actor {shlex.quote(self.actor)}" if self.actor and role == self.role else ""
        return f"accord handoff {verb} {self.place} {more} --role {role}{actor}"


def next_moves(task: Mapping[str, Any], command: HandoffCommand, now: datetime) -> list[NextMove]:
    """Return the legal moves of a task that has the required shape, each with what it lacks and a command to type.

    Where something is missing, the command is for a role that may write the first of it, with a patch in PATCH.json.
    """
    status, metadata = str(task["status"]), read_handoff(task).metadata
    found = []
    for target in HANDOFF.targets(status):
        missing = gate_findings(status, target, metadata, now)
        names = [finding.path.removeprefix("/metadata/").replace("/", ".") for finding in missing]
        verdicts = [_VERDICTS.get(finding.code, "") for finding in missing]
        needs = dict.fromkeys(f"{name} {verdict}".rstrip() for name, verdict in zip(names, verdicts, strict=True))
        if missing:
            typed = command.text("patch PATCH.json", _AUTHORS.get(names[0]) or _AUTHORS[names[0].partition(".")[0]])
        else:
            typed = command.text(f"move --to {target}", _MOVERS[status])
        found.append(NextMove(target, tuple(needs), typed))
    return found
