"""The counting: a run that begins, a run that ends or is lost, and what that leaves of the budgets. Pure.

Nothing resets a counter for free: not a new commit, not a relabelling, not a new comment, not a run that ended well and
changed nothing. Only progress begins the counts in a row anew, or a person who takes ``needs-human`` off; only a person
raises a budget.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from accord.loops.models import Iteration

if TYPE_CHECKING:
    from accord.loops.models import Budgets, GoAhead, LoopFacts, LoopState, Running

KEPT = 20
"""Iterations that the state keeps; enough to see a pattern, small enough for a comment."""

GRACE = timedelta(minutes=30)
"""What a run may take beyond its own time limit: the queue, the set-up, publishing, analysis."""

CLOCKS_DIFFER = timedelta(minutes=10)
"""How far ahead a moment may lie that somebody else's clock told. One beyond it never was, and holds nothing up."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def begun(state: LoopState, running: Running) -> LoopState | None:
    """Count a run when it begins, so that one that is never heard of again has cost its iteration.

    None while another run is under way: whoever asks second does not begin.
    """
    if state.running is not None:
        return state if state.running.run_id == running.run_id else None
    return state.model_copy(update={"iterations": state.iterations + 1, "running": running})


def as_before(state: LoopState, run_id: str) -> LoopState:
    """Return the state before this run began: one that is begun again after a crash is judged as at first."""
    if state.running is None or state.running.run_id != run_id:
        return state
    return state.model_copy(update={"running": None, "iterations": state.iterations - 1})


def ended(state: LoopState, iteration: Iteration) -> LoopState:
    """Take in how the run under way ended. Any other run counts no more: it was told already, or given up as lost."""
    if state.running is None or state.running.run_id != iteration.run_id:
        return state
    has_progress = is_progress(state, iteration)
    return state.model_copy(
        update={
            "running": None,
            "failures_in_a_row": 0 if has_progress else state.failures_in_a_row + _is_failure(iteration),
            "transient_in_a_row": _transient(state.transient_in_a_row, iteration),
            "history": (*state.history, iteration)[-KEPT:],
        }
    )


def _is_failure(iteration: Iteration) -> bool:
    """Tell whether it failed in a way that needs a change. A suggestion that is missing is one for a person."""
    return iteration.exit_code != "0" and iteration.recovery not in ("retry", "ignore")


def _is_transient(iteration: Iteration) -> bool:
    return iteration.exit_code != "0" and iteration.recovery == "retry"


def _transient(before: int, iteration: Iteration) -> int:
    if _is_transient(iteration):
        return before + 1
    return 0 if iteration.exit_code == "0" else before


def is_progress(state: LoopState, iteration: Iteration) -> bool:
    """Tell whether a run ended well and led somewhere: a task done, or files as no earlier run began or left them."""
    if iteration.exit_code != "0":
        return False
    seen = {iteration.tree_before, *(tree for known in state.history for tree in (known.tree_before, known.tree))}
    return iteration.tasks_done > 0 or (bool(iteration.tree) and iteration.tree not in seen)


def settled(facts: LoopFacts) -> LoopState:
    """Bring the state up to now: a run that was lost has failed, and a person's go-ahead is taken in."""
    state, running = as_dated(facts.state, facts.now), facts.state.running
    if running is not None and (facts.running_has_ended or is_lost(running, facts.now)):
        state = ended(state, _lost(running, state, min(facts.now, lost_at(running))))
    return resumed(state, facts.go_ahead) if facts.go_ahead else state


def as_dated(state: LoopState, now: datetime) -> LoopState:
    """Take moments that cannot have been yet for ones long past.

    Else a pause would not end, and no person's go-ahead would come after it, until a clock that was wrong is right.
    """
    latest = now + CLOCKS_DIFFER
    if all(moment <= latest for moment in (state.resumed_at or now, *(run.ended_at for run in state.history))):
        return state
    past = [run if run.ended_at <= latest else run.model_copy(update={"ended_at": _LONG_AGO}) for run in state.history]
    is_resumed = state.resumed_at is not None and state.resumed_at <= latest
    return state.model_copy(update={"history": tuple(past), "resumed_at": state.resumed_at if is_resumed else None})


def is_lost(running: Running, now: datetime) -> bool:
    """Tell whether a run can say nothing any more: its time is over, or it began when no clock has been yet."""
    return now >= lost_at(running) or running.started_at > now + CLOCKS_DIFFER


def lost_at(running: Running) -> datetime:
    """Return when a run that has said nothing counts as lost."""
    return running.started_at + timedelta(minutes=running.minutes) + GRACE


def _lost(running: Running, state: LoopState, moment: datetime) -> Iteration:
    """Describe a run that told nothing: runners die, and that passes by itself."""
    return Iteration(
        run_id=running.run_id,
        number=state.iterations,
        exit_code="1",
        category="infrastructure",
        recovery="retry",
        error="lost",
        ended_at=moment,
    )


def resumed(state: LoopState, go_ahead: GoAhead) -> LoopState:
    """Begin the counts in a row anew, if the go-ahead came after all that is counted."""
    before = [moment for moment in (state.resumed_at, state.last and state.last.ended_at) if moment]
    if any(go_ahead.at <= moment for moment in before):
        return state
    return state.model_copy(update={"failures_in_a_row": 0, "transient_in_a_row": 0, "resumed_at": go_ahead.at})


def pause_before_retry(state: LoopState, budgets: Budgets) -> int:
    """Seconds between the last transient failure and the next try: the back-off, or longer where it was asked for."""
    doubled = budgets.wait_seconds << max(state.transient_in_a_row - 1, 0)
    asked = math.ceil((state.last.retry_after_seconds or 0) if state.last else 0)
    return min(max(doubled, asked), budgets.longest_wait_seconds)


def seconds_until_retry(state: LoopState, budgets: Budgets, now: datetime) -> int:
    """Seconds left of that pause; 0 when it is over or the last run was no transient failure.

    Never more than the pause itself, whatever a clock that was wrong has written.
    """
    last = state.last
    if last is None or not state.transient_in_a_row or not _is_transient(last):
        return 0
    pause = pause_before_retry(state, budgets)
    left = (last.ended_at + timedelta(seconds=pause) - now).total_seconds()
    return min(pause, max(0, math.ceil(left)))


def stands_still(state: LoopState) -> Literal["", "error", "tree"]:
    """Say what repeats in the last two runs that count: the same error, or no progress; empty when neither does.

    Failures that pass by themselves and runs that were cancelled say nothing, and what a person's go-ahead came after
    is forgiven.
    """
    since = state.resumed_at
    counted = [
        (iteration, is_progress(state.model_copy(update={"history": state.history[:i]}), iteration))
        for i, iteration in enumerate(state.history)
        if (iteration.exit_code == "0" or _is_failure(iteration)) and (since is None or iteration.ended_at > since)
    ][-2:]
    if len(counted) < 2 or any(has_progress for _, has_progress in counted):
        return ""
    before, last = (iteration for iteration, _ in counted)
    if _is_failure(before) and _is_failure(last) and last.error and last.error == before.error:
        return "error"
    return "tree" if before.exit_code == last.exit_code == "0" else ""
