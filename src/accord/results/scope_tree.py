"""The entries of a scope list as a tree: which of them are folders or titles of those below, and the paths. Pure.

An entry is a folder by its form: it has a slash, backticks, or a small letter. Other words are titles, at any depth.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from accord.core.frozen import Frozen
from accord.results.scope_entries import FILE_NAME
from accord.results.scope_words import NONE, is_sure

_ASIDE = re.compile(r"\(.*\)|.*[:\uff1a]", re.DOTALL)


@dataclass
class ScopeEntry:
    """An entry of a list, a line or a row: its paths, those in it, and whether it names more than was read."""

    line: int
    text: str
    paths: list[str] = field(default_factory=list)
    inner: list[ScopeEntry] = field(default_factory=list)
    named: set[str] = field(default_factory=set)  # paths in its description
    has_more: bool = False
    is_title: bool = False
    is_bare: bool = False  # its path is one plain word, as the first word of a description
    is_word: bool = False  # its paths are plain words, which may be folders of what is below
    can_title: bool = False  # its paths begin with a capital, and have no sign of a path
    is_phrase: bool = False  # words that no form explains are beside its path, which may turn its meaning
    is_remark: bool = False  # in scope, in a paragraph beside a list, such words make a sentence about its path
    is_sentence: bool = False  # in scope, its path is an entry only if another entry has it
    is_vague: bool = False  # out of scope, such words may make an exception of its path, or of those below
    is_owned: bool = False
    is_negated: bool = False

    @property
    def folder(self) -> str:
        """The folder that entries below this one are in."""
        name = posixpath.basename(self.paths[0]) if len(self.paths) == 1 else "."
        return "" if "." in name or is_file(name) else self.paths[0]


def is_file(name: str) -> bool:
    """Return whether a plain name is a file's, such as ``Makefile``; one in capitals may be a word."""
    return FILE_NAME.fullmatch(name) is not None and not name.isupper()


class _Above(Frozen):
    """The folders above an entry: those that it is read in, from the outer one on, and those that it may be in."""

    folders: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    is_path: bool = False
    is_vague: bool = False


@dataclass
class _Tree:
    """The lines that are unread, the paths in scope for the list of those out of scope, and what words above are."""

    unread: list[tuple[int, str]]
    listed: Set[str] | None
    has_titles: bool


def collect_paths(top: ScopeEntry, unread: list[tuple[int, str]], listed: Set[str] | None) -> list[str]:
    """Return the paths of an entry and of those in it, and add the lines that are not wholly read."""
    return _collect(top, _Above(), unread, _Tree(unread, listed, _has_titles(top)))


def _collect(entry: ScopeEntry, above: _Above, vague: list[tuple[int, str]], tree: _Tree) -> list[str]:
    """Return the paths of an entry and of those in it; what names none below a path describes that path, or is vague.

    Below a path, an entry that does not begin with its own may be an exception: it is unread, and its folder stays.
    Out of scope, so may be one with a description, and the folder stays beside others below it.
    """
    if not entry.text:
        return []
    is_out, is_vague, folder = tree.listed is not None, above.is_vague or entry.is_vague, entry.folder
    if entry.is_title:
        _settle(entry)
        folder = entry.folder
    elif entry.can_title and not above.folders and has_paths(entry):
        entry.is_title = True
        entry.paths = entry.paths if is_out and not tree.has_titles else []
    own = [_within(above.folders, path) for path in entry.paths]
    lost: list[tuple[int, str]] = []
    inner: list[str] = []
    before = len(tree.unread)
    is_inner = bool(own) and not entry.is_title
    for each in entry.inner:
        each.paths = [path for path in each.paths if not is_inner or folder or is_sure(path)]
        folders, others = _folders(entry, folder, each, above, tree)
        inner += _collect(each, _Above(folders, others, is_inner, is_vague), lost, tree)
    has_unread = is_out and (len(tree.unread) > before or bool(lost))
    entry.is_phrase |= is_out and bool(lost)
    is_beside = above.is_path and entry.is_bare and not any(map(is_file, entry.paths))
    if is_beside and not inner:  # one word, perhaps about the path above
        (vague if _is_remark(entry) else tree.unread).append((entry.line, entry.text))
        return []
    if not own or inner or entry.is_title:
        vague += lost
    entry.has_more |= not inner and own != [_within(above.others, path) for path in entry.paths]
    is_answer = entry.is_title or NONE.fullmatch(entry.text) or _ASIDE.fullmatch(entry.text)
    is_barred = bool(own or inner) and (entry.is_negated or (above.is_path and (entry.is_phrase or not own)))
    is_barred |= (is_vague or entry.has_more) and any(path.rstrip("*/") in (tree.listed or ()) for path in own)
    if entry.has_more or is_barred:
        tree.unread.append((entry.line, entry.text))
    elif not (own or inner or is_answer):
        vague.append((entry.line, entry.text))
    if is_barred:
        return []
    is_whole = entry.has_more or (is_out and (has_unread or entry.is_owned))
    return inner if inner and folder and not is_whole else own + inner


def _folders(
    entry: ScopeEntry, folder: str, each: ScopeEntry, above: _Above, tree: _Tree
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders that an entry in another is read in, and those that it may be in."""
    if not folder:
        return above.folders, above.others
    deeper, others = ((*outer, _within(outer, folder)) for outer in (above.folders, above.others))
    if entry.can_title:
        if above.folders:
            return deeper, above.others
        return above.folders, above.others if tree.has_titles else others
    is_apart = entry.is_word and not above.folders and any(_is_apart(path, folder) for path in _nearest([each]))
    return above.folders if is_apart else deeper, others


def _settle(title: ScopeEntry) -> None:
    """Leave to a title its path if that is surely a folder of all below it, or a path without other words."""
    below = [path for path in _nearest(title.inner) if _within((title.folder,), path) != path]
    is_apart = bool(title.folder) and any("/" in path or title.is_phrase for path in below)
    title.has_more |= is_apart and "/" in title.text
    if is_apart or title.is_phrase or (title.is_bare and title.inner):
        title.paths = []


def _nearest(entries: Iterable[ScopeEntry]) -> Iterator[str]:
    """Yield the paths of entries, or of those below an entry that is a title or a word, in any order."""
    left = [*entries]
    while left:
        each = left.pop()
        if each.inner and (not each.paths or each.is_word or each.can_title):
            left += each.inner
        else:
            yield from each.paths


def _has_titles(top: ScopeEntry) -> bool:
    """Return whether words are titles: a path below one has a folder of its own."""
    left = [(each, "", "") for each in top.inner]
    while left:
        each, title, folder = left.pop()
        if each.can_title and each.inner and not folder:
            title = each.folder or each.text
        else:
            paths = [_within((folder,), path) for path in each.paths]
            if title and any(_is_apart(path, title) for path in paths):
                return True
            folder = paths[0] if each.folder else folder
        left += [(entry, title, folder) for entry in each.inner]
    return False


def has_paths(entry: ScopeEntry) -> bool:
    """Return whether something below an entry is more than a word that describes it."""
    left = [*entry.inner]
    while left:
        each = left.pop()
        if each.paths and not _is_remark(each):
            return True
        left += each.inner
    return False


def _is_remark(entry: ScopeEntry) -> bool:
    """Return whether an entry is one word that describes what is above it, as it is not like a name."""
    return entry.is_bare and (not entry.paths or (entry.can_title and not entry.paths[0].isupper()))


def _is_apart(path: str, folder: str) -> bool:
    """Return whether a path below a folder may stand for itself, as it has another one."""
    return "/" in path and not path.startswith((f"{folder}/", "../"))


def _within(folders: Sequence[str], path: str) -> str:
    """Return a path in the inner one of folders, unless it begins with one of them."""
    folder = folders[-1] if folders else ""
    is_whole = not folder or path == folder or any(path.startswith(f"{each}/") for each in folders)
    return path if is_whole else posixpath.normpath(posixpath.join(folder, path))
