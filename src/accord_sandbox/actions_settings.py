"""Settings of a repository for GitHub Actions: permissions, secrets (by name) and variables.

Docs: https://docs.github.com/rest/actions/permissions, …/actions/secrets, …/actions/variables
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accord_sandbox.calls import AccessLevel, Call, HiddenArea, route
from accord_sandbox.database import Connection, Row
from accord_sandbox.payloads import timestamp_of
from accord_sandbox.responses import ApiResponse, Refusal, not_found

NO_PULLS = "GitHub Actions is not permitted to create or approve pull requests."
NO_APPROVALS = "GitHub Actions is not permitted to approve pull requests."
"""GitHub's words: a 403 for a new pull request, an error in a 422 for an approval (cpp-linter/cpp-linter issue 51)."""


@dataclass(frozen=True)
class ActionsSettings:
    """The page "Actions, General" of a repository. The defaults are those of one that was set up for accord."""

    may_create_pulls: bool = True
    workflow_permissions: str = "read"


AS_CREATED = ActionsSettings(may_create_pulls=False)
"""The settings with which GitHub makes a repository."""


def settings_of(db: Connection, repository_id: int) -> ActionsSettings:
    """Return the settings of a repository."""
    statement = "SELECT may_create_pulls, workflow_permissions FROM actions_settings WHERE repository_id = ?"
    row = db.execute(statement, (repository_id,)).fetchone()
    return ActionsSettings() if row is None else ActionsSettings(bool(row[0]), row[1])


def save_settings(db: Connection, repository_id: int, settings: ActionsSettings) -> None:
    """Store the settings of a repository."""
    values = (repository_id, settings.may_create_pulls, settings.workflow_permissions)
    db.execute("INSERT OR REPLACE INTO actions_settings VALUES (?, ?, ?)", values)


def save_values(
    db: Connection, repository_id: int, scope: str, kind: str, values: Mapping[str, str], now: float
) -> None:
    """Store secrets, variables or environments of one scope; GitHub keeps their names in upper case."""
    rows = [(repository_id, scope, kind, name, value, now) for name, value in values.items()]
    db.executemany("INSERT OR REPLACE INTO actions_values VALUES (?, ?, ?, ?, ?, ?)", rows)


def check_new_pull(call: Call) -> None:
    """Refuse a pull request of GITHUB_TOKEN where the settings do not allow it, before anything else is looked at."""
    if call.user.is_actions and not settings_of(call.db, call.repository["id"]).may_create_pulls:
        raise Refusal(403, NO_PULLS)


def check_approval(call: Call) -> None:
    """Refuse an approval of GITHUB_TOKEN where the settings do not allow it."""
    if call.user.is_actions and not settings_of(call.db, call.repository["id"]).may_create_pulls:
        raise Refusal(422, "Unprocessable Entity", errors=[NO_APPROVALS])


_PERMISSIONS = "actions/permissions/workflow"
_PERMISSIONS_DOCS = "actions/permissions#get-default-workflow-permissions-for-a-repository"


@route("GET", _PERMISSIONS, _PERMISSIONS_DOCS)
def get_workflow_permissions(call: Call) -> ApiResponse:
    """Return the settings, to administrators and to tokens with ``administration: read``."""
    _admit(call, "administration", AccessLevel.ADMIN)
    settings = settings_of(call.db, call.repository["id"])
    document = {
        "default_workflow_permissions": settings.workflow_permissions,
        "can_approve_pull_request_reviews": settings.may_create_pulls,
    }
    return ApiResponse(200, document)


@route("PUT", _PERMISSIONS, "actions/permissions#set-default-workflow-permissions-for-a-repository")
def set_workflow_permissions(call: Call) -> ApiResponse:
    """Change the settings; what the body leaves out stays."""
    call.require("administration", AccessLevel.WRITE if call.user.kind == "installation" else AccessLevel.ADMIN)
    old = settings_of(call.db, call.repository["id"])
    level = call.fields.choice("default_workflow_permissions", ("read", "write")) or old.workflow_permissions
    name = "can_approve_pull_request_reviews"
    may_create = call.fields.flag(name) if name in call.fields else old.may_create_pulls
    save_settings(call.db, call.repository["id"], ActionsSettings(may_create, level))
    return ApiResponse(204)


@route("GET", "actions/secrets", "actions/secrets#list-repository-secrets")
def list_secrets(call: Call) -> ApiResponse:
    """List the names of the repository's secrets."""
    return _listed(call, "secrets", "repository")


@route("GET", "actions/organization-secrets", "actions/secrets#list-repository-organization-secrets")
def list_organization_secrets(call: Call) -> ApiResponse:
    """List the names of the organisation's secrets that the repository may use."""
    return _listed(call, "secrets", "organization")


@route("GET", "environments/{environment_name}/secrets", "actions/secrets#list-environment-secrets")
def list_environment_secrets(call: Call) -> ApiResponse:
    """List the names of an environment's secrets; 404 where the environment does not exist."""
    _admit(call, "environments", AccessLevel.WRITE)
    name = call.params["environment_name"]
    found = "actions_values WHERE repository_id = ? AND kind = 'environment' AND lower(name) = lower(?)"
    if not call.count(found, call.repository["id"], name):
        raise not_found()
    return _listed(call, "secrets", f"environment {name.lower()}", admitted=True)


@route("GET", "actions/variables", "actions/variables#list-repository-variables")
def list_variables(call: Call) -> ApiResponse:
    """List the repository's variables."""
    return _listed(call, "variables", "repository")


@route("GET", "actions/organization-variables", "actions/variables#list-repository-organization-variables")
def list_organization_variables(call: Call) -> ApiResponse:
    """List the organisation's variables that the repository may use."""
    return _listed(call, "variables", "organization")


def _admit(call: Call, area: HiddenArea, role: AccessLevel) -> None:
    """Refuse readers without the permission; people need the role."""
    actor = call.user
    is_person = actor.kind != "installation"
    may = actor.kind == "user" or call.grant.may(area, AccessLevel.READ)
    call.permit(may and (not is_person or call.grant.role >= role))


def _listed(call: Call, key: str, scope: str, *, admitted: bool = False) -> ApiResponse:
    if not admitted:
        _admit(call, "secrets" if key == "secrets" else "actions_variables", AccessLevel.WRITE)
    rows = call.fetch_all(
        "SELECT * FROM actions_values WHERE repository_id = ? AND scope = ? AND kind = ? ORDER BY name",
        call.repository["id"],
        scope,
        key.removesuffix("s"),
    )
    return call.list_response(rows, _value, key=key)


def _value(row: Row) -> dict[str, Any]:
    created = timestamp_of(row["created_at"])
    document = {"name": row["name"].upper(), "created_at": created, "updated_at": created}
    return {**document, "value": row["value"]} if row["kind"] == "variable" else document
