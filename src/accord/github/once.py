"""Sending what must not be sent twice: after a lost answer, look before sending again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from accord.core.clock import Clock, attempts, doubling_pauses
from accord.core.errors import Stopped
from accord.github.models import AnswerLost

T = TypeVar("T")

TRIES = 4
FIRST_PAUSE_SECONDS = 2.0


def send_once(send: Callable[[], T], find: Callable[[], T | None], clock: Clock) -> T:
    """Call ``send``; whenever its answer is lost, wait, and send again only if ``find`` finds nothing.

    The wait comes before the look, so that a request that is still under way can arrive. It doubles each time.
    Raises Stopped after four lost answers; the next run looks first as well.
    """
    problem = ""
    for attempt in attempts(clock, doubling_pauses(FIRST_PAUSE_SECONDS, TRIES)):
        if attempt:
            found = find()
            if found is not None:
                return found
        if attempt < TRIES:
            try:
                return send()
            except AnswerLost as lost:
                problem = lost.message
    raise Stopped(f"GitHub did not answer {TRIES} times: {problem}", hint="Run the same command again to continue.")


def send_until_answered(send: Callable[[], T], clock: Clock) -> T:
    """Call ``send`` until it is answered, as it does no harm twice. Raises Stopped after four lost answers."""
    return send_once(send, lambda: None, clock)
