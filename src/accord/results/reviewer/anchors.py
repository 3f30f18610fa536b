"""Where in a diff a comment can stand. Pure.

GitHub takes a comment on a line only where its diff shows that line: added, removed and context lines of a hunk. The
lines of a result are lines of the new version of a file; only a removed file has none, so there they are those of the
old version, on the left side.

Hunks are read here and not with the package unidiff: the files API gives hunks without file headers, which unidiff
wants; it takes a hunk that GitHub cut short for an error; and all that is asked here is which lines there are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from accord.github.pull_port import PullFile

RIGHT = "RIGHT"
LEFT = "LEFT"

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place for a comment: a line, or the file as a whole (None); ``path`` is how the diff calls the file."""

    path: str
    line: int | None = None
    side: str = RIGHT


@dataclass(frozen=True)
class Anchors:
    """The places that a diff has. ``renamed`` maps old paths to new ones."""

    files: dict[str, PullFile] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    _lines: dict[str, frozenset[int]] = field(default_factory=dict, repr=False, compare=False)

    def find(self, path: str, line: int | None) -> Anchor | None:
        """Return the nearest place: the line, else the file, else None when the file is not in the diff.

        A line of a file that was renamed since has its number in a version that is gone, so only the file is left.
        """
        path = path.removeprefix("./")
        file = self.files.get(path)
        if file is None:
            return Anchor(self.renamed[path]) if path in self.renamed else None
        if line is None or line not in self._lines_of(file):
            return Anchor(path)
        return Anchor(path, line, _side(file))

    def _lines_of(self, file: PullFile) -> frozenset[int]:
        if file.path not in self._lines:
            self._lines[file.path] = shown_lines(file.patch or "", _side(file))
        return self._lines[file.path]


def anchors_of(files: Iterable[PullFile]) -> Anchors:
    """Index the files of a diff."""
    by_path = {file.path: file for file in files}
    renamed = {file.previous_path: file.path for file in by_path.values() if file.status == "renamed"}
    return Anchors(by_path, renamed)


def shown_lines(patch: str, side: str) -> frozenset[int]:
    """Number the lines that the hunks of a patch show on one side.

    Only what is there counts, not what the headers promise. Lines end with LF alone: a form feed is text. A row without
    any sign is an empty context line whose blank was trimmed on the way.
    """
    skipped = "-" if side == RIGHT else "+"
    shown: set[int] = set()
    following = 0
    for row in patch.removesuffix("\n").split("\n"):
        header = _HUNK.match(row)
        if header:
            following = int(header.group(2 if side == RIGHT else 1))
        elif following and row[:1] in ("+", "-", " ", "") and row[:1] != skipped:
            shown.add(following)
            following += 1
    return frozenset(shown)


def _side(file: PullFile) -> str:
    return LEFT if file.status == "removed" else RIGHT
