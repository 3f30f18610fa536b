"""The regions of a Markdown text: code, prose, tags and links, as offsets into the text itself.

Where two readers of Markdown may differ (a backtick or a bracket in a bare address, a row that only looks like
one of a table, a reference with a backtick in its name), nothing from ``Prose.doubt`` on counts as code or as a link:
changed code is a nuisance, a mention taken for code a hole.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accord.text.parser import NESTING, InlineSpan, markdown_parser, spans_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from markdown_it.token import Token


LONGEST_PROSE = 65_536
"""Characters of one paragraph that are looked into: GitHub takes no longer body."""

LONGEST_TEXT = 4 * LONGEST_PROSE
"""Characters of a text that is looked into: enough for one that is posted as a body and follow-up comments."""

MOST_PARTS = 8_192
"""Paragraphs, cells, tags, links and spans of code that are looked into, or one in 12 characters of a longer text."""

_LINE = re.compile(r"[^\r\n]*(\r\n?|\n|\Z)")
_FOOTNOTE_LABEL = re.compile(r"\[(\^[^\]\s]+)\]:")
_NOTE_AS_DEFINITION = re.compile(r"\[(\^[^\]\s]+)\]:[\s>]*<?([^\s>]*)")
_BACKTICK_IN_LABEL = re.compile(r"(\]\[)[^\]]*`")
_BACKTICK_IN_ADDRESS = re.compile(r"(?<![^)\s])(?:(?!\]\()[^)\s])*+(\]\()[^)\s`]*+`")
_NOTE = re.compile(r"\[(\^(?:(?!\[\^)[^\]\s])++)\]|\[(?:\\?\^|&(?:#0{0,6}94|#[xX]0{0,6}5[eE]|Hat);)")
_ADDRESS = re.compile(r"(?:://|www\.)[^ \t-\r<]*", re.IGNORECASE)
_SWALLOWED = re.compile(r"[`\\]")
TABLE_RULE = re.compile(r"^[ \t]*[|:-][ \t|:-]*$", re.MULTILINE)
"""The row below the head of a table, or something like it."""

_INDENTED = re.compile(r"[ >]*(?: {4}|\t)[ \t]*[^ \t]")
_NESTED_BRACKETS = re.compile(r"(?:\[[^\[\]]*){15}")
_MANY_BRACKETS = re.compile(r"(?:\[[^\[\]]*){64}")
_LONGEST_LABEL = 900
"""CommonMark ends a label at 999 characters, markdown-it does not."""


@dataclass(frozen=True)
class Prose:
    """Text of a paragraph, heading, cell or HTML block, without the marks of the blocks around it.

    Readers may differ on what is code from ``doubt`` on.
    """

    content: str
    is_html: bool
    is_cell: bool
    doubt: int
    spans: Sequence[InlineSpan]
    _starts: Sequence[int]
    _sources: Sequence[int]

    def source(self, position: int) -> int:
        """Return where in the whole text an offset into ``content`` is."""
        i = bisect_right(self._starts, position) - 1
        return self._sources[i] + position - self._starts[i]

    @property
    def is_doubtful(self) -> bool:
        """Whether readers may differ on any of it."""
        return self.doubt < len(self.content)


@dataclass(frozen=True, slots=True)
class Definition:
    """A link reference definition: where its ``[`` is, and where it ends.

    cmark-gfm takes one for text when a table or an indented line follows without a blank line.
    """

    start: int
    end: int
    label: str
    address: str
    is_doubtful: bool = False


@dataclass
class ParsedMarkdown:
    """A text taken apart. ``code`` holds what stays byte for byte, ``open_fence`` the fence that nothing closes.

    ``false_rules`` belong to tables that cmark-gfm does not see: it looks for one only once in a paragraph.
    A footnote ends a paragraph for GitHub and none for plain CommonMark, so that a tag may end where only one sees it.
    ``footnotes`` holds each with its label and all that is indented below it.
    """

    text: str
    lines: Sequence[tuple[int, int]]
    code: list[tuple[int, int]] = field(default_factory=list)
    prose: list[Prose] = field(default_factory=list)
    footnotes: list[Definition] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    false_rules: list[int] = field(default_factory=list)
    open_fence: str = ""
    is_readable: bool = True
    tokens: Sequence[Token] = ()
    notes: frozenset[str] = frozenset()

    def line(self, number: int) -> str:
        """Return a line without its end."""
        start, end = self.lines[number]
        return self.text[start:end]


def parse_markdown(text: str) -> ParsedMarkdown:
    """Take a Markdown text apart."""
    if len(text) > LONGEST_TEXT:
        return ParsedMarkdown(text, (), is_readable=False)
    page = ParsedMarkdown(text, [(hit.start(), hit.start(1)) for hit in _LINE.finditer(text)])
    env: dict[str, Any] = {}
    tokens = markdown_parser().parse(text, env)
    page.is_readable = all(map(_is_readable, tokens))
    if page.is_readable:
        page.tokens = tokens
        page.definitions += _definitions(page, env)
        page.footnotes += _footnotes(page, env)
        page.notes = frozenset(note.label for note in page.footnotes)
        _read_blocks(page, tokens, env)
        page.false_rules += _false_rules(page, tokens)
        parts = len(page.prose) + sum(len(prose.spans) for prose in page.prose)
        page.is_readable = page.is_readable and parts <= max(MOST_PARTS, len(text) // 12)
    return page


def _is_readable(token: Token) -> bool:
    if token.level >= NESTING - 2:
        return False
    return token.type != "inline" or (len(token.content) <= LONGEST_PROSE and not _MANY_BRACKETS.search(token.content))


def _read_blocks(page: ParsedMarkdown, tokens: Sequence[Token], env: dict[str, Any]) -> None:
    cell_end = (-1, 0)
    ends: dict[int, int] = {}
    for i, token in enumerate(tokens):
        if token.map is None:
            continue
        first, last = token.map
        if token.type == "code_block" and i and tokens[i - 1].type == "table_close":
            page.prose += (
                Prose(page.line(number), False, True, 0, spans_of(page.line(number), env), [0], [page.lines[number][0]])
                for number in range(first, last)
            )
        elif token.type in ("fence", "code_block"):
            page.code.append((page.lines[first][0], page.lines[last - 1][1]))
            if token.type == "fence" and token.level == 0 and not _is_closed(page, token):
                page.open_fence = token.markup
        elif token.type == "html_block":
            page.prose.append(_prose(page, token, env, _by_lines(page, token)))
        elif token.type == "inline" and tokens[i - 1].type in ("th_open", "td_open"):
            searched_from = cell_end[1] if cell_end[0] == first else 0
            cell, end = _by_cell(page, token, searched_from)
            cell_end = (first, end)
            ends[first] = end
            page.prose.append(_prose(page, token, env, cell, is_cell=True))
        elif token.type == "inline":
            page.prose.append(_prose(page, token, env, _by_lines(page, token)))

    page.prose += _excess_cells(page, ends, env)
    page.prose.sort(key=lambda prose: prose.source(0))


def _excess_cells(page: ParsedMarkdown, ends: Mapping[int, int], env: dict[str, Any]) -> Iterator[Prose]:
    """Yield what follows the last cell of each row: it shows where a reader sees no table."""
    for first, end in ends.items():
        rest = page.text[end : page.lines[first][1]]
        if rest.strip("| \t"):
            yield Prose(rest, False, True, 0, spans_of(rest, env), [0], [end])


def _false_rules(page: ParsedMarkdown, tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the rules of tables that cmark-gfm does not see, since it looks for one only once in a paragraph."""
    below = _lines_at_rules(page, range(len(page.lines)))
    for token in tokens:
        rule = token.map[0] + 1 if token.map else 0
        if token.type == "table_open" and (rule - 1 in below or (rule in below and page.line(rule - 2).strip(" \t>"))):
            yield page.text.find(page.line(rule).strip(" \t>"), page.lines[rule][0])


def _is_closed(page: ParsedMarkdown, fence: Token) -> bool:
    first, last = fence.map or (0, 0)
    closing = page.line(last - 1).strip()
    return last - first > 1 and set(closing) == {fence.markup[0]} and len(closing) >= len(fence.markup)


def _prose(
    page: ParsedMarkdown,
    token: Token,
    env: dict[str, Any],
    places: tuple[list[int], list[int]],
    *,
    is_cell: bool = False,
) -> Prose:
    is_html = token.type == "html_block"
    spans = [] if is_html else spans_of(token.content, env)
    prose = Prose(token.content, is_html, is_cell, _doubt(page, token, spans), spans, *places)
    code = (span for span in spans if span.kind == "code" and span.end <= prose.doubt)
    page.code += [(prose.source(span.start), prose.source(span.end - 1) + 1) for span in code]
    return prose


def _doubt(page: ParsedMarkdown, token: Token, spans: Sequence[InlineSpan]) -> int:
    """Return from where on readers may differ on what is code and what is a link: the length if nowhere."""
    content = token.content
    if token.type == "html_block":
        return len(content)
    first, last = token.map or (0, 0)
    row = page.line(first) if last - first == 1 else ""
    if TABLE_RULE.search(content) or _NESTED_BRACKETS.search(content) or "\\\\|" in row:
        return 0
    outside = _without_code(content, spans)
    backticks = filter(None, (_BACKTICK_IN_LABEL.search(content), _BACKTICK_IN_ADDRESS.search(content)))
    ticks = _lost_backtick(content, spans)
    return min(ticks, _lost_note(page, outside), _odd_address(outside, spans), *(hit.start(1) for hit in backticks))


def _lost_backtick(content: str, spans: Sequence[InlineSpan]) -> int:
    """Return where the first backtick is that belongs to no code: cmark-gfm loses count after it."""
    position = content.find("`")
    for span in spans:
        if span.kind == "code" and span.start <= position:
            position = content.find("`", span.end)
    return len(content) if position < 0 else position


def _lost_note(page: ParsedMarkdown, content: str) -> int:
    """Return where the first footnote without a definition begins: cmark-gfm shows its source as text."""
    return next((hit.start() for hit in _NOTE.finditer(content) if hit[1] not in page.notes), len(content))


def _odd_address(content: str, spans: Sequence[InlineSpan]) -> int:
    """Return where a bare address begins that swallows markup: for cmark-gfm, it ends only at a blank or ``<``."""
    links = [span.start for span in spans if span.kind in ("link", "image")]
    for hit in _ADDRESS.finditer(content):
        i = bisect_left(links, hit.start())
        if _SWALLOWED.search(hit[0]) or (i < len(links) and links[i] < hit.end()):
            return hit.start()
    return len(content)


def _without_code(content: str, spans: Sequence[InlineSpan]) -> str:
    """Blank what is inside code, but keep its first backtick, which an address before it may swallow."""
    pieces, end = [], 0
    for span in spans:
        if span.kind == "code" and span.start >= end:
            pieces += [content[end : span.start], "`".ljust(span.end - span.start)]
            end = span.end
    return "".join(pieces) + content[end:]


def _by_lines(page: ParsedMarkdown, token: Token) -> tuple[list[int], list[int]]:
    """Place content of whole lines: each line of it is the rest of a line of the text, less outer blanks."""
    starts: list[int] = []
    sources: list[int] = []
    position = 0
    first, _ = token.map or (0, 0)
    for number, line in enumerate(token.content.split("\n")):
        begin, end = page.lines[min(first + number, len(page.lines) - 1)]
        bare = line.strip()
        at = page.text.rfind(bare, begin, end) if bare else end
        page.is_readable = page.is_readable and at >= 0
        starts.append(position)
        sources.append(max(begin, at - line.find(bare)))
        position += len(line) + 1
    return starts, sources


def _by_cell(page: ParsedMarkdown, token: Token, searched_from: int) -> tuple[tuple[list[int], list[int]], int]:
    """Place a cell of a table, whose escaped pipes have become plain; return also where the next cell may begin."""
    begin, end = page.lines[(token.map or [0])[0]]
    written = token.content.replace("|", "\\|")
    at = page.text.find(written, max(begin, searched_from), end)
    page.is_readable = page.is_readable and at >= 0
    starts, sources = [0], [at]
    for count, hit in enumerate(re.finditer(r"\|", token.content), 1):
        starts.append(hit.end())
        sources.append(at + hit.end() + count)
    return (starts, sources), at + len(written)


def _definitions(page: ParsedMarkdown, env: dict[str, Any]) -> Iterator[Definition]:
    """Yield the definitions; footnotes too, since readers without footnotes take their beginning for an address."""
    doubtful = _lines_at_rules(page, range(len(page.lines) - 1, -1, -1))
    named = [(label, definition) for label, definition in env.get("references", {}).items()]
    named += [(definition["label"], definition) for definition in env.get("duplicate_refs", ())]
    for label, definition in named:
        first, last = definition["map"]
        begin, end = page.lines[first][0], page.lines[last - 1][1]
        start = page.text.find("[", begin, end)
        if start >= 0:
            is_doubtful = last - 1 in doubtful or (last < len(page.lines) and bool(_INDENTED.match(page.line(last))))
            yield Definition(start, end, label, definition["href"], is_doubtful)
    for number in env.get("accord.footnotes", ()):
        note = _NOTE_AS_DEFINITION.match(page.text, page.text.find("[^", page.lines[number][0]))
        if note:
            yield Definition(note.start(), note.start(1), note[1], note[2])


def _lines_at_rules(page: ParsedMarkdown, numbers: range) -> set[int]:
    """Return the lines that no blank line parts from what looks like the rule of a table, earlier in this order."""
    found = set()
    is_near = False
    for number in numbers:
        line = page.line(number).strip(" \t>")
        if is_near and line:
            found.add(number)
        is_near = bool(line) and (
            is_near or (bool(TABLE_RULE.fullmatch(line)) and "-" in line and line.strip("- \t") != "")
        )
    return found


def _footnotes(page: ParsedMarkdown, env: dict[str, Any]) -> Iterator[Definition]:
    for first, last in env.get("accord.footnotes", {}).items():
        start, end = page.lines[first][0], page.lines[min(last, len(page.lines)) - 1][1]
        note = _FOOTNOTE_LABEL.match(page.text, page.text.find("[^", start))
        if note:
            yield Definition(note.start(), end, note[1], "")


def is_odd_label(label: str) -> bool:
    """Return whether readers of Markdown differ on what a reference with this label is."""
    return "`" in label or "<" in label or len(label) > _LONGEST_LABEL
