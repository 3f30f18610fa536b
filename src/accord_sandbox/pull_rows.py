"""The pull request of a path, and what other rooms must know before they touch one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord_sandbox import commits
from accord_sandbox.access import AccessLevel
from accord_sandbox.answers import Refusal, not_found

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

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
        f"{SELECT} WHERE repository_id = ? AND number = ?", (call.repository["id"], call.identifier("number"))
    ).fetchone()
    if row is None:
        raise not_found()
    return row


def pull_by_id(call: Call, issue_id: int) -> Row:
    """Return a pull request as it is now."""
    row: Row = call.db.execute(f"{SELECT} WHERE issues.id = ?", (issue_id,)).fetchone()
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
