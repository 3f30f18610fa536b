"""A text as something else sees it: parts replaced or left out, every character traced back to where it came from."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Replacement(NamedTuple):
    """The text that replaces ``start`` to ``end``."""

    start: int
    end: int
    new: str


class View:
    """A text with changes; of changes that overlap, the one that begins first counts."""

    def __init__(self, text: str, changes: Iterable[Replacement]) -> None:
        pieces: list[str] = []
        self._starts: list[int] = []
        self._sources: list[tuple[int, int]] = []
        length = end = 0
        for change in [*sorted(changes, key=lambda change: change[:2]), Replacement(len(text), len(text), "")]:
            if change.start < end:
                continue
            for piece, source in ((text[end : change.start], (end, 0)), (change.new, change[:2])):
                if piece:
                    self._starts.append(length)
                    self._sources.append(source)
                    pieces.append(piece)
                    length += len(piece)
            end = change.end
        self.text = "".join(pieces)

    def source(self, position: int) -> tuple[int, int]:
        """Return from where to where in the text a character of the view stands."""
        i = bisect_right(self._starts, position) - 1
        start, end = self._sources[i]
        if end:
            return start, end
        start += position - self._starts[i]
        return start, start + 1
