"""Files and folders of a commit, and one-file commits.

Docs: https://docs.github.com/rest/repos/contents
"""

from __future__ import annotations

import base64
import binascii
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from accord_sandbox import commits, git_data, heads, protection
from accord_sandbox.access import AccessLevel
from accord_sandbox.answers import ApiResponse, Refusal, not_found, schema_violation
from accord_sandbox.bare import HEADS, WORKFLOWS, ZERO, Signature

if TYPE_CHECKING:
    from accord_sandbox.bare import BareRepository
    from accord_sandbox.calls import Call
    from accord_sandbox.payloads import Payload

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
        return ApiResponse(200, [_content_payload(call, ref, *entry) for entry in _folder_entries(bare, f"{commit}:{path}", path)])
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
    heads.follow_branches(heads.ref_update(call))
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
    rules = protection.protections(call.db, call.repository).get(branch)
    if tip is not None and rules is not None and rules.approvals is not None and rules.binds(call.grant):
        raise Refusal(409, f"Could not {verb} file: {protection.THROUGH_A_PULL}")


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
