"""A repository as it was before an untrusted program worked in it.

Afterwards, nothing in ``.git`` is believed but the objects, and, as the program's word, the history and what was
staged: a git directory of our own is laid over the work tree.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from accord.core.errors import Refused
from accord.core.frozen import Frozen
from accord.git.beside import Beside, look_beside, write_new
from accord.git.filters import LFS, Settings, filters_of, read_settings, stays_as_stored
from accord.git.index import IndexEntry, blobs_of, entries_of, files_below, ignored_paths, stage_all, untracked_files
from accord.git.leaving_out import MOST_FILE_BYTES
from accord.git.paths import is_folder
from accord.git.program import SUBMODULE, UNTRUSTED, Git, join_nul, make_repository, split_nul

_TICK = 20_000_000
"""Nanoseconds within which a file system may give two changes the same time."""

_SECOND = 1_000_000_000
_MOST_NOTED, _MOST_OF_A_FOLDER = 1000, 50
BY_TREE = "--exclude-per-directory=.gitignore"
"""The option by which git hides only what the tree's own files name."""


class Seen(NamedTuple):
    """The values of a path in the file system: a file with another content has others."""

    mode: int
    size: int
    modified: int
    changed: int
    inode: int


_REPOSITORY = Seen(stat.S_IFDIR, 0, 0, 0, 0)
"""A submodule, of which the commit counts."""


class Snapshot(Frozen):
    """A work tree at one time."""

    top: Path
    commit: str
    objects: Path  # where the repository keeps them
    object_format: str = "sha1"
    settings: Settings = field(default_factory=lambda: Settings({}))
    index: Mapping[str, IndexEntry] = field(default_factory=dict)
    seen: Mapping[str, Seen] = field(default_factory=dict)  # all files but the ignored ones
    ignored: frozenset[str] = frozenset()  # the files and folders that a .gitignore hides
    # of files that git cannot tell apart from a change by itself: untracked, uncommitted, hidden, and filtered ones
    digests: Mapping[str, bytes] = field(default_factory=dict)
    uncommitted: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()  # untracked files that only settings outside of the tree ignore; hidden edits
    private: frozenset[bytes] = frozenset()  # the digests of hidden, ignored and filtered files
    heads: Mapping[str, str] = field(default_factory=dict)  # the commits of the submodules
    beside: Beside = field(default_factory=Beside)
    taken_at: int = 0
    state_files: Sequence[str] = ()  # the patterns of the files that agents make for themselves

    def is_private(self, path: str) -> bool:
        """Return whether a path was hidden from git."""
        return path in self.hidden or is_below(path, self.ignored)

    def agents_git(self) -> Git:
        """Return git in the repository to which the agent could write: it runs no filter, and fetches nothing."""
        return Git(self.top, UNTRUSTED, self.settings.without_filters)


def take_snapshot(directory: Path, state_files: Sequence[str] = ()) -> Snapshot | None:
    """Record the state of the repository around a directory; None without one. ``state_files``: agents' own files."""
    git = Git(directory)
    asked = ("--is-inside-work-tree", "--show-object-format", "HEAD^{commit}", "--show-toplevel")
    facts = git.attempt("rev-parse", *asked)
    if facts.returncode:
        return None
    _, object_format, commit, name = facts.stdout.decode("utf-8", "surrogateescape").strip().split("\n", 3)
    taken_at, top, settings = time.time_ns(), Path(name), read_settings(directory)
    git = Git(top, config=settings.without_filters)
    index = entries_of(git)
    untracked, nested = untracked_files(git, git, BY_TREE)
    within = [path for folder in nested for path in files_below(top, folder)]
    seen = look(top, dict.fromkeys([*index, *untracked, *within]))
    _settle(max((each.changed for each in seen.values()), default=0))
    changed = split_nul(git("diff-files", "--name-only", "-z", "--ignore-submodules=all"))
    staged = split_nul(git("diff-index", "--cached", "--name-only", "--no-renames", "-z", commit))
    kept_back = [path for path, entry in index.items() if path in seen and entry.is_hidden]
    filtered = filters_of(git, index)
    unsure = {*untracked, *changed, *staged, *kept_back, *(path for path, name in filtered.items() if name != LFS)}
    digests = {path: digest for path in unsure if (digest := content_digest(top / path, seen.get(path)))}
    private = ignored_paths(git, untracked, *settings.ignores) if any(settings.ignores) else set()
    as_stored = _stored_paths(git, index, seen, [*changed, *kept_back])
    edited = {path for path in kept_back if stat.S_ISREG(seen[path].mode) and path not in as_stored}
    smudged = [path for path in changed if filtered.get(path) == LFS and path in index]
    stored = dict(zip(smudged, git.contents([index[path].blob for path in smudged]), strict=True))
    same = {path for path in smudged if stays_as_stored(top / path, stored[path])}
    changed = [path for path in changed if path not in as_stored and path not in same]
    ignored = split_nul(git("ls-files", "--others", "--ignored", BY_TREE, "--directory", "-z"))
    noted = [place for place in ignored if not place.endswith("/")]  # single files, then some of each folder
    for place in (place for place in ignored if place.endswith("/")):
        noted += islice(files_below(top, place[:-1]), _MOST_OF_A_FOLDER)
    before_hidden = look(top, noted[:_MOST_NOTED])
    digests |= {path: digest for path, each in before_hidden.items() if (digest := content_digest(top / path, each))}
    heads = {path: head_of(top / path) for path, entry in index.items() if entry.mode == SUBMODULE}
    return Snapshot(
        top,
        commit,
        git.path_of("objects"),
        object_format,
        settings,
        index,
        seen,
        frozenset(ignored),
        digests,
        frozenset([*changed, *staged, *(path for path in untracked if path not in private)]),
        frozenset(private | edited),
        frozenset(digests[path] for path in (private | edited | {*before_hidden} | {*filtered}) & {*digests}),
        heads,
        look_beside(git, heads, state_files),
        taken_at,
        state_files,
    )


def _stored_paths(
    git: Git, index: Mapping[str, IndexEntry], seen: Mapping[str, Seen], paths: Sequence[str]
) -> set[str]:
    """Return the files that are what the index has of them, with its line ends or those of the work tree."""
    files = [path for path in paths if path in index and path in seen and stat.S_ISREG(seen[path].mode)]
    made = [blobs_of(git, files), blobs_of(git, files, "--no-filters")]
    return {path for path in files if index[path].blob in [blobs.get(path) for blobs in made]}


def head_of(folder: Path) -> str:
    """Return the commit of a submodule; empty where it is not checked out."""
    return Git(folder).commit_of("HEAD") if (folder / ".git").exists() else ""


def look(top: Path, paths: Iterable[str]) -> dict[str, Seen]:
    """Return what is at these paths; a path through a link is not below the top."""
    real: dict[str, bool] = {"": True}

    def is_real(folder: str) -> bool:
        above = []
        while folder not in real:
            above.append(folder)
            folder = os.path.dirname(folder)
        for each in reversed(above):
            real[each] = real[os.path.dirname(each)] and is_folder(os.path.join(prefix, each))
        return real[above[0] if above else folder]

    prefix, found = os.fspath(top), dict[str, Seen]()
    for path in paths:
        if is_real(os.path.dirname(path)):
            with suppress(OSError):
                status = os.lstat(os.path.join(prefix, path))
                mode, size = status.st_mode, status.st_size
                found[path] = Seen(mode, size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    folders = [path for path, each in found.items() if stat.S_ISDIR(each.mode)]
    repositories = {path: _REPOSITORY for path in folders if os.path.lexists(os.path.join(prefix, path, ".git"))}
    return {path: each for path, each in found.items() if not stat.S_ISDIR(each.mode)} | repositories


def _settle(newest: int) -> None:
    """Wait until a change would have another time than any file has now; some file systems know only seconds."""
    left = newest + _SECOND - time.time_ns() if newest % _SECOND == 0 else 0
    time.sleep(min(max(left, _TICK), _SECOND) / _SECOND)


def content_digest(path: Path, seen: Seen | None) -> bytes:
    """Return a digest of a file or link; empty for what is too large or cannot be read."""
    with suppress(OSError):
        if seen and stat.S_ISLNK(seen.mode):
            return os.fsencode(path.readlink())
        if seen and stat.S_ISREG(seen.mode) and seen.size <= MOST_FILE_BYTES:
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as file:
                return hashlib.file_digest(file, "sha256").digest()
    return b""


def is_below(path: str, places: Collection[str]) -> bool:
    """Return whether a path is one of these places, or in one of these folders, which end with a slash."""
    if path in places:
        return True
    ends = (position + 1 for position, character in enumerate(path) if character == "/")
    return any(path[:end] in places for end in ends)


def is_executable(seen: Seen) -> bool:
    """Return whether its owner may execute a file."""
    return bool(seen.mode & stat.S_IXUSR)


@contextmanager
def restorable(snapshot: Snapshot) -> Iterator[Callable[[], None]]:
    """Keep the files of the work tree; yield a function that puts them back and removes new ones, ignored ones too.

    Ignored files that were there stay as they are. The index of the repository comes back, too. Raises GitFailed.
    """
    index = Git(snapshot.top).path_of("index")
    staged = index.read_bytes() if index.is_file() else b""
    with lay_over(snapshot) as ours:
        absent = [path for path, entry in snapshot.index.items() if entry.is_sparse and path not in snapshot.seen]
        if absent:
            ours("update-index", "-z", "--skip-worktree", "--stdin", data=join_nul(absent))
        nested = set(stage_all(ours))
        tree, ignored = ours.line("write-tree"), set(_hidden_files(ours))

        def restore() -> None:
            for folder in set(stage_all(ours)) - nested:
                shutil.rmtree(snapshot.top / folder, ignore_errors=True)
            stage_all(ours)
            ours("read-tree", "--reset", "-u", tree)
            for path in set(_hidden_files(ours)) - ignored:
                _remove(snapshot.top, snapshot.top / path)
            if staged:
                write_new(index, staged)

        yield restore


def _hidden_files(git: Git) -> list[str]:
    return split_nul(git("ls-files", "--others", "--ignored", "--exclude-standard", "-z"))


def _remove(top: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    with suppress(OSError):
        for folder in path.parents:
            if folder == top:
                return
            folder.rmdir()


@contextmanager
def lay_over(snapshot: Snapshot) -> Iterator[Git]:
    """Lay an index of our own, which has the commit, over the work tree; yield git with it."""
    with tempfile.TemporaryDirectory(prefix="accord-changes-") as scratch:
        folder, settings = Path(scratch), snapshot.settings
        make_repository(folder, snapshot.object_format, snapshot.objects)
        (folder / "info/attributes").write_bytes(settings.attributes[1])
        (folder / "attributes").write_bytes(settings.attributes[0])
        environment = {"GIT_DIR": scratch, "GIT_WORK_TREE": str(snapshot.top), "GIT_INDEX_FILE": f"{scratch}/index"}
        config = {"core.bare": "false", "core.attributesFile": f"{scratch}/attributes"}
        ours = Git(snapshot.top, environment, {**settings.storing, **config})
        if ours.attempt("read-tree", snapshot.commit).returncode:
            message = "The agent deleted or replaced `.git`, so its changes cannot be found."
            raise Refused(message, hint="The files are as it left them. Copy what you need, then check out again.")
        yield ours
