"""``accord publish``: the second job's half of a run, the only one that may write."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import click

from accord.cli.output import format_option
from accord.cli.sources import github_for, read_bytes, repository_options
from accord.kernel.branches import DEFAULT_AUTHOR, check_author
from accord.kernel.errors import AccordError, BrokenContract, WrongUsage
from accord.kernel.redaction import redactor_for
from accord.kernel.store import can_be_written, write_whole


@click.command()
@click.argument("run_dir", metavar="RUN_DIR", type=click.Path(path_type=Path), envvar="ACCORD_PUBLISH_RUN_DIR")
@click.option("--pr-ref", default="", metavar="REF", help="The branch to push to.")
@click.option("--pr-number", default="", metavar="N", help="The pull request whose tasks are looked for.")
@click.option("--base-ref", default="", metavar="REF", help="Where a branch begins that is not there yet.")
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
@click.option("--outputs", type=click.Path(path_type=Path), help="Write the outputs as JSON to this file too.")
@click.option("--fail", is_flag=True, help="End with the run's exit code instead of 0.")
@repository_options
@format_option
@click.pass_context
def publish(
    ctx: click.Context,
    /,
    run_dir: Path,
    pr_ref: str,
    pr_number: str,
    base_ref: str,
    pr_body: str | None,
    checkout: Path | None,
    author: str,
    outputs: Path | None,
    fail: bool,
    output_format: str,
    **options: Any,
) -> None:
    """Commit and push what the run in RUN_DIR changed, and write its final outputs.

    Run it again at any time: what was pushed is found again. It ends with 0 whenever the outputs were written, whatever
    they say. Where to push and whose tasks to read is taken from RUN_DIR when no option says it, but never in a
    workflow: there the agent could have written that itself.
    """
    from accord.cli.run_step import finished, report_run
    from accord.runner.finish import outputs_without_record, read_record

    check_author(author)
    if outputs and not can_be_written(outputs):
        raise WrongUsage(f"The file of outputs {outputs} cannot be written.", mend="Name a file that may be written.")
    try:
        read_record(run_dir)
    except BrokenContract as broken:
        found = outputs_without_record(broken.message, redactor_for(os.environ), _absence(pr_ref, options))
    else:
        told = {"pr_ref": pr_ref, "pr_number": pr_number, "base_ref": base_ref}
        if os.environ.get("GITHUB_ACTIONS") != "true":
            told = {name: value for name, value in told.items() if value}
        body = None if pr_body is None else read_bytes(pr_body).decode("utf-8", "replace")
        with github_for(**options) as way:
            found = finished(run_dir, way, None, **told, pr_body=body, author=author, lender=checkout)
    report_run(found, output_format)
    if outputs:
        write_whole(outputs, json.dumps(found.as_outputs(), indent=2, ensure_ascii=True) + "\n")
    ctx.exit(int(found.exit_code) if fail else 0)


def _absence(pr_ref: str, options: dict[str, Any]) -> str:
    """Look whether the branch is there: without it the agent's job ends at its checkout, and leaves nothing."""
    from accord.kernel.clock import SystemClock
    from accord.runner.publish import absence

    try:
        with github_for(**options) as way:
            return absence(way.remote(SystemClock()), pr_ref) if pr_ref else ""
    except (AccordError, subprocess.TimeoutExpired):
        return ""
