"""How a run of the agent counts: from the runner's outputs to an iteration of a loop.

Source: runner output contract, "Required Outputs". Outputs are texts of another job; a number that cannot be read is
one that is not known.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from pydantic import BaseModel

from accord.core.documents import read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.kinds import read_shape
from accord.loops.comments import iterations_table, row
from accord.loops.facts import RUNS
from accord.loops.models import Iteration
from accord.runner.models import Category, Recovery, RunOutputs
from accord.text.markdown import cell

if TYPE_CHECKING:
    from datetime import datetime

    from accord.loops.models import Running
    from accord.loops.run import Turn


Result = TypeVar("Result", bound=BaseModel)

_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,64}\b|[0-9]+|\s+")
_LONGEST_SECONDS = 10_000_000.0


def read_outputs(text: str) -> RunOutputs:
    """Read the outputs of a run as another job tells them: a JSON object of texts. What it does not know is left out.

    Where there is no exit code, the job that publishes ended before it could say how the run went.
    Raises WrongUsage for what is no JSON object.
    """
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        value = ""
    if not isinstance(value, dict | None):
        hint = "Pass what accord publish left: the step's outputs as one JSON object."
        raise WrongUsage("The outputs of the run are no JSON object.", hint=hint)
    known = {name: told for name, told in (value or {}).items() if name in _OUTPUTS and isinstance(told, str)}
    return RunOutputs.model_validate(known if known.get("exit-code") else _UNTOLD)


_OUTPUTS = frozenset(RunOutputs().as_outputs())
_UNTOLD = {
    "exit-code": "1",
    "error-category": "infrastructure",
    "error-type": "infrastructure",
    "error-recovery": "retry",
    "error-summary": "The job that publishes ended before it could say how the run went.",
}


def result_of(outputs: RunOutputs, shape: type[Result]) -> Result | None:
    """Read the structured result of a run; None where it failed, since nothing of it is kept, or has none like that."""
    if outputs.exit_code != "0":
        return None
    try:
        return read_shape(shape, read_object(outputs.result_json.encode("utf-8", "replace")).value)
    except BrokenContract:
        return None


def iteration_of(
    outputs: RunOutputs,
    running: Running,
    *,
    number: int,
    now: datetime,
    kind: Literal["run", "fix"] = "run",
    trees: tuple[str, str] = ("", ""),
    tasks_done: int = 0,
) -> Iteration:
    """Describe a run that ended; ``trees`` are those of the head before and after it.

    A category or suggestion that the contract does not know is none, and so a person is asked.
    """
    failed = outputs.exit_code != "0"
    return Iteration(
        run_id=running.run_id,
        number=number,
        kind=kind,
        exit_code=outputs.exit_code[:100] or "1",
        changes_made=outputs.changes_made == "true",
        head_sha=outputs.commit_sha[:100],
        tree_before=trees[0],
        tree=trees[1],
        category=_known(outputs.error_category, get_args(Category)) if failed else "",
        recovery=_known(outputs.error_recovery, get_args(Recovery)) if failed else "",
        error=error_identity(outputs) if failed else "",
        retry_after_seconds=_number(outputs.retry_after_seconds),
        tasks_done=tasks_done,
        seconds=_number(outputs.duration_seconds) or 0,
        cost_usd=_number(outputs.cost_usd),
        ended_at=now,
    )


def error_identity(outputs: RunOutputs) -> str:
    """Make two runs of the same error alike: numbers, ids and blanks of its summary do not count."""
    summary = _VARYING.sub(" ", outputs.error_summary.lower()).strip()
    told = json.dumps([outputs.error_category, _rule(outputs.error_evidence), summary])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _rule(evidence: str) -> str:
    try:
        value = json.loads(evidence)
    except (ValueError, RecursionError):
        return ""
    return str(value.get("rule", "")) if isinstance(value, dict) else ""


def _known(word: str, words: tuple[str, ...]) -> str:
    return word if word in words else ""


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number <= _LONGEST_SECONDS else None


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
    "fix": "The agent fixes checks.",
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
