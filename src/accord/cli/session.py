"""``accord session``: the folder of an agent session, moved by the rules of its contract alone."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import Choice, dry_run_option, format_option, root_option
from accord.cli.output import one_line, print_json
from accord.cli.session_output import Showing, carry_out, refuse, show, showing_options, tried
from accord.cli.session_questions import answer_questions, ask_question, cancel_question, skip_question
from accord.cli.step import as_output, leave_outputs, leave_summary, redact
from accord.core.clock import SystemClock
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import has_errors
from accord.git.patches import merge_base
from accord.git.program import Git
from accord.sessions.dashboard import counts, page
from accord.sessions.folder import Session, check_session, read_session
from accord.sessions.models import CORRECTORS, LOOPS, ROLES, STATES
from accord.sessions.touched import change_findings, touched_sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.cli.check import Checked


@click.command("check")
@click.argument("folders", metavar="[DIR]…", nargs=-1, envvar="ACCORD_SESSION_CHECK_FOLDERS")
@click.option(
    "--base", default="", metavar="REF", help="Check the sessions that differ from where HEAD left this branch."
)
@format_option
@click.pass_context
def check_folders(ctx: click.Context, /, folders: Sequence[str], base: str, output_format: str) -> None:
    """Check sessions: each document, what they say to each other, and with --base what the change did to them.

    Exits 1 with an error.
    """
    from accord.cli.check import print_checks

    if not folders and not base:
        raise WrongUsage("No session is named.", hint="Name folders below .agents-work, or a --base to compare with.")
    root = Path.cwd()
    start = merge_base(Git(root), base) if base else ""
    paths = [Path(folder) for folder in folders] or [path.relative_to(root) for path in touched_sessions(root, start)]
    sessions = [read_session(path) for path in paths if path.is_dir()]
    documents = [document for path in paths for document in _checked(path, root, start)]
    print_checks(documents, output_format)
    _report(documents, sessions)
    ctx.exit(1 if any(has_errors(found) for _, _, found in documents) else 0)


def _checked(path: Path, root: Path, start: str) -> list[Checked]:
    of_change = list(change_findings(root, path.name, start)) if start else []
    if start and not path.is_dir():
        return [(str(path), "session", of_change)]
    found: list[Checked] = [(str(file), kind, findings) for file, kind, findings in check_session(path)]
    return [(*found[0][:2], [*found[0][2], *of_change]), *found[1:]]


def _report(documents: Sequence[Checked], sessions: Sequence[Session]) -> None:
    from accord.cli.step import report_checks

    report_checks(documents, name="session check")
    states = {
        session.name: {"state": session.status.current_state, "tasks": counts(session)} if session.status else None
        for session in sessions
    }
    leave_outputs({"sessions": as_output(states)})
    for session in sessions:
        leave_summary(page(session, redact))


_CLOCK = SystemClock()
_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
_ROLE = click.option("--role", required=True, type=Choice(ROLES), help="The role to act in.")


@click.group()
def session() -> None:
    """Keep the folder of an agent session: its state, tasks, and questions to the user."""


@session.command("new")
@click.argument("slug", metavar="SLUG")
@click.option("--lean", is_flag=True, help="For small, clear changes: no design, no plan.")
@root_option
@format_option
@click.pass_context
def new_session(ctx: click.Context, /, slug: str, lean: bool, root: Path, output_format: str) -> None:
    """Begin a session: .agents-work/YYYY-MM-DD_SLUG with its status.json."""
    from accord.sessions.moves import begin

    name = _slug(slug)
    try:
        folder = begin(root, name, is_lean=lean, clock=_CLOCK)
    except BrokenContract as broken:
        refuse(ctx, broken, output_format, root)
        return
    if output_format != "json":
        click.echo(f"Begun in {one_line(str(folder))}")
    show(read_session(folder), output_format)


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    found = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:60].rstrip("-")
    if not found:
        raise WrongUsage("The slug has no letter and no digit.", hint="Give a few words, like add-login.")
    return found


for _command in (check_folders, ask_question, answer_questions, cancel_question, skip_question):
    session.add_command(_command)


@session.command("show")
@_FOLDER
@format_option
@click.pass_context
def show_session(ctx: click.Context, /, folder: Path, output_format: str) -> None:
    """Show where a session stands: state, tasks, open questions, and what is next. Exits 1 when nothing says so."""
    found = read_session(folder)
    show(found, output_format)
    ctx.exit(0 if found.status else BrokenContract.exit_code)


@session.command("watch")
@_FOLDER
def watch_session(folder: Path) -> None:
    """Watch a session go on: drawn anew on a terminal whenever it changes, once where nobody watches."""
    from accord.cli.session_watch import watch

    watch(folder)


@session.command("resume")
@_FOLDER
@click.option(
    "--role", type=Choice(CORRECTORS), default="Architect", show_default=True, help="Who corrects the design."
)
@dry_run_option
@format_option
@click.pass_context
def resume_session(ctx: click.Context, /, folder: Path, role: str, dry_run: bool, output_format: str) -> None:
    """Tell what is next after an interruption, and keep what must be kept before it is done."""
    from accord.sessions.questions import resume

    try:
        with tried(folder, is_dry_run=dry_run) as place:
            found = resume(place, agent=role, clock=_CLOCK)
    except BrokenContract as broken:
        refuse(ctx, broken, output_format, folder)
        return
    pending = [decision.model_dump(mode="json", by_alias=True) for decision in found.pending]
    if output_format == "json":
        print_json({"state": found.state, "next": found.next, "pending": pending, "reason": found.reason})
        return
    if found.state == "DONE":
        click.echo("The session is done; nothing is left to do.")
        return
    click.echo(f"{click.style(found.next, bold=True)} in {found.state}{found.reason and ': ' + one_line(found.reason)}")
    for decision in found.pending:
        click.echo(f"  {decision.decision_id}: {one_line(decision.question)}")


@session.command("advance")
@_FOLDER
@click.option("--to", "target", required=True, type=Choice(STATES), help="The state to go to.")
@click.option("--task", default="", help="The task, for a loop of fixes.")
@click.option("--blocker", default="", help="Why, for BLOCKED.")
@_ROLE
@showing_options
def advance_session(showing: Showing, /, folder: Path, target: str, task: str, blocker: str, role: str) -> None:
    """Move the session to a state, once its guards allow it."""
    from accord.sessions.moves import advance

    def move(place: Path) -> None:
        advance(place, target, role=role, clock=_CLOCK, task=task, blocker=blocker)

    carry_out(showing, folder, move)


@session.command("reopen")
@_FOLDER
@showing_options
def reopen_session(showing: Showing, /, folder: Path) -> None:
    """Open a session again that is done, because somebody asked for it: it goes on in IMPLEMENT_LOOP."""
    from accord.sessions.moves import resume_done

    carry_out(showing, folder, lambda place: resume_done(place, clock=_CLOCK))


@session.command("task")
@_FOLDER
@click.argument("task", metavar="T-XXX")
@click.option("--to", "target", required=True, help="not-started, in-progress, implemented, completed or blocked.")
@_ROLE
@showing_options
def set_task(showing: Showing, /, folder: Path, task: str, target: str, role: str) -> None:
    """Set the status of a task, once its lifecycle and the role allow it."""
    from accord.sessions.moves import move_task

    carry_out(showing, folder, lambda place: move_task(place, task, target, role=role, clock=_CLOCK))


@session.command("fix")
@_FOLDER
@click.argument("task", metavar="T-XXX")
@click.argument("loop", type=Choice(LOOPS))
@_ROLE
@showing_options
def enter_fix(showing: Showing, /, folder: Path, task: str, loop: str, role: str) -> None:
    """Enter a loop of fixes for a task, and count it; the fourth of a kind is refused."""
    from accord.sessions.moves import start_fix

    carry_out(showing, folder, lambda place: start_fix(place, task, loop, role=role, clock=_CLOCK))
