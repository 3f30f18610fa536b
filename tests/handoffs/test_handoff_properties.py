"""Whatever is patched and moved, in whatever order: what the contract promises holds."""

import os
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from support.handoffs import DONE, NOW, PLAN, PLANNED, QUESTION, REVIEW, VERIFICATION, by, checked, handoff

from accord.core.findings import has_errors
from accord.handoffs.models import normalise
from accord.handoffs.plan import HandoffDecision, decide_move, decide_patch
from accord.handoffs.rules import APPEND_ONLY, IMMUTABLE, ROLES, field_changes, may_change, merge_patch, value_at
from accord.handoffs.stages import HANDOFF, HandoffCommand, next_moves

pytestmark = pytest.mark.slow

words = st.sampled_from(["a", "b", "-->", "@all", ""])
texts = st.lists(words, max_size=3)
moments = st.sampled_from(["2026-11-01T08:00:00Z", "2026-11-02T08:00:00Z", None, "never"])
progress = st.sampled_from(["draft", "complete", "superseded", None])


def part(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with some of the fields; sometimes null, sometimes a string."""
    some = st.fixed_dictionaries({}, optional={**fields, "status": progress, "x-own": words})
    return st.one_of(some, some, some, st.none(), st.just("text"))


metadata = st.fixed_dictionaries(
    {},
    optional={
        "planningArtifact": part(createdAt=moments, goals=texts, steps=texts, reviewReferences=texts) | st.just(PLAN),
        "testingArtifacts": part(
            planned=part(unitTestIntent=texts) | st.just(PLANNED), implemented=part(commandsRun=texts)
        ),
        "reviewArtifact": part(changeSummary=texts, decision=st.sampled_from(["approved", "changes_requested", None]))
        | st.just(REVIEW),
        "verificationArtifact": part(commands=texts, result=st.sampled_from(["passed", "failed"]), notes=texts)
        | st.just(VERIFICATION),
        "awaitingHumanArtifact": part(question=words) | st.just(QUESTION),
        "doneArtifact": part(completedAt=moments, summary=texts) | st.just(DONE),
        "workflow": part(branchName=words, baseBranch=words, owner=words),
        "workflowRuntime": st.just({"actionHistory": []}),
        "canonicalTaskId": st.sampled_from(["T-00123", "T-00124", "nonsense"]),
        "transitionNote": words,
        "x-extra": texts,
    },
)
patches = st.builds(lambda found: {"metadata": found}, metadata) | st.just({"metadata": None}) | st.just({"title": "t"})
roles = st.sampled_from(sorted(ROLES))
moves = st.tuples(st.sampled_from(HANDOFF.states), roles, st.none() | patches, st.booleans())
steps = st.lists(st.tuples(roles, patches) | moves, max_size=8)


VERDICTS = {
    ("metadata", "reviewArtifact", "decision"): ("architect", "reviewer", "human"),
    ("metadata", "verificationArtifact", "result"): ("tester", "human"),
}


def apply_step(task: dict[str, Any], step: tuple[Any, ...], at: str) -> HandoffDecision:
    if len(step) == 2:
        return decide_patch(task, step[1], by(step[0], at))
    target, role, patch, redirects = step
    return decide_move(task, target, by(role, at), patch, redirects=redirects)


def history(task: dict[str, Any]) -> list[Any]:
    return value_at(task, ("metadata", "workflowRuntime", "actionHistory")) or []


@seed(os.environ.get("ACCORD_FUZZ_SEED", "accord"))
@settings(max_examples=int(os.environ.get("ACCORD_WALKS", "40")), deadline=None)
@given(start=st.sampled_from(["backlog", "planning", "implementing"]), steps=steps)
def test_the_contract_holds_after_any_patches_and_moves(start: str, steps: list[Any]) -> None:
    task = handoff(start)
    for number, step in enumerate(steps):
        decided = apply_step(task, step, f"2026-11-02T09:{number:02}:00Z")
        after = decided.task
        for place in IMMUTABLE:
            assert value_at(task, place) in (None, "", value_at(after, place))
        for place in APPEND_ONLY:
            old = value_at(task, place) or []
            assert (value_at(after, place) or [])[: len(old)] == old
        assert history(after)[: len(history(task))] == history(task)
        role = step[0] if len(step) == 2 else step[1]
        own = {"workflowRuntime", "awaitingHumanArtifact"} if decided.is_redirected else {"workflowRuntime"}
        for place, _, _ in field_changes(task.get("metadata"), after["metadata"], ("metadata",)):
            is_stamp = place[-1] in {"updatedAt", "updatedBy"}
            assert place[1] in own or is_stamp or may_change(role, place), place
        if after["status"] != task["status"]:
            assert after["status"] in HANDOFF.targets(task["status"])
        assert not has_errors(checked(after)[1])  # what the status rests on is there, and stays there
        for verdict, judges in VERDICTS.items():
            is_given = value_at(after, verdict) != value_at(task, verdict)
            assert not is_given or role in judges
        if after["status"] == "done":
            assert [value_at(after, verdict) for verdict in VERDICTS] == ["approved", "passed"]
        for move in next_moves(after, HandoffCommand("task.json"), NOW):
            assert decide_move(after, move.to, by("human")).is_ok is not bool(move.missing)
        if not decided.is_ok:
            assert {**after["metadata"], "workflowRuntime": 0} == {**task["metadata"], "workflowRuntime": 0}
            assert after["status"] == task["status"]
        again = apply_step(after, step, "2026-11-02T10:00:00Z")
        assert again.task == after, "the same again is once"
        task = after


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(words, json_values, max_size=3)


@given(task=objects, patch=objects)
def test_a_merge_changes_only_what_the_patch_names_and_twice_is_once(task: Any, patch: Any) -> None:
    merged = merge_patch(task, patch)
    assert merge_patch(merged, patch) == merged
    for key in task:
        if key not in patch:
            assert merged[key] == task[key]


@given(task=st.fixed_dictionaries({"metadata": json_values}, optional={"status": json_values, "tasks": objects}))
def test_reading_never_crashes_and_what_is_read_twice_stays(task: Any) -> None:
    if "tasks" in task and "status" not in task:
        return
    once = normalise(task)
    assert normalise(once) == once
    checked(task)
