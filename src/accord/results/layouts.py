"""Labels in a plain text, in whatever layout. Pure.

A label is a heading, a phrase in bold, a phrase before a colon or a dash, or a cell of a table. Source: workflow
contracts, "Summary Content by Outcome" and "ReviewerResult" ask for contents, not for a layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from accord.core.frozen import Frozen
from accord.results.contents import says_something
from accord.text.outline import blank_code

Vocabulary: TypeAlias = "Mapping[str, frozenset[str]]"
"""The words that name each part. Of two parts that a phrase may name, the first counts."""

LEAD = re.compile(
    r"(?P<indent>[ \t]*)(?:>[ \t]*)*(?P<mark>(?:[-*+\u2022]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])[ \t]+)?"
    r"(?P<heading>\#{1,6}[ \t]+)?(?:\d{1,2}(?:[.)]|(?:\.\d{1,2})+[.)]?)[ \t]+)?(?:[^\x00-\x7f\w\s]{1,3}[ \t]+)?"
)
_AFTER = r"[ \t]*(?:[:\uff1a]|[\u2013\u2014\u2192=-](?=[ \t]))?"
_BOLD = re.compile(rf"(?P<sign>\*{{1,2}}|_{{1,2}})(?P<phrase>[^*_\n:\uff1a]{{1,80}}[:\uff1a]?[ \t]?)(?P=sign){_AFTER}")
_IN_BRACKETS = re.compile(rf"[(\[](?P<phrase>[^()\[\]\n]{{1,80}})[)\]](?![(\[]){_AFTER}")
_SEPARATED = (
    r"(?P<phrase>(?:[^()\[\]:\uff1a\n.!?;|\u3002]|[.!?;|](?=\S)|\([^()\n]{0,80}\)|\[[^\[\]\n]{0,80}\]){1,80}?)"
    r"(?:[:\uff1a]|[ \t][\u2013\u2014\u2192=-](?=\s|\Z)|\?(?=[\s*_]|\Z))[*_]*"
)
_AT_START = re.compile(_SEPARATED)
_IN_LINE = re.compile(rf"(?<=[.!?;|)\]\u3002])[ \t]+{_SEPARATED}")
_BEFORE_COLON = re.compile(r"(?<![^\n;|])([^\n:\uff1a;|]{1,80})[:\uff1a]")
_BRACKETED = re.compile(r"\([^()\n]{0,80}\)")
_WORD = re.compile(r"\w[\w'-]*")
_JOINT = re.compile(r"[/&+]|(?i:\band\b)")
_LETTER = re.compile(r"\w")
_NUMBER = re.compile(r"\s*(?!1\W)\d+[.)]")
"""A number at the end of a sentence; in Markdown, an entry without text. With 1, a list may have been begun."""

_NEXT_NUMBER = re.compile(r"(?<!\d)(\d{1,3})[.)][^\n\d]{1,90}:[*_ \t]*(\d{1,3})[.)][*_ \t]*\Z")
"""A numbered label with the number behind it that, counted on from its own, is of the next label in the line."""

_TAG = re.compile(
    r"`[^`\n]*`|<(?P<end>/)?(?:(?P<list>[uo]l)|(?P<entry>li)|(?P<bold>b|strong|em|i|u|h[1-6])|p|details|summary)"
    r"(?:\s[^<>]*)?>(?(entry)\s*)",
    re.IGNORECASE,
)
"""A tag that folds a part of a text, or makes a list, a paragraph or bold words of it, outside of code."""
_BARE_TABLE = re.compile(
    r"^(?=[^\n]*\|)(?![ \t]*(?:[>|#]|[-*+][ \t]|\d+[.)]))[^\n]+\n"
    r"(?=[^\n]*\|)(?=[^\n]*-)[ \t:|-]+(?:\n(?=[^\n]*\|)[^\n]+)*",
    re.MULTILINE,
)
_BARE_ROW = re.compile(r"^(?![ \t]*\|)", re.MULTILINE)
"""A table without a bar in front of its head, and the beginning of such rows."""
_HEADING = re.compile(r"^\#{1,6}[ \t]", re.MULTILINE)
_QUOTE_MARK = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_QUOTE = re.compile(r"(?:^[ \t]*(?:(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+)*>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_ALERT = re.compile(r"[ \t]*>[ \t]*\[!\w+\]")
"""The first line of a note as GitHub shows it, which quotes nothing."""

_VISIBLE = re.compile(r"[^\r\n]")
_RULE = re.compile(r"(?=[ \t|:]*-)[ \t|:-]+")
_UNDERLINE = re.compile(r"(?:-+|=+)?")
_ARTICLES = frozenset(("a", "an", "the", "my", "our"))
_CONJUNCTIONS = frozenset(("and", "for", "if", "of", "on", "when", "with"))
_QUESTIONS = frozenset(("what", "what's", "which", "why", "how"))
_LABEL_CHARS = 80
_LABEL_WORDS = 8
_LABELS_IN_LINES = 3
"""With fewer parts at the beginning of lines, labels in the middle of lines count, too."""


class _Label(Frozen):
    """A label: its parts, and where it begins and its text begins."""

    parts: tuple[str, ...]
    start: int
    text: int
    depth: int = 0
    mark: str = ""
    phrase: str = ""  # of a label that begins a line
    level: int = 0  # of a heading, 0 for every other label
    end: int = -1  # where a cell of a table ends its text
    is_entry: bool = False  # of a part without a label of its own


class Reading(Frozen):
    """The text of each part that has a label, be it empty, and the text before all labels and beside the cells."""

    parts: Mapping[str, str]
    free: str
    hinted: frozenset[str]
    """The parts that a phrase before a colon mentions without being a label: their text may be there."""
    is_labelled: bool
    """Whether the author surely uses labels: then each part that lacks one is missing."""
    outside: str
    """The text with blanks in place of code and of quotations."""
    empty: frozenset[str]
    """The parts that have nothing but the number of the next label."""

    def has(self, part: str) -> bool:
        """Return whether a part has a label and says something."""
        text = self.parts.get(part, "").rstrip(" \n*_")
        return says_something(text) or (part not in self.empty and _NUMBER.fullmatch(text) is not None)


def vocabulary_of(words: Mapping[str, str]) -> Vocabulary:
    """Make a vocabulary of words that are separated by spaces."""
    return {name: frozenset(text.split()) for name, text in words.items()}


def unwrapped_text(text: str) -> str:
    """Return a text without HTML's lists, folds and bold words and the marks of a quote around it, with LF as line end.

    Each row of a table begins with a bar.
    """
    depth = 0

    def markdown_of(tag: re.Match[str]) -> str:
        nonlocal depth
        depth += (-1 if tag["end"] else 1) if tag["list"] else 0
        if tag["bold"] or tag[0].startswith("`"):
            return "**" if tag["bold"] else tag[0]
        return f"\n{'  ' * (depth - 1)}- " if tag["entry"] and not tag["end"] else "\n"

    text = _TAG.sub(markdown_of, text.replace("\r\n", "\n"))
    is_quote = all(line.lstrip(" \t").startswith(">") for line in text.split("\n") if line.strip())
    text = _QUOTE_MARK.sub("", text) if is_quote else text
    return _BARE_TABLE.sub(lambda table: _BARE_ROW.sub("| ", table[0]), text)


def read_parts(text: str, vocabulary: Vocabulary, *, whole: str = "", entries: Sequence[int] = ()) -> Reading:
    """Split a text at its labels outside of code and quotations.

    Labels in the list of the part ``whole`` belong to its entries. Of those without its label, ``entries`` are the
    starts.
    """
    shown = blank_code(text)
    labels, sure = _all_labels(_without_quotations(shown), vocabulary, whole)
    top = min(label.start for label in labels) if len(sure) > 1 else len(shown)  # a quote above all labels has some
    outside = shown[:top] + _without_quotations(shown[top:])
    if outside != _without_quotations(shown):
        labels, sure = _all_labels(outside, vocabulary, whole)
    labels = [label for label in labels if label.start not in entries]
    labels += (_Label((whole,), start, start, is_entry=True) for start in entries)
    known = {label.start for label in labels}
    labels = _without_nested(sorted(labels, key=lambda label: label.start), whole, outside)
    parts, empty = dict[str, str](), set[str]()
    free = [shown[: labels[0].start] if labels else shown]
    for label, following in zip(labels, [*(label.start for label in labels[1:]), len(text)], strict=False):
        end = following if label.end < 0 else label.end
        number = _NEXT_NUMBER.search(text[max(label.start - 8, 0) : min(end, label.text + _LABEL_CHARS)])
        if number and int(number[2]) == int(number[1]) + 1:
            empty.update(label.parts)
        for part in label.parts:
            parts[part] = f"{parts.get(part, '')}\n{text[label.text : end]}".strip("\n").rstrip()
        free.append(shown[end:following])
    others = (hit for hit in _BEFORE_COLON.finditer(outside) if hit.start() not in known)
    before_colons = [{*_words(hit[1])} for hit in others]
    hinted = (name for name, words in vocabulary.items() if any(not words.isdisjoint(found) for found in before_colons))
    free_text = "\n\n".join(part for part in free if part.strip())
    return Reading(parts, free_text, frozenset(hinted), len(sure) > 1, outside, frozenset(empty))


def _without_quotations(text: str) -> str:
    """Put blanks in place of quotations; every other character keeps its position."""
    return _QUOTE.sub(lambda quote: quote[0] if _ALERT.match(quote[0]) else _VISIBLE.sub(" ", quote[0]), text)


def _all_labels(text: str, vocabulary: Vocabulary, whole: str) -> tuple[list[_Label], set[str]]:
    """Return all labels of a text, and the parts that surely have one."""
    labels = list(_line_labels(text, vocabulary))
    if len({part for label in labels for part in label.parts}) < _LABELS_IN_LINES:
        labels += _labels_in_lines(text, vocabulary)
    sure = {part for label in labels for part in label.parts}
    if not whole:  # each part is needed: phrases that could be sentences are labels of those that have no other
        begun = [*_line_labels(text, vocabulary, is_any=True)]
        phrases = *begun, *_labels_in_lines(text, vocabulary, is_any=True)
        labels += (label for label in phrases if sure.isdisjoint(label.parts))
        sure.update(
            *(label.parts for label in begun if vocabulary[label.parts[0]].intersection(_words(label.phrase)[:1]))
        )
    return labels, sure


def _parts_of(phrase: str, vocabulary: Vocabulary, *, is_marked: bool = True) -> tuple[str, ...]:
    """Return the part that a phrase is the label of, or several that it joins; none for any other text."""
    joined = [_part_of(piece, vocabulary, is_marked=is_marked) for piece in _JOINT.split(phrase)]
    if all(joined):
        return tuple(dict.fromkeys(joined))
    part = _part_of(phrase, vocabulary, is_marked=is_marked)
    return (part,) if part else ()


def _part_of(phrase: str, vocabulary: Vocabulary, *, is_marked: bool) -> str:
    """Return the part that the first or the last word of a phrase names.

    A phrase that is not marked as a label, by bold or as a heading or a cell, is one if it has at most two words, is a
    question, or has a conjunction behind its first word; it could be a sentence before a colon otherwise.
    """
    words = _words(_BRACKETED.sub(" ", phrase))
    words = words[1:] if words and words[0] in _ARTICLES else words
    if not words or len(words) > _LABEL_WORDS:
        return ""
    is_label = is_marked or len(words) < 3 or words[0] in _QUESTIONS
    names = {words[0], words[-1]} if is_label else {words[0]} if words[1] in _CONJUNCTIONS else set()
    return next((name for name, known in vocabulary.items() if not known.isdisjoint(names)), "")


def _words(phrase: str) -> list[str]:
    """Return the words of a phrase. Hyphens, as in out-of-scope, do not change what it says."""
    return _WORD.findall(phrase.casefold().replace("\u2019", "'").replace("_", " ").replace("-of-", " of "))


def _without_nested(labels: Sequence[_Label], whole: str, text: str) -> list[_Label]:
    """Leave out labels below the entries of a part, such as the impact of one option.

    A label behind that part is of an entry if its own part has another label, before or behind it, if it is deeper in
    a list or has several words there, or if it is below the heading of an entry.
    """
    kept, known = list[_Label](), set[tuple[str, ...]]()
    last_starts = {label.parts: label.start for label in labels}
    for label in labels:
        last = kept[-1] if kept else label
        is_alone = label.parts not in known and label.start == last_starts[label.parts]
        is_listed = label.depth >= last.depth + 2 or (label.mark and not last.mark and " " in label.phrase.strip())
        is_behind = whole in last.parts and label.parts != last.parts
        is_below = is_behind and is_alone and last.level > 0 and not label.level
        if is_behind and (not is_alone or is_listed or (is_below and _is_in_entry(label, labels, last, text))):
            continue
        kept.append(label)
        known.add(label.parts)
    return kept


def _is_in_entry(label: _Label, labels: Sequence[_Label], last: _Label, text: str) -> bool:
    """Return whether a label is below the heading of an entry: another entry follows, or others have such a label."""
    heads = [*_HEADING.finditer(text, last.text, label.start)]
    following = _HEADING.search(text, label.text)
    if not heads or (following and following[0].count("#") > last.level):
        return bool(heads)
    same = [each.start for each in labels if each.parts == label.parts and last.start < each.start < label.start]
    return bool(same) and same[-1] < heads[-1].start()


def _line_labels(text: str, vocabulary: Vocabulary, *, is_any: bool = False) -> Iterator[_Label]:
    """Yield the labels with which lines and cells begin."""
    lines = text.splitlines(keepends=True)
    start, top = 0, -1
    for i, line in enumerate(lines):
        is_row = line.lstrip(" \t>").startswith("|")
        top = (i if top < 0 else top) if is_row else -1
        if is_row:
            yield from _row_labels(lines, i, top, start, vocabulary)
        elif label := _line_label(line, lines[i + 1] if i + 1 < len(lines) else "", start, vocabulary, is_any):
            yield label
        start += len(line)


def _line_label(line: str, following: str, start: int, vocabulary: Vocabulary, is_any: bool) -> _Label | None:
    lead = LEAD.match(line)
    if lead is None:
        return None
    begin, depth, level = lead.end(), len(lead["indent"].expandtabs(4)), (lead["heading"] or "").count("#")
    rest = line[begin : begin + 4 * _LABEL_CHARS].rstrip()
    for pattern in (_BOLD, _IN_BRACKETS, _AT_START):
        hit = pattern.match(rest)
        if hit and (parts := _parts_of(hit["phrase"], vocabulary, is_marked=is_any or pattern is not _AT_START)):
            return _Label(parts, start, start + begin + hit.end(), depth, lead["mark"] or "", hit["phrase"], level)
    underline = following if rest[:1].isupper() and _UNDERLINE.fullmatch(following.strip()) else None
    if not rest[-1:].isalnum() or len(rest) > _LABEL_CHARS or not (level or underline is not None):
        return None
    level = level or (2 if underline and underline.strip() else 0)
    if not (parts := _parts_of(rest, vocabulary, is_marked=level > 0)):
        return None
    end = start + len(line) + len("" if lead["heading"] else underline or "")
    return _Label(parts, start, end, depth, level=level)


def _row_labels(lines: Sequence[str], i: int, top: int, start: int, vocabulary: Vocabulary) -> Iterator[_Label]:
    """Yield the labels of a row of the table that begins at ``top``: its first cell, or its column's head.

    A head with a label is the first row, unless one capitalized word beside it names the other column.
    """
    cells = list(_cells(lines[i]))
    has_head = top + 1 < len(lines) and is_table_rule(lines[top + 1])
    heads = [_parts_of(lines[top][slice(*cell)], vocabulary) for cell in _cells(lines[top])] if has_head else []
    is_by_column = len({*filter(None, heads)}) > 1
    if has_head and (i == top + 1 or (i == top and (is_by_column or not _is_row(lines[top])))):
        return
    if is_by_column:
        for (begin, end), parts in zip(cells, heads, strict=False):
            if parts:
                yield _Label(parts, start + begin, start + begin, end=start + end)
    elif len(cells) > 1 and (parts := _parts_of(lines[i][slice(*cells[0])], vocabulary)):
        yield _Label(parts, start, start + cells[1][0], end=start + cells[-1][1])


def _is_row(head: str) -> bool:
    """Return whether the head of a table is a part and its text, and not the names of its columns."""
    text = " ".join(head[slice(*cell)].strip() for cell in [*_cells(head)][1:])
    return not (text.isalpha() and text.istitle())


def is_table_rule(line: str) -> bool:
    """Return whether a line of a table divides its head from its rows."""
    return _RULE.fullmatch(line.strip()) is not None


def _cells(line: str) -> Iterator[tuple[int, int]]:
    """Yield where each cell of a row begins and ends."""
    bars = [bar.start() for bar in re.finditer(r"\|", line)]
    ends = bars[1:] if line.rstrip().endswith("|") else [*bars[1:], len(line)]
    return ((begin + 1, end) for begin, end in zip(bars, ends, strict=False))


def _labels_in_lines(text: str, vocabulary: Vocabulary, *, is_any: bool = False) -> Iterator[_Label]:
    """Yield labels in the middle of lines: in bold, or at the beginning of a sentence, before a colon or a dash."""
    for pattern in (_BOLD, _IN_LINE):
        for hit in pattern.finditer(text):
            if parts := _parts_of(hit["phrase"], vocabulary, is_marked=is_any or pattern is _BOLD):
                yield _Label(parts, hit.start(), hit.end())
