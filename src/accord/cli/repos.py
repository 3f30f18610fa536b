"""``accord repos``: work on many repositories, in one job or in the jobs of a matrix."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import (
    FileArguments,
    FormatArguments,
    Group,
    ServerArguments,
    WritingArguments,
    argument,
    command,
    option,
)
from accord.cli.output import Progress, aligned_lines, colored_word, one_line, print_json, print_lines
from accord.cli.sources import github_for, lists_for, read_bytes
from accord.cli.step import as_output, leave_outputs, long_table, present, redacted_cell, report_step
from accord.core.errors import WrongUsage
from accord.core.findings import count_of
from accord.files.store import write_whole
from accord.kit.many import (
    ManyOutcome,
    ManyResult,
    counts,
    exit_code,
    is_repository,
    merge_repositories,
    read_repositories,
    read_results,
    run_shard,
    shard_of,
    shards,
    with_pending,
)

if TYPE_CHECKING:
    from accord.github.client import Connection
    from accord.github.rest import ListedRepository

_MOST_SHOWN = 1_000
"""Rows of a summary: GitHub shows none that is larger than 1 MiB."""


class _ListRepositoriesArguments(FileArguments, ServerArguments, FormatArguments):
    org: tuple[str, ...] = option("--org NAME", "All repositories of an organisation.")
    search: tuple[str, ...] = option("--search QUERY", "Those that a search of GitHub finds.")
    file: str | None = option("--file REPOS.yml", "A list of repositories, in YAML or JSON.")
    repos: tuple[str, ...] = option("--repo OWNER/NAME", "One repository.")
    size: int = option("--size N", "Repositories of a shard.", least=1, default=50)
    out: Path | None = option("--out REPOS.json", "Write the list to this file.")


class _SummaryArguments(FormatArguments):
    results: tuple[Path, ...] = argument(required=True)
    file: str = option("--file REPOS.json", "The list of repositories.", required=True)


class _RunRepositoriesArguments(WritingArguments, ServerArguments):
    command: str = argument(among=("sync", "labels", "doctor", "status"))
    file: str = option("--file REPOS.json", "The list of repositories.", required=True)
    shard: str = option("--shard I/N", "Every N-th repository, from the I-th.", default="1/1")
    results: Path | None = option("--results", "Write each result into this file, for `accord repos summary`.")
    ref: str | None = option("--ref SHA", "The commit of accord for sync. Default: that of this version.")
    processes: int = option("--processes", "Jobs that share the token's limits.", least=1, most=256, default=1)


repos = Group("repos", help="Work on many repositories at once.")


@command(_ListRepositoriesArguments, "list", of=repos)
def list_repositories(given: _ListRepositoriesArguments) -> None:
    """List repositories, and name shards for a matrix.

    Archived and disabled repositories are left out. The shards are the output `shards`, a JSON list.
    """
    found: list[ListedRepository] = []
    if given.org or given.search:
        with lists_for(given) as lists:
            for name in filter(None, given.org):
                found += lists.of_organisation(name)
            for query in filter(None, given.search):
                found += lists.search_repositories(query)
    wrong = next((name for name in given.repos if name and not is_repository(name)), None)
    if wrong is not None:
        raise WrongUsage(f"`{wrong:.100}` is not a repository.", hint="Pass `--repo OWNER/NAME`.")
    names, left_out = merge_repositories([*given.repos, *_read_list(given.file)], found)
    if not names:
        hint = "Pass `--org NAME`, `--search QUERY`, `--file REPOS.yml` or `--repo OWNER/NAME`."
        what = "found" if found or given.org or given.search else "given"
        raise WrongUsage(f"No repositories {what}.", hint=hint)
    named = shards(len(names), given.size)
    out = None if given.shows_only else given.out
    if out:
        write_whole(out, json.dumps(names, indent=0) + "\n")
    leave_outputs({"shards": as_output(named), "count": str(len(names))})
    if given.is_json:
        print_json({"repositories": names, "left_out": left_out, "shards": named})
        return
    print_lines([one_line(name) for name in names])
    rest = f", {len(left_out)} archived or disabled ones left out" if left_out else ""
    repositories = "1 repository" if len(names) == 1 else f"{len(names)} repositories"
    click.echo(f"{repositories} in {count_of(len(named), 'shard')}{rest}", err=True)
    if out:
        click.echo(f"Next: `accord repos run sync --file {one_line(str(out))}`", err=True)


def _read_list(file: str | None) -> list[str]:
    return read_repositories(read_bytes(file)) if file else []


@command(_RunRepositoriesArguments, "run", of=repos)
def run_command(given: _RunRepositoriesArguments) -> int:
    """Run sync, labels, doctor or status over a list.

    Each result is recorded at once. Running it again changes only what is not up to date.
    """
    from accord.github.pacing import Pacer

    names, pacer, work = shard_of(_read_list(given.file), given.shard), Pacer(given.processes), _work(given)

    def task(repository: str) -> ManyResult:
        with github_for(replace(given, repo=repository), pacer=pacer) as connection:
            return work(connection)

    found = run_shard(names, task, Progress(len(names)), given.results)
    _report(f"{given.command}, shard {given.shard}", found, given)
    code = exit_code(found)
    if code == 3:
        click.echo("Some repositories are left. Run the same command again.", err=True)
    return code


def _work(given: _RunRepositoriesArguments) -> Callable[[Connection], ManyResult]:
    from accord.cli.repos_run import count_work, examine_repository, sync_kit, sync_labels
    from accord.kit.templates import pin_for

    if given.command == "status":
        return partial(count_work, sandbox=given.sandbox)
    if given.command == "doctor":
        return examine_repository
    if given.command == "labels":
        return partial(sync_labels, is_dry_run=given.dry_run)
    return partial(sync_kit, pin=pin_for(given.ref), is_dry_run=given.dry_run)


def _report(title: str, results: Sequence[ManyResult], given: FormatArguments) -> None:
    found, order = counts(results), list(ManyOutcome)
    requests = {"read": sum(each.reads for each in results), "write": sum(each.writes for each in results)}
    listed = sorted(results, key=lambda result: order.index(result.outcome))
    shown = [result for result in listed if result.outcome is not ManyOutcome.UNCHANGED]
    total = ", ".join(f"{number} {outcome}" for outcome, number in found.items())
    lines = aligned_lines(
        (one_line(one.repository), colored_word(one.outcome), one_line(one.note or one.url)) for one in shown
    )
    document = {"counts": found, "requests": requests, "results": [result.as_json() for result in listed]}
    present(given, document, [*lines, total or "nothing to do"])
    rows = [
        [
            redacted_cell(result.repository),
            result.outcome.value,
            redacted_cell(result.note),
            f"[open]({result.url})" if result.url else "",
        ]
        for result in shown
    ]
    table = long_table(["Repository", "Outcome", "Note", "Link"], rows, "in the results", most=_MOST_SHOWN)
    sentence = f"{total}. {requests['read']} reads, {requests['write']} writes."
    report_step(title, {"counts": as_output(found)}, sentence, table)


@command(_SummaryArguments, of=repos)
def summary(given: _SummaryArguments) -> int:
    """Merge the results of all shards into one summary.

    RESULTS are the files of `accord repos run`, or folders with them.
    """
    known: dict[str, ManyResult] = {}
    for path in given.results:
        for each in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
            known |= read_results(each)
    found = with_pending(_read_list(given.file), known)
    _report("repositories", found, given)
    return exit_code(found)
