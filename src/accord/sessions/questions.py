"""Questions to the user: asked, answered, cancelled, skipped, and what a resumed session does next. All pure.

Source: global agent contract, "ASK_USER protocol" and "Decision record validity rules". Each ``with_…`` returns the
whole new ``status.json``, or raises BrokenContract with the rule that forbids it. Unknown keys stay.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

from accord.core.clock import future_problem, time_of, timestamp
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean
from accord.sessions import decision_rules as rules
from accord.sessions.folder import Session, status_of, status_value
from accord.sessions.machine import ORDER, passed_open
from accord.sessions.models import APPROVE_DESIGN, GATE_OF, GATES, REVIEW_STRATEGY, SessionStatus, UserDecision
from accord.sessions.moves import advance_command, command_of, status_in
from accord.sessions.policy import refuse
from accord.text.hidden import strip_hidden

Next = Literal["ask", "dispatch-correction", "verify-correction", "re-ask", "continue", "blocked", "done"]
Record = dict[str, Any]

MAX_REPEATS = 3
"""How often a gate's question is repeated before it counts as not decided."""

GATE_QUESTIONS = {
    APPROVE_DESIGN: "Is the design approved, or which changes are requested?",
    REVIEW_STRATEGY: "Review per-batch, or single-final?",
}
"""The question of each gate, where none was worded."""

_TAKE_BACK = "To take a wrong answer back, restore the session's files from before it."
_NUMBER = re.compile(r"UD-(\d+)\Z")
_PER_BATCH = re.compile(r"(review )?(per|each|every) ?(batch|task)|batch(es)?")
_SINGLE_FINAL = re.compile(r"(a |one )?(single|final|one)( final)?( review)?")


class UserQuestion(Frozen):
    """A question to ask."""

    text: str
    decision_id: str = ""  # empty for the next number
    category: str = ""
    options: tuple[str, ...] = ()  # become part of the text

    @property
    def full_text(self) -> str:
        """The question with its options."""
        return f"{self.text} ({' / '.join(self.options)})" if self.options else self.text


class SessionStep(Frozen):
    """The next step of a session. ``pending`` are the questions that wait."""

    state: str
    next: Next
    pending: tuple[UserDecision, ...] = ()
    reason: str = ""


def with_questions(session: Session, questions: Sequence[UserQuestion], *, now: datetime) -> Record:
    """Return the status with a pending record for each new question; a working session goes to ASK_USER.

    The question of a gate that comes next leads the session into the gate.
    """
    status = status_of(session)
    state, value = status.current_state, status_value(session)
    if state in ("BLOCKED", "DONE"):
        raise _refusal("ask-state", f"Questions cannot be asked in {state}.", "Return to a working state first.")
    following = dict(pairwise(ORDER[session.mode])).get(state, "")
    if following in [GATES[one.decision_id] for one in questions if one.decision_id in GATES]:
        value = status_in(session, following)
    for question in questions:
        numbers = (_NUMBER.match(entry["decision_id"]) for entry in value["user_decisions"])
        following_id = f"UD-{max((int(match[1]) for match in numbers if match), default=0) + 1}"
        wanted = question.decision_id or _number_of_same(value, question) or following_id
        if wanted in GATES:
            _ask_gate(session, value, wanted, question, now)
        elif known := _record(value, wanted):
            if known["status"] != "pending" or known["question"] != question.full_text:
                raise _refusal("decision-repeated", f"{wanted} was asked already.", "Omit the id to get a new one.")
        elif wanted == following_id:
            is_security = rules.is_of_security(question.full_text, question.category, session.outputs)
            category = rules.SECURITY if is_security else question.category.strip().lower()
            entry = _pending_record(wanted, question.full_text, rules.working_state(status), now)
            value["user_decisions"].append({**entry, "category": category} if category else entry)
        else:
            raise _refusal("decision-order", f"The next id is {following_id}.", "Omit the id to get it.")
    return value if value["current_state"] in (*GATE_OF, "ASK_USER") else {**value, "current_state": "ASK_USER"}


def _ask_gate(session: Session, value: Record, gate_id: str, question: UserQuestion, now: datetime) -> None:
    """Ask a gate's question in its one record, again where the last answer does not let the session pass."""
    gate = GATES[gate_id]
    if value["current_state"] != gate:
        message = f"{gate_id} is asked in {gate}, not in {value['current_state']}."
        raise _refusal("decision-context", message, "Omit the id, or advance the session to that state first.")
    entry = _record(value, gate_id)
    if entry is None:
        value["user_decisions"].append(_pending_record(gate_id, question.full_text, gate, now))
        return
    if entry["status"] == "pending":
        entry["question"] = question.full_text
        return
    if found := repeat_finding(gate_id, entry.get("answer") or "", rules.correction_of(status_of(session))):
        raise refuse("The question cannot be changed.", found)
    _ask_again(session, entry, question.full_text, now=now)


def repeat_finding(gate_id: str, answer: str, correction: str) -> Finding | None:
    """Return why a gate that has an answer is not asked again: it is passed, or its correction is not completed."""
    if gate_id == APPROVE_DESIGN and rules.is_change_request(answer):
        if correction == "completed":
            return None
        hint = "Run `accord session resume` first."
        return Finding("correction-open", "The design is not corrected yet.", hint=hint)
    if not rules.passes_gate(gate_id, answer):
        return None
    message, hint = f"{gate_id} is already answered: {answer}.", f"Continue the session. {_TAKE_BACK}"
    return Finding("gate-decided", message, hint=hint)


def _pending_record(decision_id: str, question: str, context: str, at: datetime) -> Record:
    return {
        "decision_id": decision_id,
        "question": question,
        "status": "pending",
        "answer": None,
        "asked_at": timestamp(at),
        "resolved_at": None,
        "state_context": context,
        "resolution_reason": None,
    }


def _ask_again(session: Session, entry: Record, question: str, *, now: datetime) -> None:
    """Ask a question again in its one record, later than its last answer, so that no old answer counts for it."""
    earlier = [time_of(text) for text in (*(line.at for line in session.history), entry["asked_at"])]
    at = max([now, *(time + timedelta(seconds=1) for time in earlier if time and not future_problem(time, now))])
    entry.update(_pending_record(entry["decision_id"], question, entry["state_context"], at))


def with_gate_asked(session: Session, value: Record, *, now: datetime) -> Record:
    """Return the status with its gate's question pending, where it was never asked, or cancelled and so blocked it.

    So is that of each gate whose answer is not valid, or that was skipped.
    """
    gate_id = GATE_OF.get(value["current_state"], "")
    if gate_id and _record(value, gate_id) is None:
        value["user_decisions"].append(_pending_record(gate_id, GATE_QUESTIONS[gate_id], GATES[gate_id], now))
    for entry in value["user_decisions"] if gate_id else ():
        decision_id, is_answered = entry["decision_id"], entry["status"] == "answered"
        is_closed = entry["status"] in (("cancelled", "skipped") if decision_id == gate_id else ("skipped",))
        if (is_closed and decision_id in GATES) or (
            is_answered and rules.gate_answer_problem(decision_id, entry.get("answer") or "")
        ):
            _ask_again(session, entry, entry["question"], now=now)
    return value


def with_answers(
    session: Session, answers: Mapping[str, str], *, now: datetime, closes: Collection[str] = ()
) -> Record:
    """Return the status with the answers. Of ``closes``, open questions are cancelled, but no gate and no security."""
    value, status = status_value(session), status_of(session)
    for decision_id, text in answers.items():
        entry = _known_record(value, decision_id)
        if entry["status"] == "answered" and entry["answer"] == normalize_answer(decision_id, text):
            continue
        _check_pending(session, entry)
        said = normalize_answer(decision_id, text)
        entry.update(status="answered", answer=said, resolved_at=_time_of_resolution(entry, now))
        if decision_id == APPROVE_DESIGN:
            rules.set_correction(value, "queued" if rules.is_change_request(said) else "none")
    silent = {one.decision_id for one in status.pending if one.decision_id in closes and not needs_answer(session, one)}
    for entry in value["user_decisions"]:
        if entry["status"] == "pending" and entry["decision_id"] in silent:
            at, reason = _time_of_resolution(entry, now), rules.NO_RESPONSE
            entry.update(status="cancelled", resolved_at=at, resolution_reason=reason)
    return value


def _time_of_resolution(entry: Record, now: datetime) -> str:
    """Return the time of a resolution, never before the question: its time may be ahead of a slow clock."""
    at = timestamp(now)
    return entry["asked_at"] if rules.is_before(at, entry["asked_at"]) else at


def request_line(session: Session, answers: Mapping[str, str], *, now: datetime) -> Record | None:
    """Return the line of the history for requested changes, of an answer or of a status that has it alone.

    Another tool may write the status without the line.
    """
    decision = status_of(session).decision(APPROVE_DESIGN)
    is_new = decision is not None and decision.status == "pending"
    said = answers.get(APPROVE_DESIGN, "") if is_new else (decision and decision.answer) or ""
    said = rules.canonical_approval(said.strip()) if is_new else said
    is_known = not is_new and said in [line.answer for line in session.history]
    if decision is None or is_known or not rules.is_change_request(said):
        return None
    at = decision.resolved_at or timestamp(now)
    return {"at": at, "decision_id": APPROVE_DESIGN, "answer": said, "state_context": GATES[APPROVE_DESIGN]}


def normalize_answer(decision_id: str, text: str) -> str:
    """Return an answer as it is recorded. Raises BrokenContract when it does not answer this question."""
    text = text.strip()
    if not strip_hidden(text).strip():
        raise _refusal("answer-empty", f"The answer to {decision_id} is empty.", "Ask again.")
    if decision_id == REVIEW_STRATEGY:
        for name, words in (("per-batch", _PER_BATCH), ("single-final", _SINGLE_FINAL)):
            if words.fullmatch(re.sub(r"[\s_-]+", " ", text.lower()).rstrip(".! ")):
                return name
    if decision_id == APPROVE_DESIGN:
        text = rules.canonical_approval(text)
    if problem := rules.gate_answer_problem(decision_id, text):
        raise _refusal("gate-answer", f"The answer to {decision_id} must {problem}.", "Ask again.")
    return text


def with_closed_question(
    session: Session, decision_id: str, how: Literal["cancelled", "skipped"], reason: str, *, now: datetime
) -> Record:
    """Return the status with a cancelled or skipped question; a cancelled gate blocks the session."""
    if not strip_hidden(reason).strip():
        raise _refusal("reason-missing", "No reason given.", f"Say with `--reason` why the question is {how}.")
    value = status_value(session)
    entry = _known_record(value, decision_id)
    if entry["status"] == how and entry.get("resolution_reason") == reason.strip():
        return value
    _check_pending(session, entry)
    is_security = rules.is_of_security(entry["question"], entry.get("category"), session.outputs)
    if problem := rules.closing_problem(decision_id, how, reason, is_security=is_security):
        if how == "skipped":
            raise _refusal("decision-mandatory", problem, "Ask it again.")
        cancel = command_of(session, "cancel", decision_id, "--reason", f"{rules.DEFERRED} REASON")
        raise _refusal("security-cancelled", problem, f"Ask it again, or run `{cancel}` once the user deferred it.")
    entry.update(status=how, resolved_at=_time_of_resolution(entry, now), resolution_reason=reason.strip())
    if decision_id in GATES:
        is_blocked = value["current_state"] == "BLOCKED"
        came_from = (value.get("blocked_from") or GATES[decision_id]) if is_blocked else value["current_state"]
        value.update(blocked_from=came_from, current_state="BLOCKED", blocker=rules.GATE_MISSING)
    return value


def needs_answer(session: Session, decision: UserDecision) -> bool:
    """Return whether silence leaves a question open: it is a gate's, or about security."""
    of_security = rules.is_of_security(decision.question, decision.category, session.outputs)
    return decision.decision_id in GATES or of_security


def deferral(session: Session, decision_id: str, reason: str) -> str:
    """Return the user's own reason to defer a question as it is recorded; one about security names the user."""
    entry = _known_record(status_value(session), decision_id)
    is_security = rules.is_of_security(entry["question"], entry.get("category"), session.outputs)
    is_plain = not strip_hidden(reason).strip() or rules.is_deferral(reason)
    return f"{rules.DEFERRED} {reason}" if is_security and not is_plain else reason


def with_dispatched_correction(session: Session, agent: str, *, now: datetime, has_input: bool = False) -> Record:
    """Return the status with the agent that corrects the design; recorded first, it never gets its input twice."""
    decision, at = status_of(session).decision(APPROVE_DESIGN), timestamp(now)
    said = (decision and decision.resolved_at) or at
    at = said if rules.is_before(at, said) else at
    sent = {"agent": agent, "task_id": "meta", "at": at, **({"input_at": at} if has_input else {})}
    return rules.set_correction(status_value(session), "dispatched", sent)


def dispatched_corrector(status: SessionStatus) -> str:
    """Return the agent that corrects the design; empty where none was dispatched."""
    return (status.last_correction.agent or "") if rules.correction_of(status) == "dispatched" else ""


def with_correction(session: Session, progress: Literal["queued", "completed"]) -> Record:
    """Return the status with the progress of a correction of the design; one that failed is queued, to no agent."""
    return rules.set_correction(status_value(session), progress, rules.NOT_SENT if progress == "queued" else None)


def next_step(session: Session) -> SessionStep:
    """Return what a session does next, by its durable documents alone."""
    status = status_of(session)
    state, pending = status.current_state, status.pending
    if state in ("BLOCKED", "DONE"):
        return SessionStep(state, "blocked" if state == "BLOCKED" else "done", pending, status.blocker or "")
    if pending:
        return SessionStep(state, "ask", pending)
    if state in GATE_OF:
        return next_at_gate(status, GATE_OF[state])
    for gate_id in passed_open(session):
        reason = rules.check_gate(status, gate_id) or ""
        return SessionStep(GATES[gate_id], "re-ask" if status.decision(gate_id) else "ask", (), reason)
    return SessionStep((rules.return_state(status) if state == "ASK_USER" else "") or state, "continue")


def next_at_gate(status: SessionStatus, gate_id: str) -> SessionStep:
    """Return what a session does next at a gate, once no question waits."""
    state, decision = status.current_state, status.decision(gate_id)
    if decision is None:
        return SessionStep(state, "ask", (), f"{gate_id} was never asked.")
    answer = (decision.answer or "") if decision.status == "answered" else ""
    if gate_id == APPROVE_DESIGN and rules.is_change_request(answer):
        steps: dict[str, Next] = {"dispatched": "verify-correction", "completed": "re-ask"}
        return SessionStep(state, steps.get(rules.correction_of(status), "dispatch-correction"), (), answer)
    return SessionStep(state, "continue" if rules.passes_gate(gate_id, answer) else "re-ask")


def _record(value: Mapping[str, Any], decision_id: str) -> Record | None:
    return next((entry for entry in value["user_decisions"] if entry["decision_id"] == decision_id), None)


def _known_record(value: Mapping[str, Any], decision_id: str) -> Record:
    entry = _record(value, decision_id)
    if entry is None:
        known = [entry["decision_id"] for entry in value["user_decisions"]]
        hint = did_you_mean(decision_id, known) or f"The questions are: {', '.join(known) or 'none'}."
        raise _refusal("decision-unknown", f"Unknown question `{decision_id}`.", hint)
    return entry


def _check_pending(session: Session, entry: Record) -> None:
    if entry["status"] != "pending":
        message = f"{entry['decision_id']} is already {entry['status']} and cannot change."
        hint = _TAKE_BACK if entry["decision_id"] in GATES else "Ask a new question with `accord session ask`."
        if entry["status"] != "answered" and (gate := GATES.get(entry["decision_id"])):
            hint = f"Ask it again with `{advance_command(session, gate)}`."
        raise _refusal("decision-resolved", message, hint)


def _number_of_same(value: Mapping[str, Any], question: UserQuestion) -> str:
    for entry in value["user_decisions"]:
        is_alike = rules.is_about_security(entry.get("category")) == rules.is_about_security(question.category)
        if entry["status"] == "pending" and entry["question"] == question.full_text and is_alike:
            return str(entry["decision_id"])
    return ""


def _refusal(code: str, message: str, hint: str) -> Exception:
    return refuse("The question cannot be changed.", Finding(code, message, hint=hint))
