"""``accord session check``: folders of sessions, each document of them, and what a change did to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.output import format_option
from accord.cli.step_files import as_output, leave_outputs, leave_summary, redact
from accord.kernel.errors import WrongUsage
from accord.kernel.findings import has_errors
from accord.kernel.git import Git
from accord.kernel.patches import merge_base
from accord.sessions.dashboard import counts, page
from accord.sessions.folder import Session, check_session, read_session
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
        raise WrongUsage("No session is named.", mend="Name folders below .agents-work, or a --base to compare with.")
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
