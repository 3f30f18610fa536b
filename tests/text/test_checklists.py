"""A task is where GitHub shows a box, and ticking one changes one character."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.structure import check_outline

from accord.text.outline import tasks, with_ticks, without_ticks


def boxes(text: str) -> list[tuple[str, bool, int]]:
    return [(task.text, task.is_checked, task.line) for task in tasks(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- [ ] a", [("a", False, 1)]), ("* [x] a", [("a", True, 1)]), ("+ [X] a", [("a", True, 1)]),
        ("1. [ ] a", [("a", False, 1)]), ("2) [x] a", [("a", True, 1)]), ("-\t[ ]\ta", [("a", False, 1)]),
        ("- a\n  - [ ] b\n    1. [x] c", [("b", False, 2), ("c", True, 3)]), ("words\n- [ ] a", [("a", False, 2)]),
        ("- [ ] \n  a", [("a", False, 1)]), ("- [ ] a [x]", [("a [x]", False, 1)]),
        ("- [ ] a\n\n  - [x] b", [("a", False, 1), ("b", True, 3)]), ("- [ ] a | b\n  -|-", [("a b", False, 1)]),
        ("- [ ] # a", [("# a", False, 1)]), ("- [ ] \n- [ ] [a]: /u", [("", False, 1), ("", False, 2)]),
        ("- [ ] a\n  b\nc", [("a b c", False, 1)]),
        ("a\r\n\r\n- [ ] b\r\n- [x] c\r", [("b", False, 3), ("c", True, 4)]),
        ("<details>\n\n- [ ] a\n\n</details>", [("a", False, 3)]),
        ("- [ ] a\n- [ ] a", [("a", False, 1), ("a", False, 2)]),
        ("- [ ] `- [x] b` **c**", [("`- [x] b` **c**", False, 1)]),
        ("- [ ] a <!-- hidden\n  - [ ] b --> c", [("a <!-- hidden", False, 1), ("b --> c", False, 2)]),
        ("- [ ] a <!-- hidden --> b `<!-- code -->`", [("a b `<!-- code -->`", False, 1)]),
        ("- [ ] `<!-- code -->` a", [("`<!-- code -->` a", False, 1)]), ("- [ ] <!-- open", [("<!-- open", False, 1)]),
    ],
)  # fmt: skip
def test_every_box_that_github_shows_is_a_task(text: str, expected: list[tuple[str, bool, int]]) -> None:
    assert boxes(text) == expected
    assert check_outline(text) is None


CODERABBIT = "<!-- This is an auto-generated comment: {} by coderabbit.ai -->"
DASHBOARD = "- [ ] <!-- approve-branch=renovate/jest-30.x -->Update jest"


@pytest.mark.parametrize(
    "text",
    [
        "- [ ] <!-- hidden -->",
        "- [ ] <!-- rebase-check -->If you want to rebase this PR, check this box",
        "- [ ]  <!-- rebase-check --> **If** you want to rebase",
        f"## Pending\n\n{DASHBOARD}\n- [ ] <!-- approve-all-pending-prs -->🔐 **Create all**",
        '- [x] <!-- {"checkboxId": "7962f53c"} --> 📝 Generate docstrings',
        f"{CODERABBIT.format('release notes')}\n\n- [ ] a\n\n{CODERABBIT.format('x').replace('This is an', 'end of')}",
        "[//]: # (dependabot-start)\r\n\r\n- [ ] a\r\n\r\n[//]: # (dependabot-end)\r\n",
        "<!-- release-please -->\n\n1. [ ] a\n\n   - [ ] b\n\n<!-- /release-please -->\n",
        "words <!-- renovate_start -->\n\n- [ ] a\n\nwords <!-- renovate_end -->",
    ],
)  # fmt: skip
def test_the_box_of_a_bot_is_a_button_and_not_a_task(text: str) -> None:
    assert boxes(f"- [ ] Adapt x <!-- id:12 -->\n- [x] Write y\n\nwords\n\n{text}\n\nwords\n\n- [ ] last") == [
        ("Adapt x", False, 1), ("Write y", True, 2), ("last", False, 6 + text.count("\n") + 4),
    ]  # fmt: skip
    assert without_ticks(text) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<!-- accord:criteria -->", "<!-- accord:criteria-end -->"), ("<!-- tasks:start -->", "<!-- tasks:end -->"),
        ("<!--renovate-debug:eyJ-->", ""), ("", "<!-- renovate-end -->"), ("`<!-- renovate -->`", "<!-- /renovate -->"),
        ("<!-- coderabbit -->", "<!-- dependabot-end -->"), ("<!-- renovate -->", "<!-- recommended by renovate -->"),
    ],
)  # fmt: skip
def test_a_box_between_other_comments_is_a_task(before: str, after: str) -> None:
    assert [text for text, *_ in boxes(f"{before}\n\n- [ ] a\n\n{after}\n")] == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        "[ ] a", "- [] a", "- [y] a", "- [ ]", "- [ ]\n  a", "- - [ ] a", "> - [ ] a\n> - [x] b",
        "> [!NOTE]\n> > 1. [ ] a", "- [ ]a", "- [ ](https://example.org)", "- [x]: https://example.org", "- a [ ] b",
        "-\n  [ ] a", "- a\n\n  [ ] b", "- \xa0[ ] a", "- # [ ] a", "- \\[ ] a", "    - [ ] a", "```\n- [ ] a\n```",
        "~~~~md\n- [ ] a\n~~~\n", "- text\n\n      - [ ] a", "<!--\n- [ ] a\n-->", "<!-- never closed\n\n- [ ] a",
        "<details>\n- [ ] a\n</details>", "| a |\n| --- |\n| - [ ] b |", "a paragraph\n2. [ ] a",
    ],
)  # fmt: skip
def test_text_without_a_box_on_github_is_not_a_task(text: str) -> None:
    assert tasks(text) == ()
    assert check_outline(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- [ ] a\n- [ ] a\n", "- [ ] a\n- [x] a\n"),
        ("[ ]\r\n\r\n 1) [ ] [ ]\r\n 2) [ ] b\0  \r\n", "[ ]\r\n\r\n 1) [ ] [ ]\r\n 2) [x] b\0  \r\n"),
        ("\t\n- x\n\n\t*\t[ ] [ ] a\n", "\t\n- x\n\n\t*\t[x] [ ] a\n"),
    ],
)
def test_ticking_a_task_changes_the_box_of_that_very_task(text: str, expected: str) -> None:
    assert with_ticks(text, tasks(text)[-1:]) == expected


def test_an_open_text_has_only_open_boxes_and_the_same_code() -> None:
    text = "- [x] a\n  - [X] b [x]\n\n```\n- [x] c\n```\n"
    assert without_ticks(text) == text.replace("[x] a", "[ ] a").replace("[X]", "[ ]")


MARKS = ["- ", "* ", "1. ", "> ", "[ ] ", "[x] ", "[X]\t", "# ", "| ", "```\n", "`", "<!--", "-->"]
BLANKS = ["\n", "\r\n", "\r", "\n\n", "  ", "\t", "\0", "\u2028", "\xa0"]
PIECES = st.sampled_from([*MARKS, *BLANKS, "a", "é"])


@pytest.mark.slow
@given(st.lists(PIECES, max_size=30).map("".join), st.data())
def test_ticking_changes_marks_and_nothing_else(text: str, data: st.DataObject) -> None:
    found = tasks(text)
    chosen = data.draw(st.lists(st.sampled_from(found), unique=True)) if found else []
    after = with_ticks(text, chosen)
    marks = {task.mark for task in chosen if not task.is_checked}
    assert {i for i, (old, new) in enumerate(zip(text, after, strict=True)) if old != new} == marks
    assert tuple(replace(task, is_checked=task.is_checked or task in chosen) for task in found) == tasks(after)


@given(st.text())
def test_no_text_is_too_odd_to_be_looked_through(text: str) -> None:
    for task in tasks(text):
        assert text[task.mark - 1 : task.mark + 2] in ("[ ]", "[x]", "[X]")


def test_a_text_that_was_edited_meanwhile_is_not_ticked_at_all() -> None:
    with pytest.raises(ValueError, match="line 1"):
        with_ticks("words\n- [ ] a", tasks("- [ ] a"))
