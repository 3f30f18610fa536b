"""Whether a pull request can be merged, and merging it.

Docs: https://docs.github.com/rest/pulls/pulls#merge-a-pull-request
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord_sandbox import check_states, commits, git_data, heads, pull_rows
from accord_sandbox.access import AccessLevel
from accord_sandbox.answers import ApiResponse, Refusal, not_found
from accord_sandbox.bare import HEADS, GitFailed, Signature
from accord_sandbox.protection import protections

if TYPE_CHECKING:
    from accord_sandbox.bare import BareRepository
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

_METHODS = ("merge", "squash", "rebase")
_CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(?P<number>[0-9]{1,9})\b", re.IGNORECASE)
"""Docs: https://docs.github.com/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue"""


def get_merged(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}/merge: 204 when it was merged, else 404."""
    if pull_rows.find_pull(call)["merged_at"] is None:
        raise not_found()
    return ApiResponse(204)


def merge_pull(call: Call) -> ApiResponse:
    """PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge, by a merge commit or squashed into one."""
    pull = pull_rows.find_pull(call)
    call.require("contents", AccessLevel.WRITE)
    method = call.fields.choice("merge_method", _METHODS) or "merge"
    if method == "rebase":
        raise Refusal(405, "Rebase merges are not allowed on this repository.")
    wanted = call.fields.string("sha")
    if wanted is not None and wanted != pull["head_sha"]:
        raise Refusal(409, "Head branch was modified. Review and try the merge again.")
    base = call.bare.branch(pull["base_ref"])
    tree = None if base is None else _merged_tree(call.bare, base, pull["head_sha"])
    if pull["draft"]:
        raise Refusal(405, "Pull Request is still a draft")
    if pull["state"] == "closed" or base is None or tree is None:
        raise Refusal(405, "Pull Request is not mergeable")
    missing = _missing(call, pull)
    if missing:
        raise Refusal(405, missing)
    sha = _commit(call, pull, base, tree, method)
    call.bare.set_ref(f"{HEADS}{pull['base_ref']}", sha, base)
    move = heads.ref_update(call)
    heads.mark_merged(move, pull["id"], sha)
    if pull["base_ref"] == call.repository["default_branch"]:
        _close_named(move, pull)
    heads.follow_branches(move)
    return ApiResponse(200, {"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


def readiness(call: Call, pull: Row) -> tuple[bool | None, str]:
    """Return ``mergeable`` and ``mergeable_state``; GitHub needs a moment to know, this server does not."""
    base = call.bare.branch(pull["base_ref"])
    if pull["state"] == "closed" or base is None:
        return None, "unknown"
    if _merged_tree(call.bare, base, pull["head_sha"]) is None:
        return False, "dirty"
    if pull["draft"]:
        return True, "draft"
    if _missing(call, pull):
        return True, "blocked"
    state = check_states.combined_outcome(call.db, call.repository["id"], pull["head_sha"])
    return True, "unstable" if state in ("failure", "pending") else "clean"


def _merged_tree(bare: BareRepository, base: str, head: str) -> str | None:
    try:
        return bare.merged_tree(base, head)
    except GitFailed:  # strangers without a common commit
        return None


def _missing(call: Call, pull: Row) -> str:
    """Return what the protection of the base still wants, nothing when the merge may go on."""
    rules = protections(call.db, call.repository).get(pull["base_ref"])
    if rules is None or not rules.binds(call.grant):
        return ""
    if rules.approvals:
        rows = call.db.execute(
            "SELECT author_id, state FROM reviews WHERE issue_id = ? AND state IN ('APPROVED', 'CHANGES_REQUESTED')"
            " ORDER BY id",
            (pull["id"],),
        )
        verdicts = {row["author_id"]: row["state"] for row in rows}
        if "CHANGES_REQUESTED" in verdicts.values():
            return "Changes have been requested on this pull request."
        if list(verdicts.values()).count("APPROVED") < rules.approvals:
            plural = "s" if rules.approvals > 1 else ""
            count = rules.approvals
            return f"At least {count} approving review{plural} is required by reviewers with write access."
    states = check_states.outcomes(call.db, call.repository["id"], pull["head_sha"])
    for context in rules.contexts:
        if states.get(context) != "success":
            return f'Required status check "{context}" is expected.'
    return ""


def _commit(call: Call, pull: Row, base: str, tree: str, method: str) -> str:
    user = call.db.execute("SELECT * FROM users WHERE id = ?", (call.user.user_id,)).fetchone()
    owner = pull["full_name"].partition("/")[0]
    squash = method == "squash"
    title = f"{pull['title']} (#{pull['number']})"
    if not squash:
        title = f"Merge pull request #{pull['number']} from {owner}/{pull['head_ref']}"
    text = pull["title"] if not squash else pull["body"] or ""
    title, text = call.fields.string("commit_title") or title, call.fields.string("commit_message") or text
    author = commits.noreply_signature(user, call.now)
    if squash:
        who = call.db.execute("SELECT * FROM users WHERE id = ?", (pull["author_id"],)).fetchone()
        author = commits.noreply_signature(who, call.now)
    parents = [base] if squash else [base, pull["head_sha"]]
    message = f"{title}\n\n{text}".strip() + "\n"
    return call.bare.commit(tree, parents, message, author, Signature(*commits.GITHUB, call.now))


def _close_named(move: heads.RefUpdate, pull: Row) -> None:
    """Close the issues that the description says the pull request closes."""
    for found in _CLOSING.finditer(pull["body"] or ""):
        row = move.db.execute(
            "SELECT id FROM issues WHERE repository_id = ? AND number = ? AND is_pull = 0",
            (move.repository_id, int(found["number"])),
        ).fetchone()
        if row is not None:
            heads.close_issue(move, row["id"], "completed")
