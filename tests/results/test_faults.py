"""Exactly once, whatever happens to a request: the end is that of a clean run, and nothing exists twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.exactly_once import Clean, Work
from support.plans import plan, refinement, task, task_body, update

from accord.results.operations import Outcome
from accord_sandbox.faults import KINDS, Fault

if TYPE_CHECKING:
    from support.stage import Stage

pytestmark = pytest.mark.matrix

RESULT = plan(
    task("t1"),
    task("t2", "t1"),
    task("t3", "t1"),
    task("t4", "t2", "t3", out_of_scope="- src/t2.py (owned by #t2)"),
    refinement("r1"),
    task("t5", "r1"),
    task("t6", "#1"),
    task("t7"),
    task("t8", "t9"),
    task("t9"),
    task("t10", "2"),
    task("t11"),
    close=["3", "#4"],
    update=[
        update(5, body=task_body(objective="Changed."), labels=["priority:high", "complexity:high"]),
        update(6, labels=["priority:low", "complexity:trivial"]),
    ],
)
WRITES = 12 + 8 + 2 + 2


def plan_work(stage: Stage) -> Work:
    """Six old issues, and the plan that uses every operation."""
    labels = ["task:implement", "status:ready", "priority:medium", "complexity:low"]
    stage.server.reset()
    for number in range(1, 7):
        stage.send("POST", f"/repos/{stage.repository}/issues", title=f"Old {number}", body=task_body(), labels=labels)
    stage.clock.sleep(3600)
    return Work(stage, stage.keep(), lambda: stage.apply(RESULT), stage.snapshot)


@pytest.fixture(scope="module")
def work(shared_stage: Stage) -> Work:
    return plan_work(shared_stage)


@pytest.fixture(scope="module")
def clean(work: Work) -> Clean:
    clean = work.clean()
    assert clean.receipt.writes == WRITES
    return clean


def pause_before_second_run(nth: int) -> int:
    """Run again at once (the search index lags, the listing tells) or an hour later (the search tells), in turns."""
    return 3600 * (nth % 2)


ALIKE = {"error-500", "error-503", "slow"}
"""Two statuses that are read like error-502, and a kind that takes real time and has a test of its own."""


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ALIKE])
def test_a_fault_at_any_request_costs_no_item_and_duplicates_none(work: Work, clean: Clean, kind: str) -> None:
    stage, (expected, count, _) = work.stage, clean
    for nth in range(1, count + 1):
        work.begin()
        stage.server.faults.add(Fault(kind, nth=nth, seconds=30))
        first = work.apply()
        stage.server.faults.clear()
        stage.clock.sleep(pause_before_second_run(nth))
        second = work.apply()
        assert first.outcome is Outcome.APPLIED, (kind, nth, first.error)
        assert (second.outcome, second.writes) == (Outcome.UNCHANGED, 0), (kind, nth)
        assert work.state() == expected, (kind, nth)


@pytest.mark.parametrize("kind", ["lost-before", "lost-after"])
def test_when_github_stays_away_a_second_run_finishes_the_first(work: Work, clean: Clean, kind: str) -> None:
    stage, (expected, count, _) = work.stage, clean
    for nth in range(1, count + 1):
        work.begin()
        stage.server.faults.add(Fault(kind, nth=nth, times=1000))
        first = work.apply()
        stage.server.faults.clear()
        stage.clock.sleep(pause_before_second_run(nth))
        second = work.apply()
        assert first.outcome is Outcome.STOPPED, (kind, nth)
        assert first.exit_code == 3
        assert second.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), (kind, nth, second.error)
        assert work.state() == expected, (kind, nth)


def test_an_answer_that_comes_after_the_time_limit_is_found_not_sent_again(
    work: Work, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, expected = work.stage, clean.state
    monkeypatch.setattr("accord.github.pygithub.TIMEOUT_SECONDS", 1)
    for method, path in [("POST", "/issues$"), ("POST", "/blocked_by$"), ("PATCH", "/issues/5$"), ("GET", "/search/")]:
        work.begin()
        stage.server.faults.add(Fault("slow", nth=1, method=method, path=path, seconds=1.3))
        assert work.apply().outcome is Outcome.APPLIED, path
        assert work.state() == expected, path
