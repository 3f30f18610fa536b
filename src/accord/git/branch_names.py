"""Names of branches: those of a work item, and those that keep another one from being made. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

BRANCH_PREFIX = "accord"


def work_branch(item: int, number: int = 1, prefix: str = BRANCH_PREFIX) -> str:
    """Return a branch of a work item: ``accord/7``, and ``accord/7-2`` after the work on the first one is over."""
    return f"{prefix}/{item}" + (f"-{number}" if number > 1 else "")


def is_work_branch(name: str, item: str) -> bool:
    """Return whether a branch is one of a work item's, whatever the prefix is; not one of a conflict."""
    return re.fullmatch(rf"{re.escape(item)}(?:-[1-9]\d*)?", name.rpartition("/")[2]) is not None


def patterns_around(branch: str) -> list[str]:
    """Return the patterns of the refs that are the branch, or may be in its way."""
    parts = branch.split("/")
    folders = ["/".join(parts[:count]) for count in range(1, len(parts))]
    return [f"refs/heads/{name}" for name in (*folders, branch, f"{branch}/*")]


def branch_in_the_way(branch: str, names: Iterable[str]) -> str:
    """Return the branch that keeps git from making another one, empty if none does.

    Refs are named like files, so no name may be the folder of another one (git-check-ref-format).
    """
    others = (name for name in sorted(names) if name != branch)
    return next((name for name in others if f"{branch}/".startswith(f"{name}/") or name.startswith(f"{branch}/")), "")
