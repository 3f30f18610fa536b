"""Stop hooks: settings with which an agent in an editor checks its result files before it may end.

Agents with such a hook agree: it gets one JSON object on stdin, and exit code 2 keeps the agent working, with stderr as
the reason. ``stop_hook_active`` says that it is working on for that reason.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from accord.agents.registry import shipped_registry

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_REFUSALS = 3
"""Refusals in a row, after which the agent may end: one for the shape, one for the rules, one more."""

_SECONDS = 60


_HOOKS = {name: agent.stop_hook for name, agent in shipped_registry().agents.items() if agent.stop_hook}
AGENTS = tuple(sorted(_HOOKS))


class HookSettings(NamedTuple):
    """The settings of an agent's hook, the file that they belong into, and the user's next step."""

    file: str
    settings: dict[str, Any]
    next_step: str


def hook_settings(agent: str, files: Sequence[str]) -> HookSettings:
    """Return the settings for an agent that check these files; without any, those of the skills."""
    hook = _HOOKS[agent]
    command = shlex.join(["accord", "hooks", "--run", *(["--", *files] if files else [])])
    entry = {**hook.entry, "type": "command", "command": command, "timeout": _SECONDS * hook.seconds}
    return HookSettings(hook.file, {"hooks": {hook.event: [{"hooks": [entry]}]}}, hook.next_step)
