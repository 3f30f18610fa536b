"""Parts of an issue: labels, sub-issues, assignees, a milestone and a type.

Docs: https://docs.github.com/rest/issues/labels, …/sub-issues, …/assignees, …/milestones, and "Update an issue" for
types, which only issues in repositories of organisations have. A server without sub-issues (an older GHES) answers
their paths with 404.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, Route, grant_of
from accord_sandbox.comments import record_event
from accord_sandbox.database import Row, SqlConnection, fetch, find_user, insert
from accord_sandbox.responses import ApiResponse, Refusal, created, invalid, names_of, not_found, or_404, too_long

NAME_LIMIT = 50
DESCRIPTION_LIMIT = 100
LABELS_PER_ISSUE = 100
IMPLICIT_COLOR = "ededed"
"""The grey of a label that GitHub creates because someone used it."""

DEFAULT_LABELS = (
    ("bug", "d73a4a", "Something isn't working"),
    ("documentation", "0075ca", "Improvements or additions to documentation"),
    ("duplicate", "cfd3d7", "This issue or pull request already exists"),
    ("enhancement", "a2eeef", "New feature or request"),
    ("good first issue", "7057ff", "Good for newcomers"),
    ("help wanted", "008672", "Extra attention is needed"),
    ("invalid", "e4e669", "This doesn't seem right"),
    ("question", "d876e3", "Further information is requested"),
    ("wontfix", "ffffff", "This will not be worked on"),
)
"""Labels of every new repository on GitHub: name, colour, description."""

COLOR = re.compile(r"[0-9a-fA-F]{6}")
_ON_ISSUE = f"{payloads.LABELS_OF_ISSUE} ORDER BY issue_labels.rowid"


@Route("GET", "labels", "issues/labels#list-labels-for-a-repository")
def _list_labels(call: Call) -> ApiResponse:
    rows = call.fetch_all("SELECT * FROM labels WHERE repository_id = ? ORDER BY folded", call.repository["id"])
    return call.list_response(rows, lambda row: _payload(call, row))


@Route("GET", "labels/{name:path}", "issues/labels#get-a-label")
def _get_label(call: Call) -> ApiResponse:
    return ApiResponse(200, _payload(call, _existing_label(call, call.params["name"])))


@Route("POST", "labels", "issues/labels#create-a-label")
def _create_label(call: Call) -> ApiResponse:
    _require_management(call)
    name = call.fields.value_of("name")
    _check_new_name(call, name)
    row = insert_label(call.db, call.repository["id"], name, _color(call) or IMPLICIT_COLOR, _description(call))
    return created(_payload(call, row))


@Route("PATCH", "labels/{name:path}", "issues/labels#update-a-label")
def _update_label(call: Call) -> ApiResponse:
    _require_management(call)
    row = _existing_label(call, call.params["name"])
    name = call.fields.get("new_name") or call.fields.get("name") or row["name"]
    if name.casefold() != row["folded"]:
        _check_new_name(call, name)
    color = _color(call) or row["color"]
    description = _description(call) if "description" in call.fields else row["description"]
    statement = "UPDATE labels SET name = ?, folded = ?, color = ?, description = ? WHERE id = ?"
    call.db.execute(statement, (name, name.casefold(), color.lower(), description, row["id"]))
    return ApiResponse(200, _payload(call, _existing_label(call, name)))


@Route("DELETE", "labels/{name:path}", "issues/labels#delete-a-label")
def _delete_label(call: Call) -> ApiResponse:
    _require_management(call)
    row = _existing_label(call, call.params["name"])
    call.db.execute("DELETE FROM issue_labels WHERE label_id = ?", (row["id"],))
    call.db.execute("DELETE FROM labels WHERE id = ?", (row["id"],))
    return ApiResponse(204)


@Route("POST", "issues/{number:int}/labels", "issues/labels#add-labels-to-an-issue")
def _add_labels(call: Call) -> ApiResponse:
    return _relabel(call, [*_names_on_issue(call, call.issue["id"]), *_given_labels(call)])


@Route("PUT", "issues/{number:int}/labels", "issues/labels#set-labels-for-an-issue")
def _set_labels(call: Call) -> ApiResponse:
    return _relabel(call, _given_labels(call))


def _given_labels(call: Call) -> list[str]:
    return names_of("labels", call.document) if isinstance(call.document, list) else call.fields.names("labels") or []


@Route("DELETE", "issues/{number:int}/labels/{name:path}", "issues/labels#remove-a-label-from-an-issue")
def _remove_label(call: Call) -> ApiResponse:
    call.require_on_issue(AccessLevel.TRIAGE)
    current = _names_on_issue(call, call.issue["id"])
    rest = [name for name in current if name.casefold() != call.params["name"].casefold()]
    if rest == current:
        raise Refusal(404, "Label does not exist")
    return _relabel(call, rest)


def replace_labels(call: Call, issue_id: int, names: Sequence[str]) -> None:
    """Give the issue exactly these labels, in this order, creating those that the repository lacks."""
    wanted = {name.casefold(): name for name in reversed(names)}
    if len(wanted) > LABELS_PER_ISSUE:
        raise invalid("Issue", "labels", "custom", message=f"labels is too long (maximum is {LABELS_PER_ISSUE})")
    rows = {folded: _label_to_use(call, name) for folded, name in reversed(wanted.items())}
    current = {name.casefold() for name in _names_on_issue(call, issue_id)}
    for folded in current - rows.keys():
        row = _existing_label(call, folded)
        call.db.execute("DELETE FROM issue_labels WHERE issue_id = ? AND label_id = ?", (issue_id, row["id"]))
        _record(call, issue_id, "unlabeled", row)
    for folded, row in rows.items():
        if folded not in current:
            call.db.execute("INSERT INTO issue_labels VALUES (?, ?)", (issue_id, row["id"]))
            _record(call, issue_id, "labeled", row)
    if current != rows.keys():
        call.touch(issue_id)


def insert_label(
    db: SqlConnection, repository_id: int, name: str, color: str, description: str | None, default: bool = False
) -> Row:
    """Insert a label that was checked before, and return it."""
    row = {"repository_id": repository_id, "name": name, "folded": name.casefold(), "color": color.lower()}
    identifier = insert(db, "labels", {**row, "description": description, "is_default": default})
    found: Row = db.execute("SELECT * FROM labels WHERE id = ?", (identifier,)).fetchone()
    return found


def find_label(db: SqlConnection, repository_id: int, name: str) -> Row | None:
    """Return the repository's label of that name, in any case, or None."""
    return fetch(db, "SELECT * FROM labels WHERE repository_id = ? AND folded = ?", repository_id, name.casefold())


def _relabel(call: Call, names: Sequence[str]) -> ApiResponse:
    call.require_on_issue(AccessLevel.TRIAGE)
    replace_labels(call, call.issue["id"], names)
    return ApiResponse(200, [_payload(call, row) for row in call.fetch_all(_ON_ISSUE, call.issue["id"])])


def _label_to_use(call: Call, name: str) -> Row:
    row = find_label(call.db, call.repository["id"], name)
    if row is not None:
        return row
    _check_text(name)
    if not call.grant.may("issues", AccessLevel.WRITE):
        error = {"resource": "Repository", "field": "label", "code": "unauthorized"}
        raise Refusal(403, "You do not have permission to create labels on this repository.", errors=[error])
    return insert_label(call.db, call.repository["id"], name, IMPLICIT_COLOR, None)


def _require_management(call: Call) -> None:
    call.check_writable()
    if call.user.kind == "user" and not call.grant.may("issues", AccessLevel.WRITE):
        raise not_found()
    call.require("issues", AccessLevel.WRITE)


def _existing_label(call: Call, name: str) -> Row:
    return or_404(find_label(call.db, call.repository["id"], name))


def _names_on_issue(call: Call, issue_id: int) -> list[str]:
    return [row["name"] for row in call.fetch_all(_ON_ISSUE, issue_id)]


def _check_new_name(call: Call, name: str) -> None:
    _check_text(name)
    if find_label(call.db, call.repository["id"], name) is not None:
        raise invalid("Label", "name", "already_exists")


def _check_text(name: str) -> None:
    if not name.strip():
        raise invalid("Label", "name", "missing_field")
    if len(name) > NAME_LIMIT:
        raise too_long("Label", "name", NAME_LIMIT)


def _color(call: Call) -> str | None:
    color: str | None = call.fields.get("color")
    if color is not None and not COLOR.fullmatch(color):
        raise invalid("Label", "color", value=color)
    return color


def _description(call: Call) -> str | None:
    description: str | None = call.fields.get("description")
    if description is not None and len(description) > DESCRIPTION_LIMIT:
        raise too_long("Label", "description", DESCRIPTION_LIMIT)
    return description


def _payload(call: Call, row: Row) -> payloads.Payload:
    return payloads.label(call, row, call.repository["full_name"])


def _record(call: Call, issue_id: int, event: str, row: Row) -> None:
    record_event(call, issue_id, event, {"label": {"name": row["name"], "color": row["color"]}})


MOST_SUB_ISSUES = 100
"""Source: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/adding-sub-issues"""

COPILOT = "copilot-swe-agent[bot]"
"""The account of Copilot's cloud agent, which can be assigned and has no role in the repository."""

_ASSIGNEES = "issues/{number:int}/assignees"
_SUB_ISSUES = "issues/{number:int}/sub_issues"
_REFUSED = "An error occurred while adding the sub-issue to the parent issue. "


@Route("GET", _SUB_ISSUES, "issues/sub-issues#list-sub-issues", setting="native_sub_issues")
def _list_sub_issues(call: Call) -> ApiResponse:
    return list_near(call, "sub_issues", "child_id", "parent_id")


@Route("POST", _SUB_ISSUES, "issues/sub-issues#add-sub-issue", setting="native_sub_issues")
def add_sub_issue(call: Call) -> ApiResponse:
    """Add a sub-issue by its database id; it can have one parent only."""
    call.require_on_issue(AccessLevel.TRIAGE)
    parent, child = call.issue, issue_by_id(call, call.fields.value_of("sub_issue_id", int))
    if parent["id"] == child["id"] or parent["is_pull"] or child["is_pull"]:
        raise Refusal(422, f"{_REFUSED}Sub-issue must be another issue")
    known = call.fetch("SELECT parent_id FROM sub_issues WHERE child_id = ?", child["id"])
    if known and known["parent_id"] == parent["id"]:
        raise Refusal(422, f"{_REFUSED}Issue may not contain duplicate sub-issues")
    if known and not call.fields.get("replace_parent"):
        raise Refusal(422, f"{_REFUSED}Sub issue may only have one parent")
    if call.count("sub_issues WHERE parent_id = ?", parent["id"]) >= MOST_SUB_ISSUES:
        raise Refusal(422, f"{_REFUSED}Parent cannot have more than {MOST_SUB_ISSUES} sub-issues")
    call.db.execute("DELETE FROM sub_issues WHERE child_id = ?", (child["id"],))
    call.db.execute("INSERT INTO sub_issues VALUES (?, ?)", (parent["id"], child["id"]))
    return created(payloads.issue_by_id(call, parent["id"]))


@Route("POST", _ASSIGNEES, "issues/assignees#add-assignees-to-an-issue")
def add_assignees(call: Call) -> ApiResponse:
    """Add assignees; GitHub leaves out accounts that cannot be assigned, without an error."""
    return created(_change_assignees(call, adds=True))


@Route("DELETE", _ASSIGNEES, "issues/assignees#remove-assignees-from-an-issue")
def remove_assignees(call: Call) -> ApiResponse:
    """Remove assignees; accounts that are not assigned are left out, without an error."""
    return ApiResponse(200, _change_assignees(call, adds=False))


def _change_assignees(call: Call, *, adds: bool) -> payloads.Payload:
    call.require_on_issue(AccessLevel.TRIAGE)
    issue_id = call.issue["id"]
    for login in call.fields.names("assignees") or []:
        user = find_user(call.db, login)
        if user is None and login.lower() == COPILOT and adds:
            insert(call.db, "users", {"login": COPILOT, "type": "Bot", "created_at": call.now})
            user = find_user(call.db, COPILOT)
        edge = (issue_id, user["id"] if user else 0)
        is_assigned = call.count("assignees WHERE issue_id = ? AND user_id = ?", *edge) > 0
        if user is None or is_assigned is adds:
            continue
        role = call.count("collaborators WHERE repository_id = ? AND user_id = ?", call.repository["id"], user["id"])
        if adds and not role and user["login"] != COPILOT:
            continue
        delete = "DELETE FROM assignees WHERE issue_id = ? AND user_id = ?"
        call.db.execute("INSERT INTO assignees VALUES (?, ?)" if adds else delete, edge)
        record_event(call, issue_id, "assigned" if adds else "unassigned", {"assignee": payloads.user(call, user)})
    call.touch(issue_id)
    return payloads.issue_by_id(call, issue_id)


@Route("GET", "milestones", "issues/milestones#list-milestones")
def _list_milestones(call: Call) -> ApiResponse:
    statement = "SELECT * FROM milestones WHERE repository_id = ? AND ? IN ('all', state) ORDER BY number"
    rows = call.fetch_all(statement, call.repository["id"], call.query.get("state", "open"))
    return call.list_response(rows, lambda row: payloads.milestone(call, row, call.repository["full_name"]))


@Route("POST", "milestones", "issues/milestones#create-a-milestone")
def _create_milestone(call: Call) -> ApiResponse:
    call.check_writable()
    call.permit(call.grant.may("issues", AccessLevel.WRITE))
    title, home = call.fields.value_of("title"), call.repository["id"]
    if call.count("milestones WHERE repository_id = ? AND title = ?", home, title):
        raise invalid("Milestone", "title", "already_exists")
    values = {
        "repository_id": home,
        "number": 1 + call.count("milestones WHERE repository_id = ?", home),
        "title": title,
        "description": call.fields.get("description"),
        "state": call.fields.get("state") or "open",
        "creator_id": call.user.user_id,
        "created_at": call.now,
    }
    row = call.row("milestones", insert(call.db, "milestones", values))
    return created(payloads.milestone(call, row, call.repository["full_name"]))


def update_milestone(call: Call) -> None:
    """Set the milestone of the issue of the path where the request has one and the account may triage."""
    may = call.grant.may("issues", AccessLevel.TRIAGE, pull=bool(call.issue["is_pull"]))
    if "milestone" not in call.fields or not may:
        return
    number = None if call.document["milestone"] is None else call.fields.value_of("milestone", int)
    statement = "SELECT id, title FROM milestones WHERE repository_id = ? AND number = ?"
    row = call.fetch(statement, call.repository["id"], number if number and 0 < number < 2**63 else 0)
    if number is not None and row is None:
        raise invalid("Issue", "milestone")
    old = call.fetch("SELECT id, title FROM milestones WHERE id = ?", call.issue["milestone_id"])
    for event, milestone, other in (("demilestoned", old, row), ("milestoned", row, old)):
        if milestone and (other is None or other["id"] != milestone["id"]):
            record_event(call, call.issue["id"], event, {"milestone": {"title": milestone["title"]}})
    values = (row["id"] if row else None, call.issue["id"])
    call.db.execute("UPDATE issues SET milestone_id = ? WHERE id = ?", values)


def update_type(call: Call) -> None:
    """Set the type of the issue of the path where the request has one."""
    if "type" not in call.fields:
        return
    name = call.fields.get("type")
    owner = find_user(call.db, call.repository["full_name"].partition("/")[0])
    known = next((each for each in payloads.ISSUE_TYPES if name and each.lower() == name.lower()), None)
    if name is not None and (owner is None or owner["type"] != "Organization" or known is None):
        raise Refusal(422, f"Validation Failed: issue type {name} does not exist")
    old = call.issue["type"]
    if known and old is None:
        record_event(call, call.issue["id"], "issue_type_added", {"issue_type": payloads.issue_type(known)})
    elif old and known is None:
        record_event(call, call.issue["id"], "issue_type_removed", {"prev_issue_type": payloads.issue_type(old)})
    call.db.execute("UPDATE issues SET type = ? WHERE id = ?", (known, call.issue["id"]))


def list_near(call: Call, table: str, there: str, here: str) -> ApiResponse:
    """List the issues at the other end of a table's edges, in the order in which they were added."""
    edges = f"{table} JOIN issues ON issues.id = {there} WHERE {here} = ?"
    rows = call.fetch_all(f"SELECT issues.* FROM {edges} ORDER BY {table}.rowid", call.issue["id"])
    return call.list_response(rows, lambda row: payloads.issue(call, row))


def issue_by_id(call: Call, identifier: int) -> Row:
    """Return an issue by its database id, of any repository that the caller sees; else raise a 404."""
    row = call.fetch("SELECT * FROM issues WHERE id = ?", identifier) if 0 < identifier < 2**63 else None
    home = row and call.fetch("SELECT * FROM repositories WHERE id = ?", row["repository_id"])
    if row is None or home is None or not grant_of(call.db, call.actor, home).sees:
        raise not_found()
    return row
