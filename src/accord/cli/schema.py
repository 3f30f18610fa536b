"""``accord schema``: the JSON Schemas of the contracts, for editors and for agents."""

from __future__ import annotations

import click

from accord.cli.kinds import KINDS
from accord.cli.output import print_json


@click.command()
@click.argument("kind", required=False, metavar="[KIND]", type=click.Choice(sorted(KINDS)))
@click.option("--strict", is_flag=True, help="The form that agent CLIs accept for enforced output.")
def schema(kind: str | None, strict: bool) -> None:
    """Print the JSON Schema 2020-12 of a kind of document; without KIND, list the kinds."""
    from accord.kernel.schemas import json_schema, strict_schema

    if kind is None:
        click.echo("\n".join(sorted(KINDS)))
        return
    model = KINDS[kind].model
    print_json(strict_schema(model) if strict else json_schema(model))
