"""All of a work tree into an index, also what lies in repositories that somebody made inside of it.

Of a repository inside of another one git takes no more than the id of its commit, which nobody else has. Scaffolding
tools and agents make such repositories as they go along, so their files are taken as files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from accord.kernel.git import split_nul

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.kernel.git import Git


def stage_all(git: Git, *, without: Sequence[str] = ()) -> list[str]:
    """Add changes, removals and untracked files of the work tree to the index, but for ignored files.

    ``without`` are paths below the top of the work tree that stay as the index has them. Returns the folders in which
    somebody made repositories.
    """
    nested = _nested_repositories(git)
    excluded = [b".", *(b":(exclude,literal)" + os.fsencode(path) for path in (*nested, *without))]
    git("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", data=b"\0".join(excluded))
    _add_files(git, nested)
    return nested


def submodules(git: Git) -> set[str]:
    """Return the paths of the submodules that ``.gitmodules`` knows."""
    known = git.attempt("config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    return {entry.partition("\n")[2].rstrip("/") for entry in split_nul(known.stdout)}


def _nested_repositories(git: Git) -> list[str]:
    """List the folders that somebody made repositories of, but for submodules."""
    untracked = split_nul(git("ls-files", "--others", "--exclude-standard", "-z"))
    known = submodules(git)
    return [path[:-1] for path in untracked if path.endswith("/") and path[:-1] not in known]


def _add_files(git: Git, folders: Sequence[str]) -> None:
    """Add the files below these folders as files, but for those that are ignored."""
    found = [path for folder in folders for path in _files_below(git.directory, folder)]
    if not found:
        return
    ignored = git.attempt("check-ignore", "-z", "--stdin", data=b"\0".join(map(os.fsencode, found)))
    left = [os.fsencode(path) for path in sorted({*found} - {*split_nul(ignored.stdout)})]
    git("update-index", "--add", "-z", "--stdin", data=b"\0".join(left))


def _files_below(top: Path, folder: str) -> Iterator[str]:
    """Yield the files and links below a folder, without what git keeps in ``.git``."""
    for place, folders, files in os.walk(top / folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        folders[:] = [name for name in folders if name != ".git"]
        for name in [*links, *files]:
            path = Path(place, name)
            if name != ".git" and (path.is_symlink() or path.is_file()):
                yield str(path.relative_to(top))
