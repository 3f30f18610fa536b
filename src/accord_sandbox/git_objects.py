"""Making trees and commits by the API, without a branch that moves.

Docs: https://docs.github.com/rest/git/trees, …/git/commits
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord_sandbox import commits
from accord_sandbox.access import AccessLevel
from accord_sandbox.answers import ApiResponse, Refusal
from accord_sandbox.bare import HEADS, WORKFLOWS, Signature
from accord_sandbox.fields import texts
from accord_sandbox.git_data import git_commit_payload, is_object, tree_payload

if TYPE_CHECKING:
    from accord_sandbox.bare import BareRepository
    from accord_sandbox.calls import Call

UNUSABLE_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""git knows it without having it; GitHub's API has refused it since 2021 (r-lib/gert issue 149)."""

_MODES = ("100644", "100755", "120000", "160000", "040000")


def create_tree(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/git/trees: files by their content or sha, over ``base_tree``."""
    _require_commits(call)
    call.fields.require("tree")
    base = call.fields.string("base_tree")
    if base is not None and not is_object(call, base, "tree"):
        raise Refusal(422, "base_tree is not a valid tree oid")
    entries = call.document["tree"]
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise Refusal(422, "Invalid tree info")
    if not call.user.may_write_workflows and any(_is_workflow(entry.get("path")) for entry in entries):
        raise call.grant.refusal()  # reported for "Create a tree" in anthropics/claude-code-action issue 29
    with tempfile.TemporaryDirectory(prefix="accord-index-") as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder) / "index"), "GIT_WORK_TREE": folder}
        call.bare.run("read-tree", *([base] if base else ["--empty"]), env=env)
        for entry in entries:
            _put(call, entry, env)
        sha = call.bare.text("write-tree", env=env)
    document = tree_payload(call, sha)
    return ApiResponse(201, document, {"location": document["url"]})


def _is_workflow(path: object) -> bool:
    """Tell whether an entry is a workflow file, or a folder that may bring some."""
    return isinstance(path, str) and (path.startswith(WORKFLOWS) or WORKFLOWS.startswith(f"{path}/"))


def _put(call: Call, entry: dict[str, Any], env: dict[str, str]) -> None:
    path, mode = entry.get("path"), entry.get("mode", "100644")
    if not isinstance(path, str) or mode not in _MODES or {"", ".", "..", ".git"} & set(path.split("/")):
        raise Refusal(422, "tree.path contains a malformed path component")
    content = entry.get("content")
    if "sha" in entry and entry["sha"] is None:
        call.bare.run("update-index", "--force-remove", "--", path, env=env)
        return
    sha = entry.get("sha") if content is None else _write_blob(call.bare, str(content))
    kind = {"160000": "commit", "040000": "tree"}.get(mode, "blob")
    if not isinstance(sha, str) or (kind != "commit" and not is_object(call, sha, kind)):
        raise Refusal(422, f"tree.sha {sha} is not a valid {kind}")
    if kind == "tree":
        call.bare.run("read-tree", f"--prefix={path}/", sha, env=env)
    else:
        call.bare.run("update-index", "--add", "--cacheinfo", f"{mode},{sha},{path}", env=env)


def _write_blob(bare: BareRepository, content: str) -> str:
    return bare.run("hash-object", "-w", "--stdin", content=content.encode()).decode().strip()


def create_commit(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/git/commits: a message, a tree and the parents; by the caller, now."""
    _require_commits(call)
    for name in ("message", "tree"):
        call.fields.require(name)
    message, tree = call.fields.string("message") or "", call.fields.string("tree") or ""
    parents = texts("parents", call.document.get("parents", []), "sha")
    if tree == UNUSABLE_TREE or not is_object(call, tree, "tree"):
        raise Refusal(422, "Tree SHA does not exist")
    if not all(is_object(call, parent, "commit") for parent in parents):
        raise Refusal(422, "Parent SHA does not exist or is not a commit object")
    user = call.db.execute("SELECT * FROM users WHERE id = ?", (call.user.user_id,)).fetchone()
    author = commits.noreply_signature(user, call.now)
    sha = call.bare.commit(tree, parents, message, author, Signature(*commits.GITHUB, call.now))
    document = git_commit_payload(call, sha)
    return ApiResponse(201, document, {"location": document["url"]})


def _require_commits(call: Call) -> None:
    call.require("contents", AccessLevel.WRITE)
    if not call.bare.refs(HEADS):
        raise Refusal(409, "Git Repository is empty.")
