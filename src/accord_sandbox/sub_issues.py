"""Issues made of issues.

Docs: https://docs.github.com/rest/issues/sub-issues
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord_sandbox import events, payloads
from accord_sandbox.access import Role
from accord_sandbox.answers import Answer, Refusal, not_found
from accord_sandbox.dependencies import issue_by_id

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

MOST_CHILDREN = 100
MOST_LEVELS = 8
_REFUSED = "An error occurred while adding the sub-issue to the parent issue. "


def list_sub_issues(call: Call) -> Answer:
    """GET /repos/{owner}/{repo}/issues/{issue_number}/sub_issues, in their order."""
    rows = call.db.execute(
        "SELECT issues.* FROM sub_issues JOIN issues ON issues.id = child_id WHERE parent_id = ? ORDER BY position",
        (call.issue["id"],),
    ).fetchall()
    part = rows[call.page.offset : call.page.offset + call.page.size]
    return Answer(200, payloads.issues(call, part), call.links(len(rows)))


def get_parent(call: Call) -> Answer:
    """GET /repos/{owner}/{repo}/issues/{issue_number}/parent."""
    parent = _parent_of(call, call.issue["id"])
    if parent is None:
        raise not_found()
    return Answer(200, payloads.issue(call, parent))


def add_sub_issue(call: Call) -> Answer:
    """POST /repos/{owner}/{repo}/issues/{issue_number}/sub_issues with the child's database id."""
    call.require_on_issue(Role.TRIAGE)
    parent, child = call.issue, issue_by_id(call, call.fields.integer("sub_issue_id"))
    _check_kin(call, parent, child)
    call.db.execute("DELETE FROM sub_issues WHERE child_id = ?", (child["id"],))
    position = call.db.execute(
        "SELECT coalesce(max(position), 0) + 1, count(*) FROM sub_issues WHERE parent_id = ?", (parent["id"],)
    ).fetchone()
    if position[1] >= MOST_CHILDREN:
        raise Refusal(422, f"{_REFUSED}Parent cannot have more than {MOST_CHILDREN} sub-issues")
    call.db.execute("INSERT INTO sub_issues VALUES (?, ?, ?)", (child["id"], parent["id"], position[0]))
    _record(call, parent, child, "added")
    payload = payloads.issue(call, parent["id"])
    return Answer(201, payload, {"location": payload["url"]})


def remove_sub_issue(call: Call) -> Answer:
    """DELETE /repos/{owner}/{repo}/issues/{issue_number}/sub_issue."""
    call.require_on_issue(Role.TRIAGE)
    child = issue_by_id(call, call.fields.integer("sub_issue_id"))
    if _parent_of(call, child["id"]) != call.issue["id"]:
        raise not_found()
    call.db.execute("DELETE FROM sub_issues WHERE child_id = ?", (child["id"],))
    _record(call, call.issue, child, "removed")
    return Answer(200, payloads.issue(call, call.issue["id"]))


def _check_kin(call: Call, parent: Row, child: Row) -> None:
    for name, row in (("Parent", parent), ("Sub issue", child)):
        if row["is_pull"]:
            raise Refusal(422, f"{_REFUSED}{name} may only be an issue")
    current = _parent_of(call, child["id"])
    if current == parent["id"] or (current is not None and not call.fields.flag("replace_parent")):
        raise Refusal(
            422,
            f"{_REFUSED}Issue may not contain duplicate sub-issues and Sub issue may only have one parent",
        )
    above, ancestor = 1, parent["id"]
    while ancestor is not None:
        if ancestor == child["id"]:
            raise Refusal(422, f"{_REFUSED}Sub issue cannot be an ancestor of its parent")
        above, ancestor = above + 1, _parent_of(call, ancestor)
    if above > MOST_LEVELS:
        raise Refusal(422, f"{_REFUSED}Sub issues cannot be nested more than {MOST_LEVELS} levels deep")


def _parent_of(call: Call, issue_id: int) -> int | None:
    row = call.db.execute("SELECT parent_id FROM sub_issues WHERE child_id = ?", (issue_id,)).fetchone()
    return None if row is None else row["parent_id"]


def _record(call: Call, parent: Row, child: Row, change: str) -> None:
    events.record(call, parent["id"], f"sub_issue_{change}", {"sub_issue": events.issue(child["id"])})
    events.record(call, child["id"], f"parent_issue_{change}", {"parent_issue": events.issue(parent["id"])})
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id IN (?, ?)", (call.now, parent["id"], child["id"]))
