"""``accord sync``: keep the consumer kit of many repositories up to date."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import FormatArguments, Lines, ServerArguments, WritingArguments, command, option
from accord.cli.output import Progress, one_line, print_json
from accord.cli.receipts import print_operations
from accord.cli.sources import github_for, read_bytes
from accord.core.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.github.client import GitHub
    from accord.kit.plan import FilePlan
    from accord.kit.sync import SyncResult


COLORS = {
    "add": "green",
    "update": "cyan",
    "merge": "cyan",
    "conflict": "red",
    "keep": "yellow",
    "up-to-date": "bright_black",
    "remove": "magenta",
}


def show_files(files: Sequence[FilePlan], indent: str = "") -> None:
    """List files with what happens to them, one per line."""
    width = max((len(file.path) for file in files), default=0)
    for file in files:
        padded = f"{file.action.value:<10}" if file.note else file.action.value
        action = click.style(padded, fg=COLORS[file.action.value])
        click.echo(f"{indent}{one_line(file.path):<{width}}  {action}  {file.note}".rstrip())


_COLORS = {"applied": "green", "planned": "cyan", "stopped": "red", "refused": "red", "declined": "yellow"}


class _SyncArguments(WritingArguments, ServerArguments, FormatArguments):
    repos: tuple[str, ...] = option("--repo", "A consumer's repository.", type=Lines(), metavar="OWNER/NAME")
    file: str | None = option("--file", "A list of consumers' repositories, in YAML or JSON.", metavar="REPOS.yml")
    ref: str | None = option("--ref", "The commit of accord to use. Default: that of this version.", metavar="SHA")


@command(_SyncArguments)
def sync(given: _SyncArguments) -> int:
    """Update the kit of many repositories by pull requests.

    Each repository whose kit is not of this version gets one pull request, which keeps its edits. A repository
    without the kit needs `accord init` first. The token must write contents, pull requests and workflows, which a
    job's own cannot.
    """
    from accord.core.clock import SystemClock
    from accord.kit.pins import pin_for
    from accord.kit.sync import overall_outcome, sync_repositories, sync_repository
    from accord.kit.templates import shipped_kit

    repositories = _repositories(given.repos, given.file)
    pin = pin_for(given.ref)

    @contextmanager
    def connect(repository: str) -> Iterator[tuple[GitHub, str]]:
        with github_for(replace(given, repo=repository)) as connection:
            yield connection.github, connection.repository

    def sync_one(github: GitHub, repository: str) -> SyncResult:
        return sync_repository(github, repository, shipped_kit(), pin, SystemClock(), is_dry_run=given.dry_run)

    ended = sync_repositories(repositories, connect, sync_one, Progress(len(repositories)))
    outcome = overall_outcome(ended)
    if given.is_json:
        found = [synced.as_json() for synced in ended]
        print_json({"outcome": outcome, "version": pin.version, "commit": pin.commit, "repositories": found})
    else:
        for synced in ended:
            _show_sync(synced)
        click.echo(outcome)
    parts = [(f"{synced.repository}: {synced.outcome}", synced.plan.files if synced.plan else ()) for synced in ended]
    report_step("sync", outcome, parts, ended)
    return {"stopped": 3, "refused": 4}.get(outcome, 0)


def _repositories(repos: Sequence[str], file: str | None) -> list[str]:
    from accord.kit.many import read_repositories

    listed = read_repositories(read_bytes(file)) if file else []
    named = {name.lower(): name for name in [*repos, *listed] if name}
    if not named:
        raise WrongUsage("No repositories given.", hint="Pass `--repo OWNER/NAME` or `--file REPOS.yml`.")
    return list(named.values())


def _show_sync(synced: SyncResult) -> None:
    pull: Any = f"  {synced.pull.url}" if synced.pull else ""
    outcome = click.style(synced.outcome.value, fg=_COLORS.get(synced.outcome.value))
    click.echo(f"{one_line(synced.repository)}  {outcome}{pull}")
    if synced.error:
        click.echo(f"  {one_line(synced.error.message)}\n  {one_line(synced.error.hint)}")
    elif synced.plan:
        show_files([file for file in synced.plan.files if file.action.value != "up-to-date"], "  ")
        if synced.outcome.value == "planned":
            print_operations(synced.operations, "  ")


def report_step(
    command: str, outcome: str, parts: Sequence[tuple[str, Sequence[FilePlan]]], synced: Sequence[SyncResult] = ()
) -> None:
    """Report ``accord init|sync``: outputs, and a table of the files, one for each repository."""
    from accord.cli.step import MOST_ROWS, as_output, leave_redacted, leave_summary, redacted_cell
    from accord.text.markdown import table

    leave_redacted({"outcome": outcome, "repositories": as_output([entry.as_json() for entry in synced])})
    shown = [f"### accord {command}: {outcome}"]
    for head, files in parts:
        rows = [[redacted_cell(file.path), file.action.value, redacted_cell(file.note)] for file in files[:MOST_ROWS]]
        shown += [f"#### {redacted_cell(head)}" if head else "", table(["File", "Action", "Why"], rows) if rows else ""]
    shown += [f"{redacted_cell(one.repository)}: {redacted_cell(str(one.error))}" for one in synced if one.error]
    leave_summary("\n\n".join(filter(None, shown)))
