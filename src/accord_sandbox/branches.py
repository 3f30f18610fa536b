"""Branches.

Docs: https://docs.github.com/rest/branches/branches
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from accord_sandbox import commits, protection
from accord_sandbox.answers import ApiResponse, Refusal
from accord_sandbox.bare import HEADS

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.protection import Protection


def list_branches(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/branches by name; ``protected`` chooses."""
    protected = protection.protections(call.db, call.repository)
    tips = {ref.removeprefix(HEADS): sha for ref, sha in commits.readable_bare(call).refs(HEADS).items()}
    wanted = call.query.get("protected")
    names = [name for name in tips if wanted is None or (name in protected) == (wanted == "true")]
    part = names[call.page.offset : call.page.offset + call.page.size]
    found = []
    for name in part:
        commit = {"sha": tips[name], "url": f"{_url(call)}/commits/{tips[name]}"}
        found.append({"name": name, "commit": commit, **_protection_summary(call, name, protected.get(name))})
    return ApiResponse(200, found, call.links(len(names)))


def get_branch(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/branches/{branch}."""
    name = call.params["branch"]
    sha = commits.readable_bare(call).branch(name)
    if sha is None:
        raise Refusal(404, "Branch not found")
    rules = protection.protections(call.db, call.repository).get(name)
    links = {
        "self": f"{_url(call)}/branches/{quote(name)}",
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
        "protection_url": f"{_url(call)}/branches/{quote(name)}/protection",
    }


def _repository_url(call: Call) -> str:
    return f"{call.api}/repos/{call.repository['full_name']}"
