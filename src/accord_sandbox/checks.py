"""Check runs and their annotations.

Docs: https://docs.github.com/rest/checks/runs

Only apps make check runs; what their limits are is said there too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from accord_sandbox import commits, payloads
from accord_sandbox.calls import AccessLevel
from accord_sandbox.comments import seconds_of
from accord_sandbox.database import next_id
from accord_sandbox.responses import ApiResponse, Fields, Refusal, invalid, not_found, schema_violation

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row


CHECK_STATUSES = ("queued", "in_progress", "completed", "waiting", "requested", "pending")
CONCLUSIONS = (
    "action_required",
    "cancelled",
    "failure",
    "neutral",
    "success",
    "skipped",
    "stale",
    "timed_out",
)
MOST_ANNOTATIONS = 50
"""In one request; more come with further ones."""

MOST_TEXT = 65_535
_LEVELS = ("notice", "warning", "failure")


def create_check_run(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/check-runs."""
    _check_may_write(call)
    for name in ("name", "head_sha"):
        call.fields.require(name)
    sha = call.fields.string("head_sha") or ""
    commits.find_commit(call, sha)
    identifier = next_id(call.db)
    call.db.execute(
        "INSERT INTO check_runs (id, repository_id, app_id, head_sha, name, status, started_at)"
        " VALUES (?, ?, ?, ?, ?, 'queued', ?)",
        (identifier, call.repository["id"], call.user.user_id, sha, call.fields.string("name"), call.now),
    )
    _update_check(call, identifier)
    payload = _check_payload(call, _find_check(call, identifier))
    return ApiResponse(201, payload, {"location": payload["url"]})


def update_check_run(call: Call) -> ApiResponse:
    """PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}, by the app that made it; annotations are added."""
    _check_may_write(call)
    row = _find_check(call, call.identifier("check_run_id"))
    if row["app_id"] != call.user.user_id:
        raise Refusal(403, "Invalid app_id `1` - check run can only be modified by the GitHub App that created it.")
    _update_check(call, row["id"])
    return ApiResponse(200, _check_payload(call, _find_check(call, row["id"])))


def get_check_run(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/check-runs/{check_run_id}."""
    _check_readable(call)
    return ApiResponse(200, _check_payload(call, _find_check(call, call.identifier("check_run_id"))))


def list_annotations(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/check-runs/{check_run_id}/annotations."""
    _check_readable(call)
    row = _find_check(call, call.identifier("check_run_id"))
    found = [_annotation(call, row, json.loads(entry[0])) for entry in _annotations(call, row)]
    part = found[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(200, part, call.links(len(found)))


def list_for_ref(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/commits/{ref}/check-runs: the newest of each name, all with ``filter=all``."""
    _check_readable(call)
    sha = commits.find_commit(call, call.params["ref"]).sha
    rows = latest_runs(call.db, call.repository["id"], sha)
    if call.query.get("filter") == "all":
        rows = call.db.execute(
            "SELECT * FROM check_runs WHERE repository_id = ? AND head_sha = ? ORDER BY id DESC",
            (call.repository["id"], sha),
        ).fetchall()
    for key, column in (("check_name", "name"), ("status", "status")):
        rows = [row for row in rows if call.query.get(key) in (None, row[column])]
    part = rows[call.page.offset : call.page.offset + call.page.size]
    document = {"total_count": len(rows), "check_runs": [_check_payload(call, row) for row in part]}
    return ApiResponse(200, document, call.links(len(rows)))


def _check_may_write(call: Call) -> None:
    call.check_writable()
    if call.user.kind == "user":
        raise Refusal(403, "You must authenticate via a GitHub App.")
    call.require("checks", AccessLevel.WRITE)


def _check_readable(call: Call) -> None:
    _ = call.repository
    if not call.grant.may("checks", AccessLevel.READ):
        raise call.grant.refusal()


def _find_check(call: Call, identifier: int) -> Row:
    row: Row | None = call.db.execute(
        "SELECT * FROM check_runs WHERE id = ? AND repository_id = ?", (identifier, call.repository["id"])
    ).fetchone()
    if row is None:
        raise not_found()
    return row


def _update_check(call: Call, identifier: int) -> None:
    """Write down what the request says; a conclusion completes a run, and completing one needs a conclusion."""
    fields = call.fields
    values: dict[str, Any] = {
        name: fields.string(name) for name in ("name", "details_url", "external_id") if name in fields
    }
    status, conclusion = fields.choice("status", CHECK_STATUSES), fields.choice("conclusion", CONCLUSIONS)
    if status == "completed" and conclusion is None:
        raise schema_violation('"conclusion" wasn\'t supplied.')
    if status is not None:
        values |= {"status": status, "conclusion": None, "completed_at": None}
    if conclusion is not None:
        values |= {"status": "completed", "conclusion": conclusion, "completed_at": call.now}
    for name in ("started_at", "completed_at"):
        if name in fields:
            values[name] = seconds_of(fields.string(name) or "", name, "CheckRun")
    values |= _output(call, identifier)
    for name, value in values.items():
        call.db.execute(f"UPDATE check_runs SET {name} = ? WHERE id = ?", (value, identifier))


def _output(call: Call, identifier: int) -> dict[str, str | None]:
    document = call.document.get("output") if isinstance(call.document, dict) else None
    if document is None:
        return {}
    output = Fields(document)
    output.require("summary")
    texts = {name: output.string(name) for name in ("title", "summary", "text")}
    for name, text in texts.items():
        if text is not None and len(text) > MOST_TEXT:
            raise schema_violation(f"Only {MOST_TEXT} characters are allowed; {len(text)} were supplied in {name}.")
    annotations = document.get("annotations") or []
    if not isinstance(annotations, list) or len(annotations) > MOST_ANNOTATIONS:
        raise schema_violation(f"No more than {MOST_ANNOTATIONS} items are allowed in annotations.")
    for entry in annotations:
        _check_annotation(Fields(entry))
        call.db.execute("INSERT INTO annotations VALUES (?, ?)", (identifier, json.dumps(entry)))
    return texts


def _check_annotation(fields: Fields) -> None:
    for name in ("path", "start_line", "end_line", "annotation_level", "message"):
        fields.require(name)
    fields.choice("annotation_level", _LEVELS)
    if fields.integer("end_line") < fields.integer("start_line"):
        raise invalid("CheckRun", "annotations", "invalid")


def _annotations(call: Call, row: Row) -> list[Row]:
    statement = "SELECT document FROM annotations WHERE check_run_id = ? ORDER BY rowid"
    return call.db.execute(statement, (row["id"],)).fetchall()


def _annotation(call: Call, row: Row, entry: dict[str, Any]) -> dict[str, Any]:
    nothing = dict.fromkeys(("start_column", "end_column", "title", "raw_details"))
    blob = f"{call.web}/{call.repository['full_name']}/blob/{row['head_sha']}/{quote(entry['path'])}"
    return {**nothing, **entry, "blob_href": blob}


def _check_payload(call: Call, row: Row) -> payloads.Payload:
    name = call.repository["full_name"]
    url = f"{call.api}/repos/{name}/check-runs/{row['id']}"
    job = call.db.execute("SELECT run_id FROM jobs WHERE id = ?", (row["id"],)).fetchone()
    page = f"{call.web}/{name}/actions/runs/{job['run_id']}/job/{row['id']}" if job else None
    return {
        "id": row["id"],
        "node_id": payloads.node_id("CR", row["id"]),
        "name": row["name"],
        "head_sha": row["head_sha"],
        "external_id": row["external_id"] or "",
        "url": url,
        "html_url": f"{call.web}/{name}/runs/{row['id']}",
        "details_url": page or row["details_url"],
        "status": row["status"],
        "conclusion": row["conclusion"],
        "started_at": payloads.moment(row["started_at"]),
        "completed_at": payloads.moment(row["completed_at"]),
        "output": {
            "title": row["title"],
            "summary": row["summary"],
            "text": row["text"],
            "annotations_count": len(_annotations(call, row)),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": row["app_id"]},
        "app": _app(call, row["app_id"]),
        "pull_requests": [],
    }


def _app(call: Call, identifier: int) -> payloads.Payload:
    """Return an ``integration``: the app behind an account that ends with [bot]."""
    row = call.db.execute("SELECT * FROM users WHERE id = ?", (identifier,)).fetchone()
    slug, created = row["login"].removesuffix("[bot]"), payloads.moment(row["created_at"])
    return {
        "id": identifier,
        "slug": slug,
        "node_id": payloads.node_id("A", identifier),
        "owner": payloads.user(call, row),
        "name": slug,
        "description": "",
        "external_url": f"{call.web}/apps/{slug}",
        "html_url": f"{call.web}/apps/{slug}",
        "created_at": created,
        "updated_at": created,
        "permissions": {},
        "events": [],
    }


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
    rows = latest_statuses(call.db, call.repository["id"], sha)
    states = {row["state"] for row in rows}
    state = "failure" if states & {"error", "failure"} else "success" if states == {"success"} else "pending"
    url = f"{call.api}/repos/{call.repository['full_name']}/commits/{sha}"
    part = rows[call.page.offset : call.page.offset + call.page.size]
    document = {
        "state": state,
        "sha": sha,
        "total_count": len(rows),
        "statuses": [_status_payload(call, row) for row in part],
        "repository": payloads.repository_summary(call, call.repository),
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


_PASSED = ("success", "neutral", "skipped")


def latest_statuses(db: Connection, repository_id: int, sha: str) -> list[Row]:
    """Return the newest status of each context, newest first."""
    return db.execute(
        "SELECT * FROM statuses WHERE id IN (SELECT max(id) FROM statuses WHERE repository_id = ? AND sha = ?"
        " GROUP BY context) ORDER BY id DESC",
        (repository_id, sha),
    ).fetchall()


def latest_runs(db: Connection, repository_id: int, sha: str) -> list[Row]:
    """Return the newest check run of each name and app, newest first."""
    return db.execute(
        "SELECT * FROM check_runs WHERE id IN (SELECT max(id) FROM check_runs WHERE repository_id = ? AND head_sha = ?"
        " GROUP BY name, app_id) ORDER BY id DESC",
        (repository_id, sha),
    ).fetchall()


def outcomes(db: Connection, repository_id: int, sha: str) -> dict[str, str]:
    """Return success, failure or pending for each context or check."""
    found = {}
    for status in latest_statuses(db, repository_id, sha):
        found[status["context"]] = "failure" if status["state"] == "error" else status["state"]
    for run in latest_runs(db, repository_id, sha):
        passed = "success" if run["conclusion"] in _PASSED else "failure"
        found[run["name"]] = passed if run["status"] == "completed" else "pending"
    return found


def combined_outcome(db: Connection, repository_id: int, sha: str) -> str | None:
    """Return the worst of all, None where there is none."""
    states = outcomes(db, repository_id, sha).values()
    return next((state for state in ("failure", "pending", "success") if state in states), None)
