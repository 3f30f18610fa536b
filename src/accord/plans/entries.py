"""Markdown checklists: each outermost box with what is nested below it, and the tasks. Pure."""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain, filterfalse, pairwise, takewhile
from operator import attrgetter, itemgetter

from accord.core.findings import Finding, Severity
from accord.core.frozen import Frozen
from accord.core.texts import is_nothing
from accord.plans.models import Source, SourceTask, paths_in, priority_in, unclear_paths, without_struck
from accord.plans.waits import (
    MOST_SLUG_WORDS,
    SLUG_WORDS,
    is_like,
    names_only,
    references_in,
    slug_of,
    waited_for,
)
from accord.text.blocks import read_blocks
from accord.text.markdown import as_code
from accord.text.outline import bot_controls, list_items, malformed_boxes, sections, shown_text

NUMBER = re.compile(r"(?<!\s)\s*\(#([1-9][0-9]{0,17})\)\s*\Z")
"""The issue of an entry, as a write-back puts it at the end of its first line."""

_UNTITLED = re.compile(r"(?:[A-Z]{1,10}-?[0-9]{1,6}[a-z]?\b|\[\w+\]|\[(?!\w+\])|[^\w\[])*")
"""An id and tags such as ``T012 [P]``, without a title."""

_BRACKETS = re.compile(r"`[^`]*`|\(([^()]*)\)|\[([^\[\]]*)\](?!\()")
_UNLABELLED = re.compile(r"\A\s*(depends? on|after|requires|blocked by|needs)\b(?!\s*:)", re.IGNORECASE)
_SEPARATORS = re.compile(r"([,;]\s+)")
_APART = re.compile(r"[^:]*:[*_]*\s")
"""A word and a blank behind its colon; a label such as ``priority:high`` has none."""

_SENTENCES = re.compile(
    r"[.;]\s+(?=\*{0,3}[A-Z])|(?:[.;,]| [-\u2013\u2014])? (?=\*\*(?:Priority|Complexity):[^*]*\*\*\W*\Z)"
)
"""The ends of sentences; a bold level at the end of a text is one."""

_FIELD = re.compile(r"[*_`]*([A-Za-z][A-Za-z_ -]{1,30}?)[*_`]*\s*:\s*[*_]*\s*(.*)", re.DOTALL)
_WORD_END = re.compile(r"[_-]|(?<=[a-z])(?=[A-Z])")
_FIELDS = {
    "scope": "file, files, path, paths, scope, in scope, owned files, touches",
    "out": "out of scope",
    "blockers": "blocked by, depend on, depends on",
    "needs": "dependencies, deps, prerequisites, after, requires, needs",
    "labels": "labels",
    "priority": "priority",
    "complexity": "complexity",
    "criteria": "acceptance, acceptance criteria, acceptance criterion, criterion, done when, test, verify",
    "id": "id",
}
_FIELD_OF = {word: name for name, words in _FIELDS.items() for word in words.split(", ")}
_SCOPES = ("scope", "out")
_VALUE = re.compile(r"[A-Za-z0-9-]+")
_RANK = re.compile(r"P[0-9]")
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
        """Return the paths of a field, each once."""
        found = (paths_in(text, is_field=True) for text in self.fields.get(name, ()))
        return tuple(dict.fromkeys(chain.from_iterable(found)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it states, also by a priority, P0 to P3 or a complexity; another value is a label, too."""
        names = [name for text in self.fields.get("labels", ()) for name in text.split(",")]
        for category in _LEVELS:
            texts = filterfalse(is_nothing, self.fields.get(category, ()))
            names += (_level_label(category, text) for text in texts)
        return tuple(dict.fromkeys(filter(None, (name.strip(" `") for name in names))))

    def as_task(self, name: str, text: str, place: str) -> SourceTask:
        """Return the task that it is in ``place``, without what it waits for."""
        return SourceTask(
            name,
            text,
            self.line,
            place,
            section=self.section,
            objective=text,
            scope=tuple(dict.fromkeys((*paths_in(text), *self.scope()))),
            out_of_scope=self.scope("out"),
            criteria=self.criteria or (text,),
            context=self.notes,
            is_done=self.is_done,
            number=self.number,
            body=self.body,
            labels=self.labels,
            hint="Name its files in the entry, or below it in an entry such as `- Scope: src/export.py`.",
        )


def _level_label(category: str, text: str) -> str:
    return f"{category}:{_level_of(category, text) or text.strip('*_`. ')}"


def stated_priority(titles: Sequence[str]) -> tuple[str, ...]:
    """Return the label of the priority that titles state other than as P0 to P3, if any; it may be no level."""
    inside = [hit[1] or hit[2] or "" for title in titles for hit in _BRACKETS.finditer(title)]
    parts = [*titles, *(f"Priority: {text}" if _RANK.fullmatch(text) else text for text in inside)]
    values = (value for part in parts for name, value in _fields_of(part, None) if name == "priority")
    value = "" if priority_in(titles) else next(values, "")
    return () if is_nothing(value) else (_level_label("priority", value),)


def _level_of(category: str, text: str) -> str:
    words = SLUG_WORDS.findall(text.casefold())
    level = next((level for level in _LEVELS[category] if level in words), "")
    return level or (priority_in([text]) if category == "priority" else "")


def entries_of(markdown: str, known: frozenset[str] | None = None) -> list[ListEntry]:
    """Return the outermost boxes of a text in its order. Code, comments and quotes hold none, nor do bots' buttons.

    With ``known`` tasks, words such as "after" and "requires" state a field only before these and issues.
    """
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
        text, stated = _without_fields(f"{NUMBER.sub('', line.rstrip())}\n{rest}", known)
        shown = without_struck(text)
        is_struck = bool(text) and shown != text and bool(_UNTITLED.fullmatch(shown))
        above = bisect_right(headings, item.first, key=attrgetter("line"))
        section = headings[above - 1].title if above else ""
        below = textwrap.dedent("\n".join(lines[paragraph.first + len(paragraph.lines) : item.last]))
        title, is_done = (text.replace("~~", ""), True) if is_struck else (shown, item.box != " ")
        entry = ListEntry(title, item.first + 1, is_done, section, int(number[1]) if number else 0)
        found.append(_with_nested(entry, below, stated, known))
    return found


def list_findings(markdown: str, entries: Iterable[ListEntry], place: str) -> Iterator[tuple[str, Finding]]:
    """Find brackets in ``place`` that, without a link, miss a blank to be a box, and unclear paths of open entries."""
    for line, box, is_sure in malformed_boxes(markdown):
        message, hint = "The brackets of an entry are not a box.", f"Write {as_code(box)}."
        severity = Severity.ERROR if is_sure else Severity.WARNING
        yield place, Finding("box-malformed", message, line=line, severity=severity, hint=hint)
    for entry in (each for each in entries if not (each.is_done or each.body)):
        scopes = [text for name in _SCOPES for text in entry.fields.get(name, ())]
        for words in chain(unclear_paths([entry.text]), unclear_paths(scopes, is_field=True)):
            message, hint = f"`{words}` is not clearly one path.", "Put each path in backticks: `src/my export.py`."
            yield place, Finding("path-unclear", message, line=entry.line, hint=hint)


def _without_fields(text: str, known: frozenset[str] | None) -> tuple[str, list[tuple[str, str]]]:
    """Return the text of an entry without the fields that its lines, last sentences and brackets state, and these."""
    first, *more = map(shown_text, text.splitlines() or [""])
    cuts = [(0, 0), *(hit.span() for hit in _SENTENCES.finditer(first)), (len(first), 0)]
    sentences = [_fields_of(first[start:end], known) for (_, start), (end, _) in pairwise(cuts)]
    at = len(sentences) - sum(1 for _ in takewhile(bool, reversed(sentences[1:])))
    read = [(first, first[: cuts[at][0]], [*chain.from_iterable(sentences[at:])])]
    read += [(line, "", _line_fields(line, known)) for line in more]
    lines, stated = list[str](), list[tuple[str, str]]()
    for place, (line, rest, fields) in enumerate(read):
        # the value of a label may be below the last line
        is_read = fields and ("needs", "") not in fields and (place == len(more) or all(map(itemgetter(1), fields)))
        lines.append(rest if is_read else line)
        stated += fields if is_read else ()
    shown = shown_text("\n".join(lines))

    def remove(brackets: re.Match[str]) -> str:
        inside = brackets[1] or brackets[2] or ""
        is_call = shown[brackets.start() - 1 : brackets.start()].strip() and not _UNLABELLED.match(inside)
        parts = (_UNLABELLED.sub(r"\1: ", part) for part in _SEPARATORS.split(inside))
        fields = [each for each in _fields_of(shown_text("".join(parts)), known) if each[1]]
        if is_call or not fields or "id" in dict(fields):
            return brackets[0]
        stated.extend(each for each in fields if each[0] != "notes")
        return brackets[0] if "notes" in dict(fields) else ""

    return shown_text(_BRACKETS.sub(remove, shown)), stated


def _line_fields(text: str, known: frozenset[str] | None) -> list[tuple[str, str]]:
    """Return the fields of a text that begins with one: those of each sentence, or else of the whole text."""
    sentences = [_fields_of(sentence, known) for sentence in _SENTENCES.split(text)]
    is_split = all(sentences) and "criteria" not in dict(sentences[0])
    return [*chain.from_iterable(sentences)] if is_split else _fields_of(text, known)


def _fields_of(text: str, known: frozenset[str] | None) -> list[tuple[str, str]]:
    """Return the name and the value of each field; a list may have others behind its commas, and a label no value."""
    found: list[tuple[str, str, list[str]]] = []
    parts = _SEPARATORS.split(text)
    for separator, part in zip(["", *parts[1::2]], parts[::2], strict=True):
        named = _FIELD.fullmatch(part)
        word = _WORD_END.sub(" ", named[1]).strip().lower() if named else ""
        is_text = bool(found) and (found[-1][0] == "criteria" or not _APART.match(part))
        if named and word in _FIELD_OF and not is_text:
            value = f"{named[1].strip()}: {named[2]}" if named[2] and word in ("test", "verify") else named[2]
            found.append((_FIELD_OF[word], part[: named.start(2)], [value]))
        elif found:
            found[-1][2].extend((separator, part))
        else:
            return []
    named_values = ((name, label, _without_bold_end(label, "".join(values))) for name, label, values in found)
    fields = [field for each in named_values for field in _as_field(*each, known)]
    return fields if {name for name, _ in fields} - {"notes"} else []


def _without_bold_end(label: str, value: str) -> str:
    """Return the value of a field without the end of bold words that began before its label."""
    before, stars, after = value.rpartition("**")
    return f"{before}{after}" if stars and label.count("**") % 2 else value


def _as_field(name: str, label: str, value: str, known: frozenset[str] | None) -> Iterator[tuple[str, str]]:
    """Yield a field, or as notes what names neither a level nor one of the ``known`` tasks."""
    is_read = not value or is_nothing(value)
    if name == "needs" and not is_read and known is not None:
        named = [_known_in(part, known) for part in value.split(",")]
        if any(names for names, _ in named):
            yield "blockers", ", ".join(chain.from_iterable(names for names, _ in named))
        is_read = all(is_whole for _, is_whole in named)
    elif name in _LEVELS:
        is_read |= bool(_level_of(name, value) or _VALUE.fullmatch(value.strip("*_`. ")))
        yield from [(name, value)] if is_read else ()
    else:
        is_read = True
        yield "blockers" if name == "needs" and value else name, value
    if not is_read:
        yield "notes", f"{label}{value}"


def _known_in(text: str, known: frozenset[str]) -> tuple[list[str], bool]:
    """Return the issues and tasks that a text names by ids like the known ones or first words; whether it is all."""
    if not (found := references_in([text])):
        return ([text], True) if slug_of(text) in known else ([], False)
    names = [name for name in found if is_like(name, known)]
    return names, names == [*found] and names_only(text)


def _with_nested(
    entry: ListEntry, below: str, stated: Sequence[tuple[str, str]], known: frozenset[str] | None
) -> ListEntry:
    """Read fields, also those ``stated`` by the entry, boxes as criteria, other text as notes; or a whole body.

    The entries below a label without a value are its value. An entry is a level above its further paragraphs.
    """
    start = template.start() if (template := _TEMPLATE.search(below)) else len(below)
    head, body = below[:start], below[start:].rstrip()
    blocks = [one for one in read_blocks(head).leaves if one.texts and all(each.kind != "quote" for each in one.around)]
    checks = {item.line: item.checked for item in list_items(blocks)}
    rows = [(shown_text(" | ".join(one.texts)), one.level, one.first + 1) for one in blocks]
    texts = [(text, level - (line in checks), checks.get(line)) for text, level, line in rows if checks]
    texts = texts or [(" ".join(part.split()), 1, None) for part in re.split(r"\n[ \t]*\n", head) if part.strip()]
    fields: dict[str, list[str]] = {}
    found, labels = [*stated], [("", 0, ""), *((name, 1, "") for name, value in stated if not value)]
    for text, level, checked in texts:
        labels = [each for each in labels if each[1] < level]
        label, _, title = labels[-1]
        more = _line_fields(without_struck(text), known) if checked is None else [("criteria", text)]
        name = next((name for name, value in more[-1:] if not value), "")
        if label in _SCOPES and dict(more).keys().isdisjoint(_SCOPES):
            is_read = bool(paths_in(text, is_field=True))
            name = "" if is_read or not text.rstrip("*_").endswith(":") else label
            more = [(label, text), *([] if is_read else [("notes", text)])]
        elif label and label not in _SCOPES:
            name, more = "", [*_as_field(label, f"{title} ", text, known)]
        labels.append((name, level, text))
        found += more or [("notes", text)]
    for name, value in found:
        fields.setdefault(name, []).append(without_struck(value))
    criteria, notes = (tuple(filter(None, fields.pop(name, ()))) for name in ("criteria", "notes"))
    return replace(entry, fields=fields, criteria=criteria, notes=notes, body=body)


_ID = re.compile(r"[*_`]*([A-Z]{1,10}-?[0-9]{1,6}[a-z]?)[*_`]*[:.)\]]?\s+")
_SPEC = re.compile(
    r"^[ \t>*_-]*spec(?:ification)?[*_]{0,3}:[*_ \t]{0,9}`?([^\s`]*\.md)(?![^\s`])`?", re.IGNORECASE | re.MULTILINE
)


def read_checklist(text: str, place: str) -> Source:
    """Read the tasks of a checklist; ``place`` is the path of its file, or its issue as ``#12``.

    Nested boxes are criteria of their task, ``Scope:``, ``Depends on:`` and such entries its fields; other nested text
    is context. Without nested boxes, the entry itself is the criterion. Checklists state no order.
    """
    spec = _SPEC.search(text)
    begun = _beginnings(_ids(entries_of(text)), 1)
    entries = [entry for entry in entries_of(text, begun) if entry.text]
    names = _ids(entries)
    known = _beginnings(names, 2)
    tasks = tuple(_task(entry, name, names, known, place) for entry, name in zip(entries, names, strict=True))
    return Source(spec[1] if spec else place, tasks, (*list_findings(text, entries, place),))


def _beginnings(names: Iterable[str], least: int) -> frozenset[str]:
    words = [name.split("-") for name in names]
    return frozenset("-".join(each[:count]) for each in words for count in (*range(least, MOST_SLUG_WORDS), len(each)))


def _ids(entries: Sequence[ListEntry]) -> list[str]:
    names, taken, copies = list[str](), set[str](), Counter[str]()
    for entry in entries:
        stated, slug = _ID.match(entry.text), slug_of(entry.text)
        name = entry.fields.get("id", [""])[0].strip("` ") or (stated[1] if stated else "")
        made = slug
        while not name and made in taken:
            copies[slug] += 1
            made = f"{slug}-{copies[slug] + 1}"
        names.append(name or made)
        taken.add(names[-1])
    return names


def _task(entry: ListEntry, name: str, names: Sequence[str], known: frozenset[str], place: str) -> SourceTask:
    task = entry.as_task(name, " ".join(entry.text.split()), place)
    waits = (*entry.fields.get("blockers", ()), *waited_for((task.title, *entry.notes), name, known))
    blockers = (each for wait in waits for part in wait.split(",") for each in _entries_named(part, names))
    return replace(task, blockers=tuple(dict.fromkeys(blockers)))


def _entries_named(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the tasks that a part of a reference names: by id or issue, else by the first words of the task."""
    if found := references_in([text]):
        return found
    slug = slug_of(text)
    if is_nothing(text) or not SLUG_WORDS.search(text.casefold()):
        return ()
    begun = (name for name in names if name.startswith(slug))
    return (slug if slug in names else next(begun, slug),)
