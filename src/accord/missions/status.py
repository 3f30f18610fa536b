"""All work packages of a mission at once, each where it is and where it runs; broken ones are shown, never dropped.

Source: mission contracts, "Topology Obligation".
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.kernel.errors import BrokenContract
from accord.missions.query import progress
from accord.missions.staleness import DEFAULT_MINUTES, git_of, stale_of
from accord.missions.workspace import resolve_workspace

if TYPE_CHECKING:
    from datetime import datetime

    from accord.missions.branches import MissionGit
    from accord.missions.load import Mission

_NOWHERE = (
    "execution_mode",
    "mode_source",
    "resolution_kind",
    "workspace_path",
    "branch_name",
    "lane_id",
)


def mission_status(mission: Mission, now: datetime, threshold_minutes: float = DEFAULT_MINUTES) -> dict[str, Any]:
    """Return the document of ``accord mission status``."""
    git = git_of(mission)
    return {
        "mission_slug": mission.slug,
        "mission": mission.meta.mission_type or mission.meta.mission or None,
        "progress": progress(mission),
        "work_packages": [_entry(mission, wp_id, git, now, threshold_minutes) for wp_id in mission.ids],
        "diagnostics": _diagnostics(mission),
    }


def _entry(mission: Mission, wp_id: str, git: MissionGit, now: datetime, threshold_minutes: float) -> dict[str, Any]:
    work_package = mission.work_packages.get(wp_id)
    errors: list[str] = []
    try:
        status: str | None = mission.status_of(wp_id)
    except BrokenContract as broken:
        status = None
        errors.append(broken.message)
    place: dict[str, Any] = dict.fromkeys(_NOWHERE) | {"lane_wp_ids": [], "workspace_exists": False}
    try:
        found = resolve_workspace(mission, wp_id)
        known = found.as_json()
        place = {name: known[name] for name in (*_NOWHERE, "lane_wp_ids")}
        place["workspace_exists"] = Path(found.workspace_path).is_dir()
    except BrokenContract as broken:
        errors.append(broken.message)
        if work_package:
            place |= {"execution_mode": work_package.mode.value, "mode_source": work_package.mode.source}
    stale = stale_of(mission, wp_id, git, now, threshold_minutes)
    return {
        "wp_id": wp_id,
        "title": work_package.title if work_package else "",
        "status": status,
        **place,
        "dependencies": work_package.head.dependencies if work_package else [],
        "stale": stale.status.model_dump(),
        "stale_error": stale.error or None,
        "error": errors[0] if errors else None,
    }


def _diagnostics(mission: Mission) -> list[str]:
    """Say what is inferred, and what of the mission itself cannot be used."""
    found = [str(error) for name, error in mission.broken.items() if not name.startswith("WP")]
    found += [text for work_package in mission.work_packages.values() for text in work_package.mode.diagnostics]
    if mission.log.torn_at:
        found.append("The last line of the log was cut off by a crash; it counts for nothing.")
    return found
