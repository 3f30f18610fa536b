"""GraphQL: review threads, hidden comments, and edits of texts, which the REST API does not have.

Docs: https://docs.github.com/graphql. Like on GitHub, a refusal is a 200 with ``errors``.

Types are dictionaries, as graphql-core reads them: ``__typename`` names the type behind an interface, and a field with
arguments is a function of them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from accord.core.clock import parse_timestamp
from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, Grant, Route, grant_of
from accord_sandbox.database import Row, find_repository
from accord_sandbox.payloads import Payload
from accord_sandbox.responses import ApiResponse, Refusal

if TYPE_CHECKING:
    from graphql import DocumentNode, GraphQLError, GraphQLSchema

DOCS = "https://docs.github.com/graphql"
MOST_ENTRIES = 100
_CURSOR = "cursor:v2:"
_THREAD = "PRRT"
_COMMENT = "PRRC"
_NOT_BY_INTEGRATION = "Resource not accessible by integration"
_BY = "JOIN users ON users.id ="
_PUBLIC = "SELECT * FROM public_review_comments WHERE"


class FieldError(Exception):
    """A field without an answer; ``kind`` is GitHub's type of the error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def _only_reads(document: Any) -> bool:
    """Return whether a request has no mutation; any query with the word counts as one."""
    return "mutation" not in str(document.get("query") if isinstance(document, dict) else "")


@Route("POST", "/graphql", "graphql", resource="graphql", only_reads=_only_reads)
def _answer_query(call: Call) -> ApiResponse:
    from graphql import execute  # imported here: most sandboxes get no query

    if call.actor is None:
        raise Refusal(401, "This endpoint requires you to be authenticated.", docs=f"{DOCS}/guides/forming-calls")
    document, errors = _read(call.fields.value_of("query"))
    if errors:
        return ApiResponse(200, {"errors": [_error(error) for error in errors]})
    result = execute(_schema(), document, _root(call), variable_values=call.fields.get("variables", {}))
    assert not hasattr(result, "__await__")  # noqa: S101 (nothing is asynchronous)
    body: dict[str, Any] = {} if result.data is None else {"data": result.data}
    if result.errors:
        body["errors"] = [_error(error) for error in result.errors]
    return ApiResponse(200, body)


@lru_cache(maxsize=64)  # reading a query takes ten times as long as answering it
def _read(text: str) -> tuple[DocumentNode, Sequence[GraphQLError]]:
    """Return a query and why it cannot be answered."""
    from graphql import DocumentNode, GraphQLError, parse, validate

    document = DocumentNode()
    try:
        document = parse(text)
        return document, validate(_schema(), document)
    except GraphQLError as error:
        return document, [error]


def _error(error: GraphQLError) -> dict[str, Any]:
    """Return an error in GitHub's form, with the type of a refusal."""
    kind = {"type": error.original_error.kind} if isinstance(error.original_error, FieldError) else {}
    return {**kind, **error.formatted}


@cache
def _schema() -> GraphQLSchema:
    from graphql import build_schema

    return build_schema((files("accord_sandbox") / "schema.graphql").read_text(encoding="utf-8"))


def _root(call: Call) -> Payload:
    """Return the fields of ``Query`` and ``Mutation``."""
    return {
        "repository": lambda _info, **given: _repository(call, f"{given['owner']}/{given['name']}"),
        "node": lambda _info, **given: _thread(call, _review_comment(call, given["id"], _THREAD)),
        "resolveReviewThread": lambda _info, **given: _change_thread(call, "Resolve", given["input"]),
        "unresolveReviewThread": lambda _info, **given: _change_thread(call, "Unresolve", given["input"]),
        "minimizeComment": lambda _info, **given: _minimize_comment(call, given["input"]),
    }


def _repository(call: Call, full_name: str) -> Payload:
    row = find_repository(call.db, full_name)
    if row is None or not grant_of(call.db, call.actor, row).sees:
        raise FieldError("NOT_FOUND", f"Could not resolve to a Repository with the name '{full_name}'.")
    return {
        "pullRequest": lambda _info, number: _pull_request(call, row, number),
        "issueOrPullRequest": lambda _info, number: _item(call, row, number),
    }


def _item(call: Call, repository: Row, number: int) -> Payload:
    """Return an ``Issue`` or ``PullRequest`` with who wrote and changed its text."""
    row = call.fetch("SELECT * FROM items WHERE repository_id = ? AND number = ?", repository["id"], number)
    kind = "PullRequest" if row and row["is_pull"] else "Issue"
    if row is None:
        message = f"Could not resolve to an issue or pull request with the number of {number}."
        raise FieldError("NOT_FOUND", message)
    if not grant_of(call.db, call.actor, repository).may("issues", AccessLevel.READ, pull=kind == "PullRequest"):
        raise FieldError("FORBIDDEN", _NOT_BY_INTEGRATION)
    statement = f"SELECT * FROM edits {_BY} editor_id WHERE issue_id = ? ORDER BY edits.rowid DESC"
    edits = call.fetch_all(statement, row["id"])
    renamed = f"SELECT events.*, login, type FROM events {_BY} actor_id WHERE issue_id = ? AND event = 'renamed'"
    titles = call.fetch_all(renamed, row["id"])
    author = call.row("users", row["author_id"])
    created = payloads.timestamp_of(row["created_at"])
    shown = [{"editedAt": payloads.timestamp_of(edit["edited_at"]), "editor": _actor(edit)} for edit in edits]
    shown += [{"editedAt": created, "editor": _actor(author)}] if edits else []  # GitHub lists the first text, too

    def timeline(_info: object, since: str | None = None, **page: Any) -> Payload:
        page.pop("itemTypes", None)  # there is one
        later = [event for event in titles if not since or event["created_at"] >= parse_timestamp(since).timestamp()]
        return _page("timelineItems", later, _renamed_event, **page)

    return {
        "__typename": kind,
        "author": _actor(author),
        "createdAt": created,
        "editor": shown[0]["editor"] if edits else None,
        "lastEditedAt": shown[0]["editedAt"] if edits else None,
        "userContentEdits": lambda _info, **page: _page("userContentEdits", shown, dict, **page),
        "timelineItems": timeline,
        **(_pull_request(call, repository, number) if row["is_pull"] else {}),
    }


def _renamed_event(event: Row) -> Payload:
    change = json.loads(event["detail"])["rename"]
    return {
        "__typename": "RenamedTitleEvent",
        "actor": _actor(event),
        "createdAt": payloads.timestamp_of(event["created_at"]),
        "currentTitle": change["to"],
        "previousTitle": change["from"],
    }


def _pull_request(call: Call, repository: Row, number: int) -> Payload:
    if not grant_of(call.db, call.actor, repository).may("pull_requests", AccessLevel.READ):
        raise FieldError("FORBIDDEN", _NOT_BY_INTEGRATION)
    pull = call.fetch("SELECT * FROM pull_items WHERE repository_id = ? AND number = ?", repository["id"], number)
    if pull is None:
        raise FieldError("NOT_FOUND", f"Could not resolve to a PullRequest with the number of {number}.")
    rows = call.fetch_all(f"{_PUBLIC} issue_id = ? AND in_reply_to_id IS NULL ORDER BY id", pull["id"])
    return {"reviewThreads": lambda _info, **page: _page("reviewThreads", rows, lambda row: _thread(call, row), **page)}


def _thread(call: Call, row: Row) -> Payload:
    """Return a ``PullRequestReviewThread`` by its first comment; only a ``User``, no bot, has resolved one."""
    rows = call.fetch_all(f"{_PUBLIC} ? IN (id, in_reply_to_id) ORDER BY id", row["id"])
    resolver = call.fetch("SELECT * FROM users WHERE id = ?", row["resolver_id"])
    return {
        "__typename": "PullRequestReviewThread",
        "id": payloads.node_id(_THREAD, row["id"]),
        "path": row["path"],
        "line": row["line"],
        "originalLine": row["original_line"],
        "subjectType": row["subject_type"].upper(),
        "isOutdated": row["subject_type"] == "line" and row["line"] is None,
        "isResolved": resolver is not None,
        "resolvedBy": None if resolver is None or resolver["type"] == "Bot" else _actor(resolver),
        "viewerCanResolve": resolver is None and _may_resolve(call, row),
        "comments": lambda _info, **page: _page("comments", rows, lambda found: _comment(call, found), **page),
    }


def _comment(call: Call, row: Row) -> Payload:
    """Return a ``PullRequestReviewComment``."""
    pull = call.row("items", row["issue_id"])
    return {
        "__typename": "PullRequestReviewComment",
        "id": payloads.node_id(_COMMENT, row["id"]),
        "fullDatabaseId": str(row["id"]),
        "url": f"{call.web}/{pull['full_name']}/pull/{pull['number']}#discussion_r{row['id']}",
        "body": row["body"],
        "author": _actor(call.row("users", row["author_id"])),
        "isMinimized": row["minimized"] is not None,
        "minimizedReason": row["minimized"],
        "originalCommit": {"oid": row["original_commit_id"]},
        "pullRequestReview": {"fullDatabaseId": str(row["review_id"])},
    }


def _actor(row: Row) -> Payload:
    return {"__typename": row["type"], "login": row["login"].removesuffix("[bot]")}


def _page(
    name: str,
    rows: Sequence[Any],
    payload: Callable[[Any], Payload],
    first: int | None = None,
    after: str | None = None,
) -> Payload:
    """Return the requested page of a list, as a connection."""
    if first is None or first > MOST_ENTRIES:
        raise FieldError("EXCESSIVE_PAGINATION", f"The `{name}` connection needs a `first` of at most 100 records.")
    start = 0 if after is None else int(base64.b64decode(after).decode().removeprefix(_CURSOR))
    nodes = [payload(row) for row in rows[start : start + first]]
    end = start + len(nodes)
    cursor = base64.b64encode(f"{_CURSOR}{end}".encode()).decode() if nodes else None
    page = {"hasNextPage": end < len(rows), "endCursor": cursor}
    return {"nodes": nodes, "pageInfo": page, "totalCount": len(rows)}


def _review_comment(call: Call, name: str, kind: str) -> Row:
    """Return a comment by its global id, or the first comment of a thread by the thread's."""
    _, _, digits = name.partition(f"{kind}_kwDO")
    number = int(digits, 16) if re.fullmatch(r"[0-9a-f]{1,12}", digits) else 0  # 0 for an id of another kind
    condition = "(? != 'PRRT' OR in_reply_to_id IS NULL) AND id = ?"
    row = call.fetch(f"SELECT * FROM review_comments WHERE {condition}", kind, number)
    if row is None or not _grant(call, row).may("pull_requests", AccessLevel.READ):
        raise FieldError("NOT_FOUND", f"Could not resolve to a node with the global id of '{name}'")
    return row


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
    if not allowed:
        message = f"{call.user.login} does not have the correct permissions to execute `{mutation}`"
        raise FieldError("FORBIDDEN", _NOT_BY_INTEGRATION if call.user.kind == "installation" else message)


def _change_thread(call: Call, change: str, given: Mapping[str, str]) -> Payload:
    """Resolve or unresolve a thread; the first to resolve it counts."""
    row = _review_comment(call, given["threadId"], _THREAD)
    _require(call, _may_resolve(call, row), f"{change}ReviewThread")
    resolver = (row["resolver_id"] or call.user.user_id) if change == "Resolve" else None
    call.db.execute("UPDATE review_comments SET resolver_id = ? WHERE id = ?", (resolver, row["id"]))
    row = _review_comment(call, given["threadId"], _THREAD)
    return {"thread": _thread(call, row), "clientMutationId": given.get("clientMutationId")}


def _minimize_comment(call: Call, given: Mapping[str, str]) -> Payload:
    """Hide a comment, which takes write access.

    Docs: https://docs.github.com/communities/moderating-comments-and-conversations/managing-disruptive-comments
    """
    row = _review_comment(call, given["subjectId"], _COMMENT)
    grant, level = _grant(call, row), AccessLevel.WRITE
    allowed = grant.role >= level if call.user.kind == "user" else grant.may("pull_requests", level)
    _require(call, allowed, "MinimizeComment")
    reason = given["classifier"].lower().replace("_", "-")
    call.db.execute("UPDATE review_comments SET minimized = ? WHERE id = ?", (reason, row["id"]))
    hidden = _review_comment(call, given["subjectId"], _COMMENT)
    return {"minimizedComment": _comment(call, hidden), "clientMutationId": given.get("clientMutationId")}
