"""Differences of texts as people and `git apply` read them."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.kit.plan import FilePlan

_LINES = re.compile(r"[^\n]*\n|[^\n]+")


def unified(before: str | None, after: str | None, path: str) -> str:
    """Write a unified diff of one file; None is no file. Only a line feed ends a line, as for git."""
    old, new = "/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}"
    lines = difflib.unified_diff(_LINES.findall(before or ""), _LINES.findall(after or ""), old, new)
    return "".join(_ended(line) for line in lines)


def diffs(files: tuple[FilePlan, ...]) -> Iterator[str]:
    """Write the diff of each file that changes."""
    return (unified(file.before, file.after, file.path) for file in files if file.is_change)


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
