"""The blocks of a Markdown text, as GitHub reads them.

Readers of Markdown differ on where a table, a quote or a paragraph ends, and so on what is code. This one follows
cmark-gfm 0.29.0.gfm.13, which renders Markdown on GitHub, line by line (``src/blocks.c``, ``extensions/table.c`` and
``extensions/tasklist.c``), also where it is odd: a fence of 300 backticks ends at 255 of them.

A line is matched against the blocks that are open, from the outermost to the innermost. The rest of it may open
further blocks, or is text of the last one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from accord.text.block_syntax import (
    BREAK,
    BULLET,
    FENCE,
    FENCE_END,
    FOOTNOTE,
    HEADING,
    HTML_ENDS,
    HTML_STARTS,
    NUMBER,
    RULE,
    TAB,
    TASK,
    UNDERLINE,
    Block,
    BlockKind,
    Blocks,
    Definition,
    LineCursor,
    read_definition,
    read_row,
)

NESTING = 38
"""Blocks within blocks that are followed; what goes deeper was made to confuse, and is read as text."""

_LINE = re.compile(r"[^\r\n]*(\r\n?|\n|\Z)")
_TEXT = re.compile(r"[^\s\x1c-\x1f#`~<=*_+>\[|:0-9-]")
"""The first character of a line that can only be text of a paragraph."""

_CONTAINERS = frozenset(("document", "quote", "item", "footnote"))
_BRANCHES = frozenset(("quote", "list", "item", "footnote"))
_WITH_LINES = frozenset(("paragraph", "heading", "code", "fence"))
_RAW = frozenset(("code", "fence", "html"))
_ITEM_SIGNS = frozenset("*+-0123456789")
_LONGEST_FENCE = 255
_INDENT = 4
_MOST_OPENED = 100
"""Lists and footnotes that one line can open."""

_MOST_EMPTY_CELLS = 0x80000


@lru_cache(maxsize=4)
def read_blocks(text: str) -> Blocks:
    """Take a text apart into blocks. A turn of a loop asks forty times for those of the same text."""
    lines = [(hit.start(), hit.start(1)) for hit in _LINE.finditer(text)]
    reader = _Reader()
    for start, end in lines[:-1]:
        reader.read_line(text[start:end], start)
    reader.number += 1
    reader.close_to(0)
    return Blocks(lines, reader.leaves, reader.items, reader.footnotes, reader.definitions, reader.depth)


class _Reader(LineCursor):
    """The state of ``read_blocks``: the open blocks, and how far the current line has been read."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [Block("document", 0)]
        self.leaves: list[Block] = []
        self.items: list[Block] = []
        self.footnotes: list[Block] = []
        self.definitions: list[Definition] = []
        self.depth = 0
        self.number = -1
        self.matched = 0

    def read_line(self, line: str, start: int) -> None:
        """Read the next line, which is without its end."""
        self.number += 1
        if not line and len(self.open) <= 2 and self.open[-1].kind in ("document", "heading", "paragraph"):
            self.close_to(0)
            return
        if self._is_only_text(line):
            self.open[-1].lines.append(line)
            self.open[-1].sources.append(start)
            return
        self.begin(line, start)
        if self._match_open_blocks():
            has_opened = self._open_blocks()
            self._add_text(has_opened=has_opened)

    def _is_only_text(self, line: str) -> bool:
        """Return whether a line is sure to go on with a paragraph or an HTML block; most do, and need no look."""
        block = self.open[-1]
        if block.kind == "paragraph":
            return _TEXT.match(line) is not None
        return block.kind == "html" and len(self.open) == 2 and block.length >= len(HTML_ENDS) and bool(line.strip())

    def close_to(self, depth: int) -> None:
        """Close all blocks but the outermost ones."""
        while len(self.open) > depth + 1:
            self._close()

    def _close(self) -> None:
        block = self.open.pop()
        block.last = self.number
        if block.kind == "paragraph":
            self._take_definitions(block)
            if not block.lines:
                self.open[-1].children -= 1
                self.leaves.pop()

    def _take_definitions(self, block: Block) -> None:
        content, position, count = "", 0, 0
        while count < len(block.lines) and block.lines[count].startswith("["):
            content = content or block.content + "\n"
            found = read_definition(content, position)
            if found is None:
                break
            first, count = count, count + max(1, content.count("\n", position, found.end))
            end = block.sources[count - 1] + len(block.lines[count - 1])
            self.definitions.append(found._replace(start=block.sources[first], end=end))
            position = found.end
        del block.lines[:count], block.sources[:count]
        block.first += count

    def _match_open_blocks(self) -> bool:
        """Find how many of the open blocks go on with this line. Return False if it ends a fence, and nothing more."""
        for depth in range(1 if self.line.strip(" \t") else self._match_lists(), len(self.open)):
            block = self.open[depth]
            char = self.look()
            may_end = block.kind == "fence" and self.indent < _INDENT and char == block.marker
            end = FENCE_END.match(self.line, self.first) if may_end else None
            if end and len(end[1]) >= block.length:
                self.number += 1
                self._close()
                self.number -= 1
                block.is_closed = True
                return False
            if not self._goes_on(block, char):
                self.matched = depth - 1
                return True
        self.matched = len(self.open) - 1
        return True

    def _match_lists(self) -> int:
        """Skip the outermost blocks that are lists or footnotes and go on with a blank line; return the first other.

        One by one, thousands of blank lines in a deep list would take seconds.
        """
        blanks = width = len(self.line.expandtabs(TAB))
        depth = 1
        for block in self.open[1:]:
            is_list = block.kind == "list" or (block.kind == "item" and block.children > 0)
            if not is_list and not (block.kind == "footnote" and (blanks >= block.padding or not self.line)):
                break
            blanks = max(0, blanks - block.padding)
            depth += 1
        self.advance_columns(width - blanks)
        return depth

    def _goes_on(self, block: Block, char: str) -> bool:
        """Return whether this line belongs to a block, and go on behind what marks it as such."""
        match block.kind:
            case "quote":
                if self.indent >= _INDENT or char != ">":
                    return False
                self.advance_columns(self.indent + 1)
                self.skip_blank()
                return True
            case "item":
                return self._goes_on_indented(block.padding) or (block.children > 0 and self._skip_blank_line(char))
            case "footnote":
                return self._goes_on_indented(block.padding) or not self.line
            case "code":
                return self._goes_on_indented(_INDENT) or self._skip_blank_line(char)
            case "fence":
                for _ in range(block.padding):
                    self.skip_blank()
            case "html" | "paragraph":
                return bool(char) or (block.kind == "html" and block.length < len(HTML_ENDS))
            case "table":
                return read_row(self.line[self.first :] + "\n") is not None
        return block.kind != "heading"

    def _goes_on_indented(self, columns: int) -> bool:
        if self.indent < columns:
            return False
        self.advance_columns(columns)
        return True

    def _skip_blank_line(self, char: str) -> bool:
        if not char:
            self.advance_to(self.first)
        return not char

    def _open_blocks(self) -> bool:
        """Open the blocks that begin on this line; return whether any did."""
        block: Block | None = self.open[self.matched]
        is_lazy = self.open[-1].kind == "paragraph"
        count = 0
        while block and block.kind not in _RAW:
            if self.matched >= NESTING:
                return count > 0
            count += 1
            inside, char = block, self.look()
            if self.indent < _INDENT:
                block = self._begin(inside, char, is_nested=count < _MOST_OPENED)
            elif char and not is_lazy:
                self.advance_columns(_INDENT)
                block = self._add("code")
            else:
                block = self._extend(inside, char)
            if block and block.kind in _WITH_LINES:
                return True
            is_lazy = False
        return block is not None or count > 1

    def _begin(self, block: Block, char: str, *, is_nested: bool) -> Block | None:
        """Open the block that begins here, within ``block``; None if it is text."""
        line, first = self.line, self.first
        if char == ">":
            self.advance_to(first + 1)
            self.skip_blank()
            return self._add("quote")
        if char == "#" and (mark := HEADING.match(line, first)):
            self.advance_to(mark.end())
            heading = self._add("heading")
            heading.length = len(mark[1])
            return heading
        if char in ("`", "~") and (mark := FENCE.match(line, first)):
            fence = self._add("fence")
            fence.marker, fence.length = char, min(len(mark[0]), _LONGEST_FENCE)
            fence.padding = first - self.offset
            self.advance_to(mark.end())
            return fence
        in_paragraph = block.kind == "paragraph"
        starts = HTML_STARTS[: -1 if in_paragraph else None] if char == "<" else ()
        if kinds := [kind for kind, start in enumerate(starts) if start.match(line, first)]:
            opened = self._add("html")
            opened.length = kinds[0]
            return opened
        if in_paragraph and char in ("=", "-") and UNDERLINE.match(line, first):
            self._take_definitions(block)
            if block.lines:
                block.kind, block.length = "heading", 1 if char == "=" else 2
                self.advance_to(len(line))
            return block
        if char in ("*", "_", "-") and BREAK.match(line, first):
            opened = self._add("rule")
            self.advance_to(len(line))
            return opened
        if is_nested and char == "[" and (mark := FOOTNOTE.match(line, first)):
            self.advance_to(mark.end())
            opened = self._add("footnote")
            opened.marker, opened.padding = mark[1], _INDENT
            opened.sources.append(self.start + first)
            self.footnotes.append(opened)
            return opened
        item = self._begin_item(block) if is_nested and char in _ITEM_SIGNS else None
        return item or self._extend(block, char)

    def _begin_item(self, block: Block) -> Block | None:
        line, first, indent = self.line, self.first, self.indent
        mark = BULLET.match(line, first) or NUMBER.match(line, first)
        if mark is None:
            return None
        number = line[first : mark.start(1)]
        if block.kind == "paragraph" and ((number and int(number) != 1) or not line[mark.end() :].strip(" \t")):
            return None
        self.advance_to(mark.end())
        saved = self.offset, self.part
        is_blank = not self.look()
        blanks = self.indent
        if 0 < blanks <= _INDENT and not is_blank:
            self.advance_columns(blanks)
        else:
            self.offset, self.part = saved
            self.advance_columns(min(blanks, 1))
            blanks = 1
        if block.kind != "list" or block.marker != mark[1]:
            self._add("list").marker = mark[1]
        item = self._add("item")
        item.padding = indent + mark.end() - first + blanks
        return item

    def _extend(self, block: Block, char: str) -> Block | None:
        """Make a table of a paragraph, add a row to a table, or skip the box of a task."""
        if block.kind == "paragraph" and self.indent < _INDENT and char in ("|", "-", ":", "\v", "\f"):
            self._begin_table(block)
        elif block.kind == "table" and self.indent < _INDENT and char and block.empty_cells <= _MOST_EMPTY_CELLS:
            row = read_row(self.line[self.first :] + "\n")
            if row:
                place = self.start + self.first
                block.rows.append([(place + start, place + end) for start, end in row.cells])
                block.lines.append(self.line[self.first :])
                block.sources.append(place)
                block.empty_cells += max(0, block.length - len(row.cells))
                self.advance_to(len(self.line))
        elif block.kind == "item" and (box := TASK.match(self.line)):
            block.box, block.mark = box[1], self.start + box.start(1)
            self.advance_to(self.offset + 3)
        return None

    def _begin_table(self, block: Block) -> None:
        """Turn a paragraph into a table if its last line is the head and this one the rule below it."""
        line = self.line[self.first :] + "\n"
        if block.is_no_table or not RULE.fullmatch(line):
            return
        rule, head = read_row(line), read_row(block.content + "\n")
        if rule is None:
            return
        if head is None or len(head.cells) != len(rule.cells):
            block.is_no_table = True
            return
        if len(block.lines) > 1:
            above = Block("paragraph", block.first, block.level, block.inside, block.lines[:-1], block.sources[:-1])
            above.is_above_table = True
            self.leaves.insert(len(self.leaves) - 1, above)
        place = block.sources[-1] - head.start
        block.rows.append([(place + start, place + end) for start, end in head.cells])
        block.kind, block.length, block.first = "table", len(head.cells), self.number - 1
        del block.lines[:-1], block.sources[:-1]
        self.advance_to(len(self.line))

    def _add(self, kind: BlockKind) -> Block:
        """Open a block within the innermost one that can contain it."""
        self.close_to(self.matched)
        while self.open[-1].kind not in _CONTAINERS and not (self.open[-1].kind == "list" and kind == "item"):
            self._close()
        self.open[-1].children += 1
        self.matched = len(self.open)
        block = Block(kind, self.number, self.matched, self.open[-1])
        self.open.append(block)
        if kind == "item":
            self.items.append(block)
        elif kind not in _BRANCHES:
            self.leaves.append(block)
        self.depth = max(self.depth, self.matched)
        return block

    def _add_text(self, *, has_opened: bool) -> None:
        """Add the rest of the line to the innermost block that matched, or to the paragraph that it goes on with."""
        char = self.look()
        is_lazy = self.matched < len(self.open) - 1 and not has_opened and self.open[-1].kind == "paragraph"
        if char and is_lazy:
            self._add_line(self.open[-1], len(self.line))
            return
        self.close_to(self.matched)
        block = self.open[-1]
        if block.kind in _RAW:
            self._add_line(block, len(self.line))
            ends = HTML_ENDS[block.length : block.length + 1] if block.kind == "html" else ()
            if any(end.search(self.line, self.first) for end in ends):
                self._close()
        elif char:
            if block.kind not in _WITH_LINES:
                block = self._add("paragraph")
            self.advance_to(self.first)
            bare = self.line.rstrip(" \t")
            shorter = bare.rstrip("#")  # hashes behind a blank are not part of a heading
            end = len(shorter.rstrip(" \t")) if shorter != bare and shorter.endswith((" ", "\t")) else len(bare)
            self._add_line(block, end if block.kind == "heading" else len(self.line))

    def _add_line(self, block: Block, end: int) -> None:
        blanks = 0
        if self.part:
            blanks = self.columns_to(self.offset + 1)
            self.offset += 1
        block.lines.append(" " * blanks + self.line[self.offset : end])
        block.sources.append(self.start + self.offset - blanks)
