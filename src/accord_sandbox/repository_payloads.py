"""A repository as GitHub sends it: mostly links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord_sandbox import payloads
from accord_sandbox.access import AccessLevel

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

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
_REPOSITORY_CONSTANTS: payloads.Payload = {
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


def repository_summary(call: Call, row: Row) -> payloads.Payload:
    """Return a ``simple-repository``."""
    owner = call.db.execute("SELECT * FROM users WHERE id = ?", (row["owner_id"],)).fetchone()
    full_name = row["full_name"]
    url = f"{call.api}/repos/{full_name}"
    return {
        "id": row["id"],
        "node_id": payloads.node_id("R", row["id"]),
        "name": full_name.partition("/")[2],
        "full_name": full_name,
        "private": bool(row["private"]),
        "owner": payloads.user(call, owner),
        "html_url": f"{call.web}/{full_name}",
        "description": row["description"],
        "fork": False,
        "url": url,
        **{name: url + suffix for name, suffix in _LINKS.items()},
    }


def repository_payload(call: Call, row: Row, level: AccessLevel) -> payloads.Payload:
    """Return a ``full-repository`` as seen by somebody of this role."""
    page = f"{call.web}/{row['full_name']}"
    count = call.db.execute(
        "SELECT count(*) FROM issues WHERE repository_id = ? AND state = 'open'", (row["id"],)
    ).fetchone()[0]
    created = payloads.moment(row["created_at"])
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
