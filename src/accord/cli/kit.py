"""``accord sync``: keep the consumer kit of a repository up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import FormatArguments, ReadingArguments, WritingArguments, command, option
from accord.cli.output import one_line, print_json
from accord.cli.receipts import print_operations
from accord.cli.sources import github_for

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class _SyncArguments(WritingArguments, ReadingArguments, FormatArguments):
    ref: str | None = option("--ref", "The commit of accord to use. Default: that of this version.", metavar="SHA")


@command(_SyncArguments)
def sync(given: _SyncArguments) -> int:
    """Update the kit of a repository by a pull request.

    A repository whose kit is not of this version gets one pull request, which keeps its edits. A repository
    without the kit needs `accord init` first. The token must write contents, pull requests and workflows, which a
    job's own cannot. For several repositories, use `accord repos run sync`.
    """
    from accord.core.clock import SystemClock
    from accord.kit.sync import sync_repository
    from accord.kit.templates import pin_for, shipped_kit

    pin = pin_for(given.ref)
    with github_for(given) as connection:
        github, name = connection.github, connection.repository
        synced = sync_repository(github, name, shipped_kit(), pin, SystemClock(), is_dry_run=given.dry_run)
    outcome = synced.outcome.value
    if given.is_json:
        found = [synced.as_json()]
        print_json({"outcome": outcome, "version": pin.version, "commit": pin.commit, "repositories": found})
    else:
        _show_sync(synced)
    files = synced.plan.files if synced.plan else ()
    report_step("sync", outcome, [(f"{synced.repository}: {outcome}", files)], [synced])
    return {"stopped": 3, "refused": 4}.get(outcome, 0)


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
