"""Questions to the user, step by step: what is written, what is refused by which rule, and what survives."""

import errno
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.clocks import ManualClock
from support.disks import FaultyDisk, fails
from support.sessions import clock, decision, make_session, outputs, status, writer

from accord.core.errors import BrokenContract, Stopped
from accord.files.store import Disk
from accord.sessions import run
from accord.sessions.folder import read_session, status_of
from accord.sessions.folder_rules import check_session
from accord.sessions.models import UserDecision
from accord.sessions.questions import (
    UserQuestion,
    next_step,
    normalize_answer,
    with_answers,
    with_correction,
    with_dispatched_correction,
)
from accord.sessions.run import interview

DESIGN, STRATEGY = "UD-APPROVE-DESIGN", "UD-REVIEW-STRATEGY"


def ask(folder: Path, text: str = "Which one?", **more: Any) -> None:
    run.ask(writer(folder), [UserQuestion(text, **more)])


def answer(folder: Path, is_final: bool = False, **answers: str) -> None:
    given_ = {name.replace("_", "-"): text for name, text in answers.items()}
    run.answer(writer(folder), given_, is_final=is_final)


def entry(folder: Path, decision_id: str) -> dict[str, Any]:
    entries = json.loads((folder / "status.json").read_text())["user_decisions"]
    (found,) = [entry for entry in entries if entry["decision_id"] == decision_id]
    return dict(found)


def gate(root: Path, name: str = DESIGN) -> Path:
    """A session that waits at a gate for its answer."""
    folder = make_session(root, name.removeprefix("UD-").replace("-", "_"), mode="full")
    ask(folder, "Well?", decision_id=name)
    return folder


def refused(code: str, call: Any, *args: Any, **more: Any) -> None:
    with pytest.raises(BrokenContract) as caught:
        call(*args, **more)
    assert code in [finding.code for finding in caught.value.findings]


def test_a_question_is_pending_on_disk_with_the_state_that_it_came_up_in(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "DESIGN")
    ask(folder)
    assert entry(folder, "UD-1") == decision("UD-1", state_context="DESIGN", asked_at="2026-01-31T12:00:00Z")
    assert status_of(read_session(folder)).current_state == "ASK_USER"


def test_numbers_go_on_from_the_highest_and_the_same_question_is_not_asked_twice(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "DESIGN", user_decisions=[decision("UD-7", "answered", state_context="DESIGN")])
    ask(folder, "One?")
    ask(folder, "One?")
    ask(folder, "Two?")
    asked = [item.decision_id for item in status_of(read_session(folder)).user_decisions]
    assert asked == ["UD-7", "UD-8", "UD-9"]
    refused("decision-order", ask, folder, "Three?", decision_id="UD-20")


def test_a_final_answer_cancels_open_questions_except_security_and_gates(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "DESIGN")
    ask(folder, "One?")
    ask(folder, "Two?")
    ask(folder, "May it stay open?", category="security")
    answer(folder, is_final=True, UD_1="yes")
    assert entry(folder, "UD-1")["answer"] == "yes"
    second = entry(folder, "UD-2")
    assert (second["status"], second["resolution_reason"]) == ("cancelled", "no response provided")
    assert entry(folder, "UD-3")["status"] == "pending"
    assert next_step(read_session(folder)).next == "ask"
    close = run.close_question
    for reason in ("No response provided.", "User did not answer", "auto-cancelled", ".", "user deferred:"):
        refused("security-cancelled", close, writer(folder), "UD-3", "cancelled", reason)
    refused("decision-mandatory", close, writer(folder), "UD-3", "skipped", "not now")
    run.close_question(writer(folder), "UD-3", "cancelled", "deferred by the user: next sprint")
    assert entry(folder, "UD-3")["status"] == "cancelled"


class Overtaken(Disk):
    """A disk on which another process has written the status right before it is to be written."""

    def __init__(self, folder: Path, value: dict[str, Any]) -> None:
        self.folder, self.value, self.reads = folder, value, 0

    def read(self, path: Path) -> bytes:
        self.reads += 1
        if self.reads == 1:
            (self.folder / "status.json").write_text(json.dumps(self.value))
        return super().read(path)


def test_two_processes_that_resume_at_once_dispatch_one_agent(tmp_path: Path) -> None:
    folder = gate(tmp_path)
    answer(folder, UD_APPROVE_DESIGN="changes-requested: smaller")
    other = with_dispatched_correction(read_session(folder), "Designer", now=clock().now())
    found = run.resume(writer(folder, disk=Overtaken(folder, other)), agent="Architect")
    assert found.next == "verify-correction"
    assert json.loads((folder / "status.json").read_text()) == other


def test_two_processes_that_dispatch_a_correction_at_once_send_one_agent(tmp_path: Path) -> None:
    folder = gate(tmp_path)
    answer(folder, UD_APPROVE_DESIGN="changes-requested: smaller")
    other = with_dispatched_correction(read_session(folder), "Designer", now=clock().now(), has_input=True)
    with pytest.raises(BrokenContract, match="dispatched to Designer already"):
        run.start_agent(writer(folder, disk=Overtaken(folder, other)), "meta", "Designer")
    assert json.loads((folder / "status.json").read_text()) == other


def test_an_answer_that_comes_too_late_leaves_no_line_in_the_history(tmp_path: Path) -> None:
    """Another process answers right before the answer takes the lock: it is refused, and nothing of it is stored."""
    folder = gate(tmp_path)
    other = with_answers(read_session(folder), {DESIGN: "approved"}, now=clock().now())
    said = {DESIGN: "changes-requested: smaller"}
    refused("decision-resolved", run.answer, writer(folder, disk=Overtaken(folder, other)), said)
    assert not (folder / "approve-design-history.jsonl").exists()
    assert entry(folder, DESIGN)["answer"] == "approved"


@pytest.mark.parametrize("name", [DESIGN, "UD-REVIEW-STRATEGY"])
def test_a_gate_is_resumed_in_its_own_state(tmp_path: Path, name: str) -> None:
    folder = gate(tmp_path, name)
    state = status_of(read_session(folder)).current_state
    found = run.resume(writer(folder))
    assert (found.next, found.state, status_of(read_session(folder)).current_state) == ("ask", state, state)
    assert state in ("APPROVE_DESIGN", "REVIEW_STRATEGY")
    if name == DESIGN:
        answer(folder, UD_APPROVE_DESIGN="changes-requested: smaller")
        assert run.resume(writer(folder)).next == "dispatch-correction"
        assert status_of(read_session(folder)).current_state == state


def with_line(**wrong: str) -> dict[str, str | None]:
    line = {"at": "2026-01-31T12:05:00Z", "decision_id": DESIGN, "answer": "changes-requested: x", **wrong}
    return {"approve-design-history.jsonl": json.dumps({**line, "state_context": "APPROVE_DESIGN"}) + "\n"}


@pytest.mark.parametrize(
    "wrong", [{"at": "yesterday"}, {"at": "2126-02-01T09:30:00Z"}, {"answer": "approved"}, {"decision_id": "UD-1"}]
)
def test_a_broken_line_of_the_history_is_not_an_answer(tmp_path: Path, wrong: dict[str, str]) -> None:
    asked = [decision(DESIGN)]
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=asked, texts=with_line(**wrong))
    assert run.resume(writer(folder)).next == "ask"
    assert entry(folder, DESIGN)["status"] == "pending"


@pytest.mark.parametrize(
    ("wrong", "code"), [("soon", "timestamp-invalid"), ("2126-01-01T00:00:00Z", "timestamp-future")]
)
def test_a_wrong_timestamp_is_a_finding_until_the_question_is_asked_again(
    tmp_path: Path, wrong: str, code: str
) -> None:
    asked = [decision(DESIGN, asked_at=wrong)]
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=asked, texts=with_line())
    refused(code, run.resume, writer(folder))
    cancelled = decision(DESIGN, "cancelled", asked_at=wrong)
    (folder / "status.json").write_text(json.dumps(status("APPROVE_DESIGN", mode="full", user_decisions=[cancelled])))
    ask(folder, "Approve?", decision_id=DESIGN)
    assert entry(folder, DESIGN)["asked_at"] == "2026-01-31T12:05:01Z", "later than the last line of the history"


def test_a_gate_that_is_cancelled_blocks_the_session_and_is_not_skipped(tmp_path: Path) -> None:
    folder = gate(tmp_path)
    refused("decision-mandatory", run.close_question, writer(folder), DESIGN, "skipped", "no")
    run.close_question(writer(folder), DESIGN, "cancelled", "the user is away")
    blocked = status_of(read_session(folder))
    assert (blocked.current_state, blocked.blocker) == ("BLOCKED", "mandatory_user_decision_missing")
    with pytest.raises(BrokenContract, match="Ask it again with `accord session advance "):
        answer(folder, UD_APPROVE_DESIGN="approved")
    run.advance(writer(folder), "APPROVE_DESIGN", role="Orchestrator")
    assert next_step(read_session(folder)).next == "ask"
    ask(folder, "Approve?", decision_id=DESIGN)
    answer(folder, UD_APPROVE_DESIGN="approved: nice")
    assert next_step(read_session(folder)).next == "continue"


@pytest.mark.parametrize(
    "said", ["Approvedly", "yes", "changes-requested:", "changes-requested:  ", "approvedly", "", "\u200b"]
)
def test_an_invalid_answer_leaves_the_gate_open(tmp_path: Path, said: str) -> None:
    folder = gate(tmp_path)
    before = (folder / "status.json").read_bytes()
    refused("gate-answer" if said.isprintable() and said else "answer-empty", answer, folder, UD_APPROVE_DESIGN=said)
    assert (folder / "status.json").read_bytes() == before
    assert not (folder / "approve-design-history.jsonl").exists()


@pytest.mark.parametrize(
    ("gate_id", "said", "recorded"),
    [
        (DESIGN, "Approved", "approved"),
        (DESIGN, "APPROVED: nice", "approved: nice"),
        (DESIGN, "Changes-Requested: smaller", "changes-requested: smaller"),
        (DESIGN, "changes requested : smaller", "changes-requested: smaller"),
        (DESIGN, "changes requested, smaller", ""),
        (DESIGN, "Approved-later", ""),
        *((STRATEGY, said, "per-batch") for said in ("per batch", "Per batch", "Per_Batch.", "each task")),
        *((STRATEGY, said, "single-final") for said in ("single final", "one final review", "Single-Final")),
    ],
)
def test_an_answer_to_a_gate_is_recorded_in_canonical_form(gate_id: str, said: str, recorded: str) -> None:
    if recorded:
        assert normalize_answer(gate_id, said) == recorded
    else:
        refused("gate-answer", normalize_answer, gate_id, said)


def test_an_older_session_without_a_correction_status_is_corrected_once(tmp_path: Path) -> None:
    said = decision(DESIGN, "answered", answer="changes-requested: smaller")
    texts = with_line(answer=said["answer"])
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=[said], texts=texts)
    steps = [run.resume(writer(folder), agent="SpecAgent").next for _ in range(2)]
    assert steps == ["dispatch-correction", "verify-correction"]
    assert run.start_agent(writer(folder), "meta", "SpecAgent")["agent"] == "SpecAgent"
    with pytest.raises(BrokenContract, match="dispatched to SpecAgent already"):
        run.start_agent(writer(folder), "meta", "SpecAgent")
    assert run.resume(writer(folder)).next == "verify-correction"
    assert len(read_session(folder).history) == 1, "other tools have times of their own"


def test_requested_changes_reach_the_history_then_are_corrected_then_asked_again(tmp_path: Path) -> None:
    folder = gate(tmp_path)
    answer(folder, UD_APPROVE_DESIGN="changes-requested: smaller")
    (line,) = (folder / "approve-design-history.jsonl").read_text().splitlines()
    assert json.loads(line)["answer"] == "changes-requested: smaller"
    refused("correction-open", ask, folder, "Approve?", decision_id=DESIGN)
    now = ManualClock(datetime(2026, 1, 31, 12, tzinfo=UTC))
    steps = [run.resume(writer(folder, now), agent="Architect").next for _ in range(3)]
    assert steps == ["dispatch-correction", "verify-correction", "verify-correction"]
    run.start_agent(writer(folder, now), "meta", "Architect")
    assert run.resume(writer(folder, now)).next == "verify-correction"
    writer(folder, now).change_status(lambda one: with_correction(one, "completed"), role="Orchestrator")
    assert run.resume(writer(folder, now)).next == "re-ask"
    ask(folder, "Approve?", decision_id=DESIGN)
    assert entry(folder, DESIGN)["status"] == "pending"
    assert run.resume(writer(folder, now)).next == "ask"  # the old answer is not taken again
    answer(folder, UD_APPROVE_DESIGN="approved")
    with pytest.raises(BrokenContract, match="To take a wrong answer back, restore"):
        answer(folder, UD_APPROVE_DESIGN="changes-requested: smaller")
    session = read_session(folder)
    assert (status_of(session).correction_status, len(session.history)) == ("none", 1)


def test_a_correction_is_not_sent_before_the_answer_and_to_no_agent_once_it_failed(tmp_path: Path) -> None:
    folder, later = gate(tmp_path), clock()
    later.sleep(60)
    run.answer(writer(folder, later), {DESIGN: "changes-requested: smaller"})
    run.resume(writer(folder, clock()), agent="Architect")  # by a clock that is behind
    sent = status_of(read_session(folder)).last_correction
    assert (sent.agent, sent.at) == ("Architect", entry(folder, DESIGN)["resolved_at"])
    run.fail_agent(writer(folder, later), "meta", "Architect", "It was killed.")
    status = status_of(read_session(folder))
    assert (status.correction_status, status.last_correction.agent, status.last_correction.at) == ("queued", None, None)


@pytest.mark.parametrize(("state", "mode"), [("DESIGN", {"mode": "full"}), ("INTAKE", {})])
def test_an_answered_session_goes_back_to_where_it_asked(tmp_path: Path, state: str, mode: dict[str, str]) -> None:
    folder = make_session(tmp_path, state, texts={"architecture.md": None, "tasks.yaml": None}, **mode)
    ask(folder)
    answer(folder, UD_1="the first")
    answer(folder, UD_1="the first")
    refused("decision-resolved", answer, folder, UD_1="the other")
    refused("decision-unknown", answer, folder, UD_2="x")
    found = run.resume(writer(folder))
    assert (found.next, found.state) == ("continue", state)
    assert status_of(read_session(folder)).current_state == state


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
    run.ask(writer(folder), wanted)
    return folder


def talk(folder: Path, *lines: str) -> User:
    user = User(*lines)
    assert interview(writer(folder), user)
    return user


def recorded_answers(folder: Path) -> dict[str, tuple[str, str | None]]:
    status = status_of(read_session(folder))
    return {item.decision_id: (item.status, item.answer or item.resolution_reason) for item in status.user_decisions}


def test_each_question_is_asked_once_and_its_answer_recorded(tmp_path: Path) -> None:
    folder = questions(tmp_path, "", "", "security")
    user = talk(folder, "/deferred jobs", "", " it may ")
    assert user.put == [("UD-1", ""), ("UD-2", ""), ("UD-3", "")]
    assert recorded_answers(folder) == {
        "UD-1": ("answered", "/deferred jobs"),
        "UD-2": SILENT,
        "UD-3": ("answered", "it may"),
    }


def test_the_end_of_the_input_cancels_open_questions_except_security_if_there_was_any_line(tmp_path: Path) -> None:
    folder = questions(tmp_path, "", "security", "")
    before = (folder / "status.json").read_bytes()
    assert not interview(writer(folder), User())
    assert (folder / "status.json").read_bytes() == before
    talk(folder, "the first")
    assert recorded_answers(folder) == {"UD-1": ("answered", "the first"), "UD-2": ("pending", None), "UD-3": SILENT}


def test_a_security_question_without_an_answer_is_repeated_and_stays_open(tmp_path: Path) -> None:
    folder = questions(tmp_path, "security", "")
    user = talk(folder, "", "", " ", "", "yes")
    assert [name for name, _ in user.put] == ["UD-1"] * 4 + ["UD-2"]
    assert all(wrong for name, wrong in user.put[1:4])
    assert recorded_answers(folder) == {"UD-1": ("pending", None), "UD-2": ("answered", "yes")}
    talk(folder, "/defer user deferred: will address in next sprint")
    assert recorded_answers(folder)["UD-1"] == ("cancelled", "user deferred: will address in next sprint")


def test_a_deferred_security_question_is_recorded_with_the_word_of_the_user(tmp_path: Path) -> None:
    folder = questions(tmp_path, "security", "")
    talk(folder, "/defer next sprint", "/defer next sprint")
    deferred = {"UD-1": ("cancelled", "user deferred: next sprint"), "UD-2": ("cancelled", "next sprint")}
    assert recorded_answers(folder) == deferred


def test_a_question_of_security_that_lost_its_category_is_not_cancelled_in_silence(tmp_path: Path) -> None:
    asked = [decision(question="T-001: May it stay open?", state_context="DESIGN")]
    asked += [decision("UD-2", state_context="DESIGN")]
    lines = outputs(("Security", "NEEDS_DECISION"), summary="May it stay open?")
    folder = make_session(tmp_path, "ASK_USER", user_decisions=asked, texts={"outputs.jsonl": lines})
    assert [one.code for one in check_session(folder)[0][2]] == ["category-missing"]
    answer(folder, is_final=True)
    assert recorded_answers(folder) == {"UD-1": ("pending", None), "UD-2": SILENT}
    refused("security-cancelled", run.close_question, writer(folder), "UD-1", "cancelled", "no answer")
    refused("decision-mandatory", run.close_question, writer(folder), "UD-1", "skipped", "no answer")
    (folder / "status.json").write_text(json.dumps(status("DESIGN")))
    ask(folder, "T-001: May it stay open?")
    assert entry(folder, "UD-1")["category"] == "security"


@pytest.mark.parametrize("name", [DESIGN, STRATEGY])
def test_a_gate_is_repeated_three_times_then_cancelled_and_the_session_blocked(tmp_path: Path, name: str) -> None:
    folder = gate(tmp_path, name)
    user = talk(folder, "yes", "", "changes-requested:", "perhaps", "approved", "per-batch")
    assert [name for name, _ in user.put] == [name] * 4
    assert all("Ask again" in wrong for _, wrong in user.put[1:])
    assert recorded_answers(folder) == {name: ("cancelled", "no valid answer in 4 tries")}
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
    assert recorded_answers(folder) == {name: ("answered", answer)}
    assert len(read_session(folder).history) == answer.startswith("changes-requested")


def test_repetitions_of_a_gate_are_counted_per_process(tmp_path: Path) -> None:
    folder = gate(tmp_path)
    for _ in range(3):
        talk(folder, "yes", "no", "well")
        assert recorded_answers(folder) == {DESIGN: ("pending", None)}
    talk(folder, "approved")
    assert recorded_answers(folder) == {DESIGN: ("answered", "approved")}


def test_a_gate_that_the_user_puts_off_is_cancelled_for_that_reason_and_ends_the_talk(tmp_path: Path) -> None:
    folder = gate(tmp_path)
    run.ask(writer(folder), [UserQuestion("More?")])
    user = talk(folder, "/defer", "/defer not before May", "x")
    assert [name for name, _ in user.put] == [DESIGN, DESIGN]
    assert recorded_answers(folder)[DESIGN] == ("cancelled", "not before May")
    assert recorded_answers(folder)["UD-1"] == ("pending", None)


def test_a_question_or_an_answer_that_another_process_adds_meanwhile_stays(tmp_path: Path) -> None:
    folder = questions(tmp_path, "")

    def put(decision: UserDecision, wrong: str) -> str:
        run.ask(writer(folder), [UserQuestion("And this?")])
        return ""

    interview(writer(folder), put)
    assert recorded_answers(folder) == {"UD-1": SILENT, "UD-2": ("pending", None)}

    def put_late(decision: UserDecision, wrong: str) -> str:
        talk(folder, "theirs")
        return "ours"

    with pytest.raises(BrokenContract):
        interview(writer(folder), put_late)
    assert recorded_answers(folder)["UD-2"] == ("answered", "theirs")


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
