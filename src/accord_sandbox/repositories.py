"""Repositories, the signed-in user, and who may do what.

Docs: https://docs.github.com/rest/repos/repos
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from accord_sandbox import commits, labels, payloads
from accord_sandbox.calls import AccessLevel, denial, role_of
from accord_sandbox.database import next_id
from accord_sandbox.git_storage import HEADS
from accord_sandbox.responses import ApiResponse, Refusal, not_found, schema_violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.calls import Call, Grant
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
    return ApiResponse(200, payloads.repository_payload(call, call.repository, call.grant.level("contents")))


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
    payload = payloads.repository_payload(call, row, AccessLevel.ADMIN)
    return ApiResponse(201, payload, {"location": payload["url"]})


def add_repository(
    db: Connection, facts: NewRepository, owner_id: int, now: float, *, default_labels: bool = True
) -> Row:
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


MOST_PROPERTIES = 10
MOST_NAME = 100


def create_event(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/dispatches."""
    call.require("contents", AccessLevel.WRITE)
    call.fields.require("event_type")
    name = call.fields.string("event_type") or ""
    if not 0 < len(name) <= MOST_NAME:
        raise schema_violation(f"event_type must have 1 to {MOST_NAME} characters.")
    payload = call.document.get("client_payload", {}) if isinstance(call.document, dict) else {}
    if not isinstance(payload, dict):
        raise schema_violation("For 'properties/client_payload', the value is not an object.")
    if len(payload) > MOST_PROPERTIES:
        raise schema_violation(f"No more than {MOST_PROPERTIES} properties are allowed; {len(payload)} were supplied.")
    return ApiResponse(204)


def list_branches(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/branches by name; ``protected`` chooses."""
    protected = protections(call.db, call.repository)
    tips = {ref.removeprefix(HEADS): sha for ref, sha in commits.readable_bare(call).refs(HEADS).items()}
    wanted = call.query.get("protected")
    names = [name for name in tips if wanted is None or (name in protected) == (wanted == "true")]
    part = names[call.page.offset : call.page.offset + call.page.size]
    found = []
    for name in part:
        commit = {"sha": tips[name], "url": f"{_repository_url(call)}/commits/{tips[name]}"}
        found.append({"name": name, "commit": commit, **_protection_summary(call, name, protected.get(name))})
    return ApiResponse(200, found, call.links(len(names)))


def get_branch(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/branches/{branch}."""
    name = call.params["branch"]
    sha = commits.readable_bare(call).branch(name)
    if sha is None:
        raise Refusal(404, "Branch not found")
    rules = protections(call.db, call.repository).get(name)
    links = {
        "self": f"{_repository_url(call)}/branches/{quote(name)}",
        "html": f"{call.web}/{call.repository['full_name']}/tree/{quote(name)}",
    }
    commit = commits.commit_payload(call, commits.read_commits(call.bare, "--max-count=1", sha)[0])
    return ApiResponse(200, {"name": name, "commit": commit, "_links": links, **_protection_summary(call, name, rules)})


def _protection_summary(call: Call, name: str, rules: Protection | None) -> dict[str, Any]:
    """Return what everybody may know about a branch's protection."""
    contexts = rules.contexts if rules else []
    level = "off" if not contexts else "everyone" if rules and rules.rules.get("enforce_admins") else "non_admins"
    checks = {"enforcement_level": level, "contexts": contexts, "checks": []}
    return {
        "protected": rules is not None,
        "protection": {"enabled": rules is not None, "required_status_checks": checks},
        "protection_url": f"{_repository_url(call)}/branches/{quote(name)}/protection",
    }


def _repository_url(call: Call) -> str:
    return f"{call.api}/repos/{call.repository['full_name']}"


PROTECTION_FIELDS = {
    "required_pull_request_reviews": dict,
    "required_status_checks": dict,
    "enforce_admins": bool,
    "allow_force_pushes": bool,
    "allow_deletions": bool,
}
"""What a seed may say about a protected branch."""

THROUGH_A_PULL = "Changes must be made through a pull request."


@dataclass(frozen=True)
class Protection:
    """The rules of one branch."""

    rules: Mapping[str, Any]

    @property
    def approvals(self) -> int | None:
        """How many approvals a merge needs; None where no pull request is required."""
        reviews = self.rules.get("required_pull_request_reviews")
        return None if reviews is None else int(reviews.get("required_approving_review_count", 1))

    @property
    def contexts(self) -> list[str]:
        """The names of the checks that must have succeeded."""
        return list((self.rules.get("required_status_checks") or {}).get("contexts", []))

    def allows(self, rule: str) -> bool:
        """Tell whether ``allow_force_pushes`` or ``allow_deletions`` is on."""
        return bool(self.rules.get(rule))

    def binds(self, grant: Grant) -> bool:
        """Tell whether the rules hold for somebody: administrators are free unless the rules say otherwise."""
        return bool(self.rules.get("enforce_admins")) or grant.level("contents") < AccessLevel.ADMIN


def protections(db: Connection, repository: Row) -> dict[str, Protection]:
    """Return the protected branches of a repository by their names."""
    rows = db.execute("SELECT branch, rules FROM protections WHERE repository_id = ?", (repository["id"],))
    return {row["branch"]: Protection(json.loads(row["rules"])) for row in rows}


def refused_to(grant: Grant, protected: Mapping[str, Protection]) -> dict[str, str]:
    """Return the variables that tell the update hook what the rules refuse to somebody."""
    lists = {
        "SANDBOX_NO_FORCE": [name for name, rules in protected.items() if not rules.allows("allow_force_pushes")],
        "SANDBOX_NO_DELETE": [name for name, rules in protected.items() if not rules.allows("allow_deletions")],
        "SANDBOX_NO_PUSH": [
            name for name, rules in protected.items() if rules.approvals is not None and rules.binds(grant)
        ],
    }
    return {name: " ".join(["", *(HEADS + branch for branch in found), ""]) for name, found in lists.items()}


def check_update(call: Call, ref: str, *, forced: bool = False, deleted: bool = False) -> None:
    """Refuse a change of a ref over the API that a push would not be allowed."""
    rules = protections(call.db, call.repository).get(ref.removeprefix(HEADS))
    if rules is None or not ref.startswith(HEADS):
        return
    if deleted and not rules.allows("allow_deletions"):
        raise Refusal(422, "Cannot delete a protected branch")
    if forced and not rules.allows("allow_force_pushes"):
        raise Refusal(422, "Cannot force-push to this branch")
    if not deleted and rules.approvals is not None and rules.binds(call.grant):
        raise Refusal(422, THROUGH_A_PULL)


def get_protection(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/branches/{branch}/protection, for administrators."""
    _ = call.user, call.repository
    if not call.grant.may("administration", AccessLevel.ADMIN if call.user.kind == "user" else AccessLevel.READ):
        raise call.grant.refusal()
    if call.bare.branch(call.params["branch"]) is None:
        raise Refusal(404, "Branch not found")
    rules = protections(call.db, call.repository).get(call.params["branch"])
    if rules is None:
        raise Refusal(404, "Branch not protected")
    return ApiResponse(200, protection_payload(call, call.params["branch"], rules))


def protection_payload(call: Call, branch: str, rules: Protection) -> dict[str, Any]:
    """Return a ``branch-protection``."""
    url = f"{call.api}/repos/{call.repository['full_name']}/branches/{branch}/protection"
    document: dict[str, Any] = {
        "url": url,
        "required_signatures": {"url": f"{url}/required_signatures", "enabled": False},
        "enforce_admins": {"url": f"{url}/enforce_admins", "enabled": bool(rules.rules.get("enforce_admins"))},
        "required_linear_history": {"enabled": False},
        "allow_force_pushes": {"enabled": rules.allows("allow_force_pushes")},
        "allow_deletions": {"enabled": rules.allows("allow_deletions")},
        "block_creations": {"enabled": False},
        "required_conversation_resolution": {"enabled": False},
        "lock_branch": {"enabled": False},
        "allow_fork_syncing": {"enabled": False},
    }
    if rules.approvals is not None:
        document["required_pull_request_reviews"] = {
            "url": f"{url}/required_pull_request_reviews",
            "dismiss_stale_reviews": False,
            "require_code_owner_reviews": False,
            "require_last_push_approval": False,
            "required_approving_review_count": rules.approvals,
        }
    if rules.contexts:
        document["required_status_checks"] = {
            "url": f"{url}/required_status_checks",
            "strict": False,
            "contexts": rules.contexts,
            "contexts_url": f"{url}/required_status_checks/contexts",
            "checks": [{"context": context, "app_id": None} for context in rules.contexts],
        }
    return document
