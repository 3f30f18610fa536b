"""However an agent's run ends, its caller gets all outputs of the contract, and they say what happened.

One workflow run calls the runner for what can happen to an agent; ``NIGHTLY``, for all of it.
"""

import base64
import json

import pytest
from support.act import Bench
from support.agent_calls import Call, Calls, make_calls, once
from support.model_server import chat, serving_models
from support.rotation import NIGHTLY

pytestmark = pytest.mark.slow

ALL_CALLS = {
    "with-changes": Call("works"), "crash": Call("crashes"), "skipped": Call("works", {"skip": True}),
    "killed": Call("kills_its_runner", {"agent": "unconfined"}),
    "no-branch": Call(inputs={"pr_ref": "refs/heads/gone"}),
    "no-credential": Call(inputs={"agent": "gemini"}),
}  # fmt: skip
BY_DAY = ("with-changes", "crash")
CALLS = {name: call for name, call in ALL_CALLS.items() if NIGHTLY or name in BY_DAY}
MODELS = {
    "Committed changes": chat({"completed_tasks": [1, 2], "confidence": 0.95}, model="gpt-4o"),
}
"""The answer of the model, by the words of the agent."""

SKIPPED = {
    "final-message": "", "final-message-summary": "", "exit-code": "0", "changes-made": "false", "commit-sha": "",
    "files-changed": "0", "error-summary": "", "error-category": "", "error-type": "", "error-recovery": "",
    "llm-analysis-run": "false", "llm-provider": "", "llm-model": "", "llm-confidence": "",
    "llm-completed-tasks": "[]", "llm-has-completions": "false",
}  # fmt: skip
"""The outputs of the contract, in its order, of a run of which nothing is known."""

EXTRA = {
    "llm-attempts", "agent-name", "agent-model", "tokens-input", "tokens-output", "cost-usd", "duration-seconds",
    "retry-after-seconds", "error-evidence", "run-warnings", "result-json", "terminal-disposition", "attempts",
    "capability-id", "effect-fingerprint", "evidence-artifact-ref", "supervision-mode", "capability-evidence-status",
}  # fmt: skip
WORKED = "Committed changes to 3 files.\n\n- [x] Add unit tests\n- [x] Fix typo in README"
LEFT = ["The run\u2019s changes were not pushed. 1 file is in changes.patch of the run folder or artifact."]


def saying(message: str) -> dict[str, str]:
    return {"final-message": base64.b64encode(message.encode()).decode(), "final-message-summary": message}


def judged(confidence: str, *tasks: str) -> dict[str, str]:
    return {
        "llm-analysis-run": "true", "llm-provider": "github-models", "llm-model": "gpt-4o",
        "llm-confidence": confidence, "llm-completed-tasks": json.dumps(tasks),
        "llm-has-completions": "true" if tasks else "false",
    }  # fmt: skip


def failing(words: str, summary: str, *, code: str = "1") -> dict[str, str]:
    names = ("error-category", "error-type", "error-recovery")
    return {"exit-code": code, "error-summary": summary, **dict(zip(names, words.split(), strict=True))}


PUSHED = {"changes-made": "true", "commit-sha": "TIP", "files-changed": "3"}
EXPECTED: dict[str, dict[str, str]] = {
    "with-changes": saying(WORKED) | judged("0.95", "Add unit tests", "Fix typo in README") | PUSHED,
    "crash": failing(
        "unknown unknown manual",
        "The agent failed for an unknown reason: RuntimeError: the tool loop lost its state. "
        "Read its transcript and its log.",
    ),
    "skipped": {},
    "killed": failing("infrastructure infrastructure retry", "The agent\u2019s job ended before the run did:"),
    "no-branch": failing("infrastructure infrastructure retry", "The agent\u2019s job ended before the run did:"),
    "no-credential": failing(
        "auth auth manual",
        "A credential is missing: The agent \u2019gemini\u2019 needs GEMINI_API_KEY, which",
    ),
}
"""Outputs that are not listed are those of a skipped call; addresses in a summary are not compared."""


@pytest.fixture(scope="module")
def calls(bench: Bench) -> Calls:
    folder = bench.home.with_name("runner-calls")

    def make() -> None:
        with serving_models() as models:
            models.on = dict(MODELS)
            settings = {"ACCORD_GITHUB_MODELS_URL": f"{models.url}/v1"}
            make_calls(bench, folder, CALLS, settings=settings)

    return once(folder, make)


@pytest.mark.parametrize("name", CALLS)
def test_the_outputs_of_the_contract_say_how_the_run_went(calls: Calls, name: str) -> None:
    outputs = dict(calls.outputs[name])
    assert set(outputs) == set(SKIPPED) | EXTRA
    expected = {**SKIPPED, **EXPECTED[name]}
    if expected["commit-sha"]:
        expected["commit-sha"] = calls.git("rev-parse", f"refs/heads/work/{name}").strip()
    assert outputs["error-summary"].startswith(expected["error-summary"])
    expected["error-summary"] = outputs["error-summary"]
    assert {output: outputs[output] for output in SKIPPED} == expected
    assert "\n" not in outputs["error-summary"]
    assert len(outputs["error-summary"]) <= 500


def test_the_calling_workflow_continues_however_the_runs_end(calls: Calls) -> None:
    assert calls.run.exit_code == 0, calls.run.trouble
    assert set(calls.results.values()) == {"success"}


def test_only_a_successful_run_is_pushed_to_its_branch(calls: Calls) -> None:
    pushed = {name for name in CALLS if calls.git("rev-list", "--count", f"main..work/{name}").strip() != "1"}
    assert pushed == {"with-changes"}
    changed = calls.git("diff", "--name-only", "work/with-changes^", "work/with-changes").split()
    assert changed == ["README.md", "src/a.py", "src/test_a.py"]
    author, subject = calls.git("log", "-1", "--format=%an%n%s", "work/with-changes").splitlines()
    assert (author, subject) == ("github-actions[bot]", "feat: apply the changes of scripted")


def test_a_run_that_failed_says_where_its_changes_are(calls: Calls) -> None:
    warnings = json.loads(calls.outputs["crash"]["run-warnings"])
    assert [each for each in warnings if "link-local" not in each] == LEFT  # reachable where root makes no container
    assert "+a = 2" in "".join(text for path, text in calls.artifacts.items() if path.endswith("changes.patch"))


def test_measurements_are_outputs(calls: Calls) -> None:
    outputs = calls.outputs["with-changes"]
    assert (outputs["agent-name"], outputs["tokens-input"], outputs["tokens-output"]) == ("scripted", "1200", "34")
    assert float(outputs["duration-seconds"]) > 0
    assert [attempt["outcome"] for attempt in json.loads(outputs["llm-attempts"])] == ["answered"]


@pytest.mark.parametrize("name", [name for name in CALLS if "exit-code" in EXPECTED[name]])
def test_a_failure_shows_its_evidence_in_the_outputs_and_the_summary(calls: Calls, name: str) -> None:
    outputs = calls.outputs[name]
    assert set(json.loads(outputs["error-evidence"])) == {"rule", "source", "line"}
    assert any(mark.kind == "error" and mark.message == outputs["error-summary"] for mark in calls.run.annotations)
    assert f"failed ({outputs['error-category']})" in calls.run.summary
