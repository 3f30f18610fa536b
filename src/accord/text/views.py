"""A text with changes: how it reads then, and where each part of it was before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple, Protocol


class Edit(NamedTuple):
    """A replacement of a part of a text."""

    start: int
    end: int
    new: str = ""
    kind: str = ""  # what it is counted as


class Hole(Protocol):
    """A part of a text, as offsets."""

    @property
    def start(self) -> int: ...  # noqa: D102

    @property
    def end(self) -> int: ...  # noqa: D102


_PLACE = itemgetter(0, 1)


class View:
    """A text with edits, of which ``done`` were carried out: of those that overlap, the one that begins first."""

    def __init__(self, text: str, edits: Iterable[Edit]) -> None:
        self.text = text
        self.done: list[Edit] = []
        self._starts: list[int] = [0]
        self._sources: list[tuple[int, int]] = [(0, 0)]
        if not (ordered := sorted(edits, key=_PLACE)):
            return
        pieces: list[str] = []
        self._starts, self._sources = [], []
        length = end = 0
        for edit in [*ordered, Edit(len(text), len(text))]:
            if edit.start < end:
                continue
            self.done.append(edit)
            for piece, source in ((text[end : edit.start], (end, 0)), (edit.new, edit[:2])):
                if piece:
                    self._starts.append(length)
                    self._sources.append(source)
                    pieces.append(piece)
                    length += len(piece)
            end = edit.end
        self.done.pop()
        self.text = "".join(pieces)

    def source(self, position: int) -> tuple[int, int]:
        """Return from where to where in the text a character of the view stands."""
        i = bisect_right(self._starts, position) - 1
        start, end = self._sources[i]
        if end:
            return start, end
        start += position - self._starts[i]
        return start, start + 1

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the text this part of the view begins and ends."""
        return self.source(start)[0], self.source(end - 1)[1]


class Cursor:
    """Tells of positions that only grow whether they lie in one of these holes, which are in order."""

    def __init__(self, holes: Sequence[Hole]) -> None:
        self._holes = holes
        self._next = 0

    def __call__(self, position: int) -> bool:
        """Return whether this position is in a hole."""
        while self._next < len(self._holes) and self._holes[self._next].end <= position:
            self._next += 1
        return self._next < len(self._holes) and self._holes[self._next].start <= position
