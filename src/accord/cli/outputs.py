"""``accord outputs``: the outputs of a run that somebody else made, from the evidence that is left of it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from accord.cli.output import format_option
from accord.cli.sources import read_bytes
from accord.kernel.errors import WrongUsage
from accord.kernel.redaction import redactor_for

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True)


@click.command()
@click.option("--agent", required=True, metavar="NAME", help="The agent's name in the registry.")
@click.option(
    "--exit-code", type=click.IntRange(0, 255), required=True, metavar="N", help="What the agent's process ended with."
)
@click.option("--stdout", type=_FILE, required=True, metavar="FILE", help="What it printed.")
@click.option("--stderr", type=_FILE, metavar="FILE", help="What it printed to stderr.")
@click.option("--final-message", type=_FILE, metavar="FILE", help="The message that it wrote to a file.")
@click.option("--pr-body", metavar="FILE", help="The pull request's body with its tasks.")
@click.option(
    "--repo", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR", help="Its work tree."
)
@click.option("--base", metavar="SHA", help="The commit that it began at.")
@click.option(
    "--pushed", type=click.Choice(["true", "false"]), help="Whether base to HEAD was pushed, if it was tried."
)
@click.option("--push-error", type=_FILE, metavar="FILE", help="What git printed when the push failed.")
@click.option("--fail", is_flag=True, help="End with the run's exit code instead of 0.")
@format_option
@click.pass_context
def outputs(
    ctx: click.Context,
    /,
    agent: str,
    exit_code: int,
    stdout: Path,
    stderr: Path | None,
    final_message: Path | None,
    pr_body: str | None,
    repo: Path | None,
    base: str | None,
    pushed: str | None,
    push_error: Path | None,
    fail: bool,
    output_format: str,
) -> None:
    """Compute the outputs of an agent's run from what it printed, and write them where a runner reads them.

    It runs nothing and pushes nothing. It ends with 0 whenever the outputs were written, whatever they say.
    """
    from accord.cli.run_step import report_run
    from accord.kernel.clock import SystemClock
    from accord.runner.evidence_given import Given, outputs_given
    from accord.runner.registry import secrets_declared_in

    if (repo is None) != (base is None) or (pushed == "true" and repo is None):
        raise WrongUsage(
            "Which changes were pushed cannot be told.",
            mend="Pass --repo DIR and --base SHA together; --pushed true needs both.",
        )
    given = Given(
        agent,
        exit_code,
        stdout,
        stderr,
        final_message,
        None if pr_body is None else read_bytes(pr_body).decode("utf-8", "replace"),
        repo,
        base or "",
        None if pushed is None else pushed == "true",
        push_error.read_text("utf-8", "replace") if push_error else "",
    )
    redact = redactor_for(os.environ, certain=secrets_declared_in(repo or Path()))
    found = outputs_given(given, redact, os.environ, SystemClock())
    report_run(found, output_format)
    ctx.exit(int(found.exit_code) if fail else 0)
