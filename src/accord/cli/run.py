"""``accord run``: run an agent, and leave its outputs for the jobs that follow."""

from __future__ import annotations

import math
import os
import shlex
import tempfile
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.output import format_option, one_line
from accord.cli.sources import Lines, github_for
from accord.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from accord.runner.record import RunRecord
    from accord.runner.run import RunRequest

_FILE = click.Path(path_type=Path)


def _finite(minutes: float) -> float:
    """Refuse ``nan``, which is in every range."""
    if not math.isfinite(minutes):
        raise WrongUsage("The time limit is no number of minutes.", mend="Pass --max-runtime-minutes 45.")
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
@click.option("--pr-number", default="", metavar="N", help="The pull request; told to the agent.")
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
    from accord.runner.publish import check_ref
    from accord.runner.signals import listening

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
        raise WrongUsage(f"The command cannot be split into words: {error}.", mend="Close its quotes.") from None
    same = ("prompt_file", "appendix", "mode", "pr_number", "pr_ref", "base_ref", "iteration", "safety_strategy")
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
        **{name: given[name] for name in (*same, *more)},
    )


def schema_of(named: str) -> Path | dict[str, Any] | None:
    """Return the strict schema of a kind of document; any other name is that of a file."""
    if not named:
        return None
    from accord.cli.kinds import KINDS
    from accord.kernel.schemas import strict_schema

    return strict_schema(KINDS[named].model) if named in KINDS else Path(named)


def run_shown(request: RunRequest, told: Any) -> RunRecord:
    """Run an agent, and show on stderr what it prints."""
    from accord.gha.commands import command, inert
    from accord.kernel.clock import SystemClock
    from accord.runner.run import Job, run_agent

    def show(line: str) -> None:
        with suppress(OSError):  # nobody watches any more, which is no reason to end the agent
            click.echo(inert(line), err=True)

    is_step = os.environ.get("GITHUB_ACTIONS") == "true"
    if is_step:
        click.echo(command("group", f"Output of {one_line(request.agent or 'the agent')}"), err=True)
    try:
        return run_agent(request, Job(os.environ, SystemClock(), show, told))
    finally:
        if is_step:
            click.echo(command("endgroup", ""), err=True)
