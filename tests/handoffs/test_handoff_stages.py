"""Which moves there are, what each of them asks for, and the next ones with a command."""

from typing import Any

import pytest
from support.handoffs import (
    AT,
    DONE,
    EDGES,
    EVERYTHING,
    IMPLEMENTED,
    NOW,
    OUTPUTS,
    PLAN,
    PLANNED,
    QUESTION,
    REVIEW,
    VERIFICATION,
    by,
    checked,
    codes,
    handoff,
    patch,
)

from accord.core.findings import has_errors
from accord.handoffs.models import read_handoff
from accord.handoffs.plan import decide_move, decide_patch
from accord.handoffs.stages import HANDOFF, HandoffCommand, gate_findings, next_moves

R, V, A, D = ("reviewArtifact", "verificationArtifact", "awaitingHumanArtifact", "doneArtifact")
WHOLE: dict[str, Any] = {R: REVIEW, V: VERIFICATION, A: QUESTION, D: DONE}
OPTIONS: Any = QUESTION["options"]


def reasons(source: str, target: str, **metadata: Any) -> list[tuple[str, str]]:
    found = gate_findings(source, target, read_handoff(handoff(source, **metadata)).metadata, NOW)
    return [(code, path.removeprefix("/metadata/")) for code, path in codes(found)]


def test_from_each_status_the_task_goes_where_the_table_says_and_nowhere_else() -> None:
    assert {source: " ".join(HANDOFF.targets(source)) for source in HANDOFF.states} == EDGES


def test_every_way_into_review_asks_for_both_artifacts() -> None:
    review, verification = ("missing-review-artifacts", R), ("missing-review-artifacts", V)
    for source in ("implementing", "awaiting_human"):
        assert reasons(source, "review") == [review, verification]
        assert reasons(source, "review", **{R: REVIEW}) == [verification]
        assert reasons(source, "review", **{V: VERIFICATION}) == [review]
        assert reasons(source, "review", **{R: REVIEW, V: VERIFICATION}) == []
    asked = {R: {**REVIEW, "decision": "changes_requested"}, V: {**VERIFICATION, "result": "failed"}}
    assert reasons("implementing", "review", **asked) == reasons("done", "review") == []


@pytest.mark.parametrize(
    ("target", "artifact", "change"),
    [
        ("review", R, {"changeSummary": []}),
        ("review", R, {"changeSummary": [" "]}),
        ("review", R, {"changeSummary": ["\u3164"]}),
        ("review", V, {"commands": []}),
        ("review", V, {"commands": ["\u200bTODO"]}),
        ("review", V, {"result": None}),
        ("done", D, {"completedAt": None}),
        ("done", D, {"summary": []}),
        ("awaiting_human", A, {"question": ""}),
        ("awaiting_human", A, {"options": OPTIONS[:1]}),
        ("awaiting_human", A, {"options": OPTIONS[:1] * 2}),
        ("awaiting_human", A, {"options": [OPTIONS[0], {"label": f" {OPTIONS[0]['label'].upper()} "}]}),
        ("awaiting_human", A, {"options": [OPTIONS[0], {"label": f"{OPTIONS[0]['label']}\u200b"}]}),
        ("awaiting_human", A, {"recommendedOption": "Semicolon"}),
        ("awaiting_human", A, {"recommendedOption": None}),
        ("awaiting_human", A, {"requestedAt": None}),
    ],
)
def test_a_draft_passes_unless_a_required_part_is_missing(target: str, artifact: str, change: dict[str, Any]) -> None:
    drafts = {name: {**part, "status": "draft"} for name, part in WHOLE.items()}
    assert reasons("review", target, **drafts) == []
    drafts[artifact] = {**drafts[artifact], **change}
    code = {"done": "missing-done-artifact", "awaiting_human": "missing-awaiting-human-artifact"}.get(
        target, "missing-review-artifacts"
    )
    assert reasons("review", target, **drafts) == [(code, f"{artifact}/{next(iter(change))}")]


@pytest.mark.parametrize("artifact", [R, V, D])
def test_superseded_and_null_artifacts_count_as_absent(artifact: str) -> None:
    whole = {R: REVIEW, V: VERIFICATION, D: DONE}
    for gone in ({**whole[artifact], "status": "superseded"}, None):
        found = reasons("review", "done", **{**whole, artifact: gone})
        assert [path for code, path in found if code.startswith("missing-")] == [artifact]


@pytest.mark.parametrize(("artifact", "verdict", "judge"), [(R, "decision", "reviewer"), (V, "result", "tester")])
@pytest.mark.parametrize("status", ["complete", "draft", None])
def test_a_verdict_that_was_withdrawn_comes_back_only_if_it_is_given(
    artifact: str, verdict: str, judge: str, status: Any
) -> None:
    whole = handoff("implementing", **{R: REVIEW, V: VERIFICATION, D: DONE})
    gone = decide_patch(whole, patch(**{artifact: {"status": "superseded"}}), by(judge)).task
    for role in ("developer", "retrospective", "reviewer", "tester"):
        back = decide_patch(gone, patch(**{artifact: {"status": status}}), by(role))
        assert (back.is_ok, back.task["metadata"][artifact][verdict]) == (True, None)
        assert back.task["metadata"][artifact]["updatedBy"] == role
    assert decide_patch(whole, patch(**{artifact: {"status": status, verdict: None}}), by("developer")).reasons
    (closed,) = decide_patch(gone, patch(**{artifact: {"status": status}}), by("planner")).reasons
    assert closed.path == f"/metadata/{artifact}/status"
    given = {"status": status, verdict: whole["metadata"][artifact][verdict]}
    assert decide_move(decide_patch(gone, patch(**{artifact: given}), by(judge)).task, "review", by("developer")).is_ok
    (refused,) = decide_patch(gone, patch(**{artifact: given}), by("developer")).reasons
    assert (refused.code, refused.path) == ("role-must-not-write", f"/metadata/{artifact}/{verdict}")
    assert not decide_patch(gone, patch(**{artifact: {**given, verdict: "failed"}}), by("developer")).is_ok


def test_a_missing_artifact_comes_with_its_parts_and_the_command_that_writes_it() -> None:
    given = read_handoff(handoff(**{V: {**VERIFICATION, "commands": []}})).metadata
    review, verification = (found.hint for found in gate_findings("implementing", "review", given, NOW))
    command = "with `accord handoff patch TASK.json PATCH.json --role {}`, or in the `--patch` of the move."
    assert review == f"Write `{R}` (changeSummary) {command.format('developer')}"
    assert verification == f"Write `commands` of `{V}` {command.format('tester')}"


def test_verification_and_done_ask_for_the_decision_approved() -> None:
    refused = {R: {**REVIEW, "decision": "changes_requested"}, V: VERIFICATION, D: DONE}
    for source, target in (("review", "verification"), ("review", "done"), ("verification", "done")):
        assert reasons(source, target, **refused) == [("review-not-approved", f"{R}/decision")]
        assert reasons(source, target, **{**refused, R: REVIEW}) == []


def test_every_way_into_done_asks_for_verification_that_passed_and_to_a_person_for_a_question() -> None:
    failed = {R: REVIEW, V: {**VERIFICATION, "result": "failed"}, D: DONE}
    for source in ("backlog", "review", "verification"):
        assert reasons(source, "done", **failed) == [("verification-not-passed", f"{V}/result")]
    for source in ("planning", "implementing", "review", "verification"):
        assert reasons(source, "awaiting_human") == [("missing-awaiting-human-artifact", A)]
        assert reasons(source, "awaiting_human", **{A: QUESTION}) == []


P, T = "planningArtifact", "testingArtifacts"
GONE = {"status": "superseded"}


@pytest.mark.parametrize(
    ("metadata", "missing"),
    [
        ({}, [P, f"{T}/planned"]),
        ({P: PLAN}, [f"{T}/planned"]),
        ({T: OUTPUTS[T]}, [P]),
        (OUTPUTS, []),
        ({P: {"steps": ["Write it"], "status": "draft"}, T: {"planned": {"notes": "Only texts change"}}}, []),
        ({P: PLAN, T: {"implemented": IMPLEMENTED}}, [f"{T}/planned"]),
        ({P: {**PLAN, **GONE}, T: {"planned": {**PLANNED, **GONE}}}, [P, f"{T}/planned"]),
        ({P: {"goals": ["..."], "steps": [" "]}, T: {"planned": {"unitTestIntent": ["TODO"]}}}, [P, f"{T}/planned"]),
    ],
)
def test_planning_is_left_for_implementing_with_a_plan_and_planned_tests(metadata: Any, missing: list[str]) -> None:
    """Also by way of a question; work that began without planning needs neither; moves of other tools are warnings."""
    expected = [("missing-planning-artifacts", f"/metadata/{path}") for path in missing]
    asked = decide_move(handoff("planning", **metadata, **{A: QUESTION}), "awaiting_human", by("planner")).task
    for task in (handoff("planning", **metadata), asked):
        decided = decide_move(task, "implementing", by("human"))
        assert (codes(decided.reasons), decided.is_ok) == (expected, not missing)
        proposed = next(one for one in next_moves(task, HandoffCommand("task.json"), NOW) if one.to == "implementing")
        assert list(proposed.missing) == [path.replace("/", ".") for path in missing]
        assert ("patch task.json PATCH.json --role planner" in proposed.command) is bool(missing)
        whole = {P: {**PLAN, "status": "complete"}, T: {"planned": {**PLANNED, "status": "complete"}}}
        assert decide_move(task, "implementing", by("planner"), patch(**whole, transitionNote="Planned")).is_ok
    for source in ("backlog", "review", "awaiting_human"):
        assert reasons(source, "implementing", **metadata) == []
    last = {"lastTransition": {"from": "planning", "to": "implementing", "at": AT}}
    history: list[tuple[Any, Any]] = [({}, []), (last, expected)]
    for runtime, warned in history:
        found = checked(handoff("implementing", **metadata, workflowRuntime=runtime))[1]
        assert [each for each in codes(found) if each[0] == "missing-planning-artifacts"] == warned
        assert not has_errors(found)


def test_a_refused_move_is_explained() -> None:
    (reason,) = decide_move(handoff("implementing"), "done", by("human")).reasons
    assert 'Legal moves from "implementing": backlog, review' in reason.hint


REJECTED: dict[str, Any] = {
    "reviewArtifact": {**REVIEW, "decision": "changes_requested"},
    "verificationArtifact": VERIFICATION,
}


@pytest.mark.parametrize("status", HANDOFF.states)
@pytest.mark.parametrize("artifacts", [{}, REJECTED, EVERYTHING], ids=["nothing", "rejected", "everything"])
def test_exactly_the_moves_without_needs_may_be_made(status: str, artifacts: dict[str, Any]) -> None:
    task = handoff(status, **artifacts)
    moves = next_moves(task, HandoffCommand("task.json"), NOW)
    assert [move.to for move in moves] == list(HANDOFF.targets(status))
    for move in moves:
        assert decide_move(task, move.to, by("human")).is_ok is not bool(move.missing)
        verb = f"accord handoff {'patch' if move.missing else 'move'} task.json "
        assert move.command.startswith(verb)


def test_needs_are_named_and_the_command_is_for_who_may_write_the_first() -> None:
    task = handoff("review", **REJECTED)
    found = {move.to: move for move in next_moves(task, HandoffCommand("'my task.json'", "reviewer", "rev 1"), NOW)}
    assert found["verification"].missing == ("reviewArtifact.decision approved",)
    assert found["verification"].command == (
        "accord handoff patch 'my task.json' PATCH.json --role reviewer --actor 'rev 1'"
    )
    assert found["implementing"].command.endswith("--to implementing --role reviewer --actor 'rev 1'")
    empty = {move.to: move for move in next_moves(handoff(), HandoffCommand("--work-item 12", "reviewer", "rev"), NOW)}
    assert empty["review"].missing == ("reviewArtifact", "verificationArtifact")
    assert empty["review"].command == "accord handoff patch --work-item 12 PATCH.json --role developer"
