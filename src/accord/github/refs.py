"""Refs, commits and trees over REST: git's own compare-and-set, for what must not be lost between two writers.

A ref is made only where none is, and moved only to a descendant of where it is. Both are one atomic step on GitHub
("Create a reference", "Update a reference").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from accord.github.once import send_once
from accord.github.port import Conflict, EmptyRepository, NotThere
from accord.github.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.kernel.clock import Clock


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit object."""

    sha: str
    message: str
    tree: str
    parents: tuple[str, ...]


class RefPort(Protocol):
    """Refs of one repository. Names are whole (``refs/…``). Every method may raise Refused or Stopped."""

    def ref(self, name: str) -> str | None:
        """Read what a ref points to; None when there is none."""
        ...

    def create_ref(self, name: str, sha: str) -> bool:
        """Make a ref. False when GitHub refuses it, as it does where one is. Raises AnswerLost."""
        ...

    def forward_ref(self, name: str, sha: str) -> bool:
        """Move a ref to a descendant. False when GitHub refuses it: the ref is elsewhere by now, or gone."""
        ...

    def replace_ref(self, name: str, sha: str) -> None:
        """Point a ref elsewhere, wherever it is: only for a ref whose commits are all ours. Raises Conflict."""
        ...

    def commit_object(self, sha: str) -> Commit | None:
        """Read a commit; None when there is none."""
        ...

    def create_commit(self, message: str, tree: str, parents: Sequence[str]) -> Commit:
        """Write a commit that no ref knows yet. Raises AnswerLost, after which a second one harms nobody."""
        ...

    def create_tree(self, files: Mapping[str, str]) -> str:
        """Write a tree of text files. Raises AnswerLost, after which the same again is the same tree."""
        ...


def create_ref_once(github: RefPort, name: str, sha: str, clock: Clock) -> bool:
    """Make a ref; False where one is that points elsewhere, so somebody else was faster."""

    def look() -> bool | None:
        tip = github.ref(name)
        return None if tip is None else tip == sha

    return send_once(lambda: github.create_ref(name, sha), look, clock)


class RefMethods(Rest):
    """Implements ``RefPort``."""

    def ref(self, name: str) -> str | None:
        """GET …/git/ref/{ref}."""
        try:
            answer = self._transport.call("GET", f"{self._root}/git/ref/{_path(name)}")
        except (NotThere, EmptyRepository):
            return None
        return answer.read(lambda data: str(data["object"]["sha"]))

    def create_ref(self, name: str, sha: str) -> bool:
        """POST …/git/refs."""
        try:
            self._transport.call("POST", f"{self._root}/git/refs", body={"ref": name, "sha": sha})
        except Conflict:
            return False
        return True

    def forward_ref(self, name: str, sha: str) -> bool:
        """PATCH …/git/refs/{ref} without force."""
        try:
            self._transport.call("PATCH", f"{self._root}/git/refs/{_path(name)}", body={"sha": sha, "force": False})
        except Conflict:
            return False
        return True

    def replace_ref(self, name: str, sha: str) -> None:
        """PATCH …/git/refs/{ref} with force. Sent twice it is the same."""
        self._transport.call("PATCH", f"{self._root}/git/refs/{_path(name)}", body={"sha": sha, "force": True})

    def commit_object(self, sha: str) -> Commit | None:
        """GET …/git/commits/{sha}."""
        return self._found(f"{self._root}/git/commits/{quote(sha, safe='')}", _commit)

    def create_commit(self, message: str, tree: str, parents: Sequence[str]) -> Commit:
        """POST …/git/commits."""
        content = {"message": message, "tree": tree, "parents": list(parents)}
        return self._transport.call("POST", f"{self._root}/git/commits", body=content).read(_commit)

    def create_tree(self, files: Mapping[str, str]) -> str:
        """POST …/git/trees."""
        entries = [{"path": path, "mode": "100644", "type": "blob", "content": text} for path, text in files.items()]
        answer = self._transport.call("POST", f"{self._root}/git/trees", body={"tree": entries})
        return answer.read(lambda data: str(data["sha"]))


def _path(name: str) -> str:
    return quote(name.removeprefix("refs/"), safe="/")


def _commit(data: dict[str, Any]) -> Commit:
    """Read the JSON of a commit object (schema "git-commit")."""
    return Commit(data["sha"], data["message"], data["tree"]["sha"], tuple(parent["sha"] for parent in data["parents"]))
