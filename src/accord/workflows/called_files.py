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

    from accord.core.findings import Finding, PlacedFinding
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
    while waiting:
        path, workflow = waiting.pop(0)
        jobs: dict[str, Job] = {}
        for job_id, job in workflow.jobs.items():
            if job.uses.startswith(_LOCAL) and not (root / job.uses[2:]).is_file():
                called.missing.append((path, _missing(job.uses, pointer("jobs", job_id, "uses"))))
            steps = [_with_scripts(root, path, job, step) for step in job.steps]
            for i, step in enumerate(steps):
                if not step.uses.startswith(_LOCAL):
                    continue
                steps[i], action = _with_action(root, path, job_id, job, step, called, lines)
                if action:
                    waiting.append(action)
            jobs[job_id] = job.model_copy(update={"steps": steps})
        target = called.workflows if path in workflows else called.actions
        target[path] = workflow.model_copy(update={"jobs": jobs})
    return called


def _missing(uses: str, place: str) -> Finding:
    message = f"`{uses}` is not in the repository, so it was not checked."
    return warning("called-file-missing", message, place, hint="Correct the path, or add the file.")


def _with_action(
    root: Path,
    path: str,
    job_id: str,
    job: Job,
    step: Step,
    called: CalledFiles,
    lines: dict[str, Mapping[str, int]],
) -> tuple[Step, tuple[str, Workflow] | None]:
    """Return a step with the action that it uses, and that action if this is the first step to use it."""
    folder = posixpath.normpath(step.uses[2:])
    found = next((file for name in _folders(folder, job, step) if (file := _action_file(root, name))), None)
    unread = step.model_copy(update={"unread": (step.uses,)})
    if found is None:
        is_elsewhere = any(_is_below(folder, where) for where, _ in _checkouts(job)) or path in called.actions
        if not is_elsewhere:
            place = pointer("jobs", job_id) if job_id != ACTION_JOB else pointer(job_id)
            finding = _missing(step.uses, place + step.place + "/uses")
            known = {(other, each.message) for other, each in called.missing}
            called.missing += [] if (path, finding.message) in known else [(path, finding)]
        return (unread if is_elsewhere else step), None
    if found in called.actions or len(called.actions) >= _MOST_ACTIONS:
        return (step.model_copy(update={"action": found}) if found in called.actions else unread), None
    try:
        document = read_mapping(read_inside(root, found))
        lines[found] = document.lines
        if not isinstance(runs := document.value.get("runs"), dict) or str(runs.get("using")) != "composite":
            return unread, None
        action = read_shape(Workflow, _as_workflow(document.value, runs))
    except BrokenContract as broken:
        placed = with_lines(broken.findings, lines.get(found, {}))
        called.missing += [(found, finding) for finding in placed]
        return unread, None
    called.actions[found] = action  # complete once its own steps are read
    return step.model_copy(update={"action": found}), (found, action)


def _as_workflow(action: Mapping[str, Any], runs: Mapping[str, Any]) -> dict[str, Any]:
    """Write a composite action as a workflow that is called, with one job."""
    inputs = {name: {"default": default} for name, default in _parts(action.get("inputs"), "default").items()}
    job = {"steps": runs.get("steps"), "outputs": _parts(action.get("outputs"), "value")}
    return {"on": {"workflow_call": {"inputs": inputs}}, "jobs": {ACTION_JOB: job}}


def _parts(named: Any, key: str) -> dict[str, Any]:
    items = named.items() if isinstance(named, dict) else ()
    return {str(name): given.get(key) if isinstance(given, dict) else None for name, given in items}


def _action_file(root: Path, folder: str) -> str | None:
    for name in ("action.yml", "action.yaml"):
        path = posixpath.normpath(posixpath.join(folder, name))
        if is_inside(root, root / path) and (root / path).is_file():
            return path
    return None


def _checkouts(job: Job) -> Iterator[tuple[str, bool]]:
    """Yield the folders that a job checks out into, each with whether that is this repository."""
    for step in job.steps:
        if "checkout" in step.uses and step.given.get("path"):
            repository = str(step.given.get("repository", ""))
            is_own = repository in {"", "${{ github.repository }}"}
            yield posixpath.normpath(str(step.given["path"])), is_own


def _folders(folder: str, job: Job, step: Step) -> Iterator[str]:
    """Yield the folders of the repository that a path of the workspace may name."""
    if not any(_is_below(folder, where) and not is_own for where, is_own in _checkouts(job)):
        yield folder
    if step.uses.startswith("./"):
        yield from (
            posixpath.relpath(folder, where) for where, is_own in _checkouts(job) if is_own and _is_below(folder, where)
        )


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
    if _PROGRAM_FILE.search(word):
        return None
    named = _FOLDERS.match(word)
    names = [posixpath.join(below, word), word]
    if named:
        rest = word[named.end() :]
        names = [posixpath.join(posixpath.dirname(path), rest) if named["name"] == "ACTION_PATH" else rest]
    for name in names:
        place = posixpath.normpath(name)
        if place.startswith(("..", "/")) or any(not own and _is_below(place, at) for at, own in _checkouts(job)):
            continue
        if not is_inside(root, root / place) or not (root / place).is_file():
            continue
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
