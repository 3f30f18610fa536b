"""Checklists in Markdown: which boxes GitHub shows, their text, and the exact place of their mark.

Boxes are those of GitHub Flavored Markdown ("Task list items"): ``[ ]`` or ``[x]`` at the start of a list
item's first paragraph, on the line of its bullet or number, with text behind it. Lists in lists and in block quotes
count; code, comments and raw HTML hold no lists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from accord.text.markdown import blocks, spans, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markdown_it.token import Token


_BOX = re.compile(r"\[([ xX])\][ \t\n]+(?=\S)")
_OPENING = ["list_item_open", "paragraph_open", "inline"]


@dataclass(frozen=True, slots=True)
class ChecklistTask:
    """A box and its text: one line, inline markup verbatim, without comments.

    ``line`` counts from 1. ``mark`` is the offset of the character between the brackets in the whole text.
    """

    text: str
    is_checked: bool
    line: int
    mark: int


@lru_cache(maxsize=4)
def tasks(markdown: str) -> tuple[ChecklistTask, ...]:
    """Return the boxes of a text in its order. A turn of a loop asks forty times for those of the same text."""
    lines = split_lines(markdown)
    starts = [0, *accumulate(map(len, lines))]
    tokens = blocks(markdown)
    found = []
    for i, item in enumerate(tokens):
        if [token.type for token in tokens[i : i + 3]] == _OPENING and item.map:
            inline = tokens[i + 2]
            box = _BOX.match(inline.content)
            column = _column(inline, item.map[0], lines) if box else None
            if box and column is not None:
                text = shown_text(inline.content[box.end() :])
                number = item.map[0]
                found.append(ChecklistTask(text, box[1] != " ", number + 1, starts[number] + column + 1))
    return tuple(found)


def with_ticks(markdown: str, done: Iterable[ChecklistTask]) -> str:
    """Tick these boxes of the text that they were found in, and leave every other character as it is.

    Raises ValueError where a box is not where it should be, so that a text which was edited meanwhile stays whole.
    """
    characters = list(markdown)
    for task in done:
        if markdown[task.mark - 1 : task.mark + 2] not in ("[ ]", "[x]", "[X]"):
            raise ValueError(f"The box of line {task.line} is not at offset {task.mark} any more.")
        if not task.is_checked:
            characters[task.mark] = "x"
    return "".join(characters)


def shown_text(content: str) -> str:
    """Return inline Markdown on one line and without its comments; one in a code span is code, an open one is text."""
    return " ".join("".join(span.text for span in spans(content) if span.kind != "comment").split())


def _column(inline: Token, number: int, lines: Sequence[str]) -> int | None:
    """Return where in its line the box is; None when it is not beside its bullet.

    The parser removes only the beginning of the line, so the content is the end of the line.
    """
    if not inline.map or inline.map[0] != number:
        return None
    line = lines[number].rstrip()
    column = len(line) - len(inline.content.partition("\n")[0].rstrip())
    return column if line[column - 1 : column] in (" ", "\t") else None
