"""``accord keepalive|autofix|verify|bot-comments``: decide what a loop does next, or take a turn of it on GitHub.

Taking a turn imports what only a turn needs: that takes longer than all else.
"""

from __future__ import annotations

import click

from accord.cli.loop_options import ChangingArguments, KeepaliveArguments, TurnArguments, VerifyArguments
from accord.cli.options import FormatArguments, Group, argument, command
from accord.cli.output import finding_lines, redactor
from accord.cli.sources import read_bytes
from accord.cli.step import present
from accord.core.documents import read_object
from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.kinds import KINDS


class _DecideArguments(FormatArguments):
    facts: str = argument("FACTS.json")


def _loop_group(name: str, summary: str, subject: str, arguments: type[TurnArguments]) -> click.Group:
    found = Group(name, help=summary)

    def run(given: TurnArguments) -> None:
        from accord.cli.loop_turn import run_loop

        run_loop(name, given)

    of_all = "Without --pull, start --dispatch-workflow for each open pull request that the loop is on for. "
    run.__doc__ = f"""Take a turn of {name} on GitHub.

    {"" if arguments is VerifyArguments else of_all}With the same --run-dir, the same command continues after an
    interruption, and changes nothing after a success.
    """
    command(arguments, of=found)(run)

    def decide(given: _DecideArguments) -> int:
        from accord.cli.loops_output import decision_lines
        from accord.loops.models import ACTS
        from accord.loops.run import LOOPS

        try:
            read, findings = KINDS[f"{name}-facts"].read_model(read_object(read_bytes(given.facts)))
        except BrokenContract as broken:
            read, findings = None, list(broken.findings)
        decision = LOOPS[name].decide(read, redactor()) if read else None
        if decision:
            message = "`{}` is null, so it was not read, and the loop would start something."
            starts = LOOPS[name].unread if decision.action in ACTS else ()
            findings = [
                Finding("schema", message.format(part), f"/{part}", hint=f"Read `{part}`, and write what there is.")
                for part in starts
                if getattr(read, part) is None
            ]
        if decision is None or findings:
            document = {"ok": False, "findings": [finding.as_json() for finding in findings]}
            present(given, document, finding_lines(findings, given.facts))
            return BrokenContract.exit_code
        present(given, decision.model_dump(mode="json"), decision_lines(decision))
        return 0

    decide.__doc__ = f"""Decide from facts {subject}.

    FACTS.json has the kind {name}-facts; - is stdin. Nothing else is read, nothing is written. Exits 1 when the
    facts do not have the shape of their kind, or something would start on a fact that is null.
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
    "autofix", "Let the agent fix failing checks.", "whether the agent fixes checks", ChangingArguments
)
verify = _loop_group(
    "verify", "Judge a change by its work item's acceptance criteria.", "whether to verify", VerifyArguments
)
bot_comments = _loop_group(
    "bot-comments", "Let the agent answer bots' review threads.", "whether the agent answers bots", ChangingArguments
)
