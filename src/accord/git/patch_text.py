"""Patches as text: the names in their headers, the lines they show, and the faults that keep git from reading one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache

from accord.core.findings import Finding
from accord.git.program import own_repository

REBUILD_HINT = "Take it from the work tree again: `accord patch --base REF --into RESULT`."

_PAIR_KEY = b"diff --git"
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEADER = re.compile(rb"(---|\+\+\+|(?:rename|copy) (?:from|to)|diff --git) ([^\t\r]+)")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_PAIR = re.compile(r'"?[a-z]/.+ "?[a-z]/.+', re.DOTALL)
_PREFIXED = re.compile(r"[a-z]/")
_ABSOLUTE_TOKEN = re.compile(r'(?:^| )"?(?:/|\\057)')
_ABSOLUTE = re.compile(r"(?:[a-z]/)?(?:/|\\|[A-Za-z]:[/\\])")
_OUT_OF_TREE = re.compile(r'(?:^|[/\\ "])\.\.(?:[/\\ "]|$)|(?:^|/)\.git(?:/|$)', re.IGNORECASE)
_AT_LINE = re.compile(r"at (?:line |\S+:)(\d+)")
_BEGIN_PATCH = re.compile(rb"^\*\*\* (?:Begin Patch|Update File|Add File|Delete File)", re.MULTILINE)
_FENCE = re.compile(rb"\A\s*(?:`{3,}|~{3,})")
_FILE = re.compile(rb"^(?:diff --git |--- )", re.MULTILINE)


def patch_findings(patch: bytes) -> Iterator[Finding]:
    """Check a patch without a repository: its names, its format, and that git can read it."""
    if names := [*absolute_names(patch), *escaping_names(patch)]:
        message = f"The patch names `{names[0][:200]}`, which is not a path below the top of the repository."
        yield Finding("patch-invalid", message, "/patch", hint=REBUILD_HINT)
    elif names := bare_names(patch):
        message = f"The patch names `{names[0][:200]}` without `a/` or `b/` before it, and git drops the first folder."
        yield Finding("patch-invalid", message, "/patch", hint=REBUILD_HINT)
    elif reason := _fault(patch):
        yield Finding("patch-invalid", f"{reason}.", "/patch", hint=REBUILD_HINT)


@lru_cache(maxsize=1)  # of the one patch of a result, which is checked again once its texts are safe
def _fault(patch: bytes) -> str:
    """Return the fault that makes git refuse a patch; empty without one."""
    if _FENCE.match(patch):
        return "A code fence surrounds the patch"
    if not _FILE.search(patch):
        is_other = _BEGIN_PATCH.search(patch)
        return "The patch has the format of `*** Begin Patch`, not git's" if is_other else "The patch has no file"
    if not patch.endswith(b"\n"):
        return "The patch does not end with a newline, so its last line may be cut"
    with own_repository() as git:
        read = git.attempt("apply", "--numstat", "-", data=patch)
    if not read.returncode:
        return ""
    place = _AT_LINE.search(read.stderr.decode("utf-8", "replace"))
    if place is None:
        return "The patch changes nothing that git can read"
    return f"Git cannot read line {place[1]} of the patch: a hunk has more or fewer lines than it counts, or no file"


def escaping_names(patch: bytes) -> list[str]:
    """List the names in the headers of a patch that leave the work tree, or are inside of ``.git``."""
    names = (
        _unescape(os.fsencode(name)).decode("utf-8", "replace") if key == _PAIR_KEY else name
        for key, name in header_names(patch)
    )
    return list(dict.fromkeys(name for name in names if _OUT_OF_TREE.search(name)))


def absolute_names(patch: bytes) -> list[str]:
    """List the absolute names in the headers of a patch, which git takes for names below the top of the work tree."""

    def is_absolute(key: bytes, name: str) -> bool:
        if key == _PAIR_KEY:
            return not _PAIR.fullmatch(name) and bool(_ABSOLUTE_TOKEN.search(name))
        return name != "/dev/null" and bool(_ABSOLUTE.match(name))

    return list(dict.fromkeys(name for key, name in header_names(patch) if is_absolute(key, name)))


def bare_names(patch: bytes) -> list[str]:
    """List the names of a patch that was made without prefixes, from which git takes the first folder.

    Of such a file both names are the same; without a line ``diff --git``, the one name of a new or deleted file has no
    letter in front.
    """
    found, old, is_paired = list[str](), "", False
    for key, name in header_names(patch):
        if key == _PAIR_KEY:
            is_paired, middle = True, len(name) // 2
            if name[middle] == " " and name[:middle] == name[middle + 1 :]:
                found.append(_unquote_path(os.fsencode(name[:middle])).decode("utf-8", "replace"))
        elif key == b"---":
            old = name
        elif key == b"+++":
            sides = {old, name} - {"/dev/null"}
            is_bare = len(sides) == 1 and (old == name or not _PREFIXED.match(min(sides)))
            found += sides if is_bare and not is_paired else ()
            is_paired = False
    return list(dict.fromkeys(found))


def header_names(patch: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield the names in the headers of a patch with their keywords; ``diff --git`` has both names in one."""
    old = new = 0
    for line in patch.split(b"\n"):
        if old > 0 or new > 0:
            old -= line[:1] in (b" ", b"-", b"")
            new -= line[:1] in (b" ", b"+", b"")
        elif hunk := _HUNK.match(line):
            old, new = (int(hunk[side] or 1) for side in (2, 4))
        elif header := _HEADER.match(line):
            name = header[2] if header[1] == _PAIR_KEY else _unquote_path(header[2])
            yield header[1], name.decode("utf-8", "surrogateescape")


def lines_of_files(patch: bytes) -> dict[str, list[int]]:
    """Return the line numbers that the hunks of each file show: of the new file, or of the old one if it is deleted."""
    found: dict[str, list[int]] = {}
    names: dict[bytes, bytes] = {}
    sides: dict[bytes, list[int]] = {b"-": [], b"+": []}
    left = {b"-": 0, b"+": 0}
    following = {b"-": 0, b"+": 0}
    for line in [*patch.split(b"\n"), b"diff --git end"]:
        if any(count > 0 for count in left.values()):
            for sign in (b"-", b"+"):
                if line[:1] in (b" ", sign, b""):
                    sides[sign].append(following[sign])
                    following[sign] += 1
                    left[sign] -= 1
        elif hunk := _HUNK.match(line):
            following = {b"-": int(hunk[1]), b"+": int(hunk[3])}
            left = {b"-": int(hunk[2] or 1), b"+": int(hunk[4] or 1)}
        elif header := _HEADER.match(line):
            if header[1] == _PAIR_KEY:
                if name := _name_of(names):
                    found[name] = sides[b"-" if names.get(b"+++") == b"/dev/null" else b"+"]
                names, sides = {}, {b"-": [], b"+": []}
            names[header[1]] = header[2] if header[1] == _PAIR_KEY else _unquote_path(header[2])
    return found


def _name_of(names: dict[bytes, bytes]) -> str:
    """Return the path of a file by the names in its headers, which begin with ``a/`` and ``b/`` but in renames."""
    new, pair = names.get(b"+++", b""), names.get(_PAIR_KEY, b"")
    if new:
        path = (names.get(b"---", b"") if new == b"/dev/null" else new)[2:]
    else:  # the two names are equal unless it is a rename
        path = names.get(b"rename to") or names.get(b"copy to") or _unquote_path(pair[len(pair) // 2 + 1 :])[2:]
    return path.decode("utf-8", "replace")


def _unquote_path(name: bytes) -> bytes:
    """Read a name as git quotes it: in double quotes, with escapes and octal numbers."""
    if not name.startswith(b'"'):
        return name
    return _unescape(name[1:].rpartition(b'"')[0])


def _unescape(text: bytes) -> bytes:
    return _ESCAPE.sub(lambda hit: bytes([int(hit[1], 8) & 255]) if len(hit[1]) == 3 else hit[1], text)
