"""Workflow runs with the logs of their jobs and their artifacts, and workflows started by hand.

Nothing runs here. Runs and jobs come from the seed, from pull requests (``triggers``) or the control below, which also
sets their results; a workflow started by hand is a run with inputs. GitHub's runner uploads artifacts by its own
protocol; here ``PUT /_sandbox/artifacts/OWNER/NAME/RUN/ARTIFACT`` stores them.
Docs: https://docs.github.com/rest/actions/workflow-runs, …/workflows, …/artifacts
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from accord.core.errors import BrokenContract
from accord.files.yaml import read_yaml
from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, Route
from accord_sandbox.database import Row, SqlConnection, fetch, insert
from accord_sandbox.git_storage import HEADS, WORKFLOWS
from accord_sandbox.responses import ApiResponse, Refusal, not_found, or_404, since_of

RETENTION_DAYS = 90
"""GitHub's default ("Configuring the retention period for GitHub Actions artifacts")."""

RUN_DEFAULTS = {
    "name": "CI",
    "path": ".github/workflows/ci.yml",
    "event": "pull_request",
    "status": "completed",
    "conclusion": None,
    "head_sha": "",
    "head_branch": "",
    "title": "",
}
MOST_INPUTS = 25
_FILTERS = {
    "head_sha": "head_sha = ?",
    "branch": "head_branch = ?",
    "event": "event = ?",
    "status": "? IN (status, conclusion)",
    "actor": "actor_id IN (SELECT id FROM users WHERE login = ?)",
}
_ACTORS = ("actor", "triggering_actor")
_INPUT = re.compile(r"\$\{\{ inputs\.([\w-]+)(?: \|\| [^${}]*)? \}\}")
_NOT_IN_NAME = re.compile(r'["<>|*?:\r\n\\/]')
"""Characters that upload-artifact refuses in a name."""


def save_run(db: SqlConnection, repository_id: int, run_id: int, entry: Mapping[str, Any], now: float) -> None:
    """Store a run, or change a stored one."""
    row = fetch(db, "SELECT * FROM workflow_runs WHERE id = ?", run_id)
    old = RUN_DEFAULTS if row is None else dict(row)
    values = {**old, **{name: entry[name] for name in RUN_DEFAULTS if name in entry}, "repository_id": repository_id}
    db.execute("DELETE FROM workflow_runs WHERE id = ?", (run_id,))
    insert(db, "workflow_runs", {"created_at": now, **values, "id": run_id})


@Route("PUT", "/_sandbox/runs/{owner}/{repo}/{run_id:int}", "", is_open=True)
def put_run(call: Call) -> ApiResponse:
    """Store a run, or change the given fields of a stored one; its unfinished jobs end with it."""
    run_id, entry = call.number("run_id"), call.document or {}
    save_run(call.db, call.repository["id"], run_id, entry, call.now)
    if entry.get("conclusion"):
        call.db.execute(
            "UPDATE check_runs SET status = 'completed', conclusion = ?, completed_at = ?"
            " WHERE status != 'completed' AND run_id = ?",
            (entry["conclusion"], call.now, run_id),
        )
    return ApiResponse(204)


@Route("PUT", "/_sandbox/jobs/{owner}/{repo}/{job_id:int}", "", is_open=True)
def put_job(call: Call) -> ApiResponse:
    """Make a check run a job of the run ``run``, with its log."""
    check = or_404(call.fetch("SELECT id, head_sha FROM check_runs WHERE id = ?", call.number("job_id")))
    run_id, log = int(call.query["run"]), call.content.decode("utf-8", "replace")
    save_run(call.db, call.repository["id"], run_id, {"head_sha": check["head_sha"]}, call.now)
    call.db.execute("UPDATE check_runs SET run_id = ?, log = ? WHERE id = ?", (run_id, log, check["id"]))
    return ApiResponse(204)


@Route("PUT", "/_sandbox/artifacts/{owner}/{repo}/{run_id:int}/{name}", "", is_open=True)
def put_artifact(call: Call) -> ApiResponse:
    """Store an archive; a 409 for a taken name unless it is to be overwritten."""
    key = {"repository_id": call.repository["id"], "run_id": call.number("run_id"), "name": call.params["name"]}
    if _NOT_IN_NAME.search(key["name"]):
        raise Refusal(422, f"The artifact name is not valid: {key['name']}")
    taken = "artifacts WHERE repository_id = ? AND run_id = ? AND name = ?"
    if call.count(taken, *key.values()) and call.query.get("overwrite") != "true":
        raise Refusal(409, "an artifact with this name already exists on the workflow run")
    call.db.execute(f"DELETE FROM {taken}", tuple(key.values()))
    digest = hashlib.sha256(call.content).hexdigest()
    times = {"created_at": call.now, "expires_at": call.now + RETENTION_DAYS * 86400}
    identifier = insert(call.db, "artifacts", {**key, "digest": digest, "content": call.content, **times})
    return ApiResponse(201, {"id": identifier, "digest": f"sha256:{digest}"})


@Route("GET", "actions/runs/{run_id:int}/artifacts", "actions/artifacts#list-workflow-run-artifacts")
def _list_artifacts(call: Call) -> ApiResponse:
    call.require_read("actions")
    conditions = [("repository_id = ?", call.repository["id"]), ("run_id = ?", call.number("run_id"))]
    conditions += [("name = ?", call.query["name"])] if "name" in call.query else []
    columns = "id, run_id, name, digest, length(content) AS size, created_at, expires_at"
    rows = call.select(f"SELECT {columns} FROM artifacts", conditions, "id DESC")
    return call.list_response(rows, lambda row: _artifact_payload(call, row), "artifacts")


@Route("GET", "actions/artifacts/{artifact_id:int}/zip", "actions/artifacts#download-an-artifact")
def download_artifact(call: Call) -> ApiResponse:
    """Redirect to the storage.

    Unlike the list it needs a token, in public repositories too, and a token with permissions needs ``actions: read``
    (reported; the documentation disagrees).
    """
    _ = call.repository
    actor = call.actor
    may = actor is not None and (actor.kind == "user" or actor.permissions.get("actions") in ("read", "write", "admin"))
    if not may:
        raise Refusal(401 if actor is None else 403, "You must have the actions scope to download artifacts.")
    statement = "SELECT id, expires_at FROM artifacts WHERE repository_id = ? AND id = ?"
    row = or_404(call.fetch(statement, call.repository["id"], call.number("artifact_id")))
    if row["expires_at"] <= call.now:
        raise Refusal(410, "Artifact has expired")
    return ApiResponse(302, None, {"location": f"{call.web}/_storage/{row['id']}"})


@Route("GET", "actions/runs/{run_id:int}", "actions/workflow-runs#get-a-workflow-run")
def _get_run(call: Call) -> ApiResponse:
    call.require_read("actions")
    return ApiResponse(200, run_payload(call, find_run(call)))


def find_run(call: Call) -> Row:
    """Return the workflow run of the path."""
    statement = "SELECT * FROM workflow_runs WHERE repository_id = ? AND id = ?"
    return or_404(call.fetch(statement, call.repository["id"], call.number("run_id")))


@Route("GET", "actions/runs", "actions/workflow-runs#list-workflow-runs-for-a-repository")
def list_runs(call: Call) -> ApiResponse:
    """List workflow runs, newest first; ``status`` is a status or a conclusion."""
    return _list_runs(call)


@Route("GET", "actions/workflows/{workflow_id}/runs", "actions/workflow-runs#list-workflow-runs-for-a-workflow")
def list_runs_of_workflow(call: Call) -> ApiResponse:
    """List the runs of a workflow, newest first; ``created`` may be ``>=`` a timestamp."""
    path = f"{WORKFLOWS}{call.params['workflow_id']}"
    if not _file(call, call.repository["default_branch"], path):
        raise not_found()
    created = call.query.get("created", ">=1970-01-01T00:00:00Z")
    if not created.startswith(">="):
        raise Refusal(422, "The sandbox knows `created` with >= only.")
    since = since_of(created.removeprefix(">="))
    return _list_runs(call, ("path = ?", path), ("created_at >= ?", since))


def _list_runs(call: Call, *conditions: tuple[str, Any]) -> ApiResponse:
    call.require_read("actions")
    wanted = [(condition, call.query[name]) for name, condition in _FILTERS.items() if call.query.get(name)]
    found = [("repository_id = ?", call.repository["id"]), *conditions, *wanted]
    rows = call.select("SELECT * FROM workflow_runs", found, "created_at DESC, id DESC")
    return call.list_response(rows, lambda row: run_payload(call, row), "workflow_runs")


@Route("POST", "actions/runs/{run_id:int}/cancel", "actions/workflow-runs#cancel-a-workflow-run")
def _cancel_run(call: Call) -> ApiResponse:
    call.require("actions", AccessLevel.WRITE)
    row = find_run(call)
    if row["status"] == "completed":
        raise Refusal(409, "Cannot cancel a workflow run that is completed.")
    ended = "UPDATE workflow_runs SET status = 'completed', conclusion = 'cancelled' WHERE id = ?"
    call.db.execute(ended, (row["id"],))
    return ApiResponse(202, {})


@Route("GET", "actions/jobs/{job_id:int}/logs", "actions/workflow-jobs#download-job-logs-for-a-workflow-run")
def get_log(call: Call) -> ApiResponse:
    """Redirect to the storage, for any token that may read."""
    call.require_read("actions")
    if call.actor is None:
        raise Refusal(403, "Must have admin rights to Repository.")
    statement = "SELECT id FROM check_runs WHERE repository_id = ? AND id = ? AND run_id IS NOT NULL"
    row = or_404(call.fetch(statement, call.repository["id"], call.number("job_id")))
    return ApiResponse(302, None, {"location": f"{call.web}/_storage/logs/{row['id']}"})


@Route("GET", "/_storage/{id:int}", "", is_open=True)
def _get_archive(call: Call) -> ApiResponse:
    row = or_404(call.fetch("SELECT content FROM artifacts WHERE id = ?", call.number("id")))
    return _storage_response(call, "application/zip", row["content"])


@Route("GET", "/_storage/logs/{id:int}", "", is_open=True)
def _get_stored_log(call: Call) -> ApiResponse:
    row = or_404(call.fetch("SELECT log FROM check_runs WHERE id = ? AND log IS NOT NULL", call.number("id")))
    return _storage_response(call, "text/plain; charset=utf-8", row["log"].encode())


def _storage_response(call: Call, kind: str, content: bytes) -> ApiResponse:
    """Answer like the storage behind GitHub, which refuses a token beside its links. Links here never expire."""
    if call.actor is not None:
        raise Refusal(403, "Server failed to authenticate the request.")
    return ApiResponse(200, headers={"content-type": kind}, content=content)


@Route("POST", "actions/workflows/{workflow_id}/dispatches", "actions/workflows#create-a-workflow-dispatch-event")
def dispatch_workflow(call: Call) -> ApiResponse:
    """Store the start of a workflow, and its run, which waits for a runner forever."""
    call.require("actions", AccessLevel.WRITE)
    ref, names_run = call.fields.value_of("ref"), bool(call.fields.get("return_run_details"))
    if "return_run_details" in call.fields and not call.settings.names_started_runs:
        raise Refusal(422, 'Invalid request.\n\n"return_run_details" is not a permitted key.')
    branch = ref.removeprefix(HEADS)
    path = f"{WORKFLOWS}{call.params['workflow_id']}"
    if not _file(call, call.repository["default_branch"], path):
        raise not_found()
    if call.bare.branch(branch) is None:
        raise Refusal(422, f"No ref found for: {ref}")
    inputs = call.fields.get("inputs", {})
    workflow = read_workflow(_file(call, branch, path))
    _check_inputs(workflow, inputs)
    described = {"path": path, "event": "workflow_dispatch", "status": "queued", "conclusion": None}
    where = {"head_sha": call.bare.branch(branch), "head_branch": branch, "repository_id": call.repository["id"]}
    by = dict.fromkeys(("actor_id", "triggering_actor_id"), call.user.user_id)
    run = {**described, **where, **by, **_names(workflow, inputs), "inputs": json.dumps(inputs), "created_at": call.now}
    run_id = insert(call.db, "workflow_runs", run)
    if not names_run:
        return ApiResponse(204)
    urls = {"run_url": f"{call.repository_url}/actions/runs/{run_id}", "html_url": _run_page(call, run_id)}
    return ApiResponse(200, {"workflow_run_id": run_id, **urls})


def _run_page(call: Call, run_id: int) -> str:
    return f"{call.repository_page}/actions/runs/{run_id}"


def _names(workflow: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the name of a workflow and the title of its run; of expressions, only ``inputs.NAME`` is known."""
    name = str(workflow.get("name") or "")
    title = _INPUT.sub(lambda match: str(inputs.get(match[1], "")), str(workflow.get("run-name") or name))
    return {"name": name, "title": title.strip()}


def read_workflow(content: bytes) -> dict[str, Any]:
    """Return a workflow file; a broken one is empty."""
    try:
        value = read_yaml(content).value
    except BrokenContract:
        return {}
    return value if isinstance(value, dict) else {}


def _file(call: Call, branch: str, path: str) -> bytes:
    (found,) = call.bare.objects(f"{HEADS}{branch}:{path}")
    return found.content if found and found.kind == "blob" else b""


def _check_inputs(workflow: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """Refuse a workflow without the trigger, unknown inputs, and missing required ones."""
    triggers = workflow.get("on")
    if "workflow_dispatch" not in (triggers if isinstance(triggers, dict | list) else [triggers]):
        raise Refusal(422, "Workflow does not have 'workflow_dispatch' trigger")
    trigger = triggers.get("workflow_dispatch") if isinstance(triggers, dict) else None
    described: Mapping[str, Any] = (trigger or {}).get("inputs") or {}
    unknown = sorted(inputs.keys() - described.keys())
    if unknown or len(inputs) > MOST_INPUTS:
        raise Refusal(422, f"Unexpected inputs provided: {json.dumps(unknown)}")
    for name, entry in described.items():
        if (entry or {}).get("required") and "default" not in entry and not inputs.get(name):
            raise Refusal(422, f"Required input '{name}' not provided")


def _artifact_payload(call: Call, row: Row) -> payloads.Payload:
    url = f"{call.repository_url}/actions/artifacts/{row['id']}"
    return {
        **{name: row[name] for name in ("id", "name")},
        "node_id": payloads.node_id("A", row["id"]),
        "size_in_bytes": row["size"],
        "url": url,
        "archive_download_url": f"{url}/zip",
        "expired": row["expires_at"] <= call.now,
        "digest": f"sha256:{row['digest']}",
        **dict.fromkeys(("created_at", "updated_at"), payloads.timestamp_of(row["created_at"])),
        "expires_at": payloads.timestamp_of(row["expires_at"]),
        "workflow_run": {"id": row["run_id"], "repository_id": call.repository["id"]},
    }


def run_payload(call: Call, row: Row) -> payloads.Payload:
    """Return a ``workflow-run``; its pull requests are the open ones with its commit as head."""
    root = call.repository_url
    url = f"{root}/actions/runs/{row['id']}"
    home = payloads.repository_summary(call, call.repository)
    place = {name: home[name] for name in ("id", "url", "name")}
    of_head = "SELECT * FROM pull_items WHERE repository_id = ? AND state = 'open' AND head_sha = ? ORDER BY number"
    pulls = call.fetch_all(of_head, call.repository["id"], row["head_sha"])
    return {
        **{key: row[key] for key in ("id", "name", "path", "event", "status", "conclusion", "head_sha", "head_branch")},
        "node_id": payloads.node_id("WFR", row["id"]),
        "run_number": 1,
        "run_attempt": row["attempt"],
        **{name: payloads.user_by_id(call, row[f"{name}_id"]) for name in _ACTORS if row[f"{name}_id"] is not None},
        "display_title": row["title"] or row["name"],
        "workflow_id": row["id"],
        "url": url,
        "html_url": _run_page(call, row["id"]),
        **dict.fromkeys(("created_at", "updated_at"), payloads.timestamp_of(row["created_at"])),
        "head_commit": None,
        **dict.fromkeys(("repository", "head_repository"), home),
        **{f"{link}_url": f"{url}/{link}" for link in ("jobs", "logs", "cancel", "rerun", "artifacts")},
        "check_suite_url": f"{root}/check-suites/{row['id']}",
        "workflow_url": f"{root}/actions/workflows/{row['id']}",
        "pull_requests": [
            {
                "id": pull["issue_id"],
                "number": pull["number"],
                "url": f"{home['url']}/pulls/{pull['number']}",
                **{
                    end: {"ref": pull[f"{end}_ref"], "sha": pull[f"{end}_sha"], "repo": place}
                    for end in ("head", "base")
                },
            }
            for pull in pulls
        ],
    }
