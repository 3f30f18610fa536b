"""The action and the reusable workflow that keep labels in step, and the action that checks documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.act import CONSUMER, ROOT, Bench, Run, job_with, read_yaml, template
from support.plans import plan, task
from support.stage import seed_file

from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.server import RunningSandbox, serving
from accord_sandbox.show import document

pytestmark = pytest.mark.slow

FILE = """
- {name: "kind:task", description: Work, color: "112233"}
- {name: "good first issue", description: Start here, color: "7057ff"}
"""
STEPS = {
    "broken": {"file": "broken.yml"},
    "dry": {"file": "labels.yml", "dry-run": True},
    "check": {"file": "labels.yml", "command": "check"},
    "sync": {"file": "labels.yml", "record": "${{ runner.temp }}/created.json"},
    "prune": {"file": "fewer.yml", "record": "${{ runner.temp }}/created.json", "prune": True},
}
"""The inputs of every step, by its id; the first that writes is ``sync``."""

ENDS = """\
      - id: ends
        run: printf 'of=%s\\n' "${{ steps.broken.outcome }} ${{ steps.check.outcome }}" >> "$GITHUB_OUTPUT"
"""
LABELS = job_with("accord-ci/accord/actions/labels@v0", STEPS, failing=("broken", "check"), after=ENDS)
LATER = """\
      - id: setup
        if: always()
        uses: accord-ci/accord/actions/setup@v0
      - id: later
        if: always()
        run: printf 'answer=%s\\n' "$(bash "$ACCORD" check good.json)" >> "$GITHUB_OUTPUT"
        env:
          ACCORD: ${{ steps.setup.outputs.command }}
"""
CHECK = job_with("accord-ci/accord/actions/check@v0", {"check": {"paths": "good.json\nplans/bad.json"}}, after=LATER)


@pytest.fixture
def github(tmp_path: Path) -> Iterator[RunningSandbox]:
    """Serve the consumer's repository, whose default branch has the label files that the reusable workflow reads."""
    files = {"labels.yml": FILE, ".github/labels.yml": FILE}
    seed = seed_file(tmp_path, {"repositories": [{"name": CONSUMER, "files": files}]})
    with serving(tmp_path / "sandbox", seed=seed) as running:
        yield running


@pytest.fixture
def run(bench: Bench, github: RunningSandbox, tmp_path: Path) -> Any:
    runs: list[Run] = []

    def start(workflow: str, *, token: str = INSTALLATION_TOKEN, **more: Any) -> Run:
        folder = tmp_path / f"run-{len(runs)}"
        folder.mkdir()
        files = {"labels.yml": FILE, **more.pop("files", {})}
        runs.append(bench.run(workflow, folder, files=files, api_url=github.url, token=token, **more))
        return runs[-1]

    return start


@pytest.fixture
def labels(tmp_path: Path) -> Any:
    """Tell which labels the local GitHub has now, with their colours."""

    def ask(repository: str = CONSUMER) -> dict[str, str]:
        return {label["name"]: label["color"] for label in document(tmp_path / "sandbox", repository)["labels"]}

    return ask


def test_labels_follow_the_file_and_the_outputs_say_how(run: Any, labels: Any) -> None:
    before = labels()
    other = '- {name: "kind:other", description: Other, color: "445566"}\n'
    ended = run(LABELS, files={"broken.yml": "- {name: x, color: red}\n", "fewer.yml": other})

    assert ended.exit_code == 0, ended.trouble
    assert ended.outputs("ends")["of"] == "failure failure"
    outcomes = {name: ended.outputs(name).get("outcome") for name in STEPS if name != "broken"}
    assert outcomes == {"dry": "planned", "check": "drift", "sync": "applied", "prune": "applied"}
    outputs = ended.outputs("sync")
    assert set(outputs) == set(read_yaml(ROOT / "actions/labels/action.yml")["outputs"])
    actions = {label["name"]: label["action"] for label in json.loads(outputs["labels"])}
    assert actions == {"kind:task": "created", "good first issue": "updated"}
    assert set(labels()) == {*before, "kind:other"}  # pruning deletes only what a sync created
    assert "### accord labels: applied" in ended.summary


def test_the_kits_workflow_for_labels_works_unchanged(run: Any, labels: Any) -> None:
    ended = run(template("labels"), files={".github/labels.yml": FILE})

    assert ended.exit_code == 0, ended.trouble
    assert labels()["kind:task"] == "112233"


def test_checked_documents_get_annotations_and_later_steps_can_call_accord(run: Any, github: RunningSandbox) -> None:
    bad = json.dumps(plan(task("one", "gone")), indent=1)
    ended = run(CHECK, files={"good.json": json.dumps(plan(task("one"))), "plans/bad.json": bad})

    assert ended.exit_code != 0
    assert ended.outputs("check") == {"ok": "false", "document": ""}
    (mark,) = ended.annotations
    assert (mark.kind, mark.file, mark.title) == ("error", "plans/bad.json", "unknown-reference")
    assert '"gone"' in bad.splitlines()[(mark.line or 0) - 1]
    assert "| plans/bad.json |" in ended.summary
    assert (ended.outputs("later")["answer"], github.requests) == ("good.json: ok (planner-result)", [])
