"""``accord conform``: whether a workflow is an agent runner, and whether its next version breaks its callers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.check import print_checks
from accord.cli.options import findings_format_option
from accord.cli.sources import read_bytes
from accord.cli.step import report_checks
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import has_errors, with_lines
from accord.core.kinds import read_shape
from accord.files.yaml import YamlDocument, read_mapping
from accord.workflows.facts import WORKFLOWS
from accord.workflows.models import Workflow
from accord.workflows.rules import breaking_findings, resembles_runner, runner_findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.cli.check import Checked

_LOCAL_WORKFLOW = re.compile(r"(?:\./|\$/)(?P<path>\.github/workflows/[^/]+\.ya?ml)")

_KIND = "runner-workflow"


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…", envvar="ACCORD_CONFORM_PATHS")
@click.option("--against", metavar="OLD", help="Find changes since the version OLD that break callers.")
@findings_format_option
@click.pass_context
def conform(ctx: click.Context, /, paths: Sequence[str], against: str | None, output_format: str) -> None:
    """Check agent-runner workflows.

    Checks inputs, outputs and their sources, scripts and pins, and the inputs that a workflow passes to another one of
    its repository. A PATH is a workflow, or a folder whose runners are found. Exits 1 when there is an error, or when
    nothing is a runner.
    """
    if against is None:
        documents = [document for path in paths for document in _check(path)]
    elif len(paths) == 1:
        documents = _compare(against, paths[0])
    else:
        raise WrongUsage("--against compares two versions of one workflow.", hint="Name one workflow besides.")
    is_ok = not any(has_errors(findings) for _, _, findings in documents)
    is_ok = is_ok and any(kind for _, kind, _ in documents)
    print_checks(documents, output_format)
    report_checks(documents, name="conform")
    ctx.exit(0 if is_ok else 1)


def _check(path: str) -> Iterator[Checked]:
    """Check a workflow, or all of a folder: of the repository there, or the files in it."""
    folder = Path(path)
    if not folder.is_dir():
        yield _check_file(path)
        return
    inside = folder / WORKFLOWS
    files = sorted((inside if inside.is_dir() else folder).glob("*.y*ml"))
    if not files:
        raise WrongUsage(f"No workflow in `{path}`.", hint=f"Name a repository, or a folder such as `{WORKFLOWS}`.")
    yield from (_check_file(str(file)) for file in files)


def _check_file(path: str) -> Checked:
    """Check a workflow; one that is not meant as a runner has no kind and no findings."""
    try:
        workflow, document = _read(path)
    except BrokenContract as broken:
        return path, _KIND, list(broken.findings)
    if not resembles_runner(workflow):
        return path, None, []
    findings = runner_findings(workflow, _called(workflow, path))
    return path, _KIND, with_lines(findings, document.lines)


def _compare(old: str, new: str) -> list[Checked]:
    read = []
    for path in (old, new):
        try:
            read.append(_read(path))
        except BrokenContract as broken:
            return [(path, _KIND, list(broken.findings))]
    (before, _), (after, document) = read
    return [(new, _KIND, with_lines(breaking_findings(before, after), document.lines))]


def _read(path: str) -> tuple[Workflow, YamlDocument]:
    document = read_mapping(read_bytes(path))
    try:
        return read_shape(Workflow, document.value), document
    except BrokenContract as broken:
        raise BrokenContract(broken.message, findings=with_lines(broken.findings, document.lines)) from None


def _called(workflow: Workflow, path: str) -> dict[str, Workflow]:
    """Read the workflows of the same repository that one calls; what cannot be read is not at hand."""
    found = {}
    for job in workflow.jobs.values():
        named = _LOCAL_WORKFLOW.fullmatch(job.uses)
        file = _beside(Path(path), named["path"]) if named else None
        if file:
            try:
                found[job.uses], _ = _read(str(file))
            except BrokenContract:
                continue
    return found


def _beside(caller: Path, name: str) -> Path | None:
    """Find a workflow of the caller's repository: where ``uses`` says, or beside the caller in a folder of copies."""
    folder = caller.absolute().parent
    is_in_place = (folder.name, folder.parent.name) == ("workflows", ".github")
    file = folder.parents[1] / name if is_in_place else folder / Path(name).name
    return file if file.is_file() else None
