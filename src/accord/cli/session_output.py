"""Output of the commands of ``accord session``: the session after a change, planned operations, or what forbids it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Arguments, FormatArguments, WritingArguments, argument
from accord.cli.output import document_lines, one_line, print_findings, print_json
from accord.cli.session_watch import screen
from accord.core.clock import SystemClock
from accord.core.errors import BrokenContract
from accord.core.moves import move_lines, moves_to_json
from accord.plans.links import documents_by_number, task_numbers
from accord.sessions.apply import SessionWriter
from accord.sessions.folder import read_session
from accord.sessions.next_moves import main_moves, next_moves, task_moves
from accord.sessions.questions import next_step
from accord.sessions.reviews import reviews_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from accord.core.moves import NextMove
    from accord.plans.links import LinkedDocument
    from accord.sessions.folder import Session

CLOCK = SystemClock()


class FolderArguments(Arguments):
    """The session of a command."""

    folder: Path = argument("DIR")


class SessionArguments(WritingArguments, FormatArguments):
    """How a change of a session is printed, and whether it is only planned."""


class ChangeSessionArguments(FolderArguments, SessionArguments):
    """The arguments of a command that changes a session."""


def run_change(
    given: ChangeSessionArguments,
    change: Callable[[SessionWriter], object],
    more: Mapping[str, Any] | None = None,
    *,
    task: str = "",
) -> None:
    """Make a change and print the session after it, in JSON with ``more``; or print what forbids it, and exit.

    ``task`` is the one that moves: a refusal names its moves.
    """
    writer = SessionWriter(given.folder, CLOCK, is_dry_run=given.dry_run)
    with refusals(given, given.folder, task):
        change(writer)
        print_change(given, writer, more)


def print_change(given: SessionArguments, writer: SessionWriter, more: Mapping[str, Any] | None = None) -> None:
    """Print the session after a change; after a dry run as it would be, with the planned operations."""
    session = writer.read()
    if given.is_json:
        print_json({**as_document(session), **dry_run_keys(given, writer), **(more or {})})
        return
    if given.dry_run:
        print_operations(writer)
        click.echo(click.style("The session would be:", dim=True))
    click.echo("\n".join([*screen(session), *next_lines(session)]))


def next_lines(session: Session) -> list[str]:
    """Return the lines that end the text of a command: the moves of the session."""
    lines = move_lines(main_moves(session))
    return ["", *map(_indented, lines)] if lines else []


def _indented(line: str) -> str:
    """Return a line of the moves as one line, with its indentation."""
    return " " * (len(line) - len(line.lstrip())) + one_line(line)


def dry_run_keys(given: SessionArguments, writer: SessionWriter) -> dict[str, Any]:
    """Return the keys that a dry run adds to the JSON document of a command."""
    operations = [operation.as_json() for operation in writer.operations]
    return {"dry_run": True, "operations": operations} if given.dry_run else {}


def print_operations(writer: SessionWriter) -> None:
    """Print the planned operations of a dry run."""
    click.echo(click.style("Dry run: nothing was written. Planned operations:", dim=True))
    for document in (operation.as_json() for operation in writer.operations):
        changed = one_line(", ".join(document.get("changed", ())))
        click.echo(f"  {document['op']} {document['target']} {changed}".rstrip())
        for line in document.get("body", "").splitlines():
            click.echo(f"    {one_line(line)}".rstrip())
    if not writer.operations:
        click.echo("  none")


@contextmanager
def refusals(given: SessionArguments, folder: Path, task: str = "") -> Iterator[None]:
    """Print the rules that forbid a change, and the legal moves of the session or ``task``; exit with 1."""
    try:
        yield
    except BrokenContract as broken:
        if given.is_json:
            findings = [found.as_json() for found in broken.findings]
            document = {"ok": False, "session": folder.name, "path": str(folder), "findings": findings}
            print_json({**document, "next_moves": moves_to_json(moves_in(folder, task))})
        else:
            click.echo(click.style(one_line(broken.message), fg="red"))
            print_findings(broken.findings, str(folder))
            print_moves(folder, task)
        raise click.exceptions.Exit(BrokenContract.exit_code) from None


def print_moves(folder: Path, task: str = "") -> None:
    """Print the lines that end a refusal: the moves of a session, or of one of its tasks."""
    for line in move_lines(moves_in(folder, task, main_moves)):
        click.echo(_indented(line))


def moves_in(
    folder: Path, task: str = "", of_session: Callable[[Session], list[NextMove]] = next_moves
) -> list[NextMove]:
    """Return the moves of a session, or of one of its tasks, as it is on the disk."""
    if not folder.is_dir():
        return []
    session = read_session(folder)
    return task_moves(session, task) or of_session(session)


def item_lines(session: Session) -> list[str]:
    """Return the work items of the tasks, and the command that shows one; nothing without any."""
    numbers = task_numbers(session)
    if not numbers:
        return []
    named = ", ".join(f"{name} #{number}" for name, number in numbers.items())
    others = [document for found in linked_documents(session).values() for document in found]
    shown = [f"  {line}" for line in document_lines(others)]
    return [one_line(f"Work items: {named}"), f"  accord items show {next(iter(numbers.values()))}", *shown]


def linked_documents(session: Session) -> dict[int, list[LinkedDocument]]:
    """Return what else in the checkout names the work items of a session's tasks; nothing is read without any."""
    folder = Path(os.path.relpath(session.folder.absolute()))
    numbers = set(task_numbers(session).values())
    if not numbers or folder.absolute().parent.name != ".agents-work":
        return {}
    found = documents_by_number(folder.parent.parent)
    others = {number: [each for each in found.get(number, ()) if each.name != session.name] for number in numbers}
    return {number: documents for number, documents in others.items() if documents}


def as_document(session: Session) -> dict[str, Any]:
    """Return a session as the JSON document of its commands."""
    status, tasks = session.status, session.tasks
    value = status.model_dump(mode="json", by_alias=True) if status else {}
    decisions = value.get("user_decisions", [])
    numbers = task_numbers(session)
    linked = linked_documents(session)
    return {
        "ok": status is not None,
        "session": session.name,
        "path": str(session.folder),
        "mode": session.mode,
        "state": status.current_state if status else None,
        "next": next_step(session).next if status else None,
        "tasks": [
            {
                "id": task.id,
                "status": task.status,
                "title": task.title,
                "reviews": reviews_of(task, session.outputs),
                "work_item": str(numbers[task.id]) if task.id in numbers else None,
                "documents": [each.as_json() for each in linked.get(numbers.get(task.id, 0), ())],
                "next_moves": moves_to_json(task_moves(session, task.id)),
            }
            for task in (tasks.tasks if tasks else ())
        ],
        "next_moves": moves_to_json(next_moves(session)),
        "pending": [decision for decision in decisions if decision["status"] == "pending"],
        "decisions": decisions,
        "retry_counts": value.get("retry_counts", {}),
        "correction_status": status.correction_status if status else None,
        "blocker": status.blocker if status else None,
        "blocked_from": status.blocked_from if status else None,
        "findings": [found.as_json() for found in session.parts["status.json"].findings],
    }
