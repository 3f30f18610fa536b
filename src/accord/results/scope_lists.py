"""The paths under In Scope and Out of Scope, however the author lists them, and the lines that name none. Pure.

Source: workflow contracts, "Task Issue Template"; every entry and block is read, or named as unread.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from enum import IntEnum

from accord.core.frozen import Frozen
from accord.results.scope_words import (
    BETWEEN,
    NONE,
    OWNED,
    entry_words,
    head_letters,
    is_file,
    is_sure,
    mentioned_paths,
    names_file,
    paths_of,
    with_colon,
)
from accord.text.block_syntax import Block
from accord.text.hidden import GUARD
from accord.text.outline import Section, shown_text

_FORMS = tuple(
    map(re.compile, (r"(?:[^PS]*:)?(,*[PSNw](?:,+[PSNw])*,*)\Z", r".*?(P(?:,*[PS]|,+N)*)", r".*?([SN](?:,*[SN])*)"))
)
"""Where the paths are among the words of a head, by their letters: a list, else the first paths, else names."""
_UNMARKED = re.compile(r"[-\u2013\u2014\s]*|no|none|n/a", re.IGNORECASE)
_DRAWN = re.compile(r"[\u2500-\u257f]|\A[|\s]*[|`+\\]--+\s")
"""Lines of a drawing, such as a tree, whose names are parts of paths."""
_FOLD = re.compile(r"\s*(?:</?details\b[^<>]*>|<summary>.*</summary>)\s*", re.IGNORECASE)
_LABEL = re.compile(r".*[:\uff1a][*_]*|\*\*(?!/)[^*]+\*\*|__[^_]+__", re.DOTALL)
"""A line of a paragraph that is a title."""
_SILENT = re.compile(rf"(?:\(.*\)|.*[:\uff1a]|{NONE.pattern})?", re.IGNORECASE | re.DOTALL)
"""Entries that say nothing of paths: remarks in brackets, titles with nothing below, and ``None``."""
_LEFT_OUT = re.compile(
    r"(?<![\w-])(?:(but|except\w*|excluding|other than|outside|unless|besides?|apart|aside|minus|save for"
    r"|(?:not|\w+n['\u2019]t) in\W*\Z)|no(?![.\w])|not|nor|never|neither|cannot|\w+n['\u2019]t|without|leave|excluded?"
    r"|out of scope|off limits|(?:read|reference)[ -]only|un(?:changed|modified|touched)|owned by)(?![\w-])"
    r"|\A\W*out\W*\Z|[\u26d4\u2717\u2718\u274c\U0001f6ab]",
    re.IGNORECASE,
)
"""The words that leave a path out of a list; the first group are those of an exception."""


class ScopeList(Frozen):
    """The normalised paths of a section, each once, and the lines that name none, with their number in the body."""

    paths: tuple[str, ...] = ()
    unread: tuple[tuple[int, str], ...] = ()


class _Doubt(IntEnum):
    """The doubt that the words of an entry cast on its paths, from the least to the most."""

    PLAIN = 0
    WORDED = 1  # other words are beside the paths
    COUNTED = 2  # the entry is unread, and its paths count
    LEFT_OUT = 3  # the entry and all below it are unread


@dataclass(eq=False)
class _Entry:
    """An entry of a list, a line or a row: its paths, those that its description mentions, and the entries in it."""

    line: int
    text: str
    paths: list[str] = field(default_factory=list)
    mentions: set[str] = field(default_factory=set)
    doubt: _Doubt = _Doubt.PLAIN
    is_head: bool = False  # a heading, a line in bold, or one that ends with a colon
    inner: list[_Entry] = field(default_factory=list)

    def every(self) -> Iterator[_Entry]:
        """Yield it and the entries in it, in any order."""
        left = [self]
        while left:
            yield (each := left.pop())
            left += each.inner

    @property
    def folder(self) -> str:
        """The folder that entries below this one are in."""
        name = posixpath.basename(self.paths[0]) if len(self.paths) == 1 else "."
        return "" if "." in name or is_file(name) else self.paths[0]

    @property
    def has_form(self) -> bool:
        """Whether a path is in code, or has an extension, a wildcard, a slash behind it, or the name of a file."""
        has_slash = any(f"{each}/" in self.text for each in self.paths[:1])
        return "`" in self.text or has_slash or any(names_file(each) or is_file(each) for each in self.paths)

    @property
    def is_word(self) -> bool:
        """Whether its paths are plain words, which may be folders, titles or a description."""
        return bool(self.paths) and not self.has_form and not any("/" in each for each in self.paths)

    @property
    def has_paths(self) -> bool:
        """Whether an entry in it has a path."""
        return any(each.paths for inner in self.inner for each in inner.every())

    @property
    def is_title(self) -> bool:
        """Whether it is only a title of the entries in it: it has no path, or words with a capital, such as ``UI/UX``.

        So is a word or a head above a path with another folder.
        """
        has_capitals = all(each[0].isalpha() and not each[0].islower() for each in self.paths)
        is_loose = self.folder and (self.is_head or self.is_word)
        below = (path for each in self.every() for path in each.paths) if is_loose else ()
        is_apart = any(_is_apart(path, self.folder) for path in below)
        return self.has_paths and ((has_capitals and not self.has_form) or is_apart)


def read_scope(sections: Iterable[Section], listed: Iterable[str] | None = None) -> ScopeList:
    """Read a section and those below it: what is in scope, or out of scope, beside the paths that are ``listed`` in it.

    Out of scope, a listed path beside other words may be an exception.
    """
    known = None if listed is None else frozenset(path.rstrip("*/") for path in listed)
    top = _Entry(0, "", is_head=True)
    titles: list[tuple[int, _Entry]] = []
    for section in sections:
        title = _head(section.title, section.line, known) if titles else top
        title.paths = [] if title.is_word else title.paths
        _add_blocks(title, section.blocks, known)
        titles = [each for each in titles if each[0] < section.level]
        if titles:
            titles[-1][1].inner.append(title)
        titles.append((section.level, title))
    if known is None and len(top.inner) == 1 and top.inner[0].is_title:  # and it leaves out all that is listed
        top.inner[0].doubt = min(top.inner[0].doubt, _Doubt.COUNTED)
    listed = {path for each in top.every() for path in each.paths if path not in each.mentions}
    tree = _Tree(known is not None, listed)
    paths = _collect(top, "", False, tree)
    return ScopeList(tuple(dict.fromkeys(paths)), tuple(sorted({*tree.unread})))


@dataclass
class _Tree:
    """The paths of all entries, and the lines that are not wholly read."""

    is_out: bool
    listed: set[str]
    unread: list[tuple[int, str]] = field(default_factory=list)


def _collect(entry: _Entry, folder: str, is_below: bool, tree: _Tree) -> list[str]:
    """Return the paths of an entry, which may be below a path, and of those in it.

    Entries without a path describe the path above, unless others beside them have some; elsewhere they are unread.
    """
    has_paths, count = entry.has_paths, len(tree.unread)
    barring = _Doubt.LEFT_OUT if not is_below else _Doubt.WORDED if tree.is_out else _Doubt.COUNTED
    is_unclear = entry.is_word and not has_paths  # a name or a description
    is_unclear |= has_paths and not entry.paths  # a label
    if entry.doubt >= barring or (is_unclear and is_below):
        tree.unread.append((entry.line, entry.text))
        return []
    is_title = entry.is_title and not (is_below and folder and entry.paths)
    is_path = bool(entry.paths) and not is_title
    for each in entry.inner if is_path and not entry.folder else ():
        each.paths = [*filter(is_sure, each.paths)]  # others are names in the file
    if entry.is_head and not is_path and any(each.paths and not each.has_paths for each in entry.inner):
        for title in (each for each in entry.inner if each.is_title):
            title.doubt = max(title.doubt, _Doubt.COUNTED)  # beside paths without a title
    inside, inner = _join(folder, entry.folder) if is_path and entry.folder else folder, list[str]()
    is_list = any(each.paths or each.has_paths or each.doubt >= _Doubt.COUNTED for each in entry.inner)
    for each in entry.inner if is_list or entry.is_head or not is_path else ():
        inner += _collect(each, inside, is_path and not entry.is_head, tree)
    if not (entry.paths or has_paths or entry.is_head or _SILENT.fullmatch(entry.text)):
        tree.unread.append((entry.line, entry.text))
    if entry.doubt >= _Doubt.COUNTED or not entry.mentions <= tree.listed:
        tree.unread.append((entry.line, entry.text))
    if is_title:
        return inner
    is_whole = tree.is_out and (len(tree.unread) > count or OWNED.search(entry.text) is not None)
    is_whole |= entry.doubt >= _Doubt.COUNTED
    own = [_join(folder, path) for path in entry.paths]
    return inner if inner and entry.folder and (entry.is_head or not is_whole) else own + inner


def _is_apart(path: str, folder: str) -> bool:
    return "/" in path and path.split("/")[0] not in (folder.split("/")[0], "..")


def _join(folder: str, path: str) -> str:
    """Return a path in a folder, unless it begins with the first name of that."""
    is_whole = not folder or path.split("/")[0] == folder.split("/")[0]
    return path if is_whole else posixpath.normpath(posixpath.join(folder, path))


def _add_blocks(top: _Entry, blocks: Sequence[Block], known: Set[str] | None) -> None:
    """Add to a title the entries of lists, with those in them, lines of paragraphs and code, and rows of tables.

    Those behind a line that is a title are in the entry of that title. Further text below a path describes it.
    """
    kinds = {each.kind for block in blocks for each in (block, *block.around)}
    has_list = not kinds.isdisjoint(("item", "table", "fence", "code"))
    entries: dict[Block | None, _Entry] = {None: top}
    labels: dict[Block | None, _Entry] = {}
    for block in blocks:
        items: list[Block | None] = [*(each for each in block.around if each.kind == "item"), None]
        is_first = block.kind == "paragraph" and items[0] not in entries
        place = next(each for each in items if each in entries)
        nested: list[tuple[int, _Entry]] = []  # lines of code above deeper ones
        for depth, entry in _entries(block, known, is_first=is_first):
            nested = [each for each in nested if each[0] < depth]
            holder = nested[-1][1] if nested else labels.get(place, entries[place])
            if entry.is_head:
                labels[place] = entry
                entries[place].inner.append(entry)
            elif holder.paths and holder.has_form and not (holder.is_head or is_first or nested):
                holder.mentions |= entry.mentions | {path for path in entry.paths if names_file(path)}
                holder.doubt = max(holder.doubt, min(entry.doubt, _Doubt.COUNTED))
            else:
                holder.inner.append(entry)
            if block.kind == "paragraph" and not is_first and has_list and known is None and entry.doubt:
                entry.mentions |= {*entry.paths}
            if is_first:
                entries[items[0]] = entry
            nested.append((depth, entry))


def _entries(block: Block, known: Set[str] | None, *, is_first: bool) -> Iterator[tuple[int, _Entry]]:
    """Yield the entries of a block and their indents; lines without a path belong to the line below them."""
    if block.kind == "table":
        yield from ((0, row) for row in _rows(block, known))
        return
    if is_first:
        yield 0, _read(shown_text(block.texts[0]), block.first + 1, known)
        return
    is_fence = block.kind == "fence"
    begun: list[tuple[int, str]] = []
    for number, line in enumerate(block.lines[is_fence:], block.first + 1 + is_fence):
        text = line if block.kind in ("fence", "code") else shown_text(line)
        if not text.strip() or _FOLD.fullmatch(text):
            continue
        is_label = block.kind == "paragraph" and _LABEL.fullmatch(text) is not None
        if begun and is_label:
            yield 0, _line(begun, known)
            begun = []
        begun.append((number, text))
        if is_label or block.kind != "paragraph" or _read(text, number, known).paths:
            yield len(text) - len(text.lstrip()), _head(text, number, known) if is_label else _line(begun, known)
            begun = []
    if begun:
        yield 0, _line(begun, known)


def _line(parts: Sequence[tuple[int, str]], known: Set[str] | None) -> _Entry:
    return _read(" ".join(text.strip() for _, text in parts), parts[0][0], known)


def _head(text: str, line: int, known: Set[str] | None) -> _Entry:
    """Read the words above a list. A path among them is in code or alone, is a file, or has a slash behind it."""
    is_sure = "`" in text or (" " not in text and ("/" not in text or text.islower()))
    paths = [path for path in _read(text, line, None).paths if is_sure or names_file(path) or f"{path}/" in text]
    doubt = _Doubt.LEFT_OUT if _leaves_out(text, known) else _Doubt.PLAIN
    return _Entry(line, text, paths, doubt=doubt, is_head=True)


def _rows(block: Block, known: Set[str] | None) -> Iterator[_Entry]:
    """Yield the rows of a table: the paths of their cells, except for those of a column that leaves them out.

    Names beside one folder are in it.
    """
    titles, *rows = block.cells
    if any(names_file(path) for cell in titles for path in _read(cell, 0, None).paths):
        yield _read(" ".join(titles), block.first + 1, known)
    barred = [_leaves_out(title, known) for title in titles]
    for line, cells in enumerate(rows, block.first + 3):
        read = [_read(cell, line, known) for cell in cells]
        row = _read(" ".join(cells), line, known)
        kept = [
            each
            for each, is_barred in zip(read, barred, strict=False)
            if not is_barred and any(is_sure(path) or is_file(path) or f"{path}/" in each.text for path in each.paths)
        ]
        if kept or any(barred):
            row.paths = [path for each in kept for path in each.paths]
            row.doubt = max((each.doubt for each in kept), default=row.doubt)
            row.mentions = {path for each in read for path in each.mentions} - {*row.paths}
        folders = [each.folder for each in kept if each.folder]
        names = [path for path in row.paths if path not in folders]
        if len(folders) == 1 and names and not any("/" in name for name in names):
            row.paths = [f"{folders[0]}/{name}" for name in names]
        is_out = any(
            not _UNMARKED.fullmatch(each.text)
            if is_barred
            else each not in kept and _leaves_out(_remark(each.text), known)
            for each, is_barred in zip(read, barred, strict=False)
        )
        if is_out:
            row.doubt = max(row.doubt, _Doubt.COUNTED if row.paths else _Doubt.LEFT_OUT)
        yield row


def _leaves_out(text: str, known: Set[str] | None) -> bool:
    """Return whether words leave a path out: in scope, any such words do, and out of scope those of an exception."""
    return any(known is None or hit[1] for hit in _LEFT_OUT.finditer(text))


def _read(text: str, line: int, known: Set[str] | None) -> _Entry:
    words = [] if _DRAWN.search(text) else [*entry_words(with_colon(text.replace(GUARD, "")))]
    letters = head_letters(words, is_out=known is not None)
    head, kinds = [*letters], "".join(letters.values())
    found = next(filter(None, (form.match(kinds) for form in _FORMS)), None)
    start, end = found.span(1) if found else (0, 0)
    ours = {head[at] for at in range(start, end) if kinds[at] != ","}
    entry = _Entry(line, text, [path for i in sorted(ours) for path in paths_of(*words[i], is_name=True)])
    first = head[start] if entry.paths else len(words)
    rest = [(i, word) for i, (word, _) in enumerate(words) if i not in ours and word not in BETWEEN]
    front, behind = [word for i, word in rest if i < first], [word for i, word in rest if i > first]
    note = " ".join(word.strip("()") for _, word in rest).strip("-\u2013\u2014: ")
    is_known = any(path.rstrip("*/") in (known or ()) for path in entry.paths)
    is_loose = kinds[end:].strip(",") != ""
    if _leaves_out(" ".join([*front, *entry.paths * entry.is_word]), known) or (is_known and (front or is_loose)):
        entry.doubt = _Doubt.LEFT_OUT
    elif "U" in kinds or _leaves_out(_remark(" ".join(behind)), known):
        entry.doubt = _Doubt.COUNTED
    elif re.search(r"\w", note) and not OWNED.fullmatch(note):
        entry.doubt = _Doubt.WORDED
    outside = {words[at][0] for at, letter in letters.items() if letter in "PS" and at not in ours}
    entry.mentions = {*mentioned_paths([*front, *behind]), *outside} - {*entry.paths}
    return entry


def _remark(text: str) -> str:
    """Return the start of a description, where words are about the path."""
    return " ".join(re.split("[,;]", text.lstrip("-\u2013\u2014: "))[0].split()[:4])
