"""Steps that run an agent, by their action or the commands of their script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.workflows.agent_commands import starts_agent

if TYPE_CHECKING:
    from accord.workflows.models import Step

_AGENT_ACTIONS = re.compile(
    r"\A(?:openai/codex-action|anthropics/claude-code(?:-base)?-action|google-github-actions/run-gemini-cli"
    r"|(?:\.|\$|[\w.-]+/[\w.-]+)/actions/run-agent)",
    re.IGNORECASE,
)
_OF_RUN = frozenset(
    {"exit-code", "execution_file", "conclusion", "session_id", "branch_name", "github_token", "commit-sha",
     "changes-made", "files-changed", "error-category", "error-type", "error-recovery"}
)  # fmt: skip
"""Outputs of such actions that hold none of the agent's words."""


def runs_agent(step: Step, programs: frozenset[str]) -> bool:
    """Return whether a step starts an agent, by its action or by the commands of its script."""
    if step.uses:
        if str(step.given.get("skip")).lower() == "true":
            return False
        return is_agent_action(step)
    return any(starts_agent(text, programs) for text in step.shell_texts)


def gives_agent_text(step: Step, output: str) -> bool:
    """Return whether an output of a step holds words of an agent."""
    return is_agent_action(step) and output not in _OF_RUN


def is_agent_action(step: Step) -> bool:
    """Return whether a step is an action that runs an agent."""
    return _AGENT_ACTIONS.fullmatch(step.uses.partition("@")[0]) is not None
