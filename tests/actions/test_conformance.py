"""The runner workflows of this repository keep the contract, and differ from each other only where they must."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from actions.test_action_files import asked_by
from support.act import ROOT, read_yaml, steps_of

from accord.agents.providers import ALL as PROVIDERS
from accord.core.shapes import read_shape
from accord.files.yaml import read_mapping
from accord.runner.causes import ErrorCategory, ErrorOrigin, Recovery
from accord.workflows.models import Workflow
from accord.workflows.rules import INPUTS, OUTPUTS, described_outputs, runner_findings

FOLDER = ROOT / ".github/workflows"
EXPECTED = {f"reusable-{agent}-run.yml" for agent in ("agent", "codex", "claude", "gemini")}
RUNNERS = [pytest.param(path, id=path.name) for path in sorted(FOLDER.glob("reusable-*-run.yml"))]
THIN = [param for param in RUNNERS if param.id != "reusable-agent-run.yml"]
ALL = FOLDER / "reusable-agent-run.yml"
AGENT_SECRETS = {
    "reusable-codex-run.yml": {"CODEX_AUTH_JSON", "OPENAI_API_KEY"},
    "reusable-claude-run.yml": {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"},
    "reusable-gemini-run.yml": {"GEMINI_API_KEY"},
}


def typed(path: Path) -> Workflow:
    return read_shape(Workflow, read_mapping(path.read_bytes()).value)


def call_of(path: Path) -> dict[str, Any]:
    call: dict[str, Any] = read_yaml(path)["on"]["workflow_call"]
    return call


def test_every_runner_that_the_documentation_names_is_there() -> None:
    assert {param.id for param in RUNNERS} == EXPECTED
    page = (ROOT / "docs/runner-workflows.md").read_text(encoding="utf-8")
    assert all(f"`{name.removesuffix('.yml')}`" in page for name in EXPECTED)


@pytest.mark.slow
@pytest.mark.parametrize("path", RUNNERS)
def test_our_runners_keep_the_contract_with_its_defaults_and_offer_exactly_their_outputs(path: Path) -> None:
    at_hand = {f"$/.github/workflows/{other.name}": typed(other) for other in FOLDER.glob("*.yml")}
    assert runner_findings(typed(path), at_hand) == []
    assert list(call_of(path)["outputs"]) == list(described_outputs())
    defaults = {name: json.dumps(each.default).strip('"') for name, each in INPUTS.items() if each.default is not None}
    assert {name: call_of(path)["inputs"][name]["default"] for name in defaults} == defaults


VALUES = {
    "mode": "keepalive, autofix or verifier",
    "environment": "agent-standard or agent-high-privilege",
    "error-category": "transient, auth, resource, logic, infrastructure or unknown",
    "error-type": "agent, infrastructure, auth or unknown",
    "error-recovery": "retry, manual or ignore",
    "llm-provider": "github-models, openai, anthropic or regex-fallback",
}
"""The values that the contract lists, and the category of its edge cases. Inputs may have others."""


@pytest.mark.parametrize("path", RUNNERS)
def test_the_values_of_inputs_and_outputs_are_those_of_the_contract_and_described(path: Path) -> None:
    shown = {
        name: given["description"] for part in ("inputs", "outputs") for name, given in call_of(path)[part].items()
    }
    ours = {**described_outputs(), **{name: each.description for name, each in INPUTS.items()}}
    for name, values in VALUES.items():
        assert (shown[name].endswith(f"{values}."), ours[name].endswith(f"{values}.")) == (True, True), name
    code = {"error-category": ErrorCategory, "error-type": ErrorOrigin, "error-recovery": Recovery}
    for name, values in [*((name, get_args(each)) for name, each in code.items()), ("llm-provider", PROVIDERS)]:
        assert [*values] == re.split(", | or ", VALUES[name]), name


def test_no_caller_here_depends_on_a_deprecated_output() -> None:
    deprecated = [name for name, text in described_outputs().items() if "deprecated" in text.lower()]
    folders = (".github", "actions", "docs", "templates", "src/accord/loops")
    texts = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in {".yml", ".md", ".py"}]
    for name in deprecated:
        reads = re.compile(rf"needs\.[\w-]+\.outputs\.{name}\b|\boutputs\.{name.replace('-', '_')}\b")
        assert [path.name for path in texts if reads.search(path.read_text(encoding="utf-8"))] == [], name


@pytest.mark.parametrize("path", THIN)
def test_thin_runners_differ_in_agent_and_secrets_only(path: Path) -> None:
    (job,) = read_yaml(path)["jobs"].values()
    every = call_of(ALL)["inputs"]
    assert job["with"].pop("agent") == path.name.split("-")[1]
    assert job["with"] == {name: f"${{{{ inputs.{name} }}}}" for name in every if name != "agent"}
    assert call_of(path)["inputs"] == {name: given for name, given in every.items() if name != "agent"}


@pytest.mark.slow
@pytest.mark.parametrize("path", THIN)
def test_the_agents_job_gets_the_secrets_of_this_agent_and_no_other(path: Path) -> None:
    (job,) = read_yaml(path)["jobs"].values()
    (run,) = [step for step in steps_of(read_yaml(ALL)) if "env" in step and "run-agent" in step.get("uses", "")]
    in_job = {name for name, value in job["secrets"].items() if name in run["env"]}
    assert in_job == AGENT_SECRETS[path.name]
    assert set(job["secrets"]) <= set(call_of(ALL)["secrets"])
    named = set(re.findall(r"secrets\.(\w+)", str(job["secrets"])))
    assert named == set(call_of(path)["secrets"])


def test_the_job_that_runs_an_agent_reads_and_the_job_that_writes_runs_none() -> None:
    jobs = read_yaml(ALL)["jobs"]
    assert jobs["agent"]["permissions"] == {"contents": "read"}
    assert "ANALYSIS" not in str(jobs["agent"])
    assert "secrets.token" not in str(jobs["agent"])
    started = [step["with"]["skip"] for step in jobs["publish"]["steps"] if "run-agent" in step["uses"]]
    assert started == ["true"]


@pytest.mark.slow
def test_each_thin_runner_asks_for_the_permissions_that_the_called_jobs_need() -> None:
    for param in THIN:
        (job,) = read_yaml(FOLDER / str(param.id))["jobs"].values()
        assert job["permissions"] == asked_by(read_yaml(ALL))


def test_a_run_whose_publisher_failed_still_has_outputs() -> None:
    values = {name: given["value"] for name, given in call_of(ALL)["outputs"].items()}
    for name in ("exit-code", "changes-made", "files-changed", "llm-completed-tasks", "error-category"):
        assert re.search(r"\|\| '.+'|&& '.+'", values[name]), name
    assert set(OUTPUTS) <= set(values)


def test_the_agents_job_has_the_environment_and_the_time_that_the_caller_gives() -> None:
    job = read_yaml(ALL)["jobs"]["agent"]
    assert job["environment"] == "${{ inputs.environment }}"
    assert "inputs.max_runtime_minutes" in str(job["timeout-minutes"])
    (run,) = [step for step in job["steps"] if "run-agent" in step.get("uses", "")]
    assert run["with"]["max-runtime-minutes"] == "${{ inputs.max_runtime_minutes }}"


def test_a_failed_run_fails_neither_the_agents_job_nor_the_step_that_publishes() -> None:
    jobs = read_yaml(ALL)["jobs"]
    (publish,) = [step for step in jobs["publish"]["steps"] if step["name"] == "Publish"]
    assert (jobs["agent"]["continue-on-error"], publish["continue-on-error"]) == ("true", "true")
    assert jobs["publish"]["if"] == "always()"


def test_the_agent_is_given_every_input_of_the_contract_that_is_about_its_task() -> None:
    (run,) = [step for step in steps_of(read_yaml(ALL)) if step["name"] == "Run the agent"]
    names = {"pr_number": "pull", "sandbox": "sandbox-mode"}
    names |= {name: name.replace("_", "-") for name in INPUTS if name not in names}
    for name in {*names} - {"skip", "workflows_ref", "environment"}:
        assert run["with"][names[name]] == f"${{{{ inputs.{name} }}}}", name
