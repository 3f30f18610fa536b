"""Putting the questions of a session to the user, one after the other, in one process.

Source: global agent contract, "ASK_USER protocol": partial response, and the exceptions for gates and for security. How
often a question was put is remembered by this process alone. Each answer is written and verified before the next
question is put; whatever cannot be written is handed back in the error.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal

from accord.kernel.errors import BrokenContract, Stopped
from accord.kernel.store import DISK
from accord.sessions.folder import read_session, status_of
from accord.sessions.models import GATES
from accord.sessions.protocol import MOST_ASKED, must_be_answered, normalised, unanswered
from accord.sessions.questions import ROLE, answer, close
from accord.sessions.store import change_status

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from accord.kernel.clock import Clock
    from accord.kernel.store import Disk
    from accord.sessions.models import Decision

    Put = Callable[[Decision, str], str | None]
    """Puts a question to the user, with what was wrong with the last answer. Returns None at the end of the input."""

DEFER = "/defer"
"""What a user writes, with a reason, to put a question off."""

Settled = Literal["resolved", "open", "blocked", "ended"]


def interview(folder: Path, put: Put, *, clock: Clock, disk: Disk = DISK) -> bool:
    """Put every question that waits; return whether the user said anything at all.

    An empty answer is none. At the end of the input, or of the questions, those that nobody answered are cancelled, but
    for gates and questions about security. Where nothing was said, nothing is changed.
    """
    waiting = status_of(read_session(folder)).pending
    is_heard = False
    settled: Settled = "open"

    def heard(decision: Decision, wrong: str) -> str | None:
        nonlocal is_heard
        said = put(decision, wrong)
        is_heard = is_heard or said is not None
        return said

    for decision in waiting:
        settled = _settle(folder, decision, heard, clock, disk)
        if settled in ("blocked", "ended"):
            break
    if is_heard and settled != "blocked":
        left = [decision.decision_id for decision in waiting]
        change_status(
            folder, lambda session: unanswered(session, left, now=clock.now()), role=ROLE, clock=clock, disk=disk
        )
    return is_heard


def _settle(folder: Path, decision: Decision, put: Put, clock: Clock, disk: Disk) -> Settled:
    """Put one question, again while it must be answered and is not; a gate without an answer blocks the session."""
    name, wrong = decision.decision_id, ""
    tries = 1 + MOST_ASKED if must_be_answered(name, decision.category) else 1
    for _ in range(tries):
        said = put(decision, wrong)
        if said is None:
            return "ended"
        reason = _deferral(said)
        wrong = _wrong(name, said, reason)
        if not wrong:
            _keep(folder, name, said.strip(), reason, clock, disk)
            return "blocked" if name in GATES and reason else "resolved"
    if name not in GATES:
        return "open"
    close(folder, name, "cancelled", f"no valid answer in {tries} tries", clock=clock, disk=disk)
    return "blocked"


def _deferral(said: str) -> str | None:
    """Return the reason for which a question is put off; None for any other answer."""
    word, _, reason = said.strip().partition(" ")
    return reason.strip() if word == DEFER else None


def _wrong(name: str, said: str, reason: str | None) -> str:
    """Say why this is no answer to the question; empty when it is one."""
    if reason is not None:
        return "" if reason else f"Write why: {DEFER} REASON."
    try:
        normalised(name, said)
    except BrokenContract as broken:
        return broken.findings[0].message
    return ""


def _keep(folder: Path, name: str, said: str, reason: str | None, clock: Clock, disk: Disk) -> None:
    """Write what the user said. Raises Stopped, with the command that writes it later, when it could not be written."""
    try:
        if reason is None:
            answer(folder, {name: said}, clock=clock, disk=disk)
        else:
            close(folder, name, "cancelled", reason, clock=clock, disk=disk)
    except Stopped as stopped:
        words = ["answer", str(folder), f"{name}={said}"]
        words = words if reason is None else ["cancel", str(folder), name, "--reason", reason]
        raise Stopped(
            f"The session cannot go on: an answer could not be kept. {stopped.message}",
            mend=f"Mend that, and keep the answer by: {shlex.join(['accord', 'session', *words])}",
        ) from stopped
