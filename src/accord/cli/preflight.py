"""``accord preflight``: ask GitHub whether it would refuse a pull request, before an agent runs and is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from accord.cli.options import FormatArguments, ReadingArguments, WritingArguments, command
from accord.cli.output import print_findings, print_json
from accord.cli.sources import github_for
from accord.core.errors import Refused
from accord.core.findings import has_errors
from accord.doctor.settings import ask_before_run
from accord.workflows.settings import preflight_findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.core.findings import Finding


class PreflightArguments(WritingArguments, ReadingArguments, FormatArguments):
    """The arguments of ``accord preflight``."""


@command(PreflightArguments)
def preflight(given: PreflightArguments) -> int:
    """Ask GitHub whether a pull request would be refused.

    Run it with the token that opens the pull request, before an agent runs. Asks for a pull request that GitHub
    never creates, and reads the rules of accord's branches. Exits 4 where GitHub refuses.
    """
    with github_for(given) as connection:
        facts = ask_before_run(connection, asks=not given.dry_run)
    findings = preflight_findings(facts)
    is_refused = has_errors(findings)
    outcome = "refused" if is_refused else "ok"
    if given.is_json:
        shown = [finding.as_json() for finding in findings]
        print_json({"outcome": outcome, "repository": connection.repository, "login": facts.login, "findings": shown})
    else:
        print_findings(findings, connection.repository)
        click.echo(outcome)
    _report_step(outcome, findings)
    return Refused.exit_code if is_refused else 0


def _report_step(outcome: str, findings: Sequence[Finding]) -> None:
    """Report ``accord preflight``: the outcome, and the findings as annotations and in the summary."""
    from accord.cli.step import annotate_file, findings_table, hints, leave_redacted, leave_summary

    leave_redacted({"outcome": outcome})
    if findings:
        annotate_file(findings, None)
        leave_summary("\n\n".join([f"### accord preflight: {outcome}", findings_table(findings), *hints(findings)]))
