"""``accord report``: what the agents of repositories did in a period, as text, JSON or Markdown, and as spans."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import RepositoriesArguments, command, format_option, option
from accord.cli.output import one_line, print_json
from accord.cli.sources import connect_all
from accord.core.clock import parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.records.history import RunHistory

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_PERIOD = re.compile(r"([1-9][0-9]{0,3})([hdw])")
_LONGEST = timedelta(days=3660)


class Since(click.ParamType[datetime]):
    """The beginning of a period: 12h, 30d or 2w ago, a date, or a timestamp."""

    name = "d"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time. Raises BadParameter for anything else, and for a time in the future."""
        if isinstance(value, datetime):
            return value
        try:
            return since_of(str(value), datetime.now(UTC))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def since_of(text: str, now: datetime) -> datetime:
    """Return the time that a text names. Raises ValueError with a sentence."""
    text = text.strip()
    if match := _PERIOD.fullmatch(text):
        period = timedelta(**{_UNITS[match[2]]: int(match[1])})
        if period > _LONGEST:
            raise ValueError(f"`{text}` is more than ten years. Use at most `3660d`.")
        return now - period
    try:
        moment = parse_timestamp(text if "T" in text else f"{text}T00:00:00Z")
    except ValueError:
        example = now.date().replace(day=1).isoformat()
        raise ValueError(
            f"`{text[:80]}` is not a period. Use `30d`, `2w`, `12h`, or a date such as `{example}`."
        ) from None
    if moment > now:
        raise ValueError(f"`{text[:80]}` is in the future.")
    return max(moment, now - _LONGEST)


class _ReportArguments(RepositoriesArguments):
    since: datetime = option("--since", "Begin: 30d, 2w, or a date.", type=Since(), default="30d", metavar="D")
    otlp: str | None = option(
        "--otlp",
        "Also send the runs to an OpenTelemetry collector.",
        is_flag=False,
        flag_value="",
        default=None,
        metavar="[URL]",
    )
    output_format: str = format_option("Text, one JSON document, or Markdown.", "text", "json", "markdown")


@command(_ReportArguments)
def report(given: _ReportArguments) -> None:
    """Report runs, cost, results and failures of agents.

    Reads GitHub, and the logs of sessions, missions and handoffs below --root. A step also gets the report as its
    summary.
    """
    from accord.cli.report_output import report_lines, report_page
    from accord.cli.step import leave_summary
    from accord.records.history import read_moves
    from accord.records.otlp import check_installed, endpoint_of
    from accord.records.report import report_of

    endpoint = ""
    if given.otlp is not None:
        endpoint = endpoint_of(given.otlp, os.environ)
        check_installed()
    histories = _read(given)
    moves, notes = read_moves(given.root, given.since)
    found = report_of(histories, moves, notes)
    page = report_page(found)
    leave_summary(page)
    if given.output_format == "json":
        print_json(found.as_json())
    else:
        click.echo(page if given.output_format == "markdown" else "\n".join(report_lines(found)))
    if endpoint:
        sent = _send(histories, endpoint)
        click.echo(f"Sent {sent} span{'' if sent == 1 else 's'} to {one_line(endpoint)}.", err=True)


def _read(given: _ReportArguments) -> list[RunHistory]:
    from accord.board.models import address_of
    from accord.records.history import read_history

    histories = []
    with ExitStack() as stack:
        for connection in connect_all(given, stack):
            options = address_of(connection.repository, connection.server_url, given.sandbox).options
            histories.append(read_history(connection.github, connection.repository, options, given.since))
    return histories


def _send(histories: Sequence[RunHistory], endpoint: str) -> int:
    """Send the runs as spans; return how many spans these are."""
    from accord.records.otlp import send_spans, spans_of

    spans = spans_of(record for history in histories for record in history.records)
    send_spans(spans, endpoint)
    return len(spans)
