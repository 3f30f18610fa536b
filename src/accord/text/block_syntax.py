"""Blocks of Markdown: what begins and ends them, what defines a link, and the cells of a row, as GitHub reads them.

The patterns are those of cmark-gfm 0.29.0.gfm.13 (``src/scanners.re``, ``src/inlines.c``, ``extensions/table.c``). They
expect a line without its end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

BlockKind = Literal[
    "document", "quote", "list", "item", "footnote", "paragraph", "heading", "code", "fence", "html", "rule", "table"
]


@dataclass(slots=True, eq=False)
class Block:
    """A block with its lines, and where each is in the text."""

    kind: BlockKind
    first: int  # the line, from 0
    level: int = 0  # blocks around it, and itself
    inside: Block | None = None
    lines: list[str] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    marker: str = ""
    length: int = 0  # of a fence, the level of a heading, or the columns of a table: GitHub shows no cell beyond these
    padding: int = 0
    children: int = 0
    last: int = 0  # of an entry of a list: the line after it
    is_closed: bool = False
    is_above_table: bool = False
    is_no_table: bool = False
    rows: list[list[tuple[int, int]]] = field(default_factory=list)  # of a table, as offsets into the text
    empty_cells: int = 0
    box: str = ""  # the character in the box of an entry
    mark: int = 0  # the offset of that character

    @property
    def content(self) -> str:
        """The text of the lines."""
        return "\n".join(self.lines)

    @property
    def around(self) -> list[Block]:
        """The blocks that it is in, from the innermost."""
        block, found = self, []
        while block.inside and block.inside.inside:
            block = block.inside
            found.append(block)
        return found

    @property
    def cells(self) -> list[list[str]]:
        """The cells of each row of a table."""
        rows = zip(self.lines, self.sources, self.rows, strict=True)
        return [
            [line[start - source : end - source].strip().replace("\\|", "|") for start, end in row[: self.length]]
            for line, source, row in rows
        ]

    @property
    def texts(self) -> list[str]:
        """The Markdown in a paragraph or a heading, or in each cell of a table; none of code and HTML."""
        if self.kind in ("paragraph", "heading"):
            return ["\n".join(line.strip(" \t") for line in self.lines)]
        return [cell for row in self.cells for cell in row] if self.kind == "table" else []


TAB = 4
"""The columns from one tab stop to the next."""

_BLANK = re.compile("[ \t]*")


class LineCursor:
    """A line, where it is in the text, and how far it has been read: ``part`` are columns of the tab that is next."""

    def __init__(self) -> None:
        self.line = ""
        self.start = self.base = self.offset = self.part = self.first = self.indent = 0

    def begin(self, line: str, start: int) -> None:
        """Go to the start of a line; the mark at the start of a text is not part of the first."""
        self.line, self.start, self.part = line, start, 0
        self.base = self.offset = int(start == 0 and line.startswith("\ufeff"))

    def columns_to(self, position: int) -> int:
        """Return the columns from where the line has been read to a later character."""
        ends = (self.line[self.base : end].expandtabs(TAB) for end in (self.offset, position))
        return -len(next(ends)) - self.part + len(next(ends))

    def look(self) -> str:
        """Find the first character that is not blank, and return it: nothing if the rest of the line is blank."""
        self.first = match_end(_BLANK, self.line, self.offset)
        self.indent = self.columns_to(self.first) if "\t" in self.line else self.first - self.offset
        return self.line[self.first : self.first + 1]

    def advance_to(self, position: int) -> None:
        """Go on to this character."""
        if position > self.offset:
            self.offset, self.part = min(position, len(self.line)), 0

    def advance_columns(self, count: int) -> None:
        """Go on by so many columns, maybe to within a tab."""
        while count > 0 and self.offset < len(self.line):
            width = self.columns_to(self.offset + 1)
            is_whole = width <= count
            self.part = 0 if is_whole else self.part + count
            self.offset += is_whole
            count -= width

    def skip_blank(self) -> None:
        """Skip the one blank that may follow a mark."""
        if self.line.startswith((" ", "\t"), self.offset):
            self.advance_columns(1)


HEADING = re.compile(r"(#{1,6})(?:[ \t]+|\Z)")
UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*\Z")
BREAK = re.compile(r"(?:\*[ \t]*){3}[* \t]*\Z|(?:_[ \t]*){3}[_ \t]*\Z|(?:-[ \t]*){3}[- \t]*\Z")
FENCE = re.compile(r"`{3,}(?=[^`]*\Z)|~{3,}")
FENCE_END = re.compile(r"(`{3,}|~{3,})[ \t]*\Z")
FOOTNOTE = re.compile(r"\[\^([^\] \t]+)\]:[ \t]*")
BULLET = re.compile(r"([*+-])(?=[ \t]|\Z)")
NUMBER = re.compile(r"[0-9]{1,9}([.)])(?=[ \t]|\Z)")
TASK = re.compile(r"[ \t\v\f]*(?:[-+*]|[0-9]+.)[ \t\v\f]+\[([ xX])\][ \t\v\f]")
"""A box of a task list, at the start of the line. Any character may follow a number, and any three are taken away."""

_BLOCK_NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt"
    "|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu"
    "|menuitem|nav|noframes|ol|optgroup|option|p|param|section|source|summary|table|tbody|td|tfoot|th|thead|title|tr"
    "|track|ul"
)
_VALUE = r"""[ \t\v\f]*=[ \t\v\f]*(?:[^ \t\v\f"'=<>`]+|'[^']*'|"[^"]*")"""
_TAG = rf"[A-Za-z][A-Za-z0-9-]*(?:[ \t\v\f]+[a-zA-Z_:][a-zA-Z0-9:._-]*(?:{_VALUE})?)*[ \t\v\f]*/?"
HTML_STARTS = (
    re.compile(r"<(?:script|pre|textarea|style)(?:[ \t\v\f>]|\Z)", re.IGNORECASE),
    re.compile("<!--"),
    re.compile(r"<\?"),
    re.compile("<![A-Z]"),
    re.compile(r"<!\[CDATA\[", re.IGNORECASE),
    re.compile(rf"</?(?:{_BLOCK_NAMES})(?:[ \t\v\f]|\Z|/?>)", re.IGNORECASE),
    re.compile(rf"<(?:{_TAG}|/[A-Za-z][A-Za-z0-9-]*[ \t\v\f]*)>[ \t\f]*\Z"),
)
"""The seven kinds of HTML blocks; the last does not begin within a paragraph."""

HTML_ENDS = (
    re.compile("</(?:script|pre|textarea|style)>", re.IGNORECASE),
    re.compile("-->"),
    re.compile(r"\?>"),
    re.compile(">"),
    re.compile(r"\]\]>"),
)
"""The ends of the first five; a blank line ends the others."""


class Definition(NamedTuple):
    """A link reference definition, or a footnote with all that is indented below it: where it begins and ends."""

    start: int
    end: int
    label: str
    address: str


@dataclass(slots=True)
class Blocks:
    """A text taken apart: its lines as offsets, blocks with text, entries of lists, footnotes, and definitions.

    ``depth`` is how deep blocks are within blocks.
    """

    lines: list[tuple[int, int]]
    leaves: list[Block]
    items: list[Block]
    footnotes: list[Block]
    definitions: list[Definition]
    depth: int


_LABEL = re.compile(r"\[([^\[\]\\]*(?:\\.[^\[\]\\]*)*)\]:", re.DOTALL)
LONGEST_LABEL = 1000
_GAP = re.compile(r"[ \t]*\n?[ \t]*")
_LINE_END = re.compile(r"[ \t]*(?:\n|\Z)")
_BRACKETED = re.compile(r"<([^<>\\\n]*(?:\\.[^<>\\\n]*)*)>", re.DOTALL)
_STEP = re.compile(r"[^\\() \t\n]*(?:\\(?:[^ \t\n]|(?=[ \t\n]))[^\\() \t\n]*)*([() \t\n])")
_MOST_BRACKETS = 32
TITLE = re.compile(r""""(?:[^"]|(?<=\\)")*"|'(?:[^']|(?<=\\)')*'|\((?:[^()]|(?<=\\)[()])*\)""")


def read_definition(text: str, position: int) -> Definition | None:
    """Read the definition that begins here, in the text of a paragraph with all its line ends."""
    found = _LABEL.match(text, position)
    if not found or not (label := found[1].strip(" \t\n")) or len(found[1].encode(errors="replace")) > LONGEST_LABEL:
        return None
    begin = match_end(_GAP, text, found.end())
    after = address_end(text, begin)
    if after < 0:
        return None
    is_bracketed = text.startswith("<", begin)
    address = text[begin + is_bracketed : after - is_bracketed]
    gap = match_end(_GAP, text, after)
    title = TITLE.match(text, gap) if gap > after else None
    if title and (end := _LINE_END.match(text, title.end())):
        return Definition(position, end.end(), label, address)
    end = _LINE_END.match(text, after)
    return Definition(position, end.end(), label, address) if end else None


def match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return where a match at this position ends, or else the position itself."""
    found = pattern.match(text, position)
    return found.end() if found else position


def address_end(text: str, begin: int) -> int:
    """Return where the address of a link ends, or else -1. It may contain an open bracket."""
    depth = 0
    if text.startswith("<", begin):
        bracketed = _BRACKETED.match(text, begin)
        return bracketed.end() if bracketed and bracketed.end() < len(text) else -1
    position = begin
    while hit := _STEP.match(text, position):
        position = hit.end()
        if hit[1] == "(":
            depth += 1
            if depth > _MOST_BRACKETS:
                return -1
        elif hit[1] == ")" and depth:
            depth -= 1
        else:
            return position - 1 if position - 1 > begin or hit[1] == ")" else -1
    return -1


class TableRow(NamedTuple):
    """A row of a table: start and end of each cell, and the start of the row if lines precede it."""

    cells: list[tuple[int, int]]
    start: int


_MARKER = r"[ \t\v\f]*:?-+:?[ \t\v\f]*"
RULE = re.compile(rf"\|?{_MARKER}(?:\|{_MARKER})*(?:\|[ \t\v\f]*)?\n")
"""The row below the head of a table."""

_CELL = re.compile(r"[^|\n]*(?:(?<=\\)\|[^|\n]*)*")
_CELL_END = re.compile(r"(?:\|[ \t\v\f]*)?")
_ROW_END = re.compile(r"[ \t\v\f]*\n")


def read_row(text: str) -> TableRow | None:
    """Read the last line of a text as a row of a table; each line must end, and each one before be a row, too."""
    cells: list[tuple[int, int]] = []
    start = 0
    position = match_end(_CELL_END, text, 0)
    while position < len(text):
        cell_end = match_end(_CELL, text, position)
        end = match_end(_CELL_END, text, cell_end)
        if end > position:
            cells.append((position, cell_end))
        position = end
        if end == cell_end:
            row_end = _ROW_END.match(text, end)
            if row_end is None:
                return None
            position = row_end.end()
            if position < len(text):
                start, cells = position, []
                position = match_end(_CELL_END, text, position)
    return TableRow(cells, start) if cells else None
