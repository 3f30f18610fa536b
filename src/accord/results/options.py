"""Options in a plain text: the rows of a table, the entries of a list, texts that count, or clauses. Pure.

Source: workflow contracts, "Summary Content by Outcome" and "Refinement Template" ask for trade-offs, not for a layout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from accord.core.frozen import Frozen
from accord.core.texts import is_nothing
from accord.results.contents import SENTENCE_WORDS, says_something, word_count
from accord.results.layouts import OPTION_WORDS, is_table_rule
from accord.text.outline import seen_text, verbatim_words

_SIGN = r"(?-i:[1-9A-Ha-h]|[Ii]{1,3}|[Ii]?[Vv]|[Vv][Ii]{1,3})"
"""The number or letter of an option."""

_TITLED = (
    rf"[^\W\d_]{{2,20}}[ \t]+\(?(?P<sign>{_SIGN})(?!_?[^\W_])\)?[*_]{{0,3}}[ \t]*"
    r"(?:(?=[:\uff1a.)(\u2013\u2014-])|(?<=[*_])|$)"
)
_TITLE = re.compile(_TITLED, re.IGNORECASE)
"""A word and a number or a letter, as in ``Plan A: Wait``."""

_MARK = re.compile(
    rf"(?:(?P<heading>\#{{2,6}})|(?P<bullet>[-*+\u2022\u2013\u00b7\u2023\u2192\u25cf\u25aa](?=[ \t]))"
    rf"|(?P<count>\(?(?:\d{{1,2}}|{_SIGN})[.)]|[A-H](?=[:\uff1a]))|(?P<title>(?=[*_]{{0,3}}{_TITLED}))"
    r"|(?P<bold>[*_]{2})(?=[\w`#\[]))[ \t]*(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
"""The beginning of an entry of a list, of a title and of a line in bold."""

_NAMED_LINE = re.compile(
    r"[*_`\"'(\[]{0,4}\w[^\n:\uff1a\u2013\u2014]{0,60}(?:[:\uff1a\u2013\u2014]|[ \t]-[ \t])[^\n]*\w"
)
_LINE = re.compile(r"^([ \t]*)(?=(\S[^\n]*))", re.MULTILINE)
_COUNT = re.compile(
    rf"(?<![\w(])(?P<word>(?P<open>\()|options?[ \t]+)?(?P<sign>{_SIGN})"
    r"(?(open)\)|(?(word)\b|[.):](?:[*_]{2})?(?=[ \t])))",
    re.IGNORECASE,
)
"""A number or a letter within a line, as in ``(a)``, ``1.`` and ``option B``."""

_LETTER = re.compile(r"\w")
_NEW_LINE = re.compile(r"<br ?/?>", re.IGNORECASE)
_ROW = re.compile(r"^[ \t]*\|([^\n]*)$", re.MULTILINE)
_NAME = re.compile(
    r"[*_]*(?:options?[ \t]+\(?[^\W_]\b\)?[*_]*[ \t]*[:\uff1a.)\u2013\u2014-]*"
    r"|\(?[^\W_]\)?[*_]*[ \t]*[:\uff1a.)\u2013\u2014-])[*_ \t]*",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"(?:[\uff1a(\uff08\u2013\u2014\u2192\uff0c\u3001;\uff1b\u3002=\n]|:(?!\d)|[.,](?!\w)|->|[ \t]-[ \t]|[*_]{2}[ \t])"
    r"[^\w\n]{0,8}\w"
)
"""The end of an option's name, and the beginning of the text about it."""

_NO_OPTION = re.compile(r"\W{0,9}none\b", re.IGNORECASE)
"""The beginning of a text without options, such as "None that I can see"."""

_SEPARATORS = frozenset(":\uff1a\u2013\u2014-")

_PART_NAME = (
    r"(?:pros?|cons?|(?:dis)?advantages?|benefits?|drawbacks?|(?:down|up)sides?"
    r"|trade-?[ ]?offs?|costs?|risks?|efforts?)"
)
_PART = (
    rf"[^\w\n]{{0,9}}(?:\d{{1,2}}[.)][^\w\n]{{1,4}})?{_PART_NAME}"
    rf"(?:[ \t]*(?:[/&,+]|\band\b)[ \t]*{_PART_NAME}){{0,3}}(?:[ \t]*\([^()\n]{{0,80}}\))?"
    r"(?:[*_]{2}|[*_]?[ \t]*(?:[:\uff1a\u2013\u2014\u2192=\n]|-(?=[ \t])|\Z))"
)
_OF_PART = re.compile(_PART, re.IGNORECASE)
"""The label of a part of an option, which is never an option itself."""

_ANY_PART = re.compile(rf"^{_PART}|\b{_PART_NAME}[*_]{{0,2}}[:\uff1a]", re.IGNORECASE | re.MULTILINE)
_PART_LINE = re.compile(rf"^{_PART}", re.IGNORECASE | re.MULTILINE)
_CLAUSE_END = re.compile(rf";\s*(?!{_PART})", re.IGNORECASE)


class Options(Frozen):
    """The options of a text, and a message for each without a trade-off, with whether that is sure.

    Not ``is_clear`` if the text has no structure that tells options apart.
    """

    found: tuple[str, ...]
    gaps: tuple[tuple[str, bool], ...] = ()
    is_clear: bool = True


def read_options(text: str, *others: str) -> Options:
    """Read the options of a text; it, or one of the others, may have a section with a trade-off for each of them."""
    text, *rest = (_NEW_LINE.sub("\n", verbatim_words(each)) for each in (text, *others))
    is_list = bool(_rows(text)) or any(_MARK.match(text, line.end()) for line in _LINE.finditer(text))
    if not is_list and _NO_OPTION.match(text):
        return Options(())
    labels = [(each, label) for each in (text, *rest) if (label := _PART_LINE.search(each))]
    above = _in_layout(text[: labels[0][1].start()] if labels and labels[0][0] is text else text)
    has_section = any(len(_in_layout(each[label.end() :])) >= len(above) for each, label in labels)
    if len(above) > 1 and has_section and not any(map(has_trade_off, above)):
        return Options(above)
    found = _in_layout(text)
    is_clear = is_list or len(found) > 1 or word_count(text) < 2 * SENTENCE_WORDS
    gaps = []
    for option in found:
        has_one, name = has_trade_off(option), option.strip().splitlines()[0][:60]
        verb = "may have" if has_one is None else "has"
        gaps += [] if has_one else [(f"The option `{name}` {verb} no trade-off.", has_one is False)]
    return Options(found, tuple(gaps), is_clear)


def _in_layout(text: str) -> tuple[str, ...]:
    """Return the options in the first layout that gives two, without those that name none."""
    found = max(
        (layout(text) for layout in (_rows, _entries, _texts_that_count, _clauses)), key=lambda each: min(len(each), 2)
    )
    return tuple(option for option in found if not _is_none(option))


def _is_none(option: str) -> bool:
    name = seen_text(_BREAK.split(option[sign.end() :] if (sign := _NAME.match(option)) else option)[0])
    return bool(_LETTER.search(name)) and is_nothing(name)


def has_trade_off(option: str) -> bool | None:
    """Return whether an option has a text beside its name; None for a sentence that may be both."""
    option = seen_text(option)
    if parts := _ANY_PART.split(option)[1:]:
        return any(map(says_something, parts))
    named = _NAME.match(option)
    text = option[named.end() :] if named else option
    if any(says_something(text[at.start() + 1 :]) for at in _BREAK.finditer(text)):
        return True
    is_lettered = named is not None and named[0].rstrip(" \t*_")[-1:] in _SEPARATORS
    return None if word_count(text) >= (2 if is_lettered else SENTENCE_WORDS) else False


def _is_part(text: str) -> bool:
    return _OF_PART.match(text) is not None


def _rows(text: str) -> tuple[str, ...]:
    """Return the options in the rows of the only table, or in its columns if its head or its first cells say so."""
    lines = [row[1].rstrip().removesuffix("|") for row in _ROW.finditer(text)]
    rules = [i for i, line in enumerate(lines) if is_table_rule(line)]
    table = [[cell.strip() for cell in line.split("|")] for line in lines[:1] + lines[2:]] if rules == [1] else []
    if not table or all(map(_is_part, table[0])):
        return ()
    if any(_is_part(row[0]) for row in table[1:]) or any(map(_TITLE.match, table[0][1:])):
        table = [[*column] for column in zip_longest(*table, fillvalue="")]
    head, *rows = table
    at = next((i for i, key in enumerate(head) if key.strip("*_ ").lower() in OPTION_WORDS), 0)
    found = []
    for row in rows:
        cells = [*zip_longest(head, row, fillvalue="")]
        beside = [
            f"{key}: {cell}" for key, cell in cells[:at] + cells[at + 1 :] if says_something(cell) or _is_part(key)
        ]
        found.append("\n".join([cells[at][1], *beside]))
    return tuple(found)


def _entries(text: str) -> tuple[str, ...]:
    """Return the entries of the first list, the headings of one level, or the named lines, with the text below each.

    Parts of options, and what is deeper below them, begin none. A lone entry that ends with a colon is above the list.
    """
    kinds: dict[str, list[tuple[int, int, int]]] = {}
    part_depth: int | None = None
    lines = [*_LINE.finditer(text)]
    for line, following in zip_longest(lines, lines[1:]):
        depth = len(line[1].expandtabs(4))
        if part_depth is not None and depth > part_depth:
            continue
        mark = _MARK.match(text, line.end())
        begin = mark.end() if mark else line.end()
        part_depth = depth if _OF_PART.match(text, begin) else None
        is_name = _NAMED_LINE.match(line[2]) or (following and _is_part(following[2]))
        if part_depth is None and (mark or is_name):
            kind = (mark["heading"] or mark.lastgroup or "") if mark else "name"
            begin = mark.start("sign") if mark and mark["sign"] else begin
            kinds.setdefault(kind, []).append((depth, line.start(), begin))
    beside = [[(start, begin) for depth, start, begin in each if depth < each[0][0] + 2] for each in kinds.values()]
    heads = ((each, text[each[0][0] :].split("\n", 1)[0].rstrip("*_ ")) for each in beside)
    lists = (each for each, head in heads if len(each) > 1 or not head.endswith((":", "\uff1a")))
    return _pieces(text, next(lists, beside[0] if beside else []))


def _pieces(text: str, starts: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    ends = [*(start for start, _ in starts[1:]), len(text)]
    pieces = (text[begin:end].strip() for (_, begin), end in zip(starts, ends, strict=False))
    return tuple(piece for piece in pieces if _LETTER.search(piece))


def _texts_that_count(text: str) -> tuple[str, ...]:
    """Return the texts behind the signs of the longest count in a text, such as (a) … (b) … or Option 1 … Option 2."""
    counts: dict[tuple[str, bool], list[tuple[int, int]]] = {}
    for hit in _COUNT.finditer(text):
        sign = hit["sign"].lower()
        count = counts.setdefault(((hit["word"] or "").strip().lower(), sign.isdigit()), [])
        if sign in (str(len(count) + 1), chr(ord("a") + len(count))) and not _OF_PART.match(text, hit.end()):
            is_name = text[hit.end() : hit.end() + 1] in _SEPARATORS | {".", ")"}
            count.append((hit.start(), hit.start("sign") if is_name else hit.end()))
    return _pieces(text, max(counts.values(), key=len, default=[]))


def _clauses(text: str) -> tuple[str, ...]:
    pieces = [text] if any(_MARK.match(text, line.end()) for line in _LINE.finditer(text)) else _CLAUSE_END.split(text)
    return tuple(piece.strip() for piece in pieces if _LETTER.search(piece))
