"""Answers in comments: how they are read, whose count, and what the comment that asks holds."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.rotation import NIGHTLY
from support.sessions import decision, status

from accord.core.shapes import read_shape
from accord.github.comments import Comment
from accord.github.limits import BODY_CHARS
from accord.sessions.issue import (
    MOST_OPEN,
    AnswerCommand,
    AskedAt,
    parse_commands,
    questions_on_issue,
    read_asked,
    render_questions,
    select_answers,
)
from accord.sessions.models import SessionStatus
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

AT = "2026-01-31T09:30:00Z"
NAME = "2026-01-31_csv-export"
ASKED = {"UD-1": AskedAt(AT, 10), "UD-2": AskedAt(AT, 20), "UD-APPROVE-DESIGN": AskedAt(AT, 10)}


def comment(body: str, number: int = 11, author: str = "rita", is_bot: bool = False) -> Comment:
    return Comment(number, f"https://example.org/{number}", body, author, is_bot)


def asking(*decisions: dict[str, Any]) -> SessionStatus:
    return read_shape(SessionStatus, status("ASK_USER", user_decisions=list(decisions)))


WAITING = asking(decision("UD-1"), decision("UD-2"), decision("UD-APPROVE-DESIGN"))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("/answer UD-1 Postgres", [("UD-1", "answer", "Postgres")]),
        ("  /Answer ud-1: Postgres  ", [("UD-1", "answer", "Postgres")]),
        ("/answer UD-1=a=b", [("UD-1", "answer", "a=b")]),
        ("/answer UD-1\nfirst\n\n- second\n", [("UD-1", "answer", "first\n\n- second")]),
        (
            "Hello\r\n\r\n/answer UD-1 one\r\ntwo\r\n/defer UD-2 next sprint",
            [("UD-1", "answer", "one\ntwo"), ("UD-2", "defer", "next sprint")],
        ),
        (
            "/answer UD-1 like so:\n```sh\n/answer UD-2 no\n```\nand so on",
            [("UD-1", "answer", "like so:\n```sh\n/answer UD-2 no\n```\nand so on")],
        ),
        ("/answer UD-APPROVE-DESIGN approved: a\nb", [("UD-APPROVE-DESIGN", "answer", "approved: a\nb")]),
        ("/answer", [("", "answer", "")]),
        ("/answer Postgres", [("", "answer", "Postgres")]),
        ("/answer UD-1", [("UD-1", "answer", "")]),
        ("```\n/answer UD-1 x\n```", []),
        ("~~~\n/answer UD-1 x", []),
        ("    /answer UD-1 x", []),
        ("> /answer UD-1 x", []),
        ("<!--\n/answer UD-1 x\n-->", []),
        ("Please /answer UD-1 x", []),
        ("`/answer UD-1 x`", []),
        ("/answers UD-1 x", []),
        ("/answerUD-1 x", []),
    ],
)
def test_a_command_is_read_at_the_beginning_of_a_line_and_nowhere_else(body: str, found: list[Any]) -> None:
    assert [(said.decision_id, said.how, said.text) for said in parse_commands(comment(body))] == found


def heard(*comments: Comment, known: SessionStatus = WAITING, asked: Any = ASKED) -> tuple[dict[str, str], list[str]]:
    said = [one for item in comments for one in parse_commands(item)]
    found = select_answers(known, asked, said, {"rita", "maintainer"})
    return {name: one.text for name, one in found.accepted.items()}, [one.reason for one in found.ignored]


@pytest.mark.parametrize(
    ("given_", "reason"),
    [
        (comment("/answer UD-1 x", author="mallory"), "no-write-permission"),
        (comment("/answer UD-1 x", author=""), "no-write-permission"),
        (comment("/answer UD-1 x", author="rita", is_bot=True), "bot"),
        (comment("/answer UD-1 x", number=10), "before-the-question"),
        (comment("/answer UD-2 x", number=20), "before-the-question"),
        (comment("/answer UD-3 x"), "unknown"),
        (comment("/answer yes"), "unknown"),
        (comment("/answer yes", number=9), "before-the-question"),
        (comment("/answer UD-1"), "no-answer"),
        (comment("/defer UD-1"), "no-answer"),
        (comment("/answer UD-APPROVE-DESIGN yes"), "no-answer"),
    ],
)
def test_ignored_commands_have_a_reason(given_: Comment, reason: str) -> None:
    assert heard(given_) == ({}, [reason])


def test_the_first_valid_answer_of_a_writer_counts() -> None:
    found = heard(
        comment("/answer UD-APPROVE-DESIGN approved", 11, "mallory"),
        comment("/answer UD-APPROVE-DESIGN yes", 12),
        comment("/answer UD-APPROVE-DESIGN changes-requested: smaller", 13, "maintainer"),
        comment("/answer UD-APPROVE-DESIGN approved", 14),
    )
    assert found == (
        {"UD-APPROVE-DESIGN": "changes-requested: smaller"},
        ["no-write-permission", "no-answer", "answered-before"],
    )


def test_an_answer_to_a_question_that_was_asked_again_since_does_not_count_again() -> None:
    again = asking(decision("UD-APPROVE-DESIGN", asked_at="2026-02-01T00:00:00Z"))
    old = comment("/answer UD-APPROVE-DESIGN changes-requested: smaller")
    assert heard(old, known=again) == ({}, ["before-the-question"])
    asked = questions_on_issue(again, ASKED, [old])
    assert asked == {"UD-APPROVE-DESIGN": AskedAt("2026-02-01T00:00:00Z", 11)}
    assert heard(old, known=again, asked=asked) == ({}, ["before-the-question"])
    new = comment("/answer UD-APPROVE-DESIGN approved", 12)
    assert heard(old, new, known=again, asked=asked)[0] == {"UD-APPROVE-DESIGN": "approved"}


def test_a_resolved_question_takes_no_answer() -> None:
    known = asking(decision("UD-1", "answered"), decision("UD-2"))
    assert heard(comment("/answer UD-1 x"), known=known) == ({}, ["not-open"])


def body_of(known: SessionStatus, *ignored: AnswerCommand, secrets: Redactor | None = None) -> str:
    return render_questions(
        NAME, known, questions_on_issue(known, {}, []), ignored, secrets=secrets or Redactor(), policy=PostingPolicy()
    )


def test_the_comment_remembers_since_when_each_question_is_asked() -> None:
    asked = questions_on_issue(WAITING, ASKED, [comment("x", 30)])
    assert asked == ASKED
    body = render_questions(NAME, WAITING, asked, [], secrets=Redactor(), policy=PostingPolicy())
    assert read_asked(body, NAME) == ASKED
    assert read_asked(body, "2026-01-31_other") is None
    assert read_asked("/answer UD-1 x", NAME) is None
    for broken in ("%5B%5D", "%7B%22a%22%3A1%7D", "x"):
        assert read_asked(f"<!-- accord:session-questions session={NAME} asked={broken} -->", NAME) == {}


def test_the_comment_shows_questions_how_to_answer_and_ignored_answers() -> None:
    known = asking(decision("UD-1", "answered"), decision("UD-2", question="Which\n\n# one?", category="security"))
    message = "Only people with write access to this repository can answer."
    ignored = AnswerCommand("UD-2", "answer", "x", comment("", author="mallory"), "no-write-permission", message)
    asked = {"UD-1": AskedAt(AT, 1), "UD-2": AskedAt(AT, 1)}
    body = render_questions(NAME, known, asked, [ignored], secrets=Redactor(), policy=PostingPolicy())
    assert "**UD-2** (security)\n\n> Which\n>\n> # one?\n" in body
    assert "```text\n/answer UD-2 your answer\n```" in body
    assert "- The answer from mallory to UD-2 does not count. Only people with write access" in body
    assert "Resolved: UD-1 (answered)." in body
    assert parse_commands(comment(body)) == [], "the comment's own text is not an answer"
    done = body_of(asking(decision("UD-1", "answered")))
    assert "No open questions" in done


def test_a_question_cannot_speak_to_others_nor_tell_secrets() -> None:
    text = "Ask @octo\n```\n/answer UD-1 x <!-- accord:session-questions session=x --> correct-horse"
    body = body_of(asking(decision("UD-1", question=text)), secrets=Redactor(("correct-horse",)))
    assert "correct-horse" not in body
    assert "@octo" not in body
    assert read_asked(body, "x") is None
    assert parse_commands(comment(body)) == []


@pytest.mark.slow
@given(texts=st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=4))
@example(texts=["Which one?\n" * 3_000] * (MOST_OPEN + 3))
@example(texts=["\n" * 9_000 + "x"] * 3)
@example(texts=["<" * 5_000])
@settings(max_examples=100 if NIGHTLY else 10, deadline=None)
def test_any_question_fits_a_comment_is_read_back_and_never_an_answer(texts: list[str]) -> None:
    known = asking(*(decision(f"UD-{i}", question=text) for i, text in enumerate(texts, start=1)))
    body = body_of(known)
    assert len(body) <= BODY_CHARS
    asked = read_asked(body, NAME)
    assert len(asked) == min(len(texts), MOST_OPEN)
    assert parse_commands(comment(body)) == []
