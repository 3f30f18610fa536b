"""A program that asked for JSON gets one document on stdout, however a command ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from accord.cli.main import COMMANDS

if TYPE_CHECKING:
    from conftest import Accord

FAILS = """import click
from accord.cli.options import format_option
from accord.cli.output import print_json

@click.command()
@click.option("--late", is_flag=True)
@format_option
def fails(late, output_format):
    if late:
        print_json({"ok": True})
    raise OSError(28, "No space left on device", "summary.md")
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--bogus"),
        ("schema", "nope"),
        ("doctor", "--root", "/nonexist"),
        ("nonsense",),
        ("items", "nonsense"),
        ("apply", "--max-wait", "soon"),
        ("check",),
    ],
)
@pytest.mark.parametrize("spelling", [("--format", "json"), ("--format=json",)])
def test_wrong_usage_is_one_document(accord: Accord, arguments: tuple[str, ...], spelling: tuple[str, ...]) -> None:
    ended = accord(*arguments, *spelling)
    assert ended.code == 2
    assert ended.document["outcome"] == "usage"
    assert ended.document["error"]["message"] in ended.err
    assert set(ended.document["error"]) == {"message", "hint"}


def test_the_environment_can_ask_for_json_after_wrong_usage(accord: Accord) -> None:
    accord.monkeypatch.setenv("ACCORD_DOCTOR_OUTPUT_FORMAT", "json")
    assert accord("doctor", "--bogus").document["outcome"] == "usage"
    assert accord("doctor", "--root", str(accord.home)).document["ok"] is True
    assert accord("doctor", "--bogus", "--format", "text").out == ""
    assert accord("check", "--bogus").out == ""


@pytest.fixture
def fails(accord: Accord) -> Accord:
    """An accord with one more command, which ends with an error of the operating system."""
    accord.file("a_failing_command.py", FAILS)
    accord.monkeypatch.syspath_prepend(str(accord.home))
    accord.monkeypatch.setitem(COMMANDS, "fails", ("a_failing_command", "Fail."))
    return accord


def test_an_error_of_the_operating_system_is_one_document(fails: Accord) -> None:
    ended = fails("fails", "--format", "json")
    assert (ended.code, ended.document["outcome"]) == (3, "stopped")
    assert ended.document["error"]["message"] == "Cannot use summary.md: No space left on device."
    assert fails("fails").out == ""


def test_an_error_after_the_document_adds_no_second_one(fails: Accord) -> None:
    ended = fails("fails", "--late", "--format", "json")
    assert (ended.code, ended.document) == (3, {"ok": True})
    assert "No space left" in ended.err


@pytest.mark.parametrize("arguments", [(), ("items",)])
def test_a_group_without_a_command_shows_its_help(accord: Accord, arguments: tuple[str, ...]) -> None:
    ended = accord(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ("\nCommands:\n" if arguments else "\nEveryday:\n") in ended.err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("aply",), "'apply'"),
        (("session", "anser"), "'answer'"),
        (("apply", "plan.json", "--dry-rum"), "'--dry-run'"),
        (("check", "--kind", "planer-result", "plan.json"), "`planner-result`"),
        (("items", "move", "3", "--to", "in-progres"), "`in-progress`"),
        (("doctor", "--format", "jsn"), "`json`"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_nearest_one(
    accord: Accord, arguments: tuple[str, ...], word: str
) -> None:
    ended = accord(*arguments)
    assert (ended.code, f"Did you mean {word}?" in ended.err) == (2, True)
