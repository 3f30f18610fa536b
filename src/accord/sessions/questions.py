"""Putting questions to the user, and keeping what comes back: the writes of the protocol, one after the other.

Source: global agent contract, "ASK_USER protocol". Every write is read back before anything follows from it, and tried
again a few times with what was captured; whatever ends the process, the same command goes on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from accord.files.store import DISK
from accord.sessions.folder import read_session, status_of, status_value
from accord.sessions.protocol import (
    Resumed,
    adopted,
    answered,
    asked,
    closed,
    corrected,
    dispatched,
    history_line,
    left,
    resumed,
)
from accord.sessions.store import change_status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.files.store import Disk
    from accord.sessions.folder import Session
    from accord.sessions.models import SessionStatus
    from accord.sessions.protocol import UserQuestion
    from accord.sessions.store import StatusStep

ROLE = "Orchestrator"
"""The single writer of decisions."""


def ask(folder: Path, questions: Sequence[UserQuestion], *, clock: Clock, disk: Disk = DISK) -> SessionStatus:
    """Write questions as pending and verify them, before anybody is asked."""
    return _write(folder, lambda session: asked(session, questions, now=clock.now()), clock, disk)


def answer(
    folder: Path, answers: Mapping[str, str], *, is_all: bool = False, clock: Clock, disk: Disk = DISK
) -> SessionStatus:
    """Keep answers. Changes that the user asks for reach the history first, so that they are never lost.

    What reached the history before a crash is taken for given first, so that the same answer again adds no line.
    """
    now = clock.now()
    _write(folder, adopted, clock, disk)
    return change_status(
        folder,
        lambda session: answered(session, answers, now=now, is_all=is_all),
        role=ROLE,
        clock=clock,
        disk=disk,
        history=lambda session: history_line(session, answers, now=now),
    )


def close(
    folder: Path,
    decision_id: str,
    how: Literal["cancelled", "skipped"],
    reason: str,
    *,
    clock: Clock,
    disk: Disk = DISK,
) -> SessionStatus:
    """Keep that a question was cancelled or skipped."""
    return _write(folder, lambda session: closed(session, decision_id, how, reason, now=clock.now()), clock, disk)


def complete_correction(folder: Path, *, clock: Clock, disk: Disk = DISK) -> SessionStatus:
    """Keep that the correction of the design is complete."""
    return _write(folder, corrected, clock, disk)


def resume(folder: Path, *, agent: str, clock: Clock, disk: Disk = DISK) -> Resumed:
    """Find out what is next, and keep what must be durable before it happens: a correction that is dispatched.

    ``agent`` is who is sent to correct the design.
    """
    before = read_session(folder)
    found = resumed(before)
    if status_of(before).current_state == "DONE":
        return found
    _write(folder, adopted, clock, disk)

    def step(session: Session) -> dict[str, Any]:
        nonlocal found
        found = resumed(session)  # under the lock, so that two who resume at once do not both send an agent
        if found.next == "dispatch-correction":
            return dispatched(session, agent, now=clock.now())
        return left(session) if found.next == "continue" else status_value(session)

    _write(folder, step, clock, disk)
    return found


def _write(folder: Path, step: StatusStep, clock: Clock, disk: Disk) -> SessionStatus:
    return change_status(folder, step, role=ROLE, clock=clock, disk=disk)
