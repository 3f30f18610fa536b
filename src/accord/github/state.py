"""A text with a history, kept at a ref of its own: each commit holds one version, and its parent the one before.

GitHub changes issues and comments without asking what was in them before, so of two writers at once one would undo what
the other wrote. A ref moves only to a descendant of where it is, in one atomic step: whoever comes second is refused,
reads what the first one wrote, and thinks again. A writer killed between two steps leaves a commit that nobody knows.
Only who may write the repository's contents may write the ref.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.github.git_data import create_ref_once
from accord.github.models import Conflict
from accord.github.once import send_until_answered

if TYPE_CHECKING:
    from accord.core.clock import Clock
    from accord.github.git_data import Commit, RefMethods


@dataclass(frozen=True)
class Chain:
    """Where a text is kept. ``ref`` is its whole name, ``readme`` what a person finds who looks into its commits.

    ``writer`` is a word of this process alone: two writers that write the same in the same second would otherwise write
    the same commit, and both believe that it is theirs.
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


def newest(chain: Chain) -> Link | None:
    """Read the newest version: two requests. None where there is none."""
    sha = chain.github.ref(chain.ref)
    commit = chain.github.commit_object(sha) if sha else None
    return _link(commit) if commit else None


def append(chain: Chain, last: Link | None, text: str, title: str) -> Link | None:
    """Make ``text`` the version after ``last``; None where another writer was faster.

    A request whose answer was lost is looked up before it is sent again.
    """
    try:
        tree = last.tree if last else _sent_tree(chain)
        parents = [last.sha] if last else []
        message = f"{title}, by {chain.writer}\n\n{text}"
        commit = send_until_answered(lambda: chain.github.create_commit(message, tree, parents), chain.clock)
    except Conflict:  # the parent or the tree is gone: the ref was deleted, and git has tidied up
        return None
    if _move(chain, commit) or _is_behind(chain, commit):
        return Link(text, commit.sha, tree)
    return None


def _sent_tree(chain: Chain) -> str:
    return send_until_answered(lambda: chain.github.create_tree({"README.md": chain.readme}), chain.clock)


def _move(chain: Chain, commit: Commit) -> bool:
    """Make the commit the end of the ref, if the ref still ends at its parent."""
    if commit.parents:
        return chain.github.forward_ref(chain.ref, commit.sha)
    return create_ref_once(chain.github, chain.ref, commit.sha, chain.clock)


def _is_behind(chain: Chain, commit: Commit) -> bool:
    """Tell whether ours became a part of the chain after all: the answer was lost, and others have gone on since."""
    sha = chain.github.ref(chain.ref)
    while sha and sha != commit.sha and sha not in commit.parents:
        found = chain.github.commit_object(sha)
        sha = found.parents[0] if found and found.parents else None
    return sha == commit.sha


def _link(commit: Commit) -> Link:
    return Link(commit.message.partition("\n\n")[2].rstrip("\n"), commit.sha, commit.tree)
