"""What becomes of a session when an agent gives back its output. A pure table, and the writes that it leads to.

Source: global agent contract, "Status enum - usage guide", "Task status lifecycle", "Gates" and "ASK_USER protocol". An
output is what an agent says; the session changes only as far as that agent's role may change it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.kernel.findings import Finding
from accord.sessions.folder import read_session
from accord.sessions.moves import move_task
from accord.sessions.policy import refuse
from accord.sessions.protocol import SECURITY, Question
from accord.sessions.questions import ask, complete_correction

if TYPE_CHECKING:
    from pathlib import Path

    from accord.kernel.clock import Clock
    from accord.sessions.folder import Session
    from accord.sessions.models import AgentOutput

CORRECTORS = ("SpecAgent", "Architect", "Designer")


@dataclass(frozen=True)
class Taken:
    """What follows an output. ``task_status`` is the task's next one, each step of the way to it."""

    task_status: tuple[str, ...] = ()
    question: Question | None = None
    completes_correction: bool = False

    @property
    def said(self) -> list[str]:
        """What is changed, for people."""
        found = [f"task {status}" for status in self.task_status[-1:]]
        found += ["correction of the design completed"] if self.completes_correction else []
        return [*found, *(["the user is asked"] if self.question else [])]


def follows(session: Session, task_id: str, role: str, output: AgentOutput) -> Taken:
    """Decide what an output changes."""
    task = session.tasks.task(task_id) if session.tasks else None
    if task is None and task_id != "meta":
        raise refuse("There is no such task.", Finding("task-unknown", f'"{task_id}" is no task of the session.'))
    if output.status == "NEEDS_DECISION":
        return Taken(question=Question(output.summary, category=SECURITY))
    if output.status in ("BLOCKED", "FAIL"):
        is_stuck = task is not None and task.status in ("not-started", "in-progress", "implemented")
        is_workers = output.status == "BLOCKED" or role == "Coder"
        return Taken(task_status=("blocked",) if is_stuck and is_workers else ())
    if output.status != "OK":
        return Taken()
    if role == "Coder" and task is not None:
        begun = ("in-progress", "implemented")
        ways = {"blocked": begun, "not-started": begun, "in-progress": begun[1:]}
        return Taken(task_status=ways.get(task.status, ()))
    status = session.status
    is_correction = (
        role in CORRECTORS and task_id == "meta" and status is not None and status.current_state == "APPROVE_DESIGN"
    )
    return Taken(completes_correction=bool(is_correction and status and status.correction_status == "dispatched"))


def take(folder: Path, task_id: str, role: str, output: AgentOutput, *, clock: Clock) -> Taken:
    """Take an output back into its session. The same output again changes nothing more."""
    taken = follows(read_session(folder), task_id, role, output)
    for status in taken.task_status:
        move_task(folder, task_id, status, role=role, clock=clock)
    if taken.completes_correction:
        complete_correction(folder, clock=clock)
    if taken.question:
        ask(folder, [taken.question], clock=clock)
    return taken
