"""The threads of earlier reviews: the finding of a new review that each one still holds, or that it is gone. Pure.

The comments of one review are matched with themselves first, so that a finding has one comment and one thread.
A finding is the same as a thread's when path and normalised text are the same, and its line is the thread's line moved
by the changes since. Agents reword, so a comment and a thread at one line that match no other text are the same finding
too if most words of What are the same, see ``similarity``. A thread is settled when a person resolved it or hid its
first comment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from accord.core.frozen import Frozen
from accord.github.limits import COMPARED_FILES
from accord.text.markers import REVIEW, REVIEW_GONE, find_markers, strip_markers, write_marker
from accord.text.outline import plain_text

if TYPE_CHECKING:
    from accord.github.graphql import ReviewThread
    from accord.github.models import Identity, PullFile, Review

COMMENT = "review-comment"
Done = Literal["resolved", "left"]

MOST_GONE = 100
"""Threads that one review resolves; each costs two requests, and the next review continues."""

LEAST_SHARED = 0.6
"""Share of common words from which two texts at one line are the same finding (Jaccard index)."""

_JOINED_CHARS = 60_000
"""Longer comments are not joined."""

_MOST_AT_A_LINE = 100
"""Comments at one line with which later ones are compared."""

_WARNING_LABEL = re.compile(r"^\s*(?:\*\*|__)?\[warning\]", re.IGNORECASE)
_NUMBERS = re.compile(r"\d+")
_WHAT = re.compile(r"\bwhat: *(.*?)(?= *\b(?:why|fix):|$)")
_WORDS = re.compile(r"\w+|[<>=!+*/%&|^~]+")
_LABELS = frozenset({"what", "why", "fix"})
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_LINE_NUMBERS = re.compile(
    r"\blines?\W{0,3}\d+(?:\s?(?:[-\u2013,&]|to|and)\s?\d+)*|#l\d+(?:-l?\d+)?|(?<=\w):\d+(?::\d+)?(?=\W|$)",
    re.IGNORECASE,
)


class Location(NamedTuple):
    """Where a thread is in a commit: the lines that its line may be now; None for unknown, empty for deleted."""

    path: str
    lines: range | None


class Note(Frozen):
    """A comment of the result."""

    at: int  # its position in the result
    path: str  # to look the file up
    name: str  # to show the file, sanitised
    line: int | None
    text: str
    is_warning: bool = False
    repeats: int | None = None  # the position of the comment that has this finding already


class OwnThread(Frozen):
    """A thread that a review of ours began, with its location in the reviewed commit."""

    id: str  # empty where GitHub does not tell who resolved what
    comment_id: int
    url: str
    location: Location
    line: int | None  # when it began; None on a whole file
    text: str
    later_texts: tuple[str, ...] = ()  # with which our replies say that it was found again
    is_resolved: bool = False
    resolved_by: str = ""
    is_by_us: bool = False  # whether we resolved it
    is_hidden: bool = False
    can_resolve: bool = False
    has_people: bool = False
    replies: Mapping[str, str] = field(default_factory=dict)  # of ours that the finding is gone, by run

    @property
    def is_open(self) -> bool:
        """Whether neither we nor a person ended the thread."""
        return not self.is_resolved and not self.is_hidden

    @property
    def is_settled(self) -> bool:
        """Whether a person ended the thread."""
        return self.is_hidden or (self.is_resolved and not self.is_by_us)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the finding that are posted in the thread."""
        return (self.text, *self.later_texts)

    def has_text(self, body: str) -> bool:
        """Return whether the text of a comment is posted in the thread."""
        return any(finding_text(body) in text for text in self.texts)

    @property
    def name(self) -> str:
        """The key of the thread in receipts."""
        return f"{self.location.path}{f':{self.line}' if self.line else ''} (thread {self.comment_id})"


def finding_text(body: str) -> str:
    """Return what identifies the text of a finding: case, blanks, Markdown and line numbers do not count."""
    return " ".join(_LINE_NUMBERS.sub("", plain_text(strip_markers(body)).casefold()).split())


def words_of(text: str) -> frozenset[str]:
    """Return the words of a finding's text, operators among them; its labels do not count."""
    return frozenset(_WORDS.findall(text)) - _LABELS


@lru_cache(maxsize=4_096)
def _parts(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a finding's whole text, and of its What."""
    what = _WHAT.search(text)
    return words_of(text), words_of(what[1] if what else text)


def similarity(text: str, other: str, *, is_settled: bool = False) -> float:
    """Return the share of common words (Jaccard index) in What; two findings at one line may have one Why and Fix."""
    of_all, (what, other_what) = zip(_parts(text), _parts(other), strict=True)
    shares = [len(words & others) / (len(words | others) or 1) for words, others in (of_all, (what, other_what))]
    if what <= other_what or other_what <= what:  # words were only added or left out
        return max(shares)
    return min(shares) if is_settled else shares[1]  # another finding is not settled


def without_repeats(notes: Sequence[Note]) -> tuple[Note, ...]:
    """Mark the comments that repeat another one at the same line, findings before warnings.

    Texts with other numbers are other findings. The comment that stays has the texts of all, equal ones once.
    """
    found = {note.at: note for note in notes}
    kept: dict[tuple[str | int | None, ...], list[tuple[int, list[str]]]] = {}
    for note in sorted(notes, key=lambda note: (note.is_warning, note.at)):
        text = finding_text(_WARNING_LABEL.sub("", note.text, count=1))
        here = kept.setdefault((note.path, note.line, *_NUMBERS.findall(text)), [])
        for at, texts in here:
            joined = found[at].text if text in texts else f"{found[at].text}\n\n---\n\n{note.text}"
            if similarity(text, texts[0]) >= LEAST_SHARED and len(joined) <= _JOINED_CHARS:
                found[at] = replace(found[at], text=joined)
                found[note.at] = replace(note, repeats=at)
                texts.append(text)
                break
        else:
            if len(here) < _MOST_AT_A_LINE:
                here.append((note.at, [text]))
    return tuple(found[note.at] for note in notes)


def threads_of_ours(
    threads: Iterable[ReviewThread], reviews: Iterable[Review], identity: Identity
) -> list[ReviewThread]:
    """Return the threads that ``reviews`` of ours began, and those on whole files, which have a marker of their own."""
    ids = {review.id for review in reviews}
    return [
        thread
        for thread in threads
        if thread.comments
        and identity.counts(thread.comments[0].author)
        and (thread.comments[0].review_id in ids or find_markers(thread.comments[0].body, COMMENT))
    ]


def unlocated_commits(
    threads: Sequence[ReviewThread], texts: Collection[str], paths: Collection[str], commit: str, head: str
) -> list[str]:
    """Return the commits whose changes up to ``commit`` tell where threads are now, those of open threads first.

    Only threads count that may hold a finding: with one of the ``texts``, or in one of the ``paths``. The newest first.
    """
    known = [thread for thread in reversed(threads) if thread.original_line and thread.original_commit]
    unlocated = [thread for thread in known if _known_line(thread, commit, head) is None]
    unlocated.sort(key=lambda thread: thread.is_resolved)
    found = (each.original_commit for each in unlocated if each.path in paths or _text_of(each) in texts)
    return list(dict.fromkeys(found))


def read_threads(
    threads: Iterable[ReviewThread],
    reviews: Iterable[Review],
    identity: Identity,
    commit: str,
    head: str,
    changes: Mapping[str, Sequence[PullFile] | None],
) -> list[OwnThread]:
    """Return our threads as the plan needs them; ``changes`` has the files changed since a commit, None for unknown."""
    runs_by_gone: dict[int, set[str]] = {}
    for review in reviews:
        for fields in find_markers(review.body, REVIEW):
            for comment_id in read_ids(fields.get("gone", "")):
                runs_by_gone.setdefault(comment_id, set()).add(fields.get("run", ""))
    found = []
    for thread in threads:
        first, *rest = thread.comments
        ours = [each.body for each in rest if identity.counts(each.author)]
        gone = (fields for body in ours for fields in find_markers(body, REVIEW_GONE))
        replies = {fields.get("run", ""): fields.get("done", "") for fields in gone}
        line = next((fields.get("line", "") for fields in find_markers(first.body, COMMENT)), "")
        found.append(
            OwnThread(
                thread.id,
                first.id,
                first.url,
                _location_of(thread, commit, head, changes),
                int(line) if thread.original_line is None and line.isdecimal() else thread.original_line,
                _text_of(thread),
                tuple(finding_text(body) for body in ours if find_markers(body, COMMENT)),
                is_resolved=thread.is_resolved,
                resolved_by=thread.resolved_by,
                # resolved by one of our reviews, or by one that was stopped before it said so
                is_by_us=any(replies.get(run, "resolved") == "resolved" for run in runs_by_gone.get(first.id, ())),
                is_hidden=first.is_hidden,
                can_resolve=thread.can_resolve,
                has_people=any(not comment.is_bot and "<!-- accord:" not in comment.body for comment in rest),
                replies=replies,
            )
        )
    return found


def _text_of(thread: ReviewThread) -> str:
    body = thread.comments[0].body
    lead = next((fields.get("lead", "") for fields in find_markers(body, COMMENT)), "")
    return finding_text(body[int(lead) if lead.isdecimal() else 0 :])


def _known_line(thread: ReviewThread, commit: str, head: str) -> int | None:
    """Return the line in ``commit`` where GitHub tells it; None on a whole file."""
    if thread.original_commit == commit:
        return thread.original_line
    return thread.line if commit == head and not thread.is_outdated else None


def _location_of(
    thread: ReviewThread, commit: str, head: str, changes: Mapping[str, Sequence[PullFile] | None]
) -> Location:
    line = _known_line(thread, commit, head)
    if line is not None:
        return Location(thread.path, range(line, line + 1))
    files = changes.get(thread.original_commit)
    if thread.original_line is None or files is None:
        return Location(thread.path, None)
    return moved_location(files, thread.path, thread.original_line)


def moved_location(files: Sequence[PullFile], path: str, line: int) -> Location:
    """Return where the changes of ``files`` moved a line."""
    here = next((file for file in files if path == (file.previous_path or file.path)), None)
    if here is None:
        return Location(path, None if len(files) >= COMPARED_FILES else range(line, line + 1))
    if here.patch is None or here.status in ("added", "removed"):
        return Location(here.path, None)
    return Location(here.path, moved_lines(here.patch, line))


def moved_lines(patch: str, line: int) -> range:
    """Return the new number of a line, or for a changed line the numbers of the lines that replace it."""
    old = new = 1
    block: int | None = None
    is_hit = False
    for row in [*patch.removesuffix("\n").split("\n"), " "]:
        header = _HUNK.match(row)
        if header or row[:1] in (" ", ""):
            if is_hit and block is not None:
                return range(block, new)
            block = None
        if header:
            start = int(header[1]) + (header[2] == "0")
            if line < start:
                break
            old, new = start, int(header[3]) + (header[4] == "0")
        elif row[:1] in ("-", "+"):
            block = new if block is None else block
            is_hit = is_hit or (row[0] == "-" and old == line)
            old, new = old + (row[0] == "-"), new + (row[0] == "+")
        elif row[:1] != "\\":
            if old == line:
                break
            old, new = old + 1, new + 1
    return range(line + new - old, line + new - old + 1)


def match_threads(notes: Sequence[Note], threads: Sequence[OwnThread]) -> dict[int, OwnThread]:
    """Return the thread of each comment that has one, by its position; one comment matches one thread.

    Where a thread's line is unknown, the nearest comment with its path and text matches. Reworded comments match only
    threads that no comment with the same text matches.
    """
    usable = [thread for thread in threads if thread.is_open or thread.is_settled]
    by_text: dict[str, list[OwnThread]] = {}
    for thread in usable:
        for text in thread.texts:
            by_text.setdefault(text, []).append(thread)
    pairs = ((note, thread) for note in notes for thread in by_text.get(finding_text(note.text), ()))
    found = _pair_up(((rank, note, thread) for note, thread in pairs if (rank := _rank(note, thread))), {})
    return _pair_up(_reworded_pairs([note for note in notes if note.at not in found], usable), found)


def _pair_up(pairs: Iterable[tuple[Any, Note, OwnThread]], found: Mapping[int, OwnThread]) -> dict[int, OwnThread]:
    """Return the thread of each comment, those that are found already among them; the pairs begin with their rank."""
    after = {**found}
    taken = {thread.comment_id for thread in found.values()}
    for _, note, thread in sorted(pairs, key=lambda pair: (pair[0], pair[2].comment_id, pair[1].at)):
        if note.at not in after and thread.comment_id not in taken:
            after[note.at] = thread
            taken.add(thread.comment_id)
    return after


def _reworded_pairs(notes: Iterable[Note], threads: Iterable[OwnThread]) -> Iterator[tuple[Any, Note, OwnThread]]:
    """Yield the pairs at one place that share enough words; a comment on the whole file is at line 0."""
    by_path: dict[str, list[tuple[Note, str]]] = {}
    for note in notes:
        by_path.setdefault(note.path, []).append((note, finding_text(note.text)))
    for thread in threads:
        path, lines = thread.location
        start = thread.line or 0
        for note, text in by_path.get(path, ()):
            if (note.line or 0) in (range(start, start + 1) if lines is None else lines):
                shared = max(similarity(each, text, is_settled=thread.is_settled) for each in thread.texts)
                if shared >= LEAST_SHARED:
                    yield (-shared, thread.is_settled), note, thread


def _rank(note: Note, thread: OwnThread) -> tuple[int, bool, int] | None:
    """Return how well a comment of the same text fits a thread, the best first; None where it does not."""
    path, lines = thread.location
    if note.path != path:
        return None
    if lines is not None:
        if note.line not in lines:
            return None
        return (len(lines) > 1, thread.is_settled, abs((note.line or 0) - lines.start))
    is_same_kind = (note.line is None) == (thread.line is None)
    return (2 if is_same_kind else 3, thread.is_settled, abs((note.line or 0) - (thread.line or 0)))


def _is_twin(thread: OwnThread, other: OwnThread) -> bool:
    """Return whether two threads at one place have the same finding."""
    is_same_place = (thread.location, thread.line) == (other.location, other.line)
    return is_same_place and similarity(thread.text, other.text) >= LEAST_SHARED


def gone_threads(threads: Sequence[OwnThread], matched: Collection[OwnThread]) -> list[OwnThread]:
    """Return the open threads without a finding in which something is to do, ``MOST_GONE`` at most.

    The twin of a matched thread has a finding.
    Nothing is to do where a reply exists already, unless the thread can be resolved. One that was resolved and is open
    again was opened by a person.
    """
    kept = {thread.comment_id for thread in matched}
    kept |= {thread.comment_id for thread in threads if any(_is_twin(thread, other) for other in matched)}
    gone = []
    for thread in threads:
        can_resolve = thread.can_resolve and not thread.has_people and "resolved" not in thread.replies.values()
        if thread.id and thread.is_open and thread.comment_id not in kept and (can_resolve or not thread.replies):
            gone.append(thread)
    return gone[:MOST_GONE]


def gone_reply(thread: OwnThread, run: str, commit: str, done: Done) -> str:
    """Return the reply that the finding of a thread is gone."""
    text = " The token may not resolve this thread." if done == "left" else ""
    text = " Resolve this thread if you agree." if thread.has_people else text
    marker = write_marker(REVIEW_GONE, run=run, thread=str(thread.comment_id), done=done)
    return f"No longer found at {commit[:7]}.{text}\n\n{marker}"


def write_ids(ids: Iterable[int]) -> str:
    """Write identifiers as short as a marker needs them: each as its distance to the one before, in hexadecimal."""
    ordered = sorted(ids)
    return ".".join(f"{after - before:x}" for before, after in zip([0, *ordered], ordered, strict=False))


def read_ids(text: str) -> tuple[int, ...]:
    """Read what ``write_ids`` wrote; nothing from any other text."""
    ids: list[int] = []
    try:
        for part in filter(None, text.split(".")):
            ids.append(int(part, 16) + (ids[-1] if ids else 0))
    except ValueError:
        return ()
    return tuple(ids)
