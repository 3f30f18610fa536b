"""The reviews that a task passes before it is completed, judged by what their agents gave back. Pure.

Source: global agent contract, "Task status lifecycle": Reviewer OK, QA OK, and Security OK where it is required.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.sessions.models import OutputEntry, Task

REVIEWS = ("Reviewer", "QA", "Security")


def reviews_of(task: Task, outputs: Sequence[OutputEntry]) -> dict[str, str]:
    """Return what each review said last of a task as it is now; what the Coder gave back later makes it void.

    A review of the session as a whole, ``meta``, counts for each of its tasks.
    """
    said: dict[str, str] = {}
    for output in outputs:
        if output.agent == "Coder" and output.task_id == task.id:
            said.clear()
        elif output.agent in REVIEWS and output.task_id in (task.id, "meta"):
            said[output.agent] = output.status
    return said


def open_gates(task: Task, outputs: Sequence[OutputEntry]) -> tuple[str, ...]:
    """Name the reviews that a task did not pass. None are named where the session keeps no output of any review.

    Security is required where the task is flagged, where an agent had a concern, and where Security spoke at all.
    """
    if not any(output.agent in REVIEWS for output in outputs):
        return ()
    said = reviews_of(task, outputs)
    is_risky = "security" in task.risk_flags or any(_raises_security(output, task) for output in outputs)
    required = REVIEWS if is_risky else REVIEWS[:2]
    return tuple(role for role in required if said.get(role) != "OK")


def _raises_security(output: OutputEntry, task: Task) -> bool:
    is_about_it = output.task_id == task.id or (output.task_id == "meta" and output.agent in REVIEWS)
    return is_about_it and (output.agent == "Security" or output.security_concerns > 0)
