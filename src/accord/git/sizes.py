"""Limits on sizes: of files before git reads them, which would take hours and all memory, and of a whole change."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.errors import Refused
from accord.core.findings import Finding
from accord.git.paths import path_patterns
from accord.git.program import Git, files_below, split_nul

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from accord.git.patches import Change

MIB = 1024 * 1024
MOST_FILE_BYTES = 100 * MIB
"""GitHub refuses larger files (GitHub documentation, "About large files on GitHub")."""

MOST_TOTAL_BYTES = 500 * MIB
"""More than this, written as text in a patch, does not fit into the memory of a runner."""


@dataclass(frozen=True)
class ChangeLimits:
    """The most files that a change may have, and the most bytes of new contents.

    GitHub shows no more than 3,000 files of a pull request (GitHub documentation, "About comparing branches").
    """

    files: int = 3_000
    bytes: int = 50 * MIB


DEFAULT_LIMITS = ChangeLimits()


def size_findings(
    git: Git, before: str, after: str, changes: Sequence[Change], limits: ChangeLimits
) -> Iterator[Finding]:
    """Find what makes a change too large to be pushed; ``changes`` are those between the two commits.

    A moved file is one file, and a content that was there before has no bytes.
    """
    files = len(changes)
    if files > limits.files:
        files = len(split_nul(git("diff-tree", "-r", "-M", "--name-only", "-z", before, after)))
    if files > limits.files:
        message = f"The change has {files:,} files. At most {limits.files:,} are allowed."
        yield Finding("change-too-large", message, "/patch", hint=f"Split the work, or pass `--max-files {files}`.")
    known = {change.was for change in changes}
    new = {change.blob: change.path for change in changes if change.leaves_content and change.blob not in known}
    asked = "".join(f"{blob}\n" for blob in new).encode()
    sizes = map(int, git.line("cat-file", "--batch-check=%(objectsize)", data=asked).split()) if new else ()
    shown = (path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for path in new.values())
    by_path = dict(zip(shown, sizes, strict=True))
    for path, size in by_path.items():
        if size > MOST_FILE_BYTES:
            message = f"`{path}` has {size // MIB} MiB. GitHub refuses files of more than {MOST_FILE_BYTES // MIB} MiB."
            yield Finding("change-too-large", message, "/patch", hint="Remove it, or store it with Git LFS.")
    total = sum(by_path.values())
    if total > limits.bytes:
        largest = max(by_path, key=lambda path: by_path[path])
        message = f"The new contents have {total:,} bytes, `{largest}` the most. At most {limits.bytes:,} are allowed."
        yield Finding("change-too-large", message, "/patch", hint=f"Split the work, or pass `--max-bytes {total}`.")


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
