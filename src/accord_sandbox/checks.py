"""Check runs and commit statuses, and the outcome of both for a commit.

Docs: https://docs.github.com/rest/checks/runs, …/commits/statuses

Only apps create check runs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel
from accord_sandbox.comments import seconds_of
from accord_sandbox.commits import find_commit
from accord_sandbox.database import insert
from accord_sandbox.responses import ApiResponse, Fields, Refusal, created, invalid, schema_violation
from accord_sandbox.routing import route

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row

CHECK_STATUSES = ("queued", "in_progress", "completed", "waiting", "requested", "pending")
CONCLUSIONS = ("action_required", "cancelled", "failure", "neutral", "success", "skipped", "stale", "timed_out")
MOST_ANNOTATIONS = 50
MOST_TEXT = 65_535
STATUS_STATES = ("error", "failure", "pending", "success")
MOST_STATUSES = 1000
"""Statuses of one context on one commit."""

_LEVELS = ("notice", "warning", "failure")
_PASSED = ("success", "neutral", "skipped")


@route("POST", "check-runs", "checks/runs#create-a-check-run")
def create_check_run(call: Call) -> ApiResponse:
    """Create a check run; a conclusion completes it, and completing it needs a conclusion."""
    call.check_writable()
    if call.user.kind == "user":
        raise Refusal(403, "You must authenticate via a GitHub App.")
    call.require("checks", AccessLevel.WRITE)
    fields = call.fields
    fields.require("name", "head_sha")
    sha = find_commit(call, fields.text("head_sha")).sha
    status, conclusion = fields.choice("status", CHECK_STATUSES), fields.choice("conclusion", CONCLUSIONS)
    if status == "completed" and conclusion is None:
        raise schema_violation('"conclusion" wasn\'t supplied.')
    values: dict[str, Any] = {
        "repository_id": call.repository["id"],
        "app_id": call.user.user_id,
        "head_sha": sha,
        **{name: fields.string(name) for name in ("name", "details_url", "external_id")},
        "status": "completed" if conclusion else status or "queued",
        "conclusion": conclusion,
        "started_at": call.now,
        "completed_at": call.now if conclusion else None,
    }
    for name in ("started_at", "completed_at"):
        if name in fields:
            values[name] = seconds_of(fields.text(name), name, "CheckRun")
    document = call.document.get("output")
    annotations = []
    if document is not None:
        values |= _checked_output(Fields(document))
        annotations = _checked_annotations(document.get("annotations") or [])
    identifier = insert(call.db, "check_runs", values)
    rows = [(identifier, json.dumps(entry)) for entry in annotations]
    call.db.executemany("INSERT INTO annotations VALUES (?, ?)", rows)
    (row,) = call.fetch_all("SELECT * FROM check_runs WHERE id = ?", identifier)
    return created(_check_payload(call, row))


@route("GET", "commits/{ref:path}/check-runs", "checks/runs#list-check-runs-for-a-git-reference")
def list_for_ref(call: Call) -> ApiResponse:
    """List the newest check run of each name and app, or all with ``filter=all``."""
    call.require_read("checks")
    sha = find_commit(call, call.params["ref"]).sha
    rows = _latest_runs(call.db, call.repository["id"], sha)
    if call.query.get("filter") == "all":
        statement = "SELECT * FROM check_runs WHERE repository_id = ? AND head_sha = ? ORDER BY id DESC"
        rows = call.fetch_all(statement, call.repository["id"], sha)
    for key, column in (("check_name", "name"), ("status", "status")):
        rows = [row for row in rows if call.query.get(key) in (None, row[column])]
    return call.list_response(rows, lambda part: [_check_payload(call, row) for row in part], "check_runs")


@route("POST", "statuses/{sha}", "commits/statuses#create-a-commit-status")
def create_status(call: Call) -> ApiResponse:
    """Create a commit status."""
    call.require("statuses", AccessLevel.WRITE)
    call.fields.require("state")
    state = call.fields.choice("state", STATUS_STATES)
    sha = find_commit(call, call.params["sha"]).sha
    context = call.fields.string("context") or "default"
    condition = "statuses WHERE repository_id = ? AND sha = ? AND context = ?"
    if call.count(condition, call.repository["id"], sha, context) >= MOST_STATUSES:
        message = "This SHA and context has reached the maximum number of statuses."
        raise Refusal(422, "Validation Failed", errors=[{"message": message}])
    values = {
        "repository_id": call.repository["id"],
        "creator_id": call.user.user_id,
        "sha": sha,
        "state": state,
        "context": context,
        "description": call.fields.string("description", null=True),
        "target_url": call.fields.string("target_url", null=True),
        "created_at": call.now,
    }
    (row,) = call.fetch_all("SELECT * FROM statuses WHERE id = ?", insert(call.db, "statuses", values))
    return created({**_status_payload(call, row), "creator": payloads.user_by_id(call, row["creator_id"])})


@route("GET", "commits/{ref:path}/status", "commits/statuses#get-the-combined-status-for-a-specific-reference")
def get_combined_status(call: Call) -> ApiResponse:
    """Return the newest status of each context; check runs do not count here."""
    call.require_read("statuses")
    sha = find_commit(call, call.params["ref"]).sha
    rows = _latest_statuses(call.db, call.repository["id"], sha)
    states = {row["state"] for row in rows}
    url = f"{call.repository_url}/commits/{sha}"
    document = {
        "state": "failure" if states & {"error", "failure"} else "success" if states == {"success"} else "pending",
        "sha": sha,
        "total_count": len(rows),
        "statuses": [_status_payload(call, row) for row in call.page.cut(rows)],
        "repository": payloads.repository_summary(call, call.repository),
        "commit_url": url,
        "url": f"{url}/status",
    }
    return ApiResponse(200, document, call.links(len(rows)))


def outcomes(db: Connection, repository_id: int, sha: str) -> dict[str, str]:
    """Return success, failure or pending for each status context and check run."""
    found = {}
    for status in _latest_statuses(db, repository_id, sha):
        found[status["context"]] = "failure" if status["state"] == "error" else status["state"]
    for run in _latest_runs(db, repository_id, sha):
        passed = "success" if run["conclusion"] in _PASSED else "failure"
        found[run["name"]] = passed if run["status"] == "completed" else "pending"
    return found


def combined_outcome(db: Connection, repository_id: int, sha: str) -> str | None:
    """Return the worst outcome, None without any."""
    states = outcomes(db, repository_id, sha).values()
    return next((state for state in ("failure", "pending", "success") if state in states), None)


def _latest_statuses(db: Connection, repository_id: int, sha: str) -> list[Row]:
    return db.execute(
        "SELECT * FROM statuses WHERE id IN (SELECT max(id) FROM statuses WHERE repository_id = ? AND sha = ?"
        " GROUP BY context) ORDER BY id DESC",
        (repository_id, sha),
    ).fetchall()


def _latest_runs(db: Connection, repository_id: int, sha: str) -> list[Row]:
    return db.execute(
        "SELECT * FROM check_runs WHERE id IN (SELECT max(id) FROM check_runs WHERE repository_id = ? AND head_sha = ?"
        " GROUP BY name, app_id) ORDER BY id DESC",
        (repository_id, sha),
    ).fetchall()


def _checked_output(output: Fields) -> dict[str, str | None]:
    output.require("summary")
    texts = {name: output.string(name) for name in ("title", "summary", "text")}
    for name, text in texts.items():
        if text is not None and len(text) > MOST_TEXT:
            raise schema_violation(f"Only {MOST_TEXT} characters are allowed; {len(text)} were supplied in {name}.")
    return texts


def _checked_annotations(entries: Any) -> list[Any]:
    if not isinstance(entries, list) or len(entries) > MOST_ANNOTATIONS:
        raise schema_violation(f"No more than {MOST_ANNOTATIONS} items are allowed in annotations.")
    for entry in entries:
        fields = Fields(entry)
        fields.require("path", "start_line", "end_line", "annotation_level", "message")
        fields.choice("annotation_level", _LEVELS)
        if fields.integer("end_line") < fields.integer("start_line"):
            raise invalid("CheckRun", "annotations", "invalid")
    return entries


def _check_payload(call: Call, row: Row) -> payloads.Payload:
    url, page = f"{call.repository_url}/check-runs/{row['id']}", call.repository_page
    job = call.fetch("SELECT run_id FROM jobs WHERE id = ?", row["id"])
    job_page = f"{page}/actions/runs/{job['run_id']}/job/{row['id']}" if job else None
    return {
        **{name: row[name] for name in ("id", "name", "head_sha", "status", "conclusion")},
        "node_id": payloads.node_id("CR", row["id"]),
        "external_id": row["external_id"] or "",
        "url": url,
        "html_url": f"{page}/runs/{row['id']}",
        "details_url": job_page or row["details_url"],
        "started_at": payloads.timestamp_of(row["started_at"]),
        "completed_at": payloads.timestamp_of(row["completed_at"]),
        "output": {
            **{name: row[name] for name in ("title", "summary", "text")},
            "annotations_count": call.count("annotations WHERE check_run_id = ?", row["id"]),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": row["app_id"]},
        "app": _app_payload(call, row["app_id"]),
        "pull_requests": [],
    }


def _app_payload(call: Call, identifier: int) -> payloads.Payload:
    """Return an ``integration``: the app behind a ``[bot]`` account."""
    (row,) = call.fetch_all("SELECT * FROM users WHERE id = ?", identifier)
    slug, created = row["login"].removesuffix("[bot]"), payloads.timestamp_of(row["created_at"])
    page = f"{call.web}/apps/{slug}"
    return {
        "id": identifier,
        "slug": slug,
        "node_id": payloads.node_id("A", identifier),
        "owner": payloads.user(call, row),
        "name": slug,
        "description": "",
        "external_url": page,
        "html_url": page,
        "created_at": created,
        "updated_at": created,
        "permissions": {},
        "events": [],
    }


def _status_payload(call: Call, row: Row) -> payloads.Payload:
    created = payloads.timestamp_of(row["created_at"])
    return {
        **{name: row[name] for name in ("id", "state", "description", "target_url", "context")},
        "url": f"{call.repository_url}/statuses/{row['sha']}",
        "avatar_url": f"{call.web}/_static/avatar.svg",
        "node_id": payloads.node_id("SC", row["id"]),
        "created_at": created,
        "updated_at": created,
    }
