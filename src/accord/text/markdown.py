"""Markdown by its token map: sections, list items and checkboxes as GitHub would show them.

Headings and checkboxes inside code fences, block quotes and HTML comments are text about structure, not structure;
a regular expression over lines cannot tell them apart, the CommonMark parser can.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from accord.text.hidden import GUARD, as_seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.parser_block import RuleFuncBlockType
    from markdown_it.ruler import Ruler
    from markdown_it.rules_block import StateBlock
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


@dataclass(frozen=True)
class Section:
    """A heading and the content below it, up to the next heading of any level; ``line`` counts from 1."""

    title: str
    level: int
    line: int
    parent: str
    tokens: Sequence[Token]

    @cached_property
    def text(self) -> str:
        """The visible text of the section, without comments; code and quotes count as content."""
        return "\n".join(_visible(token) for token in self.tokens if token.content).strip()


@cache
def _parser() -> MarkdownIt:
    """Build a parser of blocks; inline structure is looked at only where a rule asks for it."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    parser.block.ruler = _RulesByFirstSign(parser.block.ruler)  # type: ignore[assignment]
    return parser


class _RulesByFirstSign:
    """The rules of a block parser, of which a line meets only those that its first sign may begin.

    The parser itself tries all of them, one after the other, at each line. Source: CommonMark 0.31, "Leaf blocks" and
    "Container blocks". Rules that are not listed here, such as tables, depend on more than the first sign.
    """

    _CHAINS = ("", "paragraph", "reference", "blockquote", "list")

    def __init__(self, ruler: Ruler[RuleFuncBlockType]) -> None:
        from markdown_it import rules_block

        begins = {
            rules_block.fence: "`~",
            rules_block.blockquote: ">",
            rules_block.hr: "*-_",
            rules_block.list_block: "*+-0123456789",
            rules_block.reference: "[",
            rules_block.html_block: "<",
            rules_block.heading: "#",
        }
        self._names = ruler.get_active_rules()
        self._rules = {chain: [_first_of(ruler.getRules(chain), begins)] for chain in self._CHAINS}

    def getRules(self, chain: str) -> list[RuleFuncBlockType]:  # noqa: N802
        """Return one rule that stands for all of a chain: those of blocks, or those that end a kind of block."""
        return self._rules[chain]

    def get_active_rules(self) -> list[str]:
        """Return the names of the rules."""
        return self._names


def _first_of(rules: Sequence[RuleFuncBlockType], begins: Mapping[RuleFuncBlockType, str]) -> RuleFuncBlockType:
    """Return a rule that tries rules in their order, except those that a line's first sign rules out."""
    signs = {sign for each in begins.values() for sign in each}
    by_sign = {sign: tuple(rule for rule in rules if sign in begins.get(rule, sign)) for sign in signs}
    others = tuple(rule for rule in rules if rule not in begins)

    def first_of(state: StateBlock, line: int, end: int, silent: bool) -> bool:
        place = state.bMarks[line] + state.tShift[line]
        for rule in by_sign.get(state.src[place : place + 1], others):  # noqa: SIM110 - a generator takes longer
            if rule(state, line, end, silent):
                return True
        return False

    return first_of


def _visible(token: Token) -> str:
    if token.type in ("fence", "code_block"):
        return token.content
    return _COMMENT.sub("", token.content).strip()


def blocks(text: str) -> Sequence[Token]:
    """Parse a text into the tokens of its blocks; the inside of a paragraph stays verbatim."""
    return _parser().parse(text)


def sections(text: str) -> list[Section]:
    """Split a Markdown text at its top-level headings. Text before the first heading is left out."""
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


@cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


def plain_text(text: str) -> str:
    """Return the words of a Markdown text without its markup, such as emphasis and addresses of links."""
    parts: list[str] = []
    for token in _inline_parser().parse(text):
        children = token.children or ()
        parts += [" " if child.type in ("softbreak", "hardbreak") else child.content for child in children]
        if token.type in _VERBATIM:
            parts.append(token.content)
        parts.append("\n" if token.block else "")
    return "".join(parts)


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
    """Apply ``change`` to each line outside of code blocks and HTML blocks; every other line stays byte for byte."""
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


_SPECIAL = re.compile(r"[\\`*_{}\[\]()#+!|~<>$&]|(?<=[A-Za-z]):(?=//)|(?i:(?<=\bwww)\.)")
_MENTION = re.compile(r"@(?=\w)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
_UNGUARDED = re.compile(rf"(?:(?!{GUARD}){_CONTROL.pattern.removesuffix('+')})+")
_CELL_CHARS = 500
_LABEL_CHARS = 60


def longer_run(char: str, text: str, least: int) -> str:
    """Return a run of a character that is longer than any in a text: a fence that nothing in it can close."""
    return char * max([least, *(len(run) + 1 for run in re.findall(f"{char}+", text))])


def as_code(text: str) -> str:
    """Show a text of one line as code, whatever it contains."""
    fence = longer_run("`", text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def shorten(text: str, limit: int) -> str:
    """Cut a text to so many characters, of which the last one says so."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cell(text: str) -> str:
    """Write any text as the plain content of a table cell, at most 500 characters of it. Guards stay where they are."""
    from accord.text.words import without_keywords

    text = without_keywords(shorten(_UNGUARDED.sub(" ", as_seen(text)).strip(), _CELL_CHARS))
    return _MENTION.sub("@\N{ZERO WIDTH NON-JOINER}", _SPECIAL.sub(r"\\\g<0>", text))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table; cells with untrusted text must have been through ``cell``."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def code_block(text: str, language: str = "") -> str:
    """Write any text as a code block, behind a fence that is longer than any in it."""
    text = "\n".join(_CONTROL.sub(" ", line) for line in as_seen(text).splitlines())
    fence = longer_run("`", text, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def mermaid_text(text: str) -> str:
    """Write any text as a quoted label of a Mermaid graph, at most 60 characters of it."""
    text = shorten(_CONTROL.sub(" ", as_seen(text)).strip(), _LABEL_CHARS)
    return "".join(c if c.isalnum() or c in " .,-…" else f"#{ord(c)};" for c in text)


_OPENING = re.compile(r"`+|<!--(?:-?>)?")
_COMMENT_SPANS = ("<!--", "-->")


class Span(NamedTuple):
    """A verbatim part of a paragraph, marks included; ``open`` is a comment without an end."""

    kind: Literal["text", "code", "comment", "open"]
    text: str

    @property
    def comment(self) -> str:
        """The text inside a comment."""
        return self.text.removeprefix(_COMMENT_SPANS[0]).removesuffix(_COMMENT_SPANS[1])


def spans(content: str) -> Iterator[Span]:
    """Split the content of one paragraph, heading or cell; the parts together are the content again.

    Source: CommonMark 0.31, "Code spans" and "Raw HTML". GitHub shows a comment that nothing ends as text.
    """
    done = place = 0
    endless: set[str] = set()
    while opening := _OPENING.search(content, place):
        found = _ended(content, opening, endless)
        if found is None:
            place = opening.end()
            continue
        if done < opening.start():
            yield Span("text", content[done : opening.start()])
        yield found
        done = place = opening.start() + len(found.text)
    if done < len(content):
        yield Span("text", content[done:])


def _ended(content: str, opening: re.Match[str], endless: set[str]) -> Span | None:
    """Find the end of what begins here; None for backticks without an end, which are text, and so are all so many."""
    begin, mark = opening.start(), opening.group()
    if mark in endless:
        return None
    if mark.startswith("`"):
        closing = re.compile(f"(?<!`){mark}(?!`)").search(content, opening.end())
        if closing is None:
            endless.add(mark)
            return None
        return Span("code", content[begin : closing.end()])
    if mark != _COMMENT_SPANS[0]:
        return Span("comment", mark)
    end = content.find(_COMMENT_SPANS[1], opening.end())
    return Span("open", content[begin:]) if end < 0 else Span("comment", content[begin : end + len(_COMMENT_SPANS[1])])


_BLOCK = re.compile(r"\A(`{3,}|~{3,})\n(.*)\n\1", re.DOTALL)
_BACKTICKS = re.compile(r"`+")
_TILDES = re.compile(r"~+")


def in_fence(text: str) -> str:
    """Show a whole text as a code block, in a fence that nothing in it can close."""
    fence = fence_for(text)
    return f"{fence}\n{text}\n{fence}"


def fence_for(text: str) -> str:
    """Return the shortest fence that nothing in a text can close, at most half as long as the text and three more."""
    return min((longer_run("`", text, 3), longer_run("~", text, 3)), key=len)


def is_fenced(text: str) -> bool:
    """Return whether a text is one code block and nothing else, as ``in_fence`` writes it."""
    found = _BLOCK.fullmatch(text)
    runs = (_BACKTICKS if text.startswith("`") else _TILDES).findall(text)
    return found is not None and runs.count(found[1]) == 2 and max(map(len, runs)) == len(found[1])


def unfenced(text: str) -> str:
    """Return what ``in_fence`` was given; another text as it is."""
    found = _BLOCK.fullmatch(text) if is_fenced(text) else None
    return found[2] if found else text
