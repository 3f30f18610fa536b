"""Markdown checklists: each outermost box with what is nested below it, the paths in a text, and the tasks. Pure."""

from __future__ import annotations

import posixpath
import re
import textwrap
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import filterfalse
from operator import attrgetter

from accord.core.frozen import Frozen
from accord.core.texts import is_nothing
from accord.plans.models import Source, SourceTask, priority_in
from accord.text.blocks import read_blocks
from accord.text.outline import bot_controls, list_items, sections, shown_text, spans

NUMBER = re.compile(r"(?<!\s)\s*\(#([1-9][0-9]{0,17})\)\s*\Z")
"""The issue of an entry, as a write-back puts it at the end of its first line."""

_STRUCK = re.compile(r"(`[^`]*`)|(?<!\w)~~(?!\s)(?:(?!~~).)+~~(?!\w)", re.DOTALL)
_UNTITLED = re.compile(r"(?:[A-Z]{1,10}-?[0-9]{1,6}[a-z]?\b|\[\w+\]|\[(?!\w+\])|[^\w\[])*")
"""An id and tags such as ``T012 [P]``, without a title."""

_BRACKETS = re.compile(r"`[^`]*`|\(([^()]*)\)")
_WAITS = re.compile(r"\A\s*(?:depends? on|after|requires|blocked by)\b(?!\s*:)(.*)", re.IGNORECASE | re.DOTALL)
_SEPARATORS = re.compile(r"([,;]\s+)")
_APART = re.compile(r"[^:]*:[*_]*\s")
"""A word and a blank behind its colon; a label such as ``priority:high`` has none."""

_SENTENCES = re.compile(r"[.;]\s+(?=[A-Z])")
_FIELD = re.compile(r"[*_`]*([A-Za-z][A-Za-z ]{1,30}?)[*_`]*\s*:\s*[*_]*\s*(\S.*)", re.DOTALL)
_FIELDS = {
    "scope": "file, files, path, paths, scope, in scope, owned files, touches",
    "out": "out of scope",
    "blockers": "blocked by, depends on, dependencies, after, requires",
    "labels": "labels",
    "priority": "priority",
    "complexity": "complexity",
    "criteria": "acceptance, acceptance criteria, acceptance criterion, criterion, done when, test, verify",
    "id": "id",
}
_FIELD_OF = {word: name for name, words in _FIELDS.items() for word in words.split(", ")}
_LEVELS = {"priority": ("high", "medium", "low"), "complexity": ("trivial", "low", "medium", "high")}
_TEMPLATE = re.compile(r"^##[ \t]+(?:Objective|Ambiguity)[ \t]*$", re.MULTILINE)


class ListEntry(Frozen):
    """A box: its text on one line, where it is, and the fields, criteria, notes or the whole body nested below it."""

    text: str
    line: int
    is_done: bool
    section: str
    number: int = 0
    fields: dict[str, list[str]] = field(default_factory=dict)
    criteria: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    body: str = ""

    def scope(self, name: str = "scope") -> tuple[str, ...]:
        """Return the paths of a field; a whole field without a known path is one."""
        return tuple(dict.fromkeys(path for text in self.fields.get(name, ()) for path in paths_in(text)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it states, also by a priority, P0 to P3 or a complexity; another value is a label, too."""
        names = [name for text in self.fields.get("labels", ()) for name in text.split(",")]
        for category, levels in _LEVELS.items():
            for text in filterfalse(is_nothing, self.fields.get(category, ())):
                words = _SLUG_WORDS.findall(text.casefold())
                level = next((level for level in levels if level in words), "")
                level = level or (priority_in([text]) if category == "priority" else "")
                names.append(f"{category}:{level or text.strip('*_`. ')}")
        return tuple(dict.fromkeys(filter(None, (name.strip(" `") for name in names))))


def entries_of(markdown: str) -> list[ListEntry]:
    """Return the outermost boxes of a text in its order. Code, comments and quotes hold none, nor do bots' buttons."""
    blocks, controls = read_blocks(markdown), bot_controls(markdown)
    lines = [markdown[start:end] for start, end in blocks.lines]
    headings = sections(markdown)
    paragraphs = {block.inside: block for block in reversed(blocks.leaves) if block.kind == "paragraph"}
    found: list[ListEntry] = []
    inside = 0
    for item in blocks.items:
        paragraph = paragraphs.get(item) if item.box and item.first >= inside else None
        if paragraph is None or item in controls or any(each.kind == "quote" for each in item.around):
            continue
        inside = item.last
        line, _, rest = paragraph.texts[0].partition("\n")
        number = NUMBER.search(line.rstrip())
        first, stated = _without_fields(NUMBER.sub("", line.rstrip()))
        more = [each for each in rest.splitlines() if not _is_field(each)]
        stated += [each for each in rest.splitlines() if _is_field(each)]
        text, bracketed = _without_brackets(shown_text("\n".join([first, *more])))
        shown = _without_struck(text)
        is_struck = bool(text) and shown != text and bool(_UNTITLED.fullmatch(shown))
        above = bisect_right(headings, item.first, key=attrgetter("line"))
        section = headings[above - 1].title if above else ""
        below = textwrap.dedent("\n".join(lines[paragraph.first + len(paragraph.lines) : item.last]))
        title, is_done = (text.replace("~~", ""), True) if is_struck else (shown, item.box != " ")
        entry = ListEntry(title, item.first + 1, is_done, section, int(number[1]) if number else 0)
        found.append(_with_nested(entry, below, [*stated, *bracketed]))
    return found


def _without_struck(text: str) -> str:
    return " ".join(_STRUCK.sub(lambda found: found[1] or "", text).split()) if "~~" in text else text


def _without_brackets(text: str) -> tuple[str, list[str]]:
    """Return a text without the brackets that state fields, such as ``(blocked by T1, priority: high)``, and these."""
    stated = list[str]()

    def remove(brackets: re.Match[str]) -> str:
        is_call = bool(text[brackets.start() - 1 : brackets.start()].strip()) and not _WAITS.match(brackets[1] or "")
        parts = [_WAITS.sub(r"Depends on: \1", part) for part in _SEPARATORS.split(brackets[1] or "")]
        fields = "".join(parts).strip()
        words = {word.lower() for word, _ in _fields_of(shown_text(fields))}
        if is_call or not words or "id" in words:
            return brackets[0]
        stated.append(fields)
        return ""

    shown = _BRACKETS.sub(remove, text)
    return (" ".join(shown.split()), stated) if stated else (text, [])


def _is_field(line: str) -> bool:
    return bool(_fields_of(shown_text(line)))


def _fields_of(text: str) -> list[tuple[str, str]]:
    """Return the word and the value of each field of a text; one that is a list may have others behind its commas."""
    found: list[tuple[str, list[str]]] = []
    parts = _SEPARATORS.split(text)
    for separator, part in zip(["", *parts[1::2]], parts[::2], strict=True):
        named = _FIELD.fullmatch(part)
        word = named[1].strip() if named else ""
        is_text = bool(found) and (_FIELD_OF[found[-1][0].lower()] == "criteria" or not _APART.match(part))
        if named and word.lower() in _FIELD_OF and not is_text:
            found.append((word, [named[2]]))
        elif found:
            found[-1][1].extend((separator, part))
        else:
            return []
    return [(word, "".join(value)) for word, value in found]


def _without_fields(line: str) -> tuple[str, list[str]]:
    parts = _SENTENCES.split(line)
    first = next((i for i, part in enumerate(parts) if i and _is_field(part)), len(parts))
    if not all(map(_is_field, parts[first:])):
        return line, []
    return ". ".join(parts[:first]), parts[first:]


def _with_nested(entry: ListEntry, below: str, stated: Sequence[str]) -> ListEntry:
    """Read fields, also those ``stated`` by the entry, boxes as criteria, other text as notes; or a whole body."""
    template = _TEMPLATE.search(below)
    head = below[: template.start()] if template else below
    body = below[template.start() :].rstrip() if template else ""
    fields: dict[str, list[str]] = {}
    criteria, notes = [], []
    listed = list_items(read_blocks(head).leaves)
    parts = [" ".join(part.split()) for part in re.split(r"\n[ \t]*\n", head) if part.strip()] if not listed else []
    stated = [*stated, *filter(_is_field, parts)]
    notes += [part for part in parts if not _is_field(part)]
    texts = [*((shown_text(each), None) for each in stated), *((item.text, item.checked) for item in listed)]
    for text, checked in ((_without_struck(text), checked) for text, checked in texts):
        named = _fields_of(text) if checked is None else []
        for word, value in named:
            name = _FIELD_OF[word.lower()]
            if name != "criteria":
                fields.setdefault(name, []).append(value)
            else:
                criteria.append(f"{word}: {value}" if word.lower() in ("test", "verify") else value)
        if text and not named:
            (notes if checked is None else criteria).append(text)
    return replace(entry, fields=fields, criteria=tuple(criteria), notes=tuple(notes), body=body)


_REFERENCE = re.compile(r"#[1-9][0-9]{0,17}\b|\b[A-Za-z]{1,10}-?\d{1,6}[a-z]?\b")
_RANGE = re.compile(r"\b([A-Za-z]{1,10}-?)(\d{1,6})\s*(?:-|\u2013|\u2014|to|through|\.\.)\s*(?:\1)?(\d{1,6})\b")
_MOST_OF_RANGE = 200


def references_in(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the ids and issues that texts name, such as T012, WP03, ``T001-T004`` and #12, each once."""
    return tuple(dict.fromkeys(name for text in texts for name in _references(text)))


def _references(text: str) -> Iterator[str]:
    place = 0
    for span in _RANGE.finditer(text):
        yield from _REFERENCE.findall(text[place : span.start()])
        first, last, width = int(span[2]), int(span[3]), len(span[2])
        if first < last <= first + _MOST_OF_RANGE and len(span[3]) >= width:
            yield from (f"{span[1]}{number:0{width}}" for number in range(first, last + 1))
        else:
            yield from _REFERENCE.findall(span.group())
        place = span.end()
    yield from _REFERENCE.findall(text[place:])


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
_CHARACTERS = re.compile(r"[\w.@+~*?\[\]{}()$#-]+(?:/[\w.@+~*?\[\]{}()$#-]*)*", re.UNICODE)
_PRODUCT = re.compile(r"[A-Z][A-Za-z]*\.(?:js|ts|io|py)")
_LINES = re.compile(r"(?::\d+(?:-\d+)?|#L\d+(?:-L\d+)?)\Z")
FEATURE_DOCUMENTS = ("spec.md", "plan.md", "tasks.md", "research.md", "data-model.md", "quickstart.md")


def paths_in(text: str, folders: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the paths that a text names, normalised, each once; ``folders`` are further ones at the top.

    In backticks, anything with a slash or a known extension is a path. Elsewhere a slash may also mean "or", so that
    the word must end as a file does, or begin with a known folder.
    """
    found: list[str] = []
    for span in spans(_without_struck(text)):
        if span.kind == "code":
            if path := _as_path(span.text.strip("`").strip(), folders, is_code=True):
                found.append(path)
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


_ID = re.compile(r"[*_`]*([A-Z]{1,10}-?[0-9]{1,6}[a-z]?)[*_`]*[:.)\]]?\s+")
_SPEC = re.compile(
    r"^[ \t>*_-]*spec(?:ification)?[*_]{0,3}:[*_ \t]{0,9}`?([^\s`]*\.md)(?![^\s`])`?", re.IGNORECASE | re.MULTILINE
)
_SLUG_WORDS = re.compile(r"[a-z0-9]+")
_MOST_SLUG_WORDS = 6


def read_checklist(text: str, place: str) -> Source:
    """Read the tasks of a checklist; ``place`` is the path of its file, or its issue as ``#12``.

    Nested boxes are criteria of their task, ``Scope:``, ``Depends on:`` and such entries its fields; other nested text
    is context. Without nested boxes, the entry itself is the criterion. Checklists state no order.
    """
    spec = _SPEC.search(text)
    entries = [entry for entry in entries_of(text) if entry.text]
    names = _ids(entries)
    tasks = tuple(_task(entry, name, names, place) for entry, name in zip(entries, names, strict=True))
    return Source(spec[1] if spec else place, tasks)


def _ids(entries: Sequence[ListEntry]) -> list[str]:
    names, taken, copies = list[str](), set[str](), Counter[str]()
    for entry in entries:
        stated, slug = _ID.match(entry.text), _slug(entry.text)
        name = entry.fields.get("id", [""])[0].strip("` ") or (stated[1] if stated else "")
        made = slug
        while not name and made in taken:
            copies[slug] += 1
            made = f"{slug}-{copies[slug] + 1}"
        names.append(name or made)
        taken.add(names[-1])
    return names


def _task(entry: ListEntry, name: str, names: Sequence[str], place: str) -> SourceTask:
    text = " ".join(entry.text.split())
    waits = entry.fields.get("blockers", ())
    blockers = (each for wait in waits for part in wait.split(",") for each in _entries_named(part, names))
    return SourceTask(
        name,
        text,
        entry.line,
        place,
        section=entry.section,
        objective=text,
        scope=tuple(dict.fromkeys((*paths_in(text), *entry.scope()))),
        out_of_scope=entry.scope("out"),
        criteria=entry.criteria or (text,),
        context=entry.notes,
        blockers=tuple(dict.fromkeys(each for each in blockers if each != name)),
        is_done=entry.is_done,
        number=entry.number,
        body=entry.body,
        labels=entry.labels,
        hint="Name its files in the entry, or below it in an entry such as `- Scope: src/export.py`.",
    )


def _entries_named(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the tasks that a part of a reference names: by id or issue, else by the first words of the task."""
    if found := references_in([text]):
        return found
    slug = _slug(text)
    if not _SLUG_WORDS.search(text.casefold()) or slug == "none":
        return ()
    begun = (name for name in names if name.startswith(slug))
    return (slug if slug in names else next(begun, slug),)


def _slug(text: str) -> str:
    words = _SLUG_WORDS.findall(text.casefold())
    return "-".join(words[:_MOST_SLUG_WORDS]) or "task"
