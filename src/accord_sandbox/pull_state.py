"""The pull request of a path, and what other rooms must know before they touch one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord_sandbox import checks, comments, commits, diffs, payloads
from accord_sandbox.calls import AccessLevel
from accord_sandbox.diffs import relocate
from accord_sandbox.git_storage import HEADS, GitFailed, Signature
from accord_sandbox.repositories import protections
from accord_sandbox.responses import ApiResponse, Refusal, not_found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row
    from accord_sandbox.git_storage import BareRepository


PULLS = (
    "SELECT pulls.*, issues.*, repositories.full_name, repositories.owner_id, repositories.private FROM pulls"
    " JOIN issues ON issues.id = issue_id JOIN repositories ON repositories.id = repository_id"
)


def find_pull(call: Call) -> Row:
    """Return the pull request of the path, with its issue's columns; a 404 for an issue."""
    _ = call.repository
    if not call.grant.may("pull_requests", AccessLevel.READ):
        raise call.grant.refusal()
    row: Row | None = call.db.execute(
        f"{PULLS} WHERE repository_id = ? AND number = ?", (call.repository["id"], call.identifier("number"))
    ).fetchone()
    if row is None:
        raise not_found()
    return row


def pull_by_id(call: Call, issue_id: int) -> Row:
    """Return a pull request as it is now."""
    row: Row = call.db.execute(f"{PULLS} WHERE issues.id = ?", (issue_id,)).fetchone()
    return row


def check_reopening(call: Call, issue: Row) -> None:
    """Refuse to reopen a pull request that was merged, or has no head branch any more."""
    pull = call.db.execute("SELECT * FROM pulls WHERE issue_id = ?", (issue["id"],)).fetchone()
    if pull is None:
        return
    if pull["merged_at"] is not None:
        raise _unchangeable("The pull request cannot be reopened.")
    if commits.readable_bare(call).branch(pull["head_ref"]) is None:
        raise _unchangeable(f"The {pull['head_ref']} branch has been deleted.")


def check_unlocked(call: Call, pull: Row) -> None:
    """Refuse to talk on a pull request whose conversation is locked, unless one may write."""
    if pull["locked"] and not call.grant.may("pull_requests", AccessLevel.WRITE):
        raise Refusal(403, "Unable to create comment because issue is locked.", docs=call.locked_docs())


def pull_refusal(message: str, *, field: str = "") -> Refusal:
    """Return the 422 that GitHub sends about a whole pull request."""
    error = {"resource": "PullRequest", "code": "custom", "message": message}
    return Refusal(422, "Validation Failed", errors=[{**error, "field": field} if field else error])


def _unchangeable(reason: str) -> Refusal:
    return pull_refusal(f"state cannot be changed. {reason}", field="state")


@dataclass(frozen=True)
class RefUpdate:
    """Some refs of a repository have moved. ``now`` is in seconds since the epoch."""

    db: Connection
    bare: BareRepository
    repository_id: int
    actor_id: int
    now: float


def follow_branches(move: RefUpdate) -> None:
    """Bring every open pull request between branches of the repository in line with them."""
    rows = move.db.execute(
        "SELECT pulls.*, issues.number FROM pulls JOIN issues ON issues.id = issue_id"
        " WHERE repository_id = ? AND state = 'open' AND fork_id IS NULL",
        (move.repository_id,),
    ).fetchall()
    if not rows:
        return
    refs = move.bare.refs(HEADS)
    for row in rows:
        head, base = refs.get(HEADS + row["head_ref"]), refs.get(HEADS + row["base_ref"])
        if head is None:
            close_issue(move, row["issue_id"])
            continue
        if head != row["head_sha"]:
            update_head(move, row, head, base or row["base_sha"])
        if base is not None and base != row["base_sha"] and move.bare.is_ancestor(head, base):
            mark_merged(move, row["issue_id"], base)


def update_head(move: RefUpdate, pull: Row, head: str, base: str) -> None:
    """Give a pull request its new head."""
    key = pull["issue_id"]
    move.db.execute("UPDATE pulls SET head_sha = ?, base_sha = ? WHERE issue_id = ?", (head, base, key))
    move.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (move.now, key))
    move.bare.set_ref(f"refs/pull/{pull['number']}/head", head)
    relocate(move.db, move.bare, key)


def mark_merged(move: RefUpdate, issue_id: int, commit: str) -> None:
    """Keep that a pull request got into its base, as which commit, and close it."""
    move.db.execute(
        "UPDATE pulls SET merged_at = ?, merged_by_id = ?, merge_sha = ? WHERE issue_id = ?",
        (move.now, move.actor_id, commit, issue_id),
    )
    comments.insert_event(move.db, issue_id, "merged", move.actor_id, move.now)
    close_issue(move, issue_id)


def close_issue(move: RefUpdate, issue_id: int, reason: str | None = None) -> None:
    """Close an issue or pull request that is open."""
    changed = move.db.execute(
        "UPDATE issues SET state = 'closed', state_reason = ?, closed_at = ?, closed_by_id = ?, updated_at = ?"
        " WHERE id = ? AND state = 'open'",
        (reason, move.now, move.actor_id, move.now, issue_id),
    ).rowcount
    if changed:
        comments.insert_event(move.db, issue_id, "closed", move.actor_id, move.now, {"state_reason": reason})


def ref_update(call: Call) -> RefUpdate:
    """Return the change of a ref that the caller just made, for the pull requests to follow."""
    return RefUpdate(call.db, call.bare, call.repository["id"], call.user.user_id, call.now)


_METHODS = ("merge", "squash", "rebase")
_CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(?P<number>[0-9]{1,9})\b", re.IGNORECASE)
"""Docs: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue"""


def get_merged(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}/merge: 204 when it was merged, else 404."""
    if find_pull(call)["merged_at"] is None:
        raise not_found()
    return ApiResponse(204)


def merge_pull(call: Call) -> ApiResponse:
    """PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge, by a merge commit or squashed into one."""
    pull = find_pull(call)
    call.require("contents", AccessLevel.WRITE)
    method = call.fields.choice("merge_method", _METHODS) or "merge"
    if method == "rebase":
        raise Refusal(405, "Rebase merges are not allowed on this repository.")
    wanted = call.fields.string("sha")
    if wanted is not None and wanted != pull["head_sha"]:
        raise Refusal(409, "Head branch was modified. Review and try the merge again.")
    base = call.bare.branch(pull["base_ref"])
    tree = None if base is None else _merged_tree(call.bare, base, pull["head_sha"])
    if pull["draft"]:
        raise Refusal(405, "Pull Request is still a draft")
    if pull["state"] == "closed" or base is None or tree is None:
        raise Refusal(405, "Pull Request is not mergeable")
    missing = _missing(call, pull)
    if missing:
        raise Refusal(405, missing)
    sha = _commit(call, pull, base, tree, method)
    call.bare.set_ref(f"{HEADS}{pull['base_ref']}", sha, base)
    move = ref_update(call)
    mark_merged(move, pull["id"], sha)
    if pull["base_ref"] == call.repository["default_branch"]:
        _close_named(move, pull)
    follow_branches(move)
    return ApiResponse(200, {"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


def readiness(call: Call, pull: Row) -> tuple[bool | None, str]:
    """Return ``mergeable`` and ``mergeable_state``; GitHub needs a moment to know, this server does not."""
    base = call.bare.branch(pull["base_ref"])
    if pull["state"] == "closed" or base is None:
        return None, "unknown"
    if _merged_tree(call.bare, base, pull["head_sha"]) is None:
        return False, "dirty"
    if pull["draft"]:
        return True, "draft"
    if _missing(call, pull):
        return True, "blocked"
    state = checks.combined_outcome(call.db, call.repository["id"], pull["head_sha"])
    return True, "unstable" if state in ("failure", "pending") else "clean"


def _merged_tree(bare: BareRepository, base: str, head: str) -> str | None:
    try:
        return bare.merged_tree(base, head)
    except GitFailed:  # strangers without a common commit
        return None


def _missing(call: Call, pull: Row) -> str:
    """Return what the protection of the base still wants, nothing when the merge may go on."""
    rules = protections(call.db, call.repository).get(pull["base_ref"])
    if rules is None or not rules.binds(call.grant):
        return ""
    if rules.approvals:
        rows = call.db.execute(
            "SELECT author_id, state FROM reviews WHERE issue_id = ? AND state IN ('APPROVED', 'CHANGES_REQUESTED')"
            " ORDER BY id",
            (pull["id"],),
        )
        verdicts = {row["author_id"]: row["state"] for row in rows}
        if "CHANGES_REQUESTED" in verdicts.values():
            return "Changes have been requested on this pull request."
        if list(verdicts.values()).count("APPROVED") < rules.approvals:
            plural = "s" if rules.approvals > 1 else ""
            count = rules.approvals
            return f"At least {count} approving review{plural} is required by reviewers with write access."
    states = checks.outcomes(call.db, call.repository["id"], pull["head_sha"])
    for context in rules.contexts:
        if states.get(context) != "success":
            return f'Required status check "{context}" is expected.'
    return ""


def _commit(call: Call, pull: Row, base: str, tree: str, method: str) -> str:
    user = call.db.execute("SELECT * FROM users WHERE id = ?", (call.user.user_id,)).fetchone()
    owner = pull["full_name"].partition("/")[0]
    squash = method == "squash"
    title = f"{pull['title']} (#{pull['number']})"
    if not squash:
        title = f"Merge pull request #{pull['number']} from {owner}/{pull['head_ref']}"
    text = pull["title"] if not squash else pull["body"] or ""
    title, text = call.fields.string("commit_title") or title, call.fields.string("commit_message") or text
    author = commits.noreply_signature(user, call.now)
    if squash:
        who = call.db.execute("SELECT * FROM users WHERE id = ?", (pull["author_id"],)).fetchone()
        author = commits.noreply_signature(who, call.now)
    parents = [base] if squash else [base, pull["head_sha"]]
    message = f"{title}\n\n{text}".strip() + "\n"
    return call.bare.commit(tree, parents, message, author, Signature(*commits.GITHUB, call.now))


def _close_named(move: RefUpdate, pull: Row) -> None:
    """Close the issues that the description says the pull request closes."""
    for found in _CLOSING.finditer(pull["body"] or ""):
        row = move.db.execute(
            "SELECT id FROM issues WHERE repository_id = ? AND number = ? AND is_pull = 0",
            (move.repository_id, int(found["number"])),
        ).fetchone()
        if row is not None:
            close_issue(move, row["id"], "completed")


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
    """Return ``pull-request-simple`` documents; the rows are those of ``SELECT``."""
    repository = payloads.repository_payload(call, call.repository, call.grant.level("contents"))
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
    return None if found is None else payloads.repository_payload(call, found, AccessLevel.READ)


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
