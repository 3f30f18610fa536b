"""Charts: what is counted when, that bars have the proportions of their numbers, and that no number is lost."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from support.records import record
from test_timeline import ended
from test_work import ADDRESS, BOT, FAILED, NOW, RUNNING, TASK, item, pull

from accord.board.charts import HEIGHT, MOST_DAYS, WIDTH, Chart, Run, charts_of, runs_of
from accord.board.models import BoardRepository
from accord.loops.models import Iteration, LoopState


def facts(*items: Any, **more: Any) -> BoardRepository:
    return BoardRepository(ADDRESS, NOW, BOT, items, **more)


def iteration(days: int, seconds: float, dollars: float | None) -> Iteration:
    return Iteration(run_id="7", number=1, seconds=seconds, cost_usd=dollars, ended_at=NOW - timedelta(days=days))


def looped(*iterations: Iteration) -> Any:
    one = pull(loops=(LoopState(history=iterations),))
    return replace(one, pull=replace(one.pull, created_at=NOW - timedelta(days=2)))


def values(found: BoardRepository, title: str) -> dict[str, dict[date, float]]:
    (chart,) = [one for one in charts_of([found]) if one.title == title]
    return {
        name: {start: value for start, value in zip(chart.starts, series, strict=True) if value}
        for name, series in chart.series.items()
    }


TODAY = NOW.date()


def test_costs_are_summed_and_durations_are_medians_by_day() -> None:
    runs = looped(iteration(1, 60, 0.5), iteration(1, 120, 0.25), iteration(1, 600, None), iteration(0, 60, 1))
    found = facts(
        item(*TASK, rows=(FAILED.model_copy(update={"cost": "0.12 US dollars, 9 tokens in"}), RUNNING)), pulls=(runs,)
    )
    yesterday = TODAY - timedelta(days=1)
    assert values(found, "Cost") == {"US dollars": {yesterday: 0.75, TODAY: pytest.approx(1.12)}}
    assert values(found, "Duration") == {"minutes": {yesterday: 2.0, TODAY: 1.0}}


def test_a_run_that_goes_on_or_has_no_time_is_not_counted() -> None:
    odd = FAILED.model_copy(update={"since": "yesterday", "cost": "9 US dollars"})
    assert list(runs_of(facts(item(*TASK, rows=(RUNNING, odd, FAILED))))) == [Run(NOW.replace(hour=8), None, None)]


def test_a_run_with_a_record_is_counted_once_though_comments_mention_it_too() -> None:
    row = FAILED.model_copy(update={"cost": "9 US dollars", "run": 71})
    loops = looped(iteration(0, 60, 9.0).model_copy(update={"run_id": "72"}), iteration(0, 60, 1.0))
    records = tuple(
        record(number, links={"issue": 3, "workflow_run": number}, ended_at=NOW, seconds=120, cost_usd=0.5)
        for number in (71, 72, 73)
    )
    found = facts(item(*TASK, rows=(row,)), pulls=(loops,), records=(*records, record(9, kind="apply", ended_at=NOW)))
    assert sorted((run.seconds, run.dollars) for run in runs_of(found)) == [(60, 1.0), *[(120, 0.5)] * 3]


def test_pull_requests_are_merged_closed_or_pending() -> None:
    found = facts(pulls=(looped(),), ended=(ended(merged=True), ended(merged=True), ended(merged=False)))
    assert values(found, "Acceptance") == {
        "merged": {TODAY: 2}, "closed": {TODAY: 1}, "pending": {TODAY - timedelta(days=2): 1},
    }  # fmt: skip


@pytest.mark.parametrize("days", [0, 3, 6, 7, MOST_DAYS - 1, MOST_DAYS, 200, 1000])
def test_every_run_is_in_one_period_and_periods_have_no_gap(days: int) -> None:
    found = facts(pulls=(looped(iteration(days, 60, 1.0), iteration(0, 60, 2.0)),))
    cost = charts_of([found])[0]
    assert sum(cost.series["US dollars"]) == 3 or days == 1000  # what is older than 60 weeks has no bar
    steps = {after - before for before, after in zip(cost.starts, cost.starts[1:], strict=False)}
    assert steps == {timedelta(days=1 if days < MOST_DAYS else 7)}
    assert cost.starts[-1] <= TODAY < cost.starts[-1] + max(steps)
    assert 7 <= len(cost.starts) <= 60
    assert len(cost.labels) <= 8


def test_bars_have_the_proportions_of_their_numbers_and_stand_on_one_another() -> None:
    starts = [TODAY - timedelta(days=1), TODAY]
    chart = Chart("Acceptance", "pulls", "", starts, {"merged": [3, 0], "closed": [1, 2]}, is_whole=True)
    bars = list(chart.bars())
    assert [(bar.series, bar.height / HEIGHT) for bar in bars] == [("merged", 0.75), ("closed", 0.25), ("closed", 0.5)]
    assert [round(bar.y + bar.height) for bar in bars] == [HEIGHT, HEIGHT / 4, HEIGHT]
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH for bar in bars)
    assert bars[0].text == f"{starts[0]}: 3 merged"


def test_without_runs_there_is_a_week_of_zeros() -> None:
    for chart in charts_of([facts()]):
        assert len(chart.starts) == 7
        assert list(chart.bars()) == []
