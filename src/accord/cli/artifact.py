"""``accord artifact``: what another job of a workflow run uploaded, as a folder."""

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
    from accord.github.artifacts import Fetched


@click.command()
@click.argument("name", metavar="NAME", envvar="ACCORD_ARTIFACT_NAME")
@click.option("--into", type=click.Path(path_type=Path), required=True, help="The folder to make; it must be new.")
@click.option("--file", "wanted", default="", metavar="PATH", help="A file that must be in it; else its only one.")
@click.option("--run-id", type=click.IntRange(min=1), metavar="N", help="The run; GITHUB_RUN_ID when not given.")
@reading_options
@format_option
def artifact(name: str, into: Path, wanted: str, run_id: int | None, output_format: str, **access: Any) -> None:
    """Fetch the newest artifact NAME of a workflow run, and unpack it into a new folder.

    The folder appears with everything in it, or not at all. Links, paths that lead out of the folder, and archives that
    unfold without end are refused. The token needs actions: read.
    """
    from accord.cli.step import report_artifact
    from accord.github.artifacts import fetch_artifact

    run = run_id or _own_run()
    with github_for(**access) as way:
        fetched = fetch_artifact(way.github, name, run, into, wanted)
    file = str(into / fetched.file) if fetched.file else ""
    report_artifact(fetched, into, file)
    if output_format == "json":
        print_json(_as_json(fetched, run, into, file))
        return
    for member in fetched.members:
        click.echo(f"{member.size:>12,}  {one_line(member.path)}")
    click.echo(click.style(f"{one_line(name)} of run {run} is in {one_line(str(into))}", bold=True))


def _own_run() -> int:
    run_id = os.environ.get("GITHUB_RUN_ID", "")
    if not run_id.isdecimal():
        raise WrongUsage("It is not said which workflow run.", hint="Pass --run-id N, or set GITHUB_RUN_ID.")
    return int(run_id)


def _as_json(fetched: Fetched, run: int, into: Path, file: str) -> dict[str, Any]:
    return {
        "artifact": fetched.artifact.name,
        "id": str(fetched.artifact.id),
        "run_id": str(run),
        "path": str(into),
        "file": file,
        "files": [{"path": member.path, "bytes": member.size} for member in fetched.members],
    }
