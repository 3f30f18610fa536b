"""Comments and the timeline of issues and pull requests.

Docs: https://docs.github.com/rest/issues/comments, …/timeline
"""

from __future__ import annotations

import json
from typing import Any

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, Route
from accord_sandbox.database import Row, SqlConnection, insert
from accord_sandbox.responses import ApiResponse, created, invalid, or_404, since_of

BODY_LIMIT = 65_536
_COMMENTS = "SELECT * FROM item_comments"


@Route("GET", "issues/{number:int}/comments", "issues/comments#list-issue-comments")
def _list_comments(call: Call) -> ApiResponse:
    rows = call.fetch_all(f"{_COMMENTS} WHERE issue_id = ? ORDER BY created_at, id", call.issue["id"])
    return call.list_response(rows, lambda row: payloads.comment(call, row))


@Route("GET", "issues/comments", "issues/comments#list-issue-comments-for-a-repository")
def _list_repository_comments(call: Call) -> ApiResponse:
    sort = call.query.get("sort", "")
    column = f"{sort}_at" if sort in ("created", "updated") else "id"
    way = "DESC" if sort and call.query.get("direction", "desc") == "desc" else "ASC"
    since = since_of(call.query.get("since") or "1970-01-01T00:00:00Z")
    where = f"WHERE repository_id = ? AND updated_at >= ? ORDER BY {column} {way}, id"
    rows = call.fetch_all(f"{_COMMENTS} {where}", call.repository["id"], since)
    return call.list_response(rows, lambda row: payloads.comment(call, row))


@Route("POST", "issues/{number:int}/comments", "issues/comments#create-an-issue-comment", creates=True)
def _create_comment(call: Call) -> ApiResponse:
    call.check_writable()
    issue, pull = call.issue, bool(call.issue["is_pull"])
    call.permit(call.grant.may_comment(pull=pull))
    call.check_unlocked(issue, "issues")
    body = _checked_body(call)
    identifier = insert_comment(call.db, issue["id"], call.user.user_id, body, call.now)
    call.touch(issue["id"])
    return created(_payload(call, identifier))


@Route("PATCH", "issues/comments/{comment_id:int}", "issues/comments#update-an-issue-comment")
def _update_comment(call: Call) -> ApiResponse:
    row = _editable_comment(call)
    body = _checked_body(call)
    call.db.execute("UPDATE comments SET body = ?, updated_at = ? WHERE id = ?", (body, call.now, row["id"]))
    return ApiResponse(200, _payload(call, row["id"]))


@Route("DELETE", "issues/comments/{comment_id:int}", "issues/comments#delete-an-issue-comment")
def _delete_comment(call: Call) -> ApiResponse:
    row = _editable_comment(call)
    call.db.execute("DELETE FROM reactions WHERE comment_id = ?", (row["id"],))
    call.db.execute("DELETE FROM comments WHERE id = ?", (row["id"],))
    return ApiResponse(204)


@Route("POST", "issues/comments/{comment_id:int}/reactions", "reactions#create-reaction-for-an-issue-comment")
def react(call: Call) -> ApiResponse:
    """React to a comment; 200 where the account did already."""
    row = _find_comment(call)
    call.permit(call.grant.may_comment(pull=bool(row["is_pull"])))
    key = (row["id"], call.user.user_id, call.fields.choice("content", payloads.REACTIONS, is_required=True))
    find = "SELECT * FROM reactions WHERE comment_id = ? AND user_id = ? AND content = ?"
    known = call.fetch(find, *key)
    if known is None:
        values = dict(zip(("comment_id", "user_id", "content"), key, strict=True))
        insert(call.db, "reactions", {**values, "created_at": call.now})
    (made,) = call.fetch_all(find, *key)
    payload = {
        "id": made["id"],
        "node_id": payloads.node_id("REA", made["id"]),
        "user": payloads.user_by_id(call, made["user_id"]),
        "content": made["content"],
        "created_at": payloads.timestamp_of(made["created_at"]),
    }
    return ApiResponse(201 if known is None else 200, payload)


def insert_comment(db: SqlConnection, issue_id: int, author_id: int, body: str, at: float) -> int:
    """Insert a comment that was checked before, and return its id."""
    times = {"created_at": at, "updated_at": at}
    return insert(db, "comments", {"issue_id": issue_id, "author_id": author_id, "body": body, **times})


def _find_comment(call: Call) -> Row:
    """Return the comment of the path, which is to be changed."""
    call.check_issues()
    key = (call.number("comment_id"), call.repository["id"])
    row = or_404(call.fetch(f"{_COMMENTS} WHERE id = ? AND repository_id = ?", *key))
    call.check_writable()
    return row


def _editable_comment(call: Call) -> Row:
    row = _find_comment(call)
    pull = bool(row["is_pull"])
    own = row["author_id"] == call.user.user_id and call.grant.may_comment(pull=pull)
    call.permit(own or call.grant.may("issues", AccessLevel.WRITE, pull=pull))
    return row


def _payload(call: Call, identifier: int) -> payloads.Payload:
    return payloads.comment(call, call.row("item_comments", identifier))


def _checked_body(call: Call) -> str:
    body: str = call.fields.value_of("body")
    message = "" if body.strip() else "Body cannot be blank"
    if len(body) > BODY_LIMIT:
        message = f"Body is too long (maximum is {BODY_LIMIT} characters)"
    if message:
        raise invalid("IssueComment", "data", "unprocessable", message=message)
    return body


def record_event(call: Call, issue_id: int, event: str, detail: dict[str, Any] | None = None) -> None:
    """Store an event of the caller on the issue's timeline; ``detail`` holds the extra fields of its kind."""
    row = {"issue_id": issue_id, "event": event, "actor_id": call.user.user_id, "created_at": call.now}
    insert(call.db, "events", {**row, "detail": json.dumps(detail or {})})


@Route("GET", "issues/{number:int}/timeline", "issues/timeline#list-timeline-events-for-an-issue")
def _list_timeline(call: Call) -> ApiResponse:
    issue = call.issue
    rows = call.fetch_all("SELECT * FROM events WHERE issue_id = ?", issue["id"])
    entries = [(row["created_at"], row["id"], _event_payload(call, row)) for row in rows]
    for row in call.fetch_all(f"{_COMMENTS} WHERE issue_id = ?", issue["id"]):
        comment = payloads.comment(call, row)
        entries.append((row["created_at"], row["id"], {**comment, "event": "commented", "actor": comment["user"]}))
    entries.sort(key=lambda entry: entry[:2])
    return call.list_response(entries, lambda entry: entry[2])


def _event_payload(call: Call, row: Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "node_id": payloads.node_id("EV", row["id"]),
        "url": f"{call.repository_url}/issues/events/{row['id']}",
        "actor": payloads.user_by_id(call, row["actor_id"]),
        "event": row["event"],
        "commit_id": None,
        "commit_url": None,
        "created_at": payloads.timestamp_of(row["created_at"]),
        "performed_via_github_app": None,
        **json.loads(row["detail"]),
    }
