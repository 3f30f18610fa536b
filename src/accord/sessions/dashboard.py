"""A session at a glance: state, tasks, open questions. As Markdown for a summary; the figures serve terminals too."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, get_args

from accord.sessions.models import TaskStatus
from accord.sessions.protocol import resumed
from accord.sessions.stages import LOOP_BASE, ORDER, reviews_of, working_state
from accord.text import markdown as markdown_text
from accord.text.markdown import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.sessions.folder import Session
    from accord.sessions.models import SessionTask

SIGNS = {"not-started": "○", "in-progress": "◐", "implemented": "◑", "completed": "●", "blocked": "✖"}
_NEXT = {
    "ask": "ask the user",
    "dispatch-correction": "dispatch the correction of the design",
    "verify-correction": "verify the correction of the design",
    "re-ask": "ask the user again",
    "continue": "go on",
    "blocked": "wait for what blocks it",
}
_BAR = 20
_ROWS = 100


def counts(session: Session) -> dict[str, int]:
    """Count the tasks by their status, in the order of a task's life."""
    counted = Counter(task.status for task in session.tasks.tasks) if session.tasks else Counter()
    return {status: counted[status] for status in get_args(TaskStatus)}


def progress(session: Session) -> str:
    """Draw how many tasks are completed."""
    by_status = counts(session)
    done, total = by_status["completed"], sum(by_status.values())
    filled = _BAR * done // total if total else 0
    return f"{'█' * filled}{'░' * (_BAR - filled)} {done}/{total}"


def next_step(session: Session) -> str:
    """Say in a few words what is next; empty where the status cannot be read."""
    if session.status is None:
        return ""
    return "nothing: it is done" if session.status.current_state == "DONE" else _NEXT[resumed(session).next]


def reviews(session: Session, task: SessionTask) -> str:
    """Say what the reviews said of a task as it is now."""
    return ", ".join(f"{role} {status}" for role, status in reviews_of(task, session.outputs).items())


def page(session: Session, redact: Callable[[str], str]) -> str:
    """Write a session as a part of a step summary; ``redact`` takes the secrets out of its texts first."""

    def cell(text: str) -> str:
        return markdown_text.cell(redact(text))

    status, tasks = session.status, session.tasks
    parts = [f"#### {cell(session.name)}"]
    if status is None:
        return "\n\n".join([*parts, cell(session.defect("status.json"))])
    parts.append(f"**{status.current_state}** ({session.mode}), next: {next_step(session)}")
    if status.blocker:
        parts.append(f"Blocked: {cell(status.blocker)}")
    parts.append(_way(session))
    if tasks:
        parts.append(progress(session) + " tasks completed")
        rows = [
            [task.id, f"{SIGNS[task.status]} {task.status}", reviews(session, task), cell(task.title or task.goal)]
            for task in tasks.tasks
        ]
        parts.append(table(["Task", "Status", "Reviews", "What"], rows[:_ROWS]) + _rest(len(rows)))
    if status.pending:
        waiting = [[item.decision_id, cell(item.question), cell(item.asked_at)] for item in status.pending]
        parts.append(table(["Open question", "What", "Since"], waiting[:_ROWS]) + _rest(len(waiting)))
    if status.known_issues:
        parts.append("Known issues:\n\n" + "\n".join(f"- {cell(issue)}" for issue in status.known_issues[:_ROWS]))
    return "\n\n".join(parts)


def _rest(rows: int) -> str:
    return f"\n\nand {rows - _ROWS} more" if rows > _ROWS else ""


def _way(session: Session) -> str:
    """Draw the way of the session with the state that it is in."""
    current = working_state(session.status) if session.status else ""
    here = LOOP_BASE.get(current, current)
    order = ORDER[session.mode]
    lines = ["```mermaid", "graph LR", "    " + " --> ".join(order)]
    if here in order:
        lines.append(f"    style {here} stroke-width:4px")
    return "\n".join([*lines, "```"])
