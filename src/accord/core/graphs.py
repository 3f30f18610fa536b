"""Draw a dependency graph: layers by longest path, and bends where an arrow passes a layer.

A cycle has one arrow going back. All lengths are pixels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

WIDTH, HEIGHT = 250, 76
BEND_HEIGHT = 12
GAP_X, GAP_Y = 76, 22
MARGIN = 24


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
    top = min(middles.values(), default=0.0) - HEIGHT / 2 - MARGIN
    middles = {slot: middle - top for slot, middle in middles.items()}
    boxes = {key: (_x(layer), middles[key] - HEIGHT / 2) for key, layer in layers.items()}
    arrows = [(*pair, _path(chain, slots, middles)) for pair, chain in zip(pairs, chains, strict=True)]
    width = max((x + WIDTH for x, _ in boxes.values()), default=0.0) + MARGIN
    height = max((middle + HEIGHT / 2 for middle in middles.values()), default=0.0) + MARGIN
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
        heights = {slot: HEIGHT if isinstance(slot, int) else BEND_HEIGHT for slot in column}
        y = -(sum(heights.values()) + GAP_Y * (len(column) - 1)) / 2
        for slot in sorted(column, key=lambda slot: means[slot]):
            middles[slot] = y + heights[slot] / 2
            y += heights[slot] + GAP_Y
    return middles


def _x(layer: int) -> float:
    return MARGIN + layer * (WIDTH + GAP_X)


def _path(chain: Sequence[_Slot], slots: Mapping[_Slot, int], middles: Mapping[_Slot, float]) -> str:
    x, y = _x(slots[chain[0]]) + WIDTH, middles[chain[0]]
    parts = [f"M{x:.0f} {y:.1f}"]
    for slot in chain[1:]:
        left, level = _x(slots[slot]), middles[slot]
        bow = GAP_X / 2 if left > x else GAP_X
        parts.append(f"C{x + bow:.0f} {y:.1f} {left - bow:.0f} {level:.1f} {left:.0f} {level:.1f}")
        x, y = left, level
        if not isinstance(slot, int):
            x += WIDTH
            parts.append(f"L{x:.0f} {y:.1f}")
    return " ".join(parts)
