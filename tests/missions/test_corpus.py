"""Missions of every shape against a reference: what is drawn is written to disk, and also judged by plain rules.

The reference knows what was drawn, not what was written; it shares nothing with the code but the words of the contract.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.missions import NOW, SLUG, Project

from accord.missions.query import mission_status

pytestmark = pytest.mark.slow

EXAMPLES = 220
CODE, PLANNING = "code_change", "planning_artifact"
WPS = ["WP01", "WP02", "WP03", "WP04", "WP10"]
LANES = ["lane-a", "lane-b", "lane-c", "lane-d"]

BODIES = {
    **dict.fromkeys(("", "Talk with people.", "Latest contest."), "nothing"),
    **dict.fromkeys(("Write spec.md", "Fill kitty-specs/078-ships"), "planning"),
    **dict.fromkeys(("Change src/a", "Edit main.py", "Write spec.md and tests/a"), "code"),
}
OWNED = {
    (): "nothing",
    ("kitty-specs/078-ships/spec.md",): "all planning",
    ("kitty-specs/a.py", "kitty-specs/b"): "all planning",
    ("kitty-specs/a", "src/b"): "code",
    ("docs/a.rst",): "nothing",
}
STATUSES = [None, "claimed", "in_progress", "for_review", "done", "doing", "canceled"]


@dataclass(frozen=True)
class Drawn:
    """A work package as it was drawn."""

    id: str
    declared: str | None
    owned: tuple[str, ...]
    body: str
    lanes: tuple[str, ...]
    is_listed: bool
    context: str | None
    status: str | None


MISSIONS = st.fixed_dictionaries(
    {
        "lanes": st.sampled_from(["there", "there", "there", "missing", "malformed"]),
        "default": st.sampled_from([None, None, CODE, PLANNING]),
        "work_packages": st.lists(
            st.builds(
                Drawn,
                st.sampled_from(WPS),
                st.sampled_from([None, None, CODE, CODE, PLANNING, "bogus"]),
                st.sampled_from(list(OWNED)),
                st.sampled_from(list(BODIES)),
                st.sampled_from([(), *[(lane,) for lane in LANES] * 2, ("lane-a", "lane-b")]),
                st.sampled_from([False, False, False, True]),
                st.sampled_from([None, None, None, *LANES]),
                st.sampled_from(STATUSES),
            ),
            max_size=5,
            unique_by=lambda drawn: drawn.id,
        ),
    }
)


def write(project: Project, drawn: dict[str, Any]) -> None:
    """Write a mission as it was drawn, and nothing of the one before."""
    wps: list[Drawn] = drawn["work_packages"]
    for folder in (project.folder, project.root / ".kittify"):
        shutil.rmtree(folder, ignore_errors=True)
    project.begin()
    for wp in wps:
        write_work_package(project, wp)
    if drawn["lanes"] == "malformed":
        project.write("lanes.json", '{"lanes": [')
    elif drawn["lanes"] == "there":
        members = {lane.replace("-", "_"): [wp.id for wp in wps if lane in wp.lanes] for lane in LANES}
        project.lanes(planning=[wp.id for wp in wps if wp.is_listed], **members)


def write_work_package(project: Project, wp: Drawn) -> None:
    project.work_package(wp.id, wp.declared, wp.body, title="A part", owned_files=list(wp.owned))
    if wp.status:
        project.event(wp.id, "planned", wp.status)
    if wp.context:
        context = project.root / ".kittify" / "workspaces" / f"{SLUG}-{wp.context}.json"
        context.parent.mkdir(exist_ok=True)
        known = json.loads(context.read_text(encoding="utf-8"))["lane_wp_ids"] if context.exists() else []
        value = {"mission_slug": SLUG, "lane_id": wp.context, "lane_wp_ids": [*known, wp.id]}
        context.write_text(json.dumps(value), encoding="utf-8")


def expected_mode(drawn: dict[str, Any], wp: Drawn) -> tuple[str, str] | None:
    """The mode and its source, or None where there must be an error."""
    if wp.declared == "bogus":
        return None
    listed = wp.is_listed and drawn["lanes"] == "there"
    lanes = wp.lanes if drawn["lanes"] == "there" else ()
    if len(lanes) > 1 and wp.declared != PLANNING and not (listed and not wp.declared):
        return None
    if wp.declared:
        return wp.declared, "frontmatter"
    if drawn["lanes"] == "malformed":
        return None
    signals = [
        (listed, PLANNING),
        (lanes, CODE),
        (OWNED[wp.owned] == "all planning", PLANNING),
        ("code" in (OWNED[wp.owned], BODIES[wp.body]), CODE),
        (BODIES[wp.body] == "planning", PLANNING),
        (drawn["default"], drawn["default"]),
    ]
    return next(((mode, "inferred_legacy") for is_there, mode in signals if is_there), None)


def expected_lane(drawn: dict[str, Any], wp: Drawn) -> str | None:
    if wp.context:
        return wp.context
    return wp.lanes[0] if drawn["lanes"] == "there" and wp.lanes else None


def expected(drawn: dict[str, Any], wp: Drawn, root: Path) -> dict[str, Any]:
    """Everything that the overview must say of a work package."""
    mode = expected_mode(drawn, wp)
    lane = expected_lane(drawn, wp) if mode and mode[0] == CODE else None
    path = None
    if mode and mode[0] == PLANNING:
        path = str(root)
    elif lane:
        path = f"{root}/.worktrees/{SLUG}-{lane}"
    return {
        "status": {None: "planned", "doing": "in_progress"}.get(wp.status, wp.status),
        "execution_mode": mode[0] if mode else None,
        "mode_source": mode[1] if mode else None,
        "resolution_kind": None if path is None else "lane_workspace" if lane else "repo_root",
        "workspace_path": path,
        "branch_name": f"kitty/mission-{SLUG}-{lane}" if lane else None,
        "lane_id": lane,
        "is_broken": path is None,
    }


def told(entry: dict[str, Any]) -> dict[str, Any]:
    names = ["status", "execution_mode", "mode_source", "resolution_kind", "workspace_path", "branch_name", "lane_id"]
    return {**{name: entry[name] for name in names}, "is_broken": entry["error"] is not None}


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(drawn=MISSIONS)
def test_every_mission_is_read_as_the_reference_reads_it(tmp_path: Path, drawn: dict[str, Any]) -> None:
    project = Project(tmp_path)
    write(project, drawn)
    status = mission_status(project.load(drawn["default"]), NOW)
    entries = {entry["wp_id"]: told(entry) for entry in status["work_packages"]}
    assert entries == {wp.id: expected(drawn, wp, project.root) for wp in drawn["work_packages"]}
