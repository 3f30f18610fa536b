"""Markdown as HTML that can do nothing: tags in the text stay text, comments stay hidden, checkboxes are disabled.

A line break in the text is one on the page, as GitHub has it in issues, pull requests and comments.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markdown_it.token import Token

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

_BOXES = {"[ ] ": "", "[x] ": " checked", "[X] ": " checked"}


def markdown_html(text: str | None) -> str:
    """Return the HTML of a Markdown text, safe to put into a page."""
    rendered: str = _parser().render(text or "")
    return rendered


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True}).enable(
        ["table", "strikethrough"]
    )
    parser.block.ruler.before(
        "html_block", "comment", _block_comment, {"alt": ["paragraph", "reference", "blockquote"]}
    )
    parser.inline.ruler.before("autolink", "comment", _inline_comment)
    parser.core.ruler.push("checkboxes", _checkboxes)
    parser.add_render_rule("checkbox", lambda _self, tokens, index, _options, _env: tokens[index].content)
    return parser


def _block_comment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Swallow lines from ``<!--`` to ``-->``; an unclosed comment hides the rest, as on GitHub."""
    begin = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not state.src.startswith("<!--", begin):
        return False
    closing = state.src.find("-->", begin + 4)
    last = next((line for line in range(start, end) if state.eMarks[line] >= closing + 3), end - 1)
    if closing < 0:
        last = end - 1
    elif state.src[closing + 3 : state.eMarks[last]].strip():
        return False  # text follows on the same line: the inline rule knows what to do
    if not silent:
        state.line = last + 1
    return True


def _inline_comment(state: StateInline, _silent: bool) -> bool:
    if not state.src.startswith("<!--", state.pos):
        return False
    closing = state.src.find("-->", state.pos + 4)
    if closing < 0:
        return False
    state.pos = closing + 3
    return True


def _checkboxes(state: StateCore) -> None:
    """Turn ``[ ] `` at the start of a list item into a box."""
    for item, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if (item.type, paragraph.type, inline.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        first = inline.children[0] if inline.children else None
        if first is None or first.type != "text" or first.content[:4] not in _BOXES:
            continue
        box = Token("checkbox", "", 0, content=f'<input type="checkbox" disabled{_BOXES[first.content[:4]]}> ')
        first.content = first.content[4:]
        assert inline.children is not None  # noqa: S101 (first came from there)
        inline.children.insert(0, box)
        item.attrJoin("class", "task")
