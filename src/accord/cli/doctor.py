"""``accord doctor``: is this repository fit for agents, and what mends it where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.output import format_option, one_line, print_findings, print_json
from accord.cli.sources import repository_options
from accord.kernel.findings import Finding, Severity, with_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.cli.doctor_checks import CheckUp

_COLORS = {"ok": "green", "warning": "yellow", "error": "red", "skipped": "bright_black"}


@click.command()
@click.option(
    "--dir",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="The repository's root.",
)
@repository_options
@format_option
@click.pass_context
def doctor(ctx: click.Context, /, directory: Path, output_format: str, **access: Any) -> None:
    """Look a repository over: labels, agents, permissions, secrets, triggers, pins, scripts, names.

    Reads files, and writes nothing anywhere. GitHub is asked for the labels when there is a token and a repository.
    Exits 1 when there is an error.
    """
    from accord.cli.doctor_checks import examine
    from accord.cli.step import report_doctor

    check_ups = examine(directory, access)
    documents = _by_file(check_ups)
    is_ok = all(check_up.status != "error" for check_up in check_ups)
    if output_format == "json":
        checks = [{"name": c.name, "status": c.status, "note": c.note} for c in check_ups]
        listed = [{"path": path, "findings": [f.as_json() for f in findings]} for path, findings in documents.items()]
        print_json({"ok": is_ok, "checks": checks, "documents": listed})
    else:
        _print(check_ups, documents)
    report_doctor(is_ok, [(c.name, c.status, c.note) for c in check_ups], documents)
    ctx.exit(0 if is_ok else 1)


def _by_file(check_ups: Sequence[CheckUp]) -> dict[str, list[Finding]]:
    documents: dict[str, list[Finding]] = {}
    for check_up in check_ups:
        for path, finding in check_up.found:
            documents.setdefault(path, []).append(finding)
    return {path: with_lines(findings, {}) for path, findings in sorted(documents.items())}


def _print(check_ups: Sequence[CheckUp], documents: Mapping[str, Sequence[Finding]]) -> None:
    from accord.cli.doctor_checks import counted

    width = max(len(check_up.name) for check_up in check_ups)
    for check_up in check_ups:
        status = click.style(f"{check_up.status:<8}", fg=_COLORS[check_up.status])
        count = f"{len(check_up.found)} found" if check_up.found else ""
        note = ", ".join(filter(None, [count, check_up.note]))
        click.echo(f"{check_up.name:<{width}}  {status} {one_line(note)}".rstrip())
    for path, findings in documents.items():
        click.echo()
        print_findings(findings, path)
    all_found = [finding.severity for findings in documents.values() for finding in findings]
    errors = all_found.count(Severity.ERROR)
    click.echo(f"\n{counted(errors, 'error')}, {counted(len(all_found) - errors, 'warning')}")
