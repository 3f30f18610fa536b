"""The workflows of the loops run agents as the runner workflow does, and differ from it only where they must."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from actions.test_action_files import LOOPS
from support.act import ROOT, read_yaml

from accord.github.checks import Check
from accord.loops.checks import is_own

FOLDER = ROOT / ".github/workflows"
RUNNER = read_yaml(FOLDER / "reusable-agent-run.yml")
WORKFLOWS = {name: read_yaml(FOLDER / f"reusable-{name}.yml") for name in sorted(LOOPS)}
ACTIONS = {name: read_yaml(ROOT / f"actions/{name}/action.yml") for name in WORKFLOWS}
PUSHES = {"keepalive", "autofix", "bot-comments"}
JUDGES = {"verifier": "verdict", "bot-comments": "thread-answers"}
"""The kind of document by which the agent answers."""

ANALYSIS = {word for word in RUNNER["on"]["workflow_call"]["secrets"] if word.endswith(("API_KEY", "STRANSKE"))}
"""Secrets that task analysis may use, which may be an agent's as well."""

DECIDED = {"agent", "iteration", "appendix", "base_ref", "pr_number"}
"""Inputs of the runner that a loop decides about itself."""

EVERY_WORKFLOW = pytest.mark.parametrize("name", WORKFLOWS)


def call_of(document: dict[str, Any]) -> dict[str, Any]:
    call: dict[str, Any] = document["on"]["workflow_call"]
    return call


def steps(document: dict[str, Any], job: str) -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in document["jobs"][job]["steps"]}


def as_runner(part: Any) -> Any:
    """Write a part of a loop's workflow in the words of the runner's."""
    text = json.dumps(part).replace("needs.decide.outputs.head-ref", "inputs.pr_ref")
    for name in DECIDED:
        text = text.replace(f"needs.decide.outputs.{name.replace('_', '-')} ", f"inputs.{name} ")
    return json.loads(text)


@EVERY_WORKFLOW
def test_a_loop_runs_its_agent_as_the_runner_workflow_does(name: str) -> None:
    own, runner = WORKFLOWS[name]["jobs"]["agent"], RUNNER["jobs"]["agent"]
    for key in ("permissions", "outputs", "timeout-minutes", "runs-on", "continue-on-error"):
        assert own[key] == runner[key], key
    found, wanted = as_runner(steps(WORKFLOWS[name], "agent")), steps(RUNNER, "agent")
    for step in ("Name the artifact", "Upload the run"):
        assert found[step] == wanted[step]
    given, expected = found["Run the agent"], wanted["Run the agent"]
    assert (given["uses"], given["env"]) == (expected["uses"], expected["env"])
    differing = {key for key, _ in given["with"].items() ^ expected["with"].items()}
    assert differing == {"mode", "registry", "schema"} | (set() if name in PUSHES else {"pr-ref"})
    assert given["with"]["mode"] == name


@EVERY_WORKFLOW
def test_a_loop_publishes_as_the_runner_workflow_does(name: str) -> None:
    found, wanted = as_runner(steps(WORKFLOWS[name], "publish")), steps(RUNNER, "publish")
    fetch = {key: value for key, value in wanted["Fetch the run"].items() if key != "if"}
    assert found["Fetch the run"] == fetch
    given, expected = found["Publish"]["with"], wanted["Publish"]["with"]
    assert given.items() <= {**expected, "outputs": given["outputs"]}.items()
    assert ("pr-ref" in given) == (name in PUSHES)
    assert given["outputs"] == found["Record the outcome"]["with"]["outputs"]
    assert not given["outputs"].startswith(given["run-dir"] + "/")  # which an agent filled


@EVERY_WORKFLOW
def test_the_agents_job_only_reads_and_the_writing_jobs_run_no_agent(name: str) -> None:
    jobs = WORKFLOWS[name]["jobs"]
    assert jobs["agent"]["permissions"] == {"contents": "read"}
    assert "secrets.token" not in str(jobs["agent"])
    assert "ANALYSIS" not in str(jobs["agent"])
    assert set(re.findall(r"secrets\.(\w+)", str(jobs["decide"]))) == {"token"}
    assert set(re.findall(r"secrets\.(\w+)", str(jobs["publish"]))) <= {"token", *ANALYSIS}
    for job in ("decide", "publish"):
        assert "run-agent" not in str(jobs[job])
    given = [step.get("with", {}) for job in jobs.values() for step in job["steps"]]
    assert {inputs["phase"] for inputs in given if "phase" in inputs} == {"begin", "end"}


@EVERY_WORKFLOW
def test_inputs_and_secrets_are_those_of_the_runner_workflow(name: str) -> None:
    own, runner = call_of(WORKFLOWS[name]), call_of(RUNNER)
    for word in ("model", "sandbox", "safety_strategy", "max_runtime_minutes"):
        assert own["inputs"][word] == runner["inputs"][word], word
    for word, secret in own["secrets"].items():
        assert word == "token" or secret == runner["secrets"][word], word
    passed = set(re.findall(r"inputs\.(\w+)", str(WORKFLOWS[name]["jobs"])))
    assert passed == set(own["inputs"])
    assert set(re.findall(r"secrets\.(\w+)", str(WORKFLOWS[name]["jobs"]))) == set(own["secrets"])


@EVERY_WORKFLOW
def test_a_loop_recognises_the_checks_of_its_own_jobs_by_name(name: str) -> None:
    for job in WORKFLOWS[name]["jobs"].values():
        own = Check(f"Caller / {job['name']}", "pending", app="github-actions")
        assert is_own(own, "1"), job["name"]


@EVERY_WORKFLOW
def test_outputs_that_a_job_reads_from_another_exist(name: str) -> None:
    document, action = WORKFLOWS[name], ACTIONS[name]
    jobs = document["jobs"]
    text = str(document)
    for job, output in re.findall(r"(?:needs|jobs)\.(\w+)\.outputs\.([\w-]+)", text):
        assert output in jobs[job]["outputs"], (job, output)
    for output, value in jobs["decide"]["outputs"].items():
        assert value == f"${{{{ steps.begin.outputs.{output} }}}}"
        assert output in action["outputs"]
    for job in ("decide", "publish"):
        for step in jobs[job]["steps"]:
            if step["uses"] == f"$/actions/{name}":
                assert set(step["with"]) <= set(action["inputs"])
                assert step["with"]["token"] == "${{ secrets.token || github.token }}"


@EVERY_WORKFLOW
def test_runs_for_one_pull_request_wait_for_each_other_and_none_is_dropped(name: str) -> None:
    group = f"accord-{name}-${{{{ inputs.pr_number || github.run_id }}}}"
    assert WORKFLOWS[name]["concurrency"] == {"group": group, "cancel-in-progress": "false", "queue": "max"}


@EVERY_WORKFLOW
def test_an_agent_whose_answer_is_parsed_gets_its_schema(name: str) -> None:
    found = steps(WORKFLOWS[name], "agent")
    shape = found.get("Choose the schema", {}).get("run", "")
    kind = re.findall(r" schema ([\w-]+) --strict > \"\$RUNNER_TEMP/accord-schema.json\"", shape)
    assert kind == ([JUDGES[name]] if name in JUDGES else [])
    assert ("schema" in found["Run the agent"]["with"]) == (name in JUDGES)


def test_the_actions_of_the_loops_differ_in_words_and_in_three_inputs() -> None:
    keepalive = ACTIONS["keepalive"]
    without = {
        "autofix": ("review-workflow",),
        "bot-comments": ("review-workflow",),
        "verifier": ("review-workflow", "allow-steering-files"),
    }
    for name, action in ACTIONS.items():
        command = name.removesuffix("ifier") + "ify" if name == "verifier" else name
        prefix = f"ACCORD_{command.upper().replace('-', '_')}_"
        same = json.dumps(keepalive["runs"]).replace("ACCORD_KEEPALIVE_", prefix)
        inputs = {**keepalive["inputs"], "token": ""}
        if name == "verifier":  # one verdict for one pull request
            inputs["pull"] = {"description": "Number of the pull request.", "required": "true"}
        for only in without.get(name, ()):
            variable = f"{prefix}RUN_{only.upper().replace('-', '_')}"
            same = same.replace(f'"{variable}": "${{{{ inputs.{only} }}}}", ', "")
            del inputs[only]
        assert json.dumps(action["runs"]) == same.replace("keepalive run", f"{command} run")
        assert {**action["inputs"], "token": ""} == inputs
        outputs = dict(keepalive["outputs"])
        outputs["action"] = {**outputs["action"], "description": action["outputs"]["action"]["description"]}
        assert action["outputs"] == outputs


@pytest.mark.parametrize("path", sorted(FOLDER.glob("reusable-*.yml")), ids=lambda path: path.stem)
def test_a_job_fetches_the_artifact_that_was_named_and_guesses_none(path: Path) -> None:
    """A job that failed before it named its artifact has none; one of a common name may be another job's."""
    found = [step for job in read_yaml(path)["jobs"].values() for step in job.get("steps", ())]
    assert all("||" not in step["with"]["name"] for step in found if step.get("uses") == "$/actions/artifact")
