"""Artifacts that each role may write, and fields that no role may change."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.handoffs import EVERYTHING, by, codes, handoff, patch

from accord.handoffs.plan import decide_patch
from accord.handoffs.rules import ROLES

R, V, D, P = "reviewArtifact", "verificationArtifact", "doneArtifact", "planningArtifact"
T, Q = "testingArtifacts", "awaitingHumanArtifact"
GOALS = {P: {"goals": ["Other"]}, "transitionNote": "The customer asked"}
PLANNED = {T: {"planned": {"unitTestIntent": ["more"]}}, "transitionNote": "The customer asked"}
SUMMARY = {R: {"knownRisks": ["Large files"]}}
EVIDENCE = {V: {"commands": ["pytest -x"]}}
FINISHED = {D: {"summary": ["Better"]}}
TESTS = {T: {"implemented": {"evidenceLinks": ["https://ci.example/1"]}}}
DECISION = {R: {"decision": "changes_requested"}}
RESULT = {V: {"result": "failed"}}
ASKED = {Q: {"question": "Why?"}}


@pytest.mark.parametrize(
    ("role", "forbidden", "allowed"),
    [
        ("planner", [SUMMARY, EVIDENCE, FINISHED], [GOALS, PLANNED, ASKED]),
        ("architect", [GOALS, PLANNED, RESULT], [SUMMARY, ASKED, DECISION]),
        ("tester", [GOALS, DECISION], [EVIDENCE, TESTS, RESULT]),
        ("developer", [GOALS, PLANNED, DECISION, RESULT], [TESTS, SUMMARY, EVIDENCE]),
        ("reviewer", [GOALS, PLANNED, RESULT], [SUMMARY, DECISION]),
        ("retrospective", [GOALS, PLANNED, DECISION, RESULT], [FINISHED, {"retrospectives": [{"learned": "Ask"}]}]),
        ("human", [], [GOALS, PLANNED, SUMMARY, EVIDENCE, FINISHED, TESTS, ASKED, DECISION, RESULT]),
    ],
)
def test_a_role_writes_its_own_artifacts_only(role: str, forbidden: list[Any], allowed: list[Any]) -> None:
    task = handoff(**EVERYTHING)
    for content in forbidden:
        decided = decide_patch(task, patch(**content), by(role))
        assert {reason.code for reason in decided.reasons} == {"role-must-not-write"}, content
        assert decided.task == task
    for content in allowed:
        assert decide_patch(task, patch(**content), by(role)).reasons == (), content
        decided = decide_patch(handoff(), patch(**content), by(role))  # the engine adds the other half of the tests
        assert (decided.reasons, decided.task != handoff()) == ((), True), content


def test_the_architect_may_refer_to_the_review_in_a_plan_and_only_append_there() -> None:
    task = handoff(**EVERYTHING)
    for references in (["r1"], ["r1", "r2"]):
        decided = decide_patch(task, patch(**{P: {"reviewReferences": references}}), by("architect"))
        assert decided.reasons == ()
        task = decided.task
    again = decide_patch(task, patch(**{P: {"reviewReferences": ["r2"]}}), by("architect"))
    assert codes(again.reasons) == [("append-only", "/metadata/planningArtifact/reviewReferences")]


@pytest.mark.parametrize("role", ROLES)
def test_no_role_writes_what_the_engine_keeps(role: str) -> None:
    entry = {"at": "2026-11-01T08:00:00Z", "phase": "onEnter", "status": "planning", "result": "ok"}
    task = handoff(workflowRuntime={"actionHistory": [entry]})
    for content in (patch(workflowRuntime={"actionHistory": []}, x=1), patch(workflowRuntime={"x": 1})):
        decided = decide_patch(task, content, by(role))
        assert ({reason.code for reason in decided.reasons}, decided.task) == ({"engine-field"}, task)


def test_immutable_fields_can_be_set_once_and_a_malformed_id_leaves_the_id_as_it_is() -> None:
    content = patch(workflow={"branchName": "task/x"}, canonicalTaskId="77")
    metadata = decide_patch(handoff(), content, by("developer")).task["metadata"]
    assert (metadata["workflow"]["branchName"], metadata["canonicalTaskId"]) == ("task/x", "T-00123")


EVIDENCE_LISTS = {(R, "changeSummary"): "Adds an export", (V, "notes"): "All green"}
EVIDENCE_LISTS |= {(T, "implemented", "commandsRun"): "pytest"}


@pytest.mark.parametrize(("path", "old"), EVIDENCE_LISTS.items())
def test_lists_of_evidence_only_grow(path: tuple[str, ...], old: str) -> None:
    for value, is_allowed in (([old, "new"], True), ([], False), (["new"], False), (["new", old], False)):
        content: Any = value
        for key in reversed(path):
            content = {key: content}
        found = decide_patch(handoff(**EVERYTHING), patch(**content), by("human")).reasons
        assert codes(found) == ([] if is_allowed else [("append-only", f"/metadata/{'/'.join(path)}")]), value


@pytest.mark.parametrize(
    "content",
    [{P: {"goals": ["Other"]}}, {P: {"steps": []}}, {P: {"risks": ["No"]}}, {T: {"planned": {"gherkinScenarios": []}}}],
)
def test_a_plan_is_changed_only_with_a_new_reason(content: dict[str, Any]) -> None:
    task = handoff(**EVERYTHING, transitionNote="An old reason")
    for note in ({}, {"transitionNote": "An old reason "}, {"transitionNote": "  "}):
        found = decide_patch(task, patch(**content, **note), by("planner")).reasons
        assert {reason.code for reason in found} == {"transition-note-missing"}, note
    assert decide_patch(task, patch(**content, transitionNote="A new one"), by("planner")).reasons == ()


def test_a_first_plan_and_its_status_need_no_reason() -> None:
    first = {P: EVERYTHING[P], T: {"planned": EVERYTHING[T]["planned"]}}
    progress: list[Any] = [{P: {"status": "complete"}}, {T: {"planned": {"status": "draft"}}}]
    for before, content in (({}, first), *((EVERYTHING, one) for one in progress)):
        assert decide_patch(handoff(**before), patch(**content), by("planner")).reasons == ()


def test_the_page_lists_every_role() -> None:
    page = (Path(__file__).parents[2] / "docs/handoffs.md").read_text(encoding="utf-8")
    part = page.partition("Each role must leave")[2].partition("\n\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^- (`.*?):", part, re.MULTILINE)))) == set(ROLES)
