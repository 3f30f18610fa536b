"""The state of a mission: the answer of ``next`` and the overview. Source: mission contracts, next-query-response."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict

from accord.core.clock import timestamp
from accord.core.errors import BrokenContract
from accord.core.shapes import read_shape
from accord.core.texts import is_nothing
from accord.missions.branches import DEFAULT_MINUTES, StalenessResult, git_of, stale_of
from accord.missions.lifecycle import WAITING, Blockers
from accord.missions.load import Mission
from accord.missions.log import FILE
from accord.missions.models import NextQueryResponse
from accord.missions.runs import DEFAULT_TYPE, RunState, position_of, read_run, steps_of
from accord.missions.workspace import resolve_workspace
from accord.text.outline import sections, seen_text

WEIGHTS = {"claimed": 0.05, "in_progress": 0.3, "for_review": 0.6, "in_review": 0.7, "approved": 0.8, "done": 1.0}
"""The share of a work package that is done in a status; all other statuses count zero."""


def answer_query(mission: Mission, agent: str | None, now: datetime) -> NextQueryResponse:
    """Return the state of a mission. Raises BrokenContract where it cannot be read, or breaks the contract's schema."""
    mission.check_readable("meta.json")
    run = read_run(mission)
    steps, origin = steps_of(mission, run)
    position, counts = position_of(steps, run.state or RunState(), run.mission_type), progress(mission)
    answer = {
        "kind": "query",
        "agent": agent,
        "mission_slug": mission.slug,
        "mission": run.mission_type,
        **asdict(position),
        "timestamp": timestamp(now),
        "guard_failures": guard_failures(mission, position.step_id) if run.mission_type == DEFAULT_TYPE else [],
        "progress": counts and {**counts, **_ahead(mission)},
        "origin": origin,
        "run_id": run.run_id,
        "is_query": True,
    }
    return read_shape(NextQueryResponse, answer)


def guard_failures(mission: Mission, step_id: str | None) -> list[str]:
    """Return what is still missing to complete the issued step."""
    name = {"specify": "spec.md", "plan": "plan.md", "tasks_outline": "tasks.md"}.get(step_id or "")
    if name:
        path = mission.folder / name
        text = path.read_text(encoding="utf-8-sig", errors="replace") if path.is_file() else None
        return [f"{name} is missing"] if text is None else [] if _has_text(text) else [f"{name} has no text"]
    if step_id == "tasks_packages":
        return [] if mission.files else ["tasks/ has no work package"]
    if step_id == "tasks_finalize":
        return [
            f"{wp_id} does not declare its dependencies"
            for wp_id in mission.files
            if wp_id not in mission.work_packages or not mission.work_packages[wp_id].has_dependencies
        ]
    enough = {"implement": ("for_review", "in_review", "approved", "done"), "review": ("approved", "done")}
    if not (reached := enough.get(step_id or "")):
        return []
    statuses = {wp_id: mission.known_status(wp_id) or "unknown" for wp_id in mission.files}
    unreviewed = [wp_id for wp_id in statuses if step_id == "review" and not mission.lets_start(wp_id)]
    return [
        f"{wp_id} is {status}, {'without a review that counts' if status in reached else f'not yet {reached[0]}'}"
        for wp_id, status in statuses.items()
        if status not in (*reached, "canceled") or (status in reached and wp_id in unreviewed)
    ]


_IN_BRACKETS = re.compile(r"[^\w\[]*(?:\[[^\[\]]*\][^\w\[]*)+")
"""A line that is a place for a text, such as ``[NEEDS CLARIFICATION: …]``."""


def _has_text(markdown: str) -> bool:
    """Tell whether a document has more than headings, also of tables, and placeholders."""
    for section in sections(f"#\n\n{markdown}"):
        tables = [block for block in section.blocks if block.kind == "table"]
        cells = [seen_text(cell) for block in tables for row in block.cells[1:] for cell in row]
        others = replace(section, blocks=[block for block in section.blocks if block.kind != "table"])
        lines = [*others.visible.splitlines(), *cells]
        if not all(is_nothing(line) or _IN_BRACKETS.fullmatch(line) for line in lines):
            return True
    return False


def progress(mission: Mission) -> dict[str, Any] | None:
    """Return the number of work packages with files, by status; None without any. Unknown ones count in the total."""
    if not mission.files:
        return None
    counts = Counter[str](mission.known_status(wp_id) or "unknown" for wp_id in mission.files)
    weight = sum(WEIGHTS.get(status, 0.0) * count for status, count in counts.items())
    shown = ["done", "approved", "in_progress", "planned", "for_review", *(["unknown"] if counts["unknown"] else [])]
    return {
        "total_wps": len(mission.files),
        **{f"{status}_wps": counts[status] for status in shown},
        "weighted_percentage": round(100 * weight / len(mission.files), 1),
    }


class Readiness(TypedDict):
    """Whether a work package may start now, which others block it, and why it never can."""

    ready: bool
    blocked_by: list[str]
    blocked_reason: str | None


def readiness(mission: Mission) -> dict[str, Readiness]:
    """Return the readiness of each work package. Only work that did not start yet can be ready or blocked."""
    found: dict[str, Readiness] = {}
    for wp_id in mission.ids:
        entry = found[wp_id] = {"ready": False, "blocked_by": [], "blocked_reason": None}
        blocked = mission.blockers.get(wp_id, Blockers())
        try:
            status = mission.status_of(wp_id)
            if status in WAITING and not blocked.waits_for:
                resolve_workspace(mission, wp_id)
        except BrokenContract as broken:
            entry["blocked_reason"] = str(broken)
            continue
        if status in WAITING:
            entry["ready"] = status == "planned" and not (blocked.waits_for or blocked.problem)
            entry["blocked_by"] = [*blocked.waits_for]
            entry["blocked_reason"] = blocked.problem or None
    return found


def _ahead(mission: Mission) -> dict[str, Any]:
    found = readiness(mission).items()
    return {
        "ready": [wp_id for wp_id, one in found if one["ready"]],
        "blocked": {wp_id: one["blocked_by"] for wp_id, one in found if one["blocked_by"]},
        "problems": {wp_id: one["blocked_reason"] for wp_id, one in found if one["blocked_reason"]},
    }


def unreadable_statuses(mission: Mission) -> dict[str, BrokenContract]:
    """Return why the status of a work package is unknown or in doubt, for each of these."""
    found = {}
    for wp_id in mission.ids:
        try:
            mission.status_of(wp_id)
        except BrokenContract as broken:
            found[wp_id] = broken
    return found


def mission_overview(mission: Mission) -> dict[str, Any]:
    """Return the entry of a mission in ``accord mission list``."""
    ahead = _ahead(mission)
    return {
        "mission_slug": mission.slug,
        "mission_id": mission.meta.mission_id or None,
        "mission": mission.meta.type or None,
        "progress": progress(mission),
        **ahead,
        "problems": {**ahead["problems"], **{name: str(one) for name, one in unreadable_statuses(mission).items()}},
    }


_LOCATION = ("execution_mode", "mode_source", "resolution_kind", "workspace_path", "branch_name", "lane_id")


def mission_status(mission: Mission, now: datetime, threshold_minutes: float = DEFAULT_MINUTES) -> dict[str, Any]:
    """Return the document of ``accord mission status``."""
    git, ready, unreadable = git_of(mission), readiness(mission), unreadable_statuses(mission)
    return {
        "mission_slug": mission.slug,
        "mission": mission.meta.type or None,
        "progress": progress(mission),
        "work_packages": [
            {
                **_entry(mission, wp_id, stale_of(mission, wp_id, git, now, threshold_minutes), unreadable.get(wp_id)),
                **ready[wp_id],
            }
            for wp_id in mission.ids
        ],
        "diagnostics": _diagnostics(mission),
    }


def _entry(mission: Mission, wp_id: str, stale: StalenessResult, error: BrokenContract | None) -> dict[str, Any]:
    work_package, people = mission.work_packages.get(wp_id), mission.people_of(wp_id)
    location: dict[str, Any] = dict.fromkeys(_LOCATION) | {"lane_wp_ids": [], "workspace_exists": False}
    try:
        known = resolve_workspace(mission, wp_id)
        location = {name: getattr(known, name) for name in (*_LOCATION, "lane_wp_ids")}
        location["workspace_exists"] = Path(known.workspace_path).is_dir()
    except BrokenContract as broken:
        error = error or broken
        if work_package:
            location |= {"execution_mode": work_package.mode.value, "mode_source": work_package.mode.source}
    return {
        "wp_id": wp_id,
        "title": work_package.title if work_package else "",
        "status": mission.known_status(wp_id),
        "worker": people.worker or None,
        "reviewer": people.reviewer or None,
        **location,
        "dependencies": work_package.head.dependencies if work_package else [],
        "stale": stale.status.model_dump(),
        "stale_error": stale.error or None,
        "error": str(error) if error else None,
        "hint": (error.first_hint if error else "") or None,
    }


def _diagnostics(mission: Mission) -> list[str]:
    found = [str(error) for name, error in mission.broken.items() if name not in mission.files]
    found += [text for work_package in mission.work_packages.values() for text in work_package.mode.diagnostics]
    unnamed = [one for name, lines in mission.log.problems.items() if name not in mission.ids for one in lines]
    found += [f"{FILE}, line {one.line}: {one.message}" for one in dict.fromkeys(unnamed)]
    if mission.log.note:
        found.append(mission.log.note)
    if mission.log.torn_at:
        found.append("A crash cut off the last line of the log. The line is ignored.")
    return found
