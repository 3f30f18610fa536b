"""Names of branches: those of a work item, and those that keep another one from being made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable

from accord.core.errors import BrokenContract, Refused
from accord.core.findings import Finding
from accord.files.yaml import read_yaml
from accord.git.program import Git, file_at

CONFIG_PATHS = (".github/accord/config.yml", ".github/accord.yml")
"""Files with the keys ``branch_prefix`` and ``approvals``; the first counts that has the key."""

APPROVALS = ("comment", "approve")
"""How a review that approves may be posted; the first is the default."""

BRANCH_PREFIX = "accord"
PREFIX_FORM = r"(?!refs/)[A-Za-z0-9][A-Za-z0-9_-]*(?:/[A-Za-z0-9][A-Za-z0-9_-]*)*"
"""A part of the names that git takes (git-check-ref-format), short and without quoting."""


def prefix_in(files: Iterable[bytes | None]) -> str:
    """Return the prefix that configurations name. Raises BrokenContract for one that is not a branch's."""
    hint = f"Write one without a slash at its end, such as `branch_prefix: bots/{BRANCH_PREFIX}`."
    meaning = "the beginning of a branch name"
    return _value_in(files, "branch_prefix", is_prefix, meaning, hint) or BRANCH_PREFIX


def is_prefix(text: str) -> bool:
    """Return whether a text may begin the names of branches."""
    return re.fullmatch(PREFIX_FORM, text) is not None


def approvals_in(files: Iterable[bytes | None]) -> str:
    """Return how configurations have approvals posted. Raises BrokenContract for another word."""
    hint = " or ".join(f"`approvals: {word}`" for word in APPROVALS)
    found = _value_in(files, "approvals", APPROVALS.__contains__, "one of its words", f"Write {hint}.")
    return found or APPROVALS[0]


def _value_in(files: Iterable[bytes | None], key: str, is_valid: Callable[[str], bool], meaning: str, hint: str) -> str:
    """Return the value of the first of ``CONFIG_PATHS`` that has a key, empty if none does."""
    for path, raw in zip(CONFIG_PATHS, files, strict=True):
        try:
            document = read_yaml(raw or b"").value
        except BrokenContract as broken:
            raise BrokenContract(f"{path}: {broken.message}", findings=broken.findings) from None
        value = document.get(key) if isinstance(document, dict) else None
        if value is not None and not (isinstance(value, str) and is_valid(value)):
            raise BrokenContract.of(Finding("schema", f"{path}: `{key}` is not {meaning}.", f"/{key}", hint=hint))
        if value:
            return str(value)
    return ""


def prefix_at(git: Git, commit: str) -> str:
    """Return the prefix that the configuration of a commit names. Raises BrokenContract, as ``prefix_in`` does."""
    return prefix_in(file_at(git, commit, path) for path in CONFIG_PATHS)


def work_branch(item: int, number: int = 1, prefix: str = BRANCH_PREFIX) -> str:
    """Return a branch of a work item: ``accord/7``, and ``accord/7-2`` after the work on the first one is over."""
    return f"{prefix}/{item}" + (f"-{number}" if number > 1 else "")


def is_work_branch(name: str, item: str) -> bool:
    """Return whether a branch is one of a work item's, whatever the prefix is; not one of a conflict."""
    return re.fullmatch(rf"{re.escape(item)}(?:-[1-9]\d*)?", name.rpartition("/")[2]) is not None


def folders_of(branch: str) -> list[str]:
    """Return the names that would be the folders of a branch, from the top."""
    parts = branch.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def patterns_around(branch: str) -> list[str]:
    """Return the patterns of the refs that are the branch, or may be in its way."""
    return [f"refs/heads/{name}" for name in (*folders_of(branch), branch, f"{branch}/*")]


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
    hint = f"Set another `branch_prefix:` in {CONFIG_PATHS[0]}, for branches of work items. "
    hint += f"Or, if nothing needs the name `{other}`, rename that branch: `{rename}`."
    return Refused(f"The branch `{other}` is in the way: git cannot make `{branch}` beside it.", hint=hint)
