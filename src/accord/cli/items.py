"""``accord items``: list, show and move work items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import (
    EXISTING_FOLDER,
    Choice,
    dry_run_option,
    format_option,
    reading_options,
    repository_options,
)
from accord.cli.output import document_lines, fitted, one_line, print_json, print_lines, redactor, screen_columns
from accord.cli.sources import github_for
from accord.cli.step import leave_outputs, redact
from accord.core.errors import BrokenContract, WrongUsage
from accord.engine.operations import OperationLog
from accord.gha.step import inert
from accord.results.planner.rules import item_number
from accord.results.status import (
    WORK_ITEM,
    detail_of,
    find_work_item,
    gather_facts,
    is_work_item,
    item_closed_by,
    item_of,
    move_work_item,
    newest_items,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_STATUS_COLORS = {"in-progress": "green", "blocked": "red", "needs-refinement": "yellow", "approved": "green"}
_WIDE_COLUMNS = 60
"""A narrower terminal gets no priority and no aligned columns."""


@click.group()
def items() -> None:
    """List, show and move work items."""


@items.command("list")
@click.option("--status", type=Choice(WORK_ITEM.states), help="Only items in this status.")
@click.option("--all", "show_all", is_flag=True, help="Include closed items.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="List at most this many.")
@repository_options
@format_option
def list_items(status: str | None, show_all: bool, limit: int, output_format: str, **access: Any) -> None:
    """List work items, newest first.

    A work item is an issue with a type label. Says how many items are left out.
    """
    with github_for(**access) as (github, *_):
        state = "closed" if status == "closed" else "all" if show_all else "open"
        issues, left_out = newest_items(github, status=status, state=state, limit=limit)
    found = [item_of(issue) for issue in issues]
    if output_format == "json":
        print_json({"items": found, "left_out": left_out})
        return
    columns = screen_columns()
    print_lines([_item_line(item, columns) for item in found])
    if not found:
        click.echo("No work items.")
    if left_out != 0:
        more = {None: "More work items are", 1: "1 more work item is"}.get(left_out, f"{left_out} more work items are")
        choice = "." if status else ", or `--status`."
        click.echo(f"{more} left out. Pass `--limit {limit + left_out if left_out else 2 * limit}`{choice}")


def _item_line(item: Mapping[str, Any], columns: int | None) -> str:
    status, is_narrow = item["status"] or "unclear", columns is not None and columns < _WIDE_COLUMNS
    colored = click.style(one_line(status) if is_narrow else f"{one_line(status):<17}", fg=_STATUS_COLORS.get(status))
    priority = f" {one_line(item['priority'] or ''):<7}"
    before = f"#{item['id']} {colored} " if is_narrow else f"#{item['id']:<6} {colored}{priority} "
    room = columns - len(click.unstyle(before)) if columns else None
    return f"{before}{fitted(one_line(item['title']), room)}"


@items.command()
@click.option(
    "--format",
    "output_format",
    type=Choice(["checklist", "tasks", "json"]),
    default="checklist",
    show_default=True,
    help="Markdown checklist, Spec Kit tasks.md, or planner result.",
)
@reading_options
def export(output_format: str, **access: Any) -> None:
    """Print the open work items as a task list.

    `accord plan from` reads each form again, and knows every item by its issue.
    """
    from accord.plans.export import export_list, export_plan

    with github_for(**access) as connection:
        found = [issue for issue in connection.github.issues(state="open") if is_work_item(issue)]
        repository = connection.repository
    if output_format == "json":
        print_json(export_plan(found))
        return
    text = export_list(found, repository, is_tasks=output_format == "tasks")
    for line in redactor()(text).splitlines():
        words = line.lstrip(" ")
        click.echo(" " * (len(line) - len(words)) + inert(words))


@items.command()
@click.argument("number", metavar="N")
@click.option(
    "--root", type=EXISTING_FOLDER, help="Checkout with sessions and missions. Default: here, without --repo."
)
@repository_options
@format_option
@click.pass_context
def show(ctx: click.Context, /, number: str, root: Path | None, output_format: str, **access: Any) -> None:
    """Show a work item, its blockers, moves and documents.

    For the number of a pull request, show the work item that it closes. A step also gets the output base: the branch
    into which the pull request is merged.
    """
    from accord.core.clock import SystemClock
    from accord.plans.links import documents_of, handoff_of

    with github_for(**access) as way:
        named = way.github.issue(_number(number))
        pull = way.github.pull(named.number) if named and named.is_pull else None
        more = {"pull": {"id": str(pull.number), "base": pull.base_branch, "url": pull.url}} if pull else {}
        if pull:
            leave_outputs({"base": redact(pull.base_branch)})
        try:
            wanted = item_closed_by(pull, way.repository) if pull else _number(number)
            issue = find_work_item(way.github, wanted)
            item = detail_of(issue, gather_facts(way.github, issue)) | more
            handoff = handoff_of(way.github, issue, SystemClock())
        except BrokenContract as broken:
            if output_format != "json":
                raise
            findings = [finding.as_json() for finding in broken.findings]
            print_json({"id": str(_number(number)), "outcome": "rejected", "findings": findings, **more})
            ctx.exit(1)
    folder = root or (None if access["repo"] else Path())
    documents = [*filter(None, [handoff]), *(documents_of(folder, issue.number) if folder else [])]
    item["documents"] = [document.as_json() for document in documents]
    if output_format == "json":
        print_json(item)
        return
    click.echo(click.style(f"#{item['id']} {one_line(item['title'])}", bold=True))
    click.echo(f"{one_line(item['status'] or 'status unclear')} · {one_line(', '.join(item['labels']))}")
    if item["waits_for"]:
        click.echo(f"blocked by {', '.join('#' + blocker for blocker in item['waits_for'])}")
    click.echo(f"may move to {', '.join(item['moves']) or 'nothing'}\n{item['url']}")
    for line in document_lines(documents):
        click.echo(line)


@items.command()
@click.argument("number", metavar="N")
@click.option("--to", "target", required=True, type=Choice(WORK_ITEM.states), help="The new status.")
@dry_run_option
@repository_options
@format_option
@click.pass_context
def move(ctx: click.Context, /, number: str, target: str, dry_run: bool, output_format: str, **access: Any) -> None:
    """Move a work item to another status, if that is legal."""
    document: dict[str, Any] = {"id": str(_number(number)), "to": target, "findings": []}
    log = OperationLog(dry_run)
    with github_for(**access) as (github, *_):
        try:
            moved = move_work_item(github, _number(number), target, log)
            done = "planned" if dry_run else "applied"
            document |= {"outcome": done if moved.is_change else "unchanged", "from": moved.source}
            document["url"] = moved.issue.url
        except BrokenContract as broken:
            document |= {"outcome": "rejected", "findings": [finding.as_json() for finding in broken.findings]}
    if output_format == "json":
        print_json({**document, "operations": log.as_json()})
    elif document["outcome"] == "rejected":
        refused = document["findings"][0]
        click.echo(f"{one_line(refused['message'])}\n  {one_line(refused['hint'])}".rstrip(), err=True)
    else:
        click.echo(f"#{document['id']} {one_line(document['from'])} → {one_line(target)}: {document['outcome']}")
    ctx.exit(1 if document["outcome"] == "rejected" else 0)


def _number(text: str) -> int:
    number = item_number(text)
    if number is None:
        raise WrongUsage(f"`{text}` is not a work item number.", hint="Use `42` or `#42`.")
    return number
