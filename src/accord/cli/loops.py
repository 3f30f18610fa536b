"""``accord keepalive|autofix|verify|bot-comments``: what a loop does next, decided from facts, or done on GitHub."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

import click

from accord.cli.loops_run import add_run
from accord.cli.output import format_option, one_line, print_findings, print_json
from accord.cli.sources import read_bytes
from accord.kernel.documents import read_object
from accord.kernel.errors import BrokenContract
from accord.kernel.findings import with_lines
from accord.kernel.redaction import redactor_for
from accord.kernel.shapes import read_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.loops.models import Decision, LoopFacts

Facts = TypeVar("Facts", bound="LoopFacts")

_COLORS = {"run": "green", "fix": "green", "report": "green", "stop": "yellow", "ask": "yellow"}


@click.group()
def keepalive() -> None:
    """Run the agent again while tasks of a pull request are open."""


@click.group()
def autofix() -> None:
    """Let the agent mend failing checks."""


@click.group()
def verify() -> None:
    """Hold a change against the acceptance criteria of its work item."""


@click.group()
def bot_comments() -> None:
    """Let the agent answer review threads of bots."""


add_run(keepalive, "keepalive")
add_run(autofix, "autofix")
add_run(verify, "verify")
add_run(bot_comments, "bot-comments")


def _decide_command(group: click.Group) -> Callable[..., Any]:
    def as_command(function: Callable[..., Any]) -> click.Command:
        argument = click.argument("facts", metavar="FACTS.json")
        return group.command("decide")(argument(format_option(click.pass_context(function))))

    return as_command


@_decide_command(keepalive)
def decide_keepalive(ctx: click.Context, /, facts: str, output_format: str) -> None:
    """Decide from facts whether the agent runs again; - is stdin. Reads nothing else, writes nothing.

    Exits 0 with the decision, 1 when the facts do not have the shape of the kind keepalive-facts.
    """
    from accord.loops.keepalive import KeepaliveFacts, decide

    redact = redactor_for(os.environ)
    _tell(ctx, KeepaliveFacts, facts, lambda known: decide(known, redact), output_format)


@_decide_command(autofix)
def decide_autofix(ctx: click.Context, /, facts: str, output_format: str) -> None:
    """Decide from facts whether the agent mends checks; - is stdin. Reads nothing else, writes nothing.

    Exits 0 with the decision, 1 when the facts do not have the shape of the kind autofix-facts.
    """
    from accord.loops.autofix import AutofixFacts, decide

    redact = redactor_for(os.environ)
    _tell(ctx, AutofixFacts, facts, lambda known: decide(known, redact), output_format)


@_decide_command(verify)
def decide_verify(ctx: click.Context, /, facts: str, output_format: str) -> None:
    """Decide from facts whether to verify, or what follows a verdict; - is stdin. Reads nothing else, writes nothing.

    Exits 0 with the decision, 1 when the facts do not have the shape of the kind verify-facts.
    """
    from accord.loops.verify import VerifyFacts, decide

    redact = redactor_for(os.environ)
    _tell(ctx, VerifyFacts, facts, lambda known: decide(known, redact), output_format)


@_decide_command(bot_comments)
def decide_bot_comments(ctx: click.Context, /, facts: str, output_format: str) -> None:
    """Decide from facts whether the agent answers bots; - is stdin. Reads nothing else, writes nothing.

    Exits 0 with the decision, 1 when the facts do not have the shape of the kind bot-comments-facts.
    """
    from accord.loops.bot_comments import BotCommentFacts, decide

    redact = redactor_for(os.environ)
    _tell(ctx, BotCommentFacts, facts, lambda known: decide(known, redact), output_format)


def _tell(
    ctx: click.Context, model: type[Facts], path: str, decide: Callable[[Facts], Decision], output_format: str
) -> None:
    """Print the decision, or what is wrong with the facts."""
    try:
        facts = _read(model, path)
    except BrokenContract as broken:
        if output_format == "json":
            print_json({"ok": False, "findings": [finding.as_json() for finding in broken.findings]})
        else:
            print_findings(broken.findings, path)
        ctx.exit(BrokenContract.exit_code)
    decision = decide(facts)
    if output_format == "json":
        print_json(decision.model_dump(mode="json"))
    else:
        print_decision(decision)


def _read(model: type[Facts], path: str) -> Facts:
    document = read_object(read_bytes(path))
    try:
        return read_shape(model, document.value)
    except BrokenContract as broken:
        raise BrokenContract(broken.message, findings=with_lines(broken.findings, document.lines)) from None


def print_decision(decision: Decision) -> None:
    """Print a decision for people."""
    action = click.style(decision.action, fg=_COLORS.get(decision.action), bold=True)
    click.echo(f"{action} ({decision.reason}): {one_line(decision.message)}")
    if decision.agent:
        click.echo(f"  agent {one_line(decision.agent)}, iteration {decision.iteration}")
    if decision.wait_seconds is not None:
        click.echo(f"  look again in {decision.wait_seconds} s")
    for sign, labels in (("+", decision.add_labels), ("-", decision.remove_labels)):
        for label in labels:
            click.echo(f"  {sign} label {one_line(label)}")
    for warning in decision.warnings:
        click.echo(click.style(f"  warning: {one_line(warning)}", fg="yellow"))
    if decision.appendix:
        click.echo(f"  appendix of {len(decision.appendix)} characters (--format json shows it)")
