"""A whole text as one code block: how it is shown when nothing else is safe."""

from __future__ import annotations

import re

from accord.kernel.markdown_text import longer_run

_BLOCK = re.compile(r"(`{3,}|~{3,})\n(.*)\n\1", re.DOTALL)
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
    """Tell whether a text is one code block and nothing else, as ``in_fence`` writes it."""
    found = _BLOCK.fullmatch(text)
    runs = (_BACKTICKS if text.startswith("`") else _TILDES).findall(text)
    return found is not None and runs.count(found[1]) == 2 and max(map(len, runs)) == len(found[1])


def unfenced(text: str) -> str:
    """Return what ``in_fence`` was given; another text as it is."""
    found = _BLOCK.fullmatch(text) if is_fenced(text) else None
    return found[2] if found else text
