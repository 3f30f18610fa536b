"""What follows a failure: the runner's suggestion, obeyed.

Source: runner output contract, "Caller Expectations" 5: retry, manual and ignore.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from accord.loops.keepalive import NEEDS_HUMAN, RETRY
from accord.loops.ledger import pause_before_retry
from accord.loops.models import Closed

if TYPE_CHECKING:
    from accord.loops.models import Budgets, LoopState


class Aftermath(Closed):
    """Labels to add and to take off, when to try again, and what to tell a person; empty where nobody is needed."""

    recovery: Literal["", "retry", "manual", "ignore"]
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    wait_seconds: int | None = None
    comment: str = ""


def aftermath(state: LoopState, budgets: Budgets, summary: str) -> Aftermath:
    """Say what the last iteration asks for; ``summary`` is its ``error-summary``."""
    last = state.last
    if last is None or last.exit_code == "0":
        return Aftermath(recovery="", remove_labels=(RETRY,))
    if last.recovery == "ignore":
        return Aftermath(recovery="ignore")
    if last.recovery == "retry" and state.transient_in_a_row <= budgets.transient:
        return Aftermath(recovery="retry", add_labels=(RETRY,), wait_seconds=pause_before_retry(state, budgets))
    comment = f"The agent's run failed ({last.category or 'unknown'}), and a person is needed: {summary}"
    return Aftermath(recovery="manual", add_labels=(NEEDS_HUMAN,), remove_labels=(RETRY,), comment=comment)
