"""Rate limits: how much a token has used, and the refusals when it is too much.

Counted in memory by each serving process. Source of numbers and answers:
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord_sandbox.responses import ApiResponse, Refusal

if TYPE_CHECKING:
    from accord_sandbox.calls import Actor, Call, RateLimits

HOUR = 3600.0
MINUTE = 60.0
READ_POINTS = 1
WRITE_POINTS = 5
DOCS = "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"
SECONDARY_DOCS = f"{DOCS}#about-secondary-rate-limits"
SECONDARY_MESSAGE = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. "
    "If you reach out to GitHub Support for help, please include the request ID."
)


@dataclass(frozen=True)
class Load:
    """What one request weighs: its resource (core or search), points, and whether it creates content."""

    resource: str
    points: int
    creates: bool = False


@dataclass
class _UsageWindow:
    """A span of time with a budget, both starting with the first request in it."""

    limit: int
    seconds: float
    start: float
    used: int = 0

    @property
    def reset(self) -> float:
        return self.start + self.seconds

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    def overview(self) -> dict[str, int]:
        return {
            "limit": self.limit,
            "used": min(self.used, self.limit),
            "remaining": self.remaining,
            "reset": math.ceil(self.reset),
        }


class Meter:
    """The counters of all tokens."""

    def __init__(self, limits: RateLimits | None) -> None:
        self._limits = limits
        self._windows: dict[tuple[str, str], _UsageWindow] = {}

    def clear(self) -> None:
        """Forget what was used."""
        self._windows.clear()

    def check(self, actor: Actor | None, load: Load, now: float) -> None:
        """Refuse a request over a limit, before anything of it is done."""
        if self._limits is None:
            return
        primary = self._window(actor, load.resource, now)
        if primary.remaining == 0:
            raise primary_refusal(actor, math.ceil(primary.reset), load.resource, primary.limit)
        for name, cost in self._secondary(load):
            window = self._window(actor, name, now)
            if window.used + cost > window.limit:
                raise secondary_refusal(403, max(1, math.ceil(window.reset - now)))

    def count(self, actor: Actor | None, load: Load, now: float, *, free: bool) -> None:
        """Book a request that was let through; ``free`` ones (304) cost no primary budget."""
        if self._limits is None:
            return
        if not free:
            self._window(actor, load.resource, now).used += 1
        for name, cost in self._secondary(load):
            self._window(actor, name, now).used += cost

    def headers(self, actor: Actor | None, resource: str, now: float) -> dict[str, str]:
        """Return the x-ratelimit-* headers for the resource as it stands."""
        if self._limits is None:
            return {}
        overview = self._window(actor, resource, now).overview()
        return {f"x-ratelimit-{name}": str(value) for name, value in overview.items()} | {
            "x-ratelimit-resource": resource
        }

    def overview(self, actor: Actor | None, now: float) -> dict[str, Any]:
        """Return the document of GET /rate_limit; a 404 where limits are off, as on GHES."""
        if self._limits is None:
            raise Refusal(404, "Rate limiting is not enabled.")
        resources = {name: self._window(actor, name, now).overview() for name in ("core", "search")}
        return {"resources": resources, "rate": resources["core"]}

    def _secondary(self, load: Load) -> list[tuple[str, int]]:
        costs = [("points", load.points)]
        return [*costs, ("content-minute", 1), ("content-hour", 1)] if load.creates else costs

    def _window(self, actor: Actor | None, name: str, now: float) -> _UsageWindow:
        key = (actor.token if actor else "", name)
        window = self._windows.get(key)
        if window is None or now >= window.reset:
            window = self._windows[key] = _UsageWindow(*self._size(actor, name), start=now)
        return window

    def _size(self, actor: Actor | None, name: str) -> tuple[int, float]:
        limits = self._limits
        assert limits is not None  # noqa: S101 (callers return early without limits)
        kind = "anonymous" if actor is None else actor.kind
        hourly = {"anonymous": limits.anonymous_per_hour, "installation": limits.installation_per_hour}
        sizes = {
            "core": (hourly.get(kind, limits.user_per_hour), HOUR),
            "search": (limits.search_per_minute, MINUTE),
            "graphql": (hourly.get(kind, limits.user_per_hour), HOUR),
            "points": (limits.points_per_minute, MINUTE),
            "content-minute": (limits.content_per_minute, MINUTE),
            "content-hour": (limits.content_per_hour, HOUR),
        }
        return sizes[name]


def get_rate_limit(call: Call) -> ApiResponse:
    """GET /rate_limit; costs nothing."""
    assert call.meter is not None  # noqa: S101 (the application sets it)
    return ApiResponse(200, call.meter.overview(call.actor, call.now))


def primary_refusal(actor: Actor | None, reset: int, resource: str, limit: int) -> Refusal:
    """Return the 403 of a used-up budget; ``reset`` is in seconds since the epoch."""
    whom = f"user ID {actor.user_id}" if actor else "127.0.0.1"
    headers = {
        "x-ratelimit-limit": str(limit),
        "x-ratelimit-used": str(limit),
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": str(reset),
        "x-ratelimit-resource": resource,
    }
    return Refusal(403, f"API rate limit exceeded for {whom}.", docs=DOCS, headers=headers)


def secondary_refusal(status: int, retry_after: int | None) -> Refusal:
    """Return the 403 or 429 of a secondary limit; without ``retry_after`` it carries no hint, which happens too."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Refusal(status, SECONDARY_MESSAGE, docs=SECONDARY_DOCS, headers=headers)
