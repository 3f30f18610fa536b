"""Events on the local GitHub: what starts, what the status comment says, and that a second delivery starts nothing."""

from pathlib import Path

import pytest
from support.starts import BOT, CONFIG, DRAFT, FILES, PAGE, PENDING, PULL, READY, REQUEST, Starts, starts_stage

from accord.engine.operations import OperationStatus
from accord.engine.receipts import Outcome
from accord.github.models import Forbidden
from accord.starts.ends import JobResult

SPEC = "---\nstatus: approved\n---\n\n# Export\n"


@pytest.mark.slow
def test_a_comment_starts_a_plan_once_and_shows_it(starts: Starts) -> None:
    event = starts.comment(REQUEST, "/accord plan")
    assert starts.deliver(event).outcome is Outcome.APPLIED
    again = starts.deliver(event)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)
    assert starts.started == [("accord-plan.yml", {"item": "1"})]
    assert starts.reactions(event) == {"eyes": 1}
    (run,) = starts.runs
    assert f"the plan is starting** ([run]({PAGE}/actions/runs/{run['id']}))" in starts.comments(REQUEST)[-1]
    assert "asked for by `wanda`" in starts.status(REQUEST)


@pytest.mark.slow
def test_a_label_starts_the_agent_that_it_names_on_a_ready_item(starts: Starts) -> None:
    event = starts.labelled(READY, "agent:claude")
    starts.deliver(event)
    assert starts.deliver(event).writes == 0
    assert starts.started == [("accord-implement.yml", {"work-item": "2", "agent": "claude"})]
    assert "with the agent `claude`" in starts.status(READY)


@pytest.mark.slow
def test_an_unknown_command_is_answered_in_the_status_comment(starts: Starts) -> None:
    event = starts.comment(REQUEST, "/accord paln @everyone")
    starts.deliver(event)
    assert starts.reactions(event) == {"confused": 1}
    assert "Did you mean `plan`?" in starts.status(REQUEST)
    assert "everyone" not in starts.comments(REQUEST)[0]
    starts.deliver(starts.comment(REQUEST, "/accord plan"))
    assert "Did you mean" not in starts.status(REQUEST)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "shown"), [("plan", "the plan is starting"), ("paln", "Did you mean `plan`?")])
def test_a_comment_that_was_deleted_still_gets_its_answer(starts: Starts, words: str, shown: str) -> None:
    event = starts.comment(REQUEST, f"/accord {words}")
    starts.stage.send("DELETE", f"{starts.root}/issues/comments/{event[1]['comment']['id']}")
    receipt = starts.deliver(event)
    assert (receipt.outcome, [found.code for found in receipt.findings]) == (Outcome.APPLIED, ["comment-gone"])
    assert [entry.status for entry in receipt.operations if entry.op == "react"] == [OperationStatus.SKIPPED]
    assert shown in starts.status(REQUEST)
    assert starts.deliver(event).writes == 0
    assert len(starts.started) == (words == "plan")


def test_people_without_write_access_start_nothing_and_read_nothing(starts: Starts) -> None:
    for by in ("tess", "stranger"):
        event = starts.comment(REQUEST, "/accord plan", by=by)
        assert starts.deliver(event).writes == 0
        assert starts.reactions(event) == {}
    assert (starts.comments(REQUEST), starts.started) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "label"), [(REQUEST, "agents:plan"), (READY, "agent:claude"), (PULL, "agents:review")]
)
def test_a_label_of_a_person_who_only_triages_is_refused_once(starts: Starts, number: int, label: str) -> None:
    event = starts.labelled(number, label, by="tess")
    starts.deliver(event)
    assert starts.deliver(event).writes == 0
    assert (starts.started, len(starts.comments(number))) == ([], 1)
    assert f"The label `{label}` was set by `tess`" in starts.status(number)
    assert "(`label-not-allowed`)" in starts.status(number)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["/accord implement", "/accord retry"])
def test_the_agent_that_a_triager_chose_is_not_started(starts: Starts, command: str) -> None:
    starts.labelled(READY, "agent:claude", by="tess")
    if command == "/accord retry":
        starts.deliver(starts.labelled(READY, "agent:codex"))
        starts.end("implement", READY, {}, key=starts.dispatches[0]["inputs"]["start"])
        starts.stage.send("DELETE", f"{starts.root}/issues/{READY}/labels/agent:codex")
        assert starts.deliver(starts.comment(READY, command)).writes
        assert starts.started[-1] == ("accord-implement.yml", {"work-item": "2", "agent": "codex"})
        return
    starts.deliver(starts.comment(READY, command))
    assert starts.started == []
    assert "The label `agent:claude` was set by `tess`" in starts.status(READY)
    starts.stage.send("DELETE", f"{starts.root}/issues/{READY}/labels/agent:claude")
    starts.labelled(READY, "agent:claude")
    starts.deliver(starts.comment(READY, command))
    assert starts.started == [("accord-implement.yml", {"work-item": "2", "agent": "claude"})]


@pytest.mark.slow
def test_a_pull_request_that_opens_is_reviewed_once_for_each_head(starts: Starts) -> None:
    starts.deliver(starts.pull_event("opened"))
    starts.deliver(starts.pull_event("review_requested"))
    starts.deliver(starts.pull_event("ready_for_review"))
    assert starts.started == [("accord-review.yml", {"pull": "4"})]
    assert starts.deliver(starts.pull_event("opened", DRAFT)).details["reason"].startswith("#5 is a draft.")


@pytest.mark.slow
def test_a_fork_starts_nothing_and_the_summary_says_what_to_do(starts: Starts) -> None:
    name, payload = starts.labelled(PULL, "agents:review")
    payload["pull_request"]["head"]["repo"]["full_name"] = "mallory/code"
    receipt = starts.deliver((name, payload))
    assert (receipt.writes, starts.started) == (0, [])
    assert "Comment `/accord review`" in receipt.details["reason"]
    starts.deliver(starts.comment(PULL, "/accord review"))
    assert starts.started == [("accord-review.yml", {"pull": "4"})]


@pytest.mark.parametrize(
    ("is_bot", "words"), [(False, "comes from a fork"), (True, "bots start nothing. To start it, comment")]
)
def test_with_the_token_of_a_forks_event_nothing_is_tried_and_the_reason_is_named(
    starts: Starts, is_bot: bool, words: str
) -> None:
    name, payload = starts.pull_event("opened")
    payload["pull_request"]["head"]["repo"]["full_name"] = "mallory/code"
    reading = Starts(starts.stage, token="fork-event")
    receipt = reading.deliver((name, {**payload, **({"sender": BOT} if is_bot else {})}))
    assert (receipt.outcome, receipt.writes) == (Outcome.UNCHANGED, 0)
    assert words in receipt.details["reason"]
    assert (starts.started, starts.comments(PULL)) == ([], [])
    with pytest.raises(Forbidden):
        reading.context().github.replace_labels(PULL, ["agents:review"])


@pytest.mark.slow
def test_one_run_an_item(starts: Starts) -> None:
    starts.deliver(starts.comment(REQUEST, "/accord plan"))
    second = starts.comment(REQUEST, "/accord plan")
    starts.deliver(second)
    assert len(starts.started) == 1
    assert "Something runs here already. Comment `/accord stop`" in starts.status(REQUEST)
    starts.deliver(starts.comment(REQUEST, "/accord stop"))
    assert "**accord: the plan was stopped**" in starts.status(REQUEST)
    starts.deliver(starts.comment(REQUEST, "/accord retry"))
    assert starts.started == [("accord-plan.yml", {"item": "1"})] * 2


@pytest.mark.slow
def test_stop_cancels_the_run_and_pauses_the_loops_of_a_pull_request(starts: Starts) -> None:
    starts.deliver(starts.comment(PULL, "/accord review"))
    event = starts.comment(PULL, "/accord stop")
    starts.deliver(event)
    assert starts.deliver(event).writes == 0
    assert [run["conclusion"] for run in starts.runs] == ["cancelled"]
    assert "agents:paused" in starts.labels(PULL)
    assert "Loops leave this pull request alone" in starts.status(PULL)


@pytest.mark.slow
def test_a_failed_implementation_is_retried_while_its_item_is_in_progress(starts: Starts) -> None:
    starts.deliver(starts.comment(READY, "/accord implement"))
    context = starts.context()
    context.github.replace_labels(READY, ["task:implement", "status:in-progress"])
    starts.end("implement", READY, {"start": JobResult("success", {}), "implement": JobResult("failure", {})})
    assert "If its run failed, comment `/accord retry`" not in starts.status(READY)
    starts.deliver(starts.comment(READY, "/accord implement"))
    assert "If its run failed, comment `/accord retry`" in starts.status(READY)
    starts.stage.send("POST", f"{starts.root}/actions/runs/{starts.runs[-1]['id']}/cancel")
    starts.deliver(starts.comment(READY, "/accord retry"))
    assert starts.started == [("accord-implement.yml", {"work-item": "2"})] * 2


@pytest.mark.slow
def test_an_approved_spec_is_planned_once_for_each_version(starts: Starts) -> None:
    event = starts.push({"docs/specs/a.md": SPEC, "docs/specs/b.md": "---\nstatus: draft\n---\n", "docs/c.md": SPEC})
    starts.deliver(event)
    assert starts.deliver(event).writes == 0
    ((file, first),) = starts.started
    assert (file, first["request"]) == ("accord-plan.yml", "Plan the specification docs/specs/a.md.")
    starts.deliver(starts.push({"docs/specs/a.md": f"{SPEC}More\n"}))
    starts.deliver(starts.push({"README.md": "Hello\n"}))
    assert [inputs["run-key"] for _, inputs in starts.started] == [first["run-key"]] * 2


def test_closing_the_last_blocker_makes_an_item_ready(starts: Starts) -> None:
    event = starts.closed(READY, login="merger[bot]", type="Bot")
    assert starts.deliver(event).outcome is Outcome.APPLIED
    assert "status:ready" in starts.labels(PENDING)
    assert starts.deliver(event).writes == 0
    assert starts.comments(PENDING) == []


def test_an_item_that_anyone_closed_loses_its_status_label_and_keeps_the_reason(starts: Starts) -> None:
    before = starts.labels(READY)
    event = starts.closed(READY, login="merger[bot]", type="Bot")
    reason = starts.stage.get(f"/repos/{starts.stage.repository}/issues/{READY}")["state_reason"]
    starts.deliver(event)
    assert starts.labels(READY) == {label for label in before if not label.startswith("status:")}
    assert len(starts.labels(READY)) < len(before)
    issue = starts.stage.get(f"/repos/{starts.stage.repository}/issues/{READY}")
    assert (issue["state"], issue["state_reason"]) == ("closed", reason)


@pytest.mark.slow
def test_a_workflow_that_is_missing_is_a_failure_in_the_status_comment(starts: Starts) -> None:
    starts.push({".github/workflows/accord-plan.yml": None})
    event = starts.comment(REQUEST, "/accord plan")
    receipt = starts.deliver(event)
    assert receipt.outcome is Outcome.REFUSED
    done = [f"{entry.op} {entry.status.value}" for entry in receipt.operations]
    assert done[1:] == ["show-status done", "start-workflow failed", "link-run planned", "show-status done"]
    assert "**accord: the plan failed**" in starts.status(REQUEST)
    assert "Next: Install it with `accord init`" in starts.status(REQUEST)
    starts.push(FILES)
    starts.deliver(event)
    assert starts.started == [("accord-plan.yml", {"item": "1"})]
    assert "**accord: the plan is starting**" in starts.status(REQUEST)


@pytest.mark.slow
def test_the_configuration_of_a_branch_counts_for_nothing(tmp_path: Path) -> None:
    with starts_stage(tmp_path, {"pull-requests": False}) as stage:
        starts = Starts(stage)
        github = stage.adapter()
        before = github.ref("refs/heads/feature") or ""
        changes = {CONFIG: ("100644", "starts:\n  pull-requests: true\n")}
        tree = github.create_tree(changes, github.tree(before).sha)
        github.forward_ref("refs/heads/feature", github.create_commit("Write", tree, [before]).sha)
        receipt = starts.deliver(starts.pull_event("opened"))
        assert (receipt.writes, starts.started) == (0, [])
        assert "`pull-requests` is off" in receipt.details["reason"]


def test_a_broken_configuration_starts_nothing_and_has_a_finding(tmp_path: Path) -> None:
    with starts_stage(tmp_path, {"comment": True}) as stage:
        starts = Starts(stage)
        receipt = starts.deliver(starts.comment(REQUEST, "/accord plan"))
        assert (receipt.outcome, receipt.writes) == (Outcome.REJECTED, 0)
        assert [found.hint for found in receipt.findings] == ["Did you mean `comments`?"]


@pytest.mark.slow
def test_a_run_that_github_does_not_list_yet_is_looked_for_again_before_it_is_started_again(tmp_path: Path) -> None:
    with starts_stage(tmp_path, names_started_runs=False) as stage:
        starts = Starts(stage)
        event = starts.comment(REQUEST, "/accord plan")
        operations = starts.deliver(event).operations
        assert [entry.status.value for entry in operations if entry.op == "link-run"] == ["skipped"]
        with stage.server.database.writing() as connection:
            connection.execute("UPDATE workflow_runs SET event = 'not listed yet'")
        before = stage.clock.now()
        stage.server.requests.clear()
        starts.deliver(event)
        looks = [path for _, path, _ in stage.server.requests if path.endswith("/accord-plan.yml/runs")]
        assert (len(looks), (stage.clock.now() - before).seconds >= 14) == (4, True)
        assert len(starts.started) == 2


def test_a_dry_run_writes_nothing(starts: Starts) -> None:
    event = starts.comment(REQUEST, "/accord plan")
    receipt = starts.deliver(event, is_dry_run=True)
    assert (receipt.outcome, receipt.writes, starts.comments(REQUEST)) == (Outcome.PLANNED, 0, [])
