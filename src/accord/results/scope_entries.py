"""Entries of scope lists as sets of paths: which paths they have, and which entries share some. Pure.

An entry is a file, a folder with all below it, or a glob.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice, product, takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from accord.files.patterns import path_patterns

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Scopes: TypeAlias = "tuple[Sequence[str], Sequence[str]]"
"""The entries in scope, and those out of scope."""

_ANY_DEPTH = re.compile(r"/(?:\*\*(?=/)|\*+\Z)")
"""Wildcards that may stand for no folder at all."""

_MOST_IN_FOLDER = 100
"""Further patterns of a folder are not compared with each other."""

_MOST_COMPARED = 20_000
"""Further pairs of a glob and an entry are not compared."""

_LONGEST_COMPARED = 200
"""Paths with more names, multiplied by those of the other, share nothing."""

FILE_NAME = re.compile(r".+\.[a-z*?][\w*?-]*|\.\w*(?:ignore|rc|env)|[A-Z_]*[A-RT-Z]|[A-Z]\w*(?<!ro)file", re.DOTALL)
"""A name that is surely a file's, such as ``a.py``, ``LICENSE`` or ``Makefile``; others may be of files and folders."""

_WILDCARD = re.compile(r"[*?]")
_SPECIAL = re.compile(r"([\\#!\[\]])")
_SPECIAL_IN_GLOB = re.compile(r"([#!\[\]])")


def _holds(path: str, entry: str) -> bool:
    return _matcher(entry).match_file(path)


def is_in_scope(path: str, scopes: Scopes, admits: Callable[[str, str], bool] = _holds) -> bool:
    """Return whether an entry in scope ``admits`` a path. It outweighs one out of scope only where it is narrower."""
    listed, excluded = scopes
    barring = [entry for entry in excluded if _holds(path, entry)]
    return any(
        admits(path, entry) and all(is_part(entry, wider) and not is_part(wider, entry) for wider in barring)
        for entry in listed
    )


def is_part(entry: str, other: str) -> bool:
    """Return whether all paths of an entry are paths of another, as far as the two texts tell."""
    return all(_holds(f"{each}/-".lstrip("/"), other) for each in {entry, _ANY_DEPTH.sub("", f"/{entry}")})


def wider_entries(entries: Iterable[str]) -> dict[str, list[str]]:
    """Return for each entry those that have all its paths: itself, then folders and patterns of folders above it."""
    by_folder: dict[str, list[str]] = {}
    for entry in dict.fromkeys(entries):
        folder = "/".join(takewhile(lambda name: not _WILDCARD.search(name), entry.split("/")))
        by_folder.setdefault(folder or ".", []).append(entry)
    found = {entry: [entry] for in_folder in by_folder.values() for entry in in_folder}
    for entry, wider in found.items():
        above = (str(folder) for folder in (PurePosixPath(entry), *PurePosixPath(entry).parents))
        others = (each for folder in above for each in by_folder.get(folder, ())[:_MOST_IN_FOLDER])
        wider += [each for each in others if each != entry and is_part(entry, each)]
    return found


def crossing_entries(entries: Iterable[str]) -> dict[str, list[str]]:
    """Return for each entry those that may have some of its paths, if one of the two is a glob."""
    found: dict[str, dict[str, None]] = {entry: {} for entry in entries}
    globs = (entry for entry in found if _WILDCARD.search(entry))
    for entry, glob in islice(product(found, globs), _MOST_COMPARED):
        if glob != entry and entry not in found[glob] and _crosses(glob, entry):
            found[glob][entry] = found[entry][glob] = None
    return {entry: [*crossing] for entry, crossing in found.items()}


def _crosses(one: str, other: str) -> bool:
    """Return whether two entries have a path in common: their names, in order, agree, and ``**`` is any of them."""
    a, b = (
        [*path.split("/"), *([] if FILE_NAME.fullmatch(posixpath.basename(path)) else ["**"])] for path in (one, other)
    )
    places, seen = [(0, 0)], set[tuple[int, int]]()
    while places and len(a) * len(b) <= _LONGEST_COMPARED:
        i, j = places.pop()
        if (i, j) == (len(a), len(b)):
            return True
        if (i, j) not in seen:
            seen.add((i, j))
            left, right = a[i : i + 1], b[j : j + 1]
            is_any = "**" in (*left, *right)
            places += [(i + 1, j)] if left and is_any and (right or left == ["**"]) else []
            places += [(i, j + 1)] if right and is_any and (left or right == ["**"]) else []
            places += [(i + 1, j + 1)] if left and right and not is_any and _agree(left[0], right[0]) else []
    return False


def _agree(one: str, other: str) -> bool:
    """Return whether a name may match both: of two with wildcards, as far as their beginnings and ends tell."""
    for name, pattern in ((one, other), (other, one)):
        if not _WILDCARD.search(name):
            return fnmatchcase(name, pattern.replace("[", "[[]"))
    a, b = _WILDCARD.split(one), _WILDCARD.split(other)
    return (a[0].startswith(b[0]) or b[0].startswith(a[0])) and (a[-1].endswith(b[-1]) or b[-1].endswith(a[-1]))


@lru_cache(maxsize=8192)
def _matcher(entry: str) -> GitIgnoreSpec:
    """Return the .gitignore pattern for a file, a folder or a glob; brackets are part of a name."""
    special = _SPECIAL_IN_GLOB if _WILDCARD.search(entry) else _SPECIAL
    pattern = "**" if entry == "." else special.sub(r"\\\1", entry).lstrip("/")
    return path_patterns([f"/{pattern}"])
