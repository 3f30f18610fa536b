"""The state of a pull request: its row and payload, how it follows its branches, and merging it.

A push, the API or a merge moves branches. A pull request follows its head branch, and its line comments find their new
lines. It is closed when its head branch is deleted, and merged when its base contains its head.

Docs: https://docs.github.com/rest/pulls/pulls#merge-a-pull-request
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from accord.git.program import GitFailed
from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, Route
from accord_sandbox.comments import record_event
from accord_sandbox.commits import GITHUB, author_signature, noreply_signature, read_commit, read_commits
from accord_sandbox.database import Row
from accord_sandbox.diffs import fork_point, pull_diff, relocate
from accord_sandbox.git_storage import HEADS, BareRepository, Signature, count_between
from accord_sandbox.repositories import broken_rules, rule_violations
from accord_sandbox.responses import ApiResponse, Refusal, or_404
from accord_sandbox.triggers import start_workflows

_CLOSING = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+"
    r"(?:(?P<name>[\w.-]{1,99}/[\w.-]{1,99})?#|GH-|https?://[^/\s]{1,99}/(?P<address>[\w.-]{1,99}/[\w.-]{1,99})/issues/)"
    r"(?P<number>[0-9]{1,9})\b",
    re.IGNORECASE,
)
"""Docs: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue"""

_OF_ISSUE = (
    *("id", "node_id", "number", "title", "user", "labels", "state", "locked", "assignee", "assignees", "milestone"),
    *("created_at", "updated_at", "closed_at", "author_association", "active_lock_reason", "body"),
)
"""Fields that a pull request shares with its issue."""


def find_pull(call: Call) -> Row:
    """Return the pull request of the path, with its issue's columns; a 404 for an issue."""
    call.require_read("pull_requests")
    key = (call.repository["id"], call.number("number"))
    return or_404(call.fetch("SELECT * FROM pull_items WHERE repository_id = ? AND number = ?", *key))


def pull_refusal(message: str, *, field: str = "") -> Refusal:
    """Return the 422 that GitHub sends about a whole pull request."""
    error = {"resource": "PullRequest", "code": "custom", "message": message}
    return Refusal(422, "Validation Failed", errors=[{**error, "field": field} if field else error])


def follow_branches(call: Call) -> None:
    """Bring every open pull request between branches of the repository in line with them."""
    statement = "SELECT * FROM pull_items WHERE repository_id = ? AND state = 'open' AND fork_id IS NULL"
    rows = call.fetch_all(statement, call.repository["id"])
    refs = call.bare.refs(HEADS) if rows else {}
    for row in rows:
        head, base = refs.get(HEADS + row["head_ref"]), refs.get(HEADS + row["base_ref"])
        if head is None:
            close_issue(call, row["issue_id"])
            continue
        if head != row["head_sha"]:
            key, tips = row["issue_id"], (head, base or row["base_sha"])
            call.db.execute("UPDATE pulls SET head_sha = ?, base_sha = ? WHERE issue_id = ?", (*tips, key))
            call.touch(key)
            call.bare.set_ref(f"refs/pull/{row['number']}/head", head)
            relocate(call, key)
            start_workflows(call, key, "synchronize")
        if base is not None and base != row["base_sha"] and call.bare.is_ancestor(head, base):
            mark_merged(call, row["issue_id"], base)


def mark_merged(call: Call, issue_id: int, commit: str) -> None:
    """Store the merge commit of a pull request, and close it."""
    statement = "UPDATE pulls SET merged_at = ?, merged_by_id = ?, merge_sha = ? WHERE issue_id = ?"
    call.db.execute(statement, (call.now, call.user.user_id, commit, issue_id))
    record_event(call, issue_id, "merged")
    close_issue(call, issue_id)


def close_issue(call: Call, issue_id: int, reason: str | None = None) -> None:
    """Close an issue or pull request if it is open."""
    changed = call.db.execute(
        "UPDATE issues SET state = 'closed', state_reason = ?, closed_at = ?, closed_by_id = ?, updated_at = ?"
        " WHERE id = ? AND state = 'open'",
        (reason, call.now, call.user.user_id, call.now, issue_id),
    ).rowcount
    if changed:
        record_event(call, issue_id, "closed", {"state_reason": reason})


@Route("PUT", "pulls/{number:int}/merge", "pulls/pulls#merge-a-pull-request")
def merge_pull(call: Call) -> ApiResponse:
    """Merge a pull request by a merge commit, a squash or a rebase. Protection of the base asks for nothing here."""
    pull = find_pull(call)
    call.require("contents", AccessLevel.WRITE)
    method = call.fields.choice("merge_method", ("merge", "squash", "rebase")) or "merge"
    if call.fields.get("sha") not in (None, pull["head_sha"]):
        raise Refusal(409, "Head branch was modified. Review and try the merge again.")
    if pull["draft"]:
        raise Refusal(405, "Pull Request is still a draft")
    base, tree = call.bare.branch(pull["base_ref"]), _merged_tree(call, pull)
    if base is None or tree is None:
        raise Refusal(405, "Pull Request is not mergeable")
    sha = _rebase_commits(call, pull, base) if method == "rebase" else _merge_commit(call, pull, base, tree, method)
    ref = HEADS + pull["base_ref"]
    if unsigned := {"required_signatures"}.intersection(broken_rules(call, ref, base, sha)):
        raise rule_violations([*unsigned], 405)
    call.bare.set_ref(ref, sha, base)
    mark_merged(call, pull["id"], sha)
    if pull["base_ref"] == call.repository["default_branch"]:
        for number in closed_numbers(pull["body"], pull["full_name"]):
            statement = "SELECT id FROM issues WHERE repository_id = ? AND number = ? AND is_pull = 0"
            row = call.fetch(statement, call.repository["id"], number)
            if row is not None:
                close_issue(call, row["id"], "completed")
    follow_branches(call)
    return ApiResponse(200, {"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


def closed_numbers(body: str | None, repository: str) -> list[int]:
    """Return the numbers of a repository's issues that a body closes."""
    found = ((hit["name"] or hit["address"] or repository, int(hit["number"])) for hit in _CLOSING.finditer(body or ""))
    return [number for name, number in found if name.lower() == repository.lower()]


def _merged_tree(call: Call, pull: Row) -> str | None:
    """Return the tree that a merge makes, None for a closed pull request and one with conflicts."""
    base = call.bare.branch(pull["base_ref"])
    return _tree_of_merge(call.bare, base, pull["head_sha"]) if base and pull["state"] != "closed" else None


@lru_cache(maxsize=512)
def _tree_of_merge(bare: BareRepository, base: str, head: str) -> str | None:
    """Return the tree of a merge of two commits, which never change; None with conflicts."""
    try:
        return bare.merged_tree(base, head)
    except GitFailed:  # no common commit
        return None


def _merge_commit(call: Call, pull: Row, base: str, tree: str, method: str) -> str:
    owner = pull["full_name"].partition("/")[0]
    title, text = f"Merge pull request #{pull['number']} from {owner}/{pull['head_ref']}", pull["title"]
    author, parents = author_signature(call), [base, pull["head_sha"]]
    if method == "squash":
        title, text, parents = f"{pull['title']} (#{pull['number']})", pull["body"] or "", [base]
        author = noreply_signature(call.row("users", pull["author_id"]), call.now)
    message = f"{title}\n\n{text}".strip() + "\n"
    return call.bare.commit(tree, parents, message, author, Signature(*GITHUB, call.now), is_signed=True)


def _rebase_commits(call: Call, pull: Row, base: str) -> str:
    """Write the commits of a pull request again on top of its base, and return the last.

    Like GitHub, this always makes new commits: authors stay, the committer is who merges, and none is signed.
    """
    bare, committer = call.bare, author_signature(call)
    for commit in read_commits(bare, "--reverse", "--topo-order", f"{base}..{pull['head_sha']}"):
        parents, onto = commit.parents, read_commit(bare, base).tree
        moved = bare.commit(onto, parents, "", committer, committer)  # a child of the same parent merges like a pick
        tree = bare.merged_tree(moved, commit.sha) if len(parents) == 1 else None
        if tree is None:
            raise Refusal(405, "This branch can't be rebased")
        if tree != onto:
            base = bare.commit(tree, [base], commit.message, commit.author, committer)
    return base


def pull_payload(call: Call, row: Row) -> payloads.Payload:
    """Return a ``pull-request``."""
    changes = pull_diff(call.bare, row["base_sha"], row["head_sha"])
    start = fork_point(call.bare, row["base_sha"], row["head_sha"])
    mergeable = _merged_tree(call, row) is not None
    return {
        **pull_summary(call, row),
        "merged": row["merged_at"] is not None,
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": "clean" if mergeable else "dirty",
        "merged_by": payloads.user_by_id(call, row["merged_by_id"]) if row["merged_by_id"] else None,
        "comments": call.count("comments WHERE issue_id = ?", row["id"]),
        "review_comments": call.count("public_review_comments WHERE issue_id = ?", row["id"]),
        "maintainer_can_modify": False,
        "commits": count_between(call.bare, start, row["head_sha"]),
        "additions": sum(change.additions for change in changes),
        "deletions": sum(change.deletions for change in changes),
        "changed_files": len(changes),
    }


def pull_summary(call: Call, row: Row) -> payloads.Payload:
    """Return a ``pull-request-simple``; the row is one of ``pull_items``."""
    issue = payloads.issue(call, row)
    repository = payloads.repository(call, call.repository, call.grant.level("contents"))
    links = payloads.pull_links(call, row["full_name"], row["number"], row["merged_at"])
    root, url = f"{call.api}/repos/{row['full_name']}", links["url"]
    urls = {
        "issue": f"{root}/issues/{row['number']}",
        "commits": f"{url}/commits",
        "review_comments": f"{url}/comments",
        "review_comment": f"{root}/pulls/comments{{/number}}",
        "comments": f"{root}/issues/{row['number']}/comments",
        "statuses": f"{root}/statuses/{row['head_sha']}",
    }
    hrefs = {"self": url, "html": links["html_url"], **urls}
    fork = call.fetch("SELECT * FROM repositories WHERE id = ?", row["fork_id"])
    home = repository if fork is None else payloads.repository(call, fork, AccessLevel.READ)
    return {
        **{name: issue[name] for name in _OF_ISSUE},
        **links,
        **{f"{name}_url": address for name, address in urls.items()},
        "draft": bool(row["draft"]),
        "merge_commit_sha": row["merge_sha"],
        "requested_reviewers": [],
        "requested_teams": [],
        "head": _branch_payload(row, "head", home),
        "base": _branch_payload(row, "base", repository),
        "auto_merge": None,
        "_links": {name: {"href": address} for name, address in hrefs.items()},
    }


def _branch_payload(row: Row, end: str, repository: payloads.Payload) -> dict[str, Any]:
    owner, ref = repository["owner"], row[f"{end}_ref"]
    label = f"{owner['login']}:{ref}"
    return {"label": label, "ref": ref, "sha": row[f"{end}_sha"], "user": owner, "repo": repository}
