"""Handoffs as others wrote them, in today's form."""

from __future__ import annotations

from typing import Any

import pytest
from support.handoffs import EVERYTHING, checked, handoff

from accord.core.kinds import read_shape
from accord.handoffs.models import Handoff, next_task_id, normalised


@pytest.mark.parametrize(
    ("old", "new"), [("todo", "backlog"), ("ready", "backlog"), ("in_progress", "implementing"), ("review", "review")]
)
def test_old_names_of_statuses_are_read(old: str, new: str) -> None:
    assert normalised({"status": old})["status"] == new


def test_old_names_of_keys_are_read_and_written_as_new_ones() -> None:
    metadata = {
        "planningArtifact": {"implementationSteps": ["One"]},
        "awaitingHumanArtifact": {"recommendedDefault": "A", "options": ["A", {"label": "B", "description": "b"}]},
    }
    assert normalised({"metadata": metadata})["metadata"] == {
        "planningArtifact": {"steps": ["One"]},
        "awaitingHumanArtifact": {
            "recommendedOption": "A",
            "options": [{"label": "A", "description": ""}, {"label": "B", "description": "b"}],
        },
    }


def test_an_old_name_beside_its_new_one_stays_as_it_is() -> None:
    artifact = {"implementationSteps": ["Old"], "steps": ["New"]}
    assert normalised({"metadata": {"planningArtifact": artifact}})["metadata"]["planningArtifact"] == artifact


def test_missing_and_malformed_parts_of_the_tests_are_filled() -> None:
    found = normalised({"metadata": {"testingArtifacts": {"planned": {"unitTestIntent": "rows"}}}})
    assert found["metadata"]["testingArtifacts"] == {
        "schemaVersion": "1.0",
        "planned": {"gherkinScenarios": [], "unitTestIntent": [], "integrationTestIntent": [], "notes": None},
        "implemented": {"testsAddedOrUpdated": [], "evidenceLinks": [], "commandsRun": [], "notes": None},
    }


def test_a_task_without_anything_is_in_the_backlog() -> None:
    assert normalised({}) == {"status": "backlog", "metadata": {}}


def test_unknown_keys_stay_untouched() -> None:
    task = handoff(planningArtifact={"x-mood": {"colour": ["blue"]}}, provider="any")
    assert normalised({**task, "x-board": 7}) == {**task, "x-board": 7}


def test_a_task_that_is_normalised_twice_stays_as_it_is_and_the_given_one_is_not_changed() -> None:
    given: dict[str, Any] = {"status": "todo", "metadata": {"testingArtifacts": {}}}
    once = normalised(given)
    assert normalised(once) == once
    assert given == {"status": "todo", "metadata": {"testingArtifacts": {}}}


@pytest.mark.parametrize(
    ("known", "following"),
    [
        ((), "T-00001"),
        (("T-00007", "T-00012", "T-9", "X-99999", None, 5), "T-00013"),
        (("T-99999",), "T-100000"),
        (("T-100000", "T-000100001"), "T-100001"),
    ],
)
def test_a_new_id_is_the_one_after_the_highest(known: tuple[object, ...], following: str) -> None:
    assert next_task_id(known) == following


def test_the_document_of_the_contract_is_a_valid_handoff() -> None:
    task, findings = checked(handoff("done", **EVERYTHING))
    assert findings == []
    model = read_shape(Handoff, task)
    assert model.metadata.review_artifact is not None
    assert model.metadata.review_artifact.decision == "approved"


@pytest.mark.parametrize(
    ("artifact", "content", "path"),
    [
        ("reviewArtifact", {"changeSummary": "text"}, "/metadata/reviewArtifact/changeSummary"),
        ("reviewArtifact", {"decision": "maybe"}, "/metadata/reviewArtifact/decision"),
        ("verificationArtifact", {"result": "flaky"}, "/metadata/verificationArtifact/result"),
        ("verificationArtifact", [], "/metadata/verificationArtifact"),
        ("doneArtifact", {"status": "finished"}, "/metadata/doneArtifact/status"),
        ("doneArtifact", {"completedAt": "yesterday"}, "/metadata/doneArtifact/completedAt"),
        ("planningArtifact", {"createdAt": "2026-02-18T20:00:00"}, "/metadata/planningArtifact/createdAt"),
        ("planningArtifact", {"goals": [1]}, "/metadata/planningArtifact/goals/0"),
        ("awaitingHumanArtifact", {"options": [{}]}, "/metadata/awaitingHumanArtifact/options/0/label"),
        ("workflow", {"branchName": 5}, "/metadata/workflow/branchName"),
        ("workflowRuntime", {"actionHistory": {}}, "/metadata/workflowRuntime/actionHistory"),
    ],
)
def test_a_wrong_shape_is_named_with_its_path(artifact: str, content: Any, path: str) -> None:
    _, findings = checked({"status": "implementing", "metadata": {artifact: content}})
    assert [(finding.code, finding.path) for finding in findings] == [("schema", path)]


def test_an_unknown_status_is_an_error() -> None:
    _, findings = checked({"status": "almost"})
    assert [(finding.code, finding.path) for finding in findings] == [("schema", "/status")]


def test_a_malformed_id_is_a_warning_since_the_next_write_fixes_it() -> None:
    _, (finding,) = checked({"metadata": {"canonicalTaskId": "123"}})
    assert (finding.code, finding.severity) == ("task-id-invalid", "warning")


def test_the_task_of_an_issue_above_99999_is_not_warned_about() -> None:
    assert checked({"metadata": {"canonicalTaskId": "T-123456"}})[1] == []
    assert len(checked({"metadata": {"canonicalTaskId": "T-012345"}})[1]) == 1


@pytest.mark.parametrize("status", ["review", "verification", "done", "awaiting_human"])
def test_a_status_without_what_it_rests_on_is_an_error(status: str) -> None:
    _, findings = checked({"status": status})
    assert findings
    assert all(finding.severity == "error" for finding in findings)
