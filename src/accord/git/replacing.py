"""A new result in the place of an earlier one: the branch gets its files as one more commit, never by force.

A patch that was made on the base of a branch knows nothing of the commits there. Those of accord for the same work item
are replaced by it. Commits of people that came later stay, by a 3-way merge; so does all history.
"""

from __future__ import annotations

from accord.git.patches import apply_patch, merge_trees, own_base
from accord.git.program import Git, is_ancestor

TREE_TRAILER = "Accord-Tree"
"""The trailer that names the tree of a commit: a person who amends the commit makes it wrong."""

BASE_TRAILER = "Accord-Base"
"""The trailer of a commit that replaces earlier ones: the commit on which its patch was made."""

ITEM_TRAILER = "Refs"
"""The trailer that names the work item."""


def replacement(git: Git, patch: bytes, base: str, tip: str, item: str) -> tuple[str, str]:
    """Return the commit of ``base``'s history that a patch was made on, and the tree that it makes of a branch.

    Both are empty for a patch that may have been made on the branch itself, for a branch that does not begin with
    commits of accord for ``item``, and where later commits conflict.
    """
    fork = git.attempt("merge-base", base, tip).stdout.decode().strip()
    if fork in ("", tip):
        return "", ""
    start, _ = own_base(git, patch, tip, fork, base, is_exact=True)
    if not start or not is_ancestor(git, start, base):
        return "", ""
    tree = replacing_tree(git, patch, start, tip, item)
    return (start, tree) if tree else ("", "")


def replacing_tree(git: Git, patch: bytes, start: str, tip: str, item: str) -> str:
    """Return what a patch for ``start`` makes of a branch in place of accord's first commits; empty if it cannot."""
    last = _last_own_commit(git, start, tip, item)
    if not last:
        return ""
    made = apply_patch(git, patch, start)
    return made if last == tip else merge_trees(git, last, tip, made)[0]


def with_tree(message: str, tree: str) -> str:
    """Add the trailer with the tree to a message that ends with a trailer."""
    return f"{message}{TREE_TRAILER}: {tree}\n"


def trailer(git: Git, commit: str, name: str) -> str:
    """Return the value of a commit's trailer; empty without one."""
    return git.line("log", "-1", f"--format=%(trailers:key={name},valueonly)", commit)


def _last_own_commit(git: Git, start: str, tip: str, item: str) -> str:
    """Return the last of the commits with which a branch begins that are accord's, for this item, and unchanged."""
    fields = ("%H", "%T", *(f"%(trailers:key={name},valueonly)" for name in (TREE_TRAILER, ITEM_TRAILER)))
    order = ("--first-parent", "--reverse", "-z", f"--format={'%x1f'.join(fields)}")
    last = ""
    for entry in git("log", *order, f"{start}..{tip}").decode("utf-8", "replace").split("\0"):
        commit, tree, *values = (field.strip() for field in f"{entry}\x1f\x1f\x1f".split("\x1f")[:4])
        if values != [tree, item]:
            break
        last = commit
    return last
