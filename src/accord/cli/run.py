"""``accord run``, ``publish`` and ``outputs``: run an agent, push its changes, compute its outputs."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from accord.agents.registry import declared_secrets, shipped_registry
from accord.cli.options import (
    EXISTING_FOLDER,
    ChangeArguments,
    FormatArguments,
    Minutes,
    PostingArguments,
    RepositoryArguments,
    WritingArguments,
    argument,
    command,
    option,
)
from accord.cli.output import one_line, redactor
from accord.cli.receipts import show_receipt
from accord.cli.run_step import (
    RunnerCommand,
    RunStatus,
    check_step,
    finish_options,
    leave_outputs_file,
    report_run,
    require_result,
)
from accord.cli.sources import github_for, local_policy, posting_to, read_text, regular_file
from accord.core.clock import SystemClock
from accord.core.environment import is_in_actions
from accord.core.errors import AccordError, BrokenContract, NoToken, Refused, Stopped, WrongUsage
from accord.core.kinds import KINDS
from accord.core.schemas import strict_form
from accord.engine.operations import LedgerEntry, OperationLog, OperationStatus
from accord.engine.receipts import Receipt
from accord.files.store import can_be_written
from accord.gha.step import command as workflow_command
from accord.gha.step import inert
from accord.git.branches import DEFAULT_AUTHOR, check_author
from accord.git.trusted_files import TrustedFiles, trusted_files
from accord.runner.models import InternalError, JobContext, RunContext, RunRequest, StopSignals
from accord.runner.process import counting_stop_signals
from accord.runner.record import RECORD, RunRecord, read_record
from accord.runner.refs import check_ref, is_special_ref
from accord.runner.registry import load_registry, registry_at
from accord.text.redaction import redactor_for

_EVIDENCE_FILE = click.Path(dir_okay=False, allow_dash=True)
_OWN_REPOSITORY = RepositoryArguments(repo=None, sandbox=None, identity="", max_wait=900)
"""The repository that the environment names."""


class _RunArguments(WritingArguments, ChangeArguments):
    agent: str = option("--agent NAME", "Agent in the registry. Default: the registry's.")
    prompt_file: Path | None = option("--prompt-file", "Prompt here or in the workspace. Default: the mode's prompt.")
    appendix: str = option("--appendix TEXT", "Text to add to the prompt; may be untrusted.")
    data: tuple[str, ...] = option("--data FILE", "File with untrusted text, quoted as data.")
    mode: str = option("--mode", "Purpose of the run, such as keepalive; in the prompt.")
    iteration: str = option("--iteration N", "Iteration of the loop; in the prompt.")
    pull: str = option("--pull N", "The pull request; in the prompt.")
    pr_ref: str = option("--pr-ref BRANCH", "The branch to push to.")
    base_ref: str = option("--base-ref BRANCH", "The base branch; in the prompt.")
    sandbox_mode: str = option("--sandbox-mode", "A sandbox mode of the agent's registry entry.")
    safety_strategy: str = option("--safety-strategy", "A safety strategy of the registry entry.")
    model: str = option("--model", "The model, by the agent's name for it.")
    schema: str = option("--schema KIND|FILE", "Schema of the result: a document kind or a file.")
    repair_turns: int | None = option(
        "--repair-turns N", "Times to ask again for a broken result. Default: the registry's, 2.", least=0, most=10
    )
    command: str = option("--command", "Command for the agent `command`; run without a shell.")
    max_runtime_minutes: float = option(
        "--max-runtime-minutes N", "Time limit of the agent.", type=Minutes(min=0, min_open=True, max=360), default=45
    )
    registry: Path | None = option("--registry", "Agent registry. Default: .github/agents/registry.yml.")
    run_dir: Path | None = option("--run-dir", "Folder of the run. Default: a new one in RUNNER_TEMP.")
    install_dir: Path | None = option("--install-dir", "Folder for installed agents. Default: in RUNNER_TEMP.")
    skip: bool = option("--skip", "Run nothing and succeed.")
    no_publish: bool = option("--no-publish", "Leave the push to `accord publish` in another job.")
    fail: bool = option("--fail", "Exit with the run's exit code; 1 without a valid result.")


@command(_RunArguments, cls=RunnerCommand, short_help="Run an agent and write its outputs.")
def run(given: _RunArguments) -> int:
    """Run an agent of the registry and write the outputs of the runner contract.

    The agent works in the current directory, with its own secrets and nothing else of the job. Without a prompt
    file it gets .github/prompts/MODE.md, or accord's own for plan, implement, review and the loops. Exits 0
    whenever the outputs were written, however the run ended. A dry run starts no agent.
    """
    from accord.cli.records import leave_run_record  # slow, as in the other commands of this module
    from accord.runner.finish import finish
    from accord.runner.publish import push_error

    is_published = bool(given.pr_ref) and not (given.no_publish or given.skip)
    check_step(is_published=is_published)
    if not given.skip:
        check_ref(given.pr_ref, is_pushed=is_published)
    files = None
    with suppress(AccordError, OSError):  # the run meets the same error, and records it
        files = trusted_files(Path.cwd(), os.environ, branch=given.pr_ref, base=given.base_ref)
    if given.dry_run:
        return _print_plan(files, given, is_published=is_published)
    policy = local_policy(files, given.registry)
    with counting_stop_signals() as stop:
        request = replace(_request(given), files=files)
        record = run_with_output(request, stop)
        target = record.context.pr_ref or record.context.pull  # what may be pushed or read on GitHub
        is_connected = bool(os.environ.get("GITHUB_REPOSITORY") and target) and not (
            record.is_skipped or given.no_publish
        )
        with ExitStack() as stack:
            way, unreached = None, None
            try:
                way = stack.enter_context(github_for(_OWN_REPOSITORY)) if is_connected else None
            except WrongUsage as error:  # the agent's outcome counts without a token, too
                unreached = push_error(error)
            finishing = replace(finish_options(way, policy), connection_error=unreached, limits=given.limits)
            finishing = replace(finishing, allows_steering=given.allow_steering_files)
            outputs = finish(request.run_dir, finishing, record)
            leave_run_record(request.run_dir, outputs, record, way, is_kept=is_published)
    report_run(outputs, given, request.run_dir)
    if given.fail and request.schema and not record.is_skipped:
        require_result(request.run_dir, outputs, record)
    return int(outputs.exit_code) if given.fail else 0


def _print_plan(files: TrustedFiles | None, given: _RunArguments, *, is_published: bool) -> int:
    receipt = Receipt("run", os.environ.get("GITHUB_REPOSITORY", ""), "")
    planned: list[tuple[str, str]] = []
    if not given.skip:
        from accord.runner.attempts import workspace_of
        from accord.runner.prompt import prompt_for, read_data

        files = files or trusted_files(Path.cwd(), os.environ)
        registry = load_registry(files, given.registry)
        name = given.agent or registry.default_agent or ""
        registry.agent(name)
        prompt_for(given.prompt_file, given.mode, workspace_of(Path.cwd(), files, os.environ), files)
        read_data(_data(given))
        planned.append(("run-agent", name))
    planned += [("push-branch", given.pr_ref)] if is_published else []
    receipt.end([LedgerEntry(*each, OperationStatus.PLANNED, None) for each in planned], is_dry_run=True)
    return show_receipt(receipt, "", given)


def _data(given: _RunArguments) -> list[Path]:
    return [Path(name.strip()) for name in given.data if name.strip()]


def _request(given: _RunArguments) -> RunRequest:
    try:
        words = shlex.split(given.command)
    except ValueError as error:
        raise WrongUsage(f"Cannot split `--command` into words: {error}.", hint="Close its quotes.") from None
    schema = schema_of(given.schema)
    temporary = os.environ.get("RUNNER_TEMP") or None
    run_dir = given.run_dir or tempfile.mkdtemp(prefix="accord-run-", dir=temporary)
    return RunRequest(
        agent=given.agent,
        run_dir=Path(run_dir).resolve(),
        directory=Path.cwd(),
        context=RunContext(
            mode=given.mode,
            iteration=given.iteration,
            pull=given.pull,
            pr_ref=given.pr_ref,
            base_ref=given.base_ref,
        ),
        prompt_file=given.prompt_file,
        appendix=given.appendix,
        data=_data(given),
        sandbox_mode=given.sandbox_mode,
        safety_strategy=given.safety_strategy,
        model=given.model,
        schema=schema,
        command=words,
        kind=kind_of(given.schema),
        repair_turns=given.repair_turns,
        max_runtime_minutes=given.max_runtime_minutes,
        registry=given.registry,
        install_dir=given.install_dir,
        skip=given.skip,
    )


def kind_of(name: str) -> str:
    """Return the name of a document kind; that of a schema's file is empty."""
    return name if name in KINDS else ""


def schema_of(name: str) -> Path | dict[str, Any] | None:
    """Return the strict schema of a document kind; any other name is that of a file. Raises WrongUsage."""
    if not name:
        return None
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
    from accord.runner.run import run_agent

    is_step = is_in_actions(os.environ)
    if is_step:
        click.echo(workflow_command("group", f"Output of {one_line(request.agent or 'the agent')}"), err=True)
    try:
        with RunStatus(sys.stderr) as status:
            job = JobContext(os.environ, SystemClock(), lambda line: status.show(inert(line)), stop)
            return run_agent(request, job)
    finally:
        if is_step:
            click.echo(workflow_command("endgroup", ""), err=True)


class _PublishArguments(WritingArguments, ChangeArguments, PostingArguments):
    run_dir: Path = argument("RUN_DIR", envvar="ACCORD_PUBLISH_RUN_DIR")
    pr_ref: str = option("--pr-ref BRANCH", "The branch to push to.")
    pull: str = option("--pull N", "The pull request with the tasks.")
    base_ref: str = option("--base-ref BRANCH", "Where a new branch begins.")
    pr_body: str | None = option("--pr-body FILE", "Body with the tasks. Default: the pull request's.")
    checkout: Path | None = option("--checkout", "Trusted checkout with objects to reuse; only read.")
    author: str = option("--author 'NAME <MAIL>'", "Author of the commit.", default=DEFAULT_AUTHOR)
    outputs: Path | None = option("--outputs", "File to write the outputs to as well, as JSON.")
    fail: bool = option("--fail", "Exit with the run's exit code instead of 0.")


@command(_PublishArguments, cls=RunnerCommand, short_help="Push a run's changes and write its final outputs.")
def publish(given: _PublishArguments) -> int:
    """Commit and push the changes of the run in RUN_DIR and write its final outputs.

    Run it again at any time: pushed changes are recognized. Exits 0 whenever the outputs were written,
    however the push went. A signal exits 3, wrong options 2, and an invalid registry 1; in a workflow, they leave
    outputs, too.
    In a terminal, a missing RUN_DIR or an invalid branch exits 2. There, and never in a workflow, RUN_DIR supplies
    the branch and the pull request that no option names.
    """
    from accord.cli.records import leave_run_record
    from accord.runner.finish import finish, outputs_of_error
    from accord.runner.publish import push_error

    run_dir = given.run_dir
    log = OperationLog(given.dry_run)
    check_author(given.author)
    is_step = is_in_actions(os.environ) or bool(os.environ.get("GITHUB_OUTPUT"))
    if is_special_ref(given.pr_ref) or (given.pr_ref and not is_step):
        check_ref(given.pr_ref, is_pushed=True)
    if not is_step and not (run_dir / RECORD).exists():
        missing = f": it has no {RECORD}" if run_dir.is_dir() else ""
        raise WrongUsage(
            f"No run folder found at `{run_dir}`{missing}.", hint="Pass the folder that `accord run` wrote."
        )
    if given.outputs and not can_be_written(given.outputs):
        raise WrongUsage(f"The file {given.outputs} cannot be written.", hint="Pass a writable file as `--outputs`.")
    try:
        record = read_record(run_dir)
    except BrokenContract as broken:
        lost = InternalError(kind="record-missing", detail=broken.message)
        found = outputs_of_error(lost, redactor(), local_policy())
    else:
        named = {"pr_ref": given.pr_ref, "pull": given.pull, "base_ref": given.base_ref}
        context = {name: value for name, value in named.items() if value or is_in_actions(os.environ)}
        record = record.model_copy(update={"context": record.context.model_copy(update=context)})
        body = read_text(given.pr_body)
        try:
            with posting_to(given) as (way, policy):
                finishing = replace(
                    finish_options(way, policy),
                    pr_body=body,
                    author=given.author,
                    lender=given.checkout,
                    log=log,
                    allows_steering=given.allow_steering_files,
                    limits=given.limits,
                )
                found = finish(run_dir, finishing, record)
                if not given.dry_run:
                    leave_run_record(run_dir, found, record, way, is_kept=True)
        except (Stopped, Refused, NoToken) as error:
            finishing = replace(finish_options(None, local_policy()), pr_body=body, log=log)
            found = finish(run_dir, replace(finishing, connection_error=push_error(error)), record)
    if given.outputs and not given.dry_run:
        leave_outputs_file(given.outputs, found)
    report_run(found, given, run_dir, log)
    return int(found.exit_code) if given.fail else 0


class _OutputsArguments(FormatArguments):
    agent: str = option("--agent NAME", "Agent in the registry.", required=True)
    exit_code: int = option("--exit-code N", "Exit code of the agent's process.", least=0, most=255)
    stdout: str = option("--stdout", "The agent's standard output.", type=_EVIDENCE_FILE, required=True)
    stderr: str | None = option("--stderr", "The agent's standard error.", type=_EVIDENCE_FILE)
    final_message: str | None = option(
        "--final-message", "Final message that the agent wrote to a file.", type=_EVIDENCE_FILE
    )
    pr_body: str | None = option("--pr-body FILE", "The pull request's body with its tasks.")
    root: Path | None = option("--root", "The repository's directory.", type=EXISTING_FOLDER)
    base: str | None = option("--base SHA", "Commit that the agent started from.")
    pushed: str | None = option("--pushed", "Whether the push succeeded, if one was tried.", among=("true", "false"))
    push_error: str | None = option("--push-error", "Output of git when the push failed.", type=_EVIDENCE_FILE)
    fail: bool = option("--fail", "Exit with the run's exit code instead of 0.")


@command(_OutputsArguments, cls=RunnerCommand, short_help="Compute the outputs of a finished run.")
def outputs(given: _OutputsArguments) -> int:
    """Compute the outputs of an agent's run from what it printed, and write them where a runner reads them.

    Runs and pushes nothing. Exits 0 whenever the outputs were written, even if the agent failed.
    """
    from accord.runner.external import ExternalRun, outputs_of_external_run

    root, pushed = given.root, given.pushed
    if (root is None) != (given.base is None) or (pushed == "true" and root is None):
        message = "`--root` and `--base` belong together, and `--pushed true` needs both."
        raise WrongUsage(message, hint="Pass `--root DIR --base SHA`.")
    evidence = (given.stdout, given.stderr, given.final_message, given.pr_body, given.push_error)
    with (
        regular_file(given.stdout) as stdout,
        regular_file(given.stderr) if given.stderr else nullcontext() as stderr,
        regular_file(given.final_message) if given.final_message else nullcontext() as final,
    ):
        external = ExternalRun(
            agent=given.agent,
            exit_code=given.exit_code,
            stdout=stdout,
            stderr=stderr,
            final_message=final,
            pr_body=read_text(given.pr_body),
            root=root,
            base=given.base or "",
            pushed=None if pushed is None else pushed == "true",
            push_error=read_text(given.push_error) or "",
            evidence_files=tuple(Path(each) for each in evidence if each is not None),
        )
        redact = redactor_for(os.environ, certain=declared_secrets(shipped_registry(), registry_at(root or Path())))
        found = outputs_of_external_run(external, redact, local_policy(), os.environ, SystemClock())
    report_run(found, given)
    return int(found.exit_code) if given.fail else 0
