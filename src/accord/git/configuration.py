"""The file with a repository's configuration, found by one rule, and the names of branches, which begin as it says.

Single values are read where the rest may be broken. ``accord.starts.config`` has the whole format.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from accord.core.errors import BrokenContract, Refused
from accord.core.findings import Finding, PlacedFinding, warning
from accord.files.yaml import read_yaml
from accord.git.program import Git, file_at, split_nul

KIT_CONFIG = ".github/accord/config.yml"
CONFIG_PATHS = (".github/accord.yml", KIT_CONFIG)
"""The places of the configuration; the first that has a file counts: a person's own before that of the kit."""

_NEAR_PATHS = (".github/accord/config.yaml", ".github/accord.yaml")
"""Names that GitHub's own files may have, too."""

APPROVALS = ("comment", "approve")
"""How a review that approves may be posted; the first is the default."""

BRANCH_PREFIX = "accord"
PREFIX_FORM = r"(?!refs/)[A-Za-z0-9][A-Za-z0-9_-]*(?:/[A-Za-z0-9][A-Za-z0-9_-]*)*"
"""A part of the names that git takes (git-check-ref-format), short and without quoting."""


class ConfigFile(NamedTuple):
    """The configuration; ``raw`` is None without one."""

    path: str = KIT_CONFIG
    raw: bytes | None = None


def find_config(find: Callable[[str], bytes | None]) -> ConfigFile:
    """Return the configuration; ``find`` returns the file at a path, None without one."""
    found = (ConfigFile(path, find(path)) for path in CONFIG_PATHS)
    return next((file for file in found if file.raw is not None), ConfigFile())


def unread_configs(find: Callable[[str], bytes | None]) -> Iterator[PlacedFinding]:
    """Find files that look like the configuration and are not read."""
    path, raw = find_config(find)
    for other in (*CONFIG_PATHS, *_NEAR_PATHS):
        if other == path or find(other) is None:
            continue
        if raw is None:
            name = other.replace(".yaml", ".yml")
            hint = f"Rename it: `git mv {other} {name}`."
            yield other, warning("config-unread", f"`{other}` is not read: its name is not `{name}`.", hint=hint)
        else:
            message = f"`{other}` is not read: the configuration is `{path}`."
            yield other, warning("config-unread", message, hint=f"Move its lines there: `git rm {other}`.")


def prefix_in(config: ConfigFile) -> str:
    """Return the prefix that a configuration names. Raises BrokenContract for one that is not a branch's."""
    hint = f"Write one without a slash at its end, such as `branch_prefix: bots/{BRANCH_PREFIX}`."
    return _value_in(config, "branch_prefix", is_prefix, "the beginning of a branch name", hint) or BRANCH_PREFIX


def is_prefix(text: str) -> bool:
    """Return whether a text may begin the names of branches."""
    return re.fullmatch(PREFIX_FORM, text) is not None


def approvals_in(config: ConfigFile) -> str:
    """Return how a configuration has approvals posted. Raises BrokenContract for another word."""
    hint = f"Write {' or '.join(f'`approvals: {word}`' for word in APPROVALS)}."
    return _value_in(config, "approvals", APPROVALS.__contains__, "one of its words", hint) or APPROVALS[0]


def _value_in(config: ConfigFile, key: str, is_valid: Callable[[str], bool], meaning: str, hint: str) -> str:
    try:
        document = read_yaml(config.raw or b"").value
    except BrokenContract as broken:
        raise BrokenContract(f"{config.path}: {broken.message}", findings=broken.findings) from None
    value = document.get(key) if isinstance(document, dict) else None
    if value is not None and not (isinstance(value, str) and is_valid(value)):
        raise BrokenContract.of(Finding("schema", f"{config.path}: `{key}` is not {meaning}.", f"/{key}", hint=hint))
    return value or ""


def prefix_at(git: Git, commit: str) -> str:
    """Return the prefix that the configuration of a commit names. Raises BrokenContract, as ``prefix_in`` does."""
    return prefix_in(find_config(config_reader(git, commit)))


def config_reader(git: Git, commit: str) -> Callable[[str], bytes | None]:
    """Return what reads a commit's files at the places of the configuration, and at those near it."""
    there = split_nul(git("ls-tree", "-z", "--name-only", commit, "--", *CONFIG_PATHS, *_NEAR_PATHS))
    return lambda path: file_at(git, commit, path) if path in there else None


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
