"""Refs, commits and trees as git has them.

Docs: https://docs.github.com/rest/git/refs, …/git/commits, …/git/trees
"""

from __future__ import annotations

import base64
import binascii
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from accord_sandbox import commits, payloads, pull_state, repositories
from accord_sandbox.calls import AccessLevel
from accord_sandbox.git_storage import HEADS, WORKFLOWS, ZERO, GitFailed, Signature, valid_ref
from accord_sandbox.repositories import check_update
from accord_sandbox.responses import ApiResponse, Refusal, not_found, schema_violation, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord_sandbox.calls import Call
    from accord_sandbox.git_storage import BareRepository
    from accord_sandbox.payloads import Payload


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
    return ApiResponse(
        200, [_ref_payload(call, ref, sha) for ref, sha in _refs(call, "refs/").items() if ref.startswith(start)]
    )


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
    pull_state.follow_branches(pull_state.ref_update(call))
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
    pull_state.follow_branches(pull_state.ref_update(call))
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
    pull_state.follow_branches(pull_state.ref_update(call))
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


MOST_INLINE_BYTES = 1024 * 1024
"""Above that a file's content is left out, and only the raw media type has it."""


def get_contents(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/contents/{path}: a file with its content, or the list of a folder."""
    path = call.params["path"].strip("/")
    bare = commits.readable_bare(call)
    commit = bare.commit_id(call.query.get("ref") or call.repository["default_branch"])
    if commit is None:
        missing = "This repository is empty." if not bare.refs(HEADS) else _no_commit(call)
        raise Refusal(404, missing)
    code, output, _ = bare.ask("cat-file", "-t", f"{commit}:{path}")
    if code:
        raise not_found()
    ref = call.query.get("ref") or call.repository["default_branch"]
    if output.strip() == b"tree":
        return ApiResponse(
            200, [_content_payload(call, ref, *entry) for entry in _folder_entries(bare, f"{commit}:{path}", path)]
        )
    folder = path.rpartition("/")[0]
    found = next(entry for entry in _folder_entries(bare, f"{commit}:{folder}", folder) if entry[3] == path)
    content = bare.run("cat-file", "blob", found[1])
    if ".raw" in call.accept:
        return ApiResponse(200, headers={"content-type": "application/vnd.github.raw"}, content=content)
    document = _content_payload(call, ref, *found)
    if found[0] == "120000":
        return ApiResponse(200, {**document, "target": content.decode(errors="replace")})
    inline = len(content) <= MOST_INLINE_BYTES
    text = base64.encodebytes(content).decode() if inline else ""
    return ApiResponse(200, {**document, "content": text, "encoding": "base64" if inline else "none"})


def put_contents(call: Call) -> ApiResponse:
    """PUT /repos/{owner}/{repo}/contents/{path}: one commit that writes one file; ``sha`` is the blob it replaces."""
    call.require("contents", AccessLevel.WRITE)
    path, content, message = _write_request(call)
    branch = call.fields.string("branch") or call.repository["default_branch"]
    tip = call.bare.branch(branch)
    if tip is None and call.bare.refs(HEADS):
        raise Refusal(404, f"Branch {branch} not found")
    old = _blob_at(call.bare, tip, path)
    _check_replaced(call, path, old)
    _check_branch_rules(call, branch, path, tip, "update" if old else "create")
    blob = call.bare.run("hash-object", "-w", "--stdin", content=content).decode().strip()
    user = call.db.execute("SELECT * FROM users WHERE id = ?", (call.user.user_id,)).fetchone()
    author = commits.noreply_signature(user, call.now)
    parents = [tip] if tip else []
    tree = _tree_with(call.bare, tip, path, blob)
    sha = call.bare.commit(tree, parents, message, author, Signature(*commits.GITHUB, call.now))
    call.bare.set_ref(f"{HEADS}{branch}", sha, tip or ZERO)
    pull_state.follow_branches(pull_state.ref_update(call))
    commit = commits.commit_payload(call, commits.read_commits(call.bare, "--max-count=1", sha)[0])
    plain = {**commit["commit"], **{name: commit[name] for name in ("sha", "node_id", "html_url", "parents")}}
    plain["url"] = f"{call.api}/repos/{call.repository['full_name']}/git/commits/{sha}"
    document = _content_payload(call, branch, "100644", blob, len(content), path)
    return ApiResponse(200 if old else 201, {"content": document, "commit": plain})


def _write_request(call: Call) -> tuple[str, bytes, str]:
    for name in ("message", "content"):
        call.fields.require(name)
    path = call.params["path"]
    if not path or any(part in ("", ".", "..", ".git") for part in path.split("/")):
        raise Refusal(422, "path contains a malformed path component")
    try:
        content = base64.b64decode("".join((call.fields.string("content") or "").split()), validate=True)
    except binascii.Error:
        raise Refusal(422, "content is not valid Base64") from None
    return path, content, call.fields.string("message") or ""


def _check_replaced(call: Call, path: str, old: str | None) -> None:
    given = call.fields.string("sha")
    if old is not None and given is None:
        raise schema_violation('"sha" wasn\'t supplied.')
    if given is not None and given != old:
        raise Refusal(409, f"{path} does not match {given}")


def _check_branch_rules(call: Call, branch: str, path: str, tip: str | None, verb: str) -> None:
    if path.startswith(WORKFLOWS) and not call.user.may_write_workflows:
        raise call.grant.refusal()
    rules = repositories.protections(call.db, call.repository).get(branch)
    if tip is not None and rules is not None and rules.approvals is not None and rules.binds(call.grant):
        raise Refusal(409, f"Could not {verb} file: {repositories.THROUGH_A_PULL}")


def _blob_at(bare: BareRepository, commit: str | None, path: str) -> str | None:
    if commit is None:
        return None
    code, output, _ = bare.ask("rev-parse", "--verify", "--quiet", f"{commit}:{path}")
    return output.decode().strip() if code == 0 else None


def _tree_with(bare: BareRepository, commit: str | None, path: str, blob: str) -> str:
    """Write the tree of a commit with one file put into it."""
    with tempfile.TemporaryDirectory(prefix="accord-index-") as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        if commit is not None:
            bare.run("read-tree", commit, env=env)
        bare.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", env=env)
        return bare.text("write-tree", env=env)


def _folder_entries(bare: BareRepository, tree: str, folder: str) -> list[tuple[str, str, int, str]]:
    """Return mode, blob, size and path of what lies in a folder."""
    entries = []
    for entry in filter(None, bare.run("ls-tree", "-z", "--long", tree).decode(errors="replace").split("\0")):
        facts, _, name = entry.partition("\t")
        mode, _, blob, size = facts.split()
        entries.append((mode, blob, 0 if size == "-" else int(size), f"{folder}/{name}".lstrip("/")))
    return entries


def _content_payload(call: Call, ref: str, mode: str, blob: str, size: int, path: str) -> Payload:
    kind = {"040000": "dir", "120000": "symlink", "160000": "submodule"}.get(mode, "file")
    name, where = call.repository["full_name"], quote(path)
    url = f"{call.api}/repos/{name}/contents/{where}?ref={quote(ref)}"
    git = f"{call.api}/repos/{name}/git/{'trees' if kind == 'dir' else 'blobs'}/{blob}"
    page = f"{call.web}/{name}/{'tree' if kind == 'dir' else 'blob'}/{quote(ref)}/{where}"
    return {
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": blob,
        "size": size,
        "url": url,
        "html_url": page,
        "git_url": git,
        "download_url": None if kind == "dir" else f"{call.web}/{name}/raw/{quote(ref)}/{where}",
        "type": kind,
        "_links": {"self": url, "git": git, "html": page},
    }


def _no_commit(call: Call) -> str:
    return f"No commit found for the ref {call.query.get('ref')}"
