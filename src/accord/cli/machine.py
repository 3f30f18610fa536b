"""``accord machine``: the state machines of the contracts, drawn from the tables that judge the moves."""

from __future__ import annotations

import click

from accord.kernel.machine import Machine
from accord.results.status import WORK_ITEM, MoveFacts

MACHINES: dict[str, Machine[MoveFacts]] = {"work-item": WORK_ITEM}


@click.group()
def machine() -> None:
    """Print state machines as Mermaid graphs."""


@machine.command()
@click.argument("name", type=click.Choice(sorted(MACHINES)))
def show(name: str) -> None:
    """Print one machine as a Mermaid state diagram."""
    click.echo(MACHINES[name].mermaid())
