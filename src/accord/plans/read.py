"""Recognise a source of a plan, such as a checklist, a session's folder or a mission, and read it."""

from __future__ import annotations

import os
import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.documents import read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, has_errors, with_lines
from accord.core.shapes import read_shape
from accord.files.yaml import read_mapping
from accord.missions.load import Mission, WorkPackage, lines_of, load_mission
from accord.plans.entries import read_checklist, stated_priority
from accord.plans.links import task_numbers
from accord.plans.models import Source, SourceTask, paths_in, priority_in, text_of
from accord.plans.spec_kit import is_spec_kit, read_spec_kit
from accord.results.models import PlannerResult
from accord.results.planner.rules import split_temp_id
from accord.sessions.folder import TASKS_FILE, read_session
from accord.sessions.models import SessionTask
from accord.text.outline import Section, sections, shown_text

if TYPE_CHECKING:
    from accord.github.client import GitHub

_BESIDE = ("spec.md", "plan.md")
_MARKS = (".git", ".specify", ".kittify", ".agents-work", "kitty-specs", "specs")
_ISSUE = re.compile(r"(?:https?://[^/\s]+/)?(?P<repo>[\w.-]+/[\w.-]+)(?:#|/issues/)(?P<number>[1-9][0-9]{0,17})/?")
_CRITERIA = re.compile(r"\b(?:success|acceptance) criteria\b|\bdefinition of done\b", re.IGNORECASE)
_OBJECTIVE = re.compile(r"\bobjectives?\b|\bgoal\b", re.IGNORECASE)
_CONSTRAINTS = re.compile(r"\A(?:constraints?|non-goals|out of scope)\b", re.IGNORECASE)
_WORK_PACKAGE = re.compile(r"\b(WP[0-9]{2,})\b")
_STATED = re.compile(
    r"^[ \t]{0,9}\*\*(Goal|Independent Test|Priority)(?::\*\*|\*\*:)[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE
)
_OVER = frozenset({"approved", "done", "canceled"})


def issue_in(text: str) -> tuple[str, int] | None:
    """Read ``owner/name#12`` or the address of an issue; None for anything else."""
    match = _ISSUE.fullmatch(text)
    return (match["repo"], int(match["number"])) if match else None


def read_source(path: Path, root: Path | None = None) -> Source:
    """Read a file or a folder as the source of a plan. Raises WrongUsage where it cannot be one.

    Paths of a plan are relative to ``root``, else to the nearest parent that looks like a repository.
    """
    if not path.exists():
        raise WrongUsage(f"`{path}` does not exist.", hint="Name a tasks.md, a mission, a session or a checklist.")
    path = Path(os.path.abspath(path))
    if path.is_dir():
        if path.parent.name == "kitty-specs":
            return read_mission(path.parent.parent, path.name)
        if (path / "tasks.yaml").is_file() or path.parent.name == ".agents-work":
            return read_session_tasks(path, _relative(path, root))
        if not (path / "tasks.md").is_file():
            message = f"`{path.name}` has neither tasks.md nor tasks.yaml."
            raise WrongUsage(message, hint="Name the file with the tasks.")
        path = path / "tasks.md"
    if path.name == "tasks.yaml" or path.parent.parent.name == "kitty-specs":
        return read_source(path.parent, root)
    if path.suffix == ".json":
        return _read_exported(path, _relative(path, root))
    text = text_of(path)
    if is_spec_kit(text):
        beside = {name: text_of(path.parent / name) for name in _BESIDE if (path.parent / name).is_file()}
        return read_spec_kit(text, _relative(path, root), beside)
    return read_checklist(text, _relative(path, root))


def read_issue(github: GitHub, number: int, place: str) -> tuple[Source, str]:
    """Read the checklist of an issue, which ``place`` names, and its body. Raises WrongUsage without one."""
    issue = github.issue(number)
    if issue is None:
        raise WrongUsage(f"{place} does not exist.", hint="Name an issue of the repository.")
    return read_checklist(issue.body, place), issue.body


def _read_exported(path: Path, place: str) -> Source:
    document = read_object(text_of(path).encode())
    try:
        result = read_shape(PlannerResult, document.value)
    except BrokenContract as broken:
        return Source(place, (), tuple((place, each) for each in with_lines(broken.findings, document.lines)))
    if result.close or result.update:
        hint = f"Apply it: `accord apply {path.name}`."
        raise WrongUsage(f"`{path.name}` is a planner result that closes or updates items.", hint=hint)
    names = {item.temp_id: split_temp_id(item.temp_id)[0] for item in result.create}
    tasks = tuple(
        SourceTask(
            names[item.temp_id],
            item.title,
            document.lines.get(f"/create/{i}", 1),
            place,
            blockers=tuple(names.get(name) or f"#{name.removeprefix('#')}" for name in item.blocked_by),
            number=split_temp_id(item.temp_id)[1],
            body=item.body,
            labels=tuple(item.labels),
        )
        for i, item in enumerate(result.create)
    )
    return Source(place, tasks)


def _relative(path: Path, root: Path | None) -> str:
    parents = [folder for folder in path.parents if any((folder / mark).exists() for mark in _MARKS)]
    marked = (folder for folder in parents if (folder / ".git").exists())
    base = Path(os.path.abspath(root)) if root else next(chain(marked, parents), path.parent)
    if not path.is_relative_to(base):
        raise WrongUsage(f"`{path}` is outside of `{base}`.", hint="Pass the repository's directory as `--root`.")
    return path.relative_to(base).as_posix()


def read_session_tasks(folder: Path, place: str) -> Source:
    """Read ``tasks.yaml`` of a session; ``place`` is the folder's path in the repository."""
    session = read_session(folder)
    part = session.parts[TASKS_FILE]
    file = f"{place}/{TASKS_FILE}"
    spec = f"{place}/spec.md" if not session.parts["spec.md"].is_missing else file
    problems = [each for each in part.findings if has_errors([each])]
    if session.tasks is None or problems:
        message = part.problem or f"{TASKS_FILE} cannot be read."
        problems = problems or [Finding("artifact-missing", message, hint="Write the tasks first.")]
        return Source(spec, (), tuple((file, each) for each in problems))
    lines, numbers = read_mapping(part.raw or b"").lines, task_numbers(session)
    tasks = tuple(
        _session_task(task, numbers.get(task.id, 0), file, lines.get(f"/tasks/{i}/id", 1))
        for i, task in enumerate(session.tasks.tasks)
    )
    return Source(spec, tasks, numbers_into={task.id: folder / TASKS_FILE for task in tasks})


def _session_task(task: SessionTask, number: int, file: str, line: int) -> SourceTask:
    return SourceTask(
        task.id,
        task.title or task.goal,
        line,
        file,
        section=task.id,
        objective=task.goal,
        scope=tuple(task.files_expected),
        criteria=(*map(str, task.acceptance_checks), *task.done_when),
        context=(
            *(f"Read `{path}`" for path in task.context_files),
            *(f"Risk: {risk}" for risk in task.risk_flags if risk != "none"),
        ),
        constraints=tuple(f"Not a goal: {text}" for text in task.non_goals),
        blockers=tuple(task.depends_on),
        is_done=task.status == "completed",
        number=number,
        hint=f"Add `files_expected: [src/export.py]` to `{task.id}`.",
    )


def read_mission(root: Path, slug: str) -> Source:
    """Read the work packages of a mission; those that are approved, done or canceled count as done."""
    mission = load_mission(root, slug, "code_change")
    folder = f"kitty-specs/{mission.slug}"
    names = (name for name in ("spec.md", "plan.md", "tasks.md") if (mission.folder / name).is_file())
    spec = next((f"{folder}/{name}" for name in names), folder)
    paths = {name: package.path for name, package in mission.work_packages.items()}
    for path in paths.values():
        text_of(path)  # raises for another encoding
    stated = _overview(text_of(overview) if (overview := mission.folder / "tasks.md").is_file() else "")
    broken = tuple(
        (f"{folder}/tasks/{mission.files[name].name}" if name in mission.files else folder, finding)
        for name, error in mission.broken.items()
        for finding in error.findings
    )
    tasks = tuple(_package(mission, one, folder, stated.get(name, [])) for name, one in mission.work_packages.items())
    return Source(spec, tasks, broken, paths)


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


def _package(mission: Mission, package: WorkPackage, folder: str, overview: list[Section]) -> SourceTask:
    own = sections(package.body)
    stated: dict[str, list[str]] = {}
    for label, words in _STATED.findall("\n".join(section.text for section in overview)):
        stated.setdefault(label.lower(), []).append(words)
    heading = overview[0].title if overview else package.id
    subtasks = [text for section in overview if "subtask" in section.title.lower() for text in _entries(section)]
    named = dict.fromkeys(path for text in subtasks for path in paths_in(text))
    listed = (section for section in own if _CRITERIA.search(section.title))
    criteria = [text for section in listed for text in _entries(section) or _paragraphs(section)]
    criteria += [f"Independent test: {words}" for words in stated.get("independent test", [])]
    goals = (text for section in own if _OBJECTIVE.search(section.title) for text in _paragraphs(section))
    priorities = [heading, *(f"Priority: {words}" for words in stated.get("priority", []))]
    return SourceTask(
        package.id,
        package.title or package.id,
        lines_of(package.path).get("/work_package_id", 1),
        f"{folder}/tasks/{package.path.name}",
        section=heading,
        objective=next(iter(stated.get("goal", [])), "") or next(goals, "") or package.title,
        scope=tuple(package.head.owned_files) or tuple(named),
        criteria=tuple(criteria or subtasks),
        context=tuple(f"Subtask: {text}" for text in subtasks) if criteria else (),
        constraints=tuple(text for one in own if _CONSTRAINTS.search(one.title) for text in _entries(one)),
        blockers=tuple(package.head.dependencies),
        priority=priority_in(priorities),
        labels=stated_priority(priorities),
        is_done=mission.known_status(package.id) in _OVER,
        number=package.head.work_item,
        hint="Add `owned_files:` with its files to the frontmatter.",
    )


def _entries(section: Section) -> list[str]:
    return [item.text for item in section.items if item.depth <= 1 and item.text]


def _paragraphs(section: Section) -> list[str]:
    texts = (shown_text(block.content) for block in section.blocks if block.kind == "paragraph" and block.level == 1)
    return [text for text in texts if text]
