"""The dependency graph as a drawing: layers from left to right, every arrow from a blocker to what it blocks.

A layered drawing in the manner of Sugiyama: layer by longest path, bend points where an arrow passes a layer, order by
the mean of the neighbours. Cycles are drawn too, with one arrow going back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WIDTH, HEIGHT = 250, 76
BEND_HEIGHT = 12
GAP_X, GAP_Y = 76, 22
MARGIN = 24
SWEEPS = 8


@dataclass(frozen=True)
class Box:
    """A placed node; ``x`` and ``y`` are its upper left corner."""

    key: int
    x: float
    y: float


@dataclass(frozen=True)
class Arrow:
    """A placed edge as an SVG path."""

    blocker: int
    blocked: int
    path: str


@dataclass(frozen=True)
class Drawing:
    """Everything placed, and the size of the sheet."""

    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    width: float
    height: float


@dataclass
class _Slot:
    """A node, or (``key`` None) the bend of an arrow that passes its layer."""

    key: int | None
    layer: int
    order: float = 0.0
    y: float = 0.0
    before: list[_Slot] = field(default_factory=list)
    after: list[_Slot] = field(default_factory=list)

    @property
    def height(self) -> int:
        return BEND_HEIGHT if self.key is None else HEIGHT


def draw_graph(edges: Iterable[tuple[int, int]]) -> Drawing:
    """Place the nodes of ``edges`` (blocker, blocked)."""
    pairs = sorted(set(edges))
    layers_of = _layers(pairs)
    nodes = {key: _Slot(key, layer) for key, layer in layers_of.items()}
    chains = [(pair, _chain(nodes[pair[0]], nodes[pair[1]])) for pair in pairs]
    places = [*nodes.values(), *(bend for _, chain in chains for bend in chain[1:-1])]
    layers = _ordered(places)
    height = max((_height(layer) for layer in layers), default=0.0)
    for layer in layers:
        top = MARGIN + (height - _height(layer)) / 2
        for place in layer:
            place.y = top
            top += place.height + GAP_Y
    boxes = [Box(key, _x(place.layer), place.y) for key, place in nodes.items()]
    arrows = [Arrow(*pair, path=_path(chain)) for pair, chain in chains]
    width = max((box.x + WIDTH for box in boxes), default=0.0) + MARGIN
    return Drawing(boxes, arrows, width, height + 2 * MARGIN)


def _layers(pairs: Sequence[tuple[int, int]]) -> Mapping[int, int]:
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


def _chain(start: _Slot, end: _Slot) -> list[_Slot]:
    """Join two places through a bend in each layer between them."""
    bends = [_Slot(None, layer) for layer in range(start.layer + 1, end.layer)]
    chain = [start, *bends, end]
    if start.layer < end.layer:
        for left, right in pairwise(chain):
            left.after.append(right)
            right.before.append(left)
    return chain


def _ordered(places: Sequence[_Slot]) -> list[list[_Slot]]:
    """Sort each layer so that few arrows cross."""
    layers: list[list[_Slot]] = [[] for _ in range(1 + max((place.layer for place in places), default=-1))]
    for place in places:
        layers[place.layer].append(place)
    for layer in layers:
        _number(layer)
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for layer in layers if forward else reversed(layers):
            means = {id(place): _mean(place.before if forward else place.after, place.order) for place in layer}
            layer.sort(key=lambda place: means[id(place)])
            _number(layer)
    return layers


def _number(layer: Sequence[_Slot]) -> None:
    middle = (len(layer) - 1) / 2
    for index, place in enumerate(layer):
        place.order = index - middle


def _mean(neighbours: Sequence[_Slot], default: float) -> float:
    return sum(place.order for place in neighbours) / len(neighbours) if neighbours else default


def _height(layer: Sequence[_Slot]) -> float:
    return sum(place.height for place in layer) + GAP_Y * (len(layer) - 1)


def _x(layer: int) -> float:
    return MARGIN + layer * (WIDTH + GAP_X)


def _path(chain: Sequence[_Slot]) -> str:
    start = chain[0]
    x, y = _x(start.layer) + WIDTH, start.y + start.height / 2
    parts = [f"M{x:.0f} {y:.1f}"]
    for place in chain[1:]:
        left, level = _x(place.layer), place.y + place.height / 2
        bow = GAP_X / 2 if left > x else GAP_X
        parts.append(f"C{x + bow:.0f} {y:.1f} {left - bow:.0f} {level:.1f} {left:.0f} {level:.1f}")
        x, y = left, level
        if place.key is None:
            x += WIDTH
            parts.append(f"L{x:.0f} {y:.1f}")
    return " ".join(parts)
