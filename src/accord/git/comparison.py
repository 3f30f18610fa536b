"""The differences of a work tree from a snapshot of it.

A path counts as changed if its bytes, its mode or its kind differ, whatever git's settings hide; it is stored as the
repository's git would have stored it before.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cached_property

from accord.core.frozen import Frozen
from accord.git.beside import made_commits, pushed_commits
from accord.git.filters import LFS, blob_id, filters_of, is_encrypted, is_pointer, is_pointer_file, pointer_to
from accord.git.index import (
    IndexEntry,
    add_files,
    blobs_of,
    entries_of,
    ignored_paths,
    is_only_here,
    unfinished_merge,
    untracked_files,
    unwritten_paths,
)
from accord.git.leaving_out import (
    BY_FILTER,
    ELSEWHERE,
    NOT_FETCHED,
    STATE,
    UNREADABLE,
    ChangedPath,
    own_state,
    reasons_to_leave_out,
)
from accord.git.patches import Change, changes_between, difference, paths_with_new_markers
from accord.git.paths import is_folder
from accord.git.program import SUBMODULE, Git, GitFailed, is_ancestor, join_nul, split_nul
from accord.git.secrets import refuse_secrets
from accord.git.snapshots import (
    BY_TREE,
    Seen,
    Snapshot,
    content_digest,
    head_of,
    is_below,
    is_executable,
    lay_over,
    look,
)
from accord.git.steering import audit_changes

_EXECUTABLE, _PLAIN, _LINK = "100755", "100644", "120000"

_MOST_MESSAGES, _MOST_MERGED = 20, 1000


class WorkTreeChanges(Frozen):
    """The changes as git's binary-safe patch, without files that were uncommitted before and are as they were."""

    patch: bytes
    left_out: Mapping[str, str] = field(default_factory=dict)  # paths with the reason
    untouched: tuple[str, ...] = ()  # those files, outside of repositories within
    marked: tuple[str, ...] = ()  # paths with the markers of a conflict
    unfinished: str = ""  # the merge that has not come to its end
    merged: tuple[str, ...] = ()  # commits of elsewhere since then, newest first
    pushed: Mapping[str, str] = field(default_factory=dict)  # branches of remotes with the commits last pushed there
    own_pushes: Mapping[str, str] = field(default_factory=dict)  # the same, of commits that were made here
    undone: tuple[str, ...] = ()  # paths of commits before, which HEAD does not have, as they were without these
    steering: tuple[str, ...] = ()  # paths that steer agents or CI


def changes_since(
    snapshot: Snapshot, *, secrets: Sequence[str] = (), own: tuple[Sequence[str], Sequence[str]] = ((), ())
) -> WorkTreeChanges:
    """Return what differs from the snapshot. Raises GitFailed; Refused for ``secrets`` in a change.

    ``own`` are the patterns that ``audit_changes`` takes.
    """
    with lay_over(snapshot) as ours:
        shared, earlier = snapshot.objects.parent, snapshot.beside
        pushed = [push for push in pushed_commits(snapshot.agents_git(), shared) if push not in earlier.pushed]
        made = made_commits(shared) - earlier.made
        comparison = _Comparison.of(snapshot, ours, made)
        changed, untouched = comparison.changed_paths()
        clones = tuple(f"{folder}/" for folder, is_cloned in comparison.nested.items() if is_cloned)
        cloned = {path: ELSEWHERE for path in changed if path.startswith(clones)}
        changed = [path for path in changed if path not in cloned and path not in comparison.nested]
        pointers = _known_pointers(comparison, changed)
        left = reasons_to_leave_out(_facts_of(comparison, changed, pointers), snapshot.state_files)
        left |= _half_moved(comparison, changed, left) | _not_fetched(comparison, changed) | cloned
        failed = _store(
            comparison, [path for path in changed if path not in left], pointers, _of_merge(comparison, left)
        )
        left |= dict.fromkeys(failed, UNREADABLE)
        tree = ours.line("write-tree")
        changes = changes_between(ours, f"{snapshot.commit}^{{tree}}", tree)
        refuse_secrets(ours, changes, secrets)
        inside = tuple(f"{folder}/" for folder in comparison.nested)
        told = tuple(path for path in untouched if not path.startswith(inside))
        patch = difference(ours, snapshot.commit, tree, changes)
        audit = audit_changes(ours, snapshot.commit, changes, patch, own=own)
        return WorkTreeChanges(
            patch,
            left,
            told,
            tuple(paths_with_new_markers(ours, changes)),
            comparison.unfinished,
            comparison.merged,
            dict(pushed),
            {name: commit for name, commit in pushed if commit in made},
            () if comparison.descends else tuple(_undone_paths(ours, snapshot, changes)),
            (*audit.steering, *audit.protected),
        )


def _undone_paths(ours: Git, before: Snapshot, changes: Sequence[Change]) -> Iterator[str]:
    """Yield the paths that are as they were before the commits that HEAD does not go on from."""
    found = before.agents_git().attempt("merge-base", before.commit, "HEAD").stdout.decode().split()
    with suppress(GitFailed):  # a clone without the older trees
        left = found[0] if found else ours.line("mktree")
        old = {(change.path, change.was) for change in changes_between(ours, left, f"{before.commit}^{{tree}}")}
        yield from (change.path for change in changes if (change.path, change.blob) in old)


def own_messages(real: Git, start: str, merged: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the messages of the newest commits that an agent made itself since the start, oldest first."""
    wanted = ("--first-parent", "--no-merges", "--reverse", "--format=%B", f"--max-count={_MOST_MESSAGES}", "-z")
    with suppress(GitFailed, subprocess.TimeoutExpired):
        if is_ancestor(real, start, "HEAD"):
            listed = real("log", *wanted, f"{start}..HEAD", "--not", *merged[:1]).decode("utf-8", "replace")
            return tuple(filter(None, (message.strip() for message in listed.split("\0"))))
    return ()


class _Comparison(Frozen):
    """A snapshot and the same work tree now."""

    before: Snapshot
    ours: Git
    commit: Mapping[str, IndexEntry]
    seen: Mapping[str, Seen]
    staged: Mapping[str, IndexEntry]  # the repository's own index now, if it can be read
    nested: Mapping[str, bool]  # repositories within, and whether each is a clone
    unfinished: str
    uncommitted: Collection[str]  # paths of that index that differ from HEAD
    descends: bool  # HEAD goes on from the commit before; an index of elsewhere does not tell what was staged
    merged: tuple[str, ...]  # commits since the start that were not made here, by the agent's word, newest first

    @cached_property
    def ignored_now(self) -> Collection[str]:
        """The paths that were taken out of the index, and that a ``.gitignore`` hides now."""
        gone = [path for path in self.before.index if path in self.seen and path not in self.staged]
        return ignored_paths(self.ours, gone)

    @cached_property
    def merged_entries(self) -> Mapping[str, IndexEntry]:
        """The entries of the commit that was merged last; none where git cannot read it."""
        listed = self.ours.attempt("ls-tree", "-r", "-z", self.merged[0]).stdout if self.merged else b""
        split = (entry.partition("\t") for entry in split_nul(listed))
        return {path: IndexEntry("", facts.split()[0], facts.split()[2]) for facts, _, path in split}

    @classmethod
    def of(cls, before: Snapshot, ours: Git, made: Collection[str]) -> _Comparison:
        real, staged, unfinished = before.agents_git(), before.index, ""
        uncommitted, descends, merged = list[str](), True, tuple[str, ...]()
        with suppress(GitFailed, subprocess.TimeoutExpired):
            staged = entries_of(real) or before.index  # without an index, nothing was staged
            unfinished = unfinished_merge(real)
            uncommitted = split_nul(real("diff-index", "--cached", "--name-only", "--no-renames", "-z", "HEAD"))
            descends = is_ancestor(real, before.commit, "HEAD")
            words = ("rev-list", "--topo-order", f"--max-count={_MOST_MERGED}", f"{before.commit}..HEAD", "--")
            listed = real.attempt(*words).stdout.decode().split()
            merged = tuple(commit for commit in listed if commit not in made)
        untracked, nested = untracked_files(ours, real, BY_TREE)
        commit = entries_of(ours)
        seen = look(before.top, dict.fromkeys([*commit, *before.seen, *untracked, *staged]))
        return cls(before, ours, commit, seen, staged, nested, unfinished, frozenset(uncommitted), descends, merged)

    def changed_paths(self) -> tuple[list[str], list[str]]:
        """Return the paths that differ, and those that were uncommitted before and do not."""
        changed, untouched = [], []
        paths = dict.fromkeys([*self.commit, *self.before.seen, *self.seen, *self.staged])
        forced = self._forcibly_added()
        for path in paths:
            if self._differs(path) or path in forced or self._is_staged_anew(path):
                changed.append(path)
            elif path in self.before.uncommitted:
                untouched.append(path)
        return changed, untouched

    def _differs(self, path: str) -> bool:
        before, now, entry = self.before.seen.get(path), self.seen.get(path), self.commit.get(path)
        if entry and entry.mode == SUBMODULE and is_folder(os.fspath(self.before.top / path)):
            head = head_of(self.before.top / path)
            return bool(head) and head != (self.before.heads.get(path) or entry.blob)
        if before == now:
            return False
        if now is None:
            return not self._is_put_aside(path)
        digest = self.before.digests.get(path)
        if before is None:
            is_old = now.changed <= self.before.taken_at or digest == content_digest(self.before.top / path, now)
            return not (is_old and is_below(path, self.before.ignored))
        if stat.S_IFMT(before.mode) != stat.S_IFMT(now.mode) or is_executable(before) != is_executable(now):
            return True
        return digest is None or digest != content_digest(self.before.top / path, now)

    def is_submodule(self, path: str) -> bool:
        """Return whether a path is a repository that the commit or the index knows by its commit."""
        entries = (self.commit.get(path), self.staged.get(path))
        is_known = any(entry and entry.mode == SUBMODULE for entry in entries)
        return is_known and is_folder(os.fspath(self.before.top / path))

    def _is_put_aside(self, path: str) -> bool:
        """Return whether a sparse checkout keeps a path out of the work tree: its entry of the index counts."""
        staged, first = self.staged.get(path), self.before.index.get(path)
        was_hidden = first is not None and first.is_sparse and path in self.before.seen
        is_lacking = staged is not None and (staged.is_sparse or path in self._never_written)
        return is_lacking and not was_hidden

    @cached_property
    def _never_written(self) -> Collection[str]:
        """The paths of a sparse checkout that git never wrote to the work tree, although no flag says so."""
        known = self.before.seen.keys() | self.seen.keys()
        absent = [path for path, entry in self.staged.items() if path not in known and not entry.is_sparse]
        if not absent or not any(entry.is_sparse and path not in known for path, entry in self.before.index.items()):
            return ()
        with suppress(GitFailed, subprocess.TimeoutExpired):
            return unwritten_paths(self.before.agents_git()) & {*absent}
        return ()

    def _forcibly_added(self) -> set[str]:
        new = [path for path in self.staged if path not in self.before.index and path in self.seen]
        return {
            path for path in ignored_paths(self.ours, new) if path not in self.commit and path not in self.before.hidden
        }

    def _is_staged_anew(self, path: str) -> bool:
        """Return whether the index tells more than the work tree: a removal, a mode, or a file that is not there."""
        before, now = self.before.index.get(path), self.staged.get(path)
        if now == before or not self.descends:
            return False
        if path in self.seen:
            return before is not None and (now is None or self._has_staged_mode(path))
        if before and before.mode == SUBMODULE:
            return now is None or now[1:] != before[1:]
        if now and self._is_put_aside(path):
            return now.mode != SUBMODULE if before is None else now[1:] != before[1:]
        return before is not None and before.is_sparse and path not in self.before.seen

    def _has_staged_mode(self, path: str) -> bool:
        """Return whether a mode was staged that the file on the disk does not have; a commit gives way to the disk."""
        before, now = self.before.index.get(path), self.staged.get(path)
        is_told = self.descends and (path in self.uncommitted or not self.before.settings.has_modes)
        return is_told and before is not None and now is not None and now.mode != before.mode

    def is_private_copy(self, path: str) -> bool:
        """Return whether a file has the content of one that was hidden, ignored or stored through a filter."""
        now = self.seen.get(path)
        is_another = path not in self.before.digests and bool(now and now.size)
        return is_another and content_digest(self.before.top / path, now) in self.before.private

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
        if known and before and stat.S_ISREG(before.mode) and is_executable(before) == is_executable(now):
            return staged.mode if staged and self._has_staged_mode(path) else known.mode
        if first is None and staged and path in self.uncommitted and staged.mode == _EXECUTABLE:
            return _EXECUTABLE
        if before is None and not self.before.settings.has_modes:
            return staged.mode if staged and staged.mode in (_PLAIN, _EXECUTABLE) else known.mode if known else _PLAIN
        return _EXECUTABLE if is_executable(now) else _PLAIN


def _facts_of(comparison: _Comparison, changed: Sequence[str], pointers: Mapping[str, str]) -> Iterator[ChangedPath]:
    """Yield what decides whether changed paths are left out; those of ``pointers`` never are."""
    before, filtered = comparison.before, filters_of(comparison.ours, changed)
    absent = [path for path in changed if path not in comparison.seen]
    aside = [path for path in absent if comparison.mode_of(path) not in ("", SUBMODULE)]
    contents = comparison.ours.contents([comparison.staged[path].blob for path in aside])
    for path, content in zip(aside, contents, strict=True):
        is_new, text = path not in comparison.commit, content or b""
        yield ChangedPath(
            path,
            int(comparison.staged[path].mode, 8),
            len(text),
            is_new,
            is_private=is_new and hashlib.sha256(text).digest() in before.private and text != b"",
            is_filtered=path in filtered and not (is_pointer(text) or is_encrypted(text)),
        )
    for path in changed:
        now = comparison.seen.get(path)
        if now and path not in pointers:
            is_new = path not in comparison.commit
            yield ChangedPath(
                path,
                now.mode,
                now.size,
                is_new,
                is_private=path in before.hidden or (is_new and comparison.is_private_copy(path)),
                is_filtered=path in filtered and not is_pointer_file(before.top / path),
                is_only_here=comparison.is_submodule(path) and is_only_here(before.top / path),
            )


def _of_merge(comparison: _Comparison, left: Mapping[str, str]) -> dict[str, IndexEntry]:
    """Return the filtered paths that were merged as stored elsewhere, which a merge must not undo."""
    entries, staged = comparison.merged_entries, comparison.staged
    filtered = [path for path, reason in left.items() if reason == BY_FILTER and path in entries and path in staged]
    same = {path: entries[path] for path in filtered if staged[path][1:] == entries[path][1:]}
    names = filters_of(comparison.ours, same)
    contents = zip(same, comparison.ours.contents([entry.blob for entry in same.values()]), strict=True)
    known = {path: content for path, content in contents if content is not None}
    forms = {LFS: is_pointer, "git-crypt": is_encrypted}  # of an unknown filter, everything may be its stored form
    kept = [
        path for path, content in known.items() if (form := forms.get(names.get(path, ""))) is None or form(content)
    ]
    return {path: same[path] for path in kept}


def _half_moved(comparison: _Comparison, changed: Sequence[str], left: Mapping[str, str]) -> dict[str, str]:
    """Return the paths from which a file was moved to one that is left out: both stay as they were."""
    digests, top = comparison.before.digests, comparison.before.top
    gone = [path for path in changed if path not in comparison.seen and path in comparison.commit]
    if not gone:
        return {}
    moved = {content_digest(top / path, comparison.seen.get(path)): reason for path, reason in left.items()}
    state = own_state(gone, comparison.before.state_files)
    files = [path for path, reason in left.items() if state and reason == STATE and not (top / path).is_symlink()]
    made = {*blobs_of(comparison.ours, files).values()}
    known = {path: moved[digests[path]] for path in gone if digests.get(path) and digests[path] in moved}
    return {path: STATE for path in state if comparison.commit[path].blob in made} | known


def _not_fetched(comparison: _Comparison, changed: Sequence[str]) -> dict[str, str]:
    """Return the paths outside of a sparse checkout whose contents a partial clone lacks: no patch can change them."""
    index, seen = comparison.before.index, comparison.before.seen
    outside = [path for path in changed if path in index and index[path].is_sparse and path not in seen]
    known = {path: entry.blob for path, entry in comparison.commit.items() if entry.mode != SUBMODULE}
    absent = [path for path in outside if path in known and path not in comparison.seen]
    contents = zip(absent, comparison.ours.contents([known[path] for path in absent]), strict=True)
    return {path: NOT_FETCHED for path, content in contents if content is None}


def _known_pointers(comparison: _Comparison, changed: Sequence[str]) -> dict[str, str]:
    """Return the files of Git LFS whose bytes a known pointer names, with the blob of that pointer."""
    ours, top, found = comparison.ours, comparison.before.top, dict[str, str]()
    files = [path for path, name in filters_of(ours, changed).items() if name == LFS and path in comparison.seen]
    known = {entry.blob for entries in (comparison.commit, comparison.merged_entries) for entry in entries.values()}
    for path in files:
        with suppress(OSError):
            if stat.S_ISREG(comparison.seen[path].mode) and not is_pointer_file(top / path):
                blob = blob_id(pointer_to(top / path), comparison.before.object_format)
                if blob in known:
                    found[path] = blob
    return found


def _store(
    comparison: _Comparison, paths: Sequence[str], pointers: Mapping[str, str], merged: Mapping[str, IndexEntry]
) -> list[str]:
    """Bring changed paths into our index, with their modes, and merged entries; return what git cannot store."""
    ours, modes = comparison.ours, {path: comparison.mode_of(path) for path in paths}
    gone = [path for path, mode in modes.items() if not mode]
    from_index = [path for path, mode in modes.items() if mode and path not in comparison.seen]
    present = [path for path, mode in modes.items() if mode and path in comparison.seen and path not in pointers]
    if gone:
        ours("update-index", "--force-remove", "-z", "--stdin", data=join_nul(gone))
    failed = add_files(ours, present)
    stored = entries_of(ours)
    plain = [path for path in present if path in stored and stored[path].mode != SUBMODULE]
    infos = [(path, modes[path], stored[path].blob) for path in plain if modes[path] != stored[path].mode]
    infos += [(path, modes[path], comparison.staged[path].blob) for path in from_index]
    infos += [(path, modes[path], blob) for path, blob in pointers.items() if modes.get(path)]
    infos += [(path, entry.mode, entry.blob) for path, entry in merged.items()]
    if infos:
        lines = [f"{mode} {blob}\t{path}" for path, mode, blob in infos]
        ours("update-index", "--replace", "-z", "--index-info", data=join_nul(lines))
    return failed
