"""Outputs of agents taken back: what is asked of the user, and when it is asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.sessions import GATES, agent_output, clock, make_session

from accord.sessions.folder import read_session, status_of
from accord.sessions.models import AgentOutput
from accord.sessions.outputs import apply_output
from accord.sessions.questions import answer

if TYPE_CHECKING:
    from pathlib import Path

FINDING = AgentOutput.model_validate(agent_output(status="NEEDS_DECISION", summary="The port is open."))
WORK = AgentOutput.model_validate(agent_output())


def test_a_question_about_security_is_asked_again_when_the_work_on_it_did_not_settle_it(tmp_path: Path) -> None:
    folder, now = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES), clock()

    def taken(task: str, role: str, output: AgentOutput) -> list[str]:
        now.sleep(1)  # moments are kept to the second
        return apply_output(folder, task, role, output, clock=now).said

    assert taken("T-001", "Security", FINDING) == ["the user is asked"]
    answer(folder, {"UD-1": "close it"}, clock=now)
    assert taken("T-001", "Security", FINDING) == []
    assert taken("T-002", "Security", FINDING) == ["the user is asked"]
    taken("T-001", "Coder", WORK)
    assert taken("T-001", "Security", FINDING) == ["the user is asked"]
    asked = [(item.question, item.status) for item in status_of(read_session(folder)).user_decisions if item.category]
    assert asked == [
        ("T-001: The port is open.", "answered"),
        ("T-002: The port is open.", "pending"),
        ("T-001: The port is open.", "pending"),
    ]
