"""Drawings of the board. Pure.

Charts show cost, duration and acceptance over time, by day or week. Graphs show dependencies: layers by longest path,
and bends where an arrow passes a layer; a cycle has one arrow going back.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

from accord.core.clock import time_of
from accord.core.frozen import Frozen
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

BOX_WIDTH, BOX_HEIGHT = 250, 76
BEND_HEIGHT = 12
GAP_X, GAP_Y = 76, 22
MARGIN = 24
"""Pixels of a dependency graph."""


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


class Chart(Frozen):
    """Values by period."""

    title: str
    unit: str  # of the values
    note: str  # the rule by which they count
    starts: Sequence[date]  # of the periods
    series: Mapping[str, Sequence[float]]  # one value for each period
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

    def text_of(self, value: float) -> str:
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
                    text = f"{start}: {self.text_of(values[i])} {name}"
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


def dollars_text(dollars: float | None) -> str:
    """Return US dollars in words; empty for None."""
    return f"{dollars:.2f} US dollars" if dollars is not None else ""


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


class Drawing(NamedTuple):
    """The upper left corners of nodes, arrows (blocker, blocked, SVG path), and the size of the sheet."""

    boxes: Mapping[int, tuple[float, float]]
    arrows: Sequence[tuple[int, int, str]]
    width: float
    height: float


_Slot = int | tuple[int, int, int]
"""A node, or the bend (blocker, blocked, layer) of an arrow that passes a layer."""


def draw_graph(edges: Iterable[tuple[int, int]]) -> Drawing:
    """Place the nodes of ``edges`` (blocker, blocked) and the arrows."""
    pairs = sorted(set(edges))
    layers = graph_layers(pairs)
    slots: dict[_Slot, int] = dict(layers.items())
    chains: list[list[_Slot]] = []
    before: dict[_Slot, list[_Slot]] = defaultdict(list)
    for blocker, blocked in pairs:
        bends = [(blocker, blocked, layer) for layer in range(layers[blocker] + 1, layers[blocked])]
        slots |= {bend: bend[2] for bend in bends}
        chains.append([blocker, *bends, blocked])
        for left, right in pairwise(chains[-1]):
            before[right].append(left)
    middles = _middles(slots, before)
    top = min(middles.values(), default=0.0) - BOX_HEIGHT / 2 - MARGIN
    middles = {slot: middle - top for slot, middle in middles.items()}
    boxes = {key: (_x(layer), middles[key] - BOX_HEIGHT / 2) for key, layer in layers.items()}
    arrows = [(*pair, _path(chain, slots, middles)) for pair, chain in zip(pairs, chains, strict=True)]
    width = max((x + BOX_WIDTH for x, _ in boxes.values()), default=0.0) + MARGIN
    height = max((middle + BOX_HEIGHT / 2 for middle in middles.values()), default=0.0) + MARGIN
    return Drawing(boxes, arrows, width, height)


def longest_path(edges: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return the longest chain of nodes of which each blocks the next; the first of several, empty without edges."""
    pairs = sorted(set(edges))
    layers = graph_layers(pairs)
    blockers: dict[int, list[int]] = defaultdict(list)
    for blocker, blocked in pairs:
        blockers[blocked].append(blocker)
    last = max(sorted(layers), key=lambda node: layers[node], default=None)
    chain: list[int] = []
    while last is not None:
        chain.append(last)
        above = [node for node in blockers[last] if layers[node] == layers[last] - 1]
        last = min(above, default=None)
    return tuple(reversed(chain))


def graph_groups(edges: Iterable[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return the edges by connected group: the largest first, then by their least node."""
    pairs = sorted(set(edges))
    group = {node: node for pair in pairs for node in pair}

    def group_of(node: int) -> int:
        while group[node] != node:
            group[node] = group[group[node]]
            node = group[node]
        return node

    for left, right in pairs:
        first, second = sorted((group_of(left), group_of(right)))
        group[second] = first
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for pair in pairs:
        found[group_of(pair[0])].append(pair)
    return sorted(found.values(), key=lambda grouped: (-len(grouped), grouped[0]))


def graph_layers(pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return each node's layer: one more than its deepest blocker's; an edge that closes a cycle does not count."""
    blockers: dict[int, list[int]] = {}
    for blocker, blocked in pairs:
        blockers.setdefault(blocker, [])
        blockers.setdefault(blocked, []).append(blocker)
    depth: dict[int, int] = {}
    for start in blockers:
        stack, open_nodes = [start], set[int]()
        while stack:
            node = stack[-1]
            open_nodes.add(node)
            waiting = [key for key in blockers[node] if key not in depth and key not in open_nodes]
            if waiting and node not in depth:
                stack.append(waiting[0])
                continue
            stack.pop()
            depth.setdefault(node, 1 + max((depth[key] for key in blockers[node] if key in depth), default=-1))
    return depth


def _middles(slots: Mapping[_Slot, int], before: Mapping[_Slot, Sequence[_Slot]]) -> dict[_Slot, float]:
    """Return the height of each slot's middle; a layer is sorted by the mean of the slots that lead to its own."""
    columns: dict[int, list[_Slot]] = defaultdict(list)
    for slot, layer in slots.items():
        columns[layer].append(slot)
    middles: dict[_Slot, float] = {}
    for _, column in sorted(columns.items()):
        means = {slot: fmean(middles.get(left, 0.0) for left in before.get(slot) or [slot]) for slot in column}
        heights = {slot: BOX_HEIGHT if isinstance(slot, int) else BEND_HEIGHT for slot in column}
        y = -(sum(heights.values()) + GAP_Y * (len(column) - 1)) / 2
        for slot in sorted(column, key=lambda slot: means[slot]):
            middles[slot] = y + heights[slot] / 2
            y += heights[slot] + GAP_Y
    return middles


def _x(layer: int) -> float:
    return MARGIN + layer * (BOX_WIDTH + GAP_X)


def _path(chain: Sequence[_Slot], slots: Mapping[_Slot, int], middles: Mapping[_Slot, float]) -> str:
    x, y = _x(slots[chain[0]]) + BOX_WIDTH, middles[chain[0]]
    parts = [f"M{x:.0f} {y:.1f}"]
    for slot in chain[1:]:
        left, level = _x(slots[slot]), middles[slot]
        bow = GAP_X / 2 if left > x else GAP_X
        parts.append(f"C{x + bow:.0f} {y:.1f} {left - bow:.0f} {level:.1f} {left:.0f} {level:.1f}")
        x, y = left, level
        if not isinstance(slot, int):
            x += BOX_WIDTH
            parts.append(f"L{x:.0f} {y:.1f}")
    return " ".join(parts)
