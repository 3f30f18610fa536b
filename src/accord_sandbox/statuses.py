"""Commit statuses, and what they come to together.

Docs: https://docs.github.com/rest/commits/statuses
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord_sandbox import check_states, commits, payloads, repository_payloads
from accord_sandbox.access import AccessLevel
from accord_sandbox.answers import ApiResponse, Refusal
from accord_sandbox.database import next_id

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

STATUS_STATES = ("error", "failure", "pending", "success")
MOST_STATUSES = 1000
"""Of one context on one commit."""


def create_status(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/statuses/{sha}."""
    call.require("statuses", AccessLevel.WRITE)
    call.fields.require("state")
    state = call.fields.choice("state", STATUS_STATES)
    sha = commits.find_commit(call, call.params["sha"]).sha
    context = call.fields.string("context") or "default"
    count = call.db.execute(
        "SELECT count(*) FROM statuses WHERE repository_id = ? AND sha = ? AND context = ?",
        (call.repository["id"], sha, context),
    ).fetchone()[0]
    if count >= MOST_STATUSES:
        message = "This SHA and context has reached the maximum number of statuses."
        raise Refusal(422, "Validation Failed", errors=[{"message": message}])
    identifier = next_id(call.db)
    texts = (call.fields.string("description", null=True), call.fields.string("target_url", null=True))
    call.db.execute(
        "INSERT INTO statuses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (identifier, call.repository["id"], call.user.user_id, sha, state, context, *texts, call.now),
    )
    row = call.db.execute("SELECT * FROM statuses WHERE id = ?", (identifier,)).fetchone()
    creator = payloads.people(call, [row["creator_id"]])[row["creator_id"]]
    payload = {**_status_payload(call, row), "creator": creator}
    return ApiResponse(201, payload, {"location": payload["url"]})


def get_combined(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/commits/{ref}/status: the newest of each context; checks do not count here."""
    _ = call.repository
    if not call.grant.may("statuses", AccessLevel.READ):
        raise call.grant.refusal()
    sha = commits.find_commit(call, call.params["ref"]).sha
    rows = check_states.latest_statuses(call.db, call.repository["id"], sha)
    states = {row["state"] for row in rows}
    state = "failure" if states & {"error", "failure"} else "success" if states == {"success"} else "pending"
    url = f"{call.api}/repos/{call.repository['full_name']}/commits/{sha}"
    part = rows[call.page.offset : call.page.offset + call.page.size]
    document = {
        "state": state,
        "sha": sha,
        "total_count": len(rows),
        "statuses": [_status_payload(call, row) for row in part],
        "repository": repository_payloads.repository_summary(call, call.repository),
        "commit_url": url,
        "url": f"{url}/status",
    }
    return ApiResponse(200, document, call.links(len(rows)))


def _status_payload(call: Call, row: Row) -> payloads.Payload:
    moment = payloads.moment(row["created_at"])
    return {
        "url": f"{call.api}/repos/{call.repository['full_name']}/statuses/{row['sha']}",
        "avatar_url": f"{call.web}/_static/avatar.svg",
        "id": row["id"],
        "node_id": payloads.node_id("SC", row["id"]),
        "state": row["state"],
        "description": row["description"],
        "target_url": row["target_url"],
        "context": row["context"],
        "created_at": moment,
        "updated_at": moment,
    }
