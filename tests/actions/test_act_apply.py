"""The action and the reusable workflow that apply a result, as a consumer calls them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.act import CHECKOUT, ROOT, Bench, Run, publish, read_yaml, rewritten
from support.plans import plan, task

from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.show import document

if TYPE_CHECKING:
    from pathlib import Path

    from accord_sandbox.server import RunningSandbox

pytestmark = pytest.mark.unmeasured

EXAMPLE = (ROOT / "examples/planner-result.json").read_text(encoding="utf-8")
APPLY = f"""
on: workflow_dispatch
jobs:
  apply:
    runs-on: ubuntu-latest
    steps:
      - uses: {CHECKOUT}
      - id: apply
        uses: accord-ci/accord@v0
        with:
          result: plan.json
"""
DRY_RUN = APPLY + "          dry-run: true\n"
CALL = """
on: workflow_dispatch
jobs:
  agent:
    runs-on: ubuntu-latest
    outputs:
      json: ${{ steps.result.outputs.json }}
    steps:
      - uses: CHECKOUT
      - id: result
        run: printf 'json=%s\\n' "$(jq -c . plan.json)" >> "$GITHUB_OUTPUT"
  call:
    needs: agent
    uses: accord-ci/accord/.github/workflows/reusable-apply-result.yml@v0
    with:
      run-key: plan-7
      max-wait: "60"
      INPUTS
  after:
    needs: call
    if: always()
    runs-on: ubuntu-latest
    steps:
      - id: after
        run: printf 'needs=%s\\n' "$(jq -c . <<< "$NEEDS")" >> "$GITHUB_OUTPUT"
        env:
          NEEDS: ${{ toJSON(needs.call.outputs) }}
""".replace("CHECKOUT", CHECKOUT)


@pytest.fixture
def apply(bench: Bench, github: RunningSandbox, tmp_path: Path) -> Any:
    """Run a workflow on ``plan.json``, any number of times, with the token of GitHub Actions."""
    runs: list[Run] = []

    def run(result: str, workflow: str = APPLY, **more: Any) -> Run:
        folder = tmp_path / f"run-{len(runs)}"
        folder.mkdir()
        files = {"plan.json": result, **more.pop("files", {})}
        runs.append(bench.run(workflow, folder, files=files, api_url=github.url, token=INSTALLATION_TOKEN, **more))
        return runs[-1]

    return run


@pytest.fixture
def held(tmp_path: Path) -> Any:
    """Tell what the local GitHub holds now."""
    return lambda: document(tmp_path / "sandbox")


def writes(github: RunningSandbox) -> int:
    return sum(method != "GET" for method, _, _ in github.requests)


def test_a_consumer_gets_work_items_outputs_and_a_summary(apply: Any, held: Any) -> None:
    run = apply(EXAMPLE)

    assert run.exit_code == 0, run.trouble
    outputs = run.outputs("apply")
    assert outputs["outcome"] == "applied"
    items = json.loads(outputs["items"])
    wanted = {item["tempID"]: item["title"] for item in json.loads(EXAMPLE)["create"]}
    issues = {str(issue["number"]): issue["title"] for issue in held()["issues"]}
    assert {key: issues[item["id"]] for key, item in items.items()} == wanted
    assert "### accord apply: applied" in run.summary
    assert "| Status | Operation | Item | Issue | Title |" in run.summary
    assert "```mermaid\ngraph LR" in run.summary
    assert {mark.kind for mark in run.annotations} <= {"warning"}


def test_every_output_that_apply_declares_is_there(apply: Any) -> None:
    assert set(apply(EXAMPLE, DRY_RUN).outputs("apply")) == set(read_yaml(ROOT / "action.yml")["outputs"])


def test_a_dry_run_plans_everything_and_writes_nothing(apply: Any, github: RunningSandbox) -> None:
    run = apply(EXAMPLE, DRY_RUN)

    assert run.exit_code == 0, run.trouble
    assert run.outputs("apply")["outcome"] == "planned"
    assert "📝 planned" in run.summary
    assert writes(github) == 0


def test_a_second_run_adopts_what_the_first_created(apply: Any, github: RunningSandbox) -> None:
    first = apply(EXAMPLE).outputs("apply")
    before = writes(github)
    second = apply(EXAMPLE).outputs("apply")

    assert second["outcome"] == "unchanged"
    assert (second["items"], second["run-key"]) == (first["items"], first["run-key"])
    assert writes(github) == before


def test_an_invalid_result_fails_the_step_with_a_mark_at_its_line_and_writes_nothing(
    apply: Any, github: RunningSandbox
) -> None:
    broken = json.dumps(plan(task("one", "two"), task("two", "one")), indent=1)
    run = apply(broken)

    assert run.exit_code != 0
    assert run.jobs == {"it.yml/apply": "failure"}
    assert run.outputs("apply")["outcome"] == "rejected"
    (mark,) = run.annotations
    assert (mark.kind, mark.file, mark.title) == ("error", "plan.json", "dependency-cycle")
    assert '"blockedBy"' in broken.splitlines()[(mark.line or 0) - 1]
    assert "one → two → one" in run.summary
    assert writes(github) == 0


def test_a_rehearsal_needs_neither_github_nor_a_token(bench: Bench, tmp_path: Path) -> None:
    run = bench.run(APPLY + "          sandbox: .accord/sandbox\n", tmp_path, files={"plan.json": EXAMPLE})

    assert run.exit_code == 0, run.trouble
    assert run.outputs("apply")["outcome"] == "applied"


def test_a_missing_result_is_reported_in_words(apply: Any, github: RunningSandbox) -> None:
    run = apply(EXAMPLE, APPLY.replace("plan.json", "nowhere.json"))

    assert run.exit_code != 0
    assert "Cannot read `nowhere.json`" in run.log
    assert github.requests == []


@pytest.mark.parametrize("way", ["result: plan.json", "result-json: ${{ needs.agent.outputs.json }}"])
def test_the_reusable_workflow_hands_its_outputs_to_the_jobs_after_it(way: str, apply: Any, held: Any) -> None:
    run = apply(json.dumps(plan(task("one"), task("two", "one"))), CALL.replace("INPUTS", way))

    assert run.exit_code == 0, run.trouble
    needs = json.loads(run.outputs("after")["needs"])
    assert (needs["outcome"], needs["run-key"]) == ("applied", "plan-7")
    assert set(json.loads(needs["items"])) == {"one", "two"}
    assert len(held()["issues"]) == 2
    receipt = json.loads((run.artifacts / "receipt.json").read_text(encoding="utf-8"))
    assert receipt["outcome"] == "applied"


def test_the_reusable_workflow_fails_and_keeps_the_receipt_that_tells_why(apply: Any, github: RunningSandbox) -> None:
    run = apply('{"role": "planner"}', CALL.replace("INPUTS", "result-json: ${{ needs.agent.outputs.json }}"))

    assert run.exit_code != 0
    assert run.outputs("apply")["outcome"] == "rejected"
    receipt = json.loads((run.artifacts / "receipt.json").read_text(encoding="utf-8"))
    assert {finding["code"] for finding in receipt["findings"]} == {"schema"}
    assert writes(github) == 0


def test_the_reusable_workflow_can_plan_only(apply: Any, github: RunningSandbox) -> None:
    run = apply(EXAMPLE, CALL.replace("INPUTS", "result: plan.json\n      dry-run: true"))

    assert run.exit_code == 0, run.trouble
    assert run.outputs("apply")["outcome"] == "planned"
    assert writes(github) == 0


def test_a_consumers_own_python_set_up_neither_breaks_nor_hijacks_accord(apply: Any, github: RunningSandbox) -> None:
    trap = "raise SystemExit('hijacked')"
    planted = {f"{name}.py": trap for name in ("yaml", "click", "json", "sitecustomize", "github", "accord")}
    hostile = """
    env:
      PYTHONPATH: ${{ github.workspace }}
      PYTHONHOME: /nowhere
      PYTHONSTARTUP: yaml.py
      PYTHONWARNINGS: error
      UV_PROJECT: /nowhere
      UV_PYTHON: "2.7"
      VIRTUAL_ENV: /nowhere
"""
    run = apply(EXAMPLE, APPLY.replace("\n    runs-on", f"{hostile.rstrip()}\n    runs-on"), files=planted)

    assert run.exit_code == 0, run.trouble
    assert run.outputs("apply")["outcome"] == "applied"


AFTERWARDS = """
      - id: after
        if: always()
        run: |
          git status --porcelain --ignored
          printf 'dirt=%s\\n' "$(git status --porcelain --ignored | tr -d '\\n')" >> "$GITHUB_OUTPUT"
          printf 'path=%s\\n' "$PATH" >> "$GITHUB_OUTPUT"
          printf 'env=%s\\n' "$(compgen -e | tr '\\n' ' ')" >> "$GITHUB_OUTPUT"
"""


def test_an_action_leaves_path_environment_and_workspace_as_they_were(apply: Any) -> None:
    alone = APPLY.partition("      - id: apply")[0] + AFTERWARDS
    assert apply(EXAMPLE, APPLY + AFTERWARDS).outputs("after") == apply(EXAMPLE, alone).outputs("after")


def test_neither_set_up_nor_run_leaves_anything_in_the_actions_folder(bench: Bench, apply: Any, tmp_path: Path) -> None:
    apply(EXAMPLE)
    sources = bench.published.with_name("sources")
    untouched = publish(tmp_path / "untouched")
    assert listing(sources) == listing(untouched)
    assert listing(bench.published) == listing(publish(tmp_path / "linked", sources=sources / "src"))


def listing(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


def test_the_self_test_of_our_own_ci_passes(bench: Bench, tmp_path: Path) -> None:
    workflow = rewritten((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    files = {"examples/planner-result.json": EXAMPLE, ".gitignore": "/.accord/\n", "README.md": "- [ ] A task\n"}
    run = bench.run(workflow, tmp_path, event="push", job="self-test", files=files)

    assert run.exit_code == 0, run.trouble
    assert run.outputs("first")["outcome"] == "applied"
