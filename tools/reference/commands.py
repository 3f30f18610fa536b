"""The reference of the command line: commands, options, exit codes, and the output of the demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import click

from accord.cli.main import VARIABLES, accord
from accord.core import errors
from accord.engine.receipts import EXIT_CODES
from accord.text.markdown import table
from reference.text import WRITTEN_BY, Problem, entry, plain

if TYPE_CHECKING:
    from collections.abc import Iterator


SETS = {
    "posting": ("--repo", "--sandbox", "--identity", "--max-wait", "--allowed-hosts", "--break-words"),
    "GitHub": ("--repo", "--sandbox", "--identity", "--max-wait"),
}
"""Options that commands share, by the name of the set: the longer set first."""

DEBUGGING = (
    "Every command takes `--debug`, or `RUNNER_DEBUG=1`: it logs requests, git commands and decisions on stderr, "
    "redacted."
)


@cache
def cli_reference() -> str:
    """Describe every command and option from click's own objects."""
    context = click.Context(accord, info_name="accord", terminal_width=100)
    with context:
        pieces = ["# Command line", WRITTEN_BY, *help_of(accord)]
        pieces += ["The [exit code](applying.md#exit-codes) says how a command ended.", variables()]
        pieces += common_options(context)
        for name in accord.list_commands(context):
            command = accord.get_command(context, name)
            if command:
                pieces += command_reference(command, click.Context(command, parent=context, info_name=name))
    return "\n\n".join(without_repetition(pieces)) + "\n"


def without_repetition(pieces: list[str]) -> Iterator[str]:
    """Yield the pieces; one of 12 words and more, or an option, that an earlier command has becomes a link to it.

    A paragraph about the facts of a loop is the same as one about those of another loop.
    """
    first: dict[str, str] = {}
    heading = ""
    for piece in pieces:
        if piece.startswith("#"):
            heading = piece.strip("# ")
        if piece.startswith("- "):
            yield "\n".join(without_repeated_options(piece.splitlines(), heading, first))
            continue
        key = re.sub(r"\b[a-z-]+-facts\b", "FACTS", piece)
        if len(piece.split()) < 12 or piece.startswith("|") or first.setdefault(key, heading) == heading:
            yield piece
        else:
            words = "[Common](#common-options): as" if piece.startswith("[") else "As"
            yield f"{words} [{first[key]}](#{first[key].replace(' ', '-')})."


def without_repeated_options(lines: list[str], heading: str, first: dict[str, str]) -> Iterator[str]:
    """Yield the lines of options; those that an earlier command (``first``) has are only named, with a link to it."""
    named: dict[str, list[str]] = {}
    for line in lines:
        if len(line.split()) < 10 or first.setdefault(line, heading) == heading:
            yield line
        else:
            named.setdefault(first[line], []).append(f"`{name_in(line)}`")
    for other, names in named.items():
        yield f"- {', '.join(names)}: as in [{other}](#{other.replace(' ', '-')})"


def variables() -> str:
    """Explain how the environment sets options, and list the other variables that accord reads."""
    others = "\n".join(entry(name, text) for name, text in VARIABLES.items())
    return (
        "## Options from the environment\n\n"
        "Every option has a variable, by its longest spelling: `ACCORD_APPLY_MAX_WAIT=60` is `accord apply --max-wait "
        "60`. The command line wins. Repository and token come from `GITHUB_REPOSITORY` and `GITHUB_TOKEN`, the server "
        "from `GITHUB_API_URL` and `GITHUB_SERVER_URL`, which must name the same one. With an API on this machine, "
        f"such as the sandbox, `GITHUB_SERVER_URL` does not count. These variables belong to no option:\n\n{others}"
    )


def common_options(context: click.Context) -> list[str]:
    """Describe once the options that at least three commands share word for word."""
    sets = " ".join(f"*{name}* is {', '.join(f'`{one}`' for one in names)}." for name, names in SETS.items())
    return [
        "## Common options",
        DEBUGGING,
        f"Each command names those that it takes. {sets}",
        "\n".join(common_lines(context)),
    ]


def names_of(lines: list[str]) -> str:
    """Name the options that lines describe, those of a set by its name."""
    names = [name_in(line) for line in lines]
    for title, members in SETS.items():
        if set(members) <= set(names):
            names = [f"*{title}*", *(name for name in names if name not in members)]
    return ", ".join(name if name.startswith("*") else f"`{name}`" for name in names)


@cache
def common_lines(context: click.Context) -> list[str]:
    """Return the lines of options that at least three commands share, one for a name, the most used ones first."""
    counts = Counter(option_line(option, context) for option in options_of(accord, context))
    lines: dict[str, str] = {}
    for line, uses in counts.most_common():
        if uses >= 3:
            lines.setdefault(name_in(line), line)
    return list(lines.values())


def name_in(line: str) -> str:
    """Return the first spelling of the option that a line describes."""
    return re.split("[` ]", line)[2]


def options_of(command: click.Command, context: click.Context) -> Iterator[click.Option]:
    """Yield the options of a command and of all below it, without those of click's own."""
    yield from (option for option in command.params if isinstance(option, click.Option))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child:
                yield from options_of(child, context)


def command_reference(command: click.Command, context: click.Context) -> Iterator[str]:
    """Describe a command, and all commands of a group."""
    level = len(context.command_path.split())
    yield f"{'#' * level} {context.command_path}"
    yield from help_of(command)
    children = command.commands if isinstance(command, click.Group) else {}
    with context.scope(cleanup=False):
        arguments = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
        if arguments and not children:
            yield f"Arguments: `{' '.join(arguments)}`"
        lines = [option_line(option, context) for option in command.params if isinstance(option, click.Option)]
    common = [line for line in lines if line in common_lines(context.find_root())]
    if own := [line for line in lines if line not in common]:
        yield "\n".join(own)
    if common:
        yield f"[Common](#common-options): {names_of(common)}."
    for name in sorted(children):
        yield from command_reference(children[name], click.Context(children[name], parent=context, info_name=name))


def help_of(command: click.Command) -> list[str]:
    """Return a command's help as paragraphs, without click's sign for lines that must not be wrapped."""
    text = re.sub(r"^\s*(?:\\b|\x08)\s*$", "", command.help or "", flags=re.MULTILINE)
    paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]
    return [paragraph for paragraph in paragraphs if paragraph and not paragraph.startswith("Exit codes:")]


def option_line(option: click.Option, context: click.Context) -> str:
    """Describe an option as an entry of a list: its spellings with what they take, its help, its default."""
    spelled = ", ".join((*option.opts, *option.secondary_opts))
    metavar = option.make_metavar(context)
    if not (option.is_flag or option.count):
        spelled += f" {metavar.replace('INTEGER RANGE', 'N')}"
    meaning = plain(option.help or "").replace("\\|", "|")
    if isinstance(option.type, click.Choice) and "[" not in metavar:
        meaning += f" One of {', '.join(f'`{value}`' for value in option.type.choices)}."
    if option.required:
        meaning += " Required."
    elif option.show_default and option.default is not None:
        meaning += f" Default: `{option.default}`."
    return f"- `{spelled}`: {meaning}"


def exit_codes() -> str:
    """List the exit codes of the error tree, with the outcomes of ``accord apply`` that lead to each."""
    meanings = {"0": "done"}
    for name, code, meaning in re.findall(r"^[├└]── (\w+) +(\d) +(.+)$", errors.__doc__ or "", re.MULTILINE):
        if getattr(errors, name).exit_code != int(code):
            raise Problem(f"The tree of accord.core.errors says {code} for {name}, and its class says otherwise.")
        meanings[code] = meaning
    rows = [
        [
            code,
            plain(meaning),
            ", ".join(f"`{outcome}`" for outcome, exit_code in EXIT_CODES.items() if exit_code == int(code)),
        ]
        for code, meaning in meanings.items()
    ]
    return table(["Code", "Meaning", "Outcomes of `apply`"], rows)


def demo_output() -> str:
    """Run the demo and return its output without the parts that change each time."""
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in [name for name in environment if name.startswith(("GITHUB_", "ACCORD_"))]:
        del environment[name]
    run = subprocess.run(
        [sys.executable, "-P", "-m", "accord", "demo", "--no-stay"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if run.returncode:
        raise Problem(f"accord demo failed: {run.stderr}")
    shown = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", run.stdout.strip())
    shown = re.sub(r"(push-branch +\S+ +)[0-9a-f]{10}$", r"\1COMMIT", shown, flags=re.MULTILINE)
    return f"```text\n{shown}\n```"
