"""Moving a session and its tasks: the pure step, and the one write that carries it out.

Source: global agent contract, "Task status lifecycle" and "status.json"; the states are accord's decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.kernel.clock import timestamp
from accord.kernel.errors import WrongUsage
from accord.kernel.findings import Finding
from accord.kernel.store import DISK
from accord.sessions.folder import read_session
from accord.sessions.machine import facts_of, machine_of
from accord.sessions.models import LOOPS, STATES
from accord.sessions.policy import refuse
from accord.sessions.records import waits_again
from accord.sessions.store import change_status, change_tasks, reopen, status_value

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from accord.kernel.clock import Clock
    from accord.kernel.store import Disk
    from accord.sessions.folder import Session
    from accord.sessions.models import Status, Tasks


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
    if target in LOOPS and task:
        _known_task(session, task)
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


def advance(
    folder: Path,
    target: str,
    *,
    role: str,
    clock: Clock,
    task: str = "",
    blocker: str = "",
    disk: Disk = DISK,
) -> Status:
    """Move a session to a state, once its guards allow it; one that is there already, DONE included, stays there."""
    now = read_session(folder).status
    if now and now.current_state == target == "DONE":
        return now

    def step(session: Session) -> dict[str, Any]:
        value = moved(session, target, task=task, blocker=blocker)
        return waits_again(session, value, now=clock.now())

    return change_status(folder, step, role=role, clock=clock, disk=disk)


def start_fix(folder: Path, task: str, loop: str, *, role: str, clock: Clock, disk: Disk = DISK) -> Status:
    """Enter a loop of fixes for a task, and count it; the fourth time is refused."""
    if loop not in LOOPS:
        raise WrongUsage(f"{loop} is no loop of fixes.", mend=f"Name one of {', '.join(LOOPS)}.")
    return change_status(folder, lambda session: moved(session, loop, task=task), role=role, clock=clock, disk=disk)


def _known_task(session: Session, task: str) -> None:
    known = [item.id for item in session.tasks.tasks] if session.tasks else []
    if task not in (*known, "meta"):
        message = f'"{task}" is no task. The tasks are: {", ".join(known) or "none"}.'
        raise refuse("There is no such task.", Finding("task-unknown", message))


def resume_done(folder: Path, *, clock: Clock, disk: Disk = DISK) -> Status:
    """Open a session again that was done: it goes back to IMPLEMENT_LOOP, where it may be already."""
    return reopen(folder, lambda session: _reopened(session, clock.now()), clock=clock, disk=disk)


def _reopened(session: Session, now: datetime) -> dict[str, Any]:
    state = str(status_value(session)["current_state"])
    if state not in ("DONE", "IMPLEMENT_LOOP"):
        message = f"Only a session that is done is opened again; this one is in {state}. Go on with it."
        raise refuse("The session is not done.", Finding("illegal-move", message, "/current_state"))
    value = moved(session, "IMPLEMENT_LOOP", reopens=True)
    return {**value, "reopened_at": timestamp(now)} if state == "DONE" else value


def move_task(
    folder: Path,
    task: str,
    target: str,
    *,
    role: str,
    clock: Clock,
    disk: Disk = DISK,
) -> Tasks:
    """Set the status of one task, once its lifecycle, its dependencies, its reviews and the role allow it."""
    return change_tasks(folder, lambda _: {task: target}, role=role, clock=clock, disk=disk)
