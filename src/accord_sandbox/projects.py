"""Projects over GraphQL: their items, and the single-select fields of an item.

Docs: https://docs.github.com/issues/planning-and-tracking-with-projects/automating-your-project/using-the-api-to-manage-projects.
A job's GITHUB_TOKEN cannot access projects; apps reach those of organizations only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Actor, Call, grant_of, role_of
from accord_sandbox.database import Connection, Row, insert
from accord_sandbox.graphql import FieldError, Page, global_number, page_of

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo

PROJECT = "PVT"
_FIELD = "PVTSSF"
_ITEM = "PVTI"
_AREA = "organization_projects"

_PROJECTS = (
    "SELECT projects.*, 'ProjectV2' AS graphql_type, users.login, users.type AS owner_type"
    " FROM projects JOIN users ON users.id = owner_id WHERE "
)
_ISSUES = (
    "SELECT issues.*, CASE is_pull WHEN 1 THEN 'PullRequest' ELSE 'Issue' END AS graphql_type,"
    " repositories.full_name FROM issues JOIN repositories ON repositories.id = repository_id WHERE "
)


def insert_project(db: Connection, owner: int, number: int, title: str, fields: Mapping[str, Sequence[str]]) -> int:
    """Create a project; a field without options holds text."""
    values = {
        "owner_id": owner,
        "number": number,
        "title": title,
        "fields": json.dumps({k: list(v) for k, v in fields.items()}),
    }
    return insert(db, "projects", values)


def owner_of(_source: None, info: GraphQLResolveInfo[Any], login: str) -> Row | None:
    """Return the account of a login; None without one."""
    row: Row | None = info.context.fetch("SELECT * FROM users WHERE login = ? COLLATE NOCASE AND type != 'Bot'", login)
    return row


def _project(owner: Row, info: GraphQLResolveInfo[Any], number: int) -> Row:
    call: Call = info.context
    row = call.fetch(f"{_PROJECTS}owner_id = ? AND number = ?", owner["id"], number)
    if row is not None:
        _require(call, row, AccessLevel.READ, f"Could not resolve to a ProjectV2 with the number {number}.")
        return row
    raise FieldError("NOT_FOUND", f"Could not resolve to a ProjectV2 with the number {number}.")


def project_by_id(call: Call, name: str, level: AccessLevel = AccessLevel.READ) -> Row:
    """Return a project by its global id. Raises FieldError for one that the caller may not use."""
    missing = f"Could not resolve to a node with the global id of '{name}'"
    row = call.fetch(f"{_PROJECTS}projects.id = ?", global_number(PROJECT, name))
    if row is None:
        raise FieldError("NOT_FOUND", missing)
    _require(call, row, level, missing)
    return row


def _require(call: Call, project: Row, level: AccessLevel, missing: str) -> None:
    """Refuse a caller without the level, in the words for the kind of token."""
    actor = call.user
    if actor.kind == "user":
        if _is_member(call, actor, project):
            return
    elif project["owner_type"] == "Organization":
        granted = AccessLevel.NONE if actor.is_actions else AccessLevel.named(actor.permissions.get(_AREA, "none"))
        if granted >= level:
            return
        raise FieldError("FORBIDDEN", "Resource not accessible by integration")
    raise FieldError("NOT_FOUND", missing)


def _is_member(call: Call, actor: Actor, project: Row) -> bool:
    """Return whether a person owns the project, or may write to a repository of its owner."""
    repositories = call.fetch_all("SELECT * FROM repositories WHERE owner_id = ?", project["owner_id"])
    is_writer = any(role_of(call.db, actor.user_id, row) >= AccessLevel.WRITE for row in repositories)
    return actor.user_id == project["owner_id"] or is_writer


def _field(project: Row, _info: GraphQLResolveInfo[Any], name: str) -> dict[str, Any] | None:
    for position, (known, options) in enumerate(json.loads(project["fields"]).items()):
        if known.lower() == name.lower():
            kind = "ProjectV2SingleSelectField" if options else "ProjectV2Field"
            identifier = project["id"] * 100 + position
            listed = [{"id": _option_id(known, option), "name": option} for option in options]
            return {"graphql_type": kind, "id": payloads.node_id(_FIELD, identifier), "name": known, "options": listed}
    return None


def _option_id(field: str, option: str) -> str:
    return hashlib.sha256(f"{field}\n{option}".encode()).hexdigest()[:8]


def _options(field: Mapping[str, Any], _info: GraphQLResolveInfo[Any], names: Sequence[str] | None = None) -> Any:
    wanted = None if names is None else {name.lower() for name in names}
    return [option for option in field["options"] if wanted is None or option["name"].lower() in wanted]


def _items(project: Row, info: GraphQLResolveInfo[Any], first: int | None = None, after: str | None = None) -> Page:
    rows = info.context.fetch_all("SELECT * FROM project_items WHERE project_id = ? ORDER BY id", project["id"])
    return page_of("items", rows, first, after)


def _content(item: Row, info: GraphQLResolveInfo[Any]) -> Row | None:
    """Return the issue or pull request of an item; None where the caller does not see it."""
    call: Call = info.context
    (issue,) = call.fetch_all(f"{_ISSUES}issues.id = ?", item["issue_id"])
    return issue if _sees(call, issue) else None


def _sees(call: Call, issue: Row) -> bool:
    (repository,) = call.fetch_all("SELECT * FROM repositories WHERE id = ?", issue["repository_id"])
    return grant_of(call.db, call.actor, repository).sees


def _value(item: Row, info: GraphQLResolveInfo[Any], name: str) -> dict[str, Any] | None:
    statement = "SELECT * FROM project_values WHERE item_id = ? AND field = ? COLLATE NOCASE"
    row = info.context.fetch(statement, item["id"], name)
    if row is None:
        return None
    ids = {"id": payloads.node_id("PVTFSV", item["id"]), "optionId": _option_id(row["field"], row["option"])}
    return {"graphql_type": "ProjectV2ItemFieldSingleSelectValue", **ids, "name": row["option"]}


def _add_item(_source: None, info: GraphQLResolveInfo[Any], input: Mapping[str, str]) -> dict[str, Any]:  # noqa: A002 (GraphQL's name)
    """Add an issue or a pull request; one that is there already stays as it is."""
    call: Call = info.context
    project = project_by_id(call, input["projectId"], AccessLevel.WRITE)
    name = input["contentId"]
    number = global_number("I", name) or global_number("PR", name)
    issue = call.fetch(f"{_ISSUES}issues.id = ?", number)
    if issue is None or not _sees(call, issue):
        raise FieldError("NOT_FOUND", f"Could not resolve to a node with the global id of '{name}'")
    call.db.execute(
        "INSERT OR IGNORE INTO project_items (project_id, issue_id) VALUES (?, ?)", (project["id"], issue["id"])
    )
    statement = "SELECT * FROM project_items WHERE project_id = ? AND issue_id = ?"
    return {
        "item": call.fetch(statement, project["id"], issue["id"]),
        "clientMutationId": input.get("clientMutationId"),
    }


def _set_value(_source: None, info: GraphQLResolveInfo[Any], input: Mapping[str, Any]) -> dict[str, Any]:  # noqa: A002 (GraphQL's name)
    """Set a single-select field of an item."""
    call: Call = info.context
    project = project_by_id(call, input["projectId"], AccessLevel.WRITE)
    statement = "SELECT * FROM project_items WHERE project_id = ? AND id = ?"
    item = call.fetch(statement, project["id"], global_number(_ITEM, input["itemId"]))
    if item is None:
        raise FieldError("NOT_FOUND", f"Could not resolve to a node with the global id of '{input['itemId']}'")
    if item["archived"]:
        raise FieldError("UNPROCESSABLE", "The item is archived and cannot be updated")
    fields = [_field(project, info, name) for name in json.loads(project["fields"])]
    field = next((one for one in fields if one and one["id"] == input["fieldId"]), None)
    if field is None:
        raise FieldError("NOT_FOUND", f"Could not resolve to a node with the global id of '{input['fieldId']}'")
    chosen = input["value"].get("singleSelectOptionId")
    option = next((one["name"] for one in field["options"] if one["id"] == chosen), None)
    if option is None:
        raise FieldError("VALIDATION", "The single select option Id does not belong to the field")
    call.db.execute("INSERT OR REPLACE INTO project_values VALUES (?, ?, ?)", (item["id"], field["name"], option))
    return {"projectV2Item": item, "clientMutationId": input.get("clientMutationId")}


def _labels(issue: Row, info: GraphQLResolveInfo[Any], first: int | None = None, after: str | None = None) -> Page:
    statement = (
        "SELECT labels.* FROM labels JOIN issue_labels ON label_id = labels.id WHERE issue_id = ? ORDER BY labels.name"
    )
    return page_of("labels", info.context.fetch_all(statement, issue["id"]), first, after)


_OWNER = {"id": lambda row, _info: payloads.node_id("U", row["id"]), "projectV2": _project}
_CONTENT = {
    "repository": lambda row, _info: {
        "id": payloads.node_id("R", row["repository_id"]),
        "nameWithOwner": row["full_name"],
    }
}
RESOLVERS: dict[str, dict[str, Any]] = {
    "Query": {"repositoryOwner": owner_of},
    "Mutation": {"addProjectV2ItemById": _add_item, "updateProjectV2ItemFieldValue": _set_value},
    "Organization": _OWNER,
    "User": _OWNER,
    "ProjectV2": {
        "id": lambda row, _info: payloads.node_id(PROJECT, row["id"]),
        "url": lambda row, info: f"{info.context.web}/{_kind_of(row)}/{row['login']}/projects/{row['number']}",
        "field": _field,
        "items": _items,
    },
    "ProjectV2SingleSelectField": {"options": _options},
    "ProjectV2Item": {
        "id": lambda row, _info: payloads.node_id(_ITEM, row["id"]),
        "isArchived": lambda row, _info: bool(row["archived"]),
        "content": _content,
        "fieldValueByName": _value,
    },
    "Issue": {
        **_CONTENT,
        "id": lambda row, _info: payloads.node_id("I", row["id"]),
        "state": lambda row, _info: row["state"].upper(),
        "labels": _labels,
    },
    "Label": {"id": lambda row, _info: payloads.node_id("LA", row["id"])},
    "PullRequest": {**_CONTENT, "id": lambda row, _info: payloads.node_id("PR", row["id"])},
}
"""Resolvers by type and field; other fields are columns of their row."""


def _kind_of(project: Row) -> str:
    return "orgs" if project["owner_type"] == "Organization" else "users"
