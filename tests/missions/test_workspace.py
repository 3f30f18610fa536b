"""Where a work package runs, and the overview that drops none of them."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.missions import NOW, SLUG, Project

from accord.core.errors import BrokenContract
from accord.core.findings import Severity
from accord.missions import load
from accord.missions.models import Frontmatter
from accord.missions.modes import settle_mode
from accord.missions.query import mission_status, readiness
from accord.missions.rules import mission_findings
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


CODE, PLANNING = "code_change", "planning_artifact"


def settled_by(text: str = "", lanes: Any = (), default: Any = None, is_listed: bool = False, **head: Any) -> Any:
    given = Frontmatter(work_package_id="WP01", **head)
    return settle_mode(given, text, lanes, is_listed=is_listed, legacy_default=default)


@pytest.mark.parametrize(
    ("given", "mode", "signal"),
    [
        ({"is_listed": True, "owned_files": ["src/a.py"]}, PLANNING, "as planning"),
        ({"lanes": ("lane-a",), "owned_files": ["kitty-specs/m/spec.md"]}, CODE, "lane-a"),
        ({"owned_files": ["kitty-specs/m/**", "./kitty-specs/n/a.py"], "text": "src/"}, PLANNING, "owned_files"),
        ({"owned_files": ["kitty-specs/m/spec.md", "src/a.py"]}, CODE, "code"),
        ({"owned_files": ["kitty-specs/../src/a"]}, CODE, "src/"),
        ({"owned_files": ["kitty-specs\\\\a", ".//kitty-specs//b", "kitty-specs"]}, PLANNING, "owned_files"),
        ({"text": "Update spec.md and plan.md."}, PLANNING, "spec.md"),
        ({"text": "Write kitty-specs/m/research"}, PLANNING, "kitty-specs/"),
        ({"text": "Update tasks.md, then tests/unit"}, CODE, "tests/"),
        ({"text": "Change lib/index.ts"}, CODE, ".ts"),
        ({"text": "`quickstart.md`, in latest/ and a contest/ of my-spec.markdown, a.json"}, PLANNING, "quickstart.md"),
    ],
)
def test_the_first_signal_in_the_order_of_the_rules_decides_and_is_named(given: Any, mode: str, signal: str) -> None:
    settled = settled_by(**given)
    assert (settled.value, settled.source) == (mode, "inferred_legacy")
    assert signal in settled.diagnostics[0]


def test_the_mode_of_the_file_beats_every_signal_and_an_unknown_one_is_never_guessed() -> None:
    for mode in (CODE, PLANNING):
        settled = settled_by("kitty-specs/", execution_mode=mode, owned_files=["src/a.py"])
        assert (settled.value, settled.source, settled.diagnostics) == (mode, "frontmatter", ())
    with pytest.raises(BrokenContract, match="code_change or planning_artifact"):
        settled_by(execution_mode="worktree", is_listed=True)


@pytest.mark.parametrize("text", ["", "Think about it.", "myspec.md", "contest/", "a.json", "README.md", "docs/x.rst"])
def test_without_a_signal_the_error_has_the_fix_and_a_default_may_be_given(text: str) -> None:
    with pytest.raises(BrokenContract, match=r"add `execution_mode: .*`.* or pass `--legacy-default") as broken:
        settled_by(text)
    (found,) = broken.value.findings
    assert found.code == "mode-unknown"
    proposed = re.findall(r"`execution_mode: (.*?)`", found.hint)
    assert [settled_by(text, execution_mode=mode).value for mode in proposed] == [PLANNING], "as it stands"
    assert re.findall(r"--legacy-default (\w+)", found.hint) == [PLANNING], "a code change needs a lane, too"
    assert "add it to a lane of lanes.json" in found.hint
    assert settled_by(text, lanes=("lane-a",)).value == CODE
    settled = settled_by(text, default=PLANNING)
    assert (settled.value, settled.source) == (PLANNING, "inferred_legacy")
    assert "default" in settled.diagnostics[0]


@pytest.mark.parametrize(
    ("given", "mode", "source"),
    [
        ({"execution_mode": CODE, "is_listed": True}, CODE, "frontmatter"),
        ({"execution_mode": PLANNING, "lanes": ("lane-c",)}, PLANNING, "frontmatter"),
        ({"execution_mode": PLANNING, "lanes": ("lane-a", "lane-b")}, PLANNING, "frontmatter"),
        ({"is_listed": True, "lanes": ("lane-a",)}, PLANNING, "inferred_legacy"),
    ],
)
def test_the_declared_mode_beats_a_lane_with_a_warning(given: Any, mode: str, source: str) -> None:
    settled = settled_by(**given)
    assert (settled.value, settled.source) == (mode, source)
    assert f"WP01 is a {mode}" in settled.conflict
    assert settled.conflict in settled.diagnostics


def test_two_lanes_of_a_code_change_are_an_error_even_with_a_default() -> None:
    for declared in ("", CODE):
        with pytest.raises(BrokenContract) as broken:
            settled_by(lanes=("lane-a", "lane-b"), default=CODE, execution_mode=declared)
        assert [finding.code for finding in broken.value.findings] == ["mode-contradiction"]


@pytest.mark.parametrize(("slug", "lane"), [(SLUG, "a..b"), (SLUG, "a."), (SLUG, "a.lock"), ("078..ships", "lane-a")])
def test_a_lane_whose_branch_git_does_not_take_is_not_ready(tmp_path: Path, slug: str, lane: str) -> None:
    project = Project(tmp_path, slug).begin()
    project.work_package("WP01", CODE)
    project.lanes(**{lane: ["WP01"]})
    assert not readiness(project.load())["WP01"]["ready"]
    found = mission_findings(project.load(), NOW)[f"kitty-specs/{slug}/tasks/WP01-part.md"]
    assert [item.code for item in found] == ["lane-unclear"]


def test_a_check_warns_of_a_lane_that_contradicts_the_declared_mode(tmp_path: Path) -> None:
    project = Project(tmp_path).begin()
    project.work_package("WP01", PLANNING)
    project.lanes(lane_c=["WP01"])
    found = mission_findings(project.load(), NOW)["kitty-specs/078-ships/tasks/WP01-part.md"]
    assert [(item.code, item.severity) for item in found] == [("mode-contradiction", Severity.WARNING)]


@pytest.mark.parametrize(
    ("mode", "kind", "codes"),
    [
        (PLANNING, "repo_root", []),
        (None, "repo_root", []),
        (CODE, None, ["lane-missing", "mode-contradiction"]),
    ],
)
def test_the_planning_lane_is_the_root_of_the_repository(
    tmp_path: Path, mode: str | None, kind: str | None, codes: list[str]
) -> None:
    project = Project(tmp_path).begin()
    project.work_package("WP01", mode, body="Change src/a.py")
    project.lanes(lane_planning=["WP01"])
    mission = project.load()
    assert mission_status(mission, NOW)["work_packages"][0]["resolution_kind"] == kind
    found = mission_findings(mission, NOW)["kitty-specs/078-ships/tasks/WP01-part.md"]
    assert sorted(item.code for item in found) == codes


def test_a_mission_of_many_work_packages_infers_each_mode_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path).begin()
    for number in range(1, 61):
        project.work_package(f"WP{number:02}", body="Change src/a.py")
    project.lanes(lane_a=[f"WP{number:02}" for number in range(1, 61)])
    asked: list[str] = []

    def counted(head: Frontmatter, *arguments: Any, **more: Any) -> Any:
        asked.append(head.work_package_id)
        return settle_mode(head, *arguments, **more)

    monkeypatch.setattr(load, "settle_mode", counted)
    mission = project.load()
    mission_status(mission, NOW)
    mission.work_package("WP60")
    assert len(asked) == len(set(asked)) == 60
