"""Reading the agent registry: the shipped one, and a repository's own laid over it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.kernel.errors import AccordError, BrokenContract, WrongUsage
from accord.kernel.findings import Finding, Severity, has_errors, pointer
from accord.kernel.kinds import Kind
from accord.kernel.shapes import read_shape
from accord.kernel.yaml_files import YamlDocument, read_mapping, read_yaml
from accord.runner.registry_models import Registry
from accord.runner.registry_rules import registry_findings

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE_IN_REPOSITORY = Path(".github/agents/registry.yml")


def load_registry(path: Path | None = None) -> Registry:
    """Read the shipped registry, and lay the one at ``path`` over it, key by key of an agent.

    Raises BrokenContract with findings when the file breaks a rule, WrongUsage when it cannot be read.
    """
    if path is None:
        return shipped_registry()
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise WrongUsage(f"{path} cannot be read: {error.strerror}.", mend="Name a registry that exists.") from None
    document = read_yaml(raw)
    findings = REGISTRY.check(document)
    if has_errors(findings):
        first = next(finding for finding in findings if finding.severity is Severity.ERROR)
        place = f"{path}:{first.line}" if first.line else str(path)
        raise BrokenContract(f"{place}: {first.message}", findings=findings)
    return read_shape(Registry, _over_shipped(document.value))


def repository_registry(directory: Path) -> Path | None:
    """Return where a work tree has its own registry; None where it has none."""
    own = directory / PLACE_IN_REPOSITORY
    return own if own.is_file() else None


def declared_secrets(registry: Registry) -> frozenset[str]:
    """Name the variables that hold a secret of any of the agents, whatever they are called."""
    return frozenset(name for agent in registry.agents.values() for name in agent.required_secrets)


def secrets_declared_in(directory: Path) -> frozenset[str]:
    """Name them by a work tree's registry; one that cannot be read takes nothing away from the shipped one."""
    shipped = declared_secrets(shipped_registry())
    try:
        return shipped | declared_secrets(load_registry(repository_registry(directory)))
    except (AccordError, OSError):
        return shipped


@cache
def shipped_registry() -> Registry:
    """Return the registry that comes with accord."""
    return Registry.model_validate(_shipped().value)


@cache
def _shipped() -> YamlDocument:
    installed = Path(__file__).parent / "registry.yml"
    path = installed if installed.exists() else Path(__file__).parents[3] / PLACE_IN_REPOSITORY
    return read_yaml(path.read_bytes())


def _over_shipped(own: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a repository's registry over the shipped one: each key of an agent is replaced as a whole."""
    shipped = _shipped().value
    agents = dict(shipped["agents"])
    for name, entry in own["agents"].items():
        agents[name] = {**agents.get(name, {}), **entry}
    return {**shipped, **own, "agents": agents}


def _own_findings(own: Registry) -> list[Finding]:
    """Check a file as it will be used, laid over the shipped registry; findings are about the file's own entries."""
    value = own.model_dump(exclude_unset=True)
    merged = read_shape(Registry, _over_shipped(value))
    ours = [
        "/default_agent",
        *map(pointer, own.model_extra or {}),
        *(f"/agents{pointer(name)}/" for name in own.agents),
    ]
    return [finding for finding in registry_findings(merged) if finding.path.startswith(tuple(ours))]


def _is_there(value: Any) -> bool:
    return value is not None


REGISTRY = Kind("agent-registry", Registry, _own_findings, {"agents": _is_there}, read_mapping)
KINDS = (REGISTRY,)
