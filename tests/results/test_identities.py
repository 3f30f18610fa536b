"""One account writes and another reviews: its verdicts count on GitHub, and each finds the work of both."""

from typing import Any

import pytest
from support.implementations import (
    REVIEWER,
    REVIEWER_TOKEN,
    WRITER,
    WRITER_TOKEN,
    apply,
    completed,
    implement_stage,
)
from support.reviews import approve, comment, needs_changes, post, reviews
from support.stage import Stage, codes

from accord.engine.receipts import Outcome
from accord_sandbox.planting import INSTALLATION_TOKEN

pytestmark = pytest.mark.slow

STAGE = implement_stage
PULL = 2
CHANGES = needs_changes(comment("src/a.py", 1))
JOB = "github-actions[bot]"
AS_JOB = {"token": INSTALLATION_TOKEN, "identity": f",{WRITER}"}
AS_REVIEWER = {"token": REVIEWER_TOKEN, "identity": f"{REVIEWER},{WRITER}"}
AS_WRITER = {"token": WRITER_TOKEN, "identity": WRITER}


@pytest.fixture
def written(stage: Stage, patch: str) -> Stage:
    """The stage with a pull request that the writer opened."""
    receipt = apply(stage, completed(patch), **AS_WRITER)
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    assert stage.get(f"/repos/{stage.repository}/pulls/{PULL}")["user"]["login"] == WRITER
    return stage


def review_states(stage: Stage) -> list[tuple[str, str]]:
    return [(review["user"]["login"], review["state"]) for review in reviews(stage, PULL)]


@pytest.mark.parametrize(
    ("access", "login"),
    [(AS_JOB, JOB), (AS_REVIEWER, REVIEWER), (AS_WRITER, WRITER)],
    ids=["job", "reviewer", "writer"],
)
@pytest.mark.parametrize(
    ("result", "state"),
    [(approve(), "APPROVED"), pytest.param(CHANGES, "CHANGES_REQUESTED", marks=pytest.mark.matrix)],
)
def test_a_review_is_a_verdict_unless_the_writer_posts_it(
    written: Stage, access: dict[str, str], login: str, result: dict[str, Any], state: str
) -> None:
    receipt = post(written, result, pull=PULL, adapter=written.adapter(**access))
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    is_own = login == WRITER
    assert review_states(written) == [(login, "COMMENTED" if is_own else state)]
    assert ("verdict-as-comment" in codes(receipt)) == is_own
    again = post(written, result, pull=PULL, adapter=written.adapter(**access))
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)


def test_the_writer_finds_its_pull_request_again_after_another_account_reviewed_it(written: Stage, patch: str) -> None:
    post(written, approve(), pull=PULL, adapter=written.adapter(**AS_REVIEWER))
    again = apply(written, completed(patch), **AS_WRITER)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0), again.error


def test_a_reviewer_that_took_over_replaces_the_review_of_the_account_before(written: Stage) -> None:
    before = post(written, CHANGES, pull=PULL, adapter=written.adapter(**AS_JOB))
    assert before.outcome is Outcome.APPLIED
    later = {"token": REVIEWER_TOKEN, "identity": f"{REVIEWER},{WRITER},{JOB}"}
    receipt = post(written, approve(), pull=PULL, adapter=written.adapter(**later))
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    assert review_states(written) == [(JOB, "DISMISSED"), (REVIEWER, "APPROVED")]


def test_a_pull_request_of_an_account_before_is_found_if_its_login_is_listed(stage: Stage, patch: str) -> None:
    assert apply(stage, completed(patch), token=INSTALLATION_TOKEN).outcome is Outcome.APPLIED
    both = {"token": WRITER_TOKEN, "identity": f"{WRITER},{JOB}"}
    again = apply(stage, completed(patch), **both)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0), again.error
