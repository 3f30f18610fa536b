"""Merges that were not brought to an end: unmerged entries, a merge that stopped, and markers left in a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from accord.core.findings import Finding, warning
from accord.git.program import Git, split_nul

_STOPPED = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
_MARK = re.compile(rb"^(<{7}|={7}|>{7})(?=[ \r\n]|\Z)", re.MULTILINE)
_ADDED = re.compile(rb"^\+(<{7}|={7}|>{7})(?=[ \r\n]|\Z)", re.MULTILINE)
_FILES = re.compile(rb"^diff --git ", re.MULTILINE)
_NAME = re.compile(rb"^\+\+\+ (?:b/)?([^\t\r\n]+)", re.MULTILINE)
HINT = "Resolve the conflict in these lines, and remove the markers."


def stopped_merge(git: Git) -> str:
    """Name the merge, rebase, cherry-pick or revert that waits to be continued; empty without one."""
    folder = Path(git.line("rev-parse", "--absolute-git-dir"))
    return next((what for name, what in _STOPPED.items() if (folder / name).exists()), "")


def unmerged_paths(git: Git) -> list[str]:
    """List the paths of the index with more than one version."""
    entries = split_nul(git("ls-files", "--unmerged", "-z"))
    return list(dict.fromkeys(entry.partition("\t")[2] for entry in entries))


def triples(marks: Iterable[bytes]) -> int:
    """Count whole marker triples: a beginning, a middle and an end, in this order."""
    found, wanted = 0, 0
    for mark in marks:
        sign = b"<=>".index(mark[:1])
        if sign == 0:
            wanted = 1
        elif sign == wanted:
            wanted = 2 if wanted == 1 else 0
            found += sign == 2
    return found


def has_new_markers(old: bytes, new: bytes) -> bool:
    """Return whether a content has more marker triples than it had."""
    return b"<<<<<<<" in new and triples(_MARK.findall(new)) > triples(_MARK.findall(old))


def marked_files(patch: bytes) -> list[str]:
    """List the files in which the added lines of a patch have a whole marker triple."""
    if b"\n+<<<<<<<" not in patch:
        return []
    found = []
    for part in _FILES.split(patch):
        if b"\n+<<<<<<<" in part and triples(_ADDED.findall(part)):
            name = _NAME.search(part)
            found.append(name[1].decode("utf-8", "replace") if name else "?")
    return found


def marker_findings(paths: Sequence[str]) -> Iterator[Finding]:
    """Warn of files with the markers of a conflict: a person has to look."""
    for path in paths:
        message = f"`{path}` has the markers of an unresolved conflict (`<<<<<<<`, `=======`, `>>>>>>>`)."
        yield warning("conflict-markers", message, "/patch", hint=HINT)
