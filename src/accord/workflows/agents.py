"""Steps that run an agent, by their action or the commands of their script."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from accord.agents.registry import shipped_registry
from accord.workflows.agent_commands import starts_agent

if TYPE_CHECKING:
    from collections.abc import Sequence

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
