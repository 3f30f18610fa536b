"""Workflow runs that pull requests cause when they are opened, updated or reopened.

GitHub reads the workflow files of the merge commit; here those of the head count. ``types`` and the branches of
``pull_request`` are read, its paths are not. Nothing runs: a run stays queued until a control sets its result.

A run caused by GITHUB_TOKEN is held: completed with ``action_required``, without jobs, until a person approves it.
Verified by GitHub's changelog of 2026-06-11 ("Bot-created pull requests can run workflows if approved") and
https://docs.github.com/actions/concepts/security/github_token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal
from urllib.parse import quote

from accord_sandbox.calls import AccessLevel, Call, Route
from accord_sandbox.database import Row, SqlConnection, insert
from accord_sandbox.git_storage import WORKFLOWS, BareRepository, tree_entries
from accord_sandbox.responses import ApiResponse, Refusal, or_404
from accord_sandbox.tokens import BOT
from accord_sandbox.workflow_runs import find_run, read_workflow

Activity = Literal["opened", "synchronize", "reopened"]
ACTIVITIES = ("opened", "synchronize", "reopened")
"""The types that a workflow listens to by default; GitHub holds runs of these alone."""


def start_workflows(call: Call, issue_id: int, activity: Activity) -> None:
    """Create a run of each workflow that listens to what the caller did to a pull request.

    One of a fork has none, and one of the seed without branches.
    """
    pull = call.fetch("SELECT * FROM pulls WHERE issue_id = ?", issue_id)
    is_bot = call.user.login == BOT
    if pull is None or pull["fork_id"] is not None:
        return
    for path, workflow in _workflows(call.bare, pull["head_sha"]):
        if not _listens(workflow, activity, pull["base_ref"]):
            continue
        values = {
            "repository_id": call.repository["id"],
            "name": str(workflow.get("name") or path),
            "path": path,
            "event": "pull_request",
            "status": "completed" if is_bot else "queued",
            "conclusion": "action_required" if is_bot else None,
            "head_sha": pull["head_sha"],
            "head_branch": pull["head_ref"],
            **dict.fromkeys(("actor_id", "triggering_actor_id"), call.user.user_id),
            "created_at": call.now,
        }
        identifier = insert(call.db, "workflow_runs", values)
        if not is_bot:
            queue_jobs(call, identifier)


def queue_jobs(call: Call, run_id: int) -> None:
    """Create a queued check run for each job of a run: by its name, else its key. A matrix is one job here."""
    run = call.row("workflow_runs", run_id)
    (app,) = call.fetch_all("SELECT id FROM users WHERE login = ?", BOT)
    (found,) = call.bare.objects(f"{run['head_sha']}:{run['path']}")
    jobs = read_workflow(found.content if found else b"").get("jobs")
    for key, job in jobs.items() if isinstance(jobs, dict) else ():
        name = job.get("name") if isinstance(job, dict) else None
        check = {
            "repository_id": run["repository_id"],
            "app_id": app["id"],
            "head_sha": run["head_sha"],
            "name": name if isinstance(name, str) and "${{" not in name else str(key),
            "status": "queued",
            "started_at": call.now,
            "run_id": run_id,
        }
        insert(call.db, "check_runs", check)


def _workflows(bare: BareRepository, commit: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the workflow files of a commit; a broken one is an empty mapping."""
    (found,) = bare.objects(f"{commit}:{WORKFLOWS[:-1]}")
    folder = found.content if found and found.kind == "tree" else b""
    names = [name.decode(errors="replace") for _, name, _ in tree_entries(folder)]
    paths = [f"{WORKFLOWS}{name}" for name in names if name.endswith((".yml", ".yaml"))]
    for path, found in zip(paths, bare.objects(*(f"{commit}:{path}" for path in paths)), strict=True):
        yield path, read_workflow(found.content if found else b"")


def _listens(workflow: Mapping[str, Any], activity: Activity, base: str) -> bool:
    """Tell whether a workflow runs for this activity of a pull request into the branch ``base``."""
    triggers = workflow.get("on")
    if not isinstance(triggers, dict):
        return "pull_request" in (triggers if isinstance(triggers, list) else [triggers])
    if "pull_request" not in triggers:
        return False
    trigger = triggers["pull_request"] or {}
    is_for_branch = "branches" not in trigger or _matches(trigger["branches"], base)
    is_excluded = "branches-ignore" in trigger and _matches(trigger["branches-ignore"], base)
    return activity in _as_list(trigger.get("types", ACTIVITIES)) and is_for_branch and not is_excluded


def _matches(patterns: Any, branch: str) -> bool:
    """Tell whether a branch matches; a later pattern with ``!`` takes it out again."""
    found = False
    for pattern in map(str, _as_list(patterns)):
        if fnmatchcase(branch, pattern.removeprefix("!")):
            found = not pattern.startswith("!")
    return found


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def held_runs(db: SqlConnection, repository_id: int, head_sha: str) -> list[Row]:
    """Return the runs of a commit that wait for approval, oldest first."""
    return db.execute(
        "SELECT * FROM workflow_runs WHERE repository_id = ? AND head_sha = ? AND status = 'completed'"
        " AND conclusion = 'action_required' ORDER BY id",
        (repository_id, head_sha),
    ).fetchall()


@Route("POST", "actions/runs/{run_id:int}/rerun", "actions/workflow-runs#re-run-a-workflow")
def _rerun(call: Call) -> ApiResponse:
    call.require("actions", AccessLevel.WRITE)
    row = find_run(call)
    if row["status"] != "completed":
        raise Refusal(403, "This workflow is already running")
    again = "UPDATE workflow_runs SET status = 'queued', conclusion = NULL, attempt = attempt + 1 WHERE id = ?"
    call.db.execute(again, (row["id"],))
    queue_jobs(call, row["id"])
    return ApiResponse(201, {})


_APPROVALS = "/_sandbox/approvals/{owner}/{repo}/{number:int}"


@Route("PUT", _APPROVALS, "", is_open=True)
def approve(call: Call) -> ApiResponse:
    """Approve what is held on an open pull request, as a person does."""
    statement = "SELECT * FROM pull_items WHERE repository_id = ? AND number = ? AND state = 'open'"
    pull = or_404(call.fetch(statement, call.repository["id"], call.number("number")))
    for run in held_runs(call.db, pull["repository_id"], pull["head_sha"]):
        call.db.execute("UPDATE workflow_runs SET status = 'queued', conclusion = NULL WHERE id = ?", (run["id"],))
        queue_jobs(call, run["id"])
    return ApiResponse(204)


@Route("POST", _APPROVALS, "", is_open=True)
def press_approval(call: Call) -> ApiResponse:
    """Approve by the button on the page of the pull request, which is shown again."""
    approve(call)
    page = quote(f"/{call.repository['full_name']}/pull/{call.params['number']}")
    return ApiResponse(303, headers={"location": page})
