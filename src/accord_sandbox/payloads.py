"""Rows as the JSON that GitHub sends. Shapes: GitHub's OpenAPI description (tests/data/github-openapi.json)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from accord.core.clock import timestamp
from accord_sandbox.calls import AccessLevel, Call, role_of
from accord_sandbox.database import Row

Payload = dict[str, Any]

LABELS_OF_ISSUE = "SELECT labels.* FROM issue_labels JOIN labels ON labels.id = label_id WHERE issue_id = ?"


def _links(table: str) -> dict[str, str]:
    return {f"{name}_url": f"/{path}" for name, path in (entry.split("=") for entry in table.split())}


_USER_LINKS = _links("""
events=events{/privacy} followers=followers following=following{/other_user} gists=gists{/gist_id} organizations=orgs
received_events=received_events repos=repos starred=starred{/owner}{/repo} subscriptions=subscriptions
""")
_REPOSITORY_LINKS = _links("""
archive={archive_format}{/ref} assignees=assignees{/user} blobs=git/blobs{/sha} branches=branches{/branch}
collaborators=collaborators{/collaborator} comments=comments{/number} commits=commits{/sha}
compare=compare/{base}...{head} contents=contents/{+path} contributors=contributors deployments=deployments
downloads=downloads events=events forks=forks git_commits=git/commits{/sha} git_refs=git/refs{/sha}
git_tags=git/tags{/sha} hooks=hooks issue_comment=issues/comments{/number} issue_events=issues/events{/number}
issues=issues{/number} keys=keys{/key_id} labels=labels{/name} languages=languages merges=merges
milestones=milestones{/number} notifications=notifications{?since,all,participating} pulls=pulls{/number}
releases=releases{/id} stargazers=stargazers statuses=statuses/{sha} subscribers=subscribers subscription=subscription
tags=tags teams=teams trees=git/trees{/sha}
""")
REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
_FLAGS_OFF = ("disabled", "has_projects", "has_wiki", "has_pages", "has_discussions", "has_downloads", "is_template")
_COUNTS = ("forks", "forks_count", "network_count", "size", "stargazers_count", "subscribers_count", "watchers")
_REPOSITORY_CONSTANTS: Payload = {
    **dict.fromkeys(("homepage", "language", "license", "mirror_url")),
    **dict.fromkeys(_FLAGS_OFF, False),
    **dict.fromkeys((*_COUNTS, "watchers_count"), 0),
    "topics": [],
    "allow_forking": True,
}


def timestamp_of(seconds: float | None) -> str | None:
    """Return seconds since the epoch as a timestamp."""
    return None if seconds is None else timestamp(datetime.fromtimestamp(seconds, UTC))


def node_id(kind: str, identifier: int) -> str:
    """Return an opaque GraphQL identifier."""
    return f"{kind}_kwDO{identifier:x}"


def user(call: Call, row: Row | Mapping[str, Any]) -> Payload:
    """Return a ``simple-user``; the row has id, login and type."""
    return dict(_user(call.api, call.web, row["id"], row["login"], row["type"]))


@lru_cache(maxsize=1024)
def _user(api: str, web: str, identifier: int, login: str, kind: str) -> Payload:
    url = f"{api}/users/{quote(login)}"
    page = f"{web}/apps/{login.removesuffix('[bot]')}" if kind == "Bot" else f"{web}/{login}"
    return {
        "login": login,
        "id": identifier,
        "node_id": node_id("U", identifier),
        "avatar_url": f"{web}/_static/avatar.svg",
        "gravatar_id": "",
        "url": url,
        "html_url": page,
        **{name: url + suffix for name, suffix in _USER_LINKS.items()},
        "type": kind,
        "user_view_type": "public",
        "site_admin": False,
    }


def user_by_id(call: Call, identifier: int) -> Payload:
    """Return one ``simple-user``."""
    return user(call, call.row("users", identifier))


def association(call: Call, repository_id: int, user_id: int) -> str:
    """Return the ``author_association`` of a user with a repository."""
    row = call.row("repositories", repository_id)
    if row["owner_id"] == user_id:
        return "OWNER"
    return "COLLABORATOR" if role_of(call.db, user_id, row) > AccessLevel.READ else "NONE"


def label(call: Call, row: Row, full_name: str) -> Payload:
    """Return a ``label``."""
    return {
        **{name: row[name] for name in ("id", "name", "color", "description")},
        "node_id": node_id("LA", row["id"]),
        "url": f"{call.api}/repos/{full_name}/labels/{_quoted_name(row['name'])}",
        "default": bool(row["is_default"]),
    }


@lru_cache(maxsize=1024)
def _quoted_name(name: str) -> str:
    return quote(name, safe="")


def comment(call: Call, row: Row) -> Payload:
    """Return an ``issue-comment``; the row has its issue's number, is_pull and repository too."""
    repository = f"{call.api}/repos/{row['full_name']}"
    url = f"{repository}/issues/comments/{row['id']}"
    kind = "pull" if row["is_pull"] else "issues"
    return {
        "url": url,
        "html_url": f"{call.web}/{row['full_name']}/{kind}/{row['number']}#issuecomment-{row['id']}",
        "issue_url": f"{repository}/issues/{row['number']}",
        "id": row["id"],
        "node_id": node_id("IC", row["id"]),
        "user": user_by_id(call, row["author_id"]),
        **{key: timestamp_of(row[key]) for key in ("created_at", "updated_at")},
        "body": row["body"],
        "author_association": association(call, row["repository_id"], row["author_id"]),
        "reactions": reactions(url, _counts(call, row["id"])),
        "performed_via_github_app": None,
    }


def _counts(call: Call, comment_id: int) -> dict[str, int]:
    counted = "SELECT content, count(*) AS number FROM reactions WHERE comment_id = ? GROUP BY content"
    return {row["content"]: row["number"] for row in call.fetch_all(counted, comment_id)}


ISSUE_TYPES = ("Task", "Bug", "Feature")
"""The types that a new organisation has."""


def _structure(call: Call, identifier: int) -> Payload:
    """Return the fields of an ``issue`` about its parent and its sub-issues."""
    found: Payload = {}
    below = "sub_issues JOIN issues ON issues.id = child_id WHERE parent_id = ?"
    total = call.count(below, identifier) if call.settings.native_sub_issues else 0
    done = call.count(f"{below} AND state = 'closed'", identifier) if total else 0
    percent = done * 100 // total if total else 0
    found["sub_issues_summary"] = {"total": total, "completed": done, "percent_completed": percent}
    above = "SELECT number, full_name FROM sub_issues JOIN items ON items.id = parent_id WHERE child_id = ?"
    parent = call.fetch(above, identifier)
    if parent and call.settings.native_sub_issues:
        found["parent_issue_url"] = f"{call.api}/repos/{parent['full_name']}/issues/{parent['number']}"
    return found


def milestone(call: Call, row: Row, home: str) -> Payload:
    """Return a ``milestone`` with the counts of its issues."""
    number, key = row["number"], row["id"]
    below = "issues WHERE milestone_id = ? AND state ="
    return {
        "url": f"{call.api}/repos/{home}/milestones/{number}",
        "html_url": f"{call.web}/{home}/milestone/{number}",
        "labels_url": f"{call.api}/repos/{home}/milestones/{number}/labels",
        **{field: row[field] for field in ("id", "number", "title", "description", "state")},
        "node_id": node_id("MI", key),
        "creator": user_by_id(call, row["creator_id"]),
        "open_issues": call.count(f"{below} 'open'", key),
        "closed_issues": call.count(f"{below} 'closed'", key),
        **{field: timestamp_of(row["created_at"]) for field in ("created_at", "updated_at")},
        "closed_at": None,
        "due_on": None,
    }


def issue_type(name: str) -> Payload:
    """Return an ``issue-type`` of an organisation."""
    number = ISSUE_TYPES.index(name) + 1
    return {"id": number, "node_id": f"IT_{number}", "name": name, "description": None}


def issue_by_id(call: Call, identifier: int) -> Payload:
    """Return the current ``issue`` of a database id, with ``closed_by``, which GitHub leaves out of lists."""
    row = call.row("issues", identifier)
    closer = row["closed_by_id"]
    return {**issue(call, row), "closed_by": user_by_id(call, closer) if closer else None}


def issue(call: Call, row: Row) -> Payload:
    """Return an ``issue`` with its labels, assignees and counts."""
    key = row["id"]
    name = call.row("repositories", row["repository_id"])["full_name"]
    url = f"{call.api}/repos/{name}/issues/{row['number']}"
    labels = call.fetch_all(f"{LABELS_OF_ISSUE} ORDER BY issue_labels.rowid", key)
    people = call.fetch_all("SELECT users.* FROM assignees JOIN users ON users.id = user_id WHERE issue_id = ?", key)
    assignees = [user(call, person) for person in people]
    stage = call.fetch("SELECT * FROM milestones WHERE id = ?", row["milestone_id"])
    payload = {
        "url": url,
        "repository_url": f"{call.api}/repos/{name}",
        "labels_url": f"{url}/labels{{/name}}",
        **{f"{part}_url": f"{url}/{part}" for part in ("comments", "events", "timeline")},
        "html_url": f"{call.web}/{name}/{'pull' if row['is_pull'] else 'issues'}/{row['number']}",
        **{field: row[field] for field in ("id", "number", "title", "state", "state_reason", "body")},
        "node_id": node_id("PR" if row["is_pull"] else "I", key),
        "user": user_by_id(call, row["author_id"]),
        "labels": [label(call, entry, name) for entry in labels],
        "locked": bool(row["locked"]),
        "active_lock_reason": None,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "milestone": milestone(call, stage, name) if stage else None,
        "type": issue_type(row["type"]) if row["type"] else None,
        "comments": call.count("comments WHERE issue_id = ?", key),
        **{field: timestamp_of(row[field]) for field in ("created_at", "updated_at", "closed_at")},
        "author_association": association(call, row["repository_id"], row["author_id"]),
        "reactions": reactions(url),
        "performed_via_github_app": None,
        **_structure(call, key),
    }
    if call.settings.native_dependencies:
        edges = "dependencies JOIN issues ON issues.id = {} WHERE {} = ?"
        summary = payload["issue_dependencies_summary"] = {}
        for side, *ends in (("blocked_by", "blocker_id", "blocked_id"), ("blocking", "blocked_id", "blocker_id")):
            summary[side] = call.count(f"{edges.format(*ends)} AND state = 'open'", key)
            summary[f"total_{side}"] = call.count(edges.format(*ends), key)
    if row["is_pull"]:
        pull = call.fetch("SELECT draft, merged_at FROM pulls WHERE issue_id = ?", key)
        links = pull_links(call, name, row["number"], pull["merged_at"] if pull else None)
        payload |= {"draft": bool(pull and pull["draft"]), "pull_request": links}
    return payload


def pull_links(call: Call, name: str, number: int, merged_at: float | None) -> Payload:
    """Return the addresses of a pull request, and the time of its merge."""
    page = f"{call.web}/{name}/pull/{number}"
    return {
        "url": f"{call.api}/repos/{name}/pulls/{number}",
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "merged_at": timestamp_of(merged_at),
    }


def reactions(url: str, counts: Mapping[str, int] = MappingProxyType({})) -> Payload:
    """Return a ``reaction-rollup``; without counts an empty one."""
    total = sum(counts.values())
    return {"url": f"{url}/reactions", "total_count": total, **dict.fromkeys(REACTIONS, 0), **counts}


def repository_summary(call: Call, row: Row) -> Payload:
    """Return a ``simple-repository``."""
    full_name = row["full_name"]
    url = f"{call.api}/repos/{full_name}"
    return {
        "id": row["id"],
        "node_id": node_id("R", row["id"]),
        "name": full_name.partition("/")[2],
        "full_name": full_name,
        "private": bool(row["private"]),
        "owner": user_by_id(call, row["owner_id"]),
        "html_url": f"{call.web}/{full_name}",
        "description": row["description"],
        "fork": False,
        "url": url,
        **{name: url + suffix for name, suffix in _REPOSITORY_LINKS.items()},
    }


def repository(call: Call, row: Row, level: AccessLevel) -> Payload:
    """Return a ``full-repository`` for a caller with this access level."""
    page = f"{call.web}/{row['full_name']}"
    count = call.count("issues WHERE repository_id = ? AND state = 'open'", row["id"])
    return {
        **repository_summary(call, row),
        **_REPOSITORY_CONSTANTS,
        "clone_url": f"{page}.git",
        "git_url": f"git:{page.partition(':')[2]}.git",
        "ssh_url": f"git@{call.web.partition('//')[2]}:{row['full_name']}.git",
        "svn_url": page,
        "default_branch": row["default_branch"],
        "archived": bool(row["archived"]),
        "has_issues": bool(row["has_issues"]),
        "visibility": "private" if row["private"] else "public",
        "open_issues": count,
        "open_issues_count": count,
        **dict.fromkeys(("created_at", "updated_at", "pushed_at"), timestamp_of(row["created_at"])),
        "permissions": level.permissions(),
    }
