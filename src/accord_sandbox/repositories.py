"""Repositories, the signed-in user, roles, branches with their rules, and the settings of GitHub Actions.

A protection is stored in the shape of GitHub's PUT …/protection; a missing rule is off. Force pushes and deletions are
off for everyone unless allowed; the other rules do not bind administrators unless ``enforce_admins`` is set.

Docs: https://docs.github.com/rest/repos/repos, …/repos/rules, …/branches/branches, …/actions/permissions and
…/actions/secrets. A refused push gets GH013 in GitHub's words (py-cov-action/python-coverage-comment-action issue 561),
a refused request the broken rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, HiddenArea, Route, grant_of, role_of
from accord_sandbox.commits import readable_bare
from accord_sandbox.database import Row, SqlConnection, find_user
from accord_sandbox.git_storage import HEADS, ZERO, BareRepository, signed_text
from accord_sandbox.payloads import timestamp_of
from accord_sandbox.responses import ApiResponse, Refusal, not_found, or_404, schema_violation, search_text

MOST_PROPERTIES = 10
MOST_EVENT_CHARACTERS = 100
_USER_EXTRAS = {
    **dict.fromkeys(("name", "company", "location", "email", "hireable", "bio")),
    **dict.fromkeys(("public_gists", "followers", "following", "private_gists", "total_private_repos"), 0),
    **dict.fromkeys(("owned_private_repos", "disk_usage", "collaborators"), 0),
    "blog": "",
    "two_factor_authentication": True,
    "user_view_type": "private",
}


@Route("GET", "/user", "users/users#get-the-authenticated-user")
def get_user(call: Call) -> ApiResponse:
    """Return the signed-in user; an installation has none, which GitHub answers with 403."""
    actor = call.user
    call.permit(actor.kind != "installation")
    row = call.row("users", actor.user_id)
    created = payloads.timestamp_of(row["created_at"])
    count = call.count("repositories WHERE owner_id = ?", row["id"])
    extras = {"public_repos": count, "created_at": created, "updated_at": created}
    return ApiResponse(200, {**payloads.user(call, row), **_USER_EXTRAS, **extras})


@Route("GET", "", "repos/repos#get-a-repository")
def _get_repository(call: Call) -> ApiResponse:
    return ApiResponse(200, payloads.repository(call, call.repository, call.grant.level("contents")))


@Route("GET", "/orgs/{org}/repos", "repos/repos#list-organization-repositories")
def list_organisation(call: Call) -> ApiResponse:
    """List an owner's repositories that the caller sees, newest first; every owner counts as an organisation."""
    owner = or_404(find_user(call.db, call.params["org"]))
    rows = call.fetch_all("SELECT * FROM repositories WHERE owner_id = ? ORDER BY id DESC", owner["id"])
    return call.list_response(_visible(call, rows), lambda row: _list_entry(call, row))


@Route("GET", "/search/repositories", "search/search#search-repositories", resource="search")
def search_repositories(call: Call) -> ApiResponse:
    """Search by words of the name, and by ``org:``, ``user:`` and ``archived:``; other qualifiers are refused."""
    rows = _visible(call, call.fetch_all("SELECT * FROM repositories ORDER BY id DESC"))
    for term in search_text(call.query).split():
        key, _, value = term.lower().rpartition(":")
        matches = _REPOSITORY_TERMS.get(key)
        if matches is None:
            raise Refusal(422, f"The sandbox does not know the qualifier {key}.")
        rows = [row for row in rows if matches(row, value)]
    return call.search_response(rows, lambda row: _list_entry(call, row))


_REPOSITORY_TERMS: Mapping[str, Callable[[Row, str], bool]] = {
    "": lambda row, word: word in row["full_name"].partition("/")[2].lower(),
    **dict.fromkeys(("org", "user"), lambda row, owner: row["full_name"].lower().startswith(f"{owner}/")),
    "archived": lambda row, flag: bool(row["archived"]) is (flag == "true"),
}


def _visible(call: Call, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if grant_of(call.db, call.actor, row).sees]


def _list_entry(call: Call, row: Row) -> dict[str, Any]:
    grant = grant_of(call.db, call.actor, row)
    return payloads.repository(call, row, grant.level("contents"))


@Route(
    "GET", "collaborators/{username}/permission", "collaborators/collaborators#get-repository-permissions-for-a-user"
)
def get_permission(call: Call) -> ApiResponse:
    """Return a user's permission, to people with push access and to apps.

    A token needs no permission but the one to read metadata, which all have ("Permissions required for GitHub Apps";
    step-security/secure-repo pull request 595 and aenix-io/aeman issue 161 report it).
    """
    _ = call.user, call.repository
    is_app = call.grant.actor is not None and call.grant.actor.kind == "installation" and call.grant.in_reach
    if not is_app and call.grant.role < AccessLevel.WRITE:
        raise Refusal(403, "Must have push access to view collaborator permission.")
    row = or_404(find_user(call.db, call.params["username"]))
    role = role_of(call.db, row["id"], call.repository)
    name = role.name.lower()
    legacy = {AccessLevel.MAINTAIN: "write", AccessLevel.TRIAGE: "read"}.get(role, name)
    user = {**payloads.user(call, row), "permissions": role.permissions(), "role_name": name}
    return ApiResponse(200, {"permission": legacy, "user": user, "role_name": name})


@Route("POST", "dispatches", "repos/repos#create-a-repository-dispatch-event")
def create_dispatch_event(call: Call) -> ApiResponse:
    """Accept an event that would start workflows; the sandbox runs none."""
    call.require("contents", AccessLevel.WRITE)
    name = call.fields.value_of("event_type")
    if not 0 < len(name) <= MOST_EVENT_CHARACTERS:
        raise schema_violation(f"event_type must have 1 to {MOST_EVENT_CHARACTERS} characters.")
    payload = call.fields.get("client_payload", {})
    if len(payload) > MOST_PROPERTIES:
        raise schema_violation(f"No more than {MOST_PROPERTIES} properties are allowed; {len(payload)} were supplied.")
    return ApiResponse(204)


@Route("GET", "branches", "branches/branches#list-branches")
def _list_branches(call: Call) -> ApiResponse:
    protected = protections(call.db, call.repository)

    def payload(branch: tuple[str, str]) -> dict[str, Any]:
        name, sha = branch[0].removeprefix(HEADS), branch[1]
        commit = {"sha": sha, "url": f"{call.repository_url}/commits/{sha}"}
        return {"name": name, "commit": commit, "protected": name in protected}

    found = readable_bare(call).refs(HEADS)
    if call.query.get("protected") == "true":
        found = {ref: sha for ref, sha in found.items() if ref.removeprefix(HEADS) in protected}
    return call.list_response(list(found.items()), payload)


def save_values(
    db: SqlConnection, repository_id: int, scope: str, kind: str, values: Mapping[str, str], now: float
) -> None:
    """Store secrets, variables or environments of one scope; GitHub keeps their names in upper case."""
    rows = [(repository_id, scope, kind, name, value, now) for name, value in values.items()]
    db.executemany("INSERT OR REPLACE INTO actions_values VALUES (?, ?, ?, ?, ?, ?)", rows)


def check_pulls_allowed(call: Call, refusal: Refusal) -> None:
    """Refuse GITHUB_TOKEN a pull request or an approval where the settings of the repository do not allow it."""
    if call.user.is_actions and not call.repository["may_create_pulls"]:
        raise refusal


_PERMISSIONS = "actions/permissions/workflow"
_PERMISSIONS_DOCS = "actions/permissions#get-default-workflow-permissions-for-a-repository"


@Route("GET", _PERMISSIONS, _PERMISSIONS_DOCS)
def get_workflow_permissions(call: Call) -> ApiResponse:
    """Return the settings, to administrators and to tokens with ``administration: read``."""
    _admit(call, "administration", AccessLevel.ADMIN)
    document = {
        "default_workflow_permissions": call.repository["workflow_permissions"],
        "can_approve_pull_request_reviews": bool(call.repository["may_create_pulls"]),
    }
    return ApiResponse(200, document)


@Route("PUT", _PERMISSIONS, "actions/permissions#set-default-workflow-permissions-for-a-repository")
def set_workflow_permissions(call: Call) -> ApiResponse:
    """Change the settings; what the body leaves out stays."""
    call.require("administration", AccessLevel.WRITE if call.user.kind == "installation" else AccessLevel.ADMIN)
    old = call.repository
    level = call.fields.choice("default_workflow_permissions", ("read", "write")) or old["workflow_permissions"]
    may_create = call.fields.get("can_approve_pull_request_reviews", old["may_create_pulls"])
    statement = "UPDATE repositories SET workflow_permissions = ?, may_create_pulls = ? WHERE id = ?"
    call.db.execute(statement, (level, may_create, old["id"]))
    return ApiResponse(204)


def _list_values(call: Call, key: str, scope: str) -> ApiResponse:
    """List the secrets (by name) or variables of the repository, or those of the organisation that it may use."""
    _admit(call, "secrets" if key == "secrets" else "actions_variables", AccessLevel.WRITE)
    return _values_response(call, key, scope)


for _key in ("secrets", "variables"):
    for _scope, _prefix in (("repository", ""), ("organization", "organization-")):
        _route = Route("GET", f"actions/{_prefix}{_key}", f"actions/{_key}#list-repository-{_prefix}{_key}")
        _route(partial(_list_values, key=_key, scope=_scope))


@Route("GET", "environments/{environment_name}/secrets", "actions/secrets#list-environment-secrets")
def list_environment_secrets(call: Call) -> ApiResponse:
    """List the names of an environment's secrets; 404 where the environment does not exist."""
    _admit(call, "environments", AccessLevel.WRITE)
    name = call.params["environment_name"]
    found = "actions_values WHERE repository_id = ? AND kind = 'environment' AND lower(name) = lower(?)"
    if not call.count(found, call.repository["id"], name):
        raise not_found()
    return _values_response(call, "secrets", f"environment {name.lower()}")


def _admit(call: Call, area: HiddenArea, role: AccessLevel) -> None:
    """Refuse readers without the permission; people need the role."""
    actor = call.user
    is_person = actor.kind != "installation"
    may = actor.kind == "user" or call.grant.may(area, AccessLevel.READ)
    call.permit(may and (not is_person or call.grant.role >= role))


def _values_response(call: Call, key: str, scope: str) -> ApiResponse:
    statement = "SELECT * FROM actions_values WHERE repository_id = ? AND scope = ? AND kind = ? ORDER BY name"
    rows = call.fetch_all(statement, call.repository["id"], scope, key.removesuffix("s"))
    return call.list_response(rows, _value, key=key)


def _value(row: Row) -> dict[str, Any]:
    created = timestamp_of(row["created_at"])
    document = {"name": row["name"].upper(), "created_at": created, "updated_at": created}
    return {**document, "value": row["value"]} if row["kind"] == "variable" else document


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


@Route("GET", "rules/branches/{branch:path}", "repos/rules#get-rules-for-a-branch")
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
