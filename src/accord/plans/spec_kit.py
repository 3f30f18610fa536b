"""Read a Spec Kit ``tasks.md``, with ``spec.md`` and ``plan.md`` next to it. Pure.

Order: within a phase, neighbouring ``[P]`` tasks are a group, every other task is one by itself, and a group waits for
the one before. A story's phase waits for the last phase before the stories; every other phase waits for all before it.
The Dependencies section and ``(depends on T012)`` in a task add to that.
Source: github/spec-kit, templates/tasks-template.md and templates/commands/tasks.md.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise

from accord.core.findings import Finding
from accord.plans.entries import ListEntry, entries_of, list_findings, stated_priority
from accord.plans.models import FOLDERS, Source, SourceTask, paths_in, priority_in
from accord.plans.waits import is_like, references_in, waited_for
from accord.text.outline import Section, code_of, sections, shown_text

_TASK = re.compile(r"[*_`]*(T[0-9X]{3,6}[a-z]?)[*_`]*[:.]?\s+(.*)", re.DOTALL)
_TAG = re.compile(r"\s*\[(P|(?:US|Story ?)\d+|[A-Z]{2,6}\d*)\](?=\s)")
_PHASE = re.compile(r"Phase\s+(\d+|N)\b[^\w]*(.*)", re.IGNORECASE)
_STORY = re.compile(r"\bUser Stor(?:y|ies)\s+(\d+)|\bUS(\d+)\b", re.IGNORECASE)
_DEPENDS = re.compile(r"\(((?:[^()]*?\b)?)(?:(depends? on|blocked by)|after|requires|needs)\b([^()]*)\)", re.IGNORECASE)
_NEGATED = re.compile(r"(?:\b(?:no|not|never|cannot)\b|n['\u2019]t\b)[^.,;]*\Z", re.IGNORECASE)
_DOCUMENTS = frozenset(("spec.md", "plan.md", "tasks.md", "research.md", "data-model.md", "quickstart.md"))
_LABELLED = re.compile(
    r"^[ \t>]{0,9}\*\*(Purpose|Goal|Independent Test(?: Criteria)?|Checkpoint)(?::\*\*|\*\*:)[ \t]*(\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_STATED = re.compile(
    r"(?P<own>[^:]{0,300}?)(?:: ?| )(?:(?P<waits>depends on|blocked by|(?:can start|starts) after)|blocks)"
    r" (?P<others>(?:(?! [-\u2013\u2014] |[;.] ).)*)",
    re.IGNORECASE,
)
"""A statement of the Dependencies section: what it is about, directly behind it one of these words, and the others."""

_ARROWS = re.compile(r"\u2192|->|=>")
_TREE = re.compile(r"([\u251c\u2514]\u2500+\s*)?(\.?[\w@-][\w.@-]*/?)\s*(?:#.*)?")
_WHOLE_STRUCTURE = re.compile(
    r"\b(?:per|from|in|following|according to)\s+(?:the\s+)?(?:implementation\s+)?plan\b|\bproject structure\b",
    re.IGNORECASE,
)


@dataclass
class _Phase:
    title: str
    number: str = ""
    story: str = ""
    labelled: dict[str, list[str]] = field(default_factory=dict)
    tasks: list[SourceTask] = field(default_factory=list)
    parallel: set[str] = field(default_factory=set)


def is_spec_kit(text: str) -> bool:
    """Return whether a text has tasks in the form ``- [ ] T001 …``."""
    return any(_TASK.fullmatch(entry.text) for entry in entries_of(text))


def read_spec_kit(text: str, file: str, beside: Mapping[str, str]) -> Source:
    """Read the tasks of a feature; ``file`` is the path of ``tasks.md``, ``beside`` has the documents next to it."""
    folder = posixpath.dirname(file)
    spec = posixpath.join(folder, "spec.md") if "spec.md" in beside else file
    tree = _tree_of(beside.get("plan.md", ""))
    phases = _phases(text)
    known = frozenset(match[1] for entry in entries_of(text) if (match := _TASK.fullmatch(entry.text)))
    placed = [
        (entry, next(phase for line, phase in reversed(phases) if line <= entry.line), _TASK.fullmatch(entry.text))
        for entry in entries_of(text, known)
    ]
    findings = [*list_findings(text, (entry for entry, _, match in placed if match), file)]
    with_tasks = {id(phase) for _, phase, match in placed if match}
    for entry, phase, match in placed:
        if match is None or "X" in match[1]:
            is_note = not match and not phase.number and id(phase) not in with_tasks and entry.text
            if not is_note:  # one of a checklist before or after the phases
                hint = "Write `- [ ] T001 What to do in path/to/file`."
                message = f"The entry `{entry.text[:60]}` has no id such as T001."
                findings.append((file, Finding("task-id-missing", message, line=entry.line, hint=hint)))
            continue
        task, is_parallel = _task(entry, match, phase, known, tree, file)
        more = references_in([*waited_for((task.title, *entry.notes), task.id, known)])
        phase.tasks.append(replace(task, blockers=(*task.blockers, *more)))
        if is_parallel:
            phase.parallel.add(task.id)
    used = [phase for _, phase in phases if phase.tasks]
    _add_stories(used, beside.get("spec.md", ""))
    waits = _order(used)
    for later, earlier in _stated_edges(text, used):
        waits.setdefault(later, []).extend(earlier)
    tasks = tuple(
        replace(task, blockers=tuple(dict.fromkeys((*waits.get(task.id, ()), *task.blockers))))
        for phase in used
        for task in phase.tasks
    )
    return Source(spec, tasks, tuple(findings))


def _phases(text: str) -> list[tuple[int, _Phase]]:
    """Return the phases with the lines of their headings, first the text before them; level 2 headings end a phase."""
    found = [(0, _Phase("Tasks"))]
    for section in sections(text):
        title = _PHASE.match(section.title)
        if title or section.level <= 2:
            story = _STORY.search(section.title)
            name = title[2] or section.title if title else section.title
            number = title[1] if title else ("-" if story else "")
            found.append((section.line, _Phase(name, number, next(filter(None, story.groups()), "") if story else "")))
        if len(found) > 1:
            for label, words in _LABELLED.findall(section.text):
                found[-1][1].labelled.setdefault(label.lower().split(" criteria")[0], []).append(words)
    return found


def _task(
    entry: ListEntry, match: re.Match[str], phase: _Phase, known: frozenset[str], tree: tuple[str, ...], file: str
) -> tuple[SourceTask, bool]:
    words, tags = match[2], []
    while tag := _TAG.match(f" {words}"):
        tags.append(tag[1])
        words = f" {words}"[tag.end() :].strip()
    digits = ("".join(filter(str.isdecimal, tag)) for tag in tags if tag.startswith(("US", "Story")))
    story = next(filter(None, digits), "")
    if story and not phase.story:
        phase.story = story
    named = paths_in(words, frozenset(path.rstrip("/") for path in tree))
    documents = tuple(posixpath.join(posixpath.dirname(file), path) for path in named if path in _DOCUMENTS)
    scope = (*(path for path in named if path not in _DOCUMENTS), *entry.scope())
    if not scope and _WHOLE_STRUCTURE.search(words):
        scope = tree
    text, needs = _without_needs(words, known)
    task = replace(
        entry.as_task(match[1], text, file),
        section=f"Phase {phase.number}: {phase.title}" if phase.number.isdecimal() else phase.title,
        scope=tuple(dict.fromkeys(scope or documents)),
        criteria=(text, *entry.criteria),
        blockers=(*needs, *references_in(entry.fields.get("blockers", ()))),
        hint=f"Name its files at the end of the line, such as `{match[1]} … in src/export.py`.",
    )
    return task, "P" in tags


def _without_needs(text: str, known: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """Return a text without the brackets that name what it waits for, and these ids and issues."""
    needs: list[str] = []

    def remove(hit: re.Match[str]) -> str:
        names = [name for name in references_in([hit[3]]) if hit[2] or is_like(name, known)]
        if not names or _NEGATED.search(hit[1]):
            return hit[0]
        needs.extend(names)
        return ""

    return " ".join(_DEPENDS.sub(remove, text).split()), tuple(needs)


def _add_stories(phases: Sequence[_Phase], spec: str) -> None:
    """Add priority and goal; the last task of a phase has its checkpoint, that of a story its test and scenarios."""
    stories = {}
    for section in sections(spec):
        found = _STORY.search(section.title) if section.level <= 4 else None
        if found:
            stories[next(filter(None, found.groups()))] = section
    last = {phase.story: phase for phase in phases if phase.story}
    for phase in phases:
        story = stories.get(phase.story)
        titles = [phase.title, *([story.title] if story else [])]
        rank, labels = priority_in(titles), stated_priority(titles)
        goals = phase.labelled.get("goal", []) + phase.labelled.get("purpose", [])
        phase.tasks[:] = [
            replace(
                task,
                priority=rank,
                labels=task.labels
                if any(one.startswith("priority:") for one in task.labels)
                else (*task.labels, *labels),
                context=(*(f"Goal: {goal}" for goal in goals), *task.context),
            )
            for task in phase.tasks
        ]
        closing = [f"Checkpoint: {words}" for words in phase.labelled.get("checkpoint", [])]
        if phase.story and last[phase.story] is phase:
            of_story = (each.labelled for each in phases if each.story == phase.story)
            tests = [f"Independent test: {words}" for each in of_story for words in each.get("independent test", [])]
            items = story.items if story else []
            scenarios = [item.text for item in items if re.match(r"\**given\b", item.text, re.IGNORECASE)]
            closing = [*tests, *scenarios, *closing]
        if closing:
            end = phase.tasks[-1]
            phase.tasks[-1] = replace(end, criteria=(*end.criteria, *closing))


def _order(phases: Sequence[_Phase]) -> dict[str, list[str]]:
    waits: dict[str, list[str]] = {}
    barrier: list[str] = []
    ends: dict[str, list[str]] = {}
    for phase in phases:
        if phase.story:
            before = ends.get(phase.story, barrier)
        else:
            before = [name for end in ends.values() for name in end] or barrier
        for group in _groups(phase):
            for name in group:
                waits[name] = list(before)
            before = group
        if phase.story:
            ends[phase.story] = before
        else:
            barrier, ends = before, {}
    return waits


def _groups(phase: _Phase) -> Iterator[list[str]]:
    for is_parallel, tasks in groupby(phase.tasks, key=lambda task: task.id in phase.parallel):
        names = [task.id for task in tasks]
        yield from [names] if is_parallel else ([name] for name in names)


def _stated_edges(text: str, phases: Sequence[_Phase]) -> Iterator[tuple[str, list[str]]]:
    """Yield the tasks of the Dependencies section with those that they wait for; each group is expanded once."""
    tasks = {task.id: ((task.id,), (task.id,)) for phase in phases for task in phase.tasks}
    groups = ((phase, [tuple(group) for group in _groups(phase)]) for phase in phases)
    ends = [(phase, (each[0], each[-1])) for phase, each in groups]
    waits: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    for line in (line for section in _below(text, "dependenc") for line in _lines_of(section)):
        parts = _ARROWS.split(line)
        if len(parts) == 1 and (stated := _STATED.match(line)):
            parts = [stated["others"], stated["own"]] if stated["waits"] else [stated["own"], stated["others"]]
        for before, after in pairwise(_ends_named(part, tasks, ends) for part in parts):
            for first, _ in after:
                waits.setdefault(first, {}).update((last, None) for _, last in before)
    for later, earlier in waits.items():
        names = dict.fromkeys(chain.from_iterable(earlier))
        yield from ((name, [each for each in names if each != name]) for name in later)


def _below(text: str, word: str) -> Iterator[Section]:
    depth = 0
    for section in sections(text):
        if depth and section.level <= depth:
            depth = 0
        if depth or word in section.title.lower():
            depth = depth or section.level
            yield section


def _lines_of(section: Section) -> Iterator[str]:
    for block in section.blocks:
        for text in (*block.texts, *(code_of(block) if block.kind == "fence" else ())):
            yield from (shown_text(line).replace("**", "").replace("`", "") for line in text.splitlines())


_Ends = tuple[tuple[str, ...], tuple[str, ...]]
"""The tasks with which a part of the plan begins and those with which it ends; a single task is both."""


def _ends_named(text: str, tasks: Mapping[str, _Ends], phases: Sequence[tuple[_Phase, _Ends]]) -> list[_Ends]:
    """Return the tasks that a text names, else the phases."""
    if found := [tasks[name] for name in references_in([text]) if name in tasks]:
        return found
    stories = {next(filter(None, found)) for found in _STORY.findall(text)}
    if found := [ends for phase, ends in phases if phase.story and phase.story in stories]:
        return found
    numbers = set(re.findall(r"\bPhase\s+(\d+)\b(?!\+)", text, re.IGNORECASE))
    return [ends for phase, ends in phases if phase.number in numbers]


def _tree_of(plan: str) -> tuple[str, ...]:
    """Return the entries at the top of the source tree in ``plan.md``: those that the plan's structure names."""
    for section in sections(plan):
        if "source code" in section.title.lower():
            lines = [line.rstrip() for block in section.blocks if block.kind == "fence" for line in block.lines[1:]]
            found = [entry for line in lines if (entry := _TREE.fullmatch(line))]
            top = [entry[2].rstrip("/") for entry in found if not entry[1]]
            below = [entry[2].rstrip("/") for entry in found if entry[1]]
            is_root = len(top) == 1 and top[0] not in FOLDERS
            return tuple(dict.fromkeys(below if is_root or not top else top))
    return ()
