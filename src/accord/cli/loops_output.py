"""Options of `accord keepalive|autofix|… run`, and what the commands print and leave for the next steps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import (
    Choice,
    FormatArguments,
    Number,
    PostingArguments,
    SteeringArguments,
    WritingArguments,
    option,
)
from accord.cli.output import one_line, print_json
from accord.cli.receipts import print_operations
from accord.cli.step import leave_outputs, leave_summary, redact
from accord.core.environment import is_in_actions
from accord.gha.step import command
from accord.loops.models import ACTS
from accord.loops.state import iteration_row, iterations_table
from accord.text.markdown import cell
from accord.text.redaction import redact_json

if TYPE_CHECKING:
    from accord.engine.operations import OperationLog
    from accord.loops.models import LoopDecision
    from accord.loops.run import Turn


_COLORS = {
    **dict.fromkeys(("run", "fix", "update", "review", "announce", "report"), "green"),
    "stop": "yellow",
    "ask": "yellow",
}


def print_decision(decision: LoopDecision) -> None:
    """Print a decision for people, redacted: names of checks and labels are untrusted text."""

    def shown(text: str) -> str:
        return one_line(redact(text))

    action = click.style(decision.action, fg=_COLORS.get(decision.action), bold=True)
    click.echo(f"{action} ({decision.reason}): {shown(decision.message)}")
    if decision.agent:
        click.echo(f"  agent {shown(decision.agent)}, iteration {decision.iteration}")
    if decision.wait_seconds is not None:
        click.echo(f"  look again in {decision.wait_seconds} s")
    for sign, labels in (("+", decision.add_labels), ("-", decision.remove_labels)):
        for label in labels:
            click.echo(f"  {sign} label {shown(label)}")
    for run_id in decision.reruns:
        click.echo(f"  start workflow run {run_id} again")
    for warning in decision.warnings:
        click.echo(click.style(f"  warning: {shown(warning)}", fg="yellow"))
    if decision.appendix:
        click.echo(f"  appendix of {len(decision.appendix)} characters (--format json shows it)")


HISTORY = "loop-history.ndjson"


class TurnArguments(WritingArguments, PostingArguments, FormatArguments):
    """The arguments of a turn of any loop."""

    pull: int | None = option("--pull", "Pull request; all open ones by default.", type=Number(), metavar="N")
    phase: str = option(
        "--phase",
        "Begin a turn, end it, or do both and run the agent here.",
        type=Choice(["all", "begin", "end"]),
        default="all",
    )
    agent: str = option("--agent", "Agent to use where no label names one.", default="", metavar="NAME")
    registry: Path | None = option(
        "--registry", "Registry file; .github/agents/registry.yml if present.", metavar="FILE"
    )
    outputs: str | None = option("--outputs", "Outputs of the run as JSON; else ACCORD_RUN_OUTPUTS.", metavar="FILE")
    run_dir: Path | None = option("--run-dir", "Directory for the run and the loop's history.", metavar="DIR")
    dispatch_workflow: str = option("--dispatch-workflow", "Workflow that runs this loop.", default="", metavar="FILE")
    max_runtime_minutes: int = option(
        "--max-runtime-minutes",
        "Time limit of the agent.",
        type=click.IntRange(min=1, max=360),
        default=45,
        metavar="N",
    )
    prompt_file: str = option(
        "--prompt-file", "Prompt for the agent; the shipped one by default.", default="", metavar="F"
    )
    allow_steering_files: bool = False
    rerun_held_runs: bool = False
    review_workflow: str = ""


class ChangingArguments(SteeringArguments, TurnArguments):
    """The arguments of a turn whose agent changes code."""


class AutofixArguments(ChangingArguments):
    """The arguments of a turn that reads checks."""

    rerun_held_runs: bool = option("--rerun-held-runs", "Start held workflow runs again, with an app's token.")


class KeepaliveArguments(AutofixArguments):
    """The arguments of a turn of keepalive."""

    review_workflow: str = option(
        "--review-workflow", "Workflow that reviews a pull request whose tasks are done.", default="", metavar="FILE"
    )


def report_turn(turn: Turn, given: TurnArguments, run_dir: Path | None) -> None:
    """Leave outputs and a summary for the next steps, and print the turn."""
    leave_outputs({name: redact(value) for name, value in step_outputs(turn, given.prompt_file).items()})
    leave_summary(turn_summary(turn))
    if is_in_actions(os.environ):
        warnings = [*turn.decision.warnings]
        if turn.decision.reason == "read-only-token":
            warnings.append(turn.decision.message)
        for text in warnings:
            click.echo(command("warning", redact(text), title=f"accord {turn.loop.name}"), err=True)
    if given.is_json:
        print_json(redact_json({**turn_document(turn), "run_dir": str(run_dir or "")}, redact))
        return
    for line in result_lines(turn):
        click.echo(one_line(redact(line)))
    print_decision(turn.decision)
    if turn.outcome == "planned":
        print_operations(turn.context.log.entries, "  ")
    click.echo(f"  {turn.outcome}{f': {one_line(turn.note)}' if turn.note else ''}")
    if turn.started:
        page = f": {turn.context.github.run_page(turn.started_run)}" if turn.started_run else ""
        click.echo(f"  started {one_line(turn.started)} again{one_line(page)}")
    if run_dir is not None and turn.outcome == "ended":
        click.echo(f"  files of the run: {one_line(str(run_dir))}")


def report_sweep(
    loop: str, started: dict[int, int], requests: dict[str, int], log: OperationLog, given: TurnArguments
) -> None:
    """Leave outputs and a summary, and print the pull requests that a sweep started the workflow for.

    ``started`` has the workflow run of each, 0 where GitHub does not tell.
    """
    pulls = list(started)
    line = f"{'due' if given.dry_run else 'started'}: {', '.join(f'#{number}' for number in pulls) or 'none'}"
    leave_outputs({"action": "sweep", "should-run": "false", "pulls": " ".join(map(str, pulls))})
    leave_summary(f"### accord {loop}: open pull requests\n\n{line.capitalize()}.")
    if given.is_json:
        outcome = "planned" if given.dry_run else "started"
        runs = {str(number): run_id for number, run_id in started.items() if run_id}
        print_json(
            {
                "loop": loop,
                "outcome": outcome,
                "pulls": pulls,
                "runs": runs,
                "operations": log.as_json(),
                "requests": requests,
            }
        )
    else:
        click.echo(line)


def step_outputs(turn: Turn, prompt_file: str = "") -> dict[str, str]:
    """Return the outputs of a step, all strings; not redacted yet."""
    decision = turn.decision
    wait = decision.wait_seconds
    return {
        "action": decision.action,
        "reason": decision.reason,
        "message": " ".join(decision.message.split()),
        "should-run": str(turn.should_run).lower(),
        "agent": decision.agent,
        "iteration": str(decision.iteration) if decision.iteration else "",
        "pr-number": str(turn.pull.number),
        "head-ref": turn.pull.head_branch,
        "head-sha": turn.pull.merge_commit or turn.pull.head_sha,
        "base-ref": turn.pull.base_branch,
        "wait-seconds": "" if wait is None else str(wait),
        "run-id": turn.context.run_id,
        "appendix": decision.appendix,
        "prompt-file": prompt_file,
        "schema": turn.loop.schema,
    }


def turn_document(turn: Turn) -> dict[str, Any]:
    """Return a turn as one document: the decision's keys, and what was done about it."""
    requests = turn.context.github.requests
    return {
        **turn.decision.model_dump(mode="json"),
        "loop": turn.loop.name,
        "pull": turn.pull.number,
        "outcome": turn.outcome,
        "should_run": turn.should_run,
        "run_id": turn.context.run_id,
        "iterations": turn.state.iterations if turn.state else None,
        "started": turn.started,
        "started_run": turn.started_run,
        "note": turn.note,
        "problem": turn.state.notice.problem if turn.state and turn.state.notice else "",
        "operations": turn.context.log.as_json(),
        "requests": {"read": requests.read, "write": requests.write},
    }


def result_lines(turn: Turn) -> list[str]:
    """Return what people read about the run that this turn ended, and why it failed."""
    if turn.outcome != "ended" or turn.state is None or not turn.state.history:
        return []
    number, result, changes, tasks, *_ = iteration_row(turn.state.history[-1])
    done = f"{tasks} task{'' if tasks == '1' else 's'} done"
    line = f"Iteration {number}: {result}; changes: {changes.strip('`')}; {done}."
    return list(filter(None, [line, _problem(turn)]))


_NEXT = {
    "run": "The agent runs.",
    "fix": "The agent fixes checks.",
    "update": "The branch is updated.",
    "review": "A review is started.",
    "announce": "A comment mentions the person who can merge.",
    "wait": "The loop looks again at the next event",
    "defer": "The loop continues when the rate limit allows",
    "stop": "The loop does nothing until a person or an event changes something.",
    "report": "Nothing is left to do.",
    "follow-up": "A follow-up work item holds the rest.",
    "ask": "A person decides.",
}


def turn_summary(turn: Turn) -> str:
    """Return the step's summary: the decision, its reason, the next step, and a row for each iteration."""
    decision = turn.decision
    code = f" (`{cell(decision.reason)}`)" if decision.reason else ""
    parts = [
        f"### accord {turn.loop.name} on #{turn.pull.number}: {decision.action}{code}",
        cell(decision.message),
        _next_step(turn),
    ]
    parts += [f"> {cell(text)}" for text in (turn.note, _problem(turn), *decision.warnings) if text]
    if turn.state and turn.state.history:
        parts.append(iterations_table(turn.state))
    return "\n\n".join(filter(None, parts))


def _problem(turn: Turn) -> str:
    notice = turn.state.notice if turn.state else None
    return notice.problem if notice and turn.outcome == "ended" else ""


def _next_step(turn: Turn) -> str:
    decision = turn.decision
    if turn.outcome == "planned":
        return "This is a dry run: nothing was written."
    if turn.started:
        page = turn.context.github.run_page(turn.started_run)
        run = f" in [run {turn.started_run}]({page})" if turn.started_run else ""
        return f"Next: `{cell(turn.started)}` was started again{run}."
    if turn.outcome == "ended" and decision.action in ACTS:
        return "Next: The next turn is due. Start another turn, or pass `--dispatch-workflow` to start it here."
    if decision.reason in ("checks-held", "checks-not-approved"):
        return f"Next: A person approves the workflow runs on [#{turn.pull.number}]({turn.pull.url})."
    wait = "" if decision.wait_seconds is None else f", in {decision.wait_seconds} s"
    text = _NEXT[decision.action]
    return f"Next: {text}" if text.endswith(".") else f"Next: {text}{wait}."
