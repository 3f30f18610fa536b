"""Actions, workflows and scripts of the repository are judged with what calls them."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.growth import grows_too_fast
from support.runner_workflows import OUTPUTS, RUNNER, SHA, edited

from accord.cli.main import accord
from accord.workflows.doctor import examine_workflows
from accord.workflows.facts import read_repository

TARGET = "pull_request_target"
HEAD = "${{ github.event.pull_request.head.sha }}"
TITLE = "${{ github.event.issue.title }}"
ACTION = ".github/actions/build/action.yml"
CHECKOUT = f"{{uses: actions/checkout@{SHA}, with: {{ref: '%s'}}}}"


@pytest.fixture(autouse=True)
def _without_zizmor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: None)


def caller(on: str, *steps: str, head: str = "") -> str:
    lines = "".join(f"      - {step}\n" for step in steps)
    return f"name: Call\non: {on}\njobs:\n  build:\n{head}    runs-on: ubuntu-latest\n    steps:\n{lines}"


def action(*steps: str, more: str = "") -> str:
    lines = "".join(f"    - {step}\n" for step in steps)
    return f"name: Build\n{more}runs:\n  using: composite\n  steps:\n{lines}"


def found(root: Path, files: dict[str, str]) -> list[tuple[str, str, str, int | None]]:
    """Each finding of doctor about these files as code, severity, path and line, except the blocked trigger."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [
        (finding.code, finding.severity.value, path, finding.line)
        for check in examine_workflows(root, *read_repository(root, "octo/tools"))
        for path, finding in check.findings
        if finding.code != "trigger-blocked-by-default"
    ]


W = ".github/workflows/call.yml"
USE = "uses: ./.github/actions/build"
INPUT = "inputs:\n  ref: {default: '%s'}\n"
GIT = "git fetch origin && git checkout"
ATTACKS = {
    "an action checks out the head": {
        W: caller(TARGET, USE), ACTION: action(CHECKOUT % HEAD)},
    "an action checks out what it is given": {
        W: caller(TARGET, f"{{{USE}, with: {{ref: '{HEAD}'}}}}"),
        ACTION: action(CHECKOUT % "${{ inputs.ref }}", more=INPUT % "")},
    "an action checks out its default": {
        W: caller(TARGET, USE), ACTION: action(CHECKOUT % "${{ inputs.ref }}", more=INPUT % HEAD)},
    "a variable of the calling step": {
        W: caller(TARGET, f"{{{USE}, env: {{REF: '{HEAD}'}}}}"),
        ACTION: action(f"{{run: {GIT} $REF, shell: bash}}")},
    "an action in an action": {
        W: caller(TARGET, USE), ACTION: action("uses: ./.github/actions/inner"),
        ".github/actions/inner/action.yaml": action(CHECKOUT % HEAD)},
    "an action in a called workflow": {
        W: "name: Call\non: pull_request_target\njobs:\n  go: {uses: ./.github/workflows/inner.yml}\n",
        ".github/workflows/inner.yml": caller("workflow_call", USE).replace("name: Call", "name: Inner"),
        ACTION: action(CHECKOUT % HEAD)},
    "a script checks out the head": {
        W: caller(TARGET, f"{{run: ./ci/pr.sh, env: {{REF: '{HEAD}'}}}}"), "ci/pr.sh": f"#!/bin/sh\n{GIT} \"$REF\"\n"},
    "a script without an extension": {
        W: caller(TARGET, "run: ./pr"), "pr": "#!/usr/bin/env bash\ngh pr checkout 3\n"},
    "a script in the folder of its job": {
        W: caller(TARGET, "run: bash -euo pipefail ./pr.sh", head="    defaults: {run: {working-directory: ci}}\n"),
        "ci/pr.sh": "gh pr checkout 3\n"},
    "a script in the folder of its workflow": {
        W: caller(TARGET, "run: ./pr.sh") + "defaults: {run: {working-directory: ./ci}}\n",
        "ci/pr.sh": "gh pr checkout 3\n"},
    "a script sets the ref": {
        W: caller(TARGET, "{id: a, run: source ci/ref.sh}", CHECKOUT % "${{ steps.a.outputs.x }}"),
        "ci/ref.sh": 'echo "x=refs/pull/$PR/merge" >> "$GITHUB_OUTPUT"\n'},
    "an action by the full name of its repository": {
        W: caller(TARGET, "uses: octo/tools/.github/actions/build@main"), ACTION: action(CHECKOUT % HEAD)},
    "a workflow by the full name of its repository": {
        W: "name: Call\non: pull_request_target\njobs:\n  go: {uses: Octo/Tools/.github/workflows/inner.yml@main}\n",
        ".github/workflows/inner.yml": caller("workflow_call", CHECKOUT % HEAD).replace("name: Call", "name: Inner")},
    "the action at the top": {
        W: caller(TARGET, "uses: ./"), "action.yml": action(CHECKOUT % HEAD)},
    "a script of an action": {
        W: caller(TARGET, USE),
        ACTION: action("{run: '${{ github.action_path }}/pr.sh', shell: bash}"),
        ".github/actions/build/pr.sh": "gh pr checkout 3\n"},
}  # fmt: skip


@pytest.mark.parametrize("files", ATTACKS.values(), ids=ATTACKS)
def test_code_of_pull_requests_is_found_behind_calls(tmp_path: Path, files: dict[str, str]) -> None:
    ((code, severity, path, line),) = found(tmp_path, files)
    assert (code, severity) == ("untrusted-checkout", "error")
    assert line
    assert line <= files[path].count("\n")


def test_an_action_that_several_jobs_use_is_one_finding(tmp_path: Path) -> None:
    again = "  again:\n    runs-on: ubuntu-latest\n    steps:\n      - " + USE + "\n"
    files = {W: caller(TARGET, USE) + again, ACTION: action(CHECKOUT % HEAD)}
    assert [(code, path) for code, _, path, _ in found(tmp_path, files)] == [("untrusted-checkout", ACTION)]


AGENTS = {
    "the action of the repository itself": {
        W: caller("push", "uses: ./"), "action.yml": action("{run: bun src/index.ts, shell: bash}")},
    "an action of the repository below": {
        W: caller("push", "uses: ./base-action"), "base-action/action.yml": action("{run: bun x.ts, shell: bash}")},
    "a script in a folder of a container": {
        W: caller("push", "run: docker run -v $PWD:/w node /w/ci/agent.sh"), "ci/agent.sh": "codex exec -\n"},
    "a script that runs a script": {
        W: caller("push", "run: make && ./a.sh"), "a.sh": "exec ci/b.sh\n", "ci/b.sh": "codex exec -\n"},
}  # fmt: skip


@pytest.mark.parametrize("files", AGENTS.values(), ids=AGENTS)
def test_agents_are_found_behind_calls(tmp_path: Path, files: dict[str, str]) -> None:
    text = files[W].replace("jobs:", "permissions: {issues: write}\njobs:")
    for name, content in {**files, W: text}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    checks = examine_workflows(tmp_path, *read_repository(tmp_path, "anthropics/claude-code-action"))
    codes = [finding.code for check in checks for _, finding in check.findings]
    assert codes.count("agent-may-write") == 1


def test_a_long_path_of_a_script_is_followed_in_linear_time(tmp_path: Path) -> None:
    def follow(size: int) -> None:
        assert found(tmp_path, {W: caller("push", f"run: {'/a' * size}/x.sh")}) == []

    assert not grows_too_fast(follow, 6_000, noticed=0.2)


SHOWS = "{run: 'echo %s', shell: bash}"
TEXTS = {
    "an action inserts the title": {W: caller("issues", USE), ACTION: action(SHOWS % TITLE)},
    "an action inserts its input": {
        W: caller("issues", f"{{{USE}, with: {{ref: '{TITLE}'}}}}"),
        ACTION: action(SHOWS % "${{ inputs.ref }}", more=INPUT % "")},
}  # fmt: skip


@pytest.mark.parametrize("files", TEXTS.values(), ids=TEXTS)
def test_text_of_outsiders_is_found_behind_calls(tmp_path: Path, files: dict[str, str]) -> None:
    ((code, severity, _, _),) = found(tmp_path, files)
    assert (code, severity) == ("unsafe-interpolation", "error")


HARMLESS = {
    "the head without secrets": {W: caller("pull_request", USE), ACTION: action(CHECKOUT % HEAD)},
    "another input": {
        W: caller(TARGET, f"{{{USE}, with: {{ref: main, other: '{HEAD}'}}}}"),
        ACTION: action(CHECKOUT % "${{ inputs.ref }}", more=INPUT % HEAD)},
    "a step that only pushes run": {
        W: caller(f"[push, {TARGET}]", f"{{{USE}, if: github.event_name == 'push'}}"), ACTION: action(CHECKOUT % HEAD)},
    "a condition in the action": {
        W: caller(f"[push, {TARGET}]", USE),
        ACTION: action("{if: github.event_name == 'push', " + (CHECKOUT % HEAD)[1:])},
    "an action that no workflow uses": {W: caller(TARGET, "run: make"), ACTION: action(CHECKOUT % HEAD)},
    "an action that uses itself": {W: caller(TARGET, USE), ACTION: action(USE)},
    "scripts that run each other": {W: caller(TARGET, "run: ./a.sh"), "a.sh": "./b.sh\n", "b.sh": "./a.sh\n"},
    "a title in a variable": {
        W: caller("issues", USE), ACTION: action(f"{{run: 'echo $T', shell: bash, env: {{T: '{TITLE}'}}}}")},
    "an action inserts a number": {
        W: caller("issues", f"{{{USE}, with: {{ref: '${{{{ github.event.issue.number }}}}'}}}}"),
        ACTION: action(SHOWS % "${{ inputs.ref }}", more=INPUT % "")},
    "the folder of a job of a script in an action": {
        W: caller(TARGET, USE, head="    defaults: {run: {working-directory: ci}}\n"),
        ACTION: action("{run: ./pr.sh, shell: bash}"), "ci/pr.sh": "gh pr checkout 3\n"},
    "a script that a document names": {
        W: caller(TARGET, "run: \"cat > x <<'EOF'\\n./pr.sh\\nEOF\""), "pr.sh": "gh pr checkout 3\n"},
    "a script that a prompt names": {
        W: caller(TARGET, "run: \"timeout 9 tool -p './pr.sh is the script'\""), "pr.sh": "gh pr checkout 3\n"},
    "an action of another repository": {
        W: caller(TARGET, "uses: octo/other/.github/actions/build@main"), ACTION: action(CHECKOUT % HEAD)},
    "the text of an expression in a script": {
        W: caller("issues", "run: bash ci/a.sh"), "ci/a.sh": f"echo '{TITLE}'\n"},
}  # fmt: skip


@pytest.mark.parametrize("files", HARMLESS.values(), ids=HARMLESS)
def test_harmless_calls_have_no_finding(tmp_path: Path, files: dict[str, str]) -> None:
    assert found(tmp_path, files) == []


def test_a_command_has_its_own_line(tmp_path: Path) -> None:
    text = caller(
        TARGET, "run: |\n          set -e\n          git fetch origin pull/1/head\n          git merge FETCH_HEAD"
    )
    assert [each[3] for each in found(tmp_path, {W: text})] == [10]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (caller("push", USE, USE), 7),
        ("name: Call\non: push\njobs:\n  go: {uses: ./.github/workflows/gone.yml}\n", 4),
    ],
)
def test_a_missing_file_is_one_warning_at_its_place(tmp_path: Path, text: str, line: int) -> None:
    assert found(tmp_path, {W: text}) == [("called-file-missing", "warning", W, line)]


@pytest.mark.parametrize("text", ["runs: {using: composite, steps: 3}\n", "a: [\n", "[]\n"])
def test_an_action_that_cannot_be_read_is_a_finding_in_its_file(tmp_path: Path, text: str) -> None:
    assert ACTION in {path for _, _, path, _ in found(tmp_path, {W: caller(TARGET, USE), ACTION: text})}


def test_an_agent_in_an_action_has_a_token_that_only_reads(tmp_path: Path) -> None:
    writes = caller("push", USE, head="    cache-mode: none\n    permissions: {contents: write}\n")
    files = {W: writes, ACTION: action("{run: bash ci/go.sh, shell: bash}"), "ci/go.sh": "codex exec - < prompt.md\n"}
    assert [each[:3] for each in found(tmp_path, files)] == [("agent-may-write", "error", W)]


def test_conform_reads_the_actions_of_a_runner(tmp_path: Path) -> None:
    text = edited(
        RUNNER,
        ("      - id: run\n", f"      - {USE}\n        with: {{ref: '${{{{ inputs.appendix }}}}'}}\n      - id: run\n"),
    )
    found(tmp_path, {W: text, ACTION: action(SHOWS % "${{ inputs.ref }}", more=INPUT % "")})
    result = CliRunner().invoke(accord, ["conform", str(tmp_path / W)])
    assert result.exit_code == 1
    assert f"{tmp_path / ACTION}:7: error unsafe-interpolation" in result.output
    assert "used in the job `agent`" in " ".join(result.output.split())


ALL = ".github/actions/agent/action.yml"
OUTPUTS_OF = "outputs:\n" + "".join(f"  {name}: {{value: '${{{{ steps.a.outputs.{name} }}}}'}}\n" for name in OUTPUTS)
TAKES = "inputs: {skip: {}, prompt_file: {}}\n"
AGENT = "{id: a, run: agent, shell: bash, if: '!inputs.skip', env: {P: '${{ inputs.prompt_file }}'}}"
GIVEN = "{skip: '${{ inputs.skip }}', prompt_file: '${{ inputs.prompt_file }}'}"


@pytest.mark.parametrize(
    ("given", "text", "expected"),
    [
        (GIVEN, action(AGENT, more=TAKES + OUTPUTS_OF), []), (GIVEN, action(AGENT, more=OUTPUTS_OF), []),
        (GIVEN.replace("skip:", "skp:"), action(AGENT, more=TAKES + OUTPUTS_OF), ["input-unused", "unknown-input"]),
        (GIVEN, action(AGENT.replace("!inputs.skip", "true"), more=TAKES + OUTPUTS_OF), ["input-unused"]),
        (GIVEN, action(AGENT, more=TAKES + OUTPUTS_OF.replace("  exit-code", "  code", 1)), ["output-unwired"]),
        (GIVEN, action(AGENT, more=TAKES + OUTPUTS_OF.replace("a.outputs.exit-", "b.outputs.")), ["output-unwired"]),
        (GIVEN, action(AGENT, more=TAKES + OUTPUTS_OF.replace("${{ steps.a.outputs.llm-model }}", "")), []),
        (GIVEN, action(AGENT, more=TAKES + re.sub(r"\$\S* \S*exit-code }}", "", OUTPUTS_OF)), ["output-unwired"]),
        *(
            (GIVEN, action(AGENT, more=TAKES + re.sub(r"\$\S* \S*exit-code }}", value, OUTPUTS_OF)), ["output-unwired"])
            for value in ("0", "${{ github.run_id }}", "${{ inputs.skip }}")
        ),
        (GIVEN, action(AGENT.replace("run: agent", "run: echo"), more=TAKES + OUTPUTS_OF), ["output-unwired"] * 16),
        ("{skp: '${{ inputs.skip }}'}", "runs: {using: node24, main: a.js}\n", ["input-unused"]),
    ],
)  # fmt: skip
def test_inputs_and_outputs_are_followed_into_an_action(
    tmp_path: Path, given: str, text: str, expected: list[str]
) -> None:
    start = RUNNER.index("      - id: run\n")
    runner = f"{RUNNER[:start]}      - id: run\n        uses: ./.github/actions/agent\n        with: {given}\n"
    assert [
        code for code, *_ in found(tmp_path, {W: f"name: Run\n{runner.partition(chr(10))[2]}", ALL: text})
    ] == expected
