"""The states of sessions and tasks: which moves are legal, and what each asks for."""

import json
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from support.disks import contents
from support.growth import grows_too_fast
from support.sessions import (
    ALL_REVIEWED,
    AT,
    GATES,
    INTEGRATED,
    SINGLE,
    SPEC,
    TASKS,
    WORKED_ON,
    decision,
    done,
    make_session,
    outputs,
    status,
    writer,
)

from accord.cli.session_output import as_document
from accord.core.errors import BrokenContract
from accord.core.findings import has_errors
from accord.sessions.decision_rules import return_state
from accord.sessions.folder import Part, read_outputs, read_session
from accord.sessions.folder_rules import check_session
from accord.sessions.machine import LEAN, LOOP_BASE, MACHINES, ORDER, SESSION, AttemptedMove
from accord.sessions.models import ROLES, STATES, SessionMode, SessionStatus, SessionTask
from accord.sessions.moves import done_finding, status_in
from accord.sessions.next_moves import following_commands, main_moves, next_moves, next_task_step, task_moves
from accord.sessions.questions import UserQuestion, next_step
from accord.sessions.reviews import TASK, ReviewRecord, TaskFacts
from accord.sessions.run import advance, ask, reopen, resume, start_fix


def refusal(move: AttemptedMove, target: str) -> str:
    return MACHINES[move.session.mode].refusal(move.status.current_state, target, move)


def failure_of(role: str) -> str:
    return outputs((role, "BLOCKED"), task="meta")


def test_the_machines_have_the_states_of_the_contract() -> None:
    assert set(SESSION.states) | set(LEAN.states) == set(STATES)
    assert set(SESSION.states) & {"INTAKE_LEAN"} == set()
    assert (SESSION.start, LEAN.start, TASK.start) == ("INTAKE", "INTAKE_LEAN", "not-started")
    assert set(LEAN.states) & {"DESIGN", "APPROVE_DESIGN", "PLAN", "REVIEW_STRATEGY", "RELEASE", "INTAKE"} == set()


@pytest.mark.parametrize("mode", ["full", "lean"])
def test_every_legal_move_can_be_made_and_no_other(tmp_path: Path, mode: SessionMode) -> None:
    order, states = ORDER[mode], MACHINES[mode].states
    way = set(pairwise(order))
    loops = {move for loop, base in LOOP_BASE.items() for move in ((base, loop), (loop, base))}
    working = [*order[:-1], *LOOP_BASE]
    asks = {move for state in working for move in ((state, "ASK_USER"), ("ASK_USER", state))}
    blocks = {move for state in (*working, "ASK_USER") for move in ((state, "BLOCKED"), ("BLOCKED", state))}
    legal = way | loops | asks | blocks | {("DONE", "IMPLEMENT_LOOP")}
    session = read_session(make_session(tmp_path, texts={"tasks.yaml": done()}))
    for source, target in product(states, states):
        asked = decision(status="pending" if target == "ASK_USER" else "answered")
        asked["state_context"] = source if target == "ASK_USER" else target
        value = status(source, mode=mode, user_decisions=[*SINGLE, asked], blocked_from=target)
        part = Part("status.json", json.dumps(value).encode())
        tried = replace(session, parts={**session.parts, "status.json": part})
        assert (refusal(AttemptedMove(tried, "meta", "no disk", reopens=True), target) == "") == (
            (source, target) in legal
        ), (source, target)


NO_GATES: dict[str, Any] = {"user_decisions": []}
RED_CI = {"last_ci_result": "red"}
STOPPED = TASKS.replace("not-started  #", "blocked  #")


def asked_in(state: str) -> dict[str, Any]:
    return {"user_decisions": [decision("UD-1", "answered", state_context=state)]}


@pytest.mark.parametrize(
    ("source", "target", "changes", "said"),
    [
        ("INTAKE", "DESIGN", {"acceptance.json": "{}"}, "acceptance_criteria"),
        ("INTAKE", "DESIGN", {"architecture.md": None}, ""),
        ("DESIGN", "APPROVE_DESIGN", {"architecture.md": "# x\n"}, "`Overview` is missing. Correct it."),
        ("PLAN", "REVIEW_STRATEGY", {"tasks.yaml": None}, "tasks.yaml is missing. Write it."),
        ("RELEASE", "DONE", {"report.md": None}, "report.md"),
        ("REVIEW_STRATEGY", "IMPLEMENT_LOOP", {"user_decisions": GATES[:1]}, "UD-REVIEW-STRATEGY was never asked"),
        ("REVIEW_STRATEGY", "IMPLEMENT_LOOP", {"user_decisions": GATES[1:]}, "UD-APPROVE-DESIGN was never asked"),
        ("BLOCKED", "RELEASE", {**NO_GATES, "blocked_from": "RELEASE"}, "never asked"),
        ("ASK_USER", "INTEGRATE", asked_in("INTEGRATE"), "never asked"),
        ("RELEASE", "APPROVE_DESIGN", NO_GATES, ""),
        ("RELEASE", "APPROVE_DESIGN", {}, "did not pass APPROVE_DESIGN without its answer"),
        (
            "BLOCKED",
            "REVIEW_STRATEGY",
            {**NO_GATES, "blocked_from": "DESIGN"},
            "in DESIGN. The session can only return",
        ),
        ("BLOCKED", "APPROVE_DESIGN", {**NO_GATES, "blocked_from": "PLAN"}, ""),
        ("RELEASE", "DONE", {"user_decisions": GATES, "outputs.jsonl": WORKED_ON}, "final review"),
        ("INTEGRATE", "IMPLEMENT_LOOP", {}, "Only a failed review leads back"),
        ("INTEGRATE", "IMPLEMENT_LOOP", {"tasks.yaml": TASKS}, ""),
        ("DESIGN", "APPROVE_DESIGN", {"outputs.jsonl": failure_of("Architect")}, "last output of Architect is not OK"),
        ("DESIGN", "APPROVE_DESIGN", {"outputs.jsonl": failure_of("Planner")}, ""),
        ("DESIGN", "BLOCKED", {"blocker": " "}, "--blocker"),
        ("INTEGRATE", "RELEASE", RED_CI, "FIX_BUILD"),
        ("RELEASE", "DONE", RED_CI, "Ask the user"),
        ("INTEGRATE", "RELEASE", {"outputs.jsonl": ALL_REVIEWED}, "--role Orchestrator --waive-reviews REASON"),
        ("IMPLEMENT_LOOP", "FIX_TESTS", {"task": ""}, "needs a task"),
        ("IMPLEMENT_LOOP", "FIX_TESTS", {"tasks.yaml": TASKS, "task": "T-001"}, "T-001 is not-started"),
        ("IMPLEMENT_LOOP", "FIX_TESTS", {"tasks.yaml": STOPPED, "task": "T-001"}, ""),
        ("INTEGRATE", "FIX_BUILD", {"task": "T-001"}, ""),
        ("APPROVE_DESIGN", "ASK_USER", {"user_decisions": [decision("UD-APPROVE-DESIGN")]}, "session ask` first"),
        ("ASK_USER", "PLAN", asked_in("DESIGN"), "came up in DESIGN"),
        ("ASK_USER", "IMPLEMENT_LOOP", {"mode": "lean", **asked_in("PLAN")}, "Correct `state_context`"),
        ("BLOCKED", "IMPLEMENT_LOOP", {"mode": "lean", "blocked_from": "PLAN"}, "Set `blocked_from`"),
        ("DONE", "IMPLEMENT_LOOP", {}, "Reopen"),
    ],
)
def test_a_move_has_the_guards_of_the_contract(
    tmp_path: Path, source: str, target: str, changes: dict[str, Any], said: str
) -> None:
    given = {"mode": "full", "task": "meta", "blocker": "x", "user_decisions": SINGLE, "tasks.yaml": done(), **changes}
    task, blocker = given.pop("task"), given.pop("blocker")
    texts = {name: given.pop(name) for name in [*given] if "." in name}
    session = read_session(make_session(tmp_path, source, texts=texts, **given))
    text = refusal(AttemptedMove(session, task, blocker), target)
    assert said in text
    assert bool(said) == bool(text)


@pytest.mark.parametrize("role", ROLES)
def test_a_task_is_moved_by_the_role_it_belongs_to(role: str) -> None:
    facts = TaskFacts(role)
    allowed = {move for edge in TASK.edges if not TASK.refusal(*(move := (edge.source, edge.target)), facts)}
    blocked = {(source, "blocked") for source in ("not-started", "in-progress", "implemented")}
    own = {
        "Coder": {(source, "in-progress") for source in ("not-started", "implemented", "blocked")}
        | {("in-progress", "implemented")},
        "Orchestrator": {("implemented", "completed"), ("blocked", "not-started")},
        "Planner": {("blocked", "not-started")},
    }
    assert allowed == blocked | own.get(role, set())
    lost = replace(facts, open_gates=("QA",), waits_for=("T-001",))
    assert "depends on T-001" in TASK.refusal("not-started", "in-progress", lost) or role != "Coder"
    hint = {"Coder": "Set it to `implemented`", "Orchestrator": "These gates have not passed: QA."}.get(role, "")
    assert hint in TASK.refusal("implemented", "completed", lost)
    may_reopen = role in ("Orchestrator", "Reviewer", "QA", "Security")
    assert (TASK.refusal("completed", "implemented", lost) == "") == may_reopen


OK, FAIL = "OK", "FAIL"
R_Q = (("Reviewer", OK), ("QA", OK))
NO_WAIVERS = (("Docs", OK), ("Docs", FAIL), ("Orchestrator", FAIL), ("Orchestrator", "DISPATCHED"))


@pytest.mark.parametrize(
    ("flags", "reviews", "missing"),
    [
        ("none", [], "Reviewer, QA"),
        ("none", R_Q, ""),
        ("none", [("Reviewer", OK)], "QA"),
        ("none", [("Reviewer", OK), ("QA", FAIL)], "QA"),
        ("none", [("QA", FAIL), *R_Q], ""),
        ("none", [*R_Q, ("Coder", OK)], "Reviewer, QA"),
        ("none", [("Security", FAIL), ("Coder", OK), *R_Q], "Security"),
        ("security", R_Q, "Security"),
        ("security", [*R_Q, ("Security", OK)], ""),
        ("none", [*R_Q, ("Security", "NEEDS_DECISION")], "Security"),
    ],
)
def test_a_task_is_completed_after_the_reviews_that_its_plan_asks_for(flags: str, reviews: Any, missing: str) -> None:
    assert ", ".join(missing_reviews(outputs(*reviews), flags)) == missing


def missing_reviews(lines: str, flag: str = "none", check: str = "cmd: pytest") -> tuple[str, ...]:
    task = {"id": "T-001", "status": "implemented", "goal": "g", "acceptance_checks": [check], "risk_flags": [flag]}
    return ReviewRecord([SessionTask.model_validate(task)], read_outputs(lines.encode())[0]).open_gates("T-001")


def test_qa_is_asked_for_by_a_check_to_run_or_by_an_agent() -> None:
    reviewed = outputs(("Coder", OK), ("Reviewer", OK))
    assert missing_reviews(reviewed, check="manual: look") == ()
    assert missing_reviews(reviewed, check="cmd: pytest") == ("QA",)
    assert missing_reviews(reviewed + outputs(("Coder", OK), needs_tests=True), check="manual: x") == ("Reviewer", "QA")
    assert missing_reviews(reviewed + outputs(("QA", FAIL)), check="manual: look") == ("QA",)


@pytest.mark.parametrize(
    ("lines", "missing"),
    [
        (outputs(("Reviewer", OK), concerns=1) + outputs(("QA", OK)), ("Security",)),
        (outputs(("Coder", OK), concerns=1) + outputs(*R_Q), ("Security",)),
        (outputs(*R_Q, task="meta"), ()),
        (outputs(*R_Q, task="meta") + outputs(("Coder", OK)), ("Reviewer", "QA")),
        (outputs(*R_Q, task="meta") + outputs(("Coder", OK), task="meta"), ("Coder", "Reviewer", "QA")),
        (outputs(*R_Q, task="T-002"), ("Reviewer", "QA")),
        (outputs(*R_Q) + outputs(("Coder", OK), task="T-002"), ("Coder",)),
        (outputs(("Coder", OK), task="T-002") + outputs(*R_Q, task="meta"), ("Coder",)),
        (outputs(("Coder", OK), ("Coder", "DISPATCHED"), *R_Q), ("Coder",)),
        (outputs(("Coder", "DISPATCHED"), *R_Q), ()),
        (outputs(("Coder", "DISPATCHED"), ("Coder", OK), task="T-002") + outputs(*R_Q), ("Coder",)),
        (outputs(("Coder", FAIL), *R_Q), ("Coder",)),
        (
            outputs(("Orchestrator", OK), waived_reviews=["QA"]) + outputs(("Coder", OK), task="T-002"),
            ("Coder", "Reviewer"),
        ),
        (outputs(("Security", OK), concerns=1) + outputs(*R_Q), ("Security",)),
        (outputs(("Security", OK), *R_Q) + outputs(("Reviewer", OK), concerns=1), ("Security",)),
        (outputs(*R_Q) + outputs(("QA", OK), needs_review=True), ("Reviewer",)),
        (outputs(*R_Q) + outputs(("Reviewer", OK), needs_review=True), ("Reviewer",)),
        (outputs(*R_Q) + outputs(("Reviewer", OK), needs_tests=True), ("QA",)),
        (outputs(*R_Q) + outputs(("QA", OK), meets_definition_of_done=False), ("QA",)),
        (outputs(("Coder", OK), meets_definition_of_done=False) + outputs(*R_Q), ("Coder",)),
        (outputs(("Orchestrator", OK), waived_reviews=["Reviewer", "QA"]), ()),
        (outputs(("Orchestrator", OK), waived_reviews=["Reviewer", "QA"]) + outputs(("QA", FAIL)), ("QA",)),
        (outputs(("Orchestrator", OK), waived_reviews=["Reviewer", "QA"]) + outputs(("Coder", OK)), ("Reviewer", "QA")),
        (outputs(("Orchestrator", OK), task="T-002", waived_reviews=["Reviewer"]), ("Reviewer", "QA")),
        *((outputs(one, waived_reviews=["Reviewer", "QA"]), ("Reviewer", "QA")) for one in NO_WAIVERS),
    ],
)
def test_an_output_keeps_the_gates_shut_that_it_asks_for(lines: str, missing: Any) -> None:
    assert missing_reviews(lines) == missing


@pytest.mark.parametrize(
    ("lines", "has_passed"),
    [
        ("", False),
        (outputs(("Reviewer", OK)), False),
        (outputs(("Reviewer", OK), task="meta"), True),
        (outputs(("Reviewer", OK), ("Reviewer", "BLOCKED"), task="meta"), False),
        (outputs(("Reviewer", OK), task="meta", meets_definition_of_done=False), False),
        (outputs(("Reviewer", OK), task="meta") + outputs(("Coder", OK), task="T-002"), False),
        (outputs(("Reviewer", OK), task="meta") + outputs(("Integrator", OK), task="meta", needs_review=True), False),
        (outputs(("Reviewer", OK), task="meta") + outputs(("Integrator", FAIL), has_code=True), False),
        (outputs(("Integrator", OK), has_code=True) + outputs(("Reviewer", OK), task="meta"), True),
        (outputs(("Orchestrator", OK), task="meta", waived_reviews=["Reviewer"]), True),
        *((outputs(one, task="meta", waived_reviews=["Reviewer"]), False) for one in NO_WAIVERS),
    ],
)
def test_the_final_review_counts_from_the_last_work_on(lines: str, has_passed: bool) -> None:
    assert ("Reviewer" in ReviewRecord((), read_outputs(lines.encode())[0]).passed_meta) == has_passed


@pytest.mark.parametrize(("how", "state"), [("cancelled", "BLOCKED"), ("skipped", "BLOCKED"), ("skipped", "PLAN")])
def test_a_session_that_is_back_at_a_gate_waits_for_the_answer_again(tmp_path: Path, how: str, state: str) -> None:
    """Else its status would say that the gate is cancelled, which no session may stand at."""
    put_off = decision("UD-APPROVE-DESIGN", how)
    folder = make_session(
        tmp_path, state, mode="full", user_decisions=[put_off], blocked_from="APPROVE_DESIGN", blocker="x"
    )
    status = advance(writer(folder), "APPROVE_DESIGN", role="Orchestrator")
    (asked,) = status.pending
    assert (asked.status, asked.question, asked.resolution_reason) == ("pending", "Which one?", None)
    assert asked.asked_at > put_off["asked_at"]
    assert not has_errors(check_session(folder)[0][2])


@pytest.mark.parametrize("state", ["IMPLEMENT_LOOP", "INTEGRATE", "DONE", "ASK_USER"])
@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        (("approved", "per batch"), ["UD-REVIEW-STRATEGY"]),
        (("Approved", "single-final"), ["UD-APPROVE-DESIGN"]),
        (("yes", "no"), ["UD-APPROVE-DESIGN", "UD-REVIEW-STRATEGY"]),
        (("", None), ["UD-APPROVE-DESIGN", "UD-REVIEW-STRATEGY"]),
    ],
)
def test_a_gate_that_was_passed_without_a_valid_answer_is_asked_again(
    tmp_path: Path, state: str, answers: tuple[str, str | None], asked: list[str]
) -> None:
    said = [{**one, "answer": answer} for one, answer in zip(GATES, answers, strict=True)]
    said += [decision("UD-1", "answered", state_context="IMPLEMENT_LOOP")]
    folder = make_session(tmp_path, state, mode="full", **full(said, done()))
    gate = asked[0].removeprefix("UD-").replace("-", "_")
    if state == "DONE":
        status = reopen(writer(folder))
    else:
        step = resume(writer(folder, is_dry_run=True))
        assert (step.state, step.next) == (gate, "re-ask")
        assert step.reason.startswith(f"{asked[0]} is not answered")
        status = advance(writer(folder), gate, role="Orchestrator")
    assert (status.current_state, [one.decision_id for one in status.pending]) == (gate, asked)


def test_a_fix_loop_is_counted_and_the_fourth_entry_refused(tmp_path: Path) -> None:
    texts = {"tasks.yaml": TASKS.replace("not-started  #", "implemented  #")}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts=texts)
    for count in (1, 2, 3):
        status = start_fix(writer(folder), "T-001", "FIX_TESTS", role="Orchestrator")
        assert (status.retries("T-001", "FIX_TESTS"), status.fix_task) == (count, "T-001")
        before = contents(folder)
        start_fix(writer(folder), "T-001", "FIX_TESTS", role="Orchestrator")
        assert contents(folder) == before, "the same command again changes nothing"
        with pytest.raises(BrokenContract, match='"FIX_TESTS" does not lead to "FIX_TESTS"'):
            start_fix(writer(folder), "meta", "FIX_TESTS", role="Orchestrator")
        assert advance(writer(folder), "IMPLEMENT_LOOP", role="Orchestrator").fix_task is None
    with pytest.raises(BrokenContract, match="Go to ASK_USER"):
        start_fix(writer(folder), "T-001", "FIX_TESTS", role="Orchestrator")
    start_fix(writer(folder), "T-001", "FIX_REVIEW", role="Orchestrator")
    advance(writer(folder), "IMPLEMENT_LOOP", role="Orchestrator")
    with pytest.raises(BrokenContract, match="Unknown task"):
        start_fix(writer(folder), "T-009", "FIX_REVIEW", role="Orchestrator")


def test_coming_back_to_a_loop_from_the_user_counts_nothing(tmp_path: Path) -> None:
    asked = [*GATES, decision("UD-1", "answered", state_context="FIX_TESTS")]
    counts = {"T-001": {"FIX_TESTS": 3}}
    folder = make_session(tmp_path, "ASK_USER", user_decisions=asked, retry_counts=counts)
    status = advance(writer(folder), "FIX_TESTS", role="Orchestrator")
    assert status.retries("T-001", "FIX_TESTS") == 3


@pytest.mark.parametrize(
    ("decisions", "state"),
    [
        ([("UD-2", "FIX_TESTS", 11), ("UD-1", "DESIGN", 9)], "FIX_TESTS"),
        ([("UD-1", "DESIGN", 9), ("UD-2", "FIX_TESTS", 11)], "FIX_TESTS"),
        ([("UD-1", "IMPLEMENT_LOOP", 9), ("UD-APPROVE-DESIGN", "APPROVE_DESIGN", 11)], "IMPLEMENT_LOOP"),
        ([("UD-APPROVE-DESIGN", "APPROVE_DESIGN", 9)], "APPROVE_DESIGN"),
        ([], ""),
    ],
)
@pytest.mark.parametrize("kind", ["answered", "pending"])
def test_a_session_returns_to_where_its_newest_question_came_up(
    decisions: list[tuple[str, str, int]], state: str, kind: str
) -> None:
    asked = [
        decision(name, kind, state_context=context, asked_at=f"2026-01-31T{hour:02}:00:00Z")
        for name, context, hour in decisions
    ]
    assert return_state(SessionStatus.model_validate(status("ASK_USER", user_decisions=asked))) == state


def test_a_blocked_session_goes_back_to_where_it_was_and_the_same_move_again_changes_nothing(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "DESIGN")
    blocked = advance(writer(folder), "BLOCKED", role="Orchestrator", blocker="subagent_failure")
    assert (blocked.blocked_from, blocked.blocker) == ("DESIGN", "subagent_failure")
    with pytest.raises(BrokenContract, match="can only return there"):
        advance(writer(folder), "INTAKE", role="Orchestrator")
    back = advance(writer(folder), "DESIGN", role="Orchestrator")
    assert (back.blocked_from, back.blocker) == (None, None)
    before = (folder / "status.json").read_bytes()
    advance(writer(folder), "DESIGN", role="Orchestrator")
    assert (folder / "status.json").read_bytes() == before


@pytest.mark.parametrize(("start", "mode"), [("INTAKE", "full"), ("INTAKE_LEAN", "lean")])
def test_a_session_runs_from_its_start_to_done(tmp_path: Path, start: str, mode: str) -> None:
    texts: dict[str, str | None] = {"tasks.yaml": done(), "outputs.jsonl": INTEGRATED}
    if mode == "lean":
        texts |= {"architecture.md": None, "outputs.jsonl": ALL_REVIEWED}
    decisions = SINGLE if mode == "full" else []
    folder = make_session(tmp_path, start, texts=texts, user_decisions=decisions)
    for state in ORDER[mode][1:]:
        assert advance(writer(folder), state, role="Orchestrator").current_state == state
    assert read_session(folder).mode == mode
    with pytest.raises(BrokenContract, match="done"):
        advance(writer(folder), "BLOCKED", role="Orchestrator", blocker="x")
    assert reopen(writer(folder)).current_state == "IMPLEMENT_LOOP"


@pytest.mark.parametrize(
    ("state", "gates", "target", "legal"),
    [
        ("IMPLEMENT_LOOP", SINGLE, "FIX_BUILD", "FIX_REVIEW, FIX_TESTS, FIX_SECURITY, ASK_USER, BLOCKED"),
        ("PLAN", GATES[:1], "FIX_BUILD", "REVIEW_STRATEGY, ASK_USER, BLOCKED"),
        ("APPROVE_DESIGN", [], "DONE", "ASK_USER, BLOCKED"),
        ("ASK_USER", [*SINGLE, decision()], "DONE", "BLOCKED"),
    ],
)
def test_a_move_that_no_state_has_names_only_moves_that_are_made(
    tmp_path: Path, state: str, gates: Any, target: str, legal: str
) -> None:
    session = read_session(make_session(tmp_path, state, mode="full", user_decisions=gates))
    with pytest.raises(BrokenContract) as refused:
        status_in(session, target, task="T-001")
    (found,) = refused.value.findings
    assert found.text.endswith(f'does not lead to "{target}". Legal moves from "{state}": {legal}.')


def test_a_refusal_names_the_broken_file_and_its_place(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "PLAN", texts={"tasks.yaml": TASKS.replace("goal: Write the rows.", "x: y")})
    session = read_session(folder)
    assert refusal(AttemptedMove(session), "REVIEW_STRATEGY").startswith("tasks.yaml /tasks/1/goal: ")
    with pytest.raises(BrokenContract, match="Unknown state `NOWHERE`"):
        status_in(session, "NOWHERE")


DESIGN = "UD-APPROVE-DESIGN"
CHANGES = decision(DESIGN, "answered", answer="changes-requested: smaller")
SENT = {"agent": "Designer", "task_id": "meta", "at": "2026-01-31T10:00:00Z"}


def tracked(status: str) -> dict[str, Any]:
    return {"gate_tracking": {"APPROVE_DESIGN": {"correction_status": status, "last_correction_dispatch": SENT}}}


def test_requested_changes_that_only_the_status_has_reach_the_history_before_the_next_question(tmp_path: Path) -> None:
    changes: Any = {"mode": "full", "user_decisions": [CHANGES], **tracked("completed")}
    folder = make_session(tmp_path, "APPROVE_DESIGN", **changes)
    for _ in range(2):
        ask(writer(folder), [UserQuestion("Approve it now?", DESIGN)])
        (line,) = (folder / "approve-design-history.jsonl").read_text().splitlines()
        assert json.loads(line)["answer"] == "changes-requested: smaller"


IMPLEMENTED = TASKS.replace("not-started", "implemented")
ONE = TASKS.replace("not-started  #", "implemented  #")
REVIEWED = outputs(("Coder", "OK"), ("Reviewer", "OK"), ("QA", "OK"))


def full(decisions: list[Any], tasks: str = TASKS, recorded: str = "", **more: Any) -> dict[str, Any]:
    return {"user_decisions": decisions, "texts": {"tasks.yaml": tasks, "outputs.jsonl": recorded}, **more}


ASK = f"session ask DIR --id {DESIGN} --question"
ADVANCE = "session advance DIR --to %s --role Orchestrator"
WORK, GATE, RED = "IMPLEMENT_LOOP", "APPROVE_DESIGN", "CI that is not red"
REVIEWS = outputs(("Reviewer", "OK"), ("QA", "OK")) + outputs(("Reviewer", "OK"), task="T-002")
RECORDED = outputs(("Docs", OK), task="meta")
NO_QA = outputs(("Reviewer", "OK")) + outputs(("Reviewer", "OK"), task="T-002")
TAKE_QA = "dispatch DIR T-001 --role QA --take OUTPUT.json"
REPEATED = outputs(("QA", "OK")).replace('"OK"', '"FAIL", "status": "OK"')
ENTRY = "outputs.jsonl: The line is not an entry of this file: /status"
NOT_READ = [f'{ENTRY} The key "status" is written twice in one object, so one value would be lost. Keep one.']
UNREVIEWED = "reviews: T-001 (Reviewer, QA); T-002 (Reviewer)"
BOTH, LAST = ["completed tasks: T-001, T-002"], ["final review of meta"]
STUCK = full([decision(state_context="DESIGN")])
SENT_TO, CORRECTED = (full([CHANGES], **tracked(status)) for status in ("dispatched", "completed"))
GONE = {"user_decisions": GATES, "texts": {"spec.md": None}}
ANSWERED = decision("UD-1", "answered")
BEHIND = TASKS.replace("not-started\n", "in-progress\n")
"""T-002 was begun, and T-001, which it depends on, was opened again."""
NOT_FIXABLE = {
    "user_decisions": GATES,
    "texts": {"spec.md": None, "tasks.yaml": ONE, "outputs.jsonl": outputs(("Coder", "OK"), ("QA", "FAIL"))},
}
SPENT = full(GATES, ONE, outputs(("QA", "FAIL")), retry_counts={"T-001": {"FIX_TESTS": 3}})
ANSWERED_LOOP = {**ANSWERED, "question": "T-001 FIX_TESTS: Try it again?"}
DECIDED = {**SPENT, "user_decisions": [*GATES, ANSWERED_LOOP]}
ANSWERED_BUILD = {**ANSWERED, "question": "meta FIX_BUILD: Try it again?"}
ASK_LOOP = "session ask DIR --question 'T-001 FIX_TESTS: QUESTION'"
BEFORE = {"asked_at": "2026-01-31T09:00:00Z", "resolved_at": "2026-01-31T10:00:00Z"}
WAIVE = "session task DIR T-001 --to completed --role Orchestrator --waive-reviews REASON"
SPENT_LOOP = ["a decision of the user"]
BUILT, AGAIN = "OK of Integrator", "session set DIR retry_counts.meta.FIX_BUILD=0 --role Orchestrator"
FAILED = ALL_REVIEWED + outputs(("Integrator", "FAIL"), task="meta")
NOT_BUILT = full(SINGLE, done(), FAILED, retry_counts={"meta": {"FIX_BUILD": 3}})
CODE = ALL_REVIEWED + outputs(("Integrator", "OK"), task="meta", has_code=True)
DECIDED_BEFORE = {**SPENT, "user_decisions": [*GATES, {**ANSWERED_LOOP, **BEFORE}]}
REOPENED = full([], done(), ALL_REVIEWED, mode="lean", reopened_at=AT)
REPORTED = full([], done(), ALL_REVIEWED + outputs(("Docs", "OK"), task="meta"), mode="lean", reopened_at=AT)
MOVES: list[tuple[str, dict[str, Any], str, list[str], str]] = [
    ("INTAKE", {"texts": {"spec.md": None}}, "DESIGN", ["spec.md"], "dispatch DIR meta --role SpecAgent --into"),
    ("INTAKE", {}, "DESIGN", [], ADVANCE % "DESIGN"),
    ("INTAKE", {}, "ASK_USER", ["a question"], "session ask DIR --question QUESTION"),
    (GATE, {}, "PLAN", [DESIGN], ASK),
    (GATE, full([decision(DESIGN)]), "PLAN", [f"answers to {DESIGN}"], f"session answer DIR {DESIGN}=ANSWER"),
    (GATE, full([CHANGES]), "PLAN", [DESIGN], "dispatch DIR meta --role Architect --into"),
    (GATE, SENT_TO, "PLAN", [DESIGN], "dispatch DIR meta --role Designer --take OUTPUT.json"),
    (GATE, CORRECTED, "PLAN", [DESIGN], ASK),
    (WORK, full(GATES), "INTEGRATE", BOTH + LAST, "dispatch DIR T-001 --role Coder --into"),
    (WORK, full(SINGLE, done()), "INTEGRATE", [], ADVANCE % "INTEGRATE"),
    (
        WORK,
        full(SINGLE, done(), RECORDED),
        "INTEGRATE",
        [UNREVIEWED],
        "session task DIR T-001 --to implemented --role Orch",
    ),
    (WORK, full(GATES, done(), NO_QA), "INTEGRATE", ["reviews: T-001 (QA)", *LAST], TAKE_QA),
    (WORK, full(SINGLE, done(), ALL_REVIEWED + REPEATED), "INTEGRATE", NOT_READ, "session show DIR"),
    ("INTEGRATE", full(SINGLE, done(), RECORDED), "RELEASE", [UNREVIEWED, BUILT], ADVANCE % WORK),
    ("INTEGRATE", full(SINGLE, done(), ALL_REVIEWED), "RELEASE", [BUILT], "dispatch DIR meta --role Integrator --into"),
    ("INTEGRATE", full(SINGLE, done(), FAILED), "RELEASE", [BUILT], "session fix DIR meta FIX_BUILD --role Orch"),
    ("INTEGRATE", NOT_BUILT, "FIX_BUILD", SPENT_LOOP, "session ask DIR --question 'meta FIX_BUILD"),
    (
        "INTEGRATE",
        {**NOT_BUILT, "user_decisions": [*SINGLE, ANSWERED_BUILD]},
        "FIX_BUILD",
        ["a decision of the user"],
        AGAIN,
    ),
    ("INTEGRATE", full(SINGLE, done(), CODE), "RELEASE", LAST, "dispatch DIR meta --role Reviewer --into"),
    ("RELEASE", full(SINGLE, done(), INTEGRATED, last_ci_result="red"), "DONE", [RED], "session ask DIR --question"),
    ("RELEASE", full(SINGLE, done(), RECORDED), "DONE", [UNREVIEWED], ADVANCE % WORK),
    (WORK, full(GATES, done(), REVIEWS), "INTEGRATE", LAST, "dispatch DIR meta --role Reviewer --into"),
    ("INTEGRATE", REOPENED, "DONE", ["a new report.md"], "dispatch DIR meta --role Docs --into"),
    ("INTEGRATE", REPORTED, "DONE", [], ADVANCE % "DONE"),
    (WORK, full(SINGLE, ONE), "INTEGRATE", BOTH, "dispatch DIR T-002 --role Coder --into"),
    (WORK, full(SINGLE, IMPLEMENTED), "INTEGRATE", BOTH, "dispatch DIR meta --role Reviewer --into"),
    (WORK, full(GATES, ONE, outputs(("QA", "FAIL"))), "FIX_TESTS", [], "session fix DIR T-001 FIX_TESTS --role Orch"),
    (WORK, SPENT, "INTEGRATE", BOTH + LAST, ASK_LOOP),
    (WORK, SPENT, "FIX_TESTS", ["a decision of the user"], ASK_LOOP),
    (WORK, DECIDED, "INTEGRATE", BOTH + LAST, WAIVE),
    (WORK, DECIDED, "FIX_TESTS", SPENT_LOOP, "session set DIR retry_counts.T-001.FIX_TESTS=0 --role Orchestrator"),
    (WORK, DECIDED_BEFORE, "INTEGRATE", BOTH + LAST, ASK_LOOP),
    (WORK, full(GATES, ONE, REVIEWED), "INTEGRATE", BOTH + LAST, "session task DIR T-001 --to completed --role Orch"),
    (
        "INTEGRATE",
        full(SINGLE, done(), ALL_REVIEWED, last_ci_result="red"),
        "RELEASE",
        [RED, BUILT],
        "session fix DIR meta FIX_BUILD --role",
    ),
    ("INTEGRATE", full([], done(), ALL_REVIEWED), "RELEASE", [BUILT, DESIGN, "UD-REVIEW-STRATEGY"], ADVANCE % GATE),
    ("DONE", full(SINGLE, done()), WORK, [], "session reopen DIR"),
    ("ASK_USER", STUCK, "DESIGN", ["answers to UD-1"], "session answer DIR UD-1=ANSWER"),
    ("BLOCKED", full(GATES, blocked_from="PLAN", blocker="x"), "PLAN", [], ADVANCE % "PLAN"),
    ("BLOCKED", full(GATES, blocker="x"), "PLAN", ["blocked_from"], "session set DIR blocked_from=STATE --role Orch"),
    ("BLOCKED", {**GONE, "blocked_from": WORK, "blocker": "x"}, WORK, ["spec.md"], "session show DIR"),
    ("DONE", GONE, WORK, ["spec.md"], "session show DIR"),
    ("ASK_USER", {**GONE, "user_decisions": [*GATES, ANSWERED]}, WORK, ["spec.md"], "session show DIR"),
    (WORK, full(GATES, BEHIND), "INTEGRATE", BOTH + LAST, "dispatch DIR T-001 --role Coder --into"),
    (WORK, NOT_FIXABLE, "INTEGRATE", BOTH + LAST + ["spec.md"], "dispatch DIR meta --role SpecAgent --into"),
    ("FIX_TESTS", full(GATES, ONE, REVIEWED), WORK, [], ADVANCE % WORK),
    ("FIX_TESTS", full(GATES, ONE, REVIEWED, fix_task="T-001"), WORK, [], "dispatch DIR T-001 --role"),
    ("FIX_TESTS", full(GATES, done(), REVIEWED, fix_task="T-001"), WORK, [], ADVANCE % WORK),
    ("FIX_BUILD", full(GATES, done(), fix_task="meta"), "INTEGRATE", [], "dispatch DIR meta --role"),
]


@pytest.mark.parametrize(("state", "changes", "to", "missing", "command"), MOVES)
def test_a_move_names_what_it_misses_and_the_command_that_gets_it(
    tmp_path: Path, state: str, changes: dict[str, Any], to: str, missing: list[str], command: str
) -> None:
    folder = make_session(tmp_path, state, **{"mode": "full", **changes})
    session = read_session(folder)
    (move,) = [move for move in next_moves(session) if move.to == to]
    assert list(move.missing) == missing
    task = {"FIX_BUILD": "meta"}.get(to, "T-001")
    with pytest.raises(BrokenContract) if missing else nullcontext():
        assert status_in(session, to, task=task, blocker="x", reopens=True)["current_state"] == to
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
    ("state", "recorded", "ci", "moves"),
    [
        ("INTEGRATE", FAILED, "green", ["RELEASE", "FIX_BUILD"]),
        ("INTEGRATE", INTEGRATED, "red", ["RELEASE", "FIX_BUILD"]),
        ("INTEGRATE", INTEGRATED, "green", ["RELEASE"]),
        ("RELEASE", FAILED, "green", ["DONE", "ASK_USER", "BLOCKED"]),
        ("RELEASE", INTEGRATED, "green", ["DONE"]),
    ],
)
def test_a_person_reads_of_a_way_on_from_a_broken_build(
    tmp_path: Path, state: str, recorded: str, ci: str, moves: list[str]
) -> None:
    changes = full(SINGLE, done(), recorded, last_ci_result=ci)
    folder = make_session(tmp_path, state, mode="full", **changes)
    assert [move.to for move in main_moves(read_session(folder))] == moves


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
    assert "--to REVIEW_STRATEGY" in started.command


@pytest.mark.parametrize("state", ["INTEGRATE", "FIX_BUILD", "RELEASE"])
def test_a_completed_task_without_its_reviews_leads_back_to_the_loop(tmp_path: Path, state: str) -> None:
    changes = full(SINGLE, done(), outputs(("Coder", "OK")))
    session = read_session(make_session(tmp_path, state, mode="full", **changes))
    assert all(" task " not in move.command for move in next_moves(session))
    assert next_task_step(session).command.endswith("--to IMPLEMENT_LOOP --role Orchestrator")
    assert advance(writer(session.folder), "IMPLEMENT_LOOP", role="Orchestrator").current_state == "IMPLEMENT_LOOP"


def test_a_state_of_the_other_mode_leads_nowhere(tmp_path: Path) -> None:
    texts = {"tasks.yaml": TASKS.replace("not-started", "implemented"), "outputs.jsonl": WORKED_ON}
    session = read_session(make_session(tmp_path, "RELEASE", mode="lean", texts=texts))
    assert [move.command for move in task_moves(session, "T-001") if move.to == "completed"] == [
        next_task_step(session).command
    ]
    assert "session show" in next_task_step(session).command


def test_a_session_of_many_tasks_is_shown_in_time_in_proportion_to_them(tmp_path: Path) -> None:
    sessions = {}
    for size in (100, 400):
        names = [f"T-{i:03}" for i in range(1, size + 1)]
        task = 'status: implemented, goal: Write it., acceptance_checks: ["cmd: pytest"]'
        tasks = "".join(f"  - {{id: {name}, {task}}}\n" for name in names)
        recorded = "".join(outputs(("Coder", "OK"), ("Reviewer", "FAIL"), task=name) for name in names[::4])
        texts = {"tasks.yaml": f"{TASKS.partition('  - ')[0]}{tasks}", "outputs.jsonl": recorded}
        folder = make_session(tmp_path / str(size), "INTEGRATE", mode="full", user_decisions=GATES, texts=texts)
        sessions[size] = read_session(folder)
        assert (len(sessions[size].plan), len(sessions[size].outputs)) == (size, size // 2)

    assert not grows_too_fast(lambda size: as_document(replace(sessions[size])), 400, noticed=0.2)


@pytest.mark.parametrize(("state", "gate"), [("DESIGN", DESIGN), ("PLAN", "UD-REVIEW-STRATEGY")])
def test_entering_a_gate_asks_its_question_once(tmp_path: Path, state: str, gate: str) -> None:
    folder = make_session(tmp_path, state, mode="full", user_decisions=GATES[:1] if state == "PLAN" else [])
    for _ in range(2):
        status = advance(writer(folder), gate.removeprefix("UD-").replace("-", "_"), role="Orchestrator")
        assert [(one.decision_id, bool(one.question)) for one in status.pending] == [(gate, True)]


def test_a_session_that_is_done_names_broken_files_before_it_is_reopened(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "DONE", mode="full", user_decisions=SINGLE, texts={"spec.md": "{"})
    way = f"eopen it with `accord session reopen {folder}`."
    hint = done_finding(read_session(folder)).hint
    assert hint == f"spec.md: The section `Goals` is missing. Correct it. Then r{way}"
    with pytest.raises(BrokenContract, match="Goals"):
        reopen(writer(folder))
    (folder / "spec.md").write_text(SPEC)
    assert done_finding(read_session(folder)).hint == f"R{way}"
    reopen(writer(folder))


def test_a_session_that_is_done_does_not_continue(tmp_path: Path) -> None:
    assert next_step(read_session(make_session(tmp_path, "DONE", **full(SINGLE, done())))).next == "done"


def test_after_the_start_of_an_agent_its_output_is_taken(tmp_path: Path) -> None:
    session = read_session(make_session(tmp_path, "INTAKE", mode="full", texts={"spec.md": None}))
    take, move_on = following_commands(session, "meta", "SpecAgent")
    assert take.endswith("meta --role SpecAgent --take OUTPUT.json")
    assert move_on.endswith("--to DESIGN --role Orchestrator")
    assert len(following_commands(session, "meta", "Researcher")) == 1
