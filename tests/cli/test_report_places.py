"""Parts of a report that cannot be written: they decide nothing about what the command did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.plans import plan, task

if TYPE_CHECKING:
    from support.commands import Accord

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")


@pytest.fixture
def applying(accord: Accord) -> list[object]:
    """The arguments that apply a plan on a sandbox."""
    return ["apply", accord.file("plan.json", plan(task("a"))), "--sandbox", accord.home / "box"]


@pytest.fixture
def checking(accord: Accord) -> list[object]:
    """The arguments that check a plan."""
    return ["check", accord.file("plan.json", plan(task("a")))]


PLACES = pytest.mark.parametrize(
    ("place", "form"), [("gone/file", "text"), ("folder", "json"), pytest.param("/dev/full", "json", marks=needs_full)]
)
"""Paths that cannot be written, below the home of a command or of the machine."""


@PLACES
def test_a_summary_that_cannot_be_written_is_a_warning(
    accord: Accord, checking: list[object], place: str, form: str
) -> None:
    step = accord.in_step()
    (accord.home / "folder").mkdir()
    accord.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(accord.home / place))
    ended = accord(*checking, "--format", form)
    assert (ended.code, step.outputs["ok"]) == (0, "true"), ended.err
    assert "::warning title=accord::Cannot write the summary of this step to" in ended.err
    assert form == "text" or ended.document["ok"] is True


@PLACES
def test_outputs_that_cannot_be_written_end_with_3_after_the_receipt(
    accord: Accord, applying: list[object], place: str, form: str
) -> None:
    step, path = accord.in_step(), accord.home / place
    (accord.home / "folder").mkdir()
    accord.monkeypatch.setenv("GITHUB_OUTPUT", str(path))
    ended = accord(*applying, "--format", form)
    assert ended.code == 3
    assert f"Cannot write the outputs of this step to {path}: " in ended.err
    assert "The result was applied" in ended.err
    assert "### accord apply: applied" in step.summary
    assert ended.document["outcome"] == "applied" if form == "json" else "applied to" in ended.out


def test_the_code_of_the_command_stays_where_its_report_fails_too(accord: Accord) -> None:
    accord.in_step()
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        accord.monkeypatch.setenv(name, str(accord.home / "gone/file"))
    for arguments, code in ((["apply", accord.file("broken.json", "{}")], 1), (["apply", "x", "--run-key", "#"], 2)):
        ended = accord(*arguments, "--format", "json")
        assert (ended.code, "error" in ended.document or ended.document["findings"] != []) == (code, True), ended.err
        assert "Cannot write the outputs of this step to" in ended.err


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ("apply gone.json", "usage"),
        ("apply plan.json --repo octo/tools", "usage"),
        ("check gone.json", "usage"),
        ("labels check --file broken.yml --sandbox box", "rejected"),
    ],
)
def test_a_command_that_ends_before_its_report_leaves_its_outcome(accord: Accord, arguments: str, outcome: str) -> None:
    accord.file("plan.json", plan(task("a")))
    accord.file("broken.yml", "labels: 1\n")
    step = accord.in_step()
    ended = accord(*arguments.split())
    assert (ended.code, step.outputs) == (1 if outcome == "rejected" else 2, {"outcome": outcome, "ok": "false"})


def test_a_receipt_that_cannot_be_written_leaves_its_output_empty(accord: Accord, applying: list[object]) -> None:
    step, receipt = accord.in_step(), accord.home / "box"  # which the sandbox makes a folder
    ended = accord(*applying, "--receipt", receipt)
    assert (ended.code, step.outputs["receipt"], step.outputs["outcome"]) == (3, "", "applied")
    assert f"Cannot write the receipt to {receipt}: " in ended.err


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "code"), [("closed", 3), pytest.param("full", 3, marks=needs_full), ("left", 0)])
def test_stdout_that_cannot_be_written_ends_with_3_unless_its_reader_has_left(
    accord: Accord, applying: list[object], kind: str, code: int
) -> None:
    step, receipt = accord.in_step(), accord.home / "receipt.json"
    ended = _with_stdout(accord, kind, [*applying, "--format", "json", "--receipt", receipt])
    assert ended.returncode == code, ended.stderr
    assert ("The result was applied" in ended.stderr) == (kind != "left"), ended.stderr
    assert (step.outputs["outcome"], "accord apply: applied" in step.summary) == ("applied", True)
    assert receipt.is_file()
    assert _with_stdout(accord, kind, ["--help"]).returncode == code


@pytest.mark.slow
@needs_full
def test_full_stderr_changes_nothing(accord: Accord, checking: list[object]) -> None:
    step = accord.in_step()
    accord.monkeypatch.setenv("ACCORD_UNKNOWN", "to be warned of")
    with FULL.open("w") as full, accord.start(*checking, stderr=full) as started:
        assert started.communicate(timeout=600)[0].splitlines()[-1].endswith(": ok (planner-result)")
    assert (started.returncode, step.outputs["ok"], "✅ ok" in step.summary) == (0, "true", True)


def _with_stdout(accord: Accord, kind: str, arguments: list[object]) -> subprocess.CompletedProcess[str]:
    """Run with a stdout that is closed, full, or a pipe whose reader has left."""
    ways = {"closed": ">&-", "full": f">{FULL}", "left": ""}
    words = [sys.executable, "-P", "-m", "accord", *map(str, arguments)]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            ["bash", "-c", f'"$@" {ways[kind]}', "bash", *words],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            cwd=accord.home,
            timeout=600,
            check=False,
        )
    finally:
        os.close(writer)
