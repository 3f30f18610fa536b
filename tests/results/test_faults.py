"""Exactly once, whatever happens to a request: the end is that of a clean run, and nothing exists twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.plans import plan, refinement, task, task_body, update

from accord.results.receipts import Outcome
from accord.sandbox.faults import KINDS, Fault

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


def seed(stage: Stage) -> None:
    labels = ["task:implement", "status:ready", "priority:medium", "complexity:low"]
    for number in range(1, 7):
        stage.send("POST", f"/repos/{stage.repository}/issues", title=f"Old {number}", body=task_body(), labels=labels)
    stage.clock.sleep(3600)
    stage.server.requests.clear()


@pytest.fixture(scope="module")
def clean(shared_stage: Stage) -> tuple[list[dict[str, Any]], int]:
    shared_stage.server.reset()
    seed(shared_stage)
    receipt = shared_stage.apply(RESULT)
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    assert receipt.writes == WRITES
    count = len(shared_stage.server.requests)
    return shared_stage.snapshot(), count


def pause_before_second_run(nth: int) -> int:
    """Run again at once (the search index lags, the listing tells) or an hour later (the search tells), in turns."""
    return 3600 * (nth % 2)


ALIKE = {"error-500", "error-503", "slow"}
"""Two statuses that are read like error-502, and a kind that takes real time and has a test of its own."""


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ALIKE])
def test_a_fault_at_any_request_costs_no_item_and_duplicates_none(
    stage: Stage, clean: tuple[list[dict[str, Any]], int], kind: str
) -> None:
    expected, count = clean
    for nth in range(1, count + 1):
        stage.server.reset()
        seed(stage)
        stage.server.faults.add(Fault(kind, nth=nth, seconds=30))
        first = stage.apply(RESULT)
        stage.server.faults.clear()
        stage.clock.sleep(pause_before_second_run(nth))
        second = stage.apply(RESULT)
        assert first.outcome is Outcome.APPLIED, (kind, nth, first.error)
        assert (second.outcome, second.writes) == (Outcome.UNCHANGED, 0), (kind, nth)
        assert stage.snapshot() == expected, (kind, nth)


@pytest.mark.parametrize("kind", ["lost-before", "lost-after"])
def test_when_github_stays_away_a_second_run_finishes_the_first(
    stage: Stage, clean: tuple[list[dict[str, Any]], int], kind: str
) -> None:
    expected, count = clean
    for nth in range(1, count + 1):
        stage.server.reset()
        seed(stage)
        stage.server.faults.add(Fault(kind, nth=nth, times=1000))
        first = stage.apply(RESULT)
        stage.server.faults.clear()
        stage.clock.sleep(pause_before_second_run(nth))
        second = stage.apply(RESULT)
        assert first.outcome is Outcome.STOPPED, (kind, nth)
        assert first.exit_code == 3
        assert second.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), (kind, nth, second.error)
        assert stage.snapshot() == expected, (kind, nth)
        assert stage.apply(RESULT).writes == 0


def test_an_answer_that_comes_after_the_time_limit_is_found_not_sent_again(
    stage: Stage, clean: tuple[list[dict[str, Any]], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = clean
    monkeypatch.setattr("accord.github.transport.TIMEOUT_SECONDS", 1)
    for method, path in [("POST", "/issues$"), ("POST", "/blocked_by$"), ("PATCH", "/issues/5$"), ("GET", "/search/")]:
        stage.server.reset()
        seed(stage)
        stage.server.faults.add(Fault("slow", nth=1, method=method, path=path, seconds=1.3))
        assert stage.apply(RESULT).outcome is Outcome.APPLIED, path
        assert stage.snapshot() == expected, path
