"""Rulesets and protected branches, and how GitHub refuses a push or a request that breaks a rule.

A protection is stored in the shape of GitHub's PUT …/protection; a missing rule is off. Force pushes and deletions are
off for everyone unless allowed; the other rules do not bind administrators unless ``enforce_admins`` is set.

Docs: https://docs.github.com/rest/repos/rules and …/managing-rulesets/available-rules-for-rulesets. A refused push gets
GH013 in GitHub's words (py-cov-action/python-coverage-comment-action issue 561), a refused request the broken rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accord_sandbox.calls import AccessLevel, Call, Grant, route
from accord_sandbox.database import Row, SqlConnection, insert
from accord_sandbox.git_storage import HEADS, ZERO, BareRepository, signed_text
from accord_sandbox.responses import ApiResponse, Refusal

THROUGH_A_PULL = "Changes must be made through a pull request."
RULES = {
    "creation": "Cannot create ref due to creations being restricted.",
    "update": "Cannot update this protected ref.",
    "deletion": "Cannot delete this protected ref.",
    "non_fast_forward": "Cannot force-push to this branch",
    "pull_request": THROUGH_A_PULL,
    "required_signatures": "Commits must have verified signatures.",
}
"""The rules that the sandbox enforces, with GitHub's words."""

VIOLATIONS = "Repository rule violations found"
_PULL_REQUEST_PARAMETERS = {
    **dict.fromkeys(
        ("dismiss_stale_reviews_on_push", "require_code_owner_review", "require_last_push_approval"), False
    ),
    "required_approving_review_count": 1,
    "required_review_thread_resolution": False,
}
_WILDCARDS = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def insert_ruleset(db: SqlConnection, repository_id: int, branches: Sequence[str], rules: Sequence[str]) -> None:
    """Insert a ruleset: patterns of branches, ``~ALL`` or ``~DEFAULT_BRANCH``, and the types of its rules."""
    values = {"repository_id": repository_id, "branches": json.dumps(branches), "rules": json.dumps(rules)}
    insert(db, "rulesets", values)


def rule_patterns(db: SqlConnection, repository: Row) -> list[tuple[int, str, str]]:
    """Return each rule of a repository as ruleset, extended regular expression of full refs, and type."""
    rows = db.execute("SELECT * FROM rulesets WHERE repository_id = ? ORDER BY id", (repository["id"],)).fetchall()
    return [
        (row["id"], f"^{HEADS}{_expression(pattern, repository['default_branch'])}$", rule)
        for row in rows
        for pattern in json.loads(row["branches"])
        for rule in json.loads(row["rules"])
    ]


def rule_variables(db: SqlConnection, repository: Row, web: str) -> dict[str, str]:
    """Return the variables that tell the update hook the rules, one per line, and the page that lists them."""
    lines = [f"{pattern} {rule}" for _, pattern, rule in rule_patterns(db, repository)]
    return {"SANDBOX_RULES": "\n".join(lines), "SANDBOX_RULES_PAGE": f"{web}/{repository['full_name']}/rules"}


def check_rules(
    call: Call, ref: str, change: tuple[str, str], *, status: int = 422, only: Container[str] = RULES
) -> None:
    """Refuse a change of a ref over the API that its rules forbid; ``change`` is old and new, ``ZERO`` for none."""
    rules = [rule for _, rule in _rules_of(call, ref) if rule in only]
    broken = [RULES[rule] for rule in rules if _is_broken(call, rule, change)]
    if broken:
        raise Refusal(status, f"{VIOLATIONS}\n\n" + "".join(f"{reason}\n\n" for reason in broken))


@route("GET", "rules/branches/{branch:path}", "repos/rules#get-rules-for-a-branch")
def get_branch_rules(call: Call) -> ApiResponse:
    """List the rules that apply to a branch, which does not need to exist."""
    call.require_read("metadata")
    found = _rules_of(call, HEADS + call.params["branch"])
    return call.list_response(found, lambda entry: _payload(call, *entry))


def _payload(call: Call, key: int, rule: str) -> dict[str, Any]:
    source = {"ruleset_id": key, "ruleset_source": call.repository["full_name"], "ruleset_source_type": "Repository"}
    parameters = {"parameters": _PULL_REQUEST_PARAMETERS} if rule == "pull_request" else {}
    return {"type": rule, **source, **parameters}


def _rules_of(call: Call, ref: str) -> list[tuple[int, str]]:
    """Return the rules of a ref with their rulesets."""
    found = rule_patterns(call.db, call.repository)
    return list(dict.fromkeys((key, rule) for key, pattern, rule in found if re.fullmatch(pattern, ref)))


def _is_broken(call: Call, rule: str, change: tuple[str, str]) -> bool:
    old, new = change
    match rule:
        case "creation":
            return old == ZERO
        case "deletion":
            return new == ZERO
        case "update" | "pull_request":
            return ZERO not in change
        case "non_fast_forward":
            return ZERO not in change and not call.bare.is_ancestor(old, new)
        case _:
            return new != ZERO and bool(_unsigned_commits(call.bare, change))


def _unsigned_commits(bare: BareRepository, change: tuple[str, str]) -> list[str]:
    """Return the commits without a signature that are new on a branch; on a new branch, those that no ref has."""
    old, new = change
    commits = bare.git.line("rev-list", new, "--not", *(["--all"] if old == ZERO else [old])).split()
    return [found.sha for found in bare.objects(*commits) if found is not None and not signed_text(found)]


def _expression(pattern: str, default_branch: str) -> str:
    named = {"~ALL": ".*", "~DEFAULT_BRANCH": re.escape(default_branch)}
    if pattern in named:
        return named[pattern]
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return "".join(_WILDCARDS.get(part, re.sub(r"([.+(){}^$|\[\]\\])", r"\\\1", part)) for part in parts)


@dataclass(frozen=True)
class Protection:
    """The rules of one branch."""

    rules: Mapping[str, Any]

    def allows(self, rule: str) -> bool:
        """Tell whether ``allow_force_pushes`` or ``allow_deletions`` is on."""
        return bool(self.rules.get(rule))

    def needs_pull(self, grant: Grant) -> bool:
        """Tell whether changes need a pull request; administrators are free unless the rules include them."""
        binds = bool(self.rules.get("enforce_admins")) or grant.level("contents") < AccessLevel.ADMIN
        return binds and self.rules.get("required_pull_request_reviews") is not None


def protections(db: SqlConnection, repository: Row) -> dict[str, Protection]:
    """Return the protected branches of a repository by their names."""
    rows = db.execute("SELECT branch, rules FROM protections WHERE repository_id = ?", (repository["id"],))
    return {row["branch"]: Protection(json.loads(row["rules"])) for row in rows}


def hook_variables(grant: Grant, protected: Mapping[str, Protection]) -> dict[str, str]:
    """Return the variables that tell the update hook which changes the rules refuse to the caller."""
    lists = {
        "SANDBOX_NO_FORCE": [name for name, rules in protected.items() if not rules.allows("allow_force_pushes")],
        "SANDBOX_NO_DELETE": [name for name, rules in protected.items() if not rules.allows("allow_deletions")],
        "SANDBOX_NO_PUSH": [name for name, rules in protected.items() if rules.needs_pull(grant)],
    }
    return {name: " ".join(["", *(HEADS + branch for branch in found), ""]) for name, found in lists.items()}


def check_update(call: Call, ref: str, *, forced: bool = False, deleted: bool = False) -> None:
    """Refuse a change of a ref over the API where the rules refuse the same push."""
    rules = protections(call.db, call.repository).get(ref.removeprefix(HEADS))
    if rules is None or not ref.startswith(HEADS):
        return
    if deleted and not rules.allows("allow_deletions"):
        raise Refusal(422, "Cannot delete a protected branch")
    if forced and not rules.allows("allow_force_pushes"):
        raise Refusal(422, "Cannot force-push to this branch")
    if not deleted and rules.needs_pull(call.grant):
        raise Refusal(422, THROUGH_A_PULL)
