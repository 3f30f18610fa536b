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
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}
_REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


def moment(seconds: float | None) -> str | None:
    """Write seconds since the epoch as GitHub writes moments."""
    return None if seconds is None else timestamp(datetime.fromtimestamp(seconds, UTC))


def node_id(kind: str, identifier: int) -> str:
    """Return an opaque GraphQL identifier; only its uniqueness means something."""
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


def label(call: Call, row: Row, full_name: str) -> Payload:
    """Return a ``label``."""
    return {
        "id": row["id"],
        "node_id": node_id("LA", row["id"]),
        "url": f"{call.api}/repos/{full_name}/labels/{quote(row['name'], safe='')}",
        "name": row["name"],
        "color": row["color"],
        "default": bool(row["is_default"]),
        "description": row["description"],
    }


def comments(call: Call, rows: Sequence[Row]) -> list[Payload]:
    """Return ``issue-comment`` documents; each row is a comment with its issue's number, is_pull and repository."""
    users = people(call, {row["author_id"] for row in rows})
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
        "created_at": moment(row["created_at"]),
        "updated_at": moment(row["updated_at"]),
        "body": row["body"],
        "author_association": association,
        "reactions": reactions(url),
        "performed_via_github_app": None,
    }


def issues(call: Call, rows: Sequence[Row], *, single: bool = False) -> list[Payload]:
    """Return ``issue`` documents with everything that hangs on them, in a fixed number of queries.

    ``single`` adds what GitHub only says about one issue at a time (``closed_by``).
    """
    return _Issues(call, rows).payloads(single)


def issue(call: Call, identifier: int) -> Payload:
    """Return the ``issue`` document of one database id as it is now."""
    rows = call.db.execute("SELECT * FROM issues WHERE id = ?", (identifier,)).fetchall()
    return issues(call, rows, single=True)[0]


class _Issues:
    """The rows of one answer, and what other tables say about them."""

    def __init__(self, call: Call, rows: Sequence[Row]) -> None:
        self.call = call
        self.rows = rows
        self.ids = json.dumps([row["id"] for row in rows])
        self.repositories = {
            row["id"]: row
            for row in _among(call, "repositories.id", {row["repository_id"] for row in rows}, "repositories")
        }
        self.labels = self._labels()
        self.assignees = self._pairs("SELECT issue_id, user_id FROM assignees WHERE issue_id IN ids")
        self.comments = self._counts("SELECT issue_id, count(*) FROM comments WHERE issue_id IN ids GROUP BY 1")
        self.children = self._numbers(
            "SELECT parent_id, count(*), sum(state = 'closed') FROM sub_issues"
            " JOIN issues ON issues.id = child_id WHERE parent_id IN ids GROUP BY 1"
        )
        self.parents = {
            row[0]: f"{call.api}/repos/{row[1]}/issues/{row[2]}"
            for row in self._select(
                "SELECT child_id, full_name, number FROM sub_issues JOIN issues ON issues.id = parent_id"
                " JOIN repositories ON repositories.id = repository_id WHERE child_id IN ids"
            )
        }
        self.blocked_by = self._edges("blocked_id", "blocker_id")
        self.blocking = self._edges("blocker_id", "blocked_id")
        self.pulls = self._numbers("SELECT issue_id, draft, merged_at FROM pulls WHERE issue_id IN ids")
        everybody = {row["author_id"] for row in rows} | {row["closed_by_id"] for row in rows} - {None}
        self.users = people(call, everybody.union(*self.assignees.values()))
        self.associations = Associations(call)

    def payloads(self, single: bool) -> list[Payload]:
        return [self._payload(row, single) for row in self.rows]

    def _payload(self, row: Row, single: bool) -> Payload:
        repository = self.repositories[row["repository_id"]]
        name = repository["full_name"]
        url = f"{self.call.api}/repos/{name}/issues/{row['number']}"
        assignees = [self.users[identifier] for identifier in self.assignees[row["id"]]]
        payload = {
            **_issue_links(self.call, name, row),
            "id": row["id"],
            "node_id": node_id("PR" if row["is_pull"] else "I", row["id"]),
            "number": row["number"],
            "title": row["title"],
            "user": self.users[row["author_id"]],
            "labels": [label(self.call, entry, name) for entry in self.labels[row["id"]]],
            "state": row["state"],
            "locked": bool(row["locked"]),
            "assignee": assignees[0] if assignees else None,
            "assignees": assignees,
            "milestone": None,
            "comments": self.comments.get(row["id"], 0),
            "created_at": moment(row["created_at"]),
            "updated_at": moment(row["updated_at"]),
            "closed_at": moment(row["closed_at"]),
            "author_association": self.associations.of(repository, row["author_id"]),
            "active_lock_reason": row["lock_reason"],
            "body": row["body"],
            "reactions": reactions(url),
            "performed_via_github_app": None,
            "state_reason": row["state_reason"],
        }
        payload |= self._relations(row)
        if row["is_pull"]:
            draft, merged_at = self.pulls.get(row["id"], (0, None))
            links = pull_links(self.call, name, row["number"], merged_at)
            payload |= {"draft": bool(draft), "pull_request": links}
        if single:
            payload["closed_by"] = self.users.get(row["closed_by_id"])
        return payload

    def _relations(self, row: Row) -> Payload:
        total, completed = self.children.get(row["id"], (0, 0))
        share = 100 * completed // total if total else 0
        relations: Payload = {
            "sub_issues_summary": {"total": total, "completed": completed, "percent_completed": share}
        }
        if row["id"] in self.parents:
            relations["parent_issue_url"] = self.parents[row["id"]]
        if self.call.settings.native_dependencies:
            blocked_by, blocking = (
                self.blocked_by.get(row["id"], (0, 0)),
                self.blocking.get(row["id"], (0, 0)),
            )
            relations["issue_dependencies_summary"] = {
                "blocked_by": blocked_by[1],
                "total_blocked_by": blocked_by[0],
                "blocking": blocking[1],
                "total_blocking": blocking[0],
            }
        return relations

    def _labels(self) -> Mapping[int, list[Row]]:
        found: dict[int, list[Row]] = defaultdict(list)
        for row in self._select(
            "SELECT issue_id, labels.* FROM issue_labels JOIN labels ON labels.id = label_id"
            " WHERE issue_id IN ids ORDER BY issue_labels.rowid"
        ):
            found[row["issue_id"]].append(row)
        return found

    def _edges(self, here: str, there: str) -> Mapping[int, tuple[int, int]]:
        return self._numbers(
            f"SELECT {here}, count(*), sum(state = 'open') FROM dependencies"
            f" JOIN issues ON issues.id = {there} WHERE {here} IN ids GROUP BY 1"
        )

    def _pairs(self, statement: str) -> Mapping[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for key, value in self._select(statement):
            found[key].append(value)
        return found

    def _counts(self, statement: str) -> Mapping[int, int]:
        return {row[0]: row[1] for row in self._select(statement)}

    def _numbers(self, statement: str) -> Mapping[int, tuple[Any, Any]]:
        return {row[0]: (row[1], row[2]) for row in self._select(statement)}

    def _select(self, statement: str) -> Iterable[Row]:
        with_ids = f"WITH ids AS (SELECT value FROM json_each(?)) {statement}"
        rows: Iterable[Row] = self.call.db.execute(with_ids, (self.ids,))
        return rows


class Associations:
    """``author_association`` for many rows, each user looked up once a repository."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._known: dict[tuple[int, int], str] = {}

    def of(self, repository: Row, user_id: int) -> str:
        """Return what the user is to the repository (a row with repository_id or id, owner_id, private)."""
        identifier = repository["repository_id"] if "repository_id" in repository.keys() else repository["id"]  # noqa: SIM118
        key = (identifier, user_id)
        if key not in self._known:
            self._known[key] = self._look_up(identifier, user_id)
        return self._known[key]

    def _look_up(self, repository_id: int, user_id: int) -> str:
        db = self._call.db
        repository = db.execute("SELECT * FROM repositories WHERE id = ?", (repository_id,)).fetchone()
        if repository["owner_id"] == user_id:
            return "OWNER"
        return "COLLABORATOR" if role_of(db, user_id, repository) > AccessLevel.READ else "NONE"


def people(call: Call, identifiers: Iterable[int]) -> dict[int, Payload]:
    """Return ``simple-user`` documents by their database ids."""
    return {row["id"]: user(call, row) for row in _among(call, "users.id", identifiers, "users")}


def _among(call: Call, column: str, values: Iterable[int], table: str) -> list[Row]:
    statement = f"SELECT * FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"
    return call.db.execute(statement, (json.dumps(list(values)),)).fetchall()


def _issue_links(call: Call, name: str, row: Row) -> Payload:
    url = f"{call.api}/repos/{name}/issues/{row['number']}"
    return {
        "url": url,
        "repository_url": f"{call.api}/repos/{name}",
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "timeline_url": f"{url}/timeline",
        "html_url": f"{call.web}/{name}/{'pull' if row['is_pull'] else 'issues'}/{row['number']}",
    }


def pull_links(call: Call, name: str, number: int, merged_at: float | None) -> Payload:
    """Return where a pull request is, and when it was merged."""
    page = f"{call.web}/{name}/pull/{number}"
    return {
        "url": f"{call.api}/repos/{name}/pulls/{number}",
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "merged_at": moment(merged_at),
    }


def reactions(url: str) -> Payload:
    """Return a ``reaction-rollup`` without any."""
    return {"url": f"{url}/reactions", "total_count": 0, **dict.fromkeys(_REACTIONS, 0)}


_LINKS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}
_REPOSITORY_CONSTANTS: Payload = {
    "homepage": None,
    "language": None,
    "license": None,
    "mirror_url": None,
    "disabled": False,
    "forks": 0,
    "forks_count": 0,
    "network_count": 0,
    "size": 0,
    "stargazers_count": 0,
    "subscribers_count": 0,
    "watchers": 0,
    "watchers_count": 0,
    "has_projects": False,
    "has_wiki": False,
    "has_pages": False,
    "has_discussions": False,
    "has_downloads": False,
    "topics": [],
    "is_template": False,
    "allow_forking": True,
}


def repository_summary(call: Call, row: Row) -> Payload:
    """Return a ``simple-repository``."""
    owner = call.db.execute("SELECT * FROM users WHERE id = ?", (row["owner_id"],)).fetchone()
    full_name = row["full_name"]
    url = f"{call.api}/repos/{full_name}"
    return {
        "id": row["id"],
        "node_id": node_id("R", row["id"]),
        "name": full_name.partition("/")[2],
        "full_name": full_name,
        "private": bool(row["private"]),
        "owner": user(call, owner),
        "html_url": f"{call.web}/{full_name}",
        "description": row["description"],
        "fork": False,
        "url": url,
        **{name: url + suffix for name, suffix in _LINKS.items()},
    }


def repository_payload(call: Call, row: Row, level: AccessLevel) -> Payload:
    """Return a ``full-repository`` as seen by somebody of this role."""
    page = f"{call.web}/{row['full_name']}"
    count = call.db.execute(
        "SELECT count(*) FROM issues WHERE repository_id = ? AND state = 'open'", (row["id"],)
    ).fetchone()[0]
    created = moment(row["created_at"])
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
        "created_at": created,
        "updated_at": created,
        "pushed_at": created,
        "permissions": {
            "admin": level >= AccessLevel.ADMIN,
            "maintain": level >= AccessLevel.MAINTAIN,
            "push": level >= AccessLevel.WRITE,
            "triage": level >= AccessLevel.TRIAGE,
            "pull": level >= AccessLevel.READ,
        },
    }
