"""The regions of a Markdown text: code, prose, tags and links, as offsets into the text itself.

markdown-it gives lines for blocks and no places inside them, so its inline rules are wrapped here to note
where each began and ended. The parser is set to read as GitHub does: tables, footnotes, HTML, and every address a
link. Where two readers of Markdown may differ on what is code (a backtick in a bare address, a row that only looks
like one of a table, a reference with a backtick in its name), ``Prose.is_doubtful`` is set and nothing in it counts
as code: changed code is a nuisance, a mention taken for code a hole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token


NESTING = 40
"""Blocks within blocks that are followed; what goes deeper was made to confuse."""

LONGEST_PROSE = 65_536
"""Characters of one paragraph that are looked into: GitHub takes no longer body."""

LONGEST_TEXT = 4 * LONGEST_PROSE
"""Characters of a text that is looked into: enough for one that is posted as a body and follow-up comments."""

_LINE = re.compile(r"[^\r\n]*(\r\n?|\n|\Z)")
_FOOTNOTE = re.compile(r"\[\^[^\]\s\x00]+\]:[ \t]*")
_FOOTNOTE_LABEL = re.compile(r"\[(\^[^\]\s]+)\]:")
_NOTE_AS_DEFINITION = re.compile(r"\[(\^[^\]\s]+)\]:[\s>]*<?([^\s>]*)")
_ADDRESS_WITH_BACKTICK = re.compile(r"(?:://|www\.)[^\s<`]*`", re.IGNORECASE)
_BACKTICK_IN_BRACKETS = re.compile(r"\]\[[^\]]*`|\]\([^)\s]*`")
_TABLE_RULE = re.compile(r"^[ \t]*[|:-][ \t|:-]*$", re.MULTILINE)
_NESTED_BRACKETS = re.compile(r"(?:\[[^\[\]]*){15}")
_MANY_BRACKETS = re.compile(r"(?:\[[^\[\]]*){64}")
_LONGEST_LABEL = 900
"""CommonMark ends a label at 999 characters, markdown-it does not."""


@dataclass(frozen=True, slots=True)
class InlineSpan:
    """Something inside prose: ``code``, ``html``, ``autolink``, ``link`` or ``image``, as offsets into the prose.

    ``label_end`` is where the text of a link ends and its address begins; ``address`` is decoded, None by reference.
    """

    kind: str
    start: int
    end: int
    label_end: int = 0
    address: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class Prose:
    """Text of a paragraph, heading, cell or HTML block, without the marks of the blocks around it."""

    content: str
    is_html: bool
    is_doubtful: bool
    spans: Sequence[InlineSpan]
    _starts: Sequence[int]
    _sources: Sequence[int]

    def source(self, position: int) -> int:
        """Return where in the whole text an offset into ``content`` is."""
        i = bisect_right(self._starts, position) - 1
        return self._sources[i] + position - self._starts[i]


@dataclass(frozen=True, slots=True)
class Definition:
    """A link reference definition: where its ``[`` is, and where it ends."""

    start: int
    end: int
    label: str
    address: str


@dataclass
class ParsedMarkdown:
    """A text taken apart. ``code`` holds what stays byte for byte, ``open_fence`` the fence that nothing closes.

    A footnote ends a paragraph for GitHub and none for plain CommonMark, so that a tag may end where only one sees it.
    ``footnotes`` holds each with its label and all that is indented below it.
    """

    text: str
    lines: Sequence[tuple[int, int]]
    code: list[tuple[int, int]] = field(default_factory=list)
    prose: list[Prose] = field(default_factory=list)
    footnotes: list[Definition] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    open_fence: str = ""
    is_readable: bool = True

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
    tokens = _parser().parse(text, env)
    page.is_readable = all(map(_is_readable, tokens))
    if page.is_readable:
        _read_blocks(page, tokens, env)
        page.definitions += _definitions(page, env)
        page.footnotes += _footnotes(page, env)
    return page


def _is_readable(token: Token) -> bool:
    if token.level >= NESTING - 2:
        return False
    return token.type != "inline" or (len(token.content) <= LONGEST_PROSE and not _MANY_BRACKETS.search(token.content))


def _read_blocks(page: ParsedMarkdown, tokens: Sequence[Token], env: dict[str, Any]) -> None:
    cell_end = (-1, 0)
    for i, token in enumerate(tokens):
        if token.map is None:
            continue
        first, last = token.map
        if token.type in ("fence", "code_block"):
            page.code.append((page.lines[first][0], page.lines[last - 1][1]))
            if token.type == "fence" and token.level == 0 and not _is_closed(page, token):
                page.open_fence = token.markup
        elif token.type == "html_block":
            page.prose.append(_prose(page, token, env, _by_lines(page, token)))
        elif token.type == "inline" and tokens[i - 1].type in ("th_open", "td_open"):
            searched_from = cell_end[1] if cell_end[0] == first else 0
            cell, end = _by_cell(page, token, searched_from)
            cell_end = (first, end)
            page.prose.append(_prose(page, token, env, cell))
        elif token.type == "inline":
            page.prose.append(_prose(page, token, env, _by_lines(page, token)))


def _is_closed(page: ParsedMarkdown, fence: Token) -> bool:
    first, last = fence.map or (0, 0)
    closing = page.line(last - 1).strip()
    return last - first > 1 and set(closing) == {fence.markup[0]} and len(closing) >= len(fence.markup)


def _prose(page: ParsedMarkdown, token: Token, env: dict[str, Any], places: tuple[list[int], list[int]]) -> Prose:
    is_html = token.type == "html_block"
    spans = [] if is_html else _spans(token.content, env)
    prose = Prose(token.content, is_html, _is_doubtful(page, token, spans), spans, *places)
    if not prose.is_doubtful:
        page.code += [(prose.source(s.start), prose.source(s.end - 1) + 1) for s in spans if s.kind == "code"]
    return prose


def _spans(content: str, env: dict[str, Any]) -> list[InlineSpan]:
    """Parse the inside of a block, and return what the wrapped rules noted, in order of their start."""
    notes: list[InlineSpan] = []
    env["accord.notes"], env["accord.offset"] = notes, 0
    parser = _parser()
    parser.inline.parse(content, parser, env, [])
    return sorted(notes, key=lambda span: (span.start, -span.end))


def _is_doubtful(page: ParsedMarkdown, token: Token, spans: Sequence[InlineSpan]) -> bool:
    content = token.content
    if "`" not in content or token.type == "html_block":
        return False
    first, last = token.map or (0, 0)
    row = page.line(first) if last - first == 1 else ""
    outside = _without_code(content, spans)
    return bool(
        _ADDRESS_WITH_BACKTICK.search(outside)
        or _BACKTICK_IN_BRACKETS.search(content)
        or _TABLE_RULE.search(content)
        or _NESTED_BRACKETS.search(content)
        or "`" in outside[_position_of_note(outside) :]
        or "\\\\|" in row
    )


def _position_of_note(content: str) -> int:
    """Return where the first footnote reference begins; without a definition, cmark-gfm shows its source as text."""
    position = content.find("[^")
    return len(content) if position < 0 else position


def _without_code(content: str, spans: Sequence[InlineSpan]) -> str:
    """Blank what is inside code, but keep its first backtick, which an address before it may swallow."""
    pieces, end = [], 0
    for span in spans:
        if span.kind == "code" and span.start >= end:
            pieces += [content[end : span.start], "` "]
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
    named = [(label, definition) for label, definition in env.get("references", {}).items()]
    named += [(definition["label"], definition) for definition in env.get("duplicate_refs", ())]
    for label, definition in named:
        first, last = definition["map"]
        begin, end = page.lines[first][0], page.lines[last - 1][1]
        start = page.text.find("[", begin, end)
        if start >= 0:
            yield Definition(start, end, label, definition["href"])
    for number in env.get("accord.footnotes", ()):
        note = _NOTE_AS_DEFINITION.search(page.text, page.lines[number][0])
        if note:
            yield Definition(note.start(), note.start(1), note[1], note[2])


def _footnotes(page: ParsedMarkdown, env: dict[str, Any]) -> Iterator[Definition]:
    for first, last in env.get("accord.footnotes", {}).items():
        start, end = page.lines[first][0], page.lines[min(last, len(page.lines)) - 1][1]
        note = _FOOTNOTE_LABEL.search(page.text, start)
        if note:
            yield Definition(note.start(), end, note[1], "")


def is_odd_label(label: str) -> bool:
    """Return whether readers of Markdown differ on what a reference with this label is."""
    return "`" in label or "<" in label or len(label) > _LONGEST_LABEL


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": NESTING}).enable("table").disable("inline")
    parser.disable(["emphasis", "balance_pairs", "fragments_join"])
    parser.validateLink = _anything  # type: ignore[method-assign,assignment]
    parser.normalizeLink = str  # type: ignore[method-assign,assignment]
    parser.block.ruler.before("list", "footnote", _footnote, {"alt": ["paragraph", "reference", "blockquote"]})
    rules = {rule.name: rule.fn for rule in parser.inline.ruler.__rules__}
    for name, (kind, first) in _NOTED.items():
        parser.inline.ruler.at(name, _noting(rules[name], kind, first))
    return parser


def _anything(_address: str) -> bool:
    """Take every address for a link, as GitHub does before it sanitises."""
    return True


_NOTED = {
    "backticks": ("code", "`"),
    "link": ("link", "["),
    "image": ("image", "!"),
    "autolink": ("autolink", "<"),
    "html_inline": ("html", "<"),
}


def _noting(rule: Callable[[StateInline, bool], bool], kind: str, first: str) -> Callable[[StateInline, bool], bool]:
    """Wrap an inline rule, so that it notes where it matched. A label of an image is parsed as a text of its own."""

    def noted(state: StateInline, silent: bool) -> bool:
        start = state.pos
        if state.src[start] != first:
            return False
        if silent:
            return rule(state, silent)
        before, outer = len(state.tokens), state.env["accord.offset"]
        if kind == "image":
            state.env["accord.offset"] = outer + start + 2
        matched = rule(state, silent)
        state.env["accord.offset"] = outer
        if matched and len(state.tokens) > before:
            span = _span(state, kind, start, before)
            if span is not None:
                state.env["accord.notes"].append(span)
        return matched

    return noted


def _span(state: StateInline, kind: str, start: int, before: int) -> InlineSpan | None:
    outer = state.env["accord.offset"]
    pushed = next((token for token in state.tokens[before:] if token.type != "text"), None)
    if kind == "code" and (pushed is None or pushed.type != "code_inline"):
        return None
    label_end, address, target = 0, None, None
    if kind in ("link", "image") and pushed is not None:
        opening = start + (kind == "image")
        label_end = outer + state.md.helpers.parseLinkLabel(state, opening, kind == "link")
        target = str(pushed.attrs["href" if kind == "link" else "src"])
        if state.src[state.pos - 1] == ")":
            address = target
    elif kind == "autolink":
        address = target = state.src[start + 1 : state.pos - 1]
    return InlineSpan(kind, outer + start, outer + state.pos, label_end, address, target)


def _footnote(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Read ``[^1]: text`` and what is indented below it (GitHub Docs, "Footnotes"); CommonMark sees a link there."""
    if state.is_code_block(start_line):
        return False
    begin = state.bMarks[start_line] + state.tShift[start_line]
    found = _FOOTNOTE.match(state.src, begin, state.eMarks[start_line])
    if not found or silent:
        return bool(found)
    saved = state.bMarks[start_line], state.tShift[start_line], state.sCount[start_line], state.parentType
    state.push("footnote_open", "", 1).map = [start_line, end_line]
    state.bMarks[start_line], state.tShift[start_line] = found.end(), 0
    state.blkIndent += 4
    state.sCount[start_line] = state.blkIndent
    state.md.block.tokenize(state, start_line, end_line)
    state.blkIndent -= 4
    state.bMarks[start_line], state.tShift[start_line], state.sCount[start_line], state.parentType = saved
    state.push("footnote_close", "", -1)
    state.env.setdefault("accord.footnotes", {})[start_line] = state.line
    return True
