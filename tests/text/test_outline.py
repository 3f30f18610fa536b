"""Structure is what GitHub would show as structure; text about structure is only text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import grows_too_fast

from accord.text.outline import ListItem, code_free_text, plain_text, sections, tasks


def outline(text: str) -> list[tuple[int, str, int]]:
    return [(section.level, section.title, section.line) for section in sections(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\ntext\n## B\n", [(1, "A", 1), (2, "B", 3)]), ("A\n=\n\nB\n---\n", [(1, "A", 1), (2, "B", 4)]),
        ("# A\r\n\r\n## B\r\n", [(1, "A", 1), (2, "B", 3)]), ("# A\r\r## B\r", [(1, "A", 1), (2, "B", 3)]),
        ("#A\n####### B\n", []), ("   # A #\n", [(1, "A", 1)]), ("    # A\n", []),
        ("```\n# A\n```\n# B", [(1, "B", 4)]), ("~~~~ md\n# A\n~~~\n# B\n~~~~\n", []), ("> # A\n\n# B", [(1, "B", 3)]),
        ("<!--\n# A\n-->\n# B", [(1, "B", 4)]), ("- # A\n\n# B", [(1, "B", 3)]),
        ("# A <!-- hidden -->\n", [(1, "A", 1)]), ("#   Acceptance \t Criteria  \n", [(1, "Acceptance Criteria", 1)]),
        ("```\n# never closed\n\n## nor this", []),
    ],
)  # fmt: skip
def test_a_heading_counts_only_where_github_shows_one(text: str, expected: list[tuple[int, str, int]]) -> None:
    assert outline(text) == expected


def test_a_section_knows_under_which_heading_it_stands() -> None:
    found = sections("# A\n## B\n### C\n## D\n# E\n")
    assert [(section.title, section.parent) for section in found] == [
        ("A", ""), ("B", "A"), ("C", "B"), ("D", "A"), ("E", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("", ""), ("<!-- only a comment -->", ""), ("words <!-- hidden --> more", "words  more"),
        ("<!-- never closed\nwords", ""), ("```\n<!-- shown -->\n```", "<!-- shown -->"), ("> quoted", "quoted"),
        ("\n\n \n", ""), ("- one\n- two", "one\ntwo"),
    ],
)  # fmt: skip
def test_a_section_that_shows_nothing_is_empty(body: str, text: str) -> None:
    (section,) = sections(f"# A\n\n{body}\n")
    assert section.text == text


def items(body: str) -> list[ListItem]:
    (section,) = sections(f"# A\n\n{body}\n")
    return section.items


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("- [ ] a\n- [x] b\n- [X] c\n- d", [("a", False, 1), ("b", True, 1), ("c", True, 1), ("d", None, 1)]),
        ("* [ ] a\n  1. [x] b\n     + c", [("a", False, 1), ("b", True, 2), ("c", None, 3)]),
        ("- [ ] a\n\n  more of a\n\n- [ ] b", [("a", False, 1), ("b", False, 1)]),
        ("> - [ ] quoted", []),
        ("```\n- [ ] code\n```", []),
        ("<!-- - [ ] hidden -->", []),
        ("- [ ]\n- [x]nothing\n- [y] z", [("[ ]", None, 1), ("[x]nothing", None, 1), ("[y] z", None, 1)]),
        ("- a <!-- hidden -->", [("a", None, 1)]),
    ],
)
def test_a_box_counts_only_where_github_shows_one(body: str, expected: list[tuple[str, bool | None, int]]) -> None:
    assert [(item.text, item.checked, item.depth) for item in items(body)] == expected


@pytest.mark.parametrize(("before", "count"), [("", 0), ("See[^1].\n\n", 1)])
def test_a_box_in_a_footnote_counts_if_a_text_refers_to_it(before: str, count: int) -> None:
    assert len(tasks(f"{before}[^1]: Later:\n\n    - [ ] Do it\n")) == count


def test_an_item_is_found_on_its_line() -> None:
    assert [item.line for item in items("- a\n\n- b\n  - c")] == [3, 5, 6]


MIXED = "text @a `@g`\n\n```sh\n@b\n```\n\n    @c\n\n<div>\n@d\n</div>\n\n> @e\n\n- @f\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_code_and_html_stay_byte_for_byte_while_text_changes(end: str) -> None:
    text = MIXED.replace("\n", end)
    changed = code_free_text(text, lambda line: line.replace("@", "(at)"))
    assert changed == text.replace("@a", "(at)a").replace("@e", "(at)e").replace("@f", "(at)f")


PIECES = st.lists(
    st.sampled_from(
        ["```", "~~~", "\n", "\r\n", "\r", "    ", "> ", "- ", "<!--", "-->", "<div>", "# ", "a", "\t", "\0"]
    )
    | st.text(max_size=5)
).map("".join)


@pytest.mark.slow
@given(PIECES)
def test_text_that_nothing_changes_is_not_changed(text: str) -> None:
    assert code_free_text(text, lambda line: line) == text


@pytest.mark.slow
@given(PIECES)
def test_any_text_has_sections_whose_lines_exist(text: str) -> None:
    count = len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    for section in sections(text):
        assert 1 <= section.line <= count
        for item in section.items:
            assert section.line <= item.line <= count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**a** `b*c` _d_ e_f 2 * 3", "a b*c d e_f 2 * 3"),
        ("[a *b*](https://example.org) ![c](d.png) <https://e.org>", "a b c https://e.org"),
        ("[a][b] \\*c\\* &amp; d\n\n[b]: /u", "a *c* & d"),
        ("# a\n\n```py\nb = c\n```\n\n| d | e |\n|---|---|", "a\nb = c\nd\ne"),
    ],
)
def test_plain_text_is_without_markup(text: str, expected: str) -> None:
    assert plain_text(text) == expected


@pytest.mark.parametrize(
    "part",
    [
        "- ", "> ", "1. a\n", "- [ ] `a <!--\n", "# a\n- b\n", "  - a\n\n", "> - a\n", "|a|\n|-|\n", "[a]: b\n",
        "```\n", "<b\n",
    ],
)  # fmt: skip
def test_an_outline_made_to_take_long_does_not(part: str) -> None:
    def read_outline(size: int) -> None:
        text = part * (size // len(part))
        assert all(section.text or not section.blocks for section in sections(text))
        assert all(task.mark for task in tasks(text))

    assert not grows_too_fast(read_outline, 60_000)


def test_a_text_goes_on_behind_blocks_that_are_nested_too_deep() -> None:
    assert outline(f"{'> ' * 60}a\n{'- ' * 60}b\n\n# C\n") == [(1, "C", 4)]
