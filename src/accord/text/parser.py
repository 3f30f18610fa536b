"""markdown-it, set to read as GitHub does, and to note where things are inside a block.

markdown-it gives lines for blocks and no places inside them, so its inline rules are wrapped to note where each began
and ended. It reads tables, footnotes, HTML, and takes every address for a link.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline


NESTING = 40
"""Blocks within blocks that are followed; what goes deeper was made to confuse."""

_FOOTNOTE = re.compile(r"\[\^[^\]\s\x00]+\]:[ \t]*")


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


def spans_of(content: str, env: dict[str, Any]) -> list[InlineSpan]:
    """Parse the inside of a block, and return what the wrapped rules noted, in order of their start."""
    notes: list[InlineSpan] = []
    env["accord.notes"], env["accord.offset"] = notes, 0
    parser = markdown_parser()
    parser.inline.parse(content, parser, env, [])
    return sorted(notes, key=lambda span: (span.start, -span.end))


@cache
def markdown_parser() -> MarkdownIt:
    """Return the parser; what it found about a text is in the text's ``env``."""
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
