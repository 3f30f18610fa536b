"""``accord report``: what the agents of repositories did in a period, as text, JSON or Markdown, and as spans."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import click

from accord.board.models import address_of
from accord.cli.options import RepositoriesArguments, command, format_option, option
from accord.cli.output import aligned_lines, duration, one_line, print_json
from accord.cli.sources import connect_all
from accord.cli.step import leave_summary
from accord.core.clock import parse_timestamp
from accord.core.findings import count_of
from accord.records.otlp import check_installed, endpoint_of, send_spans, spans_of
from accord.records.report import Figures, Report, read_history, report_of
from accord.text.markdown import as_code, cell, table

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_PERIOD = re.compile(r"([1-9][0-9]{0,3})([hdw])")
_LONGEST = timedelta(days=3660)
_TITLES = {"repository": "Repository", "kind": "Kind", "agent": "Agent", "model": "Model", "cause": "Started by"}
_HEAD = ["Runs", "Ended well", "Failed", "Cost", "Tokens in", "Tokens out", "Median time"]


class Since(click.ParamType[datetime]):
    """The beginning of a period: 12h, 30d or 2w ago, a date, or a timestamp."""

    name = "d"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
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
    since: datetime = option("--since D", "Begin: 30d, 2w, or a date.", type=Since(), default="30d")
    otlp: str | None = option(
        "--otlp [URL]", "Also send the runs to an OpenTelemetry collector.", is_flag=False, flag_value="", default=None
    )
    output_format: str = format_option("Text, one JSON document, or Markdown.", "text", "json", "markdown")


@command(_ReportArguments)
def report(given: _ReportArguments) -> None:
    """Report runs, cost, results and failures of agents.

    Only reads GitHub. A step also gets the report as its summary.
    """
    endpoint = ""
    if given.otlp is not None:
        endpoint = endpoint_of(given.otlp, os.environ)
        check_installed()
    histories = []
    with ExitStack() as stack:
        for connection in connect_all(given, stack):
            options = address_of(connection.repository, connection.server_url, given.sandbox).options
            histories.append(read_history(connection.github, connection.repository, options, given.since))
    found = report_of(histories)
    page = _report_page(found)
    leave_summary(page)
    if given.output_format == "json":
        print_json(found.as_json())
    else:
        click.echo(page if given.output_format == "markdown" else "\n".join(_report_lines(found)))
    if endpoint:
        spans = spans_of(record for history in histories for record in history.records)
        send_spans(spans, endpoint)
        click.echo(f"Sent {count_of(len(spans), 'span')} to {one_line(endpoint)}.", err=True)


def _report_lines(report: Report) -> list[str]:
    names = ", ".join(map(one_line, report.repositories))
    lines = [click.style(f"{names}: {report.since:%Y-%m-%d} to {report.until:%Y-%m-%d}", bold=True), ""]
    lines += [f"  {name:<16} {value}" for name, value in _facts(report) if value]
    for rows in _tables(report):
        head, *others = aligned_lines([[one_line(name), *values] for name, *values in rows], has_numbers=True)
        lines += ["", click.style(f"  {head}", bold=True), *(f"  {line}" for line in others)]
    if report.notes:
        lines += ["", click.style("Not known", bold=True), *(f"  {one_line(note)}" for note in report.notes)]
    lines += ["", click.style("Next", bold=True)]
    for step in report.next_steps:
        lines.append(f"  {one_line(step.text)}")
        lines += [click.style(f"    {one_line(step.command)}", fg="cyan")] if step.command else []
    return lines


def _report_page(report: Report) -> str:
    names = ", ".join(as_code(name) for name in report.repositories)
    parts = [
        "### accord report",
        f"{names}, {report.since:%Y-%m-%d} to {report.until:%Y-%m-%d}.",
        table(["Figure", "Value"], [[name, value] for name, value in _facts(report) if value]),
    ]
    parts += [table(head, [[cell(name), *values] for name, *values in rows]) for head, *rows in _tables(report)]
    if report.notes:
        parts.append("**Not known**\n\n" + "\n".join(f"- {cell(note)}" for note in report.notes))
    steps = [f"- {step.text}{f' {as_code(step.command)}' if step.command else ''}" for step in report.next_steps]
    parts.append("**Next**\n\n" + "\n".join(steps))
    return "\n\n".join(parts)


def _tables(report: Report) -> Iterator[list[list[str]]]:
    """Yield a table for each group of figures, unless it repeats the total under a name that says nothing."""
    for name, title in _TITLES.items():
        group = report.groups.get(name, {})
        if len(group) > (1 if name == "repository" else 0):
            yield [[title, *_HEAD], *([key, *_cells(figures)] for key, figures in group.items())]


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    total, results = report.total, report.results
    yield "Runs", f"{total.runs} ({total.ended_well} ended well, {total.failed} failed)" if total.runs else "0"
    yield "Cost", _of_those(_dollars(total.cost_usd), total.with_cost, total.runs)
    tokens = f"{total.tokens_input:,} in, {total.tokens_output:,} out" if total.tokens_input is not None else ""
    yield "Tokens", _of_those(tokens, total.with_tokens, total.runs)
    yield "Time of agents", duration(total.seconds)
    yield "Pull requests", f"{results.merged} merged, {results.closed} closed, {results.pending} pending"
    share = results.accepted_share
    yield "Accepted", "" if share is None else f"{share:.0%} of those that ended"
    if results.median_hours is not None and results.p90_hours is not None:
        times = (duration(hours * 3600) for hours in (results.median_hours, results.p90_hours))
        yield "Time to merge", "median {}, 90% within {}".format(*times)
    yield "Failures", ", ".join(f"{count} {name}" for name, count in report.failures.items())
    retries = [f"{report.retries} turns beyond the first"] if report.retries else []
    retries += [f"{report.repeated} runs after a failed one"] if report.repeated else []
    yield "Retries", ", ".join(retries)
    yield "Applied results", ", ".join(f"{count} {name}" for name, count in report.applies.items())
    yield "Turns", f"{report.turns} without an agent" if report.turns else ""


def _of_those(text: str, known: int, runs: int) -> str:
    return f"{text}, known of {known} of {runs} runs" if text and known < runs else text


def _cells(figures: Figures) -> list[str]:
    numbers = (figures.tokens_input, figures.tokens_output)
    tokens = ["" if number is None else f"{number:,}" for number in numbers]
    counts = [str(figures.runs), str(figures.ended_well), str(figures.failed)]
    return [*counts, _dollars(figures.cost_usd), *tokens, duration(figures.median_seconds)]


def _dollars(amount: float | None) -> str:
    return "" if amount is None else f"${amount:,.2f}"
