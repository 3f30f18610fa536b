"""``accord machine``: the state machines of the contracts, drawn from the tables that judge the moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Arguments, Choice, Group, argument, command, option
from accord.cli.output import print_json
from accord.core.kinds import KINDS

if TYPE_CHECKING:
    from accord.core.machine import Machine


MACHINES = ("handoff", "session", "session-lean", "session-task", "work-item", "work-package")


def machine_named(name: str) -> Machine[Any]:
    """Import the machines, and return the one of this name."""
    from accord.handoffs.stages import HANDOFF
    from accord.missions.lifecycle import WORK_PACKAGE
    from accord.results.status import WORK_ITEM
    from accord.sessions.machine import LEAN, SESSION
    from accord.sessions.reviews import TASK

    machines: tuple[Machine[Any], ...] = (HANDOFF, SESSION, LEAN, TASK, WORK_ITEM, WORK_PACKAGE)
    return dict(zip(MACHINES, machines, strict=True))[name]


@click.group(cls=Group)
def machine() -> None:
    """Print state machines as Mermaid diagrams."""


class _MachineArguments(Arguments):
    name: str = argument(type=Choice(sorted(MACHINES)))


@command(_MachineArguments, of=machine)
def show(given: _MachineArguments) -> None:
    """Print one machine as a Mermaid state diagram."""
    click.echo(machine_named(given.name).mermaid())


class _SchemaArguments(Arguments):
    kind: str | None = argument("[KIND]", type=Choice(sorted(KINDS)))
    strict: bool = option("--strict", "The stricter form that agent CLIs need for enforced output.")


@command(_SchemaArguments)
def schema(given: _SchemaArguments) -> None:
    """Print the JSON Schema of a document kind.

    Without KIND, lists the kinds. The schemas are JSON Schema 2020-12.

    Enforced output has no objects with free keys and no values of any type: --strict leaves them out, and names them on
    stderr.
    """
    from accord.core.schemas import json_schema, strict_form

    kind = given.kind
    if kind is None:
        click.echo("\n".join(sorted(KINDS)))
        return
    model = KINDS[kind].model
    if not given.strict:
        print_json(json_schema(model, kind))
        return
    form = strict_form(model)
    print_json(form.schema)
    if form.left_out:
        click.echo(f"warning: The strict schema leaves out {', '.join(form.left_out)}.", err=True)
    if form.missing:
        names = " and ".join(f"`{name}`" for name in form.missing)
        click.echo(f"warning: {names} must be given, so no document of this form passes `accord check`.", err=True)
