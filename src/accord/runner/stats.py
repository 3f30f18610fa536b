"""Files and lines that a change touches, counted by git."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.git.program import Git, own_repository
from accord.text.hidden import strip_hidden

_PATH_CHARS = 200
_STAT_CHARS = 4000
_GIT_MESSAGE_CHARS = 500


class FileStat(Frozen):
    """A changed file and its changed lines; None for a binary file. A renamed file counts by its new name."""

    path: str
    added: int | None
    removed: int | None


def patch_stats(patch: bytes) -> list[FileStat]:
    """Return the files that a patch changes. Raises BrokenContract if git cannot read it."""
    if not patch.strip():
        return []
    with own_repository() as git:
        done = git.attempt("apply", "--numstat", "-z", "-", data=patch)
    if done.returncode:
        reason = " ".join(done.stderr.decode("utf-8", "replace").replace("error: ", "").split())
        message = f"Git cannot read the patch of the run: {reason[:_GIT_MESSAGE_CHARS]}"
        raise BrokenContract.of(Finding("patch-invalid", message, hint="Run the agent again."))
    return _numstat(done.stdout)


def count_files(stats: Iterable[FileStat]) -> int:
    """Count the files; one that becomes a link has two parts in a patch."""
    return len({change.path for change in stats})


def range_stats(git: Git, base: str, head: str) -> list[FileStat]:
    """Return the files that differ between two commits. Raises GitFailed if one of them does not exist."""
    return _numstat(git("diff-tree", "-r", "-M", "--numstat", "-z", "--end-of-options", base, head))


def _numstat(output: bytes) -> list[FileStat]:
    """Parse ``added TAB removed TAB path NUL``; a rename in a range has an empty path, then both names."""
    fields = iter(os.fsdecode(output).split("\0")[:-1])
    stats = []
    for entry in fields:
        added, removed, path = entry.split("\t", 2)
        if not path:
            next(fields)
            path = next(fields)
        counts = (None if count == "-" else int(count) for count in (added, removed))
        stats.append(FileStat(path, *counts))
    return stats


def diff_stat(stats: Sequence[FileStat], *, limit: int = _STAT_CHARS) -> str:
    """Summarize changes for a prompt, one line a file: ``src/a.py +3 -1``; files beyond the limit are counted."""
    lines: list[str] = []
    left = limit
    for change in stats:
        path = " ".join(strip_hidden(os.fsencode(change.path).decode("utf-8", "replace")).split())[:_PATH_CHARS]
        line = f"{path} {'binary' if change.added is None else f'+{change.added} -{change.removed}'}"
        left -= len(line) + 1
        if left < 0:
            return "\n".join([*lines, f"and {len(stats) - len(lines)} more files"])
        lines.append(line)
    return "\n".join(lines)
