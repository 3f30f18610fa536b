"""Workflow runs, the logs of their jobs, and workflows that are started by hand.

Nothing runs here: runs and jobs come from the seed or from the control, and what is started by hand is written down.
Docs: https://docs.github.com/rest/actions/workflow-runs and …/workflows
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from accord.core.errors import BrokenContract
from accord.files.yaml import read_yaml
from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel
from accord_sandbox.database import next_id
from accord_sandbox.repositories import find_repository
from accord_sandbox.responses import ApiResponse, Refusal, not_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row
    from accord_sandbox.git_storage import BareRepository


ARTIFACT_CONTROL = re.compile(r"/_sandbox/artifacts/(?P<repository>[^/]+/[^/]+)/(?P<run>\d{1,18})/(?P<name>[^/]+)")
ARTIFACT_STORAGE = re.compile(r"/_storage/(?P<id>\d{1,18})")
RETENTION_DAYS = 90
"""GitHub's default ("Configuring the retention period for GitHub Actions artifacts")."""

LINK_SECONDS = 60
"""How long a link to the storage holds ("Download an artifact")."""

_NO_NAME = re.compile(r'["<>|*?:\r\n\\/]')
"""What upload-artifact refuses in a name."""


class Upload(NamedTuple):
    """What the control was given. ``overwrite`` replaces an artifact of that name in that run."""

    repository: str
    run_id: int
    name: str
    content: bytes
    overwrite: bool


def put_artifact(db: Connection, path: str, query: Mapping[str, str], content: bytes, now: float) -> ApiResponse:
    """PUT /_sandbox/artifacts/OWNER/NAME/RUN/ARTIFACT?overwrite=true with the archive, as upload-artifact does."""
    found = ARTIFACT_CONTROL.fullmatch(path)
    if found is None:
        raise not_found()
    is_overwrite = query.get("overwrite") == "true"
    return save_artifact(db, Upload(found["repository"], int(found["run"]), found["name"], content, is_overwrite), now)


def save_artifact(db: Connection, upload: Upload, now: float) -> ApiResponse:
    """Keep an archive. A name is taken once a run: 409 unless it is to be overwritten."""
    repository = find_repository(db, upload.repository)
    if repository is None:
        raise not_found()
    if _NO_NAME.search(upload.name):
        raise Refusal(422, f"The artifact name is not valid: {upload.name}")
    key = (repository["id"], upload.run_id, upload.name)
    if db.execute("SELECT 1 FROM artifacts WHERE repository_id = ? AND run_id = ? AND name = ?", key).fetchone():
        if not upload.overwrite:
            raise Refusal(409, "an artifact with this name already exists on the workflow run")
        db.execute("DELETE FROM artifacts WHERE repository_id = ? AND run_id = ? AND name = ?", key)
    identifier = next_id(db)
    digest = hashlib.sha256(upload.content).hexdigest()
    expires = now + RETENTION_DAYS * 86400
    db.execute(
        "INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (identifier, *key, digest, upload.content, now, expires),
    )
    return ApiResponse(201, {"id": identifier, "digest": f"sha256:{digest}"})


def list_artifacts(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/actions/runs/{run_id}/artifacts, newest first."""
    _ = call.repository
    if not call.grant.may("actions", AccessLevel.READ):
        raise call.grant.refusal()
    where, values = "repository_id = ? AND run_id = ?", [call.repository["id"], call.identifier("run_id")]
    if "name" in call.query:
        where, values = f"{where} AND name = ?", [*values, call.query["name"]]
    order = "ASC" if call.query.get("direction") == "asc" else "DESC"
    total = call.db.execute(f"SELECT count(*) FROM artifacts WHERE {where}", values).fetchone()[0]
    rows = call.db.execute(
        "SELECT id, run_id, name, digest, length(content) AS size, created_at, expires_at FROM artifacts"
        f" WHERE {where} ORDER BY id {order} LIMIT ? OFFSET ?",
        (*values, call.page.size, call.page.offset),
    )
    return ApiResponse(
        200, {"total_count": total, "artifacts": [_artifact_payload(call, row) for row in rows]}, call.links(total)
    )


def download_artifact(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/actions/artifacts/{artifact_id}/zip: a redirect to the storage.

    Unlike the list it needs a token, in public repositories too, and of a token with permissions ``actions: read``
    (reported; the documentation says otherwise).
    """
    _ = call.repository
    actor = call.actor
    may = actor is not None and (actor.kind == "user" or actor.permissions.get("actions") in ("read", "write", "admin"))
    if not may:
        raise Refusal(401 if actor is None else 403, "You must have the actions scope to download artifacts.")
    row = call.db.execute(
        "SELECT id, digest, expires_at FROM artifacts WHERE repository_id = ? AND id = ?",
        (call.repository["id"], call.identifier("artifact_id")),
    ).fetchone()
    if row is None:
        raise not_found()
    if row["expires_at"] <= call.now:
        raise Refusal(410, "Artifact has expired")
    until = int(call.now) + LINK_SECONDS
    return ApiResponse(
        302, None, {"location": f"{call.web}/_storage/{row['id']}?se={until}&sig={_artifact_signature(row, until)}"}
    )


def fetch_artifact(db: Connection, path: str, query: Mapping[str, str], has_token: bool, now: float) -> ApiResponse:
    """Serve an archive as the storage behind GitHub does: by the link alone, refusing whoever sends a token along."""
    found = ARTIFACT_STORAGE.fullmatch(path)
    row = db.execute("SELECT * FROM artifacts WHERE id = ?", (int(found["id"]),)).fetchone() if found else None
    if row is None:
        raise not_found()
    until = query.get("se", "")
    is_link = until.isdecimal() and now < int(until) and query.get("sig") == _artifact_signature(row, int(until))
    if has_token or not is_link:
        raise Refusal(403, "Server failed to authenticate the request.")
    return ApiResponse(200, headers={"content-type": "application/zip"}, content=row["content"])


def _artifact_signature(row: Row, until: int) -> str:
    return hashlib.sha256(f"{row['id']} {row['digest']} {until}".encode()).hexdigest()


def _artifact_payload(call: Call, row: Row) -> payloads.Payload:
    url = f"{call.api}/repos/{call.repository['full_name']}/actions/artifacts/{row['id']}"
    created = payloads.moment(row["created_at"])
    return {
        "id": row["id"],
        "node_id": payloads.node_id("A", row["id"]),
        "name": row["name"],
        "size_in_bytes": row["size"],
        "url": url,
        "archive_download_url": f"{url}/zip",
        "expired": row["expires_at"] <= call.now,
        "digest": f"sha256:{row['digest']}",
        "created_at": created,
        "updated_at": created,
        "expires_at": payloads.moment(row["expires_at"]),
        "workflow_run": {"id": row["run_id"], "repository_id": call.repository["id"]},
    }


RUN_CONTROL = re.compile(r"/_sandbox/(?P<kind>runs|jobs)/(?P<repository>[^/]+/[^/]+)/(?P<id>\d{1,18})")
LOG_STORAGE = re.compile(r"/_storage/logs/(?P<id>\d{1,18})")
RUN_DEFAULTS = {
    "name": "CI",
    "path": ".github/workflows/ci.yml",
    "event": "pull_request",
    "status": "completed",
    "conclusion": None,
    "head_sha": "",
    "head_branch": "",
}
"""What a run is unless somebody says otherwise."""

MOST_INPUTS = 25


def save_run(db: Connection, repository_id: int, run_id: int, entry: Mapping[str, Any], now: float) -> None:
    """Write a run down, or change one that is there."""
    row = db.execute("SELECT * FROM workflow_runs WHERE id = ?", (run_id,)).fetchone()
    old = {name: row[name] for name in RUN_DEFAULTS} if row is not None else RUN_DEFAULTS
    values = {**old, **{name: entry[name] for name in RUN_DEFAULTS if name in entry}}
    db.execute(
        "INSERT OR REPLACE INTO workflow_runs (id, repository_id, created_at, name, path, event, status, conclusion,"
        " head_sha, head_branch) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            run_id,
            repository_id,
            row["created_at"] if row is not None else now,
            *(values[name] for name in RUN_DEFAULTS),
        ),
    )


def save_job(db: Connection, check_run_id: int, run_id: int, log: str | None) -> None:
    """Make a check run a job of a workflow run, with what it printed."""
    db.execute("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?)", (check_run_id, run_id, log))


def put_run(db: Connection, path: str, query: Mapping[str, str], content: bytes, now: float) -> ApiResponse:
    """PUT /_sandbox/runs/OWNER/NAME/RUN with a run's fields as JSON, …/jobs/OWNER/NAME/CHECK_RUN?run=RUN with a log."""
    found = RUN_CONTROL.fullmatch(path)
    repository = find_repository(db, found["repository"]) if found else None
    if found is None or repository is None:
        raise not_found()
    if found["kind"] == "runs":
        save_run(db, repository["id"], int(found["id"]), json.loads(content or b"{}"), now)
    else:
        check = db.execute("SELECT head_sha FROM check_runs WHERE id = ?", (int(found["id"]),)).fetchone()
        if check is None or not query.get("run", "").isdecimal():
            raise not_found()
        save_run(db, repository["id"], int(query["run"]), {"head_sha": check["head_sha"]}, now)
        save_job(db, int(found["id"]), int(query["run"]), content.decode("utf-8", "replace"))
    return ApiResponse(204)


def get_run(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/actions/runs/{run_id}."""
    _readable(call)
    row = call.db.execute(
        "SELECT * FROM workflow_runs WHERE repository_id = ? AND id = ?",
        (call.repository["id"], call.identifier("run_id")),
    ).fetchone()
    if row is None:
        raise not_found()
    return ApiResponse(200, _run_payload(call, row))


def get_log(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/actions/jobs/{job_id}/logs: a redirect to the storage, for any token that may read."""
    _readable(call)
    if call.actor is None:
        raise Refusal(403, "Must have admin rights to Repository.")
    row = call.db.execute(
        "SELECT jobs.* FROM jobs JOIN check_runs USING (id) WHERE repository_id = ? AND jobs.id = ?",
        (call.repository["id"], call.identifier("job_id")),
    ).fetchone()
    if row is None:
        raise not_found()
    until = int(call.now) + LINK_SECONDS
    return ApiResponse(
        302, None, {"location": f"{call.web}/_storage/logs/{row['id']}?se={until}&sig={_log_signature(row, until)}"}
    )


def fetch_log(db: Connection, path: str, query: Mapping[str, str], has_token: bool, now: float) -> ApiResponse:
    """Serve a log by its link alone; 404 for one that is not kept any more."""
    found = LOG_STORAGE.fullmatch(path)
    row = db.execute("SELECT * FROM jobs WHERE id = ?", (int(found["id"]),)).fetchone() if found else None
    if row is None or row["log"] is None:
        raise not_found()
    until = query.get("se", "")
    is_link = until.isdecimal() and now < int(until) and query.get("sig") == _log_signature(row, int(until))
    if has_token or not is_link:
        raise Refusal(403, "Server failed to authenticate the request.")
    return ApiResponse(200, headers={"content-type": "text/plain; charset=utf-8"}, content=row["log"].encode())


def dispatch(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches: written down, since nothing runs here."""
    call.check_writable()
    if not call.grant.may("actions", AccessLevel.WRITE):
        raise call.grant.refusal()
    call.fields.require("ref")
    ref = call.fields.string("ref") or ""
    branch = ref.removeprefix("refs/heads/")
    path = f".github/workflows/{call.params['workflow_id']}"
    if not _file(call.bare, call.repository["default_branch"], path):
        raise not_found()
    if call.bare.branch(branch) is None:
        raise Refusal(422, f"No ref found for: {ref}")
    given = call.document.get("inputs") or {}
    _check_inputs(_file(call.bare, branch, path), given)
    call.db.execute(
        "INSERT INTO dispatches VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            next_id(call.db),
            call.repository["id"],
            call.params["workflow_id"],
            branch,
            json.dumps(given),
            call.user.user_id,
            call.now,
        ),
    )
    return ApiResponse(204)


def _readable(call: Call) -> None:
    _ = call.repository
    if not call.grant.may("actions", AccessLevel.READ):
        raise call.grant.refusal()


def _file(bare: BareRepository, branch: str, path: str) -> bytes:
    code, content, _ = bare.ask("cat-file", "blob", f"refs/heads/{branch}:{path}")
    return b"" if code else content


def _check_inputs(workflow: bytes, given: Mapping[str, Any]) -> None:
    """Refuse what GitHub refuses: no such trigger, inputs that are unknown, required ones that are missing."""
    try:
        document = read_yaml(workflow).value
    except BrokenContract:
        document = None
    triggers = document.get("on") if isinstance(document, dict) else None
    named = triggers if isinstance(triggers, dict | list) else [triggers]
    if "workflow_dispatch" not in named:
        raise Refusal(422, "Workflow does not have 'workflow_dispatch' trigger")
    trigger = triggers.get("workflow_dispatch") if isinstance(triggers, dict) else None
    inputs: Mapping[str, Any] = (trigger or {}).get("inputs") or {}
    unknown = sorted(given.keys() - inputs.keys())
    if unknown or len(given) > MOST_INPUTS:
        raise Refusal(422, f"Unexpected inputs provided: {json.dumps(unknown)}")
    for name, described in inputs.items():
        described = described or {}
        if described.get("required") and "default" not in described and not given.get(name):
            raise Refusal(422, f"Required input '{name}' not provided")


def _log_signature(row: Row, until: int) -> str:
    return hashlib.sha256(f"log {row['id']} {row['run_id']} {until}".encode()).hexdigest()


def _run_payload(call: Call, row: Row) -> payloads.Payload:
    """Return a ``workflow-run``; its pull requests are the open ones whose head it ran for."""
    name = call.repository["full_name"]
    url = f"{call.api}/repos/{name}/actions/runs/{row['id']}"
    home = payloads.repository_summary(call, call.repository)
    links = ("jobs", "logs", "cancel", "rerun", "artifacts")
    return {
        **{key: row[key] for key in ("id", "name", "path", "event", "status", "conclusion", "head_sha", "head_branch")},
        "node_id": payloads.node_id("WFR", row["id"]),
        "run_number": 1,
        "run_attempt": 1,
        "display_title": row["name"],
        "workflow_id": row["id"],
        "url": url,
        "html_url": f"{call.web}/{name}/actions/runs/{row['id']}",
        "created_at": payloads.moment(row["created_at"]),
        "updated_at": payloads.moment(row["created_at"]),
        "head_commit": None,
        "repository": home,
        "head_repository": home,
        **{f"{link}_url": f"{url}/{link}" for link in links},
        "check_suite_url": f"{call.api}/repos/{name}/check-suites/{row['id']}",
        "workflow_url": f"{call.api}/repos/{name}/actions/workflows/{row['id']}",
        "pull_requests": [_pull(call, pull) for pull in _pulls(call, row)],
    }


def _pulls(call: Call, row: Row) -> list[Row]:
    return call.db.execute(
        "SELECT pulls.*, issues.number FROM pulls JOIN issues ON issues.id = issue_id"
        " WHERE repository_id = ? AND state = 'open' AND head_sha = ? ORDER BY number",
        (call.repository["id"], row["head_sha"]),
    ).fetchall()


def _pull(call: Call, pull: Row) -> payloads.Payload:
    url = f"{call.api}/repos/{call.repository['full_name']}"
    home = {
        "id": call.repository["id"],
        "url": url,
        "name": call.repository["full_name"].partition("/")[2],
    }
    return {
        "id": pull["issue_id"],
        "number": pull["number"],
        "url": f"{url}/pulls/{pull['number']}",
        "head": {"ref": pull["head_ref"], "sha": pull["head_sha"], "repo": home},
        "base": {"ref": pull["base_ref"], "sha": pull["base_sha"], "repo": home},
    }
