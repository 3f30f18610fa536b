"""Agent-runner workflows to hold against the contract: one that keeps it, and edits that each break one thing."""

from accord.core.findings import Finding, with_lines
from accord.core.shapes import read_shape
from accord.files.yaml import read_mapping
from accord.workflows.models import Workflow
from accord.workflows.rules import runner_findings

SHA = "3d3c42e5aac5ba805825da76410c181273ba90b1"

INPUTS = {
    "skip": "boolean", "prompt_file": "string", "mode": "string", "pr_number": "string", "pr_ref": "string",
    "base_ref": "string", "workflows_ref": "string", "max_runtime_minutes": "number", "environment": "string",
    "sandbox": "string", "safety_strategy": "string", "appendix": "string", "iteration": "string",
}  # fmt: skip
"""The contract's table once more, so that a slip in the code is not repeated by its test."""

DEFAULTS = {"workflows_ref": "        default: main\n", "max_runtime_minutes": "        default: 45\n"}
"""The defaults that the contract names, as lines of a workflow."""

OUTPUTS = [
    "final-message", "final-message-summary", "exit-code", "changes-made", "commit-sha", "files-changed",
    "error-summary", "error-category", "error-type", "error-recovery",
    "llm-analysis-run", "llm-provider", "llm-model", "llm-confidence", "llm-completed-tasks", "llm-has-completions",
]  # fmt: skip


def _trigger(job: str) -> str:
    inputs = "".join(
        f"      {name}:\n        type: {kind}\n        required: {str(name == 'prompt_file').lower()}\n"
        + DEFAULTS.get(name, "")
        for name, kind in INPUTS.items()
    )
    outputs = "".join(f"      {name}:\n        value: ${{{{ jobs.{job}.outputs.{name} }}}}\n" for name in OUTPUTS)
    return f"""\
name: Run an agent
on:
  workflow_call:
    inputs:
{inputs}      model:
        type: string
        default: ""
    outputs:
{outputs}permissions: {{}}
"""


RUNNER = f"""\
{_trigger("agent")}jobs:
  agent:
    runs-on: ubuntu-latest
    permissions:
      contents: read
    timeout-minutes: ${{{{ inputs.max_runtime_minutes }}}}
    env:
      APPENDIX: ${{{{ inputs.appendix }}}}
    outputs:
{"".join(f"      {name}: ${{{{ steps.run.outputs.{name} }}}}{chr(10)}" for name in OUTPUTS)}    steps:
      - uses: actions/checkout@{SHA} # v7.0.1
        with:
          ref: ${{{{ inputs.pr_ref }}}}
      - id: run
        run: agent < "$PROMPT"
        env:
          SKIP: ${{{{ inputs.skip }}}}
          PROMPT: ${{{{ inputs.prompt_file }}}}
"""
"""A runner with steps of its own; ``model`` is an input that the contract does not know."""

CALLED = "./.github/workflows/reusable-agent-run.yml"

THIN = f"""\
{_trigger("run")}jobs:
  run:
    uses: {CALLED}
    with:
{"".join(f"      {name}: ${{{{ inputs.{name} }}}}{chr(10)}" for name in INPUTS)}"""
"""A runner that only calls another."""


def edited(text: str, *changes: tuple[str, str]) -> str:
    """Replace each old text, which must be there exactly once, by the new one."""
    for old, new in changes:
        assert text.count(old) == 1, f"{text.count(old)} times: {old}"
        text = text.replace(old, new)
    return text


def workflow(text: str) -> Workflow:
    """Read a workflow."""
    return read_shape(Workflow, read_mapping(text.encode()).value)


def found(text: str, **called: str) -> list[Finding]:
    """Hold a workflow against the contract; ``agent`` is the text of the workflow that it calls."""
    document = read_mapping(text.encode())
    at_hand = {CALLED: workflow(called["agent"])} if called else {}
    return with_lines(runner_findings(read_shape(Workflow, document.value), at_hand), document.lines)
