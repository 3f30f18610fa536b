"""``accord artifact``: an artifact of a workflow run, unpacked into a folder."""

from __future__ import annotations

import os
from pathlib import Path

import click

from accord.cli.options import FileArguments, FormatArguments, ReadingArguments, argument, command, option
from accord.cli.output import one_line
from accord.cli.sources import github_for
from accord.cli.step import leave_outputs, long_table, present, redact, redacted_cell, report_step
from accord.core.errors import WrongUsage


class _ArtifactArguments(FileArguments, ReadingArguments, FormatArguments):
    name: str = argument("NAME", envvar="ACCORD_ARTIFACT_NAME")
    into: Path = option("--into", "The folder to create.")
    file: str = option("--file PATH", "A file that it must have. Default: its only one.")
    run_id: int | None = option("--run-id N", "The workflow run. Default: `GITHUB_RUN_ID`.", least=1)


@command(_ArtifactArguments, short_help="Download an artifact of a workflow run.")
def artifact(given: _ArtifactArguments) -> None:
    """Download the newest artifact NAME of a workflow run and unpack it into a new folder.

    `NAME*` downloads all artifacts that begin so, each into a folder of its name. The token needs `actions: read`.
    """
    from accord.github.artifacts import fetch_artifact, fetch_matching

    if not given.name:
        raise WrongUsage("The name of the artifact is empty.", hint="Look at the job that names and uploads it.")
    run_id = os.environ.get("GITHUB_RUN_ID", "")
    if given.run_id is None and not run_id.isdecimal():
        raise WrongUsage("No workflow run given.", hint="Pass `--run-id N` or set `GITHUB_RUN_ID`.")
    name, into, run, writes = given.name, given.into, given.run_id or int(run_id), not given.shows_only
    with github_for(given) as way:
        if name.endswith("*"):
            several = fetch_matching(way.github, name[:-1], run, into, is_kept=writes)
            found = [{"artifact": each.artifact.name, "path": str(into / each.artifact.name)} for each in several]
            leave_outputs({"path": redact(str(into)), "file": ""})
            present(given, {"path": str(into), "artifacts": found}, [one_line(each["path"]) for each in found])
            return
        fetched = fetch_artifact(way.github, name, run, into, given.file, is_kept=writes)
    file = str(into / fetched.file) if fetched.file else ""
    document = {
        "artifact": fetched.artifact.name,
        "id": str(fetched.artifact.id),
        "run_id": str(run),
        "path": str(into),
        "file": file,
        "files": [{"path": member.path, "bytes": member.size} for member in fetched.members],
    }
    lines = [f"{member.size:>12,}  {one_line(member.path)}" for member in fetched.members]
    verb = "is" if writes else "would be"
    lines.append(click.style(f"{one_line(name)} of run {run} {verb} in {one_line(str(into))}", bold=True))
    present(given, document, lines)
    rows = [[redacted_cell(member.path), f"{member.size:,}"] for member in fetched.members]
    outputs, title = {"path": str(into), "file": file}, f"artifact: {redacted_cell(fetched.artifact.name)}"
    report_step(title, outputs, long_table(["File", "Bytes"], rows, "in the artifact"))
