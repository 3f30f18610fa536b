"""Commits: one, a list, a comparison.

Docs: https://docs.github.com/rest/commits/commits
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from accord_sandbox import diffs, payloads
from accord_sandbox.calls import AccessLevel
from accord_sandbox.git_storage import EMPTY_TREE, Signature
from accord_sandbox.responses import ApiResponse, Refusal, not_found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row
    from accord_sandbox.git_storage import BareRepository

GITHUB = ("GitHub", "noreply@github.com")
"""Who commits what is committed over the API."""

MOST_COMPARED = 250
_FORMAT = "%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%at%x1f%cn%x1f%ce%x1f%ct%x1f%B"
_NOREPLY = re.compile(r"(?:[0-9]+\+)?(?P<login>[^@]+)@users\.noreply\.github\.com")


@dataclass(frozen=True)
class CommitRecord:
    """A commit taken apart."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str


def read_commits(bare: BareRepository, *revisions: str) -> list[CommitRecord]:
    """Return commits as ``git log`` chooses and orders them."""
    output = bare.run("log", "-z", f"--format={_FORMAT}", *revisions).decode(errors="replace")
    return [_parsed(entry) for entry in output.split("\0") if entry]


def noreply_signature(user: Row, now: float) -> Signature:
    """Return how GitHub signs a commit for somebody whose address is private."""
    return Signature(user["login"], f"{user['id']}+{user['login']}@users.noreply.github.com", now)


def list_commits(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/commits, newest first; ``sha`` and ``path`` choose."""
    start = readable_bare(call).commit_id(call.query.get("sha") or call.repository["default_branch"])
    if start is None:
        if not call.bare.refs("refs/heads/"):
            raise Refusal(409, "Git Repository is empty.")
        raise not_found()
    path = call.query.get("path")
    choice = [start, "--", *([f":(literal){path}"] if path else [])]
    total = int(call.bare.text("rev-list", "--count", *choice))
    window = (f"--skip={call.page.offset}", f"--max-count={call.page.size}")
    found = read_commits(call.bare, *window, *choice)
    return ApiResponse(200, [commit_payload(call, commit) for commit in found], call.links(total))


def get_commit(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/commits/{ref}, with what it changed against its first parent."""
    commit = find_commit(call, call.params["ref"])
    changes = diffs.diff_between(call.bare, commit.parents[0] if commit.parents else EMPTY_TREE, commit.sha)
    part = changes[call.page.offset : call.page.offset + call.page.size] if "page" in call.query else changes[:300]
    totals = {name: sum(getattr(change, name) for change in changes) for name in ("additions", "deletions")}
    extras = {
        "stats": {"total": sum(totals.values()), **totals},
        "files": [diffs.file_payload(call, change, commit.sha) for change in part],
    }
    return ApiResponse(200, commit_payload(call, commit) | extras)


def compare(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/compare/{base}...{head}: what head has since it parted from base."""
    base_name, dots, head_name = call.params["basehead"].partition("...")
    if not dots:
        raise not_found()
    names = [name.rpartition(":")[2] for name in (base_name, head_name)]
    base, head = (find_commit(call, name) for name in names)
    fork = call.bare.merge_base(base.sha, head.sha)
    if fork is None:
        raise Refusal(404, f"No common ancestor between {base_name} and {head_name}.")
    ahead, behind = (int(call.bare.text("rev-list", "--count", pair)) for pair in _sides(base.sha, head.sha))
    found = read_commits(call.bare, "--reverse", "--topo-order", f"{base.sha}..{head.sha}")[:MOST_COMPARED]
    url = f"{call.api}/repos/{call.repository['full_name']}/compare/{quote(base_name)}...{quote(head_name)}"
    page = f"{call.web}/{call.repository['full_name']}/compare/{quote(base_name)}...{quote(head_name)}"
    document = {
        "url": url,
        "html_url": page,
        "permalink_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "base_commit": commit_payload(call, base),
        "merge_base_commit": commit_payload(call, find_commit(call, fork)),
        "status": _relation(ahead, behind),
        "ahead_by": ahead,
        "behind_by": behind,
        "total_commits": ahead,
        "commits": [commit_payload(call, commit) for commit in found],
        "files": [
            diffs.file_payload(call, change, head.sha) for change in diffs.diff_between(call.bare, fork, head.sha)[:300]
        ],
    }
    return ApiResponse(200, document)


def readable_bare(call: Call) -> BareRepository:
    """Return the repository's git, refused to tokens that may not read its contents."""
    _ = call.repository
    if not call.grant.may("contents", AccessLevel.READ):
        raise call.grant.refusal()
    return call.bare


def find_commit(call: Call, name: str) -> CommitRecord:
    """Return the commit of a name; what GitHub says about names of nothing is a 422 for a sha and a 404 else."""
    sha = readable_bare(call).commit_id(name)
    if sha is not None:
        return read_commits(call.bare, "--max-count=1", sha)[0]
    if not call.bare.refs("refs/heads/"):
        raise Refusal(409, "Git Repository is empty.")
    if re.fullmatch(r"[0-9a-f]{40}", name) or "/" not in call.path.partition("/commits/")[2]:
        raise Refusal(422, f"No commit found for SHA: {name}")
    raise not_found()


def commit_payload(call: Call, commit: CommitRecord) -> payloads.Payload:
    """Return a ``commit``."""
    name = call.repository["full_name"]
    url = f"{call.api}/repos/{name}"
    return {
        "sha": commit.sha,
        "node_id": payloads.node_id("C", int(commit.sha[:12], 16)),
        "commit": {
            "author": signature_payload(commit.author),
            "committer": signature_payload(commit.committer),
            "message": commit.message,
            "tree": {"sha": commit.tree, "url": f"{url}/git/trees/{commit.tree}"},
            "url": f"{url}/git/commits/{commit.sha}",
            "comment_count": 0,
            "verification": unsigned_verification(),
        },
        "url": f"{url}/commits/{commit.sha}",
        "html_url": f"{call.web}/{name}/commit/{commit.sha}",
        "comments_url": f"{url}/commits/{commit.sha}/comments",
        "author": _account(call, commit.author),
        "committer": _account(call, commit.committer),
        "parents": parent_payloads(call, commit, "commits"),
    }


def parent_payloads(call: Call, commit: CommitRecord, kind: str) -> list[payloads.Payload]:
    """Return the parents of a commit with their links, ``kind`` being commits or git/commits."""
    name = call.repository["full_name"]
    return [
        {
            "sha": sha,
            "url": f"{call.api}/repos/{name}/{kind}/{sha}",
            "html_url": f"{call.web}/{name}/commit/{sha}",
        }
        for sha in commit.parents
    ]


def signature_payload(signed: Signature) -> payloads.Payload:
    """Return a ``git-user``."""
    return {"name": signed.name, "email": signed.email, "date": payloads.moment(signed.moment)}


def unsigned_verification() -> dict[str, Any]:
    """Return the ``verification`` of a commit without a cryptographic signature."""
    return {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}


def _account(call: Call, signed: Signature) -> payloads.Payload | None:
    found = _NOREPLY.fullmatch(signed.email)
    if found is None:
        return None
    row = call.db.execute("SELECT * FROM users WHERE login = ?", (found["login"],)).fetchone()
    return None if row is None else payloads.user(call, row)


def _parsed(entry: str) -> CommitRecord:
    sha, tree, ancestors, *people, message = entry.split("\x1f", 9)
    author, committer = (Signature(part[0], part[1], float(part[2])) for part in (people[:3], people[3:]))
    return CommitRecord(sha, tree, tuple(ancestors.split()), author, committer, message.rstrip("\n"))


def _sides(base: str, head: str) -> Sequence[str]:
    return (f"{base}..{head}", f"{head}..{base}")


def _relation(ahead: int, behind: int) -> str:
    if ahead and behind:
        return "diverged"
    if ahead:
        return "ahead"
    return "behind" if behind else "identical"
