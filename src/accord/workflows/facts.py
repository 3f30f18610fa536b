"""Facts of a repository's directory: its workflows, its agent registry and its owner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.agents.registry import REGISTRY_PATH, shipped_registry
from accord.agents.registry_rules import registry_from
from accord.core.errors import BrokenContract
from accord.core.findings import has_errors, with_lines
from accord.core.kinds import KINDS
from accord.core.shapes import read_shape
from accord.files.store import LINK_OUT, is_inside, read_inside
from accord.files.yaml import read_mapping
from accord.git.origin import read_origin
from accord.workflows.agent_commands import agent_programs, shipped_programs
from accord.workflows.called_files import CalledFiles
from accord.workflows.models import Workflow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from accord.agents.registry import Agent, Registry
    from accord.core.findings import PlacedFinding

WORKFLOWS = ".github/workflows"
REGISTRY = REGISTRY_PATH.as_posix()


@dataclass(frozen=True)
class RepositoryFacts:
    """Workflows by path, the owner, the agents of the repository's own registry, and the programs of all agents."""

    workflows: Mapping[str, Workflow]
    owner: str = ""
    agents: Mapping[str, Agent] = field(default_factory=dict)
    registry: str = ""
    programs: frozenset[str] = field(default_factory=shipped_programs)
    default_agent: Mapping[str, Agent] = field(default_factory=dict)
    """The agent that runs where a workflow names none, by its name."""
    is_private: bool | None = None
    """Whether the repository is private; None if that was not read."""
    actions: frozenset[str] = frozenset()
    """The paths of the repository's composite actions that its workflows use."""
    flagged: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Pointers of the scripts that zizmor names, by the files that it read."""
    missing: Sequence[PlacedFinding] = ()
    """Workflows and actions that are called and are not in the repository, or cannot be read."""


@dataclass
class RepositoryFiles:
    """How the files were read: findings, and the line of each JSON pointer by path."""

    lines: dict[str, Mapping[str, int]] = field(default_factory=dict)
    unreadable: list[PlacedFinding] = field(default_factory=list)
    registry_note: str = "none; the agents that accord ships apply"
    registry_findings: list[PlacedFinding] = field(default_factory=list)

    def with_lines(self, found: Iterable[PlacedFinding]) -> list[PlacedFinding]:
        """Return findings with their lines."""
        return [(path, with_lines([finding], self.lines.get(path, {}))[0]) for path, finding in found]


def read_repository(root: Path, owner: str = "") -> tuple[RepositoryFacts, RepositoryFiles]:
    """Read the workflows and the registry of a repository. The owner comes from git's `origin` when not given."""
    files = RepositoryFiles()
    workflows = _read_workflows(root, files)
    registry, names = _read_registry(root, files)
    agents = {name: registry.agents[name] for name in names} if registry else {}
    programs = agent_programs(registry) if registry else shipped_programs()
    origin = None if owner else read_origin(root)
    owner = origin.owner if origin else owner
    merged = registry or shipped_registry()
    default = {name: agent for name, agent in merged.agents.items() if name == merged.default_agent}
    called = CalledFiles(root, files.lines)
    workflows = {path: called.filled(path, workflow) for path, workflow in workflows.items()}
    return RepositoryFacts(
        workflows, owner, agents, REGISTRY, programs, default, actions=called.paths, missing=called.missing
    ), files


def _read_workflows(root: Path, files: RepositoryFiles) -> dict[str, Workflow]:
    workflows: dict[str, Workflow] = {}
    folder = root / WORKFLOWS
    if not is_inside(root, folder):
        files.unreadable.append((WORKFLOWS, LINK_OUT))
        return workflows
    for file in sorted(folder.glob("*.y*ml")):
        path = file.relative_to(root).as_posix()
        try:
            document = read_mapping(read_inside(root, path))
            files.lines[path] = document.lines
            workflows[path] = read_shape(Workflow, document.value)
        except BrokenContract as broken:
            files.unreadable += files.with_lines((path, finding) for finding in broken.findings)
    return workflows


def _read_registry(root: Path, files: RepositoryFiles) -> tuple[Registry | None, list[str]]:
    """Return the repository's registry merged with the shipped one, and the enabled agents of its own."""
    if not (root / REGISTRY_PATH).exists():
        return None, []
    files.registry_note = REGISTRY
    try:
        raw = read_inside(root, REGISTRY)
        document = read_mapping(raw)
        files.lines[REGISTRY] = document.lines
        findings = KINDS["agent-registry"].check(document)
        files.registry_findings = [(REGISTRY, finding) for finding in findings]
        if has_errors(findings):
            return None, []
        registry = registry_from(raw)
    except BrokenContract as broken:
        files.registry_findings = [(REGISTRY, finding) for finding in broken.findings]
        return None, []
    names = [name for name in document.value["agents"] if registry.agents[name].enabled]
    files.registry_note = f"{len(names)} agents in {REGISTRY}, merged with those that accord ships"
    return registry, names
