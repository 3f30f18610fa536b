"""Anything is fit to be posted in a time that its length explains."""

from __future__ import annotations

import pytest
from support.growth import grows_too_fast
from support.hostile import HOSTILE
from support.rotation import NIGHTLY, some

from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.sanitise import sanitise

PIECES = (
    "\n", "@a", "fix ", "fix #1 ", "fix [", "[a]: /x\n", "![a](https://x.test) ", "[![a](https://x.test)](/y) ",
    '<a href="https://x.test">', '<img src="https://x.test">', "<b>", "<!--", "[^1]: x\n", "https://a.b/[c](d) ",
    "https://a`b`", "a|b\n-|-\n", "| a ", "> ", "  - ", "&#64;", "\\", "**", "[", "](", "\u200b", "@\u2060", "www.a@",
    "<div>\n\n", "x\n<b>\n", "[x]:(\n\n", "`` `a` ", "/a\n", "[fix](https://github.com/o/r/issues/1) ",
    "[](", "[a](\\(", "<div>|\n-|\n`@c`\n\n", "> x\n<b>\n~~~@a\n~~~\n\n", "x\n-|\n<b>\n~~~@a\n~~~\n\n", "<div>\n\n> ",
    "[^a b] ", "fix issue*s* ", "duplicate of ", "[](/issues/1)", '"\n/a\n',
    '<a href="//x">', '<a href="//x">' * 130 + "</a>", '<a href="//x">' * 130 + "`a`</a>", "@a\\~www.", "&#64;(www.",
)  # fmt: skip
ROUNDS = "x " + "<!-" * 7 + "<!-- x -->" + "- x -->" * 7 + "\n\n"
"""Comments within comments, of which each round takes out one."""

STARTS = (
    ("[", "\ufe0f](//a"), ("[", "](//a&"), ("<div>", "<!--"), ("<b>" * 3500, "</i>"), ("", "\ufe0f[a](\\(`[a"),
    ("", "`\ufe0f\ufe0e`[](//a"), ("- " * 100 + "a\n", "\n"), ("- " * 18 + "<b>\n", "\n"), (ROUNDS, "# @aaaaaaaaa\n"),
)  # fmt: skip
"""Texts that are slow behind this beginning."""

TEXTS = [f"{text}\n\n" for text, _ in list(HOSTILE.values())[:: 5 if NIGHTLY else 20]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "piece"),
    some([*STARTS, *(("", piece) for piece in PIECES), *(("", text) for text in TEXTS)], 8),
)
def test_no_text_takes_longer_than_its_length_explains(start: str, piece: str) -> None:
    def sanitised(size: int) -> str:
        return sanitise(start + piece * ((size - len(start)) // len(piece)), secrets=Redactor(), policy=PostingPolicy())

    assert not grows_too_fast(sanitised, 65_536)
