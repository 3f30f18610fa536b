"""One writer at a time: who counts as the holder of a lease, and what a run does that has lost it or gets none."""

import os
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from support.plans import plan, task
from support.stage import NO_LEASE, START, Stage, staged

from accord.engine.lease import HOLD, is_held, this_process
from accord.engine.operations import LedgerEntry
from accord.engine.receipts import Outcome, Receipt
from accord.github.client import GitHub
from accord.github.models import Forbidden
from accord_sandbox.planting import INSTALLATION_TOKEN

RESULT = plan(task("a"), task("b", "a"), task("c"))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path) as stage:
        stage.commit()
        yield stage


def ended_process() -> str:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return this_process().replace(str(os.getpid()), str(process.pid), 1)


def test_a_killed_process_that_nothing_has_waited_for_has_ended() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        holder = this_process().replace(str(os.getpid()), str(process.pid), 1)
        assert is_held(holder, START, START)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_held(holder, START, START)


@pytest.mark.parametrize(
    ("holder", "age", "expected"),
    [
        ("4 another-machine", timedelta(), True),
        ("4 another-machine", HOLD - timedelta(seconds=1), True),
        ("4 another-machine", HOLD, False),
        ("4 another-machine", -2 * HOLD, False),
        (this_process(), timedelta(), True),
        (this_process().replace(str(os.getpid()), "9" * 30, 1), timedelta(), True),
        (ended_process(), timedelta(), False),
        ("", timedelta(), False),
    ],
    ids=["elsewhere", "a last sign", "no sign", "in the future", "this one", "no number", "ended", "free"],
)
def test_a_holder_counts_while_it_gives_signs_and_runs(holder: str, age: timedelta, expected: bool) -> None:
    assert is_held(holder, START - age, START) == expected


def test_a_run_that_slept_for_long_leaves_the_rest_to_the_one_that_took_over(stage: Stage) -> None:
    others: list[Receipt] = []

    def apply_between(entry: LedgerEntry, ended: int, total: int) -> None:
        if not others:
            others.append(stage.apply(RESULT))

    first = stage.apply(RESULT, on_entry=apply_between)
    assert (first.outcome, first.error and first.error.hint) == (Outcome.STOPPED, "Run the same command again.")
    assert [other.outcome for other in others] == [Outcome.APPLIED]
    assert sorted(issue["title"] for issue in stage.issues()) == ["Do a", "Do b", "Do c"]
    assert any("another run of accord" in reason for _, reason in stage.waits), "nothing says what is waited for"


def test_a_waiting_run_keeps_to_the_longest_wait_that_is_allowed(stage: Stage) -> None:
    def apply_between(entry: LedgerEntry, ended: int, total: int) -> None:
        if not others:
            others.append(stage.apply(RESULT, adapter=stage.adapter(max_wait=20)))

    others: list[Receipt] = []
    assert stage.apply(RESULT, on_entry=apply_between).outcome is Outcome.APPLIED
    assert others[0].outcome is Outcome.STOPPED
    assert "--max-wait" in others[0].error.hint


def test_without_permission_for_contents_a_result_is_applied_without_a_lease(stage: Stage) -> None:
    issues_only = '{"issues": "write"}'
    with stage.server.database.writing() as connection:
        connection.execute("UPDATE tokens SET permissions = ? WHERE token = ?", (issues_only, INSTALLATION_TOKEN))
    receipt = stage.apply(RESULT, adapter=stage.adapter(token=INSTALLATION_TOKEN))
    assert (receipt.outcome, receipt.writes) == (Outcome.APPLIED, NO_LEASE + 4)


def test_a_token_that_may_not_read_contents_needs_no_lease(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise Forbidden("Resource not accessible by integration")

    monkeypatch.setattr(GitHub, "ref", refuse)
    receipt = stage.apply(RESULT)
    assert (receipt.outcome, receipt.writes) == (Outcome.APPLIED, 4)
