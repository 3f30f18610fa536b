"""The paths under In Scope and Out of Scope, however the author lists them, and the lines that name none. Pure.

Source: workflow contracts, "Task Issue Template"; every entry and block is read, or named as unread.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress, pairwise

from accord.core.frozen import Frozen
from accord.results.scope_entries import FILE_NAME
from accord.results.scope_tree import ScopeEntry, collect_paths, has_paths, is_file
from accord.results.scope_words import (
    NO_PATH,
    NONE,
    SYMBOL,
    entry_words,
    has_unread_part,
    is_sure,
    names_file,
    paths_of,
    read_place,
)
from accord.text.block_syntax import Block
from accord.text.hidden import GUARD
from accord.text.outline import Section, shown_text

_NAME = re.compile(r"[\w.-]+")
_BETWEEN = frozenset(["", ",", ";", "and", "or", "&", "+", "|", "/", "→", "->", "=>"])
_DESCRIPTION = ("\N{EM DASH}", "\N{EN DASH}", "-", "#", ":")
_FOLDER = re.compile(r"(?:folder|director(?:y|ies)|dir|path|location)s?", re.IGNORECASE)
_FILES = re.compile(r"(?:file|file ?name|name)s?", re.IGNORECASE)
"""The heads of a column of folders, and of one of files in them."""
_NUMBER = re.compile(r"\W*no\W*", re.IGNORECASE)
_UNMARKED = re.compile(r"[-\u2013\u2014\s]*|no|none|n/a", re.IGNORECASE)
_DRAWN = re.compile(r"[\u2500-\u257f]|\A[|\s]*[|`+\\]--+\s")
"""Lines of a drawing, such as a tree, whose names are parts of paths."""
_FOLD = re.compile(r"\s*(?:</?details\b[^<>]*>|<summary>.*</summary>)\s*", re.IGNORECASE)
_BOLD = re.compile(r"\*\*(?!/)[^*]+\*\*|__[^_]+__")
_EXCEPTED = re.compile(r"\b(?:but|except\w*|apart|other than|outside|unless)\b")
_LEFT_OUT = re.compile(rf"{_EXCEPTED.pattern}|\b(?:no|nor|without)\b|\Aout\Z")
_ALL_BUT = re.compile(
    r"\W*(?:all|(?:any|every|what)\w*)\b.*\b(?:aside|bar(?:ring)?|besides?|beyond|but|exc(?:ept|lud)ing|except|minus|not"
    r"|other than|outside|save|\w+n['\u2019]t)(?:\W+(?:in|of|for|from|below|under|within|the|files?|folders?))*\W*",
    re.IGNORECASE | re.DOTALL,
)
"""Words that take the path behind them out of all files."""
_NEGATED = re.compile(
    r"\b(?:not|never|neither|cannot|exc(?:ept|lu)\w*|\w+n['\u2019]t|out of scope|off limits|(?:read|reference) only"
    r"|un(?:changed|modified|touched))\b"
)
"""Words that take a path out of a list in front of it or first in a remark, and those that do it anywhere."""
_CHANGE = re.compile(
    r"(?:creat|add|chang|modif|updat|edit|extend|renam|mov|delet|remov|replac|fix|refactor|rewrit|implement|adjust)\w*"
    r"|new|allowed|permitted|only|the|its|an?|\w?\d*|(?:every|any)thing|all|tests?|files?|folders?|director(?:y|ies)|modules?|packages?"
    r"|to|in|below|under|inside|within|explicitly|excluded"
)
"""A word beside a path that says no more than that it changes. Others may turn its meaning."""
_TITLED = re.compile(
    r"([^`/.(){}\[\]:,\uff08]*[^\s`/.(){}\[\]:,\uff08])(?:\s+(?:-{1,2}|[\u2013\u2014])\s+(\S.*)"
    r"|(?:\s+\(|\uff08)(.+?)[)\uff09](\.|\s*[:\u2013\u2014-]\s.*)?)"
)
"""Words, then in brackets or behind a dash what may be their paths."""
_OWNED = re.compile(r"owned by #\S+", re.IGNORECASE)
_CODED = re.compile(r"(?<!`)`(#[^`\s]+)`")
_LIKE_FILE = re.compile(r"[^/].*/|\..+|.*(?:[^/]/.+|\*.*|\.[A-Za-z]\w{0,3})", re.DOTALL)
"""Words in a description that name a file or a folder, and no attribute of an object such as ``Parser.read_all``."""


class ScopeList(Frozen):
    """The normalised paths of a section, each once, and the lines that name none, with their number in the body."""

    paths: tuple[str, ...] = ()
    unread: tuple[tuple[int, str], ...] = ()


def read_scope(sections: Iterable[Section], listed: Iterable[str] | None = None) -> ScopeList:
    """Read a section and those below it: what is in scope, or out of scope, beside the paths that are ``listed`` in it.

    In scope, a path behind a negation is not read. Out of scope, a listed path beside other words may be an exception.
    """
    is_out, known = listed is not None, frozenset(path.rstrip("*/") for path in listed or ())
    titles: list[tuple[int, ScopeEntry]] = []
    for section in sections:
        title = _title(section.title if titles else "In Scope", section.line, is_out=is_out)
        title.paths = [] if title.is_bare else title.paths
        title.is_vague &= bool(titles)
        _read_blocks(title, section.blocks, is_out=is_out)
        titles = [each for each in titles if each[0] < section.level]
        if titles:
            titles[-1][1].inner.append(title)
        titles.append((section.level, title))
    unread: list[tuple[int, str]] = []
    for _, title in titles[: not is_out]:
        _doubt_labels(title.inner)
    paths = [path for _, title in titles[:1] for path in collect_paths(title, unread, known if is_out else None)]
    return ScopeList(tuple(dict.fromkeys(paths)), tuple(sorted(unread)))


def _doubt_labels(entries: Sequence[ScopeEntry]) -> None:
    """Leave unread the labels of nested paths in scope beside paths without one, and those below one of a change."""
    labels = [each for each in entries if has_paths(each) and (each.can_title or not each.paths)]
    named = (each for each in entries if each.paths and not each.can_title)
    is_doubtful = any(not each.inner or any(map(is_sure, each.paths)) for each in named)
    for label in labels:
        is_plain = _is_plain(label.text.split())
        label.has_more |= is_doubtful and not is_plain
        is_doubtful |= is_plain and re.search(r"(?:ed|new)\b", label.text, re.IGNORECASE) is not None


def _read_blocks(top: ScopeEntry, blocks: Iterable[Block], *, is_out: bool) -> None:
    """Add to a title the entries of lists, with those in them, lines of paragraphs and code, and rows of tables.

    Those behind a line that is a title, or below a heading, are in the entry of that title.
    """
    every: list[ScopeEntry] = []
    blocks = [*blocks]
    kinds = {each.kind for block in blocks for each in (block, *block.around)}
    is_list = not is_out and not kinds.isdisjoint(("fence", "code", "table", "item"))
    known: dict[Block | None, ScopeEntry] = {None: top}
    labels: dict[Block | None, ScopeEntry] = {}
    has_path = False
    for block in blocks:
        items: list[Block | None] = [*(each for each in block.around if each.kind == "item"), None]
        is_first = bool(len(items) > 1 and block.texts) and items[0] not in known
        lines = [(block.first + 1, shown_text(block.texts[0]))] if is_first else _lines(block, is_out=is_out)
        place = next(each for each in items if each in known)
        above = known[place]
        is_text = block.kind == "paragraph" and not is_first
        nested: list[tuple[int, ScopeEntry]] = []  # lines of code above deeper ones
        for line, text in lines:
            if is_text and (text.rstrip("*_").endswith((":", "\uff1a")) or _BOLD.fullmatch(text)):
                is_next = has_path or bool(above.paths)
                labels[place] = label = _title(text, line, is_out=is_out)
                label.has_more = label.is_phrase and (is_next or label.is_negated)
                label.is_negated &= is_next or is_out
                above.inner.append(label)
                continue
            entry = _read(text.strip(), line, is_out=is_out)
            last = every[-1] if is_text and every else None
            entry.is_vague |= last is not None and last.line == line - 1 and last.is_vague and not last.paths
            every.append(entry)
            has_path |= bool(entry.paths)
            known |= {items[0]: entry} if is_first else {}
            if is_text and not entry.paths:
                labels.pop(place, None)
            depth = len(text) - len(text.lstrip())
            nested = [each for each in nested if each[0] < depth]
            holder = nested[-1][1] if nested else labels.get(place, above)
            is_block = block.kind in ("fence", "code", "table")
            entry.is_sentence |= is_text and entry.is_remark and is_list
            is_title = holder.is_title or (holder.can_title and (is_block or bool(entry.paths)))
            if is_first or nested or not holder.paths or is_title:
                holder.inner.append(entry)
            else:  # further text below a path describes it
                holder.has_more |= is_block or entry.is_negated
                holder.has_more |= any(map(names_file, {*entry.paths} | entry.named))
                holder.is_phrase |= is_out
            nested.append((depth, entry))
    listed = {path for each in every for path in each.paths}
    entries = {path for each in every if not each.is_sentence for path in each.paths}
    for each in every:
        each.has_more |= not each.named <= listed or (each.is_sentence and not entries.issuperset(each.paths))


def _title(text: str, line: int, *, is_out: bool) -> ScopeEntry:
    """Read the words above a list. A path among them is in code or alone, is a file, or has a slash behind it."""
    read = _read(text, line, is_out=False)
    is_alone = read.is_bare or (text.islower() and " " not in text)
    paths = [path for path in read.paths if is_alone or "`" in text or names_file(path) or f"{path}/" in text]
    is_negated = _ALL_BUT.fullmatch(text) is not None if is_out else read.is_negated or _is_negated(text)
    return replace(read, paths=paths, has_more=False, is_title=True, is_negated=is_negated)


def _lines(block: Block, *, is_out: bool) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block that say something, with their numbers; of a table, the cells with paths of each row.

    The names in a tree that is drawn are parts of paths, so that its other lines say nothing.
    """
    if block.kind == "table":
        titles = [*block.cells[0]]
        negated = [each for each in titles if (_ALL_BUT.fullmatch(each) if is_out else _is_negated(each))]
        kept = [each not in negated or _NUMBER.fullmatch(each) is not None for each in titles]
        changes = [each for each in titles if _bare(each) in ("change", "changes")] if not is_out else []
        for number, every in enumerate(block.cells, block.first + 1):
            is_head = number == block.first + 1
            head, row = ([*compress(cells, kept)] for cells in (titles, every))
            row = row if is_head else [*_in_folder(head, row)]
            cells = [cell for cell in row if (read := _read(cell, 0, is_out=False)).paths and not read.is_bare]
            if not is_head or any(names_file(cell.strip("`")) for cell in cells):
                shown = [cell for cell in row if cell in cells or _is_negated(cell)]
                yield number + (not is_head), " ".join(shown if cells else row)
            for title, cell, is_kept in zip(titles, every, kept, strict=False):
                is_unchanged = title in changes and NONE.fullmatch(cell) is not None
                if not is_head and (is_unchanged if is_kept else not _UNMARKED.fullmatch(cell)):
                    yield number + 1, f"{title}: {cell}"
        return
    is_fence = block.kind == "fence"
    lines = [*enumerate(block.lines[is_fence:], block.first + 1 + is_fence)]
    drawn = [(number, line) for number, line in lines if _DRAWN.search(line)]
    for number, line in drawn or lines:
        text = line if block.kind in ("fence", "code") else shown_text(line)
        if text.strip() and not _FOLD.fullmatch(text):
            yield number, text


def _in_folder(head: Sequence[str], row: Sequence[str]) -> Sequence[str]:
    """Return a row with its files joined to its folder, or without the name of its file and words beside that."""
    titled = [(title.strip("*_`").casefold(), cell) for title, cell in zip(head, row, strict=False)]
    places = [(*each, path) for each in titled if _FOLDER.fullmatch(each[0]) for path in _read(each[1], 0).paths]
    files = {
        cell: [path for path in _read(cell, 0).paths if names_file(path) or "file" in title]
        for title, cell in titled
        if _FILES.fullmatch(title) and not _is_negated(cell)
    }
    if len(places) != 1 or any("/" in path for paths in files.values() for path in paths):
        return row
    ((title, place, path),) = places
    if title[0] in "pl" and re.search(r"\w\.[A-Za-z]\w*\Z", path) and not place.strip("`*").endswith("/"):
        return [cell for cell in row if cell == place or {*files.get(cell, [""])} - {posixpath.basename(path)}]
    joined = {cell: " ".join(f"`{path}/{name}`" for name in names) for cell, names in files.items() if names}
    return [joined.get(cell, cell) for cell in row if not (joined and cell == place)]


def _read(text: str, line: int, *, is_out: bool = True) -> ScopeEntry:
    """Read the paths that an entry names before it describes them, or the first one that it names at all."""
    entry = ScopeEntry(line, text)
    words = [] if _DRAWN.search(text) else [*entry_words(_with_colon(_CODED.sub(r"\1", text.replace(GUARD, ""))))]
    taken: set[str] = set()
    front: list[str] = []
    loose: list[str] = []  # words in front of the first path, then those behind it
    is_described = is_beside = is_cut = is_next = False
    for word, is_marked, following in _outside_brackets(words):
        is_name = FILE_NAME.fullmatch(word) is not None or word.isupper() or not all(map(is_sure, entry.paths[-1:]))
        is_listed = is_next and bool(entry.paths) and not loose and following in _BETWEEN
        is_item = is_name and not loose and (is_listed or not is_marked) and following in _BETWEEN
        is_item &= is_next or not (entry.paths or word.isupper())
        is_first = is_item or not (entry.paths or is_described)
        is_next = word in _BETWEEN
        if is_next:
            is_described, is_beside = is_described and not entry.paths, False
        elif word in _DESCRIPTION and (entry.paths or is_described):
            break
        elif not (is_out and SYMBOL.search(posixpath.basename(read_place(word)[0]))) and (
            paths := paths_of(word, "" if is_item else following, is_marked=is_marked, is_first=is_first)
        ):
            if is_beside and not is_marked and not names_file(entry.paths[-1]):  # a path with a blank, perhaps
                return ScopeEntry(line, text)
            entry.has_more = bool(entry.paths) and is_described
            if entry.has_more:
                break
            if not entry.paths:
                front, loose = loose, []
            taken.add(word)
            entry.paths += paths
            entry.is_bare = len(words) == 1 and not is_marked and not re.search(r"[/.*]", word)
            is_described, is_beside = False, not is_marked
        else:
            loose.append(word)
            is_described, is_beside = True, False
            is_cut |= is_marked and is_listed and _NAME.fullmatch(word) is not None
            is_cut |= word.startswith(("!", '["')) or ("/" in word and has_unread_part(word, is_out=is_out))
        if entry.paths and word.endswith(":"):
            break
    first, *others = entry.paths or [""]
    is_plain = not (is_sure(first) or FILE_NAME.fullmatch(first) or first.isupper() or f"`{first}`" in text)
    is_title = text[:1] in ("*", "_") or (not first.islower() and "`" in text)
    if is_plain and is_title and any(map(is_sure, others)):  # such as `Writer`
        front.append(entry.paths.pop(0))
    forms = {*taken, *entry.paths}
    is_plain = bool(entry.paths) and "`" not in text and not any(names_file(each) or is_file(each) for each in forms)
    entry.is_word = is_plain and not any(map(is_sure, forms))
    entry.can_title = is_plain and all(each[0].isalpha() and not each[0].islower() for each in entry.paths)
    entry.has_more |= is_cut or (bool(entry.paths) and is_described and text.endswith(":"))
    rest = [word for word, _ in words if word not in taken]
    _judge(entry, rest, *((front, loose) if entry.paths else (loose, [])), is_out=is_out)
    entry.is_negated |= entry.can_title and not is_out and _is_negated(" ".join(entry.paths))
    return entry


def _with_colon(text: str) -> str:
    """Return an entry with a colon behind its words if paths are all that its brackets, or its dash, hold."""
    if (titled := _TITLED.fullmatch(text)) is None or _OWNED.fullmatch(titled[3] or ""):
        return text
    words = [each for each in entry_words(_OWNED.sub("", titled[2] or titled[3])) if each[0] not in _BETWEEN]
    are_paths = all(
        (is_marked or names_file(word)) and paths_of(word, "", is_marked=is_marked, is_first=False)
        for word, is_marked in words
    )
    return f"{titled[1]}: {titled[2] or titled[3]}{titled[4] or ''}" if are_paths and words else text


def _judge(
    entry: ScopeEntry, rest: Sequence[str], front: Sequence[str], behind: Sequence[str], *, is_out: bool
) -> None:
    """Note what is beside the paths of an entry: words that may turn its meaning, and paths in its description."""
    split = [each.strip("*_`'\"").rstrip(".:") for word in rest for each in re.split(r"[\s(),;]+", word) if each]
    named = {read_place(each)[0] for before, each in pairwise(["", *split]) if before.casefold() != "see"}
    inside = tuple(f"{path}/" for path in entry.paths)
    entry.named = {
        posixpath.normpath(each)
        for each in named
        if not NO_PATH.search(each) and "<" not in each and names_file(each) and _LIKE_FILE.fullmatch(each)
    } - {*entry.paths}
    note = " ".join(word.strip("()") for word in rest if word not in _BETWEEN)
    title = " ".join(front).rstrip("*_")
    entry.is_owned = _OWNED.fullmatch(note.lstrip("-\u2013\u2014: ")) is not None
    is_titled = bool(entry.paths) and title.endswith(":") and not is_out
    is_described = not (entry.is_owned or _is_plain(behind))
    is_plain = not is_described and (is_titled or _is_plain(front))
    entry.is_vague = not is_plain or _EXCEPTED.search(note.casefold()) is not None
    if is_out:
        entry.is_phrase = bool(note) and not entry.is_owned
        is_turned = (_ALL_BUT.fullmatch(title) or _EXCEPTED.search(title.casefold())) is not None
        entry.is_negated = is_turned and _EXCEPTED.match(title.casefold()) is None
    else:
        entry.is_negated = _is_negated(title, is_front=True)
        is_turned = entry.is_negated or (bool(entry.paths) and _is_negated(note))
        entry.is_phrase = is_turned or not is_plain
        is_plain = _is_plain(word for word in front if f"`{word}`" not in entry.text)
        entry.is_remark = is_described or not is_plain
        entry.is_sentence = is_titled and is_described and not is_plain
        is_turned |= entry.is_owned
    is_part = any(each.startswith(inside) and each not in inside for each in named)
    entry.has_more |= bool(entry.paths) and (is_turned or is_part)


def _bare(word: str) -> str:
    return re.sub(r"[\W_]", "", word.casefold())


def _is_plain(words: Iterable[str]) -> bool:
    """Return whether all words say no more than that a path changes."""
    return all(_CHANGE.fullmatch(_bare(word)) for word in words)


def _is_negated(text: str, *, is_front: bool = False) -> bool:
    """Return whether a title, a remark or words in front of a path take it out of a list in scope."""
    words = re.findall(r"\w+(?:['\u2019]\w+)?", text.casefold())
    found = _LEFT_OUT.search(" ".join(words)) if is_front else _LEFT_OUT.match(" ".join(words))
    is_turned = (
        found or _ALL_BUT.fullmatch(text) or re.search("[\u26d4\u2717\u2718\u274c\U0001f6ab]", text)
    ) is not None
    return is_turned or _NEGATED.search(" ".join(words if is_front else words[:4])) is not None


def _outside_brackets(words: Sequence[tuple[str, bool]]) -> Iterator[tuple[str, bool, str]]:
    """Yield the words outside of round brackets, whether each is marked, and the word behind it."""
    depth = 0
    for (word, is_marked), (following, _) in pairwise([*words, ("", False)]):
        if depth or word.startswith("("):
            depth = max(0, depth + (0 if is_marked else word.count("(") - word.count(")")))
        else:
            yield word, is_marked, following
