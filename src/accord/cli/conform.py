"""``accord conform``: whether a workflow is an agent runner, and whether its next version breaks its callers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from accord.cli.check import Checked, print_checks, report_checks
from accord.cli.options import FindingsArguments, argument, command, option
from accord.cli.sources import read_bytes
from accord.core.clock import SystemClock
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, PlacedFinding, has_errors, with_lines
from accord.core.shapes import read_shape
from accord.files.yaml import YamlDocument, read_mapping
from accord.workflows.facts import WORKFLOWS, CalledFiles, RepositoryFiles
from accord.workflows.models import Workflow
from accord.workflows.rules import contract_findings, is_runner
from accord.workflows.untrusted import script_findings
from accord.workflows.versions import breaking_findings

_LOCAL_WORKFLOW = re.compile(r"(?:\./|\$/)(?P<path>\.github/workflows/[^/]+\.ya?ml)")

_KIND = "runner-workflow"
_NO_RUNNER = "No agent runner in `{}`: one is called with a prompt, with the inputs and outputs of the runner contract."


class _ConformArguments(FindingsArguments):
    paths: tuple[str, ...] = argument("PATH…", required=True, envvar="ACCORD_CONFORM_PATHS")
    against: str | None = option("--against OLD", "Find changes since the version OLD that break callers.")


@command(_ConformArguments)
def conform(given: _ConformArguments) -> int:
    """Check agent-runner workflows.

    A PATH is a workflow, or a folder whose runners are found. Exits 1 when there is an error, or when nothing is a
    runner.
    """
    if given.against is None:
        documents = [document for path in given.paths for document in _check(path)]
        if not any(kind for _, kind, _ in documents):
            documents = [
                (
                    path,
                    None,
                    [Finding("no-runner", _NO_RUNNER.format(path), hint="Name the file of a runner or its folder.")],
                )
                for path in given.paths
            ]
    elif len(given.paths) == 1:
        documents = _compare(given.against, given.paths[0])
    else:
        raise WrongUsage("--against compares two versions of one workflow.", hint="Name one workflow besides.")
    is_ok = not any(has_errors(findings) for _, _, findings in documents)
    print_checks(documents, given.output_format)
    report_checks(documents, name="conform")
    return 0 if is_ok else 1


def _check(path: str) -> Iterator[Checked]:
    """Check a workflow, or all of a folder: of the repository there, or the files in it."""
    folder = Path(path)
    if not folder.is_dir():
        yield from _check_file(path)
        return
    inside = folder / WORKFLOWS
    files = sorted((inside if inside.is_dir() else folder).glob("*.y*ml"))
    if not files:
        raise WrongUsage(f"No workflow in `{path}`.", hint=f"Name a repository, or a folder such as `{WORKFLOWS}`.")
    yield from (checked for file in files for checked in _check_file(str(file)))


def _check_file(path: str) -> Iterator[Checked]:
    """Check a workflow and the actions that it uses; one that is not meant as a runner has no kind and no findings."""
    try:
        workflow, document, source = _read(path)
    except BrokenContract as broken:
        yield path, _KIND, list(broken.findings)
        return
    if not is_runner(workflow):
        yield path, None, []
        return
    files, root = RepositoryFiles({path: document.lines}, {path: source}), _root_of(Path(path))
    called = CalledFiles(root, files) if root else None
    if called:
        workflow = called.with_calls(path, workflow)
    found: list[PlacedFinding] = [
        (path, finding) for finding in contract_findings(workflow, _read_called(workflow, path))
    ]
    found += [*script_findings(path, {path: workflow}), *(called.missing if called else ())]
    for place in dict.fromkeys([path, *(place for place, _ in found)]):
        findings = [finding for where, finding in found if where == place]
        shown = path if place == path else str((root or Path()) / place)
        yield shown, _KIND, with_lines(findings, files.lines.get(place, {}), files.sources.get(place, ""))


def _compare(old: str, new: str) -> list[Checked]:
    read = []
    for path in (old, new):
        try:
            read.append(_read(path))
        except BrokenContract as broken:
            return [(path, _KIND, list(broken.findings))]
    (before, *_), (after, document, _) = read
    return [(new, _KIND, with_lines(breaking_findings(before, after, SystemClock().now().date()), document.lines))]


def _read(path: str) -> tuple[Workflow, YamlDocument, str]:
    raw = read_bytes(path)
    document = read_mapping(raw)
    try:
        return read_shape(Workflow, document.value), document, raw.decode("utf-8", "replace")
    except BrokenContract as broken:
        raise BrokenContract(broken.message, findings=with_lines(broken.findings, document.lines)) from None


def _read_called(workflow: Workflow, path: str) -> dict[str, Workflow]:
    """Read the workflows of the same repository that one calls, also further down.

    They are where ``uses`` says, or beside the workflow among copies. One that cannot be read is left out.
    """
    root, found, waiting = _root_of(Path(path)), dict[str, Workflow](), [workflow]
    files = CalledFiles(root, RepositoryFiles()) if root else None
    for uses in (job.uses for caller in waiting for job in caller.jobs.values()):
        if uses not in found and (named := _LOCAL_WORKFLOW.fullmatch(uses)):
            file = root / named["path"] if root else Path(path).parent / Path(named["path"]).name
            with suppress(BrokenContract):
                if file.is_file():
                    called = _read(str(file))[0]
                    found[uses] = files.with_calls(str(file), called) if files else called
                    waiting.append(found[uses])
    return found


def _root_of(workflow: Path) -> Path | None:
    """Return the root of the repository that a workflow file is in; None in a folder of copies."""
    folder = workflow.absolute().parent
    if (folder.name, folder.parent.name) != ("workflows", ".github"):
        return None
    return folder.parents[1] if workflow.is_absolute() else Path(os.path.relpath(folder.parents[1]))
