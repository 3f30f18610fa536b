"""The records of questions in ``status.json``: a new one, one that is asked again, and one that is looked for. Pure.

Source: global agent contract, "status.json - minimal schema" and "Decision record validity rules". A record is the
mapping as it stands in the document, so that keys of others in it stay.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from accord.core.clock import timestamp
from accord.sessions.models import GATE_OF
from accord.sessions.moments import read_moment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from accord.sessions.folder import Session

Record = dict[str, Any]


def record(value: Mapping[str, Any], decision_id: str) -> Record | None:
    """Return the record of a question in ``status.json``."""
    return next((entry for entry in value["user_decisions"] if entry["decision_id"] == decision_id), None)


def pending_record(decision_id: str, question: str, context: str, at: datetime, *, category: str = "") -> Record:
    """Make the record of a question that is about to be put."""
    entry = {
        "decision_id": decision_id,
        "question": question,
        "status": "pending",
        "answer": None,
        "asked_at": timestamp(at),
        "resolved_at": None,
        "state_context": context,
        "resolution_reason": None,
    }
    return {**entry, "category": category} if category else entry


def ask_again(session: Session, entry: Record, question: str, *, now: datetime) -> None:
    """Put a question again in its one record: later than its last answer, so that none is taken for the new one."""
    last = [read_moment(text) for text in (*(line.at for line in session.history), entry["asked_at"])]
    at = max([now, *(moment + timedelta(seconds=1) for moment in last if moment and moment.tzinfo)])
    entry.update(pending_record(entry["decision_id"], question, entry["state_context"], at))


def waits_again(session: Session, value: dict[str, Any], *, now: datetime) -> dict[str, Any]:
    """Let the question of a gate wait again when a session that it had blocked is back at the gate."""
    entry = record(value, GATE_OF.get(value["current_state"], ""))
    if entry is not None and entry["status"] == "cancelled":
        ask_again(session, entry, entry["question"], now=now)
    return value
