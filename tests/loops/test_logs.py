"""Of a log, what a person would scroll to: the error and the end of the failing step, without colours and secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import grows_too_fast

from accord.loops.checks import PART_CHARACTERS, failing_part
from accord.text.redaction import Redactor

TOKEN = "ghp_" + "a1B2" * 9


def log(*lines: str) -> str:
    return "".join(f"2026-11-01T12:00:{n % 60:02}.1234567Z {line}\n" for n, line in enumerate(lines))


ENDING = ("##[error]Process completed with exit code 1.", "Post job cleanup.", "[command]/usr/bin/git version")


def test_the_error_is_shown_and_what_tidies_up_behind_it_is_not() -> None:
    found = failing_part(log("##[group]Run pytest", "collected 2", "E   assert 1 == 2", "1 failed", *ENDING), str)
    assert found == "collected 2\nE   assert 1 == 2\n1 failed"


def test_colours_times_and_overwritten_progress_are_gone() -> None:
    found = failing_part(log("\x1b[31mError: no\x1b[0m", "10%\r20%\r100%", "\x1b]0;title\x07end"), str)
    assert found == "Error: no\n100%\nend"


def test_an_error_far_before_the_end_is_shown_with_the_end() -> None:
    found = failing_part(
        log(*["ok"] * 50, "Traceback (most recent call last):", "KeyError: 'x'", *["noise"] * 5000, *ENDING), str
    )
    assert "KeyError: 'x'" in found
    assert found.endswith("noise")
    assert "[…]" in found


def test_the_last_of_several_errors_counts() -> None:
    found = failing_part(log("error: first", *["x" * 90] * 200, "error: second", *ENDING), str)
    assert "second" in found
    assert "first" not in found


def test_a_secret_is_taken_out_before_anything_is_cut_even_when_colours_split_it() -> None:
    split = TOKEN[:10] + "\x1b[1m" + TOKEN[10:]
    found = failing_part(log(f"error: {split}", "value correct-horse"), Redactor(("correct-horse",)))
    assert TOKEN[:10] not in found
    assert "correct-horse" not in found


@pytest.mark.parametrize("text", ["\x1b[" * 200_000, "\r" * 400_000, "#" * 400_000, "a\r" * 200_000, "2026-" * 80_000])
def test_a_hostile_log_is_read_in_linear_time(text: str) -> None:
    assert len(failing_part(text, str)) <= PART_CHARACTERS
    assert not grows_too_fast(lambda size: failing_part(text[:size], str), len(text))


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(["error: x", "ok", "x" * 700, "", ENDING[0], "##[group]a"]), max_size=60),
    st.integers(50, 900),
)
def test_a_part_is_never_longer_than_asked_for(lines: list[str], characters: int) -> None:
    assert len(failing_part(log(*lines), str, characters=characters)) <= characters
