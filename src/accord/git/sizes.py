"""The sizes of changed files, checked before git reads them: git would need hours and all memory for a huge one."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.errors import Refused
from accord.git.paths import path_patterns
from accord.git.program import Git, files_below, split_nul

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MIB = 1024 * 1024
MOST_FILE_BYTES = 100 * MIB
"""GitHub refuses larger files (GitHub documentation, "About large files on GitHub")."""

MOST_TOTAL_BYTES = 500 * MIB
"""More than this, written as text in a patch, does not fit into the memory of a runner."""


def check_sizes(git: Git, top: Path, *, known: Mapping[str, int], state_files: Sequence[str] = ()) -> list[str]:
    """Return new state files that are too large to read, to be left out. Raises Refused for other large files.

    ``git`` has an index of the commit before; ``known`` are sizes of files that were uncommitted before. A file of the
    commit counts as changed if its size is another.
    """
    is_state = path_patterns(state_files).match_file
    left_out, total = [], 0
    for path, size, is_new in _sizes(git, top):
        if known.get(path) == size or (not is_new and size > MOST_FILE_BYTES and _committed_size(git, path) == size):
            continue
        if is_new and size > MOST_FILE_BYTES and is_state(path):
            left_out.append(path)
            continue
        total += size if is_new else 0
        if size > MOST_FILE_BYTES or total > MOST_TOTAL_BYTES:
            raise _too_large(path, size)
    return left_out


def sizes_of(top: Path, paths: Sequence[str]) -> dict[str, int]:
    """Return the sizes of the regular files among these paths."""
    found = ((path, _size(top / path)) for path in paths)
    return {path: size for path, size in found if size is not None}


def _sizes(git: Git, top: Path) -> Iterator[tuple[str, int, bool]]:
    """Yield each regular file that git would read, its size, and whether the commit does not have it."""
    for path in split_nul(git("ls-files", "--cached", "-z")):
        if (size := _size(top / path)) is not None:
            yield path, size, False
    for path in split_nul(git("ls-files", "--others", "--exclude-standard", "-z")):
        for name in files_below(top, path[:-1]) if path.endswith("/") else [path]:
            if (size := _size(top / name)) is not None:
                yield name, size, True


def _size(path: Path) -> int | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _committed_size(git: Git, path: str) -> int:
    return int(git.line("cat-file", "-s", f":{path}"))


def _too_large(path: str, size: int) -> Refused:
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    message = f"`{shown}` has {size // MIB} MiB. A file of a change may have {MOST_FILE_BYTES // MIB} MiB."
    if size <= MOST_FILE_BYTES:
        message = f"The new files have more than {MOST_TOTAL_BYTES // MIB} MiB in total, at `{shown}`."
    return Refused(message, hint="Nothing was published. Delete the file, or add it to `.gitignore`.")
