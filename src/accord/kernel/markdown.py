"""Markdown by its token map: sections, list items and checkboxes as GitHub would show them.

Headings and checkboxes inside code fences, block quotes and HTML comments are text about structure, not structure;
a regular expression over lines cannot tell them apart, the CommonMark parser can.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CHECKBOX = re.compile(r"\[([ xX])\]\s+(?=\S)")
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_VISIBLE = re.compile(r"[^\r\n]")
_VERBATIM = frozenset({"fence", "code_block", "html_block"})


@dataclass(frozen=True, slots=True)
class ListItem:
    """One entry of a list: its own text (one line, inline Markdown), and its checkbox if it has one."""

    text: str
    line: int
    checked: bool | None
    depth: int


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it up to the next heading of any level; ``line`` counts from 1."""

    title: str
    level: int
    line: int
    parent: str
    tokens: Sequence[Token]

    @property
    def text(self) -> str:
        """What a reader sees of the section, without comments; code and quotes count as content."""
        return "\n".join(_visible(token) for token in self.tokens if token.content).strip()


@cache
def _parser() -> MarkdownIt:
    """Build a parser of blocks; inline structure is looked at only where a rule asks for it."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable("inline")


def _visible(token: Token) -> str:
    if token.type in ("fence", "code_block"):
        return token.content
    return _COMMENT.sub("", token.content).strip()


def blocks(text: str) -> Sequence[Token]:
    """Parse a text into the tokens of its blocks; what is inside a paragraph stays as it is written."""
    return _parser().parse(text)


def sections(text: str) -> list[Section]:
    """Split a Markdown text at its top-level headings. What stands before the first heading is left out."""
    tokens = _parser().parse(text)
    starts = [i for i, token in enumerate(tokens) if token.type == "heading_open" and token.level == 0]
    found: list[Section] = []
    ancestry: list[Section] = []
    for position, start in enumerate(starts):
        end = starts[position + 1] if position + 1 < len(starts) else len(tokens)
        level = int(tokens[start].tag[1:])
        ancestry = [section for section in ancestry if section.level < level]
        line = (tokens[start].map or [0])[0] + 1
        title = " ".join(_visible(tokens[start + 1]).split())
        parent = ancestry[-1].title if ancestry else ""
        section = Section(title, level, line, parent, tokens[start + 3 : end])
        ancestry.append(section)
        found.append(section)
    return found


def list_items(tokens: Sequence[Token]) -> Iterator[ListItem]:
    """Yield the entries of all lists among these tokens, nested ones too, outside of block quotes."""
    quotes = depth = 0
    awaits_text = False
    for token in tokens:
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type in ("list_item_open", "list_item_close"):
            depth += token.nesting
            awaits_text = token.nesting == 1
        elif token.type == "inline" and awaits_text and not quotes:
            awaits_text = False
            text = _visible(token)
            box = _CHECKBOX.match(text)
            checked = box.group(1) in "xX" if box else None
            yield ListItem(text[box.end() :] if box else text, (token.map or [0])[0] + 1, checked, depth)


def split_lines(text: str) -> list[str]:
    """Split a text into lines as Markdown does, ends kept."""
    return _LINE.findall(text)


def code_free_lines(text: str, change: Callable[[str], str]) -> str:
    """Apply ``change`` to each line that is no code block and no HTML block; every other line stays byte for byte."""
    verbatim = _verbatim_lines(text)
    lines = _LINE.findall(text)
    return "".join(line if number in verbatim else change(line) for number, line in enumerate(lines))


def blank_code(text: str) -> str:
    """Put blanks in place of code blocks and HTML blocks; every other character keeps its position."""
    verbatim = _verbatim_lines(text)
    lines = enumerate(_LINE.findall(text))
    return "".join(_VISIBLE.sub(" ", line) if number in verbatim else line for number, line in lines)


def _verbatim_lines(text: str) -> set[int]:
    numbers: set[int] = set()
    for token in _parser().parse(text):
        if token.type in _VERBATIM and token.map:
            numbers.update(range(*token.map))
    return numbers
