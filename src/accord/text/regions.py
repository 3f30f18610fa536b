"""The regions of a Markdown text: code, prose, tags and links, as offsets into the text itself.

Where blocks begin and end, this reads as GitHub does. Where two readers may differ on what is inside a paragraph (a
backtick or a bracket in a bare address, a row that only looks like one of a table, a reference with a backtick in its
name), nothing from ``Prose.doubt`` on counts as code or as a link: changed code is a nuisance, a mention taken for
code a hole.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from accord.core.frozen import Frozen
from accord.text.block_syntax import Block, Blocks, Definition
from accord.text.blocks import NESTING, read_blocks
from accord.text.html import html_spans
from accord.text.inlines import InlineSpan, read_inlines, references_of
from accord.text.views import Edit, View

LONGEST_PROSE = 65_536
"""Characters of one paragraph that are looked into: GitHub takes no longer body."""

LONGEST_TEXT = 4 * LONGEST_PROSE
"""Characters of a text that is looked into: enough for one that is posted as a body and follow-up comments."""

MOST_PARTS = 4_096
"""Paragraphs, cells, blocks of code, tags, links and spans of code that are looked into, or one in 12 characters."""

_NOTE_AS_DEFINITION = re.compile(r"\[(\^[^\]\s]+)\]:[\s>]*<?([^\s>]*)")
_LABEL_BEHIND = re.compile(r"\]\[([^\]]*)")
_CODE_IN_LABEL = re.compile(r"(?<!`)(`+)(?!`)[^`]+(?<!`)\1(?!`)")
_BACKTICK_IN_ADDRESS = re.compile(r"(?<![^)\s])[^)\s\]]*(?:\](?!\()[^)\s\]]*)*(\]\()[^)\s`]*`")
_ADDRESS = re.compile(r"(?:://|www\.)[^ \t-\r<]*", re.IGNORECASE)
_SWALLOWED = re.compile(r"[`\\]")
ODD_NOTE = re.compile(
    r"(?<!\\)((?:\\\\)*)\[(?:\\?\^|&(?:#0{0,6}94|#[xX]0{0,6}5[eE]|Hat);)(?!(?<=\[\^)[^]\s`<&\\\[!^@:/|]+\])"
)
"""The start of a footnote with anything but a plain name, of which cmark-gfm may show any part, or none.

Its group is what is before the bracket.
"""

TABLE_RULE = re.compile(r"^[ \t]*[|:-][ \t|:-]*$", re.MULTILINE)
"""The row below the head of a table, or something like it."""

WORDS = re.compile(r"[A-Za-z0-9 ,;\n]*")
"""Text in which nothing needs a change, though the text after it may make a keyword of it."""

_ESCAPED_PIPE = re.compile(r"\\\|")
_BLANKS = " \t\r\n"
_NESTED_BRACKETS = re.compile(r"(?:\[[^\[\]]*){15}")
_MANY_BRACKETS = re.compile(r"(?:\[[^\[\]]*){64}")
_LONGEST_LABEL = 900
"""CommonMark ends a label at 999 characters, other readers do not."""


class Prose(Frozen):
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

    def source_edit(self, edit: Edit) -> Edit:
        """Return an edit of ``content`` as one of the whole text."""
        new = edit.new.replace("|", "\\|") if self.is_cell else edit.new
        return Edit(self.source(edit.start), self.source(edit.end - 1) + 1, new, edit.kind)

    def parts(self, *kinds: str) -> list[InlineSpan]:
        """Return what is of these kinds in it."""
        return [span for span in self.spans if span.kind in kinds]

    @property
    def is_doubtful(self) -> bool:
        """Whether readers may differ on any of it."""
        return self.doubt < len(self.content)


@dataclass
class ParsedMarkdown:
    """A text taken apart."""

    text: str
    lines: Sequence[tuple[int, int]]
    code: list[tuple[int, int]] = field(default_factory=list)  # stays byte for byte
    prose: list[Prose] = field(default_factory=list)
    footnotes: list[Definition] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    excess: list[tuple[int, int]] = field(default_factory=list)  # of rows of a table beyond its last column: not shown
    fences: list[Block] = field(default_factory=list)
    open_fence: str = ""  # the fence that nothing closes
    is_readable: bool = True


def parse_markdown(text: str) -> ParsedMarkdown:
    """Take a Markdown text apart."""
    if len(text) > LONGEST_TEXT:
        return ParsedMarkdown(text, (), is_readable=False)
    blocks = read_blocks(text)
    page = ParsedMarkdown(text, blocks.lines)
    long = (block for block in blocks.leaves if block.kind in ("paragraph", "heading"))
    is_confused = any(
        sum(map(len, block.lines)) > LONGEST_PROSE or _MANY_BRACKETS.search(block.content) for block in long
    )
    page.is_readable = blocks.depth < NESTING and not is_confused
    if page.is_readable:
        page.footnotes += (
            Definition(block.sources[0], page.lines[block.last - 1][1], f"^{block.marker}", "")
            for block in blocks.footnotes
        )
        page.definitions += blocks.definitions
        for note in page.footnotes:  # readers without footnotes take their beginning for an address
            if hit := _NOTE_AS_DEFINITION.match(text, note.start):
                page.definitions.append(Definition(hit.start(), hit.start(1), hit[1], hit[2]))
        _read_leaves(page, blocks)
        page.code.sort()
        code_blocks = sum(block.kind in ("code", "fence") for block in blocks.leaves)
        parts = code_blocks + len(page.prose) + sum(len(prose.spans) for prose in page.prose)
        page.is_readable = parts <= max(MOST_PARTS, len(text) // 12)
    return page


def _read_leaves(page: ParsedMarkdown, blocks: Blocks) -> None:
    references = references_of(blocks.definitions)
    for block in blocks.leaves:
        if block.kind in ("paragraph", "heading", "html"):
            page.prose.append(_prose(page, block.lines, block.sources, references, block))
        elif block.kind == "table":
            _read_table(page, block, references)
        elif block.kind != "rule":
            last = block.first + len(block.lines) - 1 + block.is_closed
            page.code.append((block.sources[0], page.lines[last][1]))
            if block.kind == "fence":
                page.fences.append(block)
    end = page.fences[-1] if page.fences else None
    if end and end is blocks.leaves[-1] and end.level == 1 and not end.is_closed:
        page.open_fence = page.text[page.lines[end.first][0] : end.sources[0]].lstrip(" ")


def _read_table(page: ParsedMarkdown, table: Block, references: Mapping[str, str]) -> None:
    """Read each cell, and in one piece what follows the last one: it shows where a reader sees no table."""
    for number, row in enumerate(table.rows):
        cells = row[: table.length]
        if len(row) > len(cells):
            begin = page.text.rfind("|", 0, row[len(cells)][0]) + 1
            page.excess.append((begin, page.lines[table.first + number + (number > 0)][1]))
            cells = [*cells, page.excess[-1]]
        for start, end in cells:
            if page.text[start:end].strip(_BLANKS):
                page.prose.append(_prose(page, [page.text[start:end]], [start], references, table))


def _prose(
    page: ParsedMarkdown, lines: Sequence[str], sources: Sequence[int], references: Mapping[str, str], block: Block
) -> Prose:
    is_html, is_cell = block.kind == "html", block.kind == "table"
    content, places = _join_lines(lines, sources, has_pipes=is_cell or block.is_above_table)
    is_plain = is_html or WORDS.fullmatch(content)
    spans = html_spans(content) if is_html else [] if is_plain else read_inlines(content, references)
    doubt = len(content) if is_plain else _doubt(content, spans)
    prose = Prose(content, is_html, is_cell, doubt, spans, *places)
    code = (span for span in spans if span.kind == "code" and span.end <= doubt)
    page.code += [(prose.source(span.start), prose.source(span.end - 1) + 1) for span in code]
    return prose


def _join_lines(
    lines: Sequence[str], sources: Sequence[int], *, has_pipes: bool
) -> tuple[str, tuple[list[int], list[int]]]:
    """Return lines as one text, and where its parts are. In tables, and above them, escaped pipes become plain."""
    pieces, starts, places = [], [], []
    position = 0
    for line, source in zip(lines, sources, strict=True):
        skipped = len(line) - len(line.lstrip(_BLANKS)) if has_pipes else 0
        starts.append(position)
        places.append(source + skipped)
        piece = line[skipped:]
        for count, hit in enumerate(_ESCAPED_PIPE.finditer(piece) if has_pipes else ()):
            starts.append(position + hit.end() - count - 1)
            places.append(source + skipped + hit.end())
        pieces.append(piece.replace("\\|", "|") if has_pipes else piece)
        position += len(pieces[-1]) + 1
    return "\n".join(pieces).rstrip(_BLANKS), (starts, places)


def _doubt(content: str, spans: Sequence[InlineSpan]) -> int:
    """Return from where on readers may differ on what is code and what is a link: the length if nowhere."""
    if TABLE_RULE.search(content) or _NESTED_BRACKETS.search(content):
        return 0
    outside = _without_code(content, spans)
    odd_labels = (hit.start() for hit in _LABEL_BEHIND.finditer(content) if _has_lost_backtick(hit[1]))
    odd_target = _BACKTICK_IN_ADDRESS.search(content)
    odd_note = ODD_NOTE.search(outside)  # cmark-gfm may show its source as text
    return min(
        _lost_backtick(content, spans),
        odd_note.end(1) if odd_note else len(content),
        _odd_address(outside, spans),
        next(odd_labels, len(content)),
        odd_target.start(1) if odd_target else len(content),
    )


def _lost_backtick(content: str, spans: Sequence[InlineSpan]) -> int:
    """Return where the first backtick is that belongs to no code or name: cmark-gfm loses count after it."""
    position = content.find("`")
    names = ((span.label_end, span.end) for span in spans if span.kind in ("link", "image") and span.address is None)
    for start, end in sorted([*names, *((span.start, span.end) for span in spans if span.kind == "code")]):
        if start <= position:
            position = content.find("`", end)
    return len(content) if position < 0 else position


def _has_lost_backtick(label: str) -> bool:
    """Return whether the name of a reference has a backtick that begins or ends code outside of it."""
    return "`" in label and "`" in _CODE_IN_LABEL.sub("", label)


def _odd_address(content: str, spans: Sequence[InlineSpan]) -> int:
    """Return where a bare address begins that swallows markup: for cmark-gfm, it ends only at a blank or ``<``."""
    links = [span.start for span in spans if span.kind in ("link", "image")]
    swallowing = (span.start for span in spans if span.kind == "address" and "[" in content[span.start : span.end])
    odd = next(swallowing, len(content))
    for hit in _ADDRESS.finditer(content):
        i = bisect_left(links, hit.start())
        if _SWALLOWED.search(hit[0]) or (i < len(links) and links[i] < hit.end()):
            return min(odd, hit.start())
    return odd


def _without_code(content: str, spans: Sequence[InlineSpan]) -> str:
    """Blank what is inside code, but keep its first backtick, which an address before it may swallow."""
    code = (span for span in spans if span.kind == "code")
    return View(content, (Edit(span.start, span.end, "`".ljust(span.end - span.start)) for span in code)).text


def is_odd_label(label: str) -> bool:
    """Return whether readers of Markdown differ on what a reference with this label is."""
    return _has_lost_backtick(label) or "<" in label or len(label) > _LONGEST_LABEL
