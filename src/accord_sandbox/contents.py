"""Files and folders of a commit.

Docs: https://docs.github.com/rest/repos/contents
"""

from __future__ import annotations

import base64
from urllib.parse import quote

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, route
from accord_sandbox.commits import readable_bare
from accord_sandbox.git_data import BAD_PARTS, create_git_commit, decoded, write_blob, write_tree
from accord_sandbox.git_storage import HEADS, WORKFLOWS, ZERO
from accord_sandbox.pull_state import follow_branches, ref_update
from accord_sandbox.repositories import THROUGH_A_PULL, protections
from accord_sandbox.responses import ApiResponse, Refusal, not_found, schema_violation
from accord_sandbox.rulesets import check_rules

MOST_INLINE_BYTES = 1024 * 1024
"""GitHub leaves the content of larger files out."""


@route("GET", "contents/{path:path}", "repos/contents#get-repository-content")
def get_contents(call: Call) -> ApiResponse:
    """Return a file with its content, or the list of a folder."""
    path = call.params["path"].strip("/")
    bare = readable_bare(call)
    ref = call.query.get("ref") or call.repository["default_branch"]
    commit = bare.commit_id(ref)
    if commit is None:
        raise Refusal(404, f"No commit found for the ref {ref}" if bare.refs(HEADS) else "This repository is empty.")
    (found,) = bare.objects(f"{commit}:{path}")
    if found is None:
        raise not_found()
    if found.kind == "tree":
        return ApiResponse(200, _folder_payload(call, ref, commit, path))
    document, content = _file_payload(call, ref, commit, path), found.content
    if document["type"] == "symlink":
        return ApiResponse(200, {**document, "target": content.decode(errors="replace")})
    inline = len(content) <= MOST_INLINE_BYTES
    text = base64.encodebytes(content).decode() if inline else ""
    return ApiResponse(200, {**document, "content": text, "encoding": "base64" if inline else "none"})


@route("PUT", "contents/{path:path}", "repos/contents#create-or-update-file-contents")
def put_contents(call: Call) -> ApiResponse:
    """Commit one file; ``sha`` is the blob that it replaces."""
    call.require("contents", AccessLevel.WRITE)
    call.fields.require("message", "content")
    path = call.params["path"]
    if BAD_PARTS & set(path.split("/")):
        raise Refusal(422, "path contains a malformed path component")
    content = decoded(call.fields.text("content"))
    branch = call.fields.string("branch") or call.repository["default_branch"]
    tip = call.bare.branch(branch)
    if tip is None and call.bare.refs(HEADS):
        raise Refusal(404, f"Branch {branch} not found")
    (found,) = call.bare.objects(f"{tip}:{path}") if tip else (None,)
    old = found.sha if found else None
    _check_put(call, path, branch, tip, old)
    tree = write_tree(call, tip, [{"path": path, "sha": write_blob(call.bare, content)}])
    commit = create_git_commit(call, tree, [tip] if tip else [], call.fields.text("message"))
    check_rules(call, f"{HEADS}{branch}", (tip or ZERO, commit["sha"]), status=409)
    call.bare.set_ref(f"{HEADS}{branch}", commit["sha"], tip or ZERO)
    follow_branches(ref_update(call))
    document = {"content": _file_payload(call, branch, commit["sha"], path), "commit": commit}
    return ApiResponse(200 if old else 201, document)


def _check_put(call: Call, path: str, branch: str, tip: str | None, old: str | None) -> None:
    given = call.fields.string("sha")
    if old is not None and given is None:
        raise schema_violation('"sha" wasn\'t supplied.')
    if given is not None and given != old:
        raise Refusal(409, f"{path} does not match {given}")
    call.permit(call.user.may_write_workflows or not path.startswith(WORKFLOWS))
    rules = protections(call.db, call.repository).get(branch)
    if tip is not None and rules is not None and rules.needs_pull(call.grant):
        raise Refusal(409, f"Could not {'update' if old else 'create'} file: {THROUGH_A_PULL}")


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
