"""Keeping inside GitHub's secondary rate limits by counting, instead of sleeping before every request.

The documented limits are windows: points a minute, content-creating requests a minute and an hour. A burst inside
them costs no wait at all; only the request that would break one waits until it would not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from accord.github.limits import (
    CONTENT_PER_HOUR,
    CONTENT_PER_MINUTE,
    POINTS_PER_MINUTE,
    READ_POINTS,
    SECONDARY_WAIT_SECONDS,
    WRITE_POINTS,
)

MINUTE = 60.0
HOUR = 3600.0


@dataclass
class _Window:
    """The points spent in the last ``seconds``, against a limit."""

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


class Pacer:
    """The windows of one token, as far as this process fills them, and the seconds waited for limits.

    ``processes`` use the token at the same time: each keeps to its part of the limits.
    """

    def __init__(self, processes: int = 1) -> None:
        self.waited = 0.0
        points = max(POINTS_PER_MINUTE // processes, WRITE_POINTS)
        per_minute, per_hour = (max(limit // processes, 1) for limit in (CONTENT_PER_MINUTE, CONTENT_PER_HOUR))
        self._windows = (_Window(points, MINUTE), _Window(per_minute, MINUTE), _Window(per_hour, HOUR))

    def wait(self, now: float, *, is_write: bool, creates_content: bool) -> float:
        """Seconds until such a request keeps all limits; ``now`` in seconds on any steady clock."""
        costs = _costs(is_write, creates_content)
        return max(window.wait(now, cost) if cost else 0.0 for window, cost in zip(self._windows, costs, strict=True))

    def spend(self, now: float, *, is_write: bool, creates_content: bool) -> None:
        """Count a request that is sent now."""
        for window, cost in zip(self._windows, _costs(is_write, creates_content), strict=True):
            if cost:
                window.spent.append((now, cost))
                window.total += cost


def _costs(is_write: bool, creates_content: bool) -> tuple[int, int, int]:
    return (WRITE_POINTS if is_write else READ_POINTS, int(creates_content), int(creates_content))


def estimate_seconds(content: int, others: int, *, latency: float = 0.5) -> float:
    """Return the seconds for so many requests that create content, and other writes, with answers after ``latency``."""
    pacer, now = Pacer(), 0.0
    for i in range(content + others):
        now += pacer.wait(now, is_write=True, creates_content=i < content)
        pacer.spend(now, is_write=True, creates_content=i < content)
        now += latency
    return now


TRIES = 5
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 30.0


class RequestAttempt(NamedTuple):
    """One request as it ended."""

    method: str
    tries: int
    status: int  # 0: no answer at all
    headers: Mapping[str, str]
    message: str
    is_whole: bool  # the answer could be read to its end
    now: float


NextStep = Literal["take", "repeat", "wait-for-limit", "lost", "give-up", "refused"]
"""The consequence of an attempt."""


class Ruling(NamedTuple):
    """The next step, and how many seconds to wait before it."""

    step: NextStep
    seconds: float = 0.0


def judge(attempt: RequestAttempt) -> Ruling:
    """Decide on one attempt (GitHub documentation, "Best practices for using the REST API", "Handle rate limits")."""
    limit = _rate_limit_wait(attempt)
    if limit is not None:
        return Ruling("wait-for-limit", limit)
    if attempt.status == 0 or attempt.status >= 500 or (attempt.status < 300 and not attempt.is_whole):
        if attempt.method == "POST":
            return Ruling("lost")
        if attempt.tries >= TRIES:
            return Ruling("give-up")
        return Ruling("repeat", backoff(attempt.tries))
    return Ruling("take" if attempt.status < 300 else "refused")


def backoff(tries: int) -> float:
    """Seconds to wait after so many tries: 1, 2, 4, … up to 30."""
    return float(min(FIRST_BACKOFF_SECONDS * 2 ** min(tries - 1, 10), LONGEST_BACKOFF_SECONDS))


def _rate_limit_wait(attempt: RequestAttempt) -> float | None:
    """Seconds that a rate limit asks for; None when the answer is about no rate limit.

    A 403 is also how GitHub says no for good: only its headers or its words tell the two apart.
    """
    if attempt.status not in (403, 429):
        return None
    after = attempt.headers.get("retry-after", "")
    if after.isdecimal():
        return max(float(after), backoff(attempt.tries))
    reset = attempt.headers.get("x-ratelimit-reset", "")
    if attempt.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return max(float(reset) - attempt.now, 0.0) + 1.0
    says_limit = "rate limit" in attempt.message.lower() or "abuse detection" in attempt.message.lower()
    if attempt.status == 429 or says_limit:
        return float(SECONDARY_WAIT_SECONDS * 2 ** min(attempt.tries - 1, 10))
    return None
