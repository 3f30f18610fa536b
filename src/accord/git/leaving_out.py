"""The rules by which changes are left out of an agent's patch (docs/changes.md), and the sizes that one may have."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from accord.core.errors import Refused
from accord.core.findings import Finding
from accord.git.paths import some_of

if TYPE_CHECKING:
    from accord.git.patches import Change
    from accord.git.program import Git

MIB = 1024 * 1024
MOST_FILE_BYTES = 100 * MIB
"""GitHub refuses larger files (GitHub documentation, "About large files on GitHub")."""

MOST_TOTAL_BYTES = 500 * MIB
"""More than this, written as text in a patch, does not fit into the memory of a runner."""


class ChangeLimits(NamedTuple):
    """The most files that a change may have, as GitHub shows no more ("About comparing branches"), and new bytes."""

    files: int = 3_000
    bytes: int = 50 * MIB


DEFAULT_LIMITS = ChangeLimits()


def size_findings(
    git: Git, before: str, after: str, changes: Sequence[Change], limits: ChangeLimits
) -> Iterator[Finding]:
    """Find what makes changes between two commits too large. A moved file is one, old contents have no bytes."""
    files = len(changes)
    if files > limits.files:
        files = git("diff-tree", "-r", "-M", "--name-only", "-z", before, after).count(b"\0")
    if files > limits.files:
        message = f"The change has {files:,} files. At most {limits.files:,} are allowed."
        yield Finding("change-too-large", message, "/patch", hint=f"Split the work, or pass `--max-files {files}`.")
    known = {change.was for change in changes}
    new = {change.blob: change.path for change in changes if change.leaves_content and change.blob not in known}
    asked = "".join(f"{blob}\n" for blob in new).encode()
    sizes = map(int, git.line("cat-file", "--batch-check=%(objectsize)", data=asked).split()) if new else ()
    by_path = dict(zip((some_of([path]) for path in new.values()), sizes, strict=True))
    for path, size in by_path.items():
        if size > MOST_FILE_BYTES:
            message = f"`{path}` has {size // MIB} MiB. GitHub refuses files of more than {MOST_FILE_BYTES // MIB} MiB."
            yield Finding("change-too-large", message, "/patch", hint="Remove it, or store it with Git LFS.")
    total = sum(by_path.values())
    if total > limits.bytes:
        largest = max(by_path, key=lambda path: by_path[path])
        message = f"The new contents have {total:,} bytes, `{largest}` the most. At most {limits.bytes:,} are allowed."
        yield Finding("change-too-large", message, "/patch", hint=f"Split the work, or pass `--max-bytes {total}`.")


STATE_FILES = (".accord/", "/*.log")
"""Where accord and any agent leave files."""

HIDDEN = "Changed files that were hidden, ignored or filtered before the run were left out"
UNSEEN = "Changes hidden by git's flags or by ignore rules outside of the tree were left out"
STATE = "New state files of agents were left out"
BY_FILTER = "Changed files with a filter, such as Git LFS, were left out"
TOO_LARGE = f"Files of more than {MOST_FILE_BYTES // MIB} MiB, which GitHub refuses, were left out"
ONLY_HERE = "Submodules at commits that no remote or tag has were left out"
ELSEWHERE = "Files in clones of other repositories were left out"
NOT_FETCHED = "Changes of files outside of the sparse checkout whose contents were not fetched were left out"
UNREADABLE = "Files that git cannot store were left out"
_STORABLE = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)


class ChangedPath(NamedTuple):
    """A changed path of a work tree with the facts that decide whether it is left out."""

    path: str
    mode: int  # of the file system, 0 for a path that is gone
    size: int  # in bytes
    is_new: bool  # the commit before does not have it
    is_private: bool = False  # it was hidden, ignored or filtered before
    is_filtered: bool = False  # a filter would store something else than its bytes
    is_only_here: bool = False  # it is a submodule at a commit of the agent


def reasons_to_leave_out(changes: Iterable[ChangedPath], state_files: Sequence[str]) -> dict[str, str]:
    """Return the changes that are left out, each with the reason. ``state_files`` are patterns of agents' own files.

    Raises Refused if the new files that are left are too large together.
    """
    every = [*changes]
    state = own_state((each.path for each in every if each.is_new), state_files)
    found, total = dict[str, str](), 0
    for change in every:
        if not change.mode:
            continue
        if stat.S_IFMT(change.mode) not in _STORABLE:
            found[change.path] = UNREADABLE
        elif change.is_only_here:
            found[change.path] = ONLY_HERE
        elif change.is_private:
            found[change.path] = HIDDEN
        elif change.path in state:
            found[change.path] = STATE
        elif change.is_filtered and stat.S_ISREG(change.mode):
            found[change.path] = BY_FILTER
        elif stat.S_ISREG(change.mode) and change.size > MOST_FILE_BYTES:
            found[change.path] = TOO_LARGE
        elif change.is_new and (total := total + change.size) > MOST_TOTAL_BYTES:
            message = (
                f"The new files have more than {MOST_TOTAL_BYTES // MIB} MiB in total, at `{some_of([change.path])}`."
            )
            raise Refused(message, hint="Nothing was published. Delete files, or add them to `.gitignore`.")
    return found


def own_state(paths: Iterable[str], state_files: Sequence[str]) -> set[str]:
    """Return the new paths that are state files of agents."""
    from accord.files.patterns import path_patterns

    return set(path_patterns([*STATE_FILES, *state_files]).match_files(paths))


def remarks_on(left: Mapping[str, str]) -> list[str]:
    """Name the paths that were left out, by reason."""
    found: dict[str, list[str]] = {}
    for path, reason in left.items():
        found.setdefault(reason, []).append(path)
    return [f"{reason}: {some_of(paths)}." for reason, paths in found.items()]
