"""``accord status`` and ``board``: what needs a person, on a terminal, in the browser, as files, and as an issue."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import click
from click.core import ParameterSource

from accord.board.dashboard import board_body, show_dashboard
from accord.board.facts import KnownPulls, read_snapshot
from accord.board.models import HEADINGS, BoardSnapshot, Entry, Overview, address_of
from accord.cli.options import (
    FOLDER,
    Arguments,
    FileArguments,
    FormatArguments,
    PostingArguments,
    RepositoriesArguments,
    WritingArguments,
    command,
    group,
    option,
)
from accord.cli.output import (
    CLEAR_SCREEN,
    announce,
    cut_text,
    duration,
    is_screen,
    one_line,
    print_json,
    print_lines,
    redactor,
    screen_columns,
)
from accord.cli.receipts import show_receipt
from accord.cli.sources import connect_all, posting_to
from accord.cli.step import leave_outputs, leave_summary, redacted_cell
from accord.core.clock import SystemClock
from accord.core.environment import needs_extra
from accord.core.errors import AccordError, Interrupted, WrongUsage
from accord.core.network import HOST, open_listener
from accord.engine.operations import ApplyOptions

_COLORS = {"needs_you": "red", "running": "green", "waiting": "yellow", "ready": "cyan", "done": "white"}
_WITH_COMMAND = ("needs_you", "ready")
_POLL_SECONDS = 30
_SANDBOX_SECONDS = 0.5
_REQUESTS_PER_SECOND = 5000 / 3600 / 4
"""A quarter of what GitHub allows a person's token."""
_MARGIN = 15
"""Columns before the text of an entry."""


class PeriodArguments(Arguments):
    """The period that a page shows."""

    days: int = option("--days", "How far back ended work counts.", least=1, most=365, default=7)


class _StatusArguments(PeriodArguments, RepositoriesArguments, FormatArguments):
    limit: int = option("--limit", "Rows of a section; 0 is all.", least=0, default=10)
    watch: bool = option("--watch", "On a terminal, show it again and again.")


@command(_StatusArguments)
def status(given: _StatusArguments) -> None:
    """Show what needs you, what runs, and what can start.

    Reads GitHub, and the sessions and missions below --root.
    """
    watches = given.watch and not given.is_json and is_screen(sys.stdout)
    if given.watch and not watches:
        click.echo("`--watch` needs text on a terminal. The status is shown once.", err=True)
    with open_snapshots(given, timedelta(days=given.days)) as (read, pause):
        if given.is_json:
            print_json(read().overview.as_json())
        elif watches:
            _watch(read, pause, given.limit)
        else:
            print_lines(status_lines(read().overview, given.limit, datetime.now(UTC), screen_columns()))


@contextmanager
def open_snapshots(
    given: RepositoriesArguments, period: timedelta, *, has_history: bool = False
) -> Iterator[tuple[Callable[[], BoardSnapshot], Callable[[], float]]]:
    """Connect once to each repository; yield what reads a snapshot, and what returns the seconds until the next read.

    The pause grows with the requests of a read, so that watching takes at most a quarter of the token's hourly limit.
    """
    with ExitStack() as stack:
        sources = [
            (one.github, address_of(one.repository, one.server_url, given.sandbox)) for one in connect_all(given, stack)
        ]
        known: KnownPulls | None = {} if has_history else None
        counted = [0, 0]

        def read() -> BoardSnapshot:
            found = read_snapshot(sources, given.root, period, known)
            counted[:] = [counted[1], sum(github.requests.read for github, _ in sources)]
            return found

        def pause() -> float:
            if given.sandbox is not None:
                return _SANDBOX_SECONDS
            return max(_POLL_SECONDS, (counted[1] - counted[0]) / _REQUESTS_PER_SECOND)

        yield read, pause


def _watch(read: Callable[[], BoardSnapshot], pause: Callable[[], float], limit: int) -> None:
    """Show the status again and again until Ctrl-C; a failed read says why, and the next one may succeed."""
    lines: list[str] = []
    try:
        while True:
            try:
                lines = status_lines(read().overview, limit, datetime.now(UTC), shutil.get_terminal_size().columns)
                problem = ""
            except AccordError as error:
                problem = click.style(one_line(f"{error.message} {error.hint}"), fg="red")
            click.echo(CLEAR_SCREEN + "\n".join([*lines, *filter(None, [problem])]))
            time.sleep(pause())
    except (KeyboardInterrupt, Interrupted):
        click.echo("")


def status_lines(overview: Overview, limit: int, now: datetime, columns: int | None = None) -> list[str]:
    """Return the overview as text; lines are cut at the width of a terminal."""
    sections, names_repository = overview.sections(), len(overview.repositories) > 1
    lines = [click.style("Nothing needs you.", fg="green", bold=True)] if not overview.needs_you else []
    for name, entries in sections.items():
        if entries:
            heading = click.style(f"{HEADINGS[name]} ({len(entries)})", fg=_COLORS[name], bold=True)
            lines += [*([""] if lines else []), heading]
            shown = entries[:limit] if limit else entries
            lines += [line for entry in shown for line in _entry_lines(entry, name, now, columns, names_repository)]
            if rest := len(entries) - len(shown):
                lines.append(click.style(f"  … {rest} more: pass --limit 0", dim=True))
    return lines + [click.style(f"note: {one_line(note)}", dim=True) for note in overview.notes]


def _entry_lines(
    entry: Entry, section: str, now: datetime, columns: int | None, names_repository: bool
) -> Iterator[str]:
    shown_id = one_line(entry.full_id if names_repository else entry.id)
    title, why, name = f"{shown_id} {one_line(entry.title)}", one_line(entry.why), entry.kind
    since = entry.since if section in ("needs_you", "running") else None
    time_span = duration(max((now - since).total_seconds(), 0)) if since else ""
    details = (f"for {time_span}" if time_span else "", one_line(entry.cost))
    after = "".join(f" · {detail}" for detail in details if detail)
    if section in _WITH_COMMAND:
        yield f"  {click.style(f'{name:<{_MARGIN - 3}}', bold=True)} {cut_text(title + after, columns, _MARGIN)}"
        yield f"{' ' * _MARGIN}{cut_text(why, columns, _MARGIN)}"
        if entry.command:
            yield click.style(f"{' ' * _MARGIN}{one_line(entry.command)}", fg="cyan")
    else:
        yield f"  {name:<{_MARGIN - 3}} {cut_text(f'{title} · {why}{after}', columns, _MARGIN)}"


class _BoardArguments(PeriodArguments, FileArguments, RepositoriesArguments):
    port: int = option("--port", "Port on 127.0.0.1; 0 is a free one.", least=0, most=65_535, default=0)
    open: bool = option("--open", "Open the board in the browser.")
    static: Path | None = option("--static DIR", "Write the pages into this folder, and end.", type=FOLDER)
    write: bool = option("--write", "Take answers to questions of sessions in the browser.")


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
        from accord.board.pages import page_names
        from accord.board.server import check_target, write_board

    if given.static is not None:
        if given.write:
            raise WrongUsage("`--write` has no effect on files.", hint="Pass `--write` without `--static`.")
        check_target(given.static)
    elif given.shows_only:
        raise WrongUsage("`--dry-run` has no effect on a server.", hint="Pass `--static DIR` too.")
    with open_snapshots(given, timedelta(days=given.days), has_history=True) as (read, pause):
        if given.static is not None:
            if given.shows_only:
                click.echo(f"Would write {len(list(page_names(read())))} pages into {one_line(str(given.static))}.")
                return
            count = write_board(given.static, read(), one_line)
            click.echo(f"Wrote {count} pages. Open {one_line(str(given.static / 'index.html'))}.")
        else:
            _serve(read, pause, given.port, opens=given.open, root=given.root if given.write else None)


def _serve(
    read: Callable[[], BoardSnapshot], pause: Callable[[], float], port: int, *, opens: bool, root: Path | None
) -> None:
    """Serve the board; with a ``root``, answers to questions of its sessions are recorded."""
    import uvicorn

    from accord.board.server import LiveBoard, answer_question, board_app

    record = partial(answer_question, root=root, clock=SystemClock()) if root is not None else None
    live = LiveBoard(read, one_line, pause, record)
    config = uvicorn.Config(
        board_app(live), log_config=None, log_level="critical", access_log=False, ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    with open_listener(port) as listener:
        for number in (signal.SIGINT, signal.SIGTERM):  # they end the server with 0, as the announced line says
            signal.signal(number, server.handle_exit)
        url = f"http://{HOST}:{listener.getsockname()[1]}/"
        announce(f"Board: {url}  (Ctrl-C ends it)")
        if opens:
            click.launch(url)
        try:
            server.run(sockets=[listener])
        finally:
            live.stop()


class BoardIssueArguments(PeriodArguments, WritingArguments, PostingArguments):
    """The arguments of ``accord board issue``."""


@command(BoardIssueArguments, "issue", of=board)
def board_issue(given: BoardIssueArguments) -> int:
    """Write the status into one issue, edited in place.

    A step also gets it as its summary. A dashboard that a person closed is left alone.
    """
    with posting_to(given) as (connection, policy):
        address = address_of(connection.repository, connection.server_url, given.sandbox)
        redact = redactor()
        options = ApplyOptions(connection.repository, SystemClock(), redact, policy, is_dry_run=given.dry_run)
        receipt, overview = show_dashboard(connection.github, address, timedelta(days=given.days), options)
    code = show_receipt(receipt, "-", given)
    needs, url = str(len(overview.needs_you)) if overview else "", receipt.details.get("board", {}).get("url", "")
    leave_outputs({"outcome": receipt.outcome.value, "url": redact(url), "needs-you": needs})
    if overview:
        leave_summary(board_body(overview, redacted_cell, f"{address.page}/issues"))
    return code
