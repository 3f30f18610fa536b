"""Rules of a session's questions to the user: times, records, gates and answers. All pure.

Source: global agent contract, "status.json - minimal schema", "ASK_USER protocol" and "Decision record validity rules".
"""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from accord.core.clock import future_problem, time_of
from accord.core.documents import short_name
from accord.core.findings import Finding, Severity, warning
from accord.core.suggest import did_you_mean
from accord.core.texts import is_nothing
from accord.sessions.models import (
    APPROVE_DESIGN,
    GATES,
    REVIEW_STRATEGY,
    DecisionHistoryEntry,
    OutputEntry,
    SessionStatus,
    UserDecision,
)
from accord.text.hidden import strip_hidden

SECURITY = "security"
"""The category of questions that only the user resolves."""

NO_RESPONSE = "no response provided"
"""The reason of a cancelled decision that got no answer."""

GATE_MISSING = "mandatory_user_decision_missing"
"""The blocker of a session whose gate has no decision."""

DEFERRED = "user deferred:"
"""The beginning of the reason with which the user puts off a question about security; `user declined:` is another."""

NOT_SENT = {"agent": None, "task_id": None, "at": None}
"""The dispatch of a correction of the design that no agent got."""

_DEFERRAL = re.compile(
    r"\b(?:(?:the )?user(?:'s)?(?: \w+){0,3} (?:deferred|defers|deferral|declined|declines|\w+ to (?:defer|decline))"
    r"|(?:deferred|deferral|declined) by (?:the )?user)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:no|not|never|nor|neither|none|without|cannot)\b|n['\u2019]t\b", re.IGNORECASE)
_WORDS = re.compile(r"\w")

_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?\Z")
_APPROVED = re.compile(r"approved(?![\w-])")
_CHANGES = re.compile(r"changes-requested:\s*\S")
_SAID = re.compile(r"(approved|changes[ -]+requested)(?![\w-])[ \t]*(:?)", re.IGNORECASE)
_STRATEGIES = ("per-batch", "single-final")


@lru_cache(maxsize=4096)
def parse_lenient_timestamp(text: str) -> datetime | None:
    """Return an ISO-8601 date, with or without a time and an offset, as tools write it; None for any other text."""
    if not _TIME.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text.replace(",", "."))
        return moment.astimezone(UTC) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        return None


def is_before(timestamp: str, other: str) -> bool:
    """Return whether a timestamp is earlier; offsets count if both have one, and other texts are never earlier."""
    first, second = parse_lenient_timestamp(timestamp), parse_lenient_timestamp(other)
    if first is None or second is None:
        return False
    if (first.tzinfo is None) != (second.tzinfo is None):
        first, second = first.replace(tzinfo=None), second.replace(tzinfo=None)
    return first < second


def timestamp_findings(text: str | None, path: str, now: datetime | None = None) -> Iterator[Finding]:
    """Check one timestamp: any number of fractional digits is fine, a missing time or offset is a warning.

    With ``now``, find a time in the future, by which a question or an answer would be the newest until then.
    """
    hint = "Write it like `2026-01-31T09:30:00Z`."
    if text is not None and parse_lenient_timestamp(text) is None:
        yield Finding("timestamp-invalid", "The value is not an ISO-8601 timestamp.", path, hint=hint)
    elif text is not None and (match := _TIME.match(text)) and not match[1]:
        message = "The timestamp lacks a time or an offset, so its order is unknown."
        yield warning("timestamp-vague", message, path, hint=hint)
    if now and (problem := future_problem(time_of(text), now)):
        yield Finding("timestamp-future", problem, path, hint="Write when it happened.")


def decision_findings(decision: UserDecision, session: str, place: str, now: datetime) -> Iterator[Finding]:
    """Check one record of ``user_decisions`` of a session; ``place`` is its pointer."""
    for key in ("asked_at", "resolved_at"):
        yield from timestamp_findings(getattr(decision, key), f"{place}/{key}", now)
    is_pending = decision.status == "pending"
    yield from _check_pending(decision, place) if is_pending else _check_resolved(decision, session, place)
    gate, context = GATES.get(decision.decision_id), decision.state_context
    if gate and context != gate:
        message = f"{decision.decision_id} belongs to the gate {gate}."
        yield Finding("decision-context", message, f"{place}/state_context", hint=f"Set `state_context` to {gate}.")
    elif context in ("ASK_USER", "BLOCKED", "DONE"):
        message, hint = f"A session cannot return to {context}.", "Set `state_context` to the state before it."
        yield Finding("decision-context", message, f"{place}/state_context", hint=hint)
    if decision.category is not None and not is_about_security(decision.category):
        # a misspelt category would let silence cancel a question about security
        message = f"Unknown category `{short_name(decision.category)}`."
        hint = did_you_mean(decision.category, [SECURITY]) or f"Use `{SECURITY}`, or remove the key."
        yield Finding("category-unknown", message, f"{place}/category", hint=hint)


def _check_pending(decision: UserDecision, place: str) -> Iterator[Finding]:
    for key in ("answer", "resolved_at", "resolution_reason"):
        if key not in decision.model_fields_set:
            message, hint = f"A pending decision needs the key `{key}`.", f'Add `"{key}": null`.'
            yield Finding("decision-record", message, place, hint=hint)
        elif getattr(decision, key) is not None:
            message, hint = f"A pending decision cannot have `{key}`.", "Set it to null, or resolve the decision."
            yield Finding("decision-record", message, f"{place}/{key}", hint=hint)


def _check_resolved(decision: UserDecision, session: str, place: str) -> Iterator[Finding]:
    for key in ("resolved_at", "answer" if decision.status == "answered" else "resolution_reason"):
        if not strip_hidden(getattr(decision, key) or "").strip():
            message = f"The {decision.status} decision has no `{key}`."
            hint = "Write it, or set the decision back to pending."
            yield Finding("decision-record", message, f"{place}/{key}", hint=hint)
    if decision.resolved_at and is_before(decision.resolved_at, decision.asked_at):
        message = "The decision was resolved before it was asked."
        yield Finding("decision-times", message, f"{place}/resolved_at", hint="Correct one of the two times.")
    if found := closing_finding(decision, place, is_security=is_about_security(decision.category)):
        reason = strip_hidden(decision.resolution_reason or "")
        is_silence = is_nothing(reason) or NO_RESPONSE.startswith(" ".join(reason.lower().split()).strip(".- "))
        has_words = decision.status == "cancelled" and not is_silence
        yield replace(found, severity=Severity.WARNING) if has_words else found  # other tools have their own words
    answer = decision.answer if decision.status == "answered" else None
    if answer and (problem := gate_answer_problem(decision.decision_id, answer)):
        folder = shlex.quote(f".agents-work/{session}")
        again = f"Ask again with `accord session ask {folder} --id {decision.decision_id} --question TEXT`"
        state = GATES[decision.decision_id]
        hint = f"{again}, in {state}: `accord session advance {folder} --to {state} --role Orchestrator` leads there."
        yield Finding("gate-answer", f"The answer must {problem}.", f"{place}/answer", hint=hint)


def is_about_security(category: str | None) -> bool:
    """Return whether a question is one that only the user resolves."""
    return (category or "").strip().lower() == SECURITY


def correction_of(status: SessionStatus) -> str:
    """Return the progress of the correction of the design; queued where its agent was sent before the last request."""
    decision, at = status.decision(APPROVE_DESIGN), status.last_correction.at or ""
    is_requested = decision and is_change_request(decision.answer or "") and is_before(at, decision.resolved_at or "")
    return "queued" if is_requested else status.correction_status


def with_adopted_answer(
    value: Mapping[str, Any], history: Sequence[DecisionHistoryEntry], now: datetime
) -> Mapping[str, Any]:
    """Return ``status.json`` with an answer that reached the history before a crash kept it from there."""
    is_asked = [(one["decision_id"], one["status"]) == (APPROVE_DESIGN, "pending") for one in value["user_decisions"]]
    if not history or True not in is_asked:
        return value
    last, place = history[-1], is_asked.index(True)
    asked_at = value["user_decisions"][place]["asked_at"]
    if is_before(last.at, asked_at) and not future_problem(time_of(asked_at), now):
        return value
    known = copy.deepcopy(dict(value))
    known["user_decisions"][place].update(status="answered", answer=last.answer, resolved_at=last.at)
    return set_correction(known, "queued")


def set_correction(value: dict[str, Any], wanted: str, sent: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Set the progress of the correction of the design, and the agent that it was sent to; return ``status.json``."""
    tracking = value.get("gate_tracking") or {}
    approval = tracking.get("APPROVE_DESIGN") or {}
    if wanted != "none" or approval:
        approval["correction_status"] = wanted
        approval["last_correction_dispatch"] = sent or approval.get("last_correction_dispatch", NOT_SENT)
        value["gate_tracking"] = {**tracking, "APPROVE_DESIGN": approval}
    return value


def question_of_security(task_id: str, summary: str) -> str:
    """Return the question to the user that an output of Security with NEEDS_DECISION becomes."""
    return summary if task_id == "meta" else f"{task_id}: {summary}"


def is_of_security(question: str, category: str | None, outputs: Sequence[OutputEntry]) -> bool:
    """Return whether only the user resolves a question: by its category, or because Security asked it."""
    asked = (one for one in outputs if (one.agent, one.status) == ("Security", "NEEDS_DECISION"))
    return is_about_security(category) or any(
        question_of_security(one.task_id, one.summary) == question for one in asked
    )


def closing_problem(decision_id: str, how: str, reason: str, *, is_security: bool) -> str:
    """Return why a question cannot be cancelled or skipped; empty where it can.

    No gate is skipped, and a question about security is only cancelled, by the user's own word.
    """
    if how == "skipped" and (is_security or decision_id in GATES):
        return f"{decision_id} cannot be skipped. The user answers or cancels it."
    if how != "cancelled" or not is_security or is_deferral(reason):
        return ""
    return f"{decision_id} is about security and is cancelled only if the user defers it, with `{DEFERRED} REASON`."


def closing_finding(decision: UserDecision, place: str, *, is_security: bool) -> Finding | None:
    """Return why the record of a cancelled or skipped question is not one that a command makes; None where it is."""
    reason, hint = decision.resolution_reason or "", "Set it back to pending, so that the user answers or defers it."
    if decision.status == "cancelled" and is_security:
        hint = f"If the user deferred or declined it, write `{DEFERRED} REASON`. Otherwise, set it back to pending."
    message = closing_problem(decision.decision_id, decision.status, reason, is_security=is_security)
    if message and is_security:
        return Finding("security-cancelled", message, f"{place}/resolution_reason", hint=hint)
    return Finding("decision-mandatory", message, f"{place}/status", hint=hint) if message else None


def is_deferral(reason: str) -> bool:
    """Return whether a reason says that the user deferred or declined a question, and more than that.

    A negation up to there, as in ``The user did not answer and deferred``, leaves it open who decided.
    """
    text = " ".join(strip_hidden(reason).split())
    said = _DEFERRAL.search(text)
    is_said = said is not None and not _NEGATION.search(text[: said.end()])
    return is_said and bool(_WORDS.search(_DEFERRAL.sub("", text)))


def gate_answer_problem(decision_id: str, answer: str) -> str:
    """Return what a gate's answer must be, where it is not; empty for a valid answer, and for other questions."""
    if decision_id == APPROVE_DESIGN and not (is_approval(answer) or is_change_request(answer)):
        return "begin with `approved`, or be `changes-requested: WHAT`"
    is_wrong = decision_id == REVIEW_STRATEGY and answer not in _STRATEGIES
    return "be `per-batch` or `single-final`" if is_wrong else ""


def is_approval(answer: str) -> bool:
    """Return whether an answer approves the design: the word ``approved``, and anything after it."""
    return bool(_APPROVED.match(answer))


def is_change_request(answer: str) -> bool:
    """Return whether an answer requests changes of the design, and names them."""
    return bool(_CHANGES.match(answer))


def canonical_approval(answer: str) -> str:
    """Return what a person says to the design, with its first word as the contract writes it: `Approved` passes."""
    match = _SAID.match(answer)
    if not match:
        return answer
    word, rest = match[1].lower(), answer[match.end(1) :]
    if word == "approved":
        return word + rest
    return "changes-requested" + rest.lstrip(" \t") if match[2] else answer


def passes_gate(decision_id: str, answer: str) -> bool:
    """Return whether an answer lets a session pass the gate."""
    return is_approval(answer) if decision_id == APPROVE_DESIGN else answer in _STRATEGIES


def check_gate(status: SessionStatus, decision_id: str) -> str | None:
    """Return why a gate's decision does not let a session pass; None when it does."""
    decision = status.decision(decision_id)
    if decision is None:
        return f"{decision_id} was never asked."
    if decision.status != "answered":
        return f"{decision_id} is {decision.status}, not answered."
    if passes_gate(decision_id, decision.answer or ""):
        return None
    wanted = {APPROVE_DESIGN: "`approved`", REVIEW_STRATEGY: "`per-batch` or `single-final`"}
    return f"{decision_id} is not answered with {wanted[decision_id]}."


def return_state(status: SessionStatus) -> str:
    """Return the state in which the newest question came up, pending ones first, gates last; empty without one."""
    questions = status.pending or status.user_decisions
    newest: UserDecision | None = None
    for decision in [one for one in questions if one.decision_id not in GATES] or questions:
        if newest is None or not is_before(decision.asked_at, newest.asked_at):
            newest = decision
    return newest.state_context if newest else ""


def state_behind_block(status: SessionStatus) -> str:
    """Return the state of a session, and of a blocked one the state that it returns to; empty when not recorded."""
    return (status.blocked_from or "") if status.current_state == "BLOCKED" else status.current_state


def working_state(status: SessionStatus) -> str:
    """Return the state that work is in, also while the session asks or is blocked; empty when it is not recorded."""
    state = state_behind_block(status)
    return return_state(status) if state == "ASK_USER" else state
