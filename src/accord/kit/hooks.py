"""Stop hooks: settings with which an agent in an editor checks its result files before it may end.

The three agents agree: a hook gets one JSON object on stdin, and exit code 2 keeps the agent working, with stderr as
the reason (Claude Code "Stop", Codex "Stop", Gemini CLI "AfterAgent"). ``stop_hook_active`` says that it is working on
for that reason.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_REFUSALS = 3
"""Refusals in a row, after which the agent may end: one for the shape, one for the rules, one more."""

_SECONDS = 60


class _AgentHook(NamedTuple):
    """Where an agent reads hooks, the event of its end, the time limit's unit in a second, and what users must do."""

    file: str
    event: str
    units: int
    next_step: str


_HOOKS = {
    "claude": _AgentHook(
        ".claude/settings.json", "Stop", 1, "Start Claude Code again, and list its hooks with `/hooks`."
    ),
    "codex": _AgentHook(".codex/hooks.json", "Stop", 1, "Start Codex again, and trust the hook with `/hooks`."),
    "gemini": _AgentHook(".gemini/settings.json", "AfterAgent", 1000, "Start Gemini CLI again, in a trusted folder."),
}

AGENTS = tuple(_HOOKS)


class HookSettings(NamedTuple):
    """The settings of an agent's hook, the file that they belong into, and the user's next step."""

    file: str
    settings: dict[str, Any]
    next_step: str


def hook_settings(agent: str, files: Sequence[str]) -> HookSettings:
    """Return the settings for an agent that check these files; without any, those of the skills."""
    hook = _HOOKS[agent]
    command = shlex.join(["accord", "hooks", "--run", *(["--", *files] if files else [])])
    entry = {"name": "accord", "type": "command", "command": command, "timeout": _SECONDS * hook.units}
    if agent != "gemini":
        del entry["name"]
    return HookSettings(hook.file, {"hooks": {hook.event: [{"hooks": [entry]}]}}, hook.next_step)
