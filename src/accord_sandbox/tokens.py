"""Accounts, the owners of tokens, and the limits of their use with GitHub's refusals above one.

Use is counted in memory by each serving process. Source of numbers and answers:
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from accord_sandbox.responses import Refusal

BOT = "github-actions[bot]"
"""The account of GITHUB_TOKEN."""

MAINTAINER = "maintainer"

TokenKind = Literal["user", "fine-grained", "installation"]


@dataclass(frozen=True)
class TokenOwner:
    """The owner of a token. ``repositories`` is None when the token reaches all that the owner reaches."""

    user_id: int
    login: str
    token: str = field(repr=False)
    kind: TokenKind
    permissions: Mapping[str, str]
    repositories: frozenset[str] | None

    @property
    def is_actions(self) -> bool:
        """Whether the token is a job's GITHUB_TOKEN, to which the Actions settings of the repository apply."""
        return self.kind == "installation" and self.login == BOT

    @property
    def may_write_workflows(self) -> bool:
        """Whether the token may write workflow files; GITHUB_TOKEN never has the permission."""
        return self.kind == "user" or self.permissions.get("workflows") in ("write", "admin")


READ_POINTS = 1
WRITE_POINTS = 5
HOUR = 3600.0
MINUTE = 60.0
DOCS = "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"
SECONDARY_DOCS = f"{DOCS}#about-secondary-rate-limits"
SECONDARY_MESSAGE = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. "
    "If you reach out to GitHub Support for help, please include the request ID."
)


@dataclass(frozen=True)
class RateLimits:
    """GitHub's documented limits. A test may lower one to reach it sooner."""

    user_per_hour: int = 5000
    installation_per_hour: int = 1000
    anonymous_per_hour: int = 60
    search_per_minute: int = 30
    points_per_minute: int = 900
    content_per_minute: int = 80
    content_per_hour: int = 500


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


class Meter:
    """The counters of all tokens."""

    def __init__(self, limits: RateLimits | None) -> None:
        self._is_on, self._limits = limits is not None, limits or RateLimits()
        self._windows: dict[tuple[str, str], _UsageWindow] = {}

    def clear(self) -> None:
        """Reset all counters."""
        self._windows.clear()

    def check(self, actor: TokenOwner | None, costs: Mapping[str, int], now: float) -> None:
        """Refuse a request over a limit before it is carried out; the first of its costs is that of its resource."""
        for name, cost in costs.items() if self._is_on else ():
            window = self._window(actor, name, now)
            if window.used + cost > window.limit and name == next(iter(costs)):
                raise primary_refusal(actor, math.ceil(window.reset), name, window.limit)
            if window.used + cost > window.limit:
                raise secondary_refusal(403, max(1, math.ceil(window.reset - now)))

    def count(self, actor: TokenOwner | None, costs: Mapping[str, int], now: float) -> None:
        """Count a request that was let through."""
        for name, cost in costs.items() if self._is_on else ():
            self._window(actor, name, now).used += cost

    def headers(self, actor: TokenOwner | None, resource: str, now: float) -> dict[str, str]:
        """Return the current x-ratelimit-* headers for the resource."""
        if not self._is_on:
            return {}
        window = self._window(actor, resource, now)
        return _rate_headers(resource, window.limit, min(window.used, window.limit), math.ceil(window.reset))

    def _window(self, actor: TokenOwner | None, name: str, now: float) -> _UsageWindow:
        key = (actor.token if actor else "", name)
        window = self._windows.get(key)
        if window is None or now >= window.reset:
            window = self._windows[key] = _UsageWindow(*_window_size(self._limits, actor, name), start=now)
        return window


def _window_size(limits: RateLimits, actor: TokenOwner | None, name: str) -> tuple[int, float]:
    hourly = {None: limits.anonymous_per_hour, "installation": limits.installation_per_hour}
    per_hour = (hourly.get(actor.kind if actor else None, limits.user_per_hour), HOUR)
    sizes = {
        **dict.fromkeys(("core", "graphql"), per_hour),
        "search": (limits.search_per_minute, MINUTE),
        "points": (limits.points_per_minute, MINUTE),
        "content-minute": (limits.content_per_minute, MINUTE),
        "content-hour": (limits.content_per_hour, HOUR),
    }
    return sizes[name]


def primary_refusal(actor: TokenOwner | None, reset: int, resource: str, limit: int) -> Refusal:
    """Return the 403 of a used-up budget; ``reset`` is in seconds since the epoch."""
    owner = f"user ID {actor.user_id}" if actor else "127.0.0.1"
    headers = _rate_headers(resource, limit, limit, reset)
    return Refusal(403, f"API rate limit exceeded for {owner}.", docs=DOCS, headers=headers)


def secondary_refusal(status: int, retry_after: int | None) -> Refusal:
    """Return the 403 or 429 of a secondary limit; without ``retry_after`` it carries no such header."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Refusal(status, SECONDARY_MESSAGE, docs=SECONDARY_DOCS, headers=headers)


def _rate_headers(resource: str, limit: int, used: int, reset: int) -> dict[str, str]:
    values = {"limit": limit, "used": used, "remaining": limit - used, "reset": reset, "resource": resource}
    return {f"x-ratelimit-{name}": str(value) for name, value in values.items()}
