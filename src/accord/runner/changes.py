"""What an agent changed, told by git: which paths, how much of each, and that in a few lines for a prompt."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding
from accord.kernel.git import Git
from accord.kernel.hidden_text import strip_hidden

if TYPE_CHECKING:
    from collections.abc import Sequence

_PATH_CHARS = 200
_STAT_CHARS = 4000


@dataclass(frozen=True, slots=True)
class FileStat:
    """A file that changed, and by how many lines; None for a binary one. A renamed file is one, by its new name."""

    path: str
    added: int | None
    removed: int | None


def patch_stats(patch: bytes) -> list[FileStat]:
    """List the files that a patch changes. Raises BrokenContract when it is no patch that git can read."""
    if not patch.strip():
        return []
    with tempfile.TemporaryDirectory(prefix="accord-stat-") as nowhere:
        outside = Git(Path(nowhere), environment={"GIT_CEILING_DIRECTORIES": str(Path(nowhere).parent)})
        done = outside.attempt("apply", "--numstat", "-z", "-", data=patch)
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").replace("error: ", "").split())[:500]
        message = f"Git cannot read the patch of the run: {said}"
        raise BrokenContract.of(Finding("patch-invalid", message))
    return _numstat(done.stdout)


def range_stats(git: Git, base: str, head: str) -> list[FileStat]:
    """List the files that differ between two commits. Raises GitFailed when one of them is not there."""
    return _numstat(git("diff-tree", "-r", "-M", "--numstat", "-z", "--end-of-options", base, head))


def _numstat(output: bytes) -> list[FileStat]:
    """Read ``added TAB removed TAB path NUL``; a rename of a range has an empty path, then both names."""
    fields = iter(output.decode("utf-8", "surrogateescape").split("\0")[:-1])
    stats = []
    for field in fields:
        added, removed, path = field.split("\t", 2)
        if not path:
            next(fields)
            path = next(fields)
        stats.append(FileStat(path, _count(added), _count(removed)))
    return stats


def _count(field: str) -> int | None:
    return None if field == "-" else int(field)


def diff_stat(stats: Sequence[FileStat], *, limit: int = _STAT_CHARS) -> str:
    """Tell in a few lines, for a prompt, what changed: ``src/a.py +3 -1``; what goes beyond the limit is counted."""
    lines: list[str] = []
    room = limit
    for stat in stats:
        line = f"{_shown(stat.path)} {'binary' if stat.added is None else f'+{stat.added} -{stat.removed}'}"
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*lines, f"and {len(stats) - len(lines)} more files"])
        lines.append(line)
    return "\n".join(lines)


def _shown(path: str) -> str:
    """Write a path on one line, whatever it holds."""
    text = strip_hidden(path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return " ".join(text.split())[:_PATH_CHARS]
