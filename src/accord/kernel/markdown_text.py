"""Text of others inside Markdown that we write: nothing in it may become a mention, a link, HTML or a new row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.kernel.terminal import as_seen

if TYPE_CHECKING:
    from collections.abc import Sequence

_SPECIAL = re.compile(r"[\\`*_{}\[\]()#+!|~<>$&]|(?<=[A-Za-z]):(?=//)|(?i:(?<=\bwww)\.)")
_MENTION = re.compile(r"@(?=\w)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
_CELL_CHARS = 500
_LABEL_CHARS = 60


def longer_run(char: str, text: str, least: int) -> str:
    """Return a run of a character that is longer than any in a text: a fence that nothing in it can close."""
    return char * max([least, *(len(run) + 1 for run in re.findall(f"{char}+", text))])


def shortened(text: str, limit: int) -> str:
    """Cut a text to so many characters, of which the last one says so."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cell(text: str) -> str:
    """Write any text as the plain content of a table cell, at most 500 characters of it."""
    text = shortened(_CONTROL.sub(" ", as_seen(text)).strip(), _CELL_CHARS)
    return _MENTION.sub("@\N{ZERO WIDTH NON-JOINER}", _SPECIAL.sub(r"\\\g<0>", text))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table; cells must have been through ``cell`` where they hold text of others."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def fenced(text: str, language: str = "") -> str:
    """Write any text as a code block, behind a fence that is longer than any in it."""
    text = "\n".join(_CONTROL.sub(" ", line) for line in as_seen(text).splitlines())
    fence = longer_run("`", text, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def mermaid_text(text: str) -> str:
    """Write any text as a quoted label of a Mermaid graph, at most 60 characters of it."""
    text = shortened(_CONTROL.sub(" ", as_seen(text)).strip(), _LABEL_CHARS)
    return "".join(c if c.isalnum() or c in " .,-…" else f"#{ord(c)};" for c in text)
