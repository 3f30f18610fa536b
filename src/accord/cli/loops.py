"""``accord keepalive|autofix|verify|bot-comments``: decide what a loop does next, or take a turn of it on GitHub."""

from __future__ import annotations

import os

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


def _loop_group(
    name: str, summary: str, subject: str, *, changes_code: bool = True, reads_checks: bool = False
) -> click.Group:
    """Return the group of a loop with its commands ``run`` and ``decide``."""
    group = click.Group(name, help=summary)
    add_run(group, name, changes_code=changes_code, reads_checks=reads_checks)

    def decide(ctx: click.Context, /, facts: str, output_format: str) -> None:
        from accord.loops.run import LOOPS

        try:
            read, findings = KINDS[f"{name}-facts"].read_model(read_object(read_bytes(facts)))
        except BrokenContract as broken:
            read, findings = None, list(broken.findings)
        if read is None:
            if output_format == "json":
                print_json({"ok": False, "findings": [finding.as_json() for finding in findings]})
            else:
                print_findings(findings, facts)
            ctx.exit(BrokenContract.exit_code)
        decision = LOOPS[name].decide(read, redactor_for(os.environ))
        if output_format == "json":
            print_json(decision.model_dump(mode="json"))
        else:
            print_decision(decision)

    decide.__doc__ = f"""Decide from facts {subject}.

    FACTS.json has the kind {name}-facts; - is stdin. Nothing else is read, nothing is written. Exits 0 with the
    decision, 1 when the facts do not have the shape of their kind.
    """
    argument = click.argument("facts", metavar="FACTS.json")
    group.command("decide")(argument(format_option(click.pass_context(decide))))
    return group


keepalive = _loop_group(
    "keepalive",
    "Rerun the agent while tasks of a pull request are open.",
    "whether the agent runs again",
    reads_checks=True,
)
autofix = _loop_group(
    "autofix", "Let the agent fix failing checks.", "whether the agent fixes checks", reads_checks=True
)
verify = _loop_group(
    "verify", "Judge a change by its work item's acceptance criteria.", "whether to verify", changes_code=False
)
bot_comments = _loop_group(
    "bot-comments", "Let the agent answer bots' review threads.", "whether the agent answers bots"
)
