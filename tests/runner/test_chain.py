"""Whether the next agent works follows from the cause of a failure, the money and the time."""

import time

import pytest

from accord.runner.attempts import RunBudget
from accord.runner.causes import CAUSES
from accord.runner.chain import SETBACKS, verdict_after
from accord.runner.record import Attempt, RunRecord


def budget(seconds: float, limit: float | None, *costs: float | None) -> RunBudget:
    spent = tuple(Attempt(agent="one", outcome="failed", cost_usd=cost) for cost in costs)
    return RunBudget(RunRecord(agent="one", attempts=spent), time.monotonic() + seconds, limit)


@pytest.mark.parametrize(
    ("left", "cause", "costs", "limit", "seconds", "verdict"),
    [
        (["two"], "quota", [], None, 600, "next"), (["two", "three"], "outage", [1.0], None, 600, "next"),
        ([], "quota", [], None, 600, "end"), (["two"], "", [], None, 600, "end"),
        (["two"], "time", [], None, 600, "end"), (["two"], "budget", [9], 1, 600, "end"),
        (["two"], "quota", [0.4, 0.5], 1, 600, "next"), (["two"], "quota", [0.4, 0.6], 1, 600, "spent"),
        (["two"], "quota", [None], 1, 600, "next"), (["two"], "stall", [], None, 29, "end"),
        (["two"], "sandbox", [], None, 900, "end"),  # only the changes decide it
    ],
)  # fmt: skip
def test_the_next_agent_follows_from_cause_money_and_time(
    left: list[str], cause: str, costs: list[float | None], limit: float | None, seconds: float, verdict: str
) -> None:
    assert verdict_after(cause, left, budget(seconds, limit, *costs)) == verdict


def test_setbacks_are_causes_that_another_agent_would_not_share() -> None:
    assert CAUSES.keys() >= SETBACKS.keys()
    assert not {"time", "memory", "disk", "budget", "cancelled", "context"} & SETBACKS.keys()
    assert [budget(0, limit, cost).usd_left for limit, cost in ((1, 0.4), (1, 3), (None, 3))] == [0.6, 0.0, None]
