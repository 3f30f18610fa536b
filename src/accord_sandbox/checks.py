"""Check runs and commit statuses, and the outcome of both for a commit.

Docs: https://docs.github.com/rest/checks/runs, …/commits/statuses

Only apps create check runs.
"""

from __future__ import annotations

from typing import Any

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, route
from accord_sandbox.commits import find_commit
from accord_sandbox.database import Row, SqlConnection, insert
from accord_sandbox.responses import ApiResponse, Fields, Refusal, created, schema_violation

CHECK_STATUSES = ("queued", "in_progress", "completed", "waiting", "requested", "pending")
CONCLUSIONS = ("action_required", "cancelled", "failure", "neutral", "success", "skipped", "stale", "timed_out")
SHOWN_CONCLUSIONS = (*CONCLUSIONS, "startup_failure")
"""The conclusions that GitHub's API shows; the last one is GitHub's own (GraphQL API, "CheckConclusionState")."""

MOST_TEXT = 65_535
STATUS_STATES = ("error", "failure", "pending", "success")

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
    if "output" in fields:
        output = Fields(call.document["output"])
        output.require("summary")
        values |= {name: output.string(name) for name in ("title", "summary", "text")}
        if over := next((name for name in ("summary", "text") if len(values[name] or "") > MOST_TEXT), ""):
            raise schema_violation(f"Only {MOST_TEXT} characters are allowed; more were supplied in {over}.")
    (row,) = call.fetch_all("SELECT * FROM check_runs WHERE id = ?", insert(call.db, "check_runs", values))
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
    rows = [row for row in rows if call.query.get("check_name") in (None, row["name"])]
    return call.list_response(rows, lambda row: _check_payload(call, row), "check_runs")


@route("POST", "statuses/{sha}", "commits/statuses#create-a-commit-status")
def _create_status(call: Call) -> ApiResponse:
    call.require("statuses", AccessLevel.WRITE)
    call.fields.require("state")
    state = call.fields.choice("state", STATUS_STATES)
    sha = find_commit(call, call.params["sha"]).sha
    context = call.fields.string("context") or "default"
    texts = {name: call.fields.string(name, null=True) for name in ("description", "target_url")}
    values = {"sha": sha, "state": state, "context": context, **texts, "created_at": call.now}
    values |= {"repository_id": call.repository["id"], "creator_id": call.user.user_id}
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


def outcomes(db: SqlConnection, repository_id: int, sha: str) -> dict[str, str]:
    """Return success, failure or pending for each status context and check run."""
    statuses = _latest_statuses(db, repository_id, sha)
    found = {row["context"]: "failure" if row["state"] == "error" else row["state"] for row in statuses}
    for run in _latest_runs(db, repository_id, sha):
        passed = "success" if run["conclusion"] in _PASSED else "failure"
        found[run["name"]] = passed if run["status"] == "completed" else "pending"
    return found


def _latest_statuses(db: SqlConnection, repository_id: int, sha: str) -> list[Row]:
    return _latest(db, "statuses WHERE repository_id = ? AND sha = ? GROUP BY context", repository_id, sha)


def _latest_runs(db: SqlConnection, repository_id: int, sha: str) -> list[Row]:
    return _latest(db, "check_runs WHERE repository_id = ? AND head_sha = ? GROUP BY name, app_id", repository_id, sha)


def _latest(db: SqlConnection, groups: str, *values: Any) -> list[Row]:
    """Return the newest row of each group, the newest first."""
    table = groups.partition(" ")[0]
    statement = f"SELECT * FROM {table} WHERE id IN (SELECT max(id) FROM {groups}) ORDER BY id DESC"
    return db.execute(statement, values).fetchall()


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
            "annotations_count": 0,
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
        "node_id": payloads.node_id("A", identifier),
        "owner": payloads.user(call, row),
        **dict.fromkeys(("slug", "name"), slug),
        **dict.fromkeys(("external_url", "html_url"), page),
        **dict.fromkeys(("created_at", "updated_at"), created),
        "description": "",
        "permissions": {},
        "events": [],
    }


def _status_payload(call: Call, row: Row) -> payloads.Payload:
    return {
        **{name: row[name] for name in ("id", "state", "description", "target_url", "context")},
        "url": f"{call.repository_url}/statuses/{row['sha']}",
        "avatar_url": f"{call.web}/_static/avatar.svg",
        "node_id": payloads.node_id("SC", row["id"]),
        **dict.fromkeys(("created_at", "updated_at"), payloads.timestamp_of(row["created_at"])),
    }
