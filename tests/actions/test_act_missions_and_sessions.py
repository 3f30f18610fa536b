"""The actions that check missions and sessions, run on a pull request's branch with real git."""

import json
from pathlib import Path

import pytest
from support.act import Bench, job_with
from support.sessions import NAME, SPEC, TASKS, acceptance, status

pytestmark = pytest.mark.slow

HEAD = "---\nwork_package_id: {id}\ntitle: Build $(it)\ndependencies: []\nexecution_mode: {mode}\n---\n"
MISSIONS = {
    "kitty-specs/078-ships/meta.json": '{"mission_type": "software-dev"}',
    "kitty-specs/078-ships/lanes.json": '{"version": 1, "lanes": [{"lane_id": "lane-a", "wp_ids": ["WP01"]}]}',
    "kitty-specs/078-ships/tasks/WP01-code.md": HEAD.format(id="WP01", mode="code_change"),
    "kitty-specs/078-ships/tasks/WP02-plan.md": HEAD.format(id="WP02", mode="planning_artifact"),
    "kitty-specs/079-trains/tasks/WP01-plan.md": HEAD.format(id="WP01", mode="nonsense"),
}
MISSION_STEPS: dict[str, dict[str, str]] = {"good": {"slugs": "078-ships"}, "none": {"base": "HEAD"}, "all": {}}
BROKEN = "2026-02-01_broken"
SESSIONS = {
    f".agents-work/{NAME}/status.json": json.dumps(status("IMPLEMENT_LOOP", mode="lean")),
    f".agents-work/{NAME}/tasks.yaml": TASKS.replace("Write the rows", "Write $(it)"),
    f".agents-work/{NAME}/acceptance.json": json.dumps(acceptance()),
    f".agents-work/{NAME}/spec.md": SPEC,
    f".agents-work/{BROKEN}/status.json": json.dumps({**status(), "session": BROKEN, "current_state": "::stop"}),
}
SESSION_STEPS = {
    "good": {"folders": f".agents-work/{NAME}"},
    "none": {"base": "HEAD"},
    "bad": {"folders": f".agents-work/{NAME}\n.agents-work/{BROKEN}"},
}


def test_missions_are_checked_by_name_by_what_changed_and_all_of_them(bench: Bench, tmp_path: Path) -> None:
    workflow = job_with("accord-ci/accord/actions/mission@v0", MISSION_STEPS, failing=["all"])
    ended = bench.run(workflow, tmp_path, files=MISSIONS)
    assert ended.exit_code == 0, ended.trouble
    good, none, everything = (ended.outputs(step) for step in ("good", "none", "all"))
    assert (good["ok"], json.loads(good["missions"])["078-ships"]["total_wps"]) == ("true", 2)
    assert (none["ok"], json.loads(none["missions"])) == ("true", {})
    assert (everything["ok"], set(json.loads(everything["missions"]))) == ("false", {"078-ships", "079-trains"})


def test_sessions_are_checked_by_folder_and_by_what_changed(bench: Bench, tmp_path: Path) -> None:
    workflow = job_with("accord-ci/accord/actions/session@v0", SESSION_STEPS, failing=["bad"])
    ended = bench.run(workflow, tmp_path, files=SESSIONS)
    assert ended.exit_code == 0, ended.trouble
    good, none, bad = (ended.outputs(step) for step in ("good", "none", "bad"))
    assert good["ok"] == "true"
    shown = json.loads(good["sessions"])[NAME]
    assert (shown["state"], shown["tasks"]["not-started"]) == ("IMPLEMENT_LOOP", 2)
    assert (none["ok"], json.loads(none["sessions"])) == ("true", {})
    assert bad["ok"] == "false"
    assert json.loads(bad["sessions"])[BROKEN] is None
