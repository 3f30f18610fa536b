"""Comments on issues and pull requests.

Docs: https://docs.github.com/rest/issues/comments
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel
from accord_sandbox.database import next_id, words
from accord_sandbox.responses import ApiResponse, Refusal, invalid, not_found

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row


BODY_LIMIT = 65_536
COMMENTS = (
    "SELECT comments.*, issues.number, issues.is_pull, issues.repository_id, repositories.full_name FROM comments"
    " JOIN issues ON issues.id = comments.issue_id JOIN repositories ON repositories.id = issues.repository_id"
)


def list_comments(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/issues/{issue_number}/comments, oldest first."""
    return _comment_page(call, "comments.issue_id = ?", call.issue["id"], "comments.created_at, comments.id")


def list_all(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/issues/comments: those of the whole repository, oldest first unless asked."""
    call.check_issues()
    column = "updated_at" if call.query.get("sort") == "updated" else "created_at"
    direction = "DESC" if call.query.get("direction") == "desc" and "sort" in call.query else "ASC"
    order = f"comments.{column} {direction}, comments.id {direction}"
    return _comment_page(call, "issues.repository_id = ?", call.repository["id"], order)


def create_comment(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/issues/{issue_number}/comments."""
    call.check_writable()
    issue, pull = call.issue, bool(call.issue["is_pull"])
    if not call.grant.may_speak(pull=pull):
        raise call.grant.refusal()
    if issue["locked"] and not call.grant.may("issues", AccessLevel.WRITE, pull=pull):
        raise Refusal(403, "Unable to create comment because issue is locked.", docs=call.locked_docs())
    call.fields.require("body")
    body = _checked_comment(call.fields.string("body") or "")
    identifier = insert_comment(call, issue["id"], call.user.user_id, body, call.now)
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (call.now, issue["id"]))
    payload = _comment_payload(call, identifier)
    return ApiResponse(201, payload, {"location": payload["url"]})


def get_comment(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/issues/comments/{comment_id}."""
    return ApiResponse(200, _comment_payload(call, _find_comment(call)["id"]))


def update_comment(call: Call) -> ApiResponse:
    """PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}, by its author or by who may write."""
    row = _editable_comment(call)
    call.fields.require("body")
    body = _checked_comment(call.fields.string("body") or "")
    call.db.execute(
        "UPDATE comments SET body = ?, words = ?, updated_at = ? WHERE id = ?",
        (body, words(body), call.now, row["id"]),
    )
    return ApiResponse(200, _comment_payload(call, row["id"]))


def delete_comment(call: Call) -> ApiResponse:
    """DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}, by its author or by who may write."""
    row = _editable_comment(call)
    call.db.execute("DELETE FROM comments WHERE id = ?", (row["id"],))
    return ApiResponse(204)


def insert_comment(call: Call, issue_id: int, author_id: int, body: str, moment: float) -> int:
    """Insert a comment that was checked before, and return its id."""
    identifier = next_id(call.db)
    call.db.execute(
        "INSERT INTO comments VALUES (?, ?, ?, ?, ?, ?, ?)",
        (identifier, issue_id, author_id, body, words(body), moment, moment),
    )
    return identifier


def since_seconds(call: Call) -> float | None:
    """Return the ``since_seconds`` of a listing in seconds since the epoch; a 422 for what is no moment."""
    text = call.query.get("since")
    return seconds_of(text, "since", "Issue") if text else None


def seconds_of(text: str, name: str, resource: str) -> float:
    """Return a moment in seconds since the epoch; a 422 about the field for what is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise invalid(resource, name, value=text) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _comment_page(call: Call, condition: str, key: int, order: str) -> ApiResponse:
    start = since_seconds(call)
    where = f"WHERE {condition} AND comments.updated_at >= ?"
    keys = (key, start or 0.0)
    total = call.db.execute(
        f"SELECT count(*) FROM comments JOIN issues ON issues.id = comments.issue_id {where}",
        keys,
    ).fetchone()[0]
    part = call.db.execute(
        f"{COMMENTS} {where} ORDER BY {order} LIMIT ? OFFSET ?", (*keys, call.page.size, call.page.offset)
    )
    return ApiResponse(200, payloads.comments(call, part.fetchall()), call.links(total))


def _find_comment(call: Call) -> Row:
    call.check_issues()
    row: Row | None = call.db.execute(
        f"{COMMENTS} WHERE comments.id = ? AND issues.repository_id = ?",
        (call.identifier("comment_id"), call.repository["id"]),
    ).fetchone()
    if row is None:
        raise not_found()
    return row


def _editable_comment(call: Call) -> Row:
    row = _find_comment(call)
    call.check_writable()
    pull = bool(row["is_pull"])
    own = row["author_id"] == call.user.user_id and call.grant.may_speak(pull=pull)
    if not own and not call.grant.may("issues", AccessLevel.WRITE, pull=pull):
        raise call.grant.refusal()
    return row


def _comment_payload(call: Call, identifier: int) -> payloads.Payload:
    rows = call.db.execute(f"{COMMENTS} WHERE comments.id = ?", (identifier,)).fetchall()
    return payloads.comments(call, rows)[0]


def _checked_comment(body: str) -> str:
    if not body.strip():
        raise invalid("IssueComment", "data", "unprocessable", message="Body cannot be blank")
    if len(body) > BODY_LIMIT:
        message = f"Body is too long (maximum is {BODY_LIMIT} characters)"
        raise invalid("IssueComment", "data", "unprocessable", message=message)
    return body


_ISSUE = "issue_id"


def record_event(call: Call, issue_id: int, event: str, detail: dict[str, Any] | None = None) -> None:
    """Keep that the caller did something to the issue; ``detail`` is what this kind of event adds."""
    insert_event(call.db, issue_id, event, call.user.user_id, call.now, detail)


def insert_event(
    db: Connection, issue_id: int, event: str, actor_id: int, now: float, detail: dict[str, Any] | None = None
) -> None:
    """Keep that somebody did something to the issue."""
    db.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
        (next_id(db), issue_id, event, actor_id, json.dumps(detail or {}), now),
    )


def issue_reference(identifier: int) -> dict[str, int]:
    """Return how ``detail`` names an issue; the timeline shows the issue as it is by then."""
    return {_ISSUE: identifier}


def timeline(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/issues/{issue_number}/timeline: events and comments, oldest first."""
    issue_reference = call.issue
    rows = call.db.execute("SELECT * FROM events WHERE issue_id = ? ORDER BY created_at, id", (issue_reference["id"],))
    entries = [(row["created_at"], row["id"], _event_payload(call, row)) for row in rows]
    comments = call.db.execute(f"{COMMENTS} WHERE comments.issue_id = ?", (issue_reference["id"],)).fetchall()
    for row, comment in zip(comments, payloads.comments(call, comments), strict=True):
        entries.append((row["created_at"], row["id"], {**comment, "event": "commented", "actor": comment["user"]}))
    entries.sort(key=lambda entry: entry[:2])
    part = entries[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(200, [entry[2] for entry in part], call.links(len(entries)))


def _event_payload(call: Call, row: Row) -> dict[str, Any]:
    actor = call.db.execute("SELECT * FROM users WHERE id = ?", (row["actor_id"],)).fetchone()
    return {
        "id": row["id"],
        "node_id": payloads.node_id("EV", row["id"]),
        "url": f"{call.api}/repos/{call.repository['full_name']}/issues/events/{row['id']}",
        "actor": payloads.user(call, actor),
        "event": row["event"],
        "commit_id": None,
        "commit_url": None,
        "created_at": payloads.moment(row["created_at"]),
        "performed_via_github_app": None,
        **{name: _resolved_detail(call, value) for name, value in json.loads(row["detail"]).items()},
    }


def _resolved_detail(call: Call, value: Any) -> Any:
    if not isinstance(value, dict) or _ISSUE not in value:
        return value
    row = call.db.execute("SELECT * FROM issues WHERE id = ?", (value[_ISSUE],)).fetchone()
    repository = call.db.execute("SELECT * FROM repositories WHERE id = ?", (row["repository_id"],)).fetchone()
    return {
        "number": row["number"],
        "title": row["title"],
        "state": row["state"],
        "state_reason": row["state_reason"],
        "issue_type": None,
        "repository": payloads.repository_summary(call, repository),
    }
