"""The action that checks sessions, run on a pull request's branch with real git."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.act import CHECKOUT, Bench
from support.sessions import ARCHITECTURE, NAME, REPORT, SPEC, TASKS, acceptance, agent_output, status

if TYPE_CHECKING:
    from pathlib import Path

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


PLAY = """
set -euo pipefail
accord() { bash "$ACCORD" "$@" > /dev/null; }
to() { for state in "$@"; do accord session advance "$DIR" --to "$state" --role Orchestrator; done; }
put() { for file in "$@"; do cp "parts/$file" "$DIR/$file"; done; }
take() { for role in "${@:2}"; do accord dispatch "$DIR" "$1" --role "$role" --take parts/output.json; done; }
complete() { accord session task "$DIR" "$1" --to completed --role Orchestrator; }

begin() { accord session new "$@"; DIR=$(echo .agents-work/*_"$1"); }

begin full-story
put spec.md acceptance.json
to DESIGN
put architecture.md
to APPROVE_DESIGN
accord session ask "$DIR" --question 'Approve `$(it)`?' --id UD-APPROVE-DESIGN
accord session answer "$DIR" UD-APPROVE-DESIGN='changes-requested: smaller'
accord session resume "$DIR"
take meta Architect
accord session ask "$DIR" --question 'Approve?' --id UD-APPROVE-DESIGN
accord session answer "$DIR" UD-APPROVE-DESIGN=approved
to PLAN
put tasks.yaml
to REVIEW_STRATEGY
accord session ask "$DIR" --question 'How?' --id UD-REVIEW-STRATEGY
accord session answer "$DIR" UD-REVIEW-STRATEGY='single final'
to IMPLEMENT_LOOP
accord session ask "$DIR" --question 'Which one?'
accord session answer "$DIR" UD-1='the first'
accord session resume "$DIR"
accord dispatch "$DIR" T-001 --role Coder --into .accord/dispatch
take T-001 Coder
accord session fix "$DIR" T-001 FIX_TESTS --role Orchestrator
to IMPLEMENT_LOOP
take T-001 Reviewer
if complete T-001; then echo "QA did not look yet"; exit 1; fi
take T-001 QA
complete T-001
take T-002 Coder Reviewer QA
complete T-002
put report.md
to INTEGRATE RELEASE DONE

begin lean-story --lean
put spec.md acceptance.json tasks.yaml
to IMPLEMENT_LOOP
take T-001 Coder Reviewer QA
complete T-001
take T-002 Coder Reviewer QA
complete T-002
put report.md
to INTEGRATE DONE
echo "folders=$(echo .agents-work/*)" >> "$GITHUB_OUTPUT"
"""
PARTS = {
    "spec.md": SPEC,
    "acceptance.json": json.dumps(acceptance()),
    "architecture.md": ARCHITECTURE,
    "tasks.yaml": TASKS,
    "report.md": REPORT,
    "output.json": json.dumps(agent_output()),
}
STORIES = f"""
on: workflow_dispatch
jobs:
  stories:
    runs-on: ubuntu-latest
    steps:
      - uses: {CHECKOUT}
      - id: accord
        uses: accord-ci/accord/actions/setup@v0
      - id: play
        run: bash play.sh
        env:
          ACCORD: ${{{{ steps.accord.outputs.command }}}}
      - id: told
        uses: accord-ci/accord/actions/session@v0
        with:
          folders: ${{{{ steps.play.outputs.folders }}}}
"""


def test_a_full_and_a_lean_session_are_played_to_their_ends_in_a_workflow(bench: Bench, tmp_path: Path) -> None:
    files = {"play.sh": PLAY, **{f"parts/{name}": text for name, text in PARTS.items()}}
    ended = bench.run(STORIES, tmp_path, files=files)
    assert ended.exit_code == 0, ended.trouble
    told = ended.outputs("told")
    assert told["ok"] == "true"
    shown = json.loads(told["sessions"])
    assert sorted(name.partition("_")[2] for name in shown) == ["full-story", "lean-story"]
    for found in shown.values():
        assert (found["state"], found["tasks"]["completed"]) == ("DONE", 2)
