"""``--debug``: a maintainer with a user's report sees what ran, and no secret."""

import re

import click
import pytest
from support.commands import Accord
from test_variables import CONTEXT, contexts

from accord.cli.debug import start_log, stop_log
from accord.cli.options import DEBUG
from accord.core.log import log
from accord.results.run import example_folder

LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{3} (?:main|github|git|operation|lease|result|loop|start|runner|analysis): \S.*")
TOKEN = "ghp_" + "aB3" * 12


def test_every_command_has_it() -> None:
    lacking = [
        context.command_path for context in contexts(CONTEXT) if DEBUG not in context.command.get_params(context)
    ]
    assert lacking == []


@pytest.mark.parametrize("how", ["option", "runner", "variable", "nothing"])
def test_an_option_a_variable_and_the_runner_start_the_log(accord: Accord, how: str) -> None:
    if how in ("runner", "variable"):
        accord.monkeypatch.setenv("RUNNER_DEBUG" if how == "runner" else "ACCORD_DEBUG", "1")
    lines = accord("labels", "list", *(["--debug"] if how == "option" else [])).err.splitlines()
    first = r".* main: accord \S+, Python \S+: .*"
    assert [bool(re.fullmatch(first, line)) for line in lines[:1]] == ([] if how == "nothing" else [True])


def test_git_commands_are_lines_and_secrets_are_not(accord: Accord) -> None:
    accord.monkeypatch.setenv("DEPLOY_TOKEN", TOKEN)
    ended = accord("patch", "--base", TOKEN, "--debug")
    assert " git: git " in ended.err
    assert "aB3aB3" not in ended.err


@pytest.mark.parametrize("before", ["", "x" * 985])
def test_a_secret_that_is_quoted_or_cut_is_not_shown(
    before: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "we're a long 'secret' with quotes")
    start_log()
    try:
        log("git", "%s: exit %d", ("git", before + "we're a long 'secret' with quotes"), 0)
    finally:
        stop_log()
    shown = capsys.readouterr().err.splitlines()[-1]
    assert shown.count(before) == 1 or not before
    assert "we" not in shown


def test_requests_operations_and_outcomes_are_lines(accord: Accord) -> None:
    ended = accord("apply", example_folder("contacts") / "planner-result.json", "--sandbox", "--debug")
    assert ended.code == 0, ended.err
    lines = ended.err.splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert any(": POST /repos/accord/sandbox/issues: 201" in line for line in lines)
    found = re.findall(r" (operation|result): (.*)", ended.err)
    assert ("operation", "create-work-item csv-writer: done") in found
    assert re.fullmatch(r"planner-result [\w-]+: applied, findings \[.*\]", found[-1][1])


def test_the_name_of_the_variable_is_known() -> None:
    assert isinstance(DEBUG, click.Option)
    assert DEBUG.variables(CONTEXT) == ["ACCORD_DEBUG"]
