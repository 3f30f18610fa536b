"""The timeline of an item: what happened to it, in order, with what it took and cost."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from support.records import record
from test_work import ADDRESS, BOT, FAILED, NOW, RUNNING, TASK, item, loop, pull

from accord.board.models import BoardRepository, EndedPull
from accord.board.pages import TimelineEvent, timeline_of
from accord.github.models import Review
from accord.loops.models import ActiveRun, Iteration
from accord.text.markers import REVIEW, write_marker


def at(minutes: int) -> Any:
    return NOW + timedelta(minutes=minutes)


def review(state: str, minutes: int, body: str = "", author: str = "wanda") -> Review:
    return Review(1, "https://github.example/r", author, False, body, state, "h" * 40, at(minutes))


def ended(*, merged: bool, minutes: int = 60) -> EndedPull:
    issue = replace(item(number=8).issue, is_pull=True, state="closed", closed_at=at(minutes), created_at=at(5))
    return EndedPull(replace(issue, merged_at=at(minutes) if merged else None), (3,))


def events(one: Any, **facts: Any) -> list[TimelineEvent]:
    return timeline_of(BoardRepository(ADDRESS, NOW, BOT, (one,), **facts), one)


def test_the_timeline_is_in_the_order_of_time_whatever_its_source() -> None:
    rows = (FAILED.model_copy(update={"since": "2026-11-02T09:02:00Z", "cost": "0.10 US dollars", "by": "wanda"}),)
    iteration = Iteration(
        run_id="71", number=1, tasks_done=2, changes_made=True, seconds=90, cost_usd=0.25, ended_at=at(20)
    )
    state = loop("cost-budget", history=(iteration,), running=ActiveRun(run_id="72", head_sha="h", started_at=at(30)))
    opened = pull(loops=(state,), reviews=(review("CHANGES_REQUESTED", 40), review("APPROVED", 50)))
    opened = replace(opened, pull=replace(opened.pull, created_at=at(10)))
    found = events(item(*TASK, rows=rows), pulls=(opened,))
    assert [(event.at, event.kind, event.text, event.is_good) for event in found] == [
        (NOW, "item", "Created by bot", None),
        (at(2), "run", "Implementation by codex, asked for by wanda: failed", False),
        (at(10), "pull", "Pull request #5 opened", None),
        (at(20), "loop", "Keepalive, run 1: succeeded", True),
        (at(20), "loop", "Keepalive: stop", None),
        (at(30), "loop", "Keepalive, run 0: running", None),
        (at(40), "review", "wanda requests changes (#5)", False),
        (at(50), "review", "wanda approves (#5)", True),
    ]
    assert (found[1].detail, found[1].cost) == ("auth: the key expired", "0.10 US dollars")
    assert (found[3].detail, found[3].cost, found[3].seconds) == ("2 tasks done", "0.25 US dollars", 90)
    assert found[3].url == f"{ADDRESS.page}/actions/runs/71"


def test_the_end_of_a_pull_request_and_of_the_item_are_events() -> None:
    done = item(*TASK, closed_at=at(61))
    merged = [event.text for event in events(done, ended=(ended(merged=True),))]
    assert merged == ["Created by bot", "Pull request #8 opened", "Pull request #8 merged", "Completed"]
    dropped = replace(done, issue=replace(done.issue, state_reason="not_planned"))
    closed = events(dropped, ended=(ended(merged=False),))
    assert [(event.text, event.is_good) for event in closed[2:]] == [
        ("Pull request #8 closed without merging", False),
        ("Closed as not planned", False),
    ]


def test_events_of_other_items_are_left_out() -> None:
    assert (
        len(events(item(*TASK, number=4), pulls=(pull(reviews=(review("APPROVED", 1),)),), ended=(ended(merged=True),)))
        == 1
    )


def test_a_review_of_accord_has_the_verdict_of_its_marker_and_a_comment_makes_no_event() -> None:
    own = review("COMMENTED", 4, write_marker(REVIEW, run="r", asks="needs-changes"), "github-actions[bot]")
    found = events(item(*TASK), pulls=(pull(reviews=(own, review("COMMENTED", 5))),))
    assert [event.text for event in found if event.kind == "review"] == ["accord requests changes (#5)"]


def test_records_add_what_a_run_took_and_the_runs_that_comments_forgot() -> None:
    row = RUNNING.model_copy(update={"state": "done"})
    known = record(1, links={"issue": 3, "workflow_run": 7}, ended_at=at(5), seconds=90, cost_usd=0.5)
    of_pull = record(
        2,
        kind="autofix",
        links={"pull": 5, "workflow_run": 8},
        ended_at=at(6),
        result={"disposition": "failure", "error_category": "auth"},
    )
    other = record(3, links={"issue": 4, "workflow_run": 9}, ended_at=at(7))
    found = events(item(*TASK, rows=(row,)), pulls=(pull(),), records=(known, of_pull, other))
    runs = [
        (event.text, event.detail, event.is_good, event.seconds, event.cost) for event in found if event.kind == "run"
    ]
    assert runs == [
        ("Implementation by codex: done", "", True, 90, "0.50 US dollars"),
        ("Autofix by codex: failure", "auth", False, 300, "0.50 US dollars"),
    ]


def test_a_start_without_a_time_comes_last() -> None:
    odd = RUNNING.model_copy(update={"since": "yesterday"})
    assert events(item(*TASK, rows=(odd,)))[-1].text == "Implementation by codex: running"
