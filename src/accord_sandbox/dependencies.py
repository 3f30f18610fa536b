"""Which issue waits for which.

Docs: https://docs.github.com/rest/issues/issue-dependencies

A server without this feature (an older GHES) answers every one of these paths with 404.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord_sandbox import events, payloads
from accord_sandbox.access import AccessLevel, grant
from accord_sandbox.answers import ApiResponse, Refusal, not_found
from accord_sandbox.calls import MOST_DIGITS

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

MOST_PER_DIRECTION = 50
"""Source: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/creating-issue-dependencies"""

_REFUSED = "An error occurred while adding the blocking issue to the issue. Validation failed: "


def list_blocked_by(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/issues/{issue_number}/dependencies/blocked_by."""
    return _dependency_page(call, "blocker_id", "blocked_id")


def list_blocking(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/issues/{issue_number}/dependencies/blocking."""
    return _dependency_page(call, "blocked_id", "blocker_id")


def add_blocked_by(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/issues/{issue_number}/dependencies/blocked_by with the blocker's database id."""
    _check_feature(call)
    call.require_on_issue(AccessLevel.TRIAGE)
    blocked, blocker = call.issue, issue_by_id(call, call.fields.integer("issue_id"))
    if blocked["is_pull"]:
        raise Refusal(422, f"{_REFUSED}Source issue may only be an issue")
    if blocker["is_pull"]:
        raise Refusal(422, f"{_REFUSED}Target issue may only be an issue")
    if blocker["id"] == blocked["id"]:
        raise Refusal(422, f"{_REFUSED}Target issue cannot be the same as the source issue")
    edge = (blocked["id"], blocker["id"])
    if _is_blocked_by(call, edge):
        raise Refusal(422, f"{_REFUSED}Target issue has already been taken")
    _check_limit(call, edge)
    call.db.execute("INSERT INTO dependencies VALUES (?, ?)", edge)
    _record_dependency(call, edge, "added")
    payload = payloads.issue(call, blocker["id"])
    return ApiResponse(201, payload, {"location": payload["url"]})


def remove_blocked_by(call: Call) -> ApiResponse:
    """DELETE …/dependencies/blocked_by/{issue_id}; an edge that is not there is a success too, as on GitHub."""
    _check_feature(call)
    call.require_on_issue(AccessLevel.TRIAGE)
    blocker = issue_by_id(call, call.identifier("issue_id"))
    edge = (call.issue["id"], blocker["id"])
    if _is_blocked_by(call, edge):
        call.db.execute("DELETE FROM dependencies WHERE blocked_id = ? AND blocker_id = ?", edge)
        _record_dependency(call, edge, "removed")
    return ApiResponse(200, payloads.issue(call, blocker["id"]))


def issue_by_id(call: Call, identifier: int) -> Row:
    """Return an issue by its database id, of any repository that the caller sees; a 404 when there is none."""
    if not 0 < identifier < 10**MOST_DIGITS:
        raise not_found()
    row: Row | None = call.db.execute("SELECT * FROM issues WHERE id = ?", (identifier,)).fetchone()
    if row is None or not _can_see(call, row["repository_id"]):
        raise not_found()
    return row


def _can_see(call: Call, repository_id: int) -> bool:
    row = call.db.execute("SELECT * FROM repositories WHERE id = ?", (repository_id,)).fetchone()
    return grant(call.db, call.actor, row).sees


def _dependency_page(call: Call, wanted: str, given: str) -> ApiResponse:
    _check_feature(call)
    rows = call.db.execute(
        f"SELECT issues.* FROM dependencies JOIN issues ON issues.id = {wanted}"
        f" WHERE {given} = ? ORDER BY dependencies.rowid",
        (call.issue["id"],),
    ).fetchall()
    part = rows[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(200, payloads.issues(call, part), call.links(len(rows)))


def _check_feature(call: Call) -> None:
    if not call.settings.native_dependencies:
        raise not_found()


def _check_limit(call: Call, edge: tuple[int, int]) -> None:
    for column, identifier in zip(("blocked_id", "blocker_id"), edge, strict=True):
        count = call.db.execute(
            f"SELECT count(*) FROM dependencies WHERE {column} = ?",
            (identifier,),
        ).fetchone()[0]
        if count >= MOST_PER_DIRECTION:
            raise Refusal(422, f"{_REFUSED}Issue cannot have more than {MOST_PER_DIRECTION} dependencies")


def _is_blocked_by(call: Call, edge: tuple[int, int]) -> bool:
    statement = "SELECT 1 FROM dependencies WHERE blocked_id = ? AND blocker_id = ?"
    return call.db.execute(statement, edge).fetchone() is not None


def _record_dependency(call: Call, edge: tuple[int, int], change: str) -> None:
    blocked, blocker = edge
    events.record_event(call, blocked, f"blocked_by_{change}", {"blocked_by": events.issue_reference(blocker)})
    events.record_event(call, blocker, f"blocking_{change}", {"blocking": events.issue_reference(blocked)})
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id IN (?, ?)", (call.now, blocked, blocker))
