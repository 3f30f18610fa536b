"""The report of ``accord report`` for people: lines for a terminal, and a page of Markdown for a step's summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from accord.cli.output import one_line
from accord.text.markdown import as_code, cell, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accord.records.report import Figures, Report

_TITLES = {"repository": "Repository", "kind": "Kind", "agent": "Agent", "model": "Model", "cause": "Started by"}
_HEAD = ["Runs", "Ended well", "Failed", "Cost", "Tokens in", "Tokens out", "Median time"]


def report_lines(report: Report) -> list[str]:
    """Return the report as text."""
    names = ", ".join(map(one_line, report.repositories))
    lines = [click.style(f"{names}: {report.since:%Y-%m-%d} to {report.until:%Y-%m-%d}", bold=True), ""]
    lines += [f"  {name:<16} {value}" for name, value in _facts(report) if value]
    for name, title in _TITLES.items():
        if group := _worth_showing(report, name):
            lines += ["", *_columns(title, group)]
    if report.notes:
        lines += ["", click.style("Not known", bold=True), *(f"  {one_line(note)}" for note in report.notes)]
    lines += ["", click.style("Next", bold=True)]
    for step in report.next_steps:
        lines.append(f"  {one_line(step.text)}")
        lines += [click.style(f"    {one_line(step.command)}", fg="cyan")] if step.command else []
    return lines


def report_page(report: Report) -> str:
    """Return the report as Markdown."""
    names = ", ".join(as_code(name) for name in report.repositories)
    parts = [
        "### accord report",
        f"{names}, {report.since:%Y-%m-%d} to {report.until:%Y-%m-%d}.",
        table(["Figure", "Value"], [[name, value] for name, value in _facts(report) if value]),
    ]
    for name, title in _TITLES.items():
        if group := _worth_showing(report, name):
            rows = [[cell(key), *_cells(figures)] for key, figures in group.items()]
            parts.append(table([title, *_HEAD], rows))
    if report.notes:
        parts.append("**Not known**\n\n" + "\n".join(f"- {cell(note)}" for note in report.notes))
    steps = [f"- {step.text}{f' {as_code(step.command)}' if step.command else ''}" for step in report.next_steps]
    parts.append("**Next**\n\n" + "\n".join(steps))
    return "\n\n".join(parts)


def _worth_showing(report: Report, name: str) -> Mapping[str, Figures]:
    """Return a group of figures, unless it repeats the total under a name that says nothing."""
    group = report.groups.get(name, {})
    return {} if name == "repository" and len(group) < 2 else group


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    total, results = report.total, report.results
    yield "Runs", f"{total.runs} ({total.ended_well} ended well, {total.failed} failed)" if total.runs else "0"
    yield "Cost", _of_those(dollars(total.cost_usd), total.with_cost, total.runs)
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
    yield "Moves", ", ".join(f"{count} {name.removesuffix('-move')}" for name, count in report.moves.items())


def _of_those(text: str, known: int, runs: int) -> str:
    return f"{text}, known of {known} of {runs} runs" if text and known < runs else text


def _columns(title: str, group: Mapping[str, Figures]) -> Iterator[str]:
    """Yield a table for a terminal: names to the left, numbers to the right."""
    rows = [[title, *_HEAD], *([one_line(name), *_cells(figures)] for name, figures in group.items())]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for number, row in enumerate(rows):
        name, *values = (
            text.ljust(width) if not at else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        line = "  ".join([name, *values]).rstrip()
        yield click.style(f"  {line}", bold=not number)


def _cells(figures: Figures) -> list[str]:
    numbers = (figures.tokens_input, figures.tokens_output)
    tokens = ["" if number is None else f"{number:,}" for number in numbers]
    counts = [str(figures.runs), str(figures.ended_well), str(figures.failed)]
    return [*counts, dollars(figures.cost_usd), *tokens, duration(figures.median_seconds)]


def dollars(amount: float | None) -> str:
    """Return an amount of US dollars; empty for an unknown one."""
    return "" if amount is None else f"${amount:,.2f}"


def duration(seconds: float | None) -> str:
    """Return a time span in its two largest units; empty for an unknown one."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((at for at, (count, _) in enumerate(units) if count), len(units) - 1)
    return " ".join(f"{count} {unit}" for count, unit in units[first : first + 2] if count) or "0 s"
