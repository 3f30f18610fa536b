"""``accord mission`` as programs and people call it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord, Ended
from support.missions import Project

from accord.core.kinds import check_document

KEYS = ["mission_slug", "wp_id", "execution_mode", "mode_source", "resolution_kind", "workspace_name", "workspace_path"]
KEYS += ["branch_name", "lane_id", "lane_wp_ids", "context_file", "diagnostics"]
NEXT = ["kind", "agent", "mission_slug", "mission", "mission_state", "preview_step", "timestamp", "action", "wp_id"]
NEXT += ["workspace_path", "prompt_file", "reason", "guard_failures", "progress", "origin", "run_id", "step_id"]
NEXT += ["decision_id", "input_key", "question", "options", "is_query"]


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


@pytest.fixture
def mission(accord: Accord, project: Project) -> Callable[..., Ended]:
    return partial(accord, "mission", "--root", project.root)


def test_next_prints_a_response_of_the_contract_and_nothing_else(accord: Accord, project: Project) -> None:
    accord.monkeypatch.chdir(project.root / ".worktrees" / "078-ships-lane-a")
    for more in ((), ("--format", "json")):
        ended = accord("mission", "next", project.slug, "--agent", "claude", *more)
        assert (ended.code, ended.err) == (0, "")
        assert check_document(ended.out.encode(), None) == ("next-query-response", [])
        assert ended.document["agent"] == "claude"
        assert sorted(ended.document) == sorted(NEXT)


@pytest.mark.parametrize("command", [("next",), ("status", "--format", "json"), ("stale",)])
def test_an_unknown_mission_is_one_object_with_the_error(mission: Any, project: Project, command: Any) -> None:
    ended = mission(command[0], "nope", *command[1:])
    assert (ended.code, list(ended.document)) == (1, ["error", "hint"])
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
def test_outside_a_project_every_mission_is_unknown(accord: Accord, tmp_path: Path, command: Any) -> None:
    for named in ((), ("--root", tmp_path / "gone")):
        ended = accord("mission", *named, *command)
        assert (ended.code, list(ended.document)) == (1, ["error", "hint"])
        assert "in the directory that contains `kitty-specs/`, or pass that to `--root`" in ended.document["hint"]
        assert ended.document["error"].endswith(ended.document["hint"])


def test_errors_for_people_go_to_stderr(mission: Any, project: Project) -> None:
    ended = mission("next", "nope", "--format", "text")
    assert (ended.code, ended.out) == (1, "")
    assert "Unknown mission `nope`" in ended.err
    ended = mission("next", project.slug, "--format", "text")
    assert "software-dev @ not_started" in ended.out
    assert "next step: discovery" in ended.out


def test_a_workspace_has_the_keys_that_programs_rely_on(mission: Any, project: Project) -> None:
    for wp_id in ("WP01", "WP02"):
        assert list(mission("workspace", project.slug, wp_id).document) == KEYS
    for wp_id in ("WP03", "WP77"):
        ended = mission("workspace", project.slug, wp_id)
        assert (ended.code, list(ended.document)) == (1, ["error", "hint"])
    project.work_package("WP04", body="Think.")
    refused = mission("workspace", project.slug, "WP04").document
    assert "--legacy-default" in refused["hint"]
    assert refused["error"].endswith(refused["hint"])
    found = mission("workspace", project.slug, "WP04", "--legacy-default", "planning_artifact").document
    assert (found["mode_source"], found["resolution_kind"]) == ("inferred_legacy", "repo_root")


NO_LANE = "WP04 is a code_change and is not in a lane of lanes.json."
LANE_HINT = "Add it to a lane, or set `execution_mode: planning_artifact` if it changes no code."


@pytest.mark.parametrize("command", ["workspace", "start --actor ada", "move --to in_progress --actor ada"])
def test_a_code_change_without_a_lane_has_its_hint_at_each_command(
    mission: Any, project: Project, command: str
) -> None:
    project.work_package("WP04", "code_change")
    name, *options = command.split()
    refused = mission(name, project.slug, "WP04", *options, "--format", "json")
    assert (refused.code, refused.document["hint"]) == (1, LANE_HINT)
    assert refused.document["error"].endswith(f"{NO_LANE} {LANE_HINT}")
    assert LANE_HINT in mission(name, project.slug, "WP04", *options, "--format", "text").err


@pytest.mark.parametrize("command", ["status", "check"])
def test_the_error_of_a_work_package_has_its_hint(mission: Any, project: Project, command: str) -> None:
    project.work_package("WP04", "code_change")
    shown = mission(command, project.slug, "--format", "json").document
    entries = {each["wp_id"]: each for each in shown.get("missions", [shown])[0]["work_packages"]}
    found = {name: (entry["error"], entry["hint"]) for name, entry in entries.items() if name != "WP03"}
    assert found == {"WP01": (None, None), "WP02": (None, None), "WP04": (f"{NO_LANE} {LANE_HINT}", LANE_HINT)}
    assert entries["WP03"]["error"].endswith(entries["WP03"]["hint"])
    assert mission(command, project.slug, "--format", "text").out.count(LANE_HINT) == (1 if command == "status" else 2)


def test_status_and_start_use_the_workspace_of_the_resolver(mission: Any, project: Project) -> None:
    project.work_package("WP04", "code_change")
    project.lanes(lane_a=["WP01"], lane_b=["WP04"])
    shown = {one["wp_id"]: one for one in mission("status", project.slug, "--format", "json").document["work_packages"]}
    for wp_id in ("WP01", "WP02", "WP04"):
        found = mission("workspace", project.slug, wp_id).document
        assert {name: shown[wp_id][name] for name in KEYS if name in shown[wp_id]}.items() <= found.items()
        assert shown[wp_id]["workspace_path"] == found["workspace_path"]
    tree = Path(found["workspace_path"])
    assert not tree.exists()
    started = mission("start", project.slug, "WP04", "--actor", "ada", "--format", "json").document
    assert (started["workspace_path"], (tree / ".git").is_file()) == (str(tree), True)


def test_stale_prints_a_status_of_the_contract_for_each(mission: Any, project: Project) -> None:
    ended = mission("stale", project.slug)
    statuses = {name: value["status"] for name, value in ended.document.items()}
    assert statuses == {"WP01": "stale", "WP02": "not_applicable", "WP03": "fresh"}
    for value in ended.document.values():
        assert check_document(json.dumps(value).encode(), None) == ("stale-status", [])
    assert (ended.code, "WP03" in ended.err) == (1, True)
    ended = mission("stale", project.slug, "WP01", "--threshold", "600")
    assert {name: value["status"] for name, value in ended.document.items()} == {"WP01": "fresh"}
    assert ended.code == 0
    ended = mission("stale", project.slug, "--threshold", "nan")
    assert (ended.code, ended.out) == (2, "")


def test_proposals_for_work_without_a_mode_have_the_option_that_gave_it(mission: Any, project: Project) -> None:
    project.work_package("WP04")
    mode = ("--legacy-default", "planning_artifact", "--format", "json")
    for ended in (
        mission("start", project.slug, "WP04", "--actor", "ada", *mode),
        mission("move", project.slug, "WP04", "--to", "done", "--actor", "ada", *mode),
        mission("status", project.slug, *mode),
    ):
        commands = [move["command"] for move in ended.document["next_moves"] if "WP04" in move["command"]]
        assert commands
        assert all(command.endswith(" --legacy-default planning_artifact") for command in commands)


@pytest.mark.slow
def test_status_tells_all_and_never_that_planning_waits_for_a_merge(mission: Any, project: Project) -> None:
    for target in ("in_progress", "for_review", "approved"):
        ended = mission("status", project.slug)
        assert all(name in ended.out for name in ("WP01", "WP02", "WP03", "lane-a", "repository root"))
        line = next(line for line in ended.out.splitlines() if "WP02" in line)
        assert not any(word in line for word in ("merge", "lane", "branch"))
        mission("move", project.slug, "WP02", "--to", target, "--actor", "ada")
    assert "stale: last commit 12" in ended.out
    assert "\n::" not in ended.out


def test_a_move_prints_its_steps_and_an_illegal_one_the_legal_moves(mission: Any, project: Project) -> None:
    move = partial(mission, "move", project.slug, "WP02", "--actor", "ada", "--to")
    assert move("in_progress").out.startswith("WP02 planned → claimed → in_progress: applied\nNext:\n  for_review\n")
    ended = move("doing", "--format", "json")
    assert (ended.code, ended.document["outcome"], ended.document["events"]) == (0, "unchanged", [])
    ended = move("done", "--format", "json")
    assert (ended.code, list(ended.document)) == (1, ["error", "hint", "next_moves"])
    assert "Legal moves" in ended.document["error"]
    first = ended.document["next_moves"][0]
    assert (first["to"], first["missing"]) == ("for_review", [])
    assert first["command"].endswith("move 078-ships WP02 --to for_review --actor ada")
    assert f"Next:\n  for_review\n    {first['command']}\n" in move("done").err
    assert move("merged").code == 2
    assert move("for_review", "--dry-run", "--format", "json").document["outcome"] == "planned"


@pytest.mark.slow
def test_counts_that_lack_a_work_package_are_never_given_in_silence(mission: Any, project: Project) -> None:
    with (project.folder / "status.events.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"wp_id": "WP02", "to_lane": "gone", "at": "soon"}\n')
    for command in ("next", "status"):
        ended = mission(command, project.slug, "--format", "json")
        counts = ended.document["progress"]
        assert (ended.code, counts["planned_wps"], counts["unknown_wps"]) == (1, 1, 1)
        assert "WP02: status unknown or in doubt. status.events.jsonl, line 2" in ended.err
    assert "WP01   in_progress" in mission("status", project.slug).out


@pytest.mark.slow
def test_ready_and_blocked_work_packages_are_shown_everywhere(mission: Any, project: Project) -> None:
    needs = {"WP04": ["WP02"], "WP05": ["WP06"], "WP06": ["WP05"], "WP07": ["WP99"], "WP08": ["WP09"], "WP09": ["WP08"]}
    for wp_id, names in needs.items():
        project.work_package(wp_id, "planning_artifact", dependencies=names)
    found = mission("status", project.slug, "--format", "json").document
    shown = {entry["wp_id"]: (entry["ready"], entry["blocked_by"]) for entry in found["work_packages"]}
    assert shown == {"WP01": (False, []), "WP02": (True, []), "WP03": (False, [])} | {
        wp_id: (False, names) for wp_id, names in needs.items()
    }
    reasons = {entry["wp_id"]: entry["blocked_reason"] for entry in found["work_packages"]}
    assert "depends on itself: WP05 → WP06 → WP05" in reasons["WP05"]
    assert "depends on itself: WP08 → WP09 → WP08" in reasons["WP08"]
    assert "depends on WP99, which has no file" in reasons["WP07"]
    assert [move["to"] for move in found["next_moves"]] == ["WP01 for_review", "WP02 in_progress"]
    (entry,) = mission("list", "--format", "json").document["missions"]
    assert (entry["ready"], entry["blocked"]) == (["WP02"], needs)
    for command in (("status", project.slug), ("list",), ("next", project.slug, "--format", "text")):
        text = mission(*command).out
        assert all(said in text for said in ("ready", "blocked by WP02", "WP05 → WP06 → WP05", "WP99"))


@pytest.mark.slow
def test_a_start_prints_the_workspace_and_the_next_moves(
    mission: Any, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = mission("start", project.slug, "WP02", "--actor", "ada", "--format", "json")
    document = ended.document
    assert (ended.code, document["outcome"], document["to"]) == (0, "applied", "in_progress")
    assert document["workspace_path"] == str(project.root)
    assert document["next_moves"][0]["to"] == "for_review"
    ada, bob = ("start", project.slug, "WP01", "--actor", "ada"), ("start", project.slug, "WP01", "--actor", "bob")
    assert "WP01 in_progress: applied" in mission(*ada).out, "it keeps .worktrees out of git"
    assert "WP01 in_progress: unchanged" in mission(*ada).out
    monkeypatch.setenv("GITHUB_ACTOR", "bob")
    for words in (bob, bob[:3]):
        ended = mission(*words)
        assert (ended.code, "ada has claimed it" in ended.err) == (1, True)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--reason", ""),
        ("--feedback", " "),
        ("--override-reason", "\n\t"),
        ("--review-ref", " "),
        ("--reason", "\u200b"),
    ],
)
def test_a_blank_text_of_a_move_is_refused_even_where_none_is_needed(
    mission: Any, project: Project, option: str, text: str
) -> None:
    ended = mission("move", project.slug, "WP02", "--to", "blocked", "--actor", "ada", option, text)
    assert (ended.code, f"`{option}` is blank" in ended.err) == (1, True)
    assert project.status("WP02") == "planned"


def test_blank_reasons_do_not_count(mission: Any, project: Project) -> None:
    project.event("WP01", "in_review", "approved", at=datetime.now(UTC))
    for told in (("--override-reason", " "), ("--force", "--reason", "  ")):
        assert mission("move", project.slug, "WP01", "--to", "done", "--actor", "ada", *told).code == 1


def test_a_secret_in_a_reason_reaches_neither_the_log_nor_the_screen(mission: Any, project: Project) -> None:
    token = "ghp_" + "a1B2" * 9
    move = ("move", project.slug, "WP02", "--to", "blocked", "--actor", "ada", "--format", "json")
    ended = mission(*move, "--reason", f"It says {token}")
    log = (project.folder / "status.events.jsonl").read_text(encoding="utf-8")
    assert ended.code == 0
    assert token not in log + ended.out
    assert "It says" in log


def test_a_check_leaves_a_table_and_annotations_for_the_runner(accord: Accord, mission: Any, project: Project) -> None:
    step = accord.in_step()
    ended = mission("check")
    assert (ended.code, step.outputs["ok"]) == (1, "false")
    for shown in ("frontmatter-missing", "| WP02 Write", "repository root"):
        assert shown in step.summary
    assert "file=kitty-specs/078-ships/tasks/WP03-broken.md" in ended.err
    (project.folder / "tasks/WP03-broken.md").unlink()
    assert mission("check", "--format", "json").document["ok"] is True


def test_only_missions_that_changed_since_a_base_are_checked(mission: Any, project: Project) -> None:
    other = Project(project.root, "079-trains").begin()
    other.work_package("WP01", "planning_artifact")
    project.git("checkout", "--quiet", "-b", "topic")
    project.git("add", "kitty-specs/079-trains")
    project.commit("add a mission")
    ended = mission("check", "--format", "json", "--base", "main")
    assert [standing["mission_slug"] for standing in ended.document["missions"]] == ["079-trains"]
    assert ended.code == 0
    for base in ("gone", "--output=x"):
        assert mission("check", "--format", "json", "--base", base).code == 4
    assert mission("check", "nope", "--format", "json").code == 1


def test_a_secret_in_the_name_of_a_mission_reaches_no_later_step(accord: Accord, tmp_path: Path) -> None:
    accord.monkeypatch.setenv("DEPLOY_PASSWORD", "correct-horse-battery")
    step = accord.in_step()
    project = Project(tmp_path / "project", "078-correct-horse-battery").begin()
    project.work_package("WP01", "planning_artifact")
    project.repository()
    accord("mission", "--root", project.root, "check")
    assert '{"078-[redacted: secret of the environment]":{' in step.outputs["missions"]
    assert "correct-horse" not in step.output.read_text() + step.summary
