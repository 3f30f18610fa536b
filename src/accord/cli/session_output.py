"""What a command of ``accord session`` prints: the session as it is after it, or what forbids the change."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import dry_run_option, format_option
from accord.cli.output import one_line, print_findings, print_json
from accord.cli.session_watch import screen
from accord.core.errors import BrokenContract
from accord.sessions.folder import read_session
from accord.sessions.protocol import resumed
from accord.sessions.rehearsal import rehearsed
from accord.sessions.stages import reviews_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from accord.sessions.folder import Session
    from accord.sessions.models import SessionTask


@dataclass(frozen=True)
class Showing:
    """How a change of a session is shown, and whether it is only tried."""

    ctx: click.Context
    output_format: str
    is_dry_run: bool


def showing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--dry-run`` and ``--format``; the command gets a ``Showing`` as its first argument."""

    @dry_run_option
    @format_option
    @click.pass_context
    @wraps(command)
    def wrapped(ctx: click.Context, /, *arguments: Any, dry_run: bool, output_format: str, **more: Any) -> None:
        command(Showing(ctx, output_format, dry_run), *arguments, **more)

    return wrapped


def carry_out(
    showing: Showing, folder: Path, change: Callable[[Path], object], more: Mapping[str, Any] | None = None
) -> None:
    """Carry out a change, and show the session as it is then; or what forbids it, with exit code 1.

    A dry run gives the change a copy of the folder. ``more`` is printed beside the session in JSON; the change may
    still fill it.
    """
    try:
        with tried(folder, is_dry_run=showing.is_dry_run) as place:
            change(place)
            after = replace(read_session(place), folder=folder)
    except BrokenContract as broken:
        refuse(showing.ctx, broken, showing.output_format, folder)
        return
    if showing.is_dry_run and showing.output_format != "json":
        click.echo(click.style("Dry run, nothing is written. The session would be:", dim=True))
    show(after, showing.output_format, {**({"dry_run": True} if showing.is_dry_run else {}), **(more or {})})


def tried(folder: Path, *, is_dry_run: bool) -> AbstractContextManager[Path]:
    """Give the folder that a change is made in: the session's own, or for a dry run a copy."""
    return rehearsed(folder) if is_dry_run else nullcontext(folder)


def refuse(ctx: click.Context, broken: BrokenContract, output_format: str, folder: Path) -> None:
    """Print what a rule forbids, and end with its exit code."""
    if output_format == "json":
        findings = [found.as_json() for found in broken.findings]
        print_json({"ok": False, "session": folder.name, "path": str(folder), "findings": findings})
    else:
        click.echo(click.style(one_line(broken.message), fg="red"))
        print_findings(broken.findings, str(folder))
    ctx.exit(BrokenContract.exit_code)


def show(found: Session, output_format: str, more: Mapping[str, Any] | None = None) -> None:
    """Print a session."""
    if output_format == "json":
        print_json({**as_document(found), **(more or {})})
        return
    click.echo("\n".join(screen(found)))


def _task(found: Session, task: SessionTask) -> dict[str, Any]:
    reviews = reviews_of(task, found.outputs)
    return {"id": task.id, "status": task.status, "title": task.title, "reviews": reviews}


def as_document(found: Session) -> dict[str, Any]:
    """Return all that a session says of itself, for programs."""
    status, tasks = found.status, found.tasks
    decisions = (
        [decision.model_dump(mode="json", by_alias=True) for decision in status.user_decisions] if status else []
    )
    return {
        "ok": status is not None,
        "session": found.name,
        "path": str(found.folder),
        "mode": found.mode,
        "state": status.current_state if status else None,
        "next": resumed(found).next if status else None,
        "tasks": [_task(found, task) for task in tasks.tasks] if tasks else [],
        "pending": [decision for decision in decisions if decision["status"] == "pending"],
        "decisions": decisions,
        "retry_counts": status.model_dump(mode="json", by_alias=True)["retry_counts"] if status else {},
        "correction_status": status.correction_status if status else None,
        "blocker": status.blocker if status else None,
        "blocked_from": status.blocked_from if status else None,
        "findings": [found.as_json() for found in found.parts["status.json"].findings],
    }
