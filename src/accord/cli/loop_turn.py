"""One turn of a loop on GitHub: begun, ended, or both around an agent that runs here."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.agents.registry import Registry
from accord.cli.loop_options import TurnArguments
from accord.cli.loops_output import HISTORY, report_sweep, report_turn
from accord.cli.output import redactor
from accord.cli.sources import posting_to, read_bytes
from accord.cli.step import warn
from accord.core.clock import SystemClock
from accord.core.environment import is_in_actions
from accord.core.errors import WrongUsage
from accord.core.frozen import Frozen
from accord.files.store import write_whole
from accord.git.trusted_files import TrustedFiles, trusted_files
from accord.github.client import Connection
from accord.loops.apply import WorkflowStart, dispatch
from accord.loops.facts import Loop, LoopContext
from accord.loops.models import TokenFacts
from accord.loops.outputs import read_outputs
from accord.loops.run import LOOPS, Turn, begin, check_out, end, pulls_due, read_progress
from accord.loops.state import write_history
from accord.runner.models import RunOutputs
from accord.runner.registry import load_registry
from accord.text.posting import PostingPolicy

if TYPE_CHECKING:
    from accord.runner.record import RunRecord

_REQUESTS = ("", "workflow_dispatch", "issue_comment", "repository_dispatch")
"""Events by which a person requests a turn; empty at a terminal."""

_LABELS = ("pull_request", "pull_request_target")
"""Events of labels that are added and removed."""

_READ_ONLY_FOR_DEPENDABOT = ("pull_request", "pull_request_review", "pull_request_review_comment", "push", "create")
_MARKER_FILE = ".accord-loop"
"""Marks the directory of a loop's run: what an earlier attempt left in it may be removed."""


class _Setting(Frozen):
    """Where a turn is taken: its repository on GitHub, and the directory of its run."""

    connection: Connection
    context: LoopContext
    run_dir: Path
    files: TrustedFiles
    registry: Registry


def run_loop(name: str, given: TurnArguments) -> None:
    """Take a turn of the loop, or without a pull request start a workflow for each that the loop is on for."""
    files = trusted_files(Path.cwd(), os.environ)
    registry = load_registry(files, given.registry)
    if files.warning:
        warn(files.warning)
    root = Path(os.environ.get("RUNNER_TEMP") or tempfile.gettempdir())
    run_dir = given.run_dir or root / f"accord-loop-{secrets.token_hex(4)}"  # created when there is something to keep
    with posting_to(given, registry) as (connection, policy):
        context = _context(given, connection, run_dir, registry, policy)
        setting = _Setting(connection, context, run_dir, files, registry)
        if given.pull is None:
            _sweep(LOOPS[name], context, given)
        else:
            _run(LOOPS[name], given, setting)


def _run(loop: Loop, given: TurnArguments, setting: _Setting) -> None:
    turn, outputs = _take_turn(loop, given, setting)
    run_dir = setting.run_dir
    is_kept = given.run_dir is not None or run_dir.is_dir()
    if is_kept and turn.state is not None and not given.dry_run:
        run_dir.mkdir(parents=True, exist_ok=True)
        write_whole(run_dir / HISTORY, write_history(turn.pull.number, loop.name, turn.state.history))
    if not given.dry_run:
        from accord.cli.records import agent_facts, job_of, leave_agent_record, leave_record  # slow, as below
        from accord.records.build import Ending, turn_record

        connection, number = setting.connection, turn.pull.number
        job = job_of(connection.repository, turn.context.run_id)
        history = turn.state.history if turn.state else ()
        if outputs is not None and any(one.run_id == turn.context.run_id for one in history):
            folder = run_dir if run_dir.is_dir() else None
            facts = partial(agent_facts, run_dir / "agent", outputs)
            ending = Ending(outcome="ended", links={"pull": number})
            leave_agent_record(turn.loop.name, number, job, facts, ending, connection, folder)
        elif turn.outcome in ("acted", "asked") and turn.context.github.requests.write:
            word, at = f"{turn.loop.name}:{turn.decision.reason}", turn.context.github.server_time()
            leave_record(lambda: turn_record(job, number, word, at, asks=turn.outcome == "asked"), connection)
    report_turn(turn, given, given.prompt_file, run_dir if run_dir.is_dir() else None)


def _context(
    given: TurnArguments, connection: Connection, run_dir: Path, registry: Registry, policy: PostingPolicy
) -> LoopContext:
    event = os.environ.get("GITHUB_EVENT_NAME", "")
    workflow = os.environ.get("GITHUB_WORKFLOW_REF", "").partition("@")[0]  # OWNER/NAME/PATH@REF
    local_id = f"local-{hashlib.sha256(os.fsencode(run_dir.resolve())).hexdigest()[:12]}"
    return LoopContext(
        github=connection.github,
        repository=connection.repository,
        number=given.pull or 0,
        run_id=os.environ.get("GITHUB_RUN_ID") or local_id,
        agents=registry.enabled_agents(given.agent),
        clock=SystemClock(),
        redact=redactor(),
        policy=policy,
        token=token_facts(os.environ),
        minutes=given.max_runtime_minutes,
        max_cost_usd=registry.max_item_cost_usd,
        bots=tuple(registry.review_bots),
        review_workflow=given.review_workflow,
        remote=connection.remote(SystemClock()),
        is_asked=event in _REQUESTS,
        commenter=os.environ.get("GITHUB_ACTOR", "") if event == "issue_comment" else "",
        by_person=event in (*_REQUESTS, *_LABELS),
        workflow="/".join(workflow.split("/")[2:]),
    )


def token_facts(environment: Mapping[str, str]) -> TokenFacts:
    """Return what the token may do (GitHub documentation, "Triggering a workflow from a workflow", "Dependabot")."""
    given = environment.get("ACCORD_TOKEN_IS_JOBS", "").strip().lower()
    is_jobs = given == "true" if given in ("true", "false") else is_in_actions(environment)
    is_dependabot = environment.get("GITHUB_ACTOR") == "dependabot[bot]"
    is_read_only = is_dependabot and environment.get("GITHUB_EVENT_NAME") in _READ_ONLY_FOR_DEPENDABOT
    return TokenFacts(triggers_workflows=not is_jobs, may_write=not (is_jobs and is_read_only))


def _take_turn(loop: Loop, given: TurnArguments, setting: _Setting) -> tuple[Turn, RunOutputs | None]:
    context, run_dir = setting.context, setting.run_dir
    if given.phase == "end":
        outputs = _read_outputs(given.outputs)
        if not given.dry_run:
            _check_run_is_named(given)
        turn = end(loop, context, outputs, workflow=given.dispatch_workflow, is_dry_run=given.dry_run)
        return turn, outputs
    if given.phase == "begin" or (given.dry_run and not _has_run(run_dir)):
        return begin(loop, context, ready=lambda _: _check_run_is_named(given), is_dry_run=given.dry_run), None

    record = None
    if not _has_run(run_dir):
        turn = begin(loop, context, ready=lambda decision: _prepare(decision.agent, setting.registry, run_dir))
        if not turn.should_run:
            if given.run_dir is None:
                shutil.rmtree(run_dir, ignore_errors=True)  # another process was faster
            return turn, None
        if given.run_dir is None:
            click.echo(f"Files of the run: {run_dir}. To continue it, pass `--run-dir {run_dir}`.", err=True)
        record = _run_agent(turn, given, setting)
    found = _finish_agent(loop, given, setting, record)
    turn = end(loop, context, found or RunOutputs(), workflow=given.dispatch_workflow, is_dry_run=given.dry_run)
    if turn.outcome == "unchanged":
        turn = replace(turn, note=f"{turn.note} For another turn, pass a new directory with `--run-dir`.")
    return turn, found


def _check_run_is_named(given: TurnArguments) -> None:
    """Raise WrongUsage where ``begin`` and ``end`` could not recognise the same run."""
    if given.run_dir is None and not os.environ.get("GITHUB_RUN_ID"):
        hint = "Pass the same `--run-dir DIR` to both phases, or set GITHUB_RUN_ID."
        raise WrongUsage("The run has no name, so its end could not find its beginning.", hint=hint)


def _read_outputs(path: str | None) -> RunOutputs:
    if path is not None and is_in_actions(os.environ) and not Path(path).exists():
        return read_outputs("")  # the step that writes them did not finish
    if path is not None:
        return read_outputs(read_bytes(path).decode("utf-8", "replace"))
    text = os.environ.get("ACCORD_RUN_OUTPUTS")
    if text is None:
        hint = "Pass `--outputs FILE`, or set ACCORD_RUN_OUTPUTS."
        raise WrongUsage("No outputs of the run given.", hint=hint)
    return read_outputs(text)


def _sweep(loop: Loop, context: LoopContext, given: TurnArguments) -> None:
    if not given.dispatch_workflow and not given.dry_run:
        hint = "Pass `--pull N` for one, or `--dispatch-workflow FILE` to start that workflow for each."
        raise WrongUsage("No workflow given for the turns of all open pull requests.", hint=hint)
    started: dict[int, int] = {}
    context.log.is_dry_run = given.dry_run
    for number in pulls_due(loop, context):
        start = WorkflowStart(given.dispatch_workflow, "pr_number", number, context.github.server_time())
        started[number] = dispatch(context, start) if start.workflow else 0
    report_sweep(loop.name, started, context, given)


def _prepare(agent: str, registry: Registry, run_dir: Path) -> None:
    """Raise WrongUsage, before a run is recorded, for an unwritable directory or missing secrets of the agent."""
    from accord.runner.models import AgentNotStarted
    from accord.runner.registry import check_credentials

    _claim(run_dir)
    try:
        check_credentials(agent, registry.agent(agent), os.environ)
    except AgentNotStarted as missing:
        hint = "Set it in the environment of this command. Nothing was written."
        raise WrongUsage(missing.message, hint=hint) from None


def _has_run(run_dir: Path) -> bool:
    """Return whether the agent's run in the directory ended: then it is not begun again, only finished."""
    from accord.runner.record import RECORD

    return (run_dir / _MARKER_FILE).is_file() and (run_dir / "agent" / RECORD).is_file()


def _claim(run_dir: Path) -> None:
    """Create the directory of a run, for this user alone. A directory with other files is left as it is."""
    try:
        run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = {entry.name for entry in run_dir.iterdir()}
        if _MARKER_FILE not in names and names - {HISTORY}:
            message = f"The directory {run_dir} contains other files, such as {min(names - {HISTORY})}."
            raise WrongUsage(message, hint="Pass a new one with `--run-dir`, or that of an interrupted run.")
        (run_dir / _MARKER_FILE).touch()
        with tempfile.TemporaryFile(dir=run_dir):
            pass
    except OSError as error:
        message = f"The run cannot be kept in {run_dir}: {error.strerror}."
        raise WrongUsage(message, hint="Pass a writable directory with `--run-dir`.") from None


def _run_agent(turn: Turn, given: TurnArguments, setting: _Setting) -> RunRecord:
    """Run the agent in a clone below ``run_dir``."""
    from accord.cli.run import kind_of, run_with_output, schema_of
    from accord.runner.models import RunContext, RunRequest
    from accord.runner.process import counting_stop_signals

    run_dir = setting.run_dir.resolve()
    folder = run_dir / "agent"
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed before it was recorded
    request = RunRequest(
        agent=turn.decision.agent,
        run_dir=folder,
        directory=check_out(turn.pull, setting.connection.remote(SystemClock()), run_dir / "tree"),
        prompt_file=Path(given.prompt_file) if given.prompt_file else None,
        appendix=turn.decision.appendix,
        context=RunContext(
            mode=turn.loop.mode,
            iteration=str(turn.decision.iteration),
            pull=str(turn.pull.number),
            pr_ref=turn.pull.head_branch if turn.loop.changes_code else "",
            base_ref=turn.pull.base_branch,
        ),
        max_runtime_minutes=given.max_runtime_minutes,
        registry=given.registry,
        files=setting.files,
        schema=schema_of(turn.loop.schema),
        kind=kind_of(turn.loop.schema),
    )
    with counting_stop_signals() as stop:
        return run_with_output(request, stop)


def _finish_agent(loop: Loop, given: TurnArguments, setting: _Setting, record: RunRecord | None) -> RunOutputs | None:
    """Publish the changes of the run and return its outputs, the same ones whenever the command is repeated.

    Without ``record`` an earlier command ran the agent. None where the loop no longer waits for this run.
    """
    from accord.cli.run_step import finish_options
    from accord.runner.finish import finish
    from accord.runner.record import OUTPUTS, make_writable, open_regular

    folder = setting.run_dir.resolve() / "agent"
    path = folder / OUTPUTS
    if record is None:
        with suppress(FileNotFoundError), open_regular(path) as file:
            return read_outputs(file.read().decode("utf-8", "replace"))
        if read_progress(loop, setting.context) not in ("running", "ended"):
            return None
    setting.context.log.is_dry_run = given.dry_run
    finishing = replace(
        finish_options(setting.connection, setting.context.policy),
        log=setting.context.log,
        allows_steering=given.allow_steering_files,
    )
    outputs = finish(folder, finishing, record)
    if given.dry_run:
        return outputs
    with suppress(OSError):  # such as a full disk: the turn ends, and a repetition before that finishes again
        make_writable(path)
        write_whole(path, json.dumps(outputs.as_outputs()))
    return outputs
