"""The entries of a scope list as a tree: which of them are folders or titles of those below, and the paths. Pure.

An entry is a folder by its form: it has a slash, backticks, or a small letter. Other words are titles, at any depth.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from accord.core.frozen import Frozen
from accord.results.scope_words import NONE, OWNED, is_file, is_sure, names_file

_SILENT = re.compile(rf"(?:\(.*\)|.*[:\uff1a]|{NONE.pattern})?", re.IGNORECASE | re.DOTALL)
"""Entries that say nothing of paths: remarks in brackets, titles with nothing below, and ``None``."""


class Doubt(IntEnum):
    """The doubt that the words of an entry cast on its paths, from the least to the most."""

    PLAIN = 0
    WORDED = 1  # other words are beside the paths
    COUNTED = 2  # the entry is unread, and its paths count
    LEFT_OUT = 3  # the entry and all below it are unread


@dataclass(eq=False)
class ScopeEntry:
    """An entry of a list, a line or a row: its paths, those that its description mentions, and the entries in it."""

    line: int
    text: str
    paths: list[str] = field(default_factory=list)
    mentions: set[str] = field(default_factory=set)
    doubt: Doubt = Doubt.PLAIN
    inner: list[ScopeEntry] = field(default_factory=list)

    @property
    def folder(self) -> str:
        """The folder that entries below this one are in."""
        name = posixpath.basename(self.paths[0]) if len(self.paths) == 1 else "."
        return "" if "." in name or is_file(name) else self.paths[0]

    @property
    def has_file(self) -> bool:
        """Whether a path has an extension, a wildcard, a slash behind it, or the name of a file."""
        has_form = any(names_file(each) or is_file(each) for each in self.paths)
        return has_form or any(f"{each}/" in self.text for each in self.paths[:1])

    @property
    def is_word(self) -> bool:
        """Whether its paths are plain words, which may be folders, titles or a description."""
        is_marked = "`" in self.text or self.has_file or any("/" in each for each in self.paths)
        return bool(self.paths) and not is_marked

    @property
    def can_title(self) -> bool:
        """Whether it has no path, or words with a capital, such as ``UI/UX``."""
        has_capitals = all(each[0].isalpha() and not each[0].islower() for each in self.paths)
        return not self.paths or (has_capitals and "`" not in self.text and not self.has_file)

    @property
    def is_title(self) -> bool:
        """Whether it is only a title of the entries in it."""
        return self.can_title and self.has_paths

    @property
    def has_paths(self) -> bool:
        """Whether an entry in it has a path."""
        return any(each.paths for inner in self.inner for each in _entries(inner))


class ScopeTitle(ScopeEntry):
    """A heading, a line in bold, or one that ends with a colon. Its path is the folder of those below it."""


class _Above(Frozen):
    """The folder that entries are read in, the one that they may be in, and whether they are below a path."""

    folder: str = ""
    other: str = ""
    is_path: bool = False


@dataclass
class _Tree:
    """The lines that are unread, the paths of entries, and whether words with a capital are titles in this list."""

    is_out: bool
    listed: set[str]
    has_titles: bool
    unread: list[tuple[int, str]] = field(default_factory=list)


def collect_paths(top: ScopeTitle, *, is_out: bool) -> tuple[list[str], list[tuple[int, str]]]:
    """Return the paths of an entry and of those in it, and the lines that are not wholly read."""
    every = [*_entries(top)]
    listed = {path for each in every for path in each.paths if path not in each.mentions}
    words = (each for each in every if each.paths and each.is_title)
    has_titles = any(_is_apart(path, each.paths[0]) for each in words for path in _nearest(each.inner))
    tree = _Tree(is_out, listed, has_titles)
    return _collect(top, _Above(), tree, tree.unread), tree.unread


def _collect(entry: ScopeEntry, above: _Above, tree: _Tree, silent: list[tuple[int, str]]) -> list[str]:
    """Return the paths of an entry and of those in it.

    An entry without one describes the path above, unless others below that have paths; elsewhere it is unread.
    """
    line, is_head, has_paths = (entry.line, entry.text), isinstance(entry, ScopeTitle), entry.has_paths
    if is_head and entry.inner and entry.is_word:
        entry.paths = []
    barring = Doubt.LEFT_OUT if not above.is_path else Doubt.WORDED if tree.is_out else Doubt.COUNTED
    is_barred = entry.doubt >= barring and bool(entry.paths or has_paths or not above.is_path)
    is_unclear = entry.is_word and not has_paths  # a name or a description
    is_unclear |= has_paths and not entry.paths  # a label
    if is_barred or (is_unclear and above.is_path):
        tree.unread.append(line)
        return []
    if is_head and not entry.paths:
        _doubt_titles(entry.inner)
    inside, lost, count = _inside(entry, above, tree), list[tuple[int, str]](), len(tree.unread)
    inner: list[str] = []
    for each in entry.inner:
        each.paths = [path for path in each.paths if entry.folder or not inside.is_path or is_sure(path)]
        inner += _collect(each, inside, tree, lost)
    if inner or not inside.is_path:
        silent += lost
    if not (entry.paths or has_paths or is_head or _SILENT.fullmatch(entry.text)):
        silent.append(line)
    own, others = ([_join(each, path) for path in entry.paths] for each in (above.folder, above.other))
    is_unread = entry.doubt >= Doubt.COUNTED or not entry.mentions <= tree.listed or (not has_paths and own != others)
    if tree.is_out and above.is_path and lost and not inner:  # perhaps about an exception
        own, is_unread = [], True
    tree.unread += [line] if is_unread else []
    is_whole = is_unread or (tree.is_out and (len(tree.unread) > count or OWNED.search(entry.text) is not None))
    if entry.is_title and not is_head:
        return own + inner if tree.is_out and not tree.has_titles else inner
    return inner if inner and entry.folder and (is_head or not is_whole) else own + inner


def _inside(entry: ScopeEntry, above: _Above, tree: _Tree) -> _Above:
    """Return the folders of the entries in one. A path below with another folder makes a word or a title doubtful."""
    is_head = isinstance(entry, ScopeTitle)
    is_path = bool(entry.paths) and not is_head and not entry.is_title
    if not entry.folder:
        return _Above(above.folder, above.other, is_path)
    folder, other = (_join(each, entry.folder) for each in (above.folder, above.other))
    if entry.is_title and not is_head:
        return _Above(folder, above.other) if above.folder else _Above("", "" if tree.has_titles else other)
    is_loose = is_head or (entry.is_word and not above.folder)
    is_apart = is_loose and any(_is_apart(path, folder) for path in _nearest(entry.inner))
    return _Above(above.folder if is_apart else folder, other, is_path)


def _doubt_titles(entries: Iterable[ScopeEntry]) -> None:
    """Leave unread the titles without a path that are beside paths without a title."""
    if any(each.paths and not each.has_paths for each in entries):
        for title in (each for each in entries if each.is_title):
            title.doubt = max(title.doubt, Doubt.COUNTED)


def _entries(top: ScopeEntry) -> Iterator[ScopeEntry]:
    """Yield an entry and those in it, in any order."""
    left = [top]
    while left:
        yield (each := left.pop())
        left += each.inner


def _nearest(entries: Iterable[ScopeEntry]) -> Iterator[str]:
    """Yield the paths of entries, or of those below an entry that is a title or a word, in any order."""
    left = [*entries]
    while left:
        each = left.pop()
        is_above = each.has_paths and (each.is_word or each.is_title)
        left += each.inner if is_above else []
        yield from () if is_above else each.paths


def _is_apart(path: str, folder: str) -> bool:
    """Return whether a path below a folder may stand for itself, as it has another one."""
    return "/" in path and path.split("/")[0] not in (folder.split("/")[0], "..")


def _join(folder: str, path: str) -> str:
    """Return a path in a folder, unless it begins with the first name of that."""
    is_whole = not folder or path.split("/")[0] == folder.split("/")[0]
    return path if is_whole else posixpath.normpath(posixpath.join(folder, path))
