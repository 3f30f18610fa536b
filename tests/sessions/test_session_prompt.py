"""What a prompt tells an agent to write is what the write policy lets it write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.sessions import GATES, make_session

from accord.sessions.dispatch import FORMS, WRITES, agent_input, prompt_of
from accord.sessions.folder import read_session
from accord.sessions.models import ROLES
from accord.sessions.policy import OWNERS, WriteContext, forbidden_path

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("role", ROLES)
def test_an_agent_is_told_each_file_that_it_writes_and_none_that_it_must_not(tmp_path: Path, role: str) -> None:
    session = read_session(make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES))
    prompt = prompt_of({"agent": role}, session)
    rule = prompt.split("3. Write only")[1].split("Besides")[0]
    named = {name for name in FORMS if f"/{name}`" in rule}
    assert named == set(WRITES.get(role, ()))
    for name in named:
        assert (
            forbidden_path(role, f".agents-work/{session.name}/{name}", WriteContext(session.name, "IMPLEMENT_LOOP"))
            == ""
        )
    assert ("source code" in rule) == (role in ("Coder", "Integrator"))


def test_every_file_that_a_session_needs_is_written_by_somebody() -> None:
    theirs = {name.rstrip("/") for names in WRITES.values() for name in names}
    assert theirs == set(OWNERS) - {"status.json", "approve-design-history.jsonl", "outputs.jsonl"}


def test_who_sets_up_a_lean_session_writes_its_plan(tmp_path: Path) -> None:
    session = read_session(make_session(tmp_path, "INTAKE_LEAN", mode="lean"))
    assert f".agents-work/{session.name}/tasks.yaml`: " in prompt_of(agent_input(session, "meta", "SpecAgent"), session)


def test_an_agent_is_told_to_keep_what_it_learned_current(tmp_path: Path) -> None:
    session = read_session(make_session(tmp_path, "INTAKE", mode="full"))
    prompt = prompt_of(agent_input(session, "meta", "SpecAgent"), session)
    assert (
        f"keep `assumptions`, `known_issues` and `last_ci_result` in `.agents-work/{session.name}/status.json`"
        in prompt
    )
