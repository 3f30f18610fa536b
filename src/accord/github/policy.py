"""What to do with GitHub's answer to a request: take it, wait, send again, give up, or report that it is lost. Pure.

Reads and requests that set a state are sent again when their answer is lost; a POST is not, because it may have been
carried out: GitHub creates the same issue twice without a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from accord.github.limits import SECONDARY_WAIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

TRIES = 5
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request as it ended. ``status`` 0: no answer at all; ``is_whole``: the answer could be read to its end."""

    method: str
    tries: int
    status: int
    headers: Mapping[str, str]
    message: str
    is_whole: bool
    now: float


class Step(Enum):
    """What follows an attempt."""

    TAKE = auto()
    REPEAT = auto()
    WAIT_FOR_LIMIT = auto()
    LOST = auto()
    GIVE_UP = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Ruling:
    """The next step, and how many seconds to wait before it."""

    step: Step
    seconds: float = 0.0


def judge(attempt: Attempt) -> Ruling:
    """Decide on one attempt (GitHub documentation, "Best practices for using the REST API", "Handle rate limits")."""
    limit = _rate_limit_wait(attempt)
    if limit is not None:
        return Ruling(Step.WAIT_FOR_LIMIT, limit)
    if attempt.status == 0 or attempt.status >= 500 or (attempt.status < 300 and not attempt.is_whole):
        if attempt.method == "POST":
            return Ruling(Step.LOST)
        if attempt.tries >= TRIES:
            return Ruling(Step.GIVE_UP)
        return Ruling(Step.REPEAT, backoff(attempt.tries))
    return Ruling(Step.TAKE if attempt.status < 300 else Step.REFUSED)


def backoff(tries: int) -> float:
    """Seconds to wait after so many tries: 1, 2, 4, … up to 30."""
    return float(min(FIRST_BACKOFF_SECONDS * 2 ** min(tries - 1, 10), LONGEST_BACKOFF_SECONDS))


def _rate_limit_wait(attempt: Attempt) -> float | None:
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
