"""Any text written as Markdown: as code, as the cell of a table, as the label of a graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from textwrap import indent

from accord.text.blocks import read_blocks
from accord.text.hidden import GUARD, as_seen

_SPECIAL = re.compile(r"[\\`*_{}\[\]()#+!|~<>$&]|(?<=[A-Za-z]):(?=//)|(?i:(?<=\bwww)\.)")
_MENTION = re.compile(r"@(?=\w)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
_UNGUARDED = re.compile(rf"(?:(?!{GUARD}){_CONTROL.pattern.removesuffix('+')})+")
_EMPHASIS = re.compile(r"[*`]|(?<![^\W_])_+|_+(?![^\W_])")
_NUMBERED = re.compile(r"\W*(?:(?:\d{1,2}(?:\.\d{1,2}){0,5}[.)]|\d{1,2}(?:\.\d{1,2}){1,5})\s+)?\W*")
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


@lru_cache(maxsize=256)
def bare_title(title: str) -> str:
    """Return a heading in lower case, without emphasis, a number or a sign before it, and a colon behind it."""
    return _NUMBERED.sub("", _EMPHASIS.sub("", title), count=1).rstrip(" \t:\uff1a").casefold()


def shorten(text: str, limit: int) -> str:
    """Cut a text to so many characters, of which the last one says so."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def without_middle(text: str, head: int, tail: int) -> str:
    """Cut the middle out of a text of more characters, and mark the cut: reports announce first and conclude last."""
    if len(text) <= head + tail:
        return text
    return f"{text[:head]}\n[… the middle was left out here …]\n{text[-tail:]}"


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


def with_label(label: str, text: str) -> str:
    """Write a label, or other Markdown, before a text; blocks such as lists begin on a line of their own."""
    ends = [*read_blocks(label).leaves[-1:], *read_blocks(text).leaves[:1]]
    is_prose = all((block.kind, block.level) == ("paragraph", 1) for block in ends)
    return with_closed_fence(f"{with_closed_fence(label)}{' ' if is_prose else chr(10) * 2}{text}")


def with_closed_fence(text: str) -> str:
    """Return a text that no text behind it is code of: with the end of a fence that is open at its end."""
    text = text.strip("\r\n")
    last = next(iter(read_blocks(text).leaves[-1:]), None)
    is_open = last and last.kind == "fence" and last.level == 1 and not last.is_closed
    return f"{text}\n{last.marker * last.length}" if last and is_open else text


def as_entry(mark: str, text: str) -> str:
    """Write any Markdown as an entry of a list."""
    return f"{mark} {indent(text, ' ' * (len(mark) + 1)).lstrip()}"


def as_quote(text: str) -> str:
    """Write any Markdown as a quote."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


_BLOCK = re.compile(r"\A(`{3,}|~{3,})\n(.*)\n\1", re.DOTALL)
_RUNS = re.compile(r"`+|~+")


def in_fence(text: str) -> str:
    """Show a whole text as a code block, in a fence that nothing in it can close."""
    fence = fence_for(text)
    return f"{fence}\n{text}\n{fence}"


def fence_for(text: str) -> str:
    """Return the shortest fence that nothing in a text can close, at most half as long as the text and three more."""
    return min((longer_run("`", text, 3), longer_run("~", text, 3)), key=len)


def unfenced_text(text: str) -> str:
    """Return what ``in_fence`` was given; another text as it is."""
    found, runs = _BLOCK.fullmatch(text), _RUNS.findall(text)
    runs = [run for run in runs if run[0] == text[0]]
    is_whole = found is not None and runs.count(found[1]) == 2 and max(map(len, runs)) == len(found[1])
    return found[2] if found and is_whole else text
