"""``accord check``: tell whether a document is what its contract asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Choice, format_option
from accord.cli.output import one_line, print_findings, print_json
from accord.cli.sources import read_bytes
from accord.core.documents import read_object, shown
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, has_errors, pointer, with_lines
from accord.core.kinds import reader_of
from accord.handoffs.kinds import KINDS as HANDOFFS
from accord.loops.kinds import KINDS as LOOPS
from accord.missions.kinds import KINDS as MISSIONS
from accord.results.kinds import KINDS as RESULTS
from accord.runner.registry import KINDS as REGISTRIES
from accord.sessions.kinds import FOLDERS as SESSION_FOLDERS
from accord.sessions.kinds import KINDS as SESSIONS
from accord.sessions.models import ROLES
from accord.workflows.kinds import KINDS as RUNNERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from accord.core.kinds import FolderKind, Kind, Reader


_OFFERED: tuple[Kind[Any], ...] = (*RESULTS, *RUNNERS, *REGISTRIES, *LOOPS, *SESSIONS, *MISSIONS, *HANDOFFS)

KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in _OFFERED}

FOLDERS: dict[str, FolderKind] = {kind.name: kind for kind in SESSION_FOLDERS}


def folder_kind(folder: Path) -> FolderKind:
    """Tell the kind of a folder. Raises WrongUsage when it is none that is known."""
    for kind in FOLDERS.values():
        if kind.is_one(folder):
            return kind
    raise WrongUsage(f"{folder} is a folder of no known kind.", hint=f"Pass --kind, one of {', '.join(FOLDERS)}.")


def kind_for(name: str | None, value: Mapping[str, Any], read: Reader = read_object) -> Kind[Any]:
    """Return the kind of this name; without one, the kind that a document says it is of.

    Raises BrokenContract when it says nothing known of itself, or that it is of another kind than the one asked for:
    held against that, everything in it would be wrong.
    """
    if name is None:
        return recognise(value, read)
    kind = KINDS[name]
    others = [] if kind.matches(value) else [other for other in KINDS.values() if other.matches(value)]
    for other in others:
        for key, mark in kind.marks.items():
            if not callable(mark) and other.marks.get(key, mark) != mark:
                message = f"This is of the kind {other.name}, not {name}. Pass --kind {other.name}, or leave it out."
                raise BrokenContract.of(Finding("schema", message, pointer(key)))
    return kind


def recognise(value: Mapping[str, Any], read: Reader = read_object) -> Kind[Any]:
    """Tell the kind of a document that was read so. Raises BrokenContract when it says nothing known of itself."""
    candidates = [kind for kind in KINDS.values() if kind.read is read]
    for kind in candidates:
        if kind.matches(value):
            return kind
    if read is not read_object:
        names = ", ".join(kind.name for kind in candidates)
        message = f"The kind of the document cannot be told. Pass --kind, one of {names}."
        raise BrokenContract.of(Finding("schema", message))
    role = value.get("role")
    known = ", ".join(str(kind.marks["role"]) for kind in candidates if "role" in kind.marks)
    if role is None:
        message = f'The document has no "role", so its kind is not known. Add it ({known}), or pass --kind.'
    else:
        message = f"The role '{shown(str(role))}' is none that this version knows ({known}). Correct it."
    raise BrokenContract.of(Finding("schema", message, "/role"))


Checked = tuple[str, str | None, list[Finding]]
"""A document's path, its kind as far as it is known, and what was found."""


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…", envvar="ACCORD_CHECK_PATHS")
@click.option("--kind", type=Choice(sorted([*KINDS, *FOLDERS])), help="The kind; recognised when not given.")
@click.option("--role", type=Choice(ROLES), help="Of a session: the agent that wrote it, or is meant.")
@format_option
@click.pass_context
def check(ctx: click.Context, /, paths: Sequence[str], kind: str | None, role: str | None, output_format: str) -> None:
    """Check documents, and folders of documents, against their contracts; - is stdin.

    Prints every finding with its line. Exits 1 when one of them is an error; warnings alone exit 0.
    """
    from accord.cli.step import report_checks

    contents = {path: read_bytes(path) for path in paths if not _is_folder(path, kind)}
    documents: list[Checked] = []
    for path in paths:
        if path in contents:
            documents.append((path, *check_document(contents[path], kind, path, role or "")))
        else:
            documents += check_folder(path, kind)
    is_ok = not any(has_errors(findings) for _, _, findings in documents)
    print_checks(documents, output_format)
    handed_on = None
    if is_ok and len(paths) == len(contents) == 1:
        handed_on = KINDS[documents[0][1] or ""].read(contents[paths[0]]).value
    report_checks(documents, handed_on)
    ctx.exit(0 if is_ok else 1)


def _is_folder(path: str, kind: str | None) -> bool:
    return kind in FOLDERS or (path != "-" and kind is None and Path(path).is_dir())


def check_folder(path: str, kind: str | None = None) -> list[Checked]:
    """Check a folder whose documents belong together: the folder itself first, then each document."""
    folder = Path(path)
    if not folder.is_dir():
        raise WrongUsage(f"{path} is no folder.", hint=f"Name the folder, or leave --kind {kind} out.")
    found = (FOLDERS[kind] if kind else folder_kind(folder)).check(folder)
    return [(str(place), name, findings) for place, name, findings in found]


def print_checks(documents: Sequence[Checked], output_format: str) -> None:
    """Print what was found in each document, as text or as one JSON document."""
    if output_format == "json":
        is_ok = not any(has_errors(findings) for _, _, findings in documents)
        print_json({"ok": is_ok, "documents": [_as_json(*document) for document in documents]})
        return
    for path, kind, findings in documents:
        print_findings(findings, path)
        if not findings:
            click.echo(f"{one_line(path)}: {click.style('ok', fg='green')} ({kind})")


def check_document(raw: bytes, kind: str | None, path: str = "-", role: str = "") -> tuple[str | None, list[Finding]]:
    """Check one document; return its kind (None when it cannot be told) and what was found.

    A kind says itself how it is read; what is yet to be recognised is read as the name of its file says.
    """
    read = KINDS[kind].read if kind else reader_of(path)
    try:
        document = read(raw)
        try:
            found = kind_for(kind, document.value, read)
        except BrokenContract as broken:
            return kind, with_lines(broken.findings, document.lines)
    except BrokenContract as broken:
        return kind, list(broken.findings)
    return found.name, found.check(document, role)


def _as_json(path: str, kind: str | None, findings: Sequence[Finding]) -> dict[str, Any]:
    return {"path": path, "kind": kind, "findings": [finding.as_json() for finding in findings]}
