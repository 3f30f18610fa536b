"""``accord plan``: planner results from task lists that exist already."""

from __future__ import annotations

import contextlib
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import (
    EXISTING_FOLDER,
    Choice,
    FormatArguments,
    Group,
    Number,
    RepositoryArguments,
    WritingArguments,
    argument,
    command,
    option,
)
from accord.cli.output import one_line, print_findings, print_json
from accord.cli.receipts import print_operations
from accord.cli.sources import github_for
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, has_errors
from accord.engine.operations import OperationLog

if TYPE_CHECKING:
    from accord.github.client import Connection
    from accord.plans.build import PlacedFindings
    from accord.plans.models import Source
    from accord.results.models import PlannerResult


@click.group(cls=Group)
def plan() -> None:
    """Make plans from task lists that exist already."""


class _PlanFromArguments(WritingArguments, RepositoryArguments, FormatArguments):
    path: str | None = argument("[PATH]")
    issue: int | None = option("--issue", "Read the checklist of this issue.", type=Number(), metavar="N")
    root: Path | None = option("--root", "The repository's directory. Default: found above PATH.", type=EXISTING_FOLDER)
    priority: str = option(
        "--priority", "Priority of tasks that state none.", type=Choice(["high", "medium", "low"]), default="medium"
    )
    complexity: str = option(
        "--complexity", "Complexity of the tasks.", type=Choice(["trivial", "low", "medium", "high"]), default="medium"
    )
    write_back: bool = option("--write-back", "Write the issue numbers of the applied plan into the source.")
    receipt: Path | None = option(
        "--receipt",
        "Take the numbers from this receipt, not from GitHub.",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
    )


@command(_PlanFromArguments, "from", of=plan)
def plan_from(given: _PlanFromArguments) -> None:
    """Print a planner result of a task list.

    PATH is a Spec Kit tasks.md, a mission below kitty-specs, a session below .agents-work, a Markdown checklist, or an
    issue such as owner/name#12. Nothing is written to GitHub: pipe the result into `accord apply -`.

    With --write-back, the issues of the plan are also written into the source, so that later plans know them.
    """
    from accord.plans.read import issue_in, read_issue, read_source
    from accord.plans.write_back import write_into_issue

    path, issue = given.path, given.issue
    named = issue_in(path) if path and not Path(path).exists() else None
    if (path is None) == (issue is None):
        raise WrongUsage("Name one source.", hint="Pass a PATH or `--issue 12`.")
    if (given.receipt or given.dry_run) and not given.write_back:
        raise WrongUsage("`--receipt` and `--dry-run` are for `--write-back`.", hint="Add `--write-back`.")
    if named or issue:
        number = named[1] if named else issue or 0
        place = f"{(path and named and named[0]) or ''}#{number}"
        with github_for(replace(given, repo=named[0]) if named else given) as connection:
            source, _ = read_issue(connection.github, number, place)
            result = _checked(source, given)
            if given.write_back:
                numbers = _numbers(given.receipt, result, connection)
                log = OperationLog(given.dry_run)
                _report_lines(write_into_issue(connection.github, number, place, numbers, log), log)
                if not given.dry_run:
                    source, _ = read_issue(connection.github, number, place)
                    result = _checked(source, given)
    else:
        source = read_source(Path(path or ""), given.root)
        result = _checked(source, given)
        if given.write_back:
            _write_back(Path(path or ""), source, result, given)
            if not given.dry_run:
                result = _checked(read_source(Path(path or ""), given.root), given)
    print_json(result.model_dump(by_alias=True))
    named_root = ["--root", str(given.root)] if given.root else []
    click.echo(_next([*([path] if path else ["--issue", str(issue)]), *named_root], result), err=True)


def _next(arguments: list[str], result: PlannerResult) -> str:
    """Return what the plan has, and the command that applies it."""
    from accord.results.run_options import MOST_ITEMS

    count = len(result.create)
    if not count:
        return "Every task of the source is done."
    command = shlex.join(["accord", "plan", "from", *arguments])
    more = f" --max-items {count}" if count > MOST_ITEMS else ""
    return f"{count} {'item' if count == 1 else 'items'}. Apply: {one_line(command)} | accord apply -{more}"


def _checked(source: Source, given: _PlanFromArguments) -> PlannerResult:
    """Return the plan of a source; report its findings, and end where one is an error."""
    from accord.plans.build import Defaults, build_plan

    result, found = build_plan(source, Defaults(given.priority, given.complexity))
    _report(found)
    errors = [each for _, each in found if has_errors([each])]
    if errors:
        if given.is_json:
            rows = [{**finding.as_json(), "file": file} for file, finding in found]
            print_json({"outcome": "rejected", "findings": rows})
        count = len(errors)
        click.echo(
            f"{count} {'error' if count == 1 else 'errors'}. Correct the source, and run the same command again.",
            err=True,
        )
        raise click.exceptions.Exit(BrokenContract.exit_code)
    return result


def _report(found: PlacedFindings) -> None:
    by_file: dict[str, list[Finding]] = {}
    for file, finding in found:
        by_file.setdefault(file, []).append(finding)
    with contextlib.redirect_stdout(sys.stderr):
        for file, findings in by_file.items():
            print_findings(sorted(findings, key=lambda each: each.line or 0), file or "plan")


def _write_back(path: Path, source: Source, result: PlannerResult, given: _PlanFromArguments) -> None:
    from accord.core.clock import SystemClock
    from accord.plans.write_back import write_numbers

    if given.receipt:
        numbers = _numbers(given.receipt, result, None)
    else:
        with github_for(given) as connection:
            numbers = _numbers(None, result, connection)
    log = OperationLog(given.dry_run)
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
