"""Handoffs as others wrote them, in today's form."""

import copy
import json
from typing import Any

import pytest
from support.handoffs import EVERYTHING, IMPLEMENTED, NOW, by, checked, codes, handoff

from accord.core.documents import Document
from accord.core.errors import BrokenContract
from accord.core.kinds import KINDS, check_document
from accord.core.shapes import read_shape
from accord.handoffs.models import Handoff, next_task_id, normalise
from accord.handoffs.plan import decide_patch
from accord.handoffs.rules import store_findings

BOTH_NAMES = {"status": "backlog", "metadata": {"planningArtifact": {"implementationSteps": ["Old"], "steps": ["New"]}}}
UNKNOWN_KEYS = {**handoff(planningArtifact={"x-mood": {"colour": ["blue"]}}, provider="any"), "x-board": 7}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"metadata": {}}, {"status": "backlog", "metadata": {}}),
        ({"status": "todo"}, {"status": "backlog", "metadata": {}}),
        ({"status": "ready"}, {"status": "backlog", "metadata": {}}),
        ({"status": "in_progress"}, {"status": "implementing", "metadata": {}}),
        (BOTH_NAMES, BOTH_NAMES),
        (UNKNOWN_KEYS, UNKNOWN_KEYS),
    ],
)
def test_a_task_is_read_in_todays_form_and_unknown_keys_stay_untouched(given: Any, expected: Any) -> None:
    before = copy.deepcopy(given)
    assert normalise(given) == normalise(normalise(given)) == expected
    assert given == before


def test_old_names_of_keys_are_read_and_written_as_new_ones() -> None:
    metadata = {
        "planningArtifact": {"implementationSteps": ["One"]},
        "awaitingHumanArtifact": {"recommendedDefault": "A", "options": ["A", {"label": "B", "description": "b"}]},
    }
    assert normalise({"metadata": metadata})["metadata"] == {
        "planningArtifact": {"steps": ["One"]},
        "awaitingHumanArtifact": {
            "recommendedOption": "A",
            "options": [{"label": "A", "description": ""}, {"label": "B", "description": "b"}],
        },
    }


def test_missing_parts_of_the_tests_are_filled() -> None:
    given = {"schemaVersion": None, "planned": {"unitTestIntent": None}}
    found = normalise({"metadata": {"testingArtifacts": given}})
    assert found["metadata"]["testingArtifacts"] == {
        "schemaVersion": "1.0",
        "planned": {"gherkinScenarios": [], "unitTestIntent": [], "integrationTestIntent": [], "notes": None},
        "implemented": {"testsAddedOrUpdated": [], "evidenceLinks": [], "commandsRun": [], "notes": None},
    }


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"planned": {"unitTestIntent": "rows"}}, "/planned/unitTestIntent"),
        ({"implemented": {"commandsRun": "pytest"}}, "/implemented/commandsRun"),
        ({"implemented": ["a"]}, "/implemented"),
        ({"schemaVersion": 2}, "/schemaVersion"),
    ],
)
def test_text_where_a_list_belongs_is_refused_with_its_place_and_never_dropped(given: Any, path: str) -> None:
    task = {"metadata": {"testingArtifacts": given}}
    _, findings = checked(task)
    assert [(item.code, item.path) for item in findings] == [("schema", f"/metadata/testingArtifacts{path}")]
    refused = decide_patch(handoff(), task, by("human"))
    assert (codes(refused.reasons), refused.task) == ([("schema", f"/metadata/testingArtifacts{path}")], handoff())


@pytest.mark.parametrize(
    "given", [{}, {"title": "Export"}, {"tasks": [{"title": "Export"}]}, {"metadata": {}, "tasks": {"T-1": {}}}]
)
def test_an_object_that_is_not_a_task_is_not_a_handoff(given: Any) -> None:
    with pytest.raises(BrokenContract) as broken:
        normalise(given)
    assert [item.code for item in broken.value.findings] == ["not-a-handoff"]
    found = KINDS["handoff"].check(Document(given, json.dumps(given)))
    assert [item.code for item in found] == ["not-a-handoff"]


NAMED = {"metadata": {"canonicalTaskId": "T-00007"}}
FRESH = {"title": "t", "description": "d", "acceptanceCriteria": ["a"], "dependencies": [], "status": "backlog"}
BROKEN_PLAN = {"status": "planning", "metadata": {"planningArtifact": {"goals": "x"}}}


@pytest.mark.parametrize(
    ("tasks", "found"),
    [
        ([], []),
        ({}, []),
        ([FRESH], []),
        ({"T-00001": FRESH}, []),
        ([{"metadata": {}}, BROKEN_PLAN], [("schema", "/tasks/1/metadata/planningArtifact/goals")]),
        ({"T-00001": BROKEN_PLAN}, [("schema", "/tasks/T-00001/metadata/planningArtifact/goals")]),
        ([{"title": "Export"}, {"status": "todo"}], [("not-a-handoff", "/tasks/0")]),
        (["x"], [("schema", "/tasks/0")]),
        (
            [{"status": "awaiting_human", "metadata": {}}, {"status": "implementing", "metadata": {}}],
            [("missing-awaiting-human-artifact", "/tasks/0/metadata/awaitingHumanArtifact")],
        ),
        ([NAMED, {"metadata": {}}, {"metadata": {}}, NAMED], [("task-repeated", "/tasks/3/metadata/canonicalTaskId")]),
        ({"a": NAMED, "b": NAMED}, [("task-repeated", "/tasks/b/metadata/canonicalTaskId")]),
    ],
)
def test_each_task_of_a_file_with_many_is_checked(tasks: Any, found: list[tuple[str, str]]) -> None:
    assert [(item.code, item.path) for item in store_findings({"tasks": tasks}, NOW) or ()] == found
    for given in () if found else ({"tasks": tasks}, FRESH):
        assert check_document(json.dumps(given).encode(), None) == ("handoff", [])


def test_a_repeated_id_is_found_at_the_task_that_needs_another_with_one_that_is_free() -> None:
    tasks = {"T-00008": NAMED, "T-00007": NAMED, "x": NAMED}
    for given, first, places in ((tasks, "T-00007", ["T-00008", "x"]), ([NAMED] * 3, 0, [1, 2])):
        found = store_findings({"tasks": given}, NOW) or []
        assert [one.path for one in found] == [f"/tasks/{place}/metadata/canonicalTaskId" for place in places]
        assert {one.message for one in found} == {f"/tasks/{first} has the id `T-00007`, too."}
        for one, place in zip(found, places, strict=True):
            given[place] = {"metadata": {"canonicalTaskId": one.hint.split()[-1].rstrip(".")}}
        assert store_findings({"tasks": given}, NOW) == []


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
    assert model.metadata.review_artifact.decision == "approved"


@pytest.mark.parametrize(
    ("change", "verdicts"),
    [
        ({}, []),
        ({"planningArtifact": None}, ["decision"]),
        ({"testingArtifacts": {"implemented": IMPLEMENTED}}, ["decision", "result"]),
        ({"testingArtifacts": {"planned": {"unitTestIntent": []}}}, ["decision", "result"]),
        ({"reviewArtifact": None}, ["result"]),
        ({"planningArtifact": None, "reviewArtifact": {"changeSummary": ["x"]}}, []),
    ],
)
def test_a_verdict_without_what_it_judges_is_a_warning(change: dict[str, Any], verdicts: list[str]) -> None:
    _, findings = checked(handoff("implementing", **{**EVERYTHING, **change}))
    found = [(one.path.rpartition("/")[2], one.severity) for one in findings if one.code == "role-input-missing"]
    assert found == [(name, "warning") for name in verdicts]


@pytest.mark.parametrize(
    ("artifact", "content", "path"),
    [
        ("status", "almost", "/status"),
        ("reviewArtifact", {"changeSummary": "text"}, "/metadata/reviewArtifact/changeSummary"),
        ("verificationArtifact", {"result": "flaky"}, "/metadata/verificationArtifact/result"),
        ("verificationArtifact", [], "/metadata/verificationArtifact"),
        ("doneArtifact", {"completedAt": "yesterday"}, "/metadata/doneArtifact/completedAt"),
        ("planningArtifact", {"createdAt": "2026-02-18T20:00:00"}, "/metadata/planningArtifact/createdAt"),
        ("planningArtifact", {"reviewReferences": {"a": 1}}, "/metadata/planningArtifact/reviewReferences"),
        ("awaitingHumanArtifact", {"options": [{}]}, "/metadata/awaitingHumanArtifact/options/0/label"),
        ("reviewArtifact", {"findings": "none"}, "/metadata/reviewArtifact/findings"),
        ("workflow", {"owner": ["codex"]}, "/metadata/workflow/owner"),
        ("workflow", {"branchName": 5}, "/metadata/workflow/branchName"),
        ("title", 5, "/title"),
        ("dependencies", "T-00001", "/dependencies"),
        ("acceptanceCriteria", 5, "/acceptanceCriteria"),
        ("workflowRuntime", {"actionHistory": {}}, "/metadata/workflowRuntime/actionHistory"),
    ],
)
def test_a_wrong_shape_is_named_with_its_path(artifact: str, content: Any, path: str) -> None:
    own = {artifact: content}
    given = {"metadata": own} if path.startswith("/metadata") else {"status": "planning", **own}
    _, findings = checked(given)
    assert [(finding.code, finding.path) for finding in findings] == [("schema", path)]


def test_a_misspelled_key_is_a_warning_and_other_keys_are_free() -> None:
    question = {"requestedBy": "ada", "options": [{"label": "Tab", "descripton": "As some do"}]}
    metadata = {"reviewArtefact": {}, "designArtifact": {"decison": 1}, "x": 1, "awaitingHumanArtifact": question}
    _, findings = checked({"statu": "planning", "metadata": metadata})
    option = "/metadata/awaitingHumanArtifact/options/0/descripton"
    assert {finding.path for finding in findings} == {"/statu", "/metadata/reviewArtefact", option}
    assert all(finding.severity == "warning" and finding.hint.startswith("Did you mean") for finding in findings)


def test_an_artifact_beside_the_metadata_is_a_warning() -> None:
    _, findings = checked({"status": "planning", "reviewArtifact": {"decison": "approved"}, "metadata": {}})
    assert [(each.code, each.path, each.severity) for each in findings] == [
        ("misplaced-artifact", "/reviewArtifact", "warning")
    ]


@pytest.mark.parametrize(("task_id", "found"), [("123", 1), ("T-012345", 1), ("T-123456", 0)])
def test_a_malformed_id_is_a_warning_since_the_next_write_fixes_it(task_id: str, found: int) -> None:
    _, findings = checked({"metadata": {"canonicalTaskId": task_id}})
    assert [(item.code, item.severity) for item in findings] == [("task-id-invalid", "warning")] * found


def test_a_status_without_what_it_rests_on_is_an_error() -> None:
    for status in ("review", "verification", "done", "awaiting_human"):
        assert {finding.severity for finding in checked({"status": status})[1]} == {"error"}
