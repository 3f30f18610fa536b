"""Documents kept at a ref of their own: each commit holds one version, and its parent the version before.

GitHub changes issues and comments without asking what was in them before, so of two writers at once one would undo the
other's change. A ref moves only to a descendant of where it is, in one atomic step: the second writer is refused, reads
what the first one wrote, and decides again. Only those who may write the repository's contents may write the ref.

The ref decides, and the copy that people see (a comment, a block in an issue) is only rendered from it. The state of a
loop and the handoff of a work item are such documents. A writer killed between two steps leaves a commit that no ref
names, or a copy that is one version behind until the next write; no lock can go stale.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from accord.core.clock import attempts
from accord.core.errors import Stopped
from accord.core.frozen import Frozen
from accord.github.git_data import Commit, GitDataMethods
from accord.github.models import Conflict

TRIES = 12
PAUSE_SECONDS = 1.0

Value = TypeVar("Value")


class Link(Frozen):
    """A version: its commit, and the tree that all commits of the document share."""

    sha: str
    tree: str


class Stored(Frozen, Generic[Value]):
    """A value with its version, None if not stored yet; ``is_shown``: the visible copy is known to show it."""

    value: Value
    link: Link | None = None
    is_shown: bool = False


class CommitChain:
    """Commits at a ref, each with a text as its message; ``readme`` is for people who look into them.

    The writer in a commit message is unique to this process: two writers that write the same in the same second would
    otherwise make the same commit, and both take it for theirs.
    """

    def __init__(self, github: GitDataMethods, ref: str, readme: str) -> None:
        self._github, self._ref, self._readme = github, ref, readme
        self._writer = secrets.token_hex(8)

    def append(self, last: Link | None, title: str, text: str) -> Link | None:
        """Make a commit with this text the one after ``last``; None where another writer was faster.

        A request whose answer was lost is looked up before it is sent again.
        """
        github, message = self._github, f"{title}, by {self._writer}\n\n{text}"
        files = {"README.md": ("100644", self._readme)}
        try:
            tree = last.tree if last else github.create_tree(files)
            parents = [last.sha] if last else []
            commit = github.create_commit(message, tree, parents)
        except Conflict:  # the parent or the tree is gone: the ref was deleted, and git has tidied up
            return None
        try:
            if parents:
                github.forward_ref(self._ref, commit.sha)
            else:
                github.create_ref_once(self._ref, commit.sha)
        except Conflict:
            return Link(commit.sha, tree) if self._is_behind(commit) else None
        return Link(commit.sha, tree)

    def _is_behind(self, commit: Commit) -> bool:
        """Return whether a commit is in the chain: its answer was lost, and other writers have gone on since."""
        sha = self._github.ref(self._ref)
        while sha and sha != commit.sha and sha not in commit.parents:
            found = self._github.commit_object(sha)
            sha = found.parents[0] if found and found.parents else None
        return sha == commit.sha


def text_of(commit: Commit) -> str:
    """Return the text that a commit of a chain holds."""
    return commit.message.partition("\n\n")[2].rstrip("\n")


class StoredDocument(ABC, Generic[Value]):
    """A document whose versions are kept at a ref and whose newest version is rendered where people see it.

    ``name`` names the document in messages, such as ``the handoff of #3``. ``readme`` is for people who look into its
    commits.
    """

    def __init__(self, github: GitDataMethods, ref: str, readme: str, name: str) -> None:
        self.ref, self.name = ref, name
        self._github, self._chain = github, CommitChain(github, ref, readme)

    @abstractmethod
    def encode(self, value: Value) -> str:
        """Return the text of a value."""

    @abstractmethod
    def decode(self, text: str) -> Value:
        """Return the value of a text. Raises Refused where this version of accord cannot read it."""

    @abstractmethod
    def title(self, value: Value) -> str:
        """Return the first line of the commit that holds a value."""

    @abstractmethod
    def render(self, stored: Stored[Value]) -> None:
        """Make the visible copy show a stored value. Writes nothing where the copy shows it already."""

    def newest(self) -> Stored[Value] | None:
        """Read the newest version: two requests. None where the ref does not exist."""
        sha = self._github.ref(self.ref)
        commit = self._github.commit_object(sha) if sha else None
        if commit is None:
            return None
        return Stored(self.decode(text_of(commit)), Link(commit.sha, commit.tree))

    def change(self, known: Stored[Value], decide: Callable[[Value], Value | None]) -> Stored[Value]:
        """Write what ``decide`` makes of the value that is there when it is written, and render it.

        ``known`` is what was read last. ``decide`` is pure and may be called several times; it returns None where
        there is nothing to write, so that the same command, run again after a crash, ends in the same state. Raises
        Stopped when other writers were faster every time.
        """
        current = known
        for attempt in attempts(self._github.clock, [PAUSE_SECONDS] * (TRIES - 1)):
            if attempt:
                current = self.newest() or replace(current, link=None)  # the ref was deleted meanwhile
            wanted = decide(current.value)
            if wanted is None:
                return self.show(current) if current.link and not current.is_shown else current
            link = self.append(current.link, wanted)
            if link is not None:
                return self.show(Stored(wanted, link))
        raise Stopped(f"Other writers changed {self.name} {TRIES} times in a row.", hint="Run the same command again.")

    def show(self, stored: Stored[Value]) -> Stored[Value]:
        """Render a stored value until the ref still ends at it afterwards: the last writer looks last."""
        for _ in range(TRIES):
            self.render(stored)
            tip = self._github.ref(self.ref)
            if tip in (stored.link and stored.link.sha, None):
                break
            stored = self.newest() or stored
        return replace(stored, is_shown=True)

    def append(self, last: Link | None, value: Value) -> Link | None:
        """Make ``value`` the version after ``last``; None where another writer was faster."""
        return self._chain.append(last, self.title(value), self.encode(value))
