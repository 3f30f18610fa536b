"""The history of a loop as NDJSON: one line a run, for artifacts and for whoever counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.kernel.kinds import Kind
from accord.loops.models import Closed, Iteration, LoopName

if TYPE_CHECKING:
    from collections.abc import Iterable


class HistoryLine(Closed):
    """One run of a loop; the one schema of all lines."""

    version: int = 1
    pull: int
    loop: LoopName
    iteration: Iteration


def write_history(pull: int, loop: LoopName, iterations: Iterable[Iteration]) -> str:
    """Write one line a run, oldest first."""
    lines = (HistoryLine(pull=pull, loop=loop, iteration=iteration) for iteration in iterations)
    return "".join(line.model_dump_json() + "\n" for line in lines)


def _is_there(value: Any) -> bool:
    return value is not None


LINE = Kind("loop-history", HistoryLine, lambda _: [], {"loop": _is_there, "iteration": _is_there})
