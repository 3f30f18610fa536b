"""Output of the commands of ``accord session``: a session on a terminal and in a summary, its changes and refusals."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import get_args

import click

from accord.cli.options import Arguments, WritingArguments, argument
from accord.cli.output import (
    CLEAR_SCREEN,
    colored_word,
    cut_line,
    document_lines,
    finding_lines,
    is_screen,
    next_lines,
    one_line,
)
from accord.cli.step import leave_summary, long_table, present
from accord.cli.step import redacted_cell as cell
from accord.core.clock import SystemClock
from accord.core.errors import BrokenContract, Interrupted
from accord.core.machine import moves_to_json
from accord.plans.links import LinkedDocument, documents_by_number, task_numbers
from accord.sessions.apply import SessionWriter
from accord.sessions.decision_rules import working_state
from accord.sessions.folder import FILES, Session, read_session
from accord.sessions.machine import LOOP_BASE, ORDER
from accord.sessions.models import TaskStatus
from accord.sessions.next_moves import SessionMove, main_moves, moves_of_tasks, next_moves, task_moves
from accord.sessions.questions import next_step

CLOCK = SystemClock()
_SIGNS = {"not-started": "○", "in-progress": "◐", "implemented": "◑", "completed": "●", "blocked": "✖"}
_BY_INTEREST = ("blocked", "in-progress", "implemented", "not-started", "completed")
_NEXT = {
    "ask": "ask the user",
    "dispatch-correction": "dispatch the correction of the design",
    "verify-correction": "verify the correction of the design",
    "re-ask": "ask the user again",
    "continue": "continue",
    "blocked": "resolve what blocks it",
    "done": "none, the session is done",
}
_BAR = 20
_MOST_ISSUES = 100
_POLL_SECONDS = 0.5


class FolderArguments(Arguments):
    """The session of a command."""

    folder: Path = argument("DIR")


class ChangeSessionArguments(FolderArguments, WritingArguments):
    """The arguments of a command that changes a session."""


def run_change(given: ChangeSessionArguments, change: Callable[[SessionWriter], object], *, task: str = "") -> None:
    """Make a change and print the session after it; or print what forbids it, and exit.

    A mapping that the change returns has more keys for the JSON document. ``task`` is the one that moves: a refusal
    names its moves.
    """
    writer = SessionWriter(given.folder, CLOCK, is_dry_run=given.dry_run)
    with refusals(given, given.folder, task):
        more = change(writer)
        print_change(given, writer, more if isinstance(more, dict) else None)


def print_change(given: WritingArguments, writer: SessionWriter, more: Mapping[str, object] | None = None) -> None:
    """Print the session after a change; after a dry run as it would be, with the planned operations."""
    session = writer.read()

    def document() -> Mapping[str, object]:
        return {**as_document(session), **dry_run_keys(given, writer), **(more or {})}

    planned = [*planned_lines(writer), click.style("The session would be:", dim=True)] if given.dry_run else []
    present(given, document, [] if given.is_json else [*planned, *screen(session), *session_next(session)])


def session_next(session: Session) -> list[str]:
    """Return the lines that end the text of a command: the moves of the session."""
    lines = next_lines(main_moves(session))
    return ["", *lines] if lines else []


def dry_run_keys(given: WritingArguments, writer: SessionWriter) -> dict[str, object]:
    """Return the keys that a dry run adds to the JSON document of a command."""
    return {"dry_run": True, "operations": writer.operations} if given.dry_run else {}


def planned_lines(writer: SessionWriter) -> Iterator[str]:
    """Yield the planned operations of a dry run."""
    yield click.style("Dry run: nothing was written. Planned operations:", dim=True)
    for document in writer.operations:
        changed = one_line(", ".join(document.get("changed", ())))
        yield f"  {document['op']} {document['target']} {changed}".rstrip()
        yield from (f"    {one_line(line)}".rstrip() for line in document.get("body", "").splitlines())
    if not writer.operations:
        yield "  none"


@contextmanager
def refusals(given: WritingArguments, folder: Path, task: str = "", source: str = "") -> Iterator[None]:
    """Print the rules that forbid a change, and the legal moves of the session or ``task``; exit with 1.

    ``source`` is the file or folder that breaks the rules; without it, a sentence says what is forbidden.
    """
    try:
        yield
    except BrokenContract as broken:
        findings = [found.as_json() for found in broken.findings]
        moves, shown = list[SessionMove](), list[SessionMove]()
        if folder.is_dir():
            session = read_session(folder)
            of_task = task_moves(session, task)
            moves, shown = of_task or next_moves(session), of_task or main_moves(session)
        document = {"ok": False, "session": folder.name, "path": str(folder), "findings": findings}
        lines = [] if source else [click.style(one_line(broken.message), fg="red")]
        lines += [*finding_lines(broken.findings, source or str(folder)), *next_lines(shown)]
        present(given, {**document, "next_moves": moves_to_json(moves)}, lines)
        raise click.exceptions.Exit(BrokenContract.exit_code) from None


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
    numbers = set(task_numbers(session).values())
    if not numbers or Path(os.path.abspath(session.folder)).parent.name != ".agents-work":
        return {}
    found = documents_by_number(Path(os.path.relpath(session.root)))
    others = {number: [each for each in found.get(number, ()) if each.name != session.name] for number in numbers}
    return {number: documents for number, documents in others.items() if documents}


def as_document(session: Session) -> dict[str, object]:
    """Return a session as the JSON document of its commands."""
    status = session.status
    value = status.model_dump(mode="json", by_alias=True) if status else {}
    decisions = value.get("user_decisions", [])
    numbers = task_numbers(session)
    linked, moves = linked_documents(session), moves_of_tasks(session, session.plan)
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
                "reviews": session.record.results[task.id],
                "work_item": str(numbers[task.id]) if task.id in numbers else None,
                "documents": [each.as_json() for each in linked.get(numbers.get(task.id, 0), ())],
                "next_moves": moves_to_json(moves[task.id]),
            }
            for task in session.plan
        ],
        "next_moves": moves_to_json(next_moves(session)),
        "pending": [decision for decision in decisions if decision["status"] == "pending"],
        "decisions": decisions,
        "retry_counts": value.get("retry_counts", {}),
        "correction_status": status.correction_status if status else None,
        "blocker": status.blocker if status else None,
        "blocked_from": status.blocked_from if status else None,
        "findings": [found.as_json() for found in session.status_findings],
    }


def watch(folder: Path) -> None:
    """Show a session; on a terminal, show it again whenever a file changes, until it is done or interrupted."""
    if not is_screen(sys.stdout):
        click.echo("\n".join(screen(read_session(folder))))
        return
    seen: object = None
    try:
        while True:
            size = shutil.get_terminal_size()
            marks: list[object] = [size]
            for name in FILES:
                with suppress(OSError):
                    stat = (folder / name).stat()
                    marks.append((name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
            if marks != seen:
                seen = marks
                session = read_session(folder)
                click.echo(CLEAR_SCREEN + "\n".join(screen(session, size)))
                if session.status and session.status.current_state == "DONE":
                    return
            time.sleep(_POLL_SECONDS)
    except (KeyboardInterrupt, Interrupted):
        click.echo("")


def screen(session: Session, size: os.terminal_size | None = None) -> list[str]:
    """Return the lines that show a session; with a size, at most one screen of them, cut at its width."""
    status, head = session.status, [click.style(one_line(session.name), bold=True)]
    if status is None:
        head += finding_lines(session.status_findings, str(session.folder))
        return [cut_line(line, size) for line in head]
    head.append(f"{click.style(status.current_state, bold=True)} ({session.mode})   next: {_next_text(session)}")
    if status.blocker:
        head.append(click.style(one_line(f"blocked: {status.blocker}"), fg="red"))
    broken = [part.problem for part in session.parts.values() if part.problem and not part.is_missing]
    head += [click.style(one_line(problem), fg="red") for problem in broken]
    if session.tasks:
        head += ["", click.style(_progress(session), fg="green")]
    questions = []
    for decision in status.pending:
        name = click.style(f"? {decision.decision_id}", fg="yellow", bold=True)
        questions += ["", f"{name} {one_line(decision.question)}"]
    room = size.lines - len(head) - len(questions) - 1 if size else None  # without the line of the cursor
    tasks = _tasks(session, None if room is None else max(room, 1))
    return [cut_line(line, size) for line in (*head, *tasks, *questions)]


def _tasks(session: Session, most: int | None) -> list[str]:
    """Return the lines of the tasks in the order of the plan; if space is short, keep those in progress."""
    tasks = session.plan
    shown = list(tasks)
    if most is not None and len(tasks) > most:
        ranked = sorted(range(len(tasks)), key=lambda i: _BY_INTEREST.index(tasks[i].status))
        shown = [tasks[i] for i in sorted(ranked[: most - 1])]
    lines = []
    for task in shown:
        status = colored_word(task.status, shown=f"{_SIGNS[task.status]} {task.status:<12}")
        lines.append(f"  {status} {one_line(f'{task.id:<7} {task.title or task.goal}')}")
    left = len(tasks) - len(shown)
    return [*lines, click.style(f"  … {left} more", dim=True)] if left else lines


def task_counts(session: Session) -> dict[str, int]:
    """Return the number of tasks by status, in the order of a task's life."""
    counted = Counter(task.status for task in session.plan)
    return {status: counted[status] for status in get_args(TaskStatus)}


def _progress(session: Session) -> str:
    by_status = task_counts(session)
    done, total = by_status["completed"], sum(by_status.values())
    filled = _BAR * done // total if total else 0
    return f"{'█' * filled}{'░' * (_BAR - filled)} {done}/{total}"


def _next_text(session: Session) -> str:
    return _NEXT[next_step(session).next] if session.status else ""


def leave_session(session: Session) -> None:
    """Add a session to the summary of the step."""
    status = session.status
    title = f"#### {cell(session.name)}"
    if status is None:
        leave_summary(title, cell(session.parts["status.json"].problem))
        return
    rows = []
    for task in session.plan:
        reviews = ", ".join(f"{role} {result}" for role, result in session.record.results[task.id].items())
        rows.append([task.id, f"{_SIGNS[task.status]} {task.status}", reviews, cell(task.title or task.goal)])
    open_questions = [[item.decision_id, cell(item.question), cell(item.asked_at)] for item in status.pending]
    here, order = LOOP_BASE.get(working_state(status), working_state(status)), ORDER[session.mode]
    current = [f"    style {here} stroke-width:4px"] if here in order else []
    issues = [f"- {cell(issue)}" for issue in status.known_issues[:_MOST_ISSUES]]
    leave_summary(
        title,
        f"**{status.current_state}** ({session.mode}), next: {_next_text(session)}",
        f"Blocked: {cell(status.blocker)}" if status.blocker else "",
        "\n".join(["```mermaid", "graph LR", "    " + " --> ".join(order), *current, "```"]),
        _progress(session) + " tasks completed" if session.tasks else "",
        long_table(["Task", "Status", "Reviews", "What"], rows, "in the session"),
        long_table(["Open question", "What", "Since"], open_questions, "in the session"),
        "Known issues:\n\n" + "\n".join(issues) if issues else "",
    )
