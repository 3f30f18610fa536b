"""How a run began and ended, in the status comment: its result, the class of a failure, the next step and the cost."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.starts import DRAFT, PULL, READY, REQUEST, Starts, starts_stage

from accord.engine.receipts import Outcome
from accord.github.comments import Comment
from accord.github.models import Identity
from accord.runner.models import RunOutputs
from accord.starts.ends import JobResult, cost_of, read_needs, report_of
from accord.starts.models import ItemStatus, StatusRow
from accord.starts.status import read_body, view_of, write_body

DONE = {
    "plan": JobResult("success", {}),
    "review": JobResult("success", {}),
    "implement": JobResult("success", {}),
}


def applied(**outputs: Any) -> dict[str, JobResult]:
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in outputs.items()}
    return {"apply": JobResult("success", texts)}


REVIEW = {"verdict_requested": "approve", "inline": 0, "file_level": 0, "in_body": 0}


@pytest.mark.parametrize(
    ("work", "jobs", "state", "words"),
    [
        ("plan", applied(items={"a": {"id": "13"}, "b": {"id": "14"}}), "done", "Work items: #13, #14."),
        ("plan", applied(outcome="unchanged", items={}), "nothing", "The agent found nothing to plan."),
        ("plan", applied(outcome="applied", items={}), "done", "changed or closed"),
        ("plan", applied(outcome="planned", items={}), "done", "A dry run"),
        ("implement", applied(revision={"id": "34", "draft": False}), "done", "Opened #34."),
        ("implement", applied(revision={"id": "34", "draft": True}), "done", "Opened #34 as a draft."),
        ("implement", applied(revision=""), "done", "no pull request"),
        ("review", applied(review=REVIEW), "nothing", "found nothing to change"),
        ("review", applied(review={**REVIEW, "inline": 1}), "done", "Verdict approve, 1 comment."),
        ("review", applied(review={**REVIEW, "verdict_requested": "x", "in_body": 2}), "done", "2 comments"),
        ("review", {"review": JobResult("cancelled", {}), "apply": JobResult("skipped", {})}, "cancelled", "cancelled"),
        ("plan", {"apply": JobResult("failure", {"outcome": "rejected"})}, "failed", "contract: "),
        ("plan", {"apply": JobResult("failure", {"outcome": "stopped"})}, "failed", "stopped: "),
        ("plan", {"apply": JobResult("failure", {"outcome": "refused"})}, "failed", "refused: "),
        ("implement", {"start": JobResult("failure", {})}, "failed", "job: The job `start` failed"),
    ],
)  # fmt: skip
def test_the_jobs_tell_the_result(work: Any, jobs: dict[str, JobResult], state: str, words: str) -> None:
    report = report_of(work, {**DONE, **jobs}, None)
    assert (report.state, words in report.result) == (state, True), report.result
    assert bool(report.next_step) or state in ("nothing", "done")


@pytest.mark.parametrize(
    ("outputs", "result", "next_step"),
    [
        (
            RunOutputs(error_category="transient", error_type="infrastructure", error_recovery="retry",
                       error_summary="Overloaded.", retry_after_seconds="30"),
            "transient (infrastructure): Overloaded.", "Wait 30 seconds. Comment `/accord retry`",
        ),
        (
            RunOutputs(error_category="auth", error_type="auth", error_recovery="manual", error_summary="No key."),
            "auth (auth): No key.", "Fix the cause, then comment `/accord retry`.",
        ),
        (RunOutputs(), "contract: The agent's result breaks its contract", "Comment `/accord retry`"),
        (None, "job: The job `plan` failed", "Fix the cause"),
    ],
)  # fmt: skip
def test_a_failure_has_its_class_and_the_next_step(outputs: RunOutputs | None, result: str, next_step: str) -> None:
    report = report_of("plan", {"plan": JobResult("failure", {}), "apply": JobResult("skipped", {})}, outputs)
    assert (report.state, result in report.result, next_step in report.next_step) == ("failed", True, True), report


def test_the_cost_is_what_the_agent_said() -> None:
    assert cost_of(RunOutputs(cost_usd="0.42", tokens_input="12000", tokens_output="300")) == (
        "0.42 US dollars, 12,000 tokens in, 300 tokens out"
    )
    assert (cost_of(RunOutputs()), cost_of(None)) == ("", "")


def test_needs_are_read_as_github_writes_them() -> None:
    text = '{"plan": {"result": "success", "outputs": {}}, "apply": {"result": "skipped", "outputs": {"items": "{"}}}'
    jobs = read_needs(text)
    assert (jobs["plan"].result, jobs["apply"].document("items")) == ("success", None)
    assert read_needs("") == {}
    for broken in ("[]", "x"):
        with pytest.raises(ValueError, match=r"not an object|Expecting value"):
            read_needs(broken)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.lists(
        st.builds(
            StatusRow,
            key=st.text(max_size=20),
            work=st.sampled_from(["plan", "implement", "review"]),
            state=st.sampled_from(["queued", "running", "done", "nothing", "failed", "cancelled"]),
            since=st.sampled_from(["2026-11-02T09:00:00Z", "never"]),
            result=st.text(max_size=200),
            run=st.integers(0, 2**40),
        ),
        max_size=10,
    ),
    st.text(max_size=100),
)
def test_the_comment_keeps_its_data(rows: list[StatusRow], answer: str) -> None:
    status = ItemStatus(rows=tuple(rows), answer=answer)
    assert read_body(write_body(status, 7, "https://github.example/o/r"), 7) == status
    assert read_body(write_body(status, 7, "https://github.example/o/r"), 8) is None


def test_only_comments_of_our_own_count() -> None:
    us, body = Identity("github-actions[bot]", False), write_body(ItemStatus(answer="Ours"), 7, "")
    comments = [
        Comment(1, "", write_body(ItemStatus(answer="Forged"), 7, ""), "mallory"),
        Comment(2, "", "Hello", "github-actions[bot]"),
        Comment(3, "", body, "github-actions[bot]"),
        Comment(4, "", body, "github-actions[bot]"),
    ]
    view = view_of(comments, us, 7)
    assert (view.status.answer, [comment.id for comment in view.comments]) == ("Ours", [3, 4])


def key(starts: Starts) -> str:
    return str(starts.runs[-1]["display_title"].split()[-1])


@pytest.mark.slow
def test_one_comment_shows_a_run_from_its_start_to_its_end_and_the_runs_before(starts: Starts) -> None:
    starts.deliver(starts.comment(REQUEST, "/accord plan"))
    first = starts.runs[-1]["id"]
    starts.begin("plan", REQUEST, key=key(starts))
    assert f"is running** ([run](https://github.example/octo/code/actions/runs/{first}))" in starts.status(REQUEST)
    failed = {"plan": JobResult("failure", {}), "apply": JobResult("skipped", {})}
    assert starts.end("plan", REQUEST, failed, key=key(starts)).writes == 1
    assert starts.end("plan", REQUEST, failed, key=key(starts)).writes == 0
    assert "❌ **accord: the plan failed**" in starts.status(REQUEST)
    assert "Next: Fix the cause, then comment `/accord retry`." in starts.status(REQUEST)
    starts.stage.clock.sleep(60)
    starts.deliver(starts.comment(REQUEST, "/accord retry"))
    starts.begin("plan", REQUEST, key=key(starts))
    starts.end("plan", REQUEST, applied(outcome="unchanged", items={}), key=key(starts))
    shown = starts.status(REQUEST)
    assert "the plan found nothing to do" in shown
    assert f"| [plan](https://github.example/octo/code/actions/runs/{first}) | 2026-11-02" in shown


@pytest.mark.slow
def test_a_job_that_is_run_again_edits_the_same_row(starts: Starts) -> None:
    starts.deliver(starts.comment(REQUEST, "/accord plan"))
    for _ in range(2):
        starts.begin("plan", REQUEST, key=key(starts))
        assert "is running" in starts.status(REQUEST)
        starts.end("plan", REQUEST, {"plan": JobResult("failure", {})}, key=key(starts))
    assert "Earlier" not in starts.status(REQUEST)


def test_a_run_that_a_person_started_by_hand_is_shown_too(starts: Starts) -> None:
    starts.begin("implement", READY, run_id=77, by="wanda")
    starts.end("implement", READY, applied(revision={"id": "4"}), run_id=77)
    assert "Opened #4." in starts.status(READY)
    assert "asked for by `wanda`" in starts.status(READY)


@pytest.mark.slow
def test_a_stopped_run_stays_stopped_by_its_person(starts: Starts) -> None:
    starts.deliver(starts.comment(REQUEST, "/accord plan"))
    starts.deliver(starts.comment(REQUEST, "/accord stop"))
    starts.end("plan", REQUEST, {"plan": JobResult("cancelled", {})}, key=key(starts))
    assert "Stopped by `wanda`." in starts.status(REQUEST)


@pytest.mark.slow
def test_the_review_of_an_opened_pull_request_is_started_once_by_the_run_that_opened_it(starts: Starts) -> None:
    head = starts.stage.get(f"{starts.root}/pulls/{PULL}")["head"]["sha"]
    for _ in range(2):
        starts.end("implement", READY, applied(revision={"id": "4"}), run_id=77, revision=(PULL, head), by="wanda")
    starts.deliver(starts.pull_event("opened"))
    assert starts.started == [("accord-review.yml", {"pull": "4"})]
    assert "Next: The review of #4 starts by itself." in starts.status(READY)


@pytest.mark.slow
def test_a_review_that_cannot_be_started_leaves_the_row_of_the_implementation(starts: Starts) -> None:
    starts.push({".github/workflows/accord-review.yml": None})
    head = starts.stage.get(f"{starts.root}/pulls/{PULL}")["head"]["sha"]
    for _ in range(2):
        receipt = starts.end(
            "implement", READY, applied(revision={"id": "4"}), run_id=77, revision=(PULL, head), by="wanda"
        )
        assert receipt.outcome is Outcome.REFUSED
        corrected = [(entry.op, entry.target) for entry in receipt.operations][-2:]
        assert corrected == [("show-status", str(PULL)), ("show-status", str(READY))]
        assert "**accord: the implementation is done**" in starts.status(READY)
        assert "Opened #4." in starts.status(READY)
        assert "Next: The review of #4 could not be started: see its status comment." in starts.status(READY)
        assert "**accord: the review failed**" in starts.status(PULL)
        assert "Next: Install it with `accord init`" in starts.status(PULL)
        assert "Earlier" not in starts.status(READY) + starts.status(PULL)


def test_a_pull_request_of_a_person_starts_its_review_by_its_own_event(starts: Starts) -> None:
    starts.end("implement", READY, applied(revision={"id": "5"}), run_id=77, revision=(DRAFT, "a" * 40), by="wanda")
    assert starts.started == []


def test_no_review_is_announced_for_a_closed_pull_request(starts: Starts) -> None:
    starts.stage.send("PATCH", f"{starts.root}/pulls/{PULL}", state="closed")
    starts.end("implement", READY, applied(revision={"id": "4"}), run_id=77, revision=(PULL, "a" * 40), by="wanda")
    assert starts.started == []
    assert "by itself" not in starts.status(READY)


def test_no_review_follows_where_the_configuration_does_not_say_so(tmp_path: Path) -> None:
    with starts_stage(tmp_path) as stage:
        starts = Starts(stage)
        starts.end("implement", READY, applied(revision={"id": "4"}), run_id=77, revision=(PULL, "a" * 40))
        assert starts.started == []
        assert "comment `/accord review` there" in starts.status(READY)
