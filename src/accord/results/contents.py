"""Contents of a text in a result: whether it says something, and the parts of a reference to a specification. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from accord.core.texts import is_nothing
from accord.text.outline import seen_text

_LETTER = re.compile(r"\w")
_UNSPACED = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2}"
"""Two letters of a script without spaces between words: about one word."""

SENTENCE_WORDS = 4
"""A text of so many words may be more than a name."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_PLACEHOLDER = re.compile(r"[^\s<>]{0,200}<[A-Za-z][A-Za-z0-9 _-]{0,60}>[^\s<>]{0,200}")
_PATH = re.compile(r"(?![Nn]/[Aa]\b)[\w.-]/[\w./*-]|\w-*\.(?:md|markdown|mdx|rst|txt|adoc|ya?ml|json|html?|pdf)\b")
_QUOTED = re.compile(
    r"[\"\u201c-\u201f\u00ab\u00bb\u300c\u300e][^\"\u201c-\u201f\u00ab\u00bb\u300d\u300f]{2,}"
    r"[\"\u201c-\u201f\u00ab\u00bb\u300d\u300f]|(?<!\w)['\u2018\u201a\u2039][^\n]{3,2000}?['\u2018\u2019\u203a](?!\w)"
    r"|^[ \t]*(?P<block>(?:[-*+][ \t]+)?>[ \t]*\S[^\n]*"
    r"|(?P<fence>```|~~~)`*[^`\n]*\n(?:(?![ \t]*(?P=fence))[^\n]*\n)+)"
    r"|(?P<mark>(?<!`)`(?!`)[^`\n\"\u201c]{3,2000}`(?!`)|(?<![\w*])\*(?![*\s])[^*\n\"\u201c]{3,2000}\*(?![\w*])"
    r"|(?<!\w)_(?![_\s])[^_\n\"\u201c]{3,2000}_(?!\w)|(?<=\n\n)(?: {4}|\t)[ \t]*[^\s>*+-][^\n]*)",
    re.MULTILINE,
)
"""A quoted text, or one in code or in italics."""

_LINE_END = re.compile(r"[ \t.)]*(?:\n|\Z)")
_SECTION_WORD = r"(?:\u00a7|(?<!\w)(?:sub)?(?:sections?|headings?|chapters?|clauses?)\b)(?:\(s\)|(?!\(s\)))"
_PART = (
    r"(?:relevant[ \t]+)?(?:quotes?|quotation|excerpt|specs?|specification|reference|file|path|sections?)(?:\(s\))?"
    r"[^\w\n]*"
)
_LABEL = rf"{_PART}[:\uff1a]"
_LINE_NUMBER = re.compile(
    r"(\.\w{2,8}[`*_]{0,3})(?::\d+(?:[:\u2013-]\d+)*(?![\w.])|#L\d+(?:C\d+)?(?:-L?\d+(?:C\d+)?)?(?![\w-]))"
    r"|[,:(]?[ \t]{0,3}\b(?:(?:lines?|ln?|pages?|pp?)\b\.?[ \t]?|L)\d+(?:[ \t]?(?:[\u2013,-]|to|and)[ \t]?L?\d+)*\b",
    re.IGNORECASE,
)
"""A line or a page, which is not a section; the ending of the file before it stays."""

_SECTION = re.compile(
    rf"{_SECTION_WORD}(?:[^\w\n\u00a7]|\n(?![ \t]*>))*(?!{_LABEL})(\w[^\n]*)|((?<=\w)#[\w-]+|#(?!\d+(?![\w-]))[\w-]+)"
    r"|(?<=[^\n#])\#{2,6}[ \t]+(\w[^\n]*)"
    r"|\.\w{2,8}[`*_\"')\]\u201d]{0,3}"
    r"(?:[ \t]*(?:[,;:(>\u203a\u2192\u2013\u2014-]+|/(?=[ \t]))[ \t]*(?:(?:in|under|at)[ \t]+)?(?:the[ \t]+)?"
    r"|[ \t]+(?=[`*_])|[ \t]*\n\s*(?:[-*+\u2022]|\d{1,2}[.)]|\#{1,6})[ \t]+(?!\w[\w ]{0,20}[:\uff1a]))"
    rf"(?!{_LABEL})(?:`|[*_]{{0,3}}(?-i:(?![a-z])))([^\W_][^\n]*)"
    r"|\bthe[ \t]+(?-i:(?=[A-Z\d]))([^\n.,;:]{1,60}?)[ \t]+(?:sub)?(?:sections?|headings?|chapters?|clauses?)\b",
    re.IGNORECASE,
)
"""The name of a section: around a word for it, an anchor, a heading, or what follows the file's path."""

_NAME_START = re.compile(rf"{_SECTION_WORD}(?:[*_`]*[ \t]*[:\uff1a|])?", re.IGNORECASE)
_GAP = re.compile(r"(?:[ \t*_`().\u00a7,;/&]|\b(?:[au]nd|or|[a-z][ivx]*|[a-z]?\d\w*)\b)*(?<!,)", re.IGNORECASE)
"""Characters, numbers and words between a word for a section and its quoted name."""

_BEHIND_NAME = re.compile(
    r"[\s*_`]*(?:sub)?(?:section|heading|chapter|clause)s?\b(?!(?:\(s\))?[*_`]*[:\uff1a])", re.IGNORECASE
)
_AFTER_PATH = re.compile(r"\.\w{2,8}[^\n]{0,30}\Z")
_QUOTE = re.compile(
    r"(?:^[ \t]*|(?<=[.;,|)*\u3002]))[^\w\n]{0,9}(?:relevant[ \t]+)?(?:quotes?|quotation|quoted|excerpt)\b"
    rf"(?:[^\n:\uff1a|]{{0,40}}[:\uff1a|]|[^\w\n]{{0,9}}$)((?:[^\n]|\n(?![^\w\n]*{_PART}[:\uff1a|]))*)",
    re.IGNORECASE | re.MULTILINE,
)
_REMARK = re.compile(r"(?<=\w)\W*[(\[,;].*|(?<=\w)\W*\s[\u2013\u2014-]\s.*", re.DOTALL)
"""A remark in brackets or behind a dash or a comma, as in "none (the spec is silent)"."""
_UNNAMED = re.compile(r"\W*(?:none|n/?a|tbd|unknown)?\W*", re.IGNORECASE)


def says_something(text: str) -> bool:
    """Return whether a text is more than a placeholder, a word such as none, or the text of a template."""
    return not is_nothing(seen_text(text))


def word_count(text: str) -> int:
    """Return about how many words a text has."""
    return sum(max(1, len(re.findall(_UNSPACED, word))) for word in text.split() if _LETTER.search(word))


def reference_gaps(text: str) -> list[str]:
    """Return which parts a reference to a specification lacks: its ``path``, ``section`` and ``quote``.

    A path or a section's name in quotation marks is not a quote; of two quoted texts, the first may name the section.
    """
    text = _PLACEHOLDER.sub(" ", _COMMENT.sub("", text.replace("\r\n", "\n")))
    labelled = [says_something(_without_remark(hit[1])) for hit in _QUOTE.finditer(text)]
    quotes = [*_quotes(text)]
    told = {hit[0] for hit in quotes if not _PATH.search(hit[0])}
    bare = _LINE_NUMBER.sub(r"\1", _QUOTED.sub(lambda hit: '""' if hit[0] in told else hit[0], text))
    names = (_without_remark(hit[hit.lastindex or 0]) for hit in _SECTION.finditer(bare))
    has_section = not all(map(_UNNAMED.fullmatch, names))
    first = next((hit.start() for hit in quotes if not hit["block"]), 0)
    is_first = len(quotes) > 1 and _AFTER_PATH.search(text[:first])
    found = {"path": _PATH.search(text), "section": has_section or is_first, "quote": any(labelled or quotes)}
    return [part for part, is_there in found.items() if not is_there]


def _without_remark(text: str) -> str:
    return _REMARK.sub("", seen_text(text))


def _quotes(text: str) -> Iterator[re.Match[str]]:
    """Yield the quoted texts that are neither a path nor a section's name; in code or italics, only at a line end."""
    for hit in _QUOTED.finditer(text):
        before = text[max(0, hit.start() - 200) : hit.start()].rstrip(" \t*_`")
        is_named = any(_GAP.fullmatch(before, each.end()) for each in _NAME_START.finditer(before))
        is_title = not hit["block"] and hit[0][-2] not in ".\u2026\u3002"
        is_name = is_title and (is_named or _BEHIND_NAME.match(text, hit.end()))
        is_text = says_something(hit[0]) and (" " in hit[0] or not _PATH.search(hit[0]))
        is_set_off = word_count(hit[0]) > 1 and _LINE_END.match(text, hit.end())
        if is_text and not is_name and (is_set_off or not hit["mark"]):
            yield hit
