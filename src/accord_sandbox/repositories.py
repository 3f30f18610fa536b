"""Repositories, the signed-in user, and who may do what.

Docs: https://docs.github.com/rest/repos/repos
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord_sandbox import labels, payloads, repository_payloads
from accord_sandbox.access import AccessLevel, denial, role_of
from accord_sandbox.answers import ApiResponse, Refusal, not_found
from accord_sandbox.database import next_id

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_USER_EXTRAS = {
    "name": None,
    "company": None,
    "blog": "",
    "location": None,
    "email": None,
    "hireable": None,
    "bio": None,
    "public_gists": 0,
    "followers": 0,
    "following": 0,
    "private_gists": 0,
    "total_private_repos": 0,
    "owned_private_repos": 0,
    "disk_usage": 0,
    "collaborators": 0,
    "two_factor_authentication": True,
    "user_view_type": "private",
}


@dataclass(frozen=True)
class NewRepository:
    """What a new repository is."""

    full_name: str
    description: str | None = None
    private: bool = False
    archived: bool = False
    has_issues: bool = True


def get_user(call: Call) -> ApiResponse:
    """GET /user; an installation has no user, which GitHub answers with 403."""
    actor = call.user
    if actor.kind == "installation":
        raise denial(actor)
    row = call.db.execute("SELECT * FROM users WHERE id = ?", (actor.user_id,)).fetchone()
    created = payloads.moment(row["created_at"])
    count = call.db.execute("SELECT count(*) FROM repositories WHERE owner_id = ?", (row["id"],)).fetchone()[0]
    extras = {"public_repos": count, "created_at": created, "updated_at": created}
    return ApiResponse(200, {**payloads.user(call, row), **_USER_EXTRAS, **extras})


def get_repository(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}."""
    return ApiResponse(200, repository_payloads.repository_payload(call, call.repository, call.grant.level("contents")))


def get_permission(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/collaborators/{username}/permission, for those who may push."""
    call.check_readable_by_writers()
    row = find_user(call.db, call.params["username"])
    if row is None:
        raise not_found()
    role = role_of(call.db, row["id"], call.repository)
    legacy = {AccessLevel.MAINTAIN: "write", AccessLevel.TRIAGE: "read"}.get(role, role.name.lower())
    user = {
        **payloads.user(call, row),
        "permissions": {
            "admin": role >= AccessLevel.ADMIN,
            "maintain": role >= AccessLevel.MAINTAIN,
            "push": role >= AccessLevel.WRITE,
            "triage": role >= AccessLevel.TRIAGE,
            "pull": role >= AccessLevel.READ,
        },
        "role_name": role.name.lower(),
    }
    return ApiResponse(200, {"permission": legacy, "user": user, "role_name": role.name.lower()})


def create_repository(call: Call) -> ApiResponse:
    """POST /user/repos: a repository of the caller's own."""
    actor = call.user
    if actor.kind != "user":
        raise denial(actor)
    call.fields.require("name")
    name = call.fields.string("name") or ""
    if not _NAME.fullmatch(name):
        raise _creation_failed("name", "custom", "name is invalid")
    facts = NewRepository(
        f"{actor.login}/{name}",
        description=call.fields.string("description", null=True),
        private=call.fields.flag("private"),
        has_issues=call.fields.flag("has_issues", default=True),
    )
    if find_repository(call.db, facts.full_name) is not None:
        raise _creation_failed("name", "custom", "name already exists on this account")
    row = add_repository(call.db, facts, actor.user_id, call.now)
    payload = repository_payloads.repository_payload(call, row, AccessLevel.ADMIN)
    return ApiResponse(201, payload, {"location": payload["url"]})


def add_repository(db: Connection, facts: NewRepository, owner_id: int, now: float, *, default_labels: bool = True) -> Row:
    """Insert a repository and return it."""
    identifier = next_id(db)
    db.execute(
        "INSERT INTO repositories (id, owner_id, full_name, description, private, archived, has_issues, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            identifier,
            owner_id,
            facts.full_name,
            facts.description,
            facts.private,
            facts.archived,
            facts.has_issues,
            now,
        ),
    )
    if default_labels:
        labels.add_defaults(db, identifier)
    row: Row = db.execute("SELECT * FROM repositories WHERE id = ?", (identifier,)).fetchone()
    return row


def find_repository(db: Connection, full_name: str) -> Row | None:
    """Return the repository of that name, in any case, or None."""
    row: Row | None = db.execute("SELECT * FROM repositories WHERE full_name = ?", (full_name,)).fetchone()
    return row


def find_user(db: Connection, login: str) -> Row | None:
    """Return the account of that login, in any case, or None."""
    row: Row | None = db.execute("SELECT * FROM users WHERE login = ?", (login,)).fetchone()
    return row


def _creation_failed(field: str, code: str, message: str) -> Refusal:
    error = {"resource": "Repository", "code": code, "field": field, "message": message}
    return Refusal(422, "Repository creation failed.", errors=[error])
