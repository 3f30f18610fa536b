"""Issues, their dependencies and the search for them, and the text and state that pull requests share with them.

Docs: https://docs.github.com/rest/issues/issues, …/issue-dependencies, https://docs.github.com/rest/search/search

A server without dependencies (an older GHES) answers all their paths with 404. Search finds an item once it is older
than ``SandboxSettings.search_lag_seconds``. It knows words, phrases in quotes and six qualifiers: ``repo:``,
``is:issue``, ``is:pr``, ``in:title,body``, ``label:`` with one label, and ``state:``. It refuses all others.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, Route, grant_of
from accord_sandbox.comments import BODY_LIMIT, record_event
from accord_sandbox.database import SqlConnection, insert, words
from accord_sandbox.issue_parts import issue_by_id, list_near, replace_labels, update_milestone, update_type
from accord_sandbox.pull_state import follow_branches, pull_refusal
from accord_sandbox.responses import ApiResponse, Refusal, created, invalid, search_text, since_of, too_long
from accord_sandbox.triggers import start_workflows

TITLE_LIMIT = 256
CLOSING_REASONS = ("completed", "not_planned", "duplicate")
REASONS = (*CLOSING_REASONS, "reopened")
MOST_PER_DIRECTION = 50
"""Source: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/creating-issue-dependencies"""

_REFUSED = "An error occurred while adding the blocking issue to the issue. Validation failed: "
_TERM = re.compile(r'(?P<not>-?)(?:(?P<key>[A-Za-z-]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')
_HAS_LABEL = "id IN (SELECT issue_id FROM issue_labels JOIN labels ON labels.id = label_id WHERE folded = ?)"
_FILTERS = {"label": _HAS_LABEL, "state": "state = ?"}
_KNOWN = "repo:, is:issue, is:pr, in:title,body, label:, state:"
_HERE = re.compile(r"repo:.*|is:(issue|pr|pull-request)|in:(title|body|title,body|body,title)|(label|state):[^,]*")


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


@Route("GET", "issues", "issues/issues#list-repository-issues")
def _list_issues(call: Call) -> ApiResponse:
    call.check_issues()
    state = call.query.get("state", "open")
    if state not in ("open", "closed", "all"):
        raise invalid("Issue", "state", value=state)
    conditions: list[tuple[str, Any]] = [("repository_id = ?", call.repository["id"]), ("? IN ('all', state)", state)]
    names = filter(None, call.query.get("labels", "").split(","))
    conditions += [(_HAS_LABEL, name.strip().casefold()) for name in names]
    if since := call.query.get("since"):
        conditions.append(("updated_at >= ?", since_of(since)))
    sort = "updated_at" if call.query.get("sort") == "updated" else "created_at"
    order = f"{sort}, id" if call.query.get("direction") == "asc" else f"{sort} DESC, id DESC"
    rows = call.select("SELECT * FROM issues", conditions, order)
    return call.list_response(rows, lambda row: payloads.issue(call, row))


@Route("GET", "issues/{number:int}", "issues/issues#get-an-issue")
def _get_issue(call: Call) -> ApiResponse:
    return ApiResponse(200, payloads.issue_by_id(call, call.issue["id"]))


@Route("POST", "issues", "issues/issues#create-an-issue", creates=True)
def create_issue(call: Call) -> ApiResponse:
    """Create an issue; labels from a caller without triage are dropped silently."""
    call.check_writable()
    call.check_issues()
    call.permit(call.grant.may_comment())
    title = checked_title(call.fields.value_of("title"))
    body = checked_body(call)
    names = call.fields.names("labels")
    identifier = insert_issue(call.db, call.repository["id"], NewIssue(title, body, call.user.user_id, call.now))
    if call.grant.may("issues", AccessLevel.TRIAGE):
        replace_labels(call, identifier, names or [])
    return created(payloads.issue_by_id(call, identifier))


@Route("PATCH", "issues/{number:int}", "issues/issues#update-an-issue")
def update_issue(call: Call) -> ApiResponse:
    """Change an issue.

    The author may change text and state. Labels need triage and are dropped silently without it.
    """
    call.check_writable()
    issue, pull = call.issue, bool(call.issue["is_pull"])
    own = issue["author_id"] == call.user.user_id and call.grant.may_comment(pull=pull)
    rewrites = "title" in call.fields or "body" in call.fields
    call.permit(own or call.grant.may("issues", AccessLevel.WRITE if rewrites else AccessLevel.TRIAGE, pull=pull))
    names = call.fields.names("labels")
    update_text(call)
    update_state(call)
    update_type(call)
    update_milestone(call)
    if names is not None and call.grant.may("issues", AccessLevel.TRIAGE, pull=pull):
        replace_labels(call, issue["id"], names)
    call.touch(issue["id"])
    return ApiResponse(200, payloads.issue_by_id(call, issue["id"]))


def insert_issue(db: SqlConnection, repository_id: int, new: NewIssue) -> int:
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
    title = call.fields.get("title")
    if title is not None and title != issue["title"]:
        checked_title(title)
        call.db.execute("UPDATE issues SET title = ?, title_words = ? WHERE id = ?", (title, words(title), issue["id"]))
        record_event(call, issue["id"], "renamed", {"rename": {"from": issue["title"], "to": title}})
    if "body" in call.fields:
        body = checked_body(call)
        call.db.execute("UPDATE issues SET body = ?, body_words = ? WHERE id = ?", (body, words(body), issue["id"]))
        if body != issue["body"]:
            call.db.execute("INSERT INTO edits VALUES (?, ?, ?)", (issue["id"], call.user.user_id, call.now))


def update_state(call: Call) -> None:
    """Open or close; GitHub ignores a reason unless the state changes."""
    issue = call.issue
    state = call.fields.choice("state", ("open", "closed"))
    reason = call.fields.choice("state_reason", REASONS)
    if state is None or state == issue["state"]:
        return
    closing: tuple[object, ...] = (None, None)
    if state == "closed":
        reason = reason if reason in CLOSING_REASONS else "completed"
        closing = (call.now, call.user.user_id)
    else:
        pull = call.fetch("SELECT * FROM pulls WHERE issue_id = ?", issue["id"])
        if pull and pull["merged_at"] is not None:
            raise pull_refusal("state cannot be changed. The pull request cannot be reopened.", field="state")
        if pull and call.bare.branch(pull["head_ref"]) is None:
            message = f"state cannot be changed. The {pull['head_ref']} branch has been deleted."
            raise pull_refusal(message, field="state")
        reason = "reopened"
    if issue["is_pull"]:
        reason = None
    statement = "UPDATE issues SET state = ?, state_reason = ?, closed_at = ?, closed_by_id = ? WHERE id = ?"
    call.db.execute(statement, (state, reason, *closing, issue["id"]))
    if state == "open" and issue["is_pull"]:
        follow_branches(call)  # its branch may have moved while it was closed
        start_workflows(call, issue["id"], "reopened")
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
    body: str | None = call.fields.get("body")
    if body is not None and len(body) > BODY_LIMIT:
        raise too_long(resource, "body", BODY_LIMIT)
    return body


_BLOCKED_BY = "issues/{number:int}/dependencies/blocked_by"
_BLOCKER = f"{_BLOCKED_BY}/{{issue_id:int}}"
_BLOCKING = "issues/{number:int}/dependencies/blocking"


@Route("GET", _BLOCKED_BY, "issues/issue-dependencies#list-dependencies", setting="native_dependencies")
def _list_blocked_by(call: Call) -> ApiResponse:
    return list_near(call, "dependencies", "blocker_id", "blocked_id")


@Route("GET", _BLOCKING, "issues/issue-dependencies#list-dependencies-an-issue-blocks", setting="native_dependencies")
def _list_blocking(call: Call) -> ApiResponse:
    return list_near(call, "dependencies", "blocked_id", "blocker_id")


@Route("POST", _BLOCKED_BY, "issues/issue-dependencies#add-a-dependency", setting="native_dependencies")
def _add_blocked_by(call: Call) -> ApiResponse:
    call.require_on_issue(AccessLevel.TRIAGE)
    blocked, blocker = call.issue, issue_by_id(call, call.fields.value_of("issue_id", int))
    for end, row in (("Source", blocked), ("Target", blocker)):
        if row["is_pull"]:
            raise Refusal(422, f"{_REFUSED}{end} issue may only be an issue")
    if blocker["id"] == blocked["id"]:
        raise Refusal(422, f"{_REFUSED}Target issue cannot be the same as the source issue")
    edge = (blocked["id"], blocker["id"])
    if call.count("dependencies WHERE blocked_id = ? AND blocker_id = ?", *edge):
        raise Refusal(422, f"{_REFUSED}Target issue has already been taken")
    for column, identifier in zip(("blocked_id", "blocker_id"), edge, strict=True):
        if call.count(f"dependencies WHERE {column} = ?", identifier) >= MOST_PER_DIRECTION:
            raise Refusal(422, f"{_REFUSED}Issue cannot have more than {MOST_PER_DIRECTION} dependencies")
    call.db.execute("INSERT INTO dependencies VALUES (?, ?)", edge)
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id IN (?, ?)", (call.now, *edge))
    return created(payloads.issue_by_id(call, blocker["id"]))


@Route("DELETE", _BLOCKER, "issues/issue-dependencies#remove-dependency", setting="native_dependencies")
def remove_blocked_by(call: Call) -> ApiResponse:
    """Remove a blocker; like GitHub, succeed too where the issue does not have it."""
    call.require_on_issue(AccessLevel.TRIAGE)
    blocker = issue_by_id(call, call.number("issue_id"))
    edge = (call.issue["id"], blocker["id"])
    call.db.execute("DELETE FROM dependencies WHERE blocked_id = ? AND blocker_id = ?", edge)
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id IN (?, ?)", (call.now, *edge))
    return ApiResponse(200, payloads.issue_by_id(call, blocker["id"]))


@Route("GET", "/search/issues", "search/search#search-issues", resource="search")
def _search_issues(call: Call) -> ApiResponse:
    homes, conditions = _parsed_query(search_text(call.query))
    places = [row for row in call.fetch_all("SELECT * FROM repositories") if grant_of(call.db, call.actor, row).sees]
    if homes:
        places = [row for row in places if row["full_name"].lower() in homes]
        if len(places) < len(homes):
            raise _invalid(
                "The listed users and repositories cannot be searched either because the resources do not exist "
                "or you do not have permission to view them."
            )
    conditions.append(("created_at <= ?", call.now - call.settings.search_lag_seconds))
    visible = json.dumps([row["id"] for row in places])
    conditions.append(("repository_id IN (SELECT value FROM json_each(?))", visible))
    rows = call.select("SELECT * FROM issues", conditions, "created_at DESC, id DESC")
    return call.search_response(
        rows, lambda row: {**payloads.issue(call, row), "body": row["body"] or ""}, search_type="lexical"
    )


def _parsed_query(text: str) -> tuple[set[str], list[tuple[str, Any]]]:
    """Return the names of repositories, and the conditions on an issue."""
    conditions: list[tuple[str, Any]] = []
    sources, homes, phrases = ["title", "body"], set[str](), list[str]()
    for term in _TERM.finditer(text):
        key, value = term["key"], term["plain"] if term["quoted"] is None else term["quoted"]
        wanted = value.lower().split(",")
        if term["not"] or (key and not _HERE.fullmatch(f"{key}:{value}")):
            raise _invalid(f"The sandbox does not support `{term[0]}`. It knows words, {_KNOWN}.")
        if key == "repo":
            homes |= {value.lower()}
        elif key == "is":
            conditions.append(("is_pull = ?", value != "issue"))
        elif key == "in":
            sources = wanted
        elif key in _FILTERS:
            conditions.append((_FILTERS[key], value.casefold()))
        else:
            phrases.append(value)
    if not any("is_pull" in condition for condition, _ in conditions):
        raise Refusal(422, "Query must include 'is:issue' or 'is:pull-request'")
    columns = " || ".join(f"{name}_words" for name in sources)
    found = filter(str.strip, map(words, phrases))
    return homes, [*conditions, *((f"({columns}) LIKE ?", f"%{phrase}%") for phrase in found)]


def _invalid(message: str) -> Refusal:
    error = {"message": message, "resource": "Search", "field": "q", "code": "invalid"}
    return Refusal(422, "Validation Failed", errors=[error])
