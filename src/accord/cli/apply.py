"""``accord apply``: an agent's result becomes operations on GitHub, exactly once."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import click

from accord.cli.apply_kinds import APPLICABLE, Choices, Subject, apply_subject, kind_options, read_subject
from accord.cli.output import Progress, format_option, print_json
from accord.cli.receipts import print_receipt, report_receipt
from accord.cli.sources import github_for, read_bytes, repository_options
from accord.kernel.errors import WrongUsage
from accord.kernel.findings import has_errors
from accord.kernel.redaction import redacted, redactor_for
from accord.kernel.store import can_be_written, write_whole
from accord.results.receipts import Outcome, Receipt

_RUN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


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
    if run_key and not _RUN_KEY.fullmatch(run_key):
        raise WrongUsage(f'"{run_key[:80]}" is no run key.', mend="Use up to 100 letters, digits, dots, dashes or _.")
    if receipt and receipt.resolve() == Path(result).resolve():
        raise WrongUsage(f"The receipt would be written over {result}.", mend="Name another file.")
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
