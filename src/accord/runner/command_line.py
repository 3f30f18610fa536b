"""The words that start an agent, out of its entry of the registry and what the run asks for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.runner.failures import NotRun
from accord.runner.prompt import as_argument
from accord.runner.registry_rules import PLACE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from accord.runner.registry_models import Agent, Choice, Setting


@dataclass(frozen=True)
class Asked:
    """What one run puts into the places of a command; empty or None is what is not asked for."""

    prompt: str
    prompt_file: Path
    sandbox: str = ""
    safety_strategy: str = ""
    model: str = ""
    result_schema: str = ""
    result_schema_file: Path | None = None
    final_message_file: Path | None = None
    command: Sequence[str] = ()


def command_line(agent: Agent, asked: Asked) -> list[str]:
    """Fill the places of a command. Raises NotRun for what this agent cannot be asked for."""
    words = {
        "sandbox": setting_of(agent.sandbox, asked.sandbox, "sandbox mode").arguments,
        "safety_strategy": setting_of(agent.safety_strategy, asked.safety_strategy, "safety strategy").arguments,
        "model": _model(agent, asked.model),
        "result_schema": _result_schema(agent, asked),
        "final_message": _with_value(agent.final_message, str(asked.final_message_file or "")),
        "arguments": agent.arguments,
        "command": _command(agent, asked.command),
        "prompt": [as_argument(asked.prompt, "prompt") if agent.prompt == "argument" else str(asked.prompt_file)],
    }
    line: list[str] = []
    for word in agent.command:
        place = PLACE.fullmatch(word)
        line += words[place[1]] if place else [PLACE.sub(lambda hit: " ".join(words[hit[1]]), word)]
    return line


def setting_of(choice: Choice | None, value: str, what: str) -> Setting:
    """Return what a value of a choice comes to. Raises NotRun with the values that there are."""
    from accord.runner.registry_models import Setting

    if choice is None:
        if value:
            raise _unknown(f'The agent has no {what}, so "{value}" means nothing to it.', "Leave it empty.")
        return Setting()
    if (value or choice.default) not in choice.values:
        known = ", ".join(choice.values)
        raise _unknown(f'"{value}" is no {what} of this agent.', f"Choose one of: {known}.")
    return choice.values[value or choice.default]


def _model(agent: Agent, model: str) -> list[str]:
    model = model or agent.default_model
    if not model:
        return []
    if not agent.model:
        raise _unknown(f'The agent takes no model, so "{model}" means nothing to it.', "Leave it empty.")
    if model.startswith("-") or not model.isprintable():
        raise _unknown(f'"{model}" is no name of a model.', "Write it as its provider does.")
    return _with_value(agent.model, model)


def _result_schema(agent: Agent, asked: Asked) -> list[str]:
    """An agent that cannot be given a schema must have it in its prompt; the result is validated all the same."""
    if not asked.result_schema or agent.result_schema is None:
        return []
    if agent.result_schema.passed_as == "file":
        return _with_value(agent.result_schema.arguments, str(asked.result_schema_file))
    return _with_value(agent.result_schema.arguments, as_argument(asked.result_schema, "result schema"))


def _command(agent: Agent, command: Sequence[str]) -> list[str]:
    takes_one = any("{command}" in word for word in agent.command)
    if takes_one and not command:
        raise _unknown("The agent runs any command, and none is given.", "Pass --command.")
    if command and not takes_one:
        raise _unknown("The agent has a command of its own.", 'Leave --command out, or name the agent "command".')
    return list(command)


def _with_value(words: Sequence[str], value: str) -> list[str]:
    return [word.replace("{value}", value) for word in words]


def _unknown(message: str, mend: str) -> NotRun:
    return NotRun("not-started", message, mend=mend)
