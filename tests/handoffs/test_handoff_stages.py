"""Which moves there are, and what each of them asks for."""

from __future__ import annotations

from typing import Any

import pytest
from support.handoffs import DONE, EVERYTHING, QUESTION, REVIEW, VERIFICATION, codes, handoff

from accord.handoffs.rules import read_handoff
from accord.handoffs.stages import HANDOFF, gate_findings

EDGES = {
    "backlog": "planning implementing done cancelled",
    "planning": "backlog implementing awaiting_human cancelled",
    "implementing": "backlog review awaiting_human cancelled",
    "review": "implementing verification done awaiting_human cancelled",
    "verification": "implementing done awaiting_human cancelled",
    "awaiting_human": "planning implementing review cancelled",
    "done": "review cancelled",
    "cancelled": "backlog",
}
R, V, A, D = ("reviewArtifact", "verificationArtifact", "awaitingHumanArtifact", "doneArtifact")


def reasons(source: str, target: str, **metadata: Any) -> list[tuple[str, str]]:
    found = gate_findings(source, target, read_handoff(handoff(source, **metadata)).metadata)
    return [(code, path.removeprefix("/metadata/")) for code, path in codes(found)]


@pytest.mark.parametrize("source", EDGES)
def test_from_each_status_the_task_goes_where_the_table_says_and_nowhere_else(source: str) -> None:
    assert HANDOFF.targets(source) == tuple(EDGES[source].split())


@pytest.mark.parametrize("source", ["implementing", "awaiting_human"])
def test_every_way_into_review_asks_for_both_artifacts(source: str) -> None:
    review, verification = ("missing-review-artifacts", R), ("missing-review-artifacts", V)
    assert reasons(source, "review") == [review, verification]
    assert reasons(source, "review", **{R: REVIEW}) == [verification]
    assert reasons(source, "review", **{V: VERIFICATION}) == [review]
    assert reasons(source, "review", **{R: REVIEW, V: VERIFICATION}) == []


def test_a_done_task_can_be_reviewed_again() -> None:
    assert reasons("done", "review") == []


@pytest.mark.parametrize(
    ("artifact", "change", "place"),
    [
        (R, {"changeSummary": []}, "changeSummary"),
        (R, {"changeSummary": [" "]}, "changeSummary"),
        (V, {"commands": []}, "commands"),
        (V, {"result": None}, "result"),
    ],
)
def test_a_draft_that_lacks_what_is_required_does_not_pass_into_review(
    artifact: str, change: dict[str, Any], place: str
) -> None:
    both = {R: {**REVIEW, "status": "draft"}, V: {**VERIFICATION, "status": "draft"}}
    assert reasons("implementing", "review", **both) == []
    both[artifact] = {**both[artifact], **change}
    assert reasons("implementing", "review", **both) == [("missing-review-artifacts", f"{artifact}/{place}")]


@pytest.mark.parametrize("artifact", [R, V, D])
def test_superseded_and_null_artifacts_count_as_absent(artifact: str) -> None:
    whole = {R: REVIEW, V: VERIFICATION, D: DONE}
    for gone in ({**whole[artifact], "status": "superseded"}, None):
        found = reasons("review", "done", **{**whole, artifact: gone})
        assert [path for code, path in found if code.startswith("missing-")] == [artifact]


def test_verification_and_done_ask_for_the_decision_approved() -> None:
    refused = {R: {**REVIEW, "decision": "changes_requested"}, V: VERIFICATION, D: DONE}
    for source, target in (("review", "verification"), ("review", "done"), ("verification", "done")):
        assert reasons(source, target, **refused) == [("review-not-approved", f"{R}/decision")]
        assert reasons(source, target, **{**refused, R: REVIEW}) == []


def test_changes_that_are_requested_may_go_into_review() -> None:
    asked = {R: {**REVIEW, "decision": "changes_requested"}, V: {**VERIFICATION, "result": "failed"}}
    assert reasons("implementing", "review", **asked) == []


@pytest.mark.parametrize("source", ["backlog", "review", "verification"])
def test_every_way_into_done_asks_for_verification_that_passed(source: str) -> None:
    failed = {R: REVIEW, V: {**VERIFICATION, "result": "failed"}, D: DONE}
    assert reasons(source, "done", **failed) == [("verification-not-passed", f"{V}/result")]


@pytest.mark.parametrize(("change", "place"), [({"completedAt": None}, "completedAt"), ({"summary": []}, "summary")])
def test_done_asks_for_when_and_what(change: dict[str, Any], place: str) -> None:
    given = {R: REVIEW, V: VERIFICATION, D: {**DONE, **change}}
    assert reasons("review", "done", **given) == [("missing-done-artifact", f"{D}/{place}")]


@pytest.mark.parametrize("source", ["planning", "implementing", "review", "verification"])
def test_every_way_to_a_person_asks_for_a_question(source: str) -> None:
    assert reasons(source, "awaiting_human") == [("missing-awaiting-human-artifact", A)]
    assert reasons(source, "awaiting_human", **{A: QUESTION}) == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"question": ""}, "question"),
        ({"options": [QUESTION["options"][0]]}, "options"),  # type: ignore[index]
        ({"options": [QUESTION["options"][0]] * 2}, "options"),  # type: ignore[index]
        ({"recommendedOption": "Semicolon"}, "recommendedOption"),
        ({"recommendedOption": None}, "recommendedOption"),
        ({"requestedAt": None}, "requestedAt"),
    ],
)
def test_an_incomplete_question_does_not_count(change: dict[str, Any], place: str) -> None:
    found = reasons("planning", "awaiting_human", **{A: {**QUESTION, **change}})
    assert found == [("missing-awaiting-human-artifact", f"{A}/{place}")]


@pytest.mark.parametrize(
    ("source", "target"),
    [(source, target) for source, targets in EDGES.items() for target in targets.split()],
)
def test_with_every_artifact_each_move_of_the_table_may_be_made(source: str, target: str) -> None:
    assert reasons(source, target, **EVERYTHING) == []
    assert HANDOFF.refusal(source, target, read_handoff(handoff(source, **EVERYTHING)).metadata) == ""


def test_the_table_says_why_a_move_may_not_be_made() -> None:
    metadata = read_handoff(handoff("implementing")).metadata
    assert "reviewArtifact is missing" in HANDOFF.refusal("implementing", "review", metadata)
    assert "legal moves are: backlog, review" in HANDOFF.refusal("implementing", "done", metadata)
