"""Characters that a reader does not see: invisible ones, and the escape sequences that a terminal obeys.

An invisible character splits a word for a machine and not for a person, carries a message, or (bidirectional
controls) shows a text in another order than it is read by a program ("Trojan Source", CVE-2021-42574). The same
characters join emoji, shape Persian and Hindi and point Hebrew; each is kept exactly where Unicode gives it a
meaning: UTS #51 (emoji sequences), UAX #31 section 2.3 (joiners), UTS #37 (ideographic variation), the script
chapters of the standard.

A kept character is always next to visible ones, so removing the others never changes which are kept.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from accord.text.views import Edit, View

GUARD = "\N{WORD JOINER}"
"""The character that accord puts into ``@name``, ``fixes #1``, ``/word``, ``o/r#1`` and ``https://``: they stay text.

It has no width and forbids a line break (Unicode chapter 23.2), so a text reads as before, yet a name, keyword, command
or link is no longer one run of characters. It is kept only in these places; anywhere else it is hidden text.
"""

_BIDI_MARKS = "\u061c\u200e\u200f"
_INVISIBLE = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_PICTURES = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d"
    "\u3297\u3299\U0001f000-\U0001faff"
)
_RIGHT_TO_LEFT = (
    "\u0590-\u060f\u0610-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
)
_JOINING = "\u0600-\u061b\u061d-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u17ff\u1800-\u180a\u1810-\u18af"
"""Letters that take another shape beside a joiner: Arabic, Syriac, Indic, Tibetan, Myanmar, Khmer, Mongolian."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff"
"""Thai, Lao, Myanmar and Khmer mark where a line may break with a zero width space."""

_IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MODIFIED = f"[{_PICTURES}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]?"

_KEPT = "|".join(
    (
        "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f",  # the flags of Scotland, Texas …
        f"{_MODIFIED}(?:\u200d{_MODIFIED})+",  # families, professions
        f"(?<=[{_PICTURES}])[\ufe0e\ufe0f]",
        "(?<=[0-9*])\ufe0f(?=\u20e3)|(?<=#)\ufe0f(?=[\u20e3-])",  # keycaps, anchors of headings with emoji
        f"(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])",
        # Indic half forms, and the Arabic letter of Hijri years
        "(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u0647])\u200d(?=\\s|$)",
        f"(?<=[{_UNSPACED}])\u200b(?=[{_UNSPACED}])",
        f"(?<=[{_IDEOGRAPHS}])[\ufe00-\ufe02\U000e0100-\U000e01ef]",
        "(?<=[\u1800-\u180a\u1810-\u18af])[\u180b-\u180f]",
        "(?<=[\u2200-\u22ff])\ufe00",  # variants of mathematical operators
        "(?<=[\u0591-\u05c7])\u034f(?=[\u0591-\u05c7])",  # order of Hebrew points
        f"(?<=@){GUARD}(?=[A-Za-z0-9&<*_~!\\]\\[])",
        f"(?<![A-Za-z0-9][cdfrCDFR])(?<=[cdfrCDFR]){GUARD}(?=(?i:[lieu<&*_~!\\]\\[]))",
        f"(?<![A-Za-z0-9][/.!])(?<=[/.!]){GUARD}(?=[A-Za-z])",
        f"(?<=#){GUARD}(?=[0-9&<*_~!\\]\\[])",
        f"(?<=:){GUARD}(?=//)",
        f"(?<=[wW]{{3}}){GUARD}(?=\\.)",
    )
)
_TOKEN = f"(?P<kept>{_KEPT})|(?P<mark>(?<![{_INVISIBLE}])[{_BIDI_MARKS}])|(?P<hidden>[{_INVISIBLE}]+)"
"""Compiled at its first use: most texts hold no invisible character."""

_RUN = re.compile(f"[{_INVISIBLE}]+")
_RTL = f"[{_RIGHT_TO_LEFT}]"
_SEPARATORS = re.compile("[\u2028\u2029]")


def hidden_edits(text: str) -> Iterator[Edit]:
    """Take out each run of invisible characters without a meaning; readers see separators of lines as a blank."""
    if not _RUN.search(text):
        return
    for hit in re.finditer(_TOKEN, text):
        if hit["hidden"] or (hit["mark"] and not _is_beside_rtl(text, hit.start())):
            yield Edit(*hit.span(), " " if _SEPARATORS.search(hit[0]) else "", "hidden")


def invisible_runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of invisible characters, with or without a meaning."""
    return (hit.span() for hit in _RUN.finditer(text))


def is_hidden(char: str) -> bool:
    """Return whether a character is invisible."""
    return _RUN.fullmatch(char) is not None


def strip_hidden(text: str) -> str:
    """Remove invisible characters, from text of agents and from text for agents."""
    return View(text, hidden_edits(text)).text


def comparable_name(name: str) -> str:
    """Return the form in which names compare: without case, other forms of a letter, and invisible characters."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _RUN.sub("", name)).casefold()).strip()


def _is_beside_rtl(text: str, position: int) -> bool:
    """Return whether a direction mark has letters of a right-to-left script close by on its line."""
    around = text[max(0, position - 100) : position + 101]
    before, after = around[: min(position, 100)], around[min(position, 100) :]
    return bool(re.search(_RTL, before.rpartition("\n")[2]) or re.search(_RTL, after.partition("\n")[0]))


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
