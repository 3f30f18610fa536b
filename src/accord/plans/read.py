"""Recognise a source of a plan and read it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.documents import read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import with_lines
from accord.core.shapes import read_shape
from accord.plans.entries import read_checklist
from accord.plans.models import Source, SourceTask, text_of
from accord.plans.spec_kit import is_spec_kit, read_spec_kit
from accord.results.models import PlannerResult
from accord.results.planner.rules import split_temp_id

if TYPE_CHECKING:
    from accord.github.client import GitHub

_BESIDE = ("spec.md", "plan.md")
_MARKS = (".git", ".specify", ".kittify", ".agents-work", "kitty-specs", "specs")
_ISSUE = re.compile(r"(?:https?://[^/\s]+/)?(?P<repo>[\w.-]+/[\w.-]+)(?:#|/issues/)(?P<number>[1-9][0-9]{0,17})/?")


def issue_in(text: str) -> tuple[str, int] | None:
    """Read ``owner/name#12`` or the address of an issue; None for anything else."""
    match = _ISSUE.fullmatch(text)
    return (match["repo"], int(match["number"])) if match else None


def read_source(path: Path, root: Path | None = None) -> Source:
    """Read a file or a folder as the source of a plan. Raises WrongUsage where it cannot be one.

    ``root`` is the repository's directory, to which the paths of a plan are relative; without it, the nearest parent
    that looks like one.
    """
    if not path.exists():
        raise WrongUsage(f"`{path}` does not exist.", hint="Name a tasks.md, a mission, a session or a checklist.")
    path = Path(os.path.abspath(path))
    if path.is_dir():
        if path.parent.name == "kitty-specs":
            from accord.plans.documents import read_mission

            return read_mission(path.parent.parent, path.name)
        if (path / "tasks.yaml").is_file() or path.parent.name == ".agents-work":
            from accord.plans.documents import read_session_tasks

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
    """Read the checklist of an issue, and its body; ``place`` names it in the plan.

    Raises WrongUsage where it does not exist.
    """
    issue = github.issue(number)
    if issue is None:
        raise WrongUsage(f"{place} does not exist.", hint="Name an issue of the repository.")
    return read_checklist(issue.body, place), issue.body


def _read_exported(path: Path, place: str) -> Source:
    """Read the planner result that ``accord items export --format json`` printed."""
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
    base = Path(os.path.abspath(root)) if root else _root_of(path)
    if not path.is_relative_to(base):
        raise WrongUsage(f"`{path}` is outside of `{base}`.", hint="Pass the repository's directory as `--root`.")
    return path.relative_to(base).as_posix()


def _root_of(path: Path) -> Path:
    parents = [folder for folder in path.parents if any((folder / mark).exists() for mark in _MARKS)]
    marked = next((folder for folder in parents if (folder / ".git").exists()), None)
    return marked or (parents[0] if parents else path.parent)
