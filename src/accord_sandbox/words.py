"""Text as the search compares it: lower-case runs of letters and digits."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+")


def words(text: str | None) -> str:
    """Return the words of a text as ``' word word '``, so that a phrase is found by a plain substring test.

    HTML comments count like any other text: GitHub indexes the source, not what it shows.
    """
    found = _WORD.findall((text or "").lower())
    return f" {' '.join(found)} " if found else " "
