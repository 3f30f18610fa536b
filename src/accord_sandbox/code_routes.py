"""The operations on branches, commits, files, checks and artifacts."""

from __future__ import annotations

from accord_sandbox import checks, commits, git_data, pulls, repositories, workflow_runs
from accord_sandbox.route import Route

_REPO = "/repos/{owner}/{repo}"
_CHECK = f"{_REPO}/check-runs/{{check_run_id:int}}"
_REFS = f"{_REPO}/git/refs/{{ref:path}}"

ROUTES = (
    Route("GET", f"{_REPO}/branches", repositories.list_branches, "branches/branches#list-branches"),
    Route(
        "GET",
        f"{_REPO}/branches/{{branch:path}}/protection",
        repositories.get_protection,
        "branches/branch-protection#get-branch-protection",
    ),
    Route("GET", f"{_REPO}/branches/{{branch:path}}", repositories.get_branch, "branches/branches#get-a-branch"),
    Route("GET", f"{_REPO}/commits", commits.list_commits, "commits/commits#list-commits"),
    Route(
        "GET",
        f"{_REPO}/commits/{{ref:path}}/pulls",
        pulls.list_of_commit,
        "commits/commits#list-pull-requests-associated-with-a-commit",
    ),
    Route(
        "GET",
        f"{_REPO}/commits/{{ref:path}}/check-runs",
        checks.list_for_ref,
        "checks/runs#list-check-runs-for-a-git-reference",
    ),
    Route(
        "GET",
        f"{_REPO}/commits/{{ref:path}}/status",
        checks.get_combined,
        "commits/statuses#get-the-combined-status-for-a-specific-reference",
    ),
    Route("POST", f"{_REPO}/statuses/{{sha}}", checks.create_status, "commits/statuses#create-a-commit-status"),
    Route("POST", f"{_REPO}/dispatches", repositories.create_event, "repos/repos#create-a-repository-dispatch-event"),
    Route("POST", f"{_REPO}/check-runs", checks.create_check_run, "checks/runs#create-a-check-run"),
    Route("GET", _CHECK, checks.get_check_run, "checks/runs#get-a-check-run"),
    Route("PATCH", _CHECK, checks.update_check_run, "checks/runs#update-a-check-run"),
    Route("GET", f"{_CHECK}/annotations", checks.list_annotations, "checks/runs#list-check-run-annotations"),
    Route("GET", f"{_REPO}/commits/{{ref:path}}", commits.get_commit, "commits/commits#get-a-commit"),
    Route("GET", f"{_REPO}/compare/{{basehead:path}}", commits.compare, "commits/commits#compare-two-commits"),
    Route("GET", f"{_REPO}/contents/{{path:path}}", git_data.get_contents, "repos/contents#get-repository-content"),
    Route(
        "PUT",
        f"{_REPO}/contents/{{path:path}}",
        git_data.put_contents,
        "repos/contents#create-or-update-file-contents",
    ),
    Route("GET", f"{_REPO}/git/ref/{{ref:path}}", git_data.get_ref, "git/refs#get-a-reference"),
    Route(
        "GET", f"{_REPO}/git/matching-refs/{{ref:path}}", git_data.matching_refs, "git/refs#list-matching-references"
    ),
    Route("POST", f"{_REPO}/git/refs", git_data.create_ref, "git/refs#create-a-reference"),
    Route("PATCH", _REFS, git_data.update_ref, "git/refs#update-a-reference"),
    Route("DELETE", _REFS, git_data.delete_ref, "git/refs#delete-a-reference"),
    Route("POST", f"{_REPO}/git/commits", git_data.create_commit, "git/commits#create-a-commit"),
    Route("POST", f"{_REPO}/git/trees", git_data.create_tree, "git/trees#create-a-tree"),
    Route("GET", f"{_REPO}/git/commits/{{sha}}", git_data.get_git_commit, "git/commits#get-a-commit-object"),
    Route("GET", f"{_REPO}/git/trees/{{sha:path}}", git_data.get_tree, "git/trees#get-a-tree"),
    Route(
        "GET",
        f"{_REPO}/actions/runs/{{run_id:int}}/artifacts",
        workflow_runs.list_artifacts,
        "actions/artifacts#list-workflow-run-artifacts",
    ),
    Route(
        "GET",
        f"{_REPO}/actions/runs/{{run_id:int}}",
        workflow_runs.get_run,
        "actions/workflow-runs#get-a-workflow-run",
    ),
    Route(
        "GET",
        f"{_REPO}/actions/jobs/{{job_id:int}}/logs",
        workflow_runs.get_log,
        "actions/workflow-jobs#download-job-logs-for-a-workflow-run",
    ),
    Route(
        "POST",
        f"{_REPO}/actions/workflows/{{workflow_id}}/dispatches",
        workflow_runs.dispatch,
        "actions/workflows#create-a-workflow-dispatch-event",
    ),
    Route(
        "GET",
        f"{_REPO}/actions/artifacts/{{artifact_id:int}}/zip",
        workflow_runs.download_artifact,
        "actions/artifacts#download-an-artifact",
    ),
)
"""In the order in which they are tried."""
