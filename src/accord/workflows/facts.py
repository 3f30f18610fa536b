"""Facts of a repository's directory: its workflows with the files that they call, its agent registry and its owner.

The steps of a composite action become steps inside of the one that uses it; a shell script becomes part of the step
that runs it. Source: GitHub documentation, "Creating a composite action".
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any, TypeVar

from pydantic import BaseModel

from accord.agents import REGISTRY_PATH
from accord.agents.registry import Agent, Registry, shipped_registry
from accord.agents.registry_rules import registry_from
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, PlacedFinding, has_errors, pointer, warning, with_lines
from accord.core.frozen import Frozen
from accord.core.kinds import KINDS
from accord.core.shapes import read_shape
from accord.files.store import LINK_OUT, is_inside, read_inside
from accord.files.yaml import read_mapping
from accord.git.origin import read_origin
from accord.workflows.agents import KnownAgents, known_agents, shipped_agents
from accord.workflows.commands import commands_of
from accord.workflows.models import MOST_LEVELS, CompositeAction, Job, Step, Workflow, run_default

WORKFLOWS = ".github/workflows"
REGISTRY = REGISTRY_PATH.as_posix()
Shape = TypeVar("Shape", bound=BaseModel)


class RepositoryFacts(Frozen):
    """Workflows by path, the owner, the agents of the repository's own registry, and all that are known."""

    workflows: Mapping[str, Workflow]
    owner: str = ""
    agents: Mapping[str, Agent] = field(default_factory=dict)
    known: KnownAgents = field(default_factory=shipped_agents)
    default_agent: Mapping[str, Agent] = field(default_factory=dict)
    """The agent that runs where a workflow names none, by its name."""
    is_private: bool | None = None
    """Whether the repository is private; None if that was not read."""
    actions: frozenset[str] = frozenset()
    """The paths of the repository's composite actions that its workflows use."""
    flagged: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Pointers of the scripts that zizmor names, by the files that it read."""
    review_bots: Sequence[str] = ()
    missing: Sequence[PlacedFinding] = ()
    """Workflows and actions that are called and are not in the repository, or cannot be read."""


@dataclass
class RepositoryFiles:
    """How the files were read: findings, and the line of each JSON pointer by path."""

    lines: dict[str, Mapping[str, int]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    unreadable: list[PlacedFinding] = field(default_factory=list)
    registry_note: str = "none; the agents that accord ships apply"
    registry_findings: list[PlacedFinding] = field(default_factory=list)

    def with_lines(self, found: Iterable[PlacedFinding]) -> list[PlacedFinding]:
        """Return findings with their lines."""
        lines, sources = self.lines, self.sources
        return [(path, with_lines([each], lines.get(path, {}), sources.get(path, ""))[0]) for path, each in found]

    def read(self, root: Path, path: str, shape: type[Shape], broken: list[PlacedFinding]) -> Shape | None:
        """Read a YAML file, and remember its lines; None for one that cannot be read, whose findings are added."""
        try:
            raw = read_inside(root, path)
            document = read_mapping(raw)
            self.lines[path], self.sources[path] = document.lines, raw.decode("utf-8", "replace")
            return read_shape(shape, document.value)
        except BrokenContract as error:
            broken += self.with_lines((path, finding) for finding in error.findings)
            return None


def read_repository(root: Path, repository: str = "") -> tuple[RepositoryFacts, RepositoryFiles]:
    """Read the workflows and the registry of a repository, a name or an owner; from git's `origin` when not given."""
    files = RepositoryFiles()
    if not is_inside(root, root / WORKFLOWS):
        files.unreadable.append((WORKFLOWS, LINK_OUT))
    found = [] if files.unreadable else sorted((root / WORKFLOWS).glob("*.y*ml"))
    paths = [file.relative_to(root).as_posix() for file in found]
    read = {path: files.read(root, path, Workflow, files.unreadable) for path in paths}
    origin = None if repository else read_origin(root)
    repository = origin.repository if origin else repository
    called = CalledFiles(root, files, repository)
    registry, agents = _read_registry(root, files)
    return RepositoryFacts(
        {path: called.with_calls(path, workflow) for path, workflow in read.items() if workflow},
        owner=repository.partition("/")[0],
        agents=agents,
        known=known_agents(registry),
        default_agent={name: agent for name, agent in registry.agents.items() if name == registry.default_agent},
        actions=called.paths,
        review_bots=registry.review_bots,
        missing=called.missing,
    ), files


def _read_registry(root: Path, files: RepositoryFiles) -> tuple[Registry, dict[str, Agent]]:
    """Return the repository's registry merged with the shipped one, and the enabled agents of its own."""
    registry, agents = shipped_registry(), dict[str, Agent]()
    if not (root / REGISTRY_PATH).exists():
        return registry, agents
    files.registry_note, findings = REGISTRY, list[Finding]()
    try:
        raw = read_inside(root, REGISTRY)
        document = read_mapping(raw)
        files.lines[REGISTRY] = document.lines
        findings += KINDS["agent-registry"].check(document)
        if not has_errors(findings):
            registry = registry_from(raw)
            agents = {name: registry.agents[name] for name in document.value["agents"] if registry.agents[name].enabled}
            files.registry_note = f"{len(agents)} agents in {REGISTRY}, merged with those that accord ships"
    except BrokenContract as broken:
        findings += broken.findings
    files.registry_findings = [(REGISTRY, finding) for finding in findings]
    return registry, agents


_LOCAL = ("./", "$/")
_MOST_CHARACTERS = 100_000
_SHELL_FILE = re.compile(r"\.(?:ba|z|da|k)?sh\Z")
_SHEBANG = re.compile(r"\A#!.*\b(?:ba|z|da|k)?sh\b")
_EXPRESSION = re.compile(r"\$\{\{[^}$]*\}\}|\$\([^()]*\)|`[^`]*`")
_MOST_SCRIPTS = 50
_MOST_PARTS = 30
"""Parts of a path outside of the repository, from its end, that may be those of a file in it."""


class CalledFiles:
    """The composite actions and scripts below ``root`` that workflows call, each read once.

    ``missing`` is what is called and not there, or unreadable.
    """

    def __init__(self, root: Path, files: RepositoryFiles, repository: str = "") -> None:
        self.missing: list[PlacedFinding] = []
        self._root, self._files = root, files
        self._repository = repository.lower()
        self._actions: dict[str, CompositeAction | None] = {}

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the actions that could be read."""
        return frozenset(path for path, action in self._actions.items() if action)

    def with_calls(self, path: str, workflow: Workflow) -> Workflow:
        """Return a workflow whose steps have those of the actions and the scripts that they call."""
        jobs = {}
        for job_id, job in workflow.jobs.items():
            place = pointer("jobs", job_id)
            uses = self._local(job.uses)
            if uses.startswith(_LOCAL) and not (self._root / uses[2:]).is_file():
                self._add_missing(path, uses, f"{place}/uses")
            folder = run_default("working-directory", job, workflow)
            steps = [self._filled_step(path, job, step, place, folder=folder) for step in job.steps]
            jobs[job_id] = job.model_copy(update={"uses": uses, "steps": steps})
        return workflow.model_copy(update={"jobs": jobs})

    def _local(self, uses: str) -> str:
        """Return the local form of a call that names the repository itself, if the file is there."""
        path = "/".join(uses.partition("@")[0].split("/")[2:])
        is_own = path and uses.lower().startswith(f"{self._repository}/")
        return f"$/{path}" if is_own and (self._is_file(path) or self._action_file(f"$/{path}")) else uses

    def _filled_step(
        self, path: str, job: Job, step: Step, place: str, users: tuple[Step, ...] = (), folder: str = ""
    ) -> Step:
        uses, file, action = self._local(step.uses), None, None
        update: dict[str, Any] = {"uses": uses, "scripts": self._scripts(path, step, folder), "users": users}
        update["file"] = path if users else ""
        if uses.startswith(_LOCAL):
            if "/" in self._repository:
                update["own_name"] = normpath(f"{self._repository}/{uses[2:]}").lower()
            file = self._action_file(uses)
            checkouts = (each for each in job.steps if "checkout" in each.uses)
            folders = (normpath(str(each.given.get("path") or "-")) for each in checkouts)
            if file is None and not any(f"{normpath(uses[2:])}/".startswith(f"{folder}/") for folder in folders):
                self._add_missing(path, uses, f"{place}{step.place}/uses")
        if file and file not in {path, *(each.file for each in users)} and len(users) < MOST_LEVELS:
            if file not in self._actions:
                self._actions[file] = self._files.read(self._root, file, CompositeAction, self.missing)
            action = update["action"] = self._actions[file]
        step = step.model_copy(update=update)
        within = action.runs.steps if action else []
        inner = tuple(self._filled_step(file or "", job, each, "/runs", (*users, step)) for each in within)
        return step.model_copy(update={"inner": inner})

    def _add_missing(self, path: str, uses: str, place: str) -> None:
        """Say once for each file that a call leads nowhere."""
        message = f"`{uses}` is not in the repository, so it was not checked."
        if (path, message) not in {(other, each.message) for other, each in self.missing}:
            hint = "Correct the path, or add the file."
            self.missing.append((path, warning("called-file-missing", message, place, hint=hint)))

    def _action_file(self, uses: str) -> str | None:
        paths = (normpath(join(uses[2:], f"action.{end}")) for end in ("yml", "yaml"))
        return next((path for path in paths if self._is_file(path)), None)

    def _is_file(self, path: str) -> bool:
        return os.path.isfile(self._root / path) and is_inside(self._root, self._root / path)

    def _scripts(self, path: str, step: Step, folder: str) -> dict[str, str]:
        """Return the shell scripts of the repository that a step's script runs, also in containers, by path.

        The end of a path tells the file, wherever the job or a container has the repository.
        """
        below = str((step.model_extra or {}).get("working-directory") or folder or ".")
        scripts, waiting = dict[str, str](), [step.run]
        while waiting and len(scripts) < _MOST_SCRIPTS:
            commands = commands_of(waiting.pop())
            for first, second in dict.fromkeys((words[0], [*words, ""][1]) for words in commands):
                word = second if first in {"source", "."} and second else first
                parts = _EXPRESSION.sub("$", word).split("/")
                starts = range(max(0, len(parts) - _MOST_PARTS), len(parts)) if parts[0][:1] in ("", "$") else range(1)
                ends = ("/".join(parts[i:]) for i in starts)
                found = (normpath(join(base, end)) for end in ends for base in (below, ".", dirname(path)))
                read = ((each, self._read_script(each, is_sourced=word != first)) for each in found)
                name, text = next(((each, text) for each, text in read if text is not None), ("", None))
                if text is not None and name not in scripts:
                    scripts[name] = text
                    waiting.append(text)
        return scripts

    def _read_script(self, path: str, *, is_sourced: bool) -> str | None:
        """Read a shell script; None if it is elsewhere or in another language."""
        if path.startswith(("..", "/")) or not self._is_file(path):
            return None
        try:
            text = read_inside(self._root, path).decode()
        except (BrokenContract, UnicodeDecodeError):
            return None
        is_shell = is_sourced or _SHELL_FILE.search(path) or _SHEBANG.match(text)
        return text.replace("${{", "$ {{") if is_shell and len(text) <= _MOST_CHARACTERS else None
