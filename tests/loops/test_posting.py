"""An agent's text is posted without mentions, commands or markers, and always fits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.loops.follow_up import Verdict
from accord.loops.texts import Poster
from accord.loops.verify import verdict_comment
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

SECRET = "correct-horse-battery-staple"
POST = Poster(Redactor((SECRET,)), PostingPolicy())
GROWS = ["@a ", "closes #1 ", "<b>", "`<!-- accord:x y=1 -->` ", "/merge\n", "# a\n", "[a](b) ", "|", "é", "```\n"]


@pytest.mark.parametrize("part", GROWS)
def test_no_text_grows_beyond_what_github_takes(part: str) -> None:
    assert len(POST.text(part * 20_000, 4_000)) <= 8_000
    assert len(POST.line(part * 5_000, 200)) <= 200


@pytest.mark.slow
@settings(max_examples=60)
@given(st.text(alphabet="@a`<!->#1 \n|closed/", max_size=120), st.integers(10, 60))
def test_a_cut_text_is_as_safe_as_a_whole_one(text: str, characters: int) -> None:
    made = POST.text(text, characters)
    assert len(made) <= 2 * characters
    assert POST.text(made, 2 * characters) == made


def test_no_half_of_a_secret_is_left_where_a_text_is_cut() -> None:
    assert "correct" not in POST.text("x" * 90 + SECRET, 100)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["|", "@a "])
def test_a_verdict_of_any_length_fits_a_comment(part: str) -> None:
    rows = [{"number": n, "met": "yes", "evidence": part * 300} for n in range(1, 101)]
    verdict = Verdict.model_validate(
        {"role": "verifier", "verdict": "pass", "summary": part * 1000, "criteria": rows, "follow_up": None}
    )
    text = verdict_comment(verdict, [part * 300] * 100, "a" * 40, 7, POST)
    assert len(text) < 65_000
    assert "more criteria were judged." in text
