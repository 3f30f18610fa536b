"""A clock for tests."""

from datetime import datetime, timedelta


class ManualClock:
    """A clock that only sleeping moves."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """Return the time at which the clock stands."""
        return self._now

    def monotonic(self) -> float:
        """Return the same time in seconds."""
        return self._now.timestamp()

    def sleep(self, seconds: float) -> None:
        """Pass the time at once."""
        self._now += timedelta(seconds=seconds)
