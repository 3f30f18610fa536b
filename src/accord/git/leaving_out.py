"""The rules by which a changed path is left out of an agent's patch; docs/changes.md has them for users."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.files.patterns import path_patterns
from accord.git.leaving_out import MIB, MOST_FILE_BYTES, MOST_TOTAL_BYTES, too_much

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

STATE_FILES = (".accord/", "/*.log")
"""Where accord and any agent leave files. A new file there counts only if it was committed or staged."""

HIDDEN = "Changed files that were hidden, ignored or filtered before the run were left out"
STATE = "New state files of agents were left out"
BY_FILTER = "Changed files with a filter, such as Git LFS, were left out"
TOO_LARGE = f"Files of more than {MOST_FILE_BYTES // MIB} MiB, which GitHub refuses, were left out"
ONLY_HERE = "Submodules at commits that no remote or tag has were left out"
UNREADABLE = "Files that git cannot store were left out"
_STORABLE = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """A changed path of a work tree with the facts that decide whether it is left out.

    ``mode`` is that of the file system, 0 for a path that is gone, and ``size`` is in bytes. ``is_new``: the commit
    before does not have it; ``is_staged``: the agent put it into the index itself. ``is_private``: it was hidden,
    ignored or filtered before. ``is_filtered``: a filter would store something else than its bytes.
    ``is_only_here``: it is a submodule at a commit of the agent.
    """

    path: str
    mode: int
    size: int
    is_new: bool
    is_staged: bool = False
    is_private: bool = False
    is_filtered: bool = False
    is_only_here: bool = False


def reasons_to_leave_out(changes: Iterable[ChangedPath], state_files: Sequence[str]) -> dict[str, str]:
    """Return the changes that are left out, each with the reason.

    ``state_files`` are the patterns of the files that agents make for themselves.


    Raises Refused if the new files that are left are too large together.
    """
    is_state = path_patterns([*STATE_FILES, *state_files]).match_file
    found, total = dict[str, str](), 0
    for change in changes:
        if not change.mode:
            continue
        if stat.S_IFMT(change.mode) not in _STORABLE:
            found[change.path] = UNREADABLE
        elif change.is_only_here:
            found[change.path] = ONLY_HERE
        elif change.is_private:
            found[change.path] = HIDDEN
        elif change.is_new and not change.is_staged and is_state(change.path):
            found[change.path] = STATE
        elif change.is_filtered and stat.S_ISREG(change.mode):
            found[change.path] = BY_FILTER
        elif stat.S_ISREG(change.mode) and change.size > MOST_FILE_BYTES:
            found[change.path] = TOO_LARGE
        elif change.is_new and (total := total + change.size) > MOST_TOTAL_BYTES:
            raise too_much(change.path)
    return found


def by_reason(left: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the paths that were left out, by reason."""
    found: dict[str, list[str]] = {}
    for path, reason in left.items():
        found.setdefault(reason, []).append(path)
    return found
