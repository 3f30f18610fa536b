"""A repository as it was before an untrusted program worked in it, and what differs since.

A path counts as changed if its bytes, its mode or its kind differ, whatever git's settings hide; it is stored as the
repository's git would have stored it before. Afterwards nothing in ``.git`` is believed but
the objects and what was staged: a git directory of our own is laid over the work tree.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from accord.core.errors import AccordError, Refused
from accord.git.beside import Beside, Search, keep_beside, look_beside, write_new
from accord.git.filters import LFS, filters_of, is_pointer_file, pointer_to, stays_as_stored
from accord.git.patches import (
    AGENT_STATE_FILES,
    BY_FILTER,
    STATE,
    SUBMODULE,
    TOO_LARGE,
    UNREADABLE,
    changes_between,
    contents_of,
    difference,
)
from accord.git.paths import path_patterns, some_of
from accord.git.program import (
    UNTRUSTED,
    Git,
    GitFailed,
    add_files,
    files_below,
    ignored_paths,
    joined,
    make_repository,
    split_nul,
    stage_all,
    untracked_files,
)
from accord.git.settings import Settings, read_settings
from accord.git.sizes import MOST_FILE_BYTES, MOST_TOTAL_BYTES, too_much
from accord.git.unfinished import has_new_markers, stopped_merge, unmerged_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


_BREAK = re.compile(rb"(?<![ \t])[ \t]*[\r\n]\s*")
"""Where a line is wrapped, as ``accord.text.redaction`` sees it."""

_TICK = 20_000_000
"""Nanoseconds within which a file system may give two changes the same time."""

_SECOND = 1_000_000_000
_MOST_NOTED = 500
_LINK = "120000"
_RULE = "--exclude-per-directory=.gitignore"
_EXECUTABLE, _PLAIN = "100755", "100644"


class Seen(NamedTuple):
    """The values of a path in the file system: a file with another content has others."""

    mode: int
    size: int
    modified: int
    changed: int
    inode: int


_REPOSITORY = Seen(stat.S_IFDIR, 0, 0, 0, 0)
"""A submodule, of which the commit counts."""


class Entry(NamedTuple):
    """An entry of an index; ``flag`` is git's letter: ``S`` for skip-worktree, in lower case for assume-unchanged."""

    flag: str
    mode: str
    blob: str


@dataclass(frozen=True)
class Snapshot:
    """A work tree at one time: its top, its commit, where its objects are, its settings, its index, and its files.

    ``seen`` has all files but those that a ``.gitignore`` hides, which are below ``ignored``. ``digests`` are of those
    that git cannot tell apart from a change by itself: untracked, uncommitted, hidden, and filtered ones. ``hidden``
    are untracked files that only settings outside of the tree ignore, and files with a hidden edit. ``private`` are the
    digests of those, of ignored and of filtered files. ``heads`` are the
    commits of the submodules; ``was_stopped``: a merge waited to be continued already. ``beside`` is the work
    beside the tree.
    """

    top: Path
    commit: str
    objects: Path
    object_format: str = "sha1"
    settings: Settings = field(default_factory=lambda: Settings({}))
    index: Mapping[str, Entry] = field(default_factory=dict)
    seen: Mapping[str, Seen] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    digests: Mapping[str, bytes] = field(default_factory=dict)
    uncommitted: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    private: frozenset[bytes] = frozenset()
    heads: Mapping[str, str] = field(default_factory=dict)
    was_stopped: str = ""
    unmerged: frozenset[str] = frozenset()
    beside: Beside = field(default_factory=Beside)
    taken_at: int = 0

    @property
    def absent(self) -> list[str]:
        """The paths that are not checked out."""
        return [path for path, entry in self.index.items() if entry.flag in "Ss" and path not in self.seen]


@dataclass(frozen=True)
class WorkTreeChanges:
    """The changes as git's binary-safe patch. Not in it are files that were uncommitted before and are as they were;
    of these, ``untouched`` has those outside of repositories within. Each of ``left_out`` is a path with the reason.

    ``marked`` are the paths with the markers of a conflict, ``unfinished`` says which merge has not come to its end,
    and ``merged`` are the commits that were merged.
    """

    patch: bytes
    left_out: Mapping[str, str] = field(default_factory=dict)
    untouched: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    unfinished: str = ""
    merged: tuple[str, ...] = ()

    @property
    def reasons(self) -> dict[str, list[str]]:
        """The paths that were left out, by reason."""
        found: dict[str, list[str]] = {}
        for path, reason in self.left_out.items():
            found.setdefault(reason, []).append(path)
        return found


HIDDEN = "Changed files that were hidden, ignored or filtered before the run were left out"


def take_snapshot(directory: Path) -> Snapshot | None:
    """Record the state of the repository around a directory; None without a repository or a commit."""
    git = Git(directory)
    facts = git.attempt(
        "rev-parse", "--is-inside-work-tree", "--show-object-format", "HEAD^{commit}", "--show-toplevel"
    )
    if facts.returncode:
        return None
    _, object_format, commit, name = facts.stdout.decode("utf-8", "surrogateescape").strip().split("\n", 3)
    taken_at, top, settings = time.time_ns(), Path(name), read_settings(directory)
    git = Git(top, config=settings.without_filters)
    index = entries_of(git)
    untracked, nested = untracked_files(git, git, _RULE)
    within = [path for folder in nested for path in files_below(top, folder)]
    seen = _look(top, dict.fromkeys([*index, *untracked, *within]))
    _settle(max((each.changed for each in seen.values()), default=0))
    changed = split_nul(git("diff-files", "--name-only", "-z", "--ignore-submodules=all"))
    staged = split_nul(git("diff-index", "--cached", "--name-only", "--no-renames", "-z", commit))
    kept_back = [path for path, entry in index.items() if path in seen and (entry.flag in "Ss" or entry.flag.islower())]
    filtered = filters_of(git, index)
    unsure = {*untracked, *changed, *staged, *kept_back, *(path for path, name in filtered.items() if name != LFS)}
    digests = {path: digest for path in unsure if (digest := _digest(top / path, seen.get(path)))}
    private = ignored_paths(git, untracked, *settings.ignores) if any(settings.ignores) else set()
    as_stored = _stored_paths(git, index, seen, [*changed, *kept_back])
    edited = {path for path in kept_back if stat.S_ISREG(seen[path].mode) and path not in as_stored}
    smudged = [path for path in changed if filtered.get(path) == LFS and path in index]
    stored = dict(zip(smudged, git.contents([index[path].blob for path in smudged]), strict=True))
    same = {path for path in smudged if stays_as_stored(top / path, stored[path])}
    changed = [path for path in changed if path not in as_stored and path not in same]
    ignored = _ignored_places(git)
    before_hidden = _look(top, _first_files(top, ignored))
    digests |= {path: digest for path, each in before_hidden.items() if (digest := _digest(top / path, each))}
    heads = {path: _head(top / path) for path, entry in index.items() if entry.mode == SUBMODULE}
    return Snapshot(
        top,
        commit,
        Path(git.line("rev-parse", "--path-format=absolute", "--git-path", "objects")),
        object_format,
        settings,
        index,
        seen,
        tuple(ignored),
        digests,
        frozenset([*changed, *staged, *(path for path in untracked if path not in private)]),
        frozenset(private | edited),
        frozenset(digests[path] for path in (private | edited | {*before_hidden} | {*filtered}) & {*digests}),
        heads,
        stopped_merge(git),
        frozenset(unmerged_paths(git)),
        look_beside(git, heads),
        taken_at,
    )


def entries_of(git: Git) -> dict[str, Entry]:
    """Return the entries of git's index by path; of an unmerged one, its last version."""
    found = {}
    for line in split_nul(git("ls-files", "-s", "-v", "-z", "--full-name", ":/")):
        facts, _, path = line.partition("\t")
        flag, mode, blob, _stage = facts.split(" ")
        found[path] = Entry(flag, mode, blob)
    return found


def _ignored_places(git: Git) -> list[str]:
    """List what a ``.gitignore`` hides: files, and folders with a slash at the end."""
    return split_nul(git("ls-files", "--others", "--ignored", _RULE, "--directory", "-z"))


def _first_files(top: Path, places: Sequence[str]) -> list[str]:
    """Return the first files of these places, whose contents are noted; the times of all others tell enough."""
    found: list[str] = []
    for place in places:
        found += islice(files_below(top, place[:-1]), _MOST_NOTED) if place.endswith("/") else [place]
        if len(found) >= _MOST_NOTED:
            break
    return found[:_MOST_NOTED]


def _stored_paths(git: Git, index: Mapping[str, Entry], seen: Mapping[str, Seen], paths: Sequence[str]) -> set[str]:
    """Return the files that are what the index has of them, with its line ends or those of the work tree."""
    files = [path for path in paths if path in index and path in seen and stat.S_ISREG(seen[path].mode)]
    asked, found = b"".join(_quoted(path) + b"\n" for path in files), set[str]()
    for way in (["--stdin-paths"], ["--stdin-paths", "--no-filters"]) if files else ():
        made = git.attempt("hash-object", *way, data=asked).stdout.decode().split()
        found |= {path for path, blob in zip(files, made, strict=False) if index[path].blob == blob}
    return found


def _quoted(path: str) -> bytes:
    escaped = b"".join(b"\\%03o" % byte if byte < 32 or byte in b'"\\' else bytes([byte]) for byte in os.fsencode(path))
    return b'"' + escaped + b'"'


def _head(folder: Path) -> str:
    """Return the commit of a submodule; empty where it is not checked out."""
    if not (folder / ".git").exists():
        return ""
    done = Git(folder).attempt("rev-parse", "--verify", "--quiet", "HEAD")
    return done.stdout.decode().strip()


def _look(top: Path, paths: Iterable[str]) -> dict[str, Seen]:
    """Return what is at these paths; a path through a link is not below the top."""
    real: dict[str, bool] = {"": True}

    def is_real(folder: str) -> bool:
        above = []
        while folder not in real:
            above.append(folder)
            folder = os.path.dirname(folder)
        for each in reversed(above):
            real[each] = real[os.path.dirname(each)] and _is_folder(os.path.join(prefix, each))
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


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _settle(newest: int) -> None:
    """Wait until a change would have another time than any file has now; some file systems know only seconds."""
    left = newest + _SECOND - time.time_ns() if newest % _SECOND == 0 else 0
    time.sleep(min(max(left, _TICK), _SECOND) / _SECOND)


def _digest(path: Path, seen: Seen | None) -> bytes:
    """Return a digest of a file or link; empty for what is too large or cannot be read."""
    with suppress(OSError):
        if seen and stat.S_ISLNK(seen.mode):
            return os.fsencode(path.readlink())
        if seen and stat.S_ISREG(seen.mode) and seen.size <= MOST_FILE_BYTES:
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as file:
                return hashlib.file_digest(file, "sha256").digest()
    return b""


def _is_executable(seen: Seen) -> bool:
    return bool(seen.mode & stat.S_IXUSR)


@contextmanager
def restorable(snapshot: Snapshot) -> Iterator[Callable[[], None]]:
    """Keep the files of the work tree; yield a function that puts them back and removes new ones, ignored ones too.

    Ignored files that were there stay as they are. The index of the repository comes back, too. Raises GitFailed.
    """
    index = Path(Git(snapshot.top).line("rev-parse", "--path-format=absolute", "--git-path", "index"))
    staged = index.read_bytes() if index.is_file() else b""
    with _laid_over(snapshot) as ours:
        if snapshot.absent:
            ours("update-index", "-z", "--skip-worktree", "--stdin", data=joined(snapshot.absent))
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
    """Remove a file, and the folders that are empty then."""
    path.unlink(missing_ok=True)
    with suppress(OSError):
        for folder in path.parents:
            if folder == top:
                return
            folder.rmdir()


def changes_since(
    snapshot: Snapshot, *, state_files: Sequence[str] = (), secrets: Sequence[str] = ()
) -> WorkTreeChanges:
    """Return what differs from the snapshot. Raises GitFailed; Refused for ``secrets`` in a change.

    A path that causes trouble is left out by its name, and no other.
    """
    with _laid_over(snapshot) as ours:
        comparison = _Comparison.of(snapshot, ours)
        changed, untouched = comparison.changed_paths()
        left_out, pointers = _left_out(comparison, changed, [*AGENT_STATE_FILES, *state_files])
        failed = _store(comparison, [path for path in changed if path not in left_out], pointers)
        left_out |= dict.fromkeys(failed, UNREADABLE)
        tree = ours.line("write-tree")
        _refuse_secrets(ours, snapshot.commit, secrets)
        inside = tuple(f"{folder}/" for folder in comparison.nested)
        told = tuple(path for path in untouched if not path.startswith(inside))
        return WorkTreeChanges(
            difference(ours, snapshot.commit, tree),
            left_out,
            told,
            tuple(_marked(ours, snapshot.commit, tree)),
            comparison.unfinished,
            _merged(_agents_git(snapshot), snapshot.commit),
        )


def _merged(real: Git, start: str) -> tuple[str, ...]:
    """Return the commits that were merged into HEAD since the start, oldest first; none where HEAD went elsewhere."""
    if real.attempt("merge-base", "--is-ancestor", start, "HEAD").returncode:
        return ()
    listed = real.attempt("rev-list", "--reverse", "--first-parent", "--parents", "--min-parents=2", f"{start}..HEAD")
    return tuple(line.split()[2] for line in listed.stdout.decode().splitlines())


def keep_work_beside(snapshot: Snapshot, folder: Path, secrets: Sequence[str]) -> list[str]:
    """Write the work that was left beside the tree since the snapshot into a folder; return warnings."""
    hidden = frozenset(snapshot.ignored)

    def is_private(path: str) -> bool:
        return path in snapshot.hidden or _is_below(path, hidden)

    search = Search([secret.encode("utf-8", "surrogateescape") for secret in secrets], is_private)
    try:
        return list(keep_beside(_agents_git(snapshot), snapshot.commit, snapshot.beside, folder, search))
    except (AccordError, OSError, ValueError, subprocess.TimeoutExpired) as problem:
        return [f"Work beside the checked-out tree could not be looked for: {problem}"]


def _agents_git(snapshot: Snapshot) -> Git:
    """Return git in the repository to which the agent could write: it runs no filter, and fetches nothing."""
    return Git(snapshot.top, UNTRUSTED, snapshot.settings.without_filters)


def _is_below(path: str, places: Collection[str]) -> bool:
    """Return whether a path is one of these places, or in one of these folders, which end with a slash."""
    if path in places:
        return True
    ends = (position + 1 for position, character in enumerate(path) if character == "/")
    return any(path[:end] in places for end in ends)


@dataclass(frozen=True)
class _Comparison:
    """A snapshot and the same work tree now; ``staged`` is the repository's own index now, if it can be read, and
    ``uncommitted`` the paths that differ there from HEAD. ``descends``: HEAD goes on from the commit before; an index
    of elsewhere does not tell what was staged.
    """

    before: Snapshot
    ours: Git
    commit: Mapping[str, Entry]
    seen: Mapping[str, Seen]
    staged: Mapping[str, Entry]
    nested: Sequence[str]
    unfinished: str
    uncommitted: Collection[str]
    descends: bool

    @cached_property
    def ignored_now(self) -> Collection[str]:
        """The paths that were taken out of the index, and that a ``.gitignore`` hides now."""
        gone = [path for path in self.before.index if path in self.seen and path not in self.staged]
        return ignored_paths(self.ours, gone)

    @cached_property
    def hidden_places(self) -> Collection[str]:
        """The files and folders that a ``.gitignore`` hid before."""
        return frozenset(self.before.ignored)

    @classmethod
    def of(cls, before: Snapshot, ours: Git) -> _Comparison:
        real, staged, unfinished = _agents_git(before), before.index, ""
        uncommitted, descends = list[str](), True
        with suppress(GitFailed, subprocess.TimeoutExpired):
            staged = entries_of(real) or before.index  # without an index, nothing was staged
            unfinished = _unfinished(real, before)
            uncommitted = split_nul(real("diff-index", "--cached", "--name-only", "--no-renames", "-z", "HEAD"))
            descends = not real.attempt("merge-base", "--is-ancestor", before.commit, "HEAD").returncode
        untracked, nested = untracked_files(ours, real, _RULE)
        commit = entries_of(ours)
        seen = _look(before.top, dict.fromkeys([*commit, *before.seen, *untracked, *staged]))
        return cls(before, ours, commit, seen, staged, nested, unfinished, frozenset(uncommitted), descends)

    def changed_paths(self) -> tuple[list[str], list[str]]:
        """Return the paths that differ, and those that were uncommitted before and do not."""
        changed, untouched = [], []
        paths = dict.fromkeys([*self.commit, *self.before.seen, *self.seen, *self.staged])
        forced = self._forced()
        for path in paths:
            if self._differs(path) or path in forced or self._is_staged_anew(path):
                changed.append(path)
            elif path in self.before.uncommitted:
                untouched.append(path)
        return changed, untouched

    def _differs(self, path: str) -> bool:
        before, now, entry = self.before.seen.get(path), self.seen.get(path), self.commit.get(path)
        if entry and entry.mode == SUBMODULE and _is_folder(os.fspath(self.before.top / path)):
            head = _head(self.before.top / path)
            return bool(head) and head != (self.before.heads.get(path) or entry.blob)
        if before == now:
            return False
        if before is None and now is not None:
            digest = self.before.digests.get(path)
            is_old = now.changed <= self.before.taken_at or digest == _digest(self.before.top / path, now)
            return not (is_old and _is_below(path, self.hidden_places))
        if now is None and self._is_put_aside(path):
            return False
        if before is None or now is None:
            return True
        if stat.S_IFMT(before.mode) != stat.S_IFMT(now.mode) or _is_executable(before) != _is_executable(now):
            return True
        digest = self.before.digests.get(path)
        return digest is None or digest != _digest(self.before.top / path, now)

    def _is_put_aside(self, path: str) -> bool:
        """Return whether a sparse checkout took a path out of the work tree."""
        staged, first = self.staged.get(path), self.before.index.get(path)
        was_hidden = first is not None and first.flag in "Ss" and path in self.before.seen
        return staged is not None and staged.flag in "Ss" and not was_hidden

    def _forced(self) -> set[str]:
        """Return the ignored files that were added to the index by force."""
        new = [path for path in self.staged if path not in self.before.index and path in self.seen]
        return {
            path for path in ignored_paths(self.ours, new) if path not in self.commit and path not in self.before.hidden
        }

    def _is_staged_anew(self, path: str) -> bool:
        """Return whether the index tells more than the work tree: a removal, a mode, or a file that is not there."""
        before, now = self.before.index.get(path), self.staged.get(path)
        if before is None or now == before:
            return False
        if not self.descends:
            return False
        if before.mode == SUBMODULE and path not in self.seen:
            return now is None or now[1:] != before[1:]
        if path not in self.seen:
            return self._is_put_aside(path) and now is not None and now[1:] != before[1:]
        return now is None or self._has_staged_mode(path)

    def _has_staged_mode(self, path: str) -> bool:
        """Return whether a mode was staged that the file on the disk does not have; a commit gives way to the disk."""
        before, now = self.before.index.get(path), self.staged.get(path)
        is_told = self.descends and (path in self.uncommitted or not self.before.settings.has_modes)
        return is_told and before is not None and now is not None and now.mode != before.mode

    def is_private_copy(self, path: str) -> bool:
        """Return whether a file has the content of one that was hidden, ignored or stored through a filter."""
        now = self.seen.get(path)
        is_another = path not in self.before.digests and bool(now and now.size)
        return is_another and _digest(self.before.top / path, now) in self.before.private

    def mode_of(self, path: str) -> str:
        """Return the mode that a changed path gets; empty for one that is gone."""
        before, now = self.before.seen.get(path), self.seen.get(path)
        known, first, staged = self.commit.get(path), self.before.index.get(path), self.staged.get(path)
        if now is None:
            is_told = staged and (self._is_put_aside(path) or staged.mode == SUBMODULE)
            return staged.mode if staged and is_told else ""
        if first and staged is None and self.descends and (path in self.ignored_now or not self._differs(path)):
            return ""  # taken out of the index
        if stat.S_ISLNK(now.mode) or stat.S_ISDIR(now.mode):
            return _LINK if stat.S_ISLNK(now.mode) else SUBMODULE
        if staged and self._has_staged_mode(path) and not self._differs(path):
            return staged.mode
        if known and before and stat.S_ISREG(before.mode) and _is_executable(before) == _is_executable(now):
            return staged.mode if staged and self._has_staged_mode(path) else known.mode
        if first is None and staged and path in self.uncommitted and staged.mode == _EXECUTABLE:
            return _EXECUTABLE
        if before is None and not self.before.settings.has_modes:
            return staged.mode if staged and staged.mode in (_PLAIN, _EXECUTABLE) else known.mode if known else _PLAIN
        return _EXECUTABLE if _is_executable(now) else _PLAIN


def _unfinished(real: Git, before: Snapshot) -> str:
    """Say which merge has not come to its end, with its paths; empty without one, or for one from before."""
    if paths := [path for path in unmerged_paths(real) if path not in before.unmerged]:
        return f"{stopped_merge(real) or 'a merge'} left conflicts in {some_of(paths)}"
    what = stopped_merge(real)
    return f"{what} was not continued" if what and what != before.was_stopped else ""


def _left_out(
    comparison: _Comparison, changed: Sequence[str], states: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the changed paths that are not stored, each with the reason, and those that are pointers, with the blob.

    A path that the agent staged is never left out as a state file.
    """
    before, seen = comparison.before, comparison.seen
    is_state = path_patterns(states).match_file
    filtered = filters_of(comparison.ours, changed)
    pointers = _known_pointers(comparison, [path for path, name in filtered.items() if name == LFS and path in seen])
    found, total = dict[str, str](), 0
    for path in changed:
        now = seen.get(path)
        if now is None or path in pointers:
            continue
        is_new = path not in comparison.commit
        is_staged = path in comparison.staged and path not in before.index
        if stat.S_IFMT(now.mode) not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
            found[path] = UNREADABLE
        elif path in before.hidden or (is_new and comparison.is_private_copy(path)):
            found[path] = HIDDEN
        elif is_new and not is_staged and is_state(path):
            found[path] = STATE
        elif path in filtered and not is_pointer_file(before.top / path):
            found[path] = BY_FILTER
        elif stat.S_ISREG(now.mode) and now.size > MOST_FILE_BYTES:
            found[path] = TOO_LARGE
        elif is_new and (total := total + now.size) > MOST_TOTAL_BYTES:
            raise too_much(path)
    return found | _half_moved(comparison, changed, found), pointers


def _half_moved(comparison: _Comparison, changed: Sequence[str], left_out: Mapping[str, str]) -> dict[str, str]:
    """Return the paths from which a file was moved to one that is left out: both stay as they were."""
    digests, top = comparison.before.digests, comparison.before.top
    moved = {_digest(top / path, comparison.seen.get(path)): reason for path, reason in left_out.items()}
    gone = [path for path in changed if path not in comparison.seen and path in comparison.commit]
    return {path: moved[digests[path]] for path in gone if digests.get(path) and digests[path] in moved}


def _known_pointers(comparison: _Comparison, paths: Sequence[str]) -> dict[str, str]:
    """Return the files of Git LFS whose bytes a pointer of the commit names already, with the blob of that pointer."""
    ours, top, found = comparison.ours, comparison.before.top, dict[str, str]()
    known = {entry.blob for entry in comparison.commit.values()}
    for path in paths:
        with suppress(OSError):
            if stat.S_ISREG(comparison.seen[path].mode) and not is_pointer_file(top / path):
                blob = ours.line("hash-object", "--stdin", data=pointer_to(top / path))
                if blob in known:
                    found[path] = blob
    return found


def _store(comparison: _Comparison, paths: Sequence[str], pointers: Mapping[str, str]) -> list[str]:
    """Bring changed paths into our index, with their modes; return those that git cannot store."""
    ours, modes = comparison.ours, {path: comparison.mode_of(path) for path in paths}
    gone = [path for path, mode in modes.items() if not mode]
    from_index = [path for path, mode in modes.items() if mode and path not in comparison.seen]
    present = [path for path, mode in modes.items() if mode and path in comparison.seen and path not in pointers]
    if gone:
        ours("update-index", "--force-remove", "-z", "--stdin", data=joined(gone))
    failed = add_files(ours, present)
    stored = entries_of(ours)
    plain = [path for path in present if path in stored and stored[path].mode != SUBMODULE]
    infos = [(path, modes[path], stored[path].blob) for path in plain if modes[path] != stored[path].mode]
    infos += [(path, modes[path], comparison.staged[path].blob) for path in from_index]
    infos += [(path, modes[path], blob) for path, blob in pointers.items() if modes.get(path)]
    if infos:
        lines = [f"{mode} {blob}\t{path}" for path, mode, blob in infos]
        ours("update-index", "--replace", "-z", "--index-info", data=joined(lines))
    return failed


def _marked(ours: Git, before: str, after: str) -> Iterator[str]:
    """Yield the paths that have more markers of a conflict than the commit has there."""
    for change, new, old in contents_of(ours, changes_between(ours, before, after)):
        if has_new_markers(old or b"", new or b""):
            yield change.path


@contextmanager
def _laid_over(snapshot: Snapshot) -> Iterator[Git]:
    """Lay an index of our own, which has the commit, over the work tree; yield git with it."""
    with tempfile.TemporaryDirectory(prefix="accord-changes-") as scratch:
        folder, settings = Path(scratch), snapshot.settings
        make_repository(folder, snapshot.object_format, [str(snapshot.objects)])
        (folder / "info/attributes").write_bytes(settings.attributes[1])
        (folder / "attributes").write_bytes(settings.attributes[0])
        environment = {"GIT_DIR": scratch, "GIT_WORK_TREE": str(snapshot.top), "GIT_INDEX_FILE": f"{scratch}/index"}
        config = {"core.bare": "false", "core.attributesFile": f"{scratch}/attributes"}
        ours = Git(snapshot.top, environment, {**settings.storing, **config})
        ours("read-tree", snapshot.commit)
        yield ours


def _refuse_secrets(git: Git, start: str, secrets: Sequence[str]) -> None:
    """Refuse a change with a secret in it: redacted it would be damaged, and as it is it would be published."""
    if not secrets:
        return
    searched = [secret.encode("utf-8", "surrogateescape") for secret in secrets]
    after = git.line("write-tree")
    for path, old, new in _contents(git, f"{start}^{{tree}}", after):
        if any(secret in new and secret not in old for secret in searched) or _has_wrapped(old, new, searched):
            raise Refused(
                f"`{path}` contains a secret of the job.",
                hint="None of the changes were published. Revoke the secret and find out why the agent wrote it.",
            )


def _has_wrapped(old: bytes, new: bytes, secrets: Sequence[bytes]) -> bool:
    """Return whether a new secret shows once the lines are joined, such as one that is wrapped."""
    joined, joined_before = _BREAK.sub(b"", new), _BREAK.sub(b"", old)
    return any(secret in joined and secret not in joined_before for secret in secrets)


def _contents(git: Git, before: str, after: str) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield path, old and new content of everything that a change leaves there; the path counts as content."""
    for change, new, old in contents_of(git, changes_between(git, before, after)):
        named = change.path.encode("utf-8", "surrogateescape") + b"\n"
        yield change.path, b"" if old is None else named + old, named + (new or b"")
