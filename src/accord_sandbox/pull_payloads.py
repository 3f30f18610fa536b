"""Pull requests as GitHub sends them: an issue's fields, and what git says about the two branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord_sandbox import diffs, payloads, repository_payloads
from accord_sandbox.access import AccessLevel
from accord_sandbox.merges import readiness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

_SHARED = (
    "id",
    "node_id",
    "number",
    "title",
    "user",
    "labels",
    "state",
    "locked",
    "assignee",
    "assignees",
    "milestone",
    "created_at",
    "updated_at",
    "closed_at",
    "author_association",
    "active_lock_reason",
    "body",
)
"""What a pull request has in common with its issue."""


def pull_summaries(call: Call, rows: Sequence[Row]) -> list[payloads.Payload]:
    """Return ``pull-request-simple`` documents; the rows are those of ``pull_rows.SELECT``."""
    repository = repository_payloads.repository_payload(call, call.repository, call.grant.level("contents"))
    shared = payloads.issues(call, rows)
    return [_pull_summary(call, row, issue, repository) for row, issue in zip(rows, shared, strict=True)]


def pull_payload(call: Call, row: Row) -> payloads.Payload:
    """Return a ``pull-request``."""
    changes = diffs.pull_diff(call.bare, row["base_sha"], row["head_sha"])
    start = diffs.fork_point(call.bare, row["base_sha"], row["head_sha"])
    mergeable, state = readiness(call, row)
    merger = payloads.people(call, [row["merged_by_id"]] if row["merged_by_id"] else [])
    return {
        **pull_summaries(call, [row])[0],
        "merged": row["merged_at"] is not None,
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": state,
        "merged_by": next(iter(merger.values()), None),
        "comments": _count(call, "comments", row["id"]),
        "review_comments": _count(call, "review_comments JOIN reviews ON reviews.id = review_id", row["id"]),
        "maintainer_can_modify": False,
        "commits": int(call.bare.text("rev-list", "--count", f"{start}..{row['head_sha']}")),
        "additions": sum(change.additions for change in changes),
        "deletions": sum(change.deletions for change in changes),
        "changed_files": len(changes),
    }


def reviewers(call: Call, issue_id: int) -> list[payloads.Payload]:
    """Return who was asked for a review and has not given one."""
    rows = call.db.execute("SELECT user_id FROM review_requests WHERE issue_id = ? ORDER BY rowid", (issue_id,))
    return list(payloads.people(call, [row["user_id"] for row in rows]).values())


def _pull_summary(call: Call, row: Row, issue: payloads.Payload, repository: payloads.Payload) -> payloads.Payload:
    links = payloads.pull_links(call, row["full_name"], row["number"], row["merged_at"])
    root, url = f"{call.api}/repos/{row['full_name']}", links["url"]
    derived = {
        "issue_url": f"{root}/issues/{row['number']}",
        "commits_url": f"{url}/commits",
        "review_comments_url": f"{url}/comments",
        "review_comment_url": f"{root}/pulls/comments{{/number}}",
        "comments_url": f"{root}/issues/{row['number']}/comments",
        "statuses_url": f"{root}/statuses/{row['head_sha']}",
    }
    names = {name.removesuffix("_url"): address for name, address in derived.items()}
    hrefs = {"self": url, "html": links["html_url"], **names}
    return {
        **{name: issue[name] for name in _SHARED},
        **links,
        **derived,
        "draft": bool(row["draft"]),
        "merge_commit_sha": row["merge_sha"],
        "requested_reviewers": reviewers(call, row["id"]),
        "requested_teams": [],
        "head": _branch_payload(row, "head", _fork_payload(call, row) or repository),
        "base": _branch_payload(row, "base", repository),
        "auto_merge": None,
        "_links": {name: {"href": address} for name, address in hrefs.items()},
    }


def _fork_payload(call: Call, row: Row) -> payloads.Payload | None:
    """Return the repository of the head where that is another one."""
    found = call.db.execute("SELECT * FROM repositories WHERE id = ?", (row["fork_id"],)).fetchone()
    return None if found is None else repository_payloads.repository_payload(call, found, AccessLevel.READ)


def _branch_payload(row: Row, end: str, repository: payloads.Payload) -> payloads.Payload:
    owner = repository["owner"]
    return {
        "label": f"{owner['login']}:{row[f'{end}_ref']}",
        "ref": row[f"{end}_ref"],
        "sha": row[f"{end}_sha"],
        "user": owner,
        "repo": repository,
    }


def _count(call: Call, table: str, issue_id: int) -> int:
    condition = " AND reviews.state != 'PENDING'" if "JOIN" in table else ""
    key = "review_comments.issue_id" if "JOIN" in table else "issue_id"
    statement = f"SELECT count(*) FROM {table} WHERE {key} = ?{condition}"
    return int(call.db.execute(statement, (issue_id,)).fetchone()[0])
