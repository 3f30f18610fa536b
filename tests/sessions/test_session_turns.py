"""The turns of a session: an agent writes the files of its role, and passes no gate by the other files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.sessions import (
    ALL_REVIEWED,
    AT,
    GATES,
    SINGLE,
    TASKS,
    agent_output,
    decision,
    make_session,
    outputs,
    writer,
)

from accord.core.errors import BrokenContract, Interrupted
from accord.sessions.models import AgentOutput
from accord.sessions.outputs import apply_output
from accord.sessions.run import answer, start_fix
from accord.sessions.turns import NextActor, move_on, run_session

DONE = TASKS.replace("not-started", "completed")
REVIEWED = outputs(("Reviewer", "OK"), ("QA", "OK"))
NO_SPEC = {"spec.md": None, "acceptance.json": None, "tasks.yaml": None}
ROLE = {"INTAKE": "SpecAgent", "INTAKE_LEAN": "SpecAgent", "PLAN": "Planner", "IMPLEMENT_LOOP": "Coder"}


def play(folder: Path, act: Callable[[], object]) -> NextActor:
    """Run a session whose agent does this in its first turn, and asks for help, or ends with the text of ``act``."""

    def work(given: dict[str, Any]) -> AgentOutput | str:
        assert given["agent"] == ROLE[json.loads((folder / "status.json").read_text())["current_state"]]
        said = act()
        return said if isinstance(said, str) else AgentOutput.model_validate(agent_output(status="FAIL"))

    return run_session(writer(folder), work, lambda: False, goal="Export.")


def session_in(root: Path, state: str) -> Path:
    texts = {"INTAKE": NO_SPEC, "INTAKE_LEAN": NO_SPEC, "PLAN": {"tasks.yaml": None}}.get(state)
    decisions = {"PLAN": GATES[:1], "IMPLEMENT_LOOP": SINGLE}.get(state, [])
    mode = "lean" if state == "INTAKE_LEAN" else "full"
    return make_session(root, state, mode=mode, user_decisions=decisions, texts=texts)


def change_status(folder: Path, **values: Any) -> None:
    path = folder / "status.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    ("state", "values", "keys"),
    [
        ("INTAKE", {"user_decisions": GATES}, ["user_decisions"]),
        ("INTAKE", {"current_state": "IMPLEMENT_LOOP", "user_decisions": GATES}, ["current_state", "user_decisions"]),
        ("IMPLEMENT_LOOP", {"retry_counts": {"T-001": {"FIX_TESTS": 0}}}, ["retry_counts"]),
        ("IMPLEMENT_LOOP", {"user_decisions": [*SINGLE, decision("UD-1", "answered")]}, ["user_decisions"]),
    ],
)
def test_an_agent_that_writes_decisions_or_the_state_ends_the_run(
    tmp_path: Path, state: str, values: dict[str, Any], keys: list[str]
) -> None:
    folder = session_in(tmp_path, state)
    with pytest.raises(BrokenContract) as refused:
        play(folder, lambda: change_status(folder, **values))
    assert [found.path for found in refused.value.findings] == [f"/status.json/{key}" for key in keys]
    now = json.loads((folder / "status.json").read_text())
    assert {key: now[key] for key in values} == values, "nothing is restored silently"


@pytest.mark.parametrize(
    ("state", "name", "text", "place"),
    [
        ("INTAKE", "status.json", "{", "/status.json/current_state"),
        ("INTAKE", "tasks.yaml", TASKS, "/tasks.yaml"),
        ("INTAKE", "outputs.jsonl", REVIEWED, "/outputs.jsonl"),
        ("INTAKE_LEAN", "tasks.yaml", DONE, "/tasks.yaml/tasks/0/status"),
        ("PLAN", "tasks.yaml", DONE, "/tasks.yaml/tasks/0/status"),
        ("IMPLEMENT_LOOP", "tasks.yaml", DONE, "/tasks.yaml"),
        ("IMPLEMENT_LOOP", "tasks.yaml", TASKS.replace("cmd: pytest tests/csv", "manual: no"), "/tasks.yaml"),
        ("IMPLEMENT_LOOP", "outputs.jsonl", REVIEWED, "/outputs.jsonl"),
    ],
)
def test_an_agent_that_writes_the_file_of_another_role_ends_the_run(
    tmp_path: Path, state: str, name: str, text: str, place: str
) -> None:
    folder = session_in(tmp_path, state)
    with pytest.raises(BrokenContract) as refused:
        play(folder, lambda: (folder / name).write_text(text))
    assert place in [found.path for found in refused.value.findings]
    assert (folder / name).read_text() == text


def test_a_deleted_file_and_a_link_are_changes(tmp_path: Path) -> None:
    folder = session_in(tmp_path, "IMPLEMENT_LOOP")
    with pytest.raises(BrokenContract, match=r"spec\.md changed in the turn of Coder"):
        play(folder, (folder / "spec.md").unlink)
    folder = session_in(tmp_path / "other", "IMPLEMENT_LOOP")

    def link() -> None:
        (folder / "status.json").rename(tmp_path / "status.json")
        (folder / "status.json").symlink_to(tmp_path / "status.json")

    with pytest.raises(BrokenContract, match="Only the Orchestrator writes `current_state`"):
        play(folder, link)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_an_agent_that_forges_and_ends_without_an_output_ends_the_run_too(tmp_path: Path, is_stopped: bool) -> None:
    folder = session_in(tmp_path, "INTAKE")

    def act() -> str:
        change_status(folder, user_decisions=GATES)
        if is_stopped:
            raise Interrupted("Stopped.")
        return "It said nothing."

    with pytest.raises(BrokenContract, match="user_decisions"):
        play(folder, act)


@pytest.mark.parametrize(
    ("state", "name", "text"),
    [
        ("INTAKE", "spec.md", "# Spec"),
        ("INTAKE", "notes.md", "x"),
        ("INTAKE_LEAN", "tasks.yaml", TASKS),
        ("PLAN", "tasks.yaml", TASKS),
    ],
)
def test_an_agent_writes_the_files_of_its_role(tmp_path: Path, state: str, name: str, text: str) -> None:
    folder = session_in(tmp_path, state)

    def act() -> None:
        (folder / name).write_text(text)
        change_status(folder, assumptions=["one"], known_issues=["two"], last_ci_result="green", last_update=AT)

    assert play(folder, act).reason.startswith(f"{ROLE[state]} returned FAIL")


@pytest.mark.parametrize("tasks", [TASKS, DONE])
@pytest.mark.parametrize("at", ["2026-01-31T10:00:00Z", AT])  # also in the second of the last output
def test_a_reopened_session_without_an_open_task_waits_for_a_person(tmp_path: Path, tasks: str, at: str) -> None:
    texts = {"tasks.yaml": tasks, "outputs.jsonl": ALL_REVIEWED}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=SINGLE, reopened_at=at, texts=texts)
    turn = move_on(writer(folder))
    assert (turn.role, "no task is open" in turn.reason) == (("", True) if tasks == DONE else ("Coder", False))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"user_decisions": SINGLE}, ""),
        ({"user_decisions": SINGLE[1:]}, "The session passed APPROVE_DESIGN and is in DONE"),
        ({"user_decisions": SINGLE, "texts": {"tasks.yaml": TASKS}}, "these tasks are not completed: T-001"),
        ({"user_decisions": SINGLE, "texts": {"tasks.yaml": DONE, "report.md": None}}, "report.md is missing"),
    ],
)
def test_a_session_that_only_says_that_it_is_done_waits_for_a_person(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    turn = move_on(writer(make_session(tmp_path, "DONE", mode="full", **{"texts": {"tasks.yaml": DONE}, **changes})))
    assert (turn.role, said in turn.reason, bool(turn.reason), bool(turn.command)) == ("", True, bool(said), bool(said))


SPENT = "T-001 went through FIX_TESTS 3 times, the limit."
ACCEPTED = [decision("UD-1", "answered", answer="yes, accept", question="T-001 FIX_TESTS: Accept it?")]


@pytest.mark.parametrize(
    ("decided", "reason", "command"),
    [
        ([], SPENT, "session ask DIR --question 'T-001 FIX_TESTS: QUESTION'"),
        (
            ACCEPTED,
            f"{SPENT} To allow more, run `accord session set DIR retry_counts.T-001.FIX_TESTS=0 --role Orchestrator`.",
            "session task DIR T-001 --to completed --role Orchestrator --waive-reviews REASON",
        ),
    ],
)
def test_a_spent_fix_loop_is_why_a_person_is_needed(
    tmp_path: Path, decided: list[Any], reason: str, command: str
) -> None:
    texts = {"tasks.yaml": TASKS.replace("not-started  #", "implemented  #")}
    texts["outputs.jsonl"] = outputs(("Coder", "OK"), ("QA", "FAIL"))
    counts = {"T-001": {"FIX_TESTS": 3}}
    folder = make_session(
        tmp_path, "IMPLEMENT_LOOP", user_decisions=[*SINGLE, *decided], retry_counts=counts, texts=texts
    )
    turn = move_on(writer(folder))
    shown = [text.replace(str(folder), "DIR") for text in (turn.reason, turn.command)]
    assert shown == [reason, f"accord {command}"]


def test_a_fix_that_a_person_begins_ends_with_the_work_of_the_coder(tmp_path: Path) -> None:
    texts = {"tasks.yaml": TASKS.replace("not-started  #", "implemented  #"), "outputs.jsonl": outputs(("Coder", "OK"))}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts=texts)
    start_fix(writer(folder), "T-001", "FIX_TESTS", role="Orchestrator")
    for role in ("QA", "Coder"):
        assert move_on(writer(folder)) == NextActor("T-001", "Coder"), "another output does not end the fix"
        apply_output(writer(folder), "T-001", role, AgentOutput.model_validate(agent_output()))
    assert move_on(writer(folder)) == NextActor("T-001", "Reviewer")


@pytest.mark.parametrize(
    ("status", "is_done", "written", "found"),
    [
        ("OK", True, "implemented", ""),
        ("FAIL", True, "blocked", ""),
        ("OK", False, "implemented", "/tasks.yaml"),
        ("OK", True, "completed", "/tasks.yaml"),
        ("FAIL", True, "implemented", "/tasks.yaml"),
    ],
)
def test_a_coder_sets_its_own_task_as_its_output_does(
    tmp_path: Path, status: str, is_done: bool, written: str, found: str
) -> None:
    folder = session_in(tmp_path, "IMPLEMENT_LOOP")
    given = agent_output(status=status)
    given["gates"]["meets_definition_of_done"] = is_done

    def work(document: dict[str, Any]) -> AgentOutput | str:
        if document["agent"] != "Coder":
            return "It said nothing."
        path = folder / "tasks.yaml"
        path.write_text(path.read_text().replace("in-progress", written))
        return AgentOutput.model_validate(given)

    if found:
        with pytest.raises(BrokenContract) as refused:
            run_session(writer(folder), work, lambda: False)
        assert found in [one.path for one in refused.value.findings]
    else:
        run_session(writer(folder), work, lambda: False)
        assert f'"{status}"' in (folder / "outputs.jsonl").read_text()


def test_a_question_that_security_repeats_after_the_answer_needs_a_person(tmp_path: Path) -> None:
    lines = outputs(("Coder", "OK"), ("Reviewer", "OK"), ("QA", "OK"), concerns=1)
    texts = {"tasks.yaml": TASKS.replace("not-started", "implemented"), "outputs.jsonl": lines}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES, texts=texts)
    starts, answers = list[str](), {"UD-1": "yes"}

    def work(document: dict[str, Any]) -> AgentOutput | str:
        starts.append(document["agent"])
        return AgentOutput.model_validate(agent_output(status="NEEDS_DECISION", summary="May it stay open?"))

    for number in (2, 3):
        turn = run_session(writer(folder), work, lambda: answer(writer(folder), answers) or True)
        assert (starts, turn.reason) == (
            ["Security"] * number,
            "Security on T-001 asks again what was decided: May it stay open?",
        )
