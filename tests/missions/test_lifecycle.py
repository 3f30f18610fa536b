"""The moves of a work package: every edge, what it needs, and what planning artifacts are spared."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from accord.core.errors import BrokenContract
from accord.missions.models import STATUSES
from accord.missions.move import WORK_PACKAGE, MoveFacts, plan_move

ALL = MoveFacts(actor="ada", reason="why", feedback="what", review_ref="PR 1")
NONE = MoveFacts(actor="ada")

EDGES = {
    "planned": {"claimed", "blocked", "canceled"},
    "claimed": {"in_progress", "blocked", "canceled"},
    "in_progress": {"for_review", "approved", "planned", "blocked", "canceled"},
    "for_review": {"in_review", "blocked", "canceled"},
    "in_review": {"approved", "done", "in_progress", "planned", "blocked", "canceled"},
    "approved": {"done", "in_progress", "planned", "blocked", "canceled"},
    "blocked": {"in_progress", "canceled"},
    "done": set(),
    "canceled": set(),
}
THROUGH = {("planned", "in_progress"): "claimed"} | {
    ("for_review", target): "in_review" for target in ("approved", "done", "in_progress", "planned")
}


@pytest.mark.parametrize(("source", "target"), [pair for pair in product(STATUSES, STATUSES) if pair[0] != pair[1]])
def test_exactly_the_edges_of_the_rules_are_legal_and_the_others_name_them(source: Any, target: Any) -> None:
    if target in EDGES[source]:
        assert plan_move(source, target, ALL) == ((source, target),)
    elif (source, target) in THROUGH:
        between = THROUGH[source, target]
        assert plan_move(source, target, ALL) == ((source, between), (between, target))
    else:
        with pytest.raises(BrokenContract) as broken:
            plan_move(source, target, ALL)
        assert all(legal in broken.value.message for legal in EDGES[source])


def test_the_table_draws_itself_with_its_ends() -> None:
    drawn = WORK_PACKAGE.mermaid()
    assert "[*] --> planned" in drawn
    assert "done --> [*]" in drawn
    assert set(STATUSES) == set(WORK_PACKAGE.states)


@pytest.mark.parametrize(
    ("source", "target", "lacking", "said", "fixed"),
    [
        ("planned", "claimed", MoveFacts(), "--actor", NONE),
        ("planned", "in_progress", replace(NONE, waits_for=("WP02",)), "WP02, whose review has not passed", NONE),
        ("claimed", "in_progress", replace(NONE, workspace_problem="no lane"), "no lane", NONE),
        ("blocked", "in_progress", replace(NONE, waits_for=("WP02",)), "WP02, whose review has not passed", NONE),
        ("blocked", "in_progress", replace(NONE, workspace_problem="no lane"), "no lane", NONE),
        ("in_progress", "for_review", replace(ALL, open_subtasks=("T001",)), "T001", NONE),
        ("in_progress", "for_review", replace(NONE, evidence_problem="no commit"), "no commit", NONE),
        ("in_progress", "approved", NONE, "evidence", replace(NONE, review_ref="PR 1")),
        ("in_progress", "planned", NONE, "--reason", replace(NONE, reason="later")),
        ("in_review", "in_progress", NONE, "--feedback", replace(NONE, feedback="fix it")),
        ("for_review", "in_progress", NONE, "--feedback", replace(NONE, review_ref="PR 1")),
        ("approved", "in_progress", replace(ALL, review_ref=""), "--review-ref", replace(NONE, review_ref="PR 1")),
        ("approved", "planned", replace(ALL, review_ref=""), "--review-ref", replace(NONE, review_ref="PR 1")),
        ("approved", "done", replace(ALL, merge_problem="not merged"), "--override-reason", NONE),
        ("for_review", "done", replace(ALL, merge_problem="not merged"), "--override-reason", NONE),
    ],
)
def test_a_guard_names_the_fix_and_accepts_it(
    source: Any, target: Any, lacking: MoveFacts, said: str, fixed: MoveFacts
) -> None:
    with pytest.raises(BrokenContract, match=said):
        plan_move(source, target, lacking)
    assert plan_move(source, target, fixed)


def test_evidence_may_replace_a_commit() -> None:
    assert plan_move("in_progress", "for_review", replace(ALL, evidence_problem="no commit"))


@pytest.mark.parametrize(("source", "target"), [pair for pair in product(STATUSES, STATUSES) if pair[0] != pair[1]])
def test_force_takes_any_edge_for_an_actor_with_a_reason_in_one_step(source: Any, target: Any) -> None:
    facts = replace(ALL, waits_for=("WP02",), workspace_problem="x", open_subtasks=("T1",), evidence_problem="x")
    assert plan_move(source, target, facts, is_forced=True) == ((source, target),)
    for lacking in (replace(facts, reason=""), replace(facts, actor=" ")):
        with pytest.raises(BrokenContract):
            plan_move(source, target, lacking, is_forced=True)


@pytest.mark.parametrize("source", [status for status in STATUSES if status != "done"])
def test_only_an_override_with_a_reason_replaces_the_merge(source: Any) -> None:
    facts = replace(ALL, merge_problem="The branch is not merged.")
    with pytest.raises(BrokenContract, match="not merged"):
        plan_move(source, "done", facts, is_forced=True)
    assert plan_move(source, "done", replace(facts, override_reason="squashed"), is_forced=True)


@pytest.mark.parametrize("target", ["claimed", "blocked", "canceled"])
def test_a_move_needs_an_actor(target: Any) -> None:
    with pytest.raises(BrokenContract, match="--actor"):
        plan_move("planned", target, replace(ALL, actor=" "))


def test_an_override_does_not_replace_the_other_guards() -> None:
    with pytest.raises(BrokenContract):
        plan_move("in_progress", "done", replace(ALL, override_reason="squashed"))


@pytest.mark.parametrize("status", STATUSES)
def test_a_move_to_the_current_status_has_no_steps(status: Any) -> None:
    assert plan_move(status, status, replace(NONE, holder="ada")) == ()


@pytest.mark.parametrize("status", ["claimed", "in_review"])
def test_claimed_work_cannot_be_claimed_again(status: Any) -> None:
    with pytest.raises(BrokenContract, match="bob has claimed it"):
        plan_move(status, status, replace(NONE, holder="bob"))
