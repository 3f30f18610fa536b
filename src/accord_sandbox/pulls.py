"""Pull requests between two branches of one repository.

Docs: https://docs.github.com/rest/pulls/pulls
"""

from __future__ import annotations

from typing import Any

from accord_sandbox.calls import AccessLevel, Call, Route
from accord_sandbox.commits import commit_payload, read_commits
from accord_sandbox.database import SqlConnection
from accord_sandbox.diffs import file_payload, fork_point, pull_diff
from accord_sandbox.git_storage import count_between
from accord_sandbox.issues import NewIssue, checked_body, checked_title, insert_issue, update_state, update_text
from accord_sandbox.pull_state import find_pull, pull_payload, pull_refusal, pull_summary
from accord_sandbox.repositories import check_pulls_allowed
from accord_sandbox.responses import ApiResponse, Refusal, created, invalid
from accord_sandbox.triggers import start_workflows

MOST_FILES = 3000
MOST_COMMITS = 250


@Route("GET", "pulls", "pulls/pulls#list-pull-requests")
def list_pulls(call: Call) -> ApiResponse:
    """List pull requests; ``head`` filters only in the form owner:branch."""
    call.require_read("pull_requests")
    conditions: list[tuple[str, Any]] = [("repository_id = ?", call.repository["id"])]
    conditions.append(("? IN ('all', state)", call.query.get("state", "open")))
    owner, colon, branch = call.query.get("head", "").partition(":")
    if colon:
        conditions += [("head_ref = ?", branch), ("full_name LIKE ? || '/%'", owner)]
    if call.query.get("base"):
        conditions.append(("base_ref = ?", call.query["base"]))
    direction = "ASC" if call.query.get("direction") == "asc" else "DESC"
    column = "updated_at" if call.query.get("sort") == "updated" else "created_at"
    rows = call.select("SELECT * FROM pull_items", conditions, f"{column} {direction}, id {direction}")
    return call.list_response(rows, lambda row: pull_summary(call, row))


@Route("GET", "pulls/{number:int}", "pulls/pulls#get-a-pull-request")
def _get_pull(call: Call) -> ApiResponse:
    return ApiResponse(200, pull_payload(call, find_pull(call)))


@Route("POST", "pulls", "pulls/pulls#create-a-pull-request", creates=True)
def _create_pull(call: Call) -> ApiResponse:
    call.check_writable()
    call.permit(
        call.grant.may_talk("pull_requests") and (call.user.kind != "user" or call.grant.role >= AccessLevel.WRITE)
    )
    check_pulls_allowed(call, Refusal(403, "GitHub Actions is not permitted to create or approve pull requests."))
    title, body = checked_title(call.fields.get("title"), "PullRequest"), checked_body(call, "PullRequest")
    head, base = _branch(call, "head"), _branch(call, "base")
    _check_pair(call, head, base)
    new = NewIssue(title, body, call.user.user_id, call.now, is_pull=True)
    identifier = insert_issue(call.db, call.repository["id"], new)
    tips = {name: str(call.bare.branch(name)) for name in (head, base)}
    insert_pull(call.db, identifier, (head, tips[head]), (base, tips[base]), draft=bool(call.fields.get("draft")))
    pull = call.row("pull_items", identifier)
    call.bare.set_ref(f"refs/pull/{pull['number']}/head", tips[head])
    start_workflows(call, identifier, "opened")
    return created(pull_payload(call, pull))


@Route("PATCH", "pulls/{number:int}", "pulls/pulls#update-a-pull-request")
def update_pull(call: Call) -> ApiResponse:
    """Change title, body, state and base; REST cannot change the draft state."""
    pull = find_pull(call)
    call.check_writable()
    own = pull["author_id"] == call.user.user_id and call.grant.may_talk("pull_requests")
    call.permit(own or call.grant.may("pull_requests", AccessLevel.WRITE))
    update_text(call)
    update_state(call)
    if call.fields.get("base") not in (None, pull["base_ref"]):
        base = _branch(call, "base")
        _check_pair(call, pull["head_ref"], base)
        values = (base, call.bare.branch(base), pull["id"])
        call.db.execute("UPDATE pulls SET base_ref = ?, base_sha = ? WHERE issue_id = ?", values)
    call.touch(pull["id"])
    return ApiResponse(200, pull_payload(call, call.row("pull_items", pull["id"])))


@Route("GET", "pulls/{number:int}/files", "pulls/pulls#list-pull-requests-files")
def _list_files(call: Call) -> ApiResponse:
    pull = find_pull(call)
    changes = pull_diff(call.bare, pull["base_sha"], pull["head_sha"])[:MOST_FILES]
    return call.list_response(changes, lambda change: file_payload(call, change, pull["head_sha"]))


@Route("GET", "pulls/{number:int}/commits", "pulls/pulls#list-commits-on-a-pull-request")
def _list_commits(call: Call) -> ApiResponse:
    pull = find_pull(call)
    start = fork_point(call.bare, pull["base_sha"], pull["head_sha"])
    found = read_commits(call.bare, "--reverse", "--topo-order", f"{start}..{pull['head_sha']}")[:MOST_COMMITS]
    return call.list_response(found, lambda commit: commit_payload(call, commit))


def insert_pull(db: SqlConnection, issue_id: int, head: tuple[str, str], base: tuple[str, str], *, draft: bool) -> None:
    """Make an issue a pull request between two branches, each given as name and tip."""
    values = (issue_id, *head, *base, draft)
    names = "issue_id, head_ref, head_sha, base_ref, base_sha, draft"
    db.execute(f"INSERT INTO pulls ({names}) VALUES (?, ?, ?, ?, ?, ?)", values)


def _branch(call: Call, name: str) -> str:
    """Return the branch in a field, alone or as owner:branch; it must be in this repository."""
    text: str = call.fields.value_of(name)
    owner, colon, branch = text.rpartition(":")
    home = call.repository["full_name"].partition("/")[0]
    if (colon and owner.lower() != home.lower()) or call.bare.branch(branch) is None:
        raise invalid("PullRequest", name)
    return branch


def _check_pair(call: Call, head: str, base: str) -> None:
    tips = [call.bare.branch(name) or "" for name in (base, head)]
    if count_between(call.bare, *tips) == 0:
        raise pull_refusal(f"No commits between {base} and {head}")
    if call.bare.merge_base(*tips) is None:
        raise pull_refusal(f"The {head} branch has no history in common with {base}")
    same = "pull_items WHERE repository_id = ? AND state = 'open' AND head_ref = ? AND base_ref = ?"
    if call.count(same, call.repository["id"], head, base):
        owner = call.repository["full_name"].partition("/")[0]
        raise pull_refusal(f"A pull request already exists for {owner}:{head}.")
