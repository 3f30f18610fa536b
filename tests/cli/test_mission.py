"""``accord mission`` as programs and people call it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from support.missions import Project

from accord.core.kinds import check_document

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Accord

KEYS = ["mission_slug", "wp_id", "execution_mode", "mode_source", "resolution_kind", "workspace_name", "workspace_path"]
KEYS += ["branch_name", "lane_id", "lane_wp_ids", "context_file", "diagnostics"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A code change in progress, a planning artifact, and one that is broken."""
    project = Project(tmp_path / "project").begin()
    project.work_package("WP01", "code_change")
    project.work_package("WP02", "planning_artifact", title="Write ::error:: the plan")
    project.write("tasks/WP03-broken.md", "nothing")
    project.lanes(lane_a=["WP01"])
    project.event("WP01", "claimed", "in_progress")
    project.repository()
    project.commit("work", at=datetime.now(UTC) - timedelta(hours=2), directory=project.worktree("lane-a"))
    return project


def test_next_prints_a_response_of_the_contract_and_nothing_else(accord: Accord, project: Project) -> None:
    for more in ((), ("--format", "json")):
        ended = accord("mission", "--root", project.root, "next", project.slug, "--agent", "claude", *more)
        assert (ended.code, ended.err) == (0, "")
        assert check_document(ended.out.encode(), None) == ("next-query-response", [])
        assert ended.document["agent"] == "claude"


@pytest.mark.parametrize("command", [("next",), ("status", "--format", "json"), ("stale",)])
def test_an_unknown_mission_is_one_object_with_the_error(accord: Accord, project: Project, command: Any) -> None:
    ended = accord("mission", "--root", project.root, command[0], "nope", *command[1:])
    assert ended.code == 1
    assert list(ended.document) == ["error"]
    assert project.slug in ended.document["error"]


@pytest.mark.parametrize(
    "command",
    [
        ("next", "nope"),
        ("workspace", "nope", "WP01"),
        ("stale", "nope"),
        ("check", "--format", "json"),
        ("move", "nope", "WP01", "--to", "done", "--actor", "ada", "--format", "json"),
    ],
)
def test_outside_a_project_every_mission_is_unknown(
    accord: Accord, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for named in ((), ("--root", tmp_path / "gone")):
        ended = accord("mission", *named, *command)
        assert (ended.code, list(ended.document)) == (1, ["error"])
        assert "--root DIR" in ended.document["error"]


def test_a_threshold_must_be_a_number(accord: Accord, project: Project) -> None:
    ended = accord("mission", "--root", project.root, "stale", project.slug, "--threshold", "nan")
    assert (ended.code, ended.out) == (2, "")


def test_blank_reasons_do_not_count(accord: Accord, project: Project) -> None:
    project.event("WP01", "in_review", "approved", at=datetime.now(UTC))
    move = ("mission", "--root", project.root, "move", project.slug, "WP01", "--to", "done", "--actor", "ada")
    for told in (("--override-reason", " "), ("--force", "--reason", "  ")):
        assert accord(*move, *told).code == 1


def test_errors_for_people_go_to_stderr(accord: Accord, project: Project) -> None:
    ended = accord("mission", "--root", project.root, "next", "nope", "--format", "text")
    assert (ended.code, ended.out) == (1, "")
    assert "Unknown mission `nope`" in ended.err
    ended = accord("mission", "--root", project.root, "next", project.slug, "--format", "text")
    assert "software-dev @ not_started" in ended.out
    assert "next step: discovery" in ended.out


def test_the_project_is_found_from_the_work_tree_of_a_lane(
    accord: Accord, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root / ".worktrees" / "078-ships-lane-a")
    ended = accord("mission", "workspace", project.slug, "WP02")
    assert ended.document["workspace_path"] == str(project.root)
    monkeypatch.chdir("/")
    assert accord("mission", "workspace", project.slug, "WP02").code == 1


def test_a_workspace_has_the_keys_that_programs_rely_on(accord: Accord, project: Project) -> None:
    for wp_id in ("WP01", "WP02"):
        assert list(accord("mission", "--root", project.root, "workspace", project.slug, wp_id).document) == KEYS
    for wp_id in ("WP03", "WP77"):
        ended = accord("mission", "--root", project.root, "workspace", project.slug, wp_id)
        assert (ended.code, list(ended.document)) == (1, ["error"])


def test_a_default_mode_is_for_those_of_which_nothing_tells_it(accord: Accord, project: Project) -> None:
    project.work_package("WP04", body="Think.")
    command = ("mission", "--root", project.root, "workspace", project.slug, "WP04")
    assert "--legacy-default" in accord(*command).document["error"]
    ended = accord(*command, "--legacy-default", "planning_artifact")
    assert (ended.document["mode_source"], ended.document["resolution_kind"]) == ("inferred_legacy", "repo_root")


def test_stale_prints_a_status_of_the_contract_for_each(accord: Accord, project: Project) -> None:
    ended = accord("mission", "--root", project.root, "stale", project.slug)
    assert {name: value["status"] for name, value in ended.document.items()} == {
        "WP01": "stale",
        "WP02": "not_applicable",
        "WP03": "fresh",
    }
    for value in ended.document.values():
        assert check_document(json.dumps(value).encode(), None) == ("stale-status", [])
    assert "WP03" in ended.err
    ended = accord("mission", "--root", project.root, "stale", project.slug, "WP01", "--threshold", "600")
    assert {name: value["status"] for name, value in ended.document.items()} == {"WP01": "fresh"}


def test_status_tells_all_and_never_that_planning_waits_for_a_merge(accord: Accord, project: Project) -> None:
    for target in ("in_progress", "for_review", "approved"):
        ended = accord("mission", "--root", project.root, "status", project.slug)
        assert all(name in ended.out for name in ("WP01", "WP02", "WP03", "lane-a", "repository root"))
        line = next(line for line in ended.out.splitlines() if "WP02" in line)
        assert not any(word in line for word in ("merge", "lane", "branch"))
        accord("mission", "--root", project.root, "move", project.slug, "WP02", "--to", target, "--actor", "ada")
    assert "stale: last commit 12" in ended.out
    assert "\n::" not in ended.out


def test_a_move_prints_its_steps_and_an_illegal_one_the_legal_moves(accord: Accord, project: Project) -> None:
    move = ("mission", "--root", project.root, "move", project.slug, "WP02", "--actor", "ada", "--to")
    assert accord(*move, "in_progress").out == "WP02 planned → claimed → in_progress: applied\n"
    ended = accord(*move, "doing", "--format", "json")
    assert (ended.code, ended.document["outcome"], ended.document["events"]) == (0, "unchanged", [])
    ended = accord(*move, "done", "--format", "json")
    assert (ended.code, list(ended.document)) == (1, ["error"])
    assert "legal moves are" in ended.document["error"]
    assert accord(*move, "merged").code == 2
    assert accord(*move, "for_review", "--dry-run", "--format", "json").document["outcome"] == "planned"


def test_a_secret_in_a_reason_reaches_neither_the_log_nor_the_screen(accord: Accord, project: Project) -> None:
    token = "ghp_" + "a1B2" * 9
    ended = accord(
        "mission", "--root", project.root, "move", project.slug, "WP02", "--to", "blocked", "--actor", "ada",
        "--reason", f"It says {token}", "--format", "json",
    )  # fmt: skip
    log = (project.folder / "status.events.jsonl").read_text(encoding="utf-8")
    assert ended.code == 0
    assert token not in log + ended.out
    assert "It says" in log


def test_a_check_leaves_a_table_and_annotations_for_the_runner(
    accord: Accord, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, output = accord.home / "summary.md", accord.home / "output"
    for name, value in (("GITHUB_STEP_SUMMARY", summary), ("GITHUB_OUTPUT", output), ("GITHUB_ACTIONS", "true")):
        monkeypatch.setenv(name, str(value))
        if isinstance(value, type(summary)):
            value.touch()
    ended = accord("mission", "--root", project.root, "check")
    assert ended.code == 1
    page = summary.read_text(encoding="utf-8")
    assert "frontmatter-missing" in page
    assert "| WP02 Write" in page
    assert "repository root" in page
    assert "file=kitty-specs/078-ships/tasks/WP03-broken.md" in ended.err
    assert "false" in output.read_text(encoding="utf-8")
    (project.folder / "tasks/WP03-broken.md").unlink()
    assert accord("mission", "--root", project.root, "check", "--format", "json").document["ok"] is True


def test_only_missions_that_changed_since_a_base_are_checked(accord: Accord, project: Project) -> None:
    other = Project(project.root, "079-trains").begin()
    other.work_package("WP01", "planning_artifact")
    project.git("checkout", "--quiet", "-b", "topic")
    project.git("add", "kitty-specs/079-trains")
    project.commit("add a mission")
    check = ("mission", "--root", project.root, "check", "--format", "json")
    ended = accord(*check, "--base", "main")
    assert [mission["mission_slug"] for mission in ended.document["missions"]] == ["079-trains"]
    assert ended.code == 0
    assert accord(*check, "--base", "gone").code == 4
    assert accord(*check, "--base", "--output=x").code == 4
    assert accord(*check, "nope").code == 1


def test_a_secret_in_the_name_of_a_mission_reaches_no_later_step(
    accord: Accord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, output = "correct-horse-battery", accord.home / "output"
    monkeypatch.setenv("DEPLOY_PASSWORD", secret)
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    project = Project(tmp_path / "project", f"078-{secret}").begin()
    project.work_package("WP01", "planning_artifact")
    project.repository()
    accord("mission", "--root", project.root, "check")
    told = output.read_text(encoding="utf-8")
    assert '{"078-[redacted: secret of the environment]":{' in told
    assert secret not in told
