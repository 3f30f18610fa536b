"""Effects of an agent's output on its session: a pure table, and the changes that it leads to.

Source: global agent contract, "Status enum - usage guide", "Task status lifecycle", "Gates" and "ASK_USER protocol". A
session changes only as far as the agent's role may change it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.core.documents import short_name
from accord.core.findings import Finding, pointer, warning
from accord.sessions.decision_rules import SECURITY, is_about_security
from accord.sessions.folder import status_of
from accord.sessions.machine import working_state
from accord.sessions.models import CORRECTORS
from accord.sessions.policy import WriteContext, check_path, refuse, task_unknown
from accord.sessions.questions import UserQuestion
from accord.sessions.rules import is_before
from accord.sessions.run import ROLE, ask, complete_correction, move_task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.sessions.apply import SessionWriter
    from accord.sessions.folder import Session
    from accord.sessions.models import AgentOutput


@dataclass(frozen=True)
class OutputEffects:
    """The changes that an output causes; ``findings`` warn of files that the agent's role may not change."""

    task_status: tuple[str, ...] = ()
    question: UserQuestion | None = None
    completes_correction: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def summary(self) -> list[str]:
        """The changes, for people."""
        changes = [f"task {status}" for status in self.task_status[-1:]]
        changes += ["correction of the design completed"] if self.completes_correction else []
        return [*changes, *(["the user is asked"] if self.question else [])]


def apply_output(writer: SessionWriter, task_id: str, role: str, output: AgentOutput) -> OutputEffects:
    """Apply an output to its session once, and record last what the gates of its task read."""
    effects = effects_of(writer.read(), task_id, role, output)
    for status in effects.task_status:
        move_task(writer, task_id, status, role=role)
    if effects.completes_correction:
        complete_correction(writer)
    if effects.question:
        ask(writer, [effects.question])
    entry = {"task_id": task_id, "agent": role, "status": output.status, "summary": output.summary}
    writer.append_output({**entry, "security_concerns": len(output.gates.security_concerns)}, role=ROLE)
    return effects


def effects_of(session: Session, task_id: str, role: str, output: AgentOutput) -> OutputEffects:
    """Return what an output changes."""
    return replace(_decide(session, task_id, role, output), findings=tuple(_foreign_files(session, role, output)))


def _foreign_files(session: Session, role: str, output: AgentOutput) -> Iterator[Finding]:
    """Find the files that an agent reports as changed, and that the contract keeps from its role."""
    context = WriteContext(session.name, working_state(status_of(session)), session.mode == "lean")
    for i, path in enumerate(output.artifacts.files_changed):
        inside = path.removeprefix(f"{session.root}/").replace("<session>", session.name)
        if reason := check_path(role, inside, context):
            message = f"{role} reports a change of `{short_name(path)}`. {reason}"
            hint = "Review that change before you continue."
            yield warning("role-forbidden", message, pointer("artifacts", "files_changed", i), hint=hint)


def _decide(session: Session, task_id: str, role: str, output: AgentOutput) -> OutputEffects:
    task = session.task(task_id)
    if task is None and task_id != "meta":
        raise refuse("The task is unknown.", task_unknown(session, task_id))
    if output.status == "NEEDS_DECISION":
        return OutputEffects(question=_question(session, task_id, output))
    if output.status in ("BLOCKED", "FAIL"):
        is_stuck = task is not None and task.status in ("not-started", "in-progress", "implemented")
        is_workers = output.status == "BLOCKED" or role == "Coder"
        return OutputEffects(task_status=("blocked",) if is_stuck and is_workers else ())
    if output.status != "OK":
        return OutputEffects()
    if role == "Coder" and task is not None:
        both = ("in-progress", "implemented")
        steps = {"blocked": both, "not-started": both, "in-progress": both[1:]}
        return OutputEffects(task_status=steps.get(task.status, ()))
    status = status_of(session)
    is_sent = status.current_state == "APPROVE_DESIGN" and status.correction_status == "dispatched"
    return OutputEffects(completes_correction=role in CORRECTORS and task_id == "meta" and is_sent)


def _question(session: Session, task_id: str, output: AgentOutput) -> UserQuestion | None:
    """Return what Security asks; None when it was asked since the last other output for the task."""
    text = output.summary if task_id == "meta" else f"{task_id}: {output.summary}"
    others = [one for one in session.outputs if one.task_id == task_id]
    others = [one for one in others if (one.agent, one.summary) != ("Security", output.summary)]
    asked = [one for one in status_of(session).user_decisions if one.question == text]
    if any(is_about_security(one.category) and (not others or is_before(others[-1].at, one.asked_at)) for one in asked):
        return None
    return UserQuestion(text, category=SECURITY)
