"""``accord analyze``: which tasks of a pull request an agent's run completed, as the outputs ``llm-*``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from accord.cli.output import format_option, one_line, print_json
from accord.cli.sources import read_bytes
from accord.kernel.redaction import redactor_for
from accord.runner.analysis.providers import ALL

if TYPE_CHECKING:
    from accord.runner.analysis.models import Analysis

_SIGNS = {"answered": "✓", "failed": "✗", "skipped": "-"}


@click.command()
@click.option("--pr-body", required=True, metavar="FILE", help="The body of the pull request, with its checklist.")
@click.option("--message", required=True, metavar="FILE", help="What the agent said at the end of its run.")
@click.option(
    "--providers", default=",".join(ALL), show_default=True, metavar="NAMES", help="Who is asked, in this order."
)
@click.option("--commands", default="", metavar="FILE", help="Commands that the agent ran, one a line.")
@click.option("--diff-stat", default="", metavar="FILE", help="What the run changed, as git diff --stat prints it.")
@format_option
def analyze(pr_body: str, message: str, providers: str, commands: str, diff_stat: str, output_format: str) -> None:
    """Find out which open tasks of a pull request an agent completed; - is stdin.

    Asks the providers for which there is a key, one after the other until one answers, and reads the agent's own words
    last. Exits 0 whoever answered; the outputs tell who did.
    """
    from accord.cli.run_step import report_analysis
    from accord.kernel.clock import SystemClock
    from accord.runner.analysis.analyse import analyse
    from accord.runner.analysis.models import Question
    from accord.runner.outputs import analysis_outputs

    body = _text(pr_body)
    ran = tuple(line for line in _text(commands).splitlines() if line.strip())
    question = Question(body, _text(message), ran, _text(diff_stat))
    names = [name for name in providers.replace(",", " ").split() if name]
    found = analyse(question, environment=os.environ, providers=names, clock=SystemClock())
    warnings: list[str] = []
    outputs = analysis_outputs(found, redactor_for(os.environ), warnings)
    if output_format == "json":
        print_json(outputs)
    else:
        _print(found, _open_tasks(body))
    report_analysis(outputs, warnings)


def _text(path: str) -> str:
    return read_bytes(path).decode("utf-8-sig", "replace") if path else ""


def _open_tasks(body: str) -> list[str]:
    from accord.kernel.checklists import tasks

    return [task.text for task in tasks(body) if task.text and not task.is_checked]


def _print(found: Analysis, open_tasks: list[str]) -> None:
    completed = list(found.completed)
    told = f"{len(completed)} of {len(open_tasks)} open tasks completed"
    by = f"{found.provider} {found.model}".strip()
    click.echo(
        f"{told}, says {one_line(by)} (confidence {found.confidence:.2g})" if found.provider else "nobody answered"
    )
    for text in open_tasks:
        is_done = text in completed
        if is_done:
            completed.remove(text)
        click.echo(click.style(f"  [{'x' if is_done else ' '}] {one_line(text)}", fg="green" if is_done else None))
    for attempt in found.attempts:
        took = f" ({attempt.milliseconds} ms)" if attempt.outcome != "skipped" else ""
        reason = f": {one_line(attempt.reason)}" if attempt.reason else ""
        line = f"  {_SIGNS[attempt.outcome]} {attempt.provider} {attempt.outcome}{took}{reason}"
        click.echo(click.style(line, dim=True))
