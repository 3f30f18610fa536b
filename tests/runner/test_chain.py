"""Whether the next agent works follows from the cause of a failure, the money and the time."""

import time

import pytest

from accord.runner.attempts import RunBudget
from accord.runner.causes import CAUSES
from accord.runner.chain import SETBACKS, verdict_after
from accord.runner.record import Attempt


def spent(*costs: float | None) -> list[Attempt]:
    return [Attempt(agent="one", outcome="failed", cost_usd=cost) for cost in costs]


@pytest.mark.parametrize(
    ("left", "cause", "costs", "limit", "seconds", "verdict"),
    [
        (["two"], "quota", [], None, 600, "next"), (["two", "three"], "outage", [1.0], None, 600, "next"),
        ([], "quota", [], None, 600, "end"), (["two"], "", [], None, 600, "end"),
        (["two"], "time", [], None, 600, "end"), (["two"], "budget", [9], 1, 600, "end"),
        (["two"], "quota", [0.4, 0.5], 1, 600, "next"), (["two"], "quota", [0.4, 0.6], 1, 600, "spent"),
        (["two"], "quota", [None], 1, 600, "next"), (["two"], "stall", [], None, 29, "end"),
    ],
)  # fmt: skip
def test_the_next_agent_follows_from_cause_money_and_time(
    left: list[str], cause: str, costs: list[float | None], limit: float | None, seconds: float, verdict: str
) -> None:
    assert verdict_after(cause, left, spent(*costs), RunBudget(time.monotonic() + seconds, limit)) == verdict


def test_setbacks_are_causes_that_another_agent_would_not_share() -> None:
    assert CAUSES.keys() >= SETBACKS.keys()
    assert not {"time", "memory", "disk", "budget", "cancelled", "context"} & SETBACKS.keys()
    limits = [(RunBudget(0, limit), cost) for limit, cost in ((1, 0.4), (1, 3), (None, 3))]
    assert [budget.usd_left(spent(cost)) for budget, cost in limits] == [0.6, 0.0, None]


def test_failures_that_only_the_changes_decide_call_no_next_agent() -> None:
    assert verdict_after("sandbox", ["claude"], (), RunBudget(time.monotonic() + 900)) == "end"
