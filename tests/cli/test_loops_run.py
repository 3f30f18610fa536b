"""``accord keepalive|autofix run``: turns as people and workflows take them."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord, Ended
from support.stage import Stage
from support.turns import WORKFLOW, Turns, did, failed, opened

from accord.cli.loop_turn import token_facts
from accord.core.clock import SystemClock
from accord.records.chain import read_records
from accord.records.models import PublicRecord
from accord_sandbox.faults import Fault

AGENT = Path(__file__).parents[1] / "support/looping_agent.py"
REGISTRY = "version: 1\ndefault_agent: script\nagents:\n  script: {command: [python3, agent.py], codec: codex}\n"
BODY = "Intro\n\n- [ ] Write tests\n- [ ] Write docs\n"
STAGE = partial(opened, body=BODY, files={"agent.py": AGENT.read_text()})


@pytest.fixture
def turns(stage: Stage, accord: Accord) -> Turns:
    accord.on(stage)
    accord.file("registry.yml", REGISTRY)
    return Turns(stage, token=stage.server.token)


@pytest.fixture
def keepalive(accord: Accord, turns: Turns) -> Callable[..., Ended]:
    """Take a turn of keepalive on #1 with the agent of the registry."""
    return partial(accord, "keepalive", "run", "--pull", 1, "--registry", accord.home / "registry.yml")


@pytest.fixture
def take(accord: Accord, turns: Turns) -> Callable[..., Any]:
    """Take such a turn and return its document."""
    return partial(accord.document, "keepalive", "run", "--pull", 1, "--registry", accord.home / "registry.yml")


def kept(turns: Turns) -> list[PublicRecord]:
    return list(read_records(turns.stage.adapter(), datetime(2020, 1, 1, tzinfo=UTC)))


@pytest.mark.slow
def test_one_command_a_turn_leads_to_completed_tasks_and_leaves_one_record(
    accord: Accord, turns: Turns, take: Any
) -> None:
    for number in (1, 2):
        turn = take("--run-dir", accord.home / f"run-{number}")
        assert (turn["outcome"], turn["iterations"]) == ("ended", number)
        turns.check()
    assert turn["reason"] == "tasks-complete"
    assert turns.body == BODY.replace("[ ]", "[x]")
    written = turns.stage.get(f"{turns.root}/contents/docs", ref="feature")["content"]
    assert base64.b64decode(written).decode() == "Write docs\n"
    history = (accord.home / "run-2" / "loop-history.ndjson").read_text().splitlines()
    assert [json.loads(line)["iteration"]["number"] for line in history] == [1, 2]
    for words, read in ((["--dry-run"], 3), ([], 5)):  # without it, the record of the run is looked up
        again = take("--run-dir", accord.home / "run-2", *words)
        assert (again["outcome"], again["reason"]) == ("unchanged", "tasks-complete")
        assert again["requests"] == {"read": read, "write": 0}
        assert "Nothing is left to do for this run. For another turn" in again["note"]
    first, second = kept(turns)
    for record, number in ((first, 1), (second, 2)):
        assert (record.kind, record.agent, record.result.disposition) == ("keepalive", "script", "success")
        assert (record.links.pull, record.trigger.cause) == (1, "hand")
        assert [entry.name for entry in record.inputs] == ["prompt.md"]
        assert len(record.attempts) == 1
        file = json.loads((accord.home / f"run-{number}" / "run-record.json").read_text())
        assert (file["id"], file["version"]) == (record.id, 1)
    assert first.inputs != second.inputs, "the prompt names the iteration"
    assert second.links.commit == turns.stage.get(f"{turns.root}/pulls/1")["head"]["sha"]


@pytest.mark.slow
def test_a_rehearsal_after_the_agent_ended_lists_the_writes_that_remain(
    accord: Accord, turns: Turns, take: Any
) -> None:
    given = ("--run-dir", accord.home / "run")
    take("--phase", "begin", *given)
    put_back, begun = turns.stage.keep(), turns.state
    take(*given)
    put_back()
    (accord.home / "run/agent/outputs.json").unlink(missing_ok=True)
    (accord.home / "run/loop-history.ndjson").unlink()
    planned = take("--dry-run", *given)
    assert (planned["outcome"], planned["requests"]["write"], turns.state) == ("planned", 0, begun)
    assert [entry["op"] for entry in planned["operations"]] == ["push-branch", "store-state", "store-state"]
    assert not {"outputs.json", "loop-history.ndjson"} & {path.name for path in (accord.home / "run").rglob("*")}
    assert take(*given)["outcome"] == "ended"
    assert "- [x] Write tests" in turns.body


@pytest.mark.slow
def test_the_end_of_a_turn_whose_record_failed_leaves_it_the_next_time(accord: Accord, turns: Turns, take: Any) -> None:
    accord.monkeypatch.setenv("GITHUB_RUN_ID", "900")
    accord.monkeypatch.setenv("GITHUB_EVENT_NAME", "schedule")
    accord.monkeypatch.setattr(SystemClock, "sleep", lambda *_: None)
    take("--phase", "begin")
    outputs = accord.file("outputs.json", failed("retry"))
    turns.stage.server.faults.add(Fault("error-500", times=1000, path="accord/records"))
    assert take("--phase", "end", "--outputs", outputs)["outcome"] == "ended"
    turns.stage.server.faults.clear()
    assert kept(turns) == []
    for _ in range(2):
        assert take("--phase", "end", "--outputs", outputs)["outcome"] == "unchanged"
        (record,) = kept(turns)
        assert (record.links.workflow_run, record.trigger.cause) == (900, "schedule")
        assert record.result.disposition == "failure"


@pytest.mark.slow
@pytest.mark.parametrize(("event", "is_told"), [("pull_request", True), ("schedule", False)])
def test_the_event_of_a_label_that_is_taken_off_makes_the_comment_say_so_and_a_programs_event_costs_one_read(
    accord: Accord, turns: Turns, take: Any, event: str, is_told: bool
) -> None:
    accord.monkeypatch.setenv("GITHUB_RUN_ID", "900")
    take("--phase", "begin")
    turns.end(failed("ignore"), "900")
    assert "The next run is due" in turns.comments[0]
    turns.unlabel("agents:keepalive")
    accord.monkeypatch.setenv("GITHUB_EVENT_NAME", event)
    turn = take("--phase", "begin")
    assert (turn["outcome"], turn["reason"]) == ("idle", "not-enabled")
    assert ("**Stopped** (`not-enabled`)" in turns.comments[0]) == is_told
    assert is_told or turn["requests"] == {"read": 1, "write": 0}


@pytest.mark.slow
def test_a_step_leaves_outputs_and_a_page(accord: Accord, turns: Turns, take: Any) -> None:
    step = accord.in_step(annotates=False)
    accord.monkeypatch.setenv("GITHUB_RUN_ID", "900")
    take("--phase", "begin", "--agent", "codex")
    assert {"should-run": "true", "head-ref": "feature", "agent": "codex"}.items() <= step.outputs.items()
    accord.monkeypatch.setenv("ACCORD_RUN_OUTPUTS", json.dumps(did("Write tests")))
    turn = take("--phase", "end", "--dispatch-workflow", WORKFLOW)
    assert (turn["started"], turns.dispatches) == (WORKFLOW, [{"pr_number": "1"}])
    assert "accord keepalive on #1: run (`tasks-open`)" in step.summary
    page = f"{turns.stage.server.url}/octo/code/actions/runs/{turn['started_run']}"
    assert f"`{WORKFLOW}` was started again in [run {turn['started_run']}]({page})" in step.summary
    assert f"[Started run]({page})" in turns.comments[0]
    assert turns.stage.get(f"{turns.root}/actions/runs/{turn['started_run']}")["display_title"] == "Loop 1"
    assert "succeeded" in step.summary


def test_without_a_pull_request_the_workflow_starts_for_each_that_has_work(accord: Accord, turns: Turns) -> None:
    sweep = ("keepalive", "run", "--dispatch-workflow", WORKFLOW)
    planned = accord.document(*sweep, "--dry-run")
    assert (planned["outcome"], planned["pulls"], turns.dispatches) == ("planned", [1], [])
    assert (accord(*sweep).out, turns.dispatches) == ("started: #1\n", [{"pr_number": "1"}])
    turns.label("agents:paused")
    assert accord(*sweep).out == "started: none\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "--dispatch-workflow"),
        (("--dispatch-workflow", "misspelt.yml"), 4, "misspelt.yml cannot be started"),
        (("--pull", 1, "--phase", "end"), 2, "ACCORD_RUN_OUTPUTS"),
        (("--pull", 1, "--phase", "begin"), 2, "--run-dir"),
        (("--pull", 1, "--run-dir", "a-file"), 2, "a-file"),
        (("--pull", 1, "--agent", "nobody"), 2, "nobody"),
        (("--pull", 77, "--phase", "begin"), 1, "no pull request #77"),
    ],
)
def test_missing_and_wrong_options_are_named_and_begin_no_run(
    accord: Accord, turns: Turns, words: tuple[object, ...], code: int, said: str
) -> None:
    accord.file("a-file", "x")
    ended = accord("keepalive", "run", *words, "--registry", accord.home / "registry.yml")
    assert (ended.code, said in ended.err) == (code, True)
    assert not turns.comments


def test_a_turn_with_nothing_to_do_leaves_no_directory_behind(accord: Accord, turns: Turns, take: Any) -> None:
    turns.label("agents:paused")
    accord.monkeypatch.setenv("RUNNER_TEMP", str(accord.home))
    assert take()["outcome"] == "idle"
    assert take("--dry-run")["outcome"] == "planned"
    assert not list(accord.home.glob("accord-loop-*"))


@pytest.mark.slow
def test_outputs_that_no_step_came_to_write_are_those_of_a_lost_run(accord: Accord, take: Any) -> None:
    accord.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    accord.monkeypatch.setenv("GITHUB_RUN_ID", "900")
    take("--phase", "begin")
    assert take("--phase", "end", "--outputs", "missing.json")["reason"] == "back-off"
    accord.monkeypatch.delenv("GITHUB_ACTIONS")
    assert "missing.json" in take("--phase", "end", "--outputs", "missing.json", code=2)["error"]["message"]


def test_other_files_survive_a_run_in_their_directory(accord: Accord, turns: Turns, keepalive: Any) -> None:
    theirs = accord.home / "mine" / "agent" / "thesis.txt"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("years of work")
    ended = keepalive("--run-dir", accord.home / "mine")
    assert (ended.code, "contains other files" in ended.err) == (2, True)
    assert theirs.read_text() == "years of work"
    assert not turns.comments


def test_an_agent_without_secret_costs_no_iteration_at_a_terminal(accord: Accord, turns: Turns, keepalive: Any) -> None:
    accord.file("registry.yml", REGISTRY.replace("codec: codex", "codec: codex, required_secrets: [KEY_OF_SCRIPT]"))
    ended = keepalive("--run-dir", accord.home / "run")
    assert (ended.code, "KEY_OF_SCRIPT" in ended.err) == (2, True)
    assert not turns.comments


@pytest.mark.slow
def test_a_turn_without_a_folder_says_how_it_can_be_continued(accord: Accord, keepalive: Any) -> None:
    accord.monkeypatch.setenv("RUNNER_TEMP", str(accord.home / "temporary"))
    ended = keepalive()
    (kept,) = (accord.home / "temporary").glob("accord-loop-*")
    assert f"pass `--run-dir {kept}`" in ended.err
    lines = ended.out.splitlines()
    assert lines[0].startswith("Iteration 1: ✅ succeeded; changes: ")
    assert lines[0].endswith("; 1 task done.")
    assert lines[-1] == f"  files of the run: {kept}"


JOB = {"GITHUB_ACTIONS": "true"}
DEPENDABOT = {"GITHUB_ACTOR": "dependabot[bot]", "GITHUB_EVENT_NAME": "pull_request"}


@pytest.mark.parametrize(
    ("environment", "triggers", "writes"),
    [
        ({}, True, True),
        (JOB, False, True),
        (JOB | {"ACCORD_TOKEN_IS_JOBS": "false"}, True, True),
        (JOB | {"ACCORD_TOKEN_IS_JOBS": "true"}, False, True),
        (JOB | DEPENDABOT, False, False),
        (JOB | DEPENDABOT | {"GITHUB_EVENT_NAME": "pull_request_target"}, False, True),
        (JOB | DEPENDABOT | {"ACCORD_TOKEN_IS_JOBS": "false"}, True, True),
    ],
)
def test_the_workflow_says_which_token_it_is(environment: dict[str, str], triggers: bool, writes: bool) -> None:
    facts = token_facts(environment)
    assert (facts.triggers_workflows, facts.may_write) == (triggers, writes)


@pytest.mark.parametrize("loop", ["keepalive", "autofix", "bot-comments", "verify"])
def test_the_help_says_which_loops_start_for_all_pull_requests(accord: Accord, loop: str) -> None:
    shown = accord(loop, "run", "--help").out
    assert [words in shown for words in ("all open ones", "Without --pull")] == [loop != "verify"] * 2
    assert (accord(loop, "run").err.count("Missing option '--pull'") == 1) == (loop == "verify")


@pytest.mark.parametrize("loop", ["keepalive", "autofix", "bot-comments", "verify"])
def test_only_loops_that_change_code_can_push_steering_files(accord: Accord, loop: str) -> None:
    assert ("--allow-steering-files" in accord(loop, "run", "--help").out) == (loop != "verify")
