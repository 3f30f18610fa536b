"""How one local GitHub behaves: its clock, its limits, its lag, and what an older server lacks."""

from __future__ import annotations

from dataclasses import dataclass, field

from accord.core.clock import Clock, SystemClock


@dataclass(frozen=True)
class RateLimits:
    """GitHub's documented limits. A test may lower one to reach it sooner.

    Source: https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """

    user_per_hour: int = 5000
    installation_per_hour: int = 1000
    anonymous_per_hour: int = 60
    search_per_minute: int = 30
    points_per_minute: int = 900
    content_per_minute: int = 80
    content_per_hour: int = 500


@dataclass(frozen=True)
class SandboxSettings:
    """What a caller may choose. ``rate_limits=None`` turns all limits off."""

    clock: Clock = field(default_factory=SystemClock)
    rate_limits: RateLimits | None = field(default_factory=RateLimits)
    search_lag_seconds: float = 10.0
    latency_seconds: float = 0.0
    native_dependencies: bool = True
