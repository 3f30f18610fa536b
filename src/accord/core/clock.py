"""Time as a dependency: clocks, timestamps, and attempts with pauses between them. A test decides every one."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Protocol

_MARK = re.compile("[.,]")
_FRACTION = re.compile(r"(?:[0-9]{2}:?){2}[0-9]{2}[.,][0-9]{1,6}([0-9]*)(?=[Z+-])")


class Clock(Protocol):
    """The source of time and of waiting."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start; setting the date does not change them."""

    def sleep(self, seconds: float) -> None:
        """Wait this many seconds."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the machine's current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds of the machine's monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Block this thread."""
        time.sleep(seconds)


def timestamp(moment: datetime) -> str:
    """Write a timestamp as every contract and GitHub do: ISO-8601, UTC, whole seconds, ``Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> datetime:
    """Read an ISO-8601 timestamp with an offset (``Z`` or ``+01:00``) as UTC. Raises ValueError for other texts."""
    if len(_MARK.split(text)) > 1 + bool(_FRACTION.search(text)):  # Python misreads fractions of hours and bad digits
        raise ValueError(f"{text!r} has a fraction that is not one of seconds")
    moment = datetime.fromisoformat(text.replace(",", "."))
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is outside of the years 1 to 9999 in UTC") from None


def time_in_range(moment: datetime) -> datetime:
    """Return a time that leaves space to calculate with it. Raises ValueError with a hint for another."""
    if not 1970 <= moment.year < 9000:
        raise ValueError("The value is not a time between 1970 and 9000", "Write one such as 2026-11-22T05:00:00Z.")
    return moment


def time_of(text: str | None) -> datetime | None:
    """Read an ISO-8601 timestamp with an offset; None for any other text."""
    try:
        return parse_timestamp(text) if text else None
    except ValueError:
        return None


def exact_time(text: str | None) -> tuple[datetime, str] | None:
    """Read a timestamp like ``time_of``, with the digits beyond microseconds, by which two of them also compare."""
    moment, fraction = time_of(text), _FRACTION.search(text or "")
    return (moment, fraction[1].rstrip("0") if fraction else "") if moment else None


CLOCKS_DIFFER = timedelta(minutes=10)
"""How far in the future a timestamp may lie, since clocks differ. Later ones are wrong."""


def future_problem(moment: datetime | None, now: datetime) -> str:
    """Return a sentence about a time in the future; empty for any other time."""
    return f"{timestamp(moment)} is in the future." if moment and moment > now + CLOCKS_DIFFER else ""


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(moment: datetime, entropy: int | None = None) -> str:
    """Return a ULID: 48 bits of milliseconds and 80 of chance, as 26 letters. Source: github.com/ulid/spec."""
    chance = int.from_bytes(os.urandom(10)) if entropy is None else entropy
    number = (int(moment.timestamp() * 1000) << 80) | chance
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def attempts(clock: Clock, pauses: Iterable[float]) -> Iterator[int]:
    """Yield 0 at once, then sleep for each pause (seconds) and yield the number of the next attempt."""
    yield 0
    for number, seconds in enumerate(pauses, 1):
        clock.sleep(seconds)
        yield number


def doubling_pauses(first: float, count: int) -> Iterator[float]:
    """Return ``count`` pauses in seconds, each twice as long as the one before."""
    return (first * 2**i for i in range(count))
