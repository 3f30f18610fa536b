"""What is wrong in a repository's workflows is found once, by one check, in the file that has it."""

from __future__ import annotations

import pytest
from support.runner_workflows import RUNNER, SHA, edited, workflow

from accord.workflows.agent_commands import shipped_programs
from accord.workflows.doctor import CHECKS, AgentSecrets, RepositoryFacts, runs_agent
from accord.workflows.files import Step

PLACE = ".github/workflows/"
GOOD = f"""\
name: Agent
on:
  pull_request:
permissions: {{}}
jobs:
  agent:
    runs-on: ubuntu-latest
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


def test_a_repository_in_order_has_no_finding() -> None:
    assert found(GOOD, edited(RUNNER, ("name: Run an agent", "name: Runner"))) == []


def test_a_loop_that_takes_a_prompt_file_is_no_runner() -> None:
    lacking = edited(RUNNER, ("      skip:\n", "      other:\n"))
    assert ("runners", "a.yml", "missing-input", "error") in found(lacking)
    assert found(edited(lacking, ("      other:\n", "      dispatch_workflow:\n"))) == []


CALL = "  call:\n    permissions: {{}}\n    uses: {}\n    secrets: {}\n"
TARGET = "on: pull_request_target"
TOP = "permissions: {}\njobs"

WRONG = [
    (
        [("permissions: {}\n", ""), ("    needs: agent\n    permissions:\n      contents: write\n", "")],
        ("permissions", "permissions-open", "error"),
    ),
    ([(TOP, "permissions:\n  contents: read\njobs")], ("permissions", "permissions-open", "warning")),
    ([(TOP, "permissions: read-all\njobs")], ("permissions", "permissions-open", "warning")),
    (
        [("permissions:\n      contents: write", "permissions: write-all")],
        ("permissions", "permissions-open", "warning"),
    ),
    ([("contents: read", "contents: write")], ("agent jobs", "agent-may-write", "error")),
    ([("permissions:\n      contents: read", "permissions: write-all")], ("agent jobs", "agent-may-write", "error")),
    ([("name: Agent\n", "")], ("names", "workflow-unnamed", "warning")),
    ([("pull_request:", "workflow_run:\n    workflows: [Agent, Gone]")], ("names", "workflow-unknown", "error")),
    ([(f"checkout@{SHA} # v7.0.1", "checkout@v7")], ("pins", "unpinned-action", "error")),
    ([("git push", "git push ${{ github.head_ref }}")], ("scripts", "unsafe-interpolation", "error")),
]


@pytest.mark.parametrize(("edits", "expected"), WRONG)
def test_each_fault_is_one_finding(edits: list[tuple[str, str]], expected: tuple[str, str, str]) -> None:
    check, code, severity = expected
    assert found(edited(GOOD, *edits)) == [(check, "a.yml", code, severity)]


def test_what_each_job_says_for_itself_is_enough() -> None:
    assert found(edited(GOOD, ("permissions: {}\n", ""))) == []


def test_permissions_of_the_whole_workflow_reach_the_agent_too() -> None:
    top = edited(GOOD, (TOP, "permissions:\n  issues: write\njobs"), ("    permissions:\n      contents: read\n", ""))
    assert [code for _, _, code, _ in found(top)] == ["permissions-open", "agent-may-write"]


def test_a_proof_of_identity_and_the_use_of_models_write_nothing() -> None:
    assert found(edited(GOOD, ("contents: read", "id-token: write\n      models: write"))) == []


@pytest.mark.parametrize(
    ("step", "is_one"),
    [
        ({"run": "codex exec --json -"}, True),
        ({"run": "npx -y @openai/codex@0.169.0 --config x exec -"}, True),
        ({"run": "set -e\nclaude \\\n  --verbose -p 'do it'"}, True),
        ({"run": "node_modules/.bin/gemini --prompt x"}, True),
        ({"run": "opencode run x"}, True),
        ({"run": "accord run --agent codex"}, True),
        ({"uses": f"anthropics/claude-code-action@{SHA}"}, True),
        ({"uses": "$/actions/run-agent"}, True),
        ({"uses": f"accord-ci/accord/actions/run-agent@{SHA}"}, True),
        ({"uses": "$/actions/run-agent", "with": {"skip": "${{ inputs.skip }}"}}, True),
        ({"uses": "$/actions/run-agent", "with": {"skip": "true"}}, False),
        ({"run": "codex --version"}, False),
        ({"run": "npm install @anthropic-ai/claude-code"}, False),
        ({"run": "echo gemini; mkdir -p x"}, False),
        ({"run": "accord publish run-dir"}, False),
        ({"uses": f"octo/claude-code-action@{SHA}"}, False),
        ({}, False),
    ],
)
def test_a_step_that_starts_an_agent_is_known_by_action_or_command(step: dict[str, object], is_one: bool) -> None:
    assert runs_agent(Step.model_validate(step), shipped_programs()) is is_one


@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run", "issue_comment"])
@pytest.mark.parametrize(
    "step",
    [
        f"uses: actions/checkout@{SHA}\n        with:\n          ref: ${{{{ github.event.pull_request.head.sha }}}}",
        f"uses: actions/checkout@{SHA}\n        with:\n          ref: ${{{{ github.head_ref }}}}",
        f"uses: actions/checkout@{SHA}\n        with:\n          ref: ${{{{ github.event.workflow_run.head_sha }}}}",
        f"uses: actions/checkout@{SHA}\n        with:\n          repository: ${{{{ github.event.issue.x }}}}",
        f"uses: actions/checkout@{SHA}\n        with:\n          ref: refs/pull/7/merge",
        "run: gh pr checkout 7",
        'run: git fetch origin "pull/$NUMBER/head"',
    ],
)
def test_code_of_strangers_is_not_brought_in_with_our_secrets(event: str, step: str) -> None:
    text = edited(GOOD, ("run: git push", step))
    assert found(text) == []
    privileged = edited(text, ("  pull_request:\n", f"  {event}:\n"))
    assert [code for _, _, code, _ in found(privileged)] == ["untrusted-checkout"]


def test_a_privileged_trigger_that_takes_the_base_is_fine() -> None:
    assert found(edited(GOOD, ("  pull_request:\n", "  pull_request_target:\n"))) == []


@pytest.mark.parametrize(
    ("uses", "owner", "severity"),
    [
        (f"other/flows/.github/workflows/run.yml@{SHA}", "octo", "error"),
        (f"other/flows/.github/workflows/run.yml@{SHA}", "", "warning"),
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
        (["KEY"], True, []),
        (["KEY", "OTHER"], True, ["secret-unnamed"]),
        (["KEY", "OTHER"], False, []),
        (["SOME", "OTHER"], False, ["secret-unnamed"]),
        ([], True, []),
    ],
)
def test_the_secrets_of_an_agent_are_handed_on_by_some_workflow(
    names: list[str], needs_all: bool, codes: list[str]
) -> None:
    text = edited(GOOD, ("run: git push", "run: git push\n        env:\n          X: ${{ secrets.KEY }}"))
    registry = ".github/agents/registry.yml"
    findings = found(text, agents={"codex": AgentSecrets(names, needs_all)}, registry=registry)
    assert findings == [("secrets", registry, code, "warning") for code in codes]


def test_two_workflows_of_one_name_are_told_apart_by_nobody() -> None:
    assert found(GOOD, GOOD) == [("names", "b.yml", "workflow-name-repeated", "warning")]


def test_a_runner_is_held_against_its_contract() -> None:
    text = edited(RUNNER, ("      exit-code:\n        value: ${{ jobs.agent.outputs.exit-code }}\n", ""))
    assert found(text) == [("runners", "a.yml", "missing-output", "error")]
