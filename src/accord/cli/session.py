"""``accord session``: the folder of an agent session, moved by the rules of its contract alone."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.output import format_option, one_line, print_findings, print_json
from accord.cli.session_check import check_folders
from accord.cli.session_watch import screen
from accord.kernel.clock import SystemClock
from accord.kernel.errors import BrokenContract, WrongUsage
from accord.sessions.folder import read_session
from accord.sessions.models import LOOPS, ROLES, STATES
from accord.sessions.protocol import resumed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.sessions.folder import Session

_CLOCK = SystemClock()
_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
_ROLE = click.option("--as", "role", required=True, type=click.Choice(ROLES), help="The agent that writes.")
_CORRECTORS = ("SpecAgent", "Architect", "Designer")


@click.group()
def session() -> None:
    """Keep the folder of an agent session: its state, tasks, and questions to the user."""


@session.command("new")
@click.argument("slug", metavar="SLUG")
@click.option("--lean", is_flag=True, help="For small, clear changes: no design, no plan.")
@click.option(
    "--root", type=click.Path(path_type=Path, file_okay=False, exists=True), default=".", help="The repository."
)
@format_option
@click.pass_context
def new_session(ctx: click.Context, /, slug: str, lean: bool, root: Path, output_format: str) -> None:
    """Begin a session: .agents-work/YYYY-MM-DD_SLUG with its status.json."""
    from accord.sessions.begin import begin

    name = _slug(slug)
    _write(ctx, output_format, lambda: begin(root, name, is_lean=lean, clock=_CLOCK))


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    found = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:60].rstrip("-")
    if not found:
        raise WrongUsage("The slug has no letter and no digit.", mend="Give a few words, like add-login.")
    return found


session.add_command(check_folders)


@session.command("show")
@_FOLDER
@format_option
def show_session(folder: Path, output_format: str) -> None:
    """Show where a session stands: state, tasks, open questions, and what is next."""
    _print(read_session(folder), output_format)


@session.command("watch")
@_FOLDER
def watch_session(folder: Path) -> None:
    """Watch a session go on: drawn anew on a terminal whenever it changes, once where nobody watches."""
    from accord.cli.session_watch import watch

    watch(folder)


@session.command("ask")
@_FOLDER
@click.option("--question", "questions", required=True, multiple=True, help="What to ask; again for one more question.")
@click.option("--id", "decision_id", default="", help="UD-APPROVE-DESIGN, UD-REVIEW-STRATEGY or the next UD-<N>.")
@click.option("--category", default="", help="security: only the user may resolve it.")
@click.option("--options", multiple=True, help="A possible answer; again for each.")
@format_option
@click.pass_context
def ask_question(
    ctx: click.Context,
    /,
    folder: Path,
    questions: Sequence[str],
    decision_id: str,
    category: str,
    options: Sequence[str],
    output_format: str,
) -> None:
    """Write questions as pending, and verify them, before anybody is asked."""
    from accord.sessions.protocol import Question
    from accord.sessions.questions import ask

    if decision_id and len(questions) > 1:
        raise WrongUsage("One id is for one question.", mend="Leave --id out, or ask once for each.")
    wanted = [Question(text, decision_id, category, tuple(options)) for text in questions]
    _write(ctx, output_format, lambda: ask(folder, wanted, clock=_CLOCK) and folder)


@session.command("answer")
@_FOLDER
@click.argument("answers", metavar="ID=TEXT…", nargs=-1, required=True)
@click.option(
    "--partial", is_flag=True, help="Nothing more comes: what is left is cancelled, but for gates and security."
)
@format_option
@click.pass_context
def answer_questions(
    ctx: click.Context, /, folder: Path, answers: Sequence[str], partial: bool, output_format: str
) -> None:
    """Keep what the user answered. Other questions wait, unless --partial says that no more comes."""
    from accord.sessions.questions import answer

    given = [part.partition("=") for part in answers]
    if wrong := [name for name, sign, _ in given if not sign]:
        raise WrongUsage(f"{wrong[0]} is no ID=TEXT.", mend='Write UD-1="the answer".')
    texts = {name: text for name, _, text in given}
    if len(texts) < len(given):
        raise WrongUsage("One question is answered twice.", mend="Give each id once.")
    _write(ctx, output_format, lambda: answer(folder, texts, is_all=partial, clock=_CLOCK) and folder)


def _closing(name: str, how: Any, help_: str) -> Callable[..., Any]:
    @session.command(name, help=help_)
    @_FOLDER
    @click.argument("decision_id", metavar="ID")
    @click.option("--reason", required=True, help="Why; kept with the question.")
    @format_option
    @click.pass_context
    def command(ctx: click.Context, /, folder: Path, decision_id: str, reason: str, output_format: str) -> None:
        from accord.sessions.questions import close

        _write(ctx, output_format, lambda: close(folder, decision_id, how, reason, clock=_CLOCK) and folder)

    return command


cancel_question = _closing(
    "cancel", "cancelled", "Keep that the user put a question off. A gate blocks the session then."
)
skip_question = _closing("skip", "skipped", "Keep that a question does not apply any more.")


@session.command("resume")
@_FOLDER
@click.option(
    "--agent", type=click.Choice(_CORRECTORS), default="Architect", show_default=True, help="Who corrects the design."
)
@format_option
@click.pass_context
def resume_session(ctx: click.Context, /, folder: Path, agent: str, output_format: str) -> None:
    """Tell what is next after an interruption, and keep what must be kept before it is done."""
    from accord.sessions.questions import resume

    try:
        found = resume(folder, agent=agent, clock=_CLOCK)
    except BrokenContract as broken:
        _refused(ctx, broken, output_format, folder)
        return
    pending = [decision.model_dump(mode="json", by_alias=True) for decision in found.pending]
    if output_format == "json":
        print_json({"state": found.state, "next": found.next, "pending": pending, "reason": found.reason})
        return
    click.echo(f"{click.style(found.next, bold=True)} in {found.state}{found.reason and ': ' + one_line(found.reason)}")
    for decision in found.pending:
        click.echo(f"  {decision.decision_id}: {one_line(decision.question)}")


@session.command("advance")
@_FOLDER
@click.option("--to", "target", required=True, type=click.Choice(STATES), help="The state to go to.")
@click.option("--task", default="", help="The task, for a loop of fixes.")
@click.option("--blocker", default="", help="Why, for BLOCKED.")
@_ROLE
@format_option
@click.pass_context
def advance_session(
    ctx: click.Context, /, folder: Path, target: str, task: str, blocker: str, role: str, output_format: str
) -> None:
    """Move the session to a state, once its guards allow it."""
    from accord.sessions.moves import advance

    def move() -> Path:
        advance(folder, target, role=role, clock=_CLOCK, task=task, blocker=blocker)
        return folder

    _write(ctx, output_format, move)


@session.command("task")
@_FOLDER
@click.argument("task", metavar="T-XXX")
@click.option("--to", "target", required=True, help="not-started, in-progress, implemented, completed or blocked.")
@_ROLE
@format_option
@click.pass_context
def set_task(ctx: click.Context, /, folder: Path, task: str, target: str, role: str, output_format: str) -> None:
    """Set the status of a task, once its lifecycle and the role allow it."""
    from accord.sessions.moves import move_task

    _write(ctx, output_format, lambda: move_task(folder, task, target, role=role, clock=_CLOCK) and folder)


@session.command("fix")
@_FOLDER
@click.argument("task", metavar="T-XXX")
@click.argument("loop", type=click.Choice(LOOPS))
@_ROLE
@format_option
@click.pass_context
def enter_fix(ctx: click.Context, /, folder: Path, task: str, loop: str, role: str, output_format: str) -> None:
    """Enter a loop of fixes for a task, and count it; the fourth of a kind is refused."""
    from accord.sessions.moves import start_fix

    _write(ctx, output_format, lambda: start_fix(folder, task, loop, role=role, clock=_CLOCK) and folder)


def _write(ctx: click.Context, output_format: str, change: Callable[[], Any]) -> None:
    """Carry out a change, and show the session as it is then; or what forbids it, with exit code 1."""
    try:
        folder = change()
    except BrokenContract as broken:
        _refused(ctx, broken, output_format, ctx.params.get("folder"))
        return
    _print(read_session(folder), output_format)


def _refused(ctx: click.Context, broken: BrokenContract, output_format: str, folder: Path | None) -> None:
    if output_format == "json":
        print_json(
            {"ok": False, "session": str(folder or ""), "findings": [found.as_json() for found in broken.findings]}
        )
    else:
        click.echo(click.style(one_line(broken.message), fg="red"))
        print_findings(broken.findings, str(folder or "session"))
    ctx.exit(BrokenContract.exit_code)


def _print(found: Session, output_format: str) -> None:
    document = as_document(found)
    if output_format == "json":
        print_json(document)
        return
    click.echo("\n".join(screen(found)))


def as_document(found: Session) -> dict[str, Any]:
    """Return all that a session says of itself, for programs."""
    status, tasks = found.status, found.tasks
    decisions = (
        [decision.model_dump(mode="json", by_alias=True) for decision in status.user_decisions] if status else []
    )
    return {
        "ok": True,
        "session": found.name,
        "path": str(found.folder),
        "mode": found.mode,
        "state": status.current_state if status else None,
        "next": resumed(found).next if status else None,
        "tasks": [{"id": task.id, "status": task.status, "title": task.title} for task in tasks.tasks] if tasks else [],
        "pending": [decision for decision in decisions if decision["status"] == "pending"],
        "decisions": decisions,
        "retry_counts": status.model_dump(mode="json", by_alias=True)["retry_counts"] if status else {},
        "blocker": status.blocker if status else None,
        "findings": [],
    }
