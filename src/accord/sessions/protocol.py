"""Questions to the user: asked, answered, cancelled, skipped, and what a resumed session does next. All pure.

Source: global agent contract, "ASK_USER protocol". Each step takes a session as it was read and returns the whole new
``status.json``; ``accord.sessions.questions`` writes it. A step that a rule forbids raises BrokenContract, whose
finding names the rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from accord.core.clock import timestamp
from accord.core.findings import Finding
from accord.sessions.folder import status_of, status_value
from accord.sessions.models import APPROVE_DESIGN, GATE_OF, GATES, REVIEW_STRATEGY
from accord.sessions.moments import is_before
from accord.sessions.plan import moved
from accord.sessions.policy import refuse
from accord.sessions.records import ask_again, pending_record, record
from accord.sessions.rules import NO_RESPONSE, asks_changes, is_about_security, is_approval, is_silence, passes_gate
from accord.sessions.stages import return_state, working_state

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from accord.sessions.folder import Session
    from accord.sessions.models import SessionStatus, UserDecision

Next = Literal["ask", "dispatch-correction", "verify-correction", "re-ask", "continue", "blocked"]

MOST_ASKED = 3
"""A gate's question is put again so often; then it counts as not decided."""

GATE_MISSING = "mandatory_user_decision_missing"
"""The blocker of a session whose gate nobody decided."""

_NUMBER = re.compile(r"UD-(\d+)\Z")
_PER_BATCH = re.compile(r"(review )?(per|each|every) ?(batch|task)|batch(es)?")
_SINGLE_FINAL = re.compile(r"(a |one )?(single|final|one)( final)?( review)?")


@dataclass(frozen=True)
class UserQuestion:
    """What is to be asked. Without ``decision_id`` it gets the next number; ``options`` become part of the text."""

    text: str
    decision_id: str = ""
    category: str = ""
    options: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The question with its options."""
        return f"{self.text} ({' / '.join(self.options)})" if self.options else self.text


@dataclass(frozen=True)
class Resumed:
    """What a session does next. ``pending`` are the questions that wait."""

    state: str
    next: Next
    pending: tuple[UserDecision, ...] = ()
    reason: str = ""


def asked(session: Session, questions: Sequence[UserQuestion], *, now: datetime) -> dict[str, Any]:
    """Write one pending entry for each question; a question that waits already, in the same words, is not repeated.

    A session that works on something goes to ASK_USER; in a gate it stays where it is.
    """
    value = status_value(session)
    status = status_of(session)
    state = status.current_state
    if state in ("BLOCKED", "DONE"):
        raise _refused("ask-state", f"In {state} nothing is asked. Go back to a state of work first.")
    context = working_state(status)
    for question in questions:
        wanted = question.decision_id or _number_of_same(value, question) or _next_number(value)
        if wanted in GATES:
            _ask_gate(session, value, wanted, question, now)
            continue
        if known := record(value, wanted):
            if known["status"] == "pending" and known["question"] == question.shown:
                continue
            raise _refused("decision-repeated", f"{wanted} was asked already. Leave the id out to get a new one.")
        if wanted != _next_number(value):
            raise _refused("decision-order", f"The next number is {_next_number(value)}. Leave the id out to get it.")
        category = question.category.strip().lower()
        value["user_decisions"].append(pending_record(wanted, question.shown, context, now, category=category))
    if state in GATE_OF or state == "ASK_USER":
        return value
    return {**value, "current_state": "ASK_USER"}


def _ask_gate(session: Session, value: dict[str, Any], gate_id: str, question: UserQuestion, now: datetime) -> None:
    """Ask a gate's question in its one entry, again where the last answer does not let the session pass."""
    gate = GATES[gate_id]
    if value["current_state"] != gate:
        raise _refused("decision-context", f"{gate_id} is asked in {gate}, not in {value['current_state']}.")
    entry = record(value, gate_id)
    if entry is None:
        value["user_decisions"].append(pending_record(gate_id, question.shown, gate, now))
        return
    if entry["status"] == "pending":
        return
    if gate_id == APPROVE_DESIGN and asks_changes(entry.get("answer") or ""):
        if status_of(session).correction_status != "completed":
            raise _refused(
                "correction-open", "The design is not corrected yet. Resume the session, and correct it first."
            )
        if entry["answer"] not in [line.answer for line in session.history]:
            raise _refused(
                "history-missing", "The answer must be in approve-design-history.jsonl before it is asked again."
            )
    elif passes_gate(gate_id, entry.get("answer") or ""):
        raise _refused("gate-decided", f"{gate_id} is answered: {entry['answer']}. It is not asked again.")
    ask_again(session, entry, question.shown, now=now)


def answered(session: Session, answers: Mapping[str, str], *, now: datetime, is_all: bool = False) -> dict[str, Any]:
    """Write what the user answered. ``is_all``: nothing more comes, so what is left is cancelled.

    Questions about security and gates are never cancelled so: they wait, to be asked again.
    """
    value = status_value(session)
    for decision_id, text in answers.items():
        entry = _open_entry(value, decision_id, text)
        if entry["status"] == "pending":
            entry.update(status="answered", answer=normalised(decision_id, text), resolved_at=timestamp(now))
            if decision_id == APPROVE_DESIGN:
                _set_correction(value, "queued" if asks_changes(entry["answer"]) else "none")
    return _unanswered(value, [entry["decision_id"] for entry in value["user_decisions"]], now) if is_all else value


def history_line(session: Session, answers: Mapping[str, str], *, now: datetime) -> dict[str, Any] | None:
    """Make the line of the history for an answer that asks for changes of a design that waits for approval."""
    decision, said = status_of(session).decision(APPROVE_DESIGN), answers.get(APPROVE_DESIGN, "")
    if decision is None or decision.status != "pending" or not asks_changes(said.strip()):
        return None
    return {
        "at": timestamp(now),
        "decision_id": APPROVE_DESIGN,
        "answer": normalised(APPROVE_DESIGN, said),
        "state_context": "APPROVE_DESIGN",
    }


def unanswered(session: Session, decision_ids: Collection[str], *, now: datetime) -> dict[str, Any]:
    """Cancel those of these questions that still wait: they were put, and nobody answered."""
    return _unanswered(status_value(session), decision_ids, now)


def _unanswered(value: dict[str, Any], decision_ids: Collection[str], now: datetime) -> dict[str, Any]:
    for entry in value["user_decisions"]:
        is_open = entry["status"] == "pending" and entry["decision_id"] in decision_ids
        if is_open and not must_be_answered(entry["decision_id"], entry.get("category")):
            entry.update(status="cancelled", resolved_at=timestamp(now), resolution_reason=NO_RESPONSE)
    return value


def normalised(decision_id: str, text: str) -> str:
    """Return the answer as it is kept. Raises BrokenContract when it is no answer to this question: ask again."""
    said = text.strip()
    if not said:
        raise _refused("answer-empty", f"The answer to {decision_id} is empty. Ask again.")
    if decision_id == REVIEW_STRATEGY:
        for name, words in (("per-batch", _PER_BATCH), ("single-final", _SINGLE_FINAL)):
            if words.fullmatch(re.sub(r"[\s_-]+", " ", said.lower()).rstrip(".! ")):
                return name
        raise _refused("gate-answer", f'The answer to {decision_id} is "per-batch" or "single-final". Ask again.')
    if decision_id == APPROVE_DESIGN and not (is_approval(said) or asks_changes(said)):
        message = (
            f'The answer to {decision_id} begins with "approved", or with "changes-requested:" and what to change.'
        )
        raise _refused("gate-answer", f"{message} Ask again.")
    return said


def closed(
    session: Session, decision_id: str, how: Literal["cancelled", "skipped"], reason: str, *, now: datetime
) -> dict[str, Any]:
    """Write that a question was cancelled by the user, or is asked no more because it does not apply any longer.

    A gate that is cancelled blocks the session. What must be answered is not skipped: only the user may put it off.
    """
    if not reason.strip():
        raise _refused("reason-missing", f"Say why the question is {how}.")
    value = status_value(session)
    entry = _known_entry(value, decision_id)
    if entry["status"] == how and entry.get("resolution_reason") == reason.strip():
        return value
    if entry["status"] != "pending":
        raise _refused("decision-resolved", f"{decision_id} is {entry['status']} already, and stays so.")
    if how == "skipped" and must_be_answered(decision_id, entry.get("category")):
        raise _refused("decision-mandatory", f"{decision_id} is not skipped: the user decides it, or cancels it.")
    if how == "cancelled" and is_about_security(entry.get("category")) and is_silence(reason):
        raise _refused("security-cancelled", "A question about security is never cancelled because nobody answered.")
    entry.update(status=how, resolved_at=timestamp(now), resolution_reason=reason.strip())
    if decision_id in GATES:
        is_blocked = value["current_state"] == "BLOCKED"
        came_from = (value.get("blocked_from") or GATES[decision_id]) if is_blocked else value["current_state"]
        value.update(blocked_from=came_from, current_state="BLOCKED", blocker=GATE_MISSING)
    return value


def must_be_answered(decision_id: str, category: str | None) -> bool:
    """Tell whether silence leaves a question open: it is a gate's, or about security."""
    return decision_id in GATES or is_about_security(category)


def adopted(session: Session) -> dict[str, Any]:
    """Take an answer for given that reached the history before a crash kept it from the status."""
    value = status_value(session)
    entry = record(value, APPROVE_DESIGN)
    if entry is None or entry["status"] != "pending" or not session.history:
        return value
    last = session.history[-1]
    if not is_before(last.at, entry["asked_at"]):
        entry.update(status="answered", answer=last.answer, resolved_at=last.at)
        _set_correction(value, "queued")
    return value


def dispatched(session: Session, agent: str, *, now: datetime) -> dict[str, Any]:
    """Write that an agent is sent to correct the design, before it is: it is never sent twice."""
    value = status_value(session)
    _set_correction(value, "dispatched")
    at = {"agent": agent, "task_id": "meta", "at": timestamp(now)}
    value["gate_tracking"]["APPROVE_DESIGN"]["last_correction_dispatch"] = at
    return value


def corrected(session: Session) -> dict[str, Any]:
    """Write that the correction of the design was verified to be complete; the user may be asked again."""
    value = status_value(session)
    status = status_of(session)
    if status.correction_status not in ("dispatched", "completed"):
        raise _refused("correction-open", f"No correction was dispatched; it is {status.correction_status}.")
    _set_correction(value, "completed")
    return value


def resumed(session: Session) -> Resumed:
    """Tell what a session does next, by what is durably written and by nothing else."""
    status = status_of(session)
    state, pending = status.current_state, status.pending
    if state == "BLOCKED":
        return Resumed(state, "blocked", pending, status.blocker or "")
    if pending:
        return Resumed(state, "ask", pending)
    if state in GATE_OF:
        return _resumed_gate(status, GATE_OF[state])
    if state == "ASK_USER":
        return Resumed(return_state(status) or state, "continue")
    return Resumed(state, "continue")


def _resumed_gate(status: SessionStatus, gate_id: str) -> Resumed:
    state, decision = status.current_state, status.decision(gate_id)
    if decision is None:
        return Resumed(state, "ask", (), f"{gate_id} was never asked.")
    answer = (decision.answer or "") if decision.status == "answered" else ""
    if gate_id == APPROVE_DESIGN and asks_changes(answer):
        steps: dict[str, Next] = {
            "none": "dispatch-correction",
            "queued": "dispatch-correction",
            "dispatched": "verify-correction",
            "completed": "re-ask",
        }
        return Resumed(state, steps[status.correction_status], (), answer)
    return Resumed(state, "continue" if passes_gate(gate_id, answer) else "re-ask")


def left(session: Session) -> dict[str, Any]:
    """Move a session from ASK_USER back to where its questions came up; any other stays where it is."""
    status = status_of(session)
    if status.current_state != "ASK_USER" or status.pending:
        return status_value(session)
    return moved(session, return_state(status))


def _set_correction(value: dict[str, Any], wanted: str) -> None:
    tracking = value.get("gate_tracking") or {}
    approval = tracking.get("APPROVE_DESIGN") or {}
    if wanted != "none" or approval:
        approval["correction_status"] = wanted
        approval.setdefault("last_correction_dispatch", {"agent": None, "task_id": None, "at": None})
        tracking["APPROVE_DESIGN"] = approval
        value["gate_tracking"] = tracking


def _known_entry(value: Mapping[str, Any], decision_id: str) -> Any:
    entry = record(value, decision_id)
    if entry is None:
        known = ", ".join(entry["decision_id"] for entry in value["user_decisions"]) or "none"
        raise _refused("decision-unknown", f'"{decision_id}" was never asked. Asked were: {known}.')
    return entry


def _open_entry(value: Mapping[str, Any], decision_id: str, text: str) -> Any:
    """Return the entry to be answered, or one that holds this very answer already."""
    entry = _known_entry(value, decision_id)
    if entry["status"] == "answered" and entry["answer"] == normalised(decision_id, text):
        return entry
    if entry["status"] != "pending":
        raise _refused("decision-resolved", f"{decision_id} is {entry['status']} already, and stays so.")
    return entry


def _number_of_same(value: Mapping[str, Any], question: UserQuestion) -> str:
    for entry in value["user_decisions"]:
        is_alike = is_about_security(entry.get("category")) == is_about_security(question.category)
        if entry["status"] == "pending" and entry["question"] == question.shown and is_alike:
            return str(entry["decision_id"])
    return ""


def _next_number(value: Mapping[str, Any]) -> str:
    numbers = [
        int(found.group(1)) for entry in value["user_decisions"] if (found := _NUMBER.match(entry["decision_id"]))
    ]
    return f"UD-{max(numbers, default=0) + 1}"


def _refused(code: str, message: str) -> Exception:
    return refuse("The protocol forbids it.", Finding(code, message))
