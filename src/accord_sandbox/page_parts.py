"""Parts of the pages: pull requests with reviews and diff, the dependency graph, and Markdown as HTML.

The graph is layered in the manner of Sugiyama: layers by longest path, bend points where an arrow passes a layer, order
by the mean of the neighbours. Cycles have one arrow going back. The HTML is inert: tags in the text stay text, comments
are hidden, checkboxes are disabled.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from accord_sandbox import checks, diffs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

    from accord_sandbox.database import Row
    from accord_sandbox.diffs import FileDiff, Hunk, Line
    from accord_sandbox.git_storage import BareRepository
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


@dataclass
class _ShownFile:
    """One file of the diff on the page. ``rows`` is None for a file that is too large to show."""

    change: FileDiff
    head: list[Row] = field(default_factory=list)
    rows: list[tuple[Hunk | None, Line | None, list[Row]]] | None = None


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
    shown = _shown_files(changes, comments)
    here = {comment["id"] for file in shown for comment in _shown_comments(file)}
    runs = checks.outcomes(look.db, pull["repository_id"], pull["head_sha"])
    return {
        "pull": pull,
        "mark": pull_mark(pull),
        "reviews": _shown_reviews(look, pull["issue_id"], comments),
        "files": shown,
        "outdated": [comment for comment in comments if comment["id"] not in here],
        "additions": sum(change.additions for change in changes),
        "deletions": sum(change.deletions for change in changes),
        "commit_count": int(bare.text("rev-list", "--count", f"{start}..{pull['head_sha']}")),
        "checks": sorted(runs.items()),
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
    counts: dict[int, int] = defaultdict(int)
    for comment in comments:
        counts[comment["review_id"]] += 1
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


def _shown_files(changes: tuple[FileDiff, ...], comments: list[Row]) -> list[_ShownFile]:
    under: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    heads: dict[str, list[Row]] = defaultdict(list)
    for comment in comments:
        if comment["subject_type"] == "file":
            heads[comment["path"]].append(comment)
        elif comment["line"] is not None:
            under[comment["path"], comment["side"], comment["line"]].append(comment)
    shown, left = [], MOST_ROWS
    for change in changes:
        size = sum(len(hunk.lines) for hunk in change.hunks)
        file = _ShownFile(change, heads[change.path])
        if change.hunks and size <= left:
            file.rows, left = _diff_rows(change, under), left - size
        shown.append(file)
    return shown


def _diff_rows(
    change: FileDiff, under: dict[tuple[str, str, int], list[Row]]
) -> list[tuple[Hunk | None, Line | None, list[Row]]]:
    rows: list[tuple[Hunk | None, Line | None, list[Row]]] = []
    for hunk in change.hunks:
        rows.append((hunk, None, []))
        for line in hunk.lines:
            places = (("LEFT", line.old), ("RIGHT", line.new))
            found = [
                comment
                for side, number in places
                if number is not None
                for comment in under.get((change.path, side, number), [])
            ]
            rows.append((None, line, found))
    return rows


def _shown_comments(file: _ShownFile) -> list[Row]:
    return [*file.head, *(comment for _, _, found in file.rows or [] for comment in found)]


WIDTH, HEIGHT = 250, 76
BEND_HEIGHT = 12
GAP_X, GAP_Y = 76, 22
MARGIN = 24
SWEEPS = 8


@dataclass(frozen=True)
class Box:
    """A placed node; ``x`` and ``y`` are its upper left corner."""

    key: int
    x: float
    y: float


@dataclass(frozen=True)
class Arrow:
    """A placed edge as an SVG path."""

    blocker: int
    blocked: int
    path: str


@dataclass(frozen=True)
class Drawing:
    """Everything placed, and the size of the sheet."""

    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    width: float
    height: float


@dataclass
class _Slot:
    """A node, or (``key`` None) the bend of an arrow that passes its layer."""

    key: int | None
    layer: int
    order: float = 0.0
    y: float = 0.0
    before: list[_Slot] = field(default_factory=list)
    after: list[_Slot] = field(default_factory=list)

    @property
    def height(self) -> int:
        return BEND_HEIGHT if self.key is None else HEIGHT


def draw_graph(edges: Iterable[tuple[int, int]]) -> Drawing:
    """Place the nodes of ``edges`` (blocker, blocked) and their arrows."""
    pairs = sorted(set(edges))
    layers_of = _layers(pairs)
    nodes = {key: _Slot(key, layer) for key, layer in layers_of.items()}
    chains = [(pair, _chain(nodes[pair[0]], nodes[pair[1]])) for pair in pairs]
    places = [*nodes.values(), *(bend for _, chain in chains for bend in chain[1:-1])]
    layers = _ordered(places)
    height = max((_height(layer) for layer in layers), default=0.0)
    for layer in layers:
        top = MARGIN + (height - _height(layer)) / 2
        for place in layer:
            place.y = top
            top += place.height + GAP_Y
    boxes = [Box(key, _x(place.layer), place.y) for key, place in nodes.items()]
    arrows = [Arrow(*pair, path=_path(chain)) for pair, chain in chains]
    width = max((box.x + WIDTH for box in boxes), default=0.0) + MARGIN
    return Drawing(boxes, arrows, width, height + 2 * MARGIN)


def _layers(pairs: Sequence[tuple[int, int]]) -> Mapping[int, int]:
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


def _chain(start: _Slot, end: _Slot) -> list[_Slot]:
    """Join two places through a bend in each layer between them."""
    bends = [_Slot(None, layer) for layer in range(start.layer + 1, end.layer)]
    chain = [start, *bends, end]
    if start.layer < end.layer:
        for left, right in pairwise(chain):
            left.after.append(right)
            right.before.append(left)
    return chain


def _ordered(places: Sequence[_Slot]) -> list[list[_Slot]]:
    """Sort each layer so that few arrows cross."""
    layers: list[list[_Slot]] = [[] for _ in range(1 + max((place.layer for place in places), default=-1))]
    for place in places:
        layers[place.layer].append(place)
    for layer in layers:
        _number(layer)
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for layer in layers if forward else reversed(layers):
            means = {id(place): _mean(place.before if forward else place.after, place.order) for place in layer}
            layer.sort(key=lambda place: means[id(place)])
            _number(layer)
    return layers


def _number(layer: Sequence[_Slot]) -> None:
    middle = (len(layer) - 1) / 2
    for index, place in enumerate(layer):
        place.order = index - middle


def _mean(neighbours: Sequence[_Slot], default: float) -> float:
    return sum(place.order for place in neighbours) / len(neighbours) if neighbours else default


def _height(layer: Sequence[_Slot]) -> float:
    return sum(place.height for place in layer) + GAP_Y * (len(layer) - 1)


def _x(layer: int) -> float:
    return MARGIN + layer * (WIDTH + GAP_X)


def _path(chain: Sequence[_Slot]) -> str:
    start = chain[0]
    x, y = _x(start.layer) + WIDTH, start.y + start.height / 2
    parts = [f"M{x:.0f} {y:.1f}"]
    for place in chain[1:]:
        left, level = _x(place.layer), place.y + place.height / 2
        bow = GAP_X / 2 if left > x else GAP_X
        parts.append(f"C{x + bow:.0f} {y:.1f} {left - bow:.0f} {level:.1f} {left:.0f} {level:.1f}")
        x, y = left, level
        if place.key is None:
            x += WIDTH
            parts.append(f"L{x:.0f} {y:.1f}")
    return " ".join(parts)


_BOXES = {"[ ] ": "", "[x] ": " checked", "[X] ": " checked"}


def markdown_html(text: str | None) -> str:
    """Return the HTML of a Markdown text, safe to put into a page."""
    rendered: str = _parser().render(text or "")
    return rendered


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True}).enable(
        ["table", "strikethrough"]
    )
    parser.block.ruler.before(
        "html_block", "comment", _block_comment, {"alt": ["paragraph", "reference", "blockquote"]}
    )
    parser.inline.ruler.before("autolink", "comment", _inline_comment)
    parser.core.ruler.push("checkboxes", _checkboxes)
    parser.add_render_rule("checkbox", lambda _self, tokens, index, _options, _env: tokens[index].content)
    return parser


def _block_comment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Swallow lines from ``<!--`` to ``-->``; an unclosed comment hides the rest, as on GitHub."""
    begin = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not state.src.startswith("<!--", begin):
        return False
    closing = state.src.find("-->", begin + 4)
    last = next((line for line in range(start, end) if state.eMarks[line] >= closing + 3), end - 1)
    if closing < 0:
        last = end - 1
    elif state.src[closing + 3 : state.eMarks[last]].strip():
        return False  # text follows on the same line: the inline rule knows what to do
    if not silent:
        state.line = last + 1
    return True


def _inline_comment(state: StateInline, _silent: bool) -> bool:
    if not state.src.startswith("<!--", state.pos):
        return False
    closing = state.src.find("-->", state.pos + 4)
    if closing < 0:
        return False
    state.pos = closing + 3
    return True


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
