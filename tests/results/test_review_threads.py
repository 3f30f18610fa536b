"""Which thread of an earlier review holds a finding: path, normalised text or words, and the moved line."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.reviews import FINDING, changed

from accord.github.comments import Comment
from accord.github.graphql import ReviewThread
from accord.github.models import Identity, PullFile, Review
from accord.results.reviewer.placement import (
    DraftReview,
    Note,
    Placement,
    ReviewMarks,
    bodies,
    earlier_list,
    file_comment,
    marks_of,
    posted_earlier_list,
)
from accord.results.reviewer.threads import (
    Location,
    OwnThread,
    finding_text,
    gone_reply,
    gone_threads,
    match_threads,
    moved_lines,
    moved_location,
    read_ids,
    read_threads,
    threads_of_ours,
    unlocated_commits,
    write_ids,
)
from accord.text.markers import REVIEW, write_twice

OLD, NEW = "a" * 40, "b" * 40
BOT = Identity("accord[bot]", False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FINDING, FINDING.upper()),
        (FINDING, FINDING.replace("\n", "\r\n")),
        ("What: x\n\nWhy: y", "**What:**   x\nWhy: y"),
        ("Use `range(n)` here", "Use range(n) **here**"),
        ("See [the docs](https://example.org/a)", "See the docs"),
        ("> - quoted", "quoted"),
        ("Line 12 is wrong", "line 345 is wrong"),
        ("Lines 12-15 are wrong", "lines 3 and 4 are wrong"),
        ("`src/a.py:12` is wrong", "`src/a.py:7:3` is wrong"),
        ("See src/a.py#L12-L15", "See src/a.py#L3"),
        (f"{FINDING}\n\n<!-- accord:review-comment run=a -->", FINDING),
        (f'{FINDING}\n\n[accord:review-comment]: # "run=a"', FINDING),
    ],
)
def test_case_blanks_markdown_and_line_numbers_do_not_count(one: str, other: str) -> None:
    assert finding_text(one) == finding_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FINDING, FINDING.replace("range(n)", "range(m)")),
        ("a == b", "a != b"),
        ("a < b", "a > b"),
        ("snake_case", "snakecase"),
        ("the L1 cache", "the L2 cache"),
        ("12 items", "13 items"),
        ("a value of 5", "a value of 6"),
    ],
)
def test_another_finding_has_another_text(one: str, other: str) -> None:
    assert finding_text(one) != finding_text(other)


@pytest.mark.slow
@given(st.text(max_size=200))
@example("#\x1f")
def test_any_text_is_read_the_same_with_our_marker_or_without(text: str) -> None:
    stripped = text.rstrip(" \t\r\n")
    posted = f"{stripped}\n\n{write_twice('review-comment', run='accordx', at='1')}"
    is_closed = all(mark not in text for mark in ("`", "~", "<", "["))
    assert finding_text(posted) == finding_text(text) or not is_closed


PATCH = "@@ -2,7 +2,8 @@ def f():\n a\n-b\n+B\n+BB\n c\n d\n-e\n f\n+g\n h\n@@ -20,3 +21,2 @@\n x\n-y\n z"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(1, [1], id="before the first hunk"),
        pytest.param(2, [2], id="context"),
        pytest.param(3, [3, 4], id="changed into two lines"),
        pytest.param(4, [5], id="moved down"),
        pytest.param(6, [], id="deleted"),
        pytest.param(7, [7], id="moved back up"),
        pytest.param(8, [9], id="below an added line"),
        pytest.param(15, [16], id="between two hunks"),
        pytest.param(21, [], id="deleted in the second hunk"),
        pytest.param(30, [30], id="after the last hunk"),
    ],
)
def test_a_line_moves_with_the_changes_around_it(line: int, expected: list[int]) -> None:
    assert list(moved_lines(PATCH, line)) == expected


@pytest.mark.parametrize(
    ("patch", "line", "expected"),
    [
        ("@@ -0,0 +1,2 @@\n+a\n+b", 1, [3]),
        ("@@ -4,0 +5,2 @@\n+a\n+b", 4, [4]),
        ("@@ -4,0 +5,2 @@\n+a\n+b", 5, [7]),
        ("@@ -1,2 +0,0 @@\n-a\n-b", 3, [1]),
        ("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b", 1, [1]),
        ("", 5, [5]),
    ],
)
def test_a_line_moves_with_patches_at_the_edges(patch: str, line: int, expected: list[int]) -> None:
    assert list(moved_lines(patch, line)) == expected


FILES = [
    changed("a.py", PATCH),
    changed("new.py", "@@ -1 +1,2 @@\n+a\n b", "renamed", "old.py"),
    changed("moved.py", None, "renamed", "same.py"),
    changed("gone.py", "@@ -1 +0,0 @@\n-a", "removed"),
    changed("big.py", None),
]


@pytest.mark.parametrize(
    ("path", "line", "location"),
    [
        ("a.py", 4, Location("a.py", range(5, 6))),
        ("old.py", 1, Location("new.py", range(2, 3))),
        ("same.py", 1, Location("moved.py", None)),
        ("gone.py", 1, Location("gone.py", None)),
        ("big.py", 9, Location("big.py", None)),
        ("other.py", 9, Location("other.py", range(9, 10))),
    ],
)
def test_a_place_moves_with_its_file(path: str, line: int, location: Location) -> None:
    assert moved_location(FILES, path, line) == location


def test_beyond_the_files_that_github_lists_a_place_is_unknown() -> None:
    many = [changed(f"{n}.py", None) for n in range(300)]
    assert moved_location(many, "other.py", 9) == Location("other.py", None)


def note(at: int, line: int | None, text: str = FINDING, path: str = "a.py") -> Note:
    return Note(at, path, path, line, text)


def thread(
    number: int, lines: range | int | None, text: str = FINDING, path: str = "a.py", **more: object
) -> OwnThread:
    place = range(lines, lines + 1) if isinstance(lines, int) else lines
    line = place.start if place is not None else None
    url = f"https://github.com/o/r/pull/1#discussion_r{number}"
    made = OwnThread(f"T{number}", number, url, Location(path, place), line, finding_text(text))
    return replace(made, **{"can_resolve": True, **more})


@pytest.mark.parametrize(
    ("notes", "threads", "expected"),
    [
        pytest.param([note(0, 3)], [thread(1, 3)], {0: 1}, id="the same line"),
        pytest.param([note(0, 4)], [thread(1, 3)], {}, id="another line"),
        pytest.param([note(0, 3)], [thread(1, 3, path="b.py")], {}, id="another file"),
        pytest.param([note(0, 3)], [thread(1, 3, "What: else")], {}, id="another text"),
        pytest.param([note(0, None)], [thread(1, 3)], {}, id="a line and the whole file"),
        pytest.param([note(0, 5)], [thread(1, range(4, 8))], {0: 1}, id="inside the lines that replace it"),
        pytest.param([note(0, 5)], [thread(1, range(5, 5))], {}, id="deleted"),
        pytest.param([note(0, 9)], [thread(1, None)], {0: 1}, id="the line is unknown"),
        pytest.param([note(0, 3), note(1, 9)], [thread(1, 9), thread(2, 3)], {0: 2, 1: 1}, id="two stay two"),
        pytest.param([note(0, 3), note(1, 9)], [thread(1, 9)], {1: 1}, id="one thread, one comment"),
        pytest.param([note(0, 3)], [thread(1, None), thread(2, 3)], {0: 2}, id="a known line goes first"),
        pytest.param(
            [note(0, 20), note(1, 4)],
            [thread(1, None, line=3), thread(2, None, line=30)],
            {0: 2, 1: 1},
            id="of unknown lines the nearest",
        ),
        pytest.param([note(0, 3)], [thread(1, 3, is_resolved=True)], {0: 1}, id="resolved by a person"),
        pytest.param([note(0, 3)], [thread(1, 3, is_hidden=True)], {0: 1}, id="hidden by a person"),
        pytest.param([note(0, 3)], [thread(1, 3, is_resolved=True, is_by_us=True)], {}, id="resolved by us"),
        pytest.param([note(0, 3)], [thread(1, 3, is_hidden=True), thread(2, 3)], {0: 2}, id="an open one goes first"),
    ],
)
def test_a_comment_finds_its_thread(notes: list[Note], threads: list[OwnThread], expected: dict[int, int]) -> None:
    assert {at: found.comment_id for at, found in match_threads(notes, threads).items()} == expected


LOCK = "What: the lock is not released.\nWhy: an error skips it.\nFix: use a with statement."
WHY_AND_FIX = "Why: docs/specs/export.md asks for a round trip.\nFix: use write_row for each field."
REWORDINGS = [
    ("Null check is missing here", "A null check is missing here."),
    ("What: off by one.\nWhy: the spec says n.\nFix: use range(n).", "**Why**: spec says n\n\n**What**: off by one"),
    (LOCK, "What: The lock is never released.\nWhy: An error skips it.\nFix: Use a `with` statement."),
    ("Fix: quote the field, as a comma ends it", "Quote the field: a comma ends it"),
    (LOCK, "What: the lock is not released.\nWhy: criterion 4 names this case.\nFix: close it after each test."),
    (f"What: digits lose their zeros in the export.\n{WHY_AND_FIX}", f"What: digits lose zeros.\n{WHY_AND_FIX}"),
]
DIFFERENT = [
    ("Null check is missing here", "The variable name is misleading"),
    (FINDING, LOCK),
    ("a == b", "a != b"),
    ("Use range(n)", "Use range(m)"),
    ("What: x\nWhy: y\nFix: z", "What: p\nWhy: q\nFix: r"),
    (f"What: digits lose their zeros.\n{WHY_AND_FIX}", f"What: quotes are missing.\n{WHY_AND_FIX}"),
    (f"{WHY_AND_FIX}\nWhat: the header is lost.", f"{WHY_AND_FIX}\nWhat: the last line is lost."),
    ("…", "—"),
]


@pytest.mark.parametrize(("lines", "line"), [(3, 3), (range(2, 6), 5), (None, None)])
@pytest.mark.parametrize(
    ("old", "new", "is_same"), [*((*texts, True) for texts in REWORDINGS), *((*texts, False) for texts in DIFFERENT)]
)
def test_a_finding_in_other_words_at_the_same_place_keeps_its_thread(
    old: str, new: str, *, is_same: bool, lines: range | int | None, line: int | None
) -> None:
    found = match_threads([note(0, line, new)], [thread(1, lines, old)])
    assert {at: one.comment_id for at, one in found.items()} == ({0: 1} if is_same else {})


def test_a_finding_that_differs_in_a_word_of_what_and_in_its_fix_is_not_settled_by_a_person() -> None:
    text = "What: the argument {} is not checked for negative values.\nWhy: {}\nFix: {}"
    new = text.format("retries", "The loop never ends.", "Raise ValueError above.")
    for is_settled in (False, True):
        old = replace(thread(1, 3, text.format("timeout", "Sockets block.", "Use max.")), is_hidden=is_settled)
        assert bool(match_threads([note(0, 3, new)], [old])) == (not is_settled)


SHORT, LONG = REWORDINGS[0]


@pytest.mark.parametrize(
    ("notes", "threads", "expected"),
    [
        pytest.param([note(0, 4, LONG)], [thread(1, 3, SHORT)], {}, id="another line"),
        pytest.param([note(0, 3, LONG, "b.py")], [thread(1, 3, SHORT)], {}, id="another file"),
        pytest.param([note(0, 3, LONG)], [thread(1, None, SHORT)], {}, id="a line and the whole file"),
        pytest.param([note(0, 3, LONG)], [thread(1, None, SHORT, line=3)], {0: 1}, id="a line that nothing moved"),
        pytest.param([note(0, 3, LONG)], [thread(1, range(3, 3), SHORT)], {}, id="deleted"),
        pytest.param([note(0, 3, LONG)], [thread(1, 3, SHORT, is_resolved=True)], {0: 1}, id="resolved by a person"),
        pytest.param(
            [note(0, 3, LONG)], [thread(1, 3, SHORT, is_resolved=True, is_by_us=True)], {}, id="resolved by us"
        ),
        pytest.param([note(0, 3, LONG), note(1, 3, SHORT)], [thread(1, 3, SHORT)], {1: 1}, id="the same text first"),
        pytest.param(
            [note(0, 3, LONG), note(1, 3, SHORT)], [thread(1, 3, SHORT), thread(2, 3, LONG)], {0: 2, 1: 1}, id="both"
        ),
        pytest.param(
            [note(0, 3, f"{LONG} Add it"), note(1, 3, f"{LONG} Really")],
            [thread(1, 3, f"{SHORT} really"), thread(2, 3, f"{SHORT}, so add it")],
            {0: 2, 1: 1},
            id="most words first",
        ),
    ],
)
def test_other_words_match_only_what_the_same_words_leave(
    notes: list[Note], threads: list[OwnThread], expected: dict[int, int]
) -> None:
    assert {at: found.comment_id for at, found in match_threads(notes, threads).items()} == expected


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from("xy"))),
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from("xy"))),
)
def test_equal_findings_keep_as_many_threads_as_both_reviews_have(
    before: list[tuple[int, str]], now: list[tuple[int, str]]
) -> None:
    notes = [note(at, line, text) for at, (line, text) in enumerate(now)]
    threads = [thread(number, line, text) for number, (line, text) in enumerate(before, 1)]
    found = match_threads(notes, threads)
    assert len({one.comment_id for one in found.values()}) == len(found)
    for case in {*before, *now}:
        kept = [at for at in found if now[at] == case]
        assert len(kept) == min(before.count(case), now.count(case))


@pytest.mark.parametrize(
    ("about", "is_to_do"),
    [
        ({}, True),
        ({"can_resolve": False}, True),
        ({"has_people": True}, True),
        ({"is_resolved": True}, False),
        ({"is_hidden": True}, False),
        ({"id": ""}, False),
        ({"replies": {"earlier": "resolved"}}, False),
        ({"replies": {"earlier": "left"}}, True),
        ({"replies": {"earlier": "left"}, "can_resolve": False}, False),
        ({"replies": {"earlier": "left"}, "has_people": True}, False),
    ],
)
def test_a_thread_without_a_finding_is_ended_once_and_never_against_a_person(
    about: dict[str, object], is_to_do: bool
) -> None:
    assert bool(gone_threads([thread(1, 3, **about)], [])) == is_to_do


def test_a_thread_with_a_finding_is_not_gone() -> None:
    kept = thread(1, 3)
    assert gone_threads([kept, thread(2, 4)], [kept]) == [thread(2, 4)]


@pytest.mark.parametrize(
    ("about", "done", "text"),
    [
        ({}, "resolved", "No longer found at bbbbbbb."),
        ({}, "left", "No longer found at bbbbbbb. The token may not resolve this thread."),
        ({"has_people": True}, "left", "No longer found at bbbbbbb. Resolve this thread if you agree."),
    ],
)
def test_the_reply_says_who_ends_the_thread(about: dict[str, object], done: str, text: str) -> None:
    assert gone_reply(thread(1, 3, **about), "accordx", NEW, done).partition("\n\n")[0] == text  # type: ignore[arg-type]


def began(body: str = FINDING, **about: object) -> ReviewThread:
    """A thread that our review 7 began at line 3 of the old commit, and that is still there."""
    more = {name: about.pop(name) for name in ("review_id", "is_hidden", "author") if name in about}
    first = Comment(11, "https://github.com/o/r/pull/1#discussion_r11", body, "accord[bot]", True, 7)
    first = replace(first, **more)
    comments = (first, *about.pop("replies", ()))  # type: ignore[misc]
    made = ReviewThread("T11", "a.py", 5, False, False, comments, 3, OLD, can_resolve=True)
    return replace(made, **about)


def own_review(gone: Sequence[int] = (), run: str = "accordx") -> Review:
    body = write_twice(REVIEW, run=run, gone=write_ids(gone))
    return Review(7, "", "accord[bot]", True, body, "COMMENTED", OLD)


def reply(author: str, body: str, *, is_bot: bool = False) -> Comment:
    return Comment(12, "", body, author, is_bot, 8)


def read(made: ReviewThread, *reviews: Review, head: str = NEW, files: Sequence[PullFile] | None = None) -> OwnThread:
    (found,) = read_threads([made], reviews or [own_review()], BOT, NEW, head, {OLD: files})
    return found


def test_only_threads_that_our_reviews_began_are_ours() -> None:
    threads = [
        began(),
        began(author="rita"),
        began(review_id=9),
        began(file_comment(DraftReview("approve", "", (), "accordx"), note(0, 9), "a.py"), review_id=9),
        began(comments=()),
    ]
    assert threads_of_ours(threads, [own_review()], BOT) == [threads[0], threads[3]]


@pytest.mark.parametrize(
    ("made", "head", "lines"),
    [
        pytest.param(began(), NEW, [5], id="the line that GitHub tells"),
        pytest.param(began(original_commit=NEW), "c" * 40, [3], id="the line of this very commit"),
        pytest.param(began(line=None, is_outdated=True), NEW, [3, 4], id="outdated: by the changes"),
        pytest.param(began(), "c" * 40, [3, 4], id="the head has moved on: by the changes"),
    ],
)
def test_the_line_is_githubs_or_follows_from_the_changes(made: ReviewThread, head: str, lines: list[int]) -> None:
    place = read(made, head=head, files=FILES).location
    assert place.lines is not None
    assert list(place.lines) == lines


def test_changes_are_read_only_for_threads_that_need_them() -> None:
    texts = {finding_text(FINDING)}
    outdated = began(line=None, is_outdated=True)
    threads = [began(), outdated, replace(outdated, original_commit="c" * 40), began("What: else", line=None)]
    assert unlocated_commits(threads, texts, [], NEW, NEW) == ["c" * 40, OLD]
    assert read(outdated, files=None).location == Location("a.py", None)


def test_changes_are_read_for_threads_of_the_same_text_or_file_the_open_ones_first() -> None:
    outdated = began("What: else", line=None, is_outdated=True)
    ended = replace(outdated, original_commit="d" * 40, is_resolved=True)
    same = replace(began(line=None), original_commit="c" * 40, path="b.py")
    threads = [same, outdated, ended, replace(outdated, path="c.py", original_commit="e" * 40)]
    assert unlocated_commits(threads, {finding_text(FINDING)}, {"a.py"}, NEW, NEW) == [OLD, "c" * 40, "d" * 40]


def test_a_comment_on_a_file_is_read_without_what_was_put_before_it() -> None:
    draft = DraftReview("approve", "", (), "accordx")
    posted = file_comment(draft, Note(0, "old.py", "old.py", 9, FINDING), "a.py")
    found = read(began(posted, line=None, original_line=None))
    assert (found.text, found.line, found.location.lines) == (finding_text(FINDING), 9, None)


@pytest.mark.parametrize(
    ("reviews", "replies", "is_by_us"),
    [
        pytest.param([own_review()], [], False, id="no review of ours found it gone"),
        pytest.param([own_review([11])], [], True, id="stopped before the reply"),
        pytest.param([own_review([11])], ["resolved"], True, id="resolved and said so"),
        pytest.param([own_review([11])], ["left"], False, id="left to a person"),
        pytest.param([own_review([11]), own_review([11], "accordy")], ["left"], True, id="resolved by a later review"),
    ],
)
def test_a_thread_that_we_resolved_differs_from_one_that_a_person_resolved(
    reviews: list[Review], replies: list[str], is_by_us: bool
) -> None:
    texts = [gone_reply(thread(11, 3), "accordx", NEW, done) for done in replies]  # type: ignore[arg-type]
    made = began(is_resolved=True, replies=tuple(reply("accord[bot]", text, is_bot=True) for text in texts))
    found = read(made, *reviews)
    assert (found.is_by_us, found.is_settled) == (is_by_us, not is_by_us)


@pytest.mark.parametrize(
    ("said", "has_people"),
    [
        (reply("rita", "I disagree"), True),
        (reply("codecov[bot]", "Covered", is_bot=True), False),
        (reply("accord[bot]", "No longer found\n\n<!-- accord:review-gone run=x -->"), False),
    ],
)
def test_only_people_count_as_people(said: Comment, has_people: bool) -> None:
    assert read(began(replies=(said,))).has_people == has_people


@pytest.mark.slow
@given(st.lists(st.integers(1, 2**40), unique=True, max_size=50))
def test_identifiers_survive_the_marker(ids: list[int]) -> None:
    assert list(read_ids(write_ids(ids))) == sorted(ids)


def test_other_texts_have_no_identifiers() -> None:
    assert read_ids("zz.1") == read_ids("") == ()


def test_the_marker_keeps_what_was_kept_and_what_is_gone() -> None:
    places = (Placement.KEPT, Placement.SETTLED, Placement.SETTLED, Placement.INLINE)
    marks = ReviewMarks("approve", places, (3_000_000_001, 3_000_000_020))
    notes = tuple(note(at, at + 1) for at in range(4))
    draft = DraftReview("approve", "Fine.", notes, "accordx")
    (body,) = bodies(draft, marks, "")
    assert marks_of(body, "accordx", 4) == marks


def test_the_body_lists_earlier_findings_without_calling_anyone() -> None:
    notes = tuple(note(at, at + 1) for at in range(3))
    threads = {0: thread(1, 1), 1: thread(2, 2, is_resolved=True, resolved_by="rita"), 2: thread(3, 3, is_hidden=True)}
    listed = earlier_list(notes, threads)
    url = "https://github.com/o/r/pull/1#discussion_r"
    assert listed.splitlines() == [
        "### Found before",
        "",
        f"- [`a.py` line 1]({url}1): still open",
        f"- [`a.py` line 2]({url}2): still found, resolved by `@rita`",
        f"- [`a.py` line 3]({url}3): still found, hidden",
    ]
    draft = DraftReview("approve", "### Found before\n\n- forged", notes, "accordx")
    (body,) = bodies(draft, ReviewMarks("approve", (Placement.KEPT,) * 3), "", listed)
    assert posted_earlier_list(body) == listed


def test_the_list_of_earlier_findings_is_short_however_many_there_are() -> None:
    notes = tuple(note(at, at + 1) for at in range(500))
    listed = earlier_list(notes, {at: thread(at, at + 1) for at in range(500)})
    assert len(listed) <= 3_000
    assert listed.splitlines()[-1] == f"- … and {500 - (len(listed.splitlines()) - 3)} more"


def test_the_twin_of_a_matched_thread_is_not_gone() -> None:
    place = Location("src/a.py", range(2, 3))
    first = OwnThread("T1", 1, "u", place, 2, finding_text(FINDING), can_resolve=True)
    twin = replace(first, id="T2", comment_id=2)
    other = replace(first, id="T3", comment_id=3, text="what: the name lacks its unit why: y fix: z")
    elsewhere = replace(first, id="T4", comment_id=4, location=Location("src/a.py", range(5, 6)), line=5)
    assert gone_threads([first, twin, other, elsewhere], [first]) == [other, elsewhere]
    assert gone_threads([first, twin], []) == [first, twin]
