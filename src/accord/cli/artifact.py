"""``accord artifact``: an artifact of a workflow run, unpacked into a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import FormatArguments, ReadingArguments, argument, command, option
from accord.cli.output import one_line, print_json
from accord.cli.sources import github_for
from accord.core.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.github.artifacts import Fetched


class _ArtifactArguments(ReadingArguments, FormatArguments):
    name: str = argument("NAME", envvar="ACCORD_ARTIFACT_NAME")
    into: Path = option("--into", "The folder to create.")
    file: str = option(
        "--file", "A file that it must have. Default: its only one.", was="WANTED", default="", metavar="PATH"
    )
    run_id: int | None = option(
        "--run-id", "The workflow run. Default: `GITHUB_RUN_ID`.", type=click.IntRange(min=1), metavar="N"
    )


@command(_ArtifactArguments, short_help="Download an artifact of a workflow run.")
def artifact(given: _ArtifactArguments) -> None:
    """Download the newest artifact NAME of a workflow run and unpack it into a new folder.

    The folder appears complete or not at all. `NAME*` downloads all artifacts that begin so, each into a folder of
    its name. Links, paths outside the folder and archive bombs are refused. The token needs `actions: read`.
    """
    from accord.github.artifacts import fetch_artifact, fetch_matching

    name, into, run = given.name, given.into, given.run_id or _current_run()
    if name.endswith("*"):
        with github_for(given) as connection:
            several = fetch_matching(connection.github, name[:-1], run, into)
        _report_several(several, given)
        return
    with github_for(given) as way:
        fetched = fetch_artifact(way.github, name, run, into, given.file)
    file = str(into / fetched.file) if fetched.file else ""
    _report_step(fetched, into, file)
    if given.is_json:
        files = [{"path": member.path, "bytes": member.size} for member in fetched.members]
        ids = {"artifact": fetched.artifact.name, "id": str(fetched.artifact.id), "run_id": str(run)}
        print_json({**ids, "path": str(into), "file": file, "files": files})
        return
    for member in fetched.members:
        click.echo(f"{member.size:>12,}  {one_line(member.path)}")
    click.echo(click.style(f"{one_line(name)} of run {run} is in {one_line(str(into))}", bold=True))


def _report_several(fetched: Sequence[Fetched], given: _ArtifactArguments) -> None:
    """Report the artifacts that a pattern matched."""
    from accord.cli.step import leave_redacted

    into = given.into
    leave_redacted({"path": str(into), "file": ""})
    if given.is_json:
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
