"""GraphQL: review threads, which the REST API does not have.

Docs: https://docs.github.com/graphql. Like on GitHub, a refusal is a 200 with ``errors``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, grant_of, route
from accord_sandbox.database import Row
from accord_sandbox.pull_state import PULLS
from accord_sandbox.repositories import find_repository
from accord_sandbox.responses import ApiResponse, Refusal

if TYPE_CHECKING:
    from graphql import GraphQLError, GraphQLResolveInfo, GraphQLSchema

DOCS = "https://docs.github.com/graphql"
MOST_ENTRIES = 100
MOST_TOKENS = 5000
_CURSOR = "cursor:v2:"
_THREAD = "PRRT"


class FieldError(Exception):
    """A field without an answer; ``kind`` is GitHub's type of the error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class _Connection:
    """One page of a list."""

    nodes: Sequence[Row]
    pageInfo: dict[str, Any]  # noqa: N815 (GraphQL's name)
    totalCount: int  # noqa: N815


@route("POST", "/graphql", "graphql", resource="graphql", only_reads=True)
def answer_query(call: Call) -> ApiResponse:
    """Answer one query."""
    from graphql import GraphQLError, execute, parse, validate  # imported here: most sandboxes get no query

    if call.actor is None:
        raise Refusal(401, "This endpoint requires you to be authenticated.", docs=f"{DOCS}/guides/forming-calls")
    text = call.fields.text("query")
    variables = call.document.get("variables")
    try:
        document = parse(text, max_tokens=MOST_TOKENS)
        errors = validate(_schema(), document)
    except GraphQLError as error:
        errors = [error]
    except RecursionError:
        errors = [GraphQLError("Query is nested too deeply")]
    if errors:
        return ApiResponse(200, {"errors": [_error(error) for error in errors]})
    result = execute(
        _schema(),
        document,
        context_value=call,
        variable_values=variables if isinstance(variables, dict) else {},
        field_resolver=_resolve_column,
    )
    assert not hasattr(result, "__await__")  # noqa: S101 (no resolver is asynchronous)
    body: dict[str, Any] = {} if result.data is None else {"data": result.data}
    if result.errors:
        body["errors"] = [_error(error) for error in result.errors]
    return ApiResponse(200, body)


def _error(error: GraphQLError) -> dict[str, Any]:
    """Return an error in GitHub's form, with the type of a refusal."""
    kind = {"type": error.original_error.kind} if isinstance(error.original_error, FieldError) else {}
    return {**kind, **error.formatted}


@cache
def _schema() -> GraphQLSchema:
    from graphql import GraphQLInterfaceType, GraphQLObjectType, build_schema

    schema = build_schema((files("accord_sandbox") / "schema.graphql").read_text(encoding="utf-8"))
    for owner, resolvers in _RESOLVERS.items():
        kind = schema.type_map[owner]
        assert isinstance(kind, GraphQLObjectType)  # noqa: S101 (the schema above says so)
        for name, resolver in resolvers.items():
            kind.fields[name].resolve = resolver
    for owner, type_of in (("Actor", _actor_type), ("Node", lambda *_: "PullRequestReviewThread")):
        interface = schema.type_map[owner]
        assert isinstance(interface, GraphQLInterfaceType)  # noqa: S101
        interface.resolve_type = type_of
    return schema


def _resolve_column(source: Any, info: GraphQLResolveInfo[Any]) -> Any:
    return getattr(source, info.field_name) if isinstance(source, _Connection) else source[info.field_name]


def _actor_type(row: Row, *_: Any) -> str:
    return "Bot" if row["type"] == "Bot" else "User"


def _repository(_source: None, info: GraphQLResolveInfo[Any], owner: str, name: str) -> Row:
    call: Call = info.context
    row = find_repository(call.db, f"{owner}/{name}")
    if row is None or not grant_of(call.db, call.actor, row).sees:
        raise FieldError("NOT_FOUND", f"Could not resolve to a Repository with the name '{owner}/{name}'.")
    return row


def _pull_request(repository: Row, info: GraphQLResolveInfo[Any], number: int) -> Row:
    call: Call = info.context
    if not grant_of(call.db, call.actor, repository).may("pull_requests", AccessLevel.READ):
        raise FieldError("FORBIDDEN", "Resource not accessible by integration")
    pull = call.fetch(f"{PULLS} WHERE repository_id = ? AND number = ?", repository["id"], number)
    if pull is None:
        raise FieldError("NOT_FOUND", f"Could not resolve to a PullRequest with the number of {number}.")
    return pull


def _node(_source: None, info: GraphQLResolveInfo[Any], id: str) -> Row:  # noqa: A002 (GraphQL's name)
    call: Call = info.context
    try:
        number = int(id.removeprefix(f"{_THREAD}_kwDO"), 16)
    except ValueError:
        number = 0
    row = call.fetch(
        "SELECT review_comments.*, repository_id FROM review_comments JOIN issues ON issues.id = issue_id"
        " WHERE in_reply_to_id IS NULL AND review_comments.id = ?",
        number,
    )
    home = row and call.fetch("SELECT * FROM repositories WHERE id = ?", row["repository_id"])
    if row is None or home is None or payloads.node_id(_THREAD, number) != id:
        raise FieldError("NOT_FOUND", f"Could not resolve to a node with the global id of '{id}'")
    if not grant_of(call.db, call.actor, home).may("pull_requests", AccessLevel.READ):
        raise FieldError("NOT_FOUND", f"Could not resolve to a node with the global id of '{id}'")
    return row


_SUBMITTED = (
    "SELECT review_comments.* FROM review_comments JOIN reviews ON reviews.id = review_id"
    " WHERE reviews.state != 'PENDING' AND "
)


def _review_threads(
    pull: Row, info: GraphQLResolveInfo[Any], first: int | None = None, after: str | None = None
) -> _Connection:
    condition = "review_comments.issue_id = ? AND in_reply_to_id IS NULL ORDER BY review_comments.id"
    rows = info.context.fetch_all(_SUBMITTED + condition, pull["id"])
    return _page_of("reviewThreads", rows, first, after)


def _comments(
    thread: Row, info: GraphQLResolveInfo[Any], first: int | None = None, after: str | None = None
) -> _Connection:
    condition = "(review_comments.id = ? OR in_reply_to_id = ?) ORDER BY review_comments.id"
    rows = info.context.fetch_all(_SUBMITTED + condition, thread["id"], thread["id"])
    return _page_of("comments", rows, first, after)


def _page_of(name: str, rows: Sequence[Row], first: int | None, after: str | None) -> _Connection:
    """Return the requested page of a list."""
    if first is None:
        message = f"You must provide a `first` or `last` value to properly paginate the `{name}` connection."
        raise FieldError("MISSING_PAGINATION_BOUNDARIES", message)
    if first > MOST_ENTRIES:
        message = f"Requesting {first} records on the `{name}` connection exceeds the `first` limit of 100 records."
        raise FieldError("EXCESSIVE_PAGINATION", message)
    start = 0 if after is None else _position(after)
    part = rows[start : start + max(first, 0)]
    end = start + len(part)
    cursor = base64.b64encode(f"{_CURSOR}{end}".encode()).decode() if part else None
    return _Connection(part, {"hasNextPage": end < len(rows), "endCursor": cursor}, len(rows))


def _position(cursor: str) -> int:
    try:
        text = base64.b64decode(cursor).decode().removeprefix(_CURSOR)
    except (binascii.Error, UnicodeDecodeError):
        text = ""
    if not text.isdecimal():
        raise FieldError("INVALID_CURSOR_ARGUMENTS", f"`{cursor}` does not appear to be a valid cursor.")
    return int(text)


def _author(comment: Row, info: GraphQLResolveInfo[Any]) -> Row | None:
    row: Row | None = info.context.fetch("SELECT * FROM users WHERE id = ?", comment["author_id"])
    return row


def _is_resolved(thread: Row, info: GraphQLResolveInfo[Any]) -> bool:
    return bool(info.context.count("resolved_threads WHERE comment_id = ?", thread["id"]))


def _url(comment: Row, info: GraphQLResolveInfo[Any]) -> str:
    call: Call = info.context
    (pull,) = call.fetch_all(f"{PULLS} WHERE issues.id = ?", comment["issue_id"])
    return f"{call.web}/{pull['full_name']}/pull/{pull['number']}#discussion_r{comment['id']}"


_ACTOR = {
    "id": lambda row, _info: payloads.node_id("U", row["id"]),
    "login": lambda row, _info: row["login"].removesuffix("[bot]"),
}
_RESOLVERS: dict[str, dict[str, Any]] = {
    "Query": {"repository": _repository, "node": _node},
    "Repository": {"pullRequest": _pull_request},
    "PullRequest": {"reviewThreads": _review_threads},
    "PullRequestReviewThread": {
        "id": lambda row, _info: payloads.node_id(_THREAD, row["id"]),
        "isResolved": _is_resolved,
        "isOutdated": lambda row, _info: row["subject_type"] == "line" and row["line"] is None,
        "comments": _comments,
    },
    "PullRequestReviewComment": {
        "id": lambda row, _info: payloads.node_id("PRRC", row["id"]),
        "fullDatabaseId": lambda row, _info: str(row["id"]),
        "url": _url,
        "author": _author,
    },
    "Bot": _ACTOR,
    "User": _ACTOR,
}
"""Resolvers by type and field; other fields are columns of their row."""
