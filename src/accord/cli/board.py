"""``accord board``: the status of a repository as pages in the browser, as files, and as an issue."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from accord.cli.options import (
    FOLDER,
    FormatArguments,
    PostingArguments,
    RepositoriesArguments,
    WritingArguments,
    command,
    group,
    option,
)
from accord.cli.output import one_line
from accord.cli.posting import posting_to
from accord.cli.receipts import show_receipt
from accord.cli.status import PeriodArguments, reading_snapshots
from accord.cli.step import leave_outputs, leave_summary, redact, redacted_cell
from accord.core.environment import needs_extra
from accord.core.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.board.models import BoardSnapshot, Overview
    from accord.engine.receipts import Receipt


class _BoardArguments(PeriodArguments, RepositoriesArguments):
    port: int = option("--port", "Port on 127.0.0.1; 0 is a free one.", type=click.IntRange(0, 65_535), default=0)
    open: bool = option("--open", "Open the board in the browser.", was="OPENS")
    static: Path | None = option("--static", "Write the pages into this folder, and end.", type=FOLDER, metavar="DIR")
    write: bool = option("--write", "Take answers to questions of sessions in the browser.", was="WRITES")


@group(_BoardArguments, invoke_without_command=True)
def board(given: _BoardArguments) -> None:
    """Show the status of repositories in the browser.

    Serves pages to this machine until Ctrl-C, and updates them by itself. Writes nothing on GitHub.
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand:
        if any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in ctx.params):
            raise WrongUsage(
                f"These options belong to `accord board`, not to `{ctx.invoked_subcommand}`.",
                hint=f"Write them after the name: `accord board {ctx.invoked_subcommand} --repo OWNER/NAME`.",
            )
        return
    with needs_extra("web", "The board"):
        from accord.board.server import check_target, write_board

    if given.static is not None:
        if given.write:
            raise WrongUsage("`--write` has no effect on files.", hint="Pass `--write` without `--static`.")
        check_target(given.static)
    with reading_snapshots(given, timedelta(days=given.days), has_history=True) as (read, pause):
        if given.static is not None:
            count = write_board(given.static, read(), one_line)
            click.echo(f"Wrote {count} pages. Open {one_line(str(given.static / 'index.html'))}.")
        else:
            _serve(read, pause, given.port, opens=given.open, root=given.root if given.write else None)


def _serve(
    read: Callable[[], BoardSnapshot], pause: Callable[[], float], port: int, *, opens: bool, root: Path | None
) -> None:
    """Serve the board; with a ``root``, answers to questions of its sessions are recorded."""
    import socket

    import uvicorn

    from accord.board.live import LiveBoard
    from accord.board.server import HOST, board_app
    from accord.board.snapshot import answer_question
    from accord.core.clock import SystemClock

    record = partial(answer_question, root=root, clock=SystemClock()) if root is not None else None
    live = LiveBoard(read, one_line, pause, record)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            message = f"Port {port} cannot be used: {error.strerror}."
            raise WrongUsage(message, hint="Pass another port, or 0 for a free one.") from None
        listener.listen(64)
        url = f"http://{HOST}:{listener.getsockname()[1]}/"
        click.echo(f"Board: {url}  (Ctrl-C ends it)")
        if opens:
            click.launch(url)
        config = uvicorn.Config(
            board_app(live), log_level="critical", access_log=False, ws="none", timeout_graceful_shutdown=1
        )
        try:
            with suppress(KeyboardInterrupt):  # as the line above says
                uvicorn.Server(config).run(sockets=[listener])
        finally:
            live.stop()


class BoardIssueArguments(PeriodArguments, WritingArguments, PostingArguments, FormatArguments):
    """The arguments of ``accord board issue``."""


@command(BoardIssueArguments, "issue", of=board)
def board_issue(given: BoardIssueArguments) -> int:
    """Write the status into one issue, edited in place.

    A step also gets it as its summary. A dashboard that a person closed is left alone.
    """
    from accord.board.dashboard import show_dashboard
    from accord.board.models import address_of
    from accord.core.clock import SystemClock
    from accord.engine.operations import ApplyOptions
    from accord.text.redaction import redactor_for

    with posting_to(given) as (connection, policy):
        address = address_of(connection.repository, connection.server_url, given.sandbox)
        redact = redactor_for(os.environ)
        options = ApplyOptions(connection.repository, SystemClock(), redact, policy, is_dry_run=given.dry_run)
        receipt, overview = show_dashboard(connection.github, address, timedelta(days=given.days), options)
    _report(receipt, overview, f"{address.page}/issues")
    return show_receipt(receipt, "-", given)


def _report(receipt: Receipt, overview: Overview | None, issues: str) -> None:
    """Leave the outputs and the summary of a step."""
    from accord.board.dashboard import board_body

    needs = len(overview.needs_you) if overview else ""
    url = receipt.details.get("board", {}).get("url", "")
    leave_outputs({"outcome": receipt.outcome.value, "url": redact(url), "needs-you": str(needs)})
    if overview:
        leave_summary(board_body(overview, redacted_cell, issues))
