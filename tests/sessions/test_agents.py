"""Agents of a session: whom the gates stop, what each reads and may write, and what its output changes."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, get_args

import pytest
from support.disks import contents
from support.missions import Project
from support.sessions import (
    ALL_REVIEWED,
    ARCHITECTURE,
    GATES,
    INTEGRATED,
    NAME,
    SINGLE,
    TASKS,
    WORKED_ON,
    agent_output,
    clock,
    decision,
    done,
    make_session,
    outputs,
    writer,
)

from accord.core.errors import BrokenContract
from accord.core.findings import Finding, has_errors
from accord.core.kinds import KINDS
from accord.sessions.changes import hand_edits
from accord.sessions.dispatch import CHECKLISTS, FORMS, RULES, agent_input, output_schema, prompt_of
from accord.sessions.folder import Session, read_session, status_of
from accord.sessions.folder_rules import check_session
from accord.sessions.machine import INTEGRATION
from accord.sessions.models import ROLES, AgentOutput, ProjectType
from accord.sessions.next_moves import task_moves
from accord.sessions.outputs import apply_output, plan_output
from accord.sessions.policy import INTO, OWNERS, WRITERS, check_path, parse_setting
from accord.sessions.questions import UserQuestion
from accord.sessions.run import advance, answer, ask, fail_agent, move_task, resume, set_values, start_agent, start_fix

FINDING = AgentOutput.model_validate(agent_output(status="NEEDS_DECISION", summary="The port is open."))
WORK = AgentOutput.model_validate(agent_output())
DESIGN = "UD-APPROVE-DESIGN"
FAIL = AgentOutput.model_validate(agent_output(status="FAIL"))
UNDONE = AgentOutput.model_validate(
    agent_output(gates={**agent_output()["gates"], "meets_definition_of_done": False}, summary="Half of it.")
)


def implementing(root: Path, task_status: str = "not-started") -> Path:
    texts = {"tasks.yaml": TASKS.replace("not-started  #", f"{task_status}  #")}
    return make_session(root, "IMPLEMENT_LOOP", user_decisions=GATES, texts=texts)


@pytest.mark.parametrize(
    ("role", "status", "before", "changed", "after"),
    [
        ("Coder", "OK", "not-started", ["T-001 implemented"], "implemented"),
        ("Coder", "OK", "implemented", [], "implemented"),
        ("Coder", "FAIL", "in-progress", ["T-001 blocked"], "blocked"),
        ("Reviewer", "OK", "implemented", [], "implemented"),
        ("Reviewer", "BLOCKED", "implemented", ["T-001 blocked"], "blocked"),
        ("Reviewer", "FAIL", "implemented", [], "implemented"),
        ("Reviewer", "FAIL", "completed", ["T-001 implemented"], "implemented"),
        ("Security", "BLOCKED", "completed", ["T-001 blocked"], "blocked"),
        ("Reviewer", "OK", "completed", [], "completed"),
        ("Security", "NEEDS_DECISION", "implemented", ["the user is asked"], "implemented"),
    ],
)
def test_an_output_changes_what_its_role_may_change_and_once(
    tmp_path: Path, role: str, status: str, before: str, changed: list[str], after: str
) -> None:
    folder = implementing(tmp_path, before)
    output = AgentOutput.model_validate(agent_output(status=status, summary="May the port be open?"))
    assert apply_output(writer(folder), "T-001", role, output).summary == changed
    once = contents(folder)
    apply_output(writer(folder), "T-001", role, output)
    assert contents(folder) == once
    session = read_session(folder)
    assert session.task("T-001").status == after  # type: ignore[union-attr]
    asked = [(item.question, item.category) for item in status_of(session).pending]
    assert asked == ([("T-001: May the port be open?", "security")] if status == "NEEDS_DECISION" else [])


def summary(session: Session, task: str, role: str, output: AgentOutput) -> list[str]:
    return plan_output(session, task, role, output, now=clock().now())[0].summary


def test_a_plan_follows_from_the_session_as_it_was_read(tmp_path: Path) -> None:
    tasks = TASKS.replace("owner: 'someone'", f"context_files: [.agents-work/{NAME}/spec.md, .agents-work/later.md]")
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts={"tasks.yaml": tasks})
    (tmp_path / ".agents-work/later.md").write_text("x")
    there = read_session(folder)
    (tmp_path / ".agents-work/later.md").unlink()
    gone = read_session(folder)
    shutil.rmtree(folder)
    assert summary(there, "T-001", "Coder", WORK) == ["T-001 implemented"]
    (tmp_path / ".agents-work/later.md").write_text("x")
    with pytest.raises(BrokenContract, match=r"later\.md` does not exist"):
        summary(gone, "T-001", "Coder", WORK)


def test_a_correction_is_completed_by_the_output_of_the_agent_that_was_sent(tmp_path: Path) -> None:
    said = decision("UD-APPROVE-DESIGN", "answered", answer="changes-requested: smaller")
    last = {"agent": "Designer", "task_id": "meta", "at": "2026-01-31T10:00:00Z"}
    tracking = {"APPROVE_DESIGN": {"correction_status": "dispatched", "last_correction_dispatch": last}}
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=[said], gate_tracking=tracking)
    session = read_session(folder)
    assert summary(session, "meta", "Designer", WORK) == ["correction of the design completed"]
    assert summary(session, "meta", "Designer", UNDONE) == ["correction of the design queued"]
    for other in ("Researcher", "SpecAgent", "Architect"):
        assert summary(session, "meta", other, WORK) == []
    assert summary(session, "T-001", "Designer", WORK) == []


@pytest.mark.parametrize("state", ["INTAKE", "APPROVE_DESIGN", "REVIEW_STRATEGY", "BLOCKED"])
def test_a_waiver_of_the_final_review_waits_for_the_gates(tmp_path: Path, state: str) -> None:
    folder = make_session(tmp_path, state, mode="full", user_decisions=GATES)
    with pytest.raises(BrokenContract, match="reviews are waived only in IMPLEMENT_LOOP"):
        move_task(writer(folder), "meta", "completed", role="Orchestrator", waiver="late")


STATES = ["INTAKE", "DESIGN", "APPROVE_DESIGN", "PLAN", "REVIEW_STRATEGY", "INTEGRATE", "RELEASE", "FIX_BUILD"]


@pytest.mark.parametrize("state", [*STATES, "DONE", "ASK_USER", "BLOCKED"])
def test_work_on_a_task_is_taken_only_where_tasks_are_worked_on(tmp_path: Path, state: str) -> None:
    asked = [*GATES, decision()] if state == "ASK_USER" else GATES
    folder = make_session(tmp_path, state, mode="full", user_decisions=asked, blocked_from="IMPLEMENT_LOOP")
    code = "session-done" if state == "DONE" else "state-forbids"
    for task in ("T-001", "meta"):
        with pytest.raises(BrokenContract):
            apply_output(writer(folder), task, "Coder", WORK)
        assert refused(folder, task) == [code], "no Coder is sent, either"
    with pytest.raises(BrokenContract):
        move_task(writer(folder), "T-001", "in-progress", role="Coder")
    assert not (folder / "outputs.jsonl").exists()


@pytest.mark.parametrize(
    ("missing", "hint"),
    [
        *(
            ([*one], "^Go back with `accord session advance .* which asks the user")
            for one in ([], GATES[:1], GATES[1:])
        ),
        ([decision(), *GATES[1:]], "`accord session answer .* UD-1=ANSWER`. Go back with"),
        ([decision(DESIGN), *GATES[1:]], "`accord session answer .* UD-APPROVE-DESIGN=ANSWER`.$"),
    ],
)
def test_nothing_is_taken_or_sent_past_a_gate_that_is_not_answered(tmp_path: Path, missing: Any, hint: str) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=missing)
    for role, task in (("Coder", "T-001"), ("Coder", "meta"), ("Reviewer", "T-001")):
        for call in (apply_output, start_agent):
            more = (WORK,) if call is apply_output else ()
            with pytest.raises(BrokenContract) as caught:
                call(writer(folder), task, role, *more)
            assert [finding.code for finding in caught.value.findings] == ["gate-open"]
    with pytest.raises(BrokenContract) as caught:
        move_task(writer(folder), "T-001", "in-progress", role="Coder")
    assert re.search(hint, caught.value.findings[0].hint)
    hints = [one.hint for _, _, found in check_session(folder) for one in found if one.code == "gate-open"]
    assert hints[0] == caught.value.findings[0].hint


@pytest.mark.parametrize(("state", "mode", "role"), [("PLAN", "full", "Planner"), ("INTAKE_LEAN", "lean", "SpecAgent")])
def test_a_plan_whose_tasks_are_begun_is_not_taken(tmp_path: Path, state: str, mode: Any, role: str) -> None:
    plan = TASKS.replace("not-started", "completed", 1)
    folder = make_session(tmp_path, state, mode=mode, user_decisions=GATES[:1], texts={"tasks.yaml": plan})
    with pytest.raises(BrokenContract) as caught:
        apply_output(writer(folder), "meta", role, WORK)
    assert [one.code for one in caught.value.findings] == ["tasks-early"]
    (folder / "tasks.yaml").write_text(TASKS)
    apply_output(writer(folder), "meta", role, WORK)


SILENT = {"category": "security", "resolution_reason": "no response provided"}


@pytest.mark.parametrize(
    ("code", "broken"),
    [
        ("text-around", {"user_decisions": GATES}),
        ("decision-left", {"user_decisions": [*GATES, decision()]}),
        ("decision-record", {"user_decisions": [{**GATES[0], "resolved_at": None}, GATES[1]]}),
        ("security-cancelled", {"user_decisions": [*GATES, decision(status="cancelled", **SILENT)]}),
        ("retry-budget", {"user_decisions": GATES, "retry_counts": {"T-001": {"FIX_TESTS": 4}}}),
    ],
)
def test_no_agent_works_while_the_status_breaks_its_rules(tmp_path: Path, code: str, broken: dict[str, Any]) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", **broken)
    if code == "text-around":
        (folder / "status.json").write_text(f"```json\n{(folder / 'status.json').read_text()}```\n")
    assert (refused(folder, "T-001"), refused(folder, "meta")) == ([code], [code])
    changes: list[Callable[[], object]] = [
        lambda: apply_output(writer(folder), "T-001", "Reviewer", WORK),
        lambda: move_task(writer(folder), "T-001", "in-progress", role="Coder"),
        *([lambda: ask(writer(folder), [UserQuestion("Which one?")])] if code == "text-around" else []),
    ]
    for change in changes:
        with pytest.raises(BrokenContract) as caught:
            change()
        assert [one.code for one in caught.value.findings] == [code]


def test_a_session_that_changed_no_file_gets_its_review(tmp_path: Path) -> None:
    folder = implementing(tmp_path, "implemented")
    assert agent_input(read_session(folder), "T-001", "Reviewer")["task"]["session_changed_files"] == []


def test_work_that_is_not_done_leaves_its_task_in_progress(tmp_path: Path) -> None:
    folder = implementing(tmp_path)
    assert apply_output(writer(folder), "T-001", "Coder", UNDONE).summary == ["T-001 in-progress"]
    assert apply_output(writer(folder), "T-001", "Coder", WORK).summary == ["T-001 implemented"]


def test_the_last_review_that_passes_completes_its_tasks(tmp_path: Path) -> None:
    folder = implementing(tmp_path, "implemented")
    assert apply_output(writer(folder), "T-001", "Reviewer", WORK).summary == []
    with pytest.raises(BrokenContract, match=r"These gates have not passed: QA\."):
        move_task(writer(folder), "T-001", "completed", role="Orchestrator")
    assert apply_output(writer(folder), "T-001", "QA", WORK).summary == ["T-001 completed"]
    apply_output(writer(folder), "T-002", "Coder", WORK)
    assert apply_output(writer(folder), "meta", "Reviewer", WORK).summary == ["T-002 completed"]


@pytest.mark.parametrize(
    ("findings", "concerns", "waits"),
    [
        (["A critical security flaw in auth.py"], [], True),
        ([], [{"what": "the token is logged"}], True),
        (["Security: high: not found", "info: all inputs are checked"], ["critical: none", "low: the header"], False),
        (["medium: the header names the version"], [], False),
    ],
)
def test_a_security_finding_without_a_severity_stays_open(
    tmp_path: Path, findings: list[Any], concerns: list[Any], waits: bool
) -> None:
    folder, given = implementing(tmp_path, "implemented"), agent_output()
    parts = {"artifacts": {**given["artifacts"], "findings": findings}}
    parts["gates"] = {**given["gates"], "security_concerns": concerns}
    output = AgentOutput.model_validate(agent_output(**parts))
    effects = apply_output(writer(folder), "T-001", "Security", output)
    assert ("Security" in effects.open_gates) == waits


@pytest.mark.parametrize(
    ("task", "agent", "named", "opened"),
    [
        ("T-001", "Reviewer", "T-001", ["T-001"]),
        ("meta", "Reviewer", "T-001", ["T-001", "T-002"]),
        ("meta", "Coder", "T-002", ["T-002"]),
        ("meta", "Coder", "T-009", ["T-001", "T-002"]),
        ("meta", "Coder", "meta", ["T-001", "T-002"]),
    ],
)
def test_a_failed_review_opens_completed_tasks_again_and_leads_the_session_back(
    tmp_path: Path, task: str, agent: str, named: str, opened: list[str]
) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": INTEGRATED}
    folder = make_session(tmp_path, "RELEASE", mode="full", user_decisions=SINGLE, texts=texts)
    following = {"recommended_agent": agent, "recommended_task_id": named, "reason": "Fix it."}
    failed = AgentOutput.model_validate(agent_output(status="FAIL", next=following))
    summary = apply_output(writer(folder), task, "Security", failed).summary
    assert summary == [*(f"{one} implemented" for one in opened), "the session goes back to IMPLEMENT_LOOP"]
    assert not has_errors(check_session(folder)[0][2])
    start_fix(writer(folder), opened[0], "FIX_SECURITY", role="Orchestrator")
    assert start_agent(writer(folder), opened[0], "Coder")["task"]["id"] == opened[0]
    before = contents(folder)
    apply_output(writer(folder), task, "Security", failed)
    assert contents(folder) == before
    assert apply_output(writer(folder), opened[0], "Coder", WORK).summary == [f"{opened[0]} implemented"]
    assert status_of(read_session(folder)).retry_counts.keys() == {opened[0]}


def test_a_failed_final_review_that_names_a_task_is_needed_again_after_that_task_passes(tmp_path: Path) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": ALL_REVIEWED}
    folder = make_session(tmp_path, "INTEGRATE", mode="full", user_decisions=GATES, texts=texts)
    following = {"recommended_agent": "Coder", "recommended_task_id": "T-002", "reason": "Fix it."}
    failed = AgentOutput.model_validate(agent_output(status="FAIL", next=following))
    assert apply_output(writer(folder), "meta", "Reviewer", failed).summary[0] == "T-002 implemented"
    later = clock()
    later.sleep(120)
    assert apply_output(writer(folder, later), "T-002", "Reviewer", WORK).summary == ["T-002 completed"]
    with pytest.raises(BrokenContract, match="final review"):
        advance(writer(folder), "INTEGRATE", role="Orchestrator")


def test_a_failed_review_names_the_broken_file_that_keeps_the_session_from_its_tasks(tmp_path: Path) -> None:
    texts = {"tasks.yaml": done(), "spec.md": "# Nothing"}
    folder = make_session(tmp_path, "RELEASE", mode="full", user_decisions=SINGLE, texts=texts)
    with pytest.raises(BrokenContract) as refused:
        apply_output(writer(folder), "T-001", "Reviewer", FAIL)
    assert [one.text for one in refused.value.findings] == ["spec.md: The section `Goals` is missing. Correct it."]
    (folder / "outputs.jsonl").write_text(outputs(("Reviewer", "FAIL")))
    apply_output(writer(folder), "meta", "SpecAgent", WORK)
    assert read_session(folder).outputs[-1].agent == "SpecAgent", "who writes the file is not kept from it"


@pytest.mark.parametrize("task", ["T-001", "meta"])
@pytest.mark.parametrize("when", ["not-started", "in-progress"])
def test_a_review_from_before_the_work_counts_for_nothing_also_when_the_task_is_moved_by_hand(
    tmp_path: Path, task: str, when: str
) -> None:
    folder = implementing(tmp_path)
    if when == "in-progress":
        start_agent(writer(folder), "T-001", "Coder")
    for role in ("Reviewer", "QA"):
        apply_output(writer(folder), task, role, WORK)
    for status in ("in-progress", "implemented"):
        move_task(writer(folder), "T-001", status, role="Coder")
    with pytest.raises(BrokenContract, match="cannot be moved") as refused:
        move_task(writer(folder), "T-001", "completed", role="Orchestrator")
    assert "These gates have not passed: Reviewer, QA." in refused.value.findings[0].message
    for role in ("Reviewer", "QA"):
        apply_output(writer(folder), task, role, WORK)
    assert read_session(folder).task("T-001").status == "completed"  # type: ignore[union-attr]


def test_a_finding_that_needs_a_decision_opens_the_task_and_asks(tmp_path: Path) -> None:
    texts = {"tasks.yaml": done()}
    folder = make_session(tmp_path, "INTEGRATE", mode="full", user_decisions=SINGLE, texts=texts)
    summary = apply_output(writer(folder), "T-002", "Security", FINDING).summary
    assert summary == ["T-002 implemented", "the session goes back to IMPLEMENT_LOOP", "the user is asked"]
    status = status_of(read_session(folder))
    assert (status.current_state, status.pending[0].state_context) == ("ASK_USER", "IMPLEMENT_LOOP")


def test_a_waiver_is_recorded_with_its_reason_and_the_reviews_that_it_replaces(tmp_path: Path) -> None:
    folder = implementing(tmp_path, "implemented")
    apply_output(writer(folder), "T-001", "Reviewer", WORK)
    with pytest.raises(BrokenContract, match="Only the Orchestrator waives reviews, not Coder"):
        move_task(writer(folder), "T-001", "completed", role="Coder", waiver="no time")
    move_task(writer(folder), "T-001", "completed", role="Orchestrator", waiver="QA is ill")
    last = read_session(folder).outputs[-1]
    assert (last.agent, last.summary, last.waived_reviews) == ("Orchestrator", "QA is ill", ["QA"])
    before = contents(folder)
    move_task(writer(folder), "T-001", "completed", role="Orchestrator", waiver="QA is ill")
    assert contents(folder) == before
    assert not has_errors(check_session(folder)[0][2])


REVIEWS = outputs(("Reviewer", "OK"), ("QA", "OK")) + outputs(("Reviewer", "OK"), task="T-002")


def test_the_final_review_can_be_waived_with_a_reason(tmp_path: Path) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": REVIEWS}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES, texts=texts)
    with pytest.raises(BrokenContract, match="needs a final review"):
        advance(writer(folder), "INTEGRATE", role="Orchestrator")
    with pytest.raises(BrokenContract, match="not QA"):
        move_task(writer(folder), "meta", "completed", role="QA", waiver="no Reviewer")
    move_task(writer(folder), "meta", "completed", role="Orchestrator", waiver="no Reviewer")
    assert advance(writer(folder), "INTEGRATE", role="Orchestrator").current_state == "INTEGRATE"


def test_an_agent_that_is_not_done_holds_the_session_in_its_state(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "DESIGN", mode="full")
    for output in (FAIL, UNDONE):
        apply_output(writer(folder), "meta", "Architect", output)
        with pytest.raises(BrokenContract, match="The last output of Architect is not OK"):
            advance(writer(folder), "APPROVE_DESIGN", role="Orchestrator")
    apply_output(writer(folder), "meta", "Architect", WORK)
    advance(writer(folder), "APPROVE_DESIGN", role="Orchestrator")


def test_a_dispatch_is_recorded_and_a_failed_one_blocks_the_session(tmp_path: Path) -> None:
    folder = implementing(tmp_path)
    start_agent(writer(folder), "T-001", "Coder")
    assert read_session(folder).task("T-001").status == "in-progress"  # type: ignore[union-attr]
    assert [(one.agent, one.status) for one in read_session(folder).outputs] == [("Coder", "DISPATCHED")]
    before = contents(folder)
    start_agent(writer(folder), "T-001", "Coder")
    start_agent(writer(folder), "T-001", "QA")
    assert contents(folder) == before
    plan = (folder / "tasks.yaml").read_text()
    (folder / "tasks.yaml").write_text(plan.replace("in-progress", "completed", 1))
    assert "review-open" in [one.code for one in check_session(folder)[0][2]], "the record shows it"
    (folder / "tasks.yaml").write_text(plan)
    with pytest.raises(BrokenContract, match="No reason given"):
        fail_agent(writer(folder), "T-001", "Coder", " ")
    status = fail_agent(writer(folder), "T-001", "Coder", "no output in 4 tries")
    assert (status.current_state, status.blocked_from) == ("BLOCKED", "IMPLEMENT_LOOP")
    assert status.blocker == "subagent_failure: Coder on T-001: no output in 4 tries"


def take(folder: Path, task: str, role: str, status: str = "OK", summary: str = "Done.") -> None:
    apply_output(writer(folder), task, role, AgentOutput.model_validate(agent_output(status=status, summary=summary)))


FIXES: dict[str, Callable[[Path], object]] = {
    "dispatch": lambda folder: start_agent(writer(folder), "T-001", "Coder"),
    "take": lambda folder: take(folder, "T-001", "Coder"),
    "task": lambda folder: move_task(writer(folder), "T-001", "in-progress", role="Coder"),
    "meta": lambda folder: take(folder, "meta", "Coder"),
}


def _waive(folder: Path) -> None:
    move_task(writer(folder), "meta", "completed", role="Orchestrator", waiver="spike")


LIVES: dict[str, Callable[[Path], object]] = {
    "dispatch": FIXES["dispatch"],
    "begin again": lambda folder: move_task(writer(folder), "T-001", "not-started", role="Orchestrator"),
    "fix tests": lambda folder: start_fix(writer(folder), "T-001", "FIX_TESTS", role="Orchestrator"),
    "fix build": lambda folder: start_fix(writer(folder), "meta", "FIX_BUILD", role="Orchestrator"),
    "answer": lambda folder: (answer(writer(folder), {"UD-1": "close it"}), resume(writer(folder))),
    "waive meta": _waive,
    "begin": lambda folder: move_task(writer(folder), "T-001", "in-progress", role="Coder"),
    "end": lambda folder: move_task(writer(folder), "T-001", "implemented", role="Coder"),
    "other tool": lambda folder: (folder / "tasks.yaml").write_text(READY.replace("implemented", "in-progress")),
    "set done": lambda folder: (folder / "tasks.yaml").write_text(READY),
}
CODER, OK, FAILS = "T-001 Coder OK", "T-001 Reviewer OK", "T-001 Reviewer FAIL"
ASKS, SAFE = "T-001 Security NEEDS_DECISION", "T-001 Security OK"
BUILD, FINAL = "meta Integrator FAIL", "meta Reviewer OK"


@pytest.mark.parametrize(
    "steps",
    [
        [CODER, OK, f"{CODER} again", FAILS, CODER, f"{CODER} again", FAILS],
        [CODER, FAILS, "dispatch", "T-001 QA OK", f"{FAILS} again", CODER, FAILS],
        [CODER, "T-001 QA OK", f"{CODER} again", "fix tests", CODER, "T-001 QA OK"],
        [CODER, OK, "T-001 QA OK", f"{OK} again", "meta QA OK needs_review", OK],
        [CODER, ASKS, "answer", "T-001 QA OK", f"{ASKS} again", CODER, ASKS],
        [CODER, SAFE, "meta QA OK", f"{SAFE} again", "meta Security NEEDS_DECISION", "answer", SAFE, f"{SAFE} again"],
        [CODER, OK, "T-001 Security BLOCKED", "begin again", "dispatch", "T-001 Security BLOCKED again", CODER],
        [BUILD, "waive meta", f"{BUILD} again", "fix build", BUILD, f"{BUILD} again", "waive meta", f"{BUILD} again"],
        ["begin", "set done", OK, "begin", "end", OK, "other tool", "end", OK, f"{OK} again"],
        [FINAL, "meta QA OK", f"{FINAL} again", "meta Integrator OK code", FINAL],
    ],
)
def test_an_output_is_taken_once_until_its_agent_is_asked_again(tmp_path: Path, steps: list[str]) -> None:
    folder, now = implementing(tmp_path), clock()
    if steps[0] in (BUILD, FINAL):
        texts = {"tasks.yaml": done(), "outputs.jsonl": ALL_REVIEWED}
        folder = make_session(tmp_path / "late", "INTEGRATE", mode="full", user_decisions=SINGLE, texts=texts)
    for i, step in enumerate(steps):
        before, lines = contents(folder), len(read_session(folder).outputs)
        now.sleep(60)
        if step in LIVES:
            LIVES[step](folder)
            assert contents(folder) != before, steps[: i + 1]
            continue
        task, role, status, *more = step.split()
        gates = {**agent_output()["gates"], "needs_review": "needs_review" in more}
        artifacts = {**agent_output()["artifacts"], "files_changed": ["Makefile"] if "code" in more else []}
        output = agent_output(status=status, gates=gates, artifacts=artifacts)
        apply_output(writer(folder, now), task, role, AgentOutput.model_validate(output))
        assert len(read_session(folder).outputs) == lines + ("again" not in more), steps[: i + 1]
        assert "again" not in more or contents(folder) == before, steps[: i + 1]


def test_the_user_is_asked_once_for_each_output_of_security(tmp_path: Path) -> None:
    """Also within one second, in which no timestamp tells what was first."""
    folder = implementing(tmp_path)
    for number in (1, 2):
        take(folder, "T-001", "Coder")
        take(folder, "T-001", "Security", "NEEDS_DECISION", "May it stay open?")
        answer(writer(folder), {f"UD-{number}": "yes"})
        resume(writer(folder))
        once = contents(folder)
        for _ in range(2):
            take(folder, "T-001", "Security", "NEEDS_DECISION", "May it stay open?")
            assert contents(folder) == once
    take(folder, "T-001", "Security", "NEEDS_DECISION", "May it log tokens?")
    assert [one.decision_id for one in status_of(read_session(folder)).pending] == ["UD-3"]


@pytest.mark.parametrize("enters", ["", "T-001", "meta"])
@pytest.mark.parametrize("way", FIXES)
def test_every_way_to_fix_a_failed_review_counts_once_and_the_fourth_time_is_refused(
    tmp_path: Path, way: str, enters: str
) -> None:
    folder = implementing(tmp_path)
    take(folder, "T-001", "Coder")
    for count in (1, 2, 3, 4):
        take(folder, "T-001", "Reviewer", "FAIL", f"Wrong {count}.")
        before = contents(folder)
        with nullcontext() if count < 4 else pytest.raises(BrokenContract, match=r"T-001 went through FIX_REVIEW 3"):
            if enters:
                start_fix(writer(folder), enters, "FIX_REVIEW", role="Orchestrator")
            FIXES[way](folder)
        status = status_of(read_session(folder))
        assert status.retries("T-001", "FIX_REVIEW") == min(count, 3)
        assert count < 4 or contents(folder) == before
        if status.current_state == "FIX_REVIEW":
            advance(writer(folder), "IMPLEMENT_LOOP", role="Orchestrator")
        if count < 4 and way != "meta":
            FIXES["take"](folder)
            assert status_of(read_session(folder)).retries("T-001", "FIX_REVIEW") == count, "the work of the dispatch"
    assert "session ask" in task_moves(read_session(folder), "T-001")[0].command
    decide(folder, "T-001 FIX_REVIEW: Try it again?")
    with pytest.raises(BrokenContract, match=r"run `accord session set .*FIX_REVIEW=0 --role Orchestrator`"):
        FIXES["dispatch"](folder)
    set_values(writer(folder), [parse_setting("retry_counts.T-001.FIX_REVIEW=0")], role="Orchestrator")
    FIXES["dispatch"](folder)
    assert status_of(read_session(folder)).retries("T-001", "FIX_REVIEW") == 1


@pytest.mark.parametrize(
    ("role", "loop"), [("Reviewer", "FIX_REVIEW"), ("QA", "FIX_TESTS"), ("Security", "FIX_SECURITY")]
)
@pytest.mark.parametrize("entered", [True, False])
def test_a_loop_that_another_tool_entered_and_counted_is_not_counted_again(
    tmp_path: Path, role: str, loop: str, entered: bool
) -> None:
    texts = {"tasks.yaml": TASKS.replace("not-started  #", "implemented  #")}
    texts |= {"outputs.jsonl": outputs(("Coder", "OK"), (role, "FAIL"))}
    changes = {"user_decisions": GATES, "retry_counts": {"T-001": {loop: 3}}, "texts": texts}
    folder = make_session(tmp_path, loop if entered else "IMPLEMENT_LOOP", **changes)
    with nullcontext() if entered else pytest.raises(BrokenContract, match=f"T-001 went through {loop} 3 times"):
        FIXES["dispatch"](folder)
    apply_output(writer(folder), "T-001", role, FAIL)
    with pytest.raises(BrokenContract, match=f"T-001 went through {loop} 3 times"):
        FIXES["take"](folder)


@pytest.mark.parametrize("way", FIXES)
@pytest.mark.parametrize("rounds", [1, 2])
def test_an_entry_that_another_tool_counts_after_those_of_accord_is_one_entry(
    tmp_path: Path, rounds: int, way: str
) -> None:
    folder = implementing(tmp_path)
    take(folder, "T-001", "Coder")
    for count in range(rounds + 1):
        take(folder, "T-001", "Reviewer", "FAIL", f"Wrong {count}.")
        if count < rounds:
            FIXES["take"](folder)
    edit_status(folder, current_state="FIX_REVIEW", retry_counts={"T-001": {"FIX_REVIEW": rounds + 1}})
    for _ in range(2):  # the second goes on with the same work
        FIXES[way](folder)
        assert status_of(read_session(folder)).retries("T-001", "FIX_REVIEW") == rounds + 1
    FIXES["take"](folder)
    take(folder, "T-001", "Reviewer", "FAIL", "Wrong again.")
    with nullcontext() if rounds == 1 else pytest.raises(BrokenContract, match=r"T-001 went through FIX_REVIEW 3"):
        FIXES[way](folder)
    assert status_of(read_session(folder)).retries("T-001", "FIX_REVIEW") == 3


def test_an_entry_that_another_tool_counts_after_a_reset_is_one_entry(tmp_path: Path) -> None:
    folder = implementing(tmp_path)
    take(folder, "T-001", "Coder")
    for count in range(3):
        take(folder, "T-001", "Reviewer", "FAIL", f"Wrong {count}.")
        FIXES["take"](folder)
    take(folder, "T-001", "Reviewer", "FAIL", "Wrong again.")
    decide(folder, "T-001 FIX_REVIEW: Try it again?")
    edit_status(folder, current_state="FIX_REVIEW", retry_counts={"T-001": {"FIX_REVIEW": 1}})
    FIXES["dispatch"](folder)
    assert status_of(read_session(folder)).retries("T-001", "FIX_REVIEW") == 1


@pytest.mark.parametrize(
    ("roles", "questions"),
    [
        (["Reviewer"], ["Why?", "T-001 FIX_TESTS: Why?", "T-002 FIX_REVIEW: Why?", "T-001 FIX_REVIEW: Accept it?"]),
        (["Reviewer", "QA"], ["T-001 FIX_REVIEW: Accept it?", "T-001 FIX_TESTS: Accept it?"]),
    ],
)
def test_a_waiver_completes_a_blocked_task_once_the_user_decided_about_each_failed_review(
    tmp_path: Path, roles: list[str], questions: list[str]
) -> None:
    def complete(task: str) -> None:
        move_task(writer(folder), task, "completed", role="Orchestrator", waiver="known issue")

    folder = implementing(tmp_path)
    take(folder, "T-001", "Coder")
    for role in roles:
        take(folder, "T-001", role, "BLOCKED", "It loses rows.")
    before = read_session(folder)
    for text in questions:
        with pytest.raises(BrokenContract, match='T-001: "blocked" does not lead to "completed"'):
            complete("T-001")
        decide(folder, text)
    complete("T-001")
    assert [task.status for task in read_session(folder).plan] == ["completed", "not-started"]
    assert not has_errors(check_session(folder)[0][2])
    assert [*hand_edits(before, read_session(folder))] == []
    take(folder, "T-002", "Coder", "BLOCKED", "It is unclear.")
    decide(folder, "T-002 FIX_REVIEW: Accept it?")
    with pytest.raises(BrokenContract, match='T-002: "blocked" does not lead to "completed"'):
        complete("T-002")


@pytest.mark.parametrize(
    ("role", "result", "count"), [("Security", "BLOCKED", 0), ("QA", "FAIL", 3), ("QA", "FAIL", 2), ("QA", "OK", 3)]
)
@pytest.mark.parametrize("is_worked_on", [True, False])
def test_a_review_that_only_the_user_waives_is_not_waived_by_new_work(
    tmp_path: Path, role: str, result: str, count: int, is_worked_on: bool
) -> None:
    loop = {"Security": "FIX_SECURITY", "QA": "FIX_TESTS"}[role]
    is_free = result == "OK" or (result, count) == ("FAIL", 2)
    folder = implementing(tmp_path)
    take(folder, "T-001", "Coder")
    take(folder, "T-001", role, result, "critical: It is open.")
    edit_status(folder, retry_counts={"T-001": {loop: count}})
    if result == "BLOCKED":
        move_task(writer(folder), "T-001", "not-started", role="Orchestrator")
    if result == "BLOCKED" or (is_worked_on and is_free):
        for target in ("in-progress", "implemented"):
            move_task(writer(folder), "T-001", target, role="Coder")
    before = read_session(folder)
    if not is_free:
        with pytest.raises(BrokenContract, match=f"did not pass {loop}, and the user has not accepted that since"):
            move_task(writer(folder), "T-001", "completed", role="Orchestrator", waiver="spike")
        (folder / "tasks.yaml").write_text((folder / "tasks.yaml").read_text().replace("implemented", "completed"))
        waived = outputs(("Orchestrator", "OK"), waived_reviews=["Reviewer", "QA", "Security"])
        lines = (folder / "outputs.jsonl").read_text()
        (folder / "outputs.jsonl").write_text(lines + waived)
        assert "review-open" in [one.code for one in hand_edits(before, read_session(folder))]
        (folder / "outputs.jsonl").write_text(lines)
        (folder / "tasks.yaml").write_bytes(before.parts["tasks.yaml"].raw or b"")
        decide(folder, f"T-001 {loop}: Accept it?")
    move_task(writer(folder), "T-001", "completed", role="Orchestrator", waiver="spike")
    assert [*hand_edits(before, read_session(folder))] == []


def decide(folder: Path, question: str) -> None:
    ask(writer(folder), [UserQuestion(question)])
    (asked,) = status_of(read_session(folder)).pending
    answer(writer(folder), {asked.decision_id: "yes"})
    resume(writer(folder))


def edit_status(folder: Path, **changes: object) -> None:
    """Change ``status.json`` as another tool does."""
    file = folder / "status.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize("state", ["INTEGRATE", "RELEASE"])
def test_every_further_try_of_the_integrator_at_a_broken_build_counts(tmp_path: Path, state: str) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": ALL_REVIEWED}
    folder = make_session(tmp_path, state, user_decisions=SINGLE, texts=texts)
    for count in range(4):
        start_agent(writer(folder), "meta", "Integrator")
        take(folder, "meta", "Integrator", "FAIL", f"Broken {count}.")
        assert status_of(read_session(folder)).retries("meta", "FIX_BUILD") == count
    for change in (
        lambda: start_agent(writer(folder), "meta", "Integrator"),
        lambda: take(folder, "meta", "Integrator"),
    ):
        with pytest.raises(BrokenContract, match="meta went through FIX_BUILD 3 times"):
            change()


def test_first_work_on_a_task_fixes_nothing(tmp_path: Path) -> None:
    folder = implementing(tmp_path)
    take(folder, "meta", "Reviewer", "FAIL")
    FIXES["dispatch"](folder)
    assert status_of(read_session(folder)).retry_counts == {}


def test_a_correction_is_dispatched_to_one_agent_only(tmp_path: Path) -> None:
    """Also while another question waits."""
    asked = [decision(DESIGN), decision()]
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=asked)
    answer(writer(folder), {DESIGN: "changes-requested: smaller"})
    start_agent(writer(folder), "meta", "Designer")
    assert status_of(read_session(folder)).correction_status == "dispatched"
    for role in ("Designer", "Architect", "SpecAgent"):
        with pytest.raises(BrokenContract, match="dispatched to Designer already"):
            start_agent(writer(folder), "meta", role)


def test_each_correction_of_a_design_is_recorded_though_its_words_are_the_same(tmp_path: Path) -> None:
    folder, now = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=[decision(DESIGN)]), clock()
    for count in (1, 2):
        before = read_session(folder)
        answer(writer(folder, now), {DESIGN: "changes-requested: smaller"})
        now.sleep(60)
        start_agent(writer(folder, now), "meta", "Architect")
        for _ in range(2):
            apply_output(writer(folder, now), "meta", "Architect", WORK)
            now.sleep(60)
        assert len(read_session(folder).outputs) == len(read_session(folder).history) == count
        assert status_of(read_session(folder)).correction_status == "completed"
        assert [*hand_edits(before, read_session(folder))] == []
        ask(writer(folder, now), [UserQuestion("Now?", DESIGN)])


@pytest.mark.parametrize("ended", ["FAIL", "BLOCKED", "undone", "broken", "no output"])
def test_a_correction_that_failed_is_dispatched_again_and_a_completed_one_is_not(tmp_path: Path, ended: str) -> None:
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=[decision(DESIGN)])
    answer(writer(folder), {DESIGN: "changes-requested: smaller"})
    start_agent(writer(folder), "meta", "Architect")
    if ended == "no output":
        fail_agent(writer(folder), "meta", "Architect", ended)
        advance(writer(folder), "APPROVE_DESIGN", role="Orchestrator")
    else:
        results = {"undone": UNDONE, "broken": WORK}
        failed = results.get(ended) or AgentOutput.model_validate(agent_output(status=ended))
        if ended == "broken":
            (folder / "architecture.md").write_text("# Nothing")
        assert apply_output(writer(folder), "meta", "Architect", failed).correction == "queued"
    assert status_of(read_session(folder)).correction_status == "queued"
    (folder / "architecture.md").write_text(ARCHITECTURE)
    start_agent(writer(folder), "meta", "Designer")
    apply_output(writer(folder), "meta", "Designer", WORK)
    for role in ("Designer", "Architect", "SpecAgent"):
        with pytest.raises(BrokenContract, match="correction of the design is completed"):
            start_agent(writer(folder), "meta", role)
    (folder / "architecture.md").write_text("# Nothing")
    start_agent(writer(folder), "meta", "Architect")


def test_a_security_question_is_asked_again_when_the_work_did_not_settle_it(tmp_path: Path) -> None:
    folder, now = implementing(tmp_path), clock()

    def apply(task: str, role: str, output: AgentOutput) -> list[str]:
        now.sleep(1)  # timestamps have whole seconds
        return apply_output(writer(folder, now), task, role, output).summary

    assert apply("T-001", "Security", FINDING) == ["the user is asked"]
    answer(writer(folder, now), {"UD-1": "close it"})
    resume(writer(folder, now))
    assert apply("T-001", "Security", FINDING) == []
    assert apply("T-002", "Security", FINDING) == ["the user is asked"]
    answer(writer(folder, now), {"UD-2": "close it"})
    resume(writer(folder, now))
    apply("T-001", "Coder", WORK)
    assert apply("T-001", "Security", FINDING) == ["the user is asked"]
    asked = [(item.question, item.status) for item in status_of(read_session(folder)).user_decisions if item.category]
    assert asked == [
        ("T-001: The port is open.", "answered"),
        ("T-002: The port is open.", "answered"),
        ("T-001: The port is open.", "pending"),
    ]


def reporting(key: str, *names: str) -> AgentOutput:
    return AgentOutput.model_validate(agent_output(artifacts={**agent_output()["artifacts"], key: list(names)}))


@pytest.mark.parametrize("key", ["files_changed", "tests_added_or_updated"])
@pytest.mark.parametrize(
    ("role", "state", "is_taken"),
    [
        ("Docs", "RELEASE", False),
        ("Integrator", "IMPLEMENT_LOOP", False),
        ("Integrator", "INTEGRATE", True),
        ("Integrator", "FIX_BUILD", True),
        ("Coder", "FIX_TESTS", True),
    ],
)
def test_an_output_that_reports_code_is_taken_only_from_those_who_write_it_then(
    tmp_path: Path, role: str, state: str, is_taken: bool, key: str
) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": ALL_REVIEWED} if state in INTEGRATION else None
    folder = make_session(tmp_path, state, mode="full", user_decisions=SINGLE, texts=texts)
    before = contents(folder)
    with nullcontext() if is_taken else pytest.raises(BrokenContract, match="Only the Coder"):
        apply_output(writer(folder), "meta", role, reporting(key, "README.md", "tests/test_app.py"))
    assert (contents(folder) != before) == is_taken


@pytest.mark.parametrize(("gates", "after"), [(GATES, "RELEASE"), (SINGLE, "RELEASE"), ([], "DONE")])
@pytest.mark.parametrize(
    ("key", "path", "needs_review"),
    [
        ("files_changed", "Makefile", True),
        ("tests_added_or_updated", "tests/test_app.py", True),
        ("files_changed", "README.md", False),
        ("files_changed", ".agents-work/<session>/report.md", False),
    ],
)
def test_code_of_the_integrator_needs_a_final_review(
    tmp_path: Path, gates: Any, after: str, key: str, path: str, needs_review: bool
) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": ALL_REVIEWED}
    mode = "full" if gates else "lean"
    folder = make_session(tmp_path, "INTEGRATE", mode=mode, user_decisions=gates, texts=texts)
    apply_output(writer(folder), "meta", "Integrator", reporting(key, path))
    for _ in range(needs_review):
        assert not has_errors(check_session(folder)[0][2])
        with pytest.raises(BrokenContract, match="needs a final review"):
            advance(writer(folder), after, role="Orchestrator")
        assert [one.code for one in edited_state(folder, after) if has_errors([one])] == ["review-open"]
        apply_output(writer(folder), "meta", "Reviewer", WORK)
    assert advance(writer(folder), after, role="Orchestrator").current_state == after
    assert not has_errors(check_session(folder)[0][2])


def edited_state(folder: Path, state: str) -> list[Finding]:
    """Return the findings across files once the state is edited by hand, and restore it."""
    path = folder / "status.json"
    before = path.read_text()
    path.write_text(before.replace("INTEGRATE", state))
    found = check_session(folder)[0][2]
    path.write_text(before)
    return found


@pytest.mark.parametrize(
    ("state", "waived"), [("IMPLEMENT_LOOP", ["Reviewer"]), ("INTEGRATE", ["Reviewer", "Integrator"])]
)
def test_a_waiver_of_meta_covers_the_integrator_once_it_is_due(tmp_path: Path, state: str, waived: list[str]) -> None:
    texts = {"tasks.yaml": done(), "outputs.jsonl": outputs(("Architect", "BLOCKED"), task="meta") + REVIEWS}
    folder = make_session(tmp_path, state, mode="full", user_decisions=SINGLE, texts=texts)
    move_task(writer(folder), "meta", "completed", role="Orchestrator", waiver="spike")
    assert read_session(folder).outputs[-1].waived_reviews == waived


@pytest.mark.parametrize(("role", "wrong"), [("Docs", [0, 3, 4]), ("Coder", [0, 3]), ("Reviewer", [0, 1, 3, 4])])
def test_an_output_that_reports_files_of_other_roles_gets_warnings(tmp_path: Path, role: str, wrong: list[int]) -> None:
    names = [f".agents-work/{NAME}/spec.md", str(tmp_path / "README.md"), ".agents-work/<session>/x.md"]
    names += [f"{place}/.agents-work/{NAME}/spec.md" for place in (tmp_path.name, "another")]
    output = reporting("files_changed", *names)
    session = read_session(implementing(tmp_path))
    found = plan_output(session, "T-001", role, output, now=clock().now())[0].findings
    assert [one.path for one in found] == [f"/artifacts/files_changed/{i}" for i in wrong]
    assert {(one.code, one.severity) for one in found} == {("role-forbidden", "warning")}


@pytest.mark.parametrize("key", ["files_changed", "tests_added_or_updated"])
@pytest.mark.parametrize("path", ["./.agents-work/{}/spec.md", ".agents-work/<session>/../{}/a.py", "{root}/{}/x"])
@pytest.mark.parametrize("role", ["Coder", "Docs"])
def test_an_output_that_reports_files_of_another_session_is_refused(
    tmp_path: Path, role: str, path: str, key: str
) -> None:
    folder = implementing(tmp_path)
    output = reporting(key, path.format("2026-01-01_old", root=folder.parent))
    with pytest.raises(BrokenContract, match="Other sessions are read-only"):
        apply_output(writer(folder), "T-001", role, output)
    assert not (folder / "outputs.jsonl").exists()


def test_the_reviewer_reads_what_changed_in_sessions_from_before(tmp_path: Path) -> None:
    project = Project(tmp_path)
    before, folder = (
        make_session(tmp_path, "IMPLEMENT_LOOP", mode="lean", session=name) for name in ("2026-01-01_old", NAME)
    )
    project.git("init", "--quiet", "--initial-branch=main")
    project.git("add", str(before))
    project.commit("before")
    (before / "spec.md").unlink()
    (before / "new.md").write_text("new")
    (folder.parent / "2026-02-01_other").mkdir()
    (folder.parent / "2026-02-01_other/spec.md").write_text("later")
    found = agent_input(read_session(folder), "T-001", "Reviewer")["task"]["session_changed_files"]
    place = ".agents-work/2026-01-01_old"
    assert found == [
        {"path": f"{place}/new.md", "change_type": "added"},
        {"path": f"{place}/spec.md", "change_type": "deleted"},
    ]


@pytest.mark.parametrize(
    "line", ['{"at": "2026-01-31T10:00:00Z", "task_id": "T-001", "agent": "QA", "status": "FAILED"}', '"QA: FAIL"']
)
def test_no_task_is_completed_while_a_review_cannot_be_read(tmp_path: Path, line: str) -> None:
    folder = implementing(tmp_path, "implemented")
    apply_output(writer(folder), "T-001", "Reviewer", WORK)
    with (folder / "outputs.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    assert apply_output(writer(folder), "T-001", "QA", WORK).summary == []
    with pytest.raises(BrokenContract, match="reviews cannot be read"):
        move_task(writer(folder), "T-001", "completed", role="Orchestrator")


READY = TASKS.replace("status: not-started  # by the Coder", "status: implemented")


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with a session in its first commit, and a change of code after it. For reading."""
    root = tmp_path_factory.mktemp("repository")
    folder = make_session(root, "IMPLEMENT_LOOP", user_decisions=GATES)
    for name in ("design-specs/header.md", "adr/0001-csv.md"):
        (folder / name).parent.mkdir()
        (folder / name).write_text("# Header\n")

    def git(*words: str) -> None:
        options = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *options, *words], cwd=root, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "Begin")
    (root / "csv.py").write_text("HEADER = 1\n")
    return folder


@pytest.mark.parametrize(("role", "task"), [*((role, "T-001") for role in ROLES), ("Reviewer", "meta")])
def test_every_agent_gets_a_valid_input(committed: Path, role: str, task: str) -> None:
    document = agent_input(read_session(committed), task, role)
    assert not has_errors(KINDS["agent-input"].check(KINDS["agent-input"].read(json.dumps(document).encode()), role))
    assert (document["agent"], document["task"]["id"], document["repo_state"]["branch"]) == (role, task, "main")
    files = document["task"]["context_files"]
    assert all((committed.parents[1] / name).is_file() for name in files)
    changed = [{"path": "csv.py", "change_type": "added"}]
    assert document["task"]["session_changed_files"] == (changed if role == "Reviewer" else [])
    assert {"spec.md", "acceptance.json", "tasks.yaml", "0001-csv.md"} <= {Path(name).name for name in files}
    readers = ("Designer", "Planner", "Coder", "Reviewer")
    assert ("header.md" in {Path(name).name for name in files}) == (role in readers)
    extra = {"Researcher": ["NEEDS_INFO"], "Security": ["NEEDS_DECISION"]}.get(role, [])
    assert output_schema(role)["properties"]["status"]["enum"] == ["OK", "BLOCKED", "FAIL", *extra]


def test_a_project_in_a_folder_with_any_name_is_dispatched(tmp_path: Path) -> None:
    project = tmp_path / os.fsdecode(b"caf\xe9")
    project.mkdir()
    folder = implementing(project)
    for words in (("init", "--quiet"), ("commit", "--quiet", "--allow-empty", "--message=Start")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (constraint,) = agent_input(read_session(folder), "T-001", "Coder")["task"]["constraints"]
    assert "`caf\N{REPLACEMENT CHARACTER}`" in constraint


@pytest.mark.parametrize(
    ("failed", "task", "fixer"),
    [
        ("Reviewer", "T-001", "Coder"),
        ("Security", "meta", "Coder"),
        ("Integrator", "meta", "Integrator"),
    ],
)
def test_the_agent_that_fixes_a_failure_reads_what_it_says_until_it_is_done(
    tmp_path: Path, failed: str, task: str, fixer: str
) -> None:
    is_late = fixer == "Integrator"
    texts = {"tasks.yaml": done(), "outputs.jsonl": INTEGRATED} if is_late else {"outputs.jsonl": WORKED_ON}
    state, on = ("INTEGRATE", "meta") if is_late else ("IMPLEMENT_LOOP", "T-001")
    folder = make_session(tmp_path, state, mode="full", user_decisions=SINGLE, texts=texts)
    findings = ["prints hell, not hello", {"what": "é"}, "x" * 3_000, *map(str, range(50))]
    said = {**agent_output()["artifacts"], "findings": findings, "review_comments": ["rename e"]}
    gates = {**agent_output()["gates"], "security_concerns": ["high: the port"]}
    output = agent_output(status="FAIL", summary="Wrong.", artifacts=said, gates=gates)
    apply_output(writer(folder), task, failed, AgentOutput.model_validate(output))

    def constraints(agent: str) -> list[str]:
        return list(agent_input(read_session(folder), on, agent)["task"]["constraints"])

    start_agent(writer(folder), on, fixer)
    texts_of = [text.removeprefix(f"{failed} returned FAIL: ") for text in constraints(fixer)]
    assert texts_of[:3] == ["Wrong.", "prints hell, not hello", '{"what": "é"}']
    assert (len(texts_of[3]), texts_of[-2:]) == (2_000, ["4 more were left out.", "rename e"])
    assert constraints("Reviewer") == []
    apply_output(writer(folder), on, fixer, UNDONE)
    assert constraints(fixer), "it is not done"
    apply_output(writer(folder), on, fixer, WORK)
    assert constraints(fixer) == []


@pytest.mark.slow
@pytest.mark.parametrize("place", ["", "ünder/b c"])
def test_all_paths_have_one_root_and_files_of_the_session_do_not_count_as_changes(tmp_path: Path, place: str) -> None:
    project, top = Project(tmp_path / place), Project(tmp_path)
    folder = make_session(project.root, "IMPLEMENT_LOOP", user_decisions=GATES)
    for name in ("stays.py", "leaves.py", "moves.py"):
        (project.root / name).write_text(f"print('{name}')\n" * 9)
    (folder / "arrives.py").write_text("print('arrives.py')\n" * 9)
    top.git("init", "--quiet", "--initial-branch=main")
    top.git("add", "--all")
    top.commit("begin")
    for root in {tmp_path, project.root}:
        (root / INTO).mkdir(parents=True)
        (root / INTO / "prompt.md").write_text("1\n")
        top.git("add", str(root / INTO))
    top.commit("an agent commits its input, too")
    top.git("worktree", "add", "--quiet", str(project.root / ".lanes/one"))
    (project.root / ".lanes/one/new.py").write_text("1\n")
    (folder / "adr").mkdir()
    (folder / "adr/one.md").write_text("# One\n")
    (project.root / "leaves.py").rename(folder / "leaves.py")
    (folder / "arrives.py").rename(project.root / "arrives.py")
    (project.root / "moves.py").rename(project.root / "moved.py")
    (tmp_path / "new.txt").write_text("1\n")
    document = agent_input(read_session(folder), "T-001", "Reviewer")
    found = {
        (one["path"], one["change_type"]): one.get("old_path") for one in document["task"]["session_changed_files"]
    }
    outside = os.path.relpath(tmp_path / "new.txt", project.root)
    expected = {("leaves.py", "deleted"): None, ("arrives.py", "added"): None, ("moved.py", "renamed"): "moves.py"}
    assert found == {**expected, (outside, "added"): None}
    assert all((project.root / name).exists() for name in document["task"]["context_files"])
    assert [place in one for one in document["task"]["constraints"]] == ([True] if place else [])


def test_an_agent_reads_the_decisions_and_the_requested_changes(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=[decision(DESIGN)])

    def read(role: str) -> set[str]:
        document = agent_input(read_session(folder), "meta", role)
        return {Path(path).name for path in document["task"]["context_files"]}

    assert not read("Architect") & {"status.json", "approve-design-history.jsonl"}
    answer(writer(folder), {DESIGN: "changes-requested: no database"})
    for name in ("design-specs/form.md", "research/csv.md"):
        (folder / name).parent.mkdir()
        (folder / name).write_text("# One\n")
    for role in ("SpecAgent", "Architect", "Designer"):
        assert read(role) >= {"spec.md", "status.json", "approve-design-history.jsonl"}
        assert read(role) >= {"architecture.md", "form.md", "csv.md"}, "the whole design"
    assert "status.json" in read("Researcher")


def test_an_agent_cannot_start_without_the_files_that_it_must_read(committed: Path, tmp_path: Path) -> None:
    root = shutil.copytree(committed.parents[1], tmp_path / "repository")
    folder = Path(root, *committed.parts[-2:])
    (folder / "spec.md").unlink()
    (found,) = findings(folder, "T-001")
    assert (found.code, "spec.md" in found.message) == ("context-file-missing", True)
    assert agent_input(read_session(folder), "T-001", "Security", goal="Look.")["task"]["goal"] == "Look."
    assert refused(folder, "T-009", "Security") == ["task-unknown"]


def refused(folder: Path, task: str, role: str = "Coder") -> list[str]:
    return [finding.code for finding in findings(folder, task, role)]


def findings(folder: Path, task: str, role: str = "Coder") -> Sequence[Finding]:
    with pytest.raises(BrokenContract) as caught:
        agent_input(read_session(folder), task, role)
    return caught.value.findings


@pytest.mark.parametrize("architecture", [None, "# Architecture\n\n## Overview\n\nNo modules.\n"])
def test_no_coder_works_in_a_full_session_without_its_architecture(tmp_path: Path, architecture: str | None) -> None:
    texts = {"architecture.md": architecture}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES, texts=texts)
    assert refused(folder, "T-001") == refused(folder, "T-001", "Reviewer") == ["context-file-missing"]
    assert agent_input(read_session(folder), "meta", "Architect")["agent"] == "Architect", "who writes it may fix it"
    lean = make_session(tmp_path / "lean", "IMPLEMENT_LOOP", mode="lean", texts=texts)
    for role in ("Coder", "Designer"):
        assert agent_input(read_session(lean), "T-001", role)["task"]["id"] == "T-001"
    early = read_session(make_session(tmp_path / "early", "DESIGN", mode="full", texts=texts))
    if architecture:
        assert refused(early.folder, "meta", "Designer") == ["context-file-missing"]
    else:
        assert agent_input(early, "meta", "Designer")["agent"] == "Designer"


LISTING = TASKS.replace("owner: 'someone'", "context_files: [.agents-work/<session>/architecture.md]")


@pytest.mark.parametrize(
    ("mode", "name", "text", "free"),
    [
        *(
            (mode, "acceptance.json", text, {"SpecAgent"})
            for mode in ("full", "lean")
            for text in ("[]", "{}", '{"acceptance_criteria": [{"id": "AC-001", "description": "A."}]}', "{", "")
        ),
        ("full", "spec.md", "# Nothing", {"SpecAgent"}),
        (
            *("full", "architecture.md", "# Nothing"),
            {"SpecAgent", "Architect", "Researcher", "Integrator", "Docs", "Orchestrator"},
        ),
    ],
)
def test_an_agent_works_only_while_what_it_must_read_is_valid_or_its_own_to_write(
    tmp_path: Path, mode: str, name: str, text: str, free: set[str]
) -> None:
    texts: dict[str, str | None] = {"tasks.yaml": LISTING, name: text}
    gates = GATES if mode == "full" else []
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode=mode, user_decisions=gates, texts=texts)
    for role in sorted({*ROLES} - free):
        task = "T-001" if role in ("Coder", "QA", "Security") else "meta"
        assert refused(folder, task, role) == ["context-file-missing"]
        with pytest.raises(BrokenContract, match=re.escape(name)):
            apply_output(writer(folder), task, role, WORK)
    for role in sorted(free):
        assert agent_input(read_session(folder), "meta", role)["agent"] == role
    steps = {move.to: move.step for move in task_moves(read_session(folder), "T-001")}
    assert steps["in-progress"].role == WRITERS[name][0]


def test_a_task_waits_for_its_dependencies_and_its_context_files(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES)
    assert refused(folder, "T-002") == ["state-forbids"]
    (folder / "tasks.yaml").write_text(READY)
    assert agent_input(read_session(folder), "T-002", "Coder")["task"]["id"] == "T-002"
    (folder / "tasks.yaml").write_text(TASKS.replace("owner: 'someone'", "context_files: [docs/none.md]"))
    (said,) = findings(folder, "T-001")
    assert (said.code, "docs/none.md" in said.message) == ("context-file-missing", True)


@pytest.mark.parametrize("role", ["Coder", "Reviewer", "QA"])
@pytest.mark.parametrize("name", ["spec.md", "src/none.py"])
def test_an_ok_counts_only_with_the_files_that_its_agent_must_read(tmp_path: Path, role: str, name: str) -> None:
    folder = implementing(tmp_path, "in-progress")
    plan = (folder / "tasks.yaml").read_text()
    (folder / "tasks.yaml").write_text(plan.replace("owner: 'someone'", "context_files: [src/none.py]"))
    if name == "spec.md":
        (folder / name).write_text("# Nothing")
        (folder / "tasks.yaml").write_text(plan)
    changes: list[Callable[[], object]] = [lambda: apply_output(writer(folder), "T-001", role, WORK)]
    if role == "Coder":
        changes.append(lambda: move_task(writer(folder), "T-001", "implemented", role="Coder"))
    for change in changes:
        with pytest.raises(BrokenContract, match=re.escape(name)) as caught:
            change()
        assert [one.code for one in caught.value.findings] == ["context-file-missing"]
    blocked = AgentOutput.model_validate(agent_output(status="BLOCKED"))
    assert summary(read_session(folder), "T-001", role, blocked) == ["T-001 blocked"]
    if role == "Coder" and name != "spec.md":
        assert summary(read_session(folder), "T-001", role, reporting("files_changed", name)) == ["T-001 implemented"]


def test_a_prompt_names_exactly_the_files_that_the_role_may_write(tmp_path: Path) -> None:
    session = read_session(make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES))
    for role in ROLES:
        prompt = prompt_of({"agent": role, "project_type": "cli"}, session)
        rule = prompt.split("3. Write only")[1].split("Also keep")[0]
        folder = f"`.agents-work/{session.name}"
        named = {name for name in FORMS if f"{folder}/{name}`" in rule or f"{folder}/{name}/`" in rule}
        assert named == {name for name, roles in WRITERS.items() if role in roles}, role
        paths = [f"{folder[1:]}/{name}" for name in named]
        assert not any(check_path(role, path, session.name, "IMPLEMENT_LOOP") for path in paths), role
        assert ("`status: not-started`" in rule) == (role == "Planner"), role
        assert ("source code" in rule) == (role in ("Coder", "Integrator")), role


SKIPPED = "Skip CSRF, XSS, tenant scoping and templates"
IN_CHECKLIST = {
    "web": ("CSRF", "XSS", "SQL injection", "tenant scoping"),
    "api": ("authentication", "rate limiting", "Skip templates and user interface"),
    "cli": ("privilege escalation", "secrets", SKIPPED),
    "lib": ("safety of the API", "dependency hygiene", SKIPPED),
    "mixed": ("every check that applies to the files under review",),
}
NOT_IN_CHECKLIST = {"web": ("Skip",), "api": ("CSRF",), "cli": ("SQL",), "lib": ("SQL",), "mixed": ("Skip",)}


@pytest.mark.parametrize("project_type", get_args(ProjectType))
def test_a_prompt_carries_the_rules_of_its_role_and_the_checklist_of_the_project(
    tmp_path: Path, project_type: str
) -> None:
    session = read_session(make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES))
    prompts = {role: prompt_of({"agent": role, "project_type": project_type}, session) for role in ROLES}
    for role, prompt in prompts.items():
        assert "Read every file of `task.context_files` before you start, and follow it." in prompt
        assert "Return `status: BLOCKED` with the reason" in prompt
        assert "lack the tools to run them" in prompt
        assert "a high or critical security issue, a contradiction to the spec, or missing key tests" in prompt
        assert "Sessions before this one are for reading only. Keep Markdown simple and to the point." in prompt
        assert all(rule in prompt for rule in RULES.get(role, ()))
        has_checklist = role in ("Reviewer", "QA", "Security")
        assert (CHECKLISTS[project_type] in prompt) == has_checklist
        assert all((word in prompt) == has_checklist for word in IN_CHECKLIST[project_type])
        assert not has_checklist or not [word for word in NOT_IN_CHECKLIST[project_type] if word in prompt]
    assert "NEEDS_DECISION" in prompts["Security"]
    assert "Follow every design specification among your context files." in prompts["Coder"]
    assert "CSRF" not in prompts["Coder"]
    assert set(CHECKLISTS) == set(get_args(ProjectType))


def test_every_file_of_a_session_has_a_role_that_writes_it_and_a_form() -> None:
    assert set(WRITERS) == set(FORMS) == set(OWNERS) - {"status.json", "approve-design-history.jsonl", "outputs.jsonl"}


def test_a_prompt_of_the_creator_names_the_lean_plan_and_the_keys_to_keep_current(tmp_path: Path) -> None:
    session = read_session(make_session(tmp_path, "INTAKE_LEAN", mode="lean"))
    prompt = prompt_of(agent_input(session, "meta", "SpecAgent"), session)
    folder = f".agents-work/{session.name}"
    assert f"{folder}/tasks.yaml`: " in prompt
    assert f"keep `assumptions`, `known_issues` and `last_ci_result` in `{folder}/status.json`" in prompt
