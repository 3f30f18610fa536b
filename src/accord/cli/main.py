"""``accord``: the one command, and its variables. Modules of commands load when needed.

``accord check`` never imports PyGithub.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from accord import __version__
from accord.cli.options import FlagOption, Group
from accord.cli.output import Printed, guard_streams, next_lines, one_line, print_json, write_error
from accord.core.environment import is_in_actions, wants_color
from accord.core.errors import BrokenContract, Interrupted, Problem, Stopped, WrongUsage
from accord.core.suggest import correct_spelling, did_you_mean

HEADINGS: dict[str, dict[str, tuple[str, str]]] = {
    "Everyday": {
        "init": ("accord.cli.kit", "Install or update the consumer kit in a repository."),
        "check": ("accord.cli.check", "Check documents against their contracts."),
        "plan": ("accord.cli.plan", "Make plans from task lists that exist already."),
        "apply": ("accord.cli.apply", "Apply an agent's result to GitHub, exactly once."),
        "board": ("accord.cli.board", "Show the status of repositories in the browser."),
        "status": ("accord.cli.board", "Show what needs you, what runs, and what can start."),
        "report": ("accord.cli.report", "Report runs, cost, results and failures of agents."),
        "items": ("accord.cli.items", "List, show and move work items."),
        "labels": ("accord.cli.labels", "List, check and sync labels."),
        "doctor": ("accord.cli.doctor", "Find what is wrong in a repository for agents."),
        "demo": ("accord.cli.demo", "Try accord on the embedded sandbox."),
        "attack": ("accord.cli.attack", "Play attacks against a copy of your repository."),
    },
    "Agents": {
        "start": ("accord.cli.start", "Start agents on events, and report their runs."),
        "run": ("accord.cli.run", "Run an agent and write its outputs."),
        "publish": ("accord.cli.run", "Push a run's changes and write its final outputs."),
        "outputs": ("accord.cli.run", "Compute the outputs of a finished run."),
        "classify": ("accord.cli.analyze", "Explain why an agent's run failed."),
        "analyze": ("accord.cli.analyze", "Find the tasks that an agent completed."),
        "patch": ("accord.cli.apply", "Print the patch from a base to the work tree."),
        "preflight": ("accord.cli.doctor", "Ask GitHub whether a pull request would be refused."),
        "artifact": ("accord.cli.artifact", "Download an artifact of a workflow run."),
        "mcp": ("accord.cli.mcp", "Offer an agent tools that check its result while it works."),
        "dispatch": ("accord.cli.session_run", "Print an agent's input, or apply the agent's output."),
    },
    "Loops": {
        "keepalive": ("accord.cli.loops", "Rerun the agent while tasks of a pull request are open."),
        "autofix": ("accord.cli.loops", "Let the agent fix failing checks."),
        "verify": ("accord.cli.loops", "Judge a change by its work item's acceptance criteria."),
        "bot-comments": ("accord.cli.loops", "Let the agent answer bots' review threads."),
    },
    "Contracts": {
        "session": ("accord.cli.session", "Manage agent sessions: state, tasks and questions."),
        "mission": ("accord.cli.mission", "Query missions, and move their work packages."),
        "handoff": ("accord.cli.handoff", "Check, change and move a task's handoff."),
        "explain": ("accord.cli.reference", "Explain a code that accord printed."),
        "schema": ("accord.cli.reference", "Print the JSON Schema of a document kind."),
        "conform": ("accord.cli.conform", "Check agent-runner workflows."),
        "machine": ("accord.cli.reference", "Print state machines as Mermaid diagrams."),
    },
    "Tools": {
        "sandbox": ("accord.cli.sandbox", "Serve and show a local GitHub."),
        "sync": ("accord.cli.kit", "Update the kit of a repository by a pull request."),
        "hooks": ("accord.cli.hooks", "Let an agent in an editor end with a valid result."),
        "completion": ("accord.cli.reference", "Print completion for your shell."),
        "repos": ("accord.cli.repos", "Work on many repositories at once."),
    },
}
"""The commands by the heading of ``accord --help``: each with its module and its summary."""

COMMANDS = {name: command for commands in HEADINGS.values() for name, command in commands.items()}

VARIABLES = {
    "ACCORD_ALLOWED_HOSTS": "Hosts of images, in addition to `--allowed-hosts`.",
    "ACCORD_ANTHROPIC_MODEL": "Model of the provider `anthropic`.",
    "ACCORD_BREAK_WORDS": "Bots' commands to break, in addition to `--break-words`.",
    "ACCORD_GITHUB_MODELS_MODEL": "Model of the provider `github-models`.",
    "ACCORD_GITHUB_MODELS_URL": "Address of the provider `github-models`.",
    "ACCORD_HOME": "Folder in which `actions/setup` keeps accord on a self-hosted runner.",
    "ACCORD_KEEPALIVE": "Repository variable: `true` lets keepalive work on new pull requests.",
    "ACCORD_LOGIN": "Repository variable: login of the app of `ACCORD_TOKEN`.",
    "ACCORD_OPENAI_MODEL": "Model of the provider `openai`.",
    "ACCORD_REVIEW_LOGIN": "Repository variable: login of the app of `ACCORD_REVIEW_TOKEN`.",
    "ACCORD_REVIEW_TOKEN": "Repository secret: token of the reviewer.",
    "ACCORD_RUN_OUTPUTS": "Outputs of an agent's run as JSON, for the phase `end` of a loop.",
    "ACCORD_SYNC_TOKEN": "Repository secret: token of `accord sync`.",
    "ACCORD_TOKEN": "Repository secret: token that writes.",
    "ACCORD_TOKEN_IS_JOBS": "`true` where the token of a loop is that of the job.",
}
"""The variables that belong to no option, with their meaning."""

_OF_REPOSITORY = "ACCORD_VARS_"
"""Reusable workflows pass a repository's variable on with this prefix: one of the machine may have its name."""


class LazyGroup(Group):
    """A group that imports the module of a command when the command is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return the command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command. Suggests one for a misspelt name, which click only does for commands already loaded."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under their headings, aligned, without importing them."""
        width = max(map(len, COMMANDS))
        for heading, commands in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in commands.items()])


EXIT_CODES = """\b
Exit codes:
  0  done
  1  the input breaks its contract; nothing was written
  2  wrong usage
  3  stopped part-way, or the report is not whole; run the same command again
  4  refused; running the same command again does not help
"""


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80}, epilog=EXIT_CODES
)
@click.version_option(__version__, prog_name="accord")
def accord() -> None:
    """Check what coding agents wrote for GitHub, and apply it exactly once."""
    context = click.get_current_context()
    if os.environ.get("RUNNER_DEBUG") == "1":
        from accord.cli.debug import start_log

        start_log()
    if any(name.startswith("ACCORD_") and name not in VARIABLES for name in os.environ):
        from accord.cli.step import warn
        from accord.core.documents import short_name

        for name, suggestion in unknown_variables(os.environ, context):
            warn(f"accord has no option for the variable `{short_name(name)}`. {suggestion}".rstrip())


def main(args: list[str] | None = None) -> None:
    """Run the command line: the only place that turns errors into messages and an exit code."""
    guard_streams()
    if is_in_actions(os.environ):
        from accord.runner.confine import forbid_reading  # imported here: it takes as long as a small command

        forbid_reading()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    printed, args = Printed(), sys.argv[1:] if args is None else args
    settings: dict[str, Any] = {"standalone_mode": False, "auto_envvar_prefix": "ACCORD", "obj": printed}
    settings["color"] = wants_color(os.environ)
    try:
        code = _run(args, settings)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        code = Stopped.exit_code
    except (Exception, Interrupted) as error:
        with click.Context(accord, obj=printed):
            code = _report_error(to_problem(error), args, printed)
    finally:
        if debug := sys.modules.get("accord.cli.debug"):
            debug.stop_log()
    code = _with_failures(code, args, printed)
    _set_handler(signal.SIG_IGN)  # Python resets handlers before the process ends
    sys.exit(code)


def _with_failures(code: int, args: list[str], printed: Printed) -> int:
    """Report which parts of the report could not be written; return the command's own code, or 3 instead of 0."""
    failures = list(printed.failures)
    if lost := write_error():
        failures.append(f"Cannot write the report to stdout: {lost.strerror or lost}.")
    if failures:
        printed.has_outputs = True  # the outcome is that of the command
        hint = (
            "Free some space or set another file, and run the same command again: what is done is found, not repeated."
        )
        _report_error(Stopped(" ".join([*failures, *([] if code else [printed.ending])]), hint=hint), args, printed)
    return code or (Stopped.exit_code if failures else 0)


def _run(args: list[str], settings: Mapping[str, Any]) -> int:
    """Run the command and return its exit code. A signal interrupts it only once, and not its report."""
    _set_handler(_stop)
    try:
        return int(accord.main(args=args, prog_name="accord", **settings) or 0)
    finally:
        _delay_signals()


def _set_handler(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _stop(signal_number: int, frame: FrameType | None) -> NoReturn:
    _delay_signals()
    raise Interrupted("The process was interrupted by a signal.", hint="Run the same command again to continue.")


_REPORT_SECONDS = 10.0
"""A runner that cancels a job kills the process after so long."""


def _delay_signals() -> None:
    """Ignore signals while the command cleans up and reports, as Ctrl-C often comes twice; later, one ends it all."""
    until = time.monotonic() + _REPORT_SECONDS
    _set_handler(lambda *_: os._exit(Interrupted.exit_code) if time.monotonic() > until else None)


def to_problem(error: BaseException) -> Problem:
    """Return any error as one with a message, a hint and, by its class, an exit code; a signal behind it counts."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, Interrupted):
        behind = behind.__context__
    if isinstance(problem := behind or error, Problem):
        return problem
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        if isinstance(error, click.BadParameter) and (variable := variable_behind(context, error.param)):
            error.param_hint = f"'{variable}'"
        if isinstance(error, click.NoSuchOption) and context and (words := _words_of_group(context, error.option_name)):
            return WrongUsage(error.format_message(), hint=f"Write it before `{context.info_name}`: `{words}`.")
        return WrongUsage(error.format_message(), hint=f"Run `{context.command_path} --help`." if context else "")
    if isinstance(error, OSError):
        message = f"Cannot use {error.filename or 'a file'}: {error.strerror or error}."
        if isinstance(error, (FileExistsError, IsADirectoryError, NotADirectoryError)):
            return WrongUsage(message, hint="Pass another path.")
        return Stopped(message, hint="Fix the problem and run the same command again.")
    return to_internal_error(error)


def _words_of_group(context: click.Context, name: str) -> str:
    """Return how an option of the group of a command is written; empty for another, or one that is not passed on."""
    group = context.parent
    if group is None or getattr(group.command, "invoke_without_command", False):
        return ""
    found = next((each for each in group.command.params if name in each.opts), None)
    return f"{group.command_path} {name} {found.make_metavar(group)} {context.info_name}" if found else ""


_OUTCOMES = {1: "rejected", 3: "stopped", 4: "refused"}


def _report_error(error: Problem, args: list[str], printed: Printed) -> int:
    """Report how a command ended on stderr, to the runner and as JSON where wanted; return the exit code."""
    head = click.style("accord:", bold=True)
    click.echo(f"{head} {one_line(error.message)}", err=True, color=wants_color(os.environ))
    if error.hint:
        click.echo(f"  {one_line(error.hint)}", err=True)
    for line in next_lines(error.next_moves):
        click.echo(line, err=True)
    outcome = _OUTCOMES.get(error.exit_code, "usage")
    from accord.cli.step import is_step, leave_outputs, report_error

    if is_step():
        if not printed.has_outputs:
            leave_outputs({"outcome": outcome, "ok": "false"})
        name = next((word for word in args if word in COMMANDS), "")
        report_error(f"accord {name}".rstrip(), error.message, error.hint)
    if _wants_json(args) and not printed.is_whole:
        found = {"findings": [one.as_json() for one in error.findings]} if isinstance(error, BrokenContract) else {}
        said = {"message": error.message, "hint": error.hint}
        print_json({**printed.keys, "outcome": outcome, **found, "error": said})
    return error.exit_code


def _wants_json(args: list[str]) -> bool:
    """Tell whether the caller wants JSON, also where the options could not be parsed."""
    options = list(takewhile(lambda word: word != "--", args))
    formats = [word.removeprefix("--format=") for word in options if word.startswith("--format=")]
    formats += [value for word, value in pairwise(options) if word == "--format"]
    if formats:
        return "json" in formats
    commands = takewhile(lambda word: not word.startswith("-"), options)
    names = accumulate(commands, lambda name, word: f"{name}_{word}", initial="ACCORD")
    return any(os.environ.get(f"{name}_FORMAT".replace("-", "_").upper()) == "json" for name in names)


REPORT_TO = "https://github.com/accord-ci/accord/issues"
_MOST_CHARS = 300
_PACKAGE = Path(__file__).parents[1]


def to_internal_error(error: BaseException) -> Stopped:
    """Return a redacted, cut error that reports a bug in accord. Prints the traceback with ``--debug``."""
    import traceback

    debug = sys.modules.get("accord.cli.debug")
    if debug and debug.is_started():
        for line in "".join(traceback.format_exception(error)).splitlines():
            click.echo(f"  {one_line(line)}" if line.strip() else "", err=True)
    message = one_line(str(error))
    message = f"{message[:_MOST_CHARS]}…" if len(message) > _MOST_CHARS else message
    frames = traceback.extract_tb(error.__traceback__)
    frame = ([each for each in frames if each.filename.startswith(f"{_PACKAGE}{os.sep}")] or frames)[-1]
    origin = f"{frame.filename.removeprefix(f'{_PACKAGE}{os.sep}')}:{frame.lineno}"
    return Stopped(
        f"Internal error in accord: {type(error).__name__}{f' ({message})' if message else ''} at {origin}. "
        "Something may have been written already.",
        hint="Run the same command again: finished operations are found, not repeated. If the error comes back, "
        f"report it at {REPORT_TO} with the output of `--debug`.",
    )


def unknown_variables(environment: Mapping[str, str], context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield each unknown name with a suggestion; ``context`` is that of the whole command line.

    Only the commands that the names begin with are imported.
    """
    for name in sorted(each.removeprefix(_OF_REPOSITORY) for each in environment):
        if name.startswith("ACCORD_") and name not in VARIABLES:
            contexts = [*_path(context, name)]
            known = {found for each in contexts for found in variables_of(each)}
            prefix, names = f"{contexts[-1].auto_envvar_prefix}_", [*VARIABLES, *known]
            if name not in known and not name.startswith(prefix):
                yield name, did_you_mean(name, names)
            elif name not in known:  # what the names of one command share says nothing about its options
                rest = name.removeprefix(prefix)
                near = correct_spelling(rest, [each.removeprefix(prefix) for each in names if each.startswith(prefix)])
                yield name, f"Did you mean `{prefix}{near}`?" if near and near != f"NO_{rest}" else ""


def variables_of(context: click.Context) -> Iterator[str]:
    """Yield the variables of one command's options and arguments."""
    return (name for each in context.command.get_params(context) for name in _names_of(each, context))


def _names_of(parameter: click.Parameter, context: click.Context) -> list[str]:
    if isinstance(parameter, FlagOption):
        return parameter.variables(context)
    return [parameter.envvar] if isinstance(parameter.envvar, str) else []


def variable_behind(context: click.Context | None, parameter: click.Parameter | None) -> str:
    """Return the variable that gave a parameter its value; empty for one that was given in another way."""
    source = context.get_parameter_source(parameter.name or "") if context and parameter else None
    if not context or not parameter or source is not ParameterSource.ENVIRONMENT:
        return ""
    return next((name for name in _names_of(parameter, context) if os.environ.get(name)), "")


def _path(context: click.Context, name: str) -> Iterator[click.Context]:
    """Yield the contexts of the commands that a variable's name begins with, or that are spelled like its beginning."""
    while True:
        yield context
        if not isinstance(context.command, click.Group):
            return
        rest = name.removeprefix(f"{context.auto_envvar_prefix}_")
        words = {each.upper().replace("-", "_"): each for each in context.command.list_commands(context)}
        begun = [word for word in words if rest.startswith(f"{word}_")]
        word = max(begun, key=len) if begun else correct_spelling(rest.partition("_")[0], words)
        command = context.command.get_command(context, words[word]) if word else None
        if word is None or command is None:
            return
        context = click.Context(command, context, words[word])
