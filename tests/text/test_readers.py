"""A text is read as GitHub reads it: the same blocks, and the same code, tags, links and images inside of them."""

from __future__ import annotations

import os
import random

import pytest
from support.rotation import NIGHTLY
from support.rubble import PIECES, shortest
from support.structure import assert_same_blocks, assert_same_inlines, check_outline

from accord.text.block_syntax import read_definition, read_row
from accord.text.blocks import read_blocks
from accord.text.inlines import read_inlines

SEED = os.environ.get("ACCORD_FUZZ_SEED", "accord")
TEXTS = int(os.environ.get("ACCORD_FUZZ_TEXTS", "100000" if NIGHTLY else "600")) // 2

STARTS = (
    *("- ", "1. ", "> ", "\n", "\n", "\n\n", "    ", "  ", "\t", " \t", "```", "~~~", "- [ ] ", "1x [ ] ", "|", "-|-"),
    *("a|b\n", "===\n", "---\n", "***\n", "[a]: ", "(", '"x"', "# ", "[^1]: ", "\n[^1]: ", "<div>", "</div>", "<b>"),
    *("<!--", "-->", "+ ", "2) ", "10. ", "      ", "\n>", "\n- ", "\r", "\\|", ":-", "<?", "<![CDATA[", "<!X"),
)
INSIDE = (
    "`", "``", "`", "```", "[", "]", "](", "]()", "[a]", "](x)", "(", ")", "!", "![", "\\", "a", "b", "^", "\n", "<",
    "<b>", "</b>", "<!--", "-->", "<?", "?>", "<![CDATA[", "]]>", "<!A b", ">", "<a@b.c>", "<x:y>", "http://", "][",
    "https://a.b", "www.", "www.a.b", "_", ".", ";", "&amp;", '"x"', ' "', "'", " ", "-", "/", "*", "~", "\xe9", "|",
    "[a]: ", "&", "w", ":", "//", ")`", "?", "http://x`", "www.a`b", " [a](b)", "][a]", "[]", "](<", "\u2014", "\xa0",
)  # fmt: skip


@pytest.mark.slow
def test_random_texts_have_the_same_blocks() -> None:
    source = random.Random(SEED)
    pieces = (*PIECES, *STARTS, *STARTS)
    for _ in range(TEXTS):
        text = "".join(source.choices(pieces, k=source.choice((3, 5, 8, 12, 20)))).replace("\0", "")
        if assert_same_blocks(text):
            text = shortest(text, lambda shorter: assert_same_blocks(shorter) is not None)
            pytest.fail(f"{text!r}: {assert_same_blocks(text)}")


ORDINARY = (
    "# A", "## B", "### C #", "A\n===", "two\nlines\n---", "- a", "- [ ] b", "- [x] c", "* [X] d", "1. [ ] e", "2) f",
    "  - [ ] g", "    - [x] h", "- [ ]", "- [ ] ", "-", "-\t[ ]\ti", "+ [x]  j", "1. - [ ] k", "10. l", "* * [ ] m",
    "```", "```py", "~~~", "    code", "\tcode", "      deep", "> q", "> - [ ] r", "> # H", "> ```", "text", "  lazy",
    "| a | b |", "|---|---|", "| 1 | - [ ] |", "<div>", "</div>", "<!--", "-->", "<!-- c -->", "<b>x</b>", "---", "***",
    "`code`", "`- [ ] x`", "", "", "", "[ ] y", "\\[ ] z", "<pre>", "</pre>", "    # I", "#no", "- # J", "- ```",
)  # fmt: skip


@pytest.mark.parametrize("texts", [300, pytest.param(20_000, marks=pytest.mark.matrix)])
def test_random_texts_have_the_same_tasks_sections_and_code(texts: int) -> None:
    source = random.Random(SEED)
    for _ in range(texts):
        pieces = source.choices(ORDINARY, k=source.choice((3, 5, 8, 12, 20)))
        text = "".join(piece + source.choice(("\n", "\n", "\n", "\n\n", "\r\n", "\r", "")) for piece in pieces)
        if problem := check_outline(text) or assert_same_blocks(text):
            text = shortest(text, lambda shorter: bool(check_outline(shorter) or assert_same_blocks(shorter)))
            pytest.fail(f"{text!r}: {check_outline(text)} {assert_same_blocks(text)} {problem}")


@pytest.mark.slow
def test_random_paragraphs_have_the_same_parts() -> None:
    source = random.Random(SEED)
    for _ in range(TEXTS):
        text = "p " + "".join(source.choices(INSIDE, k=source.choice((3, 5, 8, 12, 20)))) + "\n\n[a]: /u"
        if "[^" not in text and assert_same_inlines(text):
            pytest.fail(f"{text!r}: {assert_same_inlines(text)}")


@pytest.mark.parametrize(
    ("text", "kinds"),
    {
        "a\n    b": ["paragraph"], ">|`\n-|-\n|`@c`": ["paragraph"], ">\n    >```\n><b>": ["code", "html"],
        " 11. \n     * r\n    + @c": ["paragraph"], "- a\n\n  1x [ ] b": ["paragraph", "paragraph"],
        "[a]: /u\nb\n-": ["heading"], "[a]: /u\n===": ["paragraph"], "[a]: /u\nb | c\n-|-": ["paragraph", "table"],
        "a \\| b\nc | d\n-|-\n<b>": ["paragraph", "table", "html"], "- a\n***\n    b": ["paragraph", "rule", "code"],
        "```\n```\n~~~ `\n": ["fence", "fence"], "``` `\n": ["paragraph"],
        "`" * 300 + "\n" + "`" * 255 + "\na": ["fence", "paragraph"],
        "[^a]: b\n\n    c\n\n\td\n\ne": ["paragraph", "paragraph", "paragraph", "paragraph"],
        "<pre>\n\n</pre>\na": ["html", "paragraph"], "# a #\n#b": ["heading", "paragraph"], ">\t\ta": ["code"],
        "-\t\ta": ["code"], "": [],
    }.items(),
)  # fmt: skip
def test_a_text_consists_of_these_blocks(text: str, kinds: list[str]) -> None:
    assert [block.kind for block in read_blocks(text).leaves] == kinds
    assert assert_same_blocks(text) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    {
        "`a` ``b`c``": ["`a`", "``b`c``"], "``` `` a `` ` `b`": ["`` a ``", "` `"],
        "[a](b) [c][A] [c]": ["[a](b)", "[c][A]"], "[a [b](c) d](e)": ["[b](c)"],
        "![a [b](c)](d)": ["![a [b](c)](d)", "[b](c)"], "http://x` [a](b)`": ["http://x`", "[a](b)"],
        "[http://x` a](b)`": ["` a](b)`"], "www.a.b`c` `d`": ["www.a.b`c`", "`d`"],
        "(http://x/(a).), [http://y] xhttp://z www.a": ["http://x/(a)", "www.a"],
        "<!-- a --- b --> <?c??>": ["<!-- a --- b -->"], "<!-- a --->": [], "[^a `b`] `c`": ["`c`"],
        "[\\^a `b`] [&#94;a `b`] `c`": ["`c`"], '[a](<b c> "d") [b](b c)': ['[a](<b c> "d")'], "\\`a` b`": ["` b`"],
        "http://\xe9_!) http://a_!": ["http://\xe9"],
    }.items(),
)  # fmt: skip
def test_a_paragraph_has_these_parts(text: str, parts: list[str]) -> None:
    assert [text[span.start : span.end] for span in read_inlines(text, {"a": "/u"})] == parts


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("[a]: b\n", "b"), ("[a]:\n<b c>\n'd'\n", "b c"), ("[a]: b (c\n", None), ("[a]: b\n(c\n", "b"),
        ("[a]: javascript:(\n", "javascript:("), ("[a]: b 'c' d\n", None), ("[ ]: b\n", None), ("[a]:\n", None),
        (f"[{'a' * 1001}]: b\n", None),
    ],
)  # fmt: skip
def test_a_definition_leads_there(text: str, address: str | None) -> None:
    found = read_definition(text, 0)
    assert (found.address if found else None) == address


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("| a | b |\n", ["a", "b"]), ("a\\|b | c\n", ["a\\|b", "c"]), ("a \\\\| b\n", ["a \\\\| b"]), ("||\n", [""]),
        ("a\nb|c\n", ["b", "c"]), ("\n", None),
    ],
)  # fmt: skip
def test_a_row_has_these_cells(text: str, cells: list[str] | None) -> None:
    row = read_row(text)
    assert (row and [text[start:end].strip() for start, end in row.cells]) == cells
