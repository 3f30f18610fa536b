"""Artifacts that each role may write, and fields that no role may change."""

from __future__ import annotations

from typing import Any

import pytest
from support.handoffs import EVERYTHING, by, codes, handoff, patch

from accord.handoffs.plan import decide_patch
from accord.handoffs.rules import ROLES

R, V, D, P, T, Q = (
    "reviewArtifact",
    "verificationArtifact",
    "doneArtifact",
    "planningArtifact",
    "testingArtifacts",
    "awaitingHumanArtifact",
)
GOALS = {P: {"goals": ["Other"]}, "transitionNote": "The customer asked"}
PLANNED = {T: {"planned": {"unitTestIntent": ["more"]}}, "transitionNote": "The customer asked"}
SUMMARY = {R: {"knownRisks": ["Large files"]}}
EVIDENCE = {V: {"commands": ["pytest -x"]}}
FINISHED = {D: {"summary": ["Better"]}}
TESTS = {T: {"implemented": {"evidenceLinks": ["https://ci.example/1"]}}}
ASKED = {Q: {"question": "Why?"}}


@pytest.mark.parametrize(
    ("role", "forbidden", "allowed"),
    [
        ("planner", [SUMMARY, EVIDENCE, FINISHED], [GOALS, PLANNED, ASKED]),
        ("architect", [GOALS, PLANNED], [SUMMARY, ASKED]),
        ("tester", [GOALS], [EVIDENCE, TESTS]),
        ("developer", [GOALS, PLANNED], [TESTS]),
        ("reviewer", [GOALS, PLANNED], [SUMMARY]),
        ("retrospective", [GOALS, PLANNED], [FINISHED, {"retrospectives": [{"learned": "Ask first"}]}]),
        ("human", [], [GOALS, PLANNED, SUMMARY, EVIDENCE, FINISHED, TESTS, ASKED]),
    ],
)
def test_a_role_writes_its_own_artifacts_only(
    role: str, forbidden: list[dict[str, Any]], allowed: list[dict[str, Any]]
) -> None:
    task = handoff(**EVERYTHING)
    for content in forbidden:
        decided = decide_patch(task, patch(**content), by(role))
        assert {reason.code for reason in decided.reasons} == {"role-must-not-write"}, content
        assert decided.task == task
    for content in allowed:
        decided = decide_patch(task, patch(**content), by(role))
        assert decided.reasons == (), content
        assert decided.task != task


def test_every_role_of_the_contract_is_there() -> None:
    assert set(ROLES) == {"planner", "architect", "tester", "developer", "reviewer", "retrospective", "human"}


def test_the_architect_may_refer_to_the_review_in_a_plan_and_only_append_there() -> None:
    first = decide_patch(handoff(**EVERYTHING), patch(**{P: {"reviewReferences": ["r1"]}}), by("architect"))
    assert first.reasons == ()
    more = decide_patch(first.task, patch(**{P: {"reviewReferences": ["r1", "r2"]}}), by("architect"))
    assert more.reasons == ()
    again = decide_patch(more.task, patch(**{P: {"reviewReferences": ["r2"]}}), by("architect"))
    assert codes(again.reasons) == [("append-only", "/metadata/planningArtifact/reviewReferences")]


def test_taking_an_artifact_away_is_writing_it() -> None:
    decided = decide_patch(handoff(**{R: {"filesTouched": ["a"]}}), patch(**{R: None}), by("planner"))
    assert codes(decided.reasons) == [("role-must-not-write", "/metadata/reviewArtifact/filesTouched")]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "content",
    [{"metadata": {"workflowRuntime": {"actionHistory": []}, "x": 1}}, {"metadata": {"workflowRuntime": {"x": 1}}}],
)
def test_no_role_writes_what_the_engine_keeps(role: str, content: dict[str, Any]) -> None:
    entry = {"at": "2026-11-01T08:00:00Z", "phase": "onEnter", "status": "planning", "result": "ok"}
    task = handoff(workflowRuntime={"actionHistory": [entry]})
    decided = decide_patch(task, content, by(role))
    assert {reason.code for reason in decided.reasons} == {"engine-field"}
    assert decided.task == task


def test_filling_in_the_other_half_of_the_tests_does_not_count_as_a_write() -> None:
    decided = decide_patch(handoff(), patch(**TESTS), by("developer"))
    assert decided.reasons == ()
    assert decided.task["metadata"][T]["planned"]["gherkinScenarios"] == []


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({P: {"createdAt": "2026-11-05T08:00:00Z"}}, "planningArtifact/createdAt"),
        ({P: {"createdAt": None}}, "planningArtifact/createdAt"),
        ({"workflow": {"branchName": "other"}}, "workflow/branchName"),
        ({"workflow": {"baseBranch": "next"}}, "workflow/baseBranch"),
        ({"canonicalTaskId": "T-00999"}, "canonicalTaskId"),
    ],
)
def test_immutable_fields_stay_even_for_a_person(content: dict[str, Any], place: str) -> None:
    decided = decide_patch(handoff(**EVERYTHING), patch(**content), by("human"))
    assert codes(decided.reasons) == [("immutable-field", f"/metadata/{place}")]


def test_immutable_fields_can_be_set_once() -> None:
    decided = decide_patch(handoff(), patch(workflow={"branchName": "task/x"}), by("developer"))
    assert decided.task["metadata"]["workflow"]["branchName"] == "task/x"


def test_a_malformed_id_in_a_patch_leaves_the_id_as_it_is() -> None:
    decided = decide_patch(handoff(), patch(canonicalTaskId="77", note="x"), by("developer"))
    assert decided.reasons == ()
    assert decided.task["metadata"]["canonicalTaskId"] == "T-00123"


@pytest.mark.parametrize(
    ("artifact", "place", "old"),
    [
        (R, ("changeSummary",), "Adds an export"),
        (V, ("notes",), "All green"),
        (T, ("implemented", "commandsRun"), "pytest"),
    ],
)
def test_lists_of_evidence_only_grow(artifact: str, place: tuple[str, ...], old: str) -> None:
    task = handoff(**EVERYTHING)

    def setting(value: Any) -> dict[str, Any]:
        for key in reversed(place):
            value = {key: value}
        return patch(**{artifact: value})

    assert decide_patch(task, setting([old, "new"]), by("human")).reasons == ()
    for value in ([], ["new"], ["new", old]):
        found = decide_patch(task, setting(value), by("human")).reasons
        assert codes(found) == [("append-only", f"/metadata/{artifact}/{'/'.join(place)}")], value


@pytest.mark.parametrize(
    "content",
    [
        {P: {"goals": ["Other"]}},
        {P: {"steps": []}},
        {P: {"risks": ["Many"]}},
        {T: {"planned": {"gherkinScenarios": ["Given nothing"]}}},
    ],
)
def test_a_plan_is_changed_only_with_a_new_reason(content: dict[str, Any]) -> None:
    task = handoff(**EVERYTHING, transitionNote="An old reason")
    for note in ({}, {"transitionNote": "An old reason "}, {"transitionNote": "  "}):
        found = decide_patch(task, patch(**content, **note), by("planner")).reasons
        assert {reason.code for reason in found} == {"transition-note-missing"}, note
    assert decide_patch(task, patch(**content, transitionNote="A new one"), by("planner")).reasons == ()


def test_a_plan_is_written_for_the_first_time_without_a_reason() -> None:
    decided = decide_patch(
        handoff(), patch(**{P: EVERYTHING[P], T: {"planned": EVERYTHING[T]["planned"]}}), by("planner")
    )
    assert decided.reasons == ()


def test_how_far_a_plan_is_may_be_said_without_a_reason() -> None:
    task = handoff(**EVERYTHING)
    assert decide_patch(task, patch(**{P: {"status": "complete"}}), by("planner")).reasons == ()
    assert decide_patch(task, patch(**{T: {"planned": {"status": "draft"}}}), by("planner")).reasons == ()
