"""Read the work packages of a mission below ``kitty-specs/``. It only reads the folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.core.errors import BrokenContract
from accord.missions.load import lines_of, load_mission
from accord.plans.models import Source, SourceTask
from accord.plans.paths import paths_in
from accord.plans.spec_kit import priorities_in
from accord.text.outline import sections, shown_text

if TYPE_CHECKING:
    from pathlib import Path

    from accord.missions.load import Mission, WorkPackage
    from accord.text.outline import Section

_CRITERIA = re.compile(r"\b(?:success|acceptance) criteria\b|\bdefinition of done\b", re.IGNORECASE)
_OBJECTIVE = re.compile(r"\bobjectives?\b|\bgoal\b", re.IGNORECASE)
_CONSTRAINTS = re.compile(r"\A(?:constraints?|non-goals|out of scope)\b", re.IGNORECASE)
_WORK_PACKAGE = re.compile(r"\b(WP[0-9]{2,})\b")
_STATED = re.compile(
    r"^[ \t]{0,9}\*\*(Goal|Independent Test|Priority)(?::\*\*|\*\*:)[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE
)
_OVER = frozenset({"approved", "done", "canceled"})


def read_mission(root: Path, slug: str) -> Source:
    """Read the work packages of a mission; those that are approved, done or canceled count as done."""
    mission = load_mission(root, slug, "code_change")
    folder = f"kitty-specs/{mission.slug}"
    spec = next(
        (f"{folder}/{name}" for name in ("spec.md", "plan.md", "tasks.md") if (mission.folder / name).is_file()), folder
    )
    try:
        overview = (mission.folder / "tasks.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        overview = ""
    stated = _overview(overview)
    broken = tuple(
        (f"{folder}/tasks/{mission.files[name].name}" if name in mission.files else folder, finding)
        for name, error in mission.broken.items()
        for finding in error.findings
    )
    tasks = tuple(
        _task(mission, package, folder, stated.get(name, [])) for name, package in mission.work_packages.items()
    )
    return Source(spec, tasks, broken, {name: package.path for name, package in mission.work_packages.items()})


def _overview(text: str) -> dict[str, list[Section]]:
    """Return the sections of ``tasks.md`` by work package: that of its heading, and those below it."""
    found: dict[str, list[Section]] = {}
    name, level = "", 0
    for section in sections(text):
        heading = _WORK_PACKAGE.search(section.title)
        if heading and section.level <= 3:
            name, level = heading[1], section.level
        elif section.level <= level:
            name = ""
        if name:
            found.setdefault(name, []).append(section)
    return found


def _task(mission: Mission, package: WorkPackage, folder: str, overview: list[Section]) -> SourceTask:
    own = sections(package.body)
    texts = "\n".join(section.text for section in overview)
    stated: dict[str, list[str]] = {}
    for label, words in _STATED.findall(texts):
        stated.setdefault(label.lower(), []).append(words)
    heading = overview[0].title if overview else package.id
    subtasks = [text for section in overview if "subtask" in section.title.lower() for text in _entries(section, 1)]
    scope = tuple(package.head.owned_files) or tuple(
        dict.fromkeys(path for text in subtasks for path in paths_in(text))
    )
    criteria = [text for section in own if _CRITERIA.search(section.title) for text in _points(section)]
    criteria += [f"Independent test: {words}" for words in stated.get("independent test", [])]
    objective = next(iter(stated.get("goal", [])), "") or _first_paragraph(own)
    file = f"{folder}/tasks/{package.path.name}"
    return SourceTask(
        package.id,
        package.title or package.id,
        lines_of(package.path).get("/work_package_id", 1),
        file,
        section=heading,
        objective=objective or package.title,
        scope=scope,
        criteria=tuple(criteria or subtasks),
        context=tuple(f"Subtask: {text}" for text in subtasks) if criteria else (),
        constraints=tuple(
            text for section in own if _CONSTRAINTS.search(section.title) for text in _entries(section, 1)
        ),
        blockers=tuple(package.head.dependencies),
        priority=priorities_in([heading, *stated.get("priority", [])]),
        is_done=_is_over(mission, package.id),
        number=package.head.work_item,
        hint="Add `owned_files:` with its files to the frontmatter.",
    )


def _entries(section: Section, depth: int) -> list[str]:
    return [item.text for item in section.items if item.depth <= depth and item.text]


def _points(section: Section) -> list[str]:
    """Return the entries of a section's lists, or its paragraphs where it has none."""
    return _entries(section, 1) or _paragraphs(section)


def _paragraphs(section: Section) -> list[str]:
    texts = (shown_text(block.content) for block in section.blocks if block.kind == "paragraph" and block.level == 1)
    return [text for text in texts if text]


def _first_paragraph(own: list[Section]) -> str:
    goals = (section for section in own if _OBJECTIVE.search(section.title))
    return next((paragraph for section in goals for paragraph in _paragraphs(section)), "")


def _is_over(mission: Mission, name: str) -> bool:
    try:
        return mission.status_of(name) in _OVER
    except BrokenContract:
        return False
