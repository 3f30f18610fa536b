"""Moves of a work package: gather facts, plan the events, and append them to the log, under the folder's lock.

The log only grows. The same command continues a move that stopped half-way, and writes nothing for one that is done.
Nothing else of the mission is written. Source: mission contracts, "Planning-Artifact Lifecycle".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from accord.core.clock import ulid
from accord.core.errors import BrokenContract, Refused
from accord.core.findings import finding_of
from accord.core.machine import Edge, Machine
from accord.files.store import Storage, append_once, folder_lock
from accord.missions.branches import git_of
from accord.missions.load import load_mission, log_path
from accord.missions.models import STATUSES
from accord.missions.workspace import resolve_workspace
from accord.text.checklists import tasks

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.missions.load import Mission
    from accord.missions.models import ExecutionMode, WorkPackageStatus

    Step = tuple[WorkPackageStatus, WorkPackageStatus]

THROUGH: tuple[WorkPackageStatus, ...] = ("claimed", "in_review")
"""Statuses that a move passes through; each gets its own event."""

STARTABLE = frozenset({"approved", "done"})
"""Statuses of a dependency that let its dependents start."""

_FIRST_WORD = re.compile(r"\A\W*(\w+)")


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

    ``holder`` is the actor of the last move. ``waits_for`` are dependencies whose review has not passed.
    """

    request: MoveRequest
    holder: str = ""
    workspace_problem: str = ""
    open_subtasks: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    evidence_problem: str = ""
    merge_problem: str = ""


def _requires(is_given: Callable[[MoveFacts], object], refusal: str) -> Callable[[MoveFacts], str]:
    return lambda facts: "" if is_given(facts) else refusal


def _may_start(facts: MoveFacts) -> str:
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


def _check_complete(facts: MoveFacts) -> str:
    if not facts.merge_problem or facts.request.override_reason:
        return ""
    return f"{facts.merge_problem} `--override-reason TEXT` allows it without a merge; `--force` does not."


_check_actor = _requires(lambda facts: facts.request.actor.strip(), "No actor given. Pass `--actor`.")
_check_review = _requires(lambda facts: facts.request.review_ref, "No review given. Pass `--review-ref`.")
_check_evidence = _requires(
    _refers_to_work, "The move skips the review. Pass `--review-ref` or `--feedback` as evidence."
)
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
        Edge("for_review", "in_review", "an actor", _check_actor),
        Edge("in_review", "approved", "an actor", _check_actor),
        Edge("in_review", "done", "merged, or a planning artifact", _check_complete),
        Edge("in_review", "in_progress", "review reference or feedback", _check_findings),
        Edge("in_review", "planned", "review reference or feedback", _check_findings),
        Edge("in_progress", "approved", "evidence of a review", _check_evidence),
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
        message = f"The move from {source} to {target} is refused: {reason}"
        raise BrokenContract.of(finding_of("illegal-move", message))
    if source == target or facts.request.is_forced:
        return ((source, target),) if source != target else ()
    return _steps(source, target)


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
    refusals = (WORK_PACKAGE.refusal(a, b, facts) for a, b in _steps(source, request.target))
    return next((refusal for refusal in refusals if refusal), "")


def _steps(source: WorkPackageStatus, target: WorkPackageStatus) -> tuple[Step, ...]:
    """Return the one or two edges of a move; an illegal move is returned as it is, for the machine to refuse."""
    if target not in WORK_PACKAGE.targets(source):
        for between in THROUGH:
            if between in WORK_PACKAGE.targets(source) and target in WORK_PACKAGE.targets(between):
                return ((source, between), (between, target))
    return ((source, target),)


@dataclass(frozen=True)
class MoveResult:
    """A move and its events; without events if it was done already."""

    source: WorkPackageStatus
    target: WorkPackageStatus
    events: tuple[dict[str, Any], ...]


def move(
    root: Path,
    slug: str,
    request: MoveRequest,
    clock: Clock,
    *,
    redact: Callable[[str], str],
    legacy_default: ExecutionMode | None = None,
    is_dry_run: bool = False,
) -> MoveResult:
    """Move a work package. Raises BrokenContract when the move is illegal; then nothing is written."""
    folder = load_mission(root, slug, legacy_default).folder
    if log_path(folder).is_symlink():
        raise Refused(f"{log_path(folder)} is a symbolic link.", hint="Replace it with a regular file.")
    storage = Storage(clock)
    with folder_lock(folder, storage):
        mission = load_mission(root, slug, legacy_default)
        source = mission.status_of(request.wp_id)
        steps = plan_move(source, _facts(mission, request, source))
        events = plan_events(mission, request, steps, clock.now(), redact)
        for event in events if not is_dry_run else ():
            append_once(log_path(folder), json.dumps(event, sort_keys=True).encode(), storage)
    return MoveResult(source, request.target, events)


def _facts(mission: Mission, request: MoveRequest, source: WorkPackageStatus) -> MoveFacts:
    """Gather the facts of a move; git reads only what this move needs."""
    work_package = mission.work_package(request.wp_id)
    is_code = work_package.mode.value == "code_change"
    latest = mission.log.latest.get(request.wp_id)
    branch, workspace_problem, evidence_problem = "", "", ""
    try:
        branch = resolve_workspace(mission, request.wp_id).branch_name or ""
    except BrokenContract as broken:
        workspace_problem = broken.message
    needs_evidence = is_code and request.target == "for_review" and source == "in_progress" and not request.is_forced
    needs_merge = is_code and request.target == "done" and source != "done"
    git = git_of(mission, request.wp_id)
    if needs_evidence and branch:
        own = git.own_commits(branch)
        evidence_problem = own.error or ("" if own.count else f"The branch {branch} has no own commit.")
    return MoveFacts(
        request,
        holder=latest.actor if latest else "",
        workspace_problem=workspace_problem,
        open_subtasks=open_subtasks(mission, work_package.head.subtasks),
        waits_for=tuple(name for name in work_package.head.dependencies if mission.status_of(name) not in STARTABLE),
        evidence_problem=evidence_problem,
        merge_problem=(workspace_problem or git.merge_problem(branch)) if needs_merge else "",
    )


def open_subtasks(mission: Mission, subtasks: list[str]) -> tuple[str, ...]:
    """Return the subtasks whose box in ``tasks.md`` is not ticked; a box begins with its subtask's name."""
    path = mission.folder / "tasks.md"
    if not subtasks or not path.is_file():
        return ()
    listed = tasks(path.read_text(encoding="utf-8", errors="replace"))
    words = (_FIRST_WORD.match(task.text) for task in listed if not task.is_checked)
    return tuple(word[1] for word in words if word and word[1] in subtasks)


def plan_events(
    mission: Mission,
    request: MoveRequest,
    steps: tuple[Step, ...],
    now: datetime,
    redact: Callable[[str], str],
) -> tuple[dict[str, Any], ...]:
    """Return the events of a move, each strictly later than all before it, whatever the clock says."""
    before = max((event.at for event in mission.log.events if event.wp_id == request.wp_id), default=None)
    at = max(now, before.astimezone(UTC) + timedelta(microseconds=1)) if before else now
    strategy = "worktree" if mission.work_package(request.wp_id).mode.value == "code_change" else "direct_repo"
    reason = redact(request.reason or request.feedback or request.override_reason) or None
    policy = None
    if request.target == "done" and request.override_reason:
        policy = {"merge_ancestry": "overridden", "override_reason": redact(request.override_reason)}
    events = []
    for i, (source, target) in enumerate(steps):
        is_last = i == len(steps) - 1
        events.append(
            {
                "event_id": ulid(at),
                "mission_slug": mission.slug,
                "wp_id": request.wp_id,
                "from_lane": source,
                "to_lane": target,
                "at": at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
                "actor": redact(request.actor),
                "force": request.is_forced,
                "execution_mode": strategy,
                "reason": reason if is_last else f"on the way to {request.target}",
                "review_ref": (redact(request.review_ref) or None) if is_last else None,
                "evidence": _evidence(request, source, redact) if is_last else None,
                "policy_metadata": policy if is_last else None,
            }
        )
        at += timedelta(microseconds=1)
    return tuple(events)


def _evidence(request: MoveRequest, source: WorkPackageStatus, redact: Callable[[str], str]) -> dict[str, Any] | None:
    """Return the review that a move is based on."""
    is_accepted = request.target in ("approved", "done")
    is_sent_back = source in ("for_review", "in_review", "approved") and request.target in ("in_progress", "planned")
    if not is_accepted and not is_sent_back:
        return None
    verdict = "approved" if is_accepted else "changes_requested"
    reference = redact(request.review_ref or request.feedback) or None
    return {"review": {"reviewer": redact(request.actor), "verdict": verdict, "reference": reference}}
