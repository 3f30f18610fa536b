"""Steps that run an agent, by their action or the commands of their script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import NamedTuple

from accord.agents.registry import AgentAction, Registry, shipped_registry
from accord.runner.models import AgentText, RunOutputs
from accord.workflows.commands import commands_of, program_of, started_commands
from accord.workflows.expressions import Reference, embedded_expressions, parse
from accord.workflows.models import Job, Step, Workflow

_RUN_AGENT = re.compile(r"(?:\.|\$|[\w.-]+/[\w.-]+)/actions/run-agent", re.IGNORECASE)
_OF_RUN = AgentAction(outputs=["run-dir"])
"""Our own action."""

_GIVES_RUN = re.compile(
    r"(?:\.|\$|[\w.-]+/[\w.-]+)/(?:actions/publish-run|\.github/workflows/reusable-(?P<agent>[\w-]+)-run\.yml)",
    re.IGNORECASE,
)
"""Our action and workflows that pass the outputs of a run on."""

_TEXTS = {
    str(field.alias): mark
    for field in RunOutputs.model_fields.values()
    for mark in field.metadata
    if isinstance(mark, AgentText)
}
"""Outputs of runners that hold an agent's words."""

_VALUES = RunOutputs().as_outputs().keys() - _TEXTS

_WORDS = {name for name, mark in _TEXTS.items() if not mark.has_common_name} | {"structured_output"}
"""Outputs of any step or job that hold an agent's words, by their names alone."""

COMMAND_INPUTS = frozenset({"script", "command", "commands", "cmd", "run", "runcmd"})
"""Inputs of actions that usually are scripts."""


class KnownAgents(NamedTuple):
    """The programs, the actions in lower case, and the names of the models' keys of a registry's agents."""

    programs: frozenset[str]
    actions: Mapping[str, AgentAction]
    keys: Sequence[str]

    def action(self, step: Step) -> AgentAction | None:
        """Return what is known of the action that a step uses; None if that runs no agent."""
        name = action_name(step)
        found = self.actions.get(name) or self.actions.get(step.uses.lower())
        return found or (_OF_RUN if _RUN_AGENT.fullmatch(name) else None)

    def is_model_key(self, name: str) -> bool:
        """Return whether a secret, a variable or an input has the name of a model's key."""
        plain = name.replace("-", "_").upper()
        return any(fnmatchcase(plain, key) for key in self.keys) and not _PERSONAL.search(plain)


_PERSONAL = re.compile(r"(?:_|\b)PAT(?:_|\b)")
"""The name of a person's token for GitHub."""


def action_name(step: Step) -> str:
    """Return the name of a step's action, or of its image, without a version."""
    name = step.own_name or step.uses.partition("@")[0].lower()
    return name.rpartition(":")[0] if name.startswith("docker://") and name.count(":") > 1 else name


def known_agents(registry: Registry) -> KnownAgents:
    """Return the agents of a registry: their programs, their packages as ``npx`` names them, and their actions."""
    named, actions = set(registry.programs), dict(registry.actions)
    for agent in registry.agents.values():
        named.update(agent.programs)
        actions |= agent.actions
        words = [word for word in agent.command if not word.startswith("{")]
        named.update(program_of(command[0]) for command in [*started_commands(words)][-1:])
        if agent.install:
            named.add(program_of(agent.install.package))
    keys = [key.upper() for key in registry.model_keys]
    return KnownAgents(frozenset(named), {name.lower(): action for name, action in actions.items()}, keys)


@cache
def shipped_agents() -> KnownAgents:
    """Return the agents that accord ships."""
    return known_agents(shipped_registry())


def gives_agent_text(giver: Step | Job, output: str) -> bool:
    """Return whether an output of a step, or of a job that calls a workflow, holds words of an agent."""
    if output in _WORDS:
        return True
    if isinstance(giver, Step) and (action := shipped_agents().action(giver)):
        return output not in {*action.outputs, *_VALUES}
    name = action_name(giver) if isinstance(giver, Step) else giver.uses.partition("@")[0]
    at = _GIVES_RUN.fullmatch(name) if output in _TEXTS else None
    return at is not None and (at["agent"] or "agent") in {"agent", *shipped_registry().agents}


def agent_steps(workflow: Workflow, job: Job, known: KnownAgents) -> Iterator[Step]:
    """Yield the steps of a job that start an agent: by their action, a script, or an input that usually is one."""
    for step in job.nested_steps():
        is_shell = bool(step.uses) and action_name(step) != "actions/github-script"
        inputs = [str(text) for name, text in step.given.items() if is_shell and name.lower() in COMMAND_INPUTS]
        where: Sequence[Workflow | Job | Step] = (workflow, job, step, *step.users)
        if known.action(step):
            yield from () if str(step.given.get("skip")).lower() == "true" else [step]
        elif any(starts_agent(text, known.programs, where) for text in (*step.shell_texts, *inputs)):
            yield step


def starts_agent(
    script: str, programs: frozenset[str], where: Sequence[Workflow | Job | Step] = (), depth: int = 0
) -> bool:
    """Return whether a script starts one of these programs, or ``accord run``, to do work.

    Variables and outputs ``where`` it runs may put the command together.
    """
    put_together = dict[str, str]()
    for command in commands_of(script):
        if _is_agent([program_of(command[0]), *command[1:]], programs):
            return True
        if "$" in command[0] and len(put_together) < _MOST_VARIABLES:
            put_together.setdefault(command[0], " ".join(command[1:]))
    return depth < _DEEPEST and any(
        starts_agent(f"{text} {rest}", programs, where, depth + 1)
        for word, rest in put_together.items()
        for text in _values_of(word, script, where)
    )


_DEEPEST, _MOST_VARIABLES = 3, 50
_VARIABLE = re.compile(r"\$\{?(\w+)(?:\[[@*]\])?\}?")


def _values_of(word: str, script: str, where: Sequence[Workflow | Job | Step], depth: int = 0) -> Iterator[str]:
    """Yield the texts that a variable or an expression may stand for, as far as files tell."""
    if at := _VARIABLE.fullmatch(word):
        yield from assigned_texts(at[1], script)
        yield from (str(each.env[at[1]]) for each in where if isinstance(each.env, dict) and at[1] in each.env)
    workflow = next((each for each in where if isinstance(each, Workflow)), None)
    job = next((each for each in where if isinstance(each, Job)), None)
    for expression in embedded_expressions(word):
        for ref in parsed.yields if (parsed := parse(expression)) else ():
            yield from _read(ref, workflow, job, depth) if workflow and job else ()


def _read(ref: Reference, workflow: Workflow, job: Job, depth: int) -> Iterator[str]:
    """Yield the texts that a reference may have in a job, as far as files tell."""
    match ref:
        case ("steps", name, "outputs", output):
            steps = [step for step in job.nested_steps() if step.id.lower() == name]
            yield from (text for step in steps for each in step.script_texts for text in assigned_texts(output, each))
        case ("needs", name, "outputs", output) if depth < _DEEPEST:
            _, other = workflow.job(name) or ("", None)
            values = {key.lower(): str(value) for key, value in other.outputs.items()} if other else {}
            yield values.get(output, "")
            yield from _values_of(values.get(output, ""), "", (workflow, other), depth + 1) if other else ()
        case ("matrix", name):
            matrix = job.strategy.get("matrix") if isinstance(job.strategy, dict) else None
            listed, more = (matrix.get(name), matrix.get("include")) if isinstance(matrix, dict) else (None, None)
            yield from map(str, listed if isinstance(listed, list) else ())
            yield from (str(each[name]) for each in more or () if isinstance(each, dict) and name in each)
        case ("inputs", name):
            triggers = (workflow.on.workflow_call, workflow.on.workflow_dispatch)
            yield from (str(each.inputs[name].default or "") for each in triggers if each and name in each.inputs)
        case ("env", name):
            yield f"${name.upper()}"


_ASSIGNED = re.compile(
    r"""(?<![\w-])(?P<name>[\w-]+)(?:=|['"],[ ])"""
    r"""(?:\((?P<list>[^()\n]*)\)|"(?P<double>[^"\n]*)"|'(?P<single>[^'\n]*)'|(?P<bare>[^"'\n>]+))"""
)
_LOOP = re.compile(r"\bfor[ \t]+(\w+)[ \t]+in[ \t]+([^;\n]+)")

_READ = re.compile(r"\b(?:read|mapfile|readarray|printf[ \t]+-v)[ \t][^\n]*")


def assigned_texts(name: str, script: str) -> Sequence[str]:
    """Return the texts that a script gives to a variable or an output, in any case of its letters."""
    return _assignments(script).get(name.lower(), ())


@lru_cache(maxsize=8)
def _assignments(script: str) -> dict[str, list[str]]:
    given = [(at["name"], at[at.lastgroup or 0]) for at in _ASSIGNED.finditer(script)]
    given += [(at[1], word.strip("'\"")) for at in _LOOP.finditer(script) for word in at[2].split()]
    given += [(word, text) for text in _READ.findall(script) for word in text.partition(";")[0].split()]
    found: dict[str, list[str]] = {}
    for name, text in given:
        found.setdefault(name.lower(), []).append(text)
    return found


HARMLESS_SCOPES = frozenset({"id-token", "models", "copilot-requests"})
"""Permissions that write nothing into the repository: a proof of identity, and the use of models."""


def written_scopes(granted: Mapping[str, str] | str | None) -> Sequence[str]:
    """Return the permissions by which a token with these may write into the repository."""
    if granted == "write-all":
        return ["everything"]
    if isinstance(granted, Mapping):
        return [scope for scope, level in granted.items() if level == "write" and scope not in HARMLESS_SCOPES]
    return []


_HARMLESS = frozenset({
    "agents", "auth", "completion", "config", "doctor", "extensions", "features", "help", "install", "login", "logout",
    "mcp", "models", "plugin", "plugins", "setup-token", "uninstall", "update", "upgrade",
})  # fmt: skip
"""First words after an agent's name that only set it up or look at it."""

_ASKS = frozenset({"-v", "-V", "--version", "-h", "--help"})


def _is_agent(command: Sequence[str], programs: frozenset[str]) -> bool:
    first = next((word for word in command[1:] if not word.startswith("-")), "")
    if command[0] == "accord":
        return first == "run"
    if command[0].startswith("$") or command[0] == "node":  # a script in front, which starts what it is given
        return any(word.startswith("/") and program_of(word) in programs for word in command[2:])
    return command[0] in programs and first not in _HARMLESS and not (command[1:2] and command[1] in _ASKS)
