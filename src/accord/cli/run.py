"""``accord run``, ``publish`` and ``outputs``: run an agent, push its changes, compute its outputs."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import (
    EXISTING_FOLDER,
    FILE,
    Choice,
    Lines,
    dry_run_option,
    format_option,
    limit_options,
    posting_options,
    steering_option,
    together,
)
from accord.cli.output import one_line, print_json
from accord.cli.posting import local_policy, posting_to
from accord.cli.receipts import print_receipt
from accord.cli.run_step import RunnerCommand
from accord.cli.sources import github_for, read_bytes
from accord.core.environment import is_in_actions
from accord.core.errors import AccordError, BrokenContract, WrongUsage
from accord.engine.operations import LedgerEntry, OperationLog, OperationStatus
from accord.files.store import can_be_written, write_whole
from accord.git.branches import DEFAULT_AUTHOR, check_author
from accord.git.sizes import ChangeLimits
from accord.git.trusted_files import trusted_files
from accord.text.redaction import redactor_for

if TYPE_CHECKING:
    from accord.git.trusted_files import TrustedFiles
    from accord.runner.models import RunRequest
    from accord.runner.process import StopSignals
    from accord.runner.record import RunRecord

_EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True)
_MAX_WAIT_SECONDS = 900


def _check_finite(_context: click.Context, _option: click.Parameter, minutes: float) -> float:
    """Refuse ``nan``, which is in every range."""
    if not math.isfinite(minutes):
        raise WrongUsage("The time limit is not a number of minutes.", hint="Pass `--max-runtime-minutes 45`.")
    return minutes


_context_options = together(
    click.option("--mode", default="", help="Purpose of the run, such as keepalive; in the prompt."),
    click.option("--iteration", default="", metavar="N", help="Iteration of the loop; in the prompt."),
    click.option("--pull", default="", metavar="N", help="The pull request; in the prompt."),
    click.option("--pr-ref", default="", metavar="BRANCH", help="The branch to push to."),
    click.option("--base-ref", default="", metavar="BRANCH", help="The base branch; in the prompt."),
)
_agent_options = together(
    click.option("--sandbox-mode", default="", help="A sandbox mode of the agent's registry entry."),
    click.option("--safety-strategy", default="", help="A safety strategy of the registry entry."),
    click.option("--model", default="", help="The model, by the agent's name for it."),
    click.option("--schema", default="", metavar="KIND|FILE", help="Schema of the result: a document kind or a file."),
    click.option(
        "--repair-turns",
        type=click.IntRange(min=0, max=10),
        metavar="N",
        help="Times to ask again for a broken result. Default: the registry's, 2.",
    ),
    click.option("--command", default="", help="Command for the agent `command`; run without a shell."),
    click.option(
        "--max-runtime-minutes",
        type=click.FloatRange(min=0, min_open=True, max=360),
        callback=_check_finite,
        default=45,
        show_default=True,
        metavar="N",
        help="Time limit of the agent.",
    ),
    click.option("--registry", type=FILE, help="Agent registry. Default: .github/agents/registry.yml."),
)


@click.command(cls=RunnerCommand, short_help="Run an agent and write its outputs.")
@click.option("--agent", default="", metavar="NAME", help="Agent in the registry. Default: the registry's.")
@click.option("--prompt-file", type=FILE, help="Prompt in the workspace. Default: the mode's prompt.")
@click.option("--appendix", default="", metavar="TEXT", help="Text to add to the prompt; may be untrusted.")
@click.option("--data", type=Lines(), multiple=True, metavar="FILE", help="File with untrusted text, quoted as data.")
@_context_options
@_agent_options
@click.option("--run-dir", type=FILE, help="Folder of the run. Default: a new one in RUNNER_TEMP.")
@click.option("--install-dir", type=FILE, help="Folder for installed agents. Default: in RUNNER_TEMP.")
@click.option("--skip", is_flag=True, help="Run nothing and succeed.")
@click.option("--no-publish", is_flag=True, help="Leave the push to `accord publish` in another job.")
@steering_option
@limit_options
@click.option("--fail", is_flag=True, help="Exit with the run's exit code; 1 without a valid result.")
@dry_run_option
@format_option
@click.pass_context
def run(
    ctx: click.Context, /, no_publish: bool, allow_steering_files: bool, fail: bool, output_format: str, **options: Any
) -> None:
    """Run an agent of the registry and write the outputs of the runner contract.

    The agent works in the current directory, with its own secrets and nothing else of the job. Without a prompt file it
    gets .github/prompts/MODE.md, or the prompt that comes with accord for the modes plan, implement, review, keepalive,
    autofix, verifier and bot-comments. Exits 0 whenever the outputs were written, however the run ended. A dry run
    starts no agent.
    """
    from accord.cli.records import leave_run_record
    from accord.cli.run_step import check_step, finish_run, report_run, require_result
    from accord.runner.process import counting_stop_signals
    from accord.runner.refs import check_ref

    limits = ChangeLimits(options.pop("max_files"), options.pop("max_bytes"))
    is_published = bool(options["pr_ref"]) and not (no_publish or options["skip"])
    check_step(is_published=is_published)
    if not options["skip"]:
        check_ref(options["pr_ref"], is_pushed=is_published)
    files = None
    with suppress(AccordError, OSError):  # the run meets the same error, and records it
        files = trusted_files(Path.cwd(), os.environ, branch=options["pr_ref"], base=options["base_ref"])
    if options.pop("dry_run"):
        _print_plan(files, options, output_format, is_published=is_published)
        return
    policy = local_policy(files, options["registry"])
    with counting_stop_signals() as stop:
        request = replace(_request(options), files=files)
        record = run_with_output(request, stop)
        is_connected = _has_github_work(record) and not no_publish
        with github_for(None, None, _MAX_WAIT_SECONDS) if is_connected else nullcontext() as way:
            outputs = finish_run(
                request.run_dir, way, policy, record, allows_steering=allow_steering_files, limits=limits
            )
            leave_run_record(request.run_dir, outputs, record, way, is_kept=is_published)
    report_run(outputs, output_format, request.run_dir)
    if fail and request.schema and not record.is_skipped:
        require_result(request.run_dir, outputs, record)
    ctx.exit(int(outputs.exit_code) if fail else 0)


def _print_plan(files: TrustedFiles | None, options: dict[str, Any], output_format: str, *, is_published: bool) -> None:
    """Print the operations of a run: the agent that it starts, and the branch to which it pushes the changes."""
    from accord.engine.receipts import Receipt
    from accord.runner.trusted_registry import load_registry

    receipt = Receipt("run", os.environ.get("GITHUB_REPOSITORY", ""), "")
    planned: list[tuple[str, str]] = []
    if not options["skip"]:
        registry = load_registry(files or trusted_files(Path.cwd(), os.environ), options["registry"])
        name = options["agent"] or registry.default_agent or ""
        registry.agent(name)
        planned.append(("run-agent", name))
    planned += [("push-branch", options["pr_ref"])] if is_published else []
    receipt.end([LedgerEntry(*each, OperationStatus.PLANNED, None) for each in planned], is_dry_run=True)
    if output_format == "json":
        print_json(receipt.as_json())
    else:
        print_receipt(receipt, "")


def _has_github_work(record: RunRecord) -> bool:
    """Return whether there may be something to read or push on GitHub."""
    has_target = bool(record.context.pr_ref or record.context.pull)
    return bool(os.environ.get("GITHUB_REPOSITORY")) and not record.is_skipped and has_target


def _request(options: dict[str, Any]) -> RunRequest:
    """Build the request; the options are named like the fields of RunRequest and RunContext."""
    from accord.runner.models import RunContext, RunRequest

    try:
        command = shlex.split(options["command"])
    except ValueError as error:
        raise WrongUsage(f"Cannot split `--command` into words: {error}.", hint="Close its quotes.") from None
    schema = schema_of(options["schema"])
    temporary = os.environ.get("RUNNER_TEMP") or None
    run_dir = options["run_dir"] or tempfile.mkdtemp(prefix="accord-run-", dir=temporary)
    context = RunContext(**{name: options.pop(name) for name in RunContext.model_fields})
    changed = {
        "run_dir": Path(run_dir).resolve(),
        "command": command,
        "schema": schema,
        "kind": kind_of(options["schema"]),
        "data": [Path(name.strip()) for name in options["data"] if name.strip()],
    }
    return RunRequest(directory=Path.cwd(), context=context, **{**options, **changed})


def kind_of(name: str) -> str:
    """Return the name of a document kind; that of a schema's file is empty."""
    from accord.core.kinds import KINDS

    return name if name in KINDS else ""


def schema_of(name: str) -> Path | dict[str, Any] | None:
    """Return the strict schema of a document kind; any other name is that of a file. Raises WrongUsage."""
    if not name:
        return None
    from accord.core.kinds import KINDS
    from accord.core.schemas import strict_form

    if name not in KINDS:
        return Path(name)
    form = strict_form(KINDS[name].model)
    if form.missing:
        names = " and ".join(f"`{key}`" for key in form.missing)
        message = f"An agent's output cannot be a `{name}`: enforced output has no form for {names}."
        hint = f"Let the agent write a file, and run `accord check --kind {name} FILE`."
        raise WrongUsage(message, hint=hint)
    return form.schema


def run_with_output(request: RunRequest, stop: StopSignals) -> RunRecord:
    """Run an agent and show its output on stderr."""
    from accord.cli.run_status import showing_status
    from accord.core.clock import SystemClock
    from accord.gha.step import command, inert
    from accord.runner.context import JobContext
    from accord.runner.run import run_agent

    is_step = is_in_actions(os.environ)
    if is_step:
        click.echo(command("group", f"Output of {one_line(request.agent or 'the agent')}"), err=True)
    try:
        with showing_status(sys.stderr) as status:

            def show(line: str) -> None:
                status.show(line, inert(line))

            return run_agent(request, JobContext(os.environ, SystemClock(), show, stop))
    finally:
        if is_step:
            click.echo(command("endgroup", ""), err=True)


@click.command(cls=RunnerCommand, short_help="Push a run's changes and write its final outputs.")
@click.argument("run_dir", metavar="RUN_DIR", type=FILE, envvar="ACCORD_PUBLISH_RUN_DIR")
@click.option("--pr-ref", default="", metavar="BRANCH", help="The branch to push to.")
@click.option("--pull", default="", metavar="N", help="The pull request with the tasks.")
@click.option("--base-ref", default="", metavar="BRANCH", help="Where a new branch begins.")
@click.option("--pr-body", metavar="FILE", help="Body with the tasks. Default: the pull request's.")
@click.option("--checkout", type=FILE, help="Trusted checkout with objects to reuse; only read.")
@click.option(
    "--author", default=DEFAULT_AUTHOR, show_default=True, metavar="'NAME <MAIL>'", help="Author of the commit."
)
@click.option("--outputs", type=FILE, help="File to write the outputs to as well, as JSON.")
@steering_option
@limit_options
@click.option("--fail", is_flag=True, help="Exit with the run's exit code instead of 0.")
@dry_run_option
@posting_options
@format_option
@click.pass_context
def publish(ctx: click.Context, /, run_dir: Path, author: str, outputs: Path | None, **options: Any) -> None:
    """Commit and push the changes of the run in RUN_DIR and write its final outputs.

    Run it again at any time: pushed changes are recognized. It exits 0 whenever the outputs were written, whatever they
    say; in a terminal, a missing RUN_DIR or an invalid branch exits 2. There, RUN_DIR supplies the branch and the pull
    request that no option names. In a workflow it never does, as the agent could have written them itself.
    """
    from accord.cli.records import leave_run_record
    from accord.cli.run_step import finish_run, report_run
    from accord.git.refs import left_by_killed_run
    from accord.runner.finish import outputs_without_record
    from accord.runner.record import RECORD, read_record
    from accord.runner.refs import check_ref, is_special_ref

    names = ("pr_ref", "pull", "base_ref", "pr_body", "checkout", "allow_steering_files", "fail", "output_format")
    given, dry_run = {name: options.pop(name) for name in names}, options.pop("dry_run")
    log = OperationLog(dry_run)
    limits = ChangeLimits(options.pop("max_files"), options.pop("max_bytes"))
    check_author(author)
    is_step = is_in_actions(os.environ) or bool(os.environ.get("GITHUB_OUTPUT"))
    if is_special_ref(given["pr_ref"]) or (given["pr_ref"] and not is_step):
        check_ref(given["pr_ref"], is_pushed=True)
    if not is_step and not (run_dir / RECORD).exists():
        missing = f": it has no {RECORD}" if run_dir.is_dir() else ""
        raise WrongUsage(
            f"No run folder found at `{run_dir}`{missing}.", hint="Pass the folder that `accord run` wrote."
        )
    if outputs and not can_be_written(outputs):
        raise WrongUsage(f"The file {outputs} cannot be written.", hint="Pass a writable file as `--outputs`.")
    try:
        record = read_record(run_dir)
    except BrokenContract as broken:
        missing = _missing_branch(given["pr_ref"], options)
        found = outputs_without_record(broken.message, redactor_for(os.environ), local_policy(), missing)
    else:
        context = {name: given[name] for name in ("pr_ref", "pull", "base_ref")}
        if not is_in_actions(os.environ):
            if left := left_by_killed_run(Path.cwd()):
                click.echo(f"note: {one_line(left)}", err=True)
            context = {name: value for name, value in context.items() if value}
        record = record.model_copy(update={"context": record.context.model_copy(update=context)})
        more = {"pr_body": _text(given["pr_body"]), "author": author, "lender": given["checkout"], "log": log}
        more |= {"allows_steering": given["allow_steering_files"], "limits": limits}
        with posting_to(**options) as (way, policy):
            found = finish_run(run_dir, way, policy, record, **more)
            if not dry_run:
                leave_run_record(run_dir, found, record, way, is_kept=True)
    report_run(found, given["output_format"], run_dir, log)
    if outputs and not dry_run:
        write_whole(outputs, json.dumps(found.as_outputs(), indent=2, ensure_ascii=True) + "\n")
    ctx.exit(int(found.exit_code) if given["fail"] else 0)


def _text(path: str | None) -> str | None:
    return None if path is None else read_bytes(path).decode("utf-8", "replace")


def _missing_branch(pr_ref: str, options: dict[str, Any]) -> str:
    """Say so if the branch does not exist: then the agent's job ended at its checkout and left nothing."""
    from accord.core.clock import SystemClock
    from accord.runner.refs import check_exists

    try:
        access = {name: value for name, value in options.items() if name not in ("allowed_hosts", "break_words")}
        with github_for(**access) as way:
            return (check_exists(way.remote(SystemClock()), pr_ref) or "") if pr_ref else ""
    except (AccordError, subprocess.TimeoutExpired):
        return ""


@click.command(cls=RunnerCommand, short_help="Compute the outputs of a finished run.")
@click.option("--agent", required=True, metavar="NAME", help="Agent in the registry.")
@click.option(
    "--exit-code", type=click.IntRange(0, 255), required=True, metavar="N", help="Exit code of the agent's process."
)
@click.option("--stdout", type=_EXISTING_FILE, required=True, help="The agent's standard output.")
@click.option("--stderr", type=_EXISTING_FILE, help="The agent's standard error.")
@click.option("--final-message", type=_EXISTING_FILE, help="Final message that the agent wrote to a file.")
@click.option("--pr-body", metavar="FILE", help="The pull request's body with its tasks.")
@click.option("--root", type=EXISTING_FOLDER, help="The repository's directory.")
@click.option("--base", metavar="SHA", help="Commit that the agent started from.")
@click.option("--pushed", type=Choice(["true", "false"]), help="Whether the push succeeded, if one was tried.")
@click.option("--push-error", type=_EXISTING_FILE, help="Output of git when the push failed.")
@click.option("--fail", is_flag=True, help="Exit with the run's exit code instead of 0.")
@format_option
@click.pass_context
def outputs(
    ctx: click.Context, /, root: Path | None, base: str | None, pushed: str | None, fail: bool, **more: Any
) -> None:
    """Compute the outputs of an agent's run from what it printed, and write them where a runner reads them.

    It runs nothing and pushes nothing. It exits 0 whenever the outputs were written, even if the agent failed.
    """
    from accord.agents.registry import declared_secrets, shipped_registry
    from accord.cli.run_step import report_run
    from accord.core.clock import SystemClock
    from accord.runner.external import ExternalRun, outputs_of_external_run
    from accord.runner.trusted_registry import registry_at

    if (root is None) != (base is None) or (pushed == "true" and root is None):
        message = "`--root` and `--base` belong together, and `--pushed true` needs both."
        raise WrongUsage(message, hint="Pass `--root DIR --base SHA`.")
    output_format = more.pop("output_format")
    external = ExternalRun(
        **{**more, "pr_body": _text(more["pr_body"]), "push_error": _text(more["push_error"]) or ""},
        root=root,
        base=base or "",
        pushed=None if pushed is None else pushed == "true",
    )
    redact = redactor_for(os.environ, certain=declared_secrets(shipped_registry(), registry_at(root or Path())))
    found = outputs_of_external_run(external, redact, local_policy(), os.environ, SystemClock())
    report_run(found, output_format)
    ctx.exit(int(found.exit_code) if fail else 0)
