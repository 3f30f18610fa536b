"""``accord init``: the consumer kit in a repository's folder, with nothing of the consumer's lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.output import format_option, one_line, print_json
from accord.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.kit.plan import FilePlan, Plan

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
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="The root of the repository.",
)
@click.option("--ref", metavar="SHA", help="The commit of accord to use; that of this version when not given.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@format_option
@click.pass_context
def init(ctx: click.Context, /, root: Path, ref: str | None, yes: bool, dry_run: bool, output_format: str) -> None:
    """Put the consumer kit into a repository, or bring the one that is there to this version.

    Shows the difference first. Files that were edited are merged or left alone, and files of the repository's own are
    never touched. Run twice, it changes nothing the second time.
    """
    from accord.cli.step import report_kit
    from accord.kit.install import carry_out, plan_folder
    from accord.kit.pins import pin_for
    from accord.kit.templates import shipped_kit

    plan = plan_folder(root, shipped_kit(), pin_for(ref))
    if output_format == "text":
        _show(plan)
    if plan.is_change and not dry_run:
        _require_consent(yes, output_format)
        carry_out(root, plan, lambda path: None)
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
        raise WrongUsage("Nobody is here to be asked, so nothing was written.", mend="Pass --yes, or --dry-run.")
    click.confirm("Write this?", abort=True)


def _document(plan: Plan, outcome: str) -> dict[str, object]:
    from accord.kit.diffs import diffs

    return {
        "outcome": outcome,
        "version": plan.manifest.version,
        "commit": plan.manifest.commit,
        "files": [file.as_json() for file in plan.files],
        "diff": "".join(diffs(plan.files)),
    }


def _show(plan: Plan) -> None:
    """Show the difference, and below it what happens to each file; conflicts with what the template changed."""
    from accord.kit.diffs import diffs, unified
    from accord.kit.plan import Action

    for diff in diffs(plan.files):
        _print_diff(diff)
    for file in plan.of(Action.CONFLICT):
        click.echo(click.style(f"{file.path} stays as it is. What the template changed:", fg="red"))
        _print_diff(unified(*file.template, file.path))
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
