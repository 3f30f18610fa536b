"""Escape sequences: what a terminal obeys instead of showing it, such as colours, window titles and hidden links.

Source: ECMA-48, sections 5.3 to 5.6. A sequence goes as a whole; without its escape character the rest of it would be
text.
"""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"\x1b+(?:"
    r"\[[0-?]{0,64}[ -/]{0,8}[@-_a-~]?"  # colours and moves, also when they were cut off
    r"|[\]PX^_][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)"  # titles, links, clipboards, on one line
    r"|[ -/]{1,8}[0-_a-~]|[0-Z\\-_]"
    r")?"
)
"""None eats a backtick, which ends code. Escapes before one belong to it, so that none is left to begin another."""


def without_escapes(text: str) -> tuple[str, int]:
    """Return a text as it is without its escape sequences, and how many there were. To do so again changes nothing."""
    return _SEQUENCE.subn("", text) if "\x1b" in text else (text, 0)


def as_seen(text: str) -> str:
    """Return a text without its escape sequences."""
    return without_escapes(text)[0]
