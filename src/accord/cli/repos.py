"""``accord repos``: work on many repositories, in one job or in the jobs of a matrix."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import FILE, Choice, Lines, dry_run_option, format_option, server_options
from accord.cli.output import Progress, one_line, print_json, print_lines
from accord.cli.sources import github_for, lists_for, read_bytes
from accord.core.errors import Refused, WrongUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from accord.cli.sources import Connection
    from accord.github.listing import ListedRepository
    from accord.kit.many import ManyResult

_COLORS = {"stopped": "red", "refused": "red", "findings": "yellow", "applied": "green", "planned": "cyan"}
MOST_SHOWN = 1_000
"""Rows of a summary: GitHub shows none that is larger than 1 MiB."""

_file_option = click.option("--file", required=True, metavar="REPOS.json", help="The list of repositories.")


@click.group()
def repos() -> None:
    """Work on many repositories at once."""


@repos.command("list")
@click.option("--org", multiple=True, type=Lines(), metavar="NAME", help="All repositories of an organisation.")
@click.option("--search", multiple=True, type=Lines(), metavar="QUERY", help="Those that a search of GitHub finds.")
@click.option("--file", metavar="REPOS.yml", help="A list of repositories, in YAML or JSON.")
@click.option("--repo", multiple=True, type=Lines(), metavar="OWNER/NAME", help="One repository.")
@click.option(
    "--size", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="Repositories of a shard."
)
@click.option("--out", type=FILE, metavar="REPOS.json", help="Write the list to this file.")
@server_options
@format_option
def list_repositories(
    org: Sequence[str], search: Sequence[str], file: str | None, repo: Sequence[str], size: int, out: Path | None,
    output_format: str, **access: Any,
) -> None:  # fmt: skip
    """List repositories, and name shards for a matrix.

    Archived and disabled repositories are left out. The shards are the output `shards`, a JSON list.
    """
    from accord.cli.step import as_output, leave_outputs
    from accord.files.store import write_whole
    from accord.kit.many import is_repository, read_repositories, shards

    found: list[ListedRepository] = []
    if org or search:
        with lists_for(**access) as lists:
            for name in filter(None, org):
                found += lists.of_organisation(name)
            for query in filter(None, search):
                found += lists.found_by(query)
    left_out = [each.full_name for each in found if each.is_archived or each.is_disabled]
    wrong = next((name for name in repo if name and not is_repository(name)), None)
    if wrong is not None:
        raise WrongUsage(f"`{wrong:.100}` is not a repository.", hint="Pass `--repo OWNER/NAME`.")
    listed = [*repo, *(read_repositories(read_bytes(file)) if file else [])]
    names = [*filter(None, listed), *(each.full_name for each in found if each.full_name not in left_out)]
    names = sorted({name.lower(): name for name in names}.values(), key=str.lower)
    if not names:
        hint = "Pass `--org NAME`, `--search QUERY`, `--file REPOS.yml` or `--repo OWNER/NAME`."
        raise WrongUsage("No repositories found." if found or org or search else "No repositories given.", hint=hint)
    named = shards(len(names), size)
    if out:
        write_whole(out, json.dumps(names, indent=0) + "\n")
    leave_outputs({"shards": as_output(named), "count": str(len(names))})
    if output_format == "json":
        print_json({"repositories": names, "left_out": left_out, "shards": named})
        return
    print_lines([one_line(name) for name in names])
    rest = f", {len(left_out)} archived or disabled ones left out" if left_out else ""
    repositories = "1 repository" if len(names) == 1 else f"{len(names)} repositories"
    parts = "1 shard" if len(named) == 1 else f"{len(named)} shards"
    click.echo(f"{repositories} in {parts}{rest}", err=True)
    if out:
        click.echo(f"Next: `accord repos run sync --file {one_line(str(out))}`", err=True)


@repos.command("run")
@click.argument("command", type=Choice(["sync", "labels", "doctor", "status"]))
@_file_option
@click.option("--shard", default="1/1", show_default=True, metavar="I/N", help="Every N-th repository, from the I-th.")
@click.option("--results", type=FILE, help="Write each result into this file, for `accord repos summary`.")
@click.option("--ref", metavar="SHA", help="The commit of accord for sync. Default: that of this version.")
@click.option(
    "--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="Jobs that share the token's limits."
)
@dry_run_option
@server_options
@format_option
@click.pass_context
def run_command(
    ctx: click.Context, /, command: str, file: str, shard: str, results: Path | None, output_format: str, **more: Any
) -> None:
    """Run sync, labels, doctor or status over a list.

    Each result is recorded at once. Running it again changes only what is not up to date.
    """
    from accord.files.store import write_whole
    from accord.kit.many import append_result, exit_code, read_repositories, run_shard, shard_of, with_pending

    names = shard_of(read_repositories(read_bytes(file)), shard)
    task, progress = _task(command, more), Progress(len(names))
    if results:
        write_whole(results, "")

    def record(result: ManyResult) -> None:
        if results:
            append_result(results, result)
        progress(result)

    ended = run_shard(names, task, record)
    found = with_pending(names, {result.repository.lower(): result for result in ended})
    _report(f"{command}, shard {shard}", found, output_format)
    code = exit_code(found)
    if code == 3:
        click.echo("Some repositories are left. Run the same command again.", err=True)
    ctx.exit(code)


def _task(command: str, options: dict[str, Any]) -> Callable[[str], ManyResult]:
    """Return the function that works on one repository."""
    from accord.github.pacing import Pacer

    pacer = Pacer(options["processes"])

    @contextmanager
    def connect(repository: str) -> Iterator[Connection]:
        with github_for(repository, options["sandbox"], options["max_wait"], pacer=pacer) as connection:
            yield connection

    tasks = {"sync": _sync_task, "labels": _labels_task, "doctor": _doctor_task, "status": _status_task}
    work = tasks[command](options)

    def task(repository: str) -> ManyResult:
        with connect(repository) as connection:
            return work(connection)

    return task


def _sync_task(options: dict[str, Any]) -> Callable[[Connection], ManyResult]:
    from accord.core.clock import SystemClock
    from accord.kit.many import ManyResult, failed
    from accord.kit.pins import pin_for
    from accord.kit.sync import sync_repository
    from accord.kit.templates import shipped_kit

    kit, pin = shipped_kit(), pin_for(options["ref"])

    def sync(connection: Connection) -> ManyResult:
        github, repository = connection.github, connection.repository
        synced = sync_repository(github, repository, kit, pin, SystemClock(), is_dry_run=options["dry_run"])
        if synced.error:
            return failed(repository, synced.error)
        changed = len(synced.plan.changes) if synced.plan else 0
        note = f"{changed} files" if changed else ""
        url = synced.pull.url if synced.pull else ""
        count = github.requests
        return ManyResult(repository, synced.outcome, note, url, count.read, count.write)

    return sync


def _labels_task(options: dict[str, Any]) -> Callable[[Connection], ManyResult]:
    from accord.core.clock import SystemClock
    from accord.kit.many import ManyOutcome, ManyResult, failed
    from accord.results.label_sync import FAILED, apply_labels, plan_labels, shipped_labels

    entries = shipped_labels()

    def sync(connection: Connection) -> ManyResult:
        github, repository = connection.github, connection.repository
        planned, _ = plan_labels(entries, github.labels(), ())
        changes = [action for action in planned if action.is_change]
        outcome = ManyOutcome.PLANNED if changes else ManyOutcome.UNCHANGED
        if changes and not options["dry_run"]:
            ended, problem = apply_labels(github, changes, SystemClock(), lambda _: None)
            refused = [f"{action.name}: {action.error}" for action in ended if action.action == FAILED]
            if problem or refused:
                return failed(repository, problem or Refused(" ".join(refused)))
            outcome = ManyOutcome.APPLIED
        count = github.requests
        note = f"{len(changes)} labels" if changes else ""
        return ManyResult(repository, outcome, note, "", count.read, count.write)

    return sync


def _doctor_task(_options: dict[str, Any]) -> Callable[[Connection], ManyResult]:
    from accord.cli.doctor import counted, doctor_checks
    from accord.core.clock import SystemClock
    from accord.core.findings import Severity
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


def _status_task(options: dict[str, Any]) -> Callable[[Connection], ManyResult]:
    from datetime import timedelta

    from accord.board.facts import read_repository
    from accord.board.models import address_of
    from accord.board.work import overview_of_work
    from accord.kit.many import ManyOutcome, ManyResult

    def look(connection: Connection) -> ManyResult:
        github, repository = connection.github, connection.repository
        address = address_of(repository, connection.server_url, options["sandbox"])
        facts = read_repository(github, address, timedelta(days=7))
        sections = overview_of_work(facts).sections()
        found = [f"{len(entries)} {name.replace('_', ' ')}" for name, entries in sections.items() if entries]
        outcome = ManyOutcome.FINDINGS if sections["needs_you"] else ManyOutcome.UNCHANGED
        count = github.requests
        return ManyResult(repository, outcome, ", ".join(found), address.page, count.read, count.write)

    return look


def _report(title: str, results: Sequence[ManyResult], output_format: str) -> None:
    from accord.cli.step import as_output, leave_outputs, leave_summary, redacted_cell, rest_line
    from accord.kit.many import ManyOutcome, counts
    from accord.text.markdown import table

    found = counts(results)
    requests = (sum(result.reads for result in results), sum(result.writes for result in results))
    order = list(ManyOutcome)
    listed = sorted(results, key=lambda result: order.index(result.outcome))
    shown = [result for result in listed if result.outcome is not ManyOutcome.UNCHANGED]
    if output_format == "json":
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


@repos.command()
@_file_option
@click.argument("results", nargs=-1, required=True, type=FILE)
@format_option
@click.pass_context
def summary(ctx: click.Context, /, file: str, results: Sequence[Path], output_format: str) -> None:
    """Merge the results of all shards into one summary.

    RESULTS are the files of `accord repos run`, or folders with them.
    """
    from accord.kit.many import exit_code, read_repositories, read_results, with_pending

    known: dict[str, ManyResult] = {}
    for path in results:
        for each in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
            known |= read_results(each)
    found = with_pending(read_repositories(read_bytes(file)), known)
    _report("repositories", found, output_format)
    ctx.exit(exit_code(found))
