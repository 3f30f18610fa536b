"""Contract ro as data: the inputs that every runner takes, and the outputs that every runner gives.

Source: runner output contract, "Required Inputs" and "Required Outputs". What the outputs mean is said once, in
``accord.runner.models.RunOutputs``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accord.runner.models import RunOutputs

InputType = Literal["string", "boolean", "number"]


@dataclass(frozen=True)
class RunnerInput:
    """An input that a runner must take; ``default`` is the contract's own, where it names one."""

    name: str
    type: InputType
    description: str
    is_required: bool = False
    default: str | int | None = None


INPUTS = (
    RunnerInput("skip", "boolean", "Run nothing, and succeed at once."),
    RunnerInput("prompt_file", "string", "Path of the prompt that the agent reads.", is_required=True),
    RunnerInput("mode", "string", "What the run is for: keepalive, autofix or verifier."),
    RunnerInput("pr_number", "string", "Number of the pull request that the run is for."),
    RunnerInput("pr_ref", "string", "The branch to check out, and to push to."),
    RunnerInput("base_ref", "string", "The branch that the work is to be merged into."),
    RunnerInput(
        "workflows_ref", "string", "Ref of the repository that the runner's scripts are taken from.", default="main"
    ),
    RunnerInput("max_runtime_minutes", "number", "How many minutes the agent may run.", default=45),
    RunnerInput("environment", "string", "The GitHub environment of the agent's job."),
    RunnerInput("sandbox", "string", "How the agent is confined; each agent has its own words."),
    RunnerInput("safety_strategy", "string", "How careful the agent is; each agent has its own words."),
    RunnerInput("appendix", "string", "More context, put after the prompt."),
    RunnerInput("iteration", "string", "Which round of a loop this is."),
)

OUTPUTS = (
    "final-message",
    "final-message-summary",
    "exit-code",
    "changes-made",
    "commit-sha",
    "files-changed",
    "error-summary",
    "error-category",
    "error-type",
    "error-recovery",
    "llm-analysis-run",
    "llm-provider",
    "llm-model",
    "llm-confidence",
    "llm-completed-tasks",
    "llm-has-completions",
)
"""The outputs that the contract requires; any other of ``RunOutputs`` is an extra that a runner may leave out."""


def described_outputs() -> dict[str, str]:
    """Return every output of ours, the contract's and the extras, with what it means."""
    return {str(field.alias): field.description or "" for field in RunOutputs.model_fields.values()}
