"""Options and types that several commands share, so that one concept has one name everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from accord.core.errors import WrongUsage
from accord.core.suggest import did_you_mean
from accord.git.sizes import DEFAULT_LIMITS
from accord.text.posting import split_hosts, split_words

SANDBOX_DIRECTORY = ".accord/sandbox"
FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)
EXISTING_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


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

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice. Raises BadParameter with a suggestion."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            suggestion = did_you_mean(str(value), map(str, self.choices))
            self.fail(f"{error.message} {suggestion}".rstrip(), param, ctx)


class Number(click.ParamType[int]):
    """The number of an issue or pull request, as ``42`` or ``#42``."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number. Raises BadParameter for anything else."""
        match = re.fullmatch(r"#?([1-9][0-9]{0,9})", str(value))
        if match is None:
            self.fail(f"`{str(value)[:80]}` is not a number. Use `42` or `#42`.", param, ctx)
        return int(match[1])


class Lines(click.types.StringParamType):
    """A text that may hold blanks: an environment variable holds several, one per line."""

    envvar_list_splitter = "\n"


def together(*options: Decorator) -> Decorator:
    """Combine the options of a command into one decorator; help shows them in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


steering_option = click.option(
    "--allow-steering-files", is_flag=True, help="Push changes to files that steer agents or CI, too."
)

limit_options = together(
    click.option(
        "--max-files",
        type=click.IntRange(min=1),
        default=DEFAULT_LIMITS.files,
        show_default=True,
        metavar="N",
        help="Most files that a change may have.",
    ),
    click.option(
        "--max-bytes",
        type=click.IntRange(min=1),
        default=DEFAULT_LIMITS.bytes,
        show_default=True,
        metavar="N",
        help="Most bytes of new contents that a change may have.",
    ),
)

rerun_option = click.option(
    "--rerun-held-runs", is_flag=True, help="Start held workflow runs again, with an app's token."
)

format_option = click.option(
    "--format",
    "output_format",
    type=Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or one JSON document on stdout.",
)
findings_format_option = click.option(
    "--format",
    "output_format",
    type=Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="Text, one JSON document, or SARIF for code scanning.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would happen, and write nothing.")
"""Declares a command that writes: the connection of any other command, and that of a dry run, only reads."""


def writes(command: click.Command) -> bool:
    """Return whether a command is declared as one that writes."""
    return any(param.name == "dry_run" for param in command.params)


def why_read_only() -> str:
    """Return why the command that runs must not write to GitHub; empty where it may."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    if not writes(context.command):
        return f"Declare `{context.command_path}` as a command that writes, with `dry_run_option`."
    return "This is a dry run." if context.params["dry_run"] else ""


root_option = click.option(
    "--root",
    type=EXISTING_FOLDER,
    default=".",
    show_default=True,
    help="The repository's directory.",
)


def pull_option(meaning: str, *, required: bool = False) -> Decorator:
    """Return the option ``--pull`` with its meaning for a command."""
    return click.option("--pull", type=Number(), required=required, metavar="N", help=meaning)


def work_item_option(meaning: str, name: str = "work_item") -> Decorator:
    """Return the option ``--work-item`` with its meaning for a command."""
    return click.option("--work-item", name, type=Number(), metavar="N", help=meaning)


_repo = click.option("--repo", metavar="OWNER/NAME", help="The repository. Default: `GITHUB_REPOSITORY`, or `origin`.")
_repos = click.option(
    "--repo",
    "repos",
    multiple=True,
    metavar="OWNER/NAME",
    help="A repository (repeatable). Default: `GITHUB_REPOSITORY`, or `origin`.",
)
_sandbox = click.option(
    "--sandbox",
    is_flag=False,
    flag_value=SANDBOX_DIRECTORY,
    metavar="[DIR]",
    help=f"Use the embedded local GitHub in DIR ({SANDBOX_DIRECTORY}).",
)
_identity = click.option(
    "--identity",
    default="",
    metavar="LOGIN,…",
    help="The app of the token, and other accounts that accord writes as.",
)


def _hosts(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[str, ...]:
    try:
        return tuple(split_hosts(value))
    except WrongUsage as wrong:
        raise click.BadParameter(f"{wrong.message} {wrong.hint}") from None


_allowed_hosts = click.option(
    "--allowed-hosts",
    default="",
    metavar="HOSTS",
    callback=_hosts,
    help="Hosts that images in posted texts may come from.",
)
_broken_words = click.option(
    "--break-words",
    default="",
    metavar="WORDS",
    callback=lambda _ctx, _param, value: tuple(split_words(value)),
    help="Bots' commands to break in posted texts, such as `bors r+`.",
)
_max_wait = click.option(
    "--max-wait",
    type=click.IntRange(min=0),
    default=900,
    show_default=True,
    metavar="SECONDS",
    help="Longest total wait for rate limits; then exit with 3.",
)

repository_options = together(_repo, _sandbox, _identity, _max_wait)
"""Options of a command that writes to one repository."""

repositories_options = together(_repos, _sandbox, _identity, _max_wait)
"""Options of a command that reads one or more repositories; ``reading_snapshots`` takes them."""

posting_options = together(_repo, _sandbox, _identity, _allowed_hosts, _broken_words, _max_wait)
"""Options of a command that posts texts in one repository; ``posting_to`` takes them."""

reading_options = together(_repo, _sandbox, _max_wait)
"""Options of a command that only reads one repository."""

server_options = together(_sandbox, _max_wait)
"""Options of a command that works on many repositories."""
