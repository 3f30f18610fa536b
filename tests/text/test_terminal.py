"""Text of a terminal reads as on the terminal: no sequence stays, not even in part, and no word of it is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.cli.output import one_line
from accord.gha.step import inert
from accord.runner.outputs import safe_line, summary_of
from accord.text.hidden import as_seen
from accord.text.markdown import cell, code_block, mermaid_text
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.sanitise import sanitise, sanitise_line, sanitise_plain

TOKEN = f"ghp_{'a1' * 18}"
SPLIT = f"{TOKEN[:9]}\x1b[01;31m\x1b[K{TOKEN[9:]}\x1b[m\x1b[K"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b[31mred\x1b[0m", "red"), ("\x1b[38;2;10;20;30mred\x1b[K", "red"),
        ("\x1b[?25lhidden cursor\x1b[?25h", "hidden cursor"), ("\x1b]0;title\x07shown", "shown"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"), ("\x1bP1$r0m\x1b\\after", "after"),
        ("\x1b(Bplain\x1b7\x1b8\x1b=", "plain"), ("cut off\x1b[3", "cut off"), ("cut off\x1b", "cut off"),
        ("\x1b]0;never ended\nnext line", "0;never ended\nnext line"), ("\x1b\x1b[0m[31mred", "[31mred"),
        ("one\x1b\ntwo", "one\ntwo"), ("[31m is text", "[31m is text"),
    ],
)  # fmt: skip
def test_a_sequence_goes_as_a_whole_and_nothing_else(text: str, seen: str) -> None:
    assert as_seen(text) == seen


@given(st.text(alphabet="\x1b[]0;31mKP\\\x07 \na"))
def test_the_rests_of_sequences_do_not_form_a_new_one(text: str) -> None:
    assert "\x1b" not in as_seen(text)
    assert as_seen(as_seen(text)) == as_seen(text)


POLICY: dict[str, Any] = {"secrets": Redactor(), "policy": PostingPolicy()}
REDACTING: list[Callable[[str], str]] = [
    one_line,
    lambda text: sanitise(text, **POLICY).text,
    lambda text: sanitise_line(text, **POLICY).text,
    lambda text: summary_of(text, *POLICY.values()),
    lambda text: safe_line(text, *POLICY.values()),
]


@pytest.mark.parametrize(
    "write", [*REDACTING, inert, cell, code_block, mermaid_text, lambda text: sanitise_plain(text, **POLICY).text]
)
def test_no_summary_and_no_line_shows_half_a_sequence(write: Callable[[str], str]) -> None:
    text = write("\x1b[1;31mFAILED\x1b[0m tests \x1b[2K\x1b]0;t\x07run")
    assert "FAILED tests run" in text
    assert not {"\x1b", "\x07", "["} & set(text)


@pytest.mark.parametrize(
    "write",
    [
        *REDACTING,
        lambda text: sanitise(f"```\n{text}\n```", **POLICY).text,
        lambda text: summary_of(" " * 480 + "x" + text, *POLICY.values()),
    ],
)
def test_a_token_that_is_coloured_in_part_is_still_a_token(write: Callable[[str], str]) -> None:
    shown = write(f"it is {SPLIT}")
    assert "a1a1" not in shown
    assert "ghp" not in shown
