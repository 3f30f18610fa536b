"""Names of branches: those of a work item, and those that keep another one from being made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from accord.core.errors import Refused
from accord.git.configuration import BRANCH_PREFIX, CONFIG_PATHS


def work_branch(item: int, number: int = 1, prefix: str = BRANCH_PREFIX) -> str:
    """Return a branch of a work item: ``accord/7``, and ``accord/7-2`` after the work on the first one is over."""
    return f"{prefix}/{item}" + (f"-{number}" if number > 1 else "")


def item_of_branch(name: str) -> int:
    """Return the work item of a branch, whatever the prefix is; 0 for another branch, such as one of a conflict."""
    found = re.fullmatch(r"([1-9][0-9]{0,8})(?:-[1-9][0-9]{0,8})?", name.rpartition("/")[2])
    return int(found[1]) if found else 0


def folders_of(branch: str) -> list[str]:
    """Return the names that would be the folders of a branch, from the top."""
    parts = branch.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def branch_in_the_way(branch: str, names: Iterable[str]) -> str:
    """Return the branch that keeps git from making another one, empty if none does.

    Refs are named like files, so no name may be the folder of another one (git-check-ref-format).
    """
    folders = folders_of(branch)
    return next((name for name in sorted(names) if name in folders or name.startswith(f"{branch}/")), "")


def way_refusal(branch: str, other: str) -> Refused:
    """Say which branch is in the way, and how to rename it, or to use other names."""
    old, gone = shlex.quote(f"origin/{other}"), shlex.quote(f":{other}")
    rename = f"git push --atomic origin {old}:refs/heads/NEW-NAME {gone}"
    hint = f"Set another `branch_prefix:` in {' or '.join(CONFIG_PATHS)}, for branches of work items. "
    hint += f"Or, if `{other}` is not the default branch and nothing needs its name, rename it: `{rename}`."
    return Refused(f"The branch `{other}` is in the way: git cannot make `{branch}` beside it.", hint=hint)
