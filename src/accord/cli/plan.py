"""``accord plan``: planner results from task lists that exist already."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

import click

from accord.cli.options import EXISTING_FOLDER, Group, RepositoryArguments, WritingArguments, argument, command, option
from accord.cli.output import finding_lines, one_line, operation_lines, print_json
from accord.cli.sources import at_top, github_for
from accord.core.clock import SystemClock
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, count_of, has_errors
from accord.engine.operations import OperationLog
from accord.plans.build import build_plan
from accord.plans.read import issue_in
from accord.plans.write_back import PlanFile, PlanIssue, numbers_of_receipt, numbers_on_github
from accord.results.models import PlannerResult
from accord.results.run_options import MOST_ITEMS

plan = Group("plan", help="Make plans from task lists that exist already.")


class _PlanFromArguments(WritingArguments, RepositoryArguments):
    path: str | None = argument("[PATH]")
    issue: int | None = option("--issue N", "Read the checklist of this issue.")
    root: Path | None = option("--root", "The repository's directory. Default: found above PATH.", type=EXISTING_FOLDER)
    priority: str = option(
        "--priority", "Priority of tasks that state none.", among=("high", "medium", "low"), default="medium"
    )
    complexity: str = option(
        "--complexity", "Complexity of the tasks.", among=("trivial", "low", "medium", "high"), default="medium"
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
    path, issue = given.path and at_top(given.path), given.issue
    named = issue_in(path) if path and not Path(path).exists() else None
    if (path is None) == (issue is None):
        raise WrongUsage("Name one source.", hint="Pass a PATH or `--issue 12`.")
    if (given.receipt or given.dry_run) and not given.write_back:
        raise WrongUsage("`--receipt` and `--dry-run` are for `--write-back`.", hint="Add `--write-back`.")
    repository, number = named or ("", issue)
    with ExitStack() as stack:
        to = replace(given, repo=repository) if repository else given
        connect = cache(lambda: stack.enter_context(github_for(to)))
        source: PlanFile | PlanIssue = PlanFile(Path(path or ""), given.root)
        if number:
            source = PlanIssue(connect().github, number, f"{repository}#{number}")
        result = _build(source, given)
        if given.write_back:
            if given.receipt:
                numbers = numbers_of_receipt(given.receipt.read_bytes(), str(given.receipt))
            else:
                numbers = numbers_on_github(connect(), result, SystemClock())
            log = OperationLog(given.dry_run)
            changed = source.write(numbers, SystemClock(), log)
            planned, verb = (operation_lines(log.entries), "would change") if log.is_dry_run else ((), "changed")
            for line in (*map(one_line, changed), *planned, f"{count_of(len(changed), 'line')} {verb}."):
                click.echo(line, err=True)
            if not given.dry_run:
                result = _build(source, given)
    print_json(result.model_dump(by_alias=True))
    named_root, count = ["--root", str(given.root)] if given.root else [], len(result.create)
    again = shlex.join(["accord", "plan", "from", *([path] if path else ["--issue", str(issue)]), *named_root])
    more = f" --max-items {count}" if count > MOST_ITEMS else ""
    apply = f"{count_of(count, 'item')}. Apply: {one_line(again)} | accord apply -{more}"
    click.echo(apply if count else "Every task of the source is done.", err=True)


def _build(source: PlanFile | PlanIssue, given: _PlanFromArguments) -> PlannerResult:
    """Return the plan of a source; report its findings on stderr, and end where one is an error."""
    result, found = build_plan(source.read(), given.priority, given.complexity)
    by_file: dict[str, list[Finding]] = {}
    for file, finding in found:
        by_file.setdefault(file, []).append(finding)
    for file, findings in by_file.items():
        for line in finding_lines(sorted(findings, key=lambda each: each.line or 0), file or "plan"):
            click.echo(line, err=True)
    if errors := sum(has_errors([each]) for _, each in found):
        if given.is_json:
            rows = [{**finding.as_json(), "file": file} for file, finding in found]
            print_json({"outcome": "rejected", "findings": rows})
        click.echo(f"{count_of(errors, 'error')}. Correct the source, and run the same command again.", err=True)
        raise click.exceptions.Exit(BrokenContract.exit_code)
    return result
