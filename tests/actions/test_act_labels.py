"""The action and the reusable workflow that keep labels in step, and the action that checks documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.act import CHECKOUT, CONSUMER, ROOT, Bench, Run, read_yaml, template
from support.plans import plan, task

from accord_sandbox.planting import INSTALLATION_TOKEN, TOKEN, ensure_repository
from accord_sandbox.show import document

if TYPE_CHECKING:
    from pathlib import Path

    from accord_sandbox.server import RunningSandbox

pytestmark = pytest.mark.unmeasured

OTHER = "octo/other"
FILE = """
- {name: "kind:task", description: Work, color: "112233"}
- {name: "good first issue", description: Start here, color: "7057ff"}
"""
LABELS = f"""
on: workflow_dispatch
jobs:
  labels:
    runs-on: ubuntu-latest
    steps:
      - uses: {CHECKOUT}
      - id: labels
        uses: accord-ci/accord/actions/labels@v0
        with:
          file: labels.yml
"""
MANY = """
on: workflow_dispatch
jobs:
  call:
    uses: accord-ci/accord/.github/workflows/reusable-label-sync.yml@v0
    with:
      repositories: '["octo/consumer", "octo/other"]'
      file: labels.yml
    secrets:
      token: ${{ secrets.GITHUB_TOKEN }}
"""
CHECK = f"""
on: workflow_dispatch
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: {CHECKOUT}
      - id: check
        uses: accord-ci/accord/actions/check@v0
        with:
          paths: |
            good.json
            plans/bad.json
      - id: setup
        if: always()
        uses: accord-ci/accord/actions/setup@v0
      - id: later
        if: always()
        run: printf 'answer=%s\\n' "$(bash "$ACCORD" check good.json)" >> "$GITHUB_OUTPUT"
        env:
          ACCORD: ${{{{ steps.setup.outputs.command }}}}
"""


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
    ended = run(LABELS)

    assert ended.exit_code == 0, ended.trouble
    outputs = ended.outputs("labels")
    assert set(outputs) == set(read_yaml(ROOT / "actions/labels/action.yml")["outputs"])
    assert outputs["outcome"] == "applied"
    actions = {label["name"]: label["action"] for label in json.loads(outputs["labels"])}
    assert actions == {"kind:task": "created", "good first issue": "updated"}
    assert labels()["kind:task"] == "112233"
    assert "### accord labels: applied" in ended.summary


def test_a_dry_run_changes_no_label(run: Any, labels: Any) -> None:
    before = labels()
    ended = run(LABELS + "          dry-run: true\n")

    assert ended.outputs("labels")["outcome"] == "planned"
    assert labels() == before


def test_labels_out_of_step_fail_the_check_and_are_left_alone(run: Any, labels: Any) -> None:
    before = labels()
    ended = run(LABELS + "          command: check\n")

    assert ended.exit_code != 0
    assert ended.outputs("labels")["outcome"] == "drift"
    assert labels() == before


def test_a_broken_label_file_changes_nothing(run: Any, labels: Any) -> None:
    before = labels()
    ended = run(LABELS, files={"labels.yml": "- {name: x, color: red}\n"})

    assert ended.exit_code != 0
    assert labels() == before


def test_pruning_deletes_what_a_sync_created_and_nothing_else(run: Any, labels: Any) -> None:
    again = """
      - uses: accord-ci/accord/actions/labels@v0
        with:
          file: fewer.yml
          record: ${{ runner.temp }}/created.json
          prune: true
"""
    before = labels()
    workflow = LABELS + "          record: ${{ runner.temp }}/created.json\n" + again
    ended = run(workflow, files={"fewer.yml": '- {name: "kind:other", description: Other, color: "445566"}\n'})

    assert ended.exit_code == 0, ended.trouble
    assert set(labels()) == {*before, "kind:other"}


def test_labels_of_many_repositories_are_synced_each_in_its_own_job(
    run: Any, labels: Any, github: RunningSandbox
) -> None:
    with github.database.writing() as connection:
        ensure_repository(connection, OTHER, 0.0)
    ended = run(MANY, token=TOKEN)

    assert ended.exit_code == 0, ended.trouble
    assert list(ended.jobs.values()) == ["success", "success"]
    assert labels()["kind:task"] == labels(OTHER)["kind:task"] == "112233"
    assert ended.summary.count("### accord labels: applied") == 2


def test_a_repository_that_fails_does_not_stop_the_others(run: Any, labels: Any) -> None:
    ended = run(MANY.replace(OTHER, "octo/nowhere"), token=TOKEN)

    assert ended.exit_code != 0
    assert labels()["kind:task"] == "112233"


def test_the_kits_workflow_for_labels_works_as_it_is(run: Any, labels: Any) -> None:
    ended = run(template("labels"), files={".github/labels.yml": FILE})

    assert ended.exit_code == 0, ended.trouble
    assert labels()["kind:task"] == "112233"


def test_checked_documents_get_marks_and_later_steps_can_call_the_command(run: Any, github: RunningSandbox) -> None:
    bad = json.dumps(plan(task("one", "gone")), indent=1)
    ended = run(CHECK, files={"good.json": json.dumps(plan(task("one"))), "plans/bad.json": bad})

    assert ended.exit_code != 0
    assert ended.outputs("check") == {"ok": "false", "document": ""}
    (mark,) = ended.annotations
    assert (mark.kind, mark.file, mark.title) == ("error", "plans/bad.json", "unknown-reference")
    assert '"gone"' in bad.splitlines()[(mark.line or 0) - 1]
    assert "| plans/bad.json |" in ended.summary
    assert ended.outputs("later")["answer"] == "good.json: ok (planner-result)"
    assert github.requests == []
