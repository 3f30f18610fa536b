"""A merge of one branch into another, in a bare repository of our own: a commit, or the paths that conflict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.git.branches import DEFAULT_AUTHOR, commit_tree
from accord.git.program import GitFailed, is_ancestor

if TYPE_CHECKING:
    from datetime import datetime

    from accord.git.program import Git


@dataclass(frozen=True)
class Merge:
    """The commit of a merge, or else the conflicting paths; the branch itself where it has all commits already."""

    commit: str
    conflicts: tuple[str, ...] = ()


def merge_into(git: Git, branch: str, base: str, message: str, now: datetime) -> Merge:
    """Merge ``base`` into ``branch``, both commits, by the attributes of the base, so that ``merge=union`` counts.

    No program of the repository runs: drivers need a configuration, which a repository cannot bring. Raises GitFailed.
    """
    if is_ancestor(git, base, branch):
        return Merge(branch)
    _use_attributes(git, base)
    options = ("--write-tree", "--name-only", "--no-messages", "-z")
    done = git.attempt("merge-tree", *options, branch, base)
    if done.returncode > 1:
        raise GitFailed("merge-tree", done.returncode, done.stderr.decode("utf-8", "replace"))
    tree, *conflicts = done.stdout.decode("utf-8", "replace").rstrip("\0").split("\0")
    if done.returncode:
        return Merge("", tuple(conflicts))
    return Merge(commit_tree(git, tree, [branch, base], DEFAULT_AUTHOR, message, now))


def _use_attributes(git: Git, commit: str) -> None:
    """Let a bare repository use a commit's attributes; a newer git would take them as an option."""
    found = git.attempt("cat-file", "blob", f"{commit}:.gitattributes")
    info = git.directory / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_bytes(found.stdout if found.returncode == 0 else b"")
