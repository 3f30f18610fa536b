"""The copy of a handoff in a body: it keeps its place while it fits, and gives way to other text."""

import pytest

from accord.github.limits import BODY_CHARS
from accord.github.markers import COPY_ROOM, take_copy, with_copy, write_copy

SHA = "0123456789abcdef0123456789abcdef01234567"
COPY = {"commit": SHA, "data": "e" * 40_000}


@pytest.mark.parametrize(
    ("length", "kept"),
    [
        (0, COPY),
        (BODY_CHARS - len(write_copy(**COPY)) - 1, COPY),
        (BODY_CHARS - len(write_copy(**COPY)), {"commit": SHA}),
        (BODY_CHARS - COPY_ROOM, {"commit": SHA}),
        (BODY_CHARS - len(write_copy(SHA)), None),
        (BODY_CHARS, None),
    ],
)
def test_a_text_keeps_every_character_and_the_copy_what_still_fits(length: int, kept: object) -> None:
    text = "x" * length
    body = with_copy(COPY, text)
    assert len(body) <= BODY_CHARS
    assert take_copy(body) == (kept, text)


def test_the_first_of_several_copies_counts_and_none_of_them_stays() -> None:
    assert take_copy(f"a\n{write_copy(SHA)}\nb\n{write_copy('f' * 40)}") == ({"commit": SHA}, "a\nb\n")
    assert with_copy(None, "text") == "text"
