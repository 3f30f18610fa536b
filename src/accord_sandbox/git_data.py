"""Refs, commits and trees as git has them.

Docs: https://docs.github.com/rest/git/refs, …/git/commits, …/git/trees
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from accord_sandbox import commits, heads, payloads
from accord_sandbox.access import AccessLevel
from accord_sandbox.answers import ApiResponse, Refusal, not_found
from accord_sandbox.bare import HEADS, ZERO, GitFailed, valid_ref
from accord_sandbox.protection import check_update

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord_sandbox.calls import Call

_SHA = re.compile(r"[0-9a-f]{40}")
_KINDS = {"blob": "blobs", "tree": "trees", "commit": "commits"}


def get_ref(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/git/ref/{ref}: exactly that one."""
    ref = f"refs/{call.params['ref']}"
    found = _refs(call, ref).get(ref)
    if found is None:
        raise not_found()
    return ApiResponse(200, _ref_payload(call, ref, found))


def matching_refs(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/git/matching-refs/{ref}: all that begin with it."""
    start = f"refs/{call.params['ref']}"
    return ApiResponse(200, [_ref_payload(call, ref, sha) for ref, sha in _refs(call, "refs/").items() if ref.startswith(start)])


def create_ref(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/git/refs with a full name and a commit."""
    call.require("contents", AccessLevel.WRITE)
    for name in ("ref", "sha"):
        call.fields.require(name)
    ref, sha = call.fields.string("ref") or "", call.fields.string("sha") or ""
    if not valid_ref(ref) or ref.count("/") < 2:
        raise Refusal(422, f"{ref} is not a valid ref name.")
    _check_object(call, sha)
    if ref in call.bare.refs(ref):
        raise Refusal(422, "Reference already exists")
    _check_workflows(call, sha)
    try:
        call.bare.set_ref(ref, sha, ZERO)
    except GitFailed:  # refs/heads/a beside refs/heads/a/b
        raise Refusal(422, "Reference update failed") from None
    heads.follow_branches(heads.ref_update(call))
    payload = _ref_payload(call, ref, sha)
    return ApiResponse(201, payload, {"location": payload["url"]})


def update_ref(call: Call) -> ApiResponse:
    """PATCH /repos/{owner}/{repo}/git/refs/{ref}; only forward unless ``force``."""
    call.require("contents", AccessLevel.WRITE)
    call.fields.require("sha")
    ref, sha, force = f"refs/{call.params['ref']}", call.fields.string("sha") or "", call.fields.flag("force")
    current = call.bare.refs(ref).get(ref)
    if current is None:
        raise Refusal(422, "Reference does not exist")
    _check_object(call, sha)
    forward = call.bare.is_ancestor(current, sha)
    if not forward and not force:
        raise Refusal(422, "Update is not a fast forward")
    check_update(call, ref, forced=not forward)
    _check_workflows(call, sha)
    call.bare.set_ref(ref, sha, current)
    heads.follow_branches(heads.ref_update(call))
    return ApiResponse(200, _ref_payload(call, ref, sha))


def delete_ref(call: Call) -> ApiResponse:
    """DELETE /repos/{owner}/{repo}/git/refs/{ref}; pull requests from that branch are closed."""
    call.require("contents", AccessLevel.WRITE)
    ref = f"refs/{call.params['ref']}"
    if ref not in call.bare.refs(ref):
        raise Refusal(422, "Reference does not exist")
    check_update(call, ref, deleted=True)
    if ref == HEADS + call.repository["default_branch"]:
        raise Refusal(422, "Cannot delete the default branch")
    call.bare.drop_ref(ref)
    heads.follow_branches(heads.ref_update(call))
    return ApiResponse(204)


def get_git_commit(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/git/commits/{commit_sha}."""
    sha = call.params["sha"]
    if not is_object(call, sha, "commit"):
        raise not_found()
    return ApiResponse(200, git_commit_payload(call, sha))


def git_commit_payload(call: Call, sha: str) -> payloads.Payload:
    """Return a ``git-commit``."""
    commit = commits.read_commits(call.bare, "--max-count=1", sha)[0]
    name = call.repository["full_name"]
    url = f"{call.api}/repos/{name}/git"
    return {
        "sha": sha,
        "node_id": payloads.node_id("C", int(sha[:12], 16)),
        "url": f"{url}/commits/{sha}",
        "html_url": f"{call.web}/{name}/commit/{sha}",
        "author": commits.signature_payload(commit.author),
        "committer": commits.signature_payload(commit.committer),
        "tree": {"sha": commit.tree, "url": f"{url}/trees/{commit.tree}"},
        "message": commit.message,
        "parents": commits.parent_payloads(call, commit, "git/commits"),
        "verification": commits.unsigned_verification(),
    }


def get_tree(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/git/trees/{tree_sha}; ``recursive`` with any value lists the whole tree."""
    bare = commits.readable_bare(call)
    name = call.params["sha"]
    commit = bare.commit_id(name)
    sha = bare.text("rev-parse", f"{commit}^{{tree}}") if commit else name
    if not is_object(call, sha, "tree"):
        raise not_found()
    deep = ["-r", "-t"] if "recursive" in call.query else []
    return ApiResponse(200, tree_payload(call, sha, deep))


def tree_payload(call: Call, sha: str, deep: Sequence[str] = ()) -> payloads.Payload:
    """Return a ``git-tree``; ``deep`` are the options of git ls-tree for what lies in folders."""
    output = call.bare.run("ls-tree", "-z", "--long", *deep, sha).decode(errors="replace")
    url = f"{call.api}/repos/{call.repository['full_name']}/git"
    entries = []
    for entry in filter(None, output.split("\0")):
        facts, _, path = entry.partition("\t")
        mode, kind, blob, size = facts.split()
        document = {"path": path, "mode": mode, "type": kind, "sha": blob, "url": f"{url}/{_KINDS[kind]}/{blob}"}
        entries.append({**document, "size": int(size)} if kind == "blob" else document)
    return {"sha": sha, "url": f"{url}/trees/{sha}", "tree": entries, "truncated": False}


def is_object(call: Call, sha: str, kind: str) -> bool:
    """Tell whether a full sha is that of a commit, a tree or a blob that is here."""
    return _SHA.fullmatch(sha) is not None and _object_type(call, sha) == kind


def _refs(call: Call, prefix: str) -> dict[str, str]:
    bare = commits.readable_bare(call)
    if not bare.refs(HEADS):
        raise Refusal(409, "Git Repository is empty.")
    return bare.refs(prefix)


def _check_object(call: Call, sha: str) -> None:
    if not _SHA.fullmatch(sha):
        raise Refusal(422, "The sha parameter must be exactly 40 characters and contain only [0-9a-f].")
    if _object_type(call, sha) != "commit":
        raise Refusal(422, "Object does not exist")


def _check_workflows(call: Call, sha: str) -> None:
    """Refuse new commits that change a workflow file to a token that may not write any.

    Source: "Create a reference" and "Update a reference" ask for ``workflows: write`` then; in these words, see
    googleapis/release-please-action issue 709.
    """
    if not call.user.may_write_workflows and call.bare.brings_workflows(sha):
        raise call.grant.refusal()


def _object_type(call: Call, sha: str) -> str | None:
    code, output, _ = commits.readable_bare(call).ask("cat-file", "-t", sha)
    return output.decode().strip() if code == 0 else None


def _ref_payload(call: Call, ref: str, sha: str) -> payloads.Payload:
    url = f"{call.api}/repos/{call.repository['full_name']}/git"
    kind = _object_type(call, sha) or "commit"
    return {
        "ref": ref,
        "node_id": f"REF_{quote(ref, safe='')}",
        "url": f"{url}/{quote(ref)}",
        "object": {"sha": sha, "type": kind, "url": f"{url}/{_KINDS.get(kind, 'tags')}/{sha}"},
    }
