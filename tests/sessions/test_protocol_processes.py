"""Questions and answers when processes end at any point, or work at the same time."""

from pathlib import Path
from typing import Any

import pytest
from support.disks import FaultyDisk, contents, timeless
from support.session_processes import HISTORY, STEPS, act, asker, copied, crashes, mover
from support.sessions import GATES, decision, make_session

from accord.core.findings import has_errors
from accord.sessions.folder import FILES, Part, read_session
from accord.sessions.folder_rules import check_session

GATE = str(HISTORY["decision_id"])
BEFORE = {"changes": ["again"], "cancel": ["again"], "resume": ["again", "changes"]}
BEFORE |= {"correct": [*BEFORE["resume"], "resume"], "answer": ["ask"], "silence": ["ask"]}
BEFORE |= {"leave": ["ask", "answer", "silence"], "again": [*BEFORE["correct"], "correct"]}


def prepared(root: Path, name: str) -> Path:
    """Make a session as it is right before this step."""
    states = {"ask": "DESIGN", "answer": "DESIGN", "silence": "DESIGN", "leave": "DESIGN"}
    states |= {"work": "IMPLEMENT_LOOP", "finding": "IMPLEMENT_LOOP"}
    state = states.get(name, "APPROVE_DESIGN")
    passed = GATES if state == "IMPLEMENT_LOOP" else []
    folder = make_session(root, state, mode="full", user_decisions=passed)
    for step in BEFORE.get(name, []):
        act(step, folder, FaultyDisk())
    return folder


def is_whole(folder: Path) -> bool:
    """Tell whether every file can be read; the last line of the history may be in the middle of being written."""
    found = [finding for name in FILES if (folder / name).exists() for finding in parsed(folder, name)]
    return not has_errors(found)


def parsed(folder: Path, name: str) -> Any:
    return Part(name, (folder / name).read_bytes()).findings


@pytest.mark.parametrize("name", STEPS)
def test_a_step_killed_at_any_write_and_made_again_ends_as_if_nothing_had_happened(tmp_path: Path, name: str) -> None:
    before = prepared(tmp_path / "before", name)
    clean = copied(before, tmp_path / "clean")
    act(name, clean, FaultyDisk())
    end = timeless(clean)
    assert all(not found for _, _, found in check_session(clean))
    moments = []
    for moment, folder in crashes(name, before, tmp_path / "crashes"):
        moments.append(moment)
        assert is_whole(folder), moment
        act(name, folder, FaultyDisk(), hour=13)
        assert timeless(folder) == end, moment
        again = contents(folder)
        act(name, folder, FaultyDisk(), hour=14)
        assert contents(folder) == again, "what is done is not done again"
    assert len(moments) > 3, "the disk was used, and the process killed there"


def test_changes_that_the_user_asked_for_are_not_asked_for_again_once_a_line_says_so(tmp_path: Path) -> None:
    """The process dies anywhere while it keeps the answer; a resume alone goes on from what is durable."""
    ends = []
    for moment, folder in crashes("changes", prepared(tmp_path / "before", "changes"), tmp_path / "crashes"):
        is_kept = bool(read_session(folder).history)
        act("resume", folder, FaultyDisk())
        status = read_session(folder).status
        entry = status.decision(GATE)
        assert entry is not None
        durable = (HISTORY["answer"], "dispatched") if is_kept else (None, "none")
        assert (entry.answer, status.correction_status) == durable, moment
        ends.append(is_kept)
    assert ends == sorted(ends), "once it is kept, it is kept"
    assert set(ends) == {True, False}


@pytest.mark.slow
def test_two_processes_that_answer_and_move_at_once_lose_no_answer_and_break_no_file(tmp_path: Path) -> None:
    rounds = 40
    first = decision("UD-1", "answered", state_context="DESIGN")
    folder = make_session(tmp_path, "DESIGN", mode="full", user_decisions=[first])
    processes = [asker(folder, rounds), mover(folder, rounds)]
    looks = 0
    while any(process.is_alive() for process in processes):
        processes[looks % 2].join(0.1)
        assert is_whole(folder)
        looks += 1
    assert [process.exitcode for process in processes] == [0, 0]
    status = read_session(folder).status
    answers = {item.question: item.answer for item in status.user_decisions[1:]}
    assert answers == {f"Number {i}?": f"answer {i}" for i in range(rounds)}
    assert [item.decision_id for item in status.user_decisions] == [f"UD-{i}" for i in range(1, rounds + 2)]
    assert all(not found for _, _, found in check_session(folder))
