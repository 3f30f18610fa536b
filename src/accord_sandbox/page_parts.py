"""Parts of the pages: pull requests with reviews and diff, and Markdown as HTML.

HTML in Markdown is inert: tags stay text, comments are hidden, checkboxes are disabled.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from accord_sandbox import checks, diffs
from accord_sandbox.database import Row, SqlConnection
from accord_sandbox.diffs import FileDiff, Hunk, Line
from accord_sandbox.git_storage import BareRepository, GitStorage, count_between
from accord_sandbox.pull_state import closed_numbers
from accord_sandbox.triggers import held_runs

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore


MOST_ROWS = 3000
"""Lines of a diff on a page; later files are listed without their lines."""

_VERDICTS = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "requested changes",
    "COMMENTED": "reviewed",
    "DISMISSED": "reviewed, and was dismissed",
    "PENDING": "has not submitted this review yet",
}


@dataclass
class Look:
    """One page in the making: the data, the query, and the label colours for its style sheet."""

    db: SqlConnection
    storage: GitStorage
    query: Mapping[str, str]
    colors: set[str] = field(default_factory=set)

    @property
    def state(self) -> str:
        """The state of the items that a list shows."""
        return "closed" if self.query.get("state") == "closed" else "open"

    def all(self, statement: str, *values: Any) -> list[Row]:
        """Return all rows."""
        return self.db.execute(statement, values).fetchall()

    def labels(self, issue_id: int) -> list[Row]:
        """Return an issue's labels."""
        rows = self.all(
            "SELECT labels.* FROM issue_labels JOIN labels ON labels.id = label_id WHERE issue_id = ? ORDER BY folded",
            issue_id,
        )
        self.colors.update(row["color"] for row in rows)
        return rows


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
        "commit_count": count_between(bare, start, pull["head_sha"]),
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


def closing_pulls(look: Look, repository_id: int, number: int) -> list[Row]:
    """Return the pull requests that close an issue when they are merged, or did."""
    rows = look.all(
        "SELECT * FROM items WHERE repository_id = ? AND is_pull = 1 AND body LIKE ? ORDER BY number",
        repository_id,
        f"%{number}%",
    )
    return [row for row in rows if number in closed_numbers(row["body"], row["full_name"])]


def closed_issues(look: Look, pull: Row) -> list[Row]:
    """Return the issues that the body of a pull request closes."""
    statement, key = "SELECT * FROM items WHERE repository_id = ? AND number = ?", pull["repository_id"]
    return [
        row for number in closed_numbers(pull["body"], pull["full_name"]) for row in look.all(statement, key, number)
    ]


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
