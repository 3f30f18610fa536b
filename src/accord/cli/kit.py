"""``accord init`` and ``accord sync``: install the consumer kit, and keep it up to date."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Lines, dry_run_option, format_option, root_option, server_options
from accord.cli.output import Progress, one_line, print_json
from accord.cli.sources import github_for, read_bytes
from accord.core.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.github.client import GitHub
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
  1. Add the secret of your agent to the repository, such as OPENAI_API_KEY. To use an agent other than codex, change
     the default in .github/agents/registry.yml.
  2. Delete the workflows that you do not want. They are not installed again.
  3. Run `accord doctor`, then commit .github."""


@click.command()
@root_option
@click.option("--ref", metavar="SHA", help="The commit of accord to use. Default: that of this version.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@dry_run_option
@format_option
@click.pass_context
def init(ctx: click.Context, /, root: Path, ref: str | None, yes: bool, dry_run: bool, output_format: str) -> None:
    """Install or update the consumer kit in a repository.

    Shows the difference first. Edited files are merged or stay, and other files of the repository never change. A
    second run changes nothing.
    """
    from accord.kit.install import install_kit, plan_folder
    from accord.kit.manifest import pin_for, shipped_kit

    plan = plan_folder(root, shipped_kit(), pin_for(ref))
    if output_format == "text":
        _show(plan)
    if plan.is_change and not dry_run:
        _require_consent(yes, output_format)
        install_kit(root, plan)
    outcome = ("planned" if dry_run else "applied") if plan.is_change else "unchanged"
    if output_format == "json":
        print_json(_document(plan, outcome))
    else:
        click.echo(outcome)
        if outcome == "applied" and plan.before is None:
            click.echo(f"\n{_NEXT}")
    _report_step("init", outcome, [("", plan.files)])


def _require_consent(yes: bool, output_format: str) -> None:
    if yes:
        return
    if output_format == "json" or not sys.stdin or not sys.stdin.isatty():
        raise WrongUsage("No terminal to confirm on, so nothing was written.", hint="Pass `--yes` or `--dry-run`.")
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
    """Print the difference, conflicts with the template's changes, and what happens to each file."""
    from accord.kit.plan import Action, diffs, unified_diff

    for diff in diffs(plan.files):
        _print_diff(diff)
    for file in plan.of(Action.CONFLICT):
        click.echo(click.style(f"{file.path} stays unchanged. The template changed:", fg="red"))
        _print_diff(unified_diff(*file.template, file.path))
    show_files(plan.files)


def _print_diff(diff: str) -> None:
    for line in diff.splitlines():
        click.echo(click.style(one_line(line), fg=_DIFF_COLORS.get(line[:1])))
    click.echo()


def show_files(files: Sequence[FilePlan], indent: str = "") -> None:
    """List files with what happens to them, one per line."""
    width = max((len(file.path) for file in files), default=0)
    for file in files:
        action = click.style(f"{file.action.value:<10}", fg=COLORS[file.action.value])
        click.echo(f"{indent}{one_line(file.path):<{width}}  {action}  {file.note}".rstrip())


_COLORS = {"applied": "green", "planned": "cyan", "stopped": "red", "refused": "red", "declined": "yellow"}


@click.command()
@click.option("--repo", multiple=True, type=Lines(), metavar="OWNER/NAME", help="A consumer's repository.")
@click.option("--file", metavar="REPOS.yml", help="A list of consumers' repositories, in YAML or JSON.")
@click.option("--ref", metavar="SHA", help="The commit of accord to use. Default: that of this version.")
@dry_run_option
@server_options
@format_option
@click.pass_context
def sync(
    ctx: click.Context, /, repo: Sequence[str], file: str | None, ref: str | None, output_format: str, **more: Any
) -> None:
    """Update the kit of many repositories by pull requests.

    Each repository whose kit is not of this version gets one pull request, which keeps its edits. A repository without
    the kit needs `accord init` first. The token needs contents, pull requests and workflows to write; the token of a
    workflow's job cannot write workflows.
    """
    from accord.core.clock import SystemClock
    from accord.kit.manifest import pin_for, shipped_kit
    from accord.kit.sync import overall_outcome, sync_repositories, sync_repository

    repositories = _repositories(repo, file)
    pin = pin_for(ref)

    @contextmanager
    def connect(repository: str) -> Iterator[tuple[GitHub, str]]:
        with github_for(repository, more["sandbox"], more["max_wait"]) as connection:
            yield connection.github, connection.repository

    def sync_one(github: GitHub, repository: str) -> SyncResult:
        return sync_repository(github, repository, shipped_kit(), pin, SystemClock(), is_dry_run=more["dry_run"])

    ended = sync_repositories(repositories, connect, sync_one, Progress(len(repositories)))
    outcome = overall_outcome(ended)
    if output_format == "json":
        found = [synced.as_json() for synced in ended]
        print_json({"outcome": outcome, "version": pin.version, "commit": pin.commit, "repositories": found})
    else:
        for synced in ended:
            _show_sync(synced)
        click.echo(outcome)
    parts = [(f"{synced.repository}: {synced.outcome}", synced.plan.files if synced.plan else ()) for synced in ended]
    _report_step("sync", outcome, parts, ended)
    ctx.exit({"stopped": 3, "refused": 4}.get(outcome, 0))


def _repositories(repos: Sequence[str], file: str | None) -> list[str]:
    from accord.kit.sync import read_repositories

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


def _report_step(
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
