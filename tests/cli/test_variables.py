"""Options from the environment: the variable of each, and a warning of one that accord does not know."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.commands import Accord

from accord.cli.main import VARIABLES, unknown_variables
from accord.cli.main import accord as root
from accord.cli.options import FlagOption

ROOT = Path(__file__).parents[2]
CONTEXT = click.Context(root, info_name="accord", auto_envvar_prefix="ACCORD")


def contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from contexts(click.Context(command, context, name))


def options() -> Iterator[tuple[str, FlagOption, click.Context]]:
    """Yield every option with its documented variable: ACCORD, the command, and the longest spelling."""
    for context in contexts(CONTEXT):
        for option in context.command.params:
            if isinstance(option, FlagOption):
                words = f"{context.command_path} {max(option.opts, key=len).removeprefix('--')}"
                yield re.sub("[ -]", "_", words).upper(), option, context


def test_the_variable_of_every_option_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = []
    for name, option, context in options():
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            if option.resolve_envvar_value(context) != "1":
                unread.append(name)
    assert unread == []


def test_the_variable_of_an_argument_that_takes_several_has_one_on_each_line() -> None:
    arguments = [
        argument
        for context in contexts(CONTEXT)
        for argument in context.command.params
        if isinstance(argument, click.Argument) and argument.envvar and argument.nargs == -1
    ]
    assert arguments
    assert [each.name for each in arguments if each.type.split_envvar_value("a/b\nc:d") != ["a/b", "c:d"]] == []


def test_an_option_that_is_given_several_times_has_one_on_each_line_that_is_not_blank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ACCORD_APPLY_PROTECT", "a\n\nb\n")
    (found,) = [(option, context) for name, option, context in options() if name == "ACCORD_APPLY_PROTECT"]
    assert list(found[0].value_from_envvar(found[1])) == ["a", "b"]


@pytest.mark.parametrize("name", ["BOGUS", "DEMO_STAY", "DISPATCH_BASE", "COMPLETION_INSTALL"])
def test_a_variable_that_is_like_no_other_has_no_suggestion(name: str) -> None:
    assert list(unknown_variables({f"ACCORD_{name}": "1"}, CONTEXT)) == [(f"ACCORD_{name}", "")]


def test_every_option_is_declared_with_its_variable_and_no_variable_means_two() -> None:
    known = {name: option for name, option, _ in options()}
    plain = [
        f"{context.command_path} {option.opts[-1]}"
        for context in contexts(CONTEXT)
        for option in context.command.params
        if isinstance(option, click.Option) and not isinstance(option, FlagOption) and "--version" not in option.opts
    ]
    assert plain == []
    assert known.keys() & VARIABLES.keys() == set()
    assert len(known) == sum(1 for _ in options())


def test_a_command_reads_its_variables(accord: Accord) -> None:
    accord.monkeypatch.setenv("ACCORD_LABELS_LIST_FORMAT", "json")
    assert accord("labels", "list").document["outcome"] == "listed"


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("ACCORD_APPLY_REPOS", "Did you mean `ACCORD_APPLY_REPO`?"),
        ("ACCORD_APLY_REPO", "Did you mean `ACCORD_APPLY_REPO`?"),
        ("ACCORD_BOT_COMMENTS_RUN_PUL", "Did you mean `ACCORD_BOT_COMMENTS_RUN_PULL`?"),
        ("ACCORD_LOGINS", "Did you mean `ACCORD_LOGIN`?"),
        ("ACCORD_XYZZY_QQ_4711", ""),
    ],
)
def test_an_unknown_variable_gets_a_warning(accord: Accord, name: str, suggestion: str) -> None:
    accord.monkeypatch.setenv(name, "hunter2")
    accord.monkeypatch.setenv("ACCORD_APPLY_REPO", "octo/web")
    shown = accord("labels", "list").err
    assert shown == f"warning: accord has no option for the variable `{name}`. {suggestion}".rstrip() + "\n"


def test_of_a_long_name_no_part_is_shown(accord: Accord) -> None:
    accord.monkeypatch.setenv("ACCORD_" + "correct-horse-" * 8, "1")
    assert accord("labels", "list").err == "warning: accord has no option for the variable `(119 characters)`.\n"


def test_every_name_in_the_code_and_the_kit_is_known() -> None:
    folders = [ROOT / "src", ROOT / "actions", ROOT / "templates", ROOT / ".github/workflows", ROOT / "action.yml"]
    files = [path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*.*"))]
    texts = [path.read_text() for path in files if path.suffix in (".py", ".yml", ".sh", ".md")]
    of_tests = re.compile(r"ACCORD_(?:FUZZ_\w+|WALKS|NIGHTLY|SHUFFLE)")
    names = {name for text in texts for name in re.findall(r"(?<![\w])ACCORD_[A-Z][A-Z_]*[A-Z]\b", text)}
    names = {name for name in names if not of_tests.fullmatch(name)}
    assert list(unknown_variables(dict.fromkeys(names, "x"), CONTEXT)) == []
