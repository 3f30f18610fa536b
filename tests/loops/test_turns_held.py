"""Turns on a head whose workflow runs GitHub holds, since GITHUB_TOKEN opened or updated the pull request."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.stage import Stage, staged
from support.turns import BODY, CI, WORKFLOW, Turns, did, opened, seed

from accord.cli.loops_output import turn_summary
from accord.loops.facts import gather
from accord.loops.run import LOOPS
from accord_sandbox.planting import INSTALLATION_TOKEN

pytestmark = pytest.mark.slow

FILES = {".github/workflows/ci.yml": CI}
DAY = 24 * 3600


@pytest.fixture(scope="module")
def turns_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with opened(tmp_path_factory.mktemp("held"), files=FILES) as stage:
        yield stage


@pytest.fixture
def held(turns: Turns) -> Turns:
    """A head that the job's token pushed long enough ago for a head without checks to count as green."""
    turns.push("new", token=INSTALLATION_TOKEN)
    turns.stage.clock.sleep(300)
    return turns


def finish(turns: Turns, conclusion: str = "success") -> None:
    for run in turns.runs:
        turns.control(f"runs/{run['id']}", status="completed", conclusion=conclusion)


def test_a_pull_request_of_the_jobs_token_waits_until_a_person_approves_its_runs(turns: Turns) -> None:
    pull = {"title": "Agent's work", "head": "other", "base": "main", "body": BODY}
    turns.number = turns.stage.send("POST", f"{turns.root}/pulls", token=INSTALLATION_TOKEN, **pull)["number"]
    turns.label("agents:keepalive")
    turns.stage.clock.sleep(300)
    turn = turns.begin("1")
    assert (turn.should_run, turn.decision.reason) == (False, "checks-held")
    assert turns.pull["html_url"] in turn.decision.message
    (comment,) = turns.comments
    assert "**Waiting** (`checks-held`)" in comment
    assert f"/pull/{turns.number}" in comment
    assert turns.state.iterations == 0

    before = turns.comments
    again = turns.begin("2")
    assert (again.decision.reason, again.context.github.requests.write, turns.comments) == ("checks-held", 0, before)

    turns.control(f"approvals/{turns.number}")
    pending = turns.begin("3")
    assert (pending.should_run, pending.decision.reason) == (False, "checks-pending")
    assert "checks-held" not in turns.comments[0].partition("<!--")[0]
    finish(turns)
    begun = turns.begin("4")
    assert (begun.should_run, begun.decision.reason, begun.decision.iteration) == (True, "tasks-open", 1)


def test_a_push_of_the_jobs_token_is_held_and_the_end_of_the_run_says_so(turns: Turns) -> None:
    turns.begin("1")
    pushed = turns.push("new", token=INSTALLATION_TOKEN)
    ended = turns.end(did("Add tests", **{"changes-made": "true", "commit-sha": pushed}), "1", workflow=WORKFLOW)
    assert (ended.decision.reason, ended.started, turns.dispatches) == ("checks-held", "", [])
    before = turns.seen()
    assert turns.begin("2").context.github.requests.write == 0
    assert turns.seen() == before
    turns.control("approvals/1")
    finish(turns, "failure")
    assert turns.begin("3").decision.reason == "checks-failing"


def test_a_person_is_asked_once_after_a_day_without_approval(held: Turns) -> None:
    assert held.begin("1").decision.reason == "checks-held"
    held.stage.clock.sleep(DAY)
    asked = held.begin("2")
    assert (asked.outcome, asked.decision.reason, "needs-human" in held.labels) == (
        "asked",
        "checks-not-approved",
        True,
    )
    assert f"/pull/{held.number}" in held.asks[0]
    assert f"[#1]({held.pull['html_url']})" in turn_summary(asked)
    assert held.begin("3").decision.reason == "needs-human"
    held.unlabel("needs-human")
    assert held.begin("4").decision.reason == "checks-not-approved"
    assert (len(held.asks), "needs-human" in held.labels) == (1, True)
    held.unlabel("needs-human")
    held.control("approvals/1")
    finish(held)
    assert held.begin("5").should_run


def test_a_token_that_cannot_read_runs_warns_and_goes_on(tmp_path: Path) -> None:
    document = seed(FILES)
    del document["tokens"][-1]["permissions"]["actions"]
    document["repositories"][0]["private"] = True
    with staged(tmp_path, seed=document) as stage:
        turns = Turns(stage, token="app", identity="my-app[bot]")
        turns.push("new", token=INSTALLATION_TOKEN)
        stage.clock.sleep(300)
        turn = turns.begin("1")
        assert turn.should_run
        assert "actions: read" in turn.decision.warnings[0]


def test_the_loops_own_workflow_does_not_wait_for_its_own_approval(held: Turns) -> None:
    context = replace(held.context("1"), workflow=".github/workflows/ci.yml")
    _, decision = gather(LOOPS["keepalive"], context)
    assert decision.reason == "tasks-open"


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["keepalive", "autofix"])
def test_a_cancelled_run_is_run_again_once(held: Turns, loop: str) -> None:
    held.control("approvals/1")
    finish(held, "cancelled")
    if loop == "autofix":
        held.unlabel("agents:keepalive")
        held.label("autofix")
        held.loop = loop
    shown = held.begin("1", is_dry_run=True)
    assert (shown.context.github.requests.write, held.runs[0]["run_attempt"]) == (0, 1)
    assert held.begin("2").decision.reason == "checks-pending"
    assert held.runs[0]["run_attempt"] == 2
    assert "gh run rerun" not in "".join(held.comments)
    finish(held, "cancelled")
    last = held.begin("3")
    assert (last.decision.reason, held.runs[0]["run_attempt"]) == ("checks-inconclusive", 2)


@pytest.mark.slow
def test_a_token_that_may_not_run_it_again_names_the_command(tmp_path: Path) -> None:
    given, rights = seed(files=FILES), dict.fromkeys(("contents", "issues", "pull_requests"), "write")
    token = {"token": "only-reads-runs", "login": "github-actions[bot]", "kind": "installation"}
    given["tokens"].append({**token, "permissions": {**rights, "actions": "read", "checks": "read"}})
    with staged(tmp_path, seed=given) as stage:
        turns = Turns(stage, token="only-reads-runs")
        turns.push("new", token=INSTALLATION_TOKEN)
        stage.clock.sleep(300)
        turns.control("approvals/1")
        finish(turns, "cancelled")
        assert turns.begin("1").decision.reason == "checks-inconclusive"
        assert f"gh run rerun {turns.runs[0]['id']}" in turns.comments[0]
