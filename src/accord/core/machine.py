"""State machines as tables of states, edges and conditions on edges; next moves; orders and cycles in graphs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean

MachineFacts = TypeVar("MachineFacts")
GraphNode = TypeVar("GraphNode", bound=Hashable)


class Edge(Frozen, Generic[MachineFacts]):
    """A legal move."""

    source: str
    target: str
    needs: str = ""  # what the guard asks, for people
    guard: Callable[[MachineFacts], str] | None = None  # returns why the facts forbid it, or an empty string


class Machine(Frozen, Generic[MachineFacts]):
    """A named table of edges."""

    name: str
    start: str  # where new things begin
    end: frozenset[str]  # where nothing leads on
    edges: tuple[Edge[MachineFacts], ...]

    @property
    def states(self) -> tuple[str, ...]:
        """All states, in the order in which the edges name them first."""
        return tuple(dict.fromkeys(state for edge in self.edges for state in (edge.source, edge.target)))

    def targets(self, source: str) -> tuple[str, ...]:
        """The states that can be reached from ``source`` in one move."""
        return tuple(edge.target for edge in self.edges if edge.source == source)

    def refusal(self, source: str, target: str, facts: MachineFacts) -> str:
        """Say why the move is illegal, naming the legal ones; an empty string when it may be made."""
        for edge in self.edges:
            if (edge.source, edge.target) == (source, target):
                return edge.guard(facts) if edge.guard else ""
        if target not in self.states:
            fix = did_you_mean(target, self.states) or f"States: {', '.join(self.states)}."
            return f"Unknown state `{target}` of the {self.name}. {fix}"
        legal = ", ".join(self.targets(source)) or "none, it is final"
        return f'"{source}" does not lead to "{target}". Legal moves from "{source}": {legal}.'

    def mermaid(self) -> str:
        """Draw the machine as a Mermaid state diagram."""

        def name(state: str) -> str:
            return state.replace("-", "_")

        lines = ["stateDiagram-v2", f"    [*] --> {name(self.start)}"]
        lines += [f"    {name(state)} : {state}" for state in self.states if name(state) != state]
        for edge in self.edges:
            label = f" : {edge.needs}" if edge.needs else ""
            lines.append(f"    {name(edge.source)} --> {name(edge.target)}{label}")
        lines += [f"    {name(state)} --> [*]" for state in self.states if state in self.end]
        return "\n".join(lines)


class Need(Frozen):
    """One requirement of a move: a sentence for its refusal, its short form, and a name for the way to get it.

    Without the short form, a command says it in its own words.
    """

    text: str
    missing: str = ""
    key: str = ""


class NextMove(Frozen):
    """A move to a state or status."""

    to: str
    missing: tuple[str, ...]  # files, reviews or answers that the move still needs; empty when it is legal now
    command: str  # to type next: the move itself, or the command for the first of what is missing or comes before


def moves_to_json(moves: Iterable[NextMove]) -> list[dict[str, Any]]:
    """Return the value of ``next_moves`` in a JSON document."""
    return [{"to": move.to, "missing": list(move.missing), "command": move.command} for move in moves]


def move_lines(moves: Iterable[NextMove]) -> list[str]:
    """Return the lines that end a command's text, legal moves first; none for an end state."""
    ordered = sorted(moves, key=lambda move: bool(move.missing))
    lines = ["Next:"] if ordered else []
    for move in ordered:
        needs = f" (needs {', '.join(move.missing)})" if move.missing else ""
        lines += [f"  {move.to}{needs}", f"    {move.command}"]
    return lines


def find_cycle(blockers: Mapping[GraphNode, Iterable[GraphNode]]) -> list[GraphNode]:
    """Return one cycle of a graph, each node blocked by the next and the last by the first; empty without a cycle."""
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(blockers).prepare()
    except CycleError as error:
        cycle: list[GraphNode] = error.args[1]
        return cycle[:0:-1]
    return []


def dependency_order(blockers: Mapping[int, Sequence[int]]) -> list[int]:
    """Order positions so that blockers come first, then the lowest. All positions are keys; a cycle is not allowed."""
    import heapq
    from graphlib import TopologicalSorter

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
