"""Being told to stop, as a fact to look at: what an agent run leaves behind is written all the same."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""A runner that cancels a job sends SIGINT, 7.5 seconds later SIGTERM, and 2.5 seconds later it kills."""


@dataclass
class Told:
    """How often this process was told to stop."""

    times: int = 0

    def __bool__(self) -> bool:
        return self.times > 0


@contextmanager
def listening() -> Iterator[Told]:
    """Count the signals that ask this process to stop, instead of ending it; the third ends it as before."""
    told = Told()
    if threading.current_thread() is not threading.main_thread():
        yield told
        return
    before: dict[int, Any] = {}

    def note(number: int, frame: Any) -> None:
        told.times += 1
        if told.times > len(SIGNALS) and callable(before[number]):
            before[number](number, frame)

    before |= {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
