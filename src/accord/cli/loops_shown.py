"""A loop's decision, as people read it on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from accord.cli.output import one_line
from accord.cli.step_files import redact

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
