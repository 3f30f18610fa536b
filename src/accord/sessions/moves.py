"""Moving a session and its tasks: each move is planned by ``plan``, and carried out by one write.

Source: global agent contract, "Task status lifecycle" and "status.json"; the states are accord's decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.core.errors import WrongUsage
from accord.core.findings import Finding
from accord.files.store import DISK
from accord.sessions.folder import read_session
from accord.sessions.models import LOOPS
from accord.sessions.plan import moved, reopened
from accord.sessions.policy import WORK, refuse
from accord.sessions.records import waits_again
from accord.sessions.store import change_status, change_tasks, create_status, reopen

if TYPE_CHECKING:
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.files.store import Disk
    from accord.sessions.folder import Session
    from accord.sessions.models import SessionStatus, SessionTasks


def advance(
    folder: Path,
    target: str,
    *,
    role: str,
    clock: Clock,
    task: str = "",
    blocker: str = "",
    disk: Disk = DISK,
) -> SessionStatus:
    """Move a session to a state, once its guards allow it; one that is there already, DONE included, stays there."""
    now = read_session(folder).status
    if now and now.current_state == target == "DONE":
        return now

    def step(session: Session) -> dict[str, Any]:
        value = moved(session, target, task=task, blocker=blocker)
        return waits_again(session, value, now=clock.now())

    return change_status(folder, step, role=role, clock=clock, disk=disk)


def start_fix(folder: Path, task: str, loop: str, *, role: str, clock: Clock, disk: Disk = DISK) -> SessionStatus:
    """Enter a loop of fixes for a task, and count it; the fourth time is refused."""
    if loop not in LOOPS:
        raise WrongUsage(f"{loop} is no loop of fixes.", hint=f"Name one of {', '.join(LOOPS)}.")
    return change_status(folder, lambda session: moved(session, loop, task=task), role=role, clock=clock, disk=disk)


def resume_done(folder: Path, *, clock: Clock, disk: Disk = DISK) -> SessionStatus:
    """Open a session again that was done: it goes back to IMPLEMENT_LOOP, where it may be already."""
    return reopen(folder, lambda session: reopened(session, now=clock.now()), clock=clock, disk=disk)


def move_task(
    folder: Path,
    task: str,
    target: str,
    *,
    role: str,
    clock: Clock,
    disk: Disk = DISK,
) -> SessionTasks:
    """Set the status of one task, once its lifecycle, its dependencies, its reviews and the role allow it."""
    return change_tasks(folder, lambda _: {task: target}, role=role, clock=clock, disk=disk)


def begin(root: Path, slug: str, *, is_lean: bool, clock: Clock) -> Path:
    """Begin a session below ``.agents-work``, named by the day and the slug; return its folder.

    Raises BrokenContract with ``session-exists`` when there is one of that name, ``path-outside`` when it would lie
    elsewhere.
    """
    now = clock.now()
    if (root / WORK).is_symlink():
        message = f"{root / WORK} is a link. Sessions are kept in the repository itself: put a folder there."
        raise refuse("The session cannot be begun.", Finding("path-outside", message))
    folder = root / WORK / f"{now:%Y-%m-%d}_{slug}"
    first: dict[str, Any] = {
        "current_state": "INTAKE_LEAN" if is_lean else "INTAKE",
        "session": folder.name,
        "mode": "lean" if is_lean else "full",
        "assumptions": [],
        "user_decisions": [],
        "retry_counts": {},
        "known_issues": [],
        "last_ci_result": "unknown",
    }
    create_status(folder, first, role="Orchestrator" if is_lean else "SpecAgent", clock=clock)
    return folder
