"""The moves of sessions, missions and handoffs as a report counts them, from the logs of a folder."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.handoffs import handoff
from support.missions import NOW, Project
from support.sessions import make_session, outputs
from support.trees import git

from accord.records.history import read_moves

EVER = datetime(2000, 1, 1, tzinfo=UTC)


def test_a_folder_without_documents_has_no_moves(tmp_path: Path) -> None:
    assert read_moves(tmp_path, EVER) == ([], [])


def test_a_session_has_the_outputs_of_its_agents_and_its_last_change(tmp_path: Path) -> None:
    said = outputs(("Coder", "OK"), ("Reviewer", "FAIL"))
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", texts={"outputs.jsonl": said})
    moves, (note,) = read_moves(tmp_path, EVER)
    found = {(move.result.outcome, move.result.disposition, move.trigger.by) for move in moves}
    assert found == {
        ("T-001:OK", "success", "Coder"),
        ("T-001:FAIL", "failure", "Reviewer"),
        ("IMPLEMENT_LOOP", "success", ""),
    }
    assert {move.links.document for move in moves} == {folder.name}
    assert "git's history" in note


def test_each_event_of_a_mission_is_a_move_and_a_period_limits_them(tmp_path: Path) -> None:
    project = Project(tmp_path).begin()
    project.event("WP01", "planned", "in_progress", NOW)
    project.event("WP01", "in_progress", "for_review", NOW + timedelta(hours=2))
    moves, notes = read_moves(tmp_path, EVER)
    assert [(move.kind, move.result.outcome, move.trigger.by) for move in moves] == [
        ("mission-move", "in_progress", "ada"),
        ("mission-move", "for_review", "ada"),
    ]
    assert len({move.id for move in moves}) == 2
    assert notes == []
    assert len(read_moves(tmp_path, NOW + timedelta(hours=1))[0]) == 1


def test_the_actions_of_handoffs_in_git_are_moves(tmp_path: Path) -> None:
    entry = {"at": "2026-11-02T09:00:00Z", "phase": "onEnter", "status": "review", "result": "ok"}
    task = handoff(workflowRuntime={"actionHistory": [entry]})
    git(tmp_path, "init", "--quiet")
    (tmp_path / "task.json").write_text(json.dumps(task))
    (tmp_path / "broken.json").write_text('{"actionHistory"')
    name = task["metadata"]["canonicalTaskId"]
    ((move,), _) = read_moves(tmp_path, EVER)
    assert (move.kind, move.links.document, move.result.outcome) == ("handoff-move", name, "onEnter:review")
