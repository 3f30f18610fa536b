"""Dependency graphs over positions: a stable order to create things in, cycles to show, and who waits for whom."""

from __future__ import annotations

import heapq
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def find_cycle(blockers: Mapping[int, Sequence[int]]) -> list[int]:
    """Return one cycle as positions, each blocked by the next and the last by the first; empty without a cycle."""
    try:
        TopologicalSorter(blockers).prepare()
    except CycleError as error:
        cycle: list[int] = error.args[1]
        return cycle[:0:-1]
    return []


def dependency_order(blockers: Mapping[int, Sequence[int]]) -> list[int]:
    """Order positions so that blockers come first, then the lowest. All positions are keys; a cycle is not allowed."""
    sorter = TopologicalSorter(blockers)
    sorter.prepare()
    ready: list[int] = []
    order: list[int] = []
    while sorter.is_active():
        for position in sorter.get_ready():
            heapq.heappush(ready, position)
        position = heapq.heappop(ready)
        order.append(position)
        sorter.done(position)
    return order


def ancestors(blockers: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Map each position to all it waits for, directly or not, as a bit mask; a set would be large. No cycle allowed."""
    masks: dict[int, int] = {}
    for position in dependency_order(blockers):
        mask = 0
        for blocker in blockers[position]:
            mask |= masks[blocker] | (1 << blocker)
        masks[position] = mask
    return masks
