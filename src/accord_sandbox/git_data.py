"""Refs, trees, blobs and commits of git, and the files and folders of a commit.

Docs: https://docs.github.com/rest/git/refs, …/git/commits, …/git/trees, …/git/blobs, …/repos/contents
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from accord.git.program import GitFailed
from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, Route
from accord_sandbox.commits import (
    GITHUB,
    author_signature,
    check_not_empty,
    git_commit_payload,
    read_commit,
    readable_bare,
)
from accord_sandbox.git_storage import EMPTY_TREE, HEADS, WORKFLOWS, ZERO, Signature, is_valid_ref
from accord_sandbox.pull_state import follow_branches
from accord_sandbox.repositories import check_change
from accord_sandbox.responses import ApiResponse, Refusal, created, not_found, or_404, schema_violation

MOST_TREE_ENTRIES = 100_000
"""Larger trees are refused ("Get a tree", limits of the tree array)."""

_SHA = re.compile(r"[0-9a-f]{40}")
_KINDS = {"blob": "blobs", "tree": "trees", "commit": "commits"}
_FOLDER = "040000"
_MODES = ("100644", "100755", "120000", "160000", _FOLDER)
BAD_PARTS = {"", ".", "..", ".git"}


@Route("GET", "git/ref/{ref:path}", "git/refs#get-a-reference")
def _get_ref(call: Call) -> ApiResponse:
    ref = f"refs/{call.params['ref']}"
    bare = readable_bare(call)
    found = bare.refs(ref).get(ref)
    if found is None:
        check_not_empty(call)
        raise not_found()
    return ApiResponse(200, _ref_payload(call, ref, found))


@Route("POST", "git/refs", "git/refs#create-a-reference")
def _create_ref(call: Call) -> ApiResponse:
    call.require("contents", AccessLevel.WRITE)
    ref, sha = call.fields.value_of("ref"), call.fields.value_of("sha")
    if not is_valid_ref(ref) or ref.count("/") < 2:
        raise Refusal(422, f"{ref} is not a valid ref name.")
    _check_commit(call, sha)
    if ref in call.bare.refs(ref):
        raise Refusal(422, "Reference already exists")
    check_change(call, ref, ZERO, sha)
    try:
        call.bare.set_ref(ref, sha, ZERO)
    except GitFailed:  # refs/heads/a beside refs/heads/a/b
        raise Refusal(422, "Reference update failed") from None
    follow_branches(call)
    return created(_ref_payload(call, ref, sha))


@Route("PATCH", "git/refs/{ref:path}", "git/refs#update-a-reference")
def _update_ref(call: Call) -> ApiResponse:
    call.require("contents", AccessLevel.WRITE)
    ref, sha, force = f"refs/{call.params['ref']}", call.fields.value_of("sha"), call.fields.get("force")
    current = call.bare.refs(ref).get(ref)
    if current is None:
        raise Refusal(422, "Reference does not exist")
    _check_commit(call, sha)
    if not force and not call.bare.is_ancestor(current, sha):
        raise Refusal(422, "Update is not a fast forward")
    check_change(call, ref, current, sha)
    call.bare.set_ref(ref, sha, current)
    follow_branches(call)
    return ApiResponse(200, _ref_payload(call, ref, sha))


@Route("DELETE", "git/refs/{ref:path}", "git/refs#delete-a-reference")
def delete_ref(call: Call) -> ApiResponse:
    """Delete a ref; pull requests from that branch are closed."""
    call.require("contents", AccessLevel.WRITE)
    ref = f"refs/{call.params['ref']}"
    current = call.bare.refs(ref).get(ref)
    if current is None:
        raise Refusal(422, "Reference does not exist")
    check_change(call, ref, current, ZERO)
    if ref == HEADS + call.repository["default_branch"]:
        raise Refusal(422, "Cannot delete the default branch")
    call.bare.set_ref(ref, ZERO)
    follow_branches(call)
    return ApiResponse(204)


@Route("GET", "git/commits/{sha}", "git/commits#get-a-commit-object")
def _get_git_commit(call: Call) -> ApiResponse:
    sha = call.params["sha"]
    if _kinds(call, [sha]) != ["commit"]:
        raise not_found()
    return ApiResponse(200, git_commit_payload(call, read_commit(call.bare, sha)))


@Route("POST", "git/commits", "git/commits#create-a-commit")
def create_commit(call: Call) -> ApiResponse:
    """Create a commit of the caller from a message, a tree and parents.

    GitHub signs commits of apps (GitHub documentation, "About commit signature verification", section on bots).
    """
    call.require("contents", AccessLevel.WRITE)
    check_not_empty(call)
    message, tree = call.fields.value_of("message"), call.fields.value_of("tree")
    parents = call.fields.names("parents") or []
    kinds = _kinds(call, [tree, *parents])
    if tree == EMPTY_TREE or kinds[0] != "tree":  # GitHub's API refuses the empty one (r-lib/gert issue 149)
        raise Refusal(422, "Tree SHA does not exist")
    if any(kind != "commit" for kind in kinds[1:]):
        raise Refusal(422, "Parent SHA does not exist or is not a commit object")
    return created(create_git_commit(call, tree, parents, message))


@Route("POST", "git/blobs", "git/blobs#create-a-blob")
def _create_blob(call: Call) -> ApiResponse:
    call.require("contents", AccessLevel.WRITE)
    check_not_empty(call)
    text = call.fields.value_of("content")
    content = decode_base64(text) if call.fields.get("encoding") == "base64" else text.encode()
    sha = call.bare.write("blob", content)
    return created({"url": f"{call.repository_url}/git/blobs/{sha}", "sha": sha})


@Route("GET", "git/trees/{sha:path}", "git/trees#get-a-tree")
def get_tree(call: Call) -> ApiResponse:
    """Return a tree; ``recursive`` with any value lists its folders too."""
    bare = readable_bare(call)
    name = call.params["sha"]
    commit = bare.commit_id(name)
    sha = read_commit(bare, commit).tree if commit else name
    if not commit and _kinds(call, [sha]) != ["tree"]:
        raise not_found()
    return ApiResponse(200, _tree_payload(call, sha, is_deep="recursive" in call.query))


@Route("POST", "git/trees", "git/trees#create-a-tree")
def create_tree(call: Call) -> ApiResponse:
    """Create a tree from files by content or sha, on top of ``base_tree``."""
    call.require("contents", AccessLevel.WRITE)
    check_not_empty(call)
    base = call.fields.get("base_tree")
    if base is not None and _kinds(call, [base]) != ["tree"]:
        raise Refusal(422, "base_tree is not a valid tree oid")
    entries = call.fields.value_of("tree", list)
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        raise Refusal(422, "Invalid tree info")
    if len(entries) > MOST_TREE_ENTRIES:
        raise Refusal(422, "Sorry, your request is too large to process.")
    paths = [path for entry in entries if isinstance(path := entry.get("path"), str)]
    holds = any(path.startswith(WORKFLOWS) or WORKFLOWS.startswith(f"{path}/") for path in paths)
    call.permit(call.user.may_write_workflows or not holds)  # anthropics/claude-code-action issue 29 reports it
    return created(_tree_payload(call, write_tree(call, base, entries)))


def decode_base64(text: str) -> bytes:
    """Decode base64, which may be divided into lines."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError:  # also from a character that is not ASCII
        raise Refusal(422, "content is not valid Base64") from None


def write_tree(call: Call, base: str | None, entries: Sequence[dict[str, Any]]) -> str:
    """Write a tree from another one and the entries of a request: contents, known objects, or null to remove a file."""
    shas = [entry["sha"] for entry in entries if isinstance(entry.get("sha"), str)]
    known = dict(zip(shas, _kinds(call, shas), strict=True))
    changes = dict[str, tuple[str, str] | None]()
    for entry in entries:
        path, mode, sha = entry.get("path"), entry.get("mode", "100644"), entry.get("sha")
        if not isinstance(path, str) or mode not in _MODES or BAD_PARTS & set(path.split("/")) or "\0" in path:
            raise Refusal(422, "tree.path contains a malformed path component")
        kind = {"160000": "commit", _FOLDER: "tree"}.get(mode, "blob")
        if "sha" in entry and sha is None:
            changes[path] = None
        elif entry.get("content") is not None and kind == "blob":
            changes[path] = mode, call.bare.write("blob", str(entry["content"]).encode())
        elif isinstance(sha, str) and kind in ("commit", known[sha]):
            changes[path] = mode, sha
        else:
            raise Refusal(422, f"tree.sha {sha} is not a valid {kind}")
    return call.bare.changed_tree(base, changes)


def create_git_commit(call: Call, tree: str, parents: Sequence[str], message: str) -> payloads.Payload:
    """Write a commit, and return it as a ``git-commit``; one of an app is signed."""
    people, is_app = (author_signature(call), Signature(*GITHUB, call.now)), call.user.kind == "installation"
    sha = call.bare.commit(tree, parents, message, *people, is_signed=is_app)
    return git_commit_payload(call, read_commit(call.bare, sha))


def _check_commit(call: Call, sha: str) -> None:
    if not _SHA.fullmatch(sha):
        raise Refusal(422, "The sha parameter must be exactly 40 characters and contain only [0-9a-f].")
    if _kinds(call, [sha]) != ["commit"]:
        raise Refusal(422, "Object does not exist")


def _kinds(call: Call, shas: Sequence[str]) -> list[str | None]:
    """Return the kinds of the objects with these full shas; None for anything else."""
    full = [sha for sha in shas if _SHA.fullmatch(sha)]
    found = dict(zip(full, readable_bare(call).objects(*full), strict=True))
    return [each.kind if (each := found.get(sha)) else None for sha in shas]


def _ref_payload(call: Call, ref: str, sha: str) -> payloads.Payload:
    url = f"{call.repository_url}/git"
    kind = _kinds(call, [sha])[0] or "commit"
    target = {"sha": sha, "type": kind, "url": f"{url}/{_KINDS.get(kind, 'tags')}/{sha}"}
    return {"ref": ref, "node_id": f"REF_{quote(ref, safe='')}", "url": f"{url}/{quote(ref)}", "object": target}


def _tree_payload(call: Call, sha: str, *, is_deep: bool = False) -> payloads.Payload:
    """Return a ``git-tree``, of the trees below, too, if it ``is_deep``."""
    url = f"{call.repository_url}/git"
    entries = []
    for mode, kind, blob, size, path in call.bare.entries(sha, is_deep=is_deep):
        document = {"path": path, "mode": mode, "type": kind, "sha": blob, "url": f"{url}/{_KINDS[kind]}/{blob}"}
        entries.append({**document, "size": size} if kind == "blob" else document)
    return {"sha": sha, "url": f"{url}/trees/{sha}", "tree": entries, "truncated": False}


MOST_INLINE_BYTES = 1024 * 1024
"""GitHub leaves the content of larger files out."""


@Route("GET", "contents/{path:path}", "repos/contents#get-repository-content")
def _get_contents(call: Call) -> ApiResponse:
    path = call.params["path"].strip("/")
    bare = readable_bare(call)
    ref = call.query.get("ref") or call.repository["default_branch"]
    commit = bare.commit_id(ref)
    if commit is None:
        raise Refusal(404, f"No commit found for the ref {ref}" if bare.refs(HEADS) else "This repository is empty.")
    found = or_404(bare.objects(f"{commit}:{path}")[0])
    if found.kind == "tree":
        return ApiResponse(200, _folder_payload(call, ref, commit, path))
    document, content = _file_payload(call, ref, commit, path), found.content
    if document["type"] == "symlink":
        return ApiResponse(200, {**document, "target": content.decode(errors="replace")})
    inline = len(content) <= MOST_INLINE_BYTES
    text = base64.encodebytes(content).decode() if inline else ""
    return ApiResponse(200, {**document, "content": text, "encoding": "base64" if inline else "none"})


@Route("PUT", "contents/{path:path}", "repos/contents#create-or-update-file-contents")
def put_contents(call: Call) -> ApiResponse:
    """Commit one file; ``sha`` is the blob that it replaces."""
    call.require("contents", AccessLevel.WRITE)
    path = call.params["path"]
    content = decode_base64(call.fields.value_of("content"))
    branch = call.fields.get("branch") or call.repository["default_branch"]
    tip = call.bare.branch(branch)
    if tip is None and call.bare.refs(HEADS):
        raise Refusal(404, f"Branch {branch} not found")
    (found,) = call.bare.objects(f"{tip}:{path}") if tip else (None,)
    old = found.sha if found else None
    given = call.fields.get("sha")
    if old is not None and given is None:
        raise schema_violation('"sha" wasn\'t supplied.')
    if given is not None and given != old:
        raise Refusal(409, f"{path} does not match {given}")
    tree = write_tree(call, tip, [{"path": path, "sha": call.bare.write("blob", content)}])
    commit = create_git_commit(call, tree, [tip] if tip else [], call.fields.value_of("message"))
    failed = f"Could not {'update' if old else 'create'} file: "
    check_change(call, f"{HEADS}{branch}", tip or ZERO, commit["sha"], status=409, failed=failed)
    call.bare.set_ref(f"{HEADS}{branch}", commit["sha"], tip or ZERO)
    follow_branches(call)
    document = {"content": _file_payload(call, branch, commit["sha"], path), "commit": commit}
    return ApiResponse(200 if old else 201, document)


def _file_payload(call: Call, ref: str, commit: str, path: str) -> payloads.Payload:
    entries = _folder_payload(call, ref, commit, path.rpartition("/")[0])
    return next(entry for entry in entries if entry["path"] == path)


def _folder_payload(call: Call, ref: str, commit: str, folder: str) -> list[payloads.Payload]:
    """Return a ``content-directory``."""
    entries = []
    for mode, _, blob, size, name in call.bare.entries(f"{commit}:{folder}"):
        path = f"{folder}/{name}".lstrip("/")
        kind = {"040000": "dir", "120000": "symlink", "160000": "submodule"}.get(mode, "file")
        url = f"{call.repository_url}/contents/{quote(path)}?ref={quote(ref)}"
        git = f"{call.repository_url}/git/{'trees' if kind == 'dir' else 'blobs'}/{blob}"
        pages = {name: f"{call.repository_page}/{name}/{quote(ref)}/{quote(path)}" for name in ("tree", "blob", "raw")}
        page = pages["tree" if kind == "dir" else "blob"]
        links = {"url": url, "git_url": git, "html_url": page}
        document = {"name": name, "path": path, "sha": blob, "size": size, "type": kind, **links}
        document |= {"download_url": None if kind == "dir" else pages["raw"]}
        entries.append({**document, "_links": {"self": url, "git": git, "html": page}})
    return entries
