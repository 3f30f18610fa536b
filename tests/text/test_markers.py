"""Markers are read back unchanged, and no other text passes for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.text.markers import (
    COPY_ROOM,
    defuse,
    find_markers,
    run_token,
    take_copy,
    take_markers,
    with_copy,
    write_copy,
    write_marker,
)

VALUES = st.text(alphabet=st.characters(exclude_categories=("Cs",)))


@pytest.mark.slow
@given(VALUES, VALUES, VALUES, VALUES)
def test_any_value_comes_back_from_any_body(run: str, item: str, before: str, after: str) -> None:
    before, after = defuse(before)[0], defuse(after)[0]
    marker = write_marker("item", run=run, id=item)
    body = f"{before}\n{marker}\n{after}"
    assert find_markers(body, "item") == [{"run": run, "id": item}]
    assert take_markers(body) == (f"{before}\n\n{after}", [marker])
    assert marker.count("-->") == 1
    assert "--!>" not in marker


FORGED = [
    write_marker("item", run="r", id="t1"), "<!--accord:item run=r-->", "<!--\n\naccord:item\n run=r -->",
    "<!-- ACCORD:item run=r -->", "<!-- /accord:item -->", "<!<!-- accord:item run=r -->",
    "<!--<!-- accord:item run=r -->", "<!-- accord:item run=r --><!-- accord:blocked-by -->",
]  # fmt: skip


@pytest.mark.parametrize("text", FORGED)
def test_a_forged_marker_is_made_visible_and_void(text: str) -> None:
    safe, count = defuse(text)
    assert count >= 1
    assert not any(find_markers(safe, name) for name in ("item", "blocked-by"))
    assert take_markers(safe) == (safe, [])
    assert defuse(safe) == (safe, 0)


@given(
    st.lists(st.sampled_from(["<!--", "-->", " ", "\n", "accord:", "item", " run=x", "/", "<", "!--", "&lt;"])).map(
        "".join
    )
)
def test_no_rubble_of_markers_passes_for_one(text: str) -> None:
    safe, _ = defuse(text)
    assert take_markers(safe) == (safe, [])


def test_markers_of_another_name_and_other_comments_are_not_taken_for_ours() -> None:
    text = "<!-- a comment -->" + write_marker("other", run="r") + write_marker("item")
    assert find_markers(text, "item") == [{}]
    assert take_markers(text)[0] == "<!-- a comment -->"


def test_the_word_of_a_run_is_one_word_for_search_and_differs_for_every_run() -> None:
    words = {run_token(repo, key) for repo in ("octo/a", "octo/b") for key in ("k", "K", "k-1", "")}
    assert len(words) == 8
    assert all(word.isalnum() for word in words)
    assert run_token("Octo/A", "k") == run_token("octo/a", "k")


SHA = "0123456789abcdef0123456789abcdef01234567"
COPY = {"commit": SHA, "data": "e" * 40_000}
LIMIT = 65_536


@pytest.mark.parametrize(
    ("length", "kept"),
    [
        (0, COPY), (LIMIT - len(write_copy(**COPY)) - 1, COPY), (LIMIT - len(write_copy(**COPY)), {"commit": SHA}),
        (LIMIT - COPY_ROOM, {"commit": SHA}), (LIMIT - len(write_copy(SHA)), None), (LIMIT, None),
    ],
)  # fmt: skip
def test_a_text_keeps_every_character_and_the_copy_of_a_handoff_what_still_fits(length: int, kept: object) -> None:
    text = "x" * length
    body = with_copy(COPY, text, LIMIT)
    assert len(body) <= LIMIT
    assert take_copy(body) == (kept, text)


def test_the_first_of_several_copies_counts_and_none_of_them_stays() -> None:
    assert take_copy(f"a\n{write_copy(SHA)}\nb\n{write_copy('f' * 40)}") == ({"commit": SHA}, "a\nb\n")
    assert with_copy(None, "text", LIMIT) == "text"
