"""The paths under In Scope and Out of Scope, however the author lists them, and the lines that name none. Pure.

Source: workflow contracts, "Task Issue Template"; every entry and block is read, or named as unread.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import pairwise

from accord.core.frozen import Frozen
from accord.results.scope_entries import FILE_NAME
from accord.results.scope_tree import Doubt, ScopeEntry, ScopeTitle, collect_paths
from accord.results.scope_words import (
    NONE,
    OWNED,
    entry_words,
    is_file,
    is_part,
    is_sure,
    is_unread,
    names_file,
    paths_of,
)
from accord.text.block_syntax import Block
from accord.text.hidden import GUARD
from accord.text.outline import Section, shown_text

_BETWEEN = frozenset(["", ",", ";", "and", "or", "and/or", "&", "+", "|", "/", "→", "->", "=>"])
_DESCRIPTION = ("\N{EM DASH}", "\N{EN DASH}", "-", "#", ":")
_ALONE = re.compile(r"(?<![^,:])[NM](?![^,])")
_LIST = re.compile(r",*[WwFS](?:,+[WwFS])*,*")
_RUN = re.compile(r"[PFS](?:,*[PFS])*")
_NAMES = re.compile(r"[CM](?:,*[CM])*")
_CUT = re.compile(r"U|(?<![^,])[Cw],+#|#,+[CwW](?![^,])")
"""Where the paths are among the words of a head, which ``_letter`` tells the form of."""
_FOLDER = re.compile(r"(?:folder|director(?:y|ies)|dir|path|location)s?", re.IGNORECASE)
_FILES = re.compile(r"(?:file|file ?name|name)s?", re.IGNORECASE)
"""The heads of a column of folders, and of one of files in them, or the labels of two entries."""
_UNMARKED = re.compile(r"[-\u2013\u2014\s]*|no|none|n/a", re.IGNORECASE)
_REMARKED = re.compile(r"\S+(?: \([^()`/]*\)|(?::| [-\u2013\u2014]) [^`/]*)")
"""A path with a remark, in brackets or behind a colon or a dash."""
_DRAWN = re.compile(r"[\u2500-\u257f]|\A[|\s]*[|`+\\]--+\s")
"""Lines of a drawing, such as a tree, whose names are parts of paths."""
_FOLD = re.compile(r"\s*(?:</?details\b[^<>]*>|<summary>.*</summary>)\s*", re.IGNORECASE)
_LABEL = re.compile(r".*[:\uff1a][*_]*|\*\*(?!/)[^*]+\*\*|__[^_]+__", re.DOTALL)
"""A line of a paragraph that is a title."""
_LEFT_OUT = re.compile(
    r"(?<![\w-])(?:(but|except\w*|excluding|other than|outside|unless|besides?|apart|aside|minus|save for"
    r"|(?:not|\w+n['\u2019]t) in\W*\Z)|no(?![.\w])|not|nor|never|neither|cannot|\w+n['\u2019]t|without|leave|excluded?"
    r"|out of scope|off limits|(?:read|reference)[ -]only|un(?:changed|modified|touched)|owned by)(?![\w-])"
    r"|\A\W*out\W*\Z|[\u26d4\u2717\u2718\u274c\U0001f6ab]",
    re.IGNORECASE,
)
"""The words that leave a path out of a list; the first group are those of an exception."""
_TITLED = re.compile(
    r"([^`/.(){}\[\]:,\uff08]*[^\s`/.(){}\[\]:,\uff08])(?:\s+(?:-{1,2}|[\u2013\u2014])\s+(\S.*)"
    r"|(?:\s+\(|\uff08)(.+?)[)\uff09]([*_]*)(?:(\.|\s*[:\u2013\u2014-](?:\s.*\Z)?)[*_]*)?)"
)
"""Words, then in brackets or behind a dash what may be their paths."""
_LIKE_FILE = re.compile(r"\..+|.*(?:[^/]/.+|\*.*|\.[A-Za-z]\w{0,3})", re.DOTALL)
"""Words in a description that name a file or a folder, and no attribute of an object such as ``Parser.read_all``."""


class ScopeList(Frozen):
    """The normalised paths of a section, each once, and the lines that name none, with their number in the body."""

    paths: tuple[str, ...] = ()
    unread: tuple[tuple[int, str], ...] = ()


def read_scope(sections: Iterable[Section], listed: Iterable[str] | None = None) -> ScopeList:
    """Read a section and those below it: what is in scope, or out of scope, beside the paths that are ``listed`` in it.

    Out of scope, a listed path beside other words may be an exception.
    """
    known = None if listed is None else frozenset(path.rstrip("*/") for path in listed)
    top = ScopeTitle(0, "")
    titles: list[tuple[int, ScopeEntry]] = []
    for section in sections:
        title = _title(section.title, section.line, known) if titles else top
        title.paths = [] if title.is_word else title.paths
        _add_blocks(title, section.blocks, known)
        titles = [each for each in titles if each[0] < section.level]
        if titles:
            titles[-1][1].inner.append(title)
        titles.append((section.level, title))
    if known is None and len(top.inner) == 1 and top.inner[0].is_title:  # and it leaves out all that is listed
        top.inner[0].doubt = min(top.inner[0].doubt, Doubt.COUNTED)
    paths, unread = collect_paths(top, is_out=known is not None)
    return ScopeList(tuple(dict.fromkeys(paths)), tuple(sorted({*unread})))


def _add_blocks(top: ScopeEntry, blocks: Sequence[Block], known: Set[str] | None) -> None:
    """Add to a title the entries of lists, with those in them, lines of paragraphs and code, and rows of tables.

    Those behind a line that is a title are in the entry of that title. Further text below a path describes it.
    """
    kinds = {each.kind for block in blocks for each in (block, *block.around)}
    has_list = not kinds.isdisjoint(("item", "table", "fence", "code"))
    entries: dict[Block | None, ScopeEntry] = {None: top}
    labels: dict[Block | None, ScopeEntry] = {}
    for block in blocks:
        items: list[Block | None] = [*(each for each in block.around if each.kind == "item"), None]
        is_first = block.kind == "paragraph" and items[0] not in entries
        place = next(each for each in items if each in entries)
        nested: list[tuple[int, ScopeEntry]] = []  # lines of code above deeper ones
        for depth, entry in _entries(block, known, is_first=is_first):
            nested = [each for each in nested if each[0] < depth]
            holder = nested[-1][1] if nested else labels.get(place, entries[place])
            is_path = bool(holder.paths) and not isinstance(holder, ScopeTitle) and not holder.can_title
            if isinstance(entry, ScopeTitle):
                labels[place] = entry
                entries[place].inner.append(entry)
            elif is_path and not (is_first or nested):
                holder.mentions |= entry.mentions | {path for path in entry.paths if names_file(path)}
                holder.doubt = max(holder.doubt, min(entry.doubt, Doubt.COUNTED))
            else:
                holder.inner.append(entry)
            if block.kind == "paragraph" and not is_first and has_list and known is None and entry.doubt:
                entry.mentions |= {*entry.paths}
            if is_first:
                entries[items[0]] = entry
            nested.append((depth, entry))
    _doubt_files(top.inner)


def _doubt_files(entries: Iterable[ScopeEntry]) -> None:
    """Leave unread the files behind a folder that they may be in, as both have a label."""
    for one, other in pairwise(entries):
        folder, files = (each.text.partition(":")[0].strip("*_ ") for each in (one, other))
        if _FOLDER.fullmatch(folder) and _FILES.fullmatch(files) and not any("/" in path for path in other.paths):
            other.doubt = max(other.doubt, Doubt.COUNTED)


def _entries(block: Block, known: Set[str] | None, *, is_first: bool) -> Iterator[tuple[int, ScopeEntry]]:
    """Yield the entries of a block, and how far each is indented; lines without a path belong to the line below them.

    The names in a tree that is drawn are parts of paths, so that its other lines say nothing.
    """
    if block.kind == "table":
        yield from ((0, row) for row in _rows(block, known))
        return
    if is_first:
        yield 0, _read(shown_text(block.texts[0]), block.first + 1, known)
        return
    is_fence = block.kind == "fence"
    lines = [*enumerate(block.lines[is_fence:], block.first + 1 + is_fence)]
    begun: list[tuple[int, str]] = []
    for number, line in [each for each in lines if _DRAWN.search(each[1])] or lines:
        text = line if block.kind in ("fence", "code") else shown_text(line)
        if not text.strip() or _FOLD.fullmatch(text):
            continue
        is_label = block.kind == "paragraph" and _LABEL.fullmatch(text) is not None
        if begun and is_label:
            yield 0, _line(begun, known)
            begun = []
        begun.append((number, text))
        if is_label or block.kind != "paragraph" or _read(text, number, known).paths:
            yield len(text) - len(text.lstrip()), _title(text, number, known) if is_label else _line(begun, known)
            begun = []
    if begun:
        yield 0, _line(begun, known)


def _line(parts: Sequence[tuple[int, str]], known: Set[str] | None) -> ScopeEntry:
    return _read(" ".join(text.strip() for _, text in parts), parts[0][0], known)


def _title(text: str, line: int, known: Set[str] | None) -> ScopeTitle:
    """Read the words above a list. A path among them is in code or alone, is a file, or has a slash behind it."""
    is_alone = " " not in text and ("/" not in text or text.islower())
    paths = _read(text, line, None).paths
    paths = [path for path in paths if is_alone or names_file(path) or f"{path}`" in text or f"{path}/" in text]
    return ScopeTitle(line, text, paths, doubt=Doubt.LEFT_OUT if _leaves_out(text, known) else Doubt.PLAIN)


def _rows(block: Block, known: Set[str] | None) -> Iterator[ScopeEntry]:
    """Yield the rows of a table: the paths of their cells, except for those of a column that leaves them out.

    The first with a path lists it, and so do others that begin with theirs; words in front of one describe the first.
    """
    titles, *rows = block.cells
    if any(names_file(path) for cell in titles for path in _read(cell, 0, None).paths):
        yield _read(" ".join(titles), block.first + 1, known)
    barred = [_leaves_out(title, known) for title in titles]
    changes = [known is None and title.casefold() in ("change", "changes") for title in titles]
    for line, cells in enumerate(rows, block.first + 3):
        row, read = _read(" ".join(cells), line, known), [_read(cell, line, known) for cell in cells]
        listed = [
            each
            for each, is_barred in zip(read, barred, strict=False)
            if not is_barred and (each.has_file or any(map(is_sure, each.paths)))
        ]
        others = [each for each in listed[1:] if each.doubt is Doubt.PLAIN or _REMARKED.fullmatch(each.text)]
        kept = [*listed[:1], *others]
        if kept or any(barred):
            row.paths, row.doubt = _row_paths(titles, read, kept), max((each.doubt for each in kept), default=row.doubt)
            row.mentions = {path for each in kept for path in each.mentions}
            row.mentions |= {*_mentions([each.text for each in read if each not in kept])}
            row.mentions |= {path for each in listed if each not in kept for path in each.paths}
            row.mentions -= {*row.paths}
        is_out = any(
            (is_barred and not _UNMARKED.fullmatch(each.text))
            or (is_change and NONE.fullmatch(each.text))
            or (not is_barred and each not in kept and _leaves_out(_remark(each.text), known))
            for each, is_barred, is_change in zip(read, barred, changes, strict=False)
        )
        if is_out:
            row.doubt = max(row.doubt, Doubt.COUNTED if row.paths else Doubt.LEFT_OUT)
        yield row


def _row_paths(titles: Sequence[str], read: Sequence[ScopeEntry], kept: Sequence[ScopeEntry]) -> list[str]:
    """Return the paths of a row: its files are in its folder, if one column has folders and one names of files."""
    columns = [(title.strip("*_`").casefold(), each) for title, each in zip(titles, read, strict=False) if each.paths]
    folders = [
        each for title, each in columns if _FOLDER.fullmatch(title) and (title[0] in "fd" or not is_file(each.paths[0]))
    ]
    files = [each for title, each in columns if _FILES.fullmatch(title) and (each in kept or "file" in title)]
    names = [path for each in files for path in each.paths]
    if len(folders) == 1 and names and not any("/" in name for name in names):
        others = [path for each in kept if each not in (*files, *folders) for path in each.paths]
        return [*(f"{folders[0].paths[0]}/{name}" for name in names), *others]
    paths = [path for each in kept for path in each.paths]
    ends = {posixpath.basename(path) for path in paths if "/" in path}  # such names tell no other path
    return [path for path in paths if path not in ends]


def _leaves_out(text: str, known: Set[str] | None) -> bool:
    """Return whether words leave a path out: in scope, any such words do, and out of scope those of an exception."""
    return any(known is None or hit[1] for hit in _LEFT_OUT.finditer(text))


def _read(text: str, line: int, known: Set[str] | None) -> ScopeEntry:
    """Read the paths of an entry's head, and note what the words beside them say."""
    words = [] if _DRAWN.search(text) else [*entry_words(_with_colon(text.replace(GUARD, "")))]
    letters = _letters(words, is_out=known is not None)
    head, kinds = [*letters], _ALONE.sub("F", "".join(letters.values()))
    start, end = _span(kinds)
    first = head[start] if end else len(words)
    ours = {head[at] for at in range(start, end) if kinds[at] != ","}
    entry = ScopeEntry(line, text, [path for i in sorted(ours) for path in paths_of(*words[i], is_name=True)])
    rest = [(i, word) for i, (word, _) in enumerate(words) if i not in ours and word not in _BETWEEN]
    front, behind = [word for i, word in rest if i < first], [word for i, word in rest if i > first]
    note = " ".join(word.strip("()") for _, word in rest).strip("-\u2013\u2014: ")
    is_loose = kinds[end:].strip(",") != "" and end > 0
    is_known = any(path.rstrip("*/") in (known or ()) for path in entry.paths)
    if _leaves_out(" ".join([*front, *entry.paths * entry.is_word]), known) or (is_known and (front or is_loose)):
        entry.doubt = Doubt.LEFT_OUT
    elif _CUT.search(f"{kinds[:start]}#{kinds[end:]}") or _leaves_out(_remark(" ".join(behind)), known):
        entry.doubt = Doubt.COUNTED
    elif re.search(r"\w", note) and not OWNED.fullmatch(note):
        entry.doubt = Doubt.WORDED
    entry.mentions = {*_mentions([*front, *behind])} - {*entry.paths}
    if "P" not in kinds[start:end]:
        entry.mentions |= {words[head[at]][0] for at in range(start) if kinds[at] == "S"}
    if known is None and is_loose and any(word.endswith(":") for word in front):
        entry.mentions |= {*entry.paths}  # a sentence behind a label
    return entry


def _span(kinds: str) -> tuple[int, int]:
    """Return where the paths of a head are: a list, else the first paths in code or files, else words, else names."""
    runs = [*_RUN.finditer(kinds)]
    sure = (run for run in runs if re.search("[PF]", run[0]))
    found = _LIST.fullmatch(kinds) or next(sure, None) or (runs[0] if runs else _NAMES.search(kinds))
    has_blank = "SS" in kinds or "SF" in kinds  # perhaps in a path
    return found.span() if found and not has_blank else (0, 0)


def _remark(text: str) -> str:
    """Return the start of a description, where words are about the path."""
    return " ".join(re.split("[,;]", text.lstrip("-\u2013\u2014: "))[0].split()[:4])


def _letters(words: Sequence[tuple[str, bool]], *, is_out: bool) -> dict[int, str]:
    """Return the letters of a head's words: those outside of brackets and in front of a description."""
    letters: dict[int, str] = {}
    depth = 0
    for i, (word, is_marked) in enumerate(words):
        if depth or word.startswith("("):
            depth = max(0, depth + (0 if is_marked else word.count("(") - word.count(")")))
        elif word in _DESCRIPTION and {*letters.values()} - {","}:
            break
        else:
            letters[i] = _letter(word, is_marked, is_out=is_out)
            if letters[i] in "PFS" and word.endswith(":"):
                break
    return letters


def _letter(word: str, is_marked: bool, *, is_out: bool) -> str:
    """Return a letter for the form of a word.

    It is a path in code, a file, words with a slash, unread, a name in code or of a file, a separator, or a word.
    """
    if word in _BETWEEN:
        return ","
    is_whole = not (is_out and is_part(word))
    if is_whole and (paths := paths_of(word, is_marked)):
        return "P" if is_marked else "F" if names_file(paths[0]) or word.endswith("/") else "S"
    if word.startswith(("!", '["')) or ("/" in word and is_unread(word, is_out=is_out)):
        return "U"
    if not is_whole or word.endswith(":") or not paths_of(word, is_marked, is_name=True):
        return ":" if word.endswith(":") else "X"
    is_named = FILE_NAME.fullmatch(word) is not None or word.isupper()
    return ("M" if is_named else "C") if is_marked else "N" if is_named else "w" if word.islower() else "W"


def _mentions(words: Sequence[str]) -> Iterator[str]:
    """Yield the paths in a description, except for those behind ``see``."""
    split = [each.strip("*_`'\"").rstrip(".:") for word in words for each in re.split(r"[\s(),;]+", word) if each]
    for before, each in pairwise(["", *split]):
        is_name = "." not in each and is_file(each)
        for path in paths_of(each, is_marked=False, is_name=is_name) if before.casefold() != "see" else ():
            if is_name or each.endswith("/") or (names_file(path) and _LIKE_FILE.fullmatch(path)):
                yield path


def _with_colon(text: str) -> str:
    """Return an entry with a colon behind its words if paths are all that its brackets, or its dash, hold."""
    if (titled := _TITLED.fullmatch(text)) is None or OWNED.fullmatch(titled[3] or ""):
        return text
    words = [each for each in entry_words(OWNED.sub("", titled[2] or titled[3])) if each[0] not in _BETWEEN]
    are_paths = all((is_marked or names_file(word)) and paths_of(word, is_marked) for word, is_marked in words)
    behind = titled[5] or ""
    if not (are_paths and words) or (titled[4] and [*_mentions([behind])]):  # a bold title with its own paths behind
        return text
    return f"{titled[1]}: {titled[2] or titled[3]}{behind}"
