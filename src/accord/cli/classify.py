"""``accord classify``: why an agent's run failed, from what it printed."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.output import format_option, one_line, print_json
from accord.cli.sources import standard_input, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.runner.models import Classification

NO_ERROR: dict[str, Any] = {
    "category": "",
    "type": "",
    "recovery": "",
    "summary": "",
    "retry_after_seconds": None,
    "evidence": {"rule": "", "source": "", "line": ""},
}
"""What is printed for a run without an error: all keys, empty, as the contract's outputs are."""


@click.command()
@click.argument("log", metavar="LOG", envvar="ACCORD_CLASSIFY_LOG")
@click.option(
    "--agent", default="", metavar="NAME", help="Whose log it is: codex, claude, gemini. Recognised when not given."
)
@click.option("--exit-code", type=click.IntRange(0, 255), help="What the agent exited with, if known.")
@click.option("--stderr", metavar="FILE", help="What it printed to stderr.")
@format_option
def classify(log: str, agent: str, exit_code: int | None, stderr: str | None, output_format: str) -> None:
    """Tell why an agent's run failed: category, origin, what helps, and the line that decided.

    LOG is what the agent printed to stdout, as events or as plain text; - is stdin. A run without an error has an empty
    category. Without --exit-code, plain text has an error only when a line of it reports one.
    """
    from accord.cli.run_step import report_classification
    from accord.runner.classify import classify as classify_run
    from accord.runner.transcripts.read import CODECS, read_evidence, recognise

    with _file(log) as stdout:
        beside = _existing(stderr) if stderr else None
        codec = (agent if agent in CODECS else "plain") if agent else recognise(stdout, beside)
        found = classify_run(read_evidence(codec, agent or codec, exit_code, stdout, stderr=beside))
    if output_format == "json":
        print_json(found.model_dump() if found else NO_ERROR)
    else:
        _print(found)
    report_classification(found)


def _print(found: Classification | None) -> None:
    if found is None:
        click.echo("no error")
        return
    delay = f" after {found.retry_after_seconds:.10g} s" if found.retry_after_seconds is not None else ""
    click.echo(f"{click.style(found.category, fg='red', bold=True)} ({found.type}): {found.recovery}{delay}")
    click.echo(f"  {one_line(found.summary)}")
    evidence = found.evidence
    click.echo(click.style(f"  {evidence.rule}, by {evidence.source}: {one_line(evidence.line)}", dim=True))


@contextmanager
def _file(path: str) -> Iterator[Path]:
    """Give a file to read more than once; stdin is kept in one for that long."""
    if path != "-":
        yield _existing(path)
        return
    source = standard_input()
    with tempfile.TemporaryDirectory(prefix="accord-") as folder:
        copy = Path(folder) / "stdin"
        with copy.open("wb") as file:
            shutil.copyfileobj(source, file)
        yield copy


def _existing(path: str) -> Path:
    try:
        with Path(path).open("rb"):
            return Path(path).resolve()
    except OSError as error:
        raise unreadable(path, error) from None
