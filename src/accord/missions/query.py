"""Where a mission stands, as one answer that changes nothing. Source: mission contracts, next-query-response."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from accord.kernel.clock import timestamp
from accord.kernel.errors import BrokenContract
from accord.kernel.shapes import read_shape
from accord.missions.models import NextQueryResponse
from accord.missions.run_files import read_run, steps_of
from accord.missions.runs import DEFAULT_TYPE, RunState, stand

if TYPE_CHECKING:
    from datetime import datetime

    from accord.missions.load import Mission

WEIGHTS = {"claimed": 0.05, "in_progress": 0.3, "for_review": 0.6, "in_review": 0.7, "approved": 0.8, "done": 1.0}
"""How much of a work package is done in a status; all other statuses count nothing."""


def answer_query(mission: Mission, agent: str | None, now: datetime) -> NextQueryResponse:
    """Tell where a mission stands. Raises BrokenContract where what is kept of it cannot be read.

    What the contract's schema refuses is never answered.
    """
    mission.need("meta.json")
    kept = read_run(mission)
    steps, origin = steps_of(mission, kept)
    standing = stand(steps, kept.state or RunState(), kept.mission_type)
    decision = standing.decision
    answer = {
        "kind": "query",
        "agent": agent,
        "mission_slug": mission.slug,
        "mission": kept.mission_type,
        "mission_state": standing.mission_state,
        "preview_step": standing.preview_step,
        "timestamp": timestamp(now),
        "reason": standing.reason,
        "guard_failures": guard_failures(mission, standing.step_id) if kept.mission_type == DEFAULT_TYPE else [],
        "progress": progress(mission),
        "origin": origin,
        "run_id": kept.run_id,
        "step_id": standing.step_id,
        "decision_id": decision.id if decision else None,
        "input_key": decision.input_key if decision else None,
        "question": decision.question if decision else None,
        "options": list(decision.options) if decision and decision.options is not None else None,
        "is_query": True,
    }
    return read_shape(NextQueryResponse, answer)


def guard_failures(mission: Mission, step_id: str | None) -> list[str]:
    """Say what is still missing for the step that is issued to be complete."""
    files = {"specify": "spec.md", "plan": "plan.md", "tasks_outline": "tasks.md"}
    if step_id in files:
        name = files[step_id]
        return [] if (mission.folder / name).is_file() else [f"{name} is missing"]
    if step_id == "tasks_packages":
        return [] if mission.files else ["there is no work package under tasks/"]
    if step_id == "tasks_finalize":
        return [
            f"{wp_id} does not say its dependencies"
            for wp_id in mission.files
            if wp_id not in mission.work_packages or not mission.work_packages[wp_id].has_dependencies
        ]
    if step_id == "implement":
        return _not_yet(mission, {"for_review", "in_review", "approved", "done"}, "for_review")
    if step_id == "review":
        return _not_yet(mission, {"approved", "done"}, "approved")
    return []


def _not_yet(mission: Mission, reached: set[str], wanted: str) -> list[str]:
    statuses = {wp_id: _status(mission, wp_id) for wp_id in mission.files}
    return [f"{wp_id} is {status}, not yet {wanted}" for wp_id, status in statuses.items() if status not in reached]


def progress(mission: Mission) -> dict[str, Any] | None:
    """Count the work packages that have files, by their status; None before there are any."""
    if not mission.files:
        return None
    counts = Counter(_status(mission, wp_id) for wp_id in mission.files)
    weight = sum(WEIGHTS.get(status, 0.0) * count for status, count in counts.items())
    shown = ("done", "approved", "in_progress", "planned", "for_review")
    return {
        "total_wps": len(mission.files),
        **{f"{status}_wps": counts[status] for status in shown},
        "weighted_percentage": round(100 * weight / len(mission.files), 1),
    }


def _status(mission: Mission, wp_id: str) -> str:
    """Tell a status; one that the log does not tell is in the total and in no count of a status."""
    try:
        return mission.status_of(wp_id)
    except BrokenContract:
        return "unknown"
