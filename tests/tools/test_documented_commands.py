"""The commands in the blocks of the documentation exist, with their options and the values of choices."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest
from markdown_it import MarkdownIt

from accord.cli.main import accord

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "actions").rglob("*.md")])
HEREDOC = re.compile(r"(<<-?\s*'?(\w+)'?[^\n]*\n).*?^\s*\2$", re.MULTILINE | re.DOTALL)


@cache
def shell_blocks(page: Path) -> list[str]:
    parsed = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    return [token.content for token in parsed if token.type == "fence" and token.info.split()[:1] == ["bash"]]


def accord_commands(block: str) -> list[list[str]]:
    """Return the arguments of each `accord` in a block, without here-documents, pipes and redirections."""
    found: list[list[str]] = []
    for line in HEREDOC.sub(r"\1", block).replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        while "accord" in words:
            start = words.index("accord")
            rest = words[start + 1 :]
            end = next((i for i, word in enumerate(rest) if set(word) <= set("();<>|&")), len(rest))
            if start == 0 or words[start - 1] in {"uvx", "./dev", "&&", ";", "|", "("} or "=" in words[start - 1]:
                found.append(rest[:end])
            words = rest[end:]
    return found


def assert_arguments_exist(arguments: list[str]) -> None:
    """Raise click's error, or an AssertionError, where the command line does not take the arguments."""
    command: click.Command = accord
    context = click.Context(accord, info_name="accord")
    while isinstance(command, click.Group):
        _, arguments, _ = command.make_parser(context).parse_args(list(arguments))
        if not arguments:
            return
        child = command.get_command(context, arguments[0])
        assert child is not None, f"accord has no command {arguments[0]}"
        command, context, arguments = child, click.Context(child, parent=context), arguments[1:]
    values, left, _ = command.make_parser(context).parse_args(list(arguments))
    assert left == [], f"{context.command_path} does not take {left}"
    for parameter in command.params:
        value = values.get(parameter.name)
        if isinstance(parameter.type, click.Choice) and isinstance(value, str) and not value.isupper():
            parameter.type.convert(value, parameter, context)


def test_documented_commands_exist() -> None:
    commands = [(page, args) for page in PAGES for block in shell_blocks(page) for args in accord_commands(block)]
    assert len(commands) > 100
    wrong = []
    for page, arguments in commands:
        try:
            assert_arguments_exist(arguments)
        except (click.UsageError, AssertionError) as error:
            wrong.append(f"{page.relative_to(ROOT)}: accord {shlex.join(arguments)}: {error}")
    assert wrong == []


@pytest.mark.parametrize(
    "wrong", [["nope"], ["check", "--nope"], ["check", "--format", "nope"], ["status", "surplus", "surplus"]]
)
def test_a_wrong_command_is_noticed(wrong: list[str]) -> None:
    with pytest.raises((click.UsageError, AssertionError)):
        assert_arguments_exist(wrong)


@pytest.mark.slow
def test_blocks_of_bash_can_be_parsed() -> None:
    wrong = []
    for page in PAGES:
        script = "\n".join(f"( {re.sub(r'<[a-z]+>', 'X', block)}\n)" for block in shell_blocks(page))
        done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
        wrong += [f"{page.relative_to(ROOT)}: {done.stderr}"] if done.returncode else []
    assert wrong == []


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    home = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="getting-started/"' in home
    examples = (tmp_path / "examples" / "index.html").read_text(encoding="utf-8")
    assert "https://github.com/accord-ci/accord/tree/main/examples/repositories/python-library" in examples
