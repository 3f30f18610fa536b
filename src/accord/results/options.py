"""Options with their trade-offs in a text without code: a list, headings, a table, lines, or a sentence. Pure.

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
_INLINE = re.compile(
    r"(?<![\w(])(?:\((?P<bracketed>[1-9a-h])\)|(?P<dotted>[1-9a-h])[.)](?=[ \t])|options?[ \t]+(?P<named>[1-9a-h])\b"
    r"|(?P<ordinal>first|second|third|fourth|one|another)[ \t]+(?:option|way|choice|alternative|possibility)\b)",
    re.IGNORECASE,
)
_ORDINALS = {"first": 1, "one": 1, "second": 2, "another": 2, "third": 3, "fourth": 4}
_EITHER = re.compile(r"(?i:\b(?:either|or|alternatively)\b)|;")
_NAMED_LINE = re.compile(r"\w[^\n:\uff1a\u2013\u2014]{0,60}(?:[:\uff1a\u2013\u2014]|[ \t]-[ \t])[^\n]*\w")
_NEW_LINE = re.compile(r"<br ?/?>", re.IGNORECASE)
_LINE_END = re.compile(r"\n(?:(\w)|([ \t]*(?:\n|[*_]{2}|\#)))")
_ROW = re.compile(r"^[ \t]*\|([^\n]*)$", re.MULTILINE)
_RULE = re.compile(r"(?=[ \t|:]*-)[ \t|:-]+")
_NAME = re.compile(
    r"[*_]*(?:options?[ \t]+\(?[^\W_]\b\)?[*_]*[ \t]*[:\uff1a.)\u2013\u2014-]*"
    r"|\(?[^\W_]\)?[*_]*[ \t]*[:\uff1a.)\u2013\u2014-])[*_ \t]*",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"(?:[:\uff1a(\uff08\u2013\u2014\u2192,\uff0c\u3001;\uff1b\u3002=\n]|->|[ \t]-[ \t]|[*_]{2}[ \t])[^\w\n]{0,8}\w"
)
_TRADE = re.compile(
    r"\b(?:but|however|al)?though\b|\b(?:but|however|while|whereas|which|because|since|costs?|costly|cheap\w*|simpl\w+|slow\w*"
    r"|fast\w*|quick\w*|safe\w*|risk\w*|break\w*|lo(?:ses?|ss)|needs?|requires?|keeps?|more|less|fewer|eas\w+|hard\w*"
    r"|complex\w*|cons?|pros?|advantage\w*|disadvantage\w*|downside\w*|drawbacks?|benefits?|trade-?offs?|effort"
    r"|expensive|delays?|extra|additional|without|hid(?:es|den)|wors[et]|better|best|good|bad|enough|price|waits?"
    r"|longer|later|clean\w*|fragile|robust|limit\w*|allows?|avoids?|prevents?|works?|fails?)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?\u3002](?:\s|\Z)|\n")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2}")
"""Two letters of a script without spaces between words: about one word."""

_LETTER = re.compile(r"\w")
_FEWEST_WORDS = 4
"""From so many words on, a text may say what no word above tells."""


@dataclass(frozen=True)
class Options:
    """The options of a text; ``rest`` is what is not part of one. Not ``is_clear`` if they could not be told apart."""

    found: tuple[str, ...]
    rest: str = ""
    is_clear: bool = True

    @property
    def without_trade_off(self) -> list[str]:
        """The options that surely name no trade-off."""
        return [option for option in self.found if has_trade_off(option) is False]

    @property
    def unclear(self) -> list[str]:
        """The options that may name a trade-off in words that are not known."""
        return [option for option in self.found if has_trade_off(option) is None]


def word_count(text: str) -> int:
    """Count the words of a text in any script."""
    return sum(max(1, len(_UNSPACED.findall(word))) for word in text.split() if _LETTER.search(word))


def has_trade_off(option: str) -> bool | None:
    """Return whether an option says more than its name; None for a text that may say it."""
    named = _NAME.match(option)
    text = option[named.end() :] if named else option
    if _TRADE.search(text) or _BREAK.search(text):
        return True
    if _UNSPACED.search(text):
        return word_count(text) >= _FEWEST_WORDS
    return None if word_count(text) >= _FEWEST_WORDS else False


def labelled_options(text: str) -> Options:
    """Read the options of a text that has nothing else, in the clearest layout that gives at least two."""
    text = _NEW_LINE.sub("\n", text)
    marked = _marked(text)
    for found in (
        _of_table(text),
        marked,
        tuple(piece.strip() for piece in _pieces(text, _chain(text))),
        _of_lines(text),
        _alternatives(text),
    ):
        if len(found) > 1:
            return Options(found)
    if marked:
        return Options(marked[:1])
    sentences = [part for part in _SENTENCE_END.split(text) if part.strip()]
    is_one = len(sentences) < 2 or len(_of_table(text)) == 1
    return Options((text.strip(),) if _LETTER.search(text) else (), is_clear=is_one)


def options_among(text: str) -> Options:
    """Read options out of a text that says other things too: a table, a count of marks, or a list with trade-offs."""
    text = _NEW_LINE.sub("\n", text)
    if rows := _of_table(text):
        return Options(rows, _ROW.sub("", text))
    marks = [mark for mark in _MARK.finditer(text) if _kind(mark["mark"]) not in ("heading", "bold")]
    starts = [(mark.start(), mark.end()) for mark in marks if _kind(mark["mark"]) != "bullet"]
    chain = _chain(text)
    if len(chain) > len(starts) or len(chain) > 1:
        starts = chain
    if len(starts) < 2:
        bullets = [(mark.start(), mark.end()) for mark in marks if _kind(mark["mark"]) == "bullet"]
        listed = _with_ends(text, bullets) if len(bullets) > 1 else ()
        starts = bullets if listed and all(map(has_trade_off, listed)) else starts
    if not starts:
        return Options((), text)
    found = _with_ends(text, starts)
    return Options(found, text[: starts[0][0]] + text[starts[-1][1] + len(found[-1]) :])


def _pieces(text: str, starts: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return the text behind each mark, up to the next one."""
    ends = [*(start for start, _ in starts[1:]), len(text)]
    return tuple(text[begin:end] for (_, begin), end in zip(starts, ends, strict=False))


def _with_ends(text: str, starts: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return each option up to the next one; the last one ends where a line or a paragraph begins like a sentence."""
    *found, last = _pieces(text, starts)
    ends = (hit.start() for hit in _LINE_END.finditer(last) if hit[2] or hit[1].isupper())
    return (*found, last[: next(ends, len(last))])


def _marked(text: str) -> tuple[str, ...]:
    """Return each entry of a list, or each heading, with the text that belongs to it."""
    marks = list(_MARK.finditer(text))
    begun = [mark for mark in marks if _is_beside(mark, marks[0])]
    pieces = (piece.strip() for piece in _pieces(text, [mark.span() for mark in begun]))
    return tuple(piece for piece in pieces if _LETTER.search(piece))


def _is_beside(mark: re.Match[str], first: re.Match[str]) -> bool:
    """Return whether a mark begins an entry of the same list as the first one, or a heading of its level."""
    depth, first_depth = (len(each["indent"].expandtabs(4)) for each in (mark, first))
    is_heading = mark["mark"].startswith("#") and mark["mark"] != first["mark"]
    return _kind(mark["mark"]) == _kind(first["mark"]) and not is_heading and depth < first_depth + 2


def _kind(mark: str) -> str:
    sign = mark.lstrip("(")[:1]
    if not mark:
        return "word"
    if mark[0] == "#":
        return "heading"
    if mark in ("**", "__"):
        return "bold"
    return "number" if sign.isdigit() else "letter" if sign.isalpha() else "bullet"


def _chain(text: str) -> list[tuple[int, int]]:
    """Return the longest count in a text, such as (a) … (b) … or Option 1 … Option 2 …: where each begins and ends."""
    best: list[tuple[int, int]] = []
    counts: dict[tuple[str, bool], list[tuple[int, int]]] = {}
    for hit in _INLINE.finditer(text):
        kind = hit.lastgroup or ""
        sign = hit[kind].lower()
        value = _ORDINALS.get(sign) or (int(sign) if sign.isdigit() else ord(sign) - ord("a") + 1)
        count = counts.setdefault((kind, sign.isdigit()), [])
        if value == len(count) + 1:
            count.append((hit.start(), hit.end()))
            best = max(best, count, key=len)
    return best


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


def _alternatives(text: str) -> tuple[str, ...]:
    """Return the parts of a sentence between either and or, if each surely names a trade-off."""
    found = tuple(part.strip(" ,.\n") for part in _EITHER.split(text) if _LETTER.search(part))
    return found if all(has_trade_off(part) for part in found) else ()
