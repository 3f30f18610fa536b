"""Files that workflows call in their own repository: composite actions, and shell scripts.

An action is read as a workflow with one job, so that its steps are judged in the context of the step that uses it. A
script is read as part of the step that runs it. Other files that they call are named.

Source: GitHub documentation, "Metadata syntax for GitHub Actions" and "Creating a composite action".
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accord.core.errors import BrokenContract
from accord.core.findings import pointer, warning, with_lines
from accord.core.shapes import read_shape
from accord.files.store import is_inside, read_inside
from accord.files.yaml import read_mapping
from accord.workflows.agent_commands import commands_of
from accord.workflows.models import CalledScript, Workflow
from accord.workflows.origins import ACTION_JOB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from accord.core.findings import PlacedFinding
    from accord.workflows.models import Job, Step

_LOCAL = ("./", "$/")
_MOST_ACTIONS = 200
_MOST_CHARACTERS = 100_000
_EXPRESSION = re.compile(r"\$\{\{[^}$]*(?:(?:\$(?!\{\{)|\}(?!\}))[^}$]*)*\}\}")
_SHELL_FILE = re.compile(r"\.(?:ba|z|da|k)?sh\Z")
_PROGRAM_FILE = re.compile(r"\.(?:py|[cm]?[jt]sx?|rb|pl|php|ps1|R|go|lua)\Z")
_SHEBANG = re.compile(r"\A#!.*\b(?:ba|z|da|k)?sh\b")
_OTHER_SHELLS = re.compile(r"\A(?:python|pwsh|powershell|node|ruby|perl|cmd)", re.IGNORECASE)
_FOLDERS = re.compile(r"\A\$\{?GITHUB_(?P<name>WORKSPACE|ACTION_PATH)\}?/")
_REQUIRED = re.compile(r"""\b(?:require|import)\s*\(\s*['"`](\.{1,2}/[^'"`]+)""")
_ARGUMENT = re.compile(r"\$(?:(?P<plain>[1-9@*])|\{(?P<braced>[1-9]|[@*])(?P<more>:?[-=?+][^}]{0,200})?\})")


@dataclass
class CalledFiles:
    """The workflows with the scripts of their steps, the actions that they use, and what is missing."""

    workflows: dict[str, Workflow] = field(default_factory=dict)
    actions: dict[str, Workflow] = field(default_factory=dict)
    missing: list[PlacedFinding] = field(default_factory=list)


def read_called(root: Path, workflows: Mapping[str, Workflow], lines: dict[str, Mapping[str, int]]) -> CalledFiles:
    """Read the actions and scripts that workflows, by path, call; add the lines of the actions to ``lines``."""
    called = CalledFiles()
    waiting = list(workflows.items())
    for path, workflow in waiting:  # grows by the actions
        jobs: dict[str, Job] = {}
        for job_id, job in workflow.jobs.items():
            place = pointer(*(("jobs", job_id) if path in workflows else (job_id,)))
            if job.uses.startswith(_LOCAL) and not (root / job.uses[2:]).is_file():
                _add_missing(called, path, job.uses, f"{place}/uses")
            steps = [_with_scripts(root, path, job, step) for step in job.steps]
            for i, step in enumerate(steps):
                if not step.uses.startswith(_LOCAL):
                    continue
                file, is_elsewhere = _find_action(root, job, step)
                if file and file not in called.actions and (action := _read_action(root, file, called, lines)):
                    called.actions[file] = action  # complete once its own steps are read
                    waiting.append((file, action))
                if file in called.actions:
                    steps[i] = step.model_copy(update={"action": file})
                elif file or is_elsewhere or path in called.actions:
                    steps[i] = step.model_copy(update={"unread": (step.uses,)})
                else:
                    _add_missing(called, path, step.uses, f"{place}{step.place}/uses")
            jobs[job_id] = job.model_copy(update={"steps": steps})
        target = called.workflows if path in workflows else called.actions
        target[path] = workflow.model_copy(update={"jobs": jobs})
    return called


def _add_missing(called: CalledFiles, path: str, uses: str, place: str) -> None:
    """Say once for each file that a call leads nowhere."""
    message = f"`{uses}` is not in the repository, so it was not checked."
    if (path, message) not in {(other, each.message) for other, each in called.missing}:
        finding = warning("called-file-missing", message, place, hint="Correct the path, or add the file.")
        called.missing.append((path, finding))


def _find_action(root: Path, job: Job, step: Step) -> tuple[str | None, bool]:
    """Return the file of an action, or None and whether the job checks out something else at its place."""
    folder = posixpath.normpath(step.uses[2:])
    above = [(where, is_own) for where, is_own in _checkouts(job) if _is_below(folder, where)]
    folders = [] if any(not is_own for _, is_own in above) else [folder]
    if step.uses.startswith("./"):
        folders += [posixpath.relpath(folder, where) for where, is_own in above if is_own]
    for path in (posixpath.normpath(f"{each}/action.{end}") for each in folders for end in ("yml", "yaml")):
        if is_inside(root, root / path) and (root / path).is_file():
            return path, False
    return None, bool(above)


def _read_action(root: Path, path: str, called: CalledFiles, lines: dict[str, Mapping[str, int]]) -> Workflow | None:
    """Read a composite action; None for one of another kind, or one that cannot be read, which is a finding."""
    try:
        document = read_mapping(read_inside(root, path))
        lines[path] = document.lines
        runs = document.value.get("runs")
        is_composite = isinstance(runs, dict) and str(runs.get("using")) == "composite"
        return read_shape(Workflow, _as_workflow(document.value, runs)) if is_composite else None
    except BrokenContract as broken:
        found = [(path, finding) for finding in with_lines(broken.findings, lines.get(path, {}))]
        called.missing += [each for each in found if each not in called.missing]
        return None


def _as_workflow(action: Mapping[str, Any], runs: Mapping[str, Any]) -> dict[str, Any]:
    """Write a composite action as a workflow that is called, with one job."""
    inputs = {name: {"default": default} for name, default in _parts(action.get("inputs"), "default").items()}
    job = {"steps": runs.get("steps"), "outputs": _parts(action.get("outputs"), "value")}
    return {"on": {"workflow_call": {"inputs": inputs}}, "jobs": {ACTION_JOB: job}}


def _parts(named: Any, key: str) -> dict[str, Any]:
    items = named.items() if isinstance(named, dict) else ()
    return {str(name): given.get(key) if isinstance(given, dict) else None for name, given in items}


def _checkouts(job: Job) -> Iterator[tuple[str, bool]]:
    """Yield the folders that a job checks out into, each with whether that is this repository."""
    for step in job.steps:
        if "checkout" in step.uses and step.given.get("path"):
            repository = str(step.given.get("repository", ""))
            is_own = repository in {"", "${{ github.repository }}"}
            yield posixpath.normpath(str(step.given["path"])), is_own


def _is_below(path: str, folder: str) -> bool:
    return folder == "." or path == folder or path.startswith(folder + "/")


# Scripts


def _with_scripts(root: Path, path: str, job: Job, step: Step) -> Step:
    """Return a step with the scripts of the repository that its own script runs."""
    if not step.run or _OTHER_SHELLS.search(step.shell):
        loaded = _REQUIRED.findall(str(step.given.get("script", "")))
        return step.model_copy(update={"unread": (*dict.fromkeys(loaded),)}) if loaded else step
    kept: list[str] = []

    def keep(at: re.Match[str]) -> str:
        inner = at[0][3:-2].strip()
        if inner in {"github.workspace", "github.action_path"}:
            return "$GITHUB_" + inner.partition(".")[2].upper()
        kept.append(at[0])
        return f"$__{len(kept) - 1}__"

    def restore(text: str) -> str:
        return re.sub(r"\$__(\d+)__", lambda at: kept[int(at[1])] if int(at[1]) < len(kept) else at[0], text)

    scripts: dict[str, CalledScript] = {}
    unread: dict[str, None] = {}
    below = str((step.model_extra or {}).get("working-directory", ""))
    for words in commands_of(_EXPRESSION.sub(keep, step.run)):
        at = 1 if words[0] in {"source", "."} and words[1:] else 0
        word = words[at]
        is_shell = _SHELL_FILE.search(word) is not None or at == 1
        if not is_shell and not _PROGRAM_FILE.search(word) and not word.startswith(("./", ".github/", "$GITHUB_")):
            continue
        if (text := _read_script(root, path, word, below, job)) is None:
            if _FOLDERS.match(word) or not word.startswith(("/", "-", "$", "~")):
                unread.setdefault(restore(word))
        else:
            arguments = [restore(each) for each in words[at + 1 :]]
            scripts.setdefault(word, CalledScript(word, _with_arguments(text, arguments)))
    if not scripts and not unread:
        return step
    return step.model_copy(update={"scripts": (*scripts.values(),), "unread": (*unread,)})


def _read_script(root: Path, path: str, word: str, below: str, job: Job) -> str | None:
    """Read a shell script of the repository; None if it is elsewhere or in another language."""
    names = [posixpath.join(below, word), word]
    if named := _FOLDERS.match(word):
        rest = word[named.end() :]
        names = [f"{posixpath.dirname(path)}/{rest}" if named["name"] == "ACTION_PATH" else rest]
    others = [where for where, is_own in _checkouts(job) if not is_own]
    for place in map(posixpath.normpath, names):
        if place.startswith(("..", "/")) or any(_is_below(place, where) for where in others):
            continue
        if is_inside(root, root / place) and (root / place).is_file():
            try:
                text = read_inside(root, place).decode()
            except (BrokenContract, UnicodeDecodeError):
                return None
            is_shell = _SHELL_FILE.search(place) or _SHEBANG.match(text)
            return text.replace("${{", "$ {{") if is_shell and len(text) <= _MOST_CHARACTERS else None
    return None


def _with_arguments(text: str, arguments: Sequence[str]) -> str:
    """Write the arguments of a call in place of a script's ``$1`` to ``$9``, ``$@`` and ``$*``."""

    def argument(at: re.Match[str]) -> str:
        name = at["plain"] or at["braced"]
        if name in "@*":
            return " ".join(arguments)
        given = arguments[int(name) - 1] if len(arguments) >= int(name) else ""
        return given or (at["more"] or "").lstrip(":-=?+")

    return _ARGUMENT.sub(argument, text)
