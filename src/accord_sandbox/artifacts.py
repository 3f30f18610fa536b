"""Artifacts of workflow runs: listed and downloaded as on GitHub, put in by the control of the sandbox.

GitHub's upload speaks a protocol of its own to the runner; here ``PUT /_sandbox/artifacts/OWNER/NAME/RUN/ARTIFACT``
with the archive as its body stands for it. Docs: https://docs.github.com/rest/actions/artifacts
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from accord_sandbox import payloads
from accord_sandbox.access import AccessLevel
from accord_sandbox.answers import ApiResponse, Refusal, not_found
from accord_sandbox.database import next_id
from accord_sandbox.repositories import find_repository

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row

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
    return ApiResponse(200, {"total_count": total, "artifacts": [_artifact_payload(call, row) for row in rows]}, call.links(total))


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
    return ApiResponse(302, None, {"location": f"{call.web}/_storage/{row['id']}?se={until}&sig={_signature(row, until)}"})


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
