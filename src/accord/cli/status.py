"""``accord status``: what needs a person, what runs, what waits, what can start, and what ended."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from accord.cli.options import Arguments, FormatArguments, RepositoriesArguments, command, option
from accord.cli.output import cut_text, is_screen, one_line, print_json, print_lines, screen_columns
from accord.cli.sources import connect_all
from accord.core.errors import AccordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from accord.board.history import KnownPulls
    from accord.board.models import BoardSnapshot, Entry, Overview

_COLORS = {"needs_you": "red", "running": "green", "waiting": "yellow", "ready": "cyan", "done": "white"}
_WITH_COMMAND = ("needs_you", "ready")
_POLL_SECONDS = 30
_SANDBOX_SECONDS = 0.5
_REQUESTS_PER_SECOND = 5000 / 3600 / 4
"""A quarter of what GitHub allows a person's token."""
_CLEAR = "\x1b[H\x1b[2J"
_MARGIN = 15
"""Columns before the text of an entry."""


class PeriodArguments(Arguments):
    """The period that a page shows."""

    days: int = option("--days", "How far back ended work counts.", type=click.IntRange(1, 365), default=7)


class _StatusArguments(PeriodArguments, RepositoriesArguments, FormatArguments):
    limit: int = option("--limit", "Rows of a section; 0 is all.", type=click.IntRange(min=0), default=10)
    watch: bool = option("--watch", "On a terminal, show it again and again.")


@command(_StatusArguments)
def status(given: _StatusArguments) -> None:
    """Show what needs you, what runs, and what can start.

    Also shows what waits and what ended. Reads GitHub, and the sessions and missions below --root. Writes nothing.
    """
    watches = given.watch and not given.is_json and is_screen(sys.stdout)
    if given.watch and not watches:
        click.echo("`--watch` needs text on a terminal. The status is shown once.", err=True)
    with reading_snapshots(given, timedelta(days=given.days)) as (read, pause):
        if given.is_json:
            print_json(read().overview.as_json())
        elif watches:
            _watch(read, pause, given.limit)
        else:
            print_lines(status_lines(read().overview, given.limit, datetime.now(UTC), screen_columns()))


@contextmanager
def reading_snapshots(
    given: RepositoriesArguments, period: timedelta, *, has_history: bool = False
) -> Iterator[tuple[Callable[[], BoardSnapshot], Callable[[], float]]]:
    """Connect once to each repository; yield what reads a snapshot, and what returns the seconds until the next read.

    The pause grows with the requests of a read, so that watching takes at most a quarter of the token's hourly limit.
    """
    from accord.board.models import address_of
    from accord.board.snapshot import read_snapshot

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


def _watch(
    read: Callable[[], BoardSnapshot],
    pause: Callable[[], float],
    limit: int,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show the status again and again until Ctrl-C; a failed read says why, and the next one may succeed."""
    lines: list[str] = []
    try:
        while True:
            try:
                lines = status_lines(read().overview, limit, datetime.now(UTC), shutil.get_terminal_size().columns)
                problem = ""
            except AccordError as error:
                problem = click.style(one_line(f"{error.message} {error.hint}"), fg="red")
            click.echo(_CLEAR + "\n".join([*lines, *filter(None, [problem])]))
            sleep(pause())
    except KeyboardInterrupt:
        click.echo("")


def status_lines(overview: Overview, limit: int, now: datetime, columns: int | None = None) -> list[str]:
    """Return the overview as text; lines are cut at the width of a terminal."""
    from accord.board.models import HEADINGS

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
    shows_time = entry.since is not None and section in ("needs_you", "running")
    details = (f"for {age(entry.since, now)}" if shows_time and entry.since else "", one_line(entry.cost))
    after = "".join(f" · {detail}" for detail in details if detail)
    if section in _WITH_COMMAND:
        yield f"  {click.style(f'{name:<{_MARGIN - 3}}', bold=True)} {_cut(title + after, columns)}"
        yield f"{' ' * _MARGIN}{_cut(why, columns)}"
        if entry.command:
            yield click.style(f"{' ' * _MARGIN}{one_line(entry.command)}", fg="cyan")
    else:
        yield f"  {name:<{_MARGIN - 3}} {_cut(f'{title} · {why}{after}', columns)}"


def _cut(text: str, columns: int | None) -> str:
    return cut_text(text, columns - _MARGIN if columns else None)


_UNITS: Sequence[tuple[str, int]] = (("days", 86_400), ("h", 3600), ("min", 60))


def age(since: datetime, now: datetime) -> str:
    """Return how long something lasts, in the largest unit of which there are two."""
    seconds = max((now - since).total_seconds(), 0)
    unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= 2 * size), ("min", 60))
    return f"{seconds // size:.0f} {unit}"
