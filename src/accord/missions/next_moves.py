"""The next moves of a work package: each legal move, what it still lacks, and the command to type.

A command has a placeholder in capital letters for each text that only its author knows, such as REVIEWER or TEXT.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.errors import BrokenContract
from accord.core.moves import NextMove
from accord.missions.branches import git_of
from accord.missions.dependencies import WAITING, Blockers, blockers
from accord.missions.lifecycle import REOPENED, THROUGH, WORK_PACKAGE, MoveRequest, implementers_of, needs_of
from accord.missions.move import move_facts, own_events
from accord.missions.workspace import resolve_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.missions.branches import MissionGit
    from accord.missions.lifecycle import MoveFacts
    from accord.missions.load import Mission
    from accord.missions.models import WorkPackageStatus

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


def next_moves(
    mission: Mission, wp_id: str, command: str, found: Mapping[str, Blockers] | None = None
) -> list[NextMove]:
    """Return the legal moves of a work package, the way forward first; none of one that is broken.

    ``command`` is how to call ``accord mission`` for this project. ``found`` are the blockers of the mission, if known.
    """
    found = blockers(mission) if found is None else found
    try:
        source = mission.status_of(wp_id)
        git = git_of(mission, wp_id)
        return [_next_move(mission, wp_id, source, target, command, git, found) for target in _targets(source)]
    except BrokenContract:
        return []


def forward_move(mission: Mission, wp_id: str, command: str, found: Mapping[str, Blockers]) -> NextMove | None:
    """Return the way forward of a work package; None at its end."""
    try:
        source = mission.status_of(wp_id)
        if source not in _FORWARD:
            return None
        return _next_move(mission, wp_id, source, _FORWARD[source], command, git_of(mission, wp_id), found)
    except BrokenContract:
        return None


def _targets(source: WorkPackageStatus) -> list[WorkPackageStatus]:
    """Return the statuses that one command can reach."""
    direct = WORK_PACKAGE.targets(source)
    further = [target for between in THROUGH if between in direct for target in WORK_PACKAGE.targets(between)]
    reachable: dict[str, None] = dict.fromkeys([*filter(None, [_FORWARD.get(source)]), *direct, *further])
    return [target for target in reachable if target != source]  # type: ignore[misc]


def _next_move(
    mission: Mission,
    wp_id: str,
    source: WorkPackageStatus,
    target: WorkPackageStatus,
    command: str,
    git: MissionGit,
    found: Mapping[str, Blockers],
) -> NextMove:
    facts = move_facts(mission, _request(mission, wp_id, source, target), source, git, found)
    missing = needs_of(source, facts)
    move = _move_command(mission, facts, source, command)
    typed = _command_for(mission, facts, command, git, found, move) if missing else move
    return NextMove(target, missing, typed)


def _request(mission: Mission, wp_id: str, source: WorkPackageStatus, target: WorkPackageStatus) -> MoveRequest:
    """Return the request that the proposed command makes."""
    latest = mission.log.latest.get(wp_id)
    holder = latest.actor if latest and latest.actor.strip() and latest.actor.isprintable() else "NAME"
    is_review = target in ("in_review", "approved") or (source in ("for_review", "in_review") and target in REOPENED)
    is_claimed = source == "in_review" and holder not in {"NAME", *implementers_of(own_events(mission, wp_id))}
    actor = holder if is_claimed or not is_review else REVIEWER
    needs_reference = (source, target) == ("in_progress", "approved") or (source == "approved" and target in REOPENED)
    is_sent_back = source in ("for_review", "in_review") and target in REOPENED
    is_stopped = target in ("blocked", "canceled") or (source, target) == ("in_progress", "planned")
    return MoveRequest(
        wp_id,
        target,
        actor,
        feedback="TEXT" if is_sent_back else "",
        review_ref="REF" if needs_reference else "",
        reason="TEXT" if is_stopped else "",
    )


def _move_command(mission: Mission, facts: MoveFacts, source: WorkPackageStatus, command: str) -> str:
    request = facts.request
    if request.target == "in_progress" and source in ("planned", "claimed", "blocked"):
        return f"{command} start {mission.slug} {request.wp_id}"
    texts = {"feedback": request.feedback, "review-ref": request.review_ref, "reason": request.reason}
    options = "".join(f" --{name} {shlex.quote(text)}" for name, text in texts.items() if text)
    actor = shlex.quote(request.actor)
    return f"{command} move {mission.slug} {request.wp_id} --to {request.target} --actor {actor}{options}"


def _command_for(
    mission: Mission,
    facts: MoveFacts,
    command: str,
    git: MissionGit,
    found: Mapping[str, Blockers],
    move: str,
) -> str:
    """Return the command that gets the first of what a move lacks; the move itself where only an edit does.

    Commits and merges come with the move that they are for.
    """
    wp_id, check = facts.request.wp_id, f"{command} check {mission.slug}"
    if facts.request.target in ("claimed", "in_progress"):
        first = found[wp_id].first if wp_id in found else wp_id
        ahead = forward_move(mission, first, command, found) if first != wp_id else None
        return ahead.command if ahead and not facts.dependency_problem else check
    if facts.request.target == "for_review" and not facts.open_subtasks:
        path = resolve_workspace(mission, wp_id).workspace_path
        if not Path(path).is_dir():
            return f"{command} start {mission.slug} {wp_id}"
        git_there = f"git -C {shlex.quote(path)}"
        return f"{git_there} add --all && {git_there} commit --message TEXT && {move}"
    if facts.request.target == "done" and facts.is_approved:
        root, target = shlex.quote(str(mission.root)), shlex.quote(git.target_name)
        branch = shlex.quote(resolve_workspace(mission, wp_id).branch_name or "")
        return f"git -C {root} checkout {target} && git -C {root} merge --no-edit {branch} && {move}"
    return move


def mission_moves(mission: Mission, command: str, found: Mapping[str, Blockers] | None = None) -> list[NextMove]:
    """Return the way forward of each work package that no other one blocks; ``to`` has the work package in front.

    ``found`` are the blockers of the mission, if known.
    """
    found = blockers(mission) if found is None else found
    free = [wp_id for wp_id in mission.ids if not _is_held(mission, wp_id, found)]
    ahead = ((wp_id, forward_move(mission, wp_id, command, found)) for wp_id in free)
    return [replace(move, to=f"{wp_id} {move.to}") for wp_id, move in ahead if move]


def _is_held(mission: Mission, wp_id: str, found: Mapping[str, Blockers]) -> bool:
    """Return whether other work packages keep one from being started."""
    try:
        return bool(wp_id in found and found[wp_id].waits_for) and mission.status_of(wp_id) in WAITING
    except BrokenContract:
        return False
