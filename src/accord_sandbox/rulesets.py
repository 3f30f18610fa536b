"""Rulesets of branches: which rules apply to a branch, and how GitHub refuses a push or a request that breaks one.

Docs: https://docs.github.com/rest/repos/rules and …/managing-rulesets/available-rules-for-rulesets. A refused push gets
GH013 in GitHub's words (py-cov-action/python-coverage-comment-action issue 561), a refused request the broken rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from accord_sandbox.calls import Call, route
from accord_sandbox.database import Connection, Row, insert
from accord_sandbox.git_storage import HEADS, ZERO, BareRepository, signed_text
from accord_sandbox.responses import ApiResponse, Refusal

RULES = {
    "creation": "Cannot create ref due to creations being restricted.",
    "update": "Cannot update this protected ref.",
    "deletion": "Cannot delete this protected ref.",
    "non_fast_forward": "Cannot force-push to this branch",
    "pull_request": "Changes must be made through a pull request.",
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


def insert_ruleset(db: Connection, repository_id: int, branches: Sequence[str], rules: Sequence[str]) -> None:
    """Insert a ruleset: patterns of branches, ``~ALL`` or ``~DEFAULT_BRANCH``, and the types of its rules."""
    values = {"repository_id": repository_id, "branches": json.dumps(branches), "rules": json.dumps(rules)}
    insert(db, "rulesets", values)


def rule_patterns(db: Connection, repository: Row) -> list[tuple[int, str, str]]:
    """Return each rule of a repository as ruleset, extended regular expression of full refs, and type."""
    rows = db.execute("SELECT * FROM rulesets WHERE repository_id = ? ORDER BY id", (repository["id"],)).fetchall()
    return [
        (row["id"], f"^{HEADS}{_expression(pattern, repository['default_branch'])}$", rule)
        for row in rows
        for pattern in json.loads(row["branches"])
        for rule in json.loads(row["rules"])
    ]


def rule_variables(db: Connection, repository: Row, web: str) -> dict[str, str]:
    """Return the variables that tell the update hook the rules, one per line, and the page that lists them."""
    lines = [f"{pattern} {rule}" for _, pattern, rule in rule_patterns(db, repository)]
    return {"SANDBOX_RULES": "\n".join(lines), "SANDBOX_RULES_PAGE": f"{web}/{repository['full_name']}/rules"}


def check_rules(call: Call, ref: str, change: tuple[str, str], *, status: int = 422) -> None:
    """Refuse a change of a ref over the API that its rules forbid; ``change`` is old and new, ``ZERO`` for none."""
    broken = [RULES[rule] for _, rule in _rules_of(call, ref) if _is_broken(call, rule, change)]
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


def check_signatures(call: Call, ref: str, change: tuple[str, str]) -> None:
    """Refuse to merge unsigned commits into a branch that must not have them."""
    rule = "required_signatures"
    if any(found == rule for _, found in _rules_of(call, ref)) and _unsigned_commits(call.bare, change):
        raise Refusal(405, f"{VIOLATIONS}\n\n{RULES[rule]}\n\n")


def _unsigned_commits(bare: BareRepository, change: tuple[str, str]) -> list[str]:
    """Return the commits without a signature that are new on a branch; on a new branch, those that no ref has."""
    old, new = change
    commits = bare.text("rev-list", new, "--not", *(["--all"] if old == ZERO else [old])).split()
    return [found.sha for found in bare.objects(*commits) if found is not None and not signed_text(found)]


def _expression(pattern: str, default_branch: str) -> str:
    named = {"~ALL": ".*", "~DEFAULT_BRANCH": re.escape(default_branch)}
    if pattern in named:
        return named[pattern]
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return "".join(_WILDCARDS.get(part, re.sub(r"([.+(){}^$|\[\]\\])", r"\\\1", part)) for part in parts)
