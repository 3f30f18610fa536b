"""Pull requests between two branches of one repository.

Docs: https://docs.github.com/rest/pulls/pulls
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord_sandbox import comments, commits, diffs, issues, payloads, pull_state
from accord_sandbox.calls import AccessLevel, role_of
from accord_sandbox.comments import BODY_LIMIT
from accord_sandbox.issues import TITLE_LIMIT, NewIssue
from accord_sandbox.repositories import find_user
from accord_sandbox.responses import ApiResponse, Refusal, invalid, too_long

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

MOST_FILES = 3000
MOST_COMMITS = 250
MOST_FILES_IN_A_DIFF = 300
MOST_REVIEWERS = 15
_ORDERS = {
    "created": "issues.created_at",
    "updated": "issues.updated_at",
    "popularity": "(SELECT count(*) FROM comments WHERE issue_id = issues.id)",
    "long-running": "issues.created_at",
}


def list_pulls(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls; ``head`` is owner:branch, and counts only as such."""
    _ = call.repository
    if not call.grant.may("pull_requests", AccessLevel.READ):
        raise call.grant.refusal()
    conditions, keys = ["repository_id = ?"], [call.repository["id"]]
    state = call.query.get("state", "open")
    if state != "all":
        conditions.append("issues.state = ?")
        keys.append(state)
    owner, colon, branch = call.query.get("head", "").partition(":")
    if colon:
        conditions += ["head_ref = ?", "full_name LIKE ? || '/%'"]
        keys += [branch, owner]
    if call.query.get("base"):
        conditions.append("base_ref = ?")
        keys.append(call.query["base"])
    sort = call.query.get("sort", "created")
    usual = "desc" if sort == "created" else "asc"
    direction = "ASC" if call.query.get("direction", usual) == "asc" else "DESC"
    rows = call.db.execute(
        f"{pull_state.PULLS} WHERE {' AND '.join(conditions)}"
        f" ORDER BY {_ORDERS.get(sort, _ORDERS['created'])} {direction}, issues.id {direction}",
        keys,
    ).fetchall()
    part = rows[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(200, pull_state.pull_summaries(call, part), call.links(len(rows)))


def get_pull(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}, or its diff or patch by the media type asked for."""
    pull = pull_state.find_pull(call)
    for kind in ("diff", "patch"):
        if f".{kind}" in call.accept:
            return _as_text(call, pull, kind)
    return ApiResponse(200, pull_state.pull_payload(call, pull))


def create_pull(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/pulls."""
    call.check_writable()
    allowed = call.grant.may_review() and (call.user.kind != "user" or call.grant.role >= AccessLevel.WRITE)
    if not allowed:
        raise call.grant.refusal()
    for name in ("head", "base"):
        call.fields.require(name)
    title, body = _text(call)
    head, base = _branch(call, "head"), _branch(call, "base")
    _check_pair(call, head, base)
    tips = {name: str(call.bare.branch(name)) for name in (head, base)}
    draft = call.fields.flag("draft")
    identifier = issues.insert_issue(
        call.db, call.repository["id"], NewIssue(title, body, call.user.user_id, call.now, is_pull=True)
    )
    call.db.execute(
        "INSERT INTO pulls (issue_id, head_ref, head_sha, base_ref, base_sha, draft) VALUES (?, ?, ?, ?, ?, ?)",
        (identifier, head, tips[head], base, tips[base], draft),
    )
    pull = pull_state.pull_by_id(call, identifier)
    call.bare.set_ref(f"refs/pull/{pull['number']}/head", tips[head])
    payload = pull_state.pull_payload(call, pull)
    return ApiResponse(201, payload, {"location": payload["url"]})


def update_pull(call: Call) -> ApiResponse:
    """PATCH /repos/{owner}/{repo}/pulls/{pull_number}: title, body, state and base; a draft stays what it is."""
    pull = pull_state.find_pull(call)
    call.check_writable()
    own = pull["author_id"] == call.user.user_id and call.grant.may_review()
    if not own and not call.grant.may("pull_requests", AccessLevel.WRITE):
        raise call.grant.refusal()
    issues.update_text(call)
    issues.change_state(call)
    if call.fields.string("base") is not None:
        _change_base(call, pull)
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (call.now, pull["id"]))
    return ApiResponse(200, pull_state.pull_payload(call, pull_state.pull_by_id(call, pull["id"])))


def list_files(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}/files, 3,000 at most."""
    pull = pull_state.find_pull(call)
    changes = diffs.pull_diff(call.bare, pull["base_sha"], pull["head_sha"])[:MOST_FILES]
    part = changes[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(
        200, [diffs.file_payload(call, change, pull["head_sha"]) for change in part], call.links(len(changes))
    )


def list_commits(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}/commits, oldest first, 250 at most."""
    pull = pull_state.find_pull(call)
    start = diffs.fork_point(call.bare, pull["base_sha"], pull["head_sha"])
    found = commits.read_commits(call.bare, "--reverse", "--topo-order", f"{start}..{pull['head_sha']}")[:MOST_COMMITS]
    part = found[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(200, [commits.commit_payload(call, commit) for commit in part], call.links(len(found)))


def list_of_commit(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/commits/{commit_sha}/pulls: those that have the commit as head or as their merge."""
    sha = commits.find_commit(call, call.params["ref"]).sha
    rows = call.db.execute(
        f"{pull_state.PULLS} WHERE repository_id = ? AND ? IN (head_sha, merge_sha) ORDER BY number",
        (call.repository["id"], sha),
    ).fetchall()
    return ApiResponse(200, pull_state.pull_summaries(call, rows), call.links(len(rows)))


def list_reviewers(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers."""
    pull = pull_state.find_pull(call)
    return ApiResponse(200, {"users": pull_state.reviewers(call, pull["id"]), "teams": []})


def request_reviewers(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers; collaborators only, the author never."""
    pull = _askable(call)
    for login in call.fields.names("reviewers", "login") or []:
        user = find_user(call.db, login)
        if (
            user is None
            or role_of(call.db, user["id"], call.repository) < AccessLevel.READ
            or not _collaborates(call, user)
        ):
            raise Refusal(
                422,
                "Reviews may only be requested from collaborators. One or more of the users or teams you specified"
                f" is not a collaborator of the {pull['full_name']} repository.",
            )
        if user["id"] == pull["author_id"]:
            raise Refusal(422, "Review cannot be requested from pull request author.")
        call.db.execute("INSERT OR IGNORE INTO review_requests VALUES (?, ?)", (pull["id"], user["id"]))
        requested = {"requested_reviewer": payloads.user(call, user)}
        comments.record_event(call, pull["id"], "review_requested", requested)
    return ApiResponse(201, pull_state.pull_summaries(call, [pull])[0])


def remove_reviewers(call: Call) -> ApiResponse:
    """DELETE /repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers."""
    pull = _askable(call)
    for login in call.fields.names("reviewers", "login") or []:
        call.db.execute(
            "DELETE FROM review_requests WHERE issue_id = ? AND user_id = (SELECT id FROM users WHERE login = ?)",
            (pull["id"], login),
        )
    return ApiResponse(200, pull_state.pull_summaries(call, [pull])[0])


def _askable(call: Call) -> Row:
    pull = pull_state.find_pull(call)
    call.require("pull_requests", AccessLevel.TRIAGE)
    return pull


def _collaborates(call: Call, user: Row) -> bool:
    row = call.db.execute(
        "SELECT 1 FROM collaborators WHERE repository_id = ? AND user_id = ?", (call.repository["id"], user["id"])
    ).fetchone()
    return row is not None or user["id"] == call.repository["owner_id"]


def _text(call: Call) -> tuple[str, str | None]:
    title, body = call.fields.title(), call.fields.string("body", null=True)
    if title is None or not title.strip():
        raise invalid("PullRequest", "title", "missing_field")
    if len(title) > TITLE_LIMIT:
        raise too_long("PullRequest", "title", TITLE_LIMIT)
    if body is not None and len(body) > BODY_LIMIT:
        raise too_long("PullRequest", "body", BODY_LIMIT)
    return title, body


def _branch(call: Call, name: str) -> str:
    """Return the branch that a field names, alone or as owner:branch; only this repository has any."""
    text = call.fields.string(name) or ""
    owner, colon, branch = text.rpartition(":")
    home = call.repository["full_name"].partition("/")[0]
    if (colon and owner.lower() != home.lower()) or call.bare.branch(branch) is None:
        raise invalid("PullRequest", name)
    return branch


def _check_pair(call: Call, head: str, base: str) -> None:
    if int(call.bare.text("rev-list", "--count", f"refs/heads/{base}..refs/heads/{head}")) == 0:
        raise pull_state.pull_refusal(f"No commits between {base} and {head}")
    if call.bare.merge_base(f"refs/heads/{base}", f"refs/heads/{head}") is None:
        raise pull_state.pull_refusal(f"The {head} branch has no history in common with {base}")
    same = call.db.execute(
        "SELECT 1 FROM pulls JOIN issues ON issues.id = issue_id"
        " WHERE repository_id = ? AND state = 'open' AND head_ref = ? AND base_ref = ?",
        (call.repository["id"], head, base),
    ).fetchone()
    if same is not None:
        owner = call.repository["full_name"].partition("/")[0]
        raise pull_state.pull_refusal(f"A pull request already exists for {owner}:{head}.")


def _change_base(call: Call, pull: Row) -> None:
    base = _branch(call, "base")
    if base == pull["base_ref"]:
        return
    if pull["state"] == "closed":
        raise pull_state.pull_refusal("Cannot change the base branch of a closed pull request.", field="base")
    _check_pair(call, pull["head_ref"], base)
    call.db.execute(
        "UPDATE pulls SET base_ref = ?, base_sha = ? WHERE issue_id = ?", (base, call.bare.branch(base), pull["id"])
    )
    pull_state.update_head(pull_state.ref_update(call), pull, pull["head_sha"], str(call.bare.branch(base)))


def _as_text(call: Call, pull: Row, kind: str) -> ApiResponse:
    """Return the diff, or the commits as mails; too much of it is a 406."""
    changes = diffs.pull_diff(call.bare, pull["base_sha"], pull["head_sha"])
    if len(changes) > MOST_FILES_IN_A_DIFF:
        raise _too_large(f"files ({MOST_FILES_IN_A_DIFF})")
    start = diffs.fork_point(call.bare, pull["base_sha"], pull["head_sha"])
    content = diffs.diff_text(call.bare, start, pull["head_sha"])
    if content.count(b"\n") > diffs.MOST_LINES:
        raise _too_large(f"lines ({diffs.MOST_LINES})")
    if kind == "patch":
        content = call.bare.run("format-patch", "--stdout", f"{start}..{pull['head_sha']}")
    return ApiResponse(200, headers={"content-type": f"application/vnd.github.{kind}; charset=utf-8"}, content=content)


def _too_large(what: str) -> Refusal:
    error: dict[str, Any] = {"resource": "PullRequest", "field": "diff", "code": "too_large"}
    return Refusal(
        406,
        f"Sorry, the diff exceeded the maximum number of {what}. Consider using 'List pull requests files' API or"
        " locally cloning the repository instead.",
        errors=[error],
    )
