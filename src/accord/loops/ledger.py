"""Counting runs: a run that begins, a run that ends or is lost, and what the budgets have left. Pure.

Only progress restarts the counts in a row, or a person who removes ``needs-human``; only a person raises a budget.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Literal

from accord.core.clock import CLOCKS_DIFFER
from accord.loops.models import ActiveRun, Budgets, Iteration, LoopFacts, LoopState

KEPT = 20
"""Iterations that the state keeps: enough to see a pattern, few enough for a comment."""

GRACE = timedelta(minutes=30)
"""Time that a run may take beyond its limit: queue, set-up, publishing, analysis."""

_LOST = "lost"
"""Error of an iteration that never reported back; others are digests."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


TurnProgress = Literal["unknown", "running", "ended", "settled"]
"""How far a run got: it did not begin or was lost, is in progress, ended with effects that are left, or with none."""


def progress_of(state: LoopState, run_id: str) -> TurnProgress:
    """Return how far a run got."""
    if state.running is not None and state.running.run_id == run_id:
        return "running"
    if state.pending is not None and state.pending.run_id == run_id:
        return "ended"
    has_ended = any(iteration.run_id == run_id and iteration.error != _LOST for iteration in state.history)
    return "settled" if has_ended else "unknown"


def begin_run(state: LoopState, running: ActiveRun) -> LoopState | None:
    """Count a run when it begins, also if it never reports back; None while another run is in progress."""
    if state.running is not None:
        return state if state.running.run_id == running.run_id else None
    return state.model_copy(update={"iterations": state.iterations + 1, "running": running})


def state_before(state: LoopState, run_id: str) -> LoopState:
    """Return the state before this run began: a run that begins again after a crash is judged as at first."""
    if progress_of(state, run_id) != "running":
        return state
    return state.model_copy(update={"running": None, "iterations": state.iterations - 1})


def end_run(state: LoopState, iteration: Iteration) -> LoopState:
    """Record the end of the run in progress. Any other run is recorded already, or was given up as lost."""
    if progress_of(state, iteration.run_id) != "running":
        return state
    failures = 0 if is_progress(state, iteration) else state.failures_in_a_row + is_failure(iteration)
    transient = 0 if iteration.exit_code == "0" else state.transient_in_a_row + _is_transient(iteration)
    cost = state.cost_usd + (iteration.cost_usd or 0)
    counts = {"failures_in_a_row": failures, "transient_in_a_row": transient, "cost_usd": round(cost, 6)}
    return state.model_copy(update={**counts, "running": None, "history": (*state.history, iteration)[-KEPT:]})


def is_failure(iteration: Iteration) -> bool:
    """Tell whether the failure needs a change. Without a suggestion of the runner it does."""
    return iteration.exit_code != "0" and iteration.recovery not in ("retry", "ignore")


def _is_transient(iteration: Iteration) -> bool:
    return iteration.exit_code != "0" and iteration.recovery == "retry"


def is_progress(state: LoopState, iteration: Iteration) -> bool:
    """Tell whether a run succeeded with a task done, or with files that no earlier run began with or left."""
    if iteration.exit_code != "0":
        return False
    seen = {iteration.tree_before, *(tree for known in state.history for tree in (known.tree_before, known.tree))}
    return iteration.tasks_done > 0 or (bool(iteration.tree) and iteration.tree not in seen)


def settled_state(facts: LoopFacts) -> LoopState:
    """Bring the state up to now: a lost run has failed, and a person's go-ahead restarts the counts in a row.

    It counts if it is newer than the last one, and no run ended after it.
    """
    state, running = without_future(facts.state, facts.now), facts.state.running
    if running is not None and (facts.running_has_ended or is_lost(running, facts.now)):
        lost = Iteration(
            run_id=running.run_id,
            number=state.iterations,
            exit_code="1",
            category="infrastructure",
            recovery="retry",
            error=_LOST,
            ended_at=min(facts.now, time_of_loss(running)),
        )
        state = end_run(state, lost)
    go_ahead, last = facts.go_ahead, state.last
    if go_ahead is None or (last is not None and go_ahead.at < last.ended_at):
        return state
    if state.resumed_at is not None and go_ahead.at <= state.resumed_at:
        return state
    return state.model_copy(update={"failures_in_a_row": 0, "transient_in_a_row": 0, "resumed_at": go_ahead.at})


def without_future(state: LoopState, now: datetime) -> LoopState:
    """Replace timestamps in the future by ones long past, so that a wrong clock delays neither a run nor a person."""
    latest = now + CLOCKS_DIFFER
    past = [run if run.ended_at <= latest else run.model_copy(update={"ended_at": _LONG_AGO}) for run in state.history]
    is_resumed = state.resumed_at is not None and state.resumed_at <= latest
    return state.model_copy(update={"history": tuple(past), "resumed_at": state.resumed_at if is_resumed else None})


def is_lost(running: ActiveRun, now: datetime) -> bool:
    """Tell whether a run can no longer report back: its time is over, or it starts in the future."""
    return now >= time_of_loss(running) or running.started_at > now + CLOCKS_DIFFER


def time_of_loss(running: ActiveRun) -> datetime:
    """Return when a silent run counts as lost."""
    return running.started_at + timedelta(minutes=running.minutes) + GRACE


def seconds_until_retry(state: LoopState, budgets: Budgets, now: datetime) -> int:
    """Return the seconds left of the pause after a transient failure; it doubles with each, within the budgets."""
    last = state.last
    if last is None or not state.transient_in_a_row or not _is_transient(last):
        return 0
    doubled = budgets.wait_seconds << max(state.transient_in_a_row - 1, 0)
    pause = min(max(doubled, math.ceil(last.retry_after_seconds or 0)), budgets.longest_wait_seconds)
    left = (last.ended_at + timedelta(seconds=pause) - now).total_seconds()
    return min(pause, max(0, math.ceil(left)))


def repetition_of(state: LoopState) -> Literal["", "error", "tree"]:
    """Return what the last two runs repeat, if they count: neither transient, cancelled, nor before a go-ahead."""
    since = state.resumed_at
    counted = [
        (iteration, is_progress(state.model_copy(update={"history": state.history[:i]}), iteration))
        for i, iteration in enumerate(state.history)
        if (iteration.exit_code == "0" or is_failure(iteration)) and (since is None or iteration.ended_at > since)
    ][-2:]
    if len(counted) < 2 or any(has_progress for _, has_progress in counted):
        return ""
    before, last = (iteration for iteration, _ in counted)
    if is_failure(before) and is_failure(last) and last.error and last.error == before.error:
        return "error"
    return "tree" if before.exit_code == last.exit_code == "0" else ""
