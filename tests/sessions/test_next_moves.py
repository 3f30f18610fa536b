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


@pytest.mark.parametrize(
    ("state", "changes", "to", "missing", "command"),
    [
        ("INTAKE", {"texts": {"spec.md": None}}, "DESIGN", ["spec.md"], "dispatch DIR meta --role SpecAgent --into"),
        ("INTAKE", {}, "DESIGN", [], "session advance DIR --to DESIGN --role Orchestrator"),
        ("INTAKE", {}, "BLOCKED", [], "session advance DIR --to BLOCKED --blocker REASON --role Orchestrator"),
        ("INTAKE", {}, "ASK_USER", ["a question"], "session ask DIR --question QUESTION"),
        ("DESIGN", {}, "APPROVE_DESIGN", [], f"session ask DIR --id {DESIGN} --question"),
        ("APPROVE_DESIGN", {}, "PLAN", [DESIGN], f"session ask DIR --id {DESIGN} --question"),
        (
            "APPROVE_DESIGN",
            {"user_decisions": [decision(DESIGN)]},
            "PLAN",
            [f"answers to {DESIGN}"],
            f"session answer DIR {DESIGN}=ANSWER",
        ),
        (
            "APPROVE_DESIGN",
            {"user_decisions": [CHANGES]},
            "PLAN",
            [DESIGN],
            "dispatch DIR meta --role Architect --into",
        ),
        (
            "APPROVE_DESIGN",
            {"user_decisions": [CHANGES], **tracked("dispatched")},
            "PLAN",
            [DESIGN],
            "dispatch DIR meta --role Designer --take OUTPUT.json",
        ),
        (
            "APPROVE_DESIGN",
            {"user_decisions": [CHANGES], **tracked("completed")},
            "PLAN",
            [DESIGN],
            f"session ask DIR --id {DESIGN} --question",
        ),
        (
            "IMPLEMENT_LOOP",
            {"user_decisions": GATES},
            "INTEGRATE",
            ["completed tasks: T-001, T-002", "final review of meta"],
            "dispatch DIR T-001 --role Coder --into",
        ),
        (
            "IMPLEMENT_LOOP",
            {"user_decisions": GATES, "texts": {"tasks.yaml": done()}},
            "INTEGRATE",
            ["final review of meta"],
            "dispatch DIR meta --role Reviewer --into",
        ),
        (
            "IMPLEMENT_LOOP",
            {"user_decisions": SINGLE, "texts": {"tasks.yaml": ONE}},
            "INTEGRATE",
            ["completed tasks: T-001, T-002"],
            "dispatch DIR T-002 --role Coder --into",
        ),
        (
            "IMPLEMENT_LOOP",
            {"user_decisions": SINGLE, "texts": {"tasks.yaml": IMPLEMENTED}},
            "INTEGRATE",
            ["completed tasks: T-001, T-002"],
            "dispatch DIR meta --role Reviewer --into",
        ),
        (
            "IMPLEMENT_LOOP",
            {"user_decisions": GATES, "texts": {"tasks.yaml": ONE, "outputs.jsonl": outputs(("QA", "FAIL"))}},
            "FIX_TESTS",
            [],
            "session fix DIR T-001 FIX_TESTS --role Orchestrator",
        ),
        (
            "IMPLEMENT_LOOP",
            {"user_decisions": GATES, "texts": {"tasks.yaml": ONE, "outputs.jsonl": REVIEWED}},
            "INTEGRATE",
            ["completed tasks: T-001, T-002", "final review of meta"],
            "session task DIR T-001 --to completed --role Orchestrator",
        ),
        (
            "INTEGRATE",
            {"user_decisions": SINGLE, "texts": {"tasks.yaml": done()}, "last_ci_result": "red"},
            "RELEASE",
            ["CI that is not red"],
            "session fix DIR meta FIX_BUILD --role Orchestrator",
        ),
        (
            "INTEGRATE",
            {"texts": {"tasks.yaml": done()}},
            "RELEASE",
            [DESIGN, "UD-REVIEW-STRATEGY"],
            "session advance DIR --to APPROVE_DESIGN --role Orchestrator",
        ),
        (
            "DONE",
            {"user_decisions": SINGLE, "texts": {"tasks.yaml": done()}},
            "IMPLEMENT_LOOP",
            [],
            "session reopen DIR",
        ),
        (
            "ASK_USER",
            {"user_decisions": [decision(state_context="DESIGN")]},
            "DESIGN",
            ["answers to UD-1"],
            "session answer DIR UD-1=ANSWER",
        ),
        (
            "BLOCKED",
            {"user_decisions": GATES, "blocked_from": "PLAN", "blocker": "x"},
            "PLAN",
            [],
            "session advance DIR --to PLAN --role Orchestrator",
        ),
    ],
)
def test_a_move_names_what_it_misses_and_the_command_that_gets_it(
    tmp_path: Path, state: str, changes: dict[str, Any], to: str, missing: list[str], command: str
) -> None:
    folder = make_session(tmp_path, state, mode="full", **changes)
    (move,) = [move for move in next_moves(read_session(folder)) if move.to == to]
    assert (list(move.missing), move.command.replace(str(folder), "DIR")[: len(command)]) == (
        missing,
        f"accord {command}"[: len(command)],
    )


@pytest.mark.parametrize(
    ("state", "changes", "targets"),
    [
        ("BLOCKED", {"user_decisions": GATES, "blocked_from": "PLAN", "blocker": "x"}, ["PLAN"]),
        ("ASK_USER", {"user_decisions": [decision(state_context="DESIGN")]}, ["DESIGN", "BLOCKED"]),
        ("INTEGRATE", {"user_decisions": SINGLE, "texts": {"tasks.yaml": done()}}, ["RELEASE", "FIX_BUILD"]),
    ],
)
def test_only_moves_that_can_become_legal_are_named(
    tmp_path: Path, state: str, changes: dict[str, Any], targets: list[str]
) -> None:
    session = read_session(make_session(tmp_path, state, mode="full", **changes))
    assert [move.to for move in next_moves(session)][: len(targets)] == targets


def test_a_person_reads_of_fixes_only_when_a_review_failed(tmp_path: Path) -> None:
    texts: dict[str, str | None] = {"tasks.yaml": ONE}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=SINGLE, texts=texts)
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
    texts: dict[str, str | None] = {"tasks.yaml": text, "outputs.jsonl": recorded}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=SINGLE, texts=texts)
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
