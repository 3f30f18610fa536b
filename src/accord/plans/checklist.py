"""Read a Markdown checklist, of a file or of an issue: each outermost box is a task. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from accord.plans.entries import ListEntry, entries_of, paths_in, references_in
from accord.plans.models import Priority, Source, SourceTask, priority_in

_ID = re.compile(r"[*_`]*([A-Z]{1,10}-?[0-9]{1,6}[a-z]?)[*_`]*[:.)\]]?\s+")
_SPEC = re.compile(
    r"^[ \t>*_-]*spec(?:ification)?[*_]{0,3}:[*_ \t]{0,9}`?([^\s`]*\.md)(?![^\s`])`?", re.IGNORECASE | re.MULTILINE
)
_WORDS = re.compile(r"[a-z0-9]+")
_DEPENDS = re.compile(r"\((?:depends? on|after|requires|blocked by)\b([^()]*)\)", re.IGNORECASE)
_MOST_WORDS = 6


def read_checklist(text: str, place: str) -> Source:
    """Read the tasks of a checklist; ``place`` is the path of its file, or its issue as ``#12``.

    Nested boxes are criteria of their task, ``Scope:``, ``Depends on:`` and such entries its fields; other nested text
    is context. Without nested boxes, the entry itself is the criterion. Checklists state no order.
    """
    spec = _SPEC.search(text)
    entries = [entry for entry in entries_of(text) if entry.text]
    names = _names(entries)
    tasks = tuple(_task(entry, name, names, place) for entry, name in zip(entries, names, strict=True))
    return Source(spec[1] if spec else place, tasks)


def _names(entries: Sequence[ListEntry]) -> list[str]:
    """Return the id of each entry: the one that it states, else one made of its first words."""
    names: list[str] = []
    for entry in entries:
        stated, slug = _ID.match(entry.text), _slug(entry.text)
        copies = sum(each == slug or each.startswith(f"{slug}-") for each in names)
        made = f"{slug}-{copies + 1}" if slug in names else slug
        names.append(entry.fields.get("id", [""])[0].strip("` ") or (stated[1] if stated else made))
    return names


def _task(entry: ListEntry, name: str, names: Sequence[str], place: str) -> SourceTask:
    text = " ".join(_DEPENDS.sub("", entry.text).split())
    waits = [*_DEPENDS.findall(entry.text), *entry.fields.get("blockers", ())]
    blockers = (each for wait in waits for part in wait.split(",") for each in _references(part, names))
    labels = (label.strip(" `") for texts in entry.fields.get("labels", ()) for label in texts.split(","))
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
        priority=_priority(entry.fields.get("priority", ())),
        is_done=entry.is_done,
        number=entry.number,
        body=entry.body,
        labels=tuple(filter(None, labels)),
        hint="Name its files in the entry, or below it in an entry such as `- Scope: src/export.py`.",
    )


def _priority(texts: Sequence[str]) -> Priority:
    """Return the priority of a field: P0 to P3, or the word itself."""
    words = {word for text in texts for word in _WORDS.findall(text.casefold())}
    levels: tuple[Priority, ...] = ("high", "medium", "low")
    return next((level for level in levels if level in words), "") or priority_in(texts)


def _references(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the tasks that a part of a reference names: by id or issue, else by the first words of the task."""
    if found := references_in([text]):
        return found
    slug = _slug(text)
    if not _WORDS.search(text.casefold()) or slug == "none":
        return ()
    begun = (name for name in names if name.startswith(slug))
    return (slug if slug in names else next(begun, slug),)


def _slug(text: str) -> str:
    words = _WORDS.findall(text.casefold())
    return "-".join(words[:_MOST_WORDS]) or "task"
