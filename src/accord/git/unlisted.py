"""Changes of a work tree that git's lists do not show: hidden by flags, settings and modes, or of another kind."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from accord.git.filters import Settings
from accord.git.index import IndexEntry, ignored_paths, linked_work_trees
from accord.git.leaving_out import MODES, UNREADABLE, UNSEEN
from accord.git.program import Git, join_nul, split_nul

_MODES = {"100644": 0, "100755": stat.S_IXUSR}


def unlisted_paths(git: Git, real: Git, known: Collection[str], ignored: Collection[str], since: int = 0) -> list[str]:
    """Return paths that git does not list: pipes, sockets, and all below a folder such as ``.GIT``.

    Not among them are ``known`` paths, what is ``ignored``, folders of which end with a slash, what is older than
    ``since`` (nanoseconds), and the other work trees of the repository, which is ``real``.
    """
    found = sorted(_walk(git.directory, known, ignored, since))
    trees = tuple(f"{tree}/" for tree in linked_work_trees(real)) if found else ()
    hidden = ignored_paths(git, found)
    return [path for path in found if path not in hidden and not path.startswith(trees)]


def _walk(top: Path, known: Collection[str], ignored: Collection[str], since: int) -> Iterator[str]:
    folders = [""]
    while folders:
        folder = folders.pop()
        with suppress(OSError), os.scandir(top / folder) as entries:
            for entry in entries:
                path = folder + entry.name
                if path in known or path in ignored or entry.name == ".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders += [f"{path}/"] if f"{path}/" not in ignored else []
                elif entry.stat(follow_symlinks=False).st_ctime_ns > since:
                    yield path


def clear_flags(git: Git, entries: Mapping[str, IndexEntry]) -> None:
    """Let git see changes behind the flags of its index, except that a sparse checkout lacks a file."""
    hidden = {path: entry.flag for path, entry in entries.items() if entry.is_hidden}
    shown = [path for path, flag in hidden.items() if flag not in "Ss" or os.path.lexists(git.directory / path)]
    if shown:
        for option in ("--no-assume-unchanged", "--no-skip-worktree"):
            git("update-index", option, "-z", "--stdin", data=join_nul(shown))


def overlooked_changes(
    git: Git, real: Git, start: str, settings: Settings, entries: Mapping[str, IndexEntry], known: Collection[str]
) -> dict[str, str]:
    """Return changes that git does not list, with the reason why they are left out.

    ``entries`` are those of the index before the work tree was added, ``known`` the paths there and all that git lists.
    """
    ignored = split_nul(git("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"))
    found = unlisted_paths(git, real, known, {*ignored})
    left = dict.fromkeys(found, UNREADABLE)
    if settings.has_patterns:
        left |= {path: UNSEEN for path in _hidden_by_settings(git, real, ignored) if path not in known}
    if not settings.has_modes:
        left |= dict.fromkeys(_changed_modes(git, entries, start), MODES)
    return left


def _hidden_by_settings(git: Git, real: Git, ignored: Collection[str]) -> list[str]:
    """Return the ignored paths that no ``.gitignore`` of the tree hides, without other work trees of ``real``."""
    asked = join_nul(f"./{path}" for path in ignored)
    told = git.attempt("check-ignore", "--no-index", "--verbose", "-z", "--stdin", data=asked).stdout if asked else b""
    fields = os.fsdecode(told).split("\0")  # the file of the rule, its line, the rule, and the path
    rules = zip(fields[::4], fields[3::4], strict=False)
    hidden = [path.removeprefix("./") for file, path in rules if Path(file).name != ".gitignore"]
    trees = linked_work_trees(real) if hidden else ()
    return [path for path in hidden if not any(f"{tree}/".startswith(path) for tree in trees)]


def _changed_modes(git: Git, entries: Mapping[str, IndexEntry], start: str) -> list[str]:
    """Return the files that are executable, or not, unlike in git's index and in the commit ``start``."""
    found = []
    for path, entry in entries.items():
        with suppress(OSError):
            mode = os.lstat(git.directory / path).st_mode
            if entry.mode in _MODES and stat.S_ISREG(mode) and mode & stat.S_IXUSR != _MODES[entry.mode]:
                found.append(path)
    if not found:
        return []
    staged = split_nul(git("diff-index", "--cached", "--no-renames", "-z", start))
    modes = {path: facts[1:7] for facts, path in zip(staged[::2], staged[1::2], strict=True)}
    return [path for path in found if modes.get(path, entries[path].mode) == entries[path].mode]
