"""The action and the reusable workflow that apply a result, as a consumer calls them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.act import CHECKOUT, ROOT, Bench, Run, publish, read_yaml, steps_with, without_new_keys
from support.plans import plan, task

from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.server import RunningSandbox
from accord_sandbox.show import document

pytestmark = pytest.mark.slow

EXAMPLE = (ROOT / "examples/planner-result.json").read_text(encoding="utf-8")
BROKEN = json.dumps(plan(task("one", "two"), task("two", "one")), indent=1)
STATE = """
        run: |
          printf 'dirt=%s\\n' "$(git status --porcelain --ignored | tr -d '\\n')" >> "$GITHUB_OUTPUT"
          printf 'path=%s\\n' "$PATH" >> "$GITHUB_OUTPUT"
          printf 'env=%s\\n' "$(compgen -e | tr '\\n' ' ')" >> "$GITHUB_OUTPUT"
"""
"""A step whose outputs are what an action must not change."""

STEPS = {
    "dry": {"result": "plan.json", "dry-run": True}, "first": {"result": "plan.json"},
    "second": {"result": "plan.json"}, "broken": {"result": "broken.json"}, "missing": {"result": "nowhere.json"},
}  # fmt: skip
"""The inputs of every step that applies, by its id."""

USES = steps_with("accord-ci/accord@v0", STEPS, failing=("broken", "missing"))
APPLY = f"""
on: workflow_dispatch
jobs:
  apply:
    runs-on: ubuntu-latest
    steps:
      - uses: {CHECKOUT}
      - id: before{STATE}
{USES}
      - id: after{STATE}
      - id: ends
        run: printf 'of=%s\\n' "${{{{ steps.broken.outcome }}}} ${{{{ steps.missing.outcome }}}}" >> "$GITHUB_OUTPUT"
  hijacked:
    needs: apply
    runs-on: ubuntu-latest
    env:
      PYTHONPATH: ${{{{ github.workspace }}}}
      PYTHONHOME: /nowhere
      PYTHONSTARTUP: yaml.py
      PYTHONWARNINGS: error
      UV_PROJECT: /nowhere
      UV_PYTHON: "2.7"
      VIRTUAL_ENV: /nowhere
    steps:
      - uses: {CHECKOUT}
      - id: hijacked
        uses: accord-ci/accord@v0
        with:
          result: plan.json
"""
COMPACT = "python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)))'"  # jq is not on every machine
APPLIED = """
on: workflow_dispatch
jobs:
  agent:
    runs-on: ubuntu-latest
    outputs:
      json: ${{ steps.result.outputs.json }}
    steps:
      - uses: CHECKOUT
      - id: result
        run: printf 'json=%s\\n' "$(COMPACT < plan.json)" >> "$GITHUB_OUTPUT"
  call:
    needs: agent
    uses: accord-ci/accord/.github/workflows/reusable-apply-result.yml@v0
    with:
      result-json: ${{ needs.agent.outputs.json }}
""".replace("CHECKOUT", CHECKOUT).replace("COMPACT", COMPACT)
"""A workflow that applies the result of a job."""

CALL = f"""{APPLIED}      run-key: plan-7
      max-wait: "60"
  plan:
    needs: call
    if: always()
    uses: accord-ci/accord/.github/workflows/reusable-apply-result.yml@v0
    with:
      result: other.json
      dry-run: true
  after:
    needs: [call, plan]
    if: always()
    runs-on: ubuntu-latest
    steps:
      - id: after
        run: printf 'needs=%s\\n' "$({COMPACT} <<< "$NEEDS")" >> "$GITHUB_OUTPUT"
        env:
          NEEDS: ${{{{ toJSON(needs) }}}}
"""


@pytest.fixture
def apply(bench: Bench, github: RunningSandbox, tmp_path: Path) -> Any:
    """Run a workflow with a plan, with the token of GitHub Actions."""

    def run(workflow: str, result: str, files: dict[str, str]) -> Run:
        access = {"api_url": github.url, "token": INSTALLATION_TOKEN}
        return bench.run(workflow, tmp_path, files={"plan.json": result, **files}, **access)

    return run


def test_a_consumer_gets_items_and_outputs(bench: Bench, apply: Any, github: RunningSandbox, tmp_path: Path) -> None:
    trap = "raise SystemExit('hijacked')"
    planted = {f"{name}.py": trap for name in ("yaml", "click", "json", "sitecustomize", "github", "accord")}
    run = apply(APPLY, EXAMPLE, {"broken.json": BROKEN, **planted})

    assert run.exit_code == 0, run.trouble
    outputs = {name: run.outputs(name) for name in (*STEPS, "hijacked")}
    outcomes = {name: found.get("outcome") for name, found in outputs.items()}
    applied = {"dry": "planned", "first": "applied", "second": "unchanged", "hijacked": "unchanged"}
    assert outcomes == {**applied, "broken": "rejected", "missing": "usage"}
    assert set(outputs["dry"]) == set(outputs["first"]) == set(read_yaml(ROOT / "action.yml")["outputs"])
    assert all(outputs["second"][name] == outputs["first"][name] for name in ("items", "run-key"))
    items = json.loads(outputs["first"]["items"])
    wanted = {item["tempID"]: item["title"] for item in json.loads(EXAMPLE)["create"]}
    issues = {str(issue["number"]): issue["title"] for issue in document(tmp_path / "sandbox")["issues"]}
    assert ({key: issues[item["id"]] for key, item in items.items()}, len(issues)) == (wanted, len(wanted))
    for text in ("applied", "| Status | Operation | Item | Issue | Title |", "```mermaid\ngraph LR", "📝 planned"):
        assert text in run.summary

    assert run.outputs("ends")["of"] == "failure failure"
    (mark,) = [mark for mark in run.annotations if mark.file == "broken.json"]
    assert (mark.kind, mark.title) == ("error", "dependency-cycle")
    assert '"blockedBy"' in BROKEN.splitlines()[(mark.line or 0) - 1]
    assert "one → two → one" in run.summary
    assert "Cannot read `nowhere.json`" in run.log

    assert run.outputs("before") == run.outputs("after")
    sources = bench.published.with_name("sources")
    assert listing(sources) == listing(publish(tmp_path / "untouched"))
    assert listing(bench.published) == listing(publish(tmp_path / "linked", sources=sources / "src"))


def test_the_reusable_workflow_passes_its_outputs_to_later_jobs(apply: Any, tmp_path: Path) -> None:
    result = json.dumps(plan(task("one"), task("two", "one")))
    run = apply(CALL, result, {"other.json": EXAMPLE})

    assert run.exit_code == 0, run.trouble
    needs = {name: job["outputs"] for name, job in json.loads(run.outputs("after")["needs"]).items()}
    assert (needs["call"]["outcome"], needs["call"]["run-key"]) == ("applied", "plan-7")
    assert (set(json.loads(needs["call"]["items"])), needs["plan"]["outcome"]) == ({"one", "two"}, "planned")
    assert len(document(tmp_path / "sandbox")["issues"]) == 2


def listing(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if "__pycache__" not in path.parts)


def test_the_workflow_of_the_readme_plans_and_creates_the_items(
    bench: Bench, github: RunningSandbox, tmp_path: Path
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (workflow,) = re.findall(r"^```yaml\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert len(workflow.splitlines()) < 25
    assert readme.count("\n", 0, readme.index(workflow)) < 25, "it is on the first screen"
    agents = {"default_agent": "writer", "agents": {"writer": {"codec": "plain", "command": ["cat", "answer.json"]}}}
    files = {".github/agents/registry.yml": json.dumps(agents), "answer.json": EXAMPLE}
    workflow = without_new_keys(workflow.replace("<sha>", "a" * 40))
    run = bench.run(workflow, tmp_path, files=files, api_url=github.url, token=INSTALLATION_TOKEN)
    assert run.exit_code == 0, run.trouble
    created = document(tmp_path / "sandbox")["issues"]
    assert {issue["title"] for issue in created} == {item["title"] for item in json.loads(EXAMPLE)["create"]}
