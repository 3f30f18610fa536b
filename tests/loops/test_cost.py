"""Money in loops: what all runs cost is counted, and a spent budget is a result of its own that says what to type."""

import json
from pathlib import Path

import pytest
from support.loops import failed, keepalive, running, state_of, well
from support.turns import Turns, did, opened
from support.turns import failed as failed_run

from accord.loops.ledger import KEPT
from accord.loops.models import Iteration, LoopState
from accord.loops.outputs import iteration_of, read_outputs
from accord.loops.run import LOOPS

decide = LOOPS["keepalive"].decide

NO_SECRETS = str
OVER = failed_run("manual", "resource", **{"error-evidence": '{"rule": "budget"}', "cost-usd": "1.5"})


def test_the_cost_of_all_runs_is_counted_also_of_forgotten_and_failed_ones() -> None:
    runs = [well(str(number), cost_usd=0.1) for number in range(KEPT + 5)]
    state = state_of(*runs, failed("x", cost_usd=2), well("y", cost_usd=None))
    assert (state.cost_usd, len(state.history)) == (4.5, KEPT)


@pytest.mark.parametrize(
    ("cost", "most", "reason"), [(4, 5, "tasks-open"), (5, 5, "cost-budget"), (9, None, "tasks-open")]
)
def test_no_run_begins_when_the_money_of_the_pull_request_is_spent(
    cost: float, most: float | None, reason: str
) -> None:
    decision = decide(keepalive(state=LoopState(cost_usd=cost), max_cost_usd=most), NO_SECRETS)
    assert decision.reason == reason
    assert ("max_item_cost_usd" in decision.message) == (reason == "cost-budget")
    assert ("needs-human" in decision.add_labels) == (reason == "cost-budget")


@pytest.mark.parametrize(
    ("runs", "most", "is_warned"),
    [
        ([well("1")], 5, True),
        ([well("1")], None, False),
        ([], 5, False),
        ([failed("1", recovery="ignore")], 5, False),
        ([well("1", cost_usd=0.1), well("2")], 5, False),
    ],
)
def test_people_learn_that_a_budget_does_not_limit_a_loop(
    runs: list[Iteration], most: float | None, *, is_warned: bool
) -> None:
    decision = decide(keepalive(state=state_of(*runs), max_cost_usd=most), NO_SECRETS)
    assert decision.action == "run"
    assert any("`max_item_cost_usd` does not limit" in text for text in decision.warnings) == is_warned


@pytest.mark.parametrize(
    ("rule", "is_over"),
    [("budget", True), ("error_max_budget_usd", True), ("says-budget", True), ("hard-quota", False)],
)
def test_a_run_that_spent_its_budget_differs_from_other_failures(rule: str, is_over: bool) -> None:
    outputs = read_outputs(json.dumps({**OVER, "error-evidence": json.dumps({"rule": rule})}))
    iteration = iteration_of(outputs, running(), number=1, ended_at=well("1").ended_at)
    assert (iteration.is_over_budget, iteration.category) == (is_over, "resource")


@pytest.mark.slow
def test_people_read_that_the_budget_is_spent_and_what_to_type(tmp_path: Path) -> None:
    summary = "1 attempt cost 1.50 of 1.00 US dollars. Raise max_cost_usd in the agent registry, or split the task."
    with opened(tmp_path) as stage:
        turns = Turns(stage)
        turns.begin("1")
        turns.end({**OVER, "error-summary": summary}, "1")
        assert "| ❌ budget, manual |" in turns.comments[0]
        assert "The run spent its budget: 1 attempt cost 1.50 of 1.00 US dollars. Raise max" in turns.comments[0]
        assert "needs-human" in turns.labels
        turns.unlabel("needs-human")
        turns.begin("2")
        turns.end(did("Add tests", **{"cost-usd": "0.25"}), "2")
        assert turns.state.cost_usd == 1.75
