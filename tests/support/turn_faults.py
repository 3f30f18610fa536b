"""One phase of a turn, begun from the same state again and again, with an accident at each of its requests."""

from collections.abc import Callable, Sequence
from typing import Any

from support.rotation import NIGHTLY, in_turns
from support.stage import Stage
from support.turns import Turns

Phase = tuple[Callable[[Turns], Any], Callable[[Turns], Any]]


class Case:
    """One phase, begun from the same state again and again."""

    def __init__(self, stage: Stage, phase: Phase, turns: type[Turns] = Turns) -> None:
        stage.reset()
        self.turns = turns(stage)
        prepare, self.act = phase
        prepare(self.turns)
        self.put_back = stage.keep()
        stage.server.requests.clear()
        self.act(self.turns)
        reads = [method == "GET" or path.endswith("/git-upload-pack") for method, path, _ in stage.server.requests]
        self.count = len(reads)
        self.writes = [nth for nth, is_read in enumerate(reads, 1) if not is_read]
        self.reads = [nth for nth, is_read in enumerate(reads, 1) if is_read]
        self.clean = self.turns.seen()
        self.starts = len(self.turns.dispatches)
        assert self.act(self.turns).context.github.requests.write == 0

    @property
    def losses(self) -> list[tuple[int, str]]:
        """Each write with how the connection is lost there: before or after GitHub carried it out.

        A loss at a read leaves what a loss before the next write leaves.
        """
        reads = [(nth, "lost-after") for nth in self.reads if NIGHTLY]
        return reads + [(nth, kind) for nth in self.writes for kind in in_turns(nth, ("lost-before", "lost-after"))]

    def accidents(self, kinds: Sequence[str]) -> list[tuple[int, str]]:
        """Return each accident with a write that meets it, in turns from phase to phase; nightly every request."""
        if NIGHTLY:
            return [(nth, kind) for nth in range(1, self.count + 1) for kind in kinds]
        return [(self.writes[(self.count + i) % len(self.writes)], kind) for i, kind in enumerate(kinds)]

    def is_as_if_nothing_had_happened(self, nth: int) -> None:
        """Its end is that of a clean run, and each workflow was started once: one that was started is found again."""
        assert self.turns.seen() == self.clean, nth
        assert len(self.turns.dispatches) == self.starts, nth
        assert self.act(self.turns).context.github.requests.write == 0, nth
