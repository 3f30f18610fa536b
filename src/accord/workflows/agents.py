"""Steps that run an agent, by their action or the commands of their script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from accord.agents.registry import Registry, shipped_registry
from accord.workflows.models import Job, Step, Workflow

_RUN_AGENT = re.compile(r"(?:\.|\$|[\w.-]+/[\w.-]+)/actions/run-agent", re.IGNORECASE)
_OF_RUN = frozenset(
    {"exit-code", "commit-sha", "changes-made", "files-changed", "error-category", "error-type", "error-recovery"}
)
"""Outputs of that action that hold none of the agent's words."""

_WORDS = frozenset(
    {"final-message", "final-message-summary", "error-summary", "llm-completed-tasks", "result-json",
     "structured_output"}
)  # fmt: skip
"""Outputs of runners and of actions that hold an agent's words."""


def runs_agent(step: Step, programs: frozenset[str]) -> bool:
    """Return whether a step starts an agent, by its action or by the commands of its script."""
    if step.uses:
        if str(step.given.get("skip")).lower() == "true":
            return False
        return is_agent_action(step) or _action_of(step) in programs
    return any(starts_agent(text, programs) for text in step.shell_texts)


def gives_agent_text(step: Step | None, output: str) -> bool:
    """Return whether an output of a step, or of a job without one, holds words of an agent."""
    return output in _WORDS or (step is not None and is_agent_action(step) and output not in _outputs_of_run(step))


def is_agent_action(step: Step) -> bool:
    """Return whether a step is an action that runs an agent."""
    return _action_of(step) in shipped_actions() or _RUN_AGENT.fullmatch(_action_of(step)) is not None


def _action_of(step: Step) -> str:
    return step.uses.partition("@")[0].lower()


@cache
def shipped_actions() -> dict[str, frozenset[str]]:
    """Return the actions of the agents that accord ships, each with its outputs that hold no words of the agent."""
    agents = shipped_registry().agents.values()
    return {name.lower(): frozenset(outputs) for agent in agents for name, outputs in agent.actions.items()}


def _outputs_of_run(step: Step) -> frozenset[str]:
    return _OF_RUN | shipped_actions().get(_action_of(step), frozenset())


HARMLESS_SCOPES = frozenset({"id-token", "models", "copilot-requests"})
"""Permissions that write nothing into the repository: a proof of identity, and the use of models."""


def written_scopes(workflow: Workflow, job: Job) -> Sequence[str]:
    """Return the permissions by which a job's token may write into the repository, as far as the workflow tells."""
    granted = workflow.permissions if job.permissions is None else job.permissions
    if granted == "write-all":
        return ["everything"]
    if isinstance(granted, dict):
        return [scope for scope, level in granted.items() if level == "write" and scope not in HARMLESS_SCOPES]
    return []


_HARMLESS = frozenset({
    "agents", "auth", "completion", "config", "doctor", "extensions", "features", "help", "install", "login", "logout",
    "mcp", "models", "plugin", "plugins", "setup-token", "uninstall", "update", "upgrade",
})  # fmt: skip
"""First words after an agent's name that only set it up or look at it."""

_ASKS = frozenset({"-v", "-V", "--version", "-h", "--help"})
_KEYWORDS = frozenset({"if", "then", "elif", "else", "do", "while", "until", "!"})
_WRAPPERS = frozenset({
    "awf", "bash", "builtin", "bun", "bunx", "chroot", "coproc", "dash", "doas", "docker", "env", "eval", "exec",
    "flock", "ionice", "nice", "node", "nohup", "npm", "npx", "parallel", "pipx", "pnpm", "pnpx", "podman", "python",
    "python3", "runuser", "script", "setsid", "sh", "ssh", "stdbuf", "su", "sudo", "time", "timeout", "unbuffer", "uv",
    "uvx", "xargs", "yarn", "zsh",
})  # fmt: skip
"""Programs that start another one."""

_RUNNING = {
    "bun": {"x", "run"}, "docker": {"run", "exec"}, "npm": {"exec", "x"}, "pipx": {"run"}, "pnpm": {"dlx", "exec"},
    "podman": {"run", "exec"}, "uv": {"run"}, "yarn": {"dlx", "exec", "run"},
}  # fmt: skip
"""Wrappers that start a program only after one of these words."""

_WITH_ARGUMENT = frozenset({"chroot", "docker", "flock", "podman", "ssh", "timeout"})
"""Wrappers with a word before that program: an image, a host, a time."""

_NAMES_PERSON = frozenset({"-u", "-g", "--user", "--group"})

_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t]|\\\r?\n|(?<![^\s;|&(])\#[^\n]*)+)
    |(?P<redirection>\d*(?:&>>?|<<<|<<-?|>>|[<>]&|>\||[<>])[ \t]*)
    |(?P<end>[\r\n;|&()`])
    |(?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s;|&()<>`'"\\]|['"\\])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_CASE = re.compile(r"""^[ \t]*[^\s()|]+(?:[ \t]*\|[ \t]*[^\s()|]+)*\)""", re.MULTILINE)
_ASSIGNMENT = re.compile(r"\A\w+\+?=.*", re.DOTALL)
_QUOTES = re.compile(r"""\\(.)|'([^']*)'|"((?:\\.|[^"\\])*)\"""", re.DOTALL)
_SUBSTITUTION = re.compile(r"\$\(|`")
_DEEPEST = 8


def agent_programs(registry: Registry) -> frozenset[str]:
    """Return the programs of a registry's agents, their packages as ``npx`` names them, and their actions."""
    named = set[str]()
    for agent in registry.agents.values():
        named.update(agent.programs, map(str.lower, agent.actions))
        words = [word for word in agent.command if not word.startswith("{")]
        named.update(_program(command[0]) for command in [*_wrapped(words)][-1:])
        if agent.install:
            named.add(_program(agent.install.package))
    return frozenset(named)


@cache
def shipped_programs() -> frozenset[str]:
    """Return the programs of the agents that accord ships."""
    return agent_programs(shipped_registry())


def starts_agent(script: str, programs: frozenset[str]) -> bool:
    """Return whether a command of a script starts one of these programs, or ``accord run``, to do work."""
    return any(_is_agent([_program(command[0]), *command[1:]], programs) for command in commands_of(script))


def _split(script: str) -> Iterator[list[str]]:
    """Split a script into simple commands without redirections and comments; words keep their quotes."""
    words: list[str] = []
    is_target = False
    for token in _TOKEN.finditer(script):
        if token.lastgroup == "word" and not is_target:
            words.append(token[0])
        elif token.lastgroup == "end":
            if words:
                yield words
            words = []
        if token.lastgroup != "blank":
            is_target = token.lastgroup == "redirection"
    if words:
        yield words


def _unquoted(word: str) -> str:
    return _QUOTES.sub(lambda hit: hit[1] or hit[2] or re.sub(r"\\(.)", r"\1", hit[3] or ""), word)


def commands_of(script: str, depth: int = 0) -> Iterator[Sequence[str]]:
    """Yield the words of each command of a script, unquoted, also behind wrappers and in substitutions."""
    for words in _split(_CASE.sub("", script)) if depth <= _DEEPEST else ():
        nested = [word[at.end() :].rstrip('"') for word in words if (at := _SUBSTITUTION.search(word))]
        for command in _wrapped([_unquoted(word) for word in words]):
            yield command
            if _program(command[0]) in _WRAPPERS:
                nested += [word for word in command if re.search(r"\s", word)]
        for text in dict.fromkeys(nested):
            yield from commands_of(text, depth + 1)


def _wrapped(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the commands that a simple command may start: itself, and those behind wrappers."""
    start = 0
    while start < len(words) and (words[start] in _KEYWORDS or words[start] in "{}" or _is_assignment(words[start])):
        start += 1
    command = words[start:]
    while command:
        yield command
        wrapper, command = _program(command[0]), command[1:]
        if wrapper not in _WRAPPERS:
            return
        if wrapper in _RUNNING:
            run = next((i for i, word in enumerate(command) if word in _RUNNING[wrapper]), len(command))
            command = command[run + 1 :]
        skipped = wrapper in _WITH_ARGUMENT
        for i, word in enumerate(command):
            before = command[i - 1] if i else ""
            if word.startswith("-") or _is_assignment(word) or before in _NAMES_PERSON:
                continue
            may_be_value = before.startswith("-") and _program(word) not in _WRAPPERS
            if not skipped and not may_be_value:
                command = command[i:]
                break
            yield command[i:]
            skipped = skipped and may_be_value
        else:
            return


def _is_assignment(word: str) -> bool:
    return _ASSIGNMENT.fullmatch(word) is not None


def _program(word: str) -> str:
    """Return a program's name without its folder, npm scope and version."""
    at = word.rfind("@")
    return (word[:at] if at > 0 else word).replace("\\", "/").rpartition("/")[2].removesuffix(".exe")


def _is_agent(command: Sequence[str], programs: frozenset[str]) -> bool:
    first = next((word for word in command[1:] if not word.startswith("-")), "")
    if command[0] == "accord":
        return first == "run"
    if command[0].startswith("$") or command[0] == "node":  # a script in front, which starts what it is given
        return any(word.startswith("/") and _program(word) in programs for word in command[2:])
    return command[0] in programs and first not in _HARMLESS and not (command[1:2] and command[1] in _ASKS)
