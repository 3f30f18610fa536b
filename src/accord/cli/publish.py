"""``accord publish``: the second job's half of a run, the only one that may write."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click

from accord.cli.output import format_option
from accord.cli.sources import github_for, read_bytes, repository_options
from accord.kernel.branches import DEFAULT_AUTHOR
from accord.kernel.errors import BrokenContract, WrongUsage
from accord.kernel.redaction import redactor_for

_AUTHOR = re.compile(r"[^<>\n]+ <[^<>\s]+>")


@click.command()
@click.argument("run_dir", metavar="RUN_DIR", type=click.Path(path_type=Path), envvar="ACCORD_PUBLISH_RUN_DIR")
@click.option("--pr-ref", default="", metavar="REF", help="The branch to push to; else the one that the run was given.")
@click.option(
    "--pr-body", metavar="FILE", help="The pull request's body with its tasks; else it is read from the run's pull."
)
@click.option(
    "--checkout",
    type=click.Path(path_type=Path),
    help="A checkout whose objects need not be fetched again, and that no agent could write to; it is only read.",
)
@click.option(
    "--author", default=DEFAULT_AUTHOR, show_default=True, metavar="'NAME <MAIL>'", help="Author of the commit."
)
@click.option("--fail", is_flag=True, help="End with the run's exit code instead of 0.")
@repository_options
@format_option
@click.pass_context
def publish(
    ctx: click.Context,
    /,
    run_dir: Path,
    pr_ref: str,
    pr_body: str | None,
    checkout: Path | None,
    author: str,
    fail: bool,
    output_format: str,
    **options: Any,
) -> None:
    """Commit and push what the run in RUN_DIR changed, and write its final outputs.

    Run it again at any time: what was pushed is found again. It ends with 0 whenever the outputs were written, whatever
    they say.
    """
    from accord.cli.run_step import finished, report_run
    from accord.runner.finish import outputs_without_record, read_record

    if not _AUTHOR.fullmatch(author):
        raise WrongUsage(f'"{author}" names no author.', mend='Write it as "Name <mail@example.org>".')
    try:
        read_record(run_dir)
    except BrokenContract as broken:
        outputs = outputs_without_record(broken.message, redactor_for(os.environ))
    else:
        body = None if pr_body is None else read_bytes(pr_body).decode("utf-8", "replace")
        with github_for(**options) as way:
            outputs = finished(run_dir, way, pr_ref=pr_ref, pr_body=body, author=author, lender=checkout)
    report_run(outputs, output_format)
    ctx.exit(int(outputs.exit_code) if fail else 0)
