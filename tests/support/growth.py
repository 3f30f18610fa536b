"""How the time of some work grows with its size: a ratio, since seconds say little on a busy machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from support.rotation import NIGHTLY

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 8
"""Times as long that four times the size may take: linear work takes 4 times as long, quadratic work 16 times."""

DOUBTFUL = 6
"""Times as long that are measured again."""


def seconds_for(work: Callable[[int], object], size: int) -> float:
    """Return the CPU seconds of this thread that work of a size takes."""
    began = time.thread_time()
    work(size)
    return time.thread_time() - began


def grows_too_fast(work: Callable[[int], object], size: int, *, noticed: float | None = None) -> bool:
    """Return whether work takes far longer than in proportion to its size.

    ``work`` is done for ``size`` and for a quarter of it, unless it takes less than ``noticed`` seconds. Where
    the first two times leave a doubt, the shortest of three counts: other processes slow one down, seldom all.
    Without ``noticed``, half a second counts; by day a quarter of the size, for which quadratic work takes a sixteenth.
    """
    if noticed is None:
        size, noticed = (size, 0.5) if NIGHTLY else (size // 4, 0.5 / 16)
    whole = seconds_for(work, size)
    if whole < noticed or whole < DOUBTFUL * seconds_for(work, size // 4):
        return False
    most = MOST * min(seconds_for(work, size // 4) for _ in range(3))
    return whole > most and min(seconds_for(work, size), seconds_for(work, size)) > most
