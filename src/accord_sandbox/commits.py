"""Commits: lists, comparisons, and their payloads.

Docs: https://docs.github.com/rest/commits/commits
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from accord_sandbox import payloads
from accord_sandbox.diffs import diff_between, file_payload
from accord_sandbox.git_storage import HEADS, Signature
from accord_sandbox.responses import ApiResponse, Refusal, not_found
from accord_sandbox.routing import route

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row
    from accord_sandbox.git_storage import BareRepository

GITHUB = ("GitHub", "noreply@github.com")
"""The committer of commits made over the API."""

MOST_COMPARED_COMMITS = 250
MOST_COMPARED_FILES = 300
_FORMAT = "%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%at%x1f%cn%x1f%ce%x1f%ct%x1f%B"
_NOREPLY = re.compile(r"(?:[0-9]+\+)?(?P<login>[^@]+)@users\.noreply\.github\.com")


@dataclass(frozen=True)
class CommitRecord:
    """The fields of a commit."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str


def read_commits(bare: BareRepository, *revisions: str) -> list[CommitRecord]:
    """Return commits as ``git log`` selects and orders them."""
    output = bare.run("log", "-z", f"--format={_FORMAT}", *revisions).decode(errors="replace")
    return [_parsed(entry) for entry in output.split("\0") if entry]


def noreply_signature(user: Row, now: float) -> Signature:
    """Return GitHub's signature for a user with a private address."""
    return Signature(user["login"], f"{user['id']}+{user['login']}@users.noreply.github.com", now)


def author_signature(call: Call) -> Signature:
    """Return the caller's signature for a commit made now."""
    (row,) = call.fetch_all("SELECT * FROM users WHERE id = ?", call.user.user_id)
    return noreply_signature(row, call.now)


@route("GET", "commits", "commits/commits#list-commits")
def list_commits(call: Call) -> ApiResponse:
    """List commits, newest first; ``sha`` and ``path`` filter them."""
    start = readable_bare(call).commit_id(call.query.get("sha") or call.repository["default_branch"])
    if start is None:
        check_not_empty(call)
        raise not_found()
    path = call.query.get("path")
    revisions = [start, "--", *([f":(literal){path}"] if path else [])]
    total = int(call.bare.text("rev-list", "--count", *revisions))
    found = read_commits(call.bare, f"--skip={call.page.offset}", f"--max-count={call.page.size}", *revisions)
    return ApiResponse(200, [commit_payload(call, commit) for commit in found], call.links(total))


@route("GET", "compare/{basehead:path}", "commits/commits#compare-two-commits")
def compare(call: Call) -> ApiResponse:
    """Compare ``base...head``: the changes of head since it left base."""
    base_name, dots, head_name = call.params["basehead"].partition("...")
    if not dots:
        raise not_found()
    base, head = (find_commit(call, name.rpartition(":")[2]) for name in (base_name, head_name))
    fork = call.bare.merge_base(base.sha, head.sha)
    if fork is None:
        raise Refusal(404, f"No common ancestor between {base_name} and {head_name}.")
    ranges = (f"{base.sha}..{head.sha}", f"{head.sha}..{base.sha}")
    ahead, behind = (int(call.bare.text("rev-list", "--count", pair)) for pair in ranges)
    found = read_commits(call.bare, "--reverse", "--topo-order", ranges[0])[:MOST_COMPARED_COMMITS]
    changes = diff_between(call.bare, fork, head.sha)[:MOST_COMPARED_FILES]
    end = f"/compare/{quote(base_name)}...{quote(head_name)}"
    page = f"{call.repository_page}{end}"
    status = "diverged" if ahead and behind else "ahead" if ahead else "behind" if behind else "identical"
    document = {
        "url": f"{call.repository_url}{end}",
        "html_url": page,
        "permalink_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "base_commit": commit_payload(call, base),
        "merge_base_commit": commit_payload(call, find_commit(call, fork)),
        "status": status,
        "ahead_by": ahead,
        "behind_by": behind,
        "total_commits": ahead,
        "commits": [commit_payload(call, commit) for commit in found],
        "files": [file_payload(call, change, head.sha) for change in changes],
    }
    return ApiResponse(200, document)


def readable_bare(call: Call) -> BareRepository:
    """Return the repository's git; refuse tokens that may not read its contents."""
    call.require_read("contents")
    return call.bare


def check_not_empty(call: Call) -> None:
    """Refuse an empty git repository."""
    if not call.bare.refs(HEADS):
        raise Refusal(409, "Git Repository is empty.")


def find_commit(call: Call, name: str) -> CommitRecord:
    """Return the commit of a name; like GitHub, answer 422 for an unknown sha and 404 for an unknown ref."""
    sha = readable_bare(call).commit_id(name)
    if sha is not None:
        return read_commits(call.bare, "--max-count=1", sha)[0]
    check_not_empty(call)
    if re.fullmatch(r"[0-9a-f]{40}", name) or "/" not in call.path.partition("/commits/")[2]:
        raise Refusal(422, f"No commit found for SHA: {name}")
    raise not_found()


def commit_payload(call: Call, commit: CommitRecord) -> payloads.Payload:
    """Return a ``commit``."""
    url = call.repository_url
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
        "html_url": f"{call.repository_page}/commit/{commit.sha}",
        "comments_url": f"{url}/commits/{commit.sha}/comments",
        "author": _account(call, commit.author),
        "committer": _account(call, commit.committer),
        "parents": parent_payloads(call, commit, "commits"),
    }


def parent_payloads(call: Call, commit: CommitRecord, kind: str) -> list[payloads.Payload]:
    """Return the parents of a commit with their links, ``kind`` being commits or git/commits."""
    url, page = f"{call.repository_url}/{kind}", f"{call.repository_page}/commit"
    return [{"sha": sha, "url": f"{url}/{sha}", "html_url": f"{page}/{sha}"} for sha in commit.parents]


def signature_payload(signed: Signature) -> payloads.Payload:
    """Return a ``git-user``."""
    return {"name": signed.name, "email": signed.email, "date": payloads.timestamp_of(signed.seconds)}


def unsigned_verification() -> dict[str, Any]:
    """Return the ``verification`` of a commit without a cryptographic signature."""
    return {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}


def _account(call: Call, signed: Signature) -> payloads.Payload | None:
    found = _NOREPLY.fullmatch(signed.email)
    row = call.fetch("SELECT * FROM users WHERE login = ?", found["login"]) if found else None
    return None if row is None else payloads.user(call, row)


def _parsed(entry: str) -> CommitRecord:
    sha, tree, ancestors, *people, message = entry.split("\x1f", 9)
    author, committer = (Signature(part[0], part[1], float(part[2])) for part in (people[:3], people[3:]))
    return CommitRecord(sha, tree, tuple(ancestors.split()), author, committer, message.rstrip("\n"))
