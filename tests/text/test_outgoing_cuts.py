"""A text that is too long is cut where nothing comes to life, and without losing a character."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.renderer import complaints
from support.rotation import NIGHTLY

from accord.text.markdown import in_fence, unfenced_text
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.sanitise import cut, sanitise

NO_SECRETS = Redactor()
PIECES = st.sampled_from(
    [
        *(
            "`@a`", "``fixes #1``", "word ", "\n", "\n\n", "```\n@b /merge\n```\n", "- ", "> ", "<b>", "</b>", "~",
            "````",
        ),
        *(
            "[x](https://h.t)", "    @c\n", "| a |\n|---|\n| `@d` |\n", "<details>\n\n", "</details>\n\n", "\\`", "é",
            "&amp;",
        ),
    ]
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=200 if NIGHTLY else 60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, min_size=5, max_size=60).map("".join), st.integers(40, 200))
def test_both_halves_do_nothing_and_make_up_the_text(text: str, room: int) -> None:
    text = sanitise(text, secrets=NO_SECRETS, policy=PostingPolicy()).text
    if len(text) > room:
        head, tail = cut(text, room)
        assert 0 < len(head) <= room
        assert len(unfenced_text(tail)) < len(unfenced_text(text))
        assert head + tail == text or unfenced_text(head) + unfenced_text(tail) == unfenced_text(text)
        assert complaints(head) == complaints(tail) == []
        assert complaints(f"{head}\n\n@") == complaints(f"{tail}\n\n@") == []


CUTS = {
    "after a paragraph": ("a" * 80 + "\n\n" + "b" * 80, "a" * 80 + "\n\n", "b" * 80),
    "after a word": ("a b " * 50, "a b " * 25, "a b " * 25),
    "a list of lines": ("- a\n" * 50, "- a\n" * 25, "- a\n" * 25),
    "not in a fence, if it can be helped": (
        "x\n\n" * 28 + "```\n@a\n\n\n@b\n@c @d @e @f\n```\n" + "y" * 99,
        "x\n\n" * 28,
        "```\n@a\n\n\n@b\n@c @d @e @f\n```\n" + "y" * 99,
    ),
    "a long log in a fence": (in_fence("@a b\n" * 40), in_fence("@a b\n" * 18), in_fence("@a b\n" * 22)),
    "a long span of code": (f"`{'@a ' * 60}`", in_fence("`" + "@a " * 30 + "@"), in_fence("a " + "@a " * 29 + "`")),
    "a word without an end": ("x" * 150, in_fence("x" * 92), in_fence("x" * 58)),
}


@pytest.mark.parametrize(("text", "head", "tail"), CUTS.values(), ids=CUTS)
def test_a_text_is_cut_here(text: str, head: str, tail: str) -> None:
    assert cut(text, 100) == (head, tail)


@pytest.mark.parametrize("mark", ["`" * 60 + "~" * 60, "```~~~" * 20])
def test_fences_in_the_way_make_the_head_shorter(mark: str) -> None:
    head, tail = cut(in_fence(mark + "\n@a" * 60), 100)
    assert len(head) <= 100
    assert complaints(head) == complaints(tail) == []
