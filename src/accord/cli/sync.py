"""``accord sync``: consumers' kits kept in step, by a pull request in each repository."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from accord.cli.init import show_files
from accord.cli.output import Progress, format_option, one_line, print_json
from accord.cli.sources import Lines, github_for, read_bytes, server_options
from accord.kernel.errors import AccordError, WrongUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.kit.pins import Pin
    from accord.kit.sync import Synced

_COLORS = {"applied": "green", "planned": "cyan", "stopped": "red", "refused": "red", "declined": "yellow"}


@click.command()
@click.option("--repo", multiple=True, type=Lines(), metavar="OWNER/NAME", help="A consumer's repository.")
@click.option("--file", metavar="REPOS.yml", help="A list of consumers' repositories, in YAML or JSON.")
@click.option("--ref", metavar="SHA", help="The commit of accord to use; that of this version when not given.")
@click.option("--dry-run", is_flag=True, help="Say what would be proposed, and write nothing.")
@server_options
@format_option
@click.pass_context
def sync(
    ctx: click.Context,
    /,
    repo: Sequence[str],
    file: str | None,
    ref: str | None,
    dry_run: bool,
    sandbox: str | None,
    max_wait: int,
    output_format: str,
) -> None:
    """Open or update a pull request in each repository whose kit is not that of this version.

    What consumers edited is kept, and one without the kit is told to run accord init. The token needs contents,
    pull requests and workflows to write; the token of a workflow's job may not write workflows.
    """
    from accord.cli.step import report_kit
    from accord.kit.pins import pin_for

    repositories = _repositories(repo, file)
    pin = pin_for(ref)
    progress = Progress(len(repositories))
    ended = []
    for repository in repositories:
        ended.append(_synced(repository, pin, dry_run, sandbox, max_wait))
        progress(ended[-1])
    outcome = _outcome([synced.outcome.value for synced in ended])
    if output_format == "json":
        found = [synced.as_json() for synced in ended]
        print_json({"outcome": outcome, "version": pin.version, "commit": pin.commit, "repositories": found})
    else:
        for synced in ended:
            _show(synced)
        click.echo(outcome)
    report_kit(
        "sync", outcome, [(f"{s.repository}: {s.outcome}", s.plan.files if s.plan else ()) for s in ended], ended
    )
    ctx.exit({"stopped": 3, "refused": 4}.get(outcome, 0))


def _repositories(repos: Sequence[str], file: str | None) -> list[str]:
    from accord.kit.lists import read_repositories

    listed = read_repositories(read_bytes(file)) if file else []
    named = {name.lower(): name for name in [*repos, *listed] if name}
    if not named:
        raise WrongUsage("It is not said which repositories.", mend="Pass --repo OWNER/NAME, or --file REPOS.yml.")
    return list(named.values())


def _synced(repository: str, pin: Pin, is_dry_run: bool, sandbox: str | None, max_wait: int) -> Synced:
    """Sync one; what is wrong with it does not keep the others from being synced."""
    from accord.kernel.clock import SystemClock
    from accord.kit.sync import Outcome, Synced, sync_repository
    from accord.kit.templates import shipped_kit

    try:
        with github_for(repository, sandbox, max_wait) as (github, name, *_):
            return sync_repository(github, name, shipped_kit(), pin, SystemClock(), is_dry_run=is_dry_run)
    except WrongUsage:
        raise
    except AccordError as error:
        return Synced(repository, Outcome.STOPPED if error.exit_code == 3 else Outcome.REFUSED, error=error)


def _outcome(outcomes: Sequence[str]) -> str:
    """Sum many up: what needs somebody first."""
    for outcome in ("stopped", "refused", "applied", "planned"):
        if outcome in outcomes:
            return outcome
    return "unchanged"


def _show(synced: Synced) -> None:
    pull: Any = f"  {synced.pull.url}" if synced.pull else ""
    outcome = click.style(synced.outcome.value, fg=_COLORS.get(synced.outcome.value))
    click.echo(f"{one_line(synced.repository)}  {outcome}{pull}")
    if synced.error:
        click.echo(f"  {one_line(synced.error.message)}\n  {one_line(synced.error.mend)}")
    elif synced.plan:
        show_files([file for file in synced.plan.files if file.action.value != "up-to-date"], "  ")
