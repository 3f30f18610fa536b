"""Which agent works next: agents that are full or down are replaced by the next one of the registry. Pure.

A setback is a failure that another agent would not share: a used-up quota, an overloaded or unreachable provider, a
refused credential, or silence. Any other failure ends the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.runner.record import Attempt

Setback = Literal["quota", "overload", "auth", "stall", "install"]

SETBACKS: dict[str, Setback] = {
    "quota": "quota",
    "rate-limit": "overload",
    "outage": "overload",
    "network": "overload",
    "broken-answer": "overload",
    "credential": "auth",
    "credential-missing": "auth",
    "credential-invalid": "auth",
    "stall": "stall",
    "install": "install",
}
"""The causes of ``accord.runner.transcripts.error_rules`` that another agent would not share."""

MEANINGS: dict[Setback, str] = {
    "quota": "its quota is used up",
    "overload": "its provider is overloaded or unreachable",
    "auth": "its credential is missing, invalid or refused",
    "stall": "it stalled",
    "install": "it cannot be installed",
}

LEAST_SECONDS = 30.0
"""An agent with less time could only be ended."""


@dataclass(frozen=True)
class NextAgent:
    """The agent that works next; empty if none does, and then ``is_spent`` says whether money was the reason."""

    name: str = ""
    is_spent: bool = False


def next_agent(
    left: Sequence[str], cause: str, attempts: Sequence[Attempt], max_cost_usd: float | None, seconds_left: float
) -> NextAgent:
    """Choose the agent after a failure; ``cause`` is that of the failure, empty for a success."""
    if cause not in SETBACKS or not left:
        return NextAgent()
    if is_spent(attempts, max_cost_usd):
        return NextAgent(is_spent=True)
    return NextAgent(left[0] if seconds_left >= LEAST_SECONDS else "")


def agents_to_try(first: str, fallback: Sequence[str]) -> tuple[str, ...]:
    """Return the agents of a run in order, each once."""
    return tuple(dict.fromkeys((first, *fallback)))


def cost_of(attempts: Sequence[Attempt]) -> float:
    """Return what the attempts cost in US dollars, as far as the agents say so."""
    return sum(attempt.cost_usd or 0.0 for attempt in attempts)


def usd_left(attempts: Sequence[Attempt], max_cost_usd: float | None) -> float | None:
    """Return what the budget has left, never less than 0; None without a budget."""
    return None if max_cost_usd is None else max(0.0, max_cost_usd - cost_of(attempts))


def is_spent(attempts: Sequence[Attempt], max_cost_usd: float | None) -> bool:
    """Return whether a budget has nothing left."""
    return usd_left(attempts, max_cost_usd) == 0.0
