"""The moves of a work package: every edge, what it needs, and what planning artifacts are spared."""

from itertools import product
from typing import Any

import pytest
from support.growth import seconds_for

from accord.core.errors import BrokenContract
from accord.missions.lifecycle import (
    WORK_PACKAGE,
    LaneProblem,
    MoveFacts,
    MoveRequest,
    People,
    blockers_of,
    needs_of,
    plan_move,
    steps_between,
)
from accord.missions.models import STATUSES

ALL = {"actor": "ada", "reason": "why", "feedback": "what", "review_ref": "PR 1", "is_approved": True}
NONE = {"actor": "ada", "is_approved": True}
OWN = {"actor": "ada", "people": People(implementers=frozenset({"ada"})), "review_ref": "PR 1"}
BOB = People(worker="bob")
LOST = LaneProblem("It is lost.", "git branch")


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
    "in_review": {"approved", "in_progress", "planned", "blocked", "canceled"},
    "approved": {"done", "in_progress", "planned", "blocked", "canceled"},
    "blocked": {"in_progress", "canceled"},
    "done": set(),
    "canceled": set(),
}
THROUGH = {("planned", "in_progress"): "claimed"} | {
    ("for_review", target): "in_review" for target in ("approved", "in_progress", "planned")
}


PAIRS: list[tuple[Any, Any]] = [pair for pair in product(STATUSES, STATUSES) if pair[0] != pair[1]]


def test_exactly_the_edges_of_the_rules_are_legal_and_the_others_name_them() -> None:
    for source, target in PAIRS:
        if target in EDGES[source]:
            assert plan(source, target, ALL) == ((source, target),)
        elif (source, target) in THROUGH:
            between = THROUGH[source, target]
            assert plan(source, target, ALL) == ((source, between), (between, target))
        else:
            with pytest.raises(BrokenContract) as broken:
                plan(source, target, ALL)
            assert all(legal in str(broken.value) for legal in EDGES[source]), (source, target)


@pytest.mark.parametrize(
    ("source", "target", "lacking", "said", "fixed"),
    [
        ("planned", "claimed", {}, "--actor", NONE),
        ("planned", "in_progress", dict(NONE, waits_for=("WP02",)), "WP02, whose review has not passed", NONE),
        ("claimed", "in_progress", dict(NONE, workspace_problem="no lane"), "no lane", NONE),
        ("blocked", "in_progress", dict(NONE, waits_for=("WP02",)), "WP02, whose review has not passed", NONE),
        ("blocked", "in_progress", dict(NONE, workspace_problem="no lane"), "no lane", NONE),
        ("claimed", "in_progress", dict(NONE, lane_problem=LOST), "It is lost", NONE),
        (
            "claimed",
            "in_progress",
            dict(NONE, people=BOB),
            "bob has claimed it",
            dict(NONE, people=BOB, actor="\uff22OB"),
        ),
        ("planned", "claimed", dict(NONE, people=BOB), "bob has claimed it", dict(NONE, people=BOB, actor="Bob")),
        ("blocked", "in_progress", dict(NONE, people=BOB), "bob has claimed it", dict(NONE, people=BOB, actor="Bob")),
        *(
            (source, target, dict(ALL, lane_problem=LOST), "It is lost", dict(NONE, review_ref="PR 1"))
            for source, target in (
                ("in_progress", "for_review"),
                ("in_progress", "approved"),
                ("for_review", "in_review"),
                ("for_review", "approved"),
                ("in_review", "approved"),
            )
        ),
        ("in_progress", "for_review", dict(ALL, workspace_problem="no lane"), "no lane", NONE),
        ("in_progress", "for_review", dict(ALL, open_subtasks=("T001",)), "T001", NONE),
        ("in_progress", "for_review", dict(NONE, evidence_problem="no commit"), "no commit", NONE),
        ("in_progress", "approved", NONE, "evidence", dict(NONE, review_ref="PR 1")),
        ("in_progress", "planned", NONE, "--reason", dict(NONE, reason="later")),
        ("in_review", "in_progress", NONE, "--feedback", dict(NONE, feedback="fix it")),
        ("for_review", "in_progress", NONE, "--feedback", dict(NONE, review_ref="PR 1")),
        ("approved", "in_progress", dict(ALL, review_ref=""), "--review-ref", dict(NONE, review_ref="PR 1")),
        ("approved", "planned", dict(ALL, review_ref=""), "--review-ref", dict(NONE, review_ref="PR 1")),
        ("approved", "done", dict(ALL, merge_problem="not merged"), "--override-reason", NONE),
        ("for_review", "in_review", OWN, "ada did this work", dict(OWN, override_reason="alone")),
        ("for_review", "approved", OWN, "another `--actor`", dict(OWN, actor="bob")),
        ("in_review", "approved", OWN, "--override-reason", dict(OWN, override_reason="alone")),
        ("in_progress", "approved", OWN, "ada did this work", dict(OWN, actor="bob")),
        ("in_progress", "approved", {"actor": "bob", "feedback": "good"}, "--review-ref", dict(OWN, actor="bob")),
        ("planned", "claimed", dict(NONE, dependency_problem="It depends on itself"), "depends on itself", NONE),
    ],
)
def test_a_guard_names_the_fix_and_accepts_it(source: Any, target: Any, lacking: Any, said: str, fixed: Any) -> None:
    with pytest.raises(BrokenContract, match=said):
        plan(source, target, lacking)
    assert plan(source, target, fixed)


@pytest.mark.parametrize(
    "actor", ["", " ", "ada\nbob", "ada\r", "a\x00b", "\u202eada", "ada\u2028", "\udcff", "\u0430da"]
)
def test_an_actor_is_one_line_of_printable_characters_whatever_the_move(actor: str) -> None:
    for source, target in (("planned", "claimed"), ("for_review", "approved"), ("claimed", "claimed")):
        with pytest.raises(BrokenContract, match="--actor"):
            plan(source, target, dict(ALL, actor=actor))
        with pytest.raises(BrokenContract, match="--actor"):
            plan(source, target, dict(ALL, actor=actor), is_forced=True)


def test_evidence_or_an_override_replaces_only_its_own_guard() -> None:
    assert plan("in_progress", "for_review", dict(ALL, evidence_problem="no commit"))
    with pytest.raises(BrokenContract):
        plan("in_progress", "done", dict(ALL, override_reason="squashed"))


def test_force_takes_any_edge_for_an_actor_with_a_reason_in_one_step() -> None:
    facts = dict(ALL, waits_for=("WP02",), workspace_problem="x", open_subtasks=("T1",), evidence_problem="x")
    for source, target in PAIRS:
        assert plan(source, target, facts, is_forced=True) == ((source, target),)
        for lacking in (dict(facts, reason=""), dict(facts, actor=" ")):
            with pytest.raises(BrokenContract):
                plan(source, target, lacking, is_forced=True)


@pytest.mark.parametrize("source", STATUSES)
def test_force_does_not_replace_a_review(source: Any) -> None:
    bare = {"actor": "rev", "reason": "hurry", "people": People(worker="ada", implementers=frozenset({"ada"}))}
    if source in ("for_review", "in_review"):
        assert plan(source, "approved", bare, is_forced=True)
    else:
        with pytest.raises(BrokenContract, match=r"skips the review\. Pass `--review-ref`"):
            plan(source, "approved", bare, is_forced=True)
    assert plan(source, "approved", dict(bare, review_ref="PR 1"), is_forced=True)
    assert plan("done", "approved", dict(bare, is_approved=True), is_forced=True)


@pytest.mark.parametrize("source", [status for status in STATUSES if status != "done"])
def test_only_an_override_with_a_reason_replaces_the_merge(source: Any) -> None:
    facts = dict(ALL, merge_problem="The branch is not merged.")
    with pytest.raises(BrokenContract, match="not merged"):
        plan(source, "done", facts, is_forced=True)
    assert plan(source, "done", dict(facts, override_reason="squashed"), is_forced=True)


@pytest.mark.parametrize("source", [status for status in STATUSES if status != "done"])
def test_nothing_makes_work_done_that_has_no_approval(source: Any) -> None:
    facts = dict(ALL, is_approved=False, override_reason="squashed")
    with pytest.raises(BrokenContract, match="No approval" if source == "approved" else "does not lead"):
        plan(source, "done", facts)
    with pytest.raises(BrokenContract, match="No approval"):
        plan(source, "done", facts, is_forced=True)


@pytest.mark.parametrize("source", ["planned", "in_progress", "for_review", "in_review", "done"])
def test_an_implementer_may_take_its_work_back_and_force_does_not_let_it_approve(source: Any) -> None:
    assert plan("for_review", "in_progress", OWN)
    with pytest.raises(BrokenContract, match="ada did this work"):
        plan(source, "approved", dict(OWN, reason="alone"), is_forced=True)
    for given in (dict(OWN, reason="alone", override_reason="alone"), dict(OWN, reason="alone", actor="bob")):
        assert plan(source, "approved", given, is_forced=True)


LACKS: dict[str, dict[str, Any]] = {
    "approval of WP02": {"waits_for": ("WP02",)},
    "a lane": {"workspace_problem": "no lane"},
    "the branch of its lane": {"lane_problem": LOST},
    "subtask T001": {"open_subtasks": ("T001",)},
    "an own commit": {"evidence_problem": "no commit", "feedback": "", "review_ref": ""},
    "a merge": {"merge_problem": "not merged"},
    "an approval": {"is_approved": False},
}


@pytest.mark.parametrize("lack", LACKS)
def test_next_moves_name_the_same_needs_as_the_guards(lack: str) -> None:
    legal = [(a, b) for a, targets in EDGES.items() for b in targets] + list(THROUGH)
    for source, target in legal:
        given = {**ALL, **LACKS[lack]}
        fields = {name: given[name] for name in given if name in MoveRequest.__dataclass_fields__}
        facts = MoveFacts(MoveRequest("WP01", target, **fields), **{k: v for k, v in given.items() if k not in fields})
        refusals = [WORK_PACKAGE.refusal(a, b, facts) for a, b in steps_between(source, target)]  # type: ignore[arg-type]
        is_text_given = any(given[name] for name in ("feedback", "review_ref"))
        if any(refusals) and is_text_given:
            assert needs_of(source, facts) == (lack,), (source, target)  # type: ignore[arg-type]
        if not any(refusals):
            assert needs_of(source, facts) == (), (source, target)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", STATUSES)
def test_a_move_to_the_current_status_has_no_steps_and_claims_no_work_of_another(status: Any) -> None:
    assert plan(status, status, dict(NONE, people=People(worker="Ada", reviewer="ADA"))) == ()
    if status == "in_progress":
        with pytest.raises(BrokenContract, match="stays in_progress: It is lost"):
            plan(status, status, dict(NONE, lane_problem=LOST))
    if status == "approved":
        assert plan(status, status, dict(NONE, is_approved=False)) == ((status, status),)
        with pytest.raises(BrokenContract, match="stays approved: It is lost"):
            plan(status, status, dict(NONE, is_approved=False, lane_problem=LOST))
    if status in ("claimed", "in_review"):
        with pytest.raises(BrokenContract, match="bob has claimed it"):
            plan(status, status, dict(NONE, people=People(worker="bob", reviewer="bob")))
        taken = plan(status, status, dict(ALL, people=People(worker="bob", reviewer="bob")), is_forced=True)
        assert taken == ((status, status),)


def test_each_package_of_a_long_cycle_names_it_in_time_that_is_linear_for_each() -> None:
    def blockers(size: int) -> Any:
        names = [f"WP{i:02}" for i in range(size)]
        return blockers_of({name: (names[i - 1],) for i, name in enumerate(names)}, names)

    assert "itself: WP01 \u2192 WP00 \u2192 WP02 \u2192 WP01." in blockers(3)["WP01"].problem
    assert seconds_for(blockers, 1200) < 30 * min(seconds_for(blockers, 300) for _ in range(3))
