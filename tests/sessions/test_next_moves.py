"""The next moves of a session and its tasks: what is missing, and the command to type."""

from pathlib import Path
from typing import Any

import pytest
from support.sessions import GATES, SINGLE, TASKS, decision, done, make_session, outputs

from accord.sessions.folder import read_session
from accord.sessions.next_moves import following, main_moves, next_moves, task_moves

DESIGN = "UD-APPROVE-DESIGN"
CHANGES = decision(DESIGN, "answered", answer="changes-requested: smaller")
SENT = {"agent": "Designer", "task_id": "meta", "at": "2026-01-31T10:00:00Z"}


def tracked(status: str) -> dict[str, Any]:
    return {"gate_tracking": {"APPROVE_DESIGN": {"correction_status": status, "last_correction_dispatch": SENT}}}


IMPLEMENTED = TASKS.replace("not-started", "implemented")
ONE = TASKS.replace("not-started  #", "implemented  #")
REVIEWED = outputs(("Coder", "OK"), ("Reviewer", "OK"), ("QA", "OK"))


def full(decisions: list[Any], tasks: str = TASKS, recorded: str = "", **more: Any) -> dict[str, Any]:
    return {"user_decisions": decisions, "texts": {"tasks.yaml": tasks, "outputs.jsonl": recorded}, **more}


ASK = f"session ask DIR --id {DESIGN} --question"
ADVANCE = "session advance DIR --to %s --role Orchestrator"
WORK, GATE, RED = "IMPLEMENT_LOOP", "APPROVE_DESIGN", "CI that is not red"
BOTH, LAST = ["completed tasks: T-001, T-002"], ["final review of meta"]
STUCK = full([decision(state_context="DESIGN")])
SENT_TO, CORRECTED = (full([CHANGES], **tracked(status)) for status in ("dispatched", "completed"))
MOVES: list[tuple[str, dict[str, Any], str, list[str], str]] = [
    ("INTAKE", {"texts": {"spec.md": None}}, "DESIGN", ["spec.md"], "dispatch DIR meta --role SpecAgent --into"),
    ("INTAKE", {}, "DESIGN", [], ADVANCE % "DESIGN"),
    ("INTAKE", {}, "BLOCKED", [], ADVANCE % "BLOCKED --blocker REASON"),
    ("INTAKE", {}, "ASK_USER", ["a question"], "session ask DIR --question QUESTION"),
    ("DESIGN", {}, GATE, [], ASK),
    (GATE, {}, "PLAN", [DESIGN], ASK),
    (GATE, full([decision(DESIGN)]), "PLAN", [f"answers to {DESIGN}"], f"session answer DIR {DESIGN}=ANSWER"),
    (GATE, full([CHANGES]), "PLAN", [DESIGN], "dispatch DIR meta --role Architect --into"),
    (GATE, SENT_TO, "PLAN", [DESIGN], "dispatch DIR meta --role Designer --take OUTPUT.json"),
    (GATE, CORRECTED, "PLAN", [DESIGN], ASK),
    (WORK, full(GATES), "INTEGRATE", BOTH + LAST, "dispatch DIR T-001 --role Coder --into"),
    (WORK, full(GATES, done()), "INTEGRATE", LAST, "dispatch DIR meta --role Reviewer --into"),
    (WORK, full(SINGLE, ONE), "INTEGRATE", BOTH, "dispatch DIR T-002 --role Coder --into"),
    (WORK, full(SINGLE, IMPLEMENTED), "INTEGRATE", BOTH, "dispatch DIR meta --role Reviewer --into"),
    (WORK, full(GATES, ONE, outputs(("QA", "FAIL"))), "FIX_TESTS", [], "session fix DIR T-001 FIX_TESTS --role Orch"),
    (WORK, full(GATES, ONE, REVIEWED), "INTEGRATE", BOTH + LAST, "session task DIR T-001 --to completed --role Orch"),
    (
        "INTEGRATE",
        full(SINGLE, done(), last_ci_result="red"),
        "RELEASE",
        [RED],
        "session fix DIR meta FIX_BUILD --role",
    ),
    ("INTEGRATE", full([], done()), "RELEASE", [DESIGN, "UD-REVIEW-STRATEGY"], ADVANCE % GATE),
    ("DONE", full(SINGLE, done()), WORK, [], "session reopen DIR"),
    ("ASK_USER", STUCK, "DESIGN", ["answers to UD-1"], "session answer DIR UD-1=ANSWER"),
    ("BLOCKED", full(GATES, blocked_from="PLAN", blocker="x"), "PLAN", [], ADVANCE % "PLAN"),
    ("BLOCKED", full(GATES, blocker="x"), "PLAN", ["blocked_from"], "session show DIR"),
]


@pytest.mark.parametrize(("state", "changes", "to", "missing", "command"), MOVES)
def test_a_move_names_what_it_misses_and_the_command_that_gets_it(
    tmp_path: Path, state: str, changes: dict[str, Any], to: str, missing: list[str], command: str
) -> None:
    folder = make_session(tmp_path, state, mode="full", **changes)
    (move,) = [move for move in next_moves(read_session(folder)) if move.to == to]
    assert list(move.missing) == missing
    assert move.command.replace(str(folder), "DIR").startswith(f"accord {command}")


@pytest.mark.parametrize(
    ("state", "changes", "targets"),
    [
        ("BLOCKED", full(GATES, blocked_from="PLAN", blocker="x"), ["PLAN"]),
        ("ASK_USER", full([decision(state_context="DESIGN")]), ["DESIGN", "BLOCKED"]),
        ("INTEGRATE", full(SINGLE, done()), ["RELEASE", "FIX_BUILD"]),
    ],
)
def test_only_moves_that_can_become_legal_are_named(
    tmp_path: Path, state: str, changes: dict[str, Any], targets: list[str]
) -> None:
    session = read_session(make_session(tmp_path, state, mode="full", **changes))
    assert [move.to for move in next_moves(session)][: len(targets)] == targets


def test_a_person_reads_of_fixes_only_when_a_review_failed(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", **full(SINGLE, ONE))
    assert [move.to for move in main_moves(read_session(folder))] == ["INTEGRATE"]
    (folder / "outputs.jsonl").write_text(outputs(("Security", "BLOCKED")))
    assert [move.to for move in main_moves(read_session(folder))] == ["INTEGRATE", "FIX_SECURITY"]


@pytest.mark.parametrize(
    ("text", "recorded", "expected"),
    [
        (TASKS, "", {"in-progress": [], "blocked": []}),
        (ONE, "", {"completed": ["Reviewer", "QA"], "in-progress": [], "blocked": []}),
        (ONE, REVIEWED, {"completed": [], "in-progress": [], "blocked": []}),
        (done(), outputs(("QA", "FAIL")), {"implemented": []}),
        (done(), "", {"implemented": []}),
    ],
)
def test_a_task_has_its_own_moves(tmp_path: Path, text: str, recorded: str, expected: dict[str, list[str]]) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", **full(SINGLE, text, recorded))
    moves = task_moves(read_session(folder), "T-001")
    assert {move.to: list(move.missing) for move in moves} == expected


def test_a_task_waits_for_the_state_and_its_dependencies(tmp_path: Path) -> None:
    session = read_session(make_session(tmp_path, "PLAN", mode="full", user_decisions=GATES[:1]))
    (started,) = [move for move in task_moves(session, "T-002") if move.to == "in-progress"]
    assert started.missing == ("IMPLEMENT_LOOP", "T-001")
    assert "UD-REVIEW-STRATEGY" in started.command


def test_after_the_start_of_an_agent_its_output_is_taken(tmp_path: Path) -> None:
    session = read_session(make_session(tmp_path, "INTAKE", mode="full", texts={"spec.md": None}))
    take, move_on = following(session, "meta", "SpecAgent")
    assert take.endswith("meta --role SpecAgent --take OUTPUT.json")
    assert move_on.endswith("--to DESIGN --role Orchestrator")
    assert len(following(session, "meta", "Researcher")) == 1
