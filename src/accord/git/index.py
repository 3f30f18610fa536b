"""The index and the files of a work tree, listed and stored by git."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from accord.git.paths import some_of
from accord.git.program import UNTRUSTED, Git, GitFailed, join_nul, split_nul

_ODD = re.compile(rb'[\0-\x1f"\\]')
_STOPPED = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}


class IndexEntry(NamedTuple):
    """An entry of an index; ``flag`` is git's letter: ``S`` for skip-worktree, in lower case for assume-unchanged."""

    flag: str
    mode: str
    blob: str

    @property
    def is_hidden(self) -> bool:
        """Whether a flag keeps git from looking at the file."""
        return self.flag == "S" or self.flag.islower()

    @property
    def is_sparse(self) -> bool:
        """Whether it has the flag skip-worktree, by which a sparse checkout keeps a file out of the work tree."""
        return self.flag.upper() == "S"


def entries_of(git: Git) -> dict[str, IndexEntry]:
    """Return the entries of git's index by path; of an unmerged one, its last version."""
    found = {}
    for line in split_nul(git("ls-files", "-s", "-v", "-z", "--full-name", ":/")):
        facts, _, path = line.partition("\t")
        flag, mode, blob, _stage = facts.split(" ")
        found[path] = IndexEntry(flag, mode, blob)
    return found


def unwritten_paths(git: Git) -> set[str]:
    """Return the paths of git's index that it never had in the work tree: their entries have no time."""
    first, *parts = git("ls-files", "--debug", "-z", "--full-name", ":/").split(b"\0")
    split = [part.split(b"\n", 5) for part in parts]  # five lines about a path, then the next path
    paths = [first, *(lines[-1] for lines in split)]
    return {os.fsdecode(path) for path, lines in zip(paths, split, strict=False) if lines[1] == b"  mtime: 0:0"}


def unfinished_merge(git: Git) -> str:
    """Say which merge, rebase, cherry-pick or revert has not come to its end, with its conflicts; empty without one."""
    folder = Path(git.line("rev-parse", "--absolute-git-dir"))
    what = next((what for name, what in _STOPPED.items() if (folder / name).exists()), "")
    unmerged = split_nul(git("ls-files", "--unmerged", "-z"))
    if paths := list(dict.fromkeys(entry.partition("\t")[2] for entry in unmerged)):
        return f"{what or 'a merge'} left conflicts in {some_of(paths)}"
    return f"{what} was not continued" if what else ""


def stage_all(git: Git) -> Collection[str]:
    """Add the work tree to the index, except what is ignored or cannot be stored; return the repositories within."""
    untracked, nested = untracked_files(git, git, "--exclude-standard")
    add_files(git, [*untracked, *split_nul(git("ls-files", "--modified", "-z"))])
    return nested


def add_files(git: Git, paths: Sequence[str]) -> list[str]:
    """Bring paths of the work tree into the index as they are there; return those that git cannot store."""
    refused = {*_refused_paths(git, paths)}
    stored = entries_of(git) if paths else {}
    ignored = (path for path in paths if path not in stored and os.path.lexists(git.directory / path))  # such as .GIT/x
    return [*refused, *(path for path in ignored if path not in refused)]


def _refused_paths(git: Git, paths: Sequence[str]) -> list[str]:
    if not paths:
        return []
    done = git.attempt("update-index", "--add", "--remove", "--replace", "-z", "--stdin", data=join_nul(paths))
    if not done.returncode:
        return []
    if len(paths) == 1:
        return list(paths)
    middle = len(paths) // 2
    return [*_refused_paths(git, paths[:middle]), *_refused_paths(git, paths[middle:])]


def blobs_of(git: Git, files: Sequence[str], *options: str) -> dict[str, str]:
    """Return the blobs that git would store for files, without those that it cannot store, at which it ends."""
    found = dict[str, str]()
    while files:
        asked = b"".join(b'"%b"\n' % _ODD.sub(lambda odd: b"\\%03o" % odd[0][0], os.fsencode(path)) for path in files)
        made = git.attempt("hash-object", *options, "--stdin-paths", data=asked).stdout.decode().split()
        found |= zip(files, made, strict=False)
        files = files[len(made) + 1 :]
    return found


def untracked_files(git: Git, real: Git, rule: str) -> tuple[list[str], dict[str, bool]]:
    """List files that the index does not have and ``rule``, git's option, does not hide; repositories, and if cloned.

    The files of a repository within count, except those of a submodule, which is one entry itself, and of another work
    tree of this repository, which is ``real``.
    """
    listed = split_nul(git("ls-files", "--others", rule, "-z"))
    places = [path[:-1] for path in listed if path.endswith("/")]
    known, linked = (submodules(git), linked_work_trees(real)) if places else ((), ())
    nested = [path for path in places if path not in known and path not in linked]
    files = [path for path in listed if not path.endswith("/")]
    within = [path for folder in nested for path in files_below(git.directory, folder)]
    within = sorted({*within} - ignored_paths(git, within))
    cloned = {path: Git(git.directory / path, UNTRUSTED).attempt("remote").stdout != b"" for path in nested}
    return [*files, *(path for path in places if path in known), *within], cloned


def is_only_here(folder: Path) -> bool:
    """Return whether a submodule is at a commit that none of its remotes, and no tag, is known to have."""
    git = Git(folder, UNTRUSTED)
    head, places = git.commit_of("HEAD"), ("refs/remotes", "refs/tags")
    return bool(head) and not git.attempt("for-each-ref", "--count=1", f"--contains={head}", *places).stdout


def submodules(git: Git) -> set[str]:
    """Return the paths of the submodules that ``.gitmodules`` knows."""
    known = git.attempt("config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    return {entry.partition("\n")[2].rstrip("/") for entry in split_nul(known.stdout)}


def linked_work_trees(git: Git) -> list[str]:
    """Return the paths of the repository's other work trees that lie below this one; none without a repository."""
    top, places = git.directory.resolve(), list[Path]()
    with suppress(GitFailed):
        places = [Path(tree["worktree"]) for tree in work_trees(git)]
    return [str(place.relative_to(top)) for place in places if place != top and place.is_relative_to(top)]


def work_trees(git: Git) -> list[dict[str, str]]:
    """Return the work trees that git knows, each as its attributes. Raises GitFailed."""
    listed = git("worktree", "list", "--porcelain", "-z").decode("utf-8", "surrogateescape").split("\0\0")
    return [dict(line.partition(" ")[::2] for line in tree.split("\0")) for tree in listed if tree]


def ignored_paths(git: Git, paths: Sequence[str], *patterns: bytes) -> set[str]:
    """Return which of these paths the tree's ``.gitignore`` files, or these texts of patterns, ignore."""
    if not paths:
        return set()
    with tempfile.NamedTemporaryFile(prefix="accord-ignores-") as file:
        file.write(b"\n".join(patterns) + b"\n")
        file.flush()
        own = replace(git, config={**dict(git.config), "core.excludesFile": file.name}) if patterns else git
        asked = join_nul(f"./{path}" for path in paths)
        done = own.attempt("check-ignore", "--no-index", "-z", "--stdin", data=asked)
    return {path.removeprefix("./") for path in split_nul(done.stdout)}


def files_below(top: Path, folder: str) -> Iterator[str]:
    """Yield the files and links below a folder, without what git keeps in ``.git``."""
    for place, folders, files in os.walk(top / folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        folders[:] = [name for name in folders if name != ".git"]
        for name in [*links, *files]:
            path = Path(place, name)
            if name != ".git" and (path.is_symlink() or path.is_file()):
                yield str(path.relative_to(top))
