"""``accord session watch``: a session as it goes on, on one screen."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

from accord.cli.output import one_line
from accord.core.errors import Stopped
from accord.sessions.dashboard import SIGNS, next_step, progress
from accord.sessions.folder import FILES, read_session

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from accord.sessions.folder import Session

_COLORS = {"in-progress": "cyan", "implemented": "blue", "completed": "green", "blocked": "red"}
_POLL_SECONDS = 0.5
_CLEAR = "\x1b[H\x1b[2J"
_INTEREST = ("blocked", "in-progress", "implemented", "not-started", "completed")
_BESIDE = 17
"""Columns before the id of a task: its sign and status."""
_MARGIN = 1
"""The line that the cursor waits in."""


def watch(folder: Path, sleep: Callable[[float], None] = time.sleep) -> None:
    """Show a session, and on a terminal show it anew whenever one of its files changes, until it is done.

    On a terminal it fills one screen at most. Whoever has seen enough ends it there.
    """
    if not sys.stdout.isatty():
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
    """Lay a session out for a terminal; where it has a size, on one screen of it."""
    head, questions = _head(session, size), _questions(session, size)
    rest = len(head) + len(questions) + _MARGIN
    tasks = _tasks(session, size, max(size.lines - rest, 1) if size else None)
    return [*head, *tasks, *questions]


def _head(session: Session, size: os.terminal_size | None) -> list[str]:
    status = session.status
    lines = [click.style(_cut(session.name, size), bold=True)]
    if status is None:
        return [*lines, click.style(one_line(session.defect("status.json")), fg="red")]
    lines.append(f"{click.style(status.current_state, bold=True)} ({session.mode})   next: {next_step(session)}")
    if status.blocker:
        lines.append(click.style(_cut(f"blocked: {status.blocker}", size), fg="red"))
    if session.tasks:
        lines += ["", click.style(progress(session), fg="green")]
    elif session.parts["tasks.yaml"].raw is not None:
        lines.append(click.style(_cut(session.defect("tasks.yaml"), size), fg="red"))
    return lines


def _tasks(session: Session, size: os.terminal_size | None, most: int | None) -> list[str]:
    """Draw the tasks in the order of the plan; where not all have room, those that are worked on come first."""
    if session.status is None or session.tasks is None:
        return []
    tasks = session.tasks.tasks
    shown = list(tasks)
    if most is not None and len(tasks) > most:
        by_interest = sorted(range(len(tasks)), key=lambda i: _INTEREST.index(tasks[i].status))
        shown = [tasks[i] for i in sorted(by_interest[: most - 1])]
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
    """Write a text in one line, which ends where the screen does."""
    line = one_line(text)
    room = max(size.columns - beside - 1, 1) if size else len(line)
    return line if len(line) <= room else f"{line[: room - 1]}…"
