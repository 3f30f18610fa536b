"""The lifecycle of a work package: its statuses, and what each move needs. Pure.

``approved`` is never skipped or invented: nothing is done without a recorded approval, not even by force, and one actor
approves its own work only with a recorded reason. Source: mission contracts, "Planning-Artifact Lifecycle".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.core.errors import BrokenContract
from accord.core.findings import finding_of
from accord.core.machine import Edge, Machine
from accord.missions.models import STATUSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from accord.missions.models import StatusEvent, WorkPackageStatus

    Step = tuple[WorkPackageStatus, WorkPackageStatus]

THROUGH: tuple[WorkPackageStatus, ...] = ("claimed", "in_review")
"""Statuses that a move passes through; each gets its own event."""

REOPENED = ("in_progress", "planned")
"""Statuses to which a review sends work back."""


@dataclass(frozen=True)
class MoveRequest:
    """A requested move: the work package, its new status, the actor and the reasons. An empty text was not given."""

    wp_id: str
    target: WorkPackageStatus
    actor: str
    feedback: str = ""
    review_ref: str = ""
    override_reason: str = ""
    reason: str = ""
    is_forced: bool = False


@dataclass(frozen=True)
class MoveFacts:
    """A request, and the facts that its guards read; an empty text is a problem that does not exist.

    ``holder`` is the actor of the last move, ``implementers`` are those who did the work. ``waits_for`` are
    dependencies whose review has not passed; ``dependency_problem`` is why one never can.
    """

    request: MoveRequest
    holder: str = ""
    implementers: frozenset[str] = frozenset()
    is_approved: bool = False
    workspace_problem: str = ""
    open_subtasks: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    dependency_problem: str = ""
    evidence_problem: str = ""
    merge_problem: str = ""


def _requires(is_given: Callable[[MoveFacts], object], refusal: str) -> Callable[[MoveFacts], str]:
    return lambda facts: "" if is_given(facts) else refusal


def _may_start(facts: MoveFacts) -> str:
    if facts.dependency_problem:
        return facts.dependency_problem
    if facts.waits_for:
        return f"It depends on {', '.join(facts.waits_for)}, whose review has not passed. Finish that first."
    return _check_actor(facts)


def _may_continue(facts: MoveFacts) -> str:
    """Require of blocked work what any start needs: it may never have started."""
    return _may_start(facts) or facts.workspace_problem


def _refers_to_work(facts: MoveFacts) -> bool:
    return bool(facts.request.review_ref or facts.request.feedback)


def _check_ready(facts: MoveFacts) -> str:
    if facts.open_subtasks:
        return f"These subtasks are open in tasks.md: {', '.join(facts.open_subtasks)}. Finish and tick them."
    if facts.evidence_problem and not _refers_to_work(facts):
        return f"{facts.evidence_problem} Commit the work, or describe it with `--feedback`."
    return ""


def is_self_review(facts: MoveFacts) -> bool:
    """Tell whether an actor claims or gives the review of its own work; taking work back is not a review."""
    return facts.request.target not in REOPENED and facts.request.actor in facts.implementers


def _check_reviewer(facts: MoveFacts) -> str:
    if refusal := _check_actor(facts):
        return refusal
    if not is_self_review(facts) or facts.request.override_reason:
        return ""
    who = facts.request.actor
    return f"{who} did this work. Let another `--actor` review it, or say why not with `--override-reason TEXT`."


def _check_approval(facts: MoveFacts) -> str:
    if not facts.request.review_ref:
        return "The move skips the review. Pass `--review-ref` as evidence of one, or move it to for_review."
    return _check_reviewer(facts)


def _check_complete(facts: MoveFacts) -> str:
    if not facts.is_approved:
        return "No approval of its present state is recorded. Move it to approved first, with or without `--force`."
    if not facts.merge_problem or facts.request.override_reason:
        return ""
    return f"{facts.merge_problem} `--override-reason TEXT` allows it without a merge; `--force` does not."


_check_actor = _requires(lambda facts: facts.request.actor.strip(), "No actor given. Pass `--actor`.")
_check_review = _requires(lambda facts: facts.request.review_ref, "No review given. Pass `--review-ref`.")
_check_findings = _requires(
    lambda facts: _refers_to_work(facts) or facts.request.reason,
    "No review findings given. Pass `--review-ref` or `--feedback`.",
)
_says_why = _requires(
    lambda facts: facts.request.reason or facts.request.feedback, "No reason given. Pass `--reason` or `--feedback`."
)
_BEFORE_DONE = STATUSES[: STATUSES.index("approved") + 1]


WORK_PACKAGE: Machine[MoveFacts] = Machine(
    "work package",
    "planned",
    frozenset({"done", "canceled"}),
    (
        Edge("planned", "claimed", "an actor, dependencies approved", _may_start),
        Edge("claimed", "in_progress", "a workspace", lambda facts: facts.workspace_problem),
        Edge("in_progress", "for_review", "subtasks done, evidence", _check_ready),
        Edge("for_review", "in_review", "another actor", _check_reviewer),
        Edge("in_review", "approved", "another actor", _check_reviewer),
        Edge("in_review", "in_progress", "review reference or feedback", _check_findings),
        Edge("in_review", "planned", "review reference or feedback", _check_findings),
        Edge("in_progress", "approved", "review reference", _check_approval),
        Edge("in_progress", "planned", "a reason", _says_why),
        Edge("approved", "done", "merged, or a planning artifact", _check_complete),
        Edge("approved", "in_progress", "review reference", _check_review),
        Edge("approved", "planned", "review reference", _check_review),
        *(Edge(source, "blocked") for source in _BEFORE_DONE),
        Edge("blocked", "in_progress", "dependencies approved, a workspace", _may_continue),
        *(Edge(source, "canceled") for source in (*_BEFORE_DONE, "blocked")),
    ),
)


def plan_move(source: WorkPackageStatus, facts: MoveFacts) -> tuple[Step, ...]:
    """Return the steps of a move, none if it is done. Raises ``illegal-move``; force does not replace a merge."""
    target = facts.request.target
    if reason := _refusal(source, facts):
        raise BrokenContract.of(finding_of("illegal-move", f"The move from {source} to {target} is refused: {reason}"))
    if source == target or facts.request.is_forced:
        return ((source, target),) if source != target else ()
    return steps_between(source, target)


def _refusal(source: WorkPackageStatus, facts: MoveFacts) -> str:
    request = facts.request
    if source == request.target:
        is_own = source not in THROUGH or not facts.holder or request.actor == facts.holder or request.is_forced
        hint = "Choose another work package, or pass `--force` with `--reason`."
        return "" if is_own else f"{facts.holder} has claimed it. {hint}"
    if refusal := _check_actor(facts):
        return refusal
    if request.is_forced and not request.reason:
        return "`--force` needs a reason. Pass `--reason`."
    if request.is_forced:
        return _check_complete(facts) if request.target == "done" else ""
    refusals = (WORK_PACKAGE.refusal(a, b, facts) for a, b in steps_between(source, request.target))
    return next((refusal for refusal in refusals if refusal), "")


def needs_of(source: WorkPackageStatus, facts: MoveFacts) -> tuple[str, ...]:
    """Name what a legal move of a complete request still lacks: approvals, a lane, subtasks, commits, a merge."""
    found: list[str] = []
    for edge in steps_between(source, facts.request.target):
        if edge[1] == "claimed" or edge == ("blocked", "in_progress"):
            found += [f"approval of {name}" for name in facts.waits_for]
        if edge[1] == "in_progress" and edge[0] in ("claimed", "blocked") and facts.workspace_problem:
            found.append("a lane")
        if edge == ("in_progress", "for_review"):
            found += [f"subtask {name}" for name in facts.open_subtasks]
            found += ["an own commit"] if facts.evidence_problem and not _refers_to_work(facts) else []
        if edge[1] == "done":
            found += ["an approval"] if not facts.is_approved else ["a merge"] if facts.merge_problem else []
    return tuple(found)


def implementers_of(events: Iterable[StatusEvent]) -> frozenset[str]:
    """Return who did the work: the actors that claimed, started or handed it in; one that sends it back did not."""
    reviewed = ("for_review", "in_review", "approved")
    worked = (
        event for event in events if event.to_lane in ("claimed", "in_progress", "for_review") and event.actor.strip()
    )
    return frozenset(event.actor for event in worked if event.from_lane not in reviewed)


def approval_of(events: Iterable[StatusEvent]) -> StatusEvent | None:
    """Return the recorded approval that still counts; work that moves on from it needs a new one."""
    found = None
    for event in events:
        if event.to_lane == "approved":
            found = event
        elif event.to_lane not in ("done", "blocked"):
            found = None
    return found


def steps_between(source: WorkPackageStatus, target: WorkPackageStatus) -> tuple[Step, ...]:
    """Return the one or two edges of a move; an illegal move is returned as it is, for the machine to refuse."""
    if target not in WORK_PACKAGE.targets(source):
        for between in THROUGH:
            if between in WORK_PACKAGE.targets(source) and target in WORK_PACKAGE.targets(between):
                return ((source, between), (between, target))
    return ((source, target),)
