"""The next moves of a work package: each legal move, what it still lacks, and the command to type.

A command has a placeholder in capital letters for each text that only its author knows, such as REVIEWER or TEXT.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from accord.core.errors import BrokenContract
from accord.core.machine import NextMove
from accord.missions.branches import MissionGit, git_of
from accord.missions.lifecycle import REOPENED, WAITING, Blockers, MoveFacts, MoveRequest, needs_of, reachable
from accord.missions.load import Mission, once_for_mission
from accord.missions.models import WorkPackageStatus
from accord.missions.move import move_facts
from accord.missions.workspace import resolve_workspace, short_ref

_FORWARD: dict[WorkPackageStatus, WorkPackageStatus] = {
    "planned": "in_progress",
    "claimed": "in_progress",
    "blocked": "in_progress",
    "in_progress": "for_review",
    "for_review": "approved",
    "in_review": "approved",
    "approved": "done",
}
REVIEWER = "REVIEWER"


def mission_moves(mission: Mission, command: str, now: datetime) -> list[NextMove]:
    """Return the way forward of each work package that no other one blocks; ``to`` has the work package in front."""
    found = []
    for wp_id in mission.ids:
        blocked = mission.blockers.get(wp_id, Blockers())
        if not ((blocked.waits_for or blocked.problem) and mission.known_status(wp_id) in WAITING):
            moves = next_moves(mission, wp_id, command, now, ahead_only=True)
            found += [replace(move, to=f"{wp_id} {move.to}") for move in moves]
    return found


@once_for_mission
def next_moves(
    mission: Mission, wp_id: str, command: str, now: datetime, *, ahead_only: bool = False
) -> list[NextMove]:
    """Return the legal moves of a work package, the way forward first, or only that; none of one that is broken."""
    try:
        source = mission.status_of(wp_id)
        ahead = [_FORWARD[source]] if source in _FORWARD else []
        targets = ahead if ahead_only else list(dict.fromkeys([*ahead, *reachable(source)]))
        git = git_of(mission, wp_id)
        requests = [_request(mission, wp_id, source, target) for target in targets]
        return [_next_move(mission, request, source, command, git, now) for request in requests]
    except BrokenContract:
        return []


def _next_move(
    mission: Mission, request: MoveRequest, source: WorkPackageStatus, command: str, git: MissionGit, now: datetime
) -> NextMove:
    wp_id, target = request.wp_id, request.target
    facts = move_facts(mission, request, source, git, now)
    if target == "in_progress" and source in ("planned", "claimed", "blocked"):
        move = _start_command(mission, wp_id, command)
    else:
        texts = {"feedback": request.feedback, "review-ref": request.review_ref, "reason": request.reason}
        options = "".join(f" --{name} {shlex.quote(text)}" for name, text in texts.items() if text)
        move = f"{command} move {mission.slug} {wp_id} --to {target} --actor {shlex.quote(request.actor)}{options}"
    missing = needs_of(source, facts)
    return NextMove(target, missing, _command_for(mission, facts, command, git, move, now) if missing else move)


def _start_command(mission: Mission, wp_id: str, command: str) -> str:
    """Return the command that starts a work package; it names the worker that has begun already."""
    worker = mission.people_of(wp_id).worker
    named = f" --actor {shlex.quote(worker)}" if worker.isprintable() and worker else ""
    return f"{command} start {mission.slug} {wp_id}{named}"


def _request(mission: Mission, wp_id: str, source: WorkPackageStatus, target: WorkPackageStatus) -> MoveRequest:
    people = mission.people_of(wp_id)
    is_sent_back = source in ("for_review", "in_review") and target in REOPENED
    is_review = target in ("in_review", "approved") or is_sent_back
    is_claimed = source == "in_review" and not people.is_implementer(people.reviewer)
    actor, unknown = (people.reviewer if is_claimed else "", REVIEWER) if is_review else (people.worker, "NAME")
    needs_reference = (source, target) == ("in_progress", "approved") or (source == "approved" and target in REOPENED)
    is_stopped = target in ("blocked", "canceled") or (source, target) == ("in_progress", "planned")
    return MoveRequest(
        wp_id,
        target,
        actor if actor and actor.isprintable() else unknown,
        feedback="TEXT" if is_sent_back else "",
        review_ref="REF" if needs_reference else "",
        reason="TEXT" if is_stopped else "",
    )


def _command_for(mission: Mission, facts: MoveFacts, command: str, git: MissionGit, move: str, now: datetime) -> str:
    """Return the command that gets the first of what a move lacks; the move itself where only an edit does."""
    wp_id, target = facts.request.wp_id, facts.request.target
    back = f"{facts.lane_problem.command} && " if facts.lane_problem and facts.lane_problem.command else ""
    begins = target in ("claimed", "in_progress")
    if back and target != "done" and not (begins and facts.waits_for):
        return f"{back}{move}"
    if begins or facts.workspace_problem or (facts.lane_problem and not back):
        first = mission.blockers[wp_id].first if wp_id in mission.blockers else wp_id
        ahead = next_moves(mission, first, command, now, ahead_only=True) if first != wp_id else []
        return ahead[0].command if ahead and not facts.dependency_problem else f"{command} check {mission.slug}"
    if target == "for_review" and not facts.open_subtasks:
        path = resolve_workspace(mission, wp_id).workspace_path
        if not Path(path).is_dir():
            return _start_command(mission, wp_id, command)
        git_there = f"git -C {shlex.quote(path)}"
        return f"{git_there} add --all && {git_there} commit --message TEXT && {move}"
    if target == "done" and not facts.is_approved:
        return f"{command} move {mission.slug} {wp_id} --to approved --actor {REVIEWER}"
    if target == "done":
        root, base = shlex.quote(str(mission.root)), shlex.quote(git.target_name)
        branch = resolve_workspace(mission, wp_id).branch_name or ""
        refs = git.refs(branch)
        if not refs and not back:
            return f"{move} --override-reason TEXT"
        name = shlex.quote(short_ref(refs[0]) if refs else branch)
        return f"{back}git -C {root} checkout {base} && git -C {root} merge --no-ff --no-edit {name} && {move}"
    return move
