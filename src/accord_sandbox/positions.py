"""Where a line comment belongs: found in the diff when it is made, and again whenever the head moves.

Docs: https://docs.github.com/rest/pulls/comments
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord_sandbox import diffs

if TYPE_CHECKING:
    from accord_sandbox.bare import BareRepository
    from accord_sandbox.database import Connection, Row
    from accord_sandbox.diffs import FileDiff, Hunk, Line

SIDES = ("LEFT", "RIGHT")


@dataclass(frozen=True)
class LineRange:
    """Lines of a file as a client names them; one line without ``start_line``."""

    side: str
    line: int
    start_side: str | None = None
    start_line: int | None = None


@dataclass(frozen=True)
class DiffLocation:
    """A spot found in a diff. ``hunk`` is the text from the hunk's header down to the line."""

    spot: LineRange
    position: int
    hunk: str


class NotInDiff(Exception):
    """A spot that a diff does not show; the message is GitHub's about the thread, ``field`` what it is about."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def locate(change: FileDiff, spot: LineRange) -> DiffLocation:
    """Find a spot in a file's diff; an OffTheDiff when it is not there in one hunk, first line before last."""
    found = change.find(spot.side, spot.line)
    if found is None:
        raise NotInDiff("line", "must be part of the diff")
    hunk, last = found
    if spot.start_line is not None:
        start = change.find(spot.start_side or spot.side, spot.start_line)
        if start is None:
            raise NotInDiff("start_line", "must be part of the diff")
        if start[0] is not hunk:
            raise NotInDiff("start_line", "must be part of the same hunk as the line.")
        if start[1].position >= last.position:
            raise NotInDiff("start_line", "must precede the end line.")
    return DiffLocation(spot, last.position, _hunk_excerpt(hunk, last))


def range_at_position(change: FileDiff, position: int) -> LineRange | None:
    """Return the line at a position of the file's patch, the older way of naming lines."""
    for hunk in change.hunks:
        for line in hunk.lines:
            if line.position == position and line.mark in " +-":
                side, number = ("LEFT", line.old) if line.mark == "-" else ("RIGHT", line.new)
                return None if number is None else LineRange(side, number)
    return None


def relocate(db: Connection, bare: BareRepository, issue_id: int) -> None:
    """Find the line comments of a pull request in its diff as it is now; what is not found is outdated."""
    pull = db.execute("SELECT * FROM pulls WHERE issue_id = ?", (issue_id,)).fetchone()
    changes = {change.path: change for change in diffs.pull_diff(bare, pull["base_sha"], pull["head_sha"])}
    rows = db.execute(
        "SELECT * FROM review_comments WHERE issue_id = ? AND subject_type = 'line'", (issue_id,)
    ).fetchall()
    for row in rows:
        found = _relocated(bare, row, pull["head_sha"], changes.get(row["path"]))
        if found is None:
            db.execute(
                "UPDATE review_comments SET line = NULL, start_line = NULL, position = NULL WHERE id = ?", (row["id"],)
            )
            continue
        db.execute(
            "UPDATE review_comments SET line = ?, start_line = ?, position = ?, commit_id = ? WHERE id = ?",
            (found.spot.line, found.spot.start_line, found.position, pull["head_sha"], row["id"]),
        )


def _relocated(bare: BareRepository, row: Row, head: str, change: FileDiff | None) -> DiffLocation | None:
    if change is None:
        return None
    edits = {edit.path: edit for edit in diffs.diff_between(bare, row["original_commit_id"], head)}
    edit = edits.get(row["path"])
    line = _shifted_number(edit, row["side"], row["original_line"])
    start = _shifted_number(edit, row["start_side"], row["original_start_line"])
    if line is None or (start is None) != (row["original_start_line"] is None):
        return None
    try:
        return locate(change, LineRange(row["side"], line, row["start_side"], start))
    except NotInDiff:
        return None


def _shifted_number(edit: FileDiff | None, side: str | None, number: int | None) -> int | None:
    """Return the number that a line of the head has after an edit of its file, None when it was touched."""
    if number is None or edit is None or side == "LEFT":
        return number  # the left side is the base, which an edit of the head leaves alone
    if edit.patch is None:
        return None
    shift = 0
    for hunk in edit.hunks:
        start, count = hunk.old
        if number < start + (count == 0):
            break
        if number < start + count:
            return next((line.new for line in hunk.lines if line.old == number), None)
        shift = hunk.new[0] + hunk.new[1] - start - count
        shift += (hunk.new[1] == 0) - (count == 0)
    return number + shift


def _hunk_excerpt(hunk: Hunk, last: Line) -> str:
    lines = [f"{line.mark}{line.text}" for line in hunk.lines if line.position <= last.position]
    return "\n".join([hunk.header, *lines])
