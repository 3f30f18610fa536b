"""Records from the evidence of a command: the job, the outputs of an agent, a receipt."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.stage import START

from accord.engine.receipts import Outcome, Receipt
from accord.records.build import (
    AgentFacts,
    Ending,
    JobFacts,
    agent_record,
    apply_record,
    digest_of,
    failure_class,
    job_facts,
    read_inputs,
    trigger_of_start,
)
from accord.records.models import RecordTrigger
from accord.runner.models import RunOutputs
from accord.runner.record import Attempt
from accord.starts.plan import LOST

JOB = JobFacts("octo/code", "501", RecordTrigger(cause="comment", by="octo"), 501, 1)
OUTPUTS = RunOutputs(
    exit_code="0",
    agent_name="codex",
    agent_model="gpt-5",
    tokens_input="1000",
    tokens_output="20",
    cost_usd="0.125",
    duration_seconds="61.5",
    commit_sha="a" * 40,
    terminal_disposition="success",
)


@pytest.mark.parametrize(
    ("environment", "action", "cause"),
    [
        ({}, "", "hand"),
        ({"GITHUB_EVENT_NAME": "issue_comment"}, "created", "comment"),
        ({"GITHUB_EVENT_NAME": "issues"}, "labeled", "label"),
        ({"GITHUB_EVENT_NAME": "pull_request"}, "labeled", "label"),
        ({"GITHUB_EVENT_NAME": "pull_request"}, "synchronize", "pull-request"),
        ({"GITHUB_EVENT_NAME": "schedule"}, "", "schedule"),
        ({"GITHUB_EVENT_NAME": "workflow_run"}, "completed", "workflow"),
        ({"GITHUB_EVENT_NAME": "workflow_dispatch", "GITHUB_ACTOR": "octo"}, "", "hand"),
        ({"GITHUB_EVENT_NAME": "workflow_dispatch", "GITHUB_ACTOR": "github-actions[bot]"}, "", "workflow"),
        ({"GITHUB_EVENT_NAME": "deployment"}, "", "event"),
    ],
)
def test_the_event_says_why_a_run_began(environment: dict[str, str], action: str, cause: str) -> None:
    assert job_facts(environment, "octo/code", "local", action).trigger.cause == cause


def test_a_job_is_named_by_its_workflow_run_and_a_terminal_by_its_folder() -> None:
    given = {"GITHUB_RUN_ID": "77", "GITHUB_RUN_ATTEMPT": "2", "GITHUB_ACTOR": "octo"}
    job = job_facts(given, "octo/code", "local")
    assert (job.run_id, job.workflow_run, job.workflow_attempt, job.trigger.by) == ("77", 77, 2, "octo")
    assert job_facts({}, "octo/code", "local-1").run_id == "local-1"


@pytest.mark.parametrize(
    ("cause", "has_key", "wanted"),
    [
        ("labels", True, "label"), ("comments", True, "comment"), ("dashboard", True, "dashboard"),
        ("specs", True, "specification"), ("pull-requests", True, "pull-request"),
        ("review-requests", True, "review-request"), ("", True, "event"), ("comments", False, "hand"),
    ],
)  # fmt: skip
def test_a_start_keeps_why_it_began(cause: str, has_key: bool, wanted: str) -> None:
    assert trigger_of_start(cause, "octo", has_key=has_key).cause == wanted


def test_outputs_become_a_record() -> None:
    found = agent_record("implement", 3, JOB, AgentFacts(OUTPUTS), Ending(links={"issue": 3}), START)
    assert (found.agent, found.model, found.cost_usd, found.seconds) == ("codex", "gpt-5", 0.125, 61.5)
    assert (found.tokens_input, found.tokens_output) == (1000, 20)
    assert found.started_at == START - timedelta(seconds=62), "whole seconds, rounded down"
    assert (found.links.issue, found.links.workflow_run, found.links.commit) == (3, 501, "a" * 40)
    assert (found.result.disposition, found.result.findings) == ("success", None)


@pytest.mark.parametrize("text", ["", "many", "-1", "nan", "inf", "1e99", "1" * 40, "²"])
def test_texts_that_are_not_numbers_are_unknown(text: str) -> None:
    wrong = OUTPUTS.model_copy(update={"cost_usd": text, "tokens_input": text, "duration_seconds": text})
    found = agent_record("run", None, JOB, AgentFacts(wrong), Ending(), START)
    assert found.cost_usd is None
    assert (found.tokens_input is None) == (text != "1" * 18)
    assert found.seconds is None


@pytest.mark.parametrize("text", ["", "{", "[1]", "[{}]", '{"a": 1}', "null"])
def test_attempts_in_another_form_are_left_out(text: str) -> None:
    odd = OUTPUTS.model_copy(update={"attempts": text})
    assert agent_record("run", None, JOB, AgentFacts(odd), Ending(), START).attempts == ()


def test_attempts_come_from_the_folder_else_from_the_outputs() -> None:
    attempt = Attempt(agent="codex", outcome="broken", tokens_input=5, duration_seconds=2)
    printed = json.dumps([
        {"agent": "codex", "turn": 1, "outcome": "done", "findings": [{}], "seconds": 3.0, "cost_usd": None}
    ])  # fmt: skip
    facts = AgentFacts(OUTPUTS.model_copy(update={"attempts": printed}))
    (from_outputs,) = agent_record("run", None, JOB, facts, Ending(), START).attempts
    assert (from_outputs.outcome, from_outputs.findings, from_outputs.seconds) == ("done", 1, 3)
    (from_folder,) = agent_record("run", None, JOB, replace(facts, attempts=(attempt,)), Ending(), START).attempts
    assert (from_folder.outcome, from_folder.tokens_input) == ("broken", 5)


def test_an_error_is_kept_only_of_a_failure() -> None:
    failed = OUTPUTS.model_copy(update={"exit_code": "1", "error_category": "auth", "terminal_disposition": "failure"})
    found = agent_record("run", None, JOB, AgentFacts(failed), Ending(error="job"), START)
    assert (found.result.error_category, found.result.error) == ("auth", "job")
    cancelled = agent_record("run", None, JOB, AgentFacts(failed), Ending("cancelled", error="job"), START)
    assert (cancelled.result.error_category, cancelled.result.error) == ("", "")


def test_a_run_without_outputs_failed() -> None:
    assert agent_record("run", None, JOB, AgentFacts(), Ending(), START).result.disposition == "failure"


def test_inputs_are_digests_of_the_prompt_and_the_schema(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("Plan.")
    (tmp_path / "schema.json").symlink_to("/etc/passwd")
    (found,) = read_inputs(tmp_path)
    assert found == digest_of("prompt.md", b"Plan.")


@pytest.mark.parametrize(
    ("outcome", "disposition", "error"),
    [
        ("applied", "success", ""), ("unchanged", "no-change", ""), ("rejected", "failure", "contract"),
        ("refused", "failure", "refused"), ("stopped", "failure", "stopped"),
    ],
)  # fmt: skip
def test_a_receipt_becomes_a_record(outcome: str, disposition: str, error: str) -> None:
    receipt = Receipt("implementor-result", "octo/code", "key", Outcome(outcome), details={"revision": {"id": "9"}})
    result = digest_of("implementor-result", b"{}")
    found = apply_record(receipt, JOB, result, {"issue": 3, "pull": None}, (START, START))
    assert (found.result.disposition, found.result.error, found.result.outcome) == (disposition, error, outcome)
    assert (found.links.issue, found.links.pull) == (3, 9)


def test_the_same_result_has_the_same_record_wherever_it_is_applied() -> None:
    receipt = Receipt("planner-result", "octo/code", "key", Outcome.APPLIED)
    one, two = digest_of("planner-result", b"1"), digest_of("planner-result", b"2")
    ids = [
        apply_record(receipt, job, result, {}, (START, START)).id
        for job, result in ((JOB, one), (replace(JOB, run_id="502"), one), (JOB, two))
    ]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("result", "name"),
    [
        ("transient (agent): The provider is overloaded.", "transient"), ("auth: No key.", "auth"),
        ("contract: The agent's result breaks its contract.", "contract"), ("job: The job `x` failed.", "job"),
        (LOST, "lost"), ("Something else: oh.", "unknown"), ("", "unknown"),
    ],
)  # fmt: skip
def test_the_class_of_a_failure_is_read_from_a_status_comment(result: str, name: str) -> None:
    assert failure_class(result) == name
