"""The paths under In Scope and Out of Scope, however the author lists them, and the lines that name none. Pure.

Source: workflow contracts, "Task Issue Template"; every entry and block is read, or named as unread.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from accord.results.scope_words import (
    NO_PATH,
    NONE,
    SYMBOL,
    has_unread_part,
    names_file,
    paths_of,
    read_place,
    words_of,
)
from accord.text.block_syntax import Block
from accord.text.hidden import GUARD
from accord.text.outline import Section, shown_text

_BETWEEN = frozenset([",", ";", "and", "or", "&", "+", "|", "/", "→", "->", "=>"])
_DESCRIPTION = ("\N{EM DASH}", "\N{EN DASH}", "-", "#", ":")
_FOLDER = re.compile(r"(?:folder|director(?:y|ies)|dir|path|location)s?", re.IGNORECASE)
_FILES = re.compile(r"(?:file|file ?name|name)s?", re.IGNORECASE)
"""The heads of a column of folders, and of one of files in them."""
_DRAWN = re.compile(r"[\u2500-\u257f]")
"""Lines of a drawing, such as a tree, whose names are parts of paths."""
_FOLD = re.compile(r"\s*(?:</?details\b[^<>]*>|<summary>.*</summary>)\s*", re.IGNORECASE)
_NEGATED = re.compile(r"(?:not|no|never|neither|nor|without|except|exclu\w+|\w+n['\u2019]t)(?!\w)", re.IGNORECASE)
_OWNED = re.compile(r"(?:owned by #\S+)?", re.IGNORECASE)
_LIKE_FILE = re.compile(r"[^/].*/|\..+|.*(?:[^/]/.+|\*.*|\.[A-Za-z]\w{0,3})", re.DOTALL)
"""Words in a description that name a file or a folder, and no attribute of an object such as ``Parser.read_all``."""


@dataclass(frozen=True)
class ScopeList:
    """The normalised paths of a section, each once, and the lines that name none, with their number in the body."""

    paths: tuple[str, ...] = ()
    unread: tuple[tuple[int, str], ...] = ()


@dataclass
class _Entry:
    """An entry of a list, a line or a row: its paths, those in it, and whether it names more than was read."""

    line: int
    text: str
    paths: list[str] = field(default_factory=list)
    inner: list[_Entry] = field(default_factory=list)
    named: set[str] = field(default_factory=set)  # paths in its description
    has_more: bool = False
    is_bare: bool = False  # its path is one plain word, as the first word of a description
    is_phrase: bool = False  # words are beside its path, which may turn its meaning
    is_negated: bool = False

    @property
    def folder(self) -> str:
        """The folder that entries below this one are in."""
        return self.paths[0] if len(self.paths) == 1 and "." not in posixpath.basename(self.paths[0]) else ""


def read_scope(sections: Iterable[Section], *, is_out: bool = False) -> ScopeList:
    """Read a section and those below it. In scope, a path behind a negation is not read; out of scope it ``is_out``."""
    paths: dict[str, None] = {}
    unread: list[tuple[int, str]] = []
    for section in sections:
        for entry in _entries(section, is_out=is_out):
            paths |= dict.fromkeys(_collect(entry, "", unread, unread, is_out=is_out))
    return ScopeList(tuple(paths), tuple(sorted(unread)))


def _collect(
    entry: _Entry,
    above: str,
    unread: list[tuple[int, str]],
    vague: list[tuple[int, str]],
    *,
    is_out: bool,
    is_below: bool = False,
) -> list[str]:
    """Return the paths of an entry and of those in it; what names none below a path describes that path, or is vague.

    Below a path, an entry that does not begin with its own may be an exception: it is unread, and its folder stays.
    Out of scope, so may be one with a description, and the folder stays beside others below it.
    """
    if not entry.text:
        return []
    own = [_within(above, path) for path in entry.paths]
    lost: list[tuple[int, str]] = []
    inner: list[str] = []
    before = len(unread)
    for each in entry.inner:
        is_apart = entry.is_bare and not above and _is_apart(each, entry.folder)
        each.has_more |= is_apart
        folder = "" if is_apart else _within(above, entry.folder)
        inner += _collect(each, folder, unread, lost, is_out=is_out, is_below=bool(own))
    has_unread = is_out and (len(unread) > before or bool(lost))
    entry.is_phrase |= is_out and bool(lost)
    if is_below and entry.is_bare and not inner:  # one word, which describes the path above
        return []
    if not own or inner:
        vague += lost
    is_answer = NONE.fullmatch(entry.text) or entry.text.endswith(":") or entry.text[0] + entry.text[-1] == "()"
    is_barred = bool(own or inner) and (entry.is_negated or (is_below and (entry.is_phrase or not own)))
    if entry.has_more or is_barred:
        unread.append((entry.line, entry.text))
    elif not (own or inner or is_answer):
        vague.append((entry.line, entry.text))
    if is_barred:
        return []
    return inner if inner and entry.folder and not (entry.has_more or has_unread) else own + inner


def _is_apart(entry: _Entry, word: str) -> bool:
    """Return whether an entry below a word, a folder or a title, has a longer path that may stand for itself."""
    return any("/" in path and not path.startswith((f"{word}/", "../")) for path in entry.paths)


def _within(folder: str, path: str) -> str:
    is_whole = not folder or path == folder or path.startswith(f"{folder}/")
    return path if is_whole else posixpath.normpath(posixpath.join(folder, path))


def _entries(section: Section, *, is_out: bool) -> list[_Entry]:
    """Return the entries at the top: of lists, with those in them, lines of paragraphs and code, and rows of tables.

    Those behind a label line that is not the first, or below a heading that negates, are in that label's entry.
    """
    is_negated = not is_out and _NEGATED.match(section.title) is not None
    top = _Entry(section.line, section.title, is_negated=is_negated)
    every: list[_Entry] = []
    known: dict[Block | None, _Entry] = {None: top}
    labels: dict[Block | None, _Entry] = {}
    for block in section.blocks:
        items: list[Block | None] = [*(each for each in block.around if each.kind == "item"), None]
        is_first = bool(len(items) > 1 and block.texts) and items[0] not in known
        lines = [(block.first + 1, shown_text(block.texts[0]))] if is_first else _lines(block)
        found = [_read(text, line, is_out=is_out) for line, text in lines]
        place = next(each for each in items if each in known)
        above = known[place]
        known |= {items[0]: found[0]} if is_first else {}
        every += found
        is_text = block.kind == "paragraph" and not is_first
        if is_text:
            labels.pop(place, None)
        holder = labels.get(place, above)
        if is_first or not holder.paths:
            holder.inner += found
        else:  # further text below a path describes it
            holder.has_more |= block.kind in ("fence", "code", "table") or any(each.is_negated for each in found)
            holder.has_more |= any(map(names_file, (path for each in found for path in {*each.paths} | each.named)))
            holder.is_phrase |= is_out
        if is_text and (label := _label(block, above, is_out=is_out)):
            labels[place] = label
            above.inner.append(label)
    listed = {path for each in every for path in each.paths}
    for each in every:
        each.has_more |= not each.named <= listed
    return [top] if is_negated else top.inner


def _label(block: Block, above: _Entry, *, is_out: bool) -> _Entry | None:
    """Return the entry of a label line at the end of a paragraph, unless it is the first that introduces a list."""
    text = shown_text(block.lines[-1])
    if not text.endswith(":"):
        return None
    read = _read(text, block.first + len(block.lines), is_out=is_out)
    is_next = bool(above.paths) or any(each.paths or each.inner for each in above.inner)
    is_more = is_next or read.is_negated
    return _Entry(read.line, text, has_more=is_more, is_negated=is_next and read.is_negated) if is_more else None


def _lines(block: Block) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block that say something, with their numbers; of a table, the cells with paths of each row.

    The names in a tree that is drawn are parts of paths, so that its other lines say nothing.
    """
    if block.kind == "table":
        head, *rows = block.cells
        for number, row in enumerate([head, *(_in_folder(head, row) for row in rows)], block.first + 1):
            is_head = number == block.first + 1
            cells = [cell for cell in row if _read(cell, 0, is_out=False).paths and not cell.isalpha()]
            if not is_head or any(names_file(cell.strip("`")) for cell in cells):
                shown = [cell for cell in row if cell in cells or _NEGATED.match(cell)]
                yield number + (not is_head), " ".join(shown if cells else row)
        return
    is_fence = block.kind == "fence"
    lines = [*enumerate(block.lines[is_fence:], block.first + 1 + is_fence)]
    drawn = [(number, line) for number, line in lines if _DRAWN.search(line)]
    for number, line in drawn or lines:
        text = line.strip() if block.kind in ("fence", "code") else shown_text(line)
        is_intro = block.kind == "paragraph" and text.endswith(":")
        if text and not is_intro and not _FOLD.fullmatch(text):
            yield number, text


def _in_folder(head: Sequence[str], row: Sequence[str]) -> Sequence[str]:
    """Return a row with its files joined to its folder, or without the name of its file and words beside that."""
    titled = [(title.strip("*_`").casefold(), cell) for title, cell in zip(head, row, strict=False)]
    places = [(*each, path) for each in titled if _FOLDER.fullmatch(each[0]) for path in _read(each[1], 0).paths]
    files = {
        cell: [path for path in _read(cell, 0).paths if names_file(path) or "file" in title]
        for title, cell in titled
        if _FILES.fullmatch(title) and not _NEGATED.match(cell)
    }
    if len(places) != 1 or any("/" in path for paths in files.values() for path in paths):
        return row
    ((title, place, path),) = places
    if title[0] in "pl" and re.search(r"\w\.[A-Za-z]\w*\Z", path) and not place.strip("`*").endswith("/"):
        return [cell for cell in row if cell == place or {*files.get(cell, [""])} - {posixpath.basename(path)}]
    joined = {cell: " ".join(f"`{path}/{name}`" for name in names) for cell, names in files.items() if names}
    return [joined.get(cell, cell) for cell in row if not (joined and cell == place)]


def _read(text: str, line: int, *, is_out: bool = True) -> _Entry:
    """Read the paths that an entry names before it describes them, or the first one that it names at all."""
    entry = _Entry(line, text)
    words = [] if _DRAWN.search(text) else [*words_of(text.replace(GUARD, ""))]
    taken: set[str] = set()
    is_described = is_beside = is_cut = is_behind = False
    for word, is_marked, following in _outside_brackets(words):
        if word in _BETWEEN:
            is_described, is_beside = is_described and not entry.paths, False
        elif word in _DESCRIPTION and (entry.paths or is_described):
            break
        elif not (is_out or is_marked or entry.paths) and _NEGATED.match(word):
            entry.is_negated = True
            break
        elif not (is_out and SYMBOL.search(posixpath.basename(read_place(word)[0]))) and (
            paths := paths_of(word, following, is_marked=is_marked, is_first=not (entry.paths or is_described))
        ):
            if is_beside and not is_marked and not names_file(entry.paths[-1]):  # a path with a blank, perhaps
                return _Entry(line, text)
            entry.has_more = bool(entry.paths) and is_described
            if entry.has_more:
                break
            taken.add(word)
            is_behind = is_behind or is_described
            entry.paths += paths
            entry.is_bare = len(words) == 1 and not is_marked and not re.search(r"[/.*]", word)
            is_described, is_beside = False, not is_marked
        else:
            is_described, is_beside = True, False
            is_cut = is_cut or ("/" in word and has_unread_part(word, is_out=is_out))
        if entry.paths and word.endswith(":"):
            break
    is_sentence = bool(entry.paths) and is_described and (text.endswith(":") or (is_behind and not is_out))
    entry.is_phrase = is_behind
    entry.has_more = entry.has_more or is_cut or is_sentence or _describe(entry, words, taken, is_out=is_out)
    return entry


def _describe(entry: _Entry, words: Sequence[tuple[str, bool]], taken: Iterable[str], *, is_out: bool) -> bool:
    """Note the paths in an entry's description; return whether it leaves out a part of the entry."""
    rest = [each for word, _ in words if word not in taken for each in re.split(r"[\s(),;]+", word) if each]
    stripped = [each.strip("*_`'\"").rstrip(".:") for each in rest]
    named = {read_place(each)[0] for before, each in pairwise(["", *stripped]) if before.casefold() != "see"}
    inside = tuple(f"{path}/" for path in entry.paths)
    remark = " ".join(each for each in rest if each not in _BETWEEN)
    entry.is_phrase |= is_out and _OWNED.fullmatch(remark) is None
    entry.named = {
        posixpath.normpath(each)
        for each in named
        if not NO_PATH.search(each) and "<" not in each and names_file(each) and _LIKE_FILE.fullmatch(each)
    } - {*entry.paths}
    is_negated = not is_out and bool(entry.paths) and any(_NEGATED.match(each) for each in rest[:4])
    return is_negated or any(each.startswith(inside) and each not in inside for each in named)


def _outside_brackets(words: Sequence[tuple[str, bool]]) -> Iterator[tuple[str, bool, str]]:
    """Yield the words outside of round brackets, whether each is marked, and the word behind it."""
    depth = 0
    for (word, is_marked), (following, _) in pairwise([*words, ("", False)]):
        if depth or word.startswith("("):
            depth = max(0, depth + (0 if is_marked else word.count("(") - word.count(")")))
        else:
            yield word, is_marked, following
