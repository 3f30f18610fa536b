"""Pages of the local GitHub: plain HTML without scripts or anything from other hosts. One button approves workflows."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from accord_sandbox import page_parts
from accord_sandbox.database import Row, SqlConnection, find_repository
from accord_sandbox.git_storage import GitStorage
from accord_sandbox.page_parts import MOST_ROWS, Look, markdown_html

PER_PAGE = 50
_STATIC = {"style.css": "text/css; charset=utf-8", "avatar.svg": "image/svg+xml"}
_HEX = re.compile(r"[0-9a-f]{6}")


def respond(db: SqlConnection, storage: GitStorage, path: str, query: Mapping[str, str]) -> Response:
    """Return the page of a path, or a 404 page."""
    if path.startswith("/_static/"):
        return _static(path.removeprefix("/_static/"))
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


def _issues(look: Look, names: dict[str, str]) -> _Page:
    return _list(look, _frame(look, names, "issues"))


def _pulls(look: Look, names: dict[str, str]) -> _Page:
    frame = _frame(look, names, "pulls")
    return _list(look, {**frame, "title": f"Pull requests · {frame['name']}"})


def _list(look: Look, frame: dict[str, Any]) -> _Page:
    """Return the page with the items of a tab, newest first; one of the seed without branches is among the issues."""
    state, number, is_code = look.state, look.query.get("page", "1"), frame["tab"] == "pulls"
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
    items = [
        {"row": row, "labels": look.labels(row["id"]), "mark": page_parts.pull_mark(row) if is_code else ""}
        for row in rows
    ]
    shown = {"items": items, "shown": counts, "page": page, "pages": max(1, -(-counts[state] // PER_PAGE))}
    return "list.html", {**frame, **shown, "state": state}


def _issue(look: Look, names: dict[str, str]) -> _Page:
    frame = _frame(look, names, "issues")
    key = (frame["repository"]["id"], int(names["number"]))
    found = look.all("SELECT * FROM items WHERE repository_id = ? AND number = ?", *key)
    if not found:
        raise _MissingPage
    row = found[0]
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
        "pulls": page_parts.closing_pulls(look, row["repository_id"], row["number"]),
        "closes": page_parts.closed_issues(look, row) if row["is_pull"] else [],
        "blocked_by": look.all(near.format("blocker_id", "blocked_id"), row["id"]),
        "blocking": look.all(near.format("blocked_id", "blocker_id"), row["id"]),
    }
    pull = look.all("SELECT * FROM pull_items WHERE id = ?", row["id"])
    if not pull:
        return "issue.html", page
    code = page_parts.pull_context(look, look.storage.open(frame["name"]), pull[0])
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


def _static(name: str) -> Response:
    if name not in _STATIC:
        return Response(status_code=404)
    content = (files("accord_sandbox") / "static" / name).read_bytes()
    return Response(content, headers={"content-type": _STATIC[name], "cache-control": "max-age=60"})


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
    environment.filters["markdown"] = lambda text: Markup(markdown_html(text))  # noqa: S704 (page_parts makes it safe)
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
    (rf"{_REPOSITORY}(?:/issues)?/?", _issues),
    (rf"{_REPOSITORY}/(?:issues|pull)/(?P<number>[0-9]{{1,18}})", _issue),
    (rf"{_REPOSITORY}/pulls", _pulls),
    (rf"{_REPOSITORY}/blob/(?P<ref>[^/]+)/(?P<path>.+)", _file),
)
