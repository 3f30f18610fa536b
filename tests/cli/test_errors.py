"""How a command ends with an error: one document for programs, a hint for people, and no blame for our own bugs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import Accord
from test_check import HOSTILE, assert_harmless

from accord.cli.main import COMMANDS

TOKEN = "ghp_" + "aB3" * 12
FAILING = f"""from __future__ import annotations

from accord.cli.options import FormatArguments, command, option
from accord.cli.output import print_json

class FailingArguments(FormatArguments):
    late: bool = option("--late", "Fail late.")

@command(FailingArguments)
def fails(given):
    if given.late:
        print_json({{"ok": True}})
    raise OSError(28, "No space left on device", "summary.md")

@command(FormatArguments)
def broken(given):
    raise KeyError({HOSTILE!r} + "\\n::error::forged " + "x" * 260 + " " + {TOKEN!r})

@command(FormatArguments)
def wraps(given):
    import signal

    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        raise OSError(39, "Directory not empty", "objects")
"""


@pytest.fixture
def failing(accord: Accord) -> Accord:
    """An accord with three more commands: an error of the operating system, a bug, and a signal, then an error."""
    accord.file("failing_commands.py", FAILING)
    accord.monkeypatch.syspath_prepend(str(accord.home))
    for name in ("fails", "broken", "wraps"):
        accord.monkeypatch.setitem(COMMANDS, name, ("failing_commands", "Fail."))
    return accord


WRONG = ["run --bogus", "schema nope", "doctor --root /nonexist", "nonsense", "items nonsense", "apply --max-wait soon"]


@pytest.mark.parametrize("words", [*WRONG, "check"])
@pytest.mark.parametrize("spelling", [("--format", "json"), ("--format=json",)])
def test_wrong_usage_is_one_document(accord: Accord, words: str, spelling: tuple[str, ...]) -> None:
    ended = accord(*words.split(), *spelling)
    assert ended.code == 2
    assert ended.document["outcome"] == "usage"
    assert ended.document["error"]["message"] in ended.err
    assert set(ended.document["error"]) == {"message", "hint"}


@pytest.mark.parametrize("words", ["keepalive run --pull", "apply result.json --work-item"])
def test_an_empty_number_of_a_script_does_not_mean_every_pull_request(accord: Accord, words: str) -> None:
    assert accord(*words.split(), "").code == 2


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ACCORD_APPLY_MAX_WAIT", "abc", "apply result.json"),
        ("ACCORD_APPLY_FORMAT", "xml", "apply result.json"),
        ("ACCORD_STATUS_MAX_WAIT", "-1", "status"),
        ("ACCORD_CHECK_KIND", "nonsense", "check result.json"),
    ],
)
def test_a_wrong_variable_is_blamed_by_its_name(accord: Accord, variable: str, value: str, words: str) -> None:
    accord.monkeypatch.setenv(variable, value)
    ended = accord(*words.split())
    assert (ended.code, f"'{variable}'" in ended.err) == (2, True)
    option = f"--{variable.rpartition('_')[2].lower() if 'WAIT' not in variable else 'max-wait'}"
    assert f"'{option}'" in accord(*words.split(), option, value).err, "what is given in words wins"


@pytest.mark.parametrize(
    "words",
    [
        "board --sandbox s --static FILE/x",
        "board --sandbox s --static FILE/x/y",
        "sandbox show --dir FILE/x",
        "status --sandbox FILE/x",
    ],
)
def test_a_file_in_the_way_of_a_folder_is_wrong_usage(accord: Accord, words: str) -> None:
    (accord.home / "FILE").write_text("")
    ended = accord(*words.split())
    assert (ended.code, "FILE" in ended.err) == (2, True), ended.err


@pytest.mark.parametrize("spelling", [(), ("--format", "json")])
def test_broken_settings_are_shown_with_all_findings_and_a_hint(accord: Accord, spelling: tuple[str, ...]) -> None:
    accord.file("plan.yml", "plan:\n  parent: x\n  milestonee: y\n  assign: 3\n")
    accord.file("result.json", '{"role": "planner", "create": [], "close": [], "update": []}')
    ended = accord("apply", "result.json", "--plan-settings", "plan.yml", "--sandbox", "s", *spelling)
    assert ended.code == 1
    for words in (
        "plan.yml:2: `parent`",
        "plan.yml:3: The key `milestonee`",
        "plan.yml:4: `assign`",
        "Correct the file",
    ):
        assert words in ended.err
    if spelling:
        assert (len(ended.document["findings"]), bool(ended.document["error"]["hint"])) == (3, True)


def test_the_environment_can_ask_for_json_after_wrong_usage(accord: Accord) -> None:
    accord.monkeypatch.setenv("ACCORD_DOCTOR_FORMAT", "json")
    assert accord("doctor", "--bogus").document["outcome"] == "usage"
    (accord.home / ".github").mkdir()
    assert accord("doctor", "--root", str(accord.home)).document["ok"] is True
    assert accord("doctor", "--bogus", "--format", "text").out == ""
    assert accord("check", "--bogus").out == ""


def test_an_error_of_the_operating_system_is_one_document(failing: Accord) -> None:
    document = failing.document("fails", code=3)
    assert document["outcome"] == "stopped"
    assert document["error"]["message"] == "Cannot use summary.md: No space left on device."
    assert failing("fails").out == ""


def test_an_error_after_the_document_adds_no_second_one(failing: Accord) -> None:
    ended = failing("fails", "--late", "--format", "json")
    assert (ended.code, ended.document) == (3, {"ok": True})
    assert "No space left" in ended.err


def test_a_signal_that_another_error_follows_is_an_interruption(failing: Accord) -> None:
    ended = failing("wraps")
    assert (ended.code, "interrupted by a signal" in ended.err, "objects" in ended.err) == (3, True, False)


def test_an_internal_error_is_reported_as_one(failing: Accord) -> None:
    ended = failing("broken")
    assert (ended.code, ended.out) == (3, "")
    said, hint = ended.err.splitlines()
    assert "Internal error in accord: KeyError" in said
    assert "Something may have been written already." in said
    assert " at cli/options.py:" in said  # where accord went into what is broken
    assert "Run the same command again" in hint
    assert "https://github.com/accord-ci/accord/issues" in hint
    assert "Traceback" not in ended.err
    assert_harmless(ended.err)


def test_an_internal_error_prints_a_traceback_only_for_debugging_and_never_a_secret(failing: Accord) -> None:
    step = failing.in_step()
    failing.monkeypatch.setenv("RUNNER_DEBUG", "1")
    ended = failing("broken", "--format", "json")
    assert ended.document["outcome"] == "stopped"
    assert "Traceback" in ended.err
    for text in (ended.err, ended.out, step.summary):
        assert "KeyError" in text
        assert "ghp_" not in text
    commands = [line for line in ended.err.splitlines() if line.startswith("::")]
    assert all(line.startswith("::error title=accord broken::Internal error in accord") for line in commands)


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
        (("check", "--role", "Codr", "plan.json"), "`Coder`"),
        (("items", "move", "3", "--to", "in-progres"), "`in-progress`"),
        (("doctor", "--format", "jsn"), "`json`"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_nearest(accord: Accord, arguments: tuple[str, ...], word: str) -> None:
    ended = accord(*arguments)
    assert (ended.code, f"Did you mean {word}?" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("mission next slug --root work", "Write it before `next`: `accord mission --root DIR next`."),
        ("board issue --port 1", "Run `accord board issue --help`."),
        ("items list --root work", "Run `accord items list --help`."),
    ],
)
def test_an_option_of_a_group_is_answered_with_its_place(accord: Accord, words: str, hint: str) -> None:
    ended = accord(*words.split())
    assert (ended.code, hint in ended.err) == (2, True)


@pytest.mark.parametrize(
    "command", [[sys.executable, "-P", "-m", "accord"], [str(Path(sys.executable).with_name("accord"))]]
)
def test_an_interrupt_while_accord_is_imported_ends_without_a_traceback(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "click.py").write_text('import time\nprint("importing", flush=True)\ntime.sleep(60)\n')
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen([*command, "--help"], text=True, env=environment, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (130, "")
