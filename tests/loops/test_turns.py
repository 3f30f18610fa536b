"""Turns of keepalive and autofix on the stage: what they cost, what they write, and what stops them."""

from pathlib import Path

import pytest
from support.turns import WORKFLOW, Turns, did, failed, opened

from accord.cli.loops_output import turn_summary
from accord.loops import run
from accord.loops.facts import Gathered
from accord.loops.models import LoopDecision, TokenFacts
from accord.loops.run import LOOPS, Turn, pulls_due
from accord_sandbox.tokens import RateLimits


@pytest.mark.slow
def test_keepalive_goes_on_until_every_task_is_done(turns: Turns) -> None:
    first = turns.begin("1")
    assert (first.should_run, first.decision.reason, first.decision.iteration) == (True, "tasks-open", 1)
    assert "- [ ] Add docs" in first.decision.appendix
    ended = turns.end(
        did("Add tests", **{"changes-made": "true", "commit-sha": turns.push("1")}), "1", workflow=WORKFLOW
    )
    assert (ended.decision.reason, turns.dispatches) == ("checks-missing", [])
    turns.check()
    second = turns.begin("2")
    assert (second.should_run, second.decision.iteration) == (True, 2)
    ended = turns.end(did("Add docs"), "2", workflow=WORKFLOW)
    assert (ended.decision.reason, ended.started) == ("tasks-complete", "")
    assert turns.body == "Intro\n\n- [x] Add tests\n- [x] Add docs\n"
    assert [entry.tasks_done for entry in turns.state.history] == [1, 1]
    assert turns.begin("3").decision.reason == "tasks-complete"


@pytest.mark.slow
def test_the_same_end_twice_changes_nothing(turns: Turns) -> None:
    turns.begin("1")
    turns.end(did("Add tests"), "1", workflow=WORKFLOW)
    before, started = turns.seen(), turns.dispatches
    person = turns.body.replace("[x]", "[ ]")
    turns.stage.send("PATCH", f"{turns.root}/pulls/1", body=person)
    again = turns.end(did("Add tests"), "1", workflow=WORKFLOW)
    assert (again.outcome, again.context.github.requests.write) == ("unchanged", 0)
    assert (turns.body, turns.dispatches) == (person, started)
    assert turns.seen() == {**before, "body": person}


@pytest.mark.slow
def test_the_same_begin_twice_begins_once(turns: Turns) -> None:
    first, again = turns.begin("1"), turns.begin("1")
    assert again.should_run
    assert again.decision == first.decision
    assert (turns.state.iterations, again.context.github.requests.write) == (1, 0)


MOVED = did("Add tests", **{"changes-made": "true", "run-warnings": '["The changes are for `feature-2`."]'})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "outputs", "asked"),
    [
        ("merge", did("Add tests"), ""),
        ("squash", failed("retry"), ""),
        ("rebase", MOVED, "The changes are for"),
        ("closed", failed("manual", "auth"), ""),
    ],
    ids=["done", "transient", "changed", "manual"],
)
def test_a_run_that_outlives_its_pull_request_asks_only_for_its_changes(
    turns: Turns, how: str, outputs: dict[str, str], asked: str
) -> None:
    turns.begin()
    pull = f"{turns.root}/pulls/{turns.number}"
    if how == "closed":
        turns.stage.send("PATCH", pull, state="closed")
    else:
        turns.stage.send("PUT", f"{pull}/merge", merge_method=how)
    ended = turns.end(outputs, workflow=WORKFLOW)
    reason = "closed" if how == "closed" else "merged"
    assert (ended.outcome, ended.decision.reason, ended.started, turns.dispatches) == ("ended", reason, "", [])
    assert turns.labels == {"agents:keepalive", *(["needs-human"] if asked else [])}
    assert [asked in text for text in turns.asks] == ([True] if asked else [])
    assert (turns.begin("901").decision.reason, len(turns.asks)) == (reason, bool(asked))


@pytest.mark.slow
def test_of_two_runs_at_once_one_works_and_the_other_waits(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    record, rivals, others = run._record_run, ["2"], list[Turn]()

    def record_late(gathered: Gathered, decision: LoopDecision) -> Turn:
        if rivals:
            others.append(turns.begin(rivals.pop()))
        return record(gathered, decision)

    monkeypatch.setattr(run, "_record_run", record_late)
    late, (first,) = turns.begin("1"), others
    assert (first.should_run, late.should_run, late.decision.reason) == (True, False, "running")
    assert (turns.state.iterations, turns.state.running and turns.state.running.run_id) == (1, "2")


@pytest.mark.slow
def test_a_run_that_github_says_is_over_costs_its_iteration_and_is_tried_again(turns: Turns) -> None:
    turns.begin("502")
    turns.stage.session.put(f"{turns.stage.server.url}/_sandbox/runs/octo/code/502", json={"status": "in_progress"})
    assert turns.begin("902").decision.reason == "running"
    turns.stage.session.put(f"{turns.stage.server.url}/_sandbox/runs/octo/code/502", json={"status": "completed"})
    assert turns.begin("902").decision.reason == "back-off"
    turns.stage.clock.sleep(120)
    assert (turns.begin("902").decision.reason, turns.state.iterations) == ("retry", 2)


@pytest.mark.slow
def test_only_a_person_with_write_access_lets_a_loop_continue(turns: Turns) -> None:
    for number in range(2):
        turns.begin(str(number))
        turns.end(failed("manual", "logic"), str(number))
        turns.stage.clock.sleep(1)
        turns.unlabel("needs-human", token="triager")
    assert turns.begin("5").decision.reason == "manual-failure"
    assert "needs-human" in turns.labels
    turns.stage.clock.sleep(1)
    turns.unlabel("needs-human", token="writer")
    turns.stage.clock.sleep(1)
    assert turns.begin("6").should_run
    assert (turns.state.failures_in_a_row, turns.state.iterations) == (0, 2)


def test_a_pull_request_that_a_person_paused_costs_one_request(turns: Turns) -> None:
    turns.label("agents:paused")
    turn = turns.begin()
    requests = turn.context.github.requests
    assert (turn.decision.reason, requests.read, requests.write) == ("paused", 1, 0)


@pytest.mark.slow
def test_a_person_who_removes_the_label_reads_that_no_run_follows(turns: Turns) -> None:
    turns.begin("1")
    turns.end(failed("retry"), "1")
    assert turns.state.notice.action == "wait"
    turns.unlabel("agents:keepalive")
    turns.by_person = True
    stopped = turns.begin("2")
    assert (stopped.decision.action, stopped.decision.reason) == ("stop", "not-enabled")
    assert "**Stopped** (`not-enabled`)" in turns.comments[0]
    assert turns.labels == set(), "no label promises a retry"
    assert turns.state.iterations == 1
    again = turns.begin("3")
    assert (again.outcome, again.context.github.requests.write) == ("idle", 0)


@pytest.mark.slow
def test_why_a_person_was_asked_stays_to_be_read_though_the_label_stops_the_loop(turns: Turns) -> None:
    turns.by_person = True
    turns.begin("1")
    turns.end(failed("manual"), "1")
    before = turns.comments
    assert turns.begin("2").decision.reason == "needs-human"
    assert turns.comments == before
    assert any("It broke" in comment for comment in before)


@pytest.mark.slow
def test_a_run_under_way_ends_as_it_began_and_is_the_last_when_the_label_is_gone(turns: Turns) -> None:
    turns.by_person = True
    turns.begin("local-1")
    turns.unlabel("agents:keepalive")
    assert turns.begin("local-2").decision.reason == "not-enabled"
    assert turns.state.running is not None
    ended = turns.end(did("Add tests"), "local-1", workflow=WORKFLOW)
    assert (ended.decision.reason, ended.started, turns.dispatches) == ("not-enabled", "", [])
    assert "- [x] Add tests" in turns.body


@pytest.mark.slow
def test_autofix_fixes_and_asks_a_person_when_it_cannot(turns: Turns) -> None:
    turns.loop = "autofix"
    turns.unlabel("agents:keepalive")
    turns.label("agent:codex")
    turns.check(conclusion="failure")
    for number in "12":
        begun = turns.begin(number)
        assert (begun.decision.action, begun.decision.reason) == ("fix", "checks-failing")
        turns.end(did(**{"changes-made": "true", "commit-sha": turns.push(number)}), number)
        turns.check(conclusion="failure" if number == "1" else "success")
    assert turns.begin("3").decision.reason == "checks-green"
    assert ([entry.kind for entry in turns.state.history], turns.state.iterations) == (["fix", "fix"], 2)
    for number in "45":
        turns.check(conclusion="failure")
        turns.begin(number)
        turns.end(did(**{"changes-made": "true", "commit-sha": turns.push(number)}), number)
    assert (turns.state.iterations, "needs-human" in turns.labels, len(turns.asks)) == (3, True, 1)


def test_the_failing_part_of_a_log_goes_with_the_prompt(turns: Turns) -> None:
    turns.check(conclusion="failure")
    url = f"{turns.stage.server.url}/_sandbox/jobs/octo/code/{check_id(turns)}?run=502"
    turns.stage.session.put(url, data=b"x\nE  AssertionError: 41\n")
    for loop in ("keepalive", "autofix"):
        turns.loop = loop
        if loop == "autofix":
            turns.unlabel("agents:keepalive")
            turns.label("agent:codex")
        assert "AssertionError: 41" in turns.begin(f"{loop}-1", is_dry_run=True).decision.appendix


def check_id(turns: Turns) -> int:
    found = turns.stage.get(f"{turns.root}/commits/{turns.pull['head']['sha']}/check-runs")["check_runs"]
    return max(entry["id"] for entry in found)


@pytest.mark.slow
def test_a_head_that_github_is_slow_to_tell_is_the_one_that_was_pushed(turns: Turns) -> None:
    turns.begin("1")
    head = turns.pull["head"]["sha"]
    tree = turns.stage.get(f"{turns.root}/git/commits/{head}")["tree"]["sha"]
    pushed = turns.stage.adapter().create_commit("Work", tree, [head]).sha
    ended = turns.end(did("Add tests", **{"changes-made": "true", "commit-sha": pushed}), "1", workflow=WORKFLOW)
    assert (ended.decision.reason, turns.dispatches) == ("checks-missing", [])


def test_a_token_that_may_only_read_says_what_to_grant(turns: Turns) -> None:
    turns.token = "reading"
    turn = turns.begin()
    assert (turn.decision.reason, turn.should_run) == ("read-only-token", False)
    assert "contents" in turn.decision.message
    turns.facts = TokenFacts(may_write=False)
    assert "Dependabot" in turn_summary(turns.begin())


@pytest.mark.slow
@pytest.mark.parametrize("has_comment", [False, True])
def test_a_token_that_may_push_and_not_comment_costs_no_run(turns: Turns, has_comment: bool) -> None:
    if has_comment:
        turns.begin("1")
        turns.end(did("Add tests"), "1")
    usual, turns.token = turns.token, "pushing"
    turn = turns.begin("2")
    assert (turn.decision.reason, turn.should_run) == ("read-only-token", False)
    turns.token = usual
    begun = turns.begin("3")
    assert (begun.decision.reason, begun.decision.iteration) == ("tasks-open", 1 + has_comment)
    assert turns.state.iterations == 1 + has_comment


@pytest.mark.slow
def test_a_rehearsal_writes_nothing_and_lists_the_operations_of_the_turn(turns: Turns) -> None:
    rehearsed = turns.begin("1", is_dry_run=True)
    assert rehearsed.context.github.requests.write == 0
    assert operations_of(rehearsed) == operations_of(turns.begin("1")) == ["store-state"]
    ended = turns.end(did("Add tests"), "1", is_dry_run=True, workflow=WORKFLOW)
    assert (ended.outcome, ended.context.github.requests.write) == ("planned", 0)
    assert (ended.state.pending.is_due, turns.body.count("[x]")) == (True, 0)
    written = operations_of(turns.end(did("Add tests"), "1", workflow=WORKFLOW))
    assert operations_of(ended) == written == ["store-state", "tick-tasks", "start-workflow", "store-state"]


def operations_of(turn: Turn) -> list[str]:
    return [entry.op for entry in turn.context.log.entries]


def test_a_sweep_finds_the_open_pull_requests_that_are_not_stopped(turns: Turns) -> None:
    site = turns.context()
    assert list(pulls_due(LOOPS["keepalive"], site)) == [1]
    assert site.github.requests.read == 3, "the list, who set the label, and whether that person may"
    turns.label("needs-human")
    assert list(pulls_due(LOOPS["keepalive"], turns.context())) == []


def test_a_token_with_few_requests_left_waits_for_more(tmp_path: Path) -> None:
    with opened(tmp_path, RateLimits(user_per_hour=52)) as stage:
        turn = Turns(stage, token="writer").begin()
    assert (turn.decision.action, turn.decision.reason) == ("defer", "rate-limit")
    assert 0 < (turn.decision.wait_seconds or 0) <= 3600
    assert "Next: The loop continues when the rate limit allows, in" in turn_summary(turn)
