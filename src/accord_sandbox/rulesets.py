"""Rulesets and protected branches, and how GitHub refuses a push or a request that breaks a rule.

A protection is stored in the shape of GitHub's PUT …/protection; a missing rule is off. Force pushes and deletions are
off for everyone unless allowed; the other rules do not bind administrators unless ``enforce_admins`` is set.

Docs: https://docs.github.com/rest/repos/rules and …/managing-rulesets/available-rules-for-rulesets. A refused push gets
GH013 in GitHub's words (py-cov-action/python-coverage-comment-action issue 561), a refused request the broken rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from accord_sandbox.calls import AccessLevel, Call, route
from accord_sandbox.database import Row, SqlConnection
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


def check_change(call: Call, ref: str, old: str, new: str, *, status: int = 422, failed: str = "") -> None:
    """Refuse a change of a ref over the API that rules forbid; ``failed`` precedes what a protection says.

    ``old`` and ``new`` are commits, ``ZERO`` for none. New commits that change a workflow file need a permission.
    Source: "Create a reference" and "Update a reference"; for its words googleapis/release-please-action issue 709.
    """
    if problem := protection_problem(call, ref, old, new):
        raise Refusal(status, failed + problem)
    call.permit(call.user.may_write_workflows or not call.bare.added_workflows(new))
    if broken := broken_rules(call, ref, old, new):
        raise rule_violations(broken, status)


def broken_rules(call: Call, ref: str, old: str, new: str) -> list[str]:
    """Return the rules that a change of a ref breaks."""
    return [rule for _, rule in _rules_of(call, ref) if _is_broken(call.bare, rule, old, new)]


def rule_violations(broken: Sequence[str], status: int) -> Refusal:
    """Return the refusal of a request that breaks rules."""
    return Refusal(status, f"{VIOLATIONS}\n\n" + "".join(f"{RULES[rule]}\n\n" for rule in broken))


def protection_problem(call: Call, ref: str, old: str, new: str) -> str:
    """Return why the protection of a branch forbids a change, in GitHub's words; empty where it does not."""
    rules = protections(call.db, call.repository).get(ref.removeprefix(HEADS))
    if rules is None or not ref.startswith(HEADS) or old == ZERO:
        return ""
    if new == ZERO:
        return "" if rules.get("allow_deletions") else "Cannot delete a protected branch"
    if not rules.get("allow_force_pushes") and not call.bare.is_ancestor(old, new):
        return RULES["non_fast_forward"]
    binds = rules.get("enforce_admins") or call.grant.level("contents") < AccessLevel.ADMIN
    return THROUGH_A_PULL if binds and rules.get("required_pull_request_reviews") is not None else ""


def protections(db: SqlConnection, repository: Row) -> dict[str, Mapping[str, Any]]:
    """Return the rules of the protected branches of a repository by their names."""
    rows = db.execute("SELECT branch, rules FROM protections WHERE repository_id = ?", (repository["id"],))
    return {row["branch"]: json.loads(row["rules"]) for row in rows}


@route("GET", "rules/branches/{branch:path}", "repos/rules#get-rules-for-a-branch")
def _get_branch_rules(call: Call) -> ApiResponse:
    call.require_read("metadata")
    found = _rules_of(call, HEADS + call.params["branch"])
    return call.list_response(found, lambda entry: _payload(call, *entry))


def _payload(call: Call, key: int, rule: str) -> dict[str, Any]:
    source = {"ruleset_id": key, "ruleset_source": call.repository["full_name"], "ruleset_source_type": "Repository"}
    parameters = {"parameters": _PULL_REQUEST_PARAMETERS} if rule == "pull_request" else {}
    return {"type": rule, **source, **parameters}


def _rules_of(call: Call, ref: str) -> list[tuple[int, str]]:
    """Return the rules of a ref with their rulesets."""
    found = []
    for row in call.fetch_all("SELECT * FROM rulesets WHERE repository_id = ? ORDER BY id", call.repository["id"]):
        branches = json.loads(row["branches"])
        patterns = [HEADS + _expression(branch, call.repository["default_branch"]) for branch in branches]
        if any(re.fullmatch(pattern, ref) for pattern in patterns):
            found += [(row["id"], rule) for rule in json.loads(row["rules"])]
    return found


def _is_broken(bare: BareRepository, rule: str, old: str, new: str) -> bool:
    match rule:
        case "creation":
            return old == ZERO
        case "deletion":
            return new == ZERO
        case "update" | "pull_request":
            return ZERO not in (old, new)
        case "non_fast_forward":
            return ZERO not in (old, new) and not bare.is_ancestor(old, new)
        case _:
            return new != ZERO and bool(unsigned_commits(bare, old, new))


def unsigned_commits(bare: BareRepository, old: str, new: str) -> list[str]:
    """Return the commits without a signature that are new on a branch; on a new branch, those that no ref has."""
    commits = bare.git.line("rev-list", new, "--not", *(["--all"] if old == ZERO else [old])).split()
    return [found.sha for found in bare.objects(*commits) if found is not None and not signed_text(found)]


def _expression(pattern: str, default_branch: str) -> str:
    named = {"~ALL": ".*", "~DEFAULT_BRANCH": re.escape(default_branch)}
    if pattern in named:
        return named[pattern]
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return "".join(_WILDCARDS.get(part, re.escape(part)) for part in parts)
