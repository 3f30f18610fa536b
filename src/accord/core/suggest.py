"""Suggestions for a misspelt word: "Did you mean …?"."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONGEST_WORD = 100
"""Comparing longer words takes too long, and they are not typing mistakes."""


_LONG_WORD = 10
"""From this length on, two edits are still a slip."""

_SHORTEST_WORD = 5
"""Below this length, a word with another letter is another word: `done` is not `none`."""

_SEPARATORS = str.maketrans("", "", " -_.")
_PARTS = re.compile(r"[^\W_]?[^\W_A-Z]+|[A-Z]+")
_SHORTEST_PART = 3
"""A shorter part of a name is never a slip: `requestedBy` is not `requestedAt`, and `src/b.py` is not `src/a.py`. Only
in a path one may have a letter more or less: `src/aa.py` may be `src/a.py`."""


def correct_spelling(word: str, known: Iterable[str], *, most: int = 2) -> str | None:
    """Return the known word that was misspelt by a slip of at most so many edits; None where the word is another one.

    Case and separators do not count. A slip is one edit of a word of three letters or more, or two of a long word: a
    letter that is missing, added or another one (from five letters on), or two letters in each other's place. Digits
    are never a slip.
    """
    if len(word) > _LONGEST_WORD:
        return None
    near = [(edits, name) for name in known if (edits := _edits(word, name)) is not None and edits <= most]
    return min(near)[1] if near else None


def _edits(word: str, name: str) -> int | None:
    """Return the number of edits between two words after the prefix that they share; None for more than a slip."""
    first, last = (each.casefold() for each in (word, name))
    if first.partition(":")[0] == last.partition(":")[0]:
        first, last = first.partition(":")[2] or first, last.partition(":")[2] or last
    first, last = first.translate(_SEPARATORS), last.translate(_SEPARATORS)
    shorter = min(len(first), len(last))
    most = 0 if shorter < 3 else 1 if shorter < _LONG_WORD else 2
    is_other_word = shorter < _SHORTEST_WORD and len(first) == len(last) and sorted(first) != sorted(last)
    parts = zip(*(map(str.casefold, _PARTS.findall(each)) for each in (word, name)), strict=False)
    is_other_word |= any(
        sorted(one) != sorted(other)
        and max(len(one), len(other)) < _SHORTEST_PART
        and ("/" not in name or len(one) == len(other))
        for one, other in parts
    )
    is_other_number = [char for char in first if char.isdigit()] != [char for char in last if char.isdigit()]
    if is_other_word or is_other_number or abs(len(first) - len(last)) > most:
        return None
    edits = _distance(first, last)
    return edits if edits <= most else None


def _distance(first: str, last: str) -> int:
    """Return the number of insertions, deletions, replacements and swaps of neighbours that make one the other."""
    before: list[int] = []
    row = list(range(len(last) + 1))
    for i, char in enumerate(first, 1):
        above, row = row, [i]
        for j, other in enumerate(last, 1):
            least = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (char != other))
            if i > 1 and j > 1 and char == last[j - 2] and first[i - 2] == other:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        before = above
    return row[-1]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the sentence ``Did you mean `WORD`?``; an empty string where the word is not a known one misspelt."""
    match = correct_spelling(word, known)
    return f"Did you mean `{match}`?" if match and match != word else ""
