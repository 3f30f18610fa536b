"""An internal error says what to do next, and does not blame the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_check import HOSTILE, assert_harmless

from accord.cli.main import COMMANDS

if TYPE_CHECKING:
    from conftest import Accord

TOKEN = "ghp_" + "aB3" * 12
BROKEN = f"""import click

@click.command()
@click.option("--format")
def broken(format):
    raise KeyError({HOSTILE!r} + "\\n::error::forged " + "x" * 260 + " " + {TOKEN!r})
"""


@pytest.fixture
def broken(accord: Accord) -> Accord:
    """An accord with one more command, which fails with a bug."""
    accord.file("a_broken_command.py", BROKEN)
    accord.monkeypatch.syspath_prepend(str(accord.home))
    accord.monkeypatch.setitem(COMMANDS, "broken", ("a_broken_command", "Break."))
    return accord


def test_an_internal_error_is_reported_as_one(broken: Accord) -> None:
    ended = broken("broken")
    assert (ended.code, ended.out) == (3, "")
    said, hint = ended.err.splitlines()
    assert "Internal error in accord: KeyError" in said
    assert "Something may have been written already." in said
    assert " at cli/main.py:" in said  # where accord went into what is broken
    assert "Run the same command again" in hint
    assert "https://github.com/accord-ci/accord/issues" in hint
    assert_harmless(ended.err)


def test_an_internal_error_prints_no_secret(broken: Accord) -> None:
    broken.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    broken.monkeypatch.setenv("RUNNER_DEBUG", "1")
    broken.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(broken.home / "summary"))
    ended = broken("broken", "--format", "json")
    assert ended.document["outcome"] == "stopped"
    for text in (ended.err, ended.out, (broken.home / "summary").read_text()):
        assert "KeyError" in text
        assert "ghp_" not in text
    assert [line for line in ended.err.splitlines() if line.startswith("::")] == [
        line for line in ended.err.splitlines() if line.startswith("::error title=accord::Internal error in accord")
    ]


def test_the_traceback_is_printed_only_with_runner_debug(broken: Accord) -> None:
    assert "Traceback" not in broken("broken").err
    broken.monkeypatch.setenv("RUNNER_DEBUG", "1")
    assert "Traceback" in broken("broken").err
