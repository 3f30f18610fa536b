"""Protected branches: what is kept about them, whom they bind, and what they refuse.

Docs: https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository

A protection is kept in the shape in which GitHub takes it (PUT …/protection); what is left out is off. Force pushes
and deletions are off for everybody unless allowed; the rest does not bind administrators unless ``enforce_admins``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord_sandbox.access import AccessLevel
from accord_sandbox.answers import ApiResponse, Refusal
from accord_sandbox.bare import HEADS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.access import Grant
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row

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
