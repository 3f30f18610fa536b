"""``accord session watch``: a session on a terminal, in one line of figures, and as Markdown for a step summary."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, get_args

import click

from accord.cli.output import is_screen, one_line
from accord.core.errors import Stopped
from accord.sessions.folder import FILES, read_session
from accord.sessions.machine import LOOP_BASE, ORDER, working_state
from accord.sessions.models import TaskStatus
from accord.sessions.questions import next_step
from accord.sessions.reviews import reviews_of
from accord.text import markdown
from accord.text.markdown import table

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from accord.sessions.folder import Session

SIGNS = {"not-started": "○", "in-progress": "◐", "implemented": "◑", "completed": "●", "blocked": "✖"}
_NEXT = {
    "ask": "ask the user",
    "dispatch-correction": "dispatch the correction of the design",
    "verify-correction": "verify the correction of the design",
    "re-ask": "ask the user again",
    "continue": "continue",
    "blocked": "resolve what blocks it",
}
_BAR = 20
_ROWS = 100
_COLORS = {"in-progress": "cyan", "implemented": "blue", "completed": "green", "blocked": "red"}
_POLL_SECONDS = 0.5
_CLEAR = "\x1b[H\x1b[2J"
_BY_INTEREST = ("blocked", "in-progress", "implemented", "not-started", "completed")
_BESIDE = 17
"""Columns before a task's id: its sign and status."""
_MARGIN = 1
"""The line of the cursor."""


def watch(folder: Path, sleep: Callable[[float], None] = time.sleep) -> None:
    """Show a session; on a terminal, show it again whenever a file changes, until it is done or interrupted."""
    if not is_screen(sys.stdout):
        click.echo("\n".join(screen(read_session(folder))))
        return
    seen: object = None
    try:
        while True:
            size = shutil.get_terminal_size()
            if (marks := (size, _marks(folder))) != seen:
                seen = marks
                session = read_session(folder)
                click.echo(_CLEAR + "\n".join(screen(session, size)))
                if session.status and session.status.current_state == "DONE":
                    return
            sleep(_POLL_SECONDS)
    except (KeyboardInterrupt, Stopped):
        click.echo("")


def _marks(folder: Path) -> tuple[object, ...]:
    found = []
    for name in FILES:
        try:
            stat = (folder / name).stat()
        except OSError:
            continue
        found.append((name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(found)


def screen(session: Session, size: os.terminal_size | None = None) -> list[str]:
    """Return the lines that show a session; with a size, at most one screen of them."""
    head, questions = _head(session, size), _questions(session, size)
    rest = len(head) + len(questions) + _MARGIN
    tasks = _tasks(session, size, max(size.lines - rest, 1) if size else None)
    return [*head, *tasks, *questions]


def _head(session: Session, size: os.terminal_size | None) -> list[str]:
    status = session.status
    lines = [click.style(_cut(session.name, size), bold=True)]
    if status is None:
        return [*lines, click.style(one_line(session.parts["status.json"].problem), fg="red")]
    lines.append(f"{click.style(status.current_state, bold=True)} ({session.mode})   next: {next_text(session)}")
    if status.blocker:
        lines.append(click.style(_cut(f"blocked: {status.blocker}", size), fg="red"))
    if session.tasks:
        lines += ["", click.style(progress(session), fg="green")]
    elif session.parts["tasks.yaml"].raw is not None:
        lines.append(click.style(_cut(session.parts["tasks.yaml"].problem, size), fg="red"))
    return lines


def _tasks(session: Session, size: os.terminal_size | None, most: int | None) -> list[str]:
    """Return the lines of the tasks in the order of the plan; if space is short, keep those in progress."""
    if session.status is None or session.tasks is None:
        return []
    tasks = session.tasks.tasks
    shown = list(tasks)
    if most is not None and len(tasks) > most:
        ranked = sorted(range(len(tasks)), key=lambda i: _BY_INTEREST.index(tasks[i].status))
        shown = [tasks[i] for i in sorted(ranked[: most - 1])]
    lines = []
    for task in shown:
        colored = click.style(f"{SIGNS[task.status]} {task.status:<12}", fg=_COLORS.get(task.status))
        lines.append(f"  {colored} {_cut(f'{task.id:<7} {task.title or task.goal}', size, _BESIDE)}")
    left = len(tasks) - len(shown)
    return [*lines, click.style(f"  … {left} more", dim=True)] if left else lines


def _questions(session: Session, size: os.terminal_size | None) -> list[str]:
    lines = []
    for decision in session.status.pending if session.status else []:
        name = click.style(f"? {decision.decision_id}", fg="yellow", bold=True)
        lines += ["", f"{name} {_cut(decision.question, size, len(decision.decision_id) + 3)}"]
    return lines


def _cut(text: str, size: os.terminal_size | None, beside: int = 0) -> str:
    """Return a text as one line, cut at the width of the screen."""
    line = one_line(text)
    room = max(size.columns - beside - 1, 1) if size else len(line)
    return line if len(line) <= room else f"{line[: room - 1]}…"


def counts(session: Session) -> dict[str, int]:
    """Return the number of tasks by status, in the order of a task's life."""
    counted = Counter(task.status for task in session.tasks.tasks) if session.tasks else Counter()
    return {status: counted[status] for status in get_args(TaskStatus)}


def progress(session: Session) -> str:
    """Return a bar of the completed tasks."""
    by_status = counts(session)
    done, total = by_status["completed"], sum(by_status.values())
    filled = _BAR * done // total if total else 0
    return f"{'█' * filled}{'░' * (_BAR - filled)} {done}/{total}"


def next_text(session: Session) -> str:
    """Return the next step in words; empty where the status cannot be read."""
    if session.status is None:
        return ""
    return "none, the session is done" if session.status.current_state == "DONE" else _NEXT[next_step(session).next]


def summary_page(session: Session, redact: Callable[[str], str]) -> str:
    """Return a session as Markdown for a step summary; ``redact`` removes secrets from its texts first."""

    def cell(text: str) -> str:
        return markdown.cell(redact(text))

    status, tasks = session.status, session.tasks
    parts = [f"#### {cell(session.name)}"]
    if status is None:
        return "\n\n".join([*parts, cell(session.parts["status.json"].problem)])
    parts.append(f"**{status.current_state}** ({session.mode}), next: {next_text(session)}")
    if status.blocker:
        parts.append(f"Blocked: {cell(status.blocker)}")
    parts.append(_mermaid(session))
    if tasks:
        parts.append(progress(session) + " tasks completed")
        rows = []
        for task in tasks.tasks:
            reviews = ", ".join(f"{role} {result}" for role, result in reviews_of(task, session.outputs).items())
            rows.append([task.id, f"{SIGNS[task.status]} {task.status}", reviews, cell(task.title or task.goal)])
        parts.append(table(["Task", "Status", "Reviews", "What"], rows[:_ROWS]) + _rest(len(rows)))
    if status.pending:
        waiting = [[item.decision_id, cell(item.question), cell(item.asked_at)] for item in status.pending]
        parts.append(table(["Open question", "What", "Since"], waiting[:_ROWS]) + _rest(len(waiting)))
    if status.known_issues:
        parts.append("Known issues:\n\n" + "\n".join(f"- {cell(issue)}" for issue in status.known_issues[:_ROWS]))
    return "\n\n".join(parts)


def _rest(rows: int) -> str:
    return f"\n\nand {rows - _ROWS} more" if rows > _ROWS else ""


def _mermaid(session: Session) -> str:
    """Return the states of the session as a diagram that marks the current one."""
    current = working_state(session.status) if session.status else ""
    here = LOOP_BASE.get(current, current)
    order = ORDER[session.mode]
    lines = ["```mermaid", "graph LR", "    " + " --> ".join(order)]
    if here in order:
        lines.append(f"    style {here} stroke-width:4px")
    return "\n".join([*lines, "```"])
