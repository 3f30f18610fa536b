"""The words of an entry in a scope list, and the paths that they stand for. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from accord.core.texts import is_placeholder
from accord.results.scope_entries import FILE_NAME
from accord.text.inlines import ENTITY, decoded_entity, read_inlines
from accord.text.outline import spans

NONE = re.compile(r"\A(?:[-*+]\s+)?[*_]*(?:none|n/a|nothing)[*_]*[.]?", re.IGNORECASE)
MOST_ALTERNATIVES = 64
"""An entry with more alternatives in braces is unread."""

_LINES = re.compile(r"[:#]L?([1-9][0-9]{0,8})(?:[:C\u2013-]{1,2}L?[0-9]{1,9}){0,3}\Z")
_LONGEST_LINES = 60
_WORD = re.compile(r"\((?!\S+/)[^()]*\)(?=[\s,;]|\Z)|[,;]|(?:[^\s,;{]|\{[^{}]*\}|\{)+")
_REFERENCE = re.compile(r"(?<!\S)\[([^\[\]\s,\"'./]*[./][^\[\]\s,\"']*)\](?:\[[^\[\]]*\])?(?![^\s,;:])")
_HTML_CODE = re.compile(r"<(code|kbd|samp|tt)>([^<>`]+)</\1>", re.IGNORECASE)
_ELSEWHERE = re.compile(r"[#/]|\.\./|\w+:|\Z")
"""Targets of links that are not files below the top of the repository, as far as they tell."""

_ADDRESS = re.compile(r"\A\w+://[^/]*/|\A(?:\.{1,2}/)+|[?#].*", re.DOTALL)

SYMBOL = re.compile(r"(?<=\w)(\.\w+)(?:::|[#:](?=[A-Za-z_])).*", re.DOTALL)
"""A part of a file, behind its extension: ``a.py::test_b``, ``a.py:Parser.read`` or ``a.md#limits``."""
_ALL = re.compile(r"everything|anything|all|any", re.IGNORECASE)
_CUT = re.compile(r"\u2026|[^/.]\.{3}(?![^/])")
_SET = re.compile(r"\{[\w-]*\.\.|\[(?:[!^]|\w-\w)|(?<=[^/\[])\[\w+\]|\[\w+\](?![/*\]]|\Z|\.[a-z]?[jt]sx?|\.\w{3,})")
"""A range or a set of characters; a whole name in brackets, such as ``[id]`` or ``[id].tsx``, is one of a route."""
NO_PATH = re.compile(
    rf"://|\A(?:\[*[!\"\u2018]|--|www\.|\d+(?:\.\d+)+\Z)|\A\[[^\]]*\][\[(]|\w\([^/()]*\)\Z|\||{_CUT.pattern}|{_SET.pattern}"
)
"""Signs of addresses, options, numbers, patterns, links, calls, alternatives, and names that are cut off."""
_REST = re.compile(r"(?<![^/])(?:\u2026|\.{3})(?![^/])")
"""Dots in the place of a name, for all files and folders there."""
_EMPHASISED = re.compile(
    r"(?:(\*\*|[\"'])(?!/)|([*_]|__)(?=[A-Za-z0-9][^*/]*/|[^\W_]+\2(?![\w.])))([^*]+?)(?:\1|\2)(?![\w/*])"
)
"""A word in the marks of emphasis or quotes; between single stars, a path with a folder or a plain word."""
_STRUCK = re.compile(r"(?<![\w/.`])~~(?!\s).+?~~(?![\w/])")
_WIDE = {0xFF0C: ",", 0x3001: ",", 0xFF1B: ";", 0xFF1A: ": ", 0xFF08: " (", 0xFF09: ") ", 0x2014: " \u2014 "}
_WIDE |= {0x300C: ' "', 0x300D: '" '} | dict.fromkeys(map(ord, "\u201c\u201d\u201e\xab\xbb"), '"')
_WIDE |= dict.fromkeys(range(0x2190, 0x2200), " \u2192 ")
"""Punctuation that is written without blanks, and other forms of quotes and arrows."""
_EXTENSION = re.compile(r"\w[\w.-]*")
_ALL_FOLDERS = re.compile(r"(?<!\*)\*/\Z")
_WHOLE = re.compile(r"\.|\*{1,2}(?:/\*{1,2})*")
"""Paths of the whole repository."""

_ESCAPE = re.compile(r"\\([^A-Za-z0-9\s])")
_BRACES = re.compile(r"\{([^{},|]*[,|][^{}]*)\}")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
OWNED = re.compile(r"owned by `?#[^\s`)]+`?", re.IGNORECASE)


def is_part(word: str) -> bool:
    """Return whether a word is a part of a file."""
    return SYMBOL.search(posixpath.basename(read_place(word)[0])) is not None


def is_unread(word: str, *, is_out: bool) -> bool:
    """Return whether a word that is not read stands for paths: it is cut off, has alternatives, or is a part of one."""
    return (is_out and is_part(word)) or re.search(rf"[|{{]|{_CUT.pattern}|{_SET.pattern}", word) is not None


def _with_code(text: str) -> str:
    """Return an entry with code in place of HTML and of links, by their targets, which may say more than texts."""
    for link in reversed(read_inlines(text, {})) if "](" in text else ():
        if link.kind == "link" and not re.match(r"[\w/]", text[link.start - 1 : link.start]):
            label, target = text[link.start + 1 : link.label_end].strip("`*"), unquote(link.address or "")
            name = label if _ELSEWHERE.match(target) else target
            is_part = " " not in name and ("/" in name or target.endswith(f"/{name}"))
            is_name = is_part or name == target or names_file(name)
            ends = [re.split(r"/+", each)[::-1] for each in (read_place(label)[0], _ADDRESS.sub("", target))]
            is_other = bool(target) and names_file(label) and any(a != b for a, b in zip(*ends, strict=False))
            code = f"`{name}` !" if is_other else f"`{name}`"
            text = f"{text[: link.start]}{code}{text[link.end :]}" if is_name else text
    return _HTML_CODE.sub(r"`\2`", _REFERENCE.sub(r"`\1`", text))


def entry_words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of an entry, and whether each is marked as a name: by backticks, emphasis, quotes or a link."""
    text = _STRUCK.sub("!", _with_code(text))
    for span in spans(text[bullet.end() if (bullet := _BULLET.match(text)) else 0 :]):
        if span.kind == "code":
            yield span.text.strip("`").strip() if span.text.startswith("`") else span.text, True
            continue
        for match in _WORD.finditer(ENTITY.sub(lambda hit: decoded_entity(hit[0]), span.text).translate(_WIDE)):
            word = match[0].strip(",;") or match[0]
            if dressed := _EMPHASISED.match(word):
                is_path = re.search(r"[/.]", dressed[3]) is not None
                word = word[dressed.end() :] if is_path else dressed[3] + word[dressed.end() :]
                yield from [(dressed[3], True)] if is_path else ()
            if word.strip("*"):
                yield word, False


def paths_of(word: str, is_marked: bool, *, is_name: bool = False) -> list[str]:
    """Return the paths that a word stands for by its form; one that ``is_name`` has it without a slash or extension."""
    path = word if is_marked else _ESCAPE.sub(r"\1", word).rstrip(":")
    if not is_marked and not path.endswith("..") and path != ".":
        path = path.rstrip(".")
    path, _ = read_place(_REST.sub("**", path) if "/" in path else path)
    path = path[: path.rfind("/") + 1] + SYMBOL.sub(r"\1", posixpath.basename(path))
    is_path = names_file(path) or word == "./" or "/" in path or (is_name and " " not in path)
    is_html = not is_marked and ("<" in path or ">" in path)
    is_word = not is_marked and _ALL.fullmatch(path)
    is_blank = is_placeholder(path) and not _WHOLE.fullmatch(path)
    paths = _alternatives(path)
    if not is_path or is_html or is_word or is_blank or NONE.fullmatch(path) or any(map(NO_PATH.search, paths)):
        return []
    return [posixpath.normpath(_ALL_FOLDERS.sub("*/**", each)) for each in paths]


def _alternatives(path: str) -> list[str]:
    """Return the paths that one with braces stands for, from the inner ones; none of too many."""
    found: list[str] = []
    left = [path]
    while left and len(found) + len(left) <= MOST_ALTERNATIVES:
        each = left.pop(0)
        if braces := _BRACES.search(each):
            parts = re.split(r"[,|]", braces[1])[: MOST_ALTERNATIVES + 1]
            left[:0] = [f"{each[: braces.start()]}{one.strip()}{each[braces.end() :]}" for one in parts]
        else:
            found.append(each)
    return [] if left else found


def names_file(path: str) -> bool:
    """Return whether a word is a path wherever it stands: it has an extension, a wildcard, or a slash behind it."""
    name = posixpath.basename(path)
    stem, _, extension = name.partition(".")
    is_abbreviation = path == name and len(stem) == len(extension) == 1
    is_pattern = "*" in path and ("/" in path or "." in path)
    return is_pattern or path.endswith("/") or (_EXTENSION.fullmatch(extension) is not None and not is_abbreviation)


def is_sure(path: str) -> bool:
    """Return whether a path is more than a plain word."""
    return "/" in path or names_file(path)


def is_file(name: str) -> bool:
    """Return whether a plain name is a file's, such as ``Makefile``; one in capitals may be a word."""
    return FILE_NAME.fullmatch(name) is not None and not name.isupper()


def read_place(path: str, line: int | None = None) -> tuple[str, int | None]:
    """Return path and line from what an agent or a person wrote: ``./a.py``, ``a.py:2-4`` or ``a.py#L2``."""
    path = path.strip(" \t`")
    path = (path if "/" in path else path.replace("\\", "/")).removeprefix("./") or path[:1]
    found = _LINES.search(path, max(0, len(path) - _LONGEST_LINES))
    return (path[: found.start()], line or int(found[1])) if found else (path, line)
