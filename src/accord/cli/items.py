"""``accord items``: list, show and move work items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import (
    EXISTING_FOLDER,
    FormatArguments,
    Group,
    ReadingArguments,
    RepositoryArguments,
    WritingArguments,
    argument,
    command,
    format_option,
    option,
)
from accord.cli.output import (
    Json,
    colored_word,
    cut_text,
    document_lines,
    finding_lines,
    indented_line,
    one_line,
    print_json,
    print_lines,
    printed_output,
    screen_columns,
)
from accord.cli.sources import AsOfArguments, github_for, read_as_of
from accord.cli.step import leave_outputs, present, redact
from accord.core.errors import BrokenContract
from accord.engine.operations import OperationLog
from accord.engine.trust import check_text, read_refused_labels, require_text
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
    type_findings,
)

if TYPE_CHECKING:
    from accord.plans.links import LinkedDocument

_WIDE_COLUMNS = 60
"""A narrower terminal gets no priority and no aligned columns."""


items = Group("items", help="List, show and move work items.")


class _ListItemsArguments(AsOfArguments, RepositoryArguments, FormatArguments):
    status: str | None = option("--status", "Only items in this status.", among=WORK_ITEM.states)
    all: bool = option("--all", "Include closed items.")
    limit: int = option("--limit", "List at most this many.", least=1, default=100)


@command(_ListItemsArguments, "list", of=items)
def list_items(given: _ListItemsArguments) -> None:
    """List work items, newest first.

    A work item is an issue with a type label.
    """
    status, limit = given.status, given.limit
    with github_for(given) as (github, *_):
        state = "closed" if status == "closed" else "all" if given.all else "open"
        issues, left_out = newest_items(github, status=status, state=state, limit=limit)
        as_of, identity = read_as_of(given.as_of, github), cache(github.identity)
        checked = [(issue, check_text(github, as_of, identity, issue.number, issue.updated_at)) for issue in issues]
    found = [item_of(issue) for issue, refusal in checked if refusal is None]
    refusals = [refusal for _, refusal in checked if refusal]
    if given.is_json:
        findings = {"findings": [refusal.as_json() for refusal in refusals]} if as_of else {}
        print_json({"items": found, "left_out": left_out, **findings})
        return
    columns = screen_columns()
    print_lines([_item_line(item, columns) for item in found])
    for line in finding_lines(refusals, "left out"):
        click.echo(line)
    if not found:
        click.echo("No work items.")
    if left_out != 0:
        more = {None: "More work items are", 1: "1 more work item is"}.get(left_out, f"{left_out} more work items are")
        choice = "." if status else ", or `--status`."
        click.echo(f"{more} left out. Pass `--limit {limit + left_out if left_out else 2 * limit}`{choice}")


def _item_line(item: Json, columns: int | None) -> str:
    status, is_narrow = item["status"] or "unclear", columns is not None and columns < _WIDE_COLUMNS
    priority = f" {one_line(item['priority'] or ''):<7}"
    label = colored_word(status, 0 if is_narrow else 17, shown=one_line(status))
    before = f"#{item['id']} {label} " if is_narrow else f"#{item['id']:<6} {label}{priority} "
    return before + cut_text(one_line(item["title"]), columns, len(click.unstyle(before)))


class _ExportArguments(ReadingArguments):
    output_format: str = format_option(
        "Markdown checklist, Spec Kit tasks.md, or planner result.", "checklist", "tasks", "json"
    )


@command(_ExportArguments, of=items)
def export(given: _ExportArguments) -> None:
    """Print the open work items as a task list.

    `accord plan from` reads each form again, and knows every item by its issue.
    """
    from accord.plans.write_back import export_list, export_plan

    with github_for(given) as connection:
        found = [issue for issue in connection.github.issues(state="open") if is_work_item(issue)]
        repository = connection.repository
    if given.output_format == "json":
        print_json(export_plan(found))
        return
    for line in redact(export_list(found, repository, is_tasks=given.output_format == "tasks")).splitlines():
        click.echo(indented_line(line))


class _ShowItemArguments(AsOfArguments, RepositoryArguments, FormatArguments):
    number: int = argument("N", required=True)
    root: Path | None = option(
        "--root", "Checkout with sessions and missions. Default: here, without --repo.", type=EXISTING_FOLDER
    )


@command(_ShowItemArguments, of=items)
def show(given: _ShowItemArguments) -> None:
    """Show a work item, its blockers, moves and documents.

    For the number of a pull request, show the work item that it closes. A step also gets the output base: the branch
    into which the pull request is merged. A text that someone without write access changed after --as-of is refused;
    the time may be run: when this workflow run was started.
    """
    from accord.plans.links import documents_of, handoff_of

    number = given.number
    with github_for(given) as way:
        named = way.github.issue(number)
        check = partial(require_text, way.github, read_as_of(given.as_of, way.github), cache(way.github.identity))
        pull = way.github.pull(named.number) if named and named.is_pull else None
        more = {"pull": {"id": str(pull.number), "base": pull.base_branch, "url": pull.url}} if pull else {}
        base = {"base": redact(pull.base_branch)} if pull else {}
        printed_output().keys |= {"id": str(number), **more}
        try:
            if named and pull:
                check(named)
            issue = find_work_item(way.github, item_closed_by(pull) if pull else number)
            check(issue)
            item = detail_of(issue, gather_facts(way.github, issue)) | more
            refused = read_refused_labels(way.github, issue.number, issue.labels, cache(way.github.identity))
            item["refused_labels"] = [{"label": one.label, "by": one.by} for one in refused]
            found = list(type_findings(issue, way.github.identity))
            # `show --format json` is a planner's request, so findings stay out of it
            item |= {"moves": []} if found else {}
            notes = [*(one.text for one in refused), *(one.text for one in found)]
            handoff = handoff_of(way.github, issue)
            leave_outputs(base)
        except BrokenContract as broken:
            is_changed = any(finding.code == "text-changed" for finding in broken.findings)
            leave_outputs({"reason": redact(broken.message)} if is_changed else base)
            raise
    folder = given.root or (None if given.repo else Path())
    documents = [*filter(None, [handoff]), *(documents_of(folder, issue.number) if folder else [])]
    item["documents"] = [document.as_json() for document in documents]
    present(given, item, [*_detail_lines(item, documents), *map(one_line, notes)])


def _detail_lines(item: Json, documents: Sequence[LinkedDocument]) -> Iterator[str]:
    yield click.style(f"#{item['id']} {one_line(item['title'])}", bold=True)
    yield f"{one_line(item['status'] or 'status unclear')} · {one_line(', '.join(item['labels']))}"
    if item["waits_for"]:
        yield f"blocked by {', '.join('#' + blocker for blocker in item['waits_for'])}"
    yield f"may move to {', '.join(item['moves']) or 'nothing'}"
    yield item["url"]
    yield from document_lines(documents)


class _MoveItemArguments(WritingArguments, RepositoryArguments):
    number: int = argument("N", required=True)
    to: str = option("--to", "The new status.", among=WORK_ITEM.states, required=True)


@command(_MoveItemArguments, of=items)
def move(given: _MoveItemArguments) -> None:
    """Move a work item to another status, if that is legal."""
    number, log = given.number, OperationLog(given.dry_run)
    printed_output().keys |= {"id": str(number), "to": given.to}
    with github_for(given) as (github, *_):
        moved = move_work_item(github, number, given.to, log)
    outcome = "unchanged" if not moved.is_change else "planned" if given.dry_run else "applied"
    document = {"id": str(number), "to": given.to, "findings": [], "outcome": outcome, "from": moved.source}
    line = f"#{number} {one_line(moved.source)} → {given.to}: {outcome}"
    present(given, {**document, "url": moved.issue.url}, [line], log)
