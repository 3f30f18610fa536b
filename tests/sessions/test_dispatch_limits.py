"""What keeps an agent from going past a gate, and a question about security from being forgotten."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.sessions import GATES, TASKS, clock, make_session

from accord.core.errors import BrokenContract
from accord.sessions import questions
from accord.sessions.dispatch import agent_input
from accord.sessions.folder import read_session
from accord.sessions.moves import advance
from accord.sessions.protocol import UserQuestion

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from accord.core.findings import Finding

READY = TASKS.replace("status: not-started  # by the Coder", "status: implemented")


def refused(folder: Path, task: str, role: str = "Coder") -> list[str]:
    return [finding.code for finding in findings(folder, task, role)]


def findings(folder: Path, task: str, role: str = "Coder") -> Sequence[Finding]:
    with pytest.raises(BrokenContract) as caught:
        agent_input(read_session(folder), task, role)
    return caught.value.findings


@pytest.mark.parametrize(("state", "task"), [("DONE", "T-001"), ("APPROVE_DESIGN", "T-001"), ("BLOCKED", "T-001")])
def test_no_coder_is_sent_past_a_gate_or_behind_the_end(tmp_path: Path, state: str, task: str) -> None:
    more = {"blocked_from": "IMPLEMENT_LOOP"} if state == "BLOCKED" else {}
    folder = make_session(tmp_path, state, mode="full", user_decisions=GATES, **more)
    assert refused(folder, task) == ["state-forbids"]


@pytest.mark.parametrize("architecture", [None, "# Architecture\n\n## Overview\n\nNo modules.\n"])
def test_no_coder_works_in_a_full_session_without_its_architecture(tmp_path: Path, architecture: str | None) -> None:
    texts = {"architecture.md": architecture}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES, texts=texts)
    assert refused(folder, "T-001") == refused(folder, "T-001", "Reviewer") == ["context-file-missing"]
    assert agent_input(read_session(folder), "meta", "Architect")["agent"] == "Architect", "who writes it may fix it"
    lean = make_session(tmp_path / "lean", "IMPLEMENT_LOOP", mode="lean", texts=texts)
    assert agent_input(read_session(lean), "T-001", "Coder")["task"]["id"] == "T-001"


def test_a_task_waits_for_those_that_it_depends_on(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES)
    assert refused(folder, "T-002") == ["state-forbids"]
    (folder / "tasks.yaml").write_text(READY)
    assert agent_input(read_session(folder), "T-002", "Coder")["task"]["id"] == "T-002"


def test_a_context_file_of_the_task_that_is_not_there_stops_the_dispatch(tmp_path: Path) -> None:
    tasks = TASKS.replace("    owner: 'nobody'", "    context_files: [docs/none.md]")
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES, texts={"tasks.yaml": tasks})
    (said,) = findings(folder, "T-001")
    assert (said.code, said.path) == ("context-file-missing", "/task/context_files/3")
    assert "docs/none.md" in said.message


@pytest.mark.parametrize("category", ["security", "Security", " SECURITY "])
def test_a_question_about_security_stays_one_however_it_is_written(tmp_path: Path, category: str) -> None:
    folder = make_session(tmp_path, "DESIGN", mode="full")
    questions.ask(folder, [UserQuestion("Risk?"), UserQuestion("Risk?", category=category)], clock=clock())
    questions.answer(folder, {}, is_all=True, clock=clock())
    status = read_session(folder).status
    assert status is not None
    assert [item.status for item in status.user_decisions] == ["cancelled", "pending"]


def test_a_full_session_that_does_not_say_so_comes_back_from_a_question_at_its_intake(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "INTAKE", texts={"architecture.md": None, "tasks.yaml": None})
    questions.ask(folder, [UserQuestion("Which one?")], clock=clock())
    questions.answer(folder, {"UD-1": "x"}, clock=clock())
    assert questions.resume(folder, agent="Architect", clock=clock()).next == "continue"
    assert json.loads((folder / "status.json").read_text())["current_state"] == "INTAKE"


def test_a_loop_of_fixes_is_counted_for_tasks_of_the_plan_alone(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES)
    with pytest.raises(BrokenContract, match="no such task"):
        advance(folder, "FIX_TESTS", role="Orchestrator", clock=clock(), task="bogus")
