"""Parts of a plain text in whatever layout: labels, headings, rows of a table, or sentences. Pure.

Source: workflow contracts, "Summary Content by Outcome" and "ReviewerResult" ask for contents, not for a layout.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.results.options import word_count
from accord.text.markdown import blank_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

_LEAD = re.compile(
    r"(?P<indent>[ \t]*)(?:>[ \t]*)*(?:(?:[-*+\u2022]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])[ \t]+)?"
    r"(?P<heading>\#{1,6}[ \t]+)?(?:\d{1,2}(?:\.\d{1,2})*[.)][ \t]+)?(?:[^\x00-\x7f\w\s]{1,3}[ \t]+)?"
)
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__")
_EMPHASIZED = re.compile(r"(\*{1,2}|_{1,2})([^*_\n]{1,80})\1")
_TAGGED = re.compile(r"<(?P<tag>b|strong|em|i|u|h[1-6])>(?P<phrase>[^<\n]{1,80})</(?P=tag)>", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"\((?P<round>[^()\[\]\n]{1,80})\)|\[(?P<square>[^()\[\]\n]{1,80})\](?![(\[])")
_AFTER_LABEL = re.compile(r"[ \t]*(?:[:\uff1a]|[\u2013\u2014=-](?=[ \t]))")
_DASHES = "\N{EN DASH}\N{EM DASH}-\N{RIGHTWARDS ARROW}="
_COLONS = ":\uff1a"
_BRACKETED = re.compile(r"\([^()\n]{0,80}\)")
_WORD = re.compile(r"\w[\w'-]*")
_JOINT = re.compile(r"[/&+]|(?i:\band\b)")
_LETTER = re.compile(r"\w")
_NOTHING = re.compile(
    r"[^\w<]*(?:(?:none|nothing|n/?a|tbd|todo|unknown|not applicable)[^\w<]*|(?:<[A-Za-z][^<>\n]{0,80}>[^\w<]*)+)?",
    re.IGNORECASE,
)
_RULE = re.compile(r"(?=[ \t|:]*-)[ \t|:-]+")
_UNDERLINE = re.compile(r"[ \t]*(?:-+|=+)[ \t]*")
_SENTENCE = re.compile(r"[^\n.!?;\u3002\uff01\uff1f]+(?:[.!?;](?=\S)[^\n.!?;\u3002\uff01\uff1f]*)*")
_BOUNDARY = re.compile(r"[\n.!?;,|)\]\u3002]")
_LABEL_CHARS = 80
_LABEL_WORDS = 8
_UNIT_WORDS = 4
"""A sentence of fewer words is not counted as one that may be a part."""

_COMMON = """
a an the my our your its it this these that is are be been of for to with and or if not on in at by as what which how
what's why's it's possible available considered proposed trade-offs tradeoffs trade offs pros cons current potential
expected required option two three four project task progress agent i work name text brief short relevant suggested
necessary happens currently still best
"""
"""Words that a label may have around its keyword."""


@dataclass(frozen=True)
class Vocabulary:
    """The keywords of each part, the strongest first. With ``is_short``, one word is a label in a line, too."""

    keywords: Mapping[str, frozenset[str]]
    fillers: frozenset[str]
    is_short: bool = False

    @classmethod
    def of(cls, keywords: Mapping[str, str], fillers: str = "", *, is_short: bool = False) -> Vocabulary:
        """Make a vocabulary of words that are separated by spaces."""
        words = {name: frozenset(text.split()) for name, text in keywords.items()}
        return cls(words, frozenset(f"{_COMMON} {fillers}".split()).union(*words.values()), is_short=is_short)

    def parts_of(self, phrase: str) -> tuple[str, ...]:
        """Return the part that a phrase is the label of, or several that it joins; none for any other text."""
        joined = _JOINT.split(phrase) if len(phrase) <= 2 * _LABEL_CHARS else []
        found = [self._part_of(piece) for piece in joined]
        if all(found) or len(found) == 1:
            return tuple(dict.fromkeys(filter(None, found)))
        whole = self._part_of(phrase) if found else None
        return (whole,) if whole else ()

    def _part_of(self, phrase: str) -> str | None:
        words = _WORD.findall(_BRACKETED.sub(" ", phrase).casefold().replace("\u2019", "'").replace("_", " "))
        if not words or len(words) > _LABEL_WORDS or not self.fillers.issuperset(words):
            return None
        return next((name for name, known in self.keywords.items() if not known.isdisjoint(words)), None)


@dataclass(frozen=True)
class _Label:
    """A label: its parts, and where it begins and its text begins. Below a heading, text goes on behind blank lines."""

    parts: tuple[str, ...]
    start: int
    text: int
    depth: int
    is_heading: bool = False
    end: int = -1


@dataclass(frozen=True)
class Reading:
    """The text of each part that has a label, and the text that has none. ``visible`` leaves out code."""

    parts: Mapping[str, str]
    visible_parts: Mapping[str, str]
    free: str
    visible: str

    def has(self, part: str) -> bool:
        """Return whether a part has a label and says something."""
        return says_something(self.parts.get(part, ""))


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that are long enough to be a part of a report."""
    return [sentence for sentence in _SENTENCE.findall(text) if word_count(sentence) >= _UNIT_WORDS]


def says_something(text: str) -> bool:
    """Return whether a text is more than a placeholder or a word such as none."""
    return _LETTER.search(text) is not None and _NOTHING.fullmatch(text) is None


def read_parts(text: str, vocabulary: Vocabulary, *, whole: Sequence[str] = ()) -> Reading:
    """Split a text at its labels. A label counts for its paragraph, a heading and the parts ``whole`` for all below."""
    outside = blank_code(text)
    labels = sorted(_labels(outside, vocabulary), key=lambda label: label.start)
    if len({part for label in labels for part in label.parts}) < 3:
        starts = {label.start for label in labels}
        labels += [label for label in _labels_in_lines(outside, vocabulary) if label.start not in starts]
        labels.sort(key=lambda label: label.start)
    labels += _enclosed_labels(outside, vocabulary, {place for label in labels for place in (label.start, label.text)})
    labels.sort(key=lambda label: label.start)
    labels = _without_nested(labels, whole)
    parts, visible = dict[str, str](), dict[str, str]()
    free = [outside[: labels[0].start] if labels else outside]
    for i, label in enumerate(labels):
        end = labels[i + 1].start if i + 1 < len(labels) else len(text)
        own = label.end if label.end >= 0 else end
        if label.end < 0 and not label.is_heading and not {*label.parts} & {*whole}:
            own = label.text + _paragraph_end(text[label.text : end])
        for part in label.parts:
            for known, source in ((parts, text), (visible, outside)):
                known[part] = f"{known.get(part, '')}\n{source[label.text : own]}".strip("\n").rstrip()
        free.append(outside[own:end])
    return Reading(parts, visible, "\n\n".join(part for part in free if part.strip()), outside)


def _paragraph_end(text: str) -> int:
    """Return where the first paragraph ends; quotes, lists and code that follow belong to it."""
    end = text.find("\n\n", len(text) - len(text.lstrip()))
    while end >= 0:
        following = text[end : end + 4 * _LABEL_CHARS].lstrip()
        if following[:1] not in (">", "`", "-", "*", "|") or following[:2] == "**":
            return end
        end = text.find("\n\n", end + 2)
    return len(text)


def _without_nested(labels: Sequence[_Label], whole: Sequence[str]) -> list[_Label]:
    """Leave out labels that are deeper in a list than the part around them, such as the impact of one option."""
    kept: list[_Label] = []
    for label in labels:
        if kept and label.start < kept[-1].text:
            continue
        if not kept or not {*kept[-1].parts} & {*whole} or label.depth < kept[-1].depth + 2:
            kept.append(label)
    return kept


def _labels(text: str, vocabulary: Vocabulary) -> Iterator[_Label]:
    """Yield the labels with which lines begin."""
    lines = text.splitlines(keepends=True)
    place, top = 0, -1
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        is_row = line.lstrip(" \t>").startswith("|")
        top = (i if top < 0 else top) if is_row else -1
        if is_row:
            yield from _row_labels(lines, i, top, place, vocabulary)
        elif label := _line_label(line, following, place, vocabulary):
            yield label
        place += len(line)


def _line_label(line: str, following: str, place: int, vocabulary: Vocabulary) -> _Label | None:
    lead = _LEAD.match(line)
    begin = lead.end() if lead else 0
    depth = len(lead["indent"].expandtabs(4)) if lead else 0
    rest = line[begin : begin + 4 * _LABEL_CHARS].rstrip("\r\n")
    is_heading = bool(lead and lead["heading"])
    if found := _separated(rest):
        phrase, after = found
        if parts := vocabulary.parts_of(phrase):
            return _Label(parts, place, place + begin + after, depth, is_heading)
    if (marked := _EMPHASIZED.match(rest)) and (parts := vocabulary.parts_of(marked[2])):
        return _Label(parts, place, place + begin + marked.end(), depth)
    parts = vocabulary.parts_of(rest) if len(rest) < _LABEL_CHARS else ()
    is_underlined = bool(_UNDERLINE.fullmatch(following.rstrip("\r\n")))
    if parts and (is_heading or is_underlined or rest[:1].isupper()):
        after = len(line) + (len(following) if is_underlined else 0)
        return _Label(parts, place, place + after, depth, is_heading=True)
    return None


def _separated(line: str) -> tuple[str, int] | None:
    """Return what a line has before its first colon or dash outside of brackets, and where the text begins."""
    depth = 0
    for i, char in enumerate(line[:_LABEL_CHARS]):
        depth += (char in "([") - (char in ")]")
        is_dash = char in _DASHES and line[i - 1 : i] in (" ", "\t") and line[i + 1 : i + 2] in (" ", "\t", "")
        is_question = char == "?" and line[i + 1 : i + 2] in (" ", "\t", "*", "_", "")
        if depth <= 0 and i and (char in _COLONS or is_dash or is_question):
            after = i + 1
            while line[after : after + 1] in ("*", "_") and line[:1] in ("*", "_", "`"):
                after += 1
            return line[:i], after
    return None


def _row_labels(lines: Sequence[str], i: int, top: int, place: int, vocabulary: Vocabulary) -> Iterator[_Label]:
    """Yield the labels of a row of the table that begins at ``top``: its first cell, or its column's head."""
    cells = list(_cells(lines[i]))
    has_head = top + 1 < len(lines) and _RULE.fullmatch(lines[top + 1].strip()) is not None
    head = top if has_head else -1
    heads = [vocabulary.parts_of(lines[top][slice(*cell)]) for cell in _cells(lines[top])] if has_head else []
    if len({*filter(None, heads)}) > 1:
        is_filled = head != i and not _RULE.fullmatch(lines[i].strip())
        for (start, end), parts in zip(cells, heads, strict=False) if is_filled else ():
            if parts:
                yield _Label(parts, place + start, place + start, 0, end=place + end)
    elif len(cells) > 1 and head != i and (parts := vocabulary.parts_of(lines[i][slice(*cells[0])])):
        yield _Label(parts, place, place + cells[1][0], 0, end=place + cells[-1][1])


def _cells(line: str) -> Iterator[tuple[int, int]]:
    """Yield where each cell of a row begins and ends."""
    start = line.find("|") + 1
    while 0 < start < len(line.rstrip()):
        end = line.find("|", start)
        end = len(line) if end < 0 else end
        yield start, end
        start = end + 1


def _enclosed_labels(text: str, vocabulary: Vocabulary, known: Set[int]) -> Iterator[_Label]:
    """Yield labels in HTML tags, and those in brackets if they hold several parts and a line begins with the first."""
    found = [(hit, hit["phrase"]) for hit in _TAGGED.finditer(text)]
    bracketed = [(hit, hit["round"] or hit["square"]) for hit in _IN_BRACKETS.finditer(text)]
    bracketed = [(hit, phrase) for hit, phrase in bracketed if phrase[:1].isupper() and vocabulary.parts_of(phrase)]
    if len({vocabulary.parts_of(phrase) for _, phrase in bracketed}) > 1:
        first = bracketed[0][0].start()
        lead = _LEAD.match(text, text.rfind("\n", 0, first) + 1)
        found += bracketed if lead and lead.end() == first else []
    for hit, phrase in found:
        if hit.start() not in known and (parts := vocabulary.parts_of(phrase.rstrip(" :\uff1a"))):
            after = _AFTER_LABEL.match(text, hit.end())
            yield _Label(parts, hit.start(), after.end() if after else hit.end(), 0)


def _labels_in_lines(text: str, vocabulary: Vocabulary) -> Iterator[_Label]:
    """Yield labels in the middle of lines: in bold, or at the beginning of a sentence, before a colon or a dash."""
    for bold in _BOLD.finditer(text):
        if parts := vocabulary.parts_of(bold[1] or bold[2]):
            yield _Label(parts, bold.start(), bold.end(), 0)
    for i, char in enumerate(text):
        is_dash = char in _DASHES and text[i - 1 : i] == " " and text[i + 1 : i + 2] == " "
        if not (char in _COLONS or is_dash):
            continue
        before = text[max(0, i - _LABEL_CHARS) : i]
        begin = max((hit.end() for hit in _BOUNDARY.finditer(before)), default=0)
        phrase = before[begin:]
        if not vocabulary.parts_of(phrase) and vocabulary.is_short:
            phrase = phrase.rstrip().rpartition(" ")[2]
        stripped = phrase.strip(" *_`")
        parts = vocabulary.parts_of(phrase) if stripped[:1].isupper() or vocabulary.is_short else ()
        if parts:
            yield _Label(parts, i - len(phrase), i + 1, 0)
