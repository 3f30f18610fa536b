"""Patches and moves of a task, and the engine's record of them."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.handoffs import (
    AT,
    DONE,
    EVERYTHING,
    LATER,
    OUTPUTS,
    QUESTION,
    REVIEW,
    VERIFICATION,
    by,
    checked,
    codes,
    handoff,
    patch,
)

from accord.core.documents import MAX_DEPTH
from accord.handoffs.models import normalise
from accord.handoffs.plan import Author, decide_move, decide_patch, decide_with_id, with_task_id
from accord.handoffs.rules import ROLES

BOTH = {"reviewArtifact": REVIEW, "verificationArtifact": VERIFICATION}


def runtime(task: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = task["metadata"]["workflowRuntime"]
    return found


def test_a_patch_is_merged_key_by_key_and_says_who_changed_what_when() -> None:
    task = handoff(reviewArtifact={"changeSummary": ["One"], "filesTouched": ["a"], "x-tool": "kept"})
    decided = decide_patch(task, patch(reviewArtifact={"knownRisks": ["Slow"]}), Author("reviewer", AT, "ada"))
    assert decided.is_ok
    assert decided.task["metadata"]["reviewArtifact"] == {
        "changeSummary": ["One"],
        "filesTouched": ["a"],
        "x-tool": "kept",
        "knownRisks": ["Slow"],
        "updatedAt": AT,
        "updatedBy": "ada",
    }


def test_stamps_of_a_patch_stay_and_the_same_patch_twice_is_once() -> None:
    given = {"changeSummary": ["One"], "updatedAt": "2026-01-01T00:00:00Z", "updatedBy": "bot"}
    bot = Author("reviewer", AT, "bot")
    once = decide_patch(handoff(), patch(reviewArtifact=given, doneArtifact=DONE), bot).task
    assert once["metadata"]["reviewArtifact"] == given
    assert decide_patch(once, patch(reviewArtifact=given, doneArtifact=DONE), by("tester", LATER)).task == once


def test_no_one_signs_a_change_with_the_name_of_another() -> None:
    signed = patch(verificationArtifact={**VERIFICATION, "updatedBy": "eve"})
    for author in (by("tester"), Author("tester", AT, "ada")):
        decided = decide_patch(handoff(), signed, author)
        assert codes(decided.reasons) == [("author-differs", "/metadata/verificationArtifact/updatedBy")]
    task = decide_patch(handoff(), signed, Author("tester", AT, "eve")).task
    assert decide_patch(task, signed, by("tester")).task == task, "a repetition changes nothing"


@pytest.mark.parametrize("role", ROLES)
def test_a_document_that_comes_back_whole_gives_no_verdict_of_another(role: str) -> None:
    signed = {name: {**part, "updatedAt": AT, "updatedBy": "eve"} for name, part in BOTH.items()}
    task = handoff("verification", **{**EVERYTHING, **signed})
    decided = decide_patch(task, {**task, "metadata": {**task["metadata"], "x-tool": "new"}}, by(role, LATER))
    assert decided.reasons == ()
    runtime_now = runtime(decided.task)
    assert decided.task["metadata"] == {**task["metadata"], "x-tool": "new", "workflowRuntime": runtime_now}
    assert runtime_now["judgedBy"] == {"decision": "eve", "result": "eve"}


@pytest.mark.parametrize(
    "content",
    [
        {"reviewArtifact": {"decision": "changes_requested"}},
        {"reviewArtifact": {"decision": None}},
        {"verificationArtifact": {"result": "failed"}},
    ],
)
def test_a_done_task_keeps_the_verdicts_that_it_rests_on(content: dict[str, Any]) -> None:
    task = handoff("done", **EVERYTHING)
    decided = decide_patch(task, patch(**content), by("human"))
    assert decided.task == task
    assert "The status done requires it" in decided.reasons[0].message
    assert decide_move(task, "review", by("human"), patch(**content)).is_ok
    (name, change), *_ = content.items()
    spoiled = handoff("done", **{**EVERYTHING, name: {**EVERYTHING[name], **change}})  # type: ignore[dict-item]
    assert checked(spoiled)[1]
    for status in ("review", "verification"):
        withdrawn = decide_patch(handoff(status, **EVERYTHING), patch(**content), by("human"))
        assert (withdrawn.is_ok, {each.severity for each in checked(withdrawn.task)[1]} <= {"warning"}) == (True, True)
    assert "review-not-approved" in {each.code for each in checked(withdrawn.task)[1]} or name != "reviewArtifact"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"completedAt": "2020-01-01T00:00:00Z"}, [("immutable-field", "/metadata/doneArtifact/completedAt")]),
        ({"summary": ["Nothing was done"]}, [("append-only", "/metadata/doneArtifact/summary")]),
        ({"summary": ["And more", *DONE["summary"]]}, [("append-only", "/metadata/doneArtifact/summary")]),
        ({"summary": [*DONE["summary"], "And more"], "verification": ["pytest -x"], "status": "complete"}, []),
    ],
)
def test_a_done_task_keeps_its_result_until_it_is_opened_again(content: dict[str, Any], expected: Any) -> None:
    task, wanted = handoff("done", **EVERYTHING), patch(doneArtifact=content)
    for role in ("human", "retrospective"):
        assert codes(decide_patch(task, wanted, by(role)).reasons) == expected
        assert codes(decide_move(task, "done", by(role), wanted).reasons) == expected
    assert decide_move(task, "review", by("human"), wanted).is_ok
    assert decide_patch(handoff("verification", **EVERYTHING), wanted, by("human")).is_ok
    assert decide_patch(handoff("done", **{**EVERYTHING, "doneArtifact": {}}), wanted, by("human")).is_ok


@pytest.mark.parametrize("judged", [None, {}])
def test_work_of_a_done_task_stays_even_where_no_move_recorded_what_its_verdicts_judge(judged: Any) -> None:
    task = handoff("done", **EVERYTHING, **({} if judged is None else {"workflowRuntime": {"judged": judged}}))
    decided = decide_patch(task, patch(reviewArtifact={"filesTouched": ["csv.py", "b.py"]}), by("developer"))
    assert {reason.code for reason in decided.reasons} == {"review-outdated", "verification-outdated"}
    assert decided.task == task


def deep() -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(MAX_DEPTH - 1):
        value = {"deeper": value}
    return value


REFUSED = {
    "append-only /metadata/reviewArtifact/changeSummary": (
        "reviewer",
        patch(reviewArtifact={"knownRisks": ["Slow"], "changeSummary": []}, retrospectives=[{}]),
    ),
    "schema /metadata/reviewArtifact/decision": ("reviewer", patch(reviewArtifact={"decision": "fine"})),
    "too-large ": ("planner", patch(planningArtifact=deep())),
    "misplaced-artifact /reviewArtifact": ("reviewer", {"reviewArtifact": REVIEW, "title": "T"}),
    "key-misspelled /planingArtifact": ("planner", {"planingArtifact": {"goals": ["Ship"]}}),
    "key-misspelled /metadata/transitionnote": ("planner", patch(transitionnote="Why")),
    "key-misspelled /metadata/reviewArtifact/decison": ("reviewer", {"reviewArtifact": {"decison": "approved"}}),
    "key-misspelled /metadata/testingArtifacts/plannd": ("planner", patch(testingArtifacts={"plannd": {}})),
    "key-misspelled /metadata/awaitingHumanArtifact/options/0/lable": (
        "human",
        patch(awaitingHumanArtifact={"options": [{"label": "Comma", "lable": "Tab"}]}),
    ),
    "status-in-patch /status": ("human", {"status": "done"}),
    "role-must-not-write /metadata/doneArtifact/completedAt": ("planner", patch(doneArtifact=None)),
    "immutable-field /metadata/planningArtifact/createdAt": ("human", patch(planningArtifact={"createdAt": None})),
    "immutable-field /metadata/workflow/branchName": ("human", patch(workflow={"branchName": "other"})),
    "immutable-field /metadata/workflow/baseBranch": ("human", patch(workflow={"baseBranch": "next"})),
    "immutable-field /metadata/canonicalTaskId": ("human", patch(canonicalTaskId="T-00999")),
}


def test_a_patch_may_repeat_unknown_keys_of_the_task_also_in_lists() -> None:
    old = {"label": "Comma", "lable": "Tab"}
    task = handoff(awaitingHumanArtifact={"options": [old]})
    for options in ([old, {"label": "New"}], [{"label": "New"}, old]):
        assert decide_patch(task, patch(awaitingHumanArtifact={"options": options}), by("human")).reasons == ()


@pytest.mark.parametrize("expected", REFUSED)
def test_a_refused_patch_names_its_reason_and_changes_nothing(expected: str) -> None:
    role, content = REFUSED[expected]
    task = handoff(**EVERYTHING)
    decided = decide_patch(task, content, by(role))
    first, *others = codes(decided.reasons)
    assert " ".join(first) == expected
    assert {code for code, _ in others} <= {first[0]}
    assert (decided.task, decided.is_ok) == (task, False)


@pytest.mark.parametrize("more", [{}, {"schemaVersion": "1.0"}, {"x-note": "Later", "x-tool": {"run": 7}}])
@pytest.mark.parametrize("content", [BOTH, {"transitionNote": "Why"}, {"schemaVersion": "1.1"}])
def test_keys_that_only_the_metadata_has_give_a_patch_its_form(content: dict[str, Any], more: dict[str, Any]) -> None:
    decided = decide_patch(handoff(), {**more, **content}, by("human"))
    assert decided.is_ok
    assert decided.task == decide_patch(handoff(), patch(**{**more, **content}), by("human")).task


def test_keys_that_the_document_has_give_a_patch_its_form() -> None:
    task = {**handoff(), "schemaVersion": "1.0", "x-note": "Now"}
    for key in ("schemaVersion", "x-note"):
        assert decide_patch(task, {key: "Later"}, by("human")).task == {**task, key: "Later"}
        refused = decide_patch(task, {key: "Later", **BOTH}, by("human")).reasons
        assert {reason.code for reason in refused} == {"misplaced-artifact"}


@pytest.mark.parametrize(
    ("status", "content", "code"),
    [
        ("review", {"verificationArtifact": {"status": "superseded"}}, "missing-review-artifacts"),
        ("verification", {"verificationArtifact": {"commands": []}}, "missing-review-artifacts"),
        ("done", {"doneArtifact": {"summary": []}}, "missing-done-artifact"),
        ("awaiting_human", {"awaitingHumanArtifact": {"options": []}}, "missing-awaiting-human-artifact"),
    ],
)
def test_a_patch_does_not_take_away_what_the_status_of_the_task_rests_on(status: str, content: Any, code: str) -> None:
    task = handoff(status, **EVERYTHING)
    decided = decide_patch(task, patch(**content), by("human"))
    assert {reason.code for reason in decided.reasons} == {code}
    assert decided.task == task
    assert not decide_move(task, status, by("human"), patch(**content)).is_ok, "a move to the same status does not help"
    if status != "done":
        assert decide_move(task, "implementing", by("human"), patch(**content)).is_ok
    spoiled = handoff(status, **{**EVERYTHING, **dict.fromkeys(content)})
    assert decide_patch(spoiled, patch(x="1"), by("human")).is_ok, "artifacts that were missing before do not count"


def test_a_patch_may_name_the_status_of_the_task_or_of_the_same_move() -> None:
    assert decide_patch(handoff(), {"status": "in_progress"}, by("human")).is_ok
    decided = decide_move(handoff("planning", **OUTPUTS), "implementing", by("planner"), {"status": "in_progress"})
    assert (decided.is_ok, decided.status) == (True, "implementing")


def test_a_move_merges_its_patch_and_records_source_target_and_next_actions() -> None:
    decided = decide_move(handoff(), "review", by("human"), patch(**BOTH))
    assert (decided.is_ok, decided.status, decided.reasons) == (True, "review", ())
    found = runtime(decided.task)
    assert found["lastTransition"] == {"from": "implementing", "to": "review", "at": AT}
    assert found["blockingReasons"] == []
    (action,) = found["nextActions"]
    assert action["type"] == "dispatch_reviewer"
    leaving, entering = found["actionHistory"]
    assert (leaving["phase"], leaving["status"], leaving["result"]) == ("onExit", "implementing", "ok")
    assert (entering["phase"], entering["status"], entering["result"]) == ("onEnter", "review", "ok")
    assert (leaving["nextActionCount"], entering["nextActionCount"]) == (0, 1)
    assert {one.code for one in checked(decided.task)[1]} == {"role-input-missing", "not-independent"}


def test_a_refused_move_takes_nothing_of_its_patch_and_writes_down_why() -> None:
    decided = decide_move(handoff(), "review", by("tester"), patch(verificationArtifact=VERIFICATION))
    assert (decided.is_ok, decided.status) == (False, "implementing")
    assert "verificationArtifact" not in decided.task["metadata"]
    found = runtime(decided.task)
    (reason,), (entry,) = found["blockingReasons"], found["actionHistory"]
    assert (reason["code"], reason["path"]) == ("MISSING_REVIEW_ARTIFACTS", "/metadata/reviewArtifact")
    assert (entry["result"], entry["error"], entry["blockingReasonCount"]) == ("error", "MISSING_REVIEW_ARTIFACTS", 1)


def test_each_refusal_is_recorded_once_and_the_reasons_end_with_the_next_success() -> None:
    once = decide_move(handoff(), "review", by("tester")).task
    again = decide_move(once, "review", by("tester", LATER))
    assert (again.task, again.is_ok) == (once, False)
    other = decide_move(once, "awaiting_human", by("tester", LATER)).task
    assert [entry["actionType"] for entry in runtime(other)["actionHistory"]] == ["move:review", "move:awaiting_human"]
    patched = decide_patch(once, patch(**BOTH), by("human", LATER)).task
    done = decide_move(once, "review", by("human", LATER), patch(**BOTH)).task
    assert runtime(patched)["blockingReasons"] == runtime(done)["blockingReasons"] == []
    assert [entry["result"] for entry in runtime(done)["actionHistory"]] == ["error", "ok", "ok"]
    there = decide_move(done, "review", by("human", LATER), patch(**BOTH))
    assert (there.is_ok, there.task) == (True, done)


def test_where_something_is_missing_a_redirect_asks_a_person_and_keeps_the_work() -> None:
    given = patch(verificationArtifact=VERIFICATION)
    decided = decide_move(handoff(), "review", by("tester"), given, redirects=True)
    assert (decided.is_ok, decided.is_redirected, decided.status) == (True, True, "awaiting_human")
    assert codes(decided.reasons) == [("missing-review-artifacts", "/metadata/reviewArtifact")]
    assert decided.task["metadata"]["verificationArtifact"]["result"] == "passed"
    leaving, entering = runtime(decided.task)["actionHistory"]
    assert (leaving["actionType"], leaving["error"]) == ("redirect:review", "MISSING_REVIEW_ARTIFACTS")
    assert (entering["status"], entering["result"]) == ("awaiting_human", "ok")
    assert [reason["code"] for reason in runtime(decided.task)["blockingReasons"]] == ["MISSING_REVIEW_ARTIFACTS"]
    # the question that was written is a whole one
    assert {one.code for one in checked(decided.task)[1]} <= {"role-input-missing"}


@pytest.mark.parametrize(
    ("source", "artifacts", "target"),
    [
        ("implementing", {}, "review"),
        ("review", {"reviewArtifact": REVIEW}, "verification"),
        ("review", BOTH, "done"),
        ("verification", BOTH, "done"),
    ],
)
def test_a_redirect_that_is_tried_again_asks_once(source: str, artifacts: dict[str, Any], target: str) -> None:
    once = decide_move(handoff(source, **artifacts), target, by("tester"), redirects=True)
    assert (once.status, runtime(once.task)["nextActions"][0]["type"]) == ("awaiting_human", "ask_human")
    by_hand = once.task["metadata"]["awaitingHumanArtifact"]["options"][1]["description"]
    assert f"to review{f', and from there to {target}' * (target != 'review')}." in by_hand
    again = decide_move(once.task, target, by("tester", LATER), redirects=True)
    assert (again.task, again.reasons, again.is_ok, again.is_redirected) == (once.task, once.reasons, True, True)
    for other in {"verification", "done"} - {target}:  # another move does not wait for the answer
        refused = decide_move(once.task, other, by("tester", LATER), redirects=True)
        assert codes(refused.reasons) == [("invalid-status-transition", "/status")]


def test_a_missing_artifact_during_another_question_is_recorded_once() -> None:
    task = handoff("awaiting_human", awaitingHumanArtifact={**QUESTION, "question": "Tea?"})
    once = decide_move(task, "review", by("tester"), redirects=True)
    assert (once.is_redirected, once.task["metadata"]["awaitingHumanArtifact"]["question"]) == (True, "Tea?")
    assert runtime(once.task)["actionHistory"][-1]["error"] == "MISSING_REVIEW_ARTIFACTS"
    assert decide_move(once.task, "review", by("tester", LATER), redirects=True).task == once.task


def test_each_entry_into_a_status_calls_its_role_again() -> None:
    task, ids = handoff("planning", **OUTPUTS), []
    for target in ("implementing", "backlog") * 3:
        task = decide_move(task, target, by("human")).task
        ids += [action["id"] for action in runtime(task)["nextActions"] if action["type"] == "dispatch_developer"]
    assert len(set(ids)) == 3, "a task that came back would wait for a developer who is never called"


def test_the_question_of_a_redirect_stays_when_the_same_command_brings_another_one_again() -> None:
    other = patch(awaitingHumanArtifact={"question": "May I?"})
    once = decide_move(handoff(), "review", by("tester"), other, redirects=True).task
    assert "reviewArtifact is missing" in once["metadata"]["awaitingHumanArtifact"]["question"]
    assert decide_move(once, "review", by("tester", LATER), other, redirects=True).task == once


def test_a_redirect_is_for_what_is_missing_and_not_for_what_is_forbidden() -> None:
    changes = {**BOTH, "doneArtifact": DONE, "reviewArtifact": {**REVIEW, "decision": "changes_requested"}}
    for task, target in (
        (handoff("review", **changes), "done"),
        (handoff("implementing"), "done"),
        (handoff("implementing"), "awaiting_human"),
        (handoff("backlog"), "done"),
    ):
        decided = decide_move(task, target, by("human"), redirects=True)
        assert (decided.is_ok, decided.status) == (False, task["status"])
    forbidden = decide_move(handoff(), "review", by("planner"), patch(**BOTH), redirects=True).task
    assert runtime(forbidden)["actionHistory"][0]["error"] == "ROLE_MUST_NOT_WRITE"


def test_entering_done_sets_when_leaving_it_clears_that_and_old_history_stays() -> None:
    old = {"at": "2026-01-01T00:00:00Z", "phase": "onEnter", "status": "planning", "result": "ok", "x-node": "n1"}
    given = {**BOTH, "doneArtifact": DONE, "workflowRuntime": {"actionHistory": [old], "x-engine": "other"}}
    done = decide_move(handoff("review", **given), "done", by("human"))
    assert done.task["completedAt"] == AT
    again = decide_move(done.task, "review", by("human", LATER))
    assert (again.status, again.task["completedAt"]) == ("review", None)
    assert (runtime(again.task)["actionHistory"][0], runtime(again.task)["x-engine"]) == (old, "other")


def test_a_key_names_task_status_action_and_artifacts() -> None:
    def keys(task: dict[str, Any], target: str = "review") -> list[str]:
        history = runtime(decide_move(task, target, by("tester")).task)["actionHistory"]
        return [entry["idempotencyKey"] for entry in history]

    same, again = keys(handoff(**BOTH)), keys(handoff(**BOTH))
    assert same == again
    assert same[0].startswith("T-00123/implementing/move:review/")
    others = [
        keys(handoff("awaiting_human", **BOTH)),
        keys(handoff(**BOTH), "backlog"),
        keys(handoff(**BOTH, transitionNote="More")),
        keys(handoff(**{**BOTH, "canonicalTaskId": "T-00124"})),
    ]
    assert len({same[0], *(other[0] for other in others)}) == 5
    named = ({**handoff(**{**BOTH, "canonicalTaskId": None}), "id": name} for name in ("T-00007", "export"))
    assert [keys(task)[0].partition("/")[0] for task in named] == ["T-00007", "export"]


@pytest.mark.parametrize(
    ("given", "expected"), [(None, "T-00042"), ("12", "T-00042"), ("T-1234", "T-00042"), ("T-00007", "T-00007")]
)
def test_a_task_gets_an_id_where_it_has_none_that_is_one(given: str | None, expected: str) -> None:
    task = normalise({"metadata": {"canonicalTaskId": given}})
    assert with_task_id(task, "T-00042")["metadata"]["canonicalTaskId"] == expected


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
        ("architect", [GOALS, PLANNED, RESULT], [SUMMARY, ASKED, DECISION, EVIDENCE, TESTS, FINISHED]),
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
        kept = {key: value for key, value in decided.task["metadata"][P].items() if key != "reviewReferences"}
        assert {**kept, "reviewReferences": 0} == {**task["metadata"][P], "reviewReferences": 0}, "no stamp"
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
    same = decide_patch(task, {**task, "completedAt": None}, by(role))
    assert (same.reasons, same.task) == ((), task)


@pytest.mark.parametrize(
    ("given", "content", "expected"),
    [
        ({}, {"canonicalTaskId": "T-00123", "x": 1}, "T-00123"),
        ({"canonicalTaskId": "12"}, {"canonicalTaskId": "T-00123"}, "T-00123"),
        ({"canonicalTaskId": "12"}, {"canonicalTaskId": "12", "x": 1}, "T-00042"),
        ({}, {"canonicalTaskId": None}, "T-00042"),
        ({}, {"x": 1}, "T-00042"),
    ],
)
def test_the_first_change_of_a_task_brings_its_id_or_gets_one(given: Any, content: Any, expected: str) -> None:
    task = normalise({"status": "backlog", "metadata": given})
    decision = decide_with_id(
        task, lambda found: decide_move(found, "planning", by("human"), patch(**content)), lambda: "T-00042"
    )
    moved = decision.task
    assert codes(decision.warnings) == [("task-id-invalid", "/metadata/canonicalTaskId")] * bool(given)
    assert moved["metadata"]["canonicalTaskId"] == expected
    assert {entry["idempotencyKey"].partition("/")[0] for entry in runtime(moved)["actionHistory"]} == {expected}


@pytest.mark.parametrize(("own", "expected"), [("T-00007", "T-00007"), ("export", "T-00042"), (7, "T-00042")])
def test_the_id_of_a_document_is_that_of_its_task(own: Any, expected: str) -> None:
    task = normalise({"id": own, "status": "backlog", "metadata": {}})
    moved = decide_with_id(task, lambda found: decide_move(found, "planning", by("human")), lambda: "T-00042").task
    assert moved["metadata"]["canonicalTaskId"] == expected


@pytest.mark.parametrize("content", [{"canonicalTaskId": "T-00009", **BOTH}, {}])
def test_a_refused_or_empty_change_gives_a_task_no_id(content: dict[str, Any]) -> None:
    task = normalise({"status": "implementing", "metadata": {}})
    refused = decide_with_id(task, lambda found: decide_move(found, "done", by("human"), patch(**content)), str)
    assert (refused.is_ok, "canonicalTaskId" in refused.task["metadata"]) == (False, False)
    assert decide_with_id(task, lambda found: decide_patch(found, {}, by("human")), str).task == task


@pytest.mark.parametrize("more", [{}, {"canonicalTaskId": None}])
def test_immutable_fields_can_be_set_once(more: dict[str, Any]) -> None:
    content = patch(workflow={"branchName": "task/x"}, **more)
    metadata = decide_patch(handoff(), content, by("developer")).task["metadata"]
    assert (metadata["workflow"]["branchName"], metadata["canonicalTaskId"]) == ("task/x", "T-00123")


@pytest.mark.parametrize("task_id", ["77", "T-1234", "", 5, ["T-00123"]])
@pytest.mark.parametrize("known", [{}, {"canonicalTaskId": "12"}, {"canonicalTaskId": "T-00123"}])
def test_a_patch_with_a_malformed_id_is_refused(known: dict[str, str], task_id: object) -> None:
    task = normalise({"status": "backlog", "metadata": known})
    for content in (patch(canonicalTaskId=task_id, x=1), {"canonicalTaskId": task_id, "planningArtifact": {}}):
        decided = decide_patch(task, content, by("human"))
        assert codes(decided.reasons) == [("task-id-invalid", "/metadata/canonicalTaskId")]
        assert (decided.task, decided.is_ok, decided.blames_patch) == (task, False, True)


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
    for note in ({}, *({"transitionNote": text} for text in ("An old reason ", "  ", "...", "TODO"))):
        found = decide_patch(task, patch(**content, **note), by("planner")).reasons
        assert {reason.code for reason in found} == {"transition-note-missing"}, note
    assert decide_patch(task, patch(**content, transitionNote="A new one"), by("planner")).reasons == ()


@pytest.mark.parametrize("status", ["backlog", "planning", "implementing", "review", "done"])
@pytest.mark.parametrize("content", [{P: {"risks": ["Data loss"]}}, {T: {"planned": {"notes": "More"}}}])
def test_a_plan_is_filled_later_only_with_a_reason(status: str, content: dict[str, Any]) -> None:
    empty = {P: {**EVERYTHING[P], "risks": []}, T: {"planned": {**EVERYTHING[T]["planned"], "notes": None}}}
    task = {**handoff(**empty), "status": status}
    found = {reason.code for reason in decide_patch(task, patch(**content), by("planner")).reasons}
    assert found == {"transition-note-missing"}
    assert decide_patch(task, patch(**content, transitionNote="A new one"), by("planner")).reasons == ()


def test_a_first_plan_and_its_status_need_no_reason() -> None:
    first = {P: EVERYTHING[P], T: {"planned": EVERYTHING[T]["planned"]}}
    progress: list[Any] = [{P: {"status": "complete"}}, {T: {"planned": {"status": "draft"}}}]
    later = ({P: EVERYTHING[P]}, {T: first[T]})
    for before, content in (({}, first), later, *((EVERYTHING, one) for one in progress)):
        assert decide_patch(handoff(**before), patch(**content), by("planner")).reasons == ()


def test_the_page_lists_every_role() -> None:
    page = (Path(__file__).parents[2] / "docs/handoffs.md").read_text(encoding="utf-8")
    part = page.partition("Each role must leave")[2].partition("\n\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^- (`.*?):", part, re.MULTILINE)))) == set(ROLES)
