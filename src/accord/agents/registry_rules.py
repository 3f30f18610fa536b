"""Read registries of agents: every entry can be started, gets only its own secrets, and stays in its HOME."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from accord.agents import REGISTRY_PATH
from accord.agents.registry import (
    Agent,
    AgentChoice,
    Registry,
    over_shipped,
    shipped_registry,
    unknown_keys,
)
from accord.core.documents import short_name
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, Severity, finding_of, has_errors, pointer, warning
from accord.core.kinds import Contents, Kind
from accord.core.shapes import read_shape
from accord.core.suggest import did_you_mean
from accord.files.patterns import path_patterns
from accord.files.yaml import read_yaml
from accord.text.posting import host_problem
from accord.text.redaction import is_secret_name

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")

PLACEHOLDERS = frozenset({
    "sandbox", "safety_strategy", "model", "result_schema", "final_message", "arguments", "prompt", "command", "resume",
    "max_cost", "mcp_server",
})  # fmt: skip
_FORBIDDEN = re.compile(
    r"ACTIONS_.*|(GITHUB|GH|GH_ENTERPRISE|GITHUB_ENTERPRISE)_TOKEN|GITHUB_(OUTPUT|ENV|PATH|STATE|STEP_SUMMARY)|LD_PRELOAD"
)
"""Variables with which an agent could act as the job or steer later steps. No entry may name them."""


def registry_from(raw: bytes | None, path: Path = REGISTRY_PATH) -> Registry:
    """Merge a repository's registry, None without one, with the shipped one. Raises BrokenContract for a broken one."""
    if raw is None:
        return shipped_registry()
    document = read_yaml(raw)
    findings = Kind("agent-registry", lambda: Contents(Registry, own_findings), {}).check(document)
    if has_errors(findings):
        first = next(finding for finding in findings if finding.severity is Severity.ERROR)
        place = f"{path}:{first.line}" if first.line else str(path)
        raise BrokenContract(f"{place}: {first.text}", findings=findings)
    return read_shape(Registry, over_shipped(document.value))


def own_paths_in(raw: bytes | None) -> tuple[Sequence[str], Sequence[str]]:
    """Return the patterns of steering and of protected files by a repository's registry; if it is broken, accord's."""
    registry = shipped_registry()
    with suppress(BrokenContract):
        registry = registry_from(raw)
    return registry.steering_patterns, registry.protected


def registry_findings(registry: Registry) -> list[Finding]:
    """Check a complete registry: the shipped one, or a repository's merged with it."""
    found = []
    if registry.default_agent is not None and registry.default_agent not in registry.agents:
        found.append(_unknown_name("default agent", registry.default_agent, "/default_agent", registry.agents))
    found += unknown_keys(type(registry), registry.model_extra or ())
    found += _fallback_findings(registry)
    for key in ("steering_files", "steering", "protected"):
        found += _pattern_findings(key, getattr(registry, key), may_negate=False)
    for i, host in enumerate(registry.allowed_hosts):
        if problem := host_problem(host):
            found.append(Finding("host-invalid", problem[0], pointer("allowed_hosts", i), hint=problem[1]))
    for name, agent in registry.agents.items():
        place = f"/agents{pointer(name)}"
        found += [replace(finding, path=place + finding.path) for finding in _agent_findings(agent)]
    return found


def _unknown_name(what: str, name: str, path: str, known: Iterable[str]) -> Finding:
    return Finding("default-unknown", f"Unknown {what} `{short_name(name)}`.", path, hint=_one_of(name, known))


def _fallback_findings(registry: Registry) -> Iterator[Finding]:
    lists = {"/fallback": registry.fallback}
    lists |= {f"/modes{pointer(name)}/fallback": mode.fallback or [] for name, mode in registry.modes.items()}
    startable = [name for name, agent in registry.agents.items() if agent.enabled and agent.command]
    for path, names in lists.items():
        for i, name in enumerate(names):
            if name not in startable:
                problem = "is disabled or has no command" if name in registry.agents else "is unknown"
                message = f"The agent `{short_name(name)}` {problem}, so no run can fall back to it."
                yield Finding("fallback-unknown", message, f"{path}/{i}", hint=_one_of(name, startable))


def _one_of(word: str, known: Iterable[str]) -> str:
    names = list(known)
    return f"{did_you_mean(word, names)} Use one of: {', '.join(names)}.".strip()


def _choices_of(agent: Agent) -> dict[str, AgentChoice]:
    choices = {"sandbox": agent.sandbox, "safety_strategy": agent.safety_strategy}
    return {key: choice for key, choice in choices.items() if choice}


def _agent_findings(agent: Agent) -> Iterator[Finding]:
    yield from unknown_keys(type(agent), agent.model_extra or ())
    if agent.enabled and not agent.command and not agent.runner_workflow:
        text = "The agent has no command. Add `command` with the words that start it."
        yield finding_of("command-missing", text, "/command")
    yield from _command_findings(agent)
    for key, choice in _choices_of(agent).items():
        if choice.default not in choice.values:
            yield _unknown_name("default", choice.default, f"/{key}/default", choice.values)
    yield from _isolation_findings(agent)
    yield from _mcp_findings(agent)
    yield from _secret_findings(agent)
    yield from _path_findings(agent)
    yield from _pattern_findings("state_files", agent.state_files)
    yield from _pattern_findings("steering_files", agent.steering_files, may_negate=False)


def _pattern_findings(key: str, patterns: Iterable[str], *, may_negate: bool = True) -> Iterator[Finding]:
    for i, pattern in enumerate(patterns):
        try:
            path_patterns([pattern], may_negate=may_negate)
        except WrongUsage as error:
            yield Finding("pattern-invalid", error.message, pointer(key, i), hint=error.hint)


def _command_findings(agent: Agent) -> Iterator[Finding]:
    used = set()
    for i, word in enumerate(agent.command):
        for name in PLACEHOLDER.findall(word):
            used.add(name)
            if name not in PLACEHOLDERS:
                message = f"Unknown placeholder `{{{name}}}`."
                yield Finding("place-unknown", message, f"/command/{i}", hint=_one_of(name, sorted(PLACEHOLDERS)))
    if not agent.command:
        return
    needed = {name for name in ("model", "result_schema", "final_message", "arguments") if getattr(agent, name)}
    needed |= {"prompt"} if agent.prompt != "stdin" else set()
    needed |= {"mcp_server"} if agent.mcp and agent.mcp_server and agent.mcp_server.arguments else set()
    choices = _choices_of(agent).items()
    needed |= {key for key, choice in choices if any(value.arguments for value in choice.values.values())}
    for name in sorted(needed - used):
        message = f"The command has no placeholder `{{{name}}}`, so `{name}` has no effect."
        yield Finding("place-missing", message, "/command", hint="Add it.")
    effects = {"resume": "cannot go on with a session", "max_cost": "does not stop at the run's budget"}
    for name, effect in effects.items():
        if getattr(agent, name) and name not in used:
            message = f"The command has no placeholder `{{{name}}}`, so the agent {effect}."
            yield warning("place-missing", message, "/command", hint="Add it.")


def _isolation_findings(agent: Agent) -> Iterator[Finding]:
    if agent.network is not None and agent.isolation == "none":
        text = "`network` needs a container, and `isolation` is `none`. Remove one of the two keys."
        yield finding_of("isolation-contradiction", text, "/isolation")
    if agent.network is None and agent.isolation != "container":
        return
    for key, choice in _choices_of(agent).items():
        if choice.default in choice.values and choice.values[choice.default].keeps_sudo:
            message = f"The default `{short_name(choice.default)}` keeps sudo, so the agent cannot be isolated."
            hint = "Use another default, or remove `isolation` and `network`."
            yield Finding("isolation-contradiction", message, f"/{key}/default", hint=hint)


def _mcp_findings(agent: Agent) -> Iterator[Finding]:
    server, file = agent.mcp_server, (agent.mcp_server.home_file if agent.mcp_server else None) or ""
    if agent.mcp and (server is None or not (server.arguments or file)):
        message = "accord does not know how this agent learns of an MCP server."
        hint = "Add `mcp_server` with `arguments` or `home_file`, or remove `mcp`."
        yield Finding("mcp-unsupported", message, "/mcp", hint=hint)
    elif agent.mcp and isinstance(agent.home_files.get(file, {}), str):
        message = f"`{short_name(file)}` is a text, so the MCP server cannot be added to it."
        yield Finding("mcp-unsupported", message, f"/home_files{pointer(file)}", hint="Write its content as a mapping.")


def _secret_findings(agent: Agent) -> Iterator[Finding]:
    for key in ("required_secrets", "environment_from"):
        for i, name in enumerate(getattr(agent, key)):
            if _FORBIDDEN.fullmatch(name):
                message = f"`{name}` would let the agent act as the job or steer later steps."
                yield Finding("environment-forbidden", message, f"/{key}/{i}", hint="Remove it.")
            elif key == "environment_from" and is_secret_name(name):
                hint = "Move it to `required_secrets`, or remove it."
                yield Finding("secret-undeclared", f"`{name}` looks like a secret.", f"/{key}/{i}", hint=hint)
    for name, delivery in agent.secret_delivery.items():
        if (delivery.variable is None) == (delivery.file is None):
            message = "The delivery of this secret names both a variable and a file, or neither."
            hint = "Set either `variable` or `file`."
            yield Finding("delivery-unclear", message, f"/secret_delivery/{name}", hint=hint)


def _path_findings(agent: Agent) -> Iterator[Finding]:
    files = {f"/home_files{pointer(path)}": path for path in agent.home_files}
    deliveries = agent.secret_delivery.items()
    files |= {f"/secret_delivery/{name}/file": delivery.file for name, delivery in deliveries if delivery.file}
    if agent.mcp_server and agent.mcp_server.home_file is not None:
        files["/mcp_server/home_file"] = agent.mcp_server.home_file
    for place, path in files.items():
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts:
            message = f"`{short_name(path)}` is outside the agent's HOME."
            yield Finding("path-outside", message, place, hint="Use a path below it.")


def own_findings(own: Registry) -> list[Finding]:
    """Check a file merged with the shipped registry; return the findings about the file's own entries."""
    merged = read_shape(Registry, over_shipped(own.model_dump(exclude_unset=True)))
    ours = ["/default_agent", "/allowed_hosts", "/fallback", "/modes", "/steering_files", "/steering", "/protected"]
    ours += [*map(pointer, own.model_extra or {}), *(f"/agents{pointer(name)}/" for name in own.agents)]
    return [finding for finding in registry_findings(merged) if finding.path.startswith(tuple(ours))]
