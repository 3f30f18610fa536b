"""Evidence of a handoff: verdicts are younger than the work they judge, and texts say something."""

import copy
from typing import Any

import pytest
from support.handoffs import DONE, EVERYTHING, NOW, QUESTION, REVIEW, VERIFICATION, by, codes, patch
from support.handoffs import handoff as task_in

from accord.core.errors import BrokenContract
from accord.core.texts import is_placeholder
from accord.handoffs.models import read_handoff
from accord.handoffs.plan import decide_move, decide_patch
from accord.handoffs.rules import handoff_findings, merge_patch
from accord.handoffs.stages import HandoffCommand, next_moves

DECISION = ("review-outdated", "/metadata/reviewArtifact/decision")
RESULT = ("verification-outdated", "/metadata/verificationArtifact/result")
RUN = patch(testingArtifacts={"implemented": {"commandsRun": ["pytest", "pytest -k new"]}})
TESTS = patch(testingArtifacts={"implemented": {"testsAddedOrUpdated": ["test_columns.py"]}})
LINKS = patch(testingArtifacts={"implemented": {"evidenceLinks": ["https://example.org/run/1"]}})
SUMMARY = patch(reviewArtifact={"changeSummary": [*REVIEW["changeSummary"], "And an import"]})
FILES = patch(reviewArtifact={"filesTouched": ["csv.py", "new.py"]})
PLAN = patch(planningArtifact={"goals": ["Import"]}, transitionNote="The goal is another one")
PLANNED = patch(testingArtifacts={"planned": {"unitTestIntent": ["columns"]}}, transitionNote="Columns, too")
COMMANDS = patch(verificationArtifact={"commands": ["true"]})
APPROVES = patch(reviewArtifact={"decision": "approved"})
PASSES = patch(verificationArtifact={"result": "passed"})

AT_NOON = "2026-11-02T12:00:00Z"

Steps = list[tuple[str, dict[str, Any] | str]]
REWORK: dict[str, tuple[Steps, list[tuple[str, str]]]] = {
    "nothing changed": ([], []),
    "tests changed": ([("developer", TESTS)], [RESULT, DECISION]),
    "evidence changed": ([("tester", LINKS)], [RESULT]),
    "the tests ran": ([("developer", RUN)], [RESULT]),
    "the summary grew": ([("developer", SUMMARY)], [RESULT, DECISION]),
    "another file": ([("developer", FILES)], [RESULT, DECISION]),
    "another plan": ([("planner", PLAN)], [RESULT, DECISION]),
    "another plan of tests": ([("planner", PLANNED)], [RESULT, DECISION]),
    "other commands": ([("developer", COMMANDS)], [RESULT]),
    "the tester's own commands": ([("tester", COMMANDS)], [RESULT]),
    "the tester's own commands with the same result": ([("tester", merge_patch(COMMANDS, PASSES))], []),
    "who judges completes the summary and decides": ([("reviewer", merge_patch(SUMMARY, APPROVES))], [RESULT]),
    "the tester's own tests": ([("tester", TESTS)], [RESULT, DECISION]),
    "the tester's own tests with a result": ([("tester", merge_patch(TESTS, PASSES))], [DECISION]),
    "the tester's own run with a result": ([("tester", merge_patch(RUN, PASSES))], []),
    "both verdicts again": ([("developer", TESTS), ("reviewer", APPROVES), ("tester", PASSES)], []),
    "the verdict of who may not": ([("developer", TESTS), ("developer", APPROVES | {})], [RESULT, DECISION]),
    "a verdict before the change": ([("reviewer", APPROVES), ("developer", TESTS)], [RESULT, DECISION]),
    "progress": ([("developer", patch(testingArtifacts={"implemented": {"status": "complete"}}))], []),
}


def after(status: str, steps: Steps) -> dict[str, Any]:
    task = task_in("verification", **EVERYTHING)
    decided = decide_move(task, status, by("tester"))
    assert decided.is_ok
    task = decided.task
    for role, content in steps:
        decided = decide_patch(task, copy.deepcopy(content), by(role))  # type: ignore[arg-type]
        assert decided.is_ok, decided.reasons
        task = decided.task
    return task


@pytest.mark.parametrize("case", REWORK)
def test_a_verdict_counts_if_it_is_younger_than_the_work_that_it_judges(case: str) -> None:
    steps, expected = REWORK[case]
    task = after("implementing", steps)
    review = decide_move(task, "review", by("developer"))
    assert codes(review.reasons) == [code for code in expected if code == RESULT]
    assert codes(decide_move(task | {"status": "review"}, "done", by("reviewer")).reasons) == expected


def test_an_edit_by_hand_outdates_and_the_same_work_again_does_not() -> None:
    task = after("implementing", [])
    edited = copy.deepcopy(task)
    edited["metadata"]["testingArtifacts"]["implemented"]["evidenceLinks"] = ["https://example.org/run/2"]
    assert codes(decide_move(edited, "review", by("developer")).reasons) == [RESULT]
    edited["metadata"]["testingArtifacts"]["implemented"]["evidenceLinks"] = []
    assert decide_move(edited, "review", by("developer")).is_ok
    done = task | {"status": "done"}
    done["metadata"]["planningArtifact"]["goals"] = ["Another"]
    assert codes(handoff_findings(read_handoff(done), NOW)) == [RESULT, DECISION]


@pytest.mark.parametrize(
    ("part", "verdict", "value", "found"),
    [
        ("reviewArtifact", "decision", "changes_requested", DECISION),
        ("verificationArtifact", "result", "failed", RESULT),
    ],
)
def test_a_verdict_that_was_edited_by_hand_counts_once_it_is_given(
    part: str, verdict: str, value: str, found: Any
) -> None:
    role = {"decision": "reviewer", "result": "tester"}[verdict]
    task = after("implementing", [(role, patch(**{part: {verdict: value}}))])
    good = EVERYTHING[part][verdict]
    task["metadata"][part][verdict] = good
    task["status"] = "review"
    assert codes(decide_move(task, "done", by("reviewer")).reasons) == [found]
    again = decide_patch(task, patch(**{part: {verdict: good}}), by(role)).task
    assert decide_move(again, "done", by("reviewer")).is_ok


SECOND = "2026-11-02T10:00:00"
NINE, TEN, TEN_THERE = "2026-11-02T09:00:00Z", "2026-11-02T10:00:00Z", "2026-11-02T12:00:00+02:00"


def dated(**times: str) -> dict[str, Any]:
    """A task in review that another tool wrote, with these times: ``PART`` or ``PART_KEY``, the key is updatedAt."""
    whole = copy.deepcopy(EVERYTHING)
    tests = whole["testingArtifacts"]
    parts: dict[str, Any] = {"plan": whole["planningArtifact"], "tests": tests, "planned": tests["planned"]}
    parts |= {"implemented": tests["implemented"], "review": whole["reviewArtifact"]}
    parts["verification"] = whole["verificationArtifact"]
    for name, time in times.items():
        part, _, key = name.partition("_")
        parts[part][key or "updatedAt"] = time
    return task_in("review", **whole)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"plan": TEN, "review": NINE, "verification": NINE}, [RESULT, DECISION]),
        ({"plan_createdAt": TEN, "review": NINE, "verification": TEN}, [DECISION]),
        ({"tests": TEN, "review": TEN, "verification": NINE}, [RESULT]),
        ({"planned": TEN, "review": NINE}, [DECISION]),
        ({"implemented": TEN_THERE, "review": NINE, "verification": TEN}, [DECISION]),
        ({"plan": TEN, "tests": NINE, "review": TEN_THERE, "verification": TEN}, []),
        ({"plan": TEN}, []),
        ({"review": NINE, "verification": NINE, "plan": NINE, "plan_createdAt": TEN}, []),
        ({"review": TEN, "verification": NINE}, []),
        (
            {"plan": f"{SECOND}.1234569Z", "review": f"{SECOND}.1234561Z", "verification": f"{SECOND},12345690Z"},
            [DECISION],
        ),
    ],
)
def test_in_a_document_of_another_tool_the_times_tell_which_verdict_is_older(times: Any, expected: Any) -> None:
    task = dated(**times)
    assert codes(decide_move(task, "done", by("reviewer")).reasons) == expected
    assert codes(handoff_findings(read_handoff({**task, "status": "done"}), NOW)) == expected
    for status in ("implementing", "review"):  # what a move or a patch writes makes no verdict older or younger
        moved = decide_move(task, "implementing", by("human")).task if status == "implementing" else task
        for content in (patch(planningArtifact={"status": "complete"}), patch(reviewArtifact={"knownRisks": ["Slow"]})):
            moved = decide_patch(moved, content, by("human", AT_NOON)).task
        assert codes(decide_move({**moved, "status": "review"}, "done", by("reviewer")).reasons) == expected
    again = {"reviewArtifact": {"decision": "approved"}, "verificationArtifact": {"result": "passed"}}
    judged = decide_patch(task, patch(**again), by("human", AT_NOON)).task
    assert decide_move(judged, "done", by("reviewer")).is_ok


def test_a_newer_verdict_of_another_tool_counts_also_after_a_move() -> None:
    task = decide_move(dated(plan=NINE, review=TEN, verification=TEN), "verification", by("reviewer")).task
    task["metadata"]["planningArtifact"] |= {"goals": ["Another"], "updatedAt": "2026-11-02T13:00:00Z"}
    for part in ("reviewArtifact", "verificationArtifact"):
        task["metadata"][part]["updatedAt"] = "2026-11-02T14:00:00Z"
    assert decide_move(task, "done", by("reviewer", "2026-11-02T15:00:00Z")).is_ok


def test_a_verdict_of_another_tool_does_not_outlive_an_edit_after_the_work_began_again() -> None:
    task = decide_move(dated(plan=NINE, review=TEN, verification=TEN), "implementing", by("reviewer")).task
    assert decide_move(task | {"status": "verification"}, "done", by("reviewer")).is_ok
    task["metadata"]["planningArtifact"]["goals"] = ["Another"]
    assert codes(decide_move(task | {"status": "verification"}, "done", by("reviewer")).reasons) == [RESULT, DECISION]


FUTURE = "2126-11-02T09:00:00Z"
TIMES = {
    "doneArtifact/completedAt": {"doneArtifact": {**DONE, "completedAt": FUTURE}},
    "awaitingHumanArtifact/requestedAt": {"awaitingHumanArtifact": {**QUESTION, "requestedAt": FUTURE}},
    "planningArtifact/createdAt": {"planningArtifact": {"createdAt": FUTURE}},
    "testingArtifacts/implemented/updatedAt": {"testingArtifacts": {"implemented": {"updatedAt": FUTURE}}},
}


@pytest.mark.parametrize("place", TIMES)
def test_a_time_in_the_future_gets_into_no_handoff_and_is_found_where_it_is(place: str) -> None:
    found = [("timestamp-future", f"/metadata/{place}")]
    patched = decide_patch(task_in("review"), patch(**TIMES[place]), by("human"))
    assert (codes(patched.reasons), patched.blames_patch) == (found, True)
    edited = task_in("review", **{**EVERYTHING, **TIMES[place]})
    assert [one for one in codes(handoff_findings(read_handoff(edited), NOW)) if "future" in one[0]] == found
    assert decide_patch(edited, TESTS, by("developer")).is_ok, "other work goes on"


@pytest.mark.parametrize(("place", "target"), [*zip(TIMES, ("done", "awaiting_human"), strict=False)])
def test_a_time_in_the_future_refuses_the_move_that_needs_it_and_the_proposal_names_it(place: str, target: str) -> None:
    task = task_in("review", **{**EVERYTHING, **TIMES[place]})
    assert codes(decide_move(task, target, by("human")).reasons) == [("timestamp-future", f"/metadata/{place}")]
    (move,) = (move for move in next_moves(task, HandoffCommand("task.json"), NOW) if move.to == target)
    assert move.missing == (f"{place.replace('/', '.')} not in the future",)
    assert decide_move(task, "implementing", by("human")).is_ok


@pytest.mark.parametrize("time", ["10:00:00.1234567x9Z", "10:00:00.Z", "10.5Z", "10:30.5Z", "10:00:00.1234567.9Z"])
def test_a_malformed_fraction_is_not_a_time(time: str) -> None:
    with pytest.raises(BrokenContract) as refused:
        read_handoff(task_in("review", planningArtifact={"createdAt": f"2026-11-02T{time}"}))
    (found,) = refused.value.findings
    assert "The value is not a timestamp" in found.message


LATER = "2026-11-03T10:00:00Z"
OLD_TIME = QUESTION["requestedAt"].replace("Z", ".000Z")
OTHER = {"question": "Which encoding?"}
ASKED_AGAIN: dict[str, tuple[dict[str, Any] | None, str]] = {
    "the same": (None, ""),
    "a change elsewhere": (TESTS, ""),
    "another question": (patch(awaitingHumanArtifact=OTHER), LATER),
    "another question with the old time": (patch(awaitingHumanArtifact={**QUESTION, **OTHER}), ""),
    "another question with the old time and a fraction": (
        patch(awaitingHumanArtifact={**OTHER, "requestedAt": OLD_TIME}),
        "",
    ),
    "other options": (patch(awaitingHumanArtifact={"options": ["Comma", "Semicolon"]}), LATER),
    "the same at another time": (patch(awaitingHumanArtifact={"requestedAt": AT_NOON}), AT_NOON),
    "another question at its time": (patch(awaitingHumanArtifact={**OTHER, "requestedAt": AT_NOON}), AT_NOON),
}


@pytest.mark.parametrize("case", ASKED_AGAIN)
def test_an_answered_question_is_not_asked_again_and_a_new_one_has_its_own_time(case: str) -> None:
    change, requested_at = ASKED_AGAIN[case]
    task = decide_move(task_in("implementing", **EVERYTHING), "awaiting_human", by("developer")).task
    task = decide_move(task, "implementing", by("human")).task
    moves = {move.to: move for move in next_moves(task, HandoffCommand("task.json"), NOW)}
    assert moves["awaiting_human"].missing == ("awaitingHumanArtifact.question that is new",)
    again = decide_move(task, "awaiting_human", by("developer", LATER), copy.deepcopy(change))
    if not requested_at:
        (reason,) = again.reasons
        assert reason.code == ("question-time" if "old time" in case else "question-answered")
        assert "was answered" not in reason.message, "it may have been left without an answer"
    else:
        assert again.is_ok
        assert again.task["metadata"]["awaitingHumanArtifact"]["requestedAt"] == requested_at


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({**OTHER}, None),
        ({**OTHER, "answer": "B"}, "B"),
        ({"requestedAt": AT_NOON}, None),
        ({"status": "complete"}, "A"),
    ],
)
@pytest.mark.parametrize("target", ["implementing", "awaiting_human"])
def test_a_changed_question_drops_what_was_added_to_the_old_one(
    change: dict[str, Any], expected: str | None, target: str
) -> None:
    task = decide_move(task_in("implementing", **EVERYTHING), "awaiting_human", by("developer")).task
    task = decide_move(task, target, by("human"), patch(awaitingHumanArtifact={"answer": "A"})).task
    assert task["metadata"]["awaitingHumanArtifact"]["answer"] == "A"
    decided = decide_patch(task, patch(awaitingHumanArtifact=change), by("developer", LATER))
    assert decided.is_ok
    asked = decided.task["metadata"]["awaitingHumanArtifact"]
    assert (asked.get("answer"), asked["options"]) == (expected, QUESTION["options"])


def test_a_question_that_still_waits_keeps_its_time_and_a_redirect_asks_with_its_own() -> None:
    task = decide_move(task_in("implementing", **EVERYTHING), "awaiting_human", by("developer")).task
    worded = decide_patch(task, patch(awaitingHumanArtifact=OTHER), by("developer", LATER)).task
    assert worded["metadata"]["awaitingHumanArtifact"]["requestedAt"] == QUESTION["requestedAt"]
    task = task_in("implementing", awaitingHumanArtifact=QUESTION)
    for at in ("2026-11-04T10:00:00Z", "2026-11-05T10:00:00Z"):
        task = decide_move(task, "review", by("developer", at), redirects=True).task
        assert (task["status"], task["metadata"]["awaitingHumanArtifact"]["requestedAt"]) == ("awaiting_human", at)
        task = decide_move(task, "implementing", by("human", at)).task


@pytest.mark.parametrize(
    ("content", "renewed"),
    [
        (PASSES, ["verificationArtifact"]),
        (APPROVES, ["reviewArtifact"]),
        (merge_patch(RUN, PASSES), ["verificationArtifact"]),
        (RUN, []),
    ],
)
def test_an_outdated_verdict_given_again_has_its_new_author(content: dict[str, Any], renewed: list[str]) -> None:
    verdicts = {name: EVERYTHING[name] | {"updatedBy": "eve"} for name in ("reviewArtifact", "verificationArtifact")}
    task = task_in("implementing", **EVERYTHING | verdicts)
    for change, author in ((TESTS, by("developer")), (content, by("human", AT_NOON)), (content, by("human"))):
        task = decide_patch(task, copy.deepcopy(change), author).task
    signs = {name: (task["metadata"][name]["updatedBy"], task["metadata"][name].get("updatedAt")) for name in verdicts}
    assert signs == {name: ("human", AT_NOON) if name in renewed else ("eve", None) for name in verdicts}


def test_a_verdict_given_again_is_written_once_and_named_as_what_is_missing() -> None:
    task = after("implementing", [("developer", TESTS)])
    moves = {move.to: move for move in next_moves(task, HandoffCommand("task.json"), NOW)}
    assert moves["review"].missing == ("verificationArtifact.result after the last change",)
    assert moves["review"].command == "accord handoff patch task.json PATCH.json --role tester"
    once = decide_patch(task, PASSES, by("tester")).task
    assert once != task
    assert decide_patch(once, PASSES, by("tester")).task == once


@pytest.mark.parametrize("text", ["...", "…", " ", "-", "<summary>", "{summary}", "TODO", "todo: ", "TBD", "TEXT"])
def test_a_placeholder_is_not_evidence(text: str) -> None:
    assert is_placeholder(text)
    for parts, target in (
        ({"reviewArtifact": {**REVIEW, "changeSummary": [text]}}, "review"),
        ({"verificationArtifact": {**VERIFICATION, "commands": [text]}}, "review"),
        ({"awaitingHumanArtifact": {**QUESTION, "question": text}}, "awaiting_human"),
    ):
        task = task_in("implementing", **{**EVERYTHING, **parts})
        assert [one.code.partition("-")[0] for one in decide_move(task, target, by("developer")).reasons] == ["missing"]
    task = task_in("verification", **{**EVERYTHING, "doneArtifact": {**DONE, "summary": [text, text]}})
    assert codes(decide_move(task, "done", by("tester")).reasons) == [
        ("missing-done-artifact", "/metadata/doneArtifact/summary")
    ]


@pytest.mark.parametrize("text", ["ok", "Adds ...", "完了", "42", "todo list: adds it", "<b>bold</b> text", "./x"])
def test_a_short_text_is_evidence(text: str) -> None:
    assert not is_placeholder(text)
