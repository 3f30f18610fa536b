"""GraphQL: review threads and hidden comments, which the REST API does not have.

Docs: https://docs.github.com/graphql. Like on GitHub, a refusal is a 200 with ``errors``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Area, Call, Grant, grant_of, route
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
_COMMENT = "PRRC"


class FieldError(Exception):
    """A field without an answer; ``kind`` is GitHub's type of the error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Page:
    """One page of a list, as a connection has it."""

    nodes: Sequence[Row]
    pageInfo: dict[str, Any]  # noqa: N815 (GraphQL's name)
    totalCount: int  # noqa: N815


def _only_reads(document: Any) -> bool:
    """Return whether a request has no mutation; any query with the word counts as one."""
    query = document.get("query") if isinstance(document, dict) else None
    return not (isinstance(query, str) and "mutation" in query)


@route("POST", "/graphql", "graphql", resource="graphql", only_reads=_only_reads)
def answer_query(call: Call) -> ApiResponse:
    """Answer one query or mutation."""
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
    for name, abstract in schema.type_map.items():
        if isinstance(abstract, GraphQLInterfaceType):
            abstract.resolve_type = _TYPES[name]
    return schema


def _resolve_column(source: Any, info: GraphQLResolveInfo[Any]) -> Any:
    return getattr(source, info.field_name) if isinstance(source, Page) else source[info.field_name]


def _actor_type(row: Row, *_: Any) -> str:
    return str(row["type"])


_TYPES: Mapping[str, Any] = {
    "Actor": _actor_type,
    "Minimizable": lambda *_: "PullRequestReviewComment",
    "Node": lambda *_: "PullRequestReviewThread",
}
"""How the type behind an interface is found."""


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
    return _review_comment(info.context, id, _THREAD)


def _review_comment(call: Call, name: str, kind: str) -> Row:
    """Return a comment by its global id, or the first comment of a thread by the thread's."""
    number = _global_number(kind, name)
    row = call.fetch(
        "SELECT review_comments.* FROM review_comments WHERE (? != 'PRRT' OR in_reply_to_id IS NULL) AND id = ?",
        kind,
        number,
    )
    if row is None or not _grant(call, row).may(*_READS):
        raise FieldError("NOT_FOUND", f"Could not resolve to a node with the global id of '{name}'")
    return row


def _global_number(kind: str, name: str) -> int:
    """Return the number in a global id; 0 for an id of another kind."""
    try:
        number = int(name.removeprefix(f"{kind}_kwDO"), 16)
    except ValueError:
        return 0
    return number if payloads.node_id(kind, number) == name else 0


def _grant(call: Call, comment: Row) -> Grant:
    """Return the caller's rights in the repository of a comment."""
    condition = "id = (SELECT repository_id FROM issues WHERE issues.id = ?)"
    (home,) = call.fetch_all(f"SELECT * FROM repositories WHERE {condition}", comment["issue_id"])
    return grant_of(call.db, call.actor, home)


def _may_resolve(call: Call, thread: Row) -> bool:
    """Return whether the caller may resolve a thread: people who may write or opened the pull request, and apps.

    Docs: https://docs.github.com/pull-requests/collaborating-with-pull-requests/reviewing-changes-in-pull-requests/commenting-on-a-pull-request#resolving-conversations
    An app's token needs ``contents: write`` besides ``pull_requests: write`` (reported in github/gh-aw issue 35726).
    """
    grant, actor = _grant(call, thread), call.user
    may_review = grant.may("pull_requests", AccessLevel.WRITE)
    if actor.kind == "installation":
        return may_review and grant.may("contents", AccessLevel.WRITE)
    is_opener = bool(call.count("issues WHERE id = ? AND author_id = ?", thread["issue_id"], actor.user_id))
    return grant.role >= AccessLevel.WRITE or (is_opener and grant.sees) if actor.kind == "user" else may_review


def _require(call: Call, allowed: bool, mutation: str) -> None:
    """Refuse a mutation that the caller may not do, in the words for the kind of token."""
    if allowed:
        return
    integration = call.user.kind == "installation"
    message = f"{call.user.login} does not have the correct permissions to execute `{mutation}`"
    raise FieldError("FORBIDDEN", "Resource not accessible by integration" if integration else message)


def _resolve_thread(_source: None, info: GraphQLResolveInfo[Any], input: Mapping[str, str]) -> dict[str, Any]:  # noqa: A002 (GraphQL's name)
    call: Call = info.context
    thread = _review_comment(call, input["threadId"], _THREAD)
    _require(call, _may_resolve(call, thread), "ResolveReviewThread")
    call.db.execute("INSERT OR IGNORE INTO resolved_threads VALUES (?, ?)", (thread["id"], call.user.user_id))
    return {"thread": thread, "clientMutationId": input.get("clientMutationId")}


def _unresolve_thread(_source: None, info: GraphQLResolveInfo[Any], input: Mapping[str, str]) -> dict[str, Any]:  # noqa: A002 (GraphQL's name)
    call: Call = info.context
    thread = _review_comment(call, input["threadId"], _THREAD)
    _require(call, _may_resolve(call, thread), "UnresolveReviewThread")
    call.db.execute("DELETE FROM resolved_threads WHERE comment_id = ?", (thread["id"],))
    return {"thread": thread, "clientMutationId": input.get("clientMutationId")}


def _minimize_comment(_source: None, info: GraphQLResolveInfo[Any], input: Mapping[str, str]) -> dict[str, Any]:  # noqa: A002 (GraphQL's name)
    """Hide a comment, which takes write access.

    Docs: https://docs.github.com/communities/moderating-comments-and-conversations/managing-disruptive-comments
    """
    call: Call = info.context
    comment = _review_comment(call, input["subjectId"], _COMMENT)
    grant = _grant(call, comment)
    level = AccessLevel.WRITE
    allowed = grant.role >= level if call.user.kind == "user" else grant.may("pull_requests", level)
    _require(call, allowed, "MinimizeComment")
    reason = input["classifier"].lower().replace("_", "-")
    call.db.execute("UPDATE review_comments SET minimized = ? WHERE id = ?", (reason, comment["id"]))
    hidden = _review_comment(call, input["subjectId"], _COMMENT)
    return {"minimizedComment": hidden, "clientMutationId": input.get("clientMutationId")}


_READS: tuple[Area, AccessLevel] = ("pull_requests", AccessLevel.READ)
_SUBMITTED = (
    "SELECT review_comments.* FROM review_comments JOIN reviews ON reviews.id = review_id"
    " WHERE reviews.state != 'PENDING' AND "
)


def _review_threads(
    pull: Row, info: GraphQLResolveInfo[Any], first: int | None = None, after: str | None = None
) -> Page:
    condition = "review_comments.issue_id = ? AND in_reply_to_id IS NULL ORDER BY review_comments.id"
    rows = info.context.fetch_all(_SUBMITTED + condition, pull["id"])
    return page_of("reviewThreads", rows, first, after)


def _comments(thread: Row, info: GraphQLResolveInfo[Any], first: int | None = None, after: str | None = None) -> Page:
    condition = "(review_comments.id = ? OR in_reply_to_id = ?) ORDER BY review_comments.id"
    rows = info.context.fetch_all(_SUBMITTED + condition, thread["id"], thread["id"])
    return page_of("comments", rows, first, after)


def page_of(name: str, rows: Sequence[Row], first: int | None, after: str | None) -> Page:
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
    return Page(part, {"hasNextPage": end < len(rows), "endCursor": cursor}, len(rows))


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


def _resolved_by(thread: Row, info: GraphQLResolveInfo[Any]) -> Row | None:
    """Return the person who resolved a thread; the field has the type User, which a bot is not."""
    statement = "SELECT users.* FROM users JOIN resolved_threads ON users.id = user_id WHERE comment_id = ?"
    row: Row | None = info.context.fetch(statement, thread["id"])
    return None if row is None or row["type"] == "Bot" else row


def _can_resolve(thread: Row, info: GraphQLResolveInfo[Any]) -> bool:
    return not _is_resolved(thread, info) and _may_resolve(info.context, thread)


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
    "Mutation": {
        "minimizeComment": _minimize_comment,
        "resolveReviewThread": _resolve_thread,
        "unresolveReviewThread": _unresolve_thread,
    },
    "Repository": {"pullRequest": _pull_request},
    "PullRequest": {"reviewThreads": _review_threads},
    "PullRequestReviewThread": {
        "id": lambda row, _info: payloads.node_id(_THREAD, row["id"]),
        "isResolved": _is_resolved,
        "originalLine": lambda row, _info: row["original_line"],
        "resolvedBy": _resolved_by,
        "subjectType": lambda row, _info: row["subject_type"].upper(),
        "viewerCanResolve": _can_resolve,
        "isOutdated": lambda row, _info: row["subject_type"] == "line" and row["line"] is None,
        "comments": _comments,
    },
    "PullRequestReviewComment": {
        "id": lambda row, _info: payloads.node_id(_COMMENT, row["id"]),
        "fullDatabaseId": lambda row, _info: str(row["id"]),
        "url": _url,
        "author": _author,
        "isMinimized": lambda row, _info: row["minimized"] is not None,
        "minimizedReason": lambda row, _info: row["minimized"],
        "originalCommit": lambda row, _info: row,
        "pullRequestReview": lambda row, _info: row,
    },
    "Commit": {
        "id": lambda comment, _info: payloads.node_id("C", comment["id"]),
        "oid": lambda comment, _info: comment["original_commit_id"],
    },
    "PullRequestReview": {
        "id": lambda comment, _info: payloads.node_id("PRR", comment["review_id"]),
        "fullDatabaseId": lambda comment, _info: str(comment["review_id"]),
    },
    "Bot": _ACTOR,
    "User": _ACTOR,
}
"""Resolvers by type and field; other fields are columns of their row."""
