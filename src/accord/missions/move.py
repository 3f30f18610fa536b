"""Moves of a work package: gather facts, plan the events, and append them to the log, under the folder's lock.

The same command continues a move that stopped half-way, and writes nothing for one that is done. Nothing else of the
mission is written. Source: mission contracts, "Planning-Artifact Lifecycle".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

from accord.core.clock import Clock, ulid
from accord.core.errors import BrokenContract, Refused
from accord.core.frozen import Frozen
from accord.files.store import Storage, append_once, folder_lock
from accord.git.program import Git
from accord.missions.branches import MissionGit, git_of, lane_problem_of, own_commits_of, taken_along
from accord.missions.lifecycle import (
    ON_THE_WAY,
    REOPENED,
    Blockers,
    MoveFacts,
    MoveRequest,
    StatusMove,
    is_self_review,
    plan_move,
)
from accord.missions.load import Mission, load_mission, mission_folder, once_for_mission
from accord.missions.log import log_path
from accord.missions.models import ExecutionMode, Lanes, StatusEvent, WorkPackageStatus
from accord.missions.projects import SPECS
from accord.missions.replay import is_approved
from accord.missions.workspace import RECORDED, begun_branch, lane_branch, lane_of_work, resolve_workspace

_MOST_COMMITS = 30


class MoveResult(Frozen):
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
    names = ("actor", "feedback", "review_ref", "override_reason", "reason")
    texts: dict[str, Any] = {name: redact(getattr(request, name)) for name in names}
    request = replace(request, **texts)
    storage = Storage(clock)
    with locked_mission(root, slug, legacy_default, storage) as (mission, _):
        source, events = plan_mission_move(mission, request, clock.now())
        append_events(mission, events if not is_dry_run else (), storage)
    return MoveResult(source, request.target, events)


@contextmanager
def locked_mission(
    root: Path, slug: str, legacy_default: ExecutionMode | None, storage: Storage
) -> Iterator[tuple[Mission, tuple[int, ...]]]:
    """Read a mission under its lock; yield it and the lock's handles. Raises Refused for a log that is a link."""
    folder = mission_folder(root, slug)
    if log_path(folder).is_symlink():  # it may lead out of the project
        raise Refused(f"{log_path(folder)} is a symbolic link.", hint="Replace it with a regular file.")
    with folder_lock(folder, storage) as lock:
        yield load_mission(root, slug, legacy_default), lock


def plan_mission_move(
    mission: Mission, request: MoveRequest, now: datetime
) -> tuple[WorkPackageStatus, tuple[dict[str, Any], ...]]:
    """Return the status of a work package, and the events of a move. Raises BrokenContract when it is illegal."""
    source = mission.status_of(request.wp_id)
    facts = move_facts(mission, request, source, git_of(mission, request.wp_id), now)
    return source, plan_events(mission, facts, plan_move(source, facts), now)


def append_events(mission: Mission, events: Iterable[dict[str, Any]], storage: Storage) -> None:
    """Append events to the log of a mission, under the caller's lock."""
    for event in events:
        append_once(log_path(mission.folder), json.dumps(event, sort_keys=True).encode(), storage)


def move_facts(
    mission: Mission, request: MoveRequest, source: WorkPackageStatus, git: MissionGit, now: datetime
) -> MoveFacts:
    """Gather the facts of a move; git reads only what this move needs."""
    work_package = mission.work_package(request.wp_id)
    is_code = work_package.mode.value == "code_change"
    events = mission.log.by_work_package.get(request.wp_id, [])
    branch, workspace_problem, evidence_problem, lane_problem, lane_branch = "", "", "", None, None
    try:
        workspace = resolve_workspace(mission, request.wp_id)
        branch = workspace.branch_name or ""
    except BrokenContract as broken:
        workspace_problem = str(broken)
    begun, contradiction = branch_of_work(mission, request.wp_id, git)
    if branch:
        lane_problem = lane_problem_of(mission, workspace, git, contradiction)
        lane_branch = branch if request.is_start else begun if git.refs(begun) else ""
    needs_evidence = is_code and request.target == "for_review" and source == "in_progress" and not request.is_forced
    needs_merge = (is_code or begun) and request.target == "done" and source != "done"
    if needs_evidence and branch:
        own = own_commits_of(mission, request.wp_id, branch, git, now)
        where = " in its `owned_files`" if work_package.head.owned_files else ""
        none = f"The branch {branch} has no own commit of {request.wp_id}{where} since it began."
        evidence_problem = own.error or ("" if own.count else none)
    lost = lane_problem.text if lane_problem else ""
    unmerged = (workspace_problem or lost or git.merge_problem(begun)) if needs_merge else ""
    blocked = mission.blockers.get(request.wp_id, Blockers())
    return MoveFacts(
        request,
        people=mission.people_of(request.wp_id),
        is_approved=is_approved(events, mission.written.get(request.wp_id, "")),
        workspace_problem=workspace_problem,
        lane_problem=lane_problem,
        lane_branch=lane_branch,
        is_unrecorded=request.is_start and branch != "" == lane_of_work(events, branch),
        open_subtasks=open_subtasks(mission, request.wp_id),
        waits_for=blocked.waits_for,
        dependency_problem=blocked.problem,
        stuck=blocked.stuck,
        evidence_problem=evidence_problem,
        merge_problem=unmerged,
        taken_along=taken_along(mission, workspace, git, now) if unmerged and branch == begun != "" else (),
    )


def open_subtasks(mission: Mission, wp_id: str) -> tuple[str, ...]:
    """Return the subtasks of a work package whose boxes in ``tasks.md`` are not ticked."""
    subtasks = mission.work_package(wp_id).head.subtasks
    return tuple(word for word in mission.open_boxes if word in subtasks)


def branch_of_work(mission: Mission, wp_id: str, git: MissionGit) -> tuple[str, str]:
    """Return the branch that must be merged, where the log says that work began, and how the files contradict it.

    If it is not the branch of a lane today, it was renamed to the one that the files name, once that has all of it; or
    if it is lost, unless that was the branch of other work.
    """
    named, begun = named_branch(mission, wp_id), lane_of_work(mission.log.by_work_package.get(wp_id, ()))
    new, is_lane = git.refs(named), begun in git.lanes
    if not begun or (named and not is_lane and _has_work_of(mission, wp_id, begun, named, git)):
        return named, ""
    is_other = begun != named and (not named or is_lane or new)  # else a renaming is not finished
    text = f"The work of {wp_id} began on the branch {begun}, and its files name {named or 'none'}."
    return begun, text if is_other else ""


def named_branch(mission: Mission, wp_id: str) -> str:
    """Return the branch that the files name for a work package; empty without one."""
    with suppress(BrokenContract):
        return resolve_workspace(mission, wp_id).branch_name or ""
    return ""


def _has_work_of(mission: Mission, wp_id: str, begun: str, named: str, git: MissionGit) -> bool:
    """Tell whether the branch that the files name has all of a branch, or is the new name of a lost one."""
    new = git.refs(named)
    if git.refs(begun):
        return bool(new) and git.missing_commits(new[0], begun)[1] == 0
    return not (new and _joins_other_work(mission, wp_id, begun, named, git))


def _joins_other_work(mission: Mission, wp_id: str, begun: str, named: str, git: MissionGit) -> bool:
    """Tell whether the files name the branch of other work for work on a lost one, which no merge brought there.

    The newest committed ``lanes.json`` with the lost lane shows which names are new.
    """
    own = mission.log.by_work_package[wp_id]
    given = [event.at for event in own if event.to_lane in ("in_progress", "for_review")] or [own[-1].at]
    if git.merged_heads(begun, git.refs(named), int(given[0].timestamp())):
        return False
    others = [event for event in mission.log.events if event.wp_id != wp_id]
    for lanes in _committed_lanes(mission):
        if any(begun.endswith(f"-{lane.lane_id}") for lane in lanes.lanes_of.get(wp_id, ())):
            listed = (one.wp_ids for one in lanes.lanes if lane_branch(mission.slug, one.lane_id) == named)
            there = next(listed, [wp_id])
            is_new = wp_id in there
            return not is_new and any(begun_branch(one, named if one.wp_id in there else "") == named for one in others)
    return False


@once_for_mission
def _committed_lanes(mission: Mission) -> tuple[Lanes, ...]:
    """Return the forms of ``lanes.json`` that the newest commits left, newest first, also from before a renaming."""
    git, older = Git(mission.root), {event.mission_slug for event in mission.log.events} - {"", mission.slug}
    paths = [f"{SPECS}/{name}/lanes.json" for name in (mission.slug, *sorted(older))]
    commits = git.attempt("log", "--format=%H", f"--max-count={_MOST_COMMITS}", "--", *paths).stdout.decode().split()
    found = []
    for commit, path in product(commits, paths):
        with suppress(ValueError):
            raw = git.attempt("cat-file", "blob", f"{commit}:./{path}").stdout
            found.append(Lanes.model_validate_json(raw))
    return tuple(found)


def plan_events(
    mission: Mission, facts: MoveFacts, steps: tuple[StatusMove, ...], now: datetime
) -> tuple[dict[str, Any], ...]:
    """Return the events of a move, each strictly later than all before it, whatever the clock says."""
    request, earlier = facts.request, mission.log.by_work_package.get(facts.request.wp_id, [])
    before = max((event.at for event in earlier), default=None)
    at = max(now, before.astimezone(UTC) + timedelta(microseconds=1)) if before else now
    strategy = "worktree" if mission.work_package(request.wp_id).mode.value == "code_change" else "direct_repo"
    reason = request.reason or request.feedback or request.override_reason or None
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
                "actor": request.actor,
                "force": request.is_forced,
                "execution_mode": strategy,
                "reason": reason if is_last else f"{ON_THE_WAY}{request.target}",
                "review_ref": (request.review_ref or None) if is_last else None,
                "evidence": _evidence(facts, source, earlier) if is_last else None,
                "policy_metadata": _policy(facts) if is_last or is_self_review(facts) else None,
            }
        )
        at += timedelta(microseconds=1)
    return tuple(events)


def _policy(facts: MoveFacts) -> dict[str, Any] | None:
    request = facts.request
    if request.target == "in_progress" and facts.lane_branch is not None:
        return {RECORDED: facts.lane_branch}
    if request.target == "done" and request.override_reason:
        return {"merge_ancestry": "overridden", "override_reason": request.override_reason}
    if request.target in ("in_review", "approved") and is_self_review(facts):
        return {"self_review": True, "override_reason": request.override_reason}
    return None


def _evidence(facts: MoveFacts, source: WorkPackageStatus, earlier: list[StatusEvent]) -> dict[str, Any] | None:
    """Return the review that a move gives, or for ``done`` the recorded one that it rests on; never one made up."""
    request = facts.request
    if request.target == "done":
        approval = next((event.evidence for event in reversed(earlier) if event.to_lane == "approved"), None)
        return approval if isinstance(approval, dict) else None
    is_accepted = request.target == "approved" and (not request.is_forced or bool(request.review_ref))
    is_taken_back = request.target in REOPENED and facts.people.is_implementer(request.actor)
    is_sent_back = request.target in REOPENED and source in ("for_review", "in_review", "approved")
    if not is_accepted and (not is_sent_back or is_taken_back):
        return None
    verdict, reference = "approved" if is_accepted else "changes_requested", request.review_ref or request.feedback
    return {"review": {"reviewer": request.actor, "verdict": verdict, "reference": reference or None}}
