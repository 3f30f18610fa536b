"""The action that checks sessions, run on a pull request's branch with real git."""

import json
from pathlib import Path

import pytest
from support.act import CHECKOUT, Bench
from support.sessions import NAME, SPEC, TASKS, acceptance, status

pytestmark = pytest.mark.unmeasured

BROKEN = "2026-02-01_broken"
FILES = {
    f".agents-work/{NAME}/status.json": json.dumps(status("IMPLEMENT_LOOP", mode="lean")),
    f".agents-work/{NAME}/tasks.yaml": TASKS.replace("Write the rows", "Write $(it)"),
    f".agents-work/{NAME}/acceptance.json": json.dumps(acceptance()),
    f".agents-work/{NAME}/spec.md": SPEC,
    f".agents-work/{BROKEN}/status.json": json.dumps({**status(), "session": BROKEN, "current_state": "::stop"}),
}
WORKFLOW = f"""
on: workflow_dispatch
jobs:
  sessions:
    runs-on: ubuntu-latest
    steps:
      - uses: {CHECKOUT}
      - id: good
        uses: accord-ci/accord/actions/session@v0
        with:
          folders: .agents-work/{NAME}
      - id: none
        uses: accord-ci/accord/actions/session@v0
        with:
          base: HEAD
      - id: bad
        continue-on-error: true
        uses: accord-ci/accord/actions/session@v0
        with:
          folders: |
            .agents-work/{NAME}
            .agents-work/{BROKEN}
"""


def test_sessions_are_checked_by_folder_and_by_what_changed(bench: Bench, tmp_path: Path) -> None:
    ended = bench.run(WORKFLOW, tmp_path, files=FILES)
    assert ended.exit_code == 0, ended.trouble
    good, none, bad = (ended.outputs(step) for step in ("good", "none", "bad"))
    assert good["ok"] == "true"
    shown = json.loads(good["sessions"])[NAME]
    assert (shown["state"], shown["tasks"]["not-started"]) == ("IMPLEMENT_LOOP", 2)
    assert (none["ok"], json.loads(none["sessions"])) == ("true", {})
    assert bad["ok"] == "false"
    assert json.loads(bad["sessions"])[BROKEN] is None
