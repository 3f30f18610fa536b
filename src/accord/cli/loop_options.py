"""The options of a turn of a loop."""

from __future__ import annotations

from pathlib import Path

from accord.cli.options import PostingArguments, SteeringArguments, WritingArguments, option


class TurnArguments(WritingArguments, PostingArguments):
    """The arguments of a turn of any loop."""

    pull: int | None = option("--pull N", "Pull request; all open ones by default.")
    phase: str = option(
        "--phase",
        "Begin a turn, end it, or do both and run the agent here.",
        among=("all", "begin", "end"),
        default="all",
    )
    agent: str = option("--agent NAME", "Agent to use where no label names one.")
    registry: Path | None = option("--registry FILE", "Registry file; .github/agents/registry.yml if present.")
    outputs: str | None = option("--outputs FILE", "Outputs of the run as JSON; else ACCORD_RUN_OUTPUTS.")
    run_dir: Path | None = option("--run-dir DIR", "Directory for the run and the loop's history.")
    dispatch_workflow: str = option("--dispatch-workflow FILE", "Workflow that runs this loop.")
    max_runtime_minutes: int = option(
        "--max-runtime-minutes N", "Time limit of the agent.", least=1, most=360, default=45
    )
    prompt_file: str = option("--prompt-file F", "Prompt for the agent; the shipped one by default.")
    allow_steering_files: bool = False
    review_workflow: str = ""


class VerifyArguments(TurnArguments):
    """The arguments of a turn of the verifier."""

    pull: int = option("--pull N", "Pull request to verify.")


class ChangingArguments(SteeringArguments, TurnArguments):
    """The arguments of a turn whose agent changes code."""


class KeepaliveArguments(ChangingArguments):
    """The arguments of a turn of keepalive."""

    review_workflow: str = option(
        "--review-workflow FILE", "Workflow that reviews a pull request whose tasks are done."
    )
