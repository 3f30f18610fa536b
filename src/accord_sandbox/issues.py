"""Issues and their dependencies, and the text and state that pull requests share with them.

Docs: https://docs.github.com/rest/issues/issues, …/issue-dependencies

A server without dependencies (an older GHES) answers all their paths with 404.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord_sandbox import payloads
from accord_sandbox.calls import MOST_DIGITS, AccessLevel, grant_of
from accord_sandbox.comments import BODY_LIMIT, issue_reference, record_event, since_seconds
from accord_sandbox.database import insert, words
from accord_sandbox.labels import replace_labels
from accord_sandbox.pull_state import check_reopening, follow_branches, ref_update
from accord_sandbox.responses import ApiResponse, Refusal, created, invalid, not_found, too_long
from accord_sandbox.routing import route

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row

TITLE_LIMIT = 256
CLOSING_REASONS = ("completed", "not_planned", "duplicate")
REASONS = (*CLOSING_REASONS, "reopened")
MOST_PER_DIRECTION = 50
"""Source: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/creating-issue-dependencies"""

_REFUSED = "An error occurred while adding the blocking issue to the issue. Validation failed: "


@dataclass(frozen=True)
class NewIssue:
    """An issue to insert; ``created_at`` is in seconds since the epoch."""

    title: str
    body: str | None
    author_id: int
    created_at: float
    is_pull: bool = False
    state: str = "open"
    state_reason: str | None = None
    locked: bool = False


@route("GET", "issues", "issues/issues#list-repository-issues")
def list_issues(call: Call) -> ApiResponse:
    """List issues and pull requests."""
    call.check_issues()
    conditions, values = ["repository_id = ?"], [call.repository["id"]]
    state = call.query.get("state", "open")
    if state not in ("open", "closed", "all"):
        raise invalid("Issue", "state", value=state)
    if state != "all":
        conditions.append("state = ?")
        values.append(state)
    start = since_seconds(call)
    if start is not None:
        conditions.append("updated_at >= ?")
        values.append(start)
    for name in filter(None, call.query.get("labels", "").split(",")):
        conditions.append(
            "id IN (SELECT issue_id FROM issue_labels JOIN labels ON labels.id = label_id WHERE folded = ?)"
        )
        values.append(name.strip().casefold())
    table = f"issues WHERE {' AND '.join(conditions)}"
    column = "updated_at" if call.query.get("sort") == "updated" else "created_at"
    direction = "ASC" if call.query.get("direction") == "asc" else "DESC"
    rows = call.fetch_all(
        f"SELECT * FROM {table} ORDER BY {column} {direction}, id {direction} LIMIT ? OFFSET ?",
        *values,
        call.page.size,
        call.page.offset,
    )
    return ApiResponse(200, payloads.issues(call, rows), call.links(call.count(table, *values)))


@route("GET", "issues/{number:int}", "issues/issues#get-an-issue")
def get_issue(call: Call) -> ApiResponse:
    """Return an issue or pull request."""
    return ApiResponse(200, payloads.issue(call, call.issue["id"]))


@route("POST", "issues", "issues/issues#create-an-issue", creates=True)
def create_issue(call: Call) -> ApiResponse:
    """Create an issue; labels from a caller without triage are dropped silently."""
    call.check_writable()
    call.check_issues()
    if not call.grant.may_comment():
        raise call.grant.denial()
    call.fields.require("title")
    title = checked_title(call.fields.title())
    body = checked_body(call)
    names = call.fields.names("labels", "name")
    identifier = insert_issue(call.db, call.repository["id"], NewIssue(title, body, call.user.user_id, call.now))
    if call.grant.may("issues", AccessLevel.TRIAGE):
        replace_labels(call, identifier, names or [])
    return created(payloads.issue(call, identifier))


@route("PATCH", "issues/{number:int}", "issues/issues#update-an-issue")
def update_issue(call: Call) -> ApiResponse:
    """Change an issue.

    The author may change text and state. Labels need triage and are dropped silently without it.
    """
    call.check_writable()
    issue, pull = call.issue, bool(call.issue["is_pull"])
    own = issue["author_id"] == call.user.user_id and call.grant.may_comment(pull=pull)
    rewrites = "title" in call.fields or "body" in call.fields
    if not own and not call.grant.may("issues", AccessLevel.WRITE if rewrites else AccessLevel.TRIAGE, pull=pull):
        raise call.grant.denial()
    names = call.fields.names("labels", "name")
    update_text(call)
    update_state(call)
    if names is not None and call.grant.may("issues", AccessLevel.TRIAGE, pull=pull):
        replace_labels(call, issue["id"], names)
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (call.now, issue["id"]))
    return ApiResponse(200, payloads.issue(call, issue["id"]))


def insert_issue(db: Connection, repository_id: int, new: NewIssue) -> int:
    """Insert an issue or pull request under the repository's next number and return its database id."""
    statement = "UPDATE repositories SET last_number = last_number + 1 WHERE id = ? RETURNING last_number"
    number = db.execute(statement, (repository_id,)).fetchone()[0]
    is_closed = new.state == "closed"
    values = {
        "repository_id": repository_id,
        "number": number,
        "is_pull": new.is_pull,
        "title": new.title,
        "body": new.body,
        "title_words": words(new.title),
        "body_words": words(new.body),
        "state": new.state,
        "state_reason": new.state_reason,
        "author_id": new.author_id,
        "created_at": new.created_at,
        "updated_at": new.created_at,
        "closed_at": new.created_at if is_closed else None,
        "closed_by_id": new.author_id if is_closed else None,
        "locked": new.locked,
    }
    return insert(db, "issues", values)


def update_text(call: Call) -> None:
    """Change title and body of the issue or pull request of the path where the request has them."""
    issue = call.issue
    title = call.fields.title(null=True)
    if title is not None and title != issue["title"]:
        checked_title(title)
        call.db.execute("UPDATE issues SET title = ?, title_words = ? WHERE id = ?", (title, words(title), issue["id"]))
        record_event(call, issue["id"], "renamed", {"rename": {"from": issue["title"], "to": title}})
    if "body" in call.fields:
        body = checked_body(call)
        call.db.execute("UPDATE issues SET body = ?, body_words = ? WHERE id = ?", (body, words(body), issue["id"]))


def update_state(call: Call) -> None:
    """Open or close; GitHub ignores a reason unless the state changes."""
    issue = call.issue
    state = call.fields.choice("state", ("open", "closed"))
    reason = call.fields.choice("state_reason", REASONS, null=True)
    if state is None or state == issue["state"]:
        return
    closing: tuple[object, ...] = (None, None)
    if state == "closed":
        reason = reason if reason in CLOSING_REASONS else "completed"
        closing = (call.now, call.user.user_id)
    else:
        check_reopening(call, issue)
        reason = "reopened"
    if issue["is_pull"]:
        reason = None
    call.db.execute(
        "UPDATE issues SET state = ?, state_reason = ?, closed_at = ?, closed_by_id = ? WHERE id = ?",
        (state, reason, *closing, issue["id"]),
    )
    if state == "open" and issue["is_pull"]:
        follow_branches(ref_update(call))  # its branch may have moved while it was closed
    record_event(call, issue["id"], "closed" if state == "closed" else "reopened", {"state_reason": reason})


def checked_title(title: str | None, resource: str = "Issue") -> str:
    """Return a title that GitHub takes."""
    if title is None or not title.strip():
        raise invalid(resource, "title", "missing_field")
    if len(title) > TITLE_LIMIT:
        raise too_long(resource, "title", TITLE_LIMIT)
    return title


def checked_body(call: Call, resource: str = "Issue") -> str | None:
    """Return the body of the request if GitHub takes it."""
    body = call.fields.string("body", null=True)
    if body is not None and len(body) > BODY_LIMIT:
        raise too_long(resource, "body", BODY_LIMIT)
    return body


_BLOCKED_BY = "issues/{number:int}/dependencies/blocked_by"


@route("GET", _BLOCKED_BY, "issues/issue-dependencies#list-dependencies")
def list_blocked_by(call: Call) -> ApiResponse:
    """List the issues that block this one."""
    _check_has_dependencies(call)
    rows = call.fetch_all(
        "SELECT issues.* FROM dependencies JOIN issues ON issues.id = blocker_id"
        " WHERE blocked_id = ? ORDER BY dependencies.rowid",
        call.issue["id"],
    )
    return call.list_response(rows, lambda part: payloads.issues(call, part))


@route("POST", _BLOCKED_BY, "issues/issue-dependencies#add-a-dependency")
def add_blocked_by(call: Call) -> ApiResponse:
    """Add a blocker by its database id."""
    _check_has_dependencies(call)
    call.require_on_issue(AccessLevel.TRIAGE)
    blocked, blocker = call.issue, _issue_by_id(call, call.fields.integer("issue_id"))
    if blocked["is_pull"]:
        raise Refusal(422, f"{_REFUSED}Source issue may only be an issue")
    if blocker["is_pull"]:
        raise Refusal(422, f"{_REFUSED}Target issue may only be an issue")
    if blocker["id"] == blocked["id"]:
        raise Refusal(422, f"{_REFUSED}Target issue cannot be the same as the source issue")
    edge = (blocked["id"], blocker["id"])
    if _is_blocked_by(call, edge):
        raise Refusal(422, f"{_REFUSED}Target issue has already been taken")
    for column, identifier in zip(("blocked_id", "blocker_id"), edge, strict=True):
        if call.count(f"dependencies WHERE {column} = ?", identifier) >= MOST_PER_DIRECTION:
            raise Refusal(422, f"{_REFUSED}Issue cannot have more than {MOST_PER_DIRECTION} dependencies")
    call.db.execute("INSERT INTO dependencies VALUES (?, ?)", edge)
    _record_dependency(call, edge, "added")
    return created(payloads.issue(call, blocker["id"]))


@route("DELETE", f"{_BLOCKED_BY}/{{issue_id:int}}", "issues/issue-dependencies#remove-dependency")
def remove_blocked_by(call: Call) -> ApiResponse:
    """Remove a blocker; like GitHub, succeed too where the issue does not have it."""
    _check_has_dependencies(call)
    call.require_on_issue(AccessLevel.TRIAGE)
    blocker = _issue_by_id(call, call.number("issue_id"))
    edge = (call.issue["id"], blocker["id"])
    if _is_blocked_by(call, edge):
        call.db.execute("DELETE FROM dependencies WHERE blocked_id = ? AND blocker_id = ?", edge)
        _record_dependency(call, edge, "removed")
    return ApiResponse(200, payloads.issue(call, blocker["id"]))


def _issue_by_id(call: Call, identifier: int) -> Row:
    """Return an issue by its database id, of any repository that the caller sees; else raise a 404."""
    row = call.fetch("SELECT * FROM issues WHERE id = ?", identifier) if 0 < identifier < 10**MOST_DIGITS else None
    home = row and call.fetch("SELECT * FROM repositories WHERE id = ?", row["repository_id"])
    if row is None or home is None or not grant_of(call.db, call.actor, home).sees:
        raise not_found()
    return row


def _check_has_dependencies(call: Call) -> None:
    if not call.settings.native_dependencies:
        raise not_found()


def _is_blocked_by(call: Call, edge: tuple[int, int]) -> bool:
    return call.count("dependencies WHERE blocked_id = ? AND blocker_id = ?", *edge) > 0


def _record_dependency(call: Call, edge: tuple[int, int], change: str) -> None:
    blocked, blocker = edge
    record_event(call, blocked, f"blocked_by_{change}", {"blocked_by": issue_reference(blocker)})
    record_event(call, blocker, f"blocking_{change}", {"blocking": issue_reference(blocked)})
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id IN (?, ?)", (call.now, blocked, blocker))
