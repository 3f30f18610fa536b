"""Outputs of agents applied to a session: what changes, what the user is asked, and which reviews count."""

from pathlib import Path

import pytest
from support.disks import contents
from support.sessions import GATES, NAME, TASKS, agent_output, clock, decision, make_session, writer

from accord.core.errors import BrokenContract
from accord.sessions.folder import read_session, status_of
from accord.sessions.models import AgentOutput
from accord.sessions.outputs import apply_output, effects_of
from accord.sessions.run import answer, move_task

FINDING = AgentOutput.model_validate(agent_output(status="NEEDS_DECISION", summary="The port is open."))
WORK = AgentOutput.model_validate(agent_output())
FAIL = AgentOutput.model_validate(agent_output(status="FAIL"))


def implementing(root: Path, task_status: str = "not-started") -> Path:
    texts: dict[str, str | None] = {"tasks.yaml": TASKS.replace("not-started  #", f"{task_status}  #")}
    return make_session(root, "IMPLEMENT_LOOP", user_decisions=GATES, texts=texts)


@pytest.mark.parametrize(
    ("role", "status", "before", "changed", "after"),
    [
        ("Coder", "OK", "not-started", ["task implemented"], "implemented"),
        ("Coder", "OK", "in-progress", ["task implemented"], "implemented"),
        ("Coder", "OK", "implemented", [], "implemented"),
        ("Coder", "FAIL", "in-progress", ["task blocked"], "blocked"),
        ("Reviewer", "OK", "implemented", [], "implemented"),
        ("Reviewer", "BLOCKED", "implemented", ["task blocked"], "blocked"),
        ("Reviewer", "FAIL", "implemented", [], "implemented"),
        ("Coder", "BLOCKED", "completed", [], "completed"),
        ("Security", "NEEDS_DECISION", "implemented", ["the user is asked"], "implemented"),
        ("Researcher", "NEEDS_INFO", "implemented", [], "implemented"),
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


def test_a_correction_is_completed_by_the_output_of_the_agent_that_was_sent(tmp_path: Path) -> None:
    said = decision("UD-APPROVE-DESIGN", "answered", answer="changes-requested: smaller")
    tracking = {"APPROVE_DESIGN": {"correction_status": "dispatched", "last_correction_dispatch": None}}
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=[said], gate_tracking=tracking)
    session = read_session(folder)
    assert effects_of(session, "meta", "Designer", WORK).summary == ["correction of the design completed"]
    assert effects_of(session, "meta", "Coder", WORK).summary == []
    assert effects_of(session, "T-001", "Designer", WORK).summary == []


def test_a_security_question_is_asked_again_when_the_work_did_not_settle_it(tmp_path: Path) -> None:
    folder, now = implementing(tmp_path), clock()

    def apply(task: str, role: str, output: AgentOutput) -> list[str]:
        now.sleep(1)  # timestamps have whole seconds
        return apply_output(writer(folder, now), task, role, output).summary

    assert apply("T-001", "Security", FINDING) == ["the user is asked"]
    answer(writer(folder, now), {"UD-1": "close it"})
    assert apply("T-001", "Security", FINDING) == []
    assert apply("T-002", "Security", FINDING) == ["the user is asked"]
    apply("T-001", "Coder", WORK)
    assert apply("T-001", "Security", FINDING) == ["the user is asked"]
    asked = [(item.question, item.status) for item in status_of(read_session(folder)).user_decisions if item.category]
    assert asked == [
        ("T-001: The port is open.", "answered"),
        ("T-002: The port is open.", "pending"),
        ("T-001: The port is open.", "pending"),
    ]


@pytest.mark.parametrize(("role", "wrong"), [("Docs", [0, 1]), ("Coder", [1]), ("Reviewer", [0, 1, 2])])
def test_an_output_that_reports_files_of_other_roles_gets_warnings(tmp_path: Path, role: str, wrong: list[int]) -> None:
    names = ["src/app.py", f".agents-work/{NAME}/spec.md", str(tmp_path / "README.md"), ".agents-work/<session>/x.md"]
    artifacts = {**agent_output()["artifacts"], "files_changed": names}
    output = AgentOutput.model_validate(agent_output(artifacts=artifacts))
    found = effects_of(read_session(implementing(tmp_path)), "T-001", role, output).findings
    assert [one.path for one in found] == [f"/artifacts/files_changed/{i}" for i in wrong]
    assert {(one.code, one.severity) for one in found} == {("role-forbidden", "warning")}


def test_a_task_is_completed_only_after_its_reviews_passed_since_the_last_work(tmp_path: Path) -> None:
    folder = implementing(tmp_path, "implemented")

    def complete(missing: str = "") -> None:
        if missing:
            with pytest.raises(BrokenContract, match=f"These gates have not passed: {missing}\\."):
                move_task(writer(folder), "T-001", "completed", role="Orchestrator")
        else:
            move_task(writer(folder), "T-001", "completed", role="Orchestrator")

    def review(task: str, *outputs: tuple[str, AgentOutput]) -> None:
        for role, output in outputs:
            apply_output(writer(folder), task, role, output)

    review("T-001", ("Reviewer", WORK), ("QA", FAIL))
    complete("QA")
    review("meta", ("Reviewer", WORK), ("QA", WORK))
    move_task(writer(folder), "T-001", "in-progress", role="Coder")
    review("T-001", ("Coder", WORK))
    complete("Reviewer, QA")
    review("meta", ("QA", WORK), ("Reviewer", WORK))
    complete()


@pytest.mark.parametrize(
    "line", ['{"at": "2026-01-31T10:00:00Z", "task_id": "T-001", "agent": "QA", "status": "FAILED"}', '"QA: FAIL"']
)
def test_no_task_is_completed_while_a_review_cannot_be_read(tmp_path: Path, line: str) -> None:
    folder = implementing(tmp_path, "implemented")
    for role in ("Reviewer", "QA"):
        apply_output(writer(folder), "T-001", role, WORK)
    with (folder / "outputs.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(BrokenContract, match="reviews cannot be read"):
        move_task(writer(folder), "T-001", "completed", role="Orchestrator")
