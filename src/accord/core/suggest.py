"""Suggestions for a misspelt word: "Did you mean …?"."""

from __future__ import annotations

from collections.abc import Iterable

MISSPELLED = 0.85
"""The similarity from which an unknown key is a known one, misspelled."""

_LONGEST_WORD = 100
"""Comparing longer words takes too long, and they are not typing mistakes."""


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known word closest to ``word``, ignoring case; None if none is as similar as ``cutoff`` (0 to 1)."""
    from difflib import get_close_matches

    if len(word) > _LONGEST_WORD:
        return None
    spelling = {name.lower(): name for name in known}
    matches = get_close_matches(word.lower(), spelling, n=1, cutoff=cutoff)
    return spelling[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the sentence ``Did you mean `WORD`?``; an empty string where no known word is close."""
    match = nearest(word, known)
    return f"Did you mean `{match}`?" if match and match != word else ""
