"""What is asked about completed tasks, and what came of asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Question:
    """The evidence: the pull request's body with its tasks, and what the agent said, ran and changed. All untrusted."""

    pr_body: str
    message: str
    commands: tuple[str, ...] = ()
    diff_stat: str = ""


@dataclass(frozen=True)
class Attempt:
    """One try of a provider; ``milliseconds`` is its wall time."""

    provider: str
    outcome: Literal["answered", "failed", "skipped"]
    reason: str = ""
    milliseconds: int = 0


@dataclass(frozen=True)
class Analysis:
    """Who answered, and which of the unchecked tasks are done, in the wording and order of the body."""

    provider: str
    model: str
    confidence: float
    completed: tuple[str, ...]
    attempts: tuple[Attempt, ...]
