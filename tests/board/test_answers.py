"""Answers to questions of sessions in the browser: recorded as by the command, and only from the board's own pages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests
from support.browser import opened_page, serious_findings
from support.clocks import ManualClock
from test_pages import served
from test_work import ADDRESS, NOW

from accord.board.documents import read_documents
from accord.board.facts import with_documents
from accord.board.models import BoardRepository, BoardSnapshot, Overview
from accord.board.server import LiveBoard, answer_question
from accord.github.models import Identity
from accord.sessions.folder import read_session
from accord.sessions.questions import UserQuestion
from accord.sessions.run import ask, create_session

HOSTILE = '"><img src=x onerror="window.ran = 1"> ../.. & =%0d'


@dataclass
class Asking:
    """A served board of a folder with a session that asks; ``folder`` is the session's."""

    url: str
    folder: Path
    board: LiveBoard

    @property
    def decisions(self) -> dict[str, tuple[str, str | None]]:
        status = read_session(self.folder).status
        assert status
        return {one.decision_id: (one.status, one.answer) for one in status.user_decisions}

    def form(self, **changes: str) -> dict[str, str]:
        page = requests.get(f"{self.url}/index.html", timeout=600).text
        found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
        return {**found, "answer": "GitHub", **changes}

    def send(self, form: dict[str, str], **headers: str | None) -> requests.Response:
        given = {"Origin": self.url, **headers}
        return requests.post(f"{self.url}/answer", data=form, headers=given, timeout=600, allow_redirects=False)


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    clock = ManualClock(NOW)
    writer = create_session(tmp_path, "login", is_lean=True, clock=clock)
    ask(writer, [UserQuestion("Which provider?")])
    facts = BoardRepository(ADDRESS, NOW, Identity("bot", False))
    empty = BoardSnapshot((facts,), Overview(), Overview(), NOW)
    record = partial(answer_question, root=tmp_path, clock=clock)
    board = LiveBoard(lambda: with_documents(empty, read_documents(tmp_path, NOW)), str, lambda: 0.05, record)
    with served(board) as url:
        yield Asking(url, writer.folder, board)


@pytest.mark.slow
def test_an_answer_is_recorded_and_shown_at_once(asking: Asking) -> None:
    answer = asking.send(asking.form())
    assert (answer.status_code, answer.headers["location"]) == (303, "index.html")
    assert asking.decisions == {"UD-1": ("answered", "GitHub")}
    assert "Which provider?" not in requests.get(f"{asking.url}/index.html", timeout=600).text


REFUSED: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "a form of another page": ({}, {"Origin": "http://evil.example"}),
    "a form of a page without an address": ({}, {"Origin": "null"}),
    "no page": ({}, {"Origin": None}),
    **{f"the token {token!r}": ({"token": token}, {}) for token in ("", "x", "ä")},
    **{f"the folder {folder}": ({"folder": folder}, {}) for folder in ("../elsewhere", "/etc")},
    "another question": ({"decision": "UD-2"}, {}),
    "no answer": ({"answer": ""}, {}),
    "a huge answer": ({"answer": "x" * 70_000}, {}),
}


def test_only_forms_of_the_board_for_questions_that_it_shows_are_answered(asking: Asking) -> None:
    statuses = {
        case: asking.send(asking.form(**changes), **headers).status_code for case, (changes, headers) in REFUSED.items()
    }
    assert statuses == dict.fromkeys(REFUSED, 403)
    assert asking.decisions == {"UD-1": ("pending", None)}


def test_a_host_that_was_bound_to_this_machine_later_is_not_answered(asking: Asking) -> None:
    form, port = asking.form(), asking.url.rpartition(":")[2]
    host = f"evil.example:{port}"
    assert asking.send(form, Host=host, Origin=f"http://{host}").status_code == 400
    assert asking.decisions == {"UD-1": ("pending", None)}


def test_an_answer_that_was_given_elsewhere_stays(asking: Asking) -> None:
    form = asking.form()
    assert asking.send(form).status_code == 303
    refused = asking.send({**form, "answer": "GitLab"})
    assert (refused.status_code, "Not recorded" in refused.text) == (403, True)
    assert asking.decisions == {"UD-1": ("answered", "GitHub")}


def test_a_board_that_only_reads_has_no_form_and_takes_none(asking: Asking) -> None:
    reading = LiveBoard(lambda: asking.board.snapshot, str, lambda: 60)
    with served(reading) as url:
        assert "<form" not in requests.get(f"{url}/index.html", timeout=600).text
        assert (
            requests.post(f"{url}/answer", data=asking.form(), headers={"Origin": url}, timeout=600).status_code == 405
        )


def test_an_answer_is_typed_while_the_page_changes(browser: Any, asking: Asking) -> None:
    with opened_page(browser) as page:
        page.goto(asking.url)
        assert serious_findings(page) == []
        page.get_by_label("Answer").click()
        page.keyboard.type(HOSTILE[:20])
        mark = asking.board.mark
        (asking.folder / "tasks.yaml").write_text("- broken", encoding="utf-8")
        page.get_by_text("Its documents break their contract.").wait_for(timeout=600_000)
        assert asking.board.mark != mark
        page.keyboard.type(HOSTILE[20:])
        (asking.folder / "tasks.yaml").unlink()
        page.keyboard.press("Enter")
        page.get_by_text("Which provider?").wait_for(state="detached", timeout=600_000)
        assert page.evaluate("window.ran") is None
    assert asking.decisions == {"UD-1": ("answered", HOSTILE)}
