"""The help of every command: it fits the terminal, reads well, and names one concept by one option."""

from collections.abc import Iterator
from functools import cache

import click

from accord.cli.main import COMMANDS, HEADINGS, accord
from accord.cli.options import why_read_only, writes

COLUMNS = 80
OTHER_NAMES = {
    "--agent-id": "--actor",
    "--as": "--role",
    "--directory": "--root",
    "--pr": "--pull",
    "--pr-number": "--pull",
    "--pull-request": "--pull",
    "--repository": "--repo",
    "--write": "--dry-run",
}
"""Names that no option has, with the name that the concept has."""


def walk(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from walk(child, click.Context(child, context, name, terminal_width=COLUMNS))


@cache
def tree() -> dict[str, tuple[click.Command, click.Context]]:
    """Every command and group, by its words after ``accord``."""
    root = click.Context(accord, info_name="accord", terminal_width=COLUMNS)
    return {context.command_path.partition(" ")[2]: (command, context) for command, context in walk(accord, root)}


def options_of(name: str) -> list[click.Option]:
    return [option for option in tree()[name][0].params if isinstance(option, click.Option)]


def test_help_fits_the_terminal_and_truncates_nothing() -> None:
    for command, context in tree().values():
        lines = command.get_help(context).splitlines()
        assert [line for line in lines if len(line) > COLUMNS] == []
        assert [line for line in lines if line.endswith("...") and not line.startswith("Usage:")] == []


def test_a_summary_is_short() -> None:
    for name, (command, _) in tree().items():
        assert 0 < len(command.get_short_help_str(limit=1000)) < (60 if name else 75), name


def test_the_help_of_an_option_is_a_short_phrase() -> None:
    texts = {(name, option.opts[-1]): option.help or "" for name in tree() for option in options_of(name)}
    assert {option: text for option, text in texts.items() if not 0 < len(text) < 70} == {}
    assert {option: text for option, text in texts.items() if not text[0].isupper()} == {}


def test_one_concept_has_one_name() -> None:
    for name, (_, context) in tree().items():
        names = {spelling for option in options_of(name) for spelling in option.opts}
        if name == "board":
            names.remove("--write")  # a server that takes answers; the command itself writes nothing
        assert {spelling: OTHER_NAMES[spelling] for spelling in names & OTHER_NAMES.keys()} == {}, name
        if "--dir" in names:
            assert name.partition(" ")[0] in {"sandbox", "demo"}, "--dir is the sandbox's own folder"
        for option in options_of(name):
            if "--repo" in option.opts:
                assert option.make_metavar(context) == "OWNER/NAME", name


def writes_files_only(name: str) -> bool:
    return any(option.name == "shows_only" for option in options_of(name))


def test_each_command_that_writes_a_file_of_its_caller_has_a_dry_run() -> None:
    for name in tree():
        named = {spelling for option in options_of(name) for spelling in option.opts}
        assert "--dry-run" in named or not named & {"--into", "--out", "--static", "--bundle", "--results"}, name


def test_only_a_command_with_a_dry_run_may_write_to_github() -> None:
    assert {name for name in tree() if writes_files_only(name)} == {"artifact", "board", "patch", "repos list"}
    for name, (command, context) in tree().items():
        has_dry_run = any("--dry-run" in option.opts for option in options_of(name)) and not writes_files_only(name)
        for given in (False, True):
            context.params["dry_run"] = given
            with context.scope(cleanup=False):
                assert bool(why_read_only()) is not (has_dry_run and not given), name
        assert writes(command) is has_dry_run, name


def test_every_command_is_listed_once_under_a_heading() -> None:
    assert sum(map(len, HEADINGS.values())) == len(COMMANDS)
    shown = tree()[""][0].get_help(tree()[""][1])
    for heading, commands in HEADINGS.items():
        listed = shown.partition(f"\n{heading}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in listed.splitlines()] == list(commands)


def test_the_summary_in_the_list_is_the_commands_own() -> None:
    for name, (_, summary) in COMMANDS.items():
        own = tree()[name][0].get_short_help_str(limit=COLUMNS)
        assert own.removesuffix(".") == summary.removesuffix("."), name
