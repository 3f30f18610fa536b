"""``accord session watch``: a session as it goes on, on one screen."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from accord.cli.output import one_line
from accord.sessions.dashboard import SIGNS, next_step, progress
from accord.sessions.folder import FILES, read_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from accord.sessions.folder import Session

_COLORS = {"in-progress": "cyan", "implemented": "blue", "completed": "green", "blocked": "red"}
_POLL_SECONDS = 0.5
_CLEAR = "\x1b[H\x1b[2J"


def watch(folder: Path, sleep: Callable[[float], None] = time.sleep) -> None:
    """Show a session, and on a terminal show it anew whenever one of its files changes, until it is done."""
    seen: object = None
    while True:
        marks = _marks(folder)
        if marks != seen:
            seen = marks
            session = read_session(folder)
            if sys.stdout.isatty():
                click.echo(_CLEAR, nl=False)
            click.echo("\n".join(screen(session)))
            if not sys.stdout.isatty() or (session.status and session.status.current_state == "DONE"):
                return
        sleep(_POLL_SECONDS)


def _marks(folder: Path) -> tuple[object, ...]:
    found = []
    for name in FILES:
        try:
            stat = (folder / name).stat()
        except OSError:
            continue
        found.append((name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(found)


def screen(session: Session) -> list[str]:
    """Lay a session out for a terminal."""
    status, tasks = session.status, session.tasks
    lines = [click.style(one_line(session.name), bold=True)]
    if status is None:
        return [*lines, click.style(one_line(session.defect("status.json")), fg="red")]
    lines.append(f"{click.style(status.current_state, bold=True)} ({session.mode})   next: {next_step(session)}")
    if status.blocker:
        lines.append(click.style(f"blocked: {one_line(status.blocker)}", fg="red"))
    if tasks:
        lines += ["", click.style(progress(session), fg="green")]
        for task in tasks.tasks:
            colored = click.style(f"{SIGNS[task.status]} {task.status:<12}", fg=_COLORS.get(task.status))
            lines.append(f"  {colored} {one_line(task.id):<7} {one_line(task.title or task.goal)}")
    elif session.parts["tasks.yaml"].raw is not None:
        lines.append(click.style(one_line(session.defect("tasks.yaml")), fg="red"))
    for decision in status.pending:
        lines += [
            "",
            click.style(f"? {decision.decision_id}", fg="yellow", bold=True) + f" {one_line(decision.question)}",
        ]
    return lines
