"""Where a work package runs, and the overview that drops none of them."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.missions import NOW, Project

from accord.core.errors import BrokenContract
from accord.missions.query import mission_status
from accord.missions.workspace import resolve_workspace

CODE, PLANNING = "code_change", "planning_artifact"


def remember(project: Project, lane: str, **values: Any) -> Path:
    path = project.root / ".kittify" / "workspaces" / f"{project.slug}-{lane}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"lane_id": lane, "mission_slug": project.slug, **values}), encoding="utf-8")
    return path


def test_a_code_change_runs_in_the_work_tree_of_its_lane(project: Project) -> None:
    project.work_package("WP01", CODE)
    project.lanes(lane_a=["WP01", "WP02"])
    found = resolve_workspace(project.load(), "WP01")
    assert asdict(found) == {
        "mission_slug": "078-ships",
        "wp_id": "WP01",
        "execution_mode": CODE,
        "mode_source": "frontmatter",
        "resolution_kind": "lane_workspace",
        "workspace_name": "078-ships-lane-a",
        "workspace_path": str(project.root / ".worktrees" / "078-ships-lane-a"),
        "branch_name": "kitty/mission-078-ships-lane-a",
        "lane_id": "lane-a",
        "lane_wp_ids": ("WP01", "WP02"),
        "context_file": None,
        "diagnostics": (),
    }


@pytest.mark.parametrize("lanes", [None, {"lanes": [{"lane_id": "lane-a", "wp_ids": ["WP02"]}]}, "{"])
def test_a_planning_artifact_runs_in_the_root_whatever_lanes_there_are(project: Project, lanes: Any) -> None:
    project.work_package("WP01", PLANNING)
    remember(project, "lane-a", lane_wp_ids=["WP02"])
    if lanes:
        project.write("lanes.json", lanes)
    found = resolve_workspace(project.load(), "WP01")
    assert (found.resolution_kind, found.workspace_path) == ("repo_root", str(project.root))
    assert (found.branch_name, found.lane_id, found.lane_wp_ids, found.context_file) == (None, None, (), None)


@pytest.mark.parametrize("lanes", [None, {"lanes": []}, "{", {"lanes": [{"lane_id": "../x", "wp_ids": ["WP01"]}]}])
def test_a_code_change_without_a_lane_runs_nowhere(project: Project, lanes: Any) -> None:
    project.work_package("WP01", CODE)
    if lanes is not None:
        project.write("lanes.json", lanes)
    with pytest.raises(BrokenContract, match=r"lanes\.json") as broken:
        resolve_workspace(project.load(), "WP01")
    assert broken.value.findings


def test_a_context_file_is_asked_before_the_lanes(project: Project) -> None:
    project.work_package("WP01", CODE)
    path = remember(project, "lane-b", lane_wp_ids=["WP01", "WP02"], branch_name="kitty/mission-old-name")
    found = resolve_workspace(project.load(), "WP01")
    assert (found.lane_id, found.branch_name, found.context_file) == ("lane-b", "kitty/mission-old-name", str(path))
    assert found.lane_wp_ids == ("WP01", "WP02")
    project.lanes(lane_a=["WP01"])
    found = resolve_workspace(project.load(), "WP01")
    assert found.lane_id == "lane-b"
    assert "lanes.json in lane-a" in found.diagnostics[0]


def test_context_files_of_other_missions_branches_and_broken_ones_remember_nothing(project: Project) -> None:
    project.work_package("WP01", CODE)
    project.lanes(lane_a=["WP01"])
    remember(project, "lane-b", mission_slug="078", lane_wp_ids=["WP01"])
    remember(project, "lane-c", lane_wp_ids=["WP01"]).write_text("{", encoding="utf-8")
    remember(project, "lane-d", lane_id="../../etc", lane_wp_ids=["WP01"])
    assert resolve_workspace(project.load(), "WP01").lane_id == "lane-a"
    remember(project, "lane-a", lane_wp_ids=["WP01"], branch_name="main")
    found = resolve_workspace(project.load(), "WP01")
    assert (found.branch_name, "not a mission's" in found.diagnostics[0]) == ("kitty/mission-078-ships-lane-a", True)
    remember(project, "lane-b", current_wp="WP01")
    with pytest.raises(BrokenContract, match=r"lane-a\.json and 078-ships-lane-b\.json"):
        resolve_workspace(project.load(), "WP01")


def test_nothing_is_written_by_resolving_an_inferred_mode(project: Project) -> None:
    path = project.work_package("WP01", owned_files=["kitty-specs/078-ships/spec.md"])
    before = path.read_bytes()
    found = resolve_workspace(project.load(), "WP01")
    assert (found.mode_source, found.resolution_kind) == ("inferred_legacy", "repo_root")
    assert path.read_bytes() == before


def test_the_overview_of_a_mixed_mission_shows_every_work_package(project: Project) -> None:
    project.work_package("WP01", CODE)
    project.work_package("WP02", PLANNING)
    project.work_package("WP03", CODE)
    project.write("tasks/WP04-broken.md", "nothing")
    project.work_package("WP05")
    project.lanes(lane_a=["WP01", "WP07"], planning=["WP02"])
    project.event("WP06", "planned", "claimed")
    shown = {entry["wp_id"]: entry for entry in mission_status(project.load(), NOW)["work_packages"]}
    kinds = [entry["resolution_kind"] for entry in shown.values()]
    wanted = {f"WP0{number}": None for number in range(1, 8)} | {"WP01": "lane_workspace", "WP02": "repo_root"}
    assert dict(zip(shown, kinds, strict=True)) == wanted
    assert (shown["WP02"]["branch_name"], shown["WP02"]["lane_id"]) == (None, None)
    assert [name for name, entry in shown.items() if not entry["error"]] == ["WP01", "WP02"]
    assert shown["WP03"]["execution_mode"] == CODE


@pytest.mark.parametrize("lanes", ["{", "[]", '{"lanes": 1}'])
def test_broken_lanes_are_reported_in_the_overview_and_hide_nothing(project: Project, lanes: str) -> None:
    project.work_package("WP01", PLANNING)
    project.work_package("WP02", CODE)
    project.work_package("WP03")
    project.write("lanes.json", lanes)
    found = mission_status(project.load(), NOW)
    assert [entry["resolution_kind"] for entry in found["work_packages"]] == ["repo_root", None, None]
    assert any("lanes.json cannot be used" in text for text in found["diagnostics"])
