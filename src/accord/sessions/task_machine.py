"""The statuses of a session's task, and the guard of every move between them.

Source: global agent contract, "Task status lifecycle".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from accord.core.machine import Edge, Machine
from accord.sessions.reviews import REVIEWS


@dataclass(frozen=True)
class TaskFacts:
    """The facts that the guards of a task read: open dependencies, and reviews that have not passed.

    ``waives`` is whether the Orchestrator waives those reviews.
    """

    role: str = ""
    waits_for: tuple[str, ...] = ()
    open_gates: tuple[str, ...] = ()
    waives: bool = False


def _by(*roles: str) -> Callable[[TaskFacts], str]:
    def guard(facts: TaskFacts) -> str:
        return "" if facts.role in roles else f"Only {' or '.join(roles)} may do this, not {facts.role or 'no role'}."

    return guard


def _check_start(facts: TaskFacts) -> str:
    if refusal := _by("Coder")(facts):
        return refusal
    return f"It depends on {', '.join(facts.waits_for)}. Implement that first." if facts.waits_for else ""


def _check_completion(facts: TaskFacts) -> str:
    if facts.role != "Orchestrator":
        hint = " Set it to `implemented`." if facts.role == "Coder" else ""
        return f"Only the Orchestrator completes a task, after all its gates have passed, not {facts.role}.{hint}"
    names = "" if facts.waives else ", ".join(facts.open_gates)
    how = "Have the task reviewed and take each output with `accord dispatch --take`, or pass `--waive-reviews REASON`."
    return f"These gates have not passed: {names}. {how}" if names else ""


def _check_reopening(facts: TaskFacts) -> str:
    if refusal := _by("Orchestrator", *REVIEWS)(facts):
        return refusal
    return "" if facts.open_gates else "Its reviews have passed. Only a failed review reopens it."


TASK: Machine[TaskFacts] = Machine(
    "task of a session",
    "not-started",
    frozenset({"completed"}),
    (
        Edge("not-started", "in-progress", "Coder, dependencies implemented", _check_start),
        Edge("in-progress", "implemented", "Coder", _by("Coder")),
        Edge("implemented", "completed", "Orchestrator, all reviews passed or waived", _check_completion),
        Edge("implemented", "in-progress", "Coder, to fix", _by("Coder")),
        Edge("completed", "implemented", "a review failed", _check_reopening),
        *(Edge(source, "blocked") for source in ("not-started", "in-progress", "implemented")),
        Edge("blocked", "in-progress", "Coder, dependencies implemented", _check_start),
        Edge("blocked", "not-started", "Orchestrator or Planner", _by("Orchestrator", "Planner")),
    ),
)
