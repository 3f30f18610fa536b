"""What follows a failure: the runner's suggestion, obeyed.

Source: runner output contract, "Caller Expectations" 4 and 5: the summary is told; retry, manual and ignore.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loops.models import Closed
from accord.loops.questions import RETRY
from accord.loops.reasons import NEEDS_HUMAN

if TYPE_CHECKING:
    from accord.loops.models import Budgets, LoopState


class Aftermath(Closed):
    """Labels to add and to take off, and what to tell; ``notify`` says that a person is needed."""

    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    notify: bool = False
    said: str = ""


def aftermath(state: LoopState, budgets: Budgets, summary: str) -> Aftermath:
    """Say what the last iteration asks for; ``summary`` is its ``error-summary``, text of others.

    A suggestion that is missing or unknown is ``manual``, as the contract has it for what is unclassified.
    """
    last = state.last
    if last is None or last.exit_code == "0":
        return Aftermath(remove_labels=(RETRY,))
    what = f"The agent's run failed ({last.category or 'unknown'}): {summary or 'nothing was said of it.'}"
    if last.recovery == "ignore":
        return Aftermath(said=what)
    if last.recovery == "retry" and state.transient_in_a_row <= budgets.transient:
        return Aftermath(add_labels=(RETRY,), said=what)
    return Aftermath(
        add_labels=(NEEDS_HUMAN,),
        remove_labels=(RETRY,),
        notify=True,
        said=f"{what} A person is needed.",
    )
