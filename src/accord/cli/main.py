"""``accord``: the one command. Groups load when they are called, so that ``accord check`` never imports PyGithub."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import traceback
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord import __version__
from accord.cli.output import Printed, one_line
from accord.core.errors import AccordError, Stopped, WrongUsage

if TYPE_CHECKING:
    from types import FrameType


COMMANDS = {
    "analyze": ("accord.cli.analyze", "Find out which tasks of a pull request an agent completed."),
    "apply": ("accord.cli.apply", "Carry out an agent's result on GitHub, exactly once."),
    "artifact": ("accord.cli.artifact", "Fetch what another job of a workflow run uploaded."),
    "autofix": ("accord.cli.loops", "Let the agent fix failing checks."),
    "bot-comments": ("accord.cli.loops", "Let the agent answer review threads of bots."),
    "check": ("accord.cli.check", "Check documents against their contracts."),
    "classify": ("accord.cli.analyze", "Tell why an agent's run failed."),
    "conform": ("accord.cli.conform", "Hold agent-runner workflows against their contract."),
    "demo": ("accord.cli.demo", "Show the main job on the embedded sandbox."),
    "dispatch": ("accord.cli.dispatch", "Give an agent its task of a session, and take back what it says."),
    "doctor": ("accord.cli.doctor", "Look a repository over: what is wrong for agents, and what fixes it."),
    "handoff": ("accord.cli.handoff", "Check a task's handoff, and move it through its stages."),
    "init": ("accord.cli.kit", "Put the consumer kit into a repository."),
    "items": ("accord.cli.items", "List work items, and move them through their states."),
    "keepalive": ("accord.cli.loops", "Run the agent again while tasks are open."),
    "labels": ("accord.cli.labels", "Bring a repository's labels in step with a file."),
    "machine": ("accord.cli.reference", "Print state machines as Mermaid graphs."),
    "mission": ("accord.cli.mission", "Tell where missions stand, and move their work packages."),
    "outputs": ("accord.cli.run", "Compute the outputs of an agent's run from evidence."),
    "patch": ("accord.cli.apply", "Print what an agent changed, as a patch."),
    "publish": ("accord.cli.run", "Push what an agent's run changed, and write its outputs."),
    "run": ("accord.cli.run", "Run an agent, and write the outputs of the runner contract."),
    "sandbox": ("accord.cli.sandbox", "Serve and show a local GitHub."),
    "schema": ("accord.cli.reference", "Print the JSON Schemas of the contracts."),
    "session": ("accord.cli.session", "Keep the folder of an agent session by its contract."),
    "sync": ("accord.cli.kit", "Keep the kits of many repositories in step, by pull requests."),
    "verify": ("accord.cli.loops", "Hold a change against its acceptance criteria."),
}


_ALLOCATIONS_BEFORE_COLLECTING = 100_000
"""A thousand bodies make a million small objects and no garbage; the default of 700 costs a third of the time."""


class LazyGroup(click.Group):
    """A group whose commands live in modules of their own that are imported when they are asked for."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; when nobody reads its output any more, end in silence, without a verdict of the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(Stopped.exit_code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return it."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in COMMANDS.items()])


EXIT_CODES = """\b
Exit codes:
  0  done
  1  the input breaks its contract, nothing was written
  2  wrong usage
  3  stopped part-way; the same command continues
  4  refused for a reason that running again does not fix
"""


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, prog_name="accord")
def accord() -> None:
    """Contracts for coding agents on GitHub: check what an agent wrote, and apply it exactly once."""


def main(args: list[str] | None = None) -> None:
    """Run the command line; the only place that turns errors into words and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.set_threshold(_ALLOCATIONS_BEFORE_COLLECTING)
    printed = Printed()
    try:
        sys.exit(
            accord.main(args=args, prog_name="accord", standalone_mode=False, auto_envvar_prefix="ACCORD", obj=printed)
        )
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(Stopped.exit_code)
    except Exception as error:
        sys.exit(_told(_as_told(error), sys.argv[1:] if args is None else args, printed))


def _as_told(error: Exception) -> AccordError:
    """Turn any error into one that says what happened, what fixes it, and by its class the exit code."""
    if isinstance(error, AccordError):
        return error
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        return WrongUsage(error.format_message(), hint=f"Try: {context.command_path} --help" if context else "")
    if isinstance(error, OSError):
        message = f"{error.filename or 'A file'} cannot be used: {error.strerror or error}."
        return Stopped(message, hint="Fix that, and run the same again.")

    return as_stopped(error)


def _told(error: AccordError, args: list[str], printed: Printed) -> int:
    """Say how a command ended, wherever somebody may look for it, and return its exit code."""
    _say(error.message, error.hint)
    _report(error.message, error.hint)
    if _wants_json(args) and not printed.is_whole:
        _print_error(error)
    return error.exit_code


def _wants_json(args: list[str]) -> bool:
    """Tell whether JSON was asked for, also where the options could not be parsed."""
    options = list(takewhile(lambda word: word != "--", args))
    said = [word.removeprefix("--format=") for word in options if word.startswith("--format=")]
    said += [value for word, value in pairwise(options) if word == "--format"]
    if said:
        return "json" in said
    commands = takewhile(lambda word: not word.startswith("-"), options)
    names = accumulate(commands, lambda name, word: f"{name}_{word}", initial="ACCORD")
    return any(os.environ.get(f"{name}_OUTPUT_FORMAT".replace("-", "_").upper()) == "json" for name in names)


def _print_error(error: AccordError) -> None:
    from accord.cli.output import print_json
    from accord.core.errors import BrokenContract

    outcomes = {1: "rejected", 3: "stopped", 4: "refused"}
    document: dict[str, Any] = {"outcome": outcomes.get(error.exit_code, "usage")}
    if isinstance(error, BrokenContract):
        document["findings"] = [finding.as_json() for finding in error.findings]
    print_json({**document, "error": {"message": error.message, "hint": error.hint}})


def _say(message: str, hint: str) -> None:
    from accord.cli.output import one_line

    click.echo(f"{click.style('accord:', bold=True)} {one_line(message)}", err=True)
    if hint:
        click.echo(f"  {one_line(hint)}", err=True)


def _report(message: str, hint: str) -> None:
    if "GITHUB_ACTIONS" in os.environ:
        from accord.cli.step import report_error

        report_error(message, hint)


def _stop(signal_number: int, frame: FrameType | None) -> Any:
    raise Stopped("The process was told to stop.", hint="Run the same command again to continue.")


REPORT_TO = "https://github.com/accord-ci/accord/issues"
_LONGEST = 300
_PACKAGE = Path(__file__).parents[1]


def as_stopped(error: Exception) -> Stopped:
    """Say that accord stopped because of its own defect. Prints the traceback where RUNNER_DEBUG is 1.

    What the error says may come from an agent or hold a secret: it is redacted whole, and then cut.
    """
    if os.environ.get("RUNNER_DEBUG") == "1":
        for line in "".join(traceback.format_exception(error)).splitlines():
            click.echo(f"  {one_line(line)}" if line.strip() else "", err=True)
    said = one_line(str(error))
    said = f"{said[:_LONGEST]}…" if len(said) > _LONGEST else said
    return Stopped(
        f"This is a defect of accord: {type(error).__name__}{f' ({said})' if said else ''} at {_place(error)}. "
        "Nothing tells whether anything was written.",
        hint="Run the same command again: what is there already is found, not written twice. If it ends like this "
        f"again, report it at {REPORT_TO}, with what RUNNER_DEBUG=1 prints.",
    )


def _place(error: Exception) -> str:
    """Name the last line of our own that was on the way to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(f"{_PACKAGE}{os.sep}")]
    frame = (ours or frames)[-1]
    return f"{frame.filename.removeprefix(f'{_PACKAGE}{os.sep}')}:{frame.lineno}"
