"""Which mode a work package has, and which signal decides."""

from pathlib import Path
from typing import Any

import pytest
from support.missions import NOW, Project

from accord.core.errors import BrokenContract
from accord.core.findings import Severity
from accord.missions import load
from accord.missions.modes import ModeFacts, settle_mode
from accord.missions.query import mission_status
from accord.missions.rules import mission_findings

CODE, PLANNING = "code_change", "planning_artifact"


def facts(**more: Any) -> ModeFacts:
    nothing = {"declared": "", "is_listed_as_planning": False, "lane_ids": (), "owned_files": (), "text": ""}
    return ModeFacts("WP01", **{**nothing, **more})


@pytest.mark.parametrize(
    ("given", "mode", "signal"),
    [
        ({"is_listed_as_planning": True, "owned_files": ["src/a.py"]}, PLANNING, "planning_artifact_wps"),
        ({"lane_ids": ("lane-a",), "owned_files": ["kitty-specs/m/spec.md"]}, CODE, "lane-a"),
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
    settled = settle_mode(facts(**given))
    assert (settled.value, settled.source) == (mode, "inferred_legacy")
    assert signal in settled.diagnostics[0]


def test_the_mode_of_the_file_beats_every_signal_and_an_unknown_one_is_never_guessed() -> None:
    for mode in (CODE, PLANNING):
        settled = settle_mode(facts(declared=mode, owned_files=["src/a.py"], text="kitty-specs/"))
        assert (settled.value, settled.source, settled.diagnostics) == (mode, "frontmatter", ())
    with pytest.raises(BrokenContract, match="code_change or planning_artifact"):
        settle_mode(facts(declared="worktree", is_listed_as_planning=True))


@pytest.mark.parametrize("text", ["", "Think about it.", "myspec.md", "contest/", "a.json", "README.md", "docs/x.rst"])
def test_without_a_signal_the_error_has_the_fix_and_a_default_may_be_given(text: str) -> None:
    with pytest.raises(BrokenContract, match=r"Add `execution_mode: .*`.* or pass `--legacy-default") as broken:
        settle_mode(facts(text=text))
    assert [finding.code for finding in broken.value.findings] == ["mode-unknown"]
    settled = settle_mode(facts(text=text), PLANNING)
    assert (settled.value, settled.source) == (PLANNING, "inferred_legacy")
    assert "default" in settled.diagnostics[0]


@pytest.mark.parametrize(
    ("given", "mode", "source"),
    [
        ({"declared": CODE, "is_listed_as_planning": True}, CODE, "frontmatter"),
        ({"declared": PLANNING, "lane_ids": ("lane-planning",)}, PLANNING, "frontmatter"),
        ({"declared": PLANNING, "lane_ids": ("lane-a", "lane-b")}, PLANNING, "frontmatter"),
        ({"is_listed_as_planning": True, "lane_ids": ("lane-a",)}, PLANNING, "inferred_legacy"),
    ],
)
def test_the_declared_mode_beats_a_lane_with_a_warning(given: Any, mode: str, source: str) -> None:
    settled = settle_mode(facts(**given))
    assert (settled.value, settled.source) == (mode, source)
    assert f"WP01 is a {mode}" in settled.conflict
    assert settled.conflict in settled.diagnostics


def test_two_lanes_of_a_code_change_are_an_error_even_with_a_default() -> None:
    for declared in ("", CODE):
        with pytest.raises(BrokenContract) as broken:
            settle_mode(facts(declared=declared, lane_ids=("lane-a", "lane-b")), CODE)
        assert [finding.code for finding in broken.value.findings] == ["mode-contradiction"]


def test_a_check_warns_of_a_lane_that_contradicts_the_declared_mode(tmp_path: Path) -> None:
    project = Project(tmp_path).begin()
    project.work_package("WP01", PLANNING)
    project.lanes(lane_planning=["WP01"])
    found = mission_findings(project.load())["kitty-specs/078-ships/tasks/WP01-part.md"]
    assert [(item.code, item.severity) for item in found] == [("mode-contradiction", Severity.WARNING)]


@pytest.mark.slow
def test_a_mission_of_500_work_packages_infers_each_mode_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path).begin()
    for number in range(1, 501):
        project.work_package(f"WP{number:02}", body="Change src/a.py")
    project.lanes(lane_a=[f"WP{number:02}" for number in range(1, 501)])
    asked: list[str] = []

    def counted(about: ModeFacts, default: Any) -> Any:
        asked.append(about.wp_id)
        return settle_mode(about, default)

    monkeypatch.setattr(load, "settle_mode", counted)
    mission = project.load()
    mission_status(mission, NOW)
    mission.work_package("WP500")
    assert len(asked) == len(set(asked)) == 500
