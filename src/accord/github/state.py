"""Documents kept at a ref of their own: each commit holds one version, and its parent the version before.

GitHub changes issues and comments without asking what was in them before, so of two writers at once one would undo the
other's change. A ref moves only to a descendant of where it is, in one atomic step: the second writer is refused, reads
what the first one wrote, and decides again. Only those who may write the repository's contents may write the ref.

``StoredDocument`` combines all of this: the ref decides, and the copy that people see (a comment, a block in an
issue) is only rendered from it. A subclass says how a value becomes text and back, and renders the copy; the state
of a loop and the handoff of a work item are such documents. ``Chain``, ``newest`` and ``append`` are the steps below
it. A writer killed between two steps leaves a commit that no ref names, or a copy that is one version behind until the
next write; no lock can go stale.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from accord.core.clock import attempts
from accord.core.errors import Stopped
from accord.github.git_data import create_ref_once
from accord.github.models import Conflict
from accord.github.once import send_until_answered

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.core.clock import Clock
    from accord.github.git_data import Commit, RefMethods


TRIES = 12
PAUSE_SECONDS = 1.0

Value = TypeVar("Value")


@dataclass(frozen=True)
class Chain:
    """The ref of a document, by its full name; ``readme`` is for people who look into its commits.

    ``writer`` is unique to this process: two writers that write the same in the same second would otherwise make the
    same commit, and both take it for theirs.
    """

    github: RefMethods
    ref: str
    readme: str
    clock: Clock
    writer: str = field(default_factory=lambda: secrets.token_hex(8))


@dataclass(frozen=True)
class Link:
    """One version: its text, its commit, and the tree that all commits of the chain share."""

    text: str
    sha: str
    tree: str


@dataclass(frozen=True)
class Stored(Generic[Value]):
    """A value with the version that holds it, None where it is not stored yet.

    ``is_shown`` says that the visible copy is known to show this value.
    """

    value: Value
    link: Link | None = None
    is_shown: bool = False


class StoredDocument(ABC, Generic[Value]):
    """A document whose versions are kept at a ref and whose newest version is rendered where people see it.

    ``name`` names the document in messages, such as ``the handoff of #3``.
    """

    def __init__(self, chain: Chain, name: str) -> None:
        self.chain = chain
        self.name = name

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

    def without_ref(self, last: Stored[Value]) -> Stored[Value]:
        """Return what to go on from when the ref was deleted meanwhile; the value that was read last by default."""
        return replace(last, link=None)

    def newest(self) -> Stored[Value] | None:
        """Read the newest version: two requests. None where the ref does not exist."""
        link = newest(self.chain)
        return Stored(self.decode(link.text), link) if link else None

    def change(self, known: Stored[Value], decide: Callable[[Value], Value | None]) -> Stored[Value]:
        """Write what ``decide`` makes of the value that is there when it is written, and render it.

        ``known`` is what was read last. ``decide`` is pure and may be called several times; it returns None where
        there is nothing to write, so that the same command, run again after a crash, ends in the same state. Raises
        Stopped when other writers were faster every time.
        """
        current = known
        for attempt in attempts(self.chain.clock, [PAUSE_SECONDS] * (TRIES - 1)):
            if attempt:
                current = self.newest() or self.without_ref(current)
            wanted = decide(current.value)
            if wanted is None:
                return self.show(current) if current.link and not current.is_shown else current
            link = append(self.chain, current.link, self.encode(wanted), self.title(wanted))
            if link is not None:
                return self.show(Stored(wanted, link))
        raise Stopped(f"Other writers changed {self.name} {TRIES} times in a row.", hint="Run the same command again.")

    def show(self, stored: Stored[Value]) -> Stored[Value]:
        """Render a stored value until the ref still ends at it afterwards: the last writer looks last."""
        for _ in range(TRIES):
            self.render(stored)
            tip = self.chain.github.ref(self.chain.ref)
            if tip in (stored.link and stored.link.sha, None):
                break
            stored = self.newest() or stored
        return replace(stored, is_shown=True)


def newest(chain: Chain) -> Link | None:
    """Read the newest version: two requests. None where the ref does not exist."""
    sha = chain.github.ref(chain.ref)
    commit = chain.github.commit_object(sha) if sha else None
    return Link(commit.message.partition("\n\n")[2].rstrip("\n"), commit.sha, commit.tree) if commit else None


def append(chain: Chain, last: Link | None, text: str, title: str) -> Link | None:
    """Make ``text`` the version after ``last``; None where another writer was faster.

    A request whose answer was lost is looked up before it is sent again.
    """
    try:
        tree = last.tree if last else _create_tree(chain)
        parents = [last.sha] if last else []
        message = f"{title}, by {chain.writer}\n\n{text}"
        commit = send_until_answered(lambda: chain.github.create_commit(message, tree, parents), chain.clock)
    except Conflict:  # the parent or the tree is gone: the ref was deleted, and git has tidied up
        return None
    if _move(chain, commit) or _is_behind(chain, commit):
        return Link(text, commit.sha, tree)
    return None


def _create_tree(chain: Chain) -> str:
    return send_until_answered(lambda: chain.github.create_tree({"README.md": chain.readme}), chain.clock)


def _move(chain: Chain, commit: Commit) -> bool:
    """Make the commit the end of the ref, if the ref still ends at its parent."""
    if commit.parents:
        return chain.github.forward_ref(chain.ref, commit.sha)
    return create_ref_once(chain.github, chain.ref, commit.sha, chain.clock)


def _is_behind(chain: Chain, commit: Commit) -> bool:
    """Return whether the commit is a part of the chain: its answer was lost, and other writers have gone on since."""
    sha = chain.github.ref(chain.ref)
    while sha and sha != commit.sha and sha not in commit.parents:
        found = chain.github.commit_object(sha)
        sha = found.parents[0] if found and found.parents else None
    return sha == commit.sha
