"""What is asked about completed tasks, and what came of asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from accord.runner.transcripts.account import Todo


@dataclass(frozen=True)
class Question:
    """The evidence: the pull request's body with its tasks, and what the agent said, ran and changed. All untrusted.

    ``todos`` is the to-do list that the agent kept for itself, where its CLI has one.
    """

    pr_body: str
    message: str
    commands: tuple[str, ...] = ()
    diff_stat: str = ""
    todos: tuple[Todo, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """One try of a provider; ``milliseconds`` is its wall time."""

    provider: str
    outcome: Literal["answered", "failed", "skipped"]
    reason: str = ""
    milliseconds: int = 0


@dataclass(frozen=True)
class Analysis:
    """Who answered, and which of the unchecked tasks are done, in the wording and order of the body.

    ``provider`` is empty when nobody answered, ``model`` when no model did.
    """

    provider: str
    model: str
    confidence: float
    completed: tuple[str, ...]
    attempts: tuple[Attempt, ...]
