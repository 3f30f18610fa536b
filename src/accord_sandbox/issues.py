"""Issues, and what they share with pull requests.

Docs: https://docs.github.com/rest/issues/issues
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord_sandbox import comments, labels, payloads, pull_state
from accord_sandbox.calls import MOST_DIGITS, AccessLevel, grant, role_of
from accord_sandbox.comments import BODY_LIMIT, since_seconds
from accord_sandbox.database import next_id, words
from accord_sandbox.responses import ApiResponse, Refusal, invalid, not_found, too_long

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row


TITLE_LIMIT = 256
CLOSING_REASONS = ("completed", "not_planned", "duplicate")
REASONS = (*CLOSING_REASONS, "reopened")
_ORDERS = {
    "created": "created_at",
    "updated": "updated_at",
    "comments": "(SELECT count(*) FROM comments WHERE issue_id = issues.id)",
}


@dataclass(frozen=True)
class NewIssue:
    """The columns of an issue about to be inserted; moments are seconds since the epoch."""

    title: str
    body: str | None
    author_id: int
    created_at: float
    is_pull: bool = False
    state: str = "open"
    state_reason: str | None = None
    locked: bool = False


def list_issues(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/issues; pull requests are among them, as on GitHub."""
    call.check_issues()
    where, keys = _filters(call)
    total = call.db.execute(f"SELECT count(*) FROM issues WHERE {where}", keys).fetchone()[0]
    column = _ORDERS.get(call.query.get("sort", ""), "created_at")
    direction = "ASC" if call.query.get("direction") == "asc" else "DESC"
    part = call.db.execute(
        f"SELECT * FROM issues WHERE {where} ORDER BY {column} {direction}, id {direction} LIMIT ? OFFSET ?",
        (*keys, call.page.size, call.page.offset),
    )
    return ApiResponse(200, payloads.issues(call, part.fetchall()), call.links(total))


def get_issue(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/issues/{issue_number}."""
    return ApiResponse(200, payloads.issue(call, call.issue["id"]))


def create_issue(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/issues; labels and assignees of a caller without triage are dropped silently."""
    call.check_writable()
    call.check_issues()
    if not call.grant.may_speak():
        raise call.grant.refusal()
    call.fields.require("title")
    title = _checked_title(call.fields.title())
    body = _checked_body(call.fields.string("body", null=True))
    names, logins = call.fields.names("labels", "name"), _logins(call)
    identifier = insert_issue(
        call.db, call.repository["id"], NewIssue(title, body, author_id=call.user.user_id, created_at=call.now)
    )
    if call.grant.may("issues", AccessLevel.TRIAGE):
        labels.replace_on_issue(call, identifier, names or [])
        _assign(call, identifier, _checked_assignees(call, logins or []))
    payload = payloads.issue(call, identifier)
    return ApiResponse(201, payload, {"location": payload["url"]})


def update_issue(call: Call) -> ApiResponse:
    """PATCH /repos/{owner}/{repo}/issues/{issue_number}.

    The author may change text and state; labels and assignees need triage and are dropped silently without it.
    """
    call.check_writable()
    issue, pull = call.issue, bool(call.issue["is_pull"])
    triage = call.grant.may("issues", AccessLevel.TRIAGE, pull=pull)
    own = issue["author_id"] == call.user.user_id and call.grant.may_speak(pull=pull)
    rewrites = "title" in call.fields or "body" in call.fields
    if not own and not call.grant.may("issues", AccessLevel.WRITE if rewrites else AccessLevel.TRIAGE, pull=pull):
        raise call.grant.refusal()
    names, logins = call.fields.names("labels", "name"), _logins(call)
    update_text(call)
    change_state(call)
    if triage and names is not None:
        labels.replace_on_issue(call, issue["id"], names)
    if triage and logins is not None:
        _assign(call, issue["id"], _checked_assignees(call, logins))
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (call.now, issue["id"]))
    return ApiResponse(200, payloads.issue(call, issue["id"]))


def lock_issue(call: Call) -> ApiResponse:
    """PUT /repos/{owner}/{repo}/issues/{issue_number}/lock."""
    call.require_on_issue(AccessLevel.WRITE)
    reason = call.fields.choice("lock_reason", ("off-topic", "too heated", "resolved", "spam"), null=True)
    _set_lock(call, True, reason)
    return ApiResponse(204)


def unlock_issue(call: Call) -> ApiResponse:
    """DELETE /repos/{owner}/{repo}/issues/{issue_number}/lock."""
    call.require_on_issue(AccessLevel.WRITE)
    _set_lock(call, False, None)
    return ApiResponse(204)


def add_assignees(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/issues/{issue_number}/assignees; who cannot be assigned is dropped silently."""
    call.require_on_issue(AccessLevel.TRIAGE)
    found = [identifier for login in _logins(call) or [] if (identifier := _assignable(call, login)) is not None]
    _assign(call, call.issue["id"], [*_assigned(call), *found])
    return ApiResponse(201, payloads.issue(call, call.issue["id"]))


def remove_assignees(call: Call) -> ApiResponse:
    """DELETE /repos/{owner}/{repo}/issues/{issue_number}/assignees."""
    call.require_on_issue(AccessLevel.TRIAGE)
    gone = {_assignable(call, login) for login in _logins(call) or []}
    _assign(call, call.issue["id"], [identifier for identifier in _assigned(call) if identifier not in gone])
    return ApiResponse(200, payloads.issue(call, call.issue["id"]))


def insert_issue(db: Connection, repository_id: int, draft: NewIssue) -> int:
    """Insert an issue or pull request under the repository's next number and return its database id."""
    number = db.execute(
        "UPDATE repositories SET last_number = last_number + 1 WHERE id = ? RETURNING last_number",
        (repository_id,),
    ).fetchone()[0]
    closed_at = draft.created_at if draft.state == "closed" else None
    identifier = next_id(db)
    values = {
        "id": identifier,
        "repository_id": repository_id,
        "number": number,
        "is_pull": draft.is_pull,
        "title": draft.title,
        "body": draft.body,
        "title_words": words(draft.title),
        "body_words": words(draft.body),
        "state": draft.state,
        "state_reason": draft.state_reason,
        "author_id": draft.author_id,
        "created_at": draft.created_at,
        "updated_at": draft.created_at,
        "closed_at": closed_at,
        "closed_by_id": draft.author_id if closed_at else None,
        "locked": draft.locked,
    }
    columns, marks = ", ".join(values), ", ".join("?" * len(values))
    db.execute(f"INSERT INTO issues ({columns}) VALUES ({marks})", tuple(values.values()))
    return identifier


def _filters(call: Call) -> tuple[str, list[object]]:
    conditions, keys = ["repository_id = ?"], [call.repository["id"]]
    state = call.query.get("state", "open")
    if state not in ("open", "closed", "all"):
        raise invalid("Issue", "state", value=state)
    if state != "all":
        conditions.append("state = ?")
        keys.append(state)
    if call.query.get("creator"):
        conditions.append("author_id = (SELECT id FROM users WHERE login = ?)")
        keys.append(call.query["creator"])
    start = since_seconds(call)
    if start is not None:
        conditions.append("updated_at >= ?")
        keys.append(start)
    assignee = call.query.get("assignee", "")
    if assignee in ("none", "*"):
        wanted = "NOT IN" if assignee == "none" else "IN"
        conditions.append(f"id {wanted} (SELECT issue_id FROM assignees)")
    elif assignee:
        conditions.append(
            "id IN (SELECT issue_id FROM assignees JOIN users ON users.id = user_id WHERE users.login = ?)"
        )
        keys.append(assignee)
    for name in filter(None, call.query.get("labels", "").split(",")):
        conditions.append(
            "id IN (SELECT issue_id FROM issue_labels JOIN labels ON labels.id = label_id WHERE folded = ?)"
        )
        keys.append(name.strip().casefold())
    return " AND ".join(conditions), keys


def update_text(call: Call) -> None:
    """Change title and body of the issue or pull request of the path, as far as the request says so."""
    issue = call.issue
    title = call.fields.title(null=True)
    if title is not None and title != issue["title"]:
        _checked_title(title)
        call.db.execute("UPDATE issues SET title = ?, title_words = ? WHERE id = ?", (title, words(title), issue["id"]))
        detail = {"rename": {"from": issue["title"], "to": title}}
        comments.record_event(call, issue["id"], "renamed", detail)
    if "body" in call.fields:
        body = _checked_body(call.fields.string("body", null=True))
        call.db.execute("UPDATE issues SET body = ?, body_words = ? WHERE id = ?", (body, words(body), issue["id"]))


def change_state(call: Call) -> None:
    """Open or close; a reason is ignored unless the state changes, as GitHub documents."""
    issue = call.issue
    state = call.fields.choice("state", ("open", "closed"))
    reason = call.fields.choice("state_reason", REASONS, null=True)
    if state is None or state == issue["state"]:
        return
    if state == "closed":
        reason = reason if reason in CLOSING_REASONS else "completed"
        closed: tuple[object, ...] = (call.now, call.user.user_id)
    else:
        pull_state.check_reopening(call, issue)
        reason, closed = "reopened", (None, None)
    if issue["is_pull"]:
        reason = None
    call.db.execute(
        "UPDATE issues SET state = ?, state_reason = ?, closed_at = ?, closed_by_id = ? WHERE id = ?",
        (state, reason, *closed, issue["id"]),
    )
    if state == "open" and issue["is_pull"]:
        pull_state.follow_branches(pull_state.ref_update(call))  # its branch may have moved meanwhile
    event = "closed" if state == "closed" else "reopened"
    comments.record_event(call, issue["id"], event, {"state_reason": reason})


def _set_lock(call: Call, locked: bool, reason: str | None) -> None:
    call.db.execute("UPDATE issues SET locked = ?, lock_reason = ? WHERE id = ?", (locked, reason, call.issue["id"]))
    event = "locked" if locked else "unlocked"
    comments.record_event(call, call.issue["id"], event, {"lock_reason": reason})


def _logins(call: Call) -> list[str] | None:
    logins = call.fields.names("assignees", "login")
    single = call.fields.string("assignee", null=True)
    return [single] if logins is None and single else logins


def _checked_assignees(call: Call, logins: Sequence[str]) -> list[int]:
    found = []
    for login in logins:
        identifier = _assignable(call, login)
        if identifier is None:
            raise invalid("Issue", "assignees", value=login)
        found.append(identifier)
    return found


def _assignable(call: Call, login: str) -> int | None:
    row = call.db.execute("SELECT id FROM users WHERE login = ? AND type = 'User'", (login,)).fetchone()
    if row is None or role_of(call.db, row["id"], call.repository) <= AccessLevel.READ:
        return None
    return int(row["id"])


def _assigned(call: Call) -> list[int]:
    rows = call.db.execute("SELECT user_id FROM assignees WHERE issue_id = ? ORDER BY rowid", (call.issue["id"],))
    return [row["user_id"] for row in rows]


def _assign(call: Call, issue_id: int, users: Sequence[int]) -> None:
    call.db.execute("DELETE FROM assignees WHERE issue_id = ?", (issue_id,))
    call.db.executemany("INSERT OR IGNORE INTO assignees VALUES (?, ?)", [(issue_id, user) for user in users])


def _checked_title(title: str | None) -> str:
    if title is None or not title.strip():
        raise invalid("Issue", "title", "missing_field")
    if len(title) > TITLE_LIMIT:
        raise too_long("Issue", "title", TITLE_LIMIT)
    return title


def _checked_body(body: str | None) -> str | None:
    if body is not None and len(body) > BODY_LIMIT:
        raise too_long("Issue", "body", BODY_LIMIT)
    return body


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
    comments.record_event(call, blocked, f"blocked_by_{change}", {"blocked_by": comments.issue_reference(blocker)})
    comments.record_event(call, blocker, f"blocking_{change}", {"blocking": comments.issue_reference(blocked)})
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id IN (?, ?)", (call.now, blocked, blocker))
