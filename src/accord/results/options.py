"""Options in a plain text, in whatever layout. Pure.

Source: workflow contracts, "Summary Content by Outcome" and "Refinement Template" ask for trade-offs, not for a layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, zip_longest
from operator import itemgetter

from accord.core.frozen import Frozen
from accord.core.texts import is_nothing
from accord.results.contents import SENTENCE_WORDS, says_something, word_count
from accord.results.layouts import LEAD, is_table_rule
from accord.text.outline import seen_text, verbatim_words

_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii")
_SIGN = r"(?-i:[1-9A-Ha-h]|[Ii]{1,3}|[Ii]?[Vv]|[Vv][Ii]{1,3})"
"""The number or letter of an option."""

_TITLED = (
    rf"(?P<word>[^\W\d_]{{2,20}})[ \t]+\(?(?P<sign>{_SIGN}|(?-i:[0A-Za-z]))(?!_?[^\W_])\)?[*_]{{0,3}}[ \t]*"
    r"(?:(?=[:\uff1a.)(\u2013\u2014-])|(?<=[*_])|$)"
)
"""A word and a number or a letter, as in ``Plan A: Wait``."""

_MARK = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>[-*+\u2022\u2013\u00b7\u2023\u2192\u25cf\u25aa](?=[ \t])"
    rf"|\(?(?:\d{{1,2}}|{_SIGN})[.)]|\#{{2,6}}"
    rf"|(?=[*_]{{0,3}}{_TITLED})|[*_]{{2}}(?=[\w`#\[])|[A-H](?=[:\uff1a]))[ \t]*(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_COUNT = re.compile(
    rf"(?<![\w(])(?P<word>(?P<open>\()|options?[ \t]+)?(?P<sign>{_SIGN})"
    r"(?(open)\)|(?(word)\b|[.):](?:[*_]{2})?(?=[ \t])))",
    re.IGNORECASE,
)
"""A number or a letter within a line, as in ``(a)``, ``1.`` and ``option B``."""

_TITLE = re.compile(rf"(?:^{LEAD.pattern}[*_]{{0,3}}|(?<=[.;][ \t])){_TITLED}", re.IGNORECASE | re.MULTILINE)
"""A word and a number or a letter with which a line or a sentence begins, as in ``### Plan A: Wait``."""

_BEHIND_SIGN = re.compile(r"[:\uff1a\u2013\u2014.)-]| \(")
"""A separator, or the bracket of a remark, which the sign in front is the name of."""

_TITLE_WORDS = frozenset(("option", "options", "alternative", "alternatives", "choice", "choices"))
_NAMED_LINE = re.compile(
    r"[*_`\"'(\[]{0,4}\w[^\n:\uff1a\u2013\u2014]{0,60}(?:[:\uff1a\u2013\u2014]|[ \t]-[ \t])[^\n]*\w"
)
_LETTER = re.compile(r"\w")
_AROUND_NAME = "*_` \t:\uff1a\u2013\u2014-"
_MOST_NAMES = 50
"""Options whose trade-offs are looked for in a section of their own."""

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

_BARE = re.compile(r"^(?:[ \t]*(?:#+[ \t][^\n]*|[*_]{2}[^*_\n]+[*_]{2})|[^\n]*[:\uff1a][*_ \t]*)$", re.MULTILINE)
"""A title or a label without a text on its line."""

_TRADE_OFF = re.compile(r"\btrade-?[ ]?offs?[*_]*[:\uff1a][*_\s]*([^\n]*)\Z", re.IGNORECASE)
_REMARK = re.compile(r"\W*[(\uff08][^()\uff08\uff09]*[)\uff09]\W*")
"""A text that is all in brackets, such as "(none other)": no name."""

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

_PART_LINE = re.compile(rf"^{_PART}", re.IGNORECASE | re.MULTILINE)
_ENTRY_NUMBER = re.compile(r"^[ \t]*(?:[-*+\u2022][ \t]+)?\d{1,2}[.)][ \t](?![^\n]*[ \t]2[.)][ \t])", re.MULTILINE)
"""The number of an entry in a list, unless the count goes on in its line."""

_LINE = re.compile(r"^(?P<indent>[ \t]*)(?=\S)", re.MULTILINE)
_CLAUSE_END = re.compile(rf";(?![^()\n]{{0,80}}\))\s*(?!{_PART})", re.IGNORECASE)
_CLAUSE = re.compile(rf"(?:[,;.!?\uff0c\u3001\u3002]\s*(?!{_PART})|[)\uff09]\s+)[`*_]{{0,3}}\w", re.IGNORECASE)
"""A clause that another follows, or a remark in brackets, as in "wait (a day) or mock it (hides faults)"."""


class Options(Frozen):
    """The options of a text. Not ``is_clear`` if the text has no structure that tells them apart."""

    found: tuple[str, ...]
    is_clear: bool = True
    is_shared: bool = False
    """Whether one paragraph may have the trade-offs of all."""


def has_trade_off(option: str) -> bool | None:
    """Return whether an option has a text beside its name; None for a sentence that may be both."""
    option = seen_text(option)
    named = _NAME.match(option)
    first, *rest = (option[named.end() :] if named else option).split("\n")
    lines = _BARE.sub("", "\n".join(rest)).split("\n")
    lines = [line for line in lines if not (label := _OF_PART.match(line)) or says_something(line[label.end() :])]
    text = "\n".join((first, *lines))
    labelled = _TRADE_OFF.search(option)
    if (labelled and not says_something(labelled[1])) or not says_something(option):
        return False
    if any(says_something(text[at.start() + 1 :]) for at in _BREAK.finditer(text)):
        return True
    is_lettered = named is not None and named[0].rstrip(" \t*_")[-1:] in _SEPARATORS
    is_sentence = word_count(text) >= (2 if is_lettered else SENTENCE_WORDS) and not any(map(is_part, rest))
    return None if is_sentence else False


def trade_off_gaps(options: Options) -> Iterator[tuple[str, bool]]:
    """Yield a message for each option without a trade-off, and whether that is sure; a sentence may be both."""
    for option in options.found:
        has_one, name = has_trade_off(option), option.strip().splitlines()[0][:60]
        is_sure = has_one is False and not options.is_shared
        if not has_one:
            yield f"The option `{name}` {'has' if is_sure else 'may have'} no trade-off.", is_sure


def is_part(text: str) -> bool:
    """Return whether a text begins with the label of a part of an option, such as ``Pros:``."""
    return _OF_PART.match(text) is not None


def is_none(option: str) -> bool:
    """Return whether a text names no option: its name is a word such as none, or all of it is in brackets."""
    text = _without_sign(option)
    name = seen_text(_name_of(text))
    return bool(_LETTER.search(name) and is_nothing(name)) or _REMARK.fullmatch(text) is not None


def _without_sign(option: str) -> str:
    """Return an option without the number or letter that counts it."""
    sign = _NAME.match(option)
    return option[sign.end() :] if sign else option


def _name_of(text: str) -> str:
    """Return the name of an option, in front of the text about it."""
    end = _BREAK.search(text)
    return text[: end.start()] if end else text


def labelled_options(text: str, *others: str) -> Options:
    """Read the options of a text in the first layout that gives at least two. Others may have their trade-offs."""
    text, *rest = (_NEW_LINE.sub("\n", verbatim_words(each)) for each in (text, *others))
    below = _without_lead(text)
    parts = ["", *(each[label.start() :] for each in rest if (label := _PART_LINE.search(each)))]
    read = filter(None, (_in_section_of_parts(f"{below}\n{part}") for part in parts))
    found, is_shared = min(read, key=itemgetter(1), default=(_in_layout(below), False))
    is_list = bool(_of_table(text)) or _MARK.search(text) is not None
    if not is_list and _NO_OPTION.match(text):
        return Options(())
    is_clear = is_list or len(found) > 1 or not _CLAUSE.search(text)
    return Options(tuple(option for option in found if not is_none(option)), is_clear, is_shared)


def _without_lead(text: str) -> str:
    """Return a text without the sentence above its options, such as "Two ways were weighed:"."""
    first, _, rest = text.strip().partition("\n")
    mark, end = _MARK.match(first), first.rstrip("*_ ")[-1:]
    is_sentence = end in {":", "\uff1a"} or (end == "." and not mark and not _NAMED_LINE.match(first))
    is_name = is_part(rest.lstrip()) or (mark is not None and (mark["mark"] != "**" or "\n**" in rest))
    return rest if rest and is_sentence and not is_name and word_count(first) >= SENTENCE_WORDS else text


def _in_layout(text: str) -> tuple[str, ...]:
    return max((layout(text) for layout in _LAYOUTS), key=lambda options: min(len(options), 2))


def _in_section_of_parts(text: str) -> tuple[tuple[str, ...], bool] | None:
    """Return the options above a section of trade-offs, if all have only names there, with what it says about each.

    Whether it is shared: a paragraph may say something about each, and the options have only their names still.
    """
    if (label := _PART_LINE.search(text)) is None:
        return None
    options, section = _in_layout(text[: label.start()]), text[label.end() :]
    if not 1 < len(options) <= _MOST_NAMES or any(map(has_trade_off, options)):
        return None
    named = {_own_name(text): text for text in map(_without_sign, _in_layout(section))}
    names = [_own_name(_without_sign(option)) for option in options]
    pairs = ((_same_name(name, named), name) for name in names)
    parts = ((named[same], min(name, same, key=len)) for same, name in pairs if same)
    found = [text[text.lower().find(name) + len(name) :].lstrip(_AROUND_NAME) for text, name in parts]
    found = [*_counted_pieces(section)] if len(found) < len(options) else found
    if len(found) == len(options):
        return tuple(map("{}: {}".format, options, found)), False
    is_apart = label[0][0] == "#" or (text[: label.start()].endswith("\n\n") and not label[0][0].isspace())
    return (options, True) if is_apart and says_something(section) and not _MARK.search(section) else None


def _own_name(text: str) -> str:
    return _name_of(text).strip(_AROUND_NAME).lower()


def _same_name(name: str, others: Iterable[str]) -> str:
    """Return the other name that is the same, else the longest that begins with it or with which it begins."""
    same = (each for each in others if f"{each} ".startswith(f"{name} ") or f"{name} ".startswith(f"{each} "))
    return max(same, key=lambda each: (each == name, len(each)), default="")


def options_among(text: str, free: str, labels: frozenset[str]) -> Options:
    """Read options out of a text of other parts, which ends with the text that is free of labels.

    In another part, a table or a numbered list has options only if it names parts of them, or by titles that do not
    begin with a word of ``labels``.
    """
    text, free = (_NEW_LINE.sub("\n", each) for each in (text, free))
    table, listed = _of_table(text), _counted_pieces(text)
    titles = [_TITLE.match(row) for row in table]
    if titles and all(title and title["word"].lower() not in labels for title in titles):
        return Options(table)
    text = _TITLE.sub(lambda title: "" if title["word"].lower() in labels else title[0], _ENTRY_NUMBER.sub("", text))
    named = [found for found in (table, listed) if any(map(_OF_PART.search, found[:-1]))]
    clear = (*named, _of_table(free), _counted_pieces(free))
    return Options(next((found for found in clear if len(found) > 1), ()) or _counted_pieces(text))


def option_starts(text: str, labels: frozenset[str], *, is_any: bool) -> list[int]:
    """Return where lines begin titles of options that count, such as Option 1 … Option 2 …, else a table of options.

    With ``is_any``, titles of another word that is not in ``labels`` count if there is neither.
    """
    counts = [(word, [hit.start() for hit in hits]) for (word, *_), hits in _counts(text, _TITLE).items()]
    named = [starts for word, starts in counts if word == "option" and len(starts) > 1]
    others = [starts for word, starts in counts if is_any and word not in labels and len(starts) > 1]
    heads = (
        (start, (key.strip("*_ ").lower().partition(" ")[0] for key in head)) for start, (head, *_) in _tables(text)
    )
    tables = [[start] for start, words in heads if not _TITLE_WORDS.isdisjoint(words)]
    return max(named or tables or others, key=len, default=[])


def _tables(text: str) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield where each table with a head begins, and the cells of its rows."""
    rows = [*_ROW.finditer(text)]
    rules = [i for i, row in enumerate(rows) if i and is_table_rule(row[1])]
    for i, end in zip(rules, [*(following - 1 for following in rules[1:]), len(rows)], strict=False):
        lines = (row[1].rstrip().removesuffix("|") for row in (rows[i - 1], *rows[i + 1 : end]))
        yield rows[i - 1].start(), [[cell.strip() for cell in line.split("|")] for line in lines]


def _pieces(text: str, starts: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return the text behind each mark, up to the next one."""
    ends = [*(start for start, _ in starts[1:]), len(text)]
    pieces = (text[begin:end].strip() for (_, begin), end in zip(starts, ends, strict=False))
    return tuple(piece for piece in pieces if _LETTER.search(piece))


def _list_entries(text: str, sign: str = "") -> tuple[str, ...]:
    """Return each entry of the first list, or each heading, with the text that belongs to it."""
    marks = [mark for mark in _without_part_marks(text) if mark["mark"].startswith(sign)]
    kinds = [_kind(mark["mark"]) for mark in marks]
    beside = [kind == kinds[0] and _depth(mark) < _depth(marks[0]) + 2 for kind, mark in zip(kinds, marks, strict=True)]
    starts = [(mark.start(), mark.start("sign") if mark["sign"] else mark.end()) for mark in compress(marks, beside)]
    return _pieces(text, starts)


def _without_part_marks(text: str, pattern: re.Pattern[str] = _MARK) -> Iterator[re.Match[str]]:
    """Yield the marks of entries and headings, except parts of options and marks that are deeper below these."""
    part_depth: int | None = None
    for mark in pattern.finditer(text):
        depth = _depth(mark)
        if part_depth is not None and depth > part_depth:
            continue
        part_depth = depth if _OF_PART.match(text, mark.end()) else None
        if part_depth is None:
            yield mark


def _depth(mark: re.Match[str]) -> int:
    return len(mark["indent"].expandtabs(4))


def _kind(mark: str) -> str:
    sign = mark.strip("(.)")
    return _count_of(sign)[0] if sign.isalnum() else mark if not sign or sign[0] in "*_#" else "bullet"


def _counts(text: str, pattern: re.Pattern[str] = _COUNT) -> dict[tuple[str, int, str], list[re.Match[str]]]:
    """Return what counts in a text, such as (a) … (b) … or Option 1 … Option 2 …, by word, heading and kind of sign."""
    counts: dict[tuple[str, int, str], list[re.Match[str]]] = {}
    for hit in pattern.finditer(text):
        word = (hit["word"] or "").strip().lower()
        kind, value = _count_of(hit["sign"])
        key = "option" if word in _TITLE_WORDS else word, hit[0].count("#"), kind
        count = counts.setdefault(key, [])
        if value == len(count) + 1 and not _OF_PART.match(text, hit.end()):
            count.append(hit)
    return counts


def _counted_pieces(text: str, pattern: re.Pattern[str] = _COUNT) -> tuple[str, ...]:
    """Return the texts behind the signs of the longest count in a text."""
    longest = max(_counts(text, pattern).values(), key=len, default=[])
    begins = (hit.start("sign") if _BEHIND_SIGN.match(text, hit.end()) else hit.end() for hit in longest)
    return _pieces(text, [(hit.start(), begin) for hit, begin in zip(longest, begins, strict=True)])


def _count_of(sign: str) -> tuple[str, int]:
    """Return the kind of a sign that counts, and its number."""
    sign = sign.lower()
    if sign.isdigit():
        return "number", int(sign)
    return ("roman", _ROMAN.index(sign) + 1) if sign in _ROMAN else ("letter", ord(sign) - ord("a") + 1)


def _of_table(text: str) -> tuple[str, ...]:
    """Return the options in the rows of the only table below its head, or in its columns if its rows are their parts.

    A lone row is a criterion for the columns, if no head says that it is an option or a part of one.
    """
    tables = [cells for _, cells in _tables(text)]
    table = tables[0] if len(tables) == 1 else []
    if not table or all(map(is_part, table[0])):
        return ()
    head, firsts = table[0], [row[0] for row in table[1:]]
    is_row = any(is_part(key) or key.strip("*_ ").lower() in _TITLE_WORDS for key in head)
    is_criterion = len(firsts) == 1 and len(head) > 2 and not is_row
    words = [title and title["word"].lower() for title in map(_TITLE.match, head[1:])]
    is_by_column = "option" in words or (not is_row and all(words) and len({*words}) < len(words))
    if is_criterion or is_by_column or any(map(is_part, firsts)):
        table = [[*column] for column in zip_longest(*table, fillvalue="")]
    return tuple(_option_of_row(table[0], row) for row in table[1:] if any(row))


def _option_of_row(head: Sequence[str], row: Sequence[str]) -> str:
    """Return the option in a row of a table: its name, and each cell behind that after the head of its column."""
    cells = list(zip_longest(head, row, fillvalue=""))
    at = next((i for i, key in enumerate(head) if key.lower() in _TITLE_WORDS and i < len(row)), 0)
    beside = [f"{key}: {cell}" for key, cell in cells[at + 1 :] if says_something(cell)]
    empty = [f"\n{key}:" for key, cell in cells[at + 1 :] if is_part(key) and not says_something(cell)]
    return f"{row[at]}: {', '.join(beside)}{''.join(empty)}"


def _of_lines(text: str) -> tuple[str, ...]:
    """Return the lines with the parts below them, if each has a name and a text."""
    lines = _pieces(text, [(line.start(), line.start()) for line in _without_part_marks(text, _LINE)])
    return lines if all("\n" in line or _NAMED_LINE.match(line) for line in lines) else ()


def _clauses(text: str) -> tuple[str, ...]:
    """Return the clauses of a text without a list, or the text of one that has no clearer layout."""
    pieces = [] if _MARK.search(text) else [piece.strip() for piece in _CLAUSE_END.split(text) if _LETTER.search(piece)]
    is_alike = len({has_trade_off(piece) is False for piece in pieces}) == 1
    return tuple(pieces if is_alike else filter(_LETTER.search, [text.strip()]))


_LAYOUTS = (
    _of_table,
    _list_entries,
    lambda text: _list_entries(text, "#"),
    lambda text: _counted_pieces(text, _TITLE),
    _counted_pieces,
    _of_lines,
    _clauses,
)
"""Where options may be, the clearest layout first."""
