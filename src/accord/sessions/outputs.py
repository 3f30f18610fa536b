"""What becomes of a session when an agent gives back its output. A pure table, and the writes that it leads to.

Source: global agent contract, "Status enum - usage guide", "Task status lifecycle", "Gates" and "ASK_USER protocol". An
output is what an agent says; the session changes only as far as that agent's role may change it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.core.documents import shown
from accord.core.findings import Finding, pointer, warning
from accord.files.store import DISK
from accord.sessions.folder import read_session, status_of
from accord.sessions.models import CORRECTORS
from accord.sessions.moments import is_before
from accord.sessions.moves import move_task
from accord.sessions.policy import WriteContext, forbidden_path, refuse, task_unknown
from accord.sessions.protocol import UserQuestion
from accord.sessions.questions import ROLE, ask, complete_correction
from accord.sessions.rules import SECURITY, is_about_security
from accord.sessions.stages import working_state
from accord.sessions.store import append_output

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.files.store import Disk
    from accord.sessions.folder import Session
    from accord.sessions.models import AgentOutput


@dataclass(frozen=True)
class OutputEffects:
    """What follows an output. ``task_status`` is the task's next one, each step of the way to it.

    ``findings`` are warnings: files that the agent says it changed, and that are not its to change.
    """

    task_status: tuple[str, ...] = ()
    question: UserQuestion | None = None
    completes_correction: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def said(self) -> list[str]:
        """What is changed, for people."""
        found = [f"task {status}" for status in self.task_status[-1:]]
        found += ["correction of the design completed"] if self.completes_correction else []
        return [*found, *(["the user is asked"] if self.question else [])]


def follows(session: Session, task_id: str, role: str, output: AgentOutput) -> OutputEffects:
    """Decide what an output changes."""
    return replace(_follows(session, task_id, role, output), findings=tuple(_not_its_own(session, role, output)))


def _not_its_own(session: Session, role: str, output: AgentOutput) -> Iterator[Finding]:
    """Find the files that an agent says it changed, and that the contract keeps from it."""
    place = WriteContext(session.name, working_state(status_of(session)), session.mode == "lean")
    for i, path in enumerate(output.artifacts.files_changed):
        inside = path.removeprefix(f"{session.root}/").replace("<session>", session.name)
        if said := forbidden_path(role, inside, place):
            message = f"{role} says that it changed {shown(path)}. {said} Look at the change before you go on."
            yield warning("role-forbidden", message, pointer("artifacts", "files_changed", i))


def _follows(session: Session, task_id: str, role: str, output: AgentOutput) -> OutputEffects:
    task = session.task(task_id)
    if task is None and task_id != "meta":
        raise refuse("There is no such task.", task_unknown(session, task_id))
    if output.status == "NEEDS_DECISION":
        return OutputEffects(question=_question(session, task_id, output))
    if output.status in ("BLOCKED", "FAIL"):
        is_stuck = task is not None and task.status in ("not-started", "in-progress", "implemented")
        is_workers = output.status == "BLOCKED" or role == "Coder"
        return OutputEffects(task_status=("blocked",) if is_stuck and is_workers else ())
    if output.status != "OK":
        return OutputEffects()
    if role == "Coder" and task is not None:
        begun = ("in-progress", "implemented")
        ways = {"blocked": begun, "not-started": begun, "in-progress": begun[1:]}
        return OutputEffects(task_status=ways.get(task.status, ()))
    status = status_of(session)
    is_sent = status.current_state == "APPROVE_DESIGN" and status.correction_status == "dispatched"
    return OutputEffects(completes_correction=role in CORRECTORS and task_id == "meta" and is_sent)


def _question(session: Session, task_id: str, output: AgentOutput) -> UserQuestion | None:
    """Return what Security asks; None when just that was asked since another output for the task was taken."""
    text = output.summary if task_id == "meta" else f"{task_id}: {output.summary}"
    others = [one for one in session.outputs if one.task_id == task_id]
    others = [one for one in others if (one.agent, one.summary) != ("Security", output.summary)]
    asked = [
        one.asked_at
        for one in status_of(session).user_decisions
        if one.question == text and is_about_security(one.category)
    ]
    if any(not others or is_before(others[-1].at, at) for at in asked):
        return None
    return UserQuestion(text, category=SECURITY)


def apply_output(
    folder: Path, task_id: str, role: str, output: AgentOutput, *, clock: Clock, disk: Disk = DISK
) -> OutputEffects:
    """Take an output back into its session, and keep what its task's gates look at once all else is written.

    The same output again changes nothing more.
    """
    taken = follows(read_session(folder), task_id, role, output)
    for status in taken.task_status:
        move_task(folder, task_id, status, role=role, clock=clock, disk=disk)
    if taken.completes_correction:
        complete_correction(folder, clock=clock, disk=disk)
    if taken.question:
        ask(folder, [taken.question], clock=clock, disk=disk)
    entry = {
        "task_id": task_id,
        "agent": role,
        "status": output.status,
        "summary": output.summary,
        "security_concerns": len(output.gates.security_concerns),
    }
    append_output(folder, entry, role=ROLE, clock=clock, disk=disk)
    return taken
