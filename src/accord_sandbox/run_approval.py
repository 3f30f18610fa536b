"""Listing workflow runs, starting them again, and approving held ones.

GitHub holds runs that GITHUB_TOKEN causes (``triggers``) until someone with write access presses "Approve workflows to
run" on the pull request. Docs: https://docs.github.com/rest/actions/workflow-runs

Verified by reports of 2026: POST …/rerun by a person or another app starts a held run, with the sender as
``triggering_actor``. Assumed, since GitHub asks for a person: GITHUB_TOKEN may send the request, and the new attempt is
held like the first.
"""

from __future__ import annotations

from accord_sandbox.accounts import BOT
from accord_sandbox.calls import AccessLevel, Call, route
from accord_sandbox.database import Connection, Row, fetch
from accord_sandbox.git_storage import BareRepository, GitStorage
from accord_sandbox.responses import ApiResponse, Refusal, not_found
from accord_sandbox.triggers import queue_jobs
from accord_sandbox.workflow_runs import find_run, run_payload

_HELD = "status = 'completed' AND conclusion = 'action_required'"


@route("GET", "actions/runs", "actions/workflow-runs#list-workflow-runs-for-a-repository")
def list_runs(call: Call) -> ApiResponse:
    """List workflow runs, newest first; ``status`` is a status or a conclusion."""
    call.require_read("actions")
    conditions, values = ["repository_id = ?"], [call.repository["id"]]
    for name, condition in _FILTERS.items():
        if call.query.get(name):
            conditions.append(condition)
            values += [call.query[name]] * condition.count("?")
    where = " AND ".join(conditions)
    rows = call.fetch_all(f"SELECT * FROM workflow_runs WHERE {where} ORDER BY created_at DESC, id DESC", *values)
    return call.list_response(rows, lambda row: run_payload(call, row), "workflow_runs")


_FILTERS = {
    "head_sha": "head_sha = ?",
    "branch": "head_branch = ?",
    "event": "event = ?",
    "status": "(status = ? OR conclusion = ?)",
    "actor": "actor_id IN (SELECT id FROM users WHERE login = ?)",
}


@route("POST", "actions/runs/{run_id:int}/rerun", "actions/workflow-runs#re-run-a-workflow")
def rerun(call: Call) -> ApiResponse:
    """Start a finished run again, all its jobs."""
    call.require("actions", AccessLevel.WRITE)
    run = find_run(call)
    if run["status"] != "completed":
        raise Refusal(403, "This workflow is already running")
    statement = "UPDATE workflow_runs SET triggering_actor_id = ?, attempt = attempt + 1 WHERE id = ?"
    call.db.execute(statement, (call.user.user_id, run["id"]))
    is_held_again = run["conclusion"] == "action_required" and call.user.login == BOT
    if not is_held_again:
        _queue(call.db, call.bare, run["id"], call.now)
    return ApiResponse(201, {})


def held_runs(db: Connection, repository_id: int, head_sha: str) -> list[Row]:
    """Return the runs of a commit that wait for approval, oldest first."""
    where = f"repository_id = ? AND head_sha = ? AND {_HELD}"
    return db.execute(f"SELECT * FROM workflow_runs WHERE {where} ORDER BY id", (repository_id, head_sha)).fetchall()


def approve_pull(db: Connection, storage: GitStorage, full_name: str, number: int, now: float) -> None:
    """Approve what is held on an open pull request, as the button on its page does."""
    statement = (
        "SELECT repository_id, head_sha FROM pulls JOIN issues ON issues.id = issue_id"
        " JOIN repositories ON repositories.id = repository_id WHERE full_name = ? AND number = ?"
    )
    pull = fetch(db, f"{statement} AND state = 'open'", full_name, number)
    if pull is None:
        raise not_found()
    for run in held_runs(db, pull["repository_id"], pull["head_sha"]):
        _queue(db, storage.open(full_name), run["id"], now)


def _queue(db: Connection, bare: BareRepository, run_id: int, now: float) -> None:
    db.execute("UPDATE workflow_runs SET status = 'queued', conclusion = NULL WHERE id = ?", (run_id,))
    queue_jobs(db, bare, run_id, now)
