"""``accord plan``: planner results from task lists that exist already."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Choice, Number, dry_run_option, format_option, repository_options
from accord.cli.output import one_line, print_findings, print_json
from accord.cli.receipts import print_operations
from accord.cli.sources import github_for
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, has_errors
from accord.engine.operations import OperationLog

if TYPE_CHECKING:
    from accord.cli.sources import Connection
    from accord.plans.build import Defaults, PlacedFindings
    from accord.plans.models import Source
    from accord.results.models import PlannerResult


@click.group()
def plan() -> None:
    """Make plans from task lists that exist already."""


@plan.command("from")
@click.argument("path", required=False, metavar="[PATH]")
@click.option("--issue", type=Number(), metavar="N", help="Read the checklist of this issue.")
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The repository's directory. Default: found above PATH.",
)
@click.option(
    "--priority",
    type=Choice(["high", "medium", "low"]),
    default="medium",
    show_default=True,
    help="Priority of tasks that state none.",
)
@click.option(
    "--complexity",
    type=Choice(["trivial", "low", "medium", "high"]),
    default="medium",
    show_default=True,
    help="Complexity of the tasks.",
)
@click.option("--write-back", is_flag=True, help="Write the issue numbers of the applied plan into the source.")
@click.option(
    "--receipt",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the numbers from this receipt, not from GitHub.",
)
@dry_run_option
@repository_options
@format_option
@click.pass_context
def plan_from(
    ctx: click.Context,
    /,
    path: str | None,
    issue: int | None,
    root: Path | None,
    priority: str,
    complexity: str,
    write_back: bool,
    receipt: Path | None,
    dry_run: bool,
    output_format: str,
    **access: Any,
) -> None:
    """Print a planner result of a task list.

    PATH is a Spec Kit tasks.md, a mission below kitty-specs, a session below .agents-work, a Markdown checklist, or an
    issue such as owner/name#12. Nothing is written to GitHub: pipe the result into `accord apply -`.

    With --write-back, the issues of the plan are also written into the source, so that later plans know them.
    """
    from accord.plans.build import Defaults
    from accord.plans.read import issue_in, read_issue, read_source
    from accord.plans.write_back import write_into_issue

    named = issue_in(path) if path and not Path(path).exists() else None
    if (path is None) == (issue is None):
        raise WrongUsage("Name one source.", hint="Pass a PATH or `--issue 12`.")
    if (receipt or dry_run) and not write_back:
        raise WrongUsage("`--receipt` and `--dry-run` are for `--write-back`.", hint="Add `--write-back`.")
    defaults = Defaults(priority, complexity)
    if named or issue:
        if named:
            access["repo"] = named[0]
        number = named[1] if named else issue or 0
        place = f"{(path and named and named[0]) or ''}#{number}"
        with github_for(**access) as connection:
            source, _ = read_issue(connection.github, number, place)
            result = _checked(ctx, source, defaults, output_format)
            if write_back:
                numbers = _numbers(receipt, result, connection)
                log = OperationLog(dry_run)
                _report_lines(write_into_issue(connection.github, number, place, numbers, log), log)
                if not dry_run:
                    source, _ = read_issue(connection.github, number, place)
                    result = _checked(ctx, source, defaults, output_format)
    else:
        source = read_source(Path(path or ""), root)
        result = _checked(ctx, source, defaults, output_format)
        if write_back:
            _write_back(Path(path or ""), source, result, receipt, dry_run, access)
            if not dry_run:
                result = _checked(ctx, read_source(Path(path or ""), root), defaults, output_format)
    print_json(result.model_dump(by_alias=True))
    click.echo(
        _next([*([path] if path else ["--issue", str(issue)]), *(["--root", str(root)] if root else [])], result),
        err=True,
    )


def _next(arguments: list[str], result: PlannerResult) -> str:
    """Return what the plan has, and the command that applies it."""
    from accord.results.run_options import MOST_ITEMS

    count = len(result.create)
    if not count:
        return "Every task of the source is done."
    command = shlex.join(["accord", "plan", "from", *arguments])
    more = f" --max-items {count}" if count > MOST_ITEMS else ""
    return f"{count} {'item' if count == 1 else 'items'}. Apply: {one_line(command)} | accord apply -{more}"


def _checked(ctx: click.Context, source: Source, defaults: Defaults, output_format: str) -> PlannerResult:
    """Return the plan of a source; report its findings, and end where one is an error."""
    from accord.plans.build import build_plan

    result, found = build_plan(source, defaults)
    _report(found)
    errors = [each for _, each in found if has_errors([each])]
    if errors:
        if output_format == "json":
            rows = [{**finding.as_json(), "file": file} for file, finding in found]
            print_json({"outcome": "rejected", "findings": rows})
        count = len(errors)
        click.echo(
            f"{count} {'error' if count == 1 else 'errors'}. Correct the source, and run the same command again.",
            err=True,
        )
        ctx.exit(BrokenContract.exit_code)
    return result


def _report(found: PlacedFindings) -> None:
    by_file: dict[str, list[Finding]] = {}
    for file, finding in found:
        by_file.setdefault(file, []).append(finding)
    with contextlib.redirect_stdout(sys.stderr):
        for file, findings in by_file.items():
            print_findings(sorted(findings, key=lambda each: each.line or 0), file or "plan")


def _write_back(
    path: Path, source: Source, result: PlannerResult, receipt: Path | None, dry_run: bool, access: dict[str, Any]
) -> None:
    from accord.core.clock import SystemClock
    from accord.plans.write_back import write_numbers

    if receipt:
        numbers = _numbers(receipt, result, None)
    else:
        with github_for(**access) as connection:
            numbers = _numbers(None, result, connection)
    log = OperationLog(dry_run)
    _report_lines(write_numbers(path, source, numbers, SystemClock(), log), log)


def _numbers(receipt: Path | None, result: PlannerResult, connection: Connection | None) -> dict[str, int]:
    """Return the issues of the tasks, from a receipt or else from GitHub."""
    from accord.core.clock import SystemClock
    from accord.plans.write_back import numbers_of_receipt, numbers_on_github

    if receipt or connection is None:
        return numbers_of_receipt(receipt.read_bytes(), str(receipt)) if receipt else {}
    return numbers_on_github(connection.github, result, connection.repository, SystemClock())


def _report_lines(changed: list[str], log: OperationLog) -> None:
    for line in changed:
        click.echo(one_line(line), err=True)
    if log.is_dry_run:
        with contextlib.redirect_stdout(sys.stderr):
            print_operations(log.entries)
    verb = "would change" if log.is_dry_run else "changed"
    click.echo(f"{len(changed)} {'line' if len(changed) == 1 else 'lines'} {verb}.", err=True)
