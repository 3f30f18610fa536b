"""Rows as the JSON that GitHub sends. Shapes: GitHub's OpenAPI description (tests/data/github-openapi.json)."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from accord.core.clock import timestamp
from accord_sandbox.calls import AccessLevel, role_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

Payload = dict[str, Any]

_USER_LINKS = {
    **{f"{name}_url": f"/{name}" for name in ("followers", "subscriptions", "repos", "received_events")},
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "organizations_url": "/orgs",
    "events_url": "/events{/privacy}",
}
_REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
_PLAIN_LINKS = (
    *("contributors", "deployments", "downloads", "events", "forks", "hooks", "languages", "merges"),
    *("stargazers", "subscribers", "subscription", "tags", "teams"),
)
_LINKS_BY_SHA = {"blobs": "git/blobs", "git_commits": "git/commits", "git_refs": "git/refs", "git_tags": "git/tags"}
_LINKS_BY_SHA |= {"commits": "commits", "trees": "git/trees"}
_LINKS_BY_NUMBER = {"comments": "comments", "issue_comment": "issues/comments", "issue_events": "issues/events"}
_LINKS_BY_NUMBER |= {name: name for name in ("issues", "milestones", "pulls")}
_REPOSITORY_LINKS = {
    **{f"{name}_url": f"/{name}" for name in _PLAIN_LINKS},
    **{f"{name}_url": f"/{path}{{/sha}}" for name, path in _LINKS_BY_SHA.items()},
    **{f"{name}_url": f"/{path}{{/number}}" for name, path in _LINKS_BY_NUMBER.items()},
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "notifications_url": "/notifications{?since,all,participating}",
    "releases_url": "/releases{/id}",
    "statuses_url": "/statuses/{sha}",
}
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


def users_by_id(call: Call, identifiers: Iterable[int]) -> dict[int, Payload]:
    """Return ``simple-user`` documents by their database ids."""
    return {row["id"]: user(call, row) for row in _rows_by_id(call, "users", identifiers)}


def user_by_id(call: Call, identifier: int) -> Payload:
    """Return one ``simple-user``."""
    return users_by_id(call, [identifier])[identifier]


def label(call: Call, row: Row, full_name: str) -> Payload:
    """Return a ``label``."""
    return {
        **{name: row[name] for name in ("id", "name", "color", "description")},
        "node_id": node_id("LA", row["id"]),
        "url": f"{call.api}/repos/{full_name}/labels/{quote(row['name'], safe='')}",
        "default": bool(row["is_default"]),
    }


def comments(call: Call, rows: Sequence[Row]) -> list[Payload]:
    """Return ``issue-comment`` documents; each row is a comment with its issue's number, is_pull and repository."""
    users = users_by_id(call, {row["author_id"] for row in rows})
    roles = Associations(call)
    return [_comment(call, row, users[row["author_id"]], roles.of(row, row["author_id"])) for row in rows]


def _comment(call: Call, row: Row, author: Payload, association: str) -> Payload:
    repository = f"{call.api}/repos/{row['full_name']}"
    url = f"{repository}/issues/comments/{row['id']}"
    kind = "pull" if row["is_pull"] else "issues"
    return {
        "url": url,
        "html_url": f"{call.web}/{row['full_name']}/{kind}/{row['number']}#issuecomment-{row['id']}",
        "issue_url": f"{repository}/issues/{row['number']}",
        "id": row["id"],
        "node_id": node_id("IC", row["id"]),
        "user": author,
        "created_at": timestamp_of(row["created_at"]),
        "updated_at": timestamp_of(row["updated_at"]),
        "body": row["body"],
        "author_association": association,
        "reactions": reactions(url),
        "performed_via_github_app": None,
    }


def issues(call: Call, rows: Sequence[Row], *, single: bool = False) -> list[Payload]:
    """Return ``issue`` documents with their labels, assignees and counts, in a fixed number of queries.

    ``single`` adds ``closed_by``, which GitHub sends only for one issue at a time.
    """
    return _Issues(call, rows).payloads(single)


def issue(call: Call, identifier: int) -> Payload:
    """Return the current ``issue`` document of one database id."""
    return issues(call, call.fetch_all("SELECT * FROM issues WHERE id = ?", identifier), single=True)[0]


class _Issues:
    """The rows of one answer, and the related rows of other tables."""

    def __init__(self, call: Call, rows: Sequence[Row]) -> None:
        self.call = call
        self.rows = rows
        self.ids = json.dumps([row["id"] for row in rows])
        found = _rows_by_id(call, "repositories", {row["repository_id"] for row in rows})
        self.repositories = {row["id"]: row for row in found}
        self.labels: dict[int, list[Row]] = defaultdict(list)
        for row in self._select(
            "SELECT issue_id, labels.* FROM issue_labels JOIN labels ON labels.id = label_id"
            " WHERE issue_id IN ids ORDER BY issue_labels.rowid"
        ):
            self.labels[row["issue_id"]].append(row)
        self.assignees: dict[int, list[int]] = defaultdict(list)
        for key, value in self._select("SELECT issue_id, user_id FROM assignees WHERE issue_id IN ids"):
            self.assignees[key].append(value)
        counts = "SELECT issue_id, count(*), 0 FROM comments WHERE issue_id IN ids GROUP BY 1"
        self.comments = self._pairs(counts)
        self.blocked_by = self._edges("blocked_id", "blocker_id")
        self.blocking = self._edges("blocker_id", "blocked_id")
        self.pulls = self._pairs("SELECT issue_id, draft, merged_at FROM pulls WHERE issue_id IN ids")
        people = {row["author_id"] for row in rows} | {row["closed_by_id"] for row in rows} - {None}
        self.users = users_by_id(call, people.union(*self.assignees.values()))
        self.associations = Associations(call)

    def payloads(self, single: bool) -> list[Payload]:
        return [self._payload(row, single) for row in self.rows]

    def _payload(self, row: Row, single: bool) -> Payload:
        repository = self.repositories[row["repository_id"]]
        name = repository["full_name"]
        url = f"{self.call.api}/repos/{name}/issues/{row['number']}"
        assignees = [self.users[identifier] for identifier in self.assignees[row["id"]]]
        payload = {
            "url": url,
            "repository_url": f"{self.call.api}/repos/{name}",
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "timeline_url": f"{url}/timeline",
            "html_url": f"{self.call.web}/{name}/{'pull' if row['is_pull'] else 'issues'}/{row['number']}",
            **{key: row[key] for key in ("id", "number", "title", "state", "state_reason", "body")},
            "node_id": node_id("PR" if row["is_pull"] else "I", row["id"]),
            "user": self.users[row["author_id"]],
            "labels": [label(self.call, entry, name) for entry in self.labels[row["id"]]],
            "locked": bool(row["locked"]),
            "active_lock_reason": None,
            "assignee": assignees[0] if assignees else None,
            "assignees": assignees,
            "milestone": None,
            "comments": self.comments.get(row["id"], (0, 0))[0],
            **{key: timestamp_of(row[key]) for key in ("created_at", "updated_at", "closed_at")},
            "author_association": self.associations.of(repository, row["author_id"]),
            "reactions": reactions(url),
            "performed_via_github_app": None,
            "sub_issues_summary": {"total": 0, "completed": 0, "percent_completed": 0},
        }
        if self.call.settings.native_dependencies:
            blocked_by, blocking = (edges.get(row["id"], (0, 0)) for edges in (self.blocked_by, self.blocking))
            payload["issue_dependencies_summary"] = {
                "blocked_by": blocked_by[1],
                "total_blocked_by": blocked_by[0],
                "blocking": blocking[1],
                "total_blocking": blocking[0],
            }
        if row["is_pull"]:
            draft, merged_at = self.pulls.get(row["id"], (0, None))
            links = pull_links(self.call, name, row["number"], merged_at)
            payload |= {"draft": bool(draft), "pull_request": links}
        if single:
            payload["closed_by"] = self.users.get(row["closed_by_id"])
        return payload

    def _edges(self, here: str, there: str) -> Mapping[int, tuple[int, int]]:
        return self._pairs(
            f"SELECT {here}, count(*), sum(state = 'open') FROM dependencies"
            f" JOIN issues ON issues.id = {there} WHERE {here} IN ids GROUP BY 1"
        )

    def _pairs(self, statement: str) -> Mapping[int, tuple[Any, Any]]:
        return {row[0]: (row[1], row[2]) for row in self._select(statement)}

    def _select(self, statement: str) -> list[Row]:
        return self.call.fetch_all(f"WITH ids AS (SELECT value FROM json_each(?)) {statement}", self.ids)


class Associations:
    """``author_association`` for many rows; each user is looked up once a repository."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._found: dict[tuple[int, int], str] = {}

    def of(self, repository: Row, user_id: int) -> str:
        """Return the user's association with the repository (a row with repository_id, or a repository's own)."""
        identifier = repository["repository_id"] if "repository_id" in repository.keys() else repository["id"]  # noqa: SIM118
        key = (identifier, user_id)
        if key not in self._found:
            (row,) = _rows_by_id(self._call, "repositories", [identifier])
            is_member = role_of(self._call.db, user_id, row) > AccessLevel.READ
            self._found[key] = "OWNER" if row["owner_id"] == user_id else "COLLABORATOR" if is_member else "NONE"
        return self._found[key]


def _rows_by_id(call: Call, table: str, identifiers: Iterable[int]) -> list[Row]:
    statement = f"SELECT * FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
    return call.fetch_all(statement, json.dumps(list(identifiers)))


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


def reactions(url: str) -> Payload:
    """Return an empty ``reaction-rollup``."""
    return {"url": f"{url}/reactions", "total_count": 0, **dict.fromkeys(_REACTIONS, 0)}


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
