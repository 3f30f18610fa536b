"""``accord preflight``: ask GitHub whether it would refuse a pull request, before an agent runs and is paid for."""

from __future__ import annotations

from typing import Any

import click

from accord.cli.live_facts import ask_before_run
from accord.cli.options import dry_run_option, format_option, reading_options
from accord.cli.output import print_findings, print_json
from accord.cli.sources import github_for
from accord.core.errors import Refused
from accord.core.findings import has_errors
from accord.workflows.settings import preflight_findings


@click.command()
@dry_run_option
@reading_options
@format_option
@click.pass_context
def preflight(ctx: click.Context, /, dry_run: bool, output_format: str, **access: Any) -> None:
    """Ask GitHub whether a pull request would be refused.

    Run it with the token that opens the pull request, before an agent runs. It asks for a pull request that GitHub
    never creates, from a branch into itself, and reads the rules of accord's branches. Exits 4 where GitHub refuses.
    """
    with github_for(**access) as connection:
        facts = ask_before_run(connection, asks=not dry_run)
    findings = preflight_findings(facts)
    is_refused = has_errors(findings)
    outcome = "refused" if is_refused else "ok"
    if output_format == "json":
        shown = [finding.as_json() for finding in findings]
        print_json({"outcome": outcome, "repository": connection.repository, "login": facts.login, "findings": shown})
    else:
        print_findings(findings, connection.repository)
        click.echo(outcome)
    _report_step(outcome, findings)
    ctx.exit(Refused.exit_code if is_refused else 0)


def _report_step(outcome: str, findings: Any) -> None:
    """Report ``accord preflight``: the outcome, and the findings as annotations and in the summary."""
    from accord.cli.step import annotate_file, findings_table, hints, leave_redacted, leave_summary

    leave_redacted({"outcome": outcome})
    if findings:
        annotate_file(findings, None)
        leave_summary("\n\n".join([f"### accord preflight: {outcome}", findings_table(findings), *hints(findings)]))
