"""``accord artifact``: an artifact of a workflow run, unpacked into a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import format_option, reading_options
from accord.cli.output import one_line, print_json
from accord.cli.sources import github_for
from accord.core.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.github.artifacts import Fetched


@click.command(short_help="Download an artifact of a workflow run.")
@click.argument("name", metavar="NAME", envvar="ACCORD_ARTIFACT_NAME")
@click.option("--into", type=click.Path(path_type=Path), required=True, help="The folder to create.")
@click.option("--file", "wanted", default="", metavar="PATH", help="A file that it must have. Default: its only one.")
@click.option("--run-id", type=click.IntRange(min=1), metavar="N", help="The workflow run. Default: `GITHUB_RUN_ID`.")
@reading_options
@format_option
def artifact(name: str, into: Path, wanted: str, run_id: int | None, output_format: str, **access: Any) -> None:
    """Download the newest artifact NAME of a workflow run and unpack it into a new folder.

    The folder appears complete or not at all. A NAME that ends with `*` downloads all artifacts that begin so, each
    into a folder of its name. Links, paths outside the folder and archive bombs are refused. The token
    needs `actions: read`.
    """
    from accord.github.artifacts import fetch_artifact, fetch_matching

    run = run_id or _current_run()
    if name.endswith("*"):
        with github_for(**access) as connection:
            several = fetch_matching(connection.github, name[:-1], run, into)
        _report_several(several, into, output_format)
        return
    with github_for(**access) as way:
        fetched = fetch_artifact(way.github, name, run, into, wanted)
    file = str(into / fetched.file) if fetched.file else ""
    _report_step(fetched, into, file)
    if output_format == "json":
        files = [{"path": member.path, "bytes": member.size} for member in fetched.members]
        ids = {"artifact": fetched.artifact.name, "id": str(fetched.artifact.id), "run_id": str(run)}
        print_json({**ids, "path": str(into), "file": file, "files": files})
        return
    for member in fetched.members:
        click.echo(f"{member.size:>12,}  {one_line(member.path)}")
    click.echo(click.style(f"{one_line(name)} of run {run} is in {one_line(str(into))}", bold=True))


def _report_several(fetched: Sequence[Fetched], into: Path, output_format: str) -> None:
    """Report the artifacts that a pattern matched."""
    from accord.cli.step import leave_redacted

    leave_redacted({"path": str(into), "file": ""})
    if output_format == "json":
        found = [{"artifact": each.artifact.name, "path": str(into / each.artifact.name)} for each in fetched]
        print_json({"path": str(into), "artifacts": found})
        return
    for each in fetched:
        click.echo(one_line(str(into / each.artifact.name)))


def _current_run() -> int:
    run_id = os.environ.get("GITHUB_RUN_ID", "")
    if not run_id.isdecimal():
        raise WrongUsage("No workflow run given.", hint="Pass `--run-id N` or set `GITHUB_RUN_ID`.")
    return int(run_id)


def _report_step(fetched: Fetched, into: Path, file: str) -> None:
    """Report ``accord artifact``: outputs ``path`` and ``file``, and what is in it."""
    from accord.cli.step import MOST_ROWS, leave_redacted, leave_summary, redacted_cell, rest_line
    from accord.text.markdown import table

    leave_redacted({"path": str(into), "file": file})
    rows = [[redacted_cell(member.path), f"{member.size:,}"] for member in fetched.members]
    parts = [f"### accord artifact: {redacted_cell(fetched.artifact.name)}", table(["File", "Bytes"], rows[:MOST_ROWS])]
    leave_summary("\n\n".join(parts) + rest_line(len(rows), MOST_ROWS, "in the artifact"))
