"""``accord analyze`` and ``accord classify``: the tasks that a run completed, and why a run failed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext

import click

from accord.agents.providers import ALL, STRUCTURED
from accord.cli.options import FormatArguments, argument, command, option
from accord.cli.output import one_line, print_json, redactor
from accord.cli.run_step import attempts_table, parse_list, task_list
from accord.cli.sources import local_policy, read_text, regular_file
from accord.cli.step import annotate_warnings, leave_outputs, leave_summary, long_table, warn
from accord.core.clock import SystemClock
from accord.runner.analysis.analyse import Analysis, TaskEvidence, analyse
from accord.runner.classify import classify as classify_run
from accord.runner.models import Classification
from accord.runner.outputs import analysis_outputs, error_outputs
from accord.runner.transcripts.read import codec_of, read_evidence
from accord.text.markdown import cell
from accord.text.outline import tasks

_SIGNS = {"answered": "✓", "failed": "✗", "skipped": "-"}


class _AnalyzeArguments(FormatArguments):
    pr_body: str = option("--pr-body FILE", "The pull request's body with its tasks.", required=True)
    message: str = option("--message FILE", "The agent's final message.", required=True)
    providers: str = option("--providers NAMES", "Providers to ask, in this order.", default=",".join(ALL))
    commands: str = option("--commands FILE", "Commands that the agent ran, one per line.")
    diff_stat: str = option("--diff-stat FILE", "The run's changes, as printed by `git diff --stat`.")


@command(_AnalyzeArguments, short_help="Find the tasks that an agent completed.")
def analyze(given: _AnalyzeArguments) -> None:
    """Find the open tasks of a pull request that an agent completed. Use - for stdin.

    Asks the providers that have a key until one answers, and reads the agent's own words last. Exits 0 even if none
    answered.
    """
    files = (given.pr_body, given.message, given.commands, given.diff_stat)
    body, message, commands, stat = (read_text(path or None) or "" for path in files)
    ran = tuple(line for line in commands.splitlines() if line.strip())
    evidence = TaskEvidence(body, message, ran, stat)
    names = [name for name in given.providers.replace(",", " ").split() if name]
    found = analyse(evidence, environment=os.environ, providers=names, clock=SystemClock())
    warnings: list[str] = []
    outputs = analysis_outputs(found, redactor(), local_policy(), warnings)
    if given.is_json:
        print_json(outputs)
    else:
        _print_analysis(found, [task.text for task in tasks(body) if task.text and not task.is_checked])
    leave_outputs(outputs)
    name = cell(f"{found.provider} {found.model}".strip())
    answer = f"Answered by {name}, confidence {outputs['llm-confidence']}." if name else "No provider answered."
    done = task_list(parse_list(outputs["llm-completed-tasks"])) or "No completed task was found."
    leave_summary("### accord analyze", answer, done, attempts_table(parse_list(outputs["llm-attempts"])))
    annotate_warnings(warnings, "accord")


def _print_analysis(found: Analysis, open_tasks: list[str]) -> None:
    completed = list(found.completed)
    name = one_line(f"{found.provider} {found.model}".strip())
    summary = f"{len(completed)} of {len(open_tasks)} open tasks completed, confidence {found.confidence:.2g} ({name})"
    click.echo(summary if found.provider else "no provider answered")
    for text in open_tasks:
        is_done = text in completed
        if is_done:
            completed.remove(text)
        click.echo(click.style(f"  [{'x' if is_done else ' '}] {one_line(text)}", fg="green" if is_done else None))
    for attempt in found.attempts:
        took = f" ({attempt.milliseconds} ms)" if attempt.outcome != "skipped" else ""
        reason = f": {one_line(attempt.reason)}" if attempt.reason else ""
        line = f"  {_SIGNS[attempt.outcome]} {attempt.provider} {attempt.outcome}{took}{reason}"
        click.echo(click.style(line, dim=True))


NO_ERROR: dict[str, object] = dict.fromkeys(("category", "type", "recovery", "summary", "cause"), "") | {
    "retry_after_seconds": None,
    "evidence": {"rule": "", "source": "", "line": ""},
}
"""The output for a run without an error: all keys, empty, like the contract's outputs."""


_AGENT_HELP = f"Registered agent, or {', '.join(STRUCTURED)}. Default: detected."


class _ClassifyArguments(FormatArguments):
    log: str = argument("LOG", envvar="ACCORD_CLASSIFY_LOG")
    agent: str = option("--agent NAME", _AGENT_HELP)
    exit_code: int | None = option("--exit-code", "Exit code of the agent, if known.", least=0, most=255)
    stderr: str | None = option("--stderr FILE", "The agent's standard error.")


@command(_ClassifyArguments, short_help="Explain why an agent's run failed.")
def classify(given: _ClassifyArguments) -> None:
    """Explain why an agent's run failed: category, origin, recovery, and the line that decided.

    LOG is the agent's standard output; use - for stdin. A run without an error has an empty category. Without
    --exit-code, plain text has an error only if a line of it reports one of a known cause.
    """
    agent = given.agent
    given_stderr = regular_file(given.stderr) if given.stderr else nullcontext()
    with regular_file(given.log) as stdout, given_stderr as beside:
        codec, warnings = codec_of(agent, stdout, beside)
        found = classify_run(read_evidence(codec, agent or codec, given.exit_code, stdout, stderr=beside))
    if given.is_json:
        print_json(found.model_dump() if found else NO_ERROR)
    else:
        click.echo("\n".join(_lines_of(found)) if found else "no error")
    outputs = error_outputs(found, redactor(), local_policy())
    leave_outputs(outputs)
    category = outputs["error-category"]
    values = [outputs[name] for name in ("error-type", "error-recovery", "retry-after-seconds", "error-summary")]
    rows = [list(map(cell, values))] if category else []
    errors = long_table(["Origin", "Recovery", "Seconds to wait", "Summary"], rows)
    leave_summary(f"### accord classify: {category or 'no error'}", errors)
    for text in warnings:
        warn(text)


def _lines_of(found: Classification) -> Iterator[str]:
    delay = f" after {found.retry_after_seconds:.10g} s" if found.retry_after_seconds is not None else ""
    yield f"{click.style(found.category, fg='red', bold=True)} ({found.type}): {found.recovery}{delay}"
    yield f"  {one_line(found.summary)}"
    evidence = found.evidence
    yield click.style(f"  {evidence.rule}, by {evidence.source}: {one_line(evidence.line)}", dim=True)
    yield f"Next: `accord explain {found.cause}` says more of the cause."
