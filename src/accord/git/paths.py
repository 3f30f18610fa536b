"""Paths of a repository, and symbolic links that lead out of it."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Mapping, Sequence

from accord.core.findings import Finding, names_of
from accord.git.program import Git, split_nul

_SYMLINK = "120000"
_MOST_LINKS = 40
"""As many as Linux follows before it says that they go in a circle."""


def escaping_links(git: Git, before: str, after: str) -> list[Finding]:
    """Find the links of a tree that lead out of the repository, into ``.git`` or in a circle, and did not before.

    A link counts that is new or changed, and so does an old one that leads elsewhere since another was changed.
    """
    old, new, found = links_of(git, before), links_of(git, after), []
    for path, target in new.items():
        is_old = old.get(path) == target
        if not names_on_way(path, new) and not (is_old and not names_on_way(path, old)):
            message = f"`{path}` is a link to `{target}`, which points outside the repository or to itself."
            found.append(Finding("link-outside", message, "/patch", hint="Remove it."))
    return found


def links_of(git: Git, tree: str) -> dict[str, str]:
    """Read the target of every symbolic link of a tree, by path."""
    entries = (entry.partition("\t") for entry in split_nul(git("ls-tree", "-r", "-z", "--full-tree", tree)))
    blobs = {path: meta.split()[2] for meta, _, path in entries if meta.startswith(_SYMLINK)}
    if not blobs:
        return {}
    targets = git.contents([*blobs.values()])
    return {
        path: (target or b"").decode("utf-8", "surrogateescape") for path, target in zip(blobs, targets, strict=True)
    }


def names_on_way(path: str, links: Mapping[str, str]) -> list[str]:
    """Follow a path through the links of its tree: return these links and, last, where it leads; empty if outside.

    A name that is neither a link nor there counts as a folder.
    """
    here: list[str] = []
    ahead = deque(path.split("/"))
    followed: list[str] = []
    while ahead:
        step = ahead.popleft()
        if step in ("", "."):
            continue
        if step == "..":
            if not here:
                return []
            here.pop()
            continue
        if step.casefold() == ".git":
            return []
        name = "/".join([*here, step])
        target = links.get(name)
        if target is None:
            here.append(step)
            continue
        followed.append(name)
        if target.startswith("/") or len(followed) > _MOST_LINKS:
            return []
        ahead.extendleft(reversed(target.split("/")))
    return [*followed, "/".join(here)]


def some_of(paths: Sequence[str], most: int = 10) -> str:
    """List the first paths for people."""
    return names_of([os.fsencode(path).decode("utf-8", "replace") for path in paths], most)


def is_folder(path: str) -> bool:
    """Return whether a folder is at a path, and no link."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
