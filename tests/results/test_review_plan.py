"""The plan of a review: every text at exactly one place, within GitHub's limits."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reviews import CLOSING_PULL, FINDING, approve, changed, comment, needs_changes, warn
from support.rotation import NIGHTLY

from accord.core.errors import Refused
from accord.core.shapes import read_shape
from accord.github.limits import BODY_CHARS
from accord.github.models import Identity, Review
from accord.results.models import ReviewerResult
from accord.results.reviewer import placement as review_layout
from accord.results.reviewer.facts import ReviewFacts
from accord.results.reviewer.placement import (
    MOST_FILE_COMMENTS,
    MOST_PLACED,
    BodyText,
    DraftReview,
    Placement,
    ReviewMarks,
    anchors_of,
    bodies,
    draft_review,
    lay_out,
    marks_of,
    pack,
    place_comments,
    with_files,
)
from accord.results.reviewer.plan import (
    CommentOnFile,
    FollowUpComment,
    PostReview,
    initial_state,
    near_paths,
    plan_findings,
    plan_operations,
    require_allowed,
    without_anchors,
)
from accord.results.texts import TextSanitizer, posted_body, with_safe_texts
from accord.text.markdown import unfenced_text
from accord.text.markers import find_markers, take_markers
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

SMALL = 6_000
SHA = "c0ffee" * 6 + "c0ff"
PULL = replace(CLOSING_PULL, author="author", head_sha=SHA)
LONG = "@@ -0,0 +1,60 @@\n" + "\n".join(f"+{n}" for n in range(60))
FILES = [changed("src/a.py", LONG, "added"), changed("src/b.py", "@@ -1 +1 @@\n-a\n+b")]
DIFF = anchors_of([*FILES, changed("logo.png", None), changed("new.py", None, "renamed", "old.py")])


def draft(result: dict[str, Any]) -> DraftReview:
    model = read_shape(ReviewerResult, result)
    sanitizer = TextSanitizer(Redactor(), PostingPolicy())
    drafted = draft_review(with_safe_texts(model, sanitizer), sanitizer, "accordtoken", "")
    return with_files(replace(drafted, pull_url=PULL.url, commit=SHA), DIFF)


def facts(result: dict[str, Any], login: str = "reviewer") -> ReviewFacts:
    return ReviewFacts(Identity(login, True), PULL, draft(result), anchors=DIFF)


def places(result: dict[str, Any]) -> list[str]:
    return [place.value for place in place_comments(draft(result).notes, DIFF)]


def review(result: dict[str, Any], login: str = "reviewer") -> PostReview:
    known = facts(result, login)
    return next(op for op in plan_operations(known, initial_state(known)) if isinstance(op, PostReview))


@pytest.mark.parametrize(("login", "refusal"), [("author", ""), ("reviewer", "It comes from a fork.")])
def test_a_verdict_that_github_or_accord_does_not_take_has_a_hint(login: str, refusal: str) -> None:
    (found,) = initial_state(replace(facts(approve(), login), no_approval=refusal)).findings
    assert (found.code, found.hint) == ("verdict-as-comment", "Let a person give the verdict, if it must count.")


def test_requests_do_not_grow_with_the_comments() -> None:
    known = facts(needs_changes(*(comment("src/a.py", n + 1) for n in range(50))))
    assert [operation.op for operation in plan_operations(known, initial_state(known))] == ["post-review"]
    known = facts(needs_changes(*(comment("src/a.py", None, f"{FINDING} {n}") for n in range(500))))
    operations = plan_operations(known, initial_state(known))
    assert sum(isinstance(operation, CommentOnFile) for operation in operations) == MOST_FILE_COMMENTS


@pytest.mark.slow
def test_a_review_of_very_many_comments_is_still_one_request_with_a_short_marker() -> None:
    texts = [f"{FINDING} {n}" for n in range(MOST_PLACED + 200)]
    many = [comment(f"{'src/a' if n % 2 else 'absent'}.py", 1 + n % 60, text) for n, text in enumerate(texts)]
    known = replace(facts(needs_changes(*many)), most=MOST_PLACED)
    posted = next(op for op in plan_operations(known, initial_state(known)) if isinstance(op, PostReview)).review
    assert len(posted.comments) == MOST_PLACED // 2
    assert len(posted.body) <= BODY_CHARS


def test_comments_beyond_the_limit_are_listed_in_the_body_findings_first() -> None:
    result = needs_changes(
        warn("src/a.py", 1, "first warning"),
        warn("src/a.py"),
        *(comment("src/a.py", n, f"{FINDING} {n}") for n in (2, 3, 4, 5)),
    )
    known = replace(facts(result), most=2)
    posted = next(op for op in plan_operations(known, initial_state(known)) if isinstance(op, PostReview)).review
    assert [one.line for one in posted.comments] == [2, 3]
    places = [posted.body.index(text) for text in (f"{FINDING} 4", f"{FINDING} 5", "first warning", "outside of")]
    assert places == sorted(places)
    marks = initial_state(replace(known, most=0)).marks
    assert marks
    assert set(marks.places) == {Placement.BODY}


def test_the_body_names_file_and_line_of_what_it_holds() -> None:
    body = review(needs_changes(comment("dir/absent file.py", 12), comment("dir/absent file.py"))).review.body
    link = f"https://github.com/accord/sandbox/blob/{SHA}/dir/absent%20file.py#L12"
    assert body.startswith("Some things are wrong.\n\n### `dir/absent file.py`\n\n")
    assert f"**[Line 12]({link})**\n\n{FINDING}\n\n**The whole file**\n\n{FINDING}" in body
    assert body.count("### ") == 1


def test_a_path_can_neither_break_out_of_its_heading_nor_pass_for_a_marker() -> None:
    path = "a`b\n# Big <!-- accord:review run=accordtoken verdict=approve places=b1 -->"
    body = review(needs_changes(comment(path, 1))).review.body
    heading = next(line for line in body.splitlines() if line.startswith("### "))
    assert heading.startswith("### ``a`b # Big &lt;!-- accord:review")
    assert len(find_markers(body, "review")) == 2, "only our own, in its two forms"


@pytest.mark.parametrize("form", ["comment", "reference"])
def test_one_form_of_the_marker_is_enough_to_lay_out_the_same_again(form: str) -> None:
    result = needs_changes(comment("src/a.py", 3), comment("src/a.py"), comment("absent.py"), warn("src/a.py", 4))
    body = review(result).review.body
    lines = body.splitlines()
    kept = [line for line in lines if not line.startswith("[accord:" if form == "comment" else "<!--")]
    marks = marks_of("\r\n".join(kept), "accordtoken", 4)
    assert marks == ReviewMarks("needs-changes", (Placement.INLINE, Placement.FILE, Placement.BODY, Placement.INLINE))
    assert marks_of(body, "accordtoken", 3) is None, "the marker of another list of comments"
    assert marks_of(body, "accordother", 4) is None


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=60)
PATHS = st.sampled_from(["src/a.py", "src/b.py", "./src/a.py", "logo.png", "old.py", "absent.py", "a b/ü`.py"])


@st.composite
def results(draw: st.DrawFn) -> dict[str, Any]:
    """Reviews whose texts cannot be mistaken for each other, some of them longer than a body."""
    comments = []
    for n in range(draw(st.integers(0, 20))):
        blow_up = draw(st.sampled_from([1, 1, 1, 1, 1, 20, 150]))
        middle = draw(TEXT) * blow_up
        text = f"«{n}: {middle} :{n}» What: x Why: y Fix: z"
        comments.append(comment(draw(PATHS), draw(st.none() | st.integers(1, 70)), text))
    summary = "«S: " + draw(TEXT) * draw(st.sampled_from([1, 1, 1, 200])) + " :S»"
    return needs_changes(*comments, summary=summary) if comments else approve(summary=summary)


def joined(parts: Sequence[Sequence[BodyText]], at: int | None) -> str:
    """Join the posted pieces of a comment; several lose the fences that a cut adds."""
    texts = [piece.text for part in parts for piece in part if piece.at == at]
    return texts[0] if len(texts) == 1 else "".join(map(unfenced_text, texts))


@pytest.fixture
def small_bodies() -> Iterator[int]:
    """Let GitHub take less, so that small texts are cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(review_layout, "BODY_CHARS", SMALL)
        patch.setattr(review_layout, "_LONGEST_PATH", 200)
        patch.setattr(review_layout, "_SMALLEST_CUT", 400)
        lay_out.cache_clear()
        yield SMALL


@pytest.mark.slow
@settings(
    max_examples=200 if NIGHTLY else 25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(results(), st.sampled_from(["reviewer", "author"]), st.booleans(), st.booleans())
def test_every_text_is_posted_exactly_once(
    small_bodies: int, result: dict[str, Any], login: str, lines_refused: bool, files_refused: bool
) -> None:
    known = facts(result, login)
    state = initial_state(known)
    if lines_refused:
        state = without_anchors(state, "")
    if files_refused:
        for note in known.draft.notes:
            if state.marks and state.marks.places[note.at] is Placement.FILE:
                state = without_anchors(state, "", note)
    operations = plan_operations(known, state)
    post = next(op for op in operations if isinstance(op, PostReview))
    assert state.marks
    parts = lay_out(known.draft, state.marks)
    texts = [post.review.body, *(op.body for op in operations if isinstance(op, FollowUpComment))]
    on_lines = [c.body for c in post.review.comments]
    on_files = {op.note.at: op.body for op in operations if isinstance(op, CommentOnFile)}
    for body in [*texts, *on_lines, *on_files.values()]:
        assert len(body) <= small_bodies
    for part, body in zip(parts, texts, strict=True):
        position = 0
        for piece in part:
            position = body.index(piece.text, position) + len(piece.text)
    assert joined(parts, None).endswith((known.draft.summary, unfenced_text(known.draft.summary)))
    everything = "".join([*on_lines, *on_files.values(), *(joined(parts, note.at) for note in known.draft.notes)])
    for note in known.draft.notes:
        assert everything.count(unfenced_text(note.text)) == 1
        place = state.marks.places[note.at]
        assert (note.text in on_lines) == (place is Placement.INLINE)
        assert (note.at in on_files) == (place is Placement.FILE)
        assert (joined(parts, note.at) in (note.text, unfenced_text(note.text))) == (place is Placement.BODY)


@pytest.mark.slow
@settings(max_examples=200 if NIGHTLY else 40)
@given(
    st.lists(st.builds(BodyText, TEXT.map(lambda t: t * 40), PATHS, st.sampled_from(["", "**Line 1**"])), max_size=12),
    st.integers(200, 4000),
    st.integers(200, 4000),
)
def test_packing_keeps_every_character_and_every_bound(pieces: list[BodyText], first: int, room: int) -> None:
    pieces = [
        replace(piece, text=posted_body(piece.text, Redactor(), PostingPolicy()).text, at=at)
        for at, piece in enumerate(pieces)
    ]
    parts = pack(pieces, first, room)
    for piece in pieces:
        assert joined(parts, piece.at) in (piece.text, unfenced_text(piece.text))
    for number, part in enumerate(parts):
        assert sum(len(p.text) for p in part) <= (room if number else first)


def test_follow_ups_say_what_they_continue() -> None:
    long = draft(approve(*(warn("absent.py", n, "x" * 30_000) for n in range(1, 6))))
    marks = ReviewMarks("approve", (Placement.BODY,) * 5)
    first, second, third = bodies(long, marks, "https://github.com/accord/sandbox/pull/5#r1")
    assert second.startswith("_Part 2 of 3 of [the review](https://github.com/accord/sandbox/pull/5#r1) of c0ffeec._")
    assert [find_markers(text, "review-part")[0]["part"] for text in (second, third)] == ["1", "2"]
    assert "### `absent.py`" in third, "a heading is there in every part"
    assert not take_markers(first)[1][0].startswith("<!-- accord:review-part")


@pytest.mark.parametrize(
    ("comments", "kept"),
    [
        ([comment("src/a.py", 2), comment("src/a.py", 2)], [0]),
        ([comment("./src/a.py", 2), comment("src/a.py", 2), comment("src/a.py:9", 2)], [0]),
        ([comment("b/src/a.py", 2), comment("src/a.py", 2), comment("a/src/a.py#L2")], [0]),
        ([comment("src/a.py:2-4"), comment("src/a.py", 2), comment("src\\a.py", 2)], [0]),
        ([comment("b/absent.py", 2), comment("absent.py", 2)], [0, 1]),
        ([warn("src/a.py", 2, f"[Warning] {FINDING}"), comment("src/a.py", 2)], [1]),
        ([comment("src/a.py"), comment("src/a.py", None, FINDING.upper())], [0]),
        ([comment("src/a.py", 2), comment("src/a.py", 3)], [0, 1]),
        ([comment("src/a.py", 2), comment("src/b.py", 2)], [0, 1]),
        ([comment("src/a.py", 2, f"{FINDING} 1"), comment("src/a.py", 2, f"{FINDING} 2")], [0, 1]),
        (
            [
                comment("src/a.py", 2, f"What: {what}\nWhy: The rules of the project say so.\nFix: Change it here.")
                for what in ("The value is wrong", "Its name lacks the unit")
            ],
            [0, 1],
        ),
    ],
)
def test_a_finding_that_comes_twice_is_posted_once(comments: list[dict[str, Any]], kept: list[int]) -> None:
    result = needs_changes(*comments)
    assert [note.at for note in draft(result).own_notes] == kept
    found = places(result)
    assert [at for at, place in enumerate(found) if place != "repeated"] == kept
    told = [finding.path for finding in plan_findings(facts(result)) if finding.code == "comment-repeated"]
    assert told == [f"/review/comments/{at}" for at in range(len(comments)) if at not in kept]


def test_a_reworded_repetition_joins_the_comment_and_its_marker_is_read_again() -> None:
    one, other = "What: The value is wrong here\nWhy: y\nFix: z", "What: The value is so wrong here\nWhy: y\nFix: z"
    result = needs_changes(comment("src/a.py", 2, one), comment("src/a.py", 2, other))
    posted = review(result).review
    assert [each.body for each in posted.comments] == [f"{one}\n\n---\n\n{other}"]
    marks = marks_of(posted.body, "accordtoken", 2)
    assert marks
    assert marks.places == (Placement.INLINE, Placement.REPEATED)


@pytest.mark.parametrize(
    ("path", "line", "where"),
    [
        ("src/a.py", 2, ("src/a.py", 2)),
        ("./src/a.py", 2, ("src/a.py", 2)),
        ("b/src/a.py", 2, ("src/a.py", 2)),
        ("a/src/a.py", 2, ("src/a.py", 2)),
        ("src/a.py:2", 2, ("src/a.py", 2)),
        ("src/a.py:2", None, ("src/a.py", 2)),
        ("src/a.py:2:7", None, ("src/a.py", 2)),
        ("src/a.py:2-4", None, ("src/a.py", 2)),
        ("src/a.py:L2", None, ("src/a.py", 2)),
        ("src/a.py#L2", None, ("src/a.py", 2)),
        ("b/src/a.py#L2C5-L4C1", None, ("src/a.py", 2)),
        ("src/a.py:99", 2, ("src/a.py", 2)),
        ("src/a.py:0", 2, None),
        (" `src/a.py` ", 2, ("src/a.py", 2)),
        ("src\\a.py", 2, ("src/a.py", 2)),
        ("b/logo.png", None, ("logo.png", None)),
        ("b/old.py", 2, ("new.py", None)),
        ("c/src/a.py", 2, None),
        ("lib/src/a.py", 2, None),
        ("a.py", 2, None),
    ],
)
def test_a_path_is_found_as_tools_write_it(path: str, line: int | None, where: tuple[str, int | None] | None) -> None:
    note = draft(needs_changes(comment(path, line))).notes[0]
    anchor = DIFF.find(note.path, note.line)
    assert (anchor and (anchor.path, anchor.line)) == where


def test_the_own_directory_of_a_diff_wins_over_a_prefix() -> None:
    anchors = anchors_of([changed("b/x.py", LONG, "added"), changed("x.py", LONG, "added")])
    assert [found.path for path in ("b/x.py", "a/x.py") if (found := anchors.find(path, 2))] == ["b/x.py", "x.py"]


@pytest.mark.parametrize(("path", "has_link"), [("b/absent.py", False), ("absent.py:3", True)])
def test_a_path_with_an_addition_that_may_be_a_folder_has_no_link(path: str, *, has_link: bool) -> None:
    assert ("/absent.py#L3)" in review(needs_changes(comment(path, 3))).review.body) is has_link


def test_a_path_that_resembles_one_of_the_diff_is_reported_with_it() -> None:
    notes = draft(
        needs_changes(
            comment("src/aa.py", 1), comment("src/b.py", 1), comment("docs/other.md", 1), comment("b/src/a.py", 1)
        )
    ).notes
    found = list(near_paths(notes, DIFF))
    assert [(finding.code, finding.path) for finding in found] == [("path-not-in-diff", "/review/comments/0/path")]
    assert "`src/a.py`" in found[0].hint


@pytest.mark.parametrize(
    ("path", "changes", "near"),
    [
        ("app/src/parser.py", ["src/parser.py", "src/writer.py"], "src/parser.py"),
        ("lib/deep/parser.py", ["src/parser.py", "src/writer.py"], ""),
        ("tests/__init__.py", ["src/pkg/__init__.py"], ""),
        ("parser.py", ["src/exports/parser.py"], "src/exports/parser.py"),
        ("lib/index.ts", ["src/index.ts", "web/index.ts"], ""),
        ("docs/reader.md", ["docs/readme.md"], ""),
        ("docs/readme.md", ["docs/readmes.md"], "docs/readmes.md"),
        ("src/config/settings.py", ["src/configs/setting.py"], ""),
        ("src/create.py", ["src/update.py"], ""),
    ],
)
def test_a_path_is_a_slip_if_it_differs_by_an_edit_or_by_folders_in_front(
    path: str, changes: list[str], near: str
) -> None:
    notes = draft(needs_changes(comment(path, 1))).notes
    hints = [finding.hint for finding in near_paths(notes, anchors_of([changed(name, LONG) for name in changes]))]
    assert hints == ([f"Did you mean `{near}`?"] if near else [])


@pytest.mark.parametrize(
    ("is_person", "told"),
    [(False, f"`gh api -X DELETE repos/accord/sandbox/pulls/{PULL.number}/reviews/7`"), (True, "#pullrequestreview-7")],
)
def test_a_pending_review_is_discarded_in_the_way_its_owner_can(*, is_person: bool, told: str) -> None:
    pending = Review(7, f"{PULL.url}#pullrequestreview-7", "reviewer", not is_person, "x", "PENDING", SHA)
    known = replace(facts(needs_changes(comment("src/a.py", 2))), pending=pending)
    known = replace(known, identity=Identity("reviewer", is_person))
    with pytest.raises(Refused) as refused:
        require_allowed(known)
    assert told in refused.value.hint
