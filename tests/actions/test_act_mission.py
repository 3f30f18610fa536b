"""The action that checks missions, run on a pull request's branch with real git."""

import json
from pathlib import Path

import pytest
from support.act import CHECKOUT, Bench

pytestmark = pytest.mark.unmeasured

HEAD = "---\nwork_package_id: {id}\ntitle: Build $(it)\ndependencies: []\nexecution_mode: {mode}\n---\n"
FILES = {
    "kitty-specs/078-ships/meta.json": '{"mission_type": "software-dev"}',
    "kitty-specs/078-ships/lanes.json": '{"version": 1, "lanes": [{"lane_id": "lane-a", "wp_ids": ["WP01"]}]}',
    "kitty-specs/078-ships/tasks/WP01-code.md": HEAD.format(id="WP01", mode="code_change"),
    "kitty-specs/078-ships/tasks/WP02-plan.md": HEAD.format(id="WP02", mode="planning_artifact"),
    "kitty-specs/079-trains/tasks/WP01-plan.md": HEAD.format(id="WP01", mode="nonsense"),
}
WORKFLOW = f"""
on: workflow_dispatch
jobs:
  missions:
    runs-on: ubuntu-latest
    steps:
      - uses: {CHECKOUT}
      - id: good
        uses: accord-ci/accord/actions/mission@v0
        with:
          slugs: 078-ships
      - id: none
        uses: accord-ci/accord/actions/mission@v0
        with:
          base: HEAD
      - id: all
        uses: accord-ci/accord/actions/mission@v0
        continue-on-error: true
"""


def test_missions_are_checked_by_name_by_what_changed_and_all_of_them(bench: Bench, tmp_path: Path) -> None:
    ended = bench.run(WORKFLOW, tmp_path, files=FILES)
    assert ended.exit_code == 0, ended.trouble
    good, none, everything = (ended.outputs(step) for step in ("good", "none", "all"))
    assert (good["ok"], json.loads(good["missions"])["078-ships"]["total_wps"]) == ("true", 2)
    assert (none["ok"], json.loads(none["missions"])) == ("true", {})
    assert (everything["ok"], set(json.loads(everything["missions"]))) == ("false", {"078-ships", "079-trains"})
