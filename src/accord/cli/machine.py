"""``accord machine``: the state machines of the contracts, drawn from the tables that judge the moves."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from accord.kernel.machine import Machine

MACHINES = {
    "handoff": "accord.handoffs.stages:HANDOFF",
    "session": "accord.sessions.machine:SESSION",
    "session-lean": "accord.sessions.machine:LEAN",
    "session-task": "accord.sessions.machine:TASK",
    "work-item": "accord.results.status:WORK_ITEM",
    "work-package": "accord.missions.lifecycle:WORK_PACKAGE",
}
"""Where each machine is, as ``module:name``; only the one that is asked for is imported."""


def machine_named(name: str) -> Machine[Any]:
    """Import a machine."""
    module, _, attribute = MACHINES[name].partition(":")
    found: Machine[Any] = getattr(importlib.import_module(module), attribute)
    return found


@click.group()
def machine() -> None:
    """Print state machines as Mermaid graphs."""


@machine.command()
@click.argument("name", type=click.Choice(sorted(MACHINES)))
def show(name: str) -> None:
    """Print one machine as a Mermaid state diagram."""
    click.echo(machine_named(name).mermaid())
