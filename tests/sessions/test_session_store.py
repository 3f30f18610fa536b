"""Writing a session: nothing is lost or half written, and no role writes more than it may."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.disks import CrashImages, FaultyDisk, contents, fails, timeless
from support.rotation import NIGHTLY, some
from support.session_processes import (
    HISTORY,
    STEPS,
    act,
    asker,
    copied,
    crashes,
    killed,
    mover,
    record,
)  # fmt: skip
from support.sessions import AT, GATES, NAME, TASKS, agent_output, clock, decision, make_session, status, writer

from accord.core.errors import BrokenContract, Stopped, WrongUsage
from accord.files.store import NotWritten, Storage, folder_lock
from accord.sessions.apply import SessionWriter
from accord.sessions.folder import FILES, Part, Session, read_session, status_value
from accord.sessions.folder_rules import check_session
from accord.sessions.models import AgentOutput
from accord.sessions.next_moves import first_step
from accord.sessions.outputs import apply_output
from accord.sessions.policy import parse_setting
from accord.sessions.questions import UserQuestion, next_step
from accord.sessions.run import advance, answer, ask, interview, move_task, resume, set_values

WILD = Path(__file__).parents[1] / "data/sessions/wild/.agents-work/2026-02-10_order-filter"
ACTIONS = ["advance", "task", "output", "create"]


def issue(text: str) -> Any:
    return lambda session: {**status_value(session), "known_issues": [text]}


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_session_as_tools_leave_it_is_written_again_without_losing_anything(tmp_path: Path, ends: str) -> None:
    folder = shutil.copytree(WILD, tmp_path / ".agents-work" / WILD.name)
    for name in ("status.json", "tasks.yaml"):
        (folder / name).write_bytes((WILD / name).read_bytes().replace(b"\n", ends.encode()))
    text = (folder / "status.json").read_bytes()
    (folder / "status.json").write_bytes(text.replace(b'"session":', b'"x-version": 1.10, "session":'))
    before = contents(folder)
    move_task(writer(folder), "T-001", "implemented", role="Coder")
    writer(folder).change_status(issue("slow"), role="Coder")
    after = contents(folder)
    wanted = before["tasks.yaml"].replace(b"status: in-progress ", b"status: implemented ")
    assert after["tasks.yaml"] == wanted
    old = json.loads(before["status.json"])
    assert json.loads(after["status.json"]) == {**old, "known_issues": ["slow"], "last_update": "2026-01-31T12:00:00Z"}
    assert list(json.loads(after["status.json"])) == list(old)
    assert b'\n    "x-version": 1.10,' in after["status.json"]
    assert after["status.json"].count(b"\r\n") == (after["status.json"].count(b"\n") if ends == "\r\n" else 0)
    changed = {name for name in after if before.get(name) != after[name]}
    assert changed == {"status.json", "tasks.yaml", "outputs.jsonl"}, "the Coder's work is recorded"


@pytest.mark.slow
def test_a_killed_process_leaves_the_image_of_that_call_and_no_lock(tmp_path: Path) -> None:
    before, action = make_session(tmp_path / "before", "IMPLEMENT_LOOP", user_decisions=GATES), "output"
    images = CrashImages(copied(before, tmp_path / "images"))
    act(action, images.folder, images)
    for nth, moment in some([*images.kept], 4):
        folder = copied(before, tmp_path / f"{nth}-{moment}")
        assert killed(action, folder, nth, moment)
        assert sorted(contents(folder).values()) == sorted(images.kept[nth, moment].values())
        act(action, folder, FaultyDisk())
        assert contents(folder) == contents(images.folder)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_disk_that_fails_three_times_is_written_at_last(tmp_path: Path, action: str) -> None:
    clean = make_session(tmp_path / "clean", "IMPLEMENT_LOOP", user_decisions=GATES)
    act(action, clean, FaultyDisk())
    for call in ("create", "replace", "append", "half"):
        folder = make_session(tmp_path / call, "IMPLEMENT_LOOP", user_decisions=GATES)
        act(action, folder, FaultyDisk(fails(call, errno.EIO, times=3)))
        assert contents(folder) == contents(clean), call


@pytest.mark.parametrize("action", ["advance", "task"])
def test_a_disk_that_keeps_failing_is_an_error_and_changes_nothing(tmp_path: Path, action: str) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES)
    before = contents(folder)
    with pytest.raises(NotWritten, match="run the same command again") as caught:
        act(action, folder, FaultyDisk(fails("create", errno.ENOSPC)))
    assert caught.value.message.startswith(f"BLOCKED: {folder}")
    assert contents(folder) == before


@pytest.mark.parametrize("action", ["advance", "task", "output"])
def test_a_session_that_is_done_is_read_only(tmp_path: Path, action: str) -> None:
    folder = make_session(tmp_path, "DONE")
    before = contents(folder)
    with pytest.raises(BrokenContract, match="Reopen it with"):
        act(action, folder, FaultyDisk())
    assert contents(folder) == before


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=100 if NIGHTLY else 15, deadline=None)
@given(
    extra=st.dictionaries(TEXTS.map("x-".__add__), VALUES, max_size=4),
    said=TEXTS,
    indent=st.sampled_from([1, 2, 4, "\t"]),
)
def test_whatever_else_a_status_holds_survives_and_any_text_is_written_as_text(
    tmp_path_factory: pytest.TempPathFactory, extra: dict[str, Any], said: str, indent: Any
) -> None:
    value = status("DESIGN", **extra)
    text = json.dumps(value, indent=indent)
    folder = make_session(tmp_path_factory.mktemp("s"), texts={"status.json": text})
    writer(folder).change_status(issue(said + "!"), role="Coder")
    wanted = {**value, "known_issues": [said + "!"], "last_update": "2026-01-31T12:00:00Z"}
    assert (folder / "status.json").read_bytes().decode() == json.dumps(wanted, indent=indent, ensure_ascii=False)


def test_a_status_that_cannot_be_changed_alone_is_not_changed(tmp_path: Path) -> None:
    text = "tasks:\n- {id: T-001, goal: g, acceptance_checks: [x], status: &s not-started}\nnote: *s\n"
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", texts={"tasks.yaml": text}, user_decisions=GATES)
    with pytest.raises(BrokenContract, match="Write it out in its line"):
        move_task(writer(folder), "T-001", "blocked", role="QA")
    assert (folder / "tasks.yaml").read_text() == text


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"user_decisions": [{"decision_id": "UD-1"}]}, "schema"),
        ({"user_decisions": [*GATES, *GATES]}, "decision-repeated"),
        ({"current_state": "INTEGRATE"}, "tasks-open"),
        ({"session": "2026-01-31_other"}, "role-forbidden"),
        ({"x": float("inf")}, "not-json"),
    ],
)
def test_a_change_that_breaks_the_contract_is_not_written(tmp_path: Path, change: dict[str, Any], code: str) -> None:
    folder = make_session(tmp_path, "APPROVE_DESIGN")
    before = contents(folder)
    with pytest.raises(BrokenContract) as refused:
        writer(folder).change_status(lambda s: {**status_value(s), **change}, role="Orchestrator")
    assert code in [finding.code for finding in refused.value.findings]
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("task", "target", "role", "said"),
    [
        ("T-009", "blocked", "QA", r"Unknown task `T-009`\. Use one of T-001"),
        ("T-001", "implementd", "Coder", r"Unknown status `implementd`\. Did you mean `implemented`\?"),
        ("T-002", "completed", "QA", "Legal moves"),
    ],
)
def test_a_refused_move_of_a_task_names_its_rule(tmp_path: Path, task: str, target: str, role: str, said: str) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES)
    with pytest.raises(BrokenContract, match=said):
        move_task(writer(folder), task, target, role=role)
    assert (folder / "tasks.yaml").read_text() == TASKS


def test_outputs_grow_by_one_line_each(tmp_path: Path) -> None:
    torn = b'{"at": "2026-01'
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", texts={"outputs.jsonl": torn.decode() + "\n"})
    for summary in ("Smaller.", "\u2028 larger", "\u2028 larger", "Smaller."):
        record(writer(folder), summary=summary)
    raw = (folder / "outputs.jsonl").read_bytes()
    assert raw.startswith(torn)
    said = [entry.summary for entry in read_session(folder).outputs]
    assert said == ["Smaller.", "\u2028 larger", "Smaller."], "the same output twice is one event"


def test_a_change_is_repeated_after_a_program_without_the_lock_wrote(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "DESIGN")
    other = json.dumps(status("DESIGN", assumptions=["theirs"]))

    def change(session: Session) -> Any:
        if session.status.assumptions != ["theirs"]:  # type: ignore[union-attr]
            (folder / "status.json").write_text(other)
        return {**status_value(session), "known_issues": ["mine"]}

    after = writer(folder).change_status(change, role="Coder")
    assert (after.assumptions, after.known_issues) == (["theirs"], ["mine"])


def test_a_file_that_never_holds_still_is_left_alone(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "DESIGN")

    def change(session: Session) -> Any:
        theirs = status("DESIGN", assumptions=["x" * (1 + len(session.status.assumptions[0]))])  # type: ignore[union-attr]
        (folder / "status.json").write_text(json.dumps(theirs))
        return {**status_value(session), "known_issues": ["mine"]}

    with pytest.raises(Stopped, match="Another program wrote"):
        writer(folder).change_status(change, role="Coder")
    assert b"mine" not in (folder / "status.json").read_bytes()


def test_a_session_that_another_process_writes_is_waited_for_and_not_written(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "DESIGN")
    before = contents(folder)
    with folder_lock(folder, Storage(clock())), pytest.raises(Stopped):
        writer(folder).change_status(issue("x"), role="Coder")
    assert contents(folder) == before
    writer(folder).change_status(issue("x"), role="Coder")
    assert read_session(folder).parts["status.json"].value["known_issues"] == ["x"]


def test_a_change_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    disk = FaultyDisk()
    folder = make_session(tmp_path, "DESIGN")
    writer(folder, disk=disk).change_status(status_value, role="Coder")
    assert disk.calls == []


def test_a_session_is_created_once(tmp_path: Path) -> None:
    folder = tmp_path / ".agents-work" / NAME
    writer(folder).create(status())
    assert [len(findings) for _, _, findings in check_session(folder)] == [0, 0]
    for name, hint in (("status.json", "continue that session"), ("outputs.jsonl", "restore its status.json")):
        (folder / "status.json").rename(folder / name)
        with pytest.raises(BrokenContract, match="already") as caught:
            writer(folder).create(status())
        assert caught.value.findings[0].hint == f"Choose another name, or {hint}."
    with pytest.raises(WrongUsage):
        advance(writer(tmp_path / "nothing"), "DESIGN", role="Orchestrator")


def test_a_link_in_place_of_a_file_is_not_written_through(tmp_path: Path) -> None:
    folder = make_session(tmp_path, texts={"status.json": None})
    target = tmp_path / "elsewhere.json"
    target.write_text(json.dumps(status(last_update=AT)))
    (folder / "status.json").symlink_to(target)
    with pytest.raises(BrokenContract, match="not a regular file"):
        writer(folder).change_status(issue("x"), role="Coder")
    assert json.loads(target.read_text())["known_issues"] == []


FINDING = AgentOutput.model_validate(agent_output(status="NEEDS_DECISION"))
CHANGES: dict[str, Callable[[SessionWriter], object]] = {
    "advance": lambda session: advance(session, "BLOCKED", role="Orchestrator", blocker="x"),
    "task": lambda session: move_task(session, "T-001", "blocked", role="QA"),
    "output": record,
    "questions": lambda session: (ask(session, [UserQuestion("One?")]), answer(session, {}, is_final=True)),
    "finding": lambda session: apply_output(session, "T-001", "Security", FINDING),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_dry_run_plans_what_a_run_writes(tmp_path: Path, change: Callable[[SessionWriter], object]) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", user_decisions=GATES)
    before = contents(folder)
    dry, wet = writer(folder, is_dry_run=True), writer(folder)
    change(dry)
    assert contents(folder) == before
    change(wet)
    assert {name: part.raw for name, part in dry.read().parts.items() if part.raw} == contents(folder)
    assert dry.operations == wet.operations != []


def test_a_dry_run_refuses_what_a_run_refuses(tmp_path: Path) -> None:
    folder = make_session(tmp_path, texts={"tasks.yaml": None, "status.json": "{"})
    dry = writer(folder, is_dry_run=True)
    for change in (CHANGES["advance"], CHANGES["task"]):
        for session in (dry, writer(folder)):
            with pytest.raises(BrokenContract, match="cannot be changed"):
                change(session)
    assert dry.operations == []


GATE = str(HISTORY["decision_id"])
BEFORE = {"changes": ["again"], "cancel": ["again"], "resume": ["again", "changes"]}
BEFORE |= {"correct": [*BEFORE["resume"], "resume"], "answer": ["ask"], "silence": ["ask"]}
BEFORE |= {"leave": ["ask", "answer", "silence"], "again": [*BEFORE["correct"], "correct"]}
BEFORE |= {"fix": ["work", "failure"], "review": ["work"], "completion": ["work", "review"]}


def prepared(root: Path, name: str) -> Path:
    """Make a session as it is right before this step."""
    states = dict.fromkeys(("ask", "answer", "silence", "leave"), "DESIGN")
    working = (*ACTIONS, "work", "finding", "failure", "fix", "review", "completion")
    state = (states | dict.fromkeys(working, "IMPLEMENT_LOOP")).get(name, "APPROVE_DESIGN")
    folder = make_session(root, state, mode="full", user_decisions=GATES if state == "IMPLEMENT_LOOP" else [])
    for step in BEFORE.get(name, []):
        act(step, folder, FaultyDisk())
    return folder


def is_whole(folder: Path) -> bool:
    """Tell whether every file can be read; the last line of the history may be in the middle of being written."""
    files = (folder / name for name in FILES)  # others come and go while one is written
    return not any(Part(file.name, file.read_bytes()).problem for file in files if file.exists())


@pytest.mark.parametrize("name", [*ACTIONS, *STEPS])
def test_a_step_killed_at_any_write_and_made_again_ends_as_if_nothing_had_happened(tmp_path: Path, name: str) -> None:
    before = prepared(tmp_path / "before", name)
    clean = copied(before, tmp_path / "clean")
    act(name, clean, FaultyDisk())
    old, new, end = contents(before), contents(clean), timeless(clean)
    assert all(not found for _, _, found in check_session(clean))
    moments = []
    for moment, folder in crashes(name, before, tmp_path / "crashes"):
        moments.append(moment)
        assert is_whole(folder), moment
        left = {file: raw for file, raw in contents(folder).items() if file in ("status.json", "tasks.yaml")}
        assert name in STEPS or all(raw in (old[file], new[file]) for file, raw in left.items()), moment
        act(name, folder, FaultyDisk(), hour=13)
        assert timeless(folder) == end, moment
        again = contents(folder)
        act(name, folder, FaultyDisk(), hour=14)
        assert contents(folder) == again or name == "create", "what is done is not done again"
    assert len(moments) > 2, "the disk was used, and the process killed there"


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


def test_a_review_that_was_interrupted_is_named_and_taken_again(tmp_path: Path) -> None:
    folder = prepared(tmp_path, "completion")
    with pytest.raises(NotWritten):
        act("completion", folder, FaultyDisk(fails("append", errno.ENOSPC)))
    with pytest.raises(BrokenContract, match=r"T-001 \(QA\)\. Repeat `accord dispatch --take` where it was"):
        advance(writer(folder), "INTEGRATE", role="Orchestrator")
    assert first_step(read_session(folder)).command.endswith(" T-001 --role QA --take OUTPUT.json")
    whole = (folder / "acceptance.json").read_bytes()
    (folder / "acceptance.json").write_text("[]")
    first = first_step(read_session(folder))
    assert (first.role, "--take" in first.command) == ("SpecAgent", False), "QA cannot read the criteria"
    (folder / "acceptance.json").write_bytes(whole)
    act("completion", folder, FaultyDisk())
    assert not read_session(folder).record.unreviewed


@pytest.mark.parametrize(
    ("said", "code"),
    [({"UD-9": "x"}, "decision-unknown"), ({GATE: "maybe"}, "gate-answer"), ({GATE: "approved"}, "decision-resolved")],
)
def test_an_answer_that_only_the_history_has_is_known_to_all_and_not_written_by_a_refused_one(
    tmp_path: Path, said: dict[str, str], code: str
) -> None:
    """The process dies, or the disk is full, between the two files; the next command decides on both."""
    folder = prepared(tmp_path, "changes")
    with pytest.raises(NotWritten):
        act("changes", folder, FaultyDisk(fails("replace", errno.ENOSPC)))
    before = contents(folder)
    assert b'"pending"' in before["status.json"]
    with pytest.raises(BrokenContract) as refusal:
        answer(writer(folder), said)
    assert [found.code for found in refusal.value.findings] == [code]
    assert contents(folder) == before
    shown = []
    assert interview(writer(folder), lambda decision, _: shown.append(decision) or "approved") is False
    assert next_step(read_session(folder)).next == resume(writer(folder, is_dry_run=True)).next == "dispatch-correction"
    assert (shown, contents(folder)) == ([], before)
    set_values(writer(folder), [parse_setting("known_issues+=slow")], role="QA")
    assert json.loads((folder / "status.json").read_text())["user_decisions"][0]["answer"] == HISTORY["answer"]


@pytest.mark.slow
def test_two_processes_that_answer_and_move_at_once_lose_no_answer_and_break_no_file(tmp_path: Path) -> None:
    rounds = 40 if NIGHTLY else 12
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
