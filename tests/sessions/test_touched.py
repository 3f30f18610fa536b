"""The sessions that a change touches, by real git."""

import json
from pathlib import Path

import pytest
from support.sessions import NAME, SINGLE, done, make_session, outputs, writer

from accord.git.program import Git
from accord.sessions.folder import change_findings, changed_sessions
from accord.sessions.run import advance, reopen

LINE = json.dumps({"at": "2026-01-31T10:00:00Z", "decision_id": "UD-APPROVE-DESIGN", "answer": "changes-requested: a"})


def commit(root: Path) -> None:
    git = Git(root, config={"user.name": "a", "user.email": "a@example.org"})
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "-m", "x")


def repository(root: Path, state: str) -> Path:
    Git(root)("init", "--quiet", "-b", "main")
    folder = make_session(root, state, user_decisions=SINGLE, mode="full", texts={"tasks.yaml": done()})
    (folder / "approve-design-history.jsonl").write_text(LINE + "\n")
    commit(root)
    Git(root)("checkout", "--quiet", "-b", "work")
    return folder


def codes(root: Path) -> list[str]:
    return [finding.code for finding in change_findings(root, NAME, "main")]


def test_only_sessions_that_the_change_touches_are_named(tmp_path: Path) -> None:
    folder = repository(tmp_path, "DONE")
    assert changed_sessions(tmp_path, "main") == []
    make_session(tmp_path, session="2026-03-01_new", texts={"tasks.yaml": None})
    assert [path.name for path in changed_sessions(tmp_path, "main")] == ["2026-03-01_new"]
    (folder / "spec.md").write_text("changed")
    commit(tmp_path)
    assert [path.name for path in changed_sessions(tmp_path, "main")] == [NAME, "2026-03-01_new"]


def test_a_session_that_was_done_is_not_moved_away_unseen(tmp_path: Path) -> None:
    folder = repository(tmp_path, "DONE")
    folder.rename(folder.with_name("2026-03-01_new"))
    commit(tmp_path)
    assert [path.name for path in changed_sessions(tmp_path, "main")] == [NAME, "2026-03-01_new"]
    assert codes(tmp_path) == ["session-done", "history-shortened"]


def test_a_session_that_was_done_is_read_only_until_it_is_reopened(tmp_path: Path) -> None:
    folder = repository(tmp_path, "DONE")
    (folder / "spec.md").write_text("changed")
    assert codes(tmp_path) == ["session-done"]
    status = json.loads((folder / "status.json").read_text())
    (folder / "status.json").write_text(json.dumps({**status, "current_state": "IMPLEMENT_LOOP"}))
    assert codes(tmp_path) == []


def test_a_session_reopened_and_finished_in_one_change_is_allowed(tmp_path: Path) -> None:
    folder = repository(tmp_path, "DONE")
    reopen(writer(folder))
    for state in ("INTEGRATE", "RELEASE", "DONE"):
        advance(writer(folder), state, role="Orchestrator")
    (folder / "spec.md").write_text((folder / "spec.md").read_text() + "More.\n")
    assert codes(tmp_path) == []
    commit(tmp_path)
    Git(tmp_path)("branch", "--force", "main")
    (folder / "spec.md").write_text("changed")
    assert codes(tmp_path) == ["session-done"]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("outputs.jsonl", outputs(("Reviewer", "FAIL")), outputs(("Reviewer", "OK"))),
        ("approve-design-history.jsonl", LINE + "\n", LINE.replace(": a", ": b") + "\n"),
    ],
)
def test_a_file_of_lines_may_grow_but_lose_and_change_none(tmp_path: Path, name: str, first: str, second: str) -> None:
    lines = repository(tmp_path, "IMPLEMENT_LOOP") / name
    lines.write_text(first)
    commit(tmp_path)
    Git(tmp_path)("branch", "--force", "main")
    for text, found in ((first + second, []), (second, ["history-shortened"]), (first, [])):
        lines.write_text(text)
        assert codes(tmp_path) == found
    lines.unlink()
    assert codes(tmp_path) == ["history-shortened"]
