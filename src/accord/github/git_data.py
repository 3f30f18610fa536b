"""Refs, commits and trees over REST: git's own compare-and-set, for what must not be lost between two writers.

A ref is made only where none is, and moved only to a descendant of where it is. Both are one atomic step on GitHub
("Create a reference", "Update a reference").
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from accord.core.clock import parse_timestamp
from accord.core.errors import Refused
from accord.core.frozen import Frozen, json_field
from accord.git.program import SUBMODULE
from accord.github.models import Conflict, EmptyRepository, NotThere
from accord.github.rest import Rest, segment, segments


class Commit(Frozen):
    """A commit object; GitHub shows whether it is verified, and ``at`` what time it was committed."""

    sha: str = json_field()
    message: str = json_field()
    tree: str = json_field("tree.sha")
    parents: tuple[str, ...] = json_field(read=lambda parents: tuple(parent["sha"] for parent in parents))
    is_verified: bool = json_field("verification.verified", bool, default=False)
    at: datetime | None = json_field("committer.date", parse_timestamp, default=None)


class TreeEntry(Frozen):
    """An entry of a tree."""

    path: str = json_field()
    mode: str = json_field()  # git's: 100644 file, 100755 program, 120000 link
    kind: str = json_field("type")  # git's: blob, tree or commit
    sha: str = json_field()


class StoredObject(Frozen):
    """An object that GitHub has already, as the content of a path; a submodule is a commit of another repository."""

    mode: str
    sha: str


TreeChange: TypeAlias = tuple[str, str] | StoredObject | None
"""A path of a new tree: mode and text of a file or link, an object that GitHub has, or None to remove it."""


class Tree(Frozen):
    """A tree with its entries; ``sha`` is its own, also where it was asked for by a commit (schema "git-tree")."""

    sha: str = json_field()
    entries: tuple[TreeEntry, ...] = json_field("tree", lambda entries: tuple(map(TreeEntry.from_json, entries)))


class GitDataMethods(Rest):
    """Requests about refs, commits, trees, blobs and files."""

    def ref(self, name: str) -> str | None:
        """Return the commit that a ref points to; None without such a ref. GET …/git/ref/{ref}."""
        try:
            answer = self._call("GET", f"/git/ref/{_path(name)}")
        except (NotThere, EmptyRepository):
            return None
        return answer.read(lambda data: str(data["object"]["sha"]))

    def create_ref(self, name: str, sha: str) -> str:
        """Create a ref; return its commit. POST …/git/refs. Raises Conflict, as for an existing ref."""
        self._call("POST", "/git/refs", body={"ref": name, "sha": sha})
        return sha

    def create_ref_once(self, name: str, sha: str) -> None:
        """Create a ref. Raises Conflict where it points elsewhere, because another writer was faster."""

        def find() -> str | None:
            tip = self.ref(name)
            if tip not in (None, sha):
                raise Conflict(f"{name} points to {tip} already.")
            return tip

        self.send_once(lambda: self.create_ref(name, sha), find)

    def forward_ref(self, name: str, sha: str) -> None:
        """Move a ref to a descendant. PATCH …/git/refs/{ref}. Raises Conflict, as for one that is elsewhere or gone."""
        self._call("PATCH", f"/git/refs/{_path(name)}", body={"sha": sha, "force": False})

    def replace_ref(self, name: str, sha: str) -> None:
        """Point a ref whose commits are all accord's elsewhere by force. PATCH …/git/refs/{ref}. Raises Conflict.

        REST has no condition for it: a commit that was pushed since the caller read the ref is no longer on it.
        """
        self._call("PATCH", f"/git/refs/{_path(name)}", body={"sha": sha, "force": True})

    def commit_object(self, sha: str) -> Commit | None:
        """Read a commit; None without such a commit. GET …/git/commits/{sha}."""
        return self._find(f"/git/commits/{segment(sha)}", _commit)

    def history(self, sha: str) -> Iterator[Commit]:
        """List a commit and those before it, newest first. GET …/commits."""
        return self._list_items("/commits", _commit, sha=sha)

    def commit_named(self, repository: str, ref: str) -> str | None:
        """Return the commit of a tag or branch of any repository; None without one. GET /repos/{name}/commits."""
        path = f"/repos/{segments(repository)}/commits"
        try:
            answer = self._transport.call("GET", path, params={"sha": ref, "per_page": 1})
        except NotThere:
            return None
        return answer.read(lambda commits: str(commits[0]["sha"]) if commits else None)

    def create_commit(self, message: str, tree: str, parents: Sequence[str]) -> Commit:
        """Create a commit that no ref names yet; sent again when its answer is lost. GitHub signs those of bots."""
        content = {"message": message, "tree": tree, "parents": list(parents)}
        return self.send_until_answered(lambda: self._call("POST", "/git/commits", body=content).read(_commit))

    def tree(self, sha: str, *, recursive: bool = False) -> Tree:
        """Read the tree of a commit, or one by its own sha; ``recursive`` includes the content of folders.

        GET …/git/trees/{sha}. Raises Refused when GitHub leaves entries out.
        """
        path = f"/git/trees/{segment(sha)}"
        answer = self._call("GET", path, params={"recursive": "1"} if recursive else None)
        if answer.read(lambda data: bool(data.get("truncated"))):
            raise Refused(f"The tree {sha} is too large: GitHub lists only a part of it.")
        return answer.read(Tree.from_json)

    def file(self, path: str, commit: str) -> bytes:
        """Read a file of a commit, at most 1 MB ("Get repository content"). Raises Refused without such a file."""
        try:
            return self._file(path, commit)
        except NotThere as absent:
            raise Refused(absent.message, hint=absent.hint) from absent

    def find_file(self, path: str, branch: str = "") -> bytes | None:
        """Read a file of a branch, by default the default one; None where GitHub shows no such file."""
        try:
            return self._file(path, branch)
        except (NotThere, EmptyRepository):
            return None

    def files_in(self, folder: str) -> tuple[str, ...]:
        """List the files of a folder of the default branch by path; none without it. GET …/contents/{folder}."""

        def paths(data: Any) -> tuple[str, ...]:
            entries = data if isinstance(data, list) else ()
            return tuple(str(entry["path"]) for entry in entries if entry["type"] == "file")

        try:
            return self._call("GET", f"/contents/{segments(folder)}").read(paths)
        except (NotThere, EmptyRepository):
            return ()

    def _file(self, path: str, ref: str) -> bytes:
        address = f"/contents/{segments(path)}"
        answer = self._call("GET", address, params={"ref": ref} if ref else None)
        # a folder, a link, or a file that is too large has no content (schema "content-file")
        is_file = isinstance(answer.data, dict) and answer.data.get("encoding") == "base64"
        content = answer.read(lambda data: base64.b64decode(data["content"]) if is_file else None)
        if content is None:
            raise Refused(f"GitHub does not return `{path}`: it is not a file, or it is larger than 1 MB.")
        return content

    def create_blob(self, content: bytes) -> str:
        """Create a blob; return its id. POST …/git/blobs, sent again when its answer is lost."""
        return self._create_object("/git/blobs", {"content": base64.b64encode(content).decode(), "encoding": "base64"})

    def create_tree(self, changes: Mapping[str, TreeChange], base: str = "") -> str:
        """Create a tree from changes over a base, in their order; return its id. POST …/git/trees, as for a blob."""
        entries = list[dict[str, Any]]()
        for path, change in changes.items():
            if isinstance(change, StoredObject):
                kind = "commit" if change.mode == SUBMODULE else "blob"
                entries.append({"path": path, "type": kind, "mode": change.mode, "sha": change.sha})
            elif change is None:
                entries.append({"path": path, "type": "blob", "mode": "100644", "sha": None})
            else:
                entries.append({"path": path, "type": "blob", "mode": change[0], "content": change[1]})
        content = {"tree": entries, **({"base_tree": base} if base else {})}
        return self._create_object("/git/trees", content)

    def _create_object(self, path: str, body: dict[str, Any]) -> str:
        return self.send_until_answered(lambda: self._call("POST", path, body=body).read(lambda data: str(data["sha"])))


def _path(name: str) -> str:
    return segments(name.removeprefix("refs/"))


def _commit(data: dict[str, Any]) -> Commit:
    """Read the JSON of a commit object, or of one in a listing (schemas "git-commit" and "commit")."""
    return Commit.from_json({**data, **data.get("commit", {})})
