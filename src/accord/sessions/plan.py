"""What a move makes of a session, or forbids of its tasks. All pure: from a session that was read, no write.

Source: global agent contract, "Task status lifecycle" and "status.json"; the states are accord's decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.core.clock import timestamp
from accord.core.findings import Finding
from accord.sessions.folder import OUTPUTS_FILE, status_value
from accord.sessions.machine import TASK, TaskFacts, facts_of, machine_of
from accord.sessions.models import LOOPS, ROLES, STATES
from accord.sessions.policy import refuse, role_unknown, task_unknown
from accord.sessions.stages import open_gates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from accord.sessions.folder import Session


def moved(session: Session, target: str, *, task: str = "", blocker: str = "", reopens: bool = False) -> dict[str, Any]:
    """Return ``status.json`` after a move; unchanged when the session is there already.

    ``task`` is the one that a loop of fixes is for, and is counted; ``blocker`` says why the session is blocked.
    Raises BrokenContract with ``illegal-move`` when the machine forbids the move.
    """
    value = status_value(session)
    source = str(value["current_state"])
    if source == target and target not in LOOPS:
        return {**value, "blocker": blocker} if target == "BLOCKED" and blocker else value
    if target not in STATES:
        raise refuse("There is no such state.", Finding("illegal-move", f"{target} is none of {', '.join(STATES)}."))
    if target in LOOPS and task not in ("", "meta") and session.task(task) is None:
        raise refuse("There is no such task.", task_unknown(session, task))
    facts = facts_of(session, task=task, reopens=reopens)
    if said := machine_of(session.mode).refusal(source, target, facts):
        raise refuse(f"The session stays in {source}.", Finding("illegal-move", said, "/current_state"))
    value["current_state"] = target
    if source == "BLOCKED":
        value.pop("blocked_from", None)
        value.pop("blocker", None)
    if target == "BLOCKED":
        value["blocked_from"] = source
        if blocker:
            value["blocker"] = blocker
    if source == "INTAKE_LEAN":
        value.setdefault("mode", "lean")
    if target in LOOPS and source not in ("ASK_USER", "BLOCKED"):
        counts = value["retry_counts"].setdefault(task, {})
        counts[target] = counts.get(target, 0) + 1
    return value


def reopened(session: Session, *, now: datetime) -> dict[str, Any]:
    """Return ``status.json`` of a session that was done and is opened again; it may be in IMPLEMENT_LOOP already."""
    state = str(status_value(session)["current_state"])
    if state not in ("DONE", "IMPLEMENT_LOOP"):
        message = f"Only a session that is done is opened again; this one is in {state}. Go on with it."
        raise refuse("The session is not done.", Finding("illegal-move", message, "/current_state"))
    value = moved(session, "IMPLEMENT_LOOP", reopens=True)
    return {**value, "reopened_at": timestamp(now)} if state == "DONE" else value


def refused_tasks(session: Session, wanted: Mapping[str, str], role: str) -> Iterator[Finding]:
    """Find which of these moves of tasks the lifecycle, the role, or a review that was not passed forbids."""
    if role not in ROLES:
        yield role_unknown(role)
        return
    for name, target in wanted.items():
        task = session.task(name)
        if task is None or session.tasks is None:
            yield task_unknown(session, name)
        elif target != task.status:
            facts = TaskFacts(role, session.tasks.waits_for(task), open_gates(task, session.outputs))
            unread = session.parts[OUTPUTS_FILE]
            if said := TASK.refusal(task.status, target, facts):
                yield Finding("illegal-move", f"{name}: {said}")
            elif target == "completed" and not unread.is_missing and unread.defect:
                yield Finding("illegal-move", f"{name}: nobody can tell which reviews passed. {unread.defect}")
