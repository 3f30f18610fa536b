"""A loop's decision, as people read it on a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import Choice, dry_run_option, together
from accord.cli.output import one_line
from accord.cli.step import redact

if TYPE_CHECKING:
    from accord.loops.models import Decision


_COLORS = {"run": "green", "fix": "green", "report": "green", "stop": "yellow", "ask": "yellow"}


def print_decision(decision: Decision) -> None:
    """Print a decision for people, without secrets: checks and labels have the names that others gave them."""

    def shown(text: str) -> str:
        return one_line(redact(text))

    action = click.style(decision.action, fg=_COLORS.get(decision.action), bold=True)
    click.echo(f"{action} ({decision.reason}): {shown(decision.message)}")
    if decision.agent:
        click.echo(f"  agent {shown(decision.agent)}, iteration {decision.iteration}")
    if decision.wait_seconds is not None:
        click.echo(f"  look again in {decision.wait_seconds} s")
    for sign, labels in (("+", decision.add_labels), ("-", decision.remove_labels)):
        for label in labels:
            click.echo(f"  {sign} label {shown(label)}")
    for warning in decision.warnings:
        click.echo(click.style(f"  warning: {shown(warning)}", fg="yellow"))
    if decision.appendix:
        click.echo(f"  appendix of {len(decision.appendix)} characters (--format json shows it)")


HISTORY = "loop-history.ndjson"
_FILE = click.Path(path_type=Path)
turn_options = together(
    click.option("--pull", type=click.IntRange(min=1), metavar="N", help="The pull request; else all that are open."),
    click.option(
        "--phase",
        type=Choice(["all", "begin", "end"]),
        default="all",
        show_default=True,
        help="Begin a turn, end it, or both with the agent's run between them, here.",
    ),
    click.option("--agent", default="", metavar="NAME", help="The agent where no label names one."),
    click.option("--registry", type=_FILE, metavar="FILE", help="The registry; .github/agents/registry.yml if there."),
    click.option("--outputs", metavar="FILE", help="What the run left, as one JSON object; else ACCORD_RUN_OUTPUTS."),
    click.option("--run-dir", type=_FILE, metavar="DIR", help="Where the run and the loop's history are kept."),
    click.option("--dispatch-workflow", default="", metavar="FILE", help="The workflow that runs this loop."),
    click.option(
        "--max-runtime-minutes",
        type=click.IntRange(min=1, max=360),
        default=45,
        show_default=True,
        metavar="N",
        help="When the agent is ended.",
    ),
    click.option("--prompt-file", default="", metavar="F", help="What the agent is asked; else the shipped prompt."),
    dry_run_option,
)
"""What is chosen of a turn, besides the repository."""


@dataclass(frozen=True)
class Choices:
    """What was chosen on the command line."""

    pull: int | None
    phase: str
    agent: str
    registry: Path | None
    outputs: str | None
    run_dir: Path | None
    dispatch_workflow: str
    max_runtime_minutes: int
    prompt_file: str
    dry_run: bool
