"""``accord keepalive|autofix|verify|bot-comments``: decide what a loop does next, or take a turn of it on GitHub."""

from __future__ import annotations

import os

import click

from accord.cli.loops_output import (
    AutofixArguments,
    ChangingArguments,
    KeepaliveArguments,
    TurnArguments,
    print_decision,
)
from accord.cli.loops_run import add_run
from accord.cli.options import FormatArguments, Group, argument, command
from accord.cli.output import print_findings, print_json
from accord.cli.sources import read_bytes
from accord.core.documents import read_object
from accord.core.errors import BrokenContract
from accord.core.kinds import KINDS
from accord.text.redaction import redactor_for


class _DecideArguments(FormatArguments):
    facts: str = argument("FACTS.json")


def _loop_group(name: str, summary: str, subject: str, arguments: type[TurnArguments]) -> click.Group:
    """Return the group of a loop with its commands ``run`` and ``decide``."""
    found = Group(name, help=summary)
    add_run(found, name, arguments)

    def decide(given: _DecideArguments) -> int:
        from accord.loops.run import LOOPS

        try:
            read, findings = KINDS[f"{name}-facts"].read_model(read_object(read_bytes(given.facts)))
        except BrokenContract as broken:
            read, findings = None, list(broken.findings)
        if read is None:
            if given.is_json:
                print_json({"ok": False, "findings": [finding.as_json() for finding in findings]})
            else:
                print_findings(findings, given.facts)
            return BrokenContract.exit_code
        decision = LOOPS[name].decide(read, redactor_for(os.environ))
        if given.is_json:
            print_json(decision.model_dump(mode="json"))
        else:
            print_decision(decision)
        return 0

    decide.__doc__ = f"""Decide from facts {subject}.

    FACTS.json has the kind {name}-facts; - is stdin. Nothing else is read, nothing is written. Exits 1 when the
    facts do not have the shape of their kind.
    """
    command(_DecideArguments, of=found)(decide)
    return found


keepalive = _loop_group(
    "keepalive",
    "Rerun the agent while tasks of a pull request are open.",
    "whether the agent runs again",
    KeepaliveArguments,
)
autofix = _loop_group(
    "autofix", "Let the agent fix failing checks.", "whether the agent fixes checks", AutofixArguments
)
verify = _loop_group(
    "verify", "Judge a change by its work item's acceptance criteria.", "whether to verify", TurnArguments
)
bot_comments = _loop_group(
    "bot-comments", "Let the agent answer bots' review threads.", "whether the agent answers bots", ChangingArguments
)
