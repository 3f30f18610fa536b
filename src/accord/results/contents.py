"""Contents of a text in a result: whether it says something, and the parts of a reference to a specification. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, zip_longest

from accord.core.texts import is_nothing
from accord.text.blocks import read_blocks
from accord.text.outline import code_of, seen_text

_LETTER = re.compile(r"\w")
_CODE = re.compile(r"`[^`]+`")
_SIGN = re.compile(r"[^`\w\s.?\u2026_-]")
"""A sign that is a text in code, such as ``>=``; dots, dashes and question marks are places for one."""

_EMPTY_PAIR = re.compile(r"(?<![\[({<])[\[({<]+[\s.?\u2026_]*[\])}>]+")

_UNSPACED = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2}"
"""Two letters of a script without spaces between words: about one word."""

_HEAD_CHARS = 500
"""Characters above a line in which its section is looked for."""

SENTENCE_WORDS = 4
"""A text of so many words may be more than a name."""

_NAME_LINE = re.compile(
    r"^(?![^\n]*[.!?\u3002][^\w\n]{0,9}$)(?:\#{1,6}[ \t]|[^\w\n]{0,9}\w+(?:[ \t]\w+)?[*_]{0,3}[:\uff1a]"
    r"|[^\n]*\n(?=[ \t|:]*-|=)[ \t|:=-]+$"
    r"|[^\w\n]{0,9}(?<=[*_]{2})[^*_\n]+(?:[:\uff1a][*_]{2}|[*_]{2}(?:[:\uff1a]|[ \t]*$)))[^\n]*",
    re.MULTILINE,
)
"""A heading, the head of a table, a line in bold and one behind a short label, if it does not end a sentence."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_PLACEHOLDER = re.compile(r"[^\s<>]{0,200}<[A-Za-z][A-Za-z0-9 _-]{0,60}>[^\s<>]{0,200}")
_PATH = re.compile(r"(?![Nn]/[Aa]\b)[\w.-]/[\w./*-]|\w-*\.(?:md|markdown|mdx|rst|txt|adoc|ya?ml|json|html?|pdf)\b")
_QUOTED = re.compile(
    r"[\"\u201c-\u201f\u00ab\u00bb\u300c\u300e][^\"\u201c-\u201f\u00ab\u00bb\u300d\u300f]{2,}"
    r"[\"\u201c-\u201f\u00ab\u00bb\u300d\u300f]|(?<!\w)['\u2018\u201a\u2039][^\n]{3,2000}?['\u2018\u2019\u203a](?!\w)"
    r"|^[ \t]*(?P<block>(?:[-*+][ \t]+)?>[ \t]*\S[^\n]*"
    r"|(?P<fence>```|~~~)`*[^`\n]*\n(?:(?![ \t]*(?P=fence))[^\n]*\n)+)",
    re.MULTILINE,
)
_MARKED = re.compile(
    rf"{_QUOTED.pattern}|(?P<mark>(?<!`)`(?!`)[^`\n\"\u201c]{{3,2000}}`(?!`)|(?<![\w*])\*(?![*\s])[^*\n\"\u201c]{{3,2000}}\*(?![\w*])"
    r"|(?<!\w)_(?![_\s])[^_\n\"\u201c]{3,2000}_(?!\w)|(?<=\n\n)(?: {4}|\t)[ \t]*[^\s>*+-][^\n]*)",
    re.MULTILINE,
)
"""A quoted text, or one in code or in italics."""

_SET_OFF_LEAD = re.compile(r"[,;:\uff1a>\u203a\u2192\u2013\u2014/-][ \t]*\Z")
_LINE_END = re.compile(r"[ \t.)]*(?:\n|\Z)")
_SECTION_WORD = r"(?:\u00a7|(?<!\w)(?:sub)?(?:sections?|headings?|chapters?|clauses?)\b)(?:\(s\)|(?!\(s\)))"
_PART = (
    r"(?:relevant[ \t]+)?(?:quotes?|quotation|excerpt|specs?|specification|reference|file|path|sections?)(?:\(s\))?"
    r"[^\w\n]*"
)
_LABEL = rf"{_PART}[:\uff1a]"
_OTHER = r"(?:\w[\w ]{0,20}[:\uff1a])?[ \t`*_\[(]{0,5}(?:[\w./-]{1,100}\.(?P=extension)|#\d+)(?![\w-])"
"""Another file, or an issue, behind the path of a file."""

_FILE = r"[\w-]{1,100}(?:/[\w-]{1,100}){1,20}\.\w{1,8}`"
_LINE_NUMBER = re.compile(
    r"(\.\w{2,8}[`*_]{0,3})(?::\d+(?:[:\u2013-]\d+)*(?![\w.])|#L\d+(?:C\d+)?(?:-L?\d+(?:C\d+)?)?(?![\w-]))"
    r"|[,:(]?[ \t]{0,3}\b(?:(?:lines?|ln?|pages?|pp?)\b\.?[ \t]?|L)\d+(?:[ \t]?(?:[\u2013,-]|to|and)[ \t]?L?\d+)*\b",
    re.IGNORECASE,
)
"""A line or a page, which is not a section; the ending of the file before it stays."""

_SECTION = re.compile(
    rf"{_SECTION_WORD}(?:[^\w\n\u00a7]|\n(?![ \t]*>))*(?!{_LABEL})(\w[^\n]*)|((?<=\w)#[\w-]+|#(?!\d+(?![\w-]))[\w-]+)"
    r"|(?<=[^\n#])\#{2,6}[ \t]+(\w[^\n]*)"
    r"|\.(?P<extension>\w{2,8})[`*_\"')\]\u201d]{0,3}"
    r"(?:(?:[ \t]*[,;:(>\u203a\u2192\u2013\u2014-]+|[ \t]+/(?=[ \t]))[ \t]*(?:(?:in|under|at)[ \t]+)?(?:the[ \t]+)?"
    rf"(?:[`*_]{{0,3}}(?-i:(?![a-z]))|`(?!{_FILE}))"
    rf"(?!{_LABEL})|[ \t]+(?:`(?!{_FILE})|[*_]{{1,3}}(?-i:(?![a-z])))"
    rf"|[ \t]*\n\s*(?:[-*+\u2022]|\d{{1,2}}[.)]|\#{{1,6}})[ \t]+[`*_]{{0,3}}(?!{_LABEL}))(?!{_OTHER})([^\W_][^\n]*)"
    r"|\bthe[ \t]+(?-i:(?=[A-Z\d]))([^\n.,;:]{1,60}?)[ \t]+(?:sub)?(?:sections?|headings?|chapters?|clauses?)\b",
    re.IGNORECASE,
)
"""The name of a section: around a word for it, an anchor, a heading, or what follows the file's path."""

_UNNAMED = re.compile(r"\W*(?:none|n/?a|tbd|unknown|no (?:relevant )?(?:section|quote)s?)?\W*", re.IGNORECASE)
_SECTION_LABEL = rf"(?:\A|[\n,;:.(|\uff1a\u2013\u2014-])[ \t*_`]{{0,4}}{_SECTION_WORD}[*_`]*[ \t]*[:\uff1a|]"
_OPENER = rf"(?i)(?P<label>{_SECTION_LABEL})|{_SECTION_WORD}"
_GAP = r"(?:[ \t*_`().\u00a7,;/&]|(?<=[,;/&d])\n|(?<=\d)[\u2013-](?=\d)|\b(?:[au]nd|or|[a-z][ivx]*|[a-z]?\d\w*)\b)*"
"""Characters and words between the word or label for sections and their quoted names."""

_BEHIND_WORD = rf"(?i){_GAP}(?<!,)"
_BEHIND_LABEL = rf"(?i){_GAP}|(?!.*\s-\s)[^\n:\uff1a|\u2013\u2014\u2192\u203a>]*(?:[,;/&]|\sand|\sor)"
_ENTRY = re.compile(r"(?:\n|(?<=[:\uff1a|]))[ \t]*(?:[-*+]|\d+[.)])[ \t]+")
_NAMES_LISTED = re.compile(
    rf"{_SECTION_LABEL}[*_`]*[ \t]*(?:\n([ \t]*))?(?:[-*+]|1[.)])[ \t]+(?!>)[^\n]*"
    rf"(?:\n(?(1)\1|[ \t]*)(?:[-*+]|\d+[.)])[ \t]+(?!>|[*_`]*{_LABEL})[^\n]*)*",
    re.IGNORECASE,
)
_SECTION_LINE = re.compile(rf"^[^\n]*{_SECTION_WORD}[^\n]*", re.IGNORECASE | re.MULTILINE)
_AFTER_PATH = re.compile(r"\.\w{2,8}[^\n]{0,30}\Z")
_BEHIND_NAME = re.compile(
    rf"(?:{_GAP}[\"\u201c-\u201f][^\"\u201c-\u201f\n]+[\"\u201c-\u201f]){{0,9}}[\s*_`]*"
    r"(?:sub)?(?:section|heading|chapter|clause)s?\b(?!(?:\(s\))?[*_`]*[:\uff1a])",
    re.IGNORECASE,
)
_TABLE = re.compile(r"^(?=[^\n]*\|)([^\n]*)\n(?=[^\n]*-)[ \t:|-]+\n((?:(?=[^\n]*\|)[^\n]+(?:\n|\Z))*)", re.MULTILINE)
_QUOTE = re.compile(
    r"(?:^[ \t]*|(?<=[.;,|)*\u3002]))[^\w\n]{0,9}(?:relevant[ \t]+)?(?:quotes?|quotation|quoted|excerpt)\b"
    rf"(?:[^\n:\uff1a|]{{0,40}}[:\uff1a|]|[^\w\n]{{0,9}}$)((?:[^\n]|\n(?![^\w\n]*{_PART}[:\uff1a|]))*)",
    re.IGNORECASE | re.MULTILINE,
)

_REMARK = re.compile(
    r"[\s>*_`(\[]*(\w[\w/ ]{1,20})[*_`]*"
    r"(?:[ \t]*[(\[][^\n()\[\]]*[)\]][^\w\n]*|(?:[ \t]+[\u2013\u2014-]|[,;])[ \t][^\n]*)\s*"
)
"""A few words, and a remark in brackets or behind a dash or a comma, as in "none (the spec is silent)"."""

_DENIAL = re.compile(r"\b(?:no|none|not|nothing)\b", re.IGNORECASE)


def says_something(text: str) -> bool:
    """Return whether a text is more than a placeholder, a word such as none, or the text of a template."""
    seen = seen_text(text)
    if not is_nothing(seen):
        return True
    if any(map(str.isalnum, seen)):
        return False
    fences = (code for block in read_blocks(text).leaves if block.kind == "fence" for code in code_of(block))
    return any(_SIGN.search(_EMPTY_PAIR.sub("", code)) for code in chain(_CODE.findall(seen), fences))


def word_count(text: str) -> int:
    """Return about how many words a text has."""
    return sum(max(1, len(re.findall(_UNSPACED, word))) for word in text.split() if _LETTER.search(word))


def has_sentence(text: str) -> bool:
    """Return whether a paragraph or cell of a text may be a sentence: headings, labels and short lines are not."""
    paragraphs = re.split(r"\n\s*\n|\|", _NAME_LINE.sub("", text))
    return any(word_count(seen_text(each)) >= SENTENCE_WORDS for each in paragraphs)


def reference_gaps(text: str) -> list[str]:
    """Return which parts a reference to a specification lacks: its ``path``, ``section`` and ``quote``.

    A path or a section's name in quotation marks is not a quote; of two quoted texts, the first may name the section.
    """
    text = _TABLE.sub(_labelled_cells, _PLACEHOLDER.sub(" ", _COMMENT.sub("", text.replace("\r\n", "\n"))))
    labelled = [_is_quote(hit[1]) for hit in _QUOTE.finditer(text)]
    flat = _NAMES_LISTED.sub(lambda hit: _ENTRY.sub(", ", hit[0]), text)
    if labelled and not any(labelled):
        flat = _SECTION_LINE.sub("", _QUOTE.sub("", flat))
    quotes = [*_quotes(flat)]
    first = next((hit for hit in quotes if not hit["block"]), None)
    told = {hit[0] for hit in quotes if not _PATH.search(hit[0])}
    has_section = _names_section(_MARKED.sub(lambda hit: '""' if hit[0] in told else hit[0], text))
    is_first = len(quotes) > 1 and first and _AFTER_PATH.search(first.string[: first.start()])
    found = {"path": _PATH.search(text), "section": has_section or is_first, "quote": any(labelled) or quotes}
    return [part for part, is_there in found.items() if not is_there]


def _is_quote(text: str) -> bool:
    """Return whether the text of a quote's label is one: a few words without quotation marks may deny that."""
    is_few = word_count(seen_text(text)) < SENTENCE_WORDS and not _QUOTED.search(text)
    bare = _without_remark(text)
    return says_something(bare) and not _UNNAMED.fullmatch(bare) and not (is_few and _DENIAL.search(text))


def _names_section(text: str) -> bool:
    """Return whether a text names a section: a line number or a placeholder is not a name."""
    hits = _SECTION.finditer(_LINE_NUMBER.sub(r"\1", text))
    return not all(_UNNAMED.fullmatch(_without_remark(seen_text(hit[hit.lastindex or 0]))) for hit in hits)


def _without_remark(text: str) -> str:
    remark = _REMARK.fullmatch(text)
    return remark[1] if remark else text


def _labelled_cells(table: re.Match[str]) -> str:
    """Return the cells of a table, each on a line behind the head of its column, if the heads name parts."""
    lines = (table[1], *table[2].splitlines())
    heads, *rows = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines)
    if sum(re.fullmatch(_PART, head, re.IGNORECASE) is not None for head in heads) < 2:
        return table[0]
    return "".join(
        f"{head}: {cell}\n" for row in rows if any(row) for head, cell in zip_longest(heads, row, fillvalue="")
    )


def _quotes(text: str) -> Iterator[re.Match[str]]:
    """Yield the quoted texts that are neither a path nor a section's name; a sentence is one only next to a label."""
    end, is_name = 0, False
    for hit in _MARKED.finditer(text):
        before = text[max(0, hit.start() - 200) : hit.start()]
        gaps = [(each["label"], before[each.end() :].strip(" \t*_`")) for each in re.finditer(_OPENER, before)]
        is_next = is_name and re.fullmatch(_GAP, text[end : hit.start()], re.IGNORECASE)
        is_named = is_next or any(
            re.fullmatch(_BEHIND_LABEL, gap) if label else re.fullmatch(_BEHIND_WORD, gap) for label, gap in gaps
        )
        is_title = hit[0][-2] not in ".\u2026\u3002" and (is_named or _BEHIND_NAME.match(text, hit.end()))
        is_name = not hit["block"] and bool(is_title or any(not gap.strip() for _, gap in gaps))
        end = hit.end()
        is_text = says_something(hit[0]) and (" " in hit[0] or not _PATH.search(hit[0]))
        if not is_name and is_text and (not hit["mark"] or _is_set_off(hit)):
            yield hit


def _is_set_off(hit: re.Match[str]) -> bool:
    """Return whether a few words in code or italics end a line behind a section, or are alone on a line below one."""
    if word_count(hit[0]) < 2 or not _LINE_END.match(hit.string, hit.end()):
        return False
    start = hit.string.rfind("\n", 0, hit.start()) + 1
    lead = hit.string[start : hit.start()]
    if not lead.strip(" \t*+-"):
        start = max(0, start - _HEAD_CHARS)
    elif not _SET_OFF_LEAD.search(lead[-9:]):
        return False
    return _names_section(hit.string[start : hit.start()])
