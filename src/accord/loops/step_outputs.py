"""What a turn tells those who come after it: outputs for the next jobs, JSON for programs, a page for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.kernel.markdown_text import cell
from accord.loops.gather import RUNS
from accord.loops.state_comment import iterations_table, row

if TYPE_CHECKING:
    from accord.loops.run import Turn


def step_outputs(turn: Turn, prompt_file: str = "") -> dict[str, str]:
    """Write the outputs of a step, all texts; not redacted yet."""
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
        "run-id": turn.site.run_id,
        "appendix": decision.appendix,
        "prompt-file": prompt_file,
        "schema": turn.loop.schema,
    }


def as_json(turn: Turn) -> dict[str, Any]:
    """Write a turn as one document: the decision's keys, and what was done about it."""
    state = turn.state
    return {
        **turn.decision.model_dump(mode="json"),
        "loop": turn.loop.name,
        "pull": turn.pull.number,
        "outcome": turn.outcome,
        "should_run": turn.should_run,
        "run_id": turn.site.run_id,
        "iterations": state.iterations if state else None,
        "started": turn.started,
        "note": turn.note,
        "said": state.told.said if state and state.told else "",
        "requests": {"read": turn.site.github.requests.read, "write": turn.site.github.requests.write},
    }


def how_it_ended(turn: Turn) -> list[str]:
    """Tell people how the run went that this turn ended, and why where it failed."""
    if turn.outcome != "ended" or turn.state is None or not turn.state.history:
        return []
    number, result, changes, tasks, *_ = row(turn.state.history[-1])
    done = f"{tasks} task{'' if tasks == '1' else 's'} done"
    said = _said(turn)
    return [f"Iteration {number}: {result}; changes: {changes.strip('`')}; {done}.", *([said] if said else [])]


_NEXT = {
    "run": "The agent runs.",
    "fix": "The agent mends checks.",
    "wait": "The loop looks again at the next event",
    "defer": "The loop goes on when the rate limit allows",
    "stop": "The loop does nothing until a person or an event changes something.",
    "report": "Nothing is left to do.",
    "follow-up": "A follow-up work item holds what is left.",
    "ask": "A person decides.",
}


def page(turn: Turn) -> str:
    """Write the step's summary: the decision and its reason, what comes next, and a row an iteration."""
    decision = turn.decision
    code = f" (`{cell(decision.reason)}`)" if decision.reason else ""
    parts = [
        f"### accord {turn.loop.name} on #{turn.pull.number}: {decision.action}{code}",
        cell(decision.message),
        _next(turn),
    ]
    parts += [f"> {cell(text)}" for text in (turn.note, _said(turn), *decision.warnings) if text]
    if turn.state and turn.state.history:
        parts.append(iterations_table(turn.state))
    return "\n\n".join(filter(None, parts))


def _said(turn: Turn) -> str:
    """Tell why the run failed that this turn ended."""
    told = turn.state.told if turn.state else None
    return told.said if told and turn.outcome == "ended" else ""


def _next(turn: Turn) -> str:
    decision = turn.decision
    if turn.outcome == "planned":
        return "Nothing was written: this is a rehearsal."
    if turn.started:
        return f"Next: `{cell(turn.started)}` was started again."
    if turn.outcome == "ended" and decision.action in RUNS:
        return "Next: The next run is due, and nothing was told to start it. Take another turn."
    wait = "" if decision.wait_seconds is None else f", in {decision.wait_seconds} s"
    told = _NEXT[decision.action]
    return f"Next: {told}" if told.endswith(".") else f"Next: {told}{wait}."
