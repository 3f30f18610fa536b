"""Merges of branches, and patches that conflict: the commit on its own base, the branch, and how to resolve it.

Commits that a run's work contains and that the remote has, too, are its base, and not its changes.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from accord.core.errors import BrokenContract
from accord.git.branches import DEFAULT_AUTHOR, BranchFacts, commit_patch, commit_tree
from accord.git.patches import PatchConflict, apply_patch, changes_between, difference, own_base, own_index
from accord.git.program import Git, GitFailed, file_at, is_ancestor, join_nul, split_nul

CONFLICT_TRAILER = "Accord-Conflict"
"""The trailer of a commit on its own base: the branch with which it conflicted."""

_DIGITS = 8
_PATHS_IN_NOTICE = 10


class Merge(NamedTuple):
    """The commit of a merge, or else the conflicting paths; the branch itself where it has all commits already."""

    commit: str
    conflicts: tuple[str, ...] = ()


def merge_into(git: Git, branch: str, base: str, message: str, now: datetime) -> Merge:
    """Merge ``base`` into ``branch``, both commits, by the attributes of the base, so that ``merge=union`` counts.

    No program of the repository runs: drivers need a configuration, which a repository cannot bring. Raises GitFailed.
    """
    if is_ancestor(git, base, branch):
        return Merge(branch)
    attributes = git.directory / "info/attributes"  # a newer git would take those of a commit as an option
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_bytes(file_at(git, base, ".gitattributes") or b"")
    options = ("--write-tree", "--name-only", "--no-messages", "-z")
    done = git.attempt("merge-tree", *options, branch, base)
    if done.returncode > 1:
        raise GitFailed("merge-tree", done.returncode, done.stderr.decode("utf-8", "replace"))
    tree, *conflicts = done.stdout.decode("utf-8", "replace").rstrip("\0").split("\0")
    if done.returncode:
        return Merge("", tuple(conflicts))
    return Merge(commit_tree(git, tree, [branch, base], DEFAULT_AUTHOR, message, now))


def conflict_branch(prefix: str, token: str) -> str:
    """Return the branch for a run whose own branch has other commits; the same for each try of the run."""
    return f"{prefix}-{token[-_DIGITS:]}"


def commit_on_own_base(git: Git, patch: bytes, tips: Sequence[str], author: str, message: str, now: datetime) -> str:
    """Commit a patch where it was made, before one of ``tips``; return the commit, empty if it was made elsewhere."""
    base, _ = own_base(git, patch, *tips)
    return commit_patch(git, BranchFacts(base, "", ""), patch, author, message, now)[0] if base else ""


def conflicting_paths(git: Git, patch: bytes, commit: str, head: str, onto: str) -> tuple[str, ...]:
    """Return the paths in which a patch conflicts with the commit ``onto``; none once that was merged into ``head``.

    ``commit`` is the one that the patch made. All of its paths count if git cannot tell the conflicting ones.
    Without ``onto`` the result is empty.
    """
    if not onto or is_ancestor(git, onto, head):
        return ()
    try:
        apply_patch(git, patch, onto, onto)
    except PatchConflict as conflict:
        return conflict.paths
    except BrokenContract:
        return tuple(change.path for change in changes_between(git, f"{commit}^", commit))
    return ()


def conflict_notice(onto: str, paths: Sequence[str]) -> str:
    """Return the first paragraph of a pull request that conflicts; branch and paths are Markdown already."""
    more = len(paths) - _PATHS_IN_NOTICE
    shown = ", ".join(paths[:_PATHS_IN_NOTICE]) + (f" and {more} more" if more > 0 else "")
    return f"> [!WARNING]\n> Conflicts with {onto}: {shown}."


def resolution(branch: str, onto: str) -> str:
    """Return the commands by which a person merges ``onto`` into a branch and resolves the conflicts."""
    ours, theirs = shlex.quote(branch), shlex.quote(f"origin/{onto}")
    after = "# edit the conflicting files, then\ngit add --all\ngit commit --no-edit\ngit push"
    return f"git fetch origin\ngit switch {ours}\ngit merge {theirs}\n{after}"


def newest_of(git: Git, commits: Collection[str], *wanted: str) -> str:
    """Return the newest of these commits that git lists for words such as ``base..tip``; empty without one."""
    return next((commit for commit in _commits_in(git, *wanted) if commit in commits), "") if commits else ""


def own_paths(git: Git, wanted: str, others: Collection[str]) -> set[str]:
    """Return the paths that a range of commits, without ``others``, changes; in a merge, from all its parents."""
    commits = "".join(f"{commit}\n" for commit in _commits_in(git, wanted) if commit not in others)
    words = ("diff-tree", "--stdin", "-r", "-c", "--no-commit-id", "--name-only", "--no-renames", "-z")
    return {*split_nul(git(*words, data=commits.encode()))}


def _commits_in(git: Git, *wanted: str) -> list[str]:
    return git.attempt("rev-list", "--topo-order", *wanted, "--").stdout.decode().split()


def patch_since(git: Git, patch: bytes, base: str, start: str) -> bytes:
    """Return what a patch for ``base`` changes in another commit, which its result goes on from, in its own paths."""
    changes = changes_between(git, base, apply_patch(git, patch, base))
    with own_index(git) as inside:
        inside("read-tree", start)
        entries = join_nul(f"{change.mode} {change.blob}\t{change.path}" for change in changes)
        inside("update-index", "--replace", "-z", "--index-info", data=entries)
        tree = inside.line("write-tree")
    return difference(git, start, tree, changes_between(git, start, tree))
