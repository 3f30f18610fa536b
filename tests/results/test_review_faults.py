"""A review exactly once, whatever happens to a request or to the process: the end is that of a clean run."""

from __future__ import annotations

import json
import multiprocessing
import signal
from typing import TYPE_CHECKING, Any

import pytest
from support.reviews import FINDING, PULL, approve, comment, needs_changes, post, review_stage, snapshot, warn
from test_kill import Assassin, run_accord

from accord.github.limits import BODY_CHARS
from accord.results.receipts import Outcome
from accord.sandbox.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.stage import Stage

OLD = approve(summary="Looked fine at first.")
RESULT = needs_changes(
    comment("src/long.txt", 3),
    comment("src/long.txt", 15),
    comment("new name.txt"),
    comment("no/such.txt", 1, FINDING + "-" * BODY_CHARS),
    warn("untouched.txt", 1),
)
READS = 6
WRITES = 1 + 2 + 1 + 1 + 1
pytestmark = pytest.mark.matrix

FAULTS = ("lost-before", "lost-after", "error-500", "error-500-after", "secondary-403", "truncated")
"""One for each way on from a request; test_faults.py meets the planner with every kind there is."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with review_stage(tmp_path_factory.mktemp("faults"), rate_limits=None) as stage:
        yield stage


def seed(stage: Stage) -> None:
    """Begin again with an older review of ours, and an item that is in review again."""
    stage.server.reset()
    stage.server.faults.clear()
    post(stage, OLD)
    labels = ["task:implement", "status:review", "priority:low"]
    stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=labels)
    stage.server.requests.clear()


@pytest.fixture(scope="module")
def clean(stage: Stage) -> tuple[dict[str, Any], int]:
    seed(stage)
    receipt = post(stage, RESULT)
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    assert receipt.writes == WRITES
    assert receipt.reads == READS
    return snapshot(stage), READS + WRITES


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_at_any_write_costs_no_text_and_duplicates_none(
    stage: Stage, clean: tuple[dict[str, Any], int], kind: str
) -> None:
    expected, count = clean
    for nth in range(READS + 1, count + 1):
        seed(stage)
        stage.server.faults.add(Fault(kind, nth=nth, seconds=30))
        first = post(stage, RESULT)
        stage.server.faults.clear()
        assert first.outcome is Outcome.APPLIED, (kind, nth, first.error)
        assert snapshot(stage) == expected, (kind, nth)
        again = post(stage, RESULT)
        assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0), (kind, nth)


@pytest.mark.parametrize("kind", ["lost-before", "lost-after"])
def test_when_github_stays_away_a_second_run_finishes_the_first(
    stage: Stage, clean: tuple[dict[str, Any], int], kind: str
) -> None:
    expected, count = clean
    for nth in range(1 if kind == "lost-before" else READS + 1, count + 1):
        seed(stage)
        stage.server.faults.add(Fault(kind, nth=nth, times=1000))
        first = post(stage, RESULT)
        stage.server.faults.clear()
        second = post(stage, RESULT)
        assert first.outcome is Outcome.STOPPED, (kind, nth)
        assert second.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), (kind, nth, second.error)
        assert snapshot(stage) == expected, (kind, nth)
        assert post(stage, RESULT).writes == 0


def test_a_killed_run_is_finished_by_the_next_one(
    stage: Stage, clean: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    expected, count = clean
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["accord.cli.apply", "accord.github.adapter", "github", "accord.results.review_run"])
    file = tmp_path / "review.json"
    file.write_text(json.dumps(RESULT))
    environment = {
        "GITHUB_API_URL": stage.server.url,
        "GITHUB_TOKEN": stage.server.token,
        "GITHUB_REPOSITORY": stage.repository,
    }
    for nth in range(READS, count + 1):
        seed(stage)
        assassin = Assassin(nth)
        command = ["apply", str(file), "--pull", str(PULL)]
        process = context.Process(target=run_accord, args=(command, environment))
        assassin.process = process
        stage.server.observers.append(assassin)
        process.start()
        process.join(30)
        stage.server.observers.remove(assassin)
        assert process.exitcode == -signal.SIGKILL, (nth, process.exitcode)
        receipt = post(stage, RESULT)
        assert receipt.exit_code == 0, (nth, receipt.error)
        assert snapshot(stage) == expected, nth
        assert post(stage, RESULT).writes == 0, nth


@pytest.mark.parametrize("posted", range(1, 5))
def test_a_head_that_moves_between_two_runs_changes_nothing_of_what_was_begun(
    stage: Stage, clean: tuple[dict[str, Any], int], posted: int
) -> None:
    """The second run finishes the review of the first commit, though the files of the pull request look different."""
    expected, _ = clean
    seed(stage)
    stage.server.faults.add(Fault("lost-before", method="POST", nth=1 + posted, times=1000))
    post(stage, RESULT)
    stage.server.faults.clear()
    path = f"/repos/{stage.repository}/contents/src/long.txt"
    file = stage.get(path, ref="accord/1")
    stage.send("PUT", path, message="Mend", content="TW9yZQo=", branch="accord/1", sha=file["sha"])
    receipt = post(stage, RESULT)
    assert receipt.exit_code == 0, receipt.error
    assert "already-reviewed" in {finding.code for finding in receipt.findings}
    texts = [row[-1] for row in expected["comments"]]
    assert [row[-1] for row in snapshot(stage)["comments"]] == texts
    assert snapshot(stage)["reviews"] == expected["reviews"]
    assert snapshot(stage)["conversation"] == expected["conversation"]
