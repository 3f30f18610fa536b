"""Where each text of a review goes: on a line of the diff, on a file, in the body, or in follow-up comments. Pure.

``place_comment`` moves a comment off a line that is not in the diff. Every text goes to one place, whole unless it is
longer than a body. The layout depends only on the draft and the placements, which a posted review has in its marker.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote

from accord.core.findings import pointer
from accord.core.frozen import Frozen
from accord.github.limits import BODY_CHARS, PULL_FILES
from accord.results.reviewer.rules import is_warning
from accord.results.reviewer.threads import COMMENT, Note, OwnThread, read_ids, without_repeats, write_ids
from accord.results.scope_words import read_place
from accord.text.markdown import as_code
from accord.text.markers import REVIEW, find_markers, write_marker, write_twice
from accord.text.sanitise import cut

if TYPE_CHECKING:
    from accord.github.models import PullFile
    from accord.results.models import ReviewerResult
    from accord.results.texts import TextSanitizer


RIGHT = "RIGHT"
LEFT = "LEFT"

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")

MOST_FILE_COMMENTS = 10
"""A comment on a whole file costs a request, and GitHub wraps it in a review; further ones join the body."""

MOST_PLACED = 1_000
"""Later comments join the body, which bounds the request and the marker with all placements."""

PART = "review-part"

COMMENT_ONLY = "comment"
EVENTS = {"approve": "APPROVE", "needs-changes": "REQUEST_CHANGES", COMMENT_ONLY: "COMMENT"}
"""GitHub's event for each verdict."""

_MOST_PARTS = 9_999
_LONGEST_LINK = 300
_LONGEST_PATH = 1_000
_SMALLEST_CUT = 2_000
_SIDE = re.compile(r"^[ab]/")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_RUN = re.compile(r"([ifbksr])([1-9][0-9]{0,5})")
_EARLIER_HEADING = "### Found before"
_EARLIER = re.compile(rf"^{_EARLIER_HEADING}\r?\n\r?\n(?:- [^\n]*(?:\n|\Z))+", re.MULTILINE)
_EARLIER_CHARS = 3_000


class Placement(StrEnum):
    """Where a comment is posted, from best to last; or that a thread or another comment holds it."""

    INLINE = "inline"
    FILE = "file-level"
    BODY = "body"
    KEPT = "kept"  # in an open thread, new words as a reply
    SETTLED = "settled"  # in one that a person resolved or hid
    REPEATED = "repeated"  # in another comment of this review


IN_THREADS = frozenset({Placement.KEPT, Placement.SETTLED})


class DraftReview(Frozen):
    """A review to post."""

    verdict: str
    summary: str
    notes: tuple[Note, ...]
    token: str  # names the run
    same: str = ""  # names all runs of this result at any commit
    pull_url: str = ""
    commit: str = ""

    @property
    def own_notes(self) -> tuple[Note, ...]:
        """The comments that repeat no other one."""
        return tuple(note for note in self.notes if note.repeats is None)


class ReviewMarks(Frozen):
    """The content of a posted review's marker: the verdict as applied, and the placement of each comment."""

    verdict: str
    places: tuple[Placement, ...]
    gone: tuple[int, ...] = ()  # the first comments of the threads whose finding is gone

    @property
    def has_earlier(self) -> bool:
        """Whether threads of earlier reviews hold comments of this one."""
        return not IN_THREADS.isdisjoint(self.places)


class BodyText(Frozen):
    """A text of the body with its heading and label; ``at`` is the position of its comment, None for other texts."""

    text: str
    name: str = ""
    label: str = ""
    at: int | None = None


class Anchor(Frozen):
    """A position for a comment in the diff: a line, or the whole file (None); ``path`` is the file's path there."""

    path: str
    line: int | None = None
    side: str = RIGHT


class Anchors(Frozen):
    """The files and lines of a diff."""

    files: dict[str, PullFile]
    renamed: dict[str, str]  # old paths to new ones
    is_whole: bool  # GitHub lists all files

    def find(self, path: str, line: int | None) -> Anchor | None:
        """Return the line; the file for a renamed one or a line that the diff does not show; None without the file."""
        path = self.path_of(path)
        file = self.files.get(path)
        if file is None:
            return Anchor(self.renamed[path]) if path in self.renamed else None
        side = LEFT if file.status == "removed" else RIGHT
        return Anchor(path, line, side) if line in shown_lines(file.patch or "", side) else Anchor(path)

    def path_of(self, path: str) -> str:
        """Return a path without the ``a/`` or ``b/`` of a diff's header, if only the rest is a file of the diff."""
        forms = (path, _SIDE.sub("", path))
        return next((form for form in forms if form in self.files or form in self.renamed), path)


def anchors_of(files: Iterable[PullFile], *, is_whole: bool = True) -> Anchors:
    """Return the anchors of a diff."""
    by_path = {file.path: file for file in files}
    renamed = {file.previous_path: file.path for file in by_path.values() if file.status == "renamed"}
    return Anchors(by_path, renamed, is_whole)


@lru_cache(maxsize=PULL_FILES)
def shown_lines(patch: str, side: str) -> frozenset[int]:
    """Return the numbers of the rows that the hunks of a patch show on one side; a bare row is an empty line."""
    skipped = "-" if side == RIGHT else "+"
    shown: set[int] = set()
    following = 0
    for row in patch.removesuffix("\n").split("\n"):
        if header := _HUNK.match(row):
            following = int(header.group(2 if side == RIGHT else 1))
        elif following and row[:1] in ("+", "-", " ", "") and row[:1] != skipped:
            shown.add(following)
            following += 1
    return frozenset(shown)


def draft_review(result: ReviewerResult, sanitizer: TextSanitizer, token: str, same: str) -> DraftReview:
    """Return the draft of a result whose texts are sanitised; paths are sanitised here, as names to show."""
    review = result.review
    notes = []
    for at, each in enumerate(review.comments):
        path, line = read_place(each.path, each.line)
        name = sanitizer.path(path, pointer("review", "comments", at, "path"))
        notes.append(Note(at, path, name, line, each.body, is_warning(each)))
    return DraftReview(review.verdict, review.summary, tuple(notes), token, same)


def needs_diff(draft: DraftReview) -> bool:
    """Return whether only the diff tells which file a path means: ``b/a.py`` may be ``a.py``."""
    return any(_SIDE.match(note.path) for note in draft.notes)


def with_files(draft: DraftReview, anchors: Anchors | None) -> DraftReview:
    """Return the draft with its comments on files of the diff, and those marked that repeat another one."""
    notes = []
    for note in draft.notes:
        path = anchors.path_of(note.path) if anchors else note.path
        notes.append(note if path == note.path else replace(note, path=path, name=_SIDE.sub("", note.name)))
    return replace(draft, notes=without_repeats(notes))


def place_comments(
    notes: Sequence[Note],
    anchors: Anchors | None,
    threads: Mapping[int, OwnThread] | None = None,
    most: int = MOST_PLACED,
) -> tuple[Placement, ...]:
    """Place all comments of a review, findings before warnings; those in a thread of an earlier review stay there.

    Comments beyond ``most`` go to the body, and so do comments on files beyond ``MOST_FILE_COMMENTS``. Comments whose
    thread has the same words do not count.
    """
    found = {note.at: Placement.BODY if note.repeats is None else Placement.REPEATED for note in notes}
    on_files = MOST_FILE_COMMENTS
    for note in by_severity(note for note in notes if note.repeats is None):
        thread = (threads or {}).get(note.at)
        placement = place_comment(note, anchors, thread)
        is_posted = thread is not None and thread.has_text(note.text)
        if is_posted or (most > 0 and (placement is not Placement.FILE or on_files > 0)):
            found[note.at] = placement
            most -= placement is not Placement.BODY and not is_posted
            on_files -= placement is Placement.FILE
    return tuple(found[note.at] for note in notes)


def by_severity(notes: Iterable[Note]) -> list[Note]:
    """Return findings before warnings, each in the order of the result."""
    return sorted(notes, key=lambda note: (note.is_warning, note.at))


def place_comment(note: Note, anchors: Anchors | None, thread: OwnThread | None = None) -> Placement:
    """Place a comment in its thread, on its line, on its file where the diff lacks the line, or else in the body."""
    anchor = anchors.find(note.path, note.line) if anchors else None
    is_long = len(note.text) > BODY_CHARS - _LONGEST_PATH
    if thread and not is_long:
        return Placement.SETTLED if thread.is_settled else Placement.KEPT
    if anchor is None or note.at >= MOST_PLACED or is_long:
        return Placement.BODY
    return Placement.FILE if anchor.line is None else Placement.INLINE


def is_in_body(draft: DraftReview, note: Note, body: str) -> bool:
    """Return whether the body of a posted review of the same commit has a comment."""
    return f"{_heading(note.name)}\n" in body and f"{_label(draft, note)}\n\n{note.text}\n" in body


def marks_of(body: str, token: str, count: int) -> ReviewMarks | None:
    """Read the marker of a review of this run; None when it is not of this run, or was edited."""
    for fields in find_markers(body, REVIEW):
        places = _read_places(fields.get("places", ""))
        verdict = fields.get("verdict", "")
        if fields.get("run") == token and verdict in EVENTS and len(places) == count:
            return ReviewMarks(verdict, places, read_ids(fields.get("gone", "")))
    return None


def file_comment(draft: DraftReview, note: Note, path: str) -> str:
    """Return the comment on a whole file, with the line that was meant; ``path`` is the file's path in the diff."""
    old_name = [] if path == note.path else [_code(note.name)]
    line = [f"Line {note.line}"] if note.line else []
    lead = f"**{', '.join([*old_name, *line])}**\n\n" if old_name or line else ""
    where = {"line": str(note.line or ""), "lead": str(len(lead))}
    return f"{lead}{note.text}\n\n{write_twice(COMMENT, run=draft.token, at=str(note.at), **where)}"


def found_reply(draft: DraftReview, note: Note) -> str:
    """Return the reply that has the new words of a thread's finding."""
    return f"{note.text}\n\n{write_twice(COMMENT, run=draft.token, at=str(note.at))}"


def bodies(draft: DraftReview, marks: ReviewMarks, review_url: str, earlier: str = "") -> list[str]:
    """Return the body of the review, and the follow-up comments for what does not fit into it.

    ``earlier`` is the list of comments in threads of earlier reviews.
    """
    parts = lay_out(draft, marks)
    earlier = earlier if marks.has_earlier else ""  # otherwise, no space is reserved for it
    markers = [_marker(draft, marks.verdict, marks)]
    markers += [write_marker(PART, run=draft.token, part=str(n)) for n in range(1, len(parts))]
    texts = []
    for n, (part, marker) in enumerate(zip(parts, markers, strict=True)):
        lead = [_part_line(draft, n, len(parts), review_url)] if n else []
        texts.append("\n\n".join([*lead, *_part_texts(part), *([earlier] if earlier and not n else []), marker]))
    return texts


def earlier_list(notes: Iterable[Note], threads: Mapping[int, OwnThread]) -> str:
    """List the comments that are in threads of earlier reviews, as far as ``_EARLIER_CHARS`` allow."""
    lines: list[str] = []
    found = [(note, threads[note.at]) for note in by_severity(notes) if note.at in threads]
    free = _EARLIER_CHARS - len(_EARLIER_HEADING) - 50
    for note, thread in found:
        where = f"{_code(note.name)}{f' line {note.line}' if note.line else ''}"
        state = "still open"
        if thread.is_settled:
            who = f" by {as_code('@' + thread.resolved_by)}" if thread.resolved_by else ""
            state = "still found, hidden" if thread.is_hidden else f"still found, resolved{who}"
        line = f"- [{where}]({thread.url}): {state}"
        free -= len(line) + 1
        if free < 0:
            lines.append(f"- … and {len(found) - len(lines)} more")
            break
        lines.append(line)
    return "\n".join([_EARLIER_HEADING, "", *lines]) if lines else ""


def posted_earlier_list(body: str) -> str:
    """Return the list of comments in threads of earlier reviews that a posted body has."""
    found = _EARLIER.findall(body)
    return str(found[-1]).rstrip() if found else ""


def _marker(draft: DraftReview, verdict: str, marks: ReviewMarks) -> str:
    places = "".join(f"{place.value[0]}{len(list(run))}" for place, run in groupby(marks.places))
    fields = {"run": draft.token, "result": draft.same, "asks": draft.verdict, "verdict": verdict, "places": places}
    return write_twice(REVIEW, **fields, **({"gone": write_ids(marks.gone)} if marks.gone else {}))


@lru_cache(maxsize=4)
def lay_out(draft: DraftReview, marks: ReviewMarks) -> list[list[BodyText]]:
    """Distribute texts over the body and its follow-ups, in order, each within GitHub's limit."""
    texts = []
    if marks.verdict == COMMENT_ONLY:
        reason = "It is posted as a comment, which does not count as an approval or a request for changes on GitHub."
        texts.append(BodyText(f"**Verdict: {draft.verdict.replace('-', ' ')}.** {reason}"))
    texts.append(BodyText(draft.summary))
    in_body = [note for note, place in zip(draft.notes, marks.places, strict=True) if place is Placement.BODY]
    first = {(note.is_warning, note.name): note.at for note in reversed(in_body)}  # comments on a file come together
    in_body.sort(key=lambda note: (note.is_warning, first[note.is_warning, note.name], note.at))
    texts += [BodyText(note.text, note.name, _label(draft, note), note.at) for note in in_body]
    longest = len(_marker(draft, "needs-changes", marks)) + (_EARLIER_CHARS if marks.has_earlier else 0)
    continued = _part_line(draft, _MOST_PARTS, _MOST_PARTS, "x" * _LONGEST_LINK)
    return pack(texts, BODY_CHARS - longest - 2, BODY_CHARS - len(continued) - len(write_marker(PART)) - 200)


def pack(texts: Sequence[BodyText], first_limit: int, limit: int) -> list[list[BodyText]]:
    """Fill parts of ``first_limit`` and ``limit`` characters in order; only a text that fits into none is cut."""
    parts: list[list[BodyText]] = [[]]
    free = first_limit
    waiting = deque(texts)
    while waiting:
        text = waiting.popleft()
        fits = free - _frame(text, parts[-1])
        if len(text.text) <= fits:
            parts[-1].append(text)
            free = fits - len(text.text)
        else:
            if not parts[-1] or (len(text.text) > limit - _frame(text, []) and fits >= _SMALLEST_CUT):
                head, tail = cut(text.text, fits)
                parts[-1].append(replace(text, text=head))
                text = replace(text, text=tail)
            parts.append([])
            free = limit
            waiting.appendleft(text)
    return parts


def _part_texts(part: Iterable[BodyText]) -> list[str]:
    blocks = []
    for name, texts in groupby(part, key=lambda text: text.name):
        blocks += [_heading(name) if name else "", *(block for text in texts for block in (text.label, text.text))]
    return [block for block in blocks if block]


def _frame(text: BodyText, before: Sequence[BodyText]) -> int:
    """Count what a text adds to a part besides itself: heading, label, empty lines."""
    is_first = not before or before[-1].name != text.name
    heading = len(_heading(text.name)) + 2 if text.name and is_first else 0
    return heading + len(text.label) + 4


def _heading(name: str) -> str:
    return f"### {_code(name)}"


def _label(draft: DraftReview, note: Note) -> str:
    """Return the label of a comment's line, with a link unless the address is too long."""
    if note.line is None:
        return "**The whole file**"
    base = draft.pull_url.rpartition("/pull/")[0]
    link = f"{base}/blob/{draft.commit}/{quote(note.path)}#L{note.line}"
    is_plain = note.name == note.path and not _SIDE.match(note.path)
    can_link = base and is_plain and len(link) <= _LONGEST_LINK
    return f"**[Line {note.line}]({link})**" if can_link else f"**Line {note.line}**"


def _part_line(draft: DraftReview, part: int, parts: int, review_url: str) -> str:
    link = f"[the review]({review_url})" if 0 < len(review_url) <= _LONGEST_LINK else "the review"
    return f"_Part {part + 1} of {parts} of {link} of {draft.commit[:7]}._"


def _code(name: str) -> str:
    """Show a path as code, whatever it contains: an agent chose it."""
    return as_code(_CONTROL.sub(" ", name)[:_LONGEST_PATH])


def _read_places(text: str) -> tuple[Placement, ...]:
    by_letter = {place.value[0]: place for place in Placement}
    runs = [(by_letter[letter], int(count)) for letter, count in _RUN.findall(text)]
    return tuple(place for place, count in runs for _ in range(count))
