"""Which text of a review stands where: on a line, on a file, in the body, or in follow-up comments. Pure.

Every comment's text goes to exactly one of these places, whole; only a text that no body has room for is cut, and then
its pieces follow each other without a character missing. All texts were made fit to be posted before: none leaves a
fence or a tag open, so none reaches into the next. The layout depends on nothing but the draft and the places of its
comments, and a posted review says in its marker what these were: a later run lays out the same again.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote

from accord.github.limits import BODY_CHARS
from accord.github.markers import find_markers, write_marker, write_twice
from accord.results.texts import as_code
from accord.text.cuts import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord.github.models import PullFile
    from accord.results.models import ReviewerResult


MOST_FILE_COMMENTS = 10
"""Comments on whole files cost a request each, and GitHub wraps each in a review of its own; the rest join the body."""

MOST_PLACED = 1_000
"""Comments after so many join the body, which bounds the one request and the marker that says where each one went."""

REVIEW = "review"
COMMENT = "review-comment"
PART = "review-part"

_COMMENTED = "comment"
_EVENTS = {"approve": "APPROVE", "needs-changes": "REQUEST_CHANGES", _COMMENTED: "COMMENT"}
_VERDICTS = {"approve": "approve", "needs-changes": "needs changes"}
_MOST_PARTS = 9_999
_LONGEST_LINK = 300
_LONGEST_PATH = 1_000
_SMALLEST_CUT = 2_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_RUN = re.compile(r"([ifb])([1-9][0-9]{0,5})")


class Placement(StrEnum):
    """A step of the ladder on which a comment stands."""

    INLINE = "inline"
    FILE = "file-level"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Note:
    """A comment of the result, with the text that is posted; ``at`` is its position in the result.

    ``path`` is the path as the diff may know it, ``name`` the same as it may be shown.
    """

    at: int
    path: str
    name: str
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class DraftReview:
    """A review to be: what is said, of which commit of which pull request, in which run.

    ``same`` is the token that all runs of one result have in common, whatever commit they were told.
    """

    verdict: str
    summary: str
    notes: tuple[Note, ...]
    token: str
    pull_url: str
    commit: str
    same: str = ""


@dataclass(frozen=True, slots=True)
class ReviewMarks:
    """What the marker of a posted review says: how the verdict was applied, and where each comment went."""

    verdict: str
    places: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class BodyText:
    """A text of the body, with what stands before it; ``at`` is its comment, None for what is no comment's."""

    text: str
    name: str = ""
    label: str = ""
    at: int | None = None


def draft_of(result: ReviewerResult, names: Sequence[str], token: str, pull_url: str, commit: str) -> DraftReview:
    """Take the texts of a result, which are as they are posted; ``names`` are the paths as they may be shown."""
    review = result.review
    notes = tuple(
        Note(at, comment.path, name, comment.line, comment.body)
        for at, (comment, name) in enumerate(zip(review.comments, names, strict=True))
    )
    return DraftReview(review.verdict, review.summary, notes, token, pull_url, commit)


def place_notes(notes: Sequence[Note], anchors: Anchors) -> tuple[Placement, ...]:
    """Give each comment the highest step of the ladder that the diff and the bounds allow."""
    places: list[Placement] = []
    on_files = 0
    for note in notes:
        anchor = anchors.find(note.path, note.line)
        if anchor is None or note.at >= MOST_PLACED or len(note.text) > BODY_CHARS - _LONGEST_PATH:
            places.append(Placement.BODY)
        elif anchor.line is not None:
            places.append(Placement.INLINE)
        elif on_files < MOST_FILE_COMMENTS:
            on_files += 1
            places.append(Placement.FILE)
        else:
            places.append(Placement.BODY)
    return tuple(places)


def event_of(verdict: str) -> str:
    """Return GitHub's event for a verdict, or for ``comment``."""
    return _EVENTS[verdict]


def marks_of(body: str, token: str, count: int) -> ReviewMarks | None:
    """Read what a review of this run says of itself; None when it is not of this run, or was edited."""
    for fields in find_markers(body, REVIEW):
        places = _read_places(fields.get("places", ""))
        verdict = fields.get("verdict", "")
        if fields.get("run") == token and verdict in _EVENTS and len(places) == count:
            return ReviewMarks(verdict, places)
    return None


def file_comment(draft: DraftReview, note: Note, path: str) -> str:
    """Write the comment on a whole file; ``path`` is how the diff calls it. It says which line was meant."""
    old_name = [_code(note.name)] if note.path.removeprefix("./") != path else []
    line = [f"Line {note.line}"] if note.line else []
    lead = f"**{', '.join([*old_name, *line])}**\n\n" if old_name or line else ""
    return f"{lead}{note.text}\n\n{write_twice(COMMENT, run=draft.token, at=str(note.at))}"


def bodies(draft: DraftReview, marks: ReviewMarks, review_url: str) -> list[str]:
    """Write the body of the review, and the follow-up comments for what it has no room for."""
    parts = lay_out(draft, marks)
    markers = [_marker(draft, marks.verdict, marks)]
    markers += [write_marker(PART, run=draft.token, part=str(n)) for n in range(1, len(parts))]
    texts = []
    for n, (part, marker) in enumerate(zip(parts, markers, strict=True)):
        lead = [_continued(draft, n, len(parts), review_url)] if n else []
        texts.append("\n\n".join([*lead, *_rendered(part), marker]))
    return texts


def _marker(draft: DraftReview, verdict: str, marks: ReviewMarks) -> str:
    places = _write_places(marks.places)
    return write_twice(REVIEW, run=draft.token, result=draft.same, verdict=verdict, places=places)


def lay_out(draft: DraftReview, marks: ReviewMarks) -> list[list[BodyText]]:
    """Distribute the texts of the body over the body and its follow-ups, in order, each within GitHub's limit."""
    pieces = []
    if marks.verdict == _COMMENTED:
        verdict = _VERDICTS[draft.verdict]
        pieces.append(
            BodyText(f"**Verdict: {verdict}.** It is given as a comment, as GitHub takes no other review here.")
        )
    pieces.append(BodyText(draft.summary))
    in_body = [note for note, place in zip(draft.notes, marks.places, strict=True) if place is Placement.BODY]
    by_name: dict[str, list[Note]] = {}
    for note in in_body:
        by_name.setdefault(note.name, []).append(note)
    pieces += [
        BodyText(note.text, note.name, _label(draft, note), note.at) for notes in by_name.values() for note in notes
    ]
    longest = _marker(draft, "needs-changes", marks)
    continued = _continued(draft, _MOST_PARTS, _MOST_PARTS, "x" * _LONGEST_LINK)
    return pack(pieces, BODY_CHARS - len(longest) - 2, BODY_CHARS - len(continued) - len(write_marker(PART)) - 200)


def pack(pieces: Sequence[BodyText], first_room: int, room: int) -> list[list[BodyText]]:
    """Fill parts in order; ``first_room`` and ``room`` are the characters of the first part and of the others.

    A piece that does not fit goes to the next part; one that fits into none is cut.
    """
    parts: list[list[BodyText]] = [[]]
    free = first_room
    waiting = deque(pieces)
    while waiting:
        piece = waiting.popleft()
        fits = free - _frame(piece, parts[-1])
        if len(piece.text) <= fits:
            parts[-1].append(piece)
            free = fits - len(piece.text)
        elif parts[-1] and (len(piece.text) <= room - _frame(piece, []) or fits < _SMALLEST_CUT):
            parts.append([])
            free = room
            waiting.appendleft(piece)
        else:
            head, tail = cut(piece.text, fits)
            parts[-1].append(replace(piece, text=head))
            parts.append([])
            free = room
            waiting.appendleft(replace(piece, text=tail))
    return parts


def _rendered(part: Iterable[BodyText]) -> list[str]:
    blocks = []
    for name, pieces in groupby(part, key=lambda piece: piece.name):
        if name:
            blocks.append(_heading(name))
        for piece in pieces:
            blocks += [piece.label, piece.text] if piece.label else [piece.text]
    return blocks


def _frame(piece: BodyText, before: Sequence[BodyText]) -> int:
    """Count what a part grows by when a piece joins it, besides the piece's text: heading, label, empty lines."""
    is_first = not before or before[-1].name != piece.name
    heading = len(_heading(piece.name)) + 2 if piece.name and is_first else 0
    return heading + len(piece.label) + 4


def _heading(name: str) -> str:
    return f"### {_code(name)}"


def _label(draft: DraftReview, note: Note) -> str:
    """Say which line is meant, linked to it where the address is not too long."""
    if note.line is None:
        return "**The file as a whole**"
    base = draft.pull_url.rpartition("/pull/")[0]
    link = f"{base}/blob/{draft.commit}/{quote(note.path.removeprefix('./'))}#L{note.line}"
    can_link = base and note.name == note.path and len(link) <= _LONGEST_LINK
    return f"**[Line {note.line}]({link})**" if can_link else f"**Line {note.line}**"


def _continued(draft: DraftReview, part: int, parts: int, review_url: str) -> str:
    link = f"[the review]({review_url})" if 0 < len(review_url) <= _LONGEST_LINK else "the review"
    return f"_Part {part + 1} of {parts} of {link} of {draft.commit[:7]}._"


def _code(name: str) -> str:
    """Show a path as code, whatever it holds: an agent chose it."""
    return as_code(_CONTROL.sub(" ", name)[:_LONGEST_PATH])


def _write_places(places: Iterable[Placement]) -> str:
    return "".join(f"{place.value[0]}{len(list(run))}" for place, run in groupby(places))


def _read_places(text: str) -> tuple[Placement, ...]:
    by_letter = {place.value[0]: place for place in Placement}
    runs = [(by_letter[letter], int(count)) for letter, count in _RUN.findall(text)]
    return tuple(place for place, count in runs for _ in range(count))


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
