"""``accord keepalive|autofix|… run``: a turn of a loop on GitHub, as a step of a workflow or at a terminal."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.loops_output import HISTORY, Choices, print_decision, turn_options
from accord.cli.options import format_option, repository_options
from accord.cli.output import one_line, print_json
from accord.cli.sources import github_for, read_bytes
from accord.core.errors import WrongUsage
from accord.text.redaction import redacted, redactor_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.cli.loops_output import Choices
    from accord.cli.sources import Way
    from accord.loops.context import Site
    from accord.loops.loop import Loop
    from accord.loops.models import TokenFacts
    from accord.loops.run import Turn
    from accord.runner.models import RunOutputs


_ASKING = ("", "workflow_dispatch", "issue_comment", "repository_dispatch")
"""Events by which a person asks, and the terminal, where there is none."""

_LABELS = ("pull_request", "pull_request_target")
"""Events of labels put on and taken off."""


def add_run(group: click.Group, name: str) -> None:
    """Give a loop's group the command ``run``."""

    def run(output_format: str, **given: Any) -> None:
        choices = Choices(**{field: given.pop(field) for field in Choices.__dataclass_fields__})
        with github_for(**given) as way:
            _run(name, choices, way, output_format)

    run.__doc__ = f"""Take a turn of {name} on GitHub: gather facts, decide, and do what follows.

    Without --pull, start --dispatch-workflow for each open pull request that the loop is on for. The same command again
    goes on where it stopped, and changes nothing where it did not. Exits 0 also when nothing is to be done.
    """
    group.command("run")(turn_options(format_option(repository_options(run))))


def _run(name: str, choices: Choices, way: Way, output_format: str) -> None:
    from accord.loops.run import LOOPS

    loop = LOOPS[name]
    run_dir = choices.run_dir or _new_run_dir()
    site = _site(choices, way, run_dir)
    if choices.pull is None:
        _sweep(loop, site, choices, output_format)
        return
    turn = _turn(loop, site, choices, way, run_dir)
    _keep_history(turn, choices, run_dir)
    _report(turn, choices.prompt_file, run_dir if run_dir.is_dir() else None, output_format)


def _new_run_dir() -> Path:
    """Name a folder for this run alone; it is made when there is something to keep."""
    root = Path(os.environ.get("RUNNER_TEMP") or tempfile.gettempdir())
    return root / f"accord-loop-{secrets.token_hex(4)}"


def _site(choices: Choices, way: Way, run_dir: Path) -> Site:
    from accord.core.clock import SystemClock
    from accord.loops.context import Site
    from accord.runner.registry import load_registry, repository_registry

    registry = load_registry(choices.registry or repository_registry(Path.cwd()))
    event = os.environ.get("GITHUB_EVENT_NAME", "")
    return Site(
        github=way.github,
        repository=way.repository,
        number=choices.pull or 0,
        run_id=os.environ.get("GITHUB_RUN_ID") or _local_id(run_dir),
        agents=registry.enabled(choices.agent),
        clock=SystemClock(),
        redact=redactor_for(os.environ),
        token=token_facts(os.environ),
        minutes=choices.max_runtime_minutes,
        bots=tuple(registry.review_bots),
        is_asked=event in _ASKING,
        commenter=os.environ.get("GITHUB_ACTOR", "") if event == "issue_comment" else "",
        by_person=event in (*_ASKING, *_LABELS),
    )


def _local_id(run_dir: Path) -> str:
    """Name a run at a terminal by its folder: the same command with the same folder is the same run."""
    return f"local-{hashlib.sha256(os.fsencode(run_dir.resolve())).hexdigest()[:12]}"


def token_facts(environment: Mapping[str, str]) -> TokenFacts:
    """Say what the token may do, by what a workflow tells of it.

    ``ACCORD_TOKEN_IS_JOBS`` says whether it is the job's own, whose pushes start no workflow and which may only read on
    events of Dependabot. Source: GitHub documentation, "Triggering a workflow from a workflow" and "Dependabot on
    GitHub Actions".
    """
    from accord.loops.models import TokenFacts

    told = environment.get("ACCORD_TOKEN_IS_JOBS", "").strip().lower()
    is_jobs = told == "true" if told in ("true", "false") else environment.get("GITHUB_ACTIONS") == "true"
    is_dependabots = environment.get("GITHUB_ACTOR") == "dependabot[bot]" and environment.get(
        "GITHUB_EVENT_NAME", ""
    ) in ("pull_request", "pull_request_review", "pull_request_review_comment", "push", "create")
    return TokenFacts(triggers_workflows=not is_jobs, may_write=not (is_jobs and is_dependabots))


def _turn(loop: Loop, site: Site, choices: Choices, way: Way, run_dir: Path) -> Turn:
    from accord.loops.run import begin, end

    if choices.phase == "end":
        outputs = _outputs(choices.outputs)
        if not choices.dry_run:
            _check_is_named(choices)
        return end(loop, site, outputs, workflow=choices.dispatch_workflow, is_dry_run=choices.dry_run)
    if choices.phase == "begin" or choices.dry_run:
        return begin(loop, site, ready=lambda _: _check_is_named(choices), is_dry_run=choices.dry_run)

    turn = begin(loop, site, ready=lambda decision: check_place(decision.agent, choices, run_dir))
    if not turn.should_run:
        if choices.run_dir is None:
            shutil.rmtree(run_dir, ignore_errors=True)  # another process was faster
        return turn
    if choices.run_dir is None:
        click.echo(f"Kept in {run_dir}. If this is cut off, run it again with --run-dir {run_dir}", err=True)
    return end(loop, site, run_here(turn, choices, way, run_dir), workflow=choices.dispatch_workflow)


def _check_is_named(choices: Choices) -> None:
    """Raise WrongUsage where ``begin`` and ``end`` could not know that they are of one run."""
    if choices.run_dir is None and not os.environ.get("GITHUB_RUN_ID"):
        raise WrongUsage(
            "It is not said which run this is, so that its end would not find its beginning.",
            hint="Pass the same --run-dir DIR to both phases, or set GITHUB_RUN_ID.",
        )


def _outputs(path: str | None) -> RunOutputs:
    from accord.loops.outputs import read_outputs

    if path is not None and os.environ.get("GITHUB_ACTIONS") == "true" and not Path(path).exists():
        return read_outputs("")  # the step that was to write them did not come that far
    if path is not None:
        return read_outputs(read_bytes(path).decode("utf-8", "replace"))
    text = os.environ.get("ACCORD_RUN_OUTPUTS")
    if text is None:
        raise WrongUsage("It is not said how the run ended.", hint="Pass --outputs FILE, or set ACCORD_RUN_OUTPUTS.")
    return read_outputs(text)


def _keep_history(turn: Turn, choices: Choices, run_dir: Path) -> None:
    from accord.files.store import write_whole
    from accord.loops.state import write_history

    is_wanted = choices.run_dir is not None or run_dir.is_dir()
    if is_wanted and turn.state is not None and turn.outcome != "planned":
        run_dir.mkdir(parents=True, exist_ok=True)
        write_whole(run_dir / HISTORY, write_history(turn.pull.number, turn.loop.name, turn.state.history))


def _sweep(loop: Loop, site: Site, choices: Choices, output_format: str) -> None:
    """Start the workflow of each pull request that may have something to do."""
    from accord.cli.step import leave_outputs, leave_summary
    from accord.loops.ending import start
    from accord.loops.run import due

    if not loop.is_swept:
        raise WrongUsage(f"It is not said which pull request {loop.name} is about.", hint="Pass --pull N.")
    if not choices.dispatch_workflow and not choices.dry_run:
        hint = "Pass --pull N for one, or --dispatch-workflow FILE to start it for each."
        raise WrongUsage("It is not said which workflow takes the turns of all open pull requests.", hint=hint)
    numbers = []
    for number in due(loop, site):
        if not choices.dry_run:
            start(site, choices.dispatch_workflow, number)
        numbers.append(number)
    told = ", ".join(f"#{number}" for number in numbers) or "none"
    leave_outputs({"action": "sweep", "should-run": "false", "pulls": " ".join(map(str, numbers))})
    leave_summary(f"### accord {loop.name}: open pull requests\n\n{'Due' if choices.dry_run else 'Started'}: {told}.")
    requests = {"read": site.github.requests.read, "write": site.github.requests.write}
    if output_format == "json":
        outcome = "planned" if choices.dry_run else "started"
        print_json({"loop": loop.name, "outcome": outcome, "pulls": numbers, "requests": requests})
    else:
        click.echo(f"{'due' if choices.dry_run else 'started'}: {told}")


def _report(turn: Turn, prompt_file: str, run_dir: Path | None, output_format: str) -> None:
    """Leave outputs and a summary for the runner, and print the turn."""
    from accord.cli.step import leave_outputs, leave_summary
    from accord.gha.commands import command
    from accord.loops.outputs import as_json, how_it_ended, page, step_outputs

    redact = redactor_for(os.environ)
    leave_outputs({name: redact(value) for name, value in step_outputs(turn, prompt_file).items()})
    leave_summary(page(turn))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for text in turn.decision.warnings:
            click.echo(command("warning", redact(text), title=f"accord {turn.loop.name}"), err=True)
        if turn.decision.reason == "read-only-token":
            click.echo(command("warning", redact(turn.decision.message), title=f"accord {turn.loop.name}"), err=True)
    if output_format == "json":
        print_json(redacted({**as_json(turn), "run_dir": str(run_dir or "")}, redact))
        return
    for line in how_it_ended(turn):
        click.echo(one_line(redact(line)))
    print_decision(turn.decision)
    click.echo(f"  {turn.outcome}{f': {one_line(turn.note)}' if turn.note else ''}")
    if turn.started:
        click.echo(f"  started {one_line(turn.started)} again")
    if run_dir is not None and turn.outcome == "ended":
        click.echo(f"  kept in {one_line(str(run_dir))}")


_OURS = ".accord-loop"
"""Says that a folder is of a loop's run, and that what an earlier try left in it may be removed."""


def check_place(agent: str, choices: Choices, run_dir: Path) -> None:
    """Find out, before a run is recorded on GitHub, whether it can be kept here and whether the agent has its secrets.

    Raises WrongUsage where not. A run that only has to be published needs no secret any more.
    """
    from accord.runner.classify import AgentNotStarted
    from accord.runner.launch import check_credentials
    from accord.runner.record import RECORD
    from accord.runner.registry import load_registry, repository_registry

    _claim(run_dir)
    if (run_dir / "agent" / RECORD).is_file():
        return
    registry = load_registry(choices.registry or repository_registry(Path.cwd()))
    try:
        check_credentials(agent, registry.agent(agent), os.environ)
    except AgentNotStarted as missing:
        hint = "Set it in the environment of this command. Nothing was written."
        raise WrongUsage(missing.message, hint=hint) from None


def _claim(run_dir: Path) -> None:
    """Make the folder of a run, for this user alone. One that holds other files is somebody's, and left as it is."""
    try:
        run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = {entry.name for entry in run_dir.iterdir()}
        if _OURS not in there and there - {HISTORY}:
            raise WrongUsage(
                f"The folder {run_dir} holds other files, such as {min(there - {HISTORY})}.",
                hint="Name a new one by --run-dir, or the one of a run that was cut off.",
            )
        (run_dir / _OURS).touch()
        with tempfile.TemporaryFile(dir=run_dir):
            pass
    except OSError as error:
        message = f"The run cannot be kept in {run_dir}: {error.strerror}."
        raise WrongUsage(message, hint="Name a folder by --run-dir that can be written.") from None


def checked_out(turn: Turn, way: Way, folder: Path) -> Path:
    """Clone the pull request's branch and its base into a folder; the token stays out of what the agent can read.

    What is merged is in the base, and its branch may be gone.
    """
    from accord.core.clock import SystemClock
    from accord.git.branches import fetch_ref
    from accord.git.program import Git, token_config

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    remote = way.remote(SystemClock())
    git = Git(folder, config=token_config(remote.server_url, remote.token))
    git("init", "--quiet", "--initial-branch", "none")
    pull = turn.pull
    for branch in dict.fromkeys((pull.base_branch, *(() if pull.merge_commit else (pull.head_branch,)))):
        fetch_ref(git, remote, f"refs/heads/{branch}", branch)
    git("checkout", "--quiet", pull.merge_commit or pull.head_branch)
    return folder


def run_here(turn: Turn, choices: Choices, way: Way, run_dir: Path) -> RunOutputs:
    """Run the agent in a clone below ``run_dir`` and publish what it changed; one that ran already is only published.

    The caller's work tree is left as it is.
    """
    from accord.cli.run import run_shown, schema_of
    from accord.cli.run_step import finished
    from accord.runner.process import listening
    from accord.runner.record import RECORD
    from accord.runner.registry import repository_registry
    from accord.runner.run import RunRequest

    folder = run_dir.resolve() / "agent"
    record = None
    if not (folder / RECORD).is_file():
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was ended before it could say how it went
        request = RunRequest(
            agent=turn.decision.agent,
            run_dir=folder,
            directory=checked_out(turn, way, run_dir.resolve() / "tree"),
            prompt_file=Path(choices.prompt_file) if choices.prompt_file else None,
            appendix=turn.decision.appendix,
            mode=turn.loop.mode,
            pr_number=str(turn.pull.number),
            pr_ref=turn.pull.head_branch if turn.loop.changes_code else "",
            base_ref=turn.pull.base_branch,
            iteration=str(turn.decision.iteration),
            max_runtime_minutes=choices.max_runtime_minutes,
            registry=choices.registry or repository_registry(Path.cwd()),
            schema=schema_of(turn.loop.schema),
        )
        with listening() as told:
            record = run_shown(request, told)
    return finished(folder, way, record)
