"""Parents, milestones, types and assignees of issues.

Docs: https://docs.github.com/rest/issues/sub-issues, …/milestones, …/assignees, and "Update an issue" for types, which
only issues in repositories of organisations have. A server without sub-issues (an older GHES) answers their paths with
404.
"""

from __future__ import annotations

from accord_sandbox import payloads
from accord_sandbox.calls import MOST_DIGITS, AccessLevel, Call, grant_of, route
from accord_sandbox.comments import record_event
from accord_sandbox.database import Row, insert
from accord_sandbox.repositories import find_user
from accord_sandbox.responses import ApiResponse, Refusal, created, invalid, not_found

MOST_SUB_ISSUES = 100
"""Source: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/adding-sub-issues"""

MOST_ASSIGNEES = 10
COPILOT = "copilot-swe-agent[bot]"
"""The account of Copilot's cloud agent, which can be assigned and has no role in the repository."""

_SUB_ISSUES = "issues/{number:int}/sub_issues"
_REFUSED = "An error occurred while adding the sub-issue to the parent issue. "


@route("GET", _SUB_ISSUES, "issues/sub-issues#list-sub-issues")
def list_sub_issues(call: Call) -> ApiResponse:
    """List the sub-issues of an issue."""
    _check_has_sub_issues(call)
    return list_near(call, "sub_issues", "child_id", "parent_id")


@route("POST", _SUB_ISSUES, "issues/sub-issues#add-sub-issue")
def add_sub_issue(call: Call) -> ApiResponse:
    """Add a sub-issue by its database id; it can have one parent only."""
    _check_has_sub_issues(call)
    call.require_on_issue(AccessLevel.TRIAGE)
    parent, child = call.issue, issue_by_id(call, call.fields.integer("sub_issue_id"))
    if parent["id"] == child["id"] or parent["is_pull"] or child["is_pull"]:
        raise Refusal(422, f"{_REFUSED}Sub-issue must be another issue")
    known = call.fetch("SELECT parent_id FROM sub_issues WHERE child_id = ?", child["id"])
    if known and known["parent_id"] == parent["id"]:
        raise Refusal(422, f"{_REFUSED}Issue may not contain duplicate sub-issues")
    if known and not call.fields.flag("replace_parent"):
        raise Refusal(422, f"{_REFUSED}Sub issue may only have one parent")
    if call.count("sub_issues WHERE parent_id = ?", parent["id"]) >= MOST_SUB_ISSUES:
        raise Refusal(422, f"{_REFUSED}Parent cannot have more than {MOST_SUB_ISSUES} sub-issues")
    call.db.execute("DELETE FROM sub_issues WHERE child_id = ?", (child["id"],))
    call.db.execute("INSERT INTO sub_issues VALUES (?, ?)", (parent["id"], child["id"]))
    return created(payloads.issue_by_id(call, parent["id"]))


@route("POST", "issues/{number:int}/assignees", "issues/assignees#add-assignees-to-an-issue")
def add_assignees(call: Call) -> ApiResponse:
    """Add assignees; GitHub leaves out accounts that cannot be assigned, without an error."""
    call.check_writable()
    call.permit(call.grant.may("issues", AccessLevel.TRIAGE, pull=bool(call.issue["is_pull"])))
    for login in call.fields.names("assignees", "login") or []:
        user = find_user(call.db, login)
        if user is None and login.lower() == COPILOT:
            insert(call.db, "users", {"login": COPILOT, "type": "Bot", "created_at": call.now})
            user = find_user(call.db, COPILOT)
        is_full = call.count("assignees WHERE issue_id = ?", call.issue["id"]) >= MOST_ASSIGNEES
        if user is None or is_full or not _can_be_assigned(call, user):
            continue
        if not call.count("assignees WHERE issue_id = ? AND user_id = ?", call.issue["id"], user["id"]):
            call.db.execute("INSERT INTO assignees VALUES (?, ?)", (call.issue["id"], user["id"]))
            record_event(call, call.issue["id"], "assigned", {"assignee": payloads.user(call, user)})
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (call.now, call.issue["id"]))
    return created(payloads.issue_by_id(call, call.issue["id"]))


@route("DELETE", "issues/{number:int}/assignees", "issues/assignees#remove-assignees-from-an-issue")
def remove_assignees(call: Call) -> ApiResponse:
    """Remove assignees; accounts that are not assigned are left out, without an error."""
    call.check_writable()
    call.permit(call.grant.may("issues", AccessLevel.TRIAGE, pull=bool(call.issue["is_pull"])))
    for login in call.fields.names("assignees", "login") or []:
        user = find_user(call.db, login)
        edge = (call.issue["id"], user["id"] if user else 0)
        if user and call.count("assignees WHERE issue_id = ? AND user_id = ?", *edge):
            call.db.execute("DELETE FROM assignees WHERE issue_id = ? AND user_id = ?", edge)
            record_event(call, call.issue["id"], "unassigned", {"assignee": payloads.user(call, user)})
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (call.now, call.issue["id"]))
    return ApiResponse(200, payloads.issue_by_id(call, call.issue["id"]))


@route("GET", "milestones", "issues/milestones#list-milestones")
def list_milestones(call: Call) -> ApiResponse:
    """List the milestones of the repository, open ones by default."""
    state = call.query.get("state", "open")
    rows = call.fetch_all(
        "SELECT * FROM milestones WHERE repository_id = ? AND ? IN ('all', state) ORDER BY number",
        call.repository["id"],
        state,
    )
    return call.list_response(rows, lambda row: payloads.milestone(call, row, call.repository["full_name"]))


@route("POST", "milestones", "issues/milestones#create-a-milestone")
def create_milestone(call: Call) -> ApiResponse:
    """Create a milestone; two cannot have one title."""
    call.check_writable()
    call.permit(call.grant.may("issues", AccessLevel.WRITE))
    call.fields.require("title")
    title, home = call.fields.string("title"), call.repository["id"]
    if call.count("milestones WHERE repository_id = ? AND title = ?", home, title):
        raise invalid("Milestone", "title", "already_exists")
    values = {
        "repository_id": home,
        "number": 1 + call.count("milestones WHERE repository_id = ?", home),
        "title": title,
        "description": call.fields.string("description", null=True),
        "state": call.fields.string("state", null=True) or "open",
        "creator_id": call.user.user_id,
        "created_at": call.now,
    }
    identifier = insert(call.db, "milestones", values)
    (row,) = call.fetch_all("SELECT * FROM milestones WHERE id = ?", identifier)
    return created(payloads.milestone(call, row, call.repository["full_name"]))


def update_milestone(call: Call) -> None:
    """Set the milestone of the issue of the path where the request has one and the account may triage."""
    may = call.grant.may("issues", AccessLevel.TRIAGE, pull=bool(call.issue["is_pull"]))
    if "milestone" not in call.fields or not may:
        return
    number = None if call.document["milestone"] is None else call.fields.integer("milestone")
    row = call.fetch(
        "SELECT id, title FROM milestones WHERE repository_id = ? AND number = ?", call.repository["id"], number or 0
    )
    if number is not None and row is None:
        raise invalid("Issue", "milestone")
    old = call.fetch(
        "SELECT id, title FROM milestones JOIN issue_milestones ON milestone_id = milestones.id WHERE issue_id = ?",
        call.issue["id"],
    )
    for event, milestone, other in (("demilestoned", old, row), ("milestoned", row, old)):
        if milestone and (other is None or other["id"] != milestone["id"]):
            record_event(call, call.issue["id"], event, {"milestone": {"title": milestone["title"]}})
    call.db.execute("DELETE FROM issue_milestones WHERE issue_id = ?", (call.issue["id"],))
    if row:
        call.db.execute("INSERT INTO issue_milestones VALUES (?, ?)", (call.issue["id"], row["id"]))


def update_type(call: Call) -> None:
    """Set the type of the issue of the path where the request has one."""
    if "type" not in call.fields:
        return
    name = call.fields.string("type", null=True)
    owner = find_user(call.db, call.repository["full_name"].partition("/")[0])
    known = next((each for each in payloads.ISSUE_TYPES if name and each.lower() == name.lower()), None)
    if name is not None and (owner is None or owner["type"] != "Organization" or known is None):
        raise Refusal(422, f"Validation Failed: issue type {name} does not exist")
    old = call.fetch("SELECT name FROM issue_types WHERE issue_id = ?", call.issue["id"])
    if known and old is None:
        record_event(call, call.issue["id"], "issue_type_added", {"issue_type": payloads.issue_type(known)})
    elif old and known is None:
        removed = {"prev_issue_type": payloads.issue_type(old["name"])}
        record_event(call, call.issue["id"], "issue_type_removed", removed)
    call.db.execute("DELETE FROM issue_types WHERE issue_id = ?", (call.issue["id"],))
    if known:
        call.db.execute("INSERT INTO issue_types VALUES (?, ?)", (call.issue["id"], known))


def _can_be_assigned(call: Call, user: Row) -> bool:
    if user["login"].lower() == COPILOT:
        return True
    return bool(call.count("collaborators WHERE repository_id = ? AND user_id = ?", call.repository["id"], user["id"]))


def list_near(call: Call, table: str, there: str, here: str) -> ApiResponse:
    """List the issues at the other end of a table's edges, in the order in which they were added."""
    rows = call.fetch_all(
        f"SELECT issues.* FROM {table} JOIN issues ON issues.id = {there} WHERE {here} = ? ORDER BY {table}.rowid",
        call.issue["id"],
    )
    return call.list_response(rows, lambda row: payloads.issue(call, row))


def issue_by_id(call: Call, identifier: int) -> Row:
    """Return an issue by its database id, of any repository that the caller sees; else raise a 404."""
    row = call.fetch("SELECT * FROM issues WHERE id = ?", identifier) if 0 < identifier < 10**MOST_DIGITS else None
    home = row and call.fetch("SELECT * FROM repositories WHERE id = ?", row["repository_id"])
    if row is None or home is None or not grant_of(call.db, call.actor, home).sees:
        raise not_found()
    return row


def _check_has_sub_issues(call: Call) -> None:
    if not call.settings.native_sub_issues:
        raise not_found()
