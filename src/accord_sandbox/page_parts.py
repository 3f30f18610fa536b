"""Parts of the pages: pull requests with reviews and diff, the dependency graph, and Markdown as HTML.

The graph has layers by longest path, and bends where an arrow passes a layer. Cycles have one arrow going back. HTML in
Markdown is inert: tags stay text, comments are hidden, checkboxes are disabled.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from accord_sandbox import checks, diffs
from accord_sandbox.database import Row
from accord_sandbox.diffs import FileDiff, Hunk, Line
from accord_sandbox.git_storage import BareRepository
from accord_sandbox.run_approval import held_runs

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore

    from accord_sandbox.pages import Look


MOST_ROWS = 3000
"""Lines of a diff on a page; later files are listed without their lines."""

_VERDICTS = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "requested changes",
    "COMMENTED": "reviewed",
    "DISMISSED": "reviewed, and was dismissed",
    "PENDING": "has not submitted this review yet",
}
_STANDING = {"APPROVED": "approved", "CHANGES_REQUESTED": "changes requested"}


def list_context(look: Look, repository: Row, state: str) -> dict[str, Any]:
    """Return the values of the list of pull requests."""
    rows = look.all(
        "SELECT issues.*, pulls.*, users.login, (SELECT count(*) FROM comments WHERE issue_id = issues.id)"
        " + (SELECT count(*) FROM review_comments WHERE issue_id = issues.id) AS comment_count"
        " FROM pulls JOIN issues ON issues.id = pulls.issue_id JOIN users ON users.id = author_id"
        " WHERE repository_id = ? AND issues.state = ? ORDER BY number DESC",
        repository["id"],
        state,
    )
    items = [
        {"row": row, "labels": look.labels(row["id"]), "standing": _standing(look, row["id"]), "mark": pull_mark(row)}
        for row in rows
    ]
    return {"state": state, "items": items}


def pull_context(look: Look, bare: BareRepository, pull: Row) -> dict[str, Any]:
    """Return the values of a pull request's page, without its conversation."""
    changes = diffs.pull_diff(bare, pull["base_sha"], pull["head_sha"])
    comments = look.all(
        "SELECT review_comments.*, login, reviews.state AS review_state FROM review_comments"
        " JOIN users ON users.id = review_comments.author_id JOIN reviews ON reviews.id = review_id"
        " WHERE review_comments.issue_id = ? ORDER BY review_comments.id",
        pull["issue_id"],
    )
    start = diffs.fork_point(bare, pull["base_sha"], pull["head_sha"])
    runs = checks.outcomes(look.db, pull["repository_id"], pull["head_sha"])
    return {
        **_shown_files(changes, comments),
        "pull": pull,
        "mark": pull_mark(pull),
        "reviews": _shown_reviews(look, pull["issue_id"], comments),
        "additions": sum(change.additions for change in changes),
        "deletions": sum(change.deletions for change in changes),
        "commit_count": int(bare.text("rev-list", "--count", f"{start}..{pull['head_sha']}")),
        "checks": sorted(runs.items()),
        "held": held_runs(look.db, pull["repository_id"], pull["head_sha"]) if pull["state"] == "open" else [],
    }


def pull_mark(pull: Row) -> str:
    """Return open, draft, merged or closed."""
    if pull["merged_at"] is not None:
        return "merged"
    if pull["state"] == "closed":
        return "closed"
    return "draft" if pull["draft"] else "open"


def _standing(look: Look, issue_id: int) -> str:
    """Return the strictest of the reviewers' last verdicts, "" without any."""
    rows = look.all(
        "SELECT author_id, state FROM reviews WHERE issue_id = ? AND state IN ('APPROVED', 'CHANGES_REQUESTED')"
        " ORDER BY id",
        issue_id,
    )
    verdicts = {row["author_id"]: row["state"] for row in rows}.values()
    return next((words for state, words in reversed(_STANDING.items()) if state in verdicts), "")


def _shown_reviews(look: Look, issue_id: int, comments: list[Row]) -> list[dict[str, Any]]:
    """Return the reviews, without those that only wrap a single comment."""
    counts = Counter(comment["review_id"] for comment in comments)
    rows = look.all(
        "SELECT reviews.*, login FROM reviews JOIN users ON users.id = author_id"
        " WHERE issue_id = ? ORDER BY reviews.id",
        issue_id,
    )
    return [
        {"row": row, "verdict": _VERDICTS[row["state"]], "count": counts[row["id"]]}
        for row in rows
        if row["state"] != "COMMENTED" or row["body"] or counts[row["id"]] > 1
    ]


def _shown_files(changes: tuple[FileDiff, ...], comments: list[Row]) -> dict[str, Any]:
    """Return the files with their comments, without rows where they are too large, and the outdated comments."""
    under: dict[tuple[str, str, int | None], list[Row]] = defaultdict(list)
    for comment in comments:
        is_on_file = comment["subject_type"] == "file"
        under[comment["path"], "" if is_on_file else comment["side"], comment["line"]].append(comment)
    shown, left = [], MOST_ROWS
    for change in changes:
        file: dict[str, Any] = {"change": change, "head": under.pop((change.path, "", None), []), "rows": None}
        size = sum(len(hunk.lines) for hunk in change.hunks)
        if change.hunks and size <= left:
            file["rows"], left = _diff_rows(change, under), left - size
        shown.append(file)
    outdated = sorted((comment for rest in under.values() for comment in rest), key=lambda comment: comment["id"])
    return {"files": shown, "outdated": outdated}


def _diff_rows(
    change: FileDiff, under: dict[tuple[str, str, int | None], list[Row]]
) -> list[tuple[Hunk | None, Line | None, list[Row]]]:
    """Return the hunks and lines of a file, each line with the comments taken from ``under``."""
    rows: list[tuple[Hunk | None, Line | None, list[Row]]] = []
    for hunk in change.hunks:
        rows.append((hunk, None, []))
        for line in hunk.lines:
            places = [(side, number) for side in diffs.SIDES if (number := line.number(side)) is not None]
            rows.append((None, line, [row for place in places for row in under.pop((change.path, *place), [])]))
    return rows


WIDTH, HEIGHT = 250, 76
BEND_HEIGHT = 12
GAP_X, GAP_Y = 76, 22
MARGIN = 24


class Drawing(NamedTuple):
    """The upper left corners of nodes, arrows as SVG paths by their blocker, and the size of the sheet."""

    boxes: Mapping[int, tuple[float, float]]
    arrows: Sequence[tuple[int, str]]
    width: float
    height: float


_Slot = int | tuple[int, int, int]
"""A node, or the bend (blocker, blocked, layer) of an arrow that passes a layer."""


def draw_graph(edges: Iterable[tuple[int, int]]) -> Drawing:
    """Place the nodes of ``edges`` (blocker, blocked) and their arrows."""
    pairs = sorted(set(edges))
    layers = _layers(pairs)
    slots: dict[_Slot, int] = dict(layers.items())
    chains: list[list[_Slot]] = []
    before: dict[_Slot, list[_Slot]] = defaultdict(list)
    for blocker, blocked in pairs:
        bends = [(blocker, blocked, layer) for layer in range(layers[blocker] + 1, layers[blocked])]
        slots |= {bend: bend[2] for bend in bends}
        chains.append([blocker, *bends, blocked])
        for left, right in pairwise(chains[-1]):
            before[right].append(left)
    middles = _middles(slots, before)
    top = min(middles.values(), default=0.0) - HEIGHT / 2 - MARGIN
    middles = {slot: middle - top for slot, middle in middles.items()}
    boxes = {key: (_x(layer), middles[key] - HEIGHT / 2) for key, layer in layers.items()}
    arrows = [(pair[0], _path(chain, slots, middles)) for pair, chain in zip(pairs, chains, strict=True)]
    width = max((x + WIDTH for x, _ in boxes.values()), default=0.0) + MARGIN
    height = max((middle + HEIGHT / 2 for middle in middles.values()), default=0.0) + MARGIN
    return Drawing(boxes, arrows, width, height)


def _layers(pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return each node's layer: one more than its deepest blocker's; an edge that closes a cycle does not count."""
    blockers: dict[int, list[int]] = {}
    for blocker, blocked in pairs:
        blockers.setdefault(blocker, [])
        blockers.setdefault(blocked, []).append(blocker)
    depth: dict[int, int] = {}
    for start in blockers:
        stack, open_nodes = [start], set[int]()
        while stack:
            node = stack[-1]
            open_nodes.add(node)
            waiting = [key for key in blockers[node] if key not in depth and key not in open_nodes]
            if waiting and node not in depth:
                stack.append(waiting[0])
                continue
            stack.pop()
            depth.setdefault(node, 1 + max((depth[key] for key in blockers[node] if key in depth), default=-1))
    return depth


def _middles(slots: Mapping[_Slot, int], before: Mapping[_Slot, Sequence[_Slot]]) -> dict[_Slot, float]:
    """Return the height of each slot's middle; a layer is sorted by the mean of the slots that lead to its own."""
    columns: dict[int, list[_Slot]] = defaultdict(list)
    for slot, layer in slots.items():
        columns[layer].append(slot)
    middles: dict[_Slot, float] = {}
    for _, column in sorted(columns.items()):
        means = {slot: fmean(middles.get(left, 0.0) for left in before.get(slot) or [slot]) for slot in column}
        heights = {slot: HEIGHT if isinstance(slot, int) else BEND_HEIGHT for slot in column}
        y = -(sum(heights.values()) + GAP_Y * (len(column) - 1)) / 2
        for slot in sorted(column, key=lambda slot: means[slot]):
            middles[slot] = y + heights[slot] / 2
            y += heights[slot] + GAP_Y
    return middles


def _x(layer: int) -> float:
    return MARGIN + layer * (WIDTH + GAP_X)


def _path(chain: Sequence[_Slot], slots: Mapping[_Slot, int], middles: Mapping[_Slot, float]) -> str:
    x, y = _x(slots[chain[0]]) + WIDTH, middles[chain[0]]
    parts = [f"M{x:.0f} {y:.1f}"]
    for slot in chain[1:]:
        left, level = _x(slots[slot]), middles[slot]
        bow = GAP_X / 2 if left > x else GAP_X
        parts.append(f"C{x + bow:.0f} {y:.1f} {left - bow:.0f} {level:.1f} {left:.0f} {level:.1f}")
        x, y = left, level
        if not isinstance(slot, int):
            x += WIDTH
            parts.append(f"L{x:.0f} {y:.1f}")
    return " ".join(parts)


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_BOXES = {"[ ] ": "", "[x] ": " checked", "[X] ": " checked"}


def markdown_html(text: str | None) -> str:
    """Return the HTML of a Markdown text, safe to put into a page."""
    rendered: str = _parser().render(text or "")
    return rendered


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"breaks": True}).enable(["table", "strikethrough"])
    parser.core.ruler.push("checkboxes", _checkboxes)
    parser.add_render_rule("checkbox", lambda _self, tokens, index, _options, _env: tokens[index].content)
    parser.add_render_rule("html_inline", lambda _self, tokens, index, _options, _env: _inert(tokens[index].content))
    parser.add_render_rule("html_block", lambda _self, tokens, index, _options, _env: _inert_block(tokens[index]))
    return parser


def _inert(html: str) -> str:
    """Return HTML as text, without its comments; an unclosed comment hides the rest, as on GitHub."""
    return escape(_COMMENT.sub("", html))


def _inert_block(token: Token) -> str:
    shown = _inert(token.content).rstrip()
    return f"<p>{shown}</p>\n" if shown else ""


def _checkboxes(state: StateCore) -> None:
    """Turn ``[ ] `` at the start of a list item into a box."""
    for item, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if (item.type, paragraph.type, inline.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        first = inline.children[0] if inline.children else None
        if first is None or first.type != "text" or first.content[:4] not in _BOXES:
            continue
        box = Token("checkbox", "", 0, content=f'<input type="checkbox" disabled{_BOXES[first.content[:4]]}> ')
        first.content = first.content[4:]
        assert inline.children is not None  # noqa: S101 (first came from there)
        inline.children.insert(0, box)
        item.attrJoin("class", "task")
