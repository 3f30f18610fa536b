"""Keeping inside GitHub's secondary rate limits by counting, instead of sleeping before every request.

The documented limits are windows: points a minute, content-creating requests a minute and an hour. A burst inside
them costs no wait at all; only the request that would break one waits until it would not.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from accord.github.limits import (
    CONTENT_PER_HOUR,
    CONTENT_PER_MINUTE,
    POINTS_PER_MINUTE,
    READ_POINTS,
    WRITE_POINTS,
)

MINUTE = 60.0
HOUR = 3600.0


@dataclass
class _Window:
    """What was spent in the last ``seconds``, against a limit."""

    limit: int
    seconds: float
    spent: deque[tuple[float, int]] = field(default_factory=deque)
    total: int = 0

    def wait(self, now: float, cost: int) -> float:
        while self.spent and self.spent[0][0] <= now - self.seconds:
            self.total -= self.spent.popleft()[1]
        excess = self.total + cost - self.limit
        for moment, part in self.spent:
            if excess <= 0:
                return 0.0
            excess -= part
            if excess <= 0:
                return moment + self.seconds - now
        return 0.0

    def spend(self, now: float, cost: int) -> None:
        if cost:
            self.spent.append((now, cost))
            self.total += cost


class Pacer:
    """The windows of one token, as far as this process fills them."""

    def __init__(self) -> None:
        self._points = _Window(POINTS_PER_MINUTE, MINUTE)
        self._content = (_Window(CONTENT_PER_MINUTE, MINUTE), _Window(CONTENT_PER_HOUR, HOUR))

    def wait(self, now: float, *, is_write: bool, creates_content: bool) -> float:
        """Seconds until such a request keeps all limits; ``now`` in seconds on any steady clock."""
        waits = [self._points.wait(now, WRITE_POINTS if is_write else READ_POINTS)]
        if creates_content:
            waits += [window.wait(now, 1) for window in self._content]
        return max(waits)

    def spend(self, now: float, *, is_write: bool, creates_content: bool) -> None:
        """Count a request that is sent now."""
        self._points.spend(now, WRITE_POINTS if is_write else READ_POINTS)
        if creates_content:
            for window in self._content:
                window.spend(now, 1)


def estimate_seconds(content: int, others: int, *, latency: float = 0.5) -> float:
    """Rehearse so many content-creating requests and other writes on a clock of its own; return how long they take.

    ``latency`` is what an answer takes, in seconds.
    """
    pacer = Pacer()
    now = 0.0
    for i in range(content + others):
        creates = i < content
        now += pacer.wait(now, is_write=True, creates_content=creates)
        pacer.spend(now, is_write=True, creates_content=creates)
        now += latency
    return now
