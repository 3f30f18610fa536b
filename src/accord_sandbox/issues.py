"""Issues, their dependencies and the search for them, and the text and state that pull requests share with them.

Docs: https://docs.github.com/rest/issues/issues, …/issue-dependencies, https://docs.github.com/rest/search/search

A server without dependencies (an older GHES) answers all their paths with 404. Search finds an item once it is older
than ``SandboxSettings.search_lag_seconds``. It knows words, phrases in quotes and four qualifiers: ``repo:``,
``is:issue``, ``is:pr``, and ``in:title,body``. It refuses GitHub's other qualifiers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accord_sandbox import payloads
from accord_sandbox.calls import MOST_DIGITS, AccessLevel, grant_of
from accord_sandbox.comments import BODY_LIMIT, issue_reference, record_event, since_seconds
from accord_sandbox.database import insert, words
from accord_sandbox.labels import replace_labels
from accord_sandbox.pull_state import check_reopening, follow_branches, ref_update
from accord_sandbox.repositories import find_repository
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
MOST_RESULTS = 1000
MOST_CHARACTERS = 256
"""Characters of the search words; qualifiers do not count."""

_TERM = re.compile(r'(?P<not>-?)(?:(?P<key>[A-Za-z-]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')
_TYPES = {"issue": "is_pull = 0", "pr": "is_pull = 1", "pull-request": "is_pull = 1"}
_SOURCES = ("title", "body")
_NOT_HERE = frozenset(
    [
        "archived",
        "assignee",
        "author",
        "base",
        "closed",
        "commenter",
        "comments",
        "created",
        "draft",
        "head",
        "involves",
        "label",
        "language",
        "linked",
        "mentions",
        "merged",
        "milestone",
        "no",
        "org",
        "project",
        "reactions",
        "reason",
        "review",
        "sha",
        "state",
        "status",
        "team",
        "type",
        "updated",
        "user",
    ]
)
"""Qualifiers that GitHub has and the sandbox does not."""


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
    conditions = ["repository_id = ?", "updated_at >= ?"]
    values: list[Any] = [call.repository["id"], since_seconds(call) or 0.0]
    state = call.query.get("state", "open")
    if state not in ("open", "closed", "all"):
        raise invalid("Issue", "state", value=state)
    if state != "all":
        conditions.append("state = ?")
        values.append(state)
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
        **vars(new),
        "repository_id": repository_id,
        "number": number,
        "title_words": words(new.title),
        "body_words": words(new.body),
        "updated_at": new.created_at,
        "closed_at": new.created_at if is_closed else None,
        "closed_by_id": new.author_id if is_closed else None,
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
    for end, row in (("Source", blocked), ("Target", blocker)):
        if row["is_pull"]:
            raise Refusal(422, f"{_REFUSED}{end} issue may only be an issue")
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


@dataclass
class _SearchQuery:
    """A parsed search."""

    types: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    repositories: list[int] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)


@route("GET", "/search/issues", "search/search#search-issues", resource="search")
def search_issues(call: Call) -> ApiResponse:
    """Search for issues or pull requests, newest first."""
    text = call.query.get("q", "").strip()
    if not text:
        raise Refusal(422, "Validation Failed", errors=[{"resource": "Search", "field": "q", "code": "missing"}])
    query = _parse_query(call, text)
    if call.page.offset >= MOST_RESULTS:
        raise Refusal(422, "Only the first 1000 search results are available")
    conditions = [*query.types, "created_at <= ?"]
    values: list[Any] = [call.now - call.settings.search_lag_seconds]
    for phrase in query.phrases:
        columns = [f"{name}_words LIKE ?" for name in query.sources or _SOURCES]  # words contain neither % nor _
        conditions.append(f"({' OR '.join(columns)})")
        values += [f"%{phrase}%"] * len(columns)
    visible = query.repositories or [
        row["id"] for row in call.fetch_all("SELECT * FROM repositories") if grant_of(call.db, call.actor, row).sees
    ]
    conditions.append(f"repository_id IN ({', '.join('?' * len(visible))})")
    values += visible
    table = f"issues WHERE {' AND '.join(conditions)}"
    total = call.count(table, *values)
    size = min(call.page.size, MOST_RESULTS - call.page.offset)
    statement = f"SELECT * FROM {table} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
    rows = call.fetch_all(statement, *values, size, call.page.offset)
    items = [{**payload, "body": payload["body"] or "", "score": 1.0} for payload in payloads.issues(call, rows)]
    document = {"total_count": total, "incomplete_results": False, "search_type": "lexical", "items": items}
    return ApiResponse(200, document, call.links(min(total, MOST_RESULTS)))


def _parse_query(call: Call, text: str) -> _SearchQuery:
    query, length = _SearchQuery(), 0
    for term in _TERM.finditer(text):
        value = term["plain"] if term["quoted"] is None else term["quoted"]
        names = value.lower().split(",")
        if term["not"] or term["key"] in _NOT_HERE:
            raise _unsupported(term[0])
        if term["key"] == "repo":
            query.repositories.append(_repository_id(call, value))
        elif term["key"] == "is":
            if value not in _TYPES:
                raise _unsupported(term[0])
            query.types.append(_TYPES[value])
        elif term["key"] == "in":
            if not set(names) <= set(_SOURCES):
                raise _unsupported(term[0])
            query.sources += names
        else:
            written = f"{term['key']}:{value}" if term["key"] else value
            length += len(written)
            query.phrases += [found] if (found := words(written)).strip() else []
    if not query.types:
        raise Refusal(422, "Query must include 'is:issue' or 'is:pull-request'")
    if length > MOST_CHARACTERS:
        raise _invalid("The search is longer than 256 characters.")
    return query


def _repository_id(call: Call, name: str) -> int:
    row = find_repository(call.db, name)
    if row is None or not grant_of(call.db, call.actor, row).sees:
        raise _invalid(
            "The listed users and repositories cannot be searched either because the resources do not exist "
            "or you do not have permission to view them."
        )
    return int(row["id"])


def _unsupported(term: str) -> Refusal:
    return _invalid(f"The sandbox does not support `{term}`. Use words, repo:, is:issue, is:pr and in:title,body.")


def _invalid(message: str) -> Refusal:
    error = {"message": message, "resource": "Search", "field": "q", "code": "invalid"}
    return Refusal(422, "Validation Failed", errors=[error])
