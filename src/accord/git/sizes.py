"""Limits on sizes: of a file of a change, and of a whole change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.core.errors import Refused
from accord.core.findings import Finding
from accord.git.program import split_nul

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.git.patches import Change
    from accord.git.program import Git

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


def too_much(path: str) -> Refused:
    """Return the error for more new bytes than a patch can hold, at this path."""
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    message = f"The new files have more than {MOST_TOTAL_BYTES // MIB} MiB in total, at `{shown}`."
    return Refused(message, hint="Nothing was published. Delete files, or add them to `.gitignore`.")
