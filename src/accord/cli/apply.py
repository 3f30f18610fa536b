"""``accord apply``: an agent's result becomes operations on GitHub, exactly once."""

from __future__ import annotations

import json
import os
import re
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.apply_kinds import APPLICABLE, Choices, Subject, apply_subject, kind_options, read_subject
from accord.cli.output import Progress, format_option, one_line, print_findings, print_json
from accord.cli.sources import github_for, read_bytes, repository_options
from accord.kernel.errors import WrongUsage
from accord.kernel.findings import has_errors
from accord.kernel.redaction import redacted, redactor_for
from accord.kernel.store import can_be_written, write_whole
from accord.results.receipts import Outcome, Receipt

if TYPE_CHECKING:
    from collections.abc import Mapping


_RUN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_COLORS = {"done": "green", "adopted": "cyan", "skipped": "bright_black", "planned": "blue", "failed": "red"}


@click.command()
@click.argument("result", metavar="RESULT", envvar="ACCORD_APPLY_RESULT")
@click.option("--kind", type=click.Choice(APPLICABLE), help="The only kind that is accepted; any when not given.")
@click.option("--run-key", default="", help="Scope of exactly-once; a digest of result and repository when not given.")
@click.option("--dry-run", is_flag=True, help="Check and plan, print the operations, write nothing.")
@click.option("--receipt", type=click.Path(path_type=Path), help="Write the JSON receipt to this file too.")
@kind_options
@repository_options
@format_option
@click.pass_context
def apply(
    ctx: click.Context,
    /,
    result: str,
    kind: str | None,
    run_key: str,
    dry_run: bool,
    receipt: Path | None,
    output_format: str,
    **options: Any,
) -> None:
    """Check RESULT (a file, or - for stdin), and carry it out exactly once.

    Nothing is written before everything is checked. Running it again writes only what is missing.
    """
    from accord.cli.step import report_receipt

    if run_key and not _RUN_KEY.fullmatch(run_key):
        raise WrongUsage(f'"{run_key[:80]}" is no run key.', mend="Use up to 100 letters, digits, dots, dashes or _.")
    if receipt and not can_be_written(receipt):
        raise WrongUsage(f"The receipt {receipt} cannot be written.", mend="Name a file that may be written.")
    subject = read_subject(read_bytes(result), kind)
    if has_errors(subject.findings):
        repository = options["repo"] or os.environ.get("GITHUB_REPOSITORY", "")
        report = Receipt(subject.kind, Outcome.REJECTED, run_key, repository, subject.findings)
    else:
        report = _apply(subject, run_key, dry_run, options)
    if receipt:
        write_whole(receipt, json.dumps(redacted(report.as_json(), redactor_for(os.environ)), indent=2) + "\n")
    report_receipt(report, result, receipt)
    if output_format == "json":
        print_json(report.as_json())
    else:
        print_receipt(report, result)
    ctx.exit(report.exit_code)


def _apply(subject: Subject, run_key: str, dry_run: bool, options: dict[str, Any]) -> Receipt:
    from accord.kernel.clock import SystemClock
    from accord.results.setting import Setting

    choices = Choices(**{name: options.pop(name) for name in Choices.__dataclass_fields__})
    progress = Progress()
    with github_for(**options) as way:
        setting = Setting(
            way.repository,
            SystemClock(),
            redactor_for(os.environ),
            run_key,
            dry_run,
            lambda entry, ended, total: progress.show(f"{entry.op} {entry.key}", ended, total),
        )
        return apply_subject(subject, way, setting, choices)


def print_receipt(receipt: Receipt, file: str, *, most: int | None = None) -> None:
    """Print a receipt for people: findings, one line an operation, one sentence on how it ended.

    ``most`` is how many operations of one kind in a row are shown where there are more; all when it is None.
    """
    print_findings(receipt.findings, file)
    width = max((len(one_line(entry.key)) for entry in receipt.operations), default=0)
    for (status, op), group in groupby(receipt.operations, key=lambda entry: (entry.status.value, entry.op)):
        entries = list(group)
        shown = entries if most is None or len(entries) <= most + 1 else entries[:most]
        for entry in shown:
            target = issue_or_commit(entry.target)
            line = (
                f"{click.style(f'{status:<8}', fg=_COLORS[status])} {op:<17} {one_line(entry.key):<{width}}  {target}"
            )
            click.echo(line.rstrip())
        if len(shown) < len(entries):
            click.echo(f"{'':<8} … {len(entries) - len(shown)} more")
    click.echo(click.style(_headline(receipt), bold=True))
    if "review" in receipt.details:
        click.echo(_review_line(receipt.details["review"]))
    if receipt.sanitised:
        click.secho(sanitised_line(receipt.sanitised), dim=True)
    if receipt.estimated_seconds:
        click.echo(f"GitHub's limits will make this take about {_duration(receipt.estimated_seconds)}.")
    if receipt.error:
        click.echo(f"{one_line(receipt.error.message)}\n  {one_line(receipt.error.mend)}", err=True)


def sanitised_line(counts: Mapping[str, int]) -> str:
    """Say what was changed in the agent's texts before they were posted, by kind."""
    return f"made harmless before posting: {', '.join(f'{kind} {count}' for kind, count in counts.items())}"


def issue_or_commit(target: str | None) -> str:
    """Write what an operation is about: an issue as #12, a commit by the beginning of its id."""
    if not target:
        return ""
    return f"#{target}" if target.isdecimal() and len(target) < 20 else target[:10]


def _headline(receipt: Receipt) -> str:
    errors = sum(finding.severity.value == "error" for finding in receipt.findings)
    counts = _counts(receipt)
    stop = f"part-way: {counts}" if receipt.operations else "before anything was written"
    sentences = {
        Outcome.APPLIED: f"applied to {receipt.repository}: {counts}",
        Outcome.UNCHANGED: f"unchanged: {receipt.repository} has all of it already",
        Outcome.PLANNED: f"planned for {receipt.repository}: {counts}",
        Outcome.REJECTED: f"rejected: {errors} error{'s' if errors != 1 else ''}, nothing was written",
        Outcome.STOPPED: f"stopped {stop}; run the same command again to continue",
        Outcome.REFUSED: f"refused: {counts}" if receipt.operations else "refused, nothing was written",
    }
    requests = f" ({receipt.reads} reads, {receipt.writes} writes)" if receipt.reads or receipt.writes else ""
    return one_line(sentences[receipt.outcome]) + requests


def _review_line(review: Mapping[str, Any]) -> str:
    """Say what became of the verdict and of the comments."""
    verdict = f"verdict {review['verdict_requested']}"
    if review["verdict_applied"] not in (None, review["verdict_requested"]):
        verdict += f" (posted as {review['verdict_applied']})"
    places = {"on lines": review["inline"], "on files": review["file_level"], "in the body": review["in_body"]}
    counts = ", ".join(f"{count} {place}" for place, count in places.items() if count)
    return one_line(f"{verdict}; comments: {counts or 'none'}  {review['url'] or ''}")


def _counts(receipt: Receipt) -> str:
    statuses = [entry.status.value for entry in receipt.operations]
    return ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses)) or "nothing to do"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
