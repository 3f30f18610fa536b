"""The life of a work package: its statuses, the moves between them, and what each move needs.

Pure. Statuses mean the same for both execution modes; only what ``done`` needs differs: a code change must be merged, a
planning artifact must be accepted. Source: mission contracts, "Planning-Artifact Lifecycle".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding
from accord.kernel.machine import Edge, Machine
from accord.missions.models import STATUSES

if TYPE_CHECKING:
    from accord.missions.models import Status

THROUGH = ("claimed", "in_review")
"""Statuses that a move passes on its way; each gets an event of its own."""

STARTABLE = frozenset({"approved", "done"})
"""Where a dependency is when what depends on it may start."""


@dataclass(frozen=True)
class MoveFacts:
    """What the guards look at. A text that is empty is one that was not given, or a problem that is not there.

    ``holder`` is who moved the work package to where it is. ``waits_for`` are dependencies whose review has not passed.
    """

    actor: str = ""
    reason: str = ""
    feedback: str = ""
    review_ref: str = ""
    override_reason: str = ""
    holder: str = ""
    workspace_problem: str = ""
    open_subtasks: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    evidence_problem: str = ""
    merge_problem: str = ""


def _has_actor(facts: MoveFacts) -> str:
    return "" if facts.actor.strip() else "It is not said who makes the move. Pass --actor."


def _may_start(facts: MoveFacts) -> str:
    if facts.waits_for:
        return f"It depends on {', '.join(facts.waits_for)}, whose review has not passed. Finish that first."
    return _has_actor(facts)


def _has_workspace(facts: MoveFacts) -> str:
    return facts.workspace_problem


def _is_ready(facts: MoveFacts) -> str:
    if facts.open_subtasks:
        return f"These subtasks are open in tasks.md: {', '.join(facts.open_subtasks)}. Finish them, and tick them."
    if facts.evidence_problem and not (facts.feedback or facts.review_ref):
        return f"{facts.evidence_problem} Commit the work, or say in --feedback what there is to review."
    return ""


def _says_why(facts: MoveFacts) -> str:
    return "" if facts.reason or facts.feedback else "It is not said why. Pass --reason or --feedback."


def _has_review(facts: MoveFacts) -> str:
    return "" if facts.review_ref else "The review that decided it is not named. Pass --review-ref."


def _has_findings(facts: MoveFacts) -> str:
    is_said = facts.review_ref or facts.feedback or facts.reason
    return "" if is_said else "What the review found is not said. Pass --review-ref or --feedback."


def _has_evidence(facts: MoveFacts) -> str:
    is_said = facts.review_ref or facts.feedback
    return "" if is_said else "It skips the review. Pass --review-ref or --feedback as evidence of a review."


def _is_complete(facts: MoveFacts) -> str:
    if not facts.merge_problem or facts.override_reason:
        return ""
    return f"{facts.merge_problem} Merge it, or say in --override-reason why it is done without; --force does not help."


WORK_PACKAGE: Machine[MoveFacts] = Machine(
    "work package",
    "planned",
    frozenset({"done", "canceled"}),
    (
        Edge("planned", "claimed", "an actor, dependencies approved", _may_start),
        Edge("claimed", "in_progress", "a workspace", _has_workspace),
        Edge("in_progress", "for_review", "subtasks done, evidence", _is_ready),
        Edge("for_review", "in_review", "an actor", _has_actor),
        Edge("in_review", "approved", "an actor", _has_actor),
        Edge("in_review", "done", "merged, or a planning artifact", _is_complete),
        Edge("in_review", "in_progress", "review reference or feedback", _has_findings),
        Edge("in_review", "planned", "review reference or feedback", _has_findings),
        Edge("in_progress", "approved", "evidence of a review", _has_evidence),
        Edge("in_progress", "planned", "a reason", _says_why),
        Edge("approved", "done", "merged, or a planning artifact", _is_complete),
        Edge("approved", "in_progress", "review reference", _has_review),
        Edge("approved", "planned", "review reference", _has_review),
        *(Edge(source, "blocked") for source in STATUSES[: STATUSES.index("approved") + 1]),
        Edge("blocked", "in_progress"),
        *(Edge(source, "canceled") for source in (*STATUSES[: STATUSES.index("approved") + 1], "blocked")),
    ),
)


def plan_move(
    source: Status, target: Status, facts: MoveFacts, *, is_forced: bool = False
) -> tuple[tuple[Status, Status], ...]:
    """Judge a move; return its steps, none when the work package is there already.

    Raises BrokenContract ``illegal-move``, naming the legal moves. Force takes any edge for an actor with a reason,
    and is no way around the merge that ``done`` needs.
    """
    refusal = _refusal(source, target, facts, is_forced=is_forced)
    if refusal:
        message = f"It cannot move from {source} to {target}: {refusal}"
        raise BrokenContract(message, findings=[Finding("illegal-move", message)])
    if source == target:
        return ()
    if is_forced:
        return ((source, target),)
    return tuple((cast("Status", a), cast("Status", b)) for a, b in _way(source, target))


def _refusal(source: Status, target: Status, facts: MoveFacts, *, is_forced: bool) -> str:
    if source == target:
        is_taken = source in THROUGH and facts.holder and facts.actor != facts.holder and not is_forced
        return f"{facts.holder} has it already. Take another one, or pass --force with --reason." if is_taken else ""
    if _has_actor(facts):
        return _has_actor(facts)
    if is_forced:
        unsaid = "" if facts.reason else "Force needs a reason. Pass --reason."
        return unsaid or (_is_complete(facts) if target == "done" else "")
    refusals = (WORK_PACKAGE.refusal(a, b, facts) for a, b in _way(source, target))
    return next((refusal for refusal in refusals if refusal), "")


def _way(source: str, target: str) -> tuple[tuple[str, str], ...]:
    """Find the one or two edges of a move; without a way the move itself, which the machine refuses."""
    if target not in WORK_PACKAGE.targets(source):
        for between in THROUGH:
            if between in WORK_PACKAGE.targets(source) and target in WORK_PACKAGE.targets(between):
                return ((source, between), (between, target))
    return ((source, target),)
