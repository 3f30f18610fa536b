"""One loop for everything that is tried again: attempts with pauses between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from accord.core.clock import Clock


def attempts(clock: Clock, pauses: Iterable[float]) -> Iterator[int]:
    """Yield 0 at once, then sleep for each pause (seconds) and yield the number of the next attempt.

    The caller returns or breaks on success; a loop that runs out has tried ``len(pauses) + 1`` times.
    """
    yield 0
    for number, seconds in enumerate(pauses, 1):
        clock.sleep(seconds)
        yield number


def doubling(first: float, count: int) -> Iterator[float]:
    """Return ``count`` pauses in seconds, each twice as long as the one before."""
    return (first * 2**i for i in range(count))
