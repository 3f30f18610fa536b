"""The counting: a run that begins, a run that ends, and what that leaves of the budgets. Pure.

Nothing resets a counter for free: not a new commit, not a relabelling, not a new comment. Only a successful run begins
the counts in a row anew, and only a person raises a budget.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.loops.models import Budgets, Iteration, LoopState, Running

KEPT = 20
"""Iterations that the state keeps; enough to see a pattern, small enough for a comment."""


def begun(state: LoopState, running: Running) -> LoopState:
    """Count a run when it begins, so that a run that is never heard of again has cost its iteration."""
    return state.model_copy(
        update={"iterations": state.iterations + 1, "running": running, "revision": state.revision + 1}
    )


def ended(state: LoopState, iteration: Iteration) -> LoopState:
    """Take in how a run ended; the same run told twice counts once."""
    if any(known.run_id == iteration.run_id for known in state.history):
        return state
    is_failure = iteration.exit_code != "0" and iteration.recovery != "ignore"
    is_transient = is_failure and iteration.recovery == "retry"
    return state.model_copy(
        update={
            "revision": state.revision + 1,
            "running": None if _is_of(state.running, iteration) else state.running,
            "failures_in_a_row": _count(state.failures_in_a_row, is_failure and not is_transient, is_failure),
            "transient_in_a_row": _count(state.transient_in_a_row, is_transient, is_failure),
            "history": (*state.history, iteration)[-KEPT:],
        }
    )


def _is_of(running: Running | None, iteration: Iteration) -> bool:
    return running is not None and running.run_id == iteration.run_id


def _count(before: int, is_counted: bool, is_failure: bool) -> int:
    """A failure of the other kind neither counts here nor begins anew."""
    if is_counted:
        return before + 1
    return before if is_failure else 0


def pause_before_retry(state: LoopState, budgets: Budgets) -> int:
    """Seconds between the last transient failure and the next try: the back-off, or longer where it was asked for."""
    doubled = budgets.wait_seconds << max(state.transient_in_a_row - 1, 0)
    asked = int((state.last.retry_after_seconds or 0) if state.last else 0)
    return min(max(doubled, asked), budgets.longest_wait_seconds)


def seconds_until_retry(state: LoopState, budgets: Budgets, now: datetime) -> int:
    """Seconds left of that pause; 0 when it is over or the last run was no transient failure."""
    last = state.last
    if last is None or not state.transient_in_a_row or not last.ended_at:
        return 0
    until = datetime.fromisoformat(last.ended_at) + timedelta(seconds=pause_before_retry(state, budgets))
    return max(0, int((until - now).total_seconds() + 0.999))


def stands_still(state: LoopState) -> str:
    """Say what repeats in the last two runs: the same tree, or the same error; empty when neither does."""
    if len(state.history) < 2:
        return ""
    before, last = state.history[-2:]
    if last.exit_code != "0" and last.error and last.error == before.error and last.recovery != "retry":
        return "error"
    if last.exit_code == "0" and before.exit_code == "0" and last.tree and last.tree == before.tree:
        return "tree"
    return ""
