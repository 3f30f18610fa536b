"""The changes between two commits by file and line, and the lines that review comments are on.

Limits: https://docs.github.com/repositories/creating-and-managing-repositories/repository-limits
(a file over 20,000 lines or 500 KB has no patch, nor have the files after 20,000 lines or 1 MB in all)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from urllib.parse import quote

from accord_sandbox.calls import Call
from accord_sandbox.database import Row
from accord_sandbox.git_storage import EMPTY_TREE, BareRepository
from accord_sandbox.payloads import Payload

MOST_LINES = 20_000
MOST_FILE_BYTES = 500_000
MOST_BYTES = 1_000_000
_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ARGUMENTS = ("diff", "--raw", "-p", "-z", "-M", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv")


@dataclass(frozen=True)
class Line:
    """One line of a hunk. ``position`` counts the lines of the file's patch from the first hunk header, which is 0."""

    mark: str
    text: str
    old: int | None
    new: int | None
    position: int

    def number(self, side: str) -> int | None:
        """Return the line's number on a side of the diff."""
        return self.old if side == "LEFT" else self.new


@dataclass(frozen=True)
class Hunk:
    """A part of a patch: its header and the lines under it."""

    header: str
    old: tuple[int, int]  # start, count
    new: tuple[int, int]  # start, count
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class FileDiff:
    """The change of one file."""

    path: str
    previous: str | None  # old path of a renamed one
    status: str
    blob: str
    patch: str | None = None  # None for binaries
    additions: int = 0
    deletions: int = 0
    hunks: tuple[Hunk, ...] = field(default=(), repr=False)


@lru_cache(maxsize=512)
def fork_point(bare: BareRepository, base: str, head: str) -> str:
    """Return the commit where head left base; the empty tree for unrelated histories."""
    return bare.merge_base(base, head) or EMPTY_TREE


def pull_diff(bare: BareRepository, base: str, head: str) -> tuple[FileDiff, ...]:
    """Return the changes of a pull request: head against the commit where it left its base."""
    return diff_between(bare, fork_point(bare, base, head), head)


def file_payload(call: Call, change: FileDiff, commit: str) -> Payload:
    """Return a ``diff-entry``."""
    name, path = call.repository["full_name"], quote(change.path)
    document: Payload = {
        "sha": change.blob,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "blob_url": f"{call.web}/{name}/blob/{commit}/{path}",
        "raw_url": f"{call.web}/{name}/raw/{commit}/{path}",
        "contents_url": f"{call.api}/repos/{name}/contents/{path}?ref={commit}",
    }
    if change.patch is not None:
        document["patch"] = change.patch
    if change.previous is not None:
        document["previous_filename"] = change.previous
    return document


@lru_cache(maxsize=128)
def diff_between(bare: BareRepository, old: str, new: str) -> tuple[FileDiff, ...]:
    """Return the changes from one commit (or tree) to another, in git's order."""
    output = bare.git(*_ARGUMENTS, old, new)
    entries, rest = _raw_entries(output)
    # lines of hunks begin with their mark, so they cannot look like a header
    starts = [found.start() for found in re.finditer(rb"^diff --git ", rest, re.MULTILINE)]
    sections = (rest[start:end] for start, end in zip(starts, [*starts[1:], len(rest)], strict=True))
    changes, lines, size = [], 0, 0
    for letter, blob, paths in entries:
        raw = next(sections, b"") + (next(sections, b"") if letter == "T" else b"")
        change = _file_diff(letter, blob, paths, raw)
        count = change.patch.count("\n") + 1 if change.patch else 0
        lines, size = lines + count, size + len(raw)
        fits = count <= MOST_LINES and len(raw) <= MOST_FILE_BYTES and lines <= MOST_LINES and size <= MOST_BYTES
        changes.append(change if fits else replace(change, patch=None, hunks=()))
    return tuple(changes)


def _raw_entries(output: bytes) -> tuple[list[tuple[str, str, list[str]]], bytes]:
    """Split off the raw part: status letter, new (or last) blob and paths of each file; the patches follow it."""
    entries = []
    while output.startswith(b":"):
        head, _, output = output.partition(b"\0")
        _, _, old, new, status = head.decode().split()
        letter = status[0]
        paths = []
        for _ in range(2 if letter in "RC" else 1):
            path, _, output = output.partition(b"\0")
            paths.append(path.decode(errors="replace"))
        entries.append((letter, old if letter == "D" else new, paths))
    return entries, output.removeprefix(b"\0")


def _file_diff(letter: str, blob: str, paths: list[str], raw: bytes) -> FileDiff:
    previous = paths[0] if letter in "RC" else None
    status = _STATUS.get(letter, "changed")
    first = re.search(rb"^@@ ", raw, re.MULTILINE)
    if first is None:
        if letter == "M" and b"\nold mode " in raw and b"\nindex " not in raw:
            status = "changed"
        return FileDiff(paths[-1], previous, status, blob)
    body = raw[first.start() :].removesuffix(b"\n")
    hunks = tuple(_hunks(body))
    marks = [line.mark for hunk in hunks for line in hunk.lines]
    patch = body.decode(errors="replace")
    return FileDiff(paths[-1], previous, status, blob, patch, marks.count("+"), marks.count("-"), hunks)


def _hunks(body: bytes) -> Iterator[Hunk]:
    lines: list[Line] = []
    header, old, new, span = "", 0, 0, ((0, 0), (0, 0))
    for position, raw in enumerate(body.split(b"\n")):
        found = _HUNK.match(raw)
        if found is not None:
            if header:
                yield Hunk(header, *span, tuple(lines))
            header, lines = raw.decode(errors="replace"), []
            numbers = [1 if part is None else int(part) for part in found.groups()]
            span = ((numbers[0], numbers[1]), (numbers[2], numbers[3]))
            old, new = numbers[0], numbers[2]
            continue
        mark, text = raw[:1].decode(errors="replace"), raw[1:].decode(errors="replace")
        has_old, has_new = mark in " -", mark in " +"
        lines.append(Line(mark, text, old if has_old else None, new if has_new else None, position))
        old, new = old + has_old, new + has_new
    if header:
        yield Hunk(header, *span, tuple(lines))


SIDES = ("LEFT", "RIGHT")


class NotInDiff(Exception):
    """The diff does not show these lines. The message is GitHub's; ``field`` is the field that it names."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def locate(change: FileDiff, side: str, number: int) -> tuple[int, str]:
    """Return the position of a line in a file's diff, and its hunk from the header down to it. Raises NotInDiff."""
    for hunk in change.hunks:
        for index, line in enumerate(hunk.lines, 1):
            if line.number(side) == number:
                excerpt = [hunk.header, *(f"{shown.mark}{shown.text}" for shown in hunk.lines[:index])]
                return line.position, "\n".join(excerpt)
    raise NotInDiff("line", "must be part of the diff")


def relocate(call: Call, issue_id: int) -> None:
    """Find the line comments of a pull request in its current diff; the others become outdated."""
    (pull,) = call.fetch_all("SELECT * FROM pulls WHERE issue_id = ?", issue_id)
    changes = {change.path: change for change in pull_diff(call.bare, pull["base_sha"], pull["head_sha"])}
    statement = "SELECT * FROM review_comments WHERE issue_id = ? AND subject_type = 'line'"
    for row in call.fetch_all(statement, issue_id):
        found = _new_location(call.bare, row, pull["head_sha"], changes.get(row["path"]))
        place = (*found, pull["head_sha"]) if found else (None, None, row["commit_id"])
        statement = "UPDATE review_comments SET line = ?, position = ?, commit_id = ? WHERE id = ?"
        call.db.execute(statement, (*place, row["id"]))


def _new_location(bare: BareRepository, row: Row, head: str, change: FileDiff | None) -> tuple[int, int] | None:
    """Return the number and the position that a comment's line has now."""
    edits = {edit.path: edit for edit in diff_between(bare, row["original_commit_id"], head)}
    line = _shifted_number(edits.get(row["path"]), row["side"], row["original_line"])
    if change is None or line is None:
        return None
    try:
        return line, locate(change, row["side"], line)[0]
    except NotInDiff:
        return None


def _shifted_number(edit: FileDiff | None, side: str, number: int) -> int | None:
    """Return the new number of a line of the head after an edit of its file, None for a changed line."""
    if edit is None or side == "LEFT":
        return number  # the left side is the base, which an edit of the head does not change
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
