"""The arguments of commands as typed data: dataclasses whose fields declare what the command line takes.

Options that commands share are classes to inherit from, so that one concept has one name everywhere.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import Field, field, fields
from functools import update_wrapper
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import click
from click.core import ParameterSource

from accord.core.errors import WrongUsage
from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean
from accord.git.leaving_out import DEFAULT_LIMITS, ChangeLimits
from accord.text.posting import split_hosts, split_words

SANDBOX_DIRECTORY = ".accord/sandbox"
FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)
EXISTING_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)

Given = TypeVar("Given")
CommandFunction = Callable[[Given], int | None]
"""A command: takes its arguments, and returns the exit code; None is 0."""

_LONGEST_METAVAR = 44


class Choice(click.Choice[str]):
    """A choice that suggests the nearest value for a misspelt one, and names a long list by one word in help."""

    def __init__(self, choices: Iterable[str], case_sensitive: bool = True) -> None:
        super().__init__(list(choices), case_sensitive)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return the values, or the option's name where they do not fit a line."""
        values = super().get_metavar(param, ctx) or ""
        name = param.opts[-1].lstrip("-").upper()
        return values if len(values) <= _LONGEST_METAVAR else {"TO": "STATUS"}.get(name, name)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice. Raises BadParameter with a suggestion."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            suggestion = did_you_mean(str(value), map(str, self.choices))
            self.fail(f"{error.message} {suggestion}".rstrip(), param, ctx)


class Number(click.ParamType[int | None]):
    """The number of an issue or pull request, as ``42`` or ``#42``."""

    name = "n"

    def __init__(self, *, may_be_empty: bool = False) -> None:
        self.may_be_empty = may_be_empty

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """Return the number; None for an empty text, if it may be empty. Raises BadParameter for anything else."""
        if value == "" and self.may_be_empty:
            return None
        match = re.fullmatch(r"#?([1-9][0-9]{0,9})", str(value))
        if match is None:
            self.fail(f"`{str(value)[:80]}` is not a number. Use `42` or `#42`.", param, ctx)
        return int(match[1])


class Minutes(click.FloatRange):
    """A number of minutes in a range, to which ``nan`` does not belong: every comparison with it is false."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the minutes. Raises BadParameter for anything else."""
        minutes = float(super().convert(value, param, ctx))
        if not math.isfinite(minutes):
            self.fail(f"{minutes} is not a number of minutes.", param, ctx)
        return minutes


class Lines(click.types.StringParamType):
    """A text that may hold blanks: an environment variable holds several, one per line."""

    envvar_list_splitter = "\n"


def option(words: str, text: str, **settings: Any) -> Any:
    """Declare a field as an option: its spelling with the name of its value, its help, and click's ``settings``.

    Its spelling names its variable. The type of the field says the rest: a bool is a flag, a tuple is given several
    times, a text is empty by default, and an int is the number of an issue or a pull request. Other types are required,
    unless they have a default or can be None. ``settings`` may have ``among``, the values of a text, ``least`` and
    ``most`` of an int, or a ``type`` of click.
    """
    flag, _, metavar = words.partition(" ")
    named = {"metavar": metavar} if metavar else {}
    return field(metadata={"flags": [flag], "settings": {"help": text, **named, **settings}})


def argument(metavar: str | None = None, **settings: Any) -> Any:
    """Declare a field as an argument: a tuple takes all that are given, and one that can be None may be left out."""
    return field(metadata={"flags": (), "settings": {"metavar": metavar, **settings}})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option, argument))
class Arguments(Frozen):
    """The arguments of a command, whose fields are named where an instance is made."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__(kw_only=True)


class FlagOption(click.Option):
    """An option that a variable sets: the name of the command and that of the option, whatever its field is called."""

    def variables(self, ctx: click.Context) -> list[str]:
        """Return the names of its variables, the documented one first."""
        flag = max(self.opts, key=len).lstrip("-").replace("-", "_").upper()
        prefix = f"{ctx.auto_envvar_prefix}_"
        explicit = [self.envvar] if isinstance(self.envvar, str) else []
        return [prefix + flag, *explicit]

    def value_from_envvar(self, ctx: click.Context) -> Any:
        """Return its value; an option that is given several times has one on each line that is not blank."""
        value = super().value_from_envvar(ctx)
        return [each for each in value if str(each).strip()] if self.multiple and value else value

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the text of the first variable that is set and not empty."""
        return next(filter(None, map(os.environ.get, self.variables(ctx))), None)


def _start_log(_ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from accord.cli.debug import start_log

        start_log()


DEBUG = FlagOption(
    ["--debug"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_start_log,
    help="Log requests, git commands and decisions on stderr.",
)


class Command(click.Command):
    """A command of accord: each has ``--debug``."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its parameters, with those that every command has."""
        return [DEBUG, *super().get_params(ctx)]


class Group(Command, click.Group):
    """A group of commands of accord."""

    command_class = Command
    group_class = type


def command(
    arguments: type[Given],
    name: str | None = None,
    *,
    of: click.Group | None = None,
    cls: type[click.Command] = Command,
    **settings: Any,
) -> Callable[[CommandFunction[Given]], click.Command]:
    """Make a function that takes these arguments a command, in the group ``of``."""

    def decorate(work: CommandFunction[Given]) -> click.Command:
        made = click.command(name, cls, params=parameters(arguments), **settings)(_callback(arguments, work))
        if of is not None:
            of.add_command(made)
        return made

    return decorate


def group(arguments: type[Given], **settings: Any) -> Callable[[CommandFunction[Given]], Group]:
    """Make a function that takes these arguments a group of commands."""
    return lambda work: click.group(cls=Group, params=parameters(arguments), **settings)(_callback(arguments, work))


def _callback(arguments: type[Given], work: CommandFunction[Given]) -> Callable[..., None]:
    def callback(**values: object) -> None:
        if code := work(arguments(**values)):
            raise click.exceptions.Exit(code)

    return update_wrapper(callback, work)


def parameters(arguments: type[Any]) -> list[click.Parameter]:
    """Return what a class declares for click: arguments, those of its bases first, then options, its own first."""
    known = {each.name: each for each in fields(arguments) if "flags" in each.metadata}
    own_first = dict.fromkeys(name for base in arguments.__mro__ for name in inspect.get_annotations(base))
    positional = [each for each in known.values() if not each.metadata["flags"]]
    options = [known[name] for name in own_first if name in known and known[name].metadata["flags"]]
    return [_parameter(each) for each in (*positional, *options)]


def _parameter(declared: Field[Any]) -> click.Parameter:
    flags, annotation = declared.metadata["flags"], str(declared.type)
    settings = dict(declared.metadata["settings"])
    is_several, can_be_left_out = annotation.startswith("tuple["), annotation == "bool" or "None" in annotation
    if flags and annotation == "str" and not settings.get("required"):
        settings.setdefault("default", "")
    if not (is_several or can_be_left_out or "default" in settings):
        settings["required"] = True
    if "among" in settings:
        settings["type"] = Choice(settings.pop("among"))
    elif settings.keys() & {"least", "most"}:
        settings["type"] = click.IntRange(settings.pop("least", None), settings.pop("most", None))
    elif "Path" in annotation:
        settings.setdefault("type", FILE)
    elif annotation.startswith("int"):
        settings.setdefault("type", Number())
    elif is_several and flags and settings.get("multiple", True):
        settings.setdefault("type", Lines())
    if not flags:
        return click.Argument([declared.name], **{"nargs": -1 if is_several else 1, "required": False, **settings})
    if annotation == "bool":
        settings["is_flag"] = True
    settings = {"multiple": is_several, "show_default": bool(settings.get("default")), **settings}
    return FlagOption((*flags, declared.name), **settings)


def format_option(text: str, *choices: str, **settings: Any) -> Any:
    """Declare ``--format``; the first choice is the default."""
    settings = {"type": Choice(choices), "default": choices[0], **settings}
    return option("--format", text, **settings)


class FormatArguments(Arguments):
    """How a command prints."""

    output_format: str = format_option("Text for people, or one JSON document on stdout.", "text", "json")

    @property
    def is_json(self) -> bool:
        """Whether it prints one JSON document."""
        return self.output_format == "json"


class FindingsArguments(FormatArguments):
    """How a command prints findings."""

    output_format: str = format_option("Text, one JSON document, or SARIF for code scanning.", "text", "json", "sarif")


class WritingArguments(FormatArguments):
    """Arguments of a command that writes: the connection of any other one, and that of a dry run, only reads."""

    dry_run: bool = option("--dry-run", "Show what would happen, and write nothing.")


class FileArguments(Arguments):
    """Arguments of a command that writes only a file or folder that its caller names: its connection only reads."""

    shows_only: bool = option("--dry-run", "Show what would be written, and write nothing.")


def why_read_only() -> str:
    """Return why the command that runs must not write to GitHub; empty where it may."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    if not writes(context.command):
        return f"Declare `{context.command_path}` as a command that writes, below `WritingArguments`."
    return "This is a dry run." if context.params["dry_run"] else ""


def writes(command: click.Command) -> bool:
    """Return whether a command is declared as one that writes."""
    return any(param.name == "dry_run" for param in command.params)


class RootArguments(Arguments):
    """The checkout that a command reads."""

    root: Path = option("--root", "The repository's directory.", type=EXISTING_FOLDER, default=".")


def top_of(root: Path, *marks: str) -> Path:
    """Return the ``root`` that the caller gave, else the top of the repository, or the first directory with a mark."""
    context = click.get_current_context(silent=True)
    if context is None or context.get_parameter_source("root") not in (ParameterSource.DEFAULT, None):
        return root
    names = (".git", *marks)
    return next((at for at in (root, *Path.cwd().parents) if any((at / name).exists() for name in names)), root)


class SteeringArguments(Arguments):
    """Whether a command pushes changes that steer the next agent."""

    allow_steering_files: bool = option("--allow-steering-files", "Push changes to files that steer agents or CI, too.")


class ChangeArguments(SteeringArguments):
    """Which changes a command pushes."""

    max_files: int = option(
        "--max-files N", "Most files that a change may have.", least=1, default=DEFAULT_LIMITS.files
    )
    max_bytes: int = option(
        "--max-bytes N", "Most bytes of new contents that a change may have.", least=1, default=DEFAULT_LIMITS.bytes
    )

    @property
    def limits(self) -> ChangeLimits:
        """The size that a change may have."""
        return ChangeLimits(self.max_files, self.max_bytes)


class RepositoryArguments(Arguments):
    """The repository on GitHub that a command works on; ``github_for`` connects to it."""

    repo: str | None = option("--repo OWNER/NAME", "The repository. Default: `GITHUB_REPOSITORY`, or `origin`.")
    sandbox: str | None = option(
        "--sandbox [DIR]",
        f"Use the embedded local GitHub in DIR ({SANDBOX_DIRECTORY}).",
        is_flag=False,
        flag_value=SANDBOX_DIRECTORY,
    )
    identity: str = option("--identity LOGIN,…", "The app of the token, and other accounts that accord writes as.")
    max_wait: int = option(
        "--max-wait SECONDS", "Longest total wait for rate limits; then exit with 3.", least=0, default=900
    )


class ReadingArguments(RepositoryArguments):
    """The repository that a command only reads."""

    identity: str = ""


class ServerArguments(ReadingArguments):
    """The GitHub of a command that works on many repositories."""

    repo: str | None = None


class RepositoriesArguments(RootArguments, RepositoryArguments):
    """The repositories and the checkout that a command reads; ``connect_all`` connects to them."""

    repo: str | None = None
    repos: tuple[str, ...] = option(
        "--repo OWNER/NAME", "A repository (repeatable). Default: `GITHUB_REPOSITORY`, or `origin`."
    )


def _hosts(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[str, ...]:
    try:
        return tuple(split_hosts(value))
    except WrongUsage as wrong:
        raise click.BadParameter(f"{wrong.message} {wrong.hint}") from None


class PostingArguments(RepositoryArguments):
    """The repository in which a command posts texts; ``posting_to`` connects to it."""

    allowed_hosts: tuple[str, ...] = option(
        "--allowed-hosts HOSTS",
        "Hosts that images in posted texts may come from.",
        multiple=False,
        default="",
        callback=_hosts,
    )
    break_words: tuple[str, ...] = option(
        "--break-words WORDS",
        "Bots' commands to break in posted texts, such as `bors r+`.",
        multiple=False,
        default="",
        callback=lambda _ctx, _param, value: tuple(split_words(value)),
    )
