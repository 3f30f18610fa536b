"""Charts of cost, duration and acceptance over time: numbers by day or week, and the geometry of their bars. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from accord.core.clock import time_of
from accord.starts.models import ACTIVE

if TYPE_CHECKING:
    from accord.board.models import BoardRepository

WIDTH, HEIGHT = 720, 200
"""Pixels of the area of the bars."""

LEAST_DAYS = 7
MOST_DAYS = 45
"""More days than these are shown by week."""

MOST_WEEKS = 60
"""Older runs have no bar."""
_GAP = 0.25
_MOST_LABELS = 8
_DOLLARS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) US dollars")


class Run(NamedTuple):
    """A finished run of an agent: when it ended, else began, how long it took, and its cost as the agent said."""

    at: datetime
    seconds: float | None
    dollars: float | None


class Bar(NamedTuple):
    """One rectangle of a chart, and its name and number for people who point at it."""

    x: float
    y: float
    width: float
    height: float
    series: str
    text: str


@dataclass(frozen=True)
class Chart:
    """Values by period: of each series one for each of ``starts``. ``unit`` is what they count, ``note`` their rule."""

    title: str
    unit: str
    note: str
    starts: Sequence[date]
    series: Mapping[str, Sequence[float]]
    is_whole: bool = False

    @property
    def top(self) -> float:
        """The value at the upper edge: that of the highest bar, or 1."""
        return max((sum(column) for column in zip(*self.series.values(), strict=True)), default=0) or 1

    @property
    def labels(self) -> list[tuple[float, str]]:
        """The middles of some periods and their dates, as many as there is space for."""
        step = -(-len(self.starts) // _MOST_LABELS)
        wide = WIDTH / len(self.starts)
        return [((i + 0.5) * wide, f"{start:%m-%d}") for i, start in enumerate(self.starts) if i % step == 0]

    def shown(self, value: float) -> str:
        """Return a value as the table shows it."""
        return f"{value:.0f}" if self.is_whole else f"{value:.2f}"

    def bars(self) -> Iterator[Bar]:
        """Yield the bars; those of a period stand on one another."""
        wide = WIDTH / len(self.starts)
        for i, start in enumerate(self.starts):
            base = float(HEIGHT)
            for name, values in self.series.items():
                high = values[i] / self.top * HEIGHT
                base -= high
                if high:
                    text = f"{start}: {self.shown(values[i])} {name}"
                    yield Bar((i + _GAP / 2) * wide, base, (1 - _GAP) * wide, high, name, text)


def charts_of(repositories: Sequence[BoardRepository]) -> list[Chart]:
    """Return the charts of what is known about some repositories."""
    runs = [run for facts in repositories for run in runs_of(facts)]
    ended = [one.issue for facts in repositories for one in facts.ended]
    merged = [one.merged_at for one in ended if one.merged_at]
    closed = [one.closed_at for one in ended if one.closed_at and not one.merged_at]
    pending = [one.pull.created_at for facts in repositories for one in facts.pulls if one.pull.created_at]
    starts = _periods([*(run.at for run in runs), *merged, *closed, *pending], repositories[0].now)
    totals = partial(_by_period, starts)
    costs = totals(((run.at, run.dollars) for run in runs if run.dollars is not None), sum)
    times = totals(((run.at, run.seconds / 60) for run in runs if run.seconds), median)
    counts = {
        name: totals(((at, 1.0) for at in found), sum)
        for name, found in (("merged", merged), ("closed", closed), ("pending", pending))
    }
    every = "week" if len(starts) > 1 and starts[1] - starts[0] > timedelta(days=1) else "day"
    cost = f"Cost of runs as the agents report it, by {every}."
    acceptance = f"By the {every} of the merge or close; those that are still open by that of their start."
    return [
        Chart("Cost", "US dollars", cost, starts, {"US dollars": costs}),
        Chart("Duration", "minutes", f"Median of the runs of agents, by {every}.", starts, {"minutes": times}),
        Chart("Acceptance", "pull requests", acceptance, starts, counts, is_whole=True),
    ]


def runs_of(facts: BoardRepository) -> Iterator[Run]:
    """Yield the finished runs of a repository: its records, and what only status comments and loops know."""
    yield from (Run(one.ended_at, one.seconds, one.cost_usd) for one in facts.records if one.is_agent_run)
    recorded = {one.links.workflow_run for one in facts.records if one.links.workflow_run}
    for row in facts.rows:
        at = time_of(row.since)
        if at is not None and row.run not in recorded and row.state not in ACTIVE:
            yield Run(at, None, dollars_in(row.cost))
    for loop in facts.loops:
        runs = (run for run in loop.history if not run.run_id.isdecimal() or int(run.run_id) not in recorded)
        yield from (Run(run.ended_at, run.seconds or None, run.cost_usd) for run in runs)


def dollars_in(cost: str) -> float | None:
    """Return the US dollars in the words of a status comment; None where it names none."""
    said = _DOLLARS.search(cost)
    return float(said[1]) if said else None


def _periods(times: Iterable[datetime], now: datetime) -> list[date]:
    """Return the first days of all periods up to now: days, or weeks from Monday where there are too many days."""
    last = now.date()
    first = min([*(at.date() for at in times), last - timedelta(days=LEAST_DAYS - 1)])
    if (last - first).days < MOST_DAYS:
        return [first + timedelta(days=i) for i in range((last - first).days + 1)]
    monday = last - timedelta(days=last.weekday())
    weeks = min((monday - first).days // 7 + 2, MOST_WEEKS)
    return [monday - timedelta(weeks=i) for i in reversed(range(weeks))]


def _by_period(
    starts: Sequence[date], found: Iterable[tuple[datetime, float]], total: Callable[[list[float]], float]
) -> list[float]:
    values: dict[int, list[float]] = defaultdict(list)
    days = (starts[1] - starts[0]).days
    for at, value in found:
        values[min((at.date() - starts[0]).days // days, len(starts) - 1)].append(value)
    return [float(total(values[i])) if i in values else 0.0 for i in range(len(starts))]
