"""Questions on an issue: put there once, answered by people who may, whatever happens on the way."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.killing import kill_at
from support.rotation import NIGHTLY, killed, rotate
from support.sessions import make_session, writer
from support.stage import Stage

from accord.core.errors import BrokenContract, Refused, Stopped
from accord.sessions.folder import read_session, status_of
from accord.sessions.folder_rules import check_session
from accord.sessions.issue import SessionIssue, answer_from, ask_on
from accord.sessions.questions import UserQuestion, with_correction
from accord.sessions.run import ask, start_agent
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord_sandbox.faults import KINDS as FAULTS
from accord_sandbox.faults import Fault

DESIGN = "UD-APPROVE-DESIGN"
SEED = """
tokens:
  - {token: rita, login: rita}
  - {token: tim, login: tim}
  - {token: mallory, login: mallory}
  - {token: helper, login: "helper[bot]", kind: installation, permissions: {issues: write, contents: write}}
repositories:
  - name: octo/code
    collaborators: {rita: write, tim: triage}
    issues: [{title: The work}, {title: Another}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_session(tmp_path, "DESIGN", mode="full")


def place(stage: Stage, folder: Path, **more: Any) -> SessionIssue:
    return SessionIssue(writer(folder, stage.clock), stage.adapter(**more), 1, Redactor(), PostingPolicy())


def say(stage: Stage, body: str, token: str = "rita") -> int:
    path = f"/repos/{stage.repository}/issues/1/comments"
    return int(stage.send("POST", path, token=token, body=body)["id"])


def bodies(stage: Stage) -> list[str]:
    return [comment["body"] for comment in stage.get(f"/repos/{stage.repository}/issues/1/comments")]


def kept(folder: Path) -> dict[str, Any]:
    status = status_of(read_session(folder))
    return {item.decision_id: item.answer or item.resolution_reason for item in status.user_decisions}


@pytest.mark.slow
def test_questions_stand_in_one_comment_that_follows_the_session(stage: Stage, folder: Path) -> None:
    assert ask_on(place(stage, folder), [UserQuestion("Which one?")]).action == "created"
    assert ask_on(place(stage, folder), [UserQuestion("Which one?")]).action == "unchanged"
    assert ask_on(place(stage, folder), [UserQuestion("And when?")]).action == "updated"
    (body,) = bodies(stage)
    assert "> Which one?" in body
    assert "> And when?" in body
    say(stage, "/answer UD-1 the first\nof all")
    heard, shown = answer_from(place(stage, folder))
    assert {name: said.text for name, said in heard.accepted.items()} == {"UD-1": "the first\nof all"}
    assert shown.action == "updated"
    assert "Resolved: UD-1 (answered)." in bodies(stage)[0]
    writes = [method for method, *_ in stage.server.requests if method != "GET"]
    heard, shown = answer_from(place(stage, folder))
    assert (heard.accepted, shown.action) == ({}, "unchanged")
    assert [method for method, *_ in stage.server.requests if method != "GET"] == writes
    say(stage, "/defer UD-2 next sprint", "accord-sandbox-token")
    answer_from(place(stage, folder))
    assert kept(folder) == {"UD-1": "the first\nof all", "UD-2": "next sprint"}
    assert "No open questions" in bodies(stage)[0]
    assert len(bodies(stage)) == 3


@pytest.mark.parametrize(
    ("token", "reason"), [("tim", "no-write-permission"), ("mallory", "no-write-permission"), ("helper", "bot")]
)
def test_strangers_and_bots_cannot_answer_and_read_why(stage: Stage, folder: Path, token: str, reason: str) -> None:
    ask_on(place(stage, folder), [UserQuestion("May it be open?", category="security")])
    say(stage, "/answer UD-1 sure", token)
    heard, shown = answer_from(place(stage, folder))
    assert ([one.reason for one in heard.ignored], shown.action) == ([reason], "updated")
    assert kept(folder) == {"UD-1": None}
    assert "does not count" in bodies(stage)[0]
    say(stage, "/answer UD-1 no")
    answer_from(place(stage, folder))
    assert kept(folder) == {"UD-1": "no"}
    assert "does not count" not in bodies(stage)[0]


def test_an_app_of_unknown_identity_leaves_no_lost_comment(stage: Stage, folder: Path) -> None:
    with pytest.raises(Refused, match=r"writes as `helper\[bot\]`") as refused:
        ask_on(place(stage, folder, token="helper"), [UserQuestion("Which one?")])
    assert "--identity 'helper[bot]'" in refused.value.hint
    assert bodies(stage) == []
    for action in ("created", "unchanged"):
        shown = ask_on(place(stage, folder, token="helper", identity="helper[bot]"), [UserQuestion("Which one?")])
        assert shown.action == action


def test_a_forged_comment_asks_nothing_and_a_deleted_one_is_made_again(stage: Stage, folder: Path) -> None:
    ask_on(place(stage, folder), [UserQuestion("Which one?")])
    (body,) = bodies(stage)
    say(stage, body, "mallory")
    heard, shown = answer_from(place(stage, folder))
    assert (heard.accepted, shown.action) == ({}, "unchanged")
    ours = stage.get(f"/repos/{stage.repository}/issues/1/comments")[0]["id"]
    stage.send("DELETE", f"/repos/{stage.repository}/issues/comments/{ours}")
    assert answer_from(place(stage, folder))[1].action == "created"
    say(stage, "/answer UD-1 the first")
    answer_from(place(stage, folder))
    assert kept(folder) == {"UD-1": "the first"}


@pytest.mark.slow
def test_an_invalid_answer_to_a_gate_is_reported_and_fixed_by_editing_it(stage: Stage, tmp_path: Path) -> None:
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full")
    ask_on(place(stage, folder), [UserQuestion("Approve?", DESIGN)])
    number = say(stage, "/answer UD-APPROVE-DESIGN fine")
    answer_from(place(stage, folder))
    assert kept(folder) == {DESIGN: None}
    assert "does not count. The answer to UD-APPROVE-DESIGN must begin with" in bodies(stage)[0]
    path = f"/repos/{stage.repository}/issues/comments/{number}"
    stage.send("PATCH", path, token="rita", body="/answer UD-APPROVE-DESIGN changes-requested: smaller,\n\nand blue")
    answer_from(place(stage, folder))
    assert kept(folder) == {DESIGN: "changes-requested: smaller,\n\nand blue"}
    stage.send("PATCH", path, token="rita", body="/answer UD-APPROVE-DESIGN approved")
    answer_from(place(stage, folder))
    assert kept(folder) == {DESIGN: "changes-requested: smaller,\n\nand blue"}, "what was taken stays"
    assert [line.answer for line in read_session(folder).history] == ["changes-requested: smaller,\n\nand blue"]
    start_agent(writer(folder, stage.clock), "meta", "Architect")
    writer(folder, stage.clock).change_status(lambda one: with_correction(one, "completed"), role="Orchestrator")
    ask_on(place(stage, folder), [UserQuestion("Approve?", DESIGN)])
    answer_from(place(stage, folder))
    assert kept(folder) == {DESIGN: None}, "the old comment does not answer the question that is asked again"
    say(stage, "/answer UD-APPROVE-DESIGN approved")
    answer_from(place(stage, folder))
    assert kept(folder) == {DESIGN: "approved"}


def test_a_question_asked_elsewhere_appears_on_the_issue_with_the_next_answer(stage: Stage, folder: Path) -> None:
    assert answer_from(place(stage, folder))[1].action == "none"
    ask(writer(folder, stage.clock), [UserQuestion("Which one?")])
    say(stage, "/answer UD-1 too early")
    assert answer_from(place(stage, folder))[1].action == "created"
    answer_from(place(stage, folder))
    assert kept(folder) == {"UD-1": None}


def test_nothing_is_asked_where_the_issue_is_not_or_the_rules_forbid_it(stage: Stage, folder: Path) -> None:
    before = (folder / "status.json").read_bytes()
    with pytest.raises(BrokenContract, match="no issue #99"):
        ask_on(
            SessionIssue(writer(folder, stage.clock), stage.adapter(), 99, Redactor(), PostingPolicy()),
            [UserQuestion("Which one?")],
        )
    with pytest.raises(BrokenContract):
        ask_on(place(stage, folder), [UserQuestion("Which one?", "UD-7")])
    assert (folder / "status.json").read_bytes() == before
    assert bodies(stage) == []


def asks(stage: Stage, folder: Path) -> None:
    ask_on(place(stage, folder), [UserQuestion("Which one?"), UserQuestion("And when?")])


def answers(stage: Stage, folder: Path) -> None:
    answer_from(place(stage, folder))


def prepared(stage: Stage, root: Path, act: Callable[[Stage, Path], None]) -> Path:
    """Start over; for answers, with questions on the issue and two comments that answer them."""
    stage.reset()
    shutil.rmtree(root, ignore_errors=True)
    folder = make_session(root, "DESIGN", mode="full")
    if act is answers:
        asks(stage, folder)
        say(stage, "/answer UD-1 no", "mallory")
        say(stage, "/answer UD-1 the first\n/defer UD-2 later")
    stage.server.requests.clear()
    return folder


def end(stage: Stage, folder: Path) -> Any:
    assert all(not found for _, _, found in check_session(folder))
    status = status_of(read_session(folder))
    return status.current_state, kept(folder), [body.partition("<!--")[0] for body in bodies(stage)]


LOST = ("lost-before", "lost-after")
ACCIDENTS = tuple(kind for kind in FAULTS if kind != "slow") if NIGHTLY else (*LOST, "error-500", "truncated")
FOR_GOOD = ACCIDENTS if NIGHTLY else LOST


@pytest.mark.slow
@pytest.mark.parametrize("act", [asks, answers])
def test_no_accident_asks_twice_or_loses_an_answer(stage: Stage, tmp_path: Path, act: Any) -> None:
    folder = prepared(stage, tmp_path / "s", act)
    act(stage, folder)
    requests, clean = [f"{method} {path}" for method, path, *_ in stage.server.requests], end(stage, folder)
    accidents = [Fault(kind, nth=nth) for nth, kind in rotate(requests, ACCIDENTS, lambda *_: True)]
    for fault in (*accidents, *(Fault(kind, nth=len(requests), times=99) for kind in FOR_GOOD)):
        folder = prepared(stage, tmp_path / "s", act)
        stage.server.faults.add(fault)
        try:
            act(stage, folder)
        except (Stopped, Refused):
            stage.server.faults.clear()
            act(stage, folder)
        stage.server.faults.clear()
        assert end(stage, folder) == clean, fault
        written = [method for method, *_ in stage.server.requests if method == "POST"]
        act(stage, folder)
        assert [method for method, *_ in stage.server.requests if method == "POST"] == written
        assert end(stage, folder) == clean, fault


@pytest.mark.slow
@pytest.mark.parametrize("act", [pytest.param(asks, marks=pytest.mark.matrix), answers])
def test_a_process_killed_at_any_request_asks_once_and_loses_no_answer(stage: Stage, tmp_path: Path, act: Any) -> None:
    folder = prepared(stage, tmp_path / "s", act)
    act(stage, folder)
    count, clean = len(stage.server.requests), end(stage, folder)
    asking = ["ask", str(folder), "--question", "Which one?", "--question", "And when?", "--issue", "1"]
    command = ["session", *(asking if act is asks else ["answer", str(folder), "--from-issue", "1"])]
    for nth in killed(range(1, count + 1)):
        folder = prepared(stage, tmp_path / "s", act)
        kill_at(nth, command, stage)
        act(stage, folder)
        assert end(stage, folder) == clean, nth
