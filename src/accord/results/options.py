"""Options with their trade-offs in a text without code: a list, headings, a table, or lines. Pure.

Source: workflow contracts, "Summary Content by Outcome" and "Refinement Issue Template": at least two options with
trade-offs, in a layout that is up to the author.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARK = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>[-*+\u2022](?=[ \t])|\(?\d{1,2}[.)]|\(?[A-Ha-h][.)]|\#{2,6}"
    r"|(?=[*_]{0,3}options?\b[ \t]*[*_]*[\w]\b)|[*_]{2}(?=\w)|[A-H](?=[:\uff1a]))[ \t]*(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_COUNT = re.compile(
    r"(?<![\w(])(?:\((?P<bracketed>[1-9a-h])\)|(?P<dotted>[1-9a-h])[.)](?=[ \t])|options?[ \t]+(?P<named>[1-9a-h])\b)",
    re.IGNORECASE,
)
_NAMED_LINE = re.compile(r"\w[^\n:\uff1a\u2013\u2014]{0,60}(?:[:\uff1a\u2013\u2014]|[ \t]-[ \t])[^\n]*\w")
_NEW_LINE = re.compile(r"<br ?/?>", re.IGNORECASE)
_ROW = re.compile(r"^[ \t]*\|([^\n]*)$", re.MULTILINE)
_RULE = re.compile(r"(?=[ \t|:]*-)[ \t|:-]+")
_NAME = re.compile(
    r"[*_]*(?:options?[ \t]+\(?[^\W_]\b\)?[*_]*[ \t]*[:\uff1a.)\u2013\u2014-]*"
    r"|\(?[^\W_]\)?[*_]*[ \t]*[:\uff1a.)\u2013\u2014-])[*_ \t]*",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"(?:[:\uff1a(\uff08\u2013\u2014\u2192,\uff0c\u3001;\uff1b.\u3002=\n]|->|[ \t]-[ \t]|[*_]{2}[ \t])[^\w\n]{0,8}\w"
)
"""The end of an option's name, and the beginning of the text about it."""

_CLAUSE = re.compile(r"[,;.!?\uff0c\u3001\u3002]\s*\w")
_ALTERNATIVE = re.compile(r"[)\uff09]\s+\w")
"""A remark in brackets with more behind it, as in "wait (a day) or mock it (hides faults)"."""

_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2}")
"""Two letters of a script without spaces between words: about one word."""

_LETTER = re.compile(r"\w")
_SENTENCE_WORDS = 4
"""A text of so many words may be more than a name."""


@dataclass(frozen=True)
class Options:
    """The options of a text. Not ``is_clear`` if the text has no structure that tells them apart."""

    found: tuple[str, ...]
    is_clear: bool = True


def has_trade_off(option: str) -> bool | None:
    """Return whether an option has a text beside its name; None for a sentence that may be both."""
    named = _NAME.match(option)
    text = option[named.end() :] if named else option
    words = sum(max(1, len(_UNSPACED.findall(word))) for word in text.split() if _LETTER.search(word))
    return True if _BREAK.search(text) else None if words >= _SENTENCE_WORDS else False


def labelled_options(text: str) -> Options:
    """Read the options of a text that has nothing else, in the clearest layout that gives at least two."""
    text = _NEW_LINE.sub("\n", text)
    rows, marked = _of_table(text), _marked(text)
    pieces = tuple(piece.strip() for piece in text.split(";") if _LETTER.search(piece))
    for found in (rows, marked, _counted(text), _of_lines(text), pieces):
        if len(found) > 1:
            return Options(found)
    if rows or marked:
        return Options((rows or marked)[:1])
    is_clear = not (_CLAUSE.search(text) or _ALTERNATIVE.search(text))
    return Options((text.strip(),) if _LETTER.search(text) else (), is_clear=is_clear)


def options_among(text: str) -> Options:
    """Read options out of a text that says other things too: a table, or a count such as Option 1 … Option 2."""
    text = _NEW_LINE.sub("\n", text)
    return Options(_of_table(text) or _counted(text))


def _pieces(text: str, starts: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return the text behind each mark, up to the next one."""
    ends = [*(start for start, _ in starts[1:]), len(text)]
    pieces = (text[begin:end].strip() for (_, begin), end in zip(starts, ends, strict=False))
    return tuple(piece for piece in pieces if _LETTER.search(piece))


def _marked(text: str) -> tuple[str, ...]:
    """Return each entry of a list, or each heading, with the text that belongs to it."""
    marks = list(_MARK.finditer(text))
    return _pieces(text, [mark.span() for mark in marks if _is_beside(mark, marks[0])])


def _is_beside(mark: re.Match[str], first: re.Match[str]) -> bool:
    """Return whether a mark begins an entry of the same list as the first one, or a heading of its level."""
    depth, first_depth = (len(each["indent"].expandtabs(4)) for each in (mark, first))
    is_heading = mark["mark"].startswith("#") and mark["mark"] != first["mark"]
    return _kind(mark["mark"]) == _kind(first["mark"]) and not is_heading and depth < first_depth + 2


def _kind(mark: str) -> str:
    sign = mark.lstrip("(")[:1]
    if not mark or mark in ("**", "__") or sign == "#":
        return mark[:1]
    return "number" if sign.isdigit() else "letter" if sign.isalpha() else "bullet"


def _counted(text: str) -> tuple[str, ...]:
    """Return the pieces of the longest count in a text, such as (a) … (b) … or Option 1 … Option 2 …."""
    best: list[tuple[int, int]] = []
    counts: dict[tuple[str, bool], list[tuple[int, int]]] = {}
    for hit in _COUNT.finditer(text):
        kind = hit.lastgroup or ""
        sign = hit[kind].lower()
        value = int(sign) if sign.isdigit() else ord(sign) - ord("a") + 1
        count = counts.setdefault((kind, sign.isdigit()), [])
        if value == len(count) + 1:
            count.append(hit.span())
            best = max(best, count, key=len)
    return _pieces(text, best)


def _of_table(text: str) -> tuple[str, ...]:
    """Return the rows of the first table, its head left out: the first cell with the others behind a colon."""
    rows = [match[1].rstrip().removesuffix("|") for match in _ROW.finditer(text)]
    rule = next((i for i, row in enumerate(rows) if _RULE.fullmatch(row)), -1)
    if rule < 0:
        return ()
    cells = [[cell.strip() for cell in row.split("|")] for row in rows[rule + 1 :]]
    return tuple(f"{row[0]}: {', '.join(filter(None, row[1:]))}" for row in cells if any(row))


def _of_lines(text: str) -> tuple[str, ...]:
    """Return the lines, if each has a name and a text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return tuple(lines) if all(map(_NAMED_LINE.match, lines)) else ()
