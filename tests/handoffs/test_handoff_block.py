"""The hidden block: whatever is in it, the body around it stays as it is."""

import base64
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.handoffs import EVERYTHING, by, handoff

from accord.core.documents import MAX_BYTES
from accord.github.limits import BODY_CHARS
from accord.handoffs.plan import decide_move
from accord.handoffs.store import read_block, with_block
from accord.text.markers import take_copy
from accord.text.untrusted import visible_text

SHA = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40
bodies = st.lists(
    st.sampled_from(["text", "\n", "\r\n", "```", "<!-- note -->", "-->", "<!--", "<!-- accord:handoff -->", " ", "é"]),
    max_size=8,
).map("".join)


@pytest.mark.slow
@given(body=bodies, value=st.text(max_size=40))
def test_a_body_keeps_every_byte_and_the_block_every_value(body: str, value: str) -> None:
    task = handoff(note=value.encode("utf-8", "ignore").decode())
    whole = with_block(body, task, SHA)
    assert take_copy(whole)[1] == body
    assert read_block(whole) == (SHA, task)
    again = with_block(whole, handoff(note="-->"), OTHER)
    assert take_copy(again)[1] == body
    assert again.count("<!-- accord:handoff commit=") == 1


def test_no_value_ends_the_block_and_no_reader_of_the_page_sees_it() -> None:
    evil = handoff(note="--> <script>alert(1)</script> @everyone fixes #1 <!-- accord:handoff commit=" + OTHER)
    for body in ("Visible", "```\nopen fence", "<details>open"):
        whole = with_block(body, evil, SHA)
        head, _, rest = whole.partition("\n")
        assert head.count("-->") == 1
        assert head.endswith("-->")
        assert rest == body
        assert "script" not in head
        assert "accord" not in visible_text(whole)


def test_a_document_that_does_not_fit_leaves_the_commit_that_holds_it() -> None:
    body = "x" * (BODY_CHARS - 100)
    whole = with_block(body, handoff(), SHA)
    assert len(whole) <= BODY_CHARS
    assert read_block(whole) == (SHA, None)
    assert take_copy(whole)[1] == body


@pytest.mark.slow
def test_a_damaged_or_too_large_block_holds_nothing() -> None:
    whole = with_block("", handoff(), SHA)
    packed = base64.b64encode(zlib.compress(json.dumps({"a": "0" * MAX_BYTES}).encode(), 9)).decode()
    for body in (whole.replace("data=e", "data=f"), f"<!-- accord:handoff commit={SHA} data={packed} -->"):
        assert read_block(body) == (SHA, None)
    assert read_block("no block") is None
    assert read_block("<!-- accord:handoff commit=short data=x -->") is None


@pytest.mark.slow
def test_a_long_history_fits_into_a_body() -> None:
    task: dict[str, Any] = handoff("planning", **EVERYTHING)
    for number in range(25):
        for target in ("implementing", "review", "awaiting_human", "planning"):
            task = decide_move(task, target, by("human", f"2026-11-02T{number % 24:02}:00:00Z")).task
    assert read_block(with_block("A body", task, SHA)) == (SHA, task)
