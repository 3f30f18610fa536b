"""Where a comment can stand in a diff: exactly where GitHub shows a line of the version that is meant."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reviews import changed

from accord.results.reviewer.placement import LEFT, RIGHT, Anchor, anchors_of, shown_lines

HUNKS = """@@ -1,4 +1,5 @@ def first():
 one
-two
+TWO
+two and a half
 three
 four
@@ -20,3 +21,2 @@
 twenty
-twenty-one
 twenty-two
\\ No newline at end of file"""

FILES = [
    changed("src/a.py", HUNKS),
    changed("src/new.py", "@@ -0,0 +1,2 @@\n+a\n+b", "added"),
    changed("src/one.py", "@@ -0,0 +1 @@\n+only", "added"),
    changed("src/empty.py", None, "added"),
    changed("src/gone.py", "@@ -1,3 +0,0 @@\n-a\n-b\n-c", "removed"),
    changed("src/moved.py", "@@ -5,2 +5,3 @@\n x\n+y\n z", "renamed", "src/old.py"),
    changed("src/copy.py", None, "copied", "src/source.py"),
    changed("logo.png", None),
    changed("ü mit blank.txt", "@@ -1 +1 @@\n-a\n+b"),
    changed("taken.py", "@@ -1 +1 @@\n-a\n+b"),
    changed("taken2.py", None, "renamed", "taken.py"),
]

PLACES: dict[str, tuple[str, int | None, Anchor | None]] = {
    "an added line": ("src/a.py", 2, Anchor("src/a.py", 2)),
    "a context line": ("src/a.py", 4, Anchor("src/a.py", 4)),
    "the last line of a hunk": ("src/a.py", 5, Anchor("src/a.py", 5)),
    "the line after a hunk": ("src/a.py", 6, Anchor("src/a.py")),
    "a line between hunks": ("src/a.py", 20, Anchor("src/a.py")),
    "the second hunk, by new numbers": ("src/a.py", 22, Anchor("src/a.py", 22)),
    "a number that only the old version has": ("src/a.py", 23, Anchor("src/a.py")),
    "far outside": ("src/a.py", 10**9, Anchor("src/a.py")),
    "no line": ("src/a.py", None, Anchor("src/a.py")),
    "a new file": ("src/new.py", 2, Anchor("src/new.py", 2)),
    "a new file of one line": ("src/one.py", 1, Anchor("src/one.py", 1)),
    "beyond a new file": ("src/new.py", 3, Anchor("src/new.py")),
    "an empty new file": ("src/empty.py", 1, Anchor("src/empty.py")),
    "a removed file, on the left": ("src/gone.py", 3, Anchor("src/gone.py", 3, LEFT)),
    "beyond a removed file": ("src/gone.py", 4, Anchor("src/gone.py")),
    "a renamed file": ("src/moved.py", 6, Anchor("src/moved.py", 6)),
    "the old name of a renamed file": ("src/old.py", 5, Anchor("src/moved.py")),
    "a name that was given away and taken again": ("taken.py", 1, Anchor("taken.py", 1)),
    "the source of a copy is not part of the diff": ("src/source.py", 1, None),
    "a binary file": ("logo.png", 1, Anchor("logo.png")),
    "a path with blanks": ("ü mit blank.txt", 1, Anchor("ü mit blank.txt", 1)),
    "a path that is not in the pull request": ("src/b.py", 1, None),
    "a folder": ("src", None, None),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_comment_goes_to_the_nearest_place(name: str) -> None:
    path, line, expected = PLACES[name]
    assert anchors_of(FILES).find(path, line) == expected


@pytest.mark.parametrize(
    ("patch", "lines"),
    [
        pytest.param("@@ -1,9 +1,9 @@\n a\n+b", {1, 2}, id="a hunk that was cut short"),
        pytest.param(
            "@@ -1,2 +1,4 @@\n a\n+@@ -90,9 +90,9 @@\n+x\x0cy\u2028z\rw\n b\n", {1, 2, 3, 4}, id="like a header"
        ),
        pytest.param("@@ -1,3 +1,4 @@\n a\n\n+b\n c", {1, 2, 3, 4}, id="an empty line whose blank was trimmed"),
    ],
)
def test_the_rows_of_a_hunk_are_lines_whatever_their_text(patch: str, lines: set[int]) -> None:
    assert shown_lines(patch, RIGHT) == lines


LINES = st.lists(st.sampled_from(["a", "b", "", "+", "-x", "@@ -1 +1 @@", " ", "\\ n", "c\rd", "\x0c"]), max_size=40)


def slow_reference(old: list[str], new: list[str], context: int) -> tuple[set[int], set[int]]:
    """Number the lines of both sides that lie in a group of changes, by difflib's own indices."""
    left: set[int] = set()
    right: set[int] = set()
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(context):
        for _, old_from, old_to, new_from, new_to in group:
            left.update(range(old_from + 1, old_to + 1))
            right.update(range(new_from + 1, new_to + 1))
    return left, right


@pytest.mark.slow
@given(LINES, LINES, st.integers(0, 4))
def test_any_diff_shows_the_lines_of_its_hunks_and_no_others(old: list[str], new: list[str], context: int) -> None:
    rows = list(difflib.unified_diff(old, new, n=context, lineterm=""))[2:]
    patch = "\n".join(rows)
    left, right = slow_reference(old, new, context)
    assert shown_lines(patch, RIGHT) == right
    assert shown_lines(patch, LEFT) == left
