"""Code spans and comments of a paragraph: a text about a tick, a setting or a keyword has no effect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import grows_too_fast

from accord.text.outline import spans


@pytest.mark.parametrize(
    ("content", "kinds"),
    [
        ("", []),
        ("plain", [("text", "plain")]),
        ("a `b` c", [("text", "a "), ("code", "`b`"), ("text", " c")]),
        ("``a ` b`` c", [("code", "``a ` b``"), ("text", " c")]),
        ("a ` b", [("text", "a ` b")]),
        ("`` a `b`", [("text", "`` a "), ("code", "`b`")]),
        ("`<!-- a -->` b", [("code", "`<!-- a -->`"), ("text", " b")]),
        ("<!-- `a --> b` c", [("comment", "<!-- `a -->"), ("text", " b` c")]),
        ("a <!--> b --> c", [("text", "a "), ("comment", "<!-->"), ("text", " b --> c")]),
        ("<!---> a", [("comment", "<!--->"), ("text", " a")]),
        ("a <!-- b `c`", [("text", "a <!-- b "), ("code", "`c`")]),
        ("<b title='`'>`c`", [("text", "<b title='`'>"), ("code", "`c`")]),
        ("[a](`b) `c`", [("text", "[a](`b) "), ("code", "`c`")]),
        ("a\n<!-- b\nc -->", [("text", "a\n"), ("comment", "<!-- b\nc -->")]),
    ],
)
def test_code_and_comments_are_decided_from_left_to_right(content: str, kinds: list[tuple[str, str]]) -> None:
    assert list(spans(content)) == kinds


@pytest.mark.slow
@given(st.text(alphabet="ab`<!-> \n", max_size=60))
def test_the_parts_are_the_whole_and_none_is_empty(content: str) -> None:
    parts = list(spans(content))
    assert "".join(part.text for part in parts) == content
    assert all(part.text for part in parts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["`", "`a", "`a``b```c", "<!--", "<!-- -->", "-->`", "".join("`" * n + "a" for n in range(300))]
)
def test_a_text_made_to_be_slow_is_not(part: str) -> None:
    assert not grows_too_fast(lambda size: list(spans(part * (size // len(part)))), 200_000)
