"""Pages of the local GitHub: plain HTML without scripts or anything from other hosts. One button approves workflows.

HTML in Markdown is inert: tags stay text, comments are hidden, checkboxes are disabled.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup
from starlette.responses import Response

from accord_sandbox.commits import outcomes
from accord_sandbox.database import Row, SqlConnection, find_repository
from accord_sandbox.diffs import SIDES, FileDiff, Hunk, Line, fork_point, pull_diff
from accord_sandbox.git_storage import BareRepository, GitStorage, count_between
from accord_sandbox.payloads import LABELS_OF_ISSUE
from accord_sandbox.pull_state import closed_numbers
from accord_sandbox.triggers import held_runs

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

    def all(self, statement: str, *values: Any) -> list[Row]:
        """Return all rows."""
        return self.db.execute(statement, values).fetchall()

    def labels(self, issue_id: int) -> list[Row]:
        """Return an issue's labels."""
        rows = self.all(f"{LABELS_OF_ISSUE} ORDER BY folded", issue_id)
        self.colors.update(row["color"] for row in rows)
        return rows


def _pull_context(look: Look, bare: BareRepository, pull: Row) -> dict[str, Any]:
    """Return the values of a pull request's page, without its conversation."""
    changes = pull_diff(bare, pull["base_sha"], pull["head_sha"])
    comments = look.all(
        "SELECT review_comments.*, login, reviews.state AS review_state FROM review_comments"
        " JOIN users ON users.id = review_comments.author_id JOIN reviews ON reviews.id = review_id"
        " WHERE review_comments.issue_id = ? ORDER BY review_comments.id",
        pull["issue_id"],
    )
    start = fork_point(bare, pull["base_sha"], pull["head_sha"])
    runs = outcomes(look.db, pull["repository_id"], pull["head_sha"])
    return {
        **_shown_files(changes, comments),
        "pull": pull,
        "mark": _pull_mark(pull),
        "reviews": _shown_reviews(look, pull["issue_id"], comments),
        "additions": sum(change.additions for change in changes),
        "deletions": sum(change.deletions for change in changes),
        "commit_count": count_between(bare, start, pull["head_sha"]),
        "checks": sorted(runs.items()),
        "held": held_runs(look.db, pull["repository_id"], pull["head_sha"]) if pull["state"] == "open" else [],
    }


def _pull_mark(pull: Row) -> str:
    """Return open, draft, merged or closed."""
    if pull["merged_at"] is not None:
        return "merged"
    if pull["state"] == "closed":
        return "closed"
    return "draft" if pull["draft"] else "open"


def _shown_reviews(look: Look, issue_id: int, comments: list[Row]) -> list[dict[str, Any]]:
    """Return the reviews, without those that only wrap a single comment."""
    counts = Counter(comment["review_id"] for comment in comments)
    written = "SELECT reviews.*, login FROM reviews JOIN users ON users.id = author_id"
    rows = look.all(f"{written} WHERE issue_id = ? ORDER BY reviews.id", issue_id)
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
            places = [(side, number) for side in SIDES if (number := line.number(side)) is not None]
            rows.append((None, line, [row for place in places for row in under.pop((change.path, *place), [])]))
    return rows


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


PER_PAGE = 50
_STATIC = {"style.css": "text/css; charset=utf-8", "avatar.svg": "image/svg+xml"}
_HEX = re.compile(r"[0-9a-f]{6}")


def respond(db: SqlConnection, storage: GitStorage, path: str, query: Mapping[str, str]) -> Response:
    """Return the page of a path, or a 404 page."""
    if path.startswith("/_static/"):
        name = path.removeprefix("/_static/")
        if name not in _STATIC:
            return Response(status_code=404)
        content = (files("accord_sandbox") / "static" / name).read_bytes()
        return Response(content, headers={"content-type": _STATIC[name], "cache-control": "max-age=60"})
    look = Look(db, storage, query)
    for pattern, view in _VIEWS:
        found = re.fullmatch(pattern, path)
        if found is not None:
            with suppress(_MissingPage):
                return _render(look, *view(look, found.groupdict()), status=200)
    return _render(look, "missing.html", {"title": "Not found", "path": path}, status=404)


class _MissingPage(Exception):
    """A path leads to nothing."""


_Page = tuple[str, dict[str, Any]]


def _repositories(look: Look, _names: dict[str, str]) -> _Page:
    rows = look.all(
        "SELECT repositories.*, (SELECT count(*) FROM issues WHERE repository_id = repositories.id AND state = 'open')"
        " AS open_count FROM repositories ORDER BY full_name"
    )
    return "repositories.html", {"title": "Repositories", "repositories": rows}


def _list(look: Look, names: dict[str, str]) -> _Page:
    """Return the page with the items of a tab, newest first; one of the seed without branches is among the issues."""
    frame = _frame(look, names, names.get("tab", "issues"))
    state = "closed" if look.query.get("state") == "closed" else "open"
    number, is_code = look.query.get("page", "1"), frame["tab"] == "pulls"
    page = int(number) if re.fullmatch(r"[1-9][0-9]{0,6}", number) else 1
    rows = look.all(
        "SELECT items.*, draft, merged_at, base_ref, head_ref,"
        " (SELECT count(*) FROM comments WHERE issue_id = items.id)"
        " + (SELECT count(*) FROM review_comments WHERE issue_id = items.id) AS comment_count,"
        " (SELECT count(*) FROM dependencies JOIN issues AS blockers ON blockers.id = blocker_id"
        " WHERE blocked_id = items.id AND blockers.state = 'open') AS blockers"
        " FROM items LEFT JOIN pulls ON pulls.issue_id = items.id"
        " WHERE repository_id = ? AND state = ? AND (pulls.issue_id IS NOT NULL) = ?"
        " ORDER BY number DESC LIMIT ? OFFSET ?",
        *(frame["repository"]["id"], state, is_code, PER_PAGE, (page - 1) * PER_PAGE),
    )
    counts = frame["pull_counts" if is_code else "counts"]
    items = [{"row": row, "labels": look.labels(row["id"]), "mark": _pull_mark(row) if is_code else ""} for row in rows]
    shown = {"items": items, "shown": counts, "page": page, "pages": max(1, -(-counts[state] // PER_PAGE))}
    title = f"Pull requests · {frame['name']}" if is_code else frame["name"]
    return "list.html", {**frame, **shown, "title": title, "state": state}


def _issue(look: Look, names: dict[str, str]) -> _Page:
    frame = _frame(look, names, "issues")
    key = (frame["repository"]["id"], int(names["number"]))
    statement = "SELECT * FROM items WHERE repository_id = ? AND number = ?"
    found = look.all(statement, *key)
    if not found:
        raise _MissingPage
    row = found[0]
    numbers = closed_numbers(row["body"], row["full_name"]) if row["is_pull"] else []
    closes = [closed for number in numbers for closed in look.all(statement, row["repository_id"], number)]
    mentioning = "SELECT * FROM items WHERE repository_id = ? AND is_pull = 1 AND body LIKE ? ORDER BY number"
    pulls = look.all(mentioning, row["repository_id"], f"%{row['number']}%")
    near = "SELECT items.* FROM dependencies JOIN items ON id = {} WHERE {} = ? ORDER BY dependencies.rowid"
    page = {
        **frame,
        "title": f"{row['title']} · #{row['number']}",
        "issue": row,
        "labels": look.labels(row["id"]),
        "assignees": look.all(
            "SELECT login FROM assignees JOIN users ON users.id = user_id WHERE issue_id = ?", row["id"]
        ),
        "talk": look.all("SELECT * FROM item_comments WHERE issue_id = ? ORDER BY created_at, id", row["id"]),
        "pulls": [each for each in pulls if row["number"] in closed_numbers(each["body"], each["full_name"])],
        "closes": closes,
        "blocked_by": look.all(near.format("blocker_id", "blocked_id"), row["id"]),
        "blocking": look.all(near.format("blocked_id", "blocker_id"), row["id"]),
    }
    pull = look.all("SELECT * FROM pull_items WHERE id = ?", row["id"])
    if not pull:
        return "issue.html", page
    code = _pull_context(look, look.storage.open(frame["name"]), pull[0])
    return "pull.html", {**page, **code, "tab": "pulls"}


def _file(look: Look, names: dict[str, str]) -> _Page:
    frame = _frame(look, names, "")
    bare = look.storage.open(frame["name"])
    commit = bare.commit_id(names["ref"])
    (found,) = bare.objects(f"{commit}:{names['path']}")
    if found is None or found.kind != "blob":
        raise _MissingPage
    lines = None if b"\0" in found.content else found.content.decode(errors="replace").splitlines()[:MOST_ROWS]
    title = f"{names['path']} · {frame['name']}"
    return "file.html", {**frame, "title": title, "path": names["path"], "commit": commit, "lines": lines}


def _frame(look: Look, names: dict[str, str], tab: str) -> dict[str, Any]:
    """Return the common values of a repository's pages. Raises _MissingPage if it does not exist."""
    row = find_repository(look.db, f"{names['owner']}/{names['repo']}")
    if row is None:
        raise _MissingPage
    has_code = "issues.id IN (SELECT issue_id FROM pulls)"
    found = look.all(f"SELECT state, {has_code} FROM issues WHERE repository_id = ?", row["id"])
    counts = Counter(map(tuple, found))
    return {
        "title": row["full_name"],
        "name": row["full_name"],
        "repository": row,
        "tab": tab,
        "counts": {state: counts[state, 0] for state in ("open", "closed")},
        "pull_counts": {state: counts[state, 1] for state in ("open", "closed")},
    }


def _render(look: Look, template: str, context: dict[str, Any], *, status: int) -> Response:
    nonce = secrets.token_urlsafe(16)
    colors = sorted(color for color in look.colors if _HEX.fullmatch(color))
    text = _environment().get_template(template).render(context, nonce=nonce, colors=colors)
    policy = (
        f"default-src 'none'; style-src 'self' 'nonce-{nonce}'; img-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
    }
    return Response(text, status, headers)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("accord_sandbox"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"day": _day, "ink": _ink, "href": _href, "state_word": _state_word}
    environment.filters["markdown"] = lambda text: Markup(markdown_html(text))  # noqa: S704 (markdown_html makes it safe)
    return environment


def _day(seconds: float) -> str:
    date = datetime.fromtimestamp(seconds, UTC)
    return f"{date.day} {date:%b %Y, %H:%M} UTC"


def _ink(color: str) -> str:
    """Return black or white, the one with more contrast to the colour (WCAG's relative luminance)."""
    channels = [int(color[index : index + 2], 16) / 255 for index in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#1b1f24" if luminance > 0.21 else "#ffffff"


def _href(row: Row) -> str:
    """Return the page of an issue row with full_name."""
    return f"/{quote(row['full_name'])}/{'pull' if row['is_pull'] else 'issues'}/{row['number']}"


def _state_word(row: Row) -> str:
    if row["state"] == "open":
        return "open"
    return str(row["state_reason"] or "closed").replace("_", " ")


_REPOSITORY = r"/(?P<owner>[^/]+)/(?P<repo>[^/]+)"
_VIEWS: tuple[tuple[str, Callable[[Look, dict[str, str]], _Page]], ...] = (
    (r"/", _repositories),
    (rf"{_REPOSITORY}(?:/issues)?/?", _list),
    (rf"{_REPOSITORY}/(?:issues|pull)/(?P<number>[0-9]{{1,18}})", _issue),
    (rf"{_REPOSITORY}/(?P<tab>pulls)", _list),
    (rf"{_REPOSITORY}/blob/(?P<ref>[^/]+)/(?P<path>.+)", _file),
)
