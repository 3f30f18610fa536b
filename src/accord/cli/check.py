"""``accord check``: tell whether a document is what its contract asks for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Choice, format_option
from accord.cli.output import one_line, print_findings, print_json
from accord.cli.sources import read_bytes
from accord.core.errors import WrongUsage
from accord.core.findings import Finding, has_errors
from accord.core.kinds import FOLDERS, KINDS, check_document, check_folder, load_name

if TYPE_CHECKING:
    from collections.abc import Sequence


Checked = tuple[str, str | None, list[Finding]]
"""A document's path, its kind as far as it is known, and what was found."""


_STEP_VARIABLES = ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
"""A runner sets them for each step; elsewhere there is nothing to report to."""


class SessionRole(Choice):
    """A role of a session. Its names are imported when one is given or help is printed."""

    case_sensitive = True

    def __init__(self) -> None:
        pass

    @property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """The canonical names."""
        roles: tuple[str, ...] = load_name("accord.sessions.models:ROLES")
        return roles


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…", envvar="ACCORD_CHECK_PATHS")
@click.option("--kind", type=Choice(sorted([*KINDS, *FOLDERS])), help="Kind of the documents. Default: recognised.")
@click.option("--role", type=SessionRole(), help="For sessions: the role of the agent that wrote the document.")
@format_option
@click.pass_context
def check(ctx: click.Context, /, paths: Sequence[str], kind: str | None, role: str | None, output_format: str) -> None:
    """Check documents against their contracts.

    A PATH is a document, a folder of documents, or - for stdin. Prints every finding with its line. Exits 1 when one of
    them is an error; warnings alone exit 0. Among several, a PATH that cannot be read is an error, too.
    """
    contents, unreadable = _contents([path for path in paths if not _is_folder(path, kind)])
    if len(unreadable) == len({*paths}):
        raise next(iter(unreadable.values()))
    documents: list[Checked] = []
    for path in paths:
        if error := unreadable.get(path):
            documents.append((path, None, [Finding("file-unreadable", error.message, hint=error.hint)]))
        elif path in contents:
            documents.append((path, *check_document(contents[path], kind, path, role or "")))
        else:
            documents += _checked(path, kind)
    is_ok = not any(has_errors(findings) for _, _, findings in documents)
    print_checks(documents, output_format)
    if any(name in os.environ for name in _STEP_VARIABLES):
        from accord.cli.step import report_checks

        is_one = is_ok and len(paths) == len(contents) == 1
        handed_on = KINDS[documents[0][1] or ""].read(contents[paths[0]]).value if is_one else None
        report_checks(documents, handed_on)
    ctx.exit(0 if is_ok else 1)


def _contents(paths: Sequence[str]) -> tuple[dict[str, bytes], dict[str, WrongUsage]]:
    """Read files; return their contents, and the errors of those that cannot be read."""
    contents, unreadable = dict[str, bytes](), dict[str, WrongUsage]()
    for path in paths:
        try:
            contents[path] = read_bytes(path)
        except WrongUsage as error:
            unreadable[path] = error
    return contents, unreadable


def _is_folder(path: str, kind: str | None) -> bool:
    return kind in FOLDERS or (path != "-" and kind is None and Path(path).is_dir())


def _checked(path: str, kind: str | None) -> list[Checked]:
    """Check a folder whose documents belong together: the folder itself first, then each document."""
    if not Path(path).is_dir():
        raise WrongUsage(f"`{path}` is not a folder.", hint=f"Name the folder, or leave out `--kind {kind}`.")
    return [(str(place), name, findings) for place, name, findings in check_folder(Path(path), kind)]


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


def _as_json(path: str, kind: str | None, findings: Sequence[Finding]) -> dict[str, Any]:
    return {"path": path, "kind": kind, "findings": [finding.as_json() for finding in findings]}
