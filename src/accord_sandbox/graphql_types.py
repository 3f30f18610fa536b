"""The types that GraphQL is answered from: who asks for a field, and what it is.

Docs: https://docs.github.com/graphql/reference/objects
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, grant
from accord_sandbox.pull_state import PULLS
from accord_sandbox.repositories import find_repository

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from accord_sandbox.calls import Call

MOST_ENTRIES = 100
_CURSOR = "cursor:v2:"


class Node(NamedTuple):
    """An object of a type; ``value`` is what its fields are read from."""

    type: str
    value: Any


class Untold(Exception):
    """A field that cannot be answered; ``kind`` is GitHub's word for why."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Field:
    """A field: how it is found, its type (empty for a value), and the arguments that it takes."""

    resolve: Callable[[Call, Any, Mapping[str, Any]], Any]
    type: str = ""
    arguments: tuple[str, ...] = ()


def _column(name: str) -> Field:
    return Field(lambda _call, row, _given: row[name])


def _repository(call: Call, _: Any, given: Mapping[str, Any]) -> Node:
    name = f"{given.get('owner')}/{given.get('name')}"
    row = find_repository(call.db, name)
    if row is None or not grant(call.db, call.actor, row).sees:
        raise Untold("NOT_FOUND", f"Could not resolve to a Repository with the name '{name}'.")
    return Node("Repository", row)


def _pull(call: Call, row: Any, given: Mapping[str, Any]) -> Node:
    if not grant(call.db, call.actor, row).may("pull_requests", AccessLevel.READ):
        raise Untold("FORBIDDEN", "Resource not accessible by integration")
    number = given.get("number")
    pull = call.db.execute(f"{PULLS} WHERE repository_id = ? AND number = ?", (row["id"], number)).fetchone()
    if pull is None:
        raise Untold("NOT_FOUND", f"Could not resolve to a PullRequest with the number of {number}.")
    return Node("PullRequest", pull)


def _node(call: Call, _: Any, given: Mapping[str, Any]) -> Node:
    row = call.db.execute(
        "SELECT review_comments.*, repository_id FROM review_comments JOIN issues ON issues.id = issue_id"
        " WHERE in_reply_to_id IS NULL AND review_comments.id = ?",
        (_thread_id(str(given.get("id"))),),
    ).fetchone()
    if row is not None:
        home = call.db.execute("SELECT * FROM repositories WHERE id = ?", (row["repository_id"],)).fetchone()
        if grant(call.db, call.actor, home).may("pull_requests", AccessLevel.READ):
            return Node("PullRequestReviewThread", row)
    raise Untold("NOT_FOUND", f"Could not resolve to a node with the global id of '{given.get('id')}'")


def _threads(call: Call, pull: Any, given: Mapping[str, Any]) -> Node:
    rows = call.db.execute(
        "SELECT review_comments.* FROM review_comments JOIN reviews ON reviews.id = review_id"
        " WHERE review_comments.issue_id = ? AND in_reply_to_id IS NULL AND reviews.state != 'PENDING'"
        " ORDER BY review_comments.id",
        (pull["id"],),
    ).fetchall()
    return _connection("reviewThreads", "PullRequestReviewThread", rows, given)


def _comments(call: Call, first: Any, given: Mapping[str, Any]) -> Node:
    rows = call.db.execute(
        "SELECT review_comments.* FROM review_comments JOIN reviews ON reviews.id = review_id"
        " WHERE (review_comments.id = ? OR in_reply_to_id = ?) AND reviews.state != 'PENDING'"
        " ORDER BY review_comments.id",
        (first["id"], first["id"]),
    ).fetchall()
    return _connection("comments", "PullRequestReviewComment", rows, given)


def _connection(name: str, kind: str, rows: Sequence[Any], given: Mapping[str, Any]) -> Node:
    """Cut the part out of a list that is asked for."""
    first = given.get("first")
    if not isinstance(first, int):
        said = f"You must provide a `first` or `last` value to properly paginate the `{name}` connection."
        raise Untold("MISSING_PAGINATION_BOUNDARIES", said)
    if first > MOST_ENTRIES:
        said = f"Requesting {first} records on the `{name}` connection exceeds the `first` limit of 100 records."
        raise Untold("EXCESSIVE_PAGINATION", said)
    start = _position(given.get("after"))
    part = rows[start : start + max(first, 0)]
    end = start + len(part)
    page = {"hasNextPage": end < len(rows), "endCursor": _cursor(end) if part else None}
    value = {"nodes": [Node(kind, row) for row in part], "pageInfo": Node("PageInfo", page), "totalCount": len(rows)}
    return Node(f"{kind}Connection", value)


def _cursor(position: int) -> str:
    return base64.b64encode(f"{_CURSOR}{position}".encode()).decode()


def _position(cursor: Any) -> int:
    if cursor is None:
        return 0
    try:
        text = base64.b64decode(str(cursor)).decode().removeprefix(_CURSOR)
    except (binascii.Error, UnicodeDecodeError):
        text = ""
    if not text.isdecimal():
        raise Untold("INVALID_CURSOR_ARGUMENTS", f"`{cursor}` does not appear to be a valid cursor.")
    return int(text)


def _thread_id(text: str) -> int:
    digits = text.removeprefix("PRRT_kwDO")
    try:
        return int(digits, 16) if digits != text else 0
    except ValueError:
        return 0


def _author(call: Call, row: Any, _: Mapping[str, Any]) -> Node:
    user = call.db.execute("SELECT * FROM users WHERE id = ?", (row["author_id"],)).fetchone()
    return Node("Bot" if user["type"] == "Bot" else "User", user)


def _is_resolved(call: Call, row: Any, _: Mapping[str, Any]) -> bool:
    return call.db.execute("SELECT 1 FROM resolved_threads WHERE comment_id = ?", (row["id"],)).fetchone() is not None


def _is_outdated(_call: Call, row: Any, _: Mapping[str, Any]) -> bool:
    return row["subject_type"] == "line" and row["line"] is None


def _url(call: Call, row: Any, _: Mapping[str, Any]) -> str:
    pull = call.db.execute(f"{PULLS} WHERE issues.id = ?", (row["issue_id"],)).fetchone()
    return f"{call.web}/{pull['full_name']}/pull/{pull['number']}#discussion_r{row['id']}"


_ACTOR = {"login": Field(lambda _call, row, _given: row["login"].removesuffix("[bot]"))}
_PAGES = ("first", "after")

TYPES: Mapping[str, Mapping[str, Field]] = {
    "Query": {
        "repository": Field(_repository, "Repository", ("owner", "name")),
        "node": Field(_node, "Node", ("id",)),
    },
    "Node": {},
    "Repository": {"pullRequest": Field(_pull, "PullRequest", ("number",))},
    "PullRequest": {"reviewThreads": Field(_threads, "PullRequestReviewThreadConnection", _PAGES)},
    "PullRequestReviewThread": {
        "id": Field(lambda _call, row, _given: payloads.node_id("PRRT", row["id"])),
        "path": _column("path"),
        "line": _column("line"),
        "isResolved": Field(_is_resolved),
        "isOutdated": Field(_is_outdated),
        "comments": Field(_comments, "PullRequestReviewCommentConnection", _PAGES),
    },
    "PullRequestReviewComment": {
        "id": Field(lambda _call, row, _given: payloads.node_id("PRRC", row["id"])),
        "fullDatabaseId": Field(lambda _call, row, _given: str(row["id"])),
        "body": _column("body"),
        "url": Field(_url),
        "author": Field(_author, "Actor"),
    },
    "Actor": _ACTOR,
    "User": _ACTOR,
    "Bot": _ACTOR,
    "PageInfo": {"hasNextPage": _column("hasNextPage"), "endCursor": _column("endCursor")},
    **{
        f"{kind}Connection": {
            "nodes": Field(lambda _call, value, _given: value["nodes"], kind),
            "pageInfo": Field(lambda _call, value, _given: value["pageInfo"], "PageInfo"),
            "totalCount": _column("totalCount"),
        }
        for kind in ("PullRequestReviewThread", "PullRequestReviewComment")
    },
}
"""Each type's fields. ``Node`` and ``Actor`` are interfaces, which have what their kinds have in common."""
