"""``accord init``: the consumer kit in a repository's folder, with nothing of the consumer's lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Lines, dry_run_option, format_option, root_option, server_options
from accord.cli.output import Progress, one_line, print_json
from accord.cli.sources import github_for, read_bytes
from accord.core.errors import AccordError, WrongUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.kit.manifest import Pin
    from accord.kit.plan import FilePlan, KitPlan
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
_DIFF_COLORS = {"+": "green", "-": "red", "@": "cyan"}
_NEXT = """\
Next:
  1. Give the repository the secret of your agent, such as OPENAI_API_KEY; another default than codex is named in
     .github/agents/registry.yml.
  2. Delete the workflows that you do not want: what is deleted stays away.
  3. Run accord doctor, then commit .github."""


@click.command()
@root_option
@click.option("--ref", metavar="SHA", help="The commit of accord to use; that of this version when not given.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@dry_run_option
@format_option
@click.pass_context
def init(ctx: click.Context, /, root: Path, ref: str | None, yes: bool, dry_run: bool, output_format: str) -> None:
    """Put the consumer kit into a repository, or bring the one that is there to this version.

    Shows the difference first. Files that were edited are merged or left alone, and files of the repository's own are
    never touched. Run twice, it changes nothing the second time.
    """
    from accord.cli.step import report_kit
    from accord.kit.install import install_kit, plan_folder
    from accord.kit.manifest import pin_for, shipped_kit

    plan = plan_folder(root, shipped_kit(), pin_for(ref))
    if output_format == "text":
        _show(plan)
    if plan.is_change and not dry_run:
        _require_consent(yes, output_format)
        install_kit(root, plan, lambda path: None)
    outcome = ("planned" if dry_run else "applied") if plan.is_change else "unchanged"
    if output_format == "json":
        print_json(_document(plan, outcome))
    else:
        click.echo(outcome)
        if outcome == "applied" and plan.before is None:
            click.echo(f"\n{_NEXT}")
    report_kit("init", outcome, [("", plan.files)])


def _require_consent(yes: bool, output_format: str) -> None:
    if yes:
        return
    if output_format == "json" or not sys.stdin or not sys.stdin.isatty():
        raise WrongUsage("Nobody is here to be asked, so nothing was written.", hint="Pass --yes, or --dry-run.")
    click.confirm("Write this?", abort=True)


def _document(plan: KitPlan, outcome: str) -> dict[str, object]:
    from accord.kit.plan import diffs

    return {
        "outcome": outcome,
        "version": plan.manifest.version,
        "commit": plan.manifest.commit,
        "files": [file.as_json() for file in plan.files],
        "diff": "".join(diffs(plan.files)),
    }


def _show(plan: KitPlan) -> None:
    """Show the difference, and below it what happens to each file; conflicts with what the template changed."""
    from accord.kit.plan import Action, diffs, unified_diff

    for diff in diffs(plan.files):
        _print_diff(diff)
    for file in plan.of(Action.CONFLICT):
        click.echo(click.style(f"{file.path} stays as it is. What the template changed:", fg="red"))
        _print_diff(unified_diff(*file.template, file.path))
    show_files(plan.files)


def _print_diff(diff: str) -> None:
    for line in diff.splitlines():
        click.echo(click.style(one_line(line), fg=_DIFF_COLORS.get(line[:1])))
    click.echo()


def show_files(files: Sequence[FilePlan], indent: str = "") -> None:
    """List files with what happens to them, one a line."""
    width = max((len(file.path) for file in files), default=0)
    for file in files:
        action = click.style(f"{file.action.value:<10}", fg=COLORS[file.action.value])
        click.echo(f"{indent}{one_line(file.path):<{width}}  {action}  {file.note}".rstrip())


_COLORS = {"applied": "green", "planned": "cyan", "stopped": "red", "refused": "red", "declined": "yellow"}


@click.command()
@click.option("--repo", multiple=True, type=Lines(), metavar="OWNER/NAME", help="A consumer's repository.")
@click.option("--file", metavar="REPOS.yml", help="A list of consumers' repositories, in YAML or JSON.")
@click.option("--ref", metavar="SHA", help="The commit of accord to use; that of this version when not given.")
@dry_run_option
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
    from accord.kit.manifest import pin_for

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
            _show_sync(synced)
        click.echo(outcome)
    report_kit(
        "sync", outcome, [(f"{s.repository}: {s.outcome}", s.plan.files if s.plan else ()) for s in ended], ended
    )
    ctx.exit({"stopped": 3, "refused": 4}.get(outcome, 0))


def _repositories(repos: Sequence[str], file: str | None) -> list[str]:
    from accord.kit.sync import read_repositories

    listed = read_repositories(read_bytes(file)) if file else []
    named = {name.lower(): name for name in [*repos, *listed] if name}
    if not named:
        raise WrongUsage("It is not said which repositories.", hint="Pass --repo OWNER/NAME, or --file REPOS.yml.")
    return list(named.values())


def _synced(repository: str, pin: Pin, is_dry_run: bool, sandbox: str | None, max_wait: int) -> SyncResult:
    """Sync one; what is wrong with it does not keep the others from being synced."""
    from accord.core.clock import SystemClock
    from accord.kit.manifest import shipped_kit
    from accord.kit.sync import SyncOutcome, SyncResult, sync_repository

    try:
        with github_for(repository, sandbox, max_wait) as (github, name, *_):
            return sync_repository(github, name, shipped_kit(), pin, SystemClock(), is_dry_run=is_dry_run)
    except WrongUsage:
        raise
    except AccordError as error:
        return SyncResult(repository, SyncOutcome.STOPPED if error.exit_code == 3 else SyncOutcome.REFUSED, error=error)


def _outcome(outcomes: Sequence[str]) -> str:
    """Sum many up: what needs somebody first."""
    for outcome in ("stopped", "refused", "applied", "planned"):
        if outcome in outcomes:
            return outcome
    return "unchanged"


def _show_sync(synced: SyncResult) -> None:
    pull: Any = f"  {synced.pull.url}" if synced.pull else ""
    outcome = click.style(synced.outcome.value, fg=_COLORS.get(synced.outcome.value))
    click.echo(f"{one_line(synced.repository)}  {outcome}{pull}")
    if synced.error:
        click.echo(f"  {one_line(synced.error.message)}\n  {one_line(synced.error.hint)}")
    elif synced.plan:
        show_files([file for file in synced.plan.files if file.action.value != "up-to-date"], "  ")
