"""Output of `accord keepalive|autofix|… run|decide`: for people, for programs, and for the next steps of a job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from accord.cli.options import FormatArguments
from accord.cli.output import colored_word, one_line, operation_lines
from accord.cli.step import annotate_warnings, present, redact, report_step
from accord.cli.step import redacted_cell as cell
from accord.loops.facts import LoopContext
from accord.loops.models import ACTS, LoopDecision
from accord.loops.run import Turn
from accord.loops.state import iteration_row, iterations_table

HISTORY = "loop-history.ndjson"


def decision_lines(decision: LoopDecision) -> Iterator[str]:
    """Yield a decision for people, redacted: names of checks and labels are untrusted text."""

    def clean(text: str) -> str:
        return one_line(redact(text))

    yield f"{colored_word(decision.action, bold=True)} ({decision.reason}): {clean(decision.message)}"
    if decision.agent:
        yield f"  agent {clean(decision.agent)}, iteration {decision.iteration}"
    if decision.wait_seconds is not None:
        yield f"  look again in {decision.wait_seconds} s"
    yield from (f"  + label {clean(label)}" for label in decision.add_labels)
    yield from (f"  - label {clean(label)}" for label in decision.remove_labels)
    yield from (click.style(f"  warning: {clean(text)}", fg="yellow") for text in decision.warnings)
    if decision.appendix:
        yield f"  appendix of {len(decision.appendix)} characters (--format json shows it)"


def report_turn(turn: Turn, given: FormatArguments, prompt_file: str, run_dir: Path | None) -> None:
    """Leave outputs and a summary for the next steps, and print the turn."""
    code = f" (`{cell(turn.decision.reason)}`)" if turn.decision.reason else ""
    title = f"{turn.loop.name} on #{turn.pull.number}: {turn.decision.action}{code}"
    report_step(title, step_outputs(turn, prompt_file), turn_summary(turn))
    is_read_only = turn.decision.reason == "read-only-token"
    warnings = [*turn.decision.warnings, *([turn.decision.message] if is_read_only else [])]
    annotate_warnings(warnings, f"accord {turn.loop.name}")
    requests = turn.context.github.requests
    document = {
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
        "run_dir": str(run_dir or ""),
    }
    present(given, document, _turn_lines(turn, run_dir))


def _turn_lines(turn: Turn, run_dir: Path | None) -> Iterator[str]:
    yield from (one_line(line) for line in result_lines(turn))
    yield from decision_lines(turn.decision)
    if turn.outcome == "planned":
        yield from operation_lines(turn.context.log.entries, "  ")
    yield f"  {turn.outcome}{f': {one_line(turn.note)}' if turn.note else ''}"
    if turn.started:
        page = f": {turn.context.github.run_page(turn.started_run)}" if turn.started_run else ""
        yield f"  started {one_line(turn.started)} again{one_line(page)}"
    if run_dir is not None and turn.outcome == "ended":
        yield f"  files of the run: {one_line(str(run_dir))}"


def report_sweep(loop: str, started: dict[int, int], context: LoopContext, given: FormatArguments) -> None:
    """Leave outputs and a summary, and print the pull requests that a sweep started the workflow for.

    ``started`` has the workflow run of each, 0 where GitHub does not tell.
    """
    log, requests = context.log, context.github.requests
    outcome, word = ("planned", "due") if log.is_dry_run else ("started", "started")
    line = f"{word}: {', '.join(f'#{number}' for number in started) or 'none'}"
    outputs = {"action": "sweep", "should-run": "false", "pulls": " ".join(map(str, started))}
    report_step(f"{loop}: open pull requests", outputs, f"{line.capitalize()}.")
    document = {
        "loop": loop,
        "outcome": outcome,
        "pulls": list(started),
        "runs": {str(number): run_id for number, run_id in started.items() if run_id},
        "requests": {"read": requests.read, "write": requests.write},
    }
    present(given, document, [line], log)


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
    """Return the step's summary below its title: the reason, the next step, and a row for each iteration."""
    notes = [f"> {cell(text)}" for text in (turn.note, _problem(turn), *turn.decision.warnings) if text]
    iterations = iterations_table(turn.state) if turn.state and turn.state.history else ""
    return "\n\n".join(filter(None, [cell(turn.decision.message), _next_step(turn), *notes, iterations]))


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
