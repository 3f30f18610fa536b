"""The moves of a work package: every edge, what it needs, and what planning artifacts are spared."""

from itertools import product
from typing import Any

import pytest

from accord.core.errors import BrokenContract
from accord.missions.models import STATUSES
from accord.missions.move import WORK_PACKAGE, MoveFacts, MoveRequest, plan_move

ALL = {"actor": "ada", "reason": "why", "feedback": "what", "review_ref": "PR 1"}
NONE = {"actor": "ada"}


def plan(source: Any, target: Any, given: dict[str, Any], **force: bool) -> Any:
    """Plan a move, with fields of the request and of the facts."""
    fields = {name: given[name] for name in given if name in MoveRequest.__dataclass_fields__}
    request = MoveRequest("WP01", target, **{"actor": "", **fields, **force})
    return plan_move(source, MoveFacts(request, **{name: given[name] for name in given if name not in fields}))


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
        assert plan(source, target, ALL) == ((source, target),)
    elif (source, target) in THROUGH:
        between = THROUGH[source, target]
        assert plan(source, target, ALL) == ((source, between), (between, target))
    else:
        with pytest.raises(BrokenContract) as broken:
            plan(source, target, ALL)
        assert all(legal in str(broken.value) for legal in EDGES[source])


def test_the_table_draws_itself_with_its_ends() -> None:
    drawn = WORK_PACKAGE.mermaid()
    assert "[*] --> planned" in drawn
    assert "done --> [*]" in drawn
    assert set(STATUSES) == set(WORK_PACKAGE.states)


@pytest.mark.parametrize(
    ("source", "target", "lacking", "said", "fixed"),
    [
        ("planned", "claimed", {}, "--actor", NONE),
        ("planned", "in_progress", dict(NONE, waits_for=("WP02",)), "WP02, whose review has not passed", NONE),
        ("claimed", "in_progress", dict(NONE, workspace_problem="no lane"), "no lane", NONE),
        ("blocked", "in_progress", dict(NONE, waits_for=("WP02",)), "WP02, whose review has not passed", NONE),
        ("blocked", "in_progress", dict(NONE, workspace_problem="no lane"), "no lane", NONE),
        ("in_progress", "for_review", dict(ALL, open_subtasks=("T001",)), "T001", NONE),
        ("in_progress", "for_review", dict(NONE, evidence_problem="no commit"), "no commit", NONE),
        ("in_progress", "approved", NONE, "evidence", dict(NONE, review_ref="PR 1")),
        ("in_progress", "planned", NONE, "--reason", dict(NONE, reason="later")),
        ("in_review", "in_progress", NONE, "--feedback", dict(NONE, feedback="fix it")),
        ("for_review", "in_progress", NONE, "--feedback", dict(NONE, review_ref="PR 1")),
        ("approved", "in_progress", dict(ALL, review_ref=""), "--review-ref", dict(NONE, review_ref="PR 1")),
        ("approved", "planned", dict(ALL, review_ref=""), "--review-ref", dict(NONE, review_ref="PR 1")),
        ("approved", "done", dict(ALL, merge_problem="not merged"), "--override-reason", NONE),
        ("for_review", "done", dict(ALL, merge_problem="not merged"), "--override-reason", NONE),
    ],
)
def test_a_guard_names_the_fix_and_accepts_it(source: Any, target: Any, lacking: Any, said: str, fixed: Any) -> None:
    with pytest.raises(BrokenContract, match=said):
        plan(source, target, lacking)
    assert plan(source, target, fixed)


def test_a_move_needs_an_actor_and_evidence_or_an_override_replaces_only_its_own_guard() -> None:
    for target in ("claimed", "blocked", "canceled"):
        with pytest.raises(BrokenContract, match="--actor"):
            plan("planned", target, dict(ALL, actor=" "))
    assert plan("in_progress", "for_review", dict(ALL, evidence_problem="no commit"))
    with pytest.raises(BrokenContract):
        plan("in_progress", "done", dict(ALL, override_reason="squashed"))


@pytest.mark.parametrize(("source", "target"), [pair for pair in product(STATUSES, STATUSES) if pair[0] != pair[1]])
def test_force_takes_any_edge_for_an_actor_with_a_reason_in_one_step(source: Any, target: Any) -> None:
    facts = dict(ALL, waits_for=("WP02",), workspace_problem="x", open_subtasks=("T1",), evidence_problem="x")
    assert plan(source, target, facts, is_forced=True) == ((source, target),)
    for lacking in (dict(facts, reason=""), dict(facts, actor=" ")):
        with pytest.raises(BrokenContract):
            plan(source, target, lacking, is_forced=True)


@pytest.mark.parametrize("source", [status for status in STATUSES if status != "done"])
def test_only_an_override_with_a_reason_replaces_the_merge(source: Any) -> None:
    facts = dict(ALL, merge_problem="The branch is not merged.")
    with pytest.raises(BrokenContract, match="not merged"):
        plan(source, "done", facts, is_forced=True)
    assert plan(source, "done", dict(facts, override_reason="squashed"), is_forced=True)


@pytest.mark.parametrize("status", STATUSES)
def test_a_move_to_the_current_status_has_no_steps_and_claims_no_work_of_another(status: Any) -> None:
    assert plan(status, status, dict(NONE, holder="ada")) == ()
    if status in ("claimed", "in_review"):
        with pytest.raises(BrokenContract, match="bob has claimed it"):
            plan(status, status, dict(NONE, holder="bob"))
