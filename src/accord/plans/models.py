"""A source of a plan: its text, and as its reader understood it, tasks with what is stated about them or lacks.

And the priorities and paths that a text names.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Literal

from accord.core.documents import decode_text
from accord.core.errors import WrongUsage
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.text.outline import spans

_MOST_BYTES = 4 * 1024 * 1024
Priority = Literal["", "high", "medium", "low"]
_PRIORITY = re.compile(r"\b[Pp]([0-3])\b")
_PRIORITIES: Mapping[str, Priority] = {"0": "high", "1": "high", "2": "medium", "3": "low"}


class SourceTask(Frozen):
    """A task of a source. Empty parts were not stated."""

    id: str  # becomes the tempID
    title: str
    line: int
    file: str
    section: str = ""
    objective: str = ""
    scope: tuple[str, ...] = ()
    out_of_scope: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()  # ids of tasks of the same source, or issues such as #12
    priority: Priority = ""
    is_done: bool = False
    number: int = 0  # the issue that an earlier write-back recorded, 0 without one
    body: str = ""  # a whole body that follows a template, used as it is
    labels: tuple[str, ...] = ()  # in place of the usual ones
    hint: str = ""  # where to add files to the scope


class Source(Frozen):
    """A read source."""

    spec: str  # what all its items name in their Spec Reference; the scope of a run
    tasks: tuple[SourceTask, ...]
    findings: tuple[tuple[str, Finding], ...] = ()
    numbers_into: Mapping[str, Path] = field(default_factory=dict)  # which file records the issue, by task, if any can


def text_of(path: Path) -> str:
    """Read a text. Raises WrongUsage where that is not possible, BrokenContract for another encoding than UTF-8."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise WrongUsage(f"Cannot read `{path}`: {error.strerror}.", hint="Name a file that you may read.") from None
    if len(raw) > _MOST_BYTES:
        raise WrongUsage(f"`{path.name}` is larger than {_MOST_BYTES // 1024 // 1024} MiB.", hint="Split it.")
    return decode_text(raw, name=path.name)


def priority_in(texts: Iterable[str]) -> Priority:
    """Return the priority that the first of some texts states as P0 to P3."""
    found = next((match for text in texts if (match := _PRIORITY.search(text))), None)
    return _PRIORITIES[found[1]] if found else ""


_STRUCK = re.compile(r"(`[^`]*`)|(?<!\w)~~(?!\s)(?:(?!~~).)+~~(?!\w)", re.DOTALL)
_EXTENSION_WORDS = """
astro bash bat bicep c cc cfg cjs clj conf cpp cs css csv dart env ex exs fs go gradle graphql groovy h hbs hcl hpp hs
html ini ipynb java jl js json jsonc jsonl jsx kt kts less lock lua m md mdx mjs ml mts nix php pl plist prisma
properties proto ps1 py pyi pyx r rb rs rst sass scala scss sh sql svelte svg swift tf tfvars toml ts tsx txt vue xml
yaml yml zig
"""
_FOLDER_WORDS = """
api app apps backend bin client cmd components config contracts core db deploy docs e2e examples frontend infra internal
ios android kitty-specs lib libs migrations mobile packages pkg public schemas scripts server services shared specs spec
src static test tests tools web
"""
_EXTENSIONS = frozenset(_EXTENSION_WORDS.split())
FOLDERS = frozenset(_FOLDER_WORDS.split())
_NAMES = ("Dockerfile", "Makefile", "Gemfile", "Procfile", "Jenkinsfile", "LICENSE", "CODEOWNERS", "Rakefile")
_WORD = re.compile(r"[^\s,;|]+")
_CHARACTERS = re.compile(r"[\w.@+~*?\[\]{}()$# -]+(?:/[\w.@+~*?\[\]{}()$# -]*)*", re.UNICODE)
_WITH_BLANK = re.compile(r"(?!\./|(?:\S*/)?\.?bin/)\S*/[^\s./]+(?: +[^\s/-][^\s/]*)*\.\w+")
_PARTS = re.compile(r"[,;()\u2013\u2014]|:\s|\s(?:and|or|and/or|&|\+|-)\s")
_PRODUCT = re.compile(r"[A-Z][A-Za-z]*\.(?:js|ts|io|py)")
_LINES = re.compile(r"(?::\d+(?:-\d+)?|#L\d+(?:-L\d+)?)\Z")


def paths_in(text: str, folders: frozenset[str] = frozenset(), *, is_field: bool = False) -> tuple[str, ...]:
    """Return the paths that a text names, normalised, each once; ``folders`` are further ones at the top.

    In backticks, anything with a slash or a known extension is a path; with blanks, unless the text ``is_field``, only
    a file in a folder. Elsewhere a slash may also mean "or", so that the word must end as a file does, or begin with a
    known folder.
    """
    found: list[str] = []
    for span in spans(without_struck(text)):
        if span.kind == "code":
            code = span.text.strip("`").strip()
            is_path = is_field or " " not in code or _WITH_BLANK.fullmatch(code)
            found += [path] if is_path and (path := _as_path(code, folders, is_code=True)) else []
        elif span.kind != "comment":
            words = (word.strip("*_\"'<>:,;!?()").rstrip(".:").removeprefix("./") for word in _WORD.findall(span.text))
            found += [path for word in words if (path := _as_path(word, folders, is_code=False))]
    return tuple(dict.fromkeys(found))


def _as_path(word: str, folders: frozenset[str], *, is_code: bool) -> str:
    word = _LINES.sub("", word)
    if "://" in word or "@" in word.partition("/")[0] or not _CHARACTERS.fullmatch(word) or word.startswith("$"):
        return ""
    head, _, _ = word.partition("/")
    name = word.rstrip("/").rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    is_file = name in _NAMES or bool(dot and extension.lower() in _EXTENSIONS and not _PRODUCT.fullmatch(word))
    is_hidden = word.startswith(".") and len(word) > 2 and word[1].isalpha()
    if "/" not in word:
        is_path = (is_file and "(" not in word and bool(stem or not dot or is_hidden)) or (is_hidden and is_code)
    else:
        is_path = is_file or is_hidden or head in FOLDERS or head in folders or (is_code and "(" not in word)
    return posixpath.normpath(word) if is_path and not word.startswith(("/", "..", "~")) else ""


def unclear_paths(texts: Sequence[str], *, is_field: bool = False) -> Iterator[str]:
    """Yield a folder before a file, as one path may be with its blank, and parts of fields from one to the other."""
    plain = (span.text for text in texts for span in spans(text) if span.kind == "text")
    for words in (part.split() for text in plain for part in _PARTS.split(text) if part.strip()):
        for first, *rest in [words] if is_field else pairwise(words):
            is_folder = "/" in first and first[-1].isalnum() and not paths_in(posixpath.basename(first))
            is_end = (is_field and "/" in rest[-1]) or paths_in(rest[-1]) if rest else not paths_in(first)
            if is_folder and is_end and (is_field or (paths_in(first) and "/" not in rest[-1])):
                yield " ".join((first, *rest))


def without_struck(text: str) -> str:
    """Return a text without its struck words, outside of code."""
    return " ".join(_STRUCK.sub(lambda found: found[1] or "", text).split()) if "~~" in text else text
