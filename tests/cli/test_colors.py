"""Colors, and completion in shells."""

import pytest
from support.commands import Accord

from accord.core.environment import wants_color


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, None), ({"NO_COLOR": ""}, None), ({"NO_COLOR": "0"}, False), ({"TERM": "dumb"}, False),
        ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, None), ({"FORCE_COLOR": ""}, None),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False), ({"TERM": "xterm", "FORCE_COLOR": "3"}, True),
    ],
)  # fmt: skip
def test_colors_follow_the_usual_variables(environment: dict[str, str], wanted: bool | None) -> None:
    assert wants_color(environment) is wanted


@pytest.mark.parametrize(("name", "is_colored"), [("FORCE_COLOR", True), ("NO_COLOR", False)])
def test_messages_have_colors_where_they_are_wanted(accord: Accord, name: str, is_colored: bool) -> None:
    accord.monkeypatch.setenv(name, "1")
    accord.file("plan.json", "{}")
    ended = accord("check", "--kind", "planner-result", "plan.json")
    assert ("\x1b[" in ended.out) is is_colored
    assert ("\x1b[" in accord("check", "absent.json").err) is is_colored


@pytest.mark.parametrize(
    ("words", "expected"),
    [("accord sess", "session"), ("accord session ad", "advance"), ("accord apply --dr", "--dry-run")],
)
def test_commands_and_options_are_completed(accord: Accord, words: str, expected: str) -> None:
    environment = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_ACCORD_COMPLETE": "bash_complete"}
    for name, value in environment.items():
        accord.monkeypatch.setenv(name, value)
    assert accord().out.split() == [f"plain,{expected}"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_the_shell(accord: Accord, shell: str) -> None:
    accord.monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert f"_ACCORD_COMPLETE={shell}_complete" in accord("completion").out
    assert f"_ACCORD_COMPLETE={shell}_complete" in accord("completion", shell).out


@pytest.mark.parametrize(("arguments", "problem"), [((), "No shell given."), (("tcsh",), "tcsh")])
def test_an_unknown_shell_is_refused(accord: Accord, arguments: tuple[str, ...], problem: str) -> None:
    accord.monkeypatch.setenv("SHELL", "")
    ended = accord("completion", *arguments)
    assert (ended.code, problem in ended.err) == (2, True)
