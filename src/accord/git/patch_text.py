"""Patches as text: the names in their headers, the lines they show, markers of conflicts, and what git cannot read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from accord.core.findings import Finding, warning
from accord.git.program import own_repository

REBUILD_HINT = "Take it from the work tree again: `accord patch --base REF --into RESULT`."

_PAIR_KEY = b"diff --git"
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEADER = re.compile(rb"(---|\+\+\+|(?:rename|copy) (?:from|to)|diff --git) ([^\t\r]+)")
_CONTROLS = bytes.maketrans(b"abtnvfr", b"\a\b\t\n\v\f\r")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_PAIR = re.compile(r'"?[a-z]/.+ "?[a-z]/.+', re.DOTALL)
_PREFIXED = re.compile(rb"[a-z]/")
_ABSOLUTE_TOKEN = re.compile(r'(?:^| )"?(?:/|\\057)')
_ABSOLUTE = re.compile(r"(?:[a-z]/)?(?:/|\\|[A-Za-z]:[/\\])")
_OUT_OF_TREE = re.compile(r'(?:^|[/\\ "])\.\.(?:[/\\ "]|$)|(?:^|/)\.git(?:/|$)', re.IGNORECASE)
_AT_LINE = re.compile(r"at (?:line |\S+:)(\d+)")
_BEGIN_PATCH = re.compile(rb"^\*\*\* (?:Begin Patch|Update File|Add File|Delete File)", re.MULTILINE)
_FENCE = re.compile(rb"\A\s*(?:`{3,}|~{3,})")
_FILE = re.compile(rb"^(?:diff --git |--- )", re.MULTILINE)
_MARK = re.compile(rb"^(<{7}|={7}|>{7})(?=[ \r\n]|\Z)", re.MULTILINE)


class PatchedFile(NamedTuple):
    """A file of a patch: the names in its headers by their keywords, and the lines of its hunks."""

    names: dict[bytes, bytes]
    lines: list[tuple[bytes, bytes, int]]  # sign, text, and number, of a removed line in the old file

    @property
    def path(self) -> str:
        """The path, without the ``a/`` and ``b/`` that names have but in renames."""
        new, pair = self.names.get(b"+++", b""), self.names.get(_PAIR_KEY, b"")
        if new:
            path = (self.names.get(b"---", b"") if new == b"/dev/null" else new)[2:]
        else:  # the two names are equal unless it is a rename
            moved = self.names.get(b"rename to") or self.names.get(b"copy to")
            path = moved or _unquote_path(pair[len(pair) // 2 + 1 :])[2:]
        return path.decode("utf-8", "replace")


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
    names = ((os.fsencode(name), key == _PAIR_KEY) for key, name in header_names(patch))
    shown = ((_unescape(name) if is_pair else name).decode("utf-8", "replace") for name, is_pair in names)
    return list(dict.fromkeys(name for name in shown if _OUT_OF_TREE.search(name)))


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
    found = list[bytes]()
    for names, _ in files_of(patch):
        if pair := names.get(_PAIR_KEY):
            middle = len(pair) // 2
            if pair[:middle] == pair[middle + 1 :] and pair[middle : middle + 1] == b" ":
                found.append(_unquote_path(pair[:middle]))
        elif (old := names.get(b"---")) and (new := names.get(b"+++")):
            sides = {old, new} - {b"/dev/null"}
            found += sides if len(sides) == 1 and (old == new or not _PREFIXED.match(min(sides))) else ()
    return [name.decode("utf-8", "replace") for name in dict.fromkeys(found)]


def header_names(patch: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield the names in the headers of a patch with their keywords; ``diff --git`` has both names in one."""
    headers = ((key, name) for key, name, _ in _parts_of(patch) if len(key) > 1)
    return ((key, name.decode("utf-8", "surrogateescape")) for key, name in headers)


def files_of(patch: bytes) -> Iterator[PatchedFile]:
    """Yield each file of a patch; a header that a file has already begins the next one."""
    file = PatchedFile({}, [])
    for key, text, number in _parts_of(patch):
        if len(key) == 1:
            file.lines.append((key, text, number))
            continue
        is_begun = key == _PAIR_KEY or key in file.names or (key == b"---" and b"+++" in file.names)
        if file.names and is_begun:
            yield file
            file = PatchedFile({}, [])
        file.names[key] = text
    if file.names:
        yield file


def _parts_of(patch: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield headers by their keywords, and lines of hunks by their signs, with numbers; no line is a header, too."""
    old, new, at = 0, 0, {b"-": 0, b"+": 0}
    for line in patch.split(b"\n"):
        if old > 0 or new > 0:
            sign = line[:1] or b" "
            yield sign, line[1:], at[b"-" if sign == b"-" else b"+"]
            for side in (b"-", b"+"):
                at[side] += sign in (b" ", side)
            old, new = old - (sign in (b" ", b"-")), new - (sign in (b" ", b"+"))
        elif hunk := _HUNK.match(line):
            at = {b"-": int(hunk[1]), b"+": int(hunk[3])}
            old, new = (int(hunk[side] or 1) for side in (2, 4))
        elif header := _HEADER.match(line):
            yield header[1], header[2] if header[1] == _PAIR_KEY else _unquote_path(header[2]), 0


def lines_of_files(patch: bytes) -> dict[str, list[int]]:
    """Return the line numbers that the hunks of each file show: of the new file, or of the old one if it is deleted."""
    files = ((file, b" -" if file.names.get(b"+++") == b"/dev/null" else b" +") for file in files_of(patch))
    return {file.path: [number for sign, _, number in file.lines if sign in signs] for file, signs in files}


def _unquote_path(name: bytes) -> bytes:
    """Read a name as git quotes it: in double quotes, with escapes and octal numbers."""
    if not name.startswith(b'"'):
        return name
    return _unescape(name[1:].rpartition(b'"')[0])


def _unescape(text: bytes) -> bytes:
    return _ESCAPE.sub(
        lambda hit: bytes([int(hit[1], 8) & 255]) if len(hit[1]) == 3 else hit[1].translate(_CONTROLS), text
    )


def has_new_markers(old: bytes, new: bytes) -> bool:
    """Return whether a content has more markers of a conflict than it had."""
    return b"<<<<<<<" in new and _triples(new) > _triples(old)


def marked_files(patch: bytes) -> list[str]:
    """List the files in which the added lines of a patch have a whole marker triple."""
    files = files_of(patch) if b"\n+<<<<<<<" in patch else ()
    return [file.path for file in files if _triples(b"\n".join(text for sign, text, _ in file.lines if sign == b"+"))]


def _triples(content: bytes) -> int:
    """Count whole marker triples: a beginning, a middle and an end, in this order."""
    found, wanted = 0, 0
    for mark in _MARK.findall(content):
        sign = b"<=>".index(mark[:1])
        if sign == 0:
            wanted = 1
        elif sign == wanted:
            wanted = 2 if wanted == 1 else 0
            found += sign == 2
    return found


def marker_findings(paths: Iterable[str]) -> Iterator[Finding]:
    """Warn of files with the markers of a conflict: a person has to look."""
    for path in paths:
        message = f"`{path}` has the markers of an unresolved conflict (`<<<<<<<`, `=======`, `>>>>>>>`)."
        hint = "Resolve the conflict in these lines, and remove the markers."
        yield warning("conflict-markers", message, "/patch", hint=hint)
