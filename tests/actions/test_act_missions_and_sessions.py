"""The actions that check missions and sessions, run on a pull request's branch with real git."""

import json
from pathlib import Path

import pytest
from support.act import Bench, job_with, steps_with
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
MISSION_STEPS: dict[str, dict[str, str]] = {
    "mission": {"slugs": "078-ships"}, "no-missions": {"base": "HEAD"}, "missions": {},
}  # fmt: skip
BROKEN = "2026-02-01_broken"
SESSIONS = {
    f".agents-work/{NAME}/status.json": json.dumps(status("IMPLEMENT_LOOP", mode="lean")),
    f".agents-work/{NAME}/tasks.yaml": TASKS.replace("Write the rows", "Write $(it)"),
    f".agents-work/{NAME}/acceptance.json": json.dumps(acceptance()),
    f".agents-work/{NAME}/spec.md": SPEC,
    f".agents-work/{BROKEN}/status.json": json.dumps({**status(), "session": BROKEN, "current_state": "::stop"}),
}
SESSION_STEPS = {
    "session": {"folders": f".agents-work/{NAME}"},
    "no-sessions": {"base": "HEAD"},
    "sessions": {"folders": f".agents-work/{NAME}\n.agents-work/{BROKEN}"},
}


def test_missions_and_sessions_are_checked_by_name_by_what_changed_and_all_of_them(
    bench: Bench, tmp_path: Path
) -> None:
    sessions = steps_with("accord-ci/accord/actions/session@v0", SESSION_STEPS, failing=["sessions"])
    workflow = job_with("accord-ci/accord/actions/mission@v0", MISSION_STEPS, failing=["missions"], after=sessions)
    ended = bench.run(workflow, tmp_path, files={**MISSIONS, **SESSIONS})
    assert ended.exit_code == 0, ended.trouble
    good, none, everything = (ended.outputs(step) for step in MISSION_STEPS)
    assert (good["ok"], json.loads(good["missions"])["078-ships"]["total_wps"]) == ("true", 2)
    assert (none["ok"], json.loads(none["missions"])) == ("true", {})
    assert (everything["ok"], set(json.loads(everything["missions"]))) == ("false", {"078-ships", "079-trains"})
    good, none, everything = (ended.outputs(step) for step in SESSION_STEPS)
    shown = json.loads(good["sessions"])[NAME]
    assert (good["ok"], shown["state"], shown["tasks"]["not-started"]) == ("true", "IMPLEMENT_LOOP", 2)
    assert (none["ok"], json.loads(none["sessions"])) == ("true", {})
    assert (everything["ok"], json.loads(everything["sessions"])[BROKEN]) == ("false", None)
