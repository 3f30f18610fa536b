"""The operations on pull requests and their reviews."""

from __future__ import annotations

from accord.sandbox import merges, pulls
from accord.sandbox.route import Route

_REPO = "/repos/{owner}/{repo}"
_PULL = f"{_REPO}/pulls/{{number:int}}"
_REVIEWERS = f"{_PULL}/requested_reviewers"
_ASKING = "pulls/review-requests#"

ROUTES = (
    Route("GET", f"{_REPO}/pulls", pulls.list_pulls, "pulls/pulls#list-pull-requests"),
    Route("POST", f"{_REPO}/pulls", pulls.create_pull, "pulls/pulls#create-a-pull-request", creates=True),
    Route("GET", _PULL, pulls.get_pull, "pulls/pulls#get-a-pull-request"),
    Route("PATCH", _PULL, pulls.update_pull, "pulls/pulls#update-a-pull-request"),
    Route("GET", f"{_PULL}/files", pulls.list_files, "pulls/pulls#list-pull-requests-files"),
    Route("GET", f"{_PULL}/commits", pulls.list_commits, "pulls/pulls#list-commits-on-a-pull-request"),
    Route("GET", f"{_PULL}/merge", merges.get_merged, "pulls/pulls#check-if-a-pull-request-has-been-merged"),
    Route("PUT", f"{_PULL}/merge", merges.merge_pull, "pulls/pulls#merge-a-pull-request"),
    Route("GET", _REVIEWERS, pulls.list_reviewers, f"{_ASKING}get-all-requested-reviewers-for-a-pull-request"),
    Route(
        "POST",
        _REVIEWERS,
        pulls.request_reviewers,
        f"{_ASKING}request-reviewers-for-a-pull-request",
        creates=True,
    ),
    Route("DELETE", _REVIEWERS, pulls.remove_reviewers, f"{_ASKING}remove-requested-reviewers-from-a-pull-request"),
)
"""In the order in which they are tried."""
