"""``accord session``: the folder of an agent session, moved by the rules of its contract."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import click

from accord.cli.check import Checked, print_checks, report_checks
from accord.cli.options import (
    FormatArguments,
    Group,
    RootArguments,
    WritingArguments,
    argument,
    command,
    option,
    top_of,
)
from accord.cli.output import one_line
from accord.cli.session_output import (
    CLOCK,
    ChangeSessionArguments,
    FolderArguments,
    as_document,
    dry_run_keys,
    item_lines,
    leave_session,
    planned_lines,
    print_change,
    refusals,
    run_change,
    screen,
    session_next,
    task_counts,
    watch,
)
from accord.cli.session_questions import answer_questions, ask_question, cancel_question, skip_question
from accord.cli.session_run import run_turns
from accord.cli.step import as_output, leave_outputs, present
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import has_errors, pointer
from accord.core.machine import moves_to_json
from accord.git.extraction import merge_base
from accord.git.program import Git
from accord.sessions import run as session_run
from accord.sessions.apply import SessionWriter
from accord.sessions.changes import change_findings
from accord.sessions.folder import changed_sessions, read_session
from accord.sessions.folder_rules import check_session
from accord.sessions.models import CORRECTORS, LOOPS, ROLES, STATES
from accord.sessions.next_moves import next_moves
from accord.sessions.policy import WORK, parse_setting


class _CheckSessionsArguments(FormatArguments):
    folders: tuple[str, ...] = argument("[DIR]…", envvar="ACCORD_SESSION_CHECK_FOLDERS")
    base: str = option("--base REF", "Check the sessions changed since HEAD left this branch.")


@command(_CheckSessionsArguments, "check")
def check_folders(given: _CheckSessionsArguments) -> int:
    """Check session documents, alone and together.

    With --base, also check what the change did to the sessions. Exits with 1 on an error.
    """
    if not given.folders and not given.base:
        raise WrongUsage("No session given.", hint="Name folders below .agents-work, or pass `--base REF`.")
    root = _root(Path())
    start = merge_base(Git(root), given.base) if given.base else ""
    paths = [*map(Path, given.folders)] or changed_sessions(root, start)
    sessions = [read_session(path) for path in paths if path.is_dir()]
    documents = [document for path in paths for document in _check_session(path, root, start)]
    print_checks(documents, given.output_format)
    report_checks(documents, name="session check")
    states = {
        each.name: {"state": each.status.current_state, "tasks": task_counts(each)} if each.status else None
        for each in sessions
    }
    leave_outputs({"sessions": as_output(states)})
    for each in sessions:
        leave_session(each)
    return 1 if any(has_errors(found) for _, _, found in documents) else 0


def _check_session(path: Path, root: Path, start: str) -> list[Checked]:
    change = list(change_findings(root, path.name, start)) if start else []
    if start and not path.is_dir():
        return [(str(path), "session", change)]
    places, found = {(one.code, one.path) for one in change}, list[Checked]()
    for file, kind, findings in check_session(path):
        above = "" if file == path else pointer(file.name)
        own = [one for one in findings if (one.code, above + one.path) not in places]
        found.append((str(file), kind, own if above else [*own, *change]))
    return found


def _root(given: Path) -> Path:
    """Return the project: the nearest directory above with sessions, else the top of the repository; or ``given``."""
    return Path(os.path.relpath(top_of(given, WORK)))


class _RoleArguments(ChangeSessionArguments):
    role: str = option("--role", "Role that makes the change.", among=ROLES, required=True)


session = Group("session", help="Manage agent sessions: state, tasks and questions.")


for _command in (check_folders, run_turns, ask_question, answer_questions, cancel_question, skip_question):
    session.add_command(_command)


class _NewSessionArguments(RootArguments, WritingArguments):
    slug: str = argument("SLUG")
    lean: bool = option("--lean", "Create a lean session, without design and plan.")
    goal: str = option("--goal", "Goal of the session: write the input of its first agent, too.")


@command(_NewSessionArguments, "new", of=session)
def new_session(given: _NewSessionArguments) -> None:
    """Create a session in .agents-work/YYYY-MM-DD_SLUG."""
    root = _root(given.root)
    plain = unicodedata.normalize("NFKD", given.slug).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:60].rstrip("-")
    if not slug:
        raise WrongUsage("The slug has no letter and no digit.", hint="Use a few words, such as `add-login`.")
    with refusals(given, root):
        writer = session_run.create_session(root, slug, is_lean=given.lean, clock=CLOCK, is_dry_run=given.dry_run)
    if not given.is_json and not given.dry_run:
        click.echo(f"Created {one_line(str(writer.folder))}")
    if given.goal and not given.dry_run:
        first = {"folder": writer.folder, "goal": given.goal, "output_format": given.output_format}
        click.get_current_context().invoke(run_turns, **first)
    else:
        print_change(given, writer)


class ShowSessionArguments(FolderArguments, FormatArguments):
    """The arguments of ``accord session show``."""


@command(ShowSessionArguments, "show", of=session)
def show_session(given: ShowSessionArguments) -> int:
    """Show state, tasks, questions and next step of a session.

    Exits with 1 where status.json cannot be read.
    """
    found = read_session(given.folder)
    lines = () if given.is_json else (*screen(found), *item_lines(found), *session_next(found))
    present(given, lambda: as_document(found), lines)
    return 0 if found.status else BrokenContract.exit_code


@command(FolderArguments, "watch", of=session)
def watch_session(given: FolderArguments) -> None:
    """Show a session live in the terminal."""
    watch(given.folder)


class _ResumeArguments(ChangeSessionArguments):
    role: str = option("--role", "The role that corrects the design.", among=CORRECTORS, default="Architect")
    apply: bool = option("--apply", "Record what must precede the next step.")


@command(_ResumeArguments, "resume", of=session)
def resume_session(given: _ResumeArguments) -> None:
    """Print the next step; record what precedes it with --apply."""
    given = replace(given, dry_run=given.dry_run or not given.apply)
    writer = SessionWriter(given.folder, CLOCK, is_dry_run=given.dry_run)
    with refusals(given, given.folder):
        session = writer.read()
        found = session_run.resume(writer, agent=given.role)
    session = session if given.dry_run else writer.read()
    pending = [decision.model_dump(mode="json", by_alias=True) for decision in found.pending]
    document: dict[str, object] = {"state": found.state, "next": found.next, "pending": pending, "reason": found.reason}
    document |= {"next_moves": moves_to_json(next_moves(session)), **dry_run_keys(given, writer)}
    lines: list[str] = []
    if given.dry_run and writer.operations:
        lines += [*planned_lines(writer), "  To record them, run the command again with `--apply`."]
    reason = found.reason and ": " + one_line(found.reason)
    step = f"{click.style(found.next, bold=True)} in {found.state}{reason}"
    lines.append("The session is done." if found.state == "DONE" else step)
    lines += [f"  {decision.decision_id}: {one_line(decision.question)}" for decision in found.pending]
    present(given, document, [*lines, *session_next(session)])


class _AdvanceArguments(_RoleArguments):
    to: str = option("--to", "New state.", among=STATES, required=True)
    blocker: str = option("--blocker", "Reason for BLOCKED.")


@command(_AdvanceArguments, "advance", of=session)
def advance_session(given: _AdvanceArguments) -> None:
    """Move a session to a state that its guards allow."""
    run_change(given, lambda writer: session_run.advance(writer, given.to, role=given.role, blocker=given.blocker))


@command(ChangeSessionArguments, "reopen", of=session)
def reopen_session(given: ChangeSessionArguments) -> None:
    """Reopen a session that is done, in IMPLEMENT_LOOP."""
    run_change(given, session_run.reopen)


class _TaskArguments(_RoleArguments):
    task: str = argument("T-XXX")
    to: str = option("--to", "Status of the task, such as in-progress or completed.", required=True)
    waive_reviews: str | None = option("--waive-reviews REASON", "Complete it without its reviews.")


@command(_TaskArguments, "task", of=session)
def set_task(given: _TaskArguments) -> None:
    """Set the status of a task, as its lifecycle allows.

    With --waive-reviews, the Orchestrator completes it without its reviews, and the reason is recorded. For `meta`,
    that replaces the final review and, in INTEGRATE, the OK of the Integrator.
    """
    waiver, task, target = given.waive_reviews, given.task, given.to
    reason = (waiver or "").strip()
    if waiver is not None and not reason:
        raise WrongUsage("No reason given.", hint="Say with `--waive-reviews` why the task needs no reviews.")
    if waiver is not None and target != "completed":
        raise WrongUsage("`--waive-reviews` completes a task.", hint="Pass `--to completed` with it.")
    run_change(
        given, lambda writer: session_run.move_task(writer, task, target, role=given.role, waiver=reason), task=task
    )


class _SetArguments(_RoleArguments):
    settings: tuple[str, ...] = argument("KEY=VALUE…", required=True)


@command(_SetArguments, "set", of=session)
def set_values(given: _SetArguments) -> None:
    """Set values of status.json that no other command sets.

    KEY is assumptions, known_issues (KEY+=VALUE adds an entry), last_ci_result, project_type, runtime_flags.NAME,
    retry_counts.T-XXX.LOOP, or blocked_from, if a blocked session lacks it.
    """
    parsed = [parse_setting(text) for text in given.settings]
    run_change(given, lambda writer: session_run.set_values(writer, parsed, role=given.role))


class _FixArguments(_RoleArguments):
    task: str = argument("T-XXX")
    loop: str = argument(among=LOOPS)


@command(_FixArguments, "fix", of=session)
def enter_fix(given: _FixArguments) -> None:
    """Enter a fix loop for a task, at most three times each."""
    run_change(given, lambda writer: session_run.start_fix(writer, given.task, given.loop, role=given.role))
