"""``accord run``: run an agent, and leave its outputs for the jobs that follow."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import tempfile
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Choice, Lines, format_option, repository_options
from accord.cli.output import one_line
from accord.cli.sources import github_for, read_bytes
from accord.core.errors import AccordError, BrokenContract, WrongUsage
from accord.files.store import can_be_written, write_whole
from accord.git.branches import DEFAULT_AUTHOR, check_author
from accord.text.redaction import redactor_for

if TYPE_CHECKING:
    from accord.runner.record import RunRecord
    from accord.runner.run import RunRequest


_FILE = click.Path(path_type=Path)


def _finite(minutes: float) -> float:
    """Refuse ``nan``, which is in every range."""
    if not math.isfinite(minutes):
        raise WrongUsage("The time limit is no number of minutes.", hint="Pass --max-runtime-minutes 45.")
    return minutes


@click.command()
@click.option("--agent", default="", metavar="NAME", help="The agent, by its name in the registry; else its default.")
@click.option(
    "--prompt-file",
    type=_FILE,
    metavar="F",
    help="What the agent is asked, a file of the workspace; else the prompt of the mode.",
)
@click.option("--appendix", default="", metavar="T", help="More text for the prompt; may come from users.")
@click.option(
    "--data", type=Lines(), multiple=True, metavar="F", help="A file with text of others, shown to the agent as data."
)
@click.option("--mode", default="", metavar="M", help="What the run is for, such as keepalive; told to the agent.")
@click.option("--iteration", default="", metavar="N", help="Which iteration of a loop this is; told to the agent.")
@click.option("--pull", default="", metavar="N", help="The pull request; told to the agent.")
@click.option("--pr-ref", default="", metavar="R", help="The branch to publish to.")
@click.option("--base-ref", default="", metavar="R", help="The base branch; told to the agent.")
@click.option("--sandbox-mode", default="", metavar="S", help="A sandbox mode of the agent's entry of the registry.")
@click.option("--safety-strategy", default="", metavar="S", help="A safety strategy of the agent's entry.")
@click.option("--model", default="", metavar="M", help="The model, as the agent names it.")
@click.option(
    "--schema", default="", metavar="KIND|F", help="What the answer must be: a kind of document, or a JSON Schema."
)
@click.option("--command", default="", metavar="T", help="What the agent `command` runs; split into words, no shell.")
@click.option(
    "--max-runtime-minutes",
    type=click.FloatRange(min=0, min_open=True, max=360),
    callback=lambda _context, _option, minutes: _finite(minutes),
    default=45,
    show_default=True,
    metavar="N",
    help="When the agent is ended.",
)
@click.option("--registry", type=_FILE, metavar="F", help="The registry; .github/agents/registry.yml when it is there.")
@click.option("--run-dir", type=_FILE, metavar="DIR", help="Where the run is kept; a new folder below RUNNER_TEMP.")
@click.option("--install-dir", type=_FILE, metavar="DIR", help="Where agents are installed; below RUNNER_TEMP.")
@click.option("--skip", is_flag=True, help="Run nothing, and succeed.")
@click.option("--no-publish", is_flag=True, help="Leave the changes to `accord publish` of another job.")
@click.option(
    "--fail",
    is_flag=True,
    help="Exit with the exit code of the outputs instead of 0; with 1 where no answer fits --schema.",
)
@format_option
@click.pass_context
def run(ctx: click.Context, /, agent: str, no_publish: bool, fail: bool, output_format: str, **given: Any) -> None:
    """Run an agent of the registry, and write the outputs of the runner contract.

    The agent works in the current directory, with its own secrets and nothing else of the job. Without a prompt file it
    is asked what stands in .github/prompts/MODE.md, or where that is not there what accord asks for the modes plan,
    implement, review, keepalive, autofix, verifier and bot-comments. Exits 0 whenever the outputs were written, however
    the run ended.
    """
    from accord.cli.run_step import check_step, finished, report_run, require_result
    from accord.runner.process import listening
    from accord.runner.publish import check_ref

    is_published = bool(given["pr_ref"]) and not (no_publish or given["skip"])
    check_step(is_published=is_published)
    if not given["skip"]:
        check_ref(given["pr_ref"], is_pushed=is_published)
    with listening() as told:
        request = _request(agent, given)
        record = run_shown(request, told)
        with nullcontext() if no_publish or not _is_publishable(record) else github_for(None, None, 900) as way:
            outputs = finished(request.run_dir, way, record)
    report_run(outputs, output_format)
    if output_format == "text":
        click.echo(f"The run is kept in {one_line(str(request.run_dir))}")
    if fail and request.schema and not record.is_skipped:
        require_result(request.run_dir, outputs)
    ctx.exit(int(outputs.exit_code) if fail else 0)


def _is_publishable(record: RunRecord) -> bool:
    """Tell whether there may be something to do on GitHub, and whether it is said where."""
    return bool(os.environ.get("GITHUB_REPOSITORY") and not record.is_skipped and (record.pr_ref or record.pr_number))


def _request(agent: str, given: dict[str, Any]) -> RunRequest:
    from accord.runner.run import RunRequest

    run_dir = given["run_dir"] or Path(
        tempfile.mkdtemp(prefix="accord-run-", dir=os.environ.get("RUNNER_TEMP") or None)
    )
    try:
        command = shlex.split(given["command"])
    except ValueError as error:
        raise WrongUsage(f"The command cannot be split into words: {error}.", hint="Close its quotes.") from None
    same = ("prompt_file", "appendix", "mode", "pr_ref", "base_ref", "iteration", "safety_strategy")
    more = ("model", "max_runtime_minutes", "registry", "install_dir")
    return RunRequest(
        agent=agent,
        run_dir=run_dir.resolve(),
        directory=Path.cwd(),
        sandbox=given["sandbox_mode"],
        is_skipped=given["skip"],
        command=command,
        schema=schema_of(given["schema"]),
        data=[Path(name.strip()) for name in given["data"] if name.strip()],
        pr_number=given["pull"],
        **{name: given[name] for name in (*same, *more)},
    )


def schema_of(named: str) -> Path | dict[str, Any] | None:
    """Return the strict schema of a kind of document; any other name is that of a file."""
    if not named:
        return None
    from accord.core.kinds import KINDS
    from accord.core.schemas import strict_schema

    return strict_schema(KINDS[named].model) if named in KINDS else Path(named)


def run_shown(request: RunRequest, told: Any) -> RunRecord:
    """Run an agent, and show on stderr what it prints."""
    from accord.core.clock import SystemClock
    from accord.gha.commands import command, inert
    from accord.runner.run import JobContext, run_agent

    def show(line: str) -> None:
        with suppress(OSError):  # nobody watches any more, which is no reason to end the agent
            click.echo(inert(line), err=True)

    is_step = os.environ.get("GITHUB_ACTIONS") == "true"
    if is_step:
        click.echo(command("group", f"Output of {one_line(request.agent or 'the agent')}"), err=True)
    try:
        return run_agent(request, JobContext(os.environ, SystemClock(), show, told))
    finally:
        if is_step:
            click.echo(command("endgroup", ""), err=True)


@click.command()
@click.argument("run_dir", metavar="RUN_DIR", type=click.Path(path_type=Path), envvar="ACCORD_PUBLISH_RUN_DIR")
@click.option("--pr-ref", default="", metavar="REF", help="The branch to push to.")
@click.option("--pull", default="", metavar="N", help="The pull request whose tasks are looked for.")
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
    pull: str,
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
        raise WrongUsage(f"The file of outputs {outputs} cannot be written.", hint="Name a file that may be written.")
    try:
        read_record(run_dir)
    except BrokenContract as broken:
        found = outputs_without_record(broken.message, redactor_for(os.environ), _absence(pr_ref, options))
    else:
        told = {"pr_ref": pr_ref, "pr_number": pull, "base_ref": base_ref}
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
    from accord.core.clock import SystemClock
    from accord.runner.publish import absence

    try:
        with github_for(**options) as way:
            return absence(way.remote(SystemClock()), pr_ref) if pr_ref else ""
    except (AccordError, subprocess.TimeoutExpired):
        return ""


_FILE_OUTPUTS = click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True)


@click.command()
@click.option("--agent", required=True, metavar="NAME", help="The agent's name in the registry.")
@click.option(
    "--exit-code", type=click.IntRange(0, 255), required=True, metavar="N", help="What the agent's process ended with."
)
@click.option("--stdout", type=_FILE_OUTPUTS, required=True, metavar="FILE", help="What it printed.")
@click.option("--stderr", type=_FILE_OUTPUTS, metavar="FILE", help="What it printed to stderr.")
@click.option("--final-message", type=_FILE_OUTPUTS, metavar="FILE", help="The message that it wrote to a file.")
@click.option("--pr-body", metavar="FILE", help="The pull request's body with its tasks.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="The repository's directory.",
)
@click.option("--base", metavar="SHA", help="The commit that it began at.")
@click.option("--pushed", type=Choice(["true", "false"]), help="Whether base to HEAD was pushed, if it was tried.")
@click.option("--push-error", type=_FILE_OUTPUTS, metavar="FILE", help="What git printed when the push failed.")
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
    root: Path | None,
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
    from accord.core.clock import SystemClock
    from accord.runner.finish import ExternalRun, outputs_of_external_run
    from accord.runner.registry import secrets_declared_in

    if (root is None) != (base is None) or (pushed == "true" and root is None):
        raise WrongUsage(
            "Which changes were pushed cannot be told.",
            hint="Pass --root DIR and --base SHA together; --pushed true needs both.",
        )
    given = ExternalRun(
        agent,
        exit_code,
        stdout,
        stderr,
        final_message,
        None if pr_body is None else read_bytes(pr_body).decode("utf-8", "replace"),
        root,
        base or "",
        None if pushed is None else pushed == "true",
        push_error.read_text("utf-8", "replace") if push_error else "",
    )
    redact = redactor_for(os.environ, certain=secrets_declared_in(root or Path()))
    found = outputs_of_external_run(given, redact, os.environ, SystemClock())
    report_run(found, output_format)
    ctx.exit(int(found.exit_code) if fail else 0)
