"""Commits that a run's work contains and that the remote has, too: they are its base, and not its changes."""

from __future__ import annotations

from collections.abc import Collection

from accord.git.patches import apply_patch, changes_between, difference, own_index
from accord.git.program import Git, join_nul, split_nul


def _commits_in(git: Git, *wanted: str) -> list[str]:
    return git.attempt("rev-list", "--topo-order", *wanted, "--").stdout.decode().split()


def newest_of(git: Git, commits: Collection[str], *wanted: str) -> str:
    """Return the newest of these commits that git lists for words such as ``base..tip``; empty without one."""
    return next((commit for commit in _commits_in(git, *wanted) if commit in commits), "") if commits else ""


def own_paths(git: Git, wanted: str, others: Collection[str]) -> set[str]:
    """Return the paths that a range of commits, without ``others``, changes; in a merge, from all its parents."""
    commits = "".join(f"{commit}\n" for commit in _commits_in(git, wanted) if commit not in others)
    words = ("diff-tree", "--stdin", "-r", "-c", "--no-commit-id", "--name-only", "--no-renames", "-z")
    return {*split_nul(git(*words, data=commits.encode()))}


def patch_since(git: Git, patch: bytes, base: str, start: str) -> bytes:
    """Return what a patch for ``base`` changes in another commit, which its result goes on from, in its own paths."""
    changes = changes_between(git, base, apply_patch(git, patch, base))
    with own_index(git) as inside:
        inside("read-tree", start)
        entries = join_nul(f"{change.mode} {change.blob}\t{change.path}" for change in changes)
        inside("update-index", "--replace", "-z", "--index-info", data=entries)
        tree = inside.line("write-tree")
    return difference(git, start, tree, changes_between(git, start, tree))
