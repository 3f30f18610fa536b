"""What of a paragraph is code, what a comment, and what is said: inline Markdown, split as CommonMark reads it.

From left to right, so that a comment in code is code, and code in a comment a comment. Linear in the length, whatever
the text is made of.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENING = re.compile(r"`+|<!--(?:-?>)?")
_COMMENT = ("<!--", "-->")


class Span(NamedTuple):
    """A part of a paragraph as it is written, marks included; ``open`` is a comment that nothing ends."""

    kind: Literal["text", "code", "comment", "open"]
    text: str

    @property
    def comment(self) -> str:
        """What a comment says."""
        return self.text.removeprefix(_COMMENT[0]).removesuffix(_COMMENT[1])


def spans(content: str) -> Iterator[Span]:
    """Split the content of one paragraph, heading or cell; the parts together are the content again.

    Source: CommonMark 0.31, "Code spans" and "Raw HTML". GitHub shows a comment that nothing ends as text.
    """
    done = place = 0
    endless: set[str] = set()
    while opening := _OPENING.search(content, place):
        found = _ended(content, opening, endless)
        if found is None:
            place = opening.end()
            continue
        if done < opening.start():
            yield Span("text", content[done : opening.start()])
        yield found
        done = place = opening.start() + len(found.text)
    if done < len(content):
        yield Span("text", content[done:])


def _ended(content: str, opening: re.Match[str], endless: set[str]) -> Span | None:
    """Find the end of what begins here; None for backticks without an end, which are text, and so are all so many."""
    begin, mark = opening.start(), opening.group()
    if mark in endless:
        return None
    if mark.startswith("`"):
        closing = re.compile(f"(?<!`){mark}(?!`)").search(content, opening.end())
        if closing is None:
            endless.add(mark)
            return None
        return Span("code", content[begin : closing.end()])
    if mark != _COMMENT[0]:
        return Span("comment", mark)
    end = content.find(_COMMENT[1], opening.end())
    return Span("open", content[begin:]) if end < 0 else Span("comment", content[begin : end + len(_COMMENT[1])])
