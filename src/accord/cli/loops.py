"""``accord keepalive|autofix|verify|bot-comments``: decide what a loop does next, or take a turn of it on GitHub."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from accord.cli.loops_output import print_decision
from accord.cli.loops_run import add_run
from accord.cli.options import format_option
from accord.cli.output import print_findings, print_json
from accord.cli.sources import read_bytes
from accord.core.documents import read_object
from accord.core.errors import BrokenContract
from accord.core.kinds import KINDS
from accord.text.redaction import redactor_for

if TYPE_CHECKING:
    from accord.core.kinds import Kind
    from accord.loops.facts import Loop


@click.group()
def keepalive() -> None:
    """Rerun the agent while tasks of a pull request are open."""


@click.group()
def autofix() -> None:
    """Let the agent fix failing checks."""


@click.group()
def verify() -> None:
    """Judge a change by its work item's acceptance criteria."""


@click.group()
def bot_comments() -> None:
    """Let the agent answer bots' review threads."""


def _add_decide(group: click.Group, name: str, subject: str) -> None:
    """Add the command ``decide`` to a loop's group."""

    def decide(ctx: click.Context, /, facts: str, output_format: str) -> None:
        from accord.loops.run import LOOPS

        _decide(ctx, LOOPS[name], KINDS[f"{name}-facts"], facts, output_format)

    decide.__doc__ = f"""Decide from facts {subject}.

    FACTS.json has the kind {name}-facts; - is stdin. Nothing else is read, nothing is written. Exits 0 with the
    decision, 1 when the facts do not have the shape of their kind.
    """
    argument = click.argument("facts", metavar="FACTS.json")
    group.command("decide")(argument(format_option(click.pass_context(decide))))


for _group, _name, _subject in (
    (keepalive, "keepalive", "whether the agent runs again"),
    (autofix, "autofix", "whether the agent fixes checks"),
    (verify, "verify", "whether to verify"),
    (bot_comments, "bot-comments", "whether the agent answers bots"),
):
    add_run(_group, _name)
    _add_decide(_group, _name, _subject)


def _decide(ctx: click.Context, loop: Loop, kind: Kind, path: str, output_format: str) -> None:
    """Print the decision, or the findings about the facts."""
    try:
        facts, findings = kind.read_model(read_object(read_bytes(path)))
    except BrokenContract as broken:
        facts, findings = None, list(broken.findings)
    if facts is None:
        if output_format == "json":
            print_json({"ok": False, "findings": [finding.as_json() for finding in findings]})
        else:
            print_findings(findings, path)
        ctx.exit(BrokenContract.exit_code)
    decision = loop.decide(facts, redactor_for(os.environ))
    if output_format == "json":
        print_json(decision.model_dump(mode="json"))
    else:
        print_decision(decision)
