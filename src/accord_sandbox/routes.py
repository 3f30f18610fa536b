"""Which path is answered by which function: issues here, code and pull requests in tables of their own."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from starlette.routing import compile_path

from accord_sandbox import (
    code_routes,
    comments,
    graphql,
    issues,
    labels,
    pull_routes,
    rates,
    repositories,
    search,
)
from accord_sandbox.route import Route

if TYPE_CHECKING:
    from collections.abc import Mapping

_REPO = "/repos/{owner}/{repo}"
_ISSUE = f"{_REPO}/issues/{{number:int}}"
_COMMENT = f"{_REPO}/issues/comments/{{comment_id:int}}"
_BLOCKED_BY = f"{_ISSUE}/dependencies/blocked_by"

ROUTES = (
    Route("GET", "/rate_limit", rates.get_rate_limit, "rate-limit/rate-limit#get-rate-limit-status", resource=""),
    Route("POST", "/graphql", graphql.answer, "graphql", resource="graphql", asks=True),
    Route("GET", "/user", repositories.get_user, "users/users#get-the-authenticated-user"),
    Route("POST", "/user/repos", repositories.create_repository, "repos/repos#create-a-repository", creates=True),
    Route("GET", "/search/issues", search.search_issues, "search/search#search-issues", resource="search"),
    Route("GET", _REPO, repositories.get_repository, "repos/repos#get-a-repository"),
    Route(
        "GET",
        f"{_REPO}/collaborators/{{username}}/permission",
        repositories.get_permission,
        "collaborators/collaborators#get-repository-permissions-for-a-user",
    ),
    Route("GET", f"{_REPO}/issues", issues.list_issues, "issues/issues#list-repository-issues"),
    Route("POST", f"{_REPO}/issues", issues.create_issue, "issues/issues#create-an-issue", creates=True),
    Route("GET", f"{_REPO}/issues/comments", comments.list_all, "issues/comments#list-issue-comments-for-a-repository"),
    Route("GET", _COMMENT, comments.get_comment, "issues/comments#get-an-issue-comment"),
    Route("PATCH", _COMMENT, comments.update_comment, "issues/comments#update-an-issue-comment"),
    Route("DELETE", _COMMENT, comments.delete_comment, "issues/comments#delete-an-issue-comment"),
    Route("GET", _ISSUE, issues.get_issue, "issues/issues#get-an-issue"),
    Route("PATCH", _ISSUE, issues.update_issue, "issues/issues#update-an-issue"),
    Route("PUT", f"{_ISSUE}/lock", issues.lock_issue, "issues/issues#lock-an-issue"),
    Route("DELETE", f"{_ISSUE}/lock", issues.unlock_issue, "issues/issues#unlock-an-issue"),
    Route("POST", f"{_ISSUE}/assignees", issues.add_assignees, "issues/assignees#add-assignees-to-an-issue"),
    Route("DELETE", f"{_ISSUE}/assignees", issues.remove_assignees, "issues/assignees#remove-assignees-from-an-issue"),
    Route("GET", f"{_ISSUE}/timeline", comments.timeline, "issues/timeline#list-timeline-events-for-an-issue"),
    Route("GET", f"{_ISSUE}/comments", comments.list_comments, "issues/comments#list-issue-comments"),
    Route(
        "POST", f"{_ISSUE}/comments", comments.create_comment, "issues/comments#create-an-issue-comment", creates=True
    ),
    Route("GET", f"{_ISSUE}/labels", labels.list_on_issue, "issues/labels#list-labels-for-an-issue"),
    Route("POST", f"{_ISSUE}/labels", labels.add_to_issue, "issues/labels#add-labels-to-an-issue"),
    Route("PUT", f"{_ISSUE}/labels", labels.set_on_issue, "issues/labels#set-labels-for-an-issue"),
    Route("DELETE", f"{_ISSUE}/labels", labels.clear_issue, "issues/labels#remove-all-labels-from-an-issue"),
    Route(
        "DELETE",
        f"{_ISSUE}/labels/{{name:path}}",
        labels.remove_from_issue,
        "issues/labels#remove-a-label-from-an-issue",
    ),
    Route("GET", _BLOCKED_BY, issues.list_blocked_by, "issues/issue-dependencies#list-dependencies"),
    Route("POST", _BLOCKED_BY, issues.add_blocked_by, "issues/issue-dependencies#add-a-dependency"),
    Route(
        "DELETE",
        f"{_BLOCKED_BY}/{{issue_id:int}}",
        issues.remove_blocked_by,
        "issues/issue-dependencies#remove-dependency",
    ),
    Route(
        "GET",
        f"{_ISSUE}/dependencies/blocking",
        issues.list_blocking,
        "issues/issue-dependencies#list-dependencies-blocking",
    ),
    Route("GET", f"{_REPO}/labels", labels.list_labels, "issues/labels#list-labels-for-a-repository"),
    Route("POST", f"{_REPO}/labels", labels.create_label, "issues/labels#create-a-label"),
    Route("GET", f"{_REPO}/labels/{{name:path}}", labels.get_label, "issues/labels#get-a-label"),
    Route("PATCH", f"{_REPO}/labels/{{name:path}}", labels.update_label, "issues/labels#update-a-label"),
    Route("DELETE", f"{_REPO}/labels/{{name:path}}", labels.delete_label, "issues/labels#delete-a-label"),
    *code_routes.ROUTES,
    *pull_routes.ROUTES,
)
"""In the order in which they are tried."""


def match(method: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
    """Return the operation for a decoded path and what its braces stand for, or None."""
    for pattern, route in _compiled().get(method, ()):
        found = pattern.match(path)
        if found is not None:
            return route, found.groupdict()
    return None


@cache
def _compiled() -> dict[str, list[tuple[re.Pattern[str], Route]]]:
    table: dict[str, list[tuple[re.Pattern[str], Route]]] = {}
    for route in ROUTES:
        table.setdefault(route.method, []).append((compile_path(route.path)[0], route))
    return table
