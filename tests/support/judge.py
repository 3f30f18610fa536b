"""An independent judge of what a run changed: the bytes of all files before and after, read without git."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

View = dict[str, tuple[str, bytes]]
"""Files and links by path, each with its kind (``file``, ``program`` or ``link``) and a digest."""


def view(top: Path) -> View:
    """Return all files and links below a folder, but those of git directories."""
    found: View = {}
    for place, folders, files in os.walk(top):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        folders[:] = [name for name in folders if name != ".git" and name not in links]
        for name in [*files, *links]:
            path = Path(place, name)
            if name == ".git":
                continue
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                found[str(path.relative_to(top))] = ("link", os.fsencode(path.readlink()))
            elif stat.S_ISREG(status.st_mode):
                kind = "program" if status.st_mode & stat.S_IXUSR else "file"
                found[str(path.relative_to(top))] = (kind, hashlib.sha256(path.read_bytes()).digest())
    return found


def differing(before: View, after: View) -> set[str]:
    """Return the paths whose bytes, mode or kind are not the same."""
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}
