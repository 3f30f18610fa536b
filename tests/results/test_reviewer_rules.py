"""A reviewer's result: the verdict rests on its comments, and each finding can be acted on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accord.core.kinds import check_document

FINDING = "What: off by one.\nWhy: the spec says n.\nFix: use range(n)."
WARNING = "[Warning] This file is outside of the scope."


def check(verdict: str, *comments: tuple[str, int | None, str], summary: str = "All read.") -> list[tuple[str, str]]:
    result: dict[str, Any] = {
        "role": "reviewer",
        "review": {
            "verdict": verdict,
            "summary": summary,
            "comments": [{"path": path, "line": line, "body": body} for path, line, body in comments],
        },
    }
    return [(finding.code, finding.path) for finding in check_document(json.dumps(result).encode(), None)[1]]


def test_sound_reviews_pass() -> None:
    assert check("approve") == []
    assert check("approve", ("a.py", None, WARNING)) == []
    assert check("needs-changes", ("a.py", 3, FINDING), ("a.py", None, WARNING)) == []


COMPLETE = {
    "labels": FINDING,
    "in bold": "**What** is wrong: the loop.\n\n**Why** it matters: the spec.\n\n**Fix**: range(n)",
    "bold with colon": "**What:** a\n**Why:** b\n**Fix:** c",
    "in italics": "*What*: a\n_Why:_ b\n*Fix:* c",
    "with wide colons": "What\uff1a循环多一次。\n**Why\uff1a**规范。\nFix\uff1arange(n)",
    "capitals": "WHAT: a\nWHY: b\nFIX: c",
    "headings": "### What\na\n### Why\nb\n### Fix\nc",
    "a list": "- What: a\n- Why: b\n- Fix: c",
    "one line": "What: a. Why: b. Fix: c.",
    "another order": "Fix: c\nWhat: a\nWhy: b",
    "a suggestion as fix": "What: a\nWhy: b\nFix:\n```suggestion\nrange(n)\n```",
}


@pytest.mark.parametrize("name", COMPLETE)
def test_a_finding_is_complete_however_it_is_dressed(name: str) -> None:
    assert check("needs-changes", ("a.py", 1, COMPLETE[name])) == []


INCOMPLETE = {
    "no fix": "What: a\nWhy: b",
    "empty why": "What: a\nWhy:\nFix: c",
    "prose": "This is wrong.",
    "labels in code": "```\nWhat: a\nWhy: b\nFix: c\n```",
    "words that only look alike": "Whatever: a\nWhy: b\nFixture: c",
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_a_finding_that_cannot_be_acted_on_is_sent_back(name: str) -> None:
    assert check("needs-changes", ("a.py", 1, INCOMPLETE[name])) == [("finding-incomplete", "/review/comments/0/body")]


def test_a_verdict_that_its_comments_do_not_bear_out_is_sent_back() -> None:
    assert check("needs-changes") == [("needs-changes-without-finding", "/review/comments")]
    assert check("needs-changes", ("a.py", 1, WARNING)) == [("needs-changes-without-finding", "/review/comments")]
    assert check("approve", ("a.py", 1, FINDING)) == [("approve-with-finding", "/review/comments/0/body")]


@pytest.mark.parametrize("line", [0, -3])
def test_a_line_that_no_file_has_is_found(line: int) -> None:
    assert check("needs-changes", ("a.py", line, FINDING)) == [("line-invalid", "/review/comments/0/line")]


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../a.py", "a/../../b", "C:\\a.py"])
def test_a_path_outside_of_the_repository_is_found(path: str) -> None:
    assert check("needs-changes", (path, 1, FINDING)) == [("path-invalid", "/review/comments/0/path")]


def test_empty_texts_are_found() -> None:
    assert check("approve", summary=" ") == [("summary-empty", "/review/summary")]
    assert check("approve", ("a.py", None, "[Warning] ")) == [("comment-empty", "/review/comments/0/body")]
