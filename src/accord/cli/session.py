"""``accord session``: the folder of an agent session, moved by the rules of its contract."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import Choice, format_option, root_option
from accord.cli.output import one_line, print_json
from accord.cli.session_output import (
    CLOCK,
    ChangeOptions,
    as_document,
    change_options,
    dry_run_keys,
    folder_argument,
    item_lines,
    next_lines,
    print_change,
    print_operations,
    refusals,
    run_change,
)
from accord.cli.session_questions import answer_questions, ask_question, cancel_question, skip_question
from accord.cli.session_watch import counts, screen, summary_page, watch
from accord.cli.step import as_output, leave_outputs, leave_summary, redact
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import has_errors
from accord.core.moves import moves_to_json
from accord.git.extraction import merge_base
from accord.git.program import Git
from accord.sessions.apply import SessionWriter
from accord.sessions.folder import Session, change_findings, changed_sessions, check_session, read_session
from accord.sessions.models import CORRECTORS, LOOPS, ROLES, STATES
from accord.sessions.next_moves import next_moves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.cli.check import Checked


@click.command("check")
@click.argument("folders", metavar="[DIR]…", nargs=-1, envvar="ACCORD_SESSION_CHECK_FOLDERS")
@click.option("--base", default="", metavar="REF", help="Check the sessions changed since HEAD left this branch.")
@format_option
@click.pass_context
def check_folders(ctx: click.Context, /, folders: Sequence[str], base: str, output_format: str) -> None:
    """Check session documents, alone and together.

    With --base, also check what the change did to the sessions. Exits with 1 on an error.
    """
    from accord.cli.check import print_checks

    if not folders and not base:
        raise WrongUsage("No session given.", hint="Name folders below .agents-work, or pass `--base REF`.")
    root = Path.cwd()
    start = merge_base(Git(root), base) if base else ""
    paths = [Path(folder) for folder in folders] or [path.relative_to(root) for path in changed_sessions(root, start)]
    sessions = [read_session(path) for path in paths if path.is_dir()]
    documents = [document for path in paths for document in _checked(path, root, start)]
    print_checks(documents, output_format)
    _report(documents, sessions)
    ctx.exit(1 if any(has_errors(found) for _, _, found in documents) else 0)


def _checked(path: Path, root: Path, start: str) -> list[Checked]:
    change = list(change_findings(root, path.name, start)) if start else []
    if start and not path.is_dir():
        return [(str(path), "session", change)]
    found: list[Checked] = [(str(file), kind, findings) for file, kind, findings in check_session(path)]
    return [(*found[0][:2], [*found[0][2], *change]), *found[1:]]


def _report(documents: Sequence[Checked], sessions: Sequence[Session]) -> None:
    from accord.cli.step import report_checks

    report_checks(documents, name="session check")
    read = {session.name: session.status for session in sessions}
    tasks = {session.name: counts(session) for session in sessions}
    states = {name: {"state": one.current_state, "tasks": tasks[name]} if one else None for name, one in read.items()}
    leave_outputs({"sessions": as_output(states)})
    for session in sessions:
        leave_summary(summary_page(session, redact))


_role = click.option("--role", required=True, type=Choice(ROLES), help="Role that makes the change.")


@click.group()
def session() -> None:
    """Manage agent sessions: state, tasks and questions."""


for _command in (check_folders, ask_question, answer_questions, cancel_question, skip_question):
    session.add_command(_command)


@session.command("new")
@click.argument("slug", metavar="SLUG")
@click.option("--lean", is_flag=True, help="Create a lean session, without design and plan.")
@root_option
@change_options
def new_session(options: ChangeOptions, /, slug: str, lean: bool, root: Path) -> None:
    """Create a session in .agents-work/YYYY-MM-DD_SLUG."""
    from accord.sessions.run import create_session

    with refusals(options, root):
        writer = create_session(root, _slug(slug), is_lean=lean, clock=CLOCK, is_dry_run=options.is_dry_run)
    if not options.is_json and not options.is_dry_run:
        click.echo(f"Created {one_line(str(writer.folder))}")
    print_change(options, writer)


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    found = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:60].rstrip("-")
    if not found:
        raise WrongUsage("The slug has no letter and no digit.", hint="Use a few words, such as `add-login`.")
    return found


@session.command("show")
@folder_argument
@format_option
@click.pass_context
def show_session(ctx: click.Context, /, folder: Path, output_format: str) -> None:
    """Show state, tasks, questions and next step of a session.

    Exits with 1 where status.json cannot be read.
    """
    found = read_session(folder)
    if output_format == "json":
        print_json(as_document(found))
    else:
        click.echo("\n".join([*screen(found), *item_lines(found), *next_lines(found)]))
    ctx.exit(0 if found.status else BrokenContract.exit_code)


@session.command("watch")
@folder_argument
def watch_session(folder: Path) -> None:
    """Show a session live in the terminal."""
    watch(folder)


@session.command("resume")
@folder_argument
@click.option(
    "--role", type=Choice(CORRECTORS), default="Architect", show_default=True, help="The role that corrects the design."
)
@click.option("--apply", "is_applied", is_flag=True, help="Record what must precede the next step.")
@change_options
def resume_session(options: ChangeOptions, /, folder: Path, role: str, *, is_applied: bool) -> None:
    """Print the next step; record what precedes it with --apply."""
    from accord.sessions.run import resume

    options = replace(options, is_dry_run=options.is_dry_run or not is_applied)
    writer = SessionWriter(folder, CLOCK, is_dry_run=options.is_dry_run)
    with refusals(options, folder):
        found = resume(writer, agent=role)
    pending = [decision.model_dump(mode="json", by_alias=True) for decision in found.pending]
    if options.is_json:
        document = {"state": found.state, "next": found.next, "pending": pending, "reason": found.reason}
        document["next_moves"] = moves_to_json(next_moves(writer.read()))
        print_json({**document, **dry_run_keys(options, writer)})
        return
    if options.is_dry_run and writer.operations:
        print_operations(writer)
        click.echo("  To record them, run the command again with `--apply`.")
    if found.state == "DONE":
        click.echo("The session is done.")
    else:
        reason = found.reason and ": " + one_line(found.reason)
        click.echo(f"{click.style(found.next, bold=True)} in {found.state}{reason}")
    for decision in found.pending:
        click.echo(f"  {decision.decision_id}: {one_line(decision.question)}")
    for line in next_lines(writer.read()):
        click.echo(line)


@session.command("advance")
@folder_argument
@click.option("--to", "target", required=True, type=Choice(STATES), help="New state.")
@click.option("--blocker", default="", help="Reason for BLOCKED.")
@_role
@change_options
def advance_session(options: ChangeOptions, /, folder: Path, target: str, blocker: str, role: str) -> None:
    """Move a session to a state that its guards allow."""
    from accord.sessions.run import advance

    run_change(options, folder, lambda writer: advance(writer, target, role=role, blocker=blocker))


@session.command("reopen")
@folder_argument
@change_options
def reopen_session(options: ChangeOptions, /, folder: Path) -> None:
    """Reopen a session that is done, in IMPLEMENT_LOOP."""
    from accord.sessions.run import reopen

    run_change(options, folder, reopen)


@session.command("task")
@folder_argument
@click.argument("task", metavar="T-XXX")
@click.option("--to", "target", required=True, help="Status of the task, such as in-progress or completed.")
@click.option("--waive-reviews", "waiver", metavar="REASON", help="Complete it without its reviews.")
@_role
@change_options
def set_task(options: ChangeOptions, /, folder: Path, task: str, target: str, waiver: str | None, role: str) -> None:
    """Set the status of a task, as its lifecycle allows.

    With --waive-reviews, the Orchestrator completes it without its reviews, and the reason is recorded. For `meta`,
    that replaces the final review.
    """
    from accord.sessions.run import move_task

    reason = (waiver or "").strip()
    if waiver is not None and (target != "completed" or not reason):
        raise WrongUsage("`--waive-reviews` completes a task, with a reason.", hint="Pass `--to completed` with it.")
    run_change(options, folder, lambda writer: move_task(writer, task, target, role=role, waiver=reason), task=task)


@session.command("set")
@folder_argument
@click.argument("settings", metavar="KEY=VALUE…", nargs=-1, required=True)
@_role
@change_options
def set_values(options: ChangeOptions, /, folder: Path, settings: Sequence[str], role: str) -> None:
    """Set values of status.json that no other command sets.

    KEY is assumptions, known_issues (KEY+=VALUE adds an entry), last_ci_result, project_type, runtime_flags.NAME, or
    retry_counts.T-XXX.LOOP.
    """
    from accord.sessions.run import set_values
    from accord.sessions.settings import parse_setting

    parsed = [parse_setting(text) for text in settings]
    run_change(options, folder, lambda writer: set_values(writer, parsed, role=role))


@session.command("fix")
@folder_argument
@click.argument("task", metavar="T-XXX")
@click.argument("loop", type=Choice(LOOPS))
@_role
@change_options
def enter_fix(options: ChangeOptions, /, folder: Path, task: str, loop: str, role: str) -> None:
    """Enter a fix loop for a task, at most three times each."""
    from accord.sessions.run import start_fix

    run_change(options, folder, lambda writer: start_fix(writer, task, loop, role=role))
