"""``accord repos``: work on many repositories, in one job or in the jobs of a matrix."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import (
    Choice,
    FormatArguments,
    Group,
    Lines,
    ServerArguments,
    WritingArguments,
    argument,
    command,
    option,
)
from accord.cli.output import Progress, one_line, print_json, print_lines
from accord.cli.sources import github_for, lists_for, read_bytes
from accord.core.errors import Refused, WrongUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.github.client import Connection
    from accord.github.rest import ListedRepository
    from accord.kit.many import ManyResult

_COLORS = {"stopped": "red", "refused": "red", "findings": "yellow", "applied": "green", "planned": "cyan"}
MOST_SHOWN = 1_000
"""Rows of a summary: GitHub shows none that is larger than 1 MiB."""


class _ListRepositoriesArguments(ServerArguments, FormatArguments):
    org: tuple[str, ...] = option("--org", "All repositories of an organisation.", type=Lines(), metavar="NAME")
    search: tuple[str, ...] = option("--search", "Those that a search of GitHub finds.", type=Lines(), metavar="QUERY")
    file: str | None = option("--file", "A list of repositories, in YAML or JSON.", metavar="REPOS.yml")
    repos: tuple[str, ...] = option("--repo", "One repository.", type=Lines(), metavar="OWNER/NAME")
    size: int = option("--size", "Repositories of a shard.", type=click.IntRange(1), default=50, metavar="N")
    out: Path | None = option("--out", "Write the list to this file.", metavar="REPOS.json")


class _SummaryArguments(FormatArguments):
    results: tuple[Path, ...] = argument(required=True)
    file: str = option("--file", "The list of repositories.", metavar="REPOS.json")


class _RunRepositoriesArguments(WritingArguments, ServerArguments, FormatArguments):
    command: str = argument(type=Choice(["sync", "labels", "doctor", "status"]))
    file: str = option("--file", "The list of repositories.", metavar="REPOS.json")
    shard: str = option("--shard", "Every N-th repository, from the I-th.", default="1/1", metavar="I/N")
    results: Path | None = option("--results", "Write each result into this file, for `accord repos summary`.")
    ref: str | None = option("--ref", "The commit of accord for sync. Default: that of this version.", metavar="SHA")
    processes: int = option(
        "--processes", "Jobs that share the token's limits.", type=click.IntRange(1, 256), default=1
    )


@click.group(cls=Group)
def repos() -> None:
    """Work on many repositories at once."""


@command(_ListRepositoriesArguments, "list", of=repos)
def list_repositories(given: _ListRepositoriesArguments) -> None:
    """List repositories, and name shards for a matrix.

    Archived and disabled repositories are left out. The shards are the output `shards`, a JSON list.
    """
    from accord.cli.step import as_output, leave_outputs
    from accord.files.store import write_whole
    from accord.kit.many import is_repository, read_repositories, shards

    found: list[ListedRepository] = []
    if given.org or given.search:
        with lists_for(given) as lists:
            for name in filter(None, given.org):
                found += lists.of_organisation(name)
            for query in filter(None, given.search):
                found += lists.search_repositories(query)
    left_out = [each.full_name for each in found if each.is_archived or each.is_disabled]
    wrong = next((name for name in given.repos if name and not is_repository(name)), None)
    if wrong is not None:
        raise WrongUsage(f"`{wrong:.100}` is not a repository.", hint="Pass `--repo OWNER/NAME`.")
    listed = [*given.repos, *(read_repositories(read_bytes(given.file)) if given.file else [])]
    names = [*filter(None, listed), *(each.full_name for each in found if each.full_name not in left_out)]
    names = sorted({name.lower(): name for name in names}.values(), key=str.lower)
    if not names:
        hint = "Pass `--org NAME`, `--search QUERY`, `--file REPOS.yml` or `--repo OWNER/NAME`."
        raise WrongUsage(
            "No repositories found." if found or given.org or given.search else "No repositories given.", hint=hint
        )
    named = shards(len(names), given.size)
    if given.out:
        write_whole(given.out, json.dumps(names, indent=0) + "\n")
    leave_outputs({"shards": as_output(named), "count": str(len(names))})
    if given.is_json:
        print_json({"repositories": names, "left_out": left_out, "shards": named})
        return
    print_lines([one_line(name) for name in names])
    rest = f", {len(left_out)} archived or disabled ones left out" if left_out else ""
    repositories = "1 repository" if len(names) == 1 else f"{len(names)} repositories"
    parts = "1 shard" if len(named) == 1 else f"{len(named)} shards"
    click.echo(f"{repositories} in {parts}{rest}", err=True)
    if given.out:
        click.echo(f"Next: `accord repos run sync --file {one_line(str(given.out))}`", err=True)


@command(_RunRepositoriesArguments, "run", of=repos)
def run_command(given: _RunRepositoriesArguments) -> int:
    """Run sync, labels, doctor or status over a list.

    Each result is recorded at once. Running it again changes only what is not up to date.
    """
    from accord.files.store import write_whole
    from accord.kit.many import append_result, exit_code, read_repositories, run_shard, shard_of, with_pending

    names = shard_of(read_repositories(read_bytes(given.file)), given.shard)
    task, progress = _task(given), Progress(len(names))
    if given.results:
        write_whole(given.results, "")

    def record(result: ManyResult) -> None:
        if given.results:
            append_result(given.results, result)
        progress(result)

    ended = run_shard(names, task, record)
    found = with_pending(names, {result.repository.lower(): result for result in ended})
    _report(f"{given.command}, shard {given.shard}", found, given)
    code = exit_code(found)
    if code == 3:
        click.echo("Some repositories are left. Run the same command again.", err=True)
    return code


def _task(given: _RunRepositoriesArguments) -> Callable[[str], ManyResult]:
    """Return the function that works on one repository."""
    from accord.github.pacing import Pacer

    pacer = Pacer(given.processes)
    tasks = {"sync": _sync_task, "labels": _labels_task, "doctor": _doctor_task, "status": _status_task}
    work = tasks[given.command](given)

    def task(repository: str) -> ManyResult:
        with github_for(replace(given, repo=repository), pacer=pacer) as connection:
            return work(connection)

    return task


def _sync_task(given: _RunRepositoriesArguments) -> Callable[[Connection], ManyResult]:
    from accord.core.clock import SystemClock
    from accord.kit.many import ManyResult, failed
    from accord.kit.sync import sync_repository
    from accord.kit.templates import pin_for, shipped_kit

    kit, pin = shipped_kit(), pin_for(given.ref)

    def sync(connection: Connection) -> ManyResult:
        github, repository = connection.github, connection.repository
        synced = sync_repository(github, repository, kit, pin, SystemClock(), is_dry_run=given.dry_run)
        if synced.error:
            return failed(repository, synced.error)
        changed = len(synced.plan.changes) if synced.plan else 0
        note = f"{changed} files" if changed else ""
        url = synced.pull.url if synced.pull else ""
        count = github.requests
        return ManyResult(repository, synced.outcome, note, url, count.read, count.write)

    return sync


def _labels_task(given: _RunRepositoriesArguments) -> Callable[[Connection], ManyResult]:
    from accord.core.clock import SystemClock
    from accord.kit.many import ManyOutcome, ManyResult, failed
    from accord.results.label_sync import FAILED, apply_labels, plan_labels, shipped_labels

    entries = shipped_labels()

    def sync(connection: Connection) -> ManyResult:
        github, repository = connection.github, connection.repository
        planned, _ = plan_labels(entries, github.labels(), ())
        changes = [action for action in planned if action.is_change]
        outcome = ManyOutcome.PLANNED if changes else ManyOutcome.UNCHANGED
        if changes and not given.dry_run:
            ended, problem = apply_labels(github, changes, SystemClock(), lambda _: None)
            refused = [f"{action.name}: {action.error}" for action in ended if action.action == FAILED]
            if problem or refused:
                return failed(repository, problem or Refused(" ".join(refused)))
            outcome = ManyOutcome.APPLIED
        count = github.requests
        note = f"{len(changes)} labels" if changes else ""
        return ManyResult(repository, outcome, note, "", count.read, count.write)

    return sync


def _doctor_task(_given: _RunRepositoriesArguments) -> Callable[[Connection], ManyResult]:
    from accord.cli.doctor import counted
    from accord.core.clock import SystemClock
    from accord.core.findings import Severity
    from accord.doctor.checks import doctor_checks
    from accord.git.branches import folder_at_head
    from accord.kit.many import ManyOutcome, ManyResult

    def examine(connection: Connection) -> ManyResult:
        github, repository = connection.github, connection.repository
        with folder_at_head(connection.remote(SystemClock()), ".github") as root:
            checks = doctor_checks(root, repository.partition("/")[0], lambda: connection)
        severities = [finding.severity for check in checks for _, finding in check.findings]
        errors = severities.count(Severity.ERROR)
        count = github.requests
        note = f"{counted(errors, 'error')}, {counted(len(severities) - errors, 'warning')}" if severities else ""
        outcome = ManyOutcome.FINDINGS if errors else ManyOutcome.UNCHANGED
        return ManyResult(repository, outcome, note, "", count.read, count.write)

    return examine


def _status_task(given: _RunRepositoriesArguments) -> Callable[[Connection], ManyResult]:
    from datetime import timedelta

    from accord.board.facts import read_repository
    from accord.board.models import address_of
    from accord.board.work import overview_of_work
    from accord.kit.many import ManyOutcome, ManyResult

    def look(connection: Connection) -> ManyResult:
        github, repository = connection.github, connection.repository
        address = address_of(repository, connection.server_url, given.sandbox)
        facts = read_repository(github, address, timedelta(days=7))
        sections = overview_of_work(facts).sections()
        found = [f"{len(entries)} {name.replace('_', ' ')}" for name, entries in sections.items() if entries]
        outcome = ManyOutcome.FINDINGS if sections["needs_you"] else ManyOutcome.UNCHANGED
        count = github.requests
        return ManyResult(repository, outcome, ", ".join(found), address.page, count.read, count.write)

    return look


def _report(title: str, results: Sequence[ManyResult], given: FormatArguments) -> None:
    from accord.cli.step import as_output, leave_outputs, leave_summary, redacted_cell, rest_line
    from accord.kit.many import ManyOutcome, counts
    from accord.text.markdown import table

    found = counts(results)
    requests = (sum(result.reads for result in results), sum(result.writes for result in results))
    order = list(ManyOutcome)
    listed = sorted(results, key=lambda result: order.index(result.outcome))
    shown = [result for result in listed if result.outcome is not ManyOutcome.UNCHANGED]
    if given.is_json:
        entries = [result.as_json() for result in listed]
        print_json(
            {"counts": found, "requests": dict(zip(("read", "write"), requests, strict=True)), "results": entries}
        )
    else:
        width = max((len(result.repository) for result in shown), default=0)
        for result in shown:
            styled = click.style(f"{result.outcome.value:<8}", fg=_COLORS.get(result.outcome.value))
            click.echo(
                f"{one_line(result.repository):<{width}}  {styled}  {one_line(result.note or result.url)}".rstrip()
            )
        click.echo(", ".join(f"{number} {outcome}" for outcome, number in found.items()) or "nothing to do")
    leave_outputs({"counts": as_output(found)})
    rows = [
        [
            redacted_cell(result.repository),
            result.outcome.value,
            redacted_cell(result.note),
            f"[open]({result.url})" if result.url else "",
        ]
        for result in shown[:MOST_SHOWN]
    ]
    total = ", ".join(f"{number} {outcome}" for outcome, number in found.items())
    parts = [f"### accord {title}", f"{total}. {requests[0]} reads, {requests[1]} writes."]
    if rows:
        parts.append(
            table(["Repository", "Outcome", "Note", "Link"], rows) + rest_line(len(shown), MOST_SHOWN, "in the results")
        )
    leave_summary("\n\n".join(parts))


@command(_SummaryArguments, of=repos)
def summary(given: _SummaryArguments) -> int:
    """Merge the results of all shards into one summary.

    RESULTS are the files of `accord repos run`, or folders with them.
    """
    from accord.kit.many import exit_code, read_repositories, read_results, with_pending

    known: dict[str, ManyResult] = {}
    for path in given.results:
        for each in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
            known |= read_results(each)
    found = with_pending(read_repositories(read_bytes(given.file)), known)
    _report("repositories", found, given)
    return exit_code(found)
