"""Questions put one after the other: how often, what silence means, and what is kept whatever happens."""

import errno
import shlex
from pathlib import Path

import pytest
from support.disks import FaultyDisk, fails
from support.sessions import make_session, writer

from accord.core.errors import BrokenContract, Stopped
from accord.sessions.folder import read_session, status_of
from accord.sessions.folder_rules import check_session
from accord.sessions.models import UserDecision
from accord.sessions.questions import UserQuestion
from accord.sessions.run import ask, interview

DESIGN, STRATEGY = "UD-APPROVE-DESIGN", "UD-REVIEW-STRATEGY"
SILENT = ("cancelled", "no response provided")


class User:
    """Says these lines one after the other, then nothing more; remembers what was put, and with which complaint."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.put: list[tuple[str, str]] = []

    def __call__(self, decision: UserDecision, wrong: str) -> str | None:
        self.put.append((decision.decision_id, wrong))
        return self.lines.pop(0) if self.lines else None


def questions(root: Path, *categories: str) -> Path:
    folder = make_session(root, "DESIGN", mode="full")
    wanted = [UserQuestion(f"Number {i}?", category=category) for i, category in enumerate(categories, start=1)]
    ask(writer(folder), wanted)
    return folder


def gate(root: Path, name: str = DESIGN) -> Path:
    folder = make_session(root, name.removeprefix("UD-").replace("-", "_"), mode="full")
    ask(writer(folder), [UserQuestion("Well?", name)])
    return folder


def talk(folder: Path, *lines: str) -> User:
    user = User(*lines)
    assert interview(writer(folder), user)
    return user


def kept(folder: Path) -> dict[str, tuple[str, str | None]]:
    status = status_of(read_session(folder))
    return {item.decision_id: (item.status, item.answer or item.resolution_reason) for item in status.user_decisions}


def test_each_question_is_asked_once_and_its_answer_recorded(tmp_path: Path) -> None:
    folder = questions(tmp_path, "", "", "security")
    user = talk(folder, "/deferred jobs", "", " it may ")
    assert user.put == [("UD-1", ""), ("UD-2", ""), ("UD-3", "")]
    assert kept(folder) == {"UD-1": ("answered", "/deferred jobs"), "UD-2": SILENT, "UD-3": ("answered", "it may")}


def test_the_end_of_the_input_cancels_open_questions_except_security_if_there_was_any_line(tmp_path: Path) -> None:
    folder = questions(tmp_path, "", "security", "")
    before = (folder / "status.json").read_bytes()
    assert not interview(writer(folder), User())
    assert (folder / "status.json").read_bytes() == before
    talk(folder, "the first")
    assert kept(folder) == {"UD-1": ("answered", "the first"), "UD-2": ("pending", None), "UD-3": SILENT}


def test_a_security_question_without_an_answer_is_repeated_and_stays_open(tmp_path: Path) -> None:
    folder = questions(tmp_path, "security", "")
    user = talk(folder, "", "", " ", "", "yes")
    assert [name for name, _ in user.put] == ["UD-1"] * 4 + ["UD-2"]
    assert all(wrong for name, wrong in user.put[1:4])
    assert kept(folder) == {"UD-1": ("pending", None), "UD-2": ("answered", "yes")}
    talk(folder, "/defer user deferred: will address in next sprint")
    assert kept(folder)["UD-1"] == ("cancelled", "user deferred: will address in next sprint")


@pytest.mark.parametrize("name", [DESIGN, STRATEGY])
def test_a_gate_is_repeated_three_times_then_cancelled_and_the_session_blocked(tmp_path: Path, name: str) -> None:
    folder = gate(tmp_path, name)
    user = talk(folder, "yes", "", "changes-requested:", "perhaps", "approved", "per-batch")
    assert [name for name, _ in user.put] == [name] * 4
    assert all("Ask again" in wrong for _, wrong in user.put[1:])
    assert kept(folder) == {name: ("cancelled", "no valid answer in 4 tries")}
    status = status_of(read_session(folder))
    assert (status.current_state, status.blocker) == ("BLOCKED", "mandatory_user_decision_missing")
    assert all(not found for _, _, found in check_session(folder))


@pytest.mark.parametrize(
    ("name", "said", "answer"),
    [
        (DESIGN, "approved", "approved"),
        (DESIGN, "changes-requested: smaller", "changes-requested: smaller"),
        (STRATEGY, "Single final.", "single-final"),
    ],
)
def test_the_last_try_of_a_gate_counts_and_is_one_entry(tmp_path: Path, name: str, said: str, answer: str) -> None:
    folder = gate(tmp_path, name)
    user = talk(folder, "yes", "no", "well", said)
    assert len(user.put) == 4
    assert kept(folder) == {name: ("answered", answer)}
    assert len(read_session(folder).history) == answer.startswith("changes-requested")


def test_repetitions_of_a_gate_are_counted_per_process(tmp_path: Path) -> None:
    folder = gate(tmp_path)
    for _ in range(3):
        talk(folder, "yes", "no", "well")
        assert kept(folder) == {DESIGN: ("pending", None)}
    talk(folder, "approved")
    assert kept(folder) == {DESIGN: ("answered", "approved")}


def test_a_gate_that_the_user_puts_off_is_cancelled_for_that_reason_and_ends_the_talk(tmp_path: Path) -> None:
    folder = gate(tmp_path)
    ask(writer(folder), [UserQuestion("More?")])
    user = talk(folder, "/defer", "/defer not before May", "x")
    assert [name for name, _ in user.put] == [DESIGN, DESIGN]
    assert kept(folder)[DESIGN] == ("cancelled", "not before May")
    assert kept(folder)["UD-1"] == ("pending", None)


def test_a_question_or_an_answer_that_another_process_adds_meanwhile_stays(tmp_path: Path) -> None:
    folder = questions(tmp_path, "")

    def put(decision: UserDecision, wrong: str) -> str:
        ask(writer(folder), [UserQuestion("And this?")])
        return ""

    interview(writer(folder), put)
    assert kept(folder) == {"UD-1": SILENT, "UD-2": ("pending", None)}

    def put_late(decision: UserDecision, wrong: str) -> str:
        talk(folder, "theirs")
        return "ours"

    with pytest.raises(BrokenContract):
        interview(writer(folder), put_late)
    assert kept(folder)["UD-2"] == ("answered", "theirs")


@pytest.mark.parametrize("said", ['it\'s "so" $HOME; rm', "/defer user's choice"])
def test_an_answer_that_cannot_be_written_is_handed_back_with_the_command_to_keep_it(tmp_path: Path, said: str) -> None:
    folder = questions(tmp_path, "", "")
    before = (folder / "status.json").read_bytes()
    disk = FaultyDisk(fails("create", errno.ENOSPC))
    with pytest.raises(Stopped) as caught:
        interview(writer(folder, disk=disk), User(said))
    assert (folder / "status.json").read_bytes() == before
    assert disk.calls.count("create") == 4, "one try, and three more with what was captured"
    words = shlex.split(caught.value.hint.partition("record the answer with `")[2].rstrip("`"))
    if said.startswith("/defer"):
        assert words == ["accord", "session", "cancel", str(folder), "UD-1", "--reason", "user's choice"]
    else:
        assert words == ["accord", "session", "answer", str(folder), f"UD-1={said}"]
    assert "could not be written" in caught.value.message
