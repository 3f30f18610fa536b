"""The next actor by the item, its pull request and the checks: a table of the pure decision."""

from dataclasses import replace

import pytest

from accord.engine.owner import ItemState, OwnerReason, PullState, is_over, owner_of, reason_of_checks

OPEN = PullState(5, is_mergeable=True)
APPROVED = replace(OPEN, review="approved")
KEPT = replace(OPEN, has_agent=True)
REVIEW, IN_PROGRESS = ItemState(True, "review"), ItemState(True, "in-progress")


@pytest.mark.parametrize(
    ("item", "pull", "checks", "owner"),
    [
        (ItemState(True, "pending"), None, None, "person: not-ready"),
        (ItemState(True, "ready"), None, None, "agent: ready"),
        (ItemState(True, "ready", open_blockers=1), None, None, "blockers: blocked"),
        (ItemState(True, "pending", is_refinement=True, open_blockers=1), None, None, "person: question"),
        (ItemState(True), None, None, "person: status-unclear"),
        (ItemState(True, "blocked"), None, None, "person: decision"),
        (ItemState(True, "blocked"), OPEN, None, "person: decision"),
        (ItemState(True, "needs-refinement"), OPEN, None, "agent: review-due"),
        (ItemState(False), OPEN, None, "person: item-closed"),
        (ItemState(False), replace(OPEN, state="merged"), None, "no one: done"),
        (IN_PROGRESS, None, None, "agent: in-progress"),
        (IN_PROGRESS, replace(OPEN, state="merged"), None, "agent: in-progress"),
        (IN_PROGRESS, replace(OPEN, state="closed"), None, "person: pull-closed"),
        (replace(IN_PROGRESS, is_running=True), None, None, "agent: in-progress"),
        (replace(IN_PROGRESS, is_running=False), None, None, "person: no-pull"),
        (replace(IN_PROGRESS, is_running=False), OPEN, None, "agent: review-due"),
        (replace(IN_PROGRESS, is_running=False), replace(OPEN, state="merged"), None, "person: reopened"),
        (REVIEW, None, None, "person: no-pull"),
        (REVIEW, replace(OPEN, closes=False), None, "person: not-closing"),
        (REVIEW, replace(OPEN, state="merged"), None, "person: reopened"),
        (REVIEW, replace(OPEN, state="merged", closes=False), None, "person: merged-elsewhere"),
        (REVIEW, replace(OPEN, state="merged", is_main=False), None, "person: merged-elsewhere"),
        (REVIEW, replace(OPEN, state="merged", is_main=None), None, "person: no-pull"),
        (REVIEW, replace(OPEN, state="merged", is_main=None, closes=False), None, "person: merged-elsewhere"),
        (REVIEW, APPROVED, None, "person: merge"),
        (REVIEW, replace(APPROVED, is_mergeable=None), None, "github: merge-unknown"),
        (REVIEW, replace(APPROVED, is_draft=True), None, "person: draft"),
        (REVIEW, replace(APPROVED, is_locked=True), None, "person: merge"),
        (REVIEW, replace(OPEN, is_locked=True), None, "person: locked"),
        (REVIEW, KEPT, None, "agent: agent-works"),
        (REVIEW, replace(KEPT, is_draft=True), None, "agent: draft"),
        (REVIEW, OPEN, "failing", "person: failing"),
        (REVIEW, KEPT, "failing", "agent: failing"),
        (REVIEW, KEPT, "inconclusive", "person: inconclusive"),
        (REVIEW, KEPT, "held", "person: held"),
        (REVIEW, APPROVED, "checks-pending", "github: checks-pending"),
        (None, OPEN, None, "agent: review-due"),
        (None, replace(OPEN, state="closed"), None, "person: pull-closed"),
        (None, replace(OPEN, state="merged"), None, "no one: merged"),
    ],
)
def test_every_item_has_an_owner(
    item: ItemState | None, pull: PullState | None, checks: OwnerReason | None, owner: str
) -> None:
    found = owner_of(item, pull, checks)
    assert f"{found.who}: {found.reason}" == owner
    assert found.pull == (5 if pull else 0)
    assert pull is None or is_over(pull) == (pull.state != "open")


@pytest.mark.parametrize(
    ("held", "pending", "failing", "inconclusive", "reason"),
    [
        ("a", "b", "c", "d", "held"),
        ("", "b", "c", "d", "checks-pending"),
        ("", "", "c", "d", "failing"),
        ("", "", "", "d", "inconclusive"),
        ("", "", "", "", None),
    ],
)
def test_checks_decide_by_the_worst_of_them(
    held: str, pending: str, failing: str, inconclusive: str, reason: OwnerReason | None
) -> None:
    assert reason_of_checks(held, pending, failing, inconclusive) == reason
