"""``accord machine``: the state machines of the contracts, drawn from the tables that judge the moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Choice
from accord.cli.output import print_json
from accord.core.kinds import KINDS, load_name

if TYPE_CHECKING:
    from accord.core.machine import Machine


MACHINES = {
    "handoff": "accord.handoffs.stages:HANDOFF",
    "session": "accord.sessions.machine:SESSION",
    "session-lean": "accord.sessions.machine:LEAN",
    "session-task": "accord.sessions.task_machine:TASK",
    "work-item": "accord.results.status:WORK_ITEM",
    "work-package": "accord.missions.lifecycle:WORK_PACKAGE",
}
"""Where each machine is, as ``module:name``; only the one that is asked for is imported."""


def machine_named(name: str) -> Machine[Any]:
    """Import a machine."""
    found: Machine[Any] = load_name(MACHINES[name])
    return found


@click.group()
def machine() -> None:
    """Print state machines as Mermaid diagrams."""


@machine.command()
@click.argument("name", type=Choice(sorted(MACHINES)))
def show(name: str) -> None:
    """Print one machine as a Mermaid state diagram."""
    click.echo(machine_named(name).mermaid())


@click.command()
@click.argument("kind", required=False, metavar="[KIND]", type=Choice(sorted(KINDS)))
@click.option("--strict", is_flag=True, help="The stricter form that agent CLIs need for enforced output.")
def schema(kind: str | None, strict: bool) -> None:
    """Print the JSON Schema of a document kind.

    Without KIND, lists the kinds. The schemas are JSON Schema 2020-12.

    Enforced output has no objects with free keys and no values of any type: --strict leaves them out, and names them on
    stderr.
    """
    from accord.core.schemas import json_schema, strict_form

    if kind is None:
        click.echo("\n".join(sorted(KINDS)))
        return
    model = KINDS[kind].model
    if not strict:
        print_json(json_schema(model, kind))
        return
    form = strict_form(model)
    print_json(form.schema)
    if form.left_out:
        click.echo(f"warning: The strict schema leaves out {', '.join(form.left_out)}.", err=True)
    if form.missing:
        names = " and ".join(f"`{name}`" for name in form.missing)
        click.echo(f"warning: {names} must be given, so no document of this form passes `accord check`.", err=True)
