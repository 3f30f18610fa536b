"""Doctor reports each problem of a workflow once, in the file that has it."""

from contextlib import nullcontext

import pytest
from support.runner_workflows import RUNNER, SHA, edited, workflow

from accord.agents.registry import Agent
from accord.core.errors import BrokenContract
from accord.workflows.agents import agent_steps, shipped_agents
from accord.workflows.doctor import CHECKS
from accord.workflows.facts import RepositoryFacts
from accord.workflows.models import Job, Workflow

PLACE = ".github/workflows/"
GOOD = f"""\
name: Agent
on:
  pull_request:
permissions: {{}}
jobs:
  agent:
    runs-on: ubuntu-latest
    cache-mode: none
    permissions:
      contents: read
    steps:
      - uses: actions/checkout@{SHA} # v7.0.1
      - run: codex exec --json - < prompt.md
  publish:
    needs: agent
    permissions:
      contents: write
    steps:
      - run: git push
"""


def found(*texts: str, **facts: object) -> list[tuple[str, str, str, str]]:
    """Every finding as check, file, code and severity; the files are a.yml, b.yml and c.yml."""
    files = {f"{PLACE}{name}.yml": workflow(text) for name, text in zip("abc", texts, strict=False)}
    given = RepositoryFacts(files, **facts)  # type: ignore[arg-type]
    return [
        (name, path.removeprefix(PLACE), finding.code, finding.severity.value)
        for name, check in CHECKS.items()
        for path, finding in check(given)
    ]


def test_a_healthy_repository_has_no_finding() -> None:
    assert found(GOOD, edited(RUNNER, ("name: Run an agent", "name: Runner"))) == []


TOP = "permissions: {}\njobs"
CALL = "  call:\n    permissions: {{}}\n    uses: {}\n    secrets: {}\n"

TOP_LEVEL = [(TOP, "permissions:\n  issues: write\njobs"), ("    permissions:\n      contents: read\n", "")]
MAY_WRITE = ("agent jobs", "agent-may-write", "error")
BLOCKED = ("events", "trigger-blocked-by-default", "warning")
WRONG = [
    ([("contents: read", "contents: write")], MAY_WRITE),
    ([("permissions:\n      contents: read", "permissions: write-all")], MAY_WRITE),
    (TOP_LEVEL, MAY_WRITE),
    ([("name: Agent\n", "")], ("names", "workflow-unnamed", "warning")),
    ([("pull_request:", "workflow_run:\n    workflows: [Gone]")], ("names", "workflow-unknown", "error")),
    ([("pull_request:", "workflow_run:\n    workflows: [Agent, Gone]")], ("names", "workflow-unknown", "warning")),
    ([("pull_request:", "push:\n  workflow_run:\n    workflows: [Gone]")], ("names", "workflow-unknown", "warning")),
    ([("    cache-mode: none\n", "")], ("caches", "cache-mode-missing", "warning")),
    (
        [("name: Agent\n", "name: Agent\ncache-mode: none\n"), ("none\n    per", "write\n    per")],
        ("caches", "cache-mode-missing", "warning"),
    ),
    ([("on:\n  pull_request:", "on: [push, pull_request_target]")], BLOCKED),
    ([("pull_request:", "pull_request_target:\n    types: [labeled]")], BLOCKED),
]


@pytest.mark.parametrize(("edits", "expected"), WRONG)
def test_each_problem_is_one_finding(edits: list[tuple[str, str]], expected: tuple[str, str, str]) -> None:
    check, code, severity = expected
    assert [each for each in found(edited(GOOD, *edits)) if each[0] != "outsiders"] == [
        (check, "a.yml", code, severity)
    ]


def test_a_private_repository_may_use_triggers_that_public_ones_may_not() -> None:
    text = edited(GOOD, ("pull_request:", "pull_request_target:"), ("contents: write", "checks: write"))
    assert (found(text), found(text, is_private=True)) == ([(BLOCKED[0], "a.yml", *BLOCKED[1:])], [])


def test_identity_tokens_and_models_do_not_count_as_write_access() -> None:
    harmless = "id-token: write\n      models: write\n      copilot-requests: write"
    assert found(edited(GOOD, ("contents: read", harmless))) == []


@pytest.mark.parametrize(
    ("step", "is_one"),
    [
        ({"run": "codex exec --json -"}, True), ({"run": "npx -y @openai/codex@0.169.0 --config x exec -"}, True),
        ({"run": "set -e\nclaude \\\n  --verbose -p 'do it'"}, True),
        ({"run": "node_modules/.bin/gemini --prompt x"}, True), ({"run": "opencode run x"}, True),
        ({"run": "accord run --agent codex"}, True), ({"uses": f"anthropics/claude-code-action@{SHA}"}, True),
        ({"uses": "$/actions/run-agent"}, True), ({"uses": f"accord-ci/accord/actions/run-agent@{SHA}"}, True),
        ({"uses": "$/actions/run-agent", "with": {"skip": "${{ inputs.skip }}"}}, True),
        ({"uses": "$/actions/run-agent", "with": {"skip": "true"}}, False), ({"run": "codex --version"}, False),
        ({"run": "npm install @anthropic-ai/claude-code"}, False), ({"run": "echo gemini; mkdir -p x"}, False),
        ({"uses": "devcontainers/ci@v1", "with": {"runCmd": "claude -p x"}}, True),
        ({"uses": "nick-fields/retry@v3", "with": {"command": "cd x && codex exec -"}}, True),
        ({"uses": "actions/github-script@v8", "with": {"script": "// `codex exec`\nf(`claude -p`)"}}, False),
        ({"uses": "nick-fields/retry@v3", "with": {"comment": "codex exec -"}}, False),
        ({"run": "accord publish run-dir"}, False), ({"uses": f"octo/claude-code-action@{SHA}"}, False), ({}, False),
    ],
)  # fmt: skip
def test_agents_are_recognised_by_action_or_command(step: dict[str, object], is_one: bool) -> None:
    job = Job.model_validate({"steps": [step]})
    flow = Workflow.model_validate({"on": "push", "jobs": {"a": job}})
    assert any(agent_steps(flow, job, shipped_agents())) is is_one


@pytest.mark.parametrize(
    ("uses", "owner", "severity"),
    [
        (f"other/flows/.github/workflows/run.yml@{SHA}", "octo", "error"),
        (f"other/flows/.github/workflows/run.yml@{SHA}", "", None),
        (f"octo/flows/.github/workflows/run.yml@{SHA}", "Octo", None),
        ("./.github/workflows/run.yml", "octo", None),
    ],
)
def test_secrets_are_not_inherited_across_organisations(uses: str, owner: str, severity: str | None) -> None:
    expected = [("secrets", "a.yml", "secrets-inherit", severity)] if severity else []
    assert found(GOOD + CALL.format(uses, "inherit"), owner=owner) == expected


ASKING = "name: B\non:\n  workflow_call:\n    secrets:\n      KEY:\n        required: true\npermissions: {}\njobs: {}\n"


@pytest.mark.parametrize(("given", "codes"), [("{}", ["secret-missing"]), ("{key: x}", []), ("inherit", [])])
def test_a_secret_that_a_workflow_requires_is_passed(given: str, codes: list[str]) -> None:
    call = CALL.format("./.github/workflows/b.yml", given)
    assert [code for _, _, code, _ in found(GOOD + call, ASKING)] == codes


@pytest.mark.parametrize(
    ("names", "needs_all", "codes"),
    [
        (["KEY"], True, []), (["KEY", "OTHER"], True, ["secret-unnamed"]), (["KEY", "OTHER"], False, []),
        (["SOME", "OTHER"], False, ["secret-unnamed"]), ([], True, []),
    ],
)  # fmt: skip
def test_some_workflow_passes_the_secrets_of_each_agent(names: list[str], needs_all: bool, codes: list[str]) -> None:
    text = edited(GOOD, ("run: git push", "run: git push\n        env:\n          X: ${{ secrets.KEY }}"))
    registry = ".github/agents/registry.yml"
    agent = Agent(required_secrets=names, required_secrets_mode="all" if needs_all else "any")
    findings = found(text, agents={"codex": agent})
    assert findings == [("secrets", registry, code, "warning") for code in codes]


def test_a_repeated_workflow_name_is_a_finding() -> None:
    assert found(GOOD, GOOD) == [("names", "b.yml", "workflow-name-repeated", "warning")]


def test_a_runner_is_checked_against_its_contract() -> None:
    text = edited(RUNNER, ("      exit-code:\n        value: ${{ jobs.agent.outputs.exit-code }}\n", ""))
    assert found(text) == [("runners", "a.yml", "missing-output", "error")]


@pytest.mark.parametrize(
    ("permissions", "is_known"),
    [
        ("{pull-requests: 'yes'}", False), ("{contents: admin}", False), ("{contents: ''}", False), ("write", False),
        ("{contents: none, id-token: write}", True), ("read-all", True), ("{}", True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["", "    "])
def test_a_permission_that_github_does_not_know_is_a_finding(permissions: str, is_known: bool, place: str) -> None:
    text = f"on: push\njobs:\n  a:\n    runs-on: x\n    steps: [{{run: make}}]\n{place}permissions: {permissions}\n"
    with nullcontext() if is_known else pytest.raises(BrokenContract) as broken:
        workflow(text)
    assert is_known or [finding.code for finding in broken.value.findings] == ["schema"]
