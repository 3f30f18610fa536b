"""Whether an agent that works on a code change fell silent: its branch's own commits are the heartbeat.

Source: mission contracts, stale-status. ``judge`` is pure; ``stale_of`` asks git. Work in the repository's root is
never judged, since whoever works there makes all of it look fresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from accord.kernel.clock import timestamp
from accord.kernel.errors import BrokenContract
from accord.missions.branches import MissionGit
from accord.missions.models import SHARED_WORKSPACE, StaleStatus
from accord.missions.workspace import resolve_workspace

if TYPE_CHECKING:
    from accord.missions.branches import OwnCommits
    from accord.missions.load import Mission

UNAVAILABLE = "stale_detection_unavailable"
DEFAULT_MINUTES = 10.0


@dataclass(frozen=True)
class Staleness:
    """The answer of the contract, and beside it why there is none, for people and logs."""

    status: StaleStatus
    error: str = ""


def judge(own: OwnCommits, now: datetime, threshold_minutes: float) -> Staleness:
    """Judge work in progress by its branch. It is stale when its newest commit is strictly older than the threshold."""
    if own.error:
        return unavailable(own.error)
    if own.newest is None:
        return Staleness(_fresh("no_own_commits"))
    committed = datetime.fromtimestamp(own.newest, UTC)
    seconds = max(0.0, (now - committed).total_seconds())
    is_stale = seconds > threshold_minutes * 60
    return Staleness(
        StaleStatus(
            status="stale" if is_stale else "fresh",
            reason=None,
            minutes_since_commit=round(seconds / 60, 2),
            last_commit_time=timestamp(committed),
        )
    )


def unavailable(error: str) -> Staleness:
    """Say that there is no answer. Who cannot be judged is not accused: the status is fresh."""
    return Staleness(_fresh(UNAVAILABLE), error)


def _fresh(reason: str) -> StaleStatus:
    return StaleStatus(status="fresh", reason=reason, minutes_since_commit=None, last_commit_time=None)


def stale_of(
    mission: Mission, wp_id: str, git: MissionGit, now: datetime, threshold_minutes: float = DEFAULT_MINUTES
) -> Staleness:
    """Tell how a work package stands. Raises BrokenContract for one that is not there; a broken one has no answer."""
    if wp_id not in mission.ids:
        mission.work_package(wp_id)  # raises
    try:
        if mission.work_package(wp_id).mode.value == "planning_artifact":
            return Staleness(
                StaleStatus(
                    status="not_applicable",
                    reason=SHARED_WORKSPACE,
                    minutes_since_commit=None,
                    last_commit_time=None,
                )
            )
        if mission.status_of(wp_id) != "in_progress":
            return Staleness(_fresh("not_in_progress"))
        branch = resolve_workspace(mission, wp_id).branch_name or ""
    except BrokenContract as broken:
        return unavailable(broken.message)
    return judge(git.own_commits(branch), now, threshold_minutes)


def git_of(mission: Mission, wp_id: str = "") -> MissionGit:
    """Open the repository of a mission; a work package may name a target of its own."""
    lanes = mission.lanes
    work_package = mission.work_packages.get(wp_id)
    own = work_package.head.merge_target_branch if work_package else ""
    target = own or mission.meta.target_branch or (lanes.target_branch if lanes else "")
    mission_branch = (lanes.mission_branch if lanes else "") or f"kitty/mission-{mission.slug}"
    return MissionGit(mission.root, target, mission_branch)
