"""A review exactly once, whatever happens to a request or to the process: the end is that of a clean run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.exactly_once import Clean, Work
from support.reviews import FINDING, approve, comment, needs_changes, post, review_stage, snapshot, warn

from accord.github.limits import BODY_CHARS
from accord.results.operations import Outcome
from accord_sandbox.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def review_work(stage: Stage) -> Work:
    """An older review of ours, an item that is in review again, and a review that uses every operation."""
    stage.server.reset()
    post(stage, OLD)
    labels = ["task:implement", "status:review", "priority:low"]
    stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=labels)
    return Work(stage, stage.keep(), lambda: post(stage, RESULT), lambda: snapshot(stage))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Work]:
    with review_stage(tmp_path_factory.mktemp("faults"), rate_limits=None) as stage:
        yield review_work(stage)


@pytest.fixture(scope="module")
def clean(work: Work) -> Clean:
    clean = work.clean()
    assert (clean.receipt.reads, clean.receipt.writes) == (READS, WRITES)
    return clean


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_at_any_write_costs_no_text_and_duplicates_none(work: Work, clean: Clean, kind: str) -> None:
    stage, (expected, count, _) = work.stage, clean
    for nth in range(READS + 1, count + 1):
        work.begin()
        stage.server.faults.add(Fault(kind, nth=nth, seconds=30))
        first = work.apply()
        stage.server.faults.clear()
        assert first.outcome is Outcome.APPLIED, (kind, nth, first.error)
        assert work.state() == expected, (kind, nth)
        again = work.apply()
        assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0), (kind, nth)


@pytest.mark.parametrize("kind", ["lost-before", "lost-after"])
def test_when_github_stays_away_a_second_run_finishes_the_first(work: Work, clean: Clean, kind: str) -> None:
    stage, (expected, count, _) = work.stage, clean
    for nth in range(1 if kind == "lost-before" else READS + 1, count + 1):
        work.begin()
        stage.server.faults.add(Fault(kind, nth=nth, times=1000))
        first = work.apply()
        stage.server.faults.clear()
        second = work.apply()
        assert first.outcome is Outcome.STOPPED, (kind, nth)
        assert second.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), (kind, nth, second.error)
        assert work.state() == expected, (kind, nth)


@pytest.mark.parametrize("posted", range(1, 5))
def test_a_head_that_moves_between_two_runs_changes_nothing_of_what_was_begun(
    work: Work, clean: Clean, posted: int
) -> None:
    """The second run finishes the review of the first commit, though the files of the pull request look different."""
    stage, expected = work.stage, clean.state
    work.begin()
    stage.server.faults.add(Fault("lost-before", method="POST", nth=1 + posted, times=1000))
    work.apply()
    stage.server.faults.clear()
    path = f"/repos/{stage.repository}/contents/src/long.txt"
    file = stage.get(path, ref="accord/1")
    stage.send("PUT", path, message="Fix", content="TW9yZQo=", branch="accord/1", sha=file["sha"])
    receipt = work.apply()
    assert receipt.exit_code == 0, receipt.error
    assert "already-reviewed" in {finding.code for finding in receipt.findings}
    texts = [row[-1] for row in expected["comments"]]
    assert [row[-1] for row in snapshot(stage)["comments"]] == texts
    assert snapshot(stage)["reviews"] == expected["reviews"]
    assert snapshot(stage)["conversation"] == expected["conversation"]
