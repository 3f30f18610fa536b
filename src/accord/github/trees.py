"""Folders and files of a commit over REST, and new trees over old ones: what a change without a checkout needs."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from accord.github.port import NotThere
from accord.github.rest import Rest
from accord.kernel.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """What lies at a path of a tree. ``mode`` is git's (100644 file, 100755 program, 120000 link), ``kind`` too."""

    path: str
    mode: str
    kind: str
    sha: str


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree with its entries; ``sha`` is its own, also where it was asked for by a commit."""

    sha: str
    entries: tuple[TreeEntry, ...]


class TreePort(Protocol):
    """Trees and files of one repository. Every method may raise Refused or Stopped."""

    def tree(self, sha: str, *, recursive: bool = False) -> Tree:
        """Read the tree of a commit, or one by its own sha; ``recursive`` lists what lies in its folders, too."""
        ...

    def file(self, path: str, commit: str) -> bytes:
        """Read a file of a commit, which must be there.

        GitHub hands out at most 1 MB so (GitHub documentation, "Get repository content").
        """
        ...

    def create_tree_over(self, base: str, changes: Mapping[str, tuple[str, str] | None]) -> str:
        """Write a tree that is another one but for these paths: ``(mode, text)``, or None for no such file.

        Raises AnswerLost, after which the same again is the same tree.
        """
        ...


class TreeMethods(Rest):
    """Implements ``TreePort``."""

    def tree(self, sha: str, *, recursive: bool = False) -> Tree:
        """GET …/git/trees/{sha}. Raises Refused when GitHub leaves entries out."""
        path = f"{self._root}/git/trees/{quote(sha, safe='')}"
        answer = self._transport.call("GET", path, params={"recursive": "1"} if recursive else None)
        if answer.read(lambda data: bool(data.get("truncated"))):
            raise Refused(f"The tree {sha} is too large: GitHub lists only a part of it.")
        return answer.read(_tree)

    def file(self, path: str, commit: str) -> bytes:
        """GET …/contents/{path} at a commit."""
        address = f"{self._root}/contents/{quote(path, safe='/')}"
        try:
            content = self._transport.call("GET", address, params={"ref": commit}).read(_content)
        except NotThere as absent:
            raise Refused(absent.message, mend=absent.mend) from absent
        if content is None:
            raise Refused(f"GitHub does not hand out {path}: it is no file, or larger than 1 MB.")
        return content

    def create_tree_over(self, base: str, changes: Mapping[str, tuple[str, str] | None]) -> str:
        """POST …/git/trees with a base tree."""
        entries = [_change(path, *change) if change else _removal(path) for path, change in changes.items()]
        answer = self._transport.call("POST", f"{self._root}/git/trees", body={"base_tree": base, "tree": entries})
        return answer.read(lambda data: str(data["sha"]))


def _change(path: str, mode: str, text: str) -> dict[str, Any]:
    return {"path": path, "mode": mode, "type": "blob", "content": text}


def _removal(path: str) -> dict[str, Any]:
    return {"path": path, "mode": "100644", "type": "blob", "sha": None}


def _content(data: Any) -> bytes | None:
    """Read the JSON of a file (schema "content-file"); None for a folder, a link, or a file that is too large."""
    is_file = isinstance(data, dict) and data.get("encoding") == "base64"
    return base64.b64decode(data["content"]) if is_file else None


def _tree(data: dict[str, Any]) -> Tree:
    """Read the JSON of a tree (schema "git-tree")."""
    entries = (TreeEntry(entry["path"], entry["mode"], entry["type"], entry["sha"]) for entry in data["tree"])
    return Tree(str(data["sha"]), tuple(entries))
