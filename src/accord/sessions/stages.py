"""How far a session is: the order of its states, the files that each asks for, and where a detour returns to.

Source: global agent contract, "Artifact content validation (gates)" and "ASK_USER protocol".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.sessions.models import Mode, OutputEntry, SessionStatus, SessionTask


ORDER: dict[str, tuple[str, ...]] = {
    "full": (
        "INTAKE",
        "DESIGN",
        "APPROVE_DESIGN",
        "PLAN",
        "REVIEW_STRATEGY",
        "IMPLEMENT_LOOP",
        "INTEGRATE",
        "RELEASE",
        "DONE",
    ),
    "lean": ("INTAKE_LEAN", "IMPLEMENT_LOOP", "INTEGRATE", "DONE"),
}
"""The states of a session that meets no trouble."""

LOOP_BASE = {
    "FIX_REVIEW": "IMPLEMENT_LOOP",
    "FIX_TESTS": "IMPLEMENT_LOOP",
    "FIX_SECURITY": "IMPLEMENT_LOOP",
    "FIX_BUILD": "INTEGRATE",
}
"""The loops of fixes, and the state that each leaves and comes back to."""

_FIRST_NEEDED = {
    "full": {
        "spec.md": "DESIGN",
        "acceptance.json": "DESIGN",
        "architecture.md": "APPROVE_DESIGN",
        "tasks.yaml": "REVIEW_STRATEGY",
        "report.md": "DONE",
    },
    "lean": {
        "spec.md": "IMPLEMENT_LOOP",
        "acceptance.json": "IMPLEMENT_LOOP",
        "tasks.yaml": "IMPLEMENT_LOOP",
        "report.md": "DONE",
    },
}


def is_at_least(state: str, wanted: str, mode: Mode) -> bool:
    """Tell whether a state lies at or behind another on the way of a session; a state off the way is before all."""
    order = ORDER[mode]
    state = LOOP_BASE.get(state, state)
    return state in order and wanted in order and order.index(state) >= order.index(wanted)


def files_needed(state: str, mode: Mode) -> tuple[str, ...]:
    """Name the files whose content must be valid before a session may be in a state."""
    return tuple(name for name, first in _FIRST_NEEDED[mode].items() if is_at_least(state, first, mode))


def return_state(status: SessionStatus) -> str:
    """Name the state that an answered session goes back to: where its last question came up; empty without one.

    Questions that wait count before those that are resolved, and among each the one with the latest place.
    """
    asked = status.pending or status.user_decisions
    return asked[-1].state_context if asked else ""


def working_state(status: SessionStatus) -> str:
    """Name the state that work is in, also while it waits for the user or is blocked; empty when nothing says."""
    state: str = status.current_state
    if state == "BLOCKED":
        state = status.blocked_from or ""
    return return_state(status) if state == "ASK_USER" else state


REVIEWS = ("Reviewer", "QA", "Security")


def reviews_of(task: SessionTask, outputs: Sequence[OutputEntry]) -> dict[str, str]:
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


def open_gates(task: SessionTask, outputs: Sequence[OutputEntry]) -> tuple[str, ...]:
    """Name the reviews that a task did not pass. None are named where the session keeps no output of any review.

    Security is required where the task is flagged, where an agent had a concern, and where Security spoke at all.
    """
    if not any(output.agent in REVIEWS for output in outputs):
        return ()
    said = reviews_of(task, outputs)
    is_risky = "security" in task.risk_flags or any(_raises_security(output, task) for output in outputs)
    required = REVIEWS if is_risky else REVIEWS[:2]
    return tuple(role for role in required if said.get(role) != "OK")


def _raises_security(output: OutputEntry, task: SessionTask) -> bool:
    is_about_it = output.task_id == task.id or (output.task_id == "meta" and output.agent in REVIEWS)
    return is_about_it and (output.agent == "Security" or output.security_concerns > 0)
