"""Labels of a repository, and the labels on an issue.

Docs: https://docs.github.com/rest/issues/labels
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from accord_sandbox import comments, payloads
from accord_sandbox.calls import AccessLevel
from accord_sandbox.database import next_id
from accord_sandbox.responses import ApiResponse, Refusal, invalid, not_found, texts, too_long

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row

NAME_LIMIT = 50
DESCRIPTION_LIMIT = 100
LABELS_PER_ISSUE = 100
IMPLICIT_COLOR = "ededed"
"""The grey of a label that came into being by being used."""

DEFAULTS = (
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
"""What every new repository on GitHub starts with: name, colour, description."""

_HEX = re.compile(r"[0-9a-fA-F]{6}")


def list_labels(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/labels, by name."""
    return _list(call, "SELECT * FROM labels WHERE repository_id = ? ORDER BY folded", call.repository["id"])


def get_label(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/labels/{name}, in any case."""
    return ApiResponse(200, _payload(call, _find_label(call, call.params["name"])))


def create_label(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/labels."""
    _require_management(call)
    call.fields.require("name")
    name = _checked_name(call.db, call.repository["id"], call.fields.string("name") or "")
    color = _checked_color(call.fields.string("color"))
    description = _checked_description(call.fields.string("description", null=True))
    row = insert_label(call.db, call.repository["id"], name, color or IMPLICIT_COLOR, description)
    payload = _payload(call, row)
    return ApiResponse(201, payload, {"location": payload["url"]})


def update_label(call: Call) -> ApiResponse:
    """PATCH /repos/{owner}/{repo}/labels/{name}; a renamed label stays on its issues."""
    _require_management(call)
    row = _find_label(call, call.params["name"])
    name = call.fields.string("new_name") or call.fields.string("name") or row["name"]
    if name.casefold() != row["folded"]:
        _checked_name(call.db, call.repository["id"], name)
    color = _checked_color(call.fields.string("color")) or row["color"]
    description = row["description"]
    if "description" in call.fields:
        description = _checked_description(call.fields.string("description", null=True))
    call.db.execute(
        "UPDATE labels SET name = ?, folded = ?, color = ?, description = ? WHERE id = ?",
        (name, name.casefold(), color.lower(), description, row["id"]),
    )
    return ApiResponse(200, _payload(call, _find_label(call, name)))


def delete_label(call: Call) -> ApiResponse:
    """DELETE /repos/{owner}/{repo}/labels/{name}; it goes from all issues too."""
    _require_management(call)
    row = _find_label(call, call.params["name"])
    call.db.execute("DELETE FROM issue_labels WHERE label_id = ?", (row["id"],))
    call.db.execute("DELETE FROM labels WHERE id = ?", (row["id"],))
    return ApiResponse(204)


def list_on_issue(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/issues/{issue_number}/labels."""
    statement = (
        "SELECT labels.* FROM issue_labels JOIN labels ON labels.id = label_id WHERE issue_id = ?"
        " ORDER BY issue_labels.rowid"
    )
    return _list(call, statement, call.issue["id"])


def add_to_issue(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/issues/{issue_number}/labels."""
    call.require_on_issue(AccessLevel.TRIAGE)
    names = _names(call.document)
    replace_on_issue(call, call.issue["id"], [*_names_on_issue(call, call.issue["id"]), *names])
    return ApiResponse(200, _all_on_issue(call))


def set_on_issue(call: Call) -> ApiResponse:
    """PUT /repos/{owner}/{repo}/issues/{issue_number}/labels."""
    call.require_on_issue(AccessLevel.TRIAGE)
    replace_on_issue(call, call.issue["id"], _names(call.document))
    return ApiResponse(200, _all_on_issue(call))


def clear_issue(call: Call) -> ApiResponse:
    """DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels."""
    call.require_on_issue(AccessLevel.TRIAGE)
    replace_on_issue(call, call.issue["id"], [])
    return ApiResponse(204)


def remove_from_issue(call: Call) -> ApiResponse:
    """DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}."""
    call.require_on_issue(AccessLevel.TRIAGE)
    current = _names_on_issue(call, call.issue["id"])
    gone = call.params["name"].casefold()
    kept = [name for name in current if name.casefold() != gone]
    if kept == current:
        raise Refusal(404, "Label does not exist")
    replace_on_issue(call, call.issue["id"], kept)
    return ApiResponse(200, _all_on_issue(call))


def replace_on_issue(call: Call, issue_id: int, names: Sequence[str]) -> None:
    """Give the issue exactly these labels, in this order, creating those that the repository lacks."""
    wanted = {name.casefold(): name for name in reversed(names)}
    if len(wanted) > LABELS_PER_ISSUE:
        raise invalid("Issue", "labels", "custom", message=f"labels is too long (maximum is {LABELS_PER_ISSUE})")
    rows = {folded: _label_to_use(call, name) for folded, name in reversed(wanted.items())}
    current = {name.casefold() for name in _names_on_issue(call, issue_id)}
    for folded in current - rows.keys():
        row = _find_label(call, folded)
        call.db.execute("DELETE FROM issue_labels WHERE issue_id = ? AND label_id = ?", (issue_id, row["id"]))
        _record(call, issue_id, "unlabeled", row)
    for folded, row in rows.items():
        if folded not in current:
            call.db.execute("INSERT INTO issue_labels VALUES (?, ?)", (issue_id, row["id"]))
            _record(call, issue_id, "labeled", row)
    if current != rows.keys():
        call.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (call.now, issue_id))


def insert_label(
    db: Connection, repository_id: int, name: str, color: str, description: str | None, default: bool = False
) -> Row:
    """Insert a label that was checked before, and return it."""
    identifier = next_id(db)
    db.execute(
        "INSERT INTO labels VALUES (?, ?, ?, ?, ?, ?, ?)",
        (identifier, repository_id, name, name.casefold(), color.lower(), description, default),
    )
    row: Row = db.execute("SELECT * FROM labels WHERE id = ?", (identifier,)).fetchone()
    return row


def add_defaults(db: Connection, repository_id: int) -> None:
    """Insert the labels of a new repository."""
    for name, color, description in DEFAULTS:
        insert_label(db, repository_id, name, color, description, default=True)


def _label_to_use(call: Call, name: str) -> Row:
    row = find_label(call.db, call.repository["id"], name)
    if row is not None:
        return row
    _check_text(name)
    if not call.grant.may("issues", AccessLevel.WRITE):
        error = {"resource": "Repository", "field": "label", "code": "unauthorized"}
        raise Refusal(403, "You do not have permission to create labels on this repository.", errors=[error])
    return insert_label(call.db, call.repository["id"], name, IMPLICIT_COLOR, None)


def find_label(db: Connection, repository_id: int, name: str) -> Row | None:
    """Return the repository's label of that name, in any case, or None."""
    row: Row | None = db.execute(
        "SELECT * FROM labels WHERE repository_id = ? AND folded = ?", (repository_id, name.casefold())
    ).fetchone()
    return row


def _require_management(call: Call) -> None:
    call.check_writable()
    if call.user.kind == "user" and not call.grant.may("issues", AccessLevel.WRITE):
        raise not_found()
    call.require("issues", AccessLevel.WRITE)


def _find_label(call: Call, name: str) -> Row:
    row = find_label(call.db, call.repository["id"], name)
    if row is None:
        raise not_found()
    return row


def _names_on_issue(call: Call, issue_id: int) -> list[str]:
    rows = call.db.execute(
        "SELECT name FROM issue_labels JOIN labels ON labels.id = label_id WHERE issue_id = ?"
        " ORDER BY issue_labels.rowid",
        (issue_id,),
    )
    return [row["name"] for row in rows]


def _names(document: Any) -> list[str]:
    if isinstance(document, dict):
        document = document.get("labels", [])
    return [] if document is None else texts("labels", document, "name")


def _checked_name(db: Connection, repository_id: int, name: str) -> str:
    _check_text(name)
    if find_label(db, repository_id, name) is not None:
        raise invalid("Label", "name", "already_exists")
    return name


def _check_text(name: str) -> None:
    if not name.strip():
        raise invalid("Label", "name", "missing_field")
    if len(name) > NAME_LIMIT:
        raise too_long("Label", "name", NAME_LIMIT)


def is_color(text: str) -> bool:
    """Tell whether a text is a colour to GitHub: six hexadecimal digits and nothing else."""
    return _HEX.fullmatch(text) is not None


def _checked_color(color: str | None) -> str | None:
    if color is not None and not is_color(color):
        raise invalid("Label", "color", value=color)
    return color


def _checked_description(description: str | None) -> str | None:
    if description is not None and len(description) > DESCRIPTION_LIMIT:
        raise too_long("Label", "description", DESCRIPTION_LIMIT)
    return description


def _list(call: Call, statement: str, key: int) -> ApiResponse:
    rows = call.db.execute(statement, (key,)).fetchall()
    part = rows[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(200, _payloads(call, part), call.links(len(rows)))


def _all_on_issue(call: Call) -> list[payloads.Payload]:
    rows = call.db.execute(
        "SELECT labels.* FROM issue_labels JOIN labels ON labels.id = label_id WHERE issue_id = ?"
        " ORDER BY issue_labels.rowid",
        (call.issue["id"],),
    )
    return _payloads(call, rows)


def _payloads(call: Call, rows: Iterable[Row]) -> list[payloads.Payload]:
    return [_payload(call, row) for row in rows]


def _payload(call: Call, row: Row) -> payloads.Payload:
    return payloads.label(call, row, call.repository["full_name"])


def _record(call: Call, issue_id: int, event: str, row: Row) -> None:
    detail = {"label": {"name": row["name"], "color": row["color"]}}
    comments.record_event(call, issue_id, event, detail)
