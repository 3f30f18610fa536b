"""What happened to an issue, kept as GitHub's timeline tells it.

Docs: https://docs.github.com/rest/issues/timeline
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from accord_sandbox import payloads, repository_payloads
from accord_sandbox.answers import ApiResponse
from accord_sandbox.comments import COMMENTS as COMMENTS
from accord_sandbox.database import next_id

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row

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
        "repository": repository_payloads.repository_summary(call, repository),
    }
