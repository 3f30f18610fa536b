"""The outputs that a change adds to a session, each judged in its order as `accord dispatch --take` judges it. Pure.

Commands between them leave no line. So a line is refused only where none of them makes it legal, and the counts and
questions that the lines ask for are the least. Source: global agent contract, "Role boundaries (hard constraint)",
"Task status lifecycle", "ASK_USER protocol" and "Status enum - usage guide".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from accord.core.documents import short_name
from accord.core.findings import Finding, count_of, pointer
from accord.sessions.decision_rules import check_gate, is_about_security, question_of_security, working_state
from accord.sessions.folder import OUTPUTS_FILE, STATUS_FILE, Session
from accord.sessions.machine import INTEGRATION, LOOP_BASE, ORDER, WORK_STATES, gates_before
from accord.sessions.models import GATES, LOOPS, OutputEntry, SessionMode, SessionStatus
from accord.sessions.moves import is_counted, is_decided, unaccepted_loops
from accord.sessions.output_rules import STATUS_OF_ONE_ROLE
from accord.sessions.reviews import DISPATCHED, added_outputs
from accord.sessions.rules import MOST_RETRIES

ALTERED = "Restore it, and make the change with `accord session`."
_ROLE_OF = {**STATUS_OF_ONE_ROLE, DISPATCHED: "Coder"}
_HINT = "Remove the line, and take outputs with `accord dispatch --take`."


def line_findings(before: Session, after: Session, now: SessionStatus) -> Iterator[Finding]:
    """Find new lines of ``outputs.jsonl`` that no command writes, and effects of them that the other files lack."""
    old = before.status or _new_status(after.mode, now)
    if before.status is None and (loop := uncounted_loop((), old, now)):
        message = f"This change creates the session in {loop}, but counts no entry of it."
        yield Finding("session-altered", message, pointer(STATUS_FILE, "current_state"), hint=ALTERED)
    if [*after.outputs[: len(before.outputs)]] == [*before.outputs]:
        yield from _role_findings(before, after, old, now)
        yield from (*_count_findings(before.outputs, after, old, now), *_question_findings(before, after, old, now))
        statuses = [one for one in (before.status, now) if one]
        for i, one, record in added_outputs(after.plan, after.outputs, len(before.outputs)):
            is_waiver = bool(one.waived_reviews) and one.task_id in record.results
            if is_waiver and (loops := unaccepted_loops(one.task_id, record, statuses)):
                message = f"This change waives reviews of {one.task_id}, but it did not pass {' and '.join(loops)}."
                asked = f"`{one.task_id} {loops[0]}: Accept it?`"
                hint = f"Ask the user first, in a question that names both, such as {asked}."
                yield Finding("review-open", message, pointer(OUTPUTS_FILE, i), hint=hint)


def proven_counts(session: Session, now: SessionStatus) -> Iterator[Finding]:
    """Find counts of fix loops that are smaller than all outputs of a session show."""
    return _count_findings((), session, _new_status(session.mode, now), now)


def uncounted_loop(outputs: Sequence[OutputEntry], old: SessionStatus, now: SessionStatus) -> str:
    """Return the fix loop that a session came to during a change without a count of the entry; empty without one.

    ``outputs`` are those from before the change. A count that the user decided on since may be set back.
    """
    state, target = working_state(old), working_state(now)
    asked = [one for one in now.user_decisions if one.decision_id not in GATES and not old.decision(one.decision_id)]
    for loop in (one for one in (target, *(each.state_context for each in asked)) if one in LOOPS and one != state):
        tasks = [now.fix_task] if now.fix_task and loop == target else [*now.retry_counts]
        if not any(
            now.retries(task, loop) > old.retries(task, loop) or is_decided(now, outputs, task, loop) for task in tasks
        ):
            return loop
    return ""


def _new_status(mode: SessionMode, now: SessionStatus) -> SessionStatus:
    new: dict[str, Any] = {"current_state": ORDER[mode][0], "blocked_from": None, "reopened_at": None}
    return now.model_copy(update={**new, "user_decisions": [], "retry_counts": {}, "fix_entries": {}})


def _role_findings(before: Session, after: Session, old: SessionStatus, now: SessionStatus) -> Iterator[Finding]:
    """Find statuses of other roles, and work in states that the session was not in or that a gate keeps it from."""
    states, lines, agents = _states_between(old, now, after), set[tuple[str, str]](), set[str]()
    for i, one, _ in added_outputs(after.plan, after.outputs, len(before.outputs)):
        place, only = pointer(OUTPUTS_FILE, i), _ROLE_OF.get(one.status, one.agent)
        if only != one.agent and (one.agent, one.status) not in lines:
            message = f"Only {only} returns {one.status}, not {one.agent}."
            yield Finding("status-of-other-role", message, place, hint=_HINT)
        if one.agent not in agents and states.isdisjoint(WORK_STATES[one.agent]):
            message = f"{one.agent} works only in {', '.join(WORK_STATES[one.agent])}, and the session was not there."
            yield Finding("state-forbids", message, place, hint=_HINT)
        lines.add((one.agent, one.status))
        agents.add(one.agent)


def _states_between(old: SessionStatus, now: SessionStatus, session: Session) -> set[str]:
    """Return the states of work that a session could be in during a change, as far as its gates let it."""
    order, is_asking = ORDER[session.mode], any(one in now.pending for one in old.pending)
    if is_asking and old.current_state == now.current_state == "ASK_USER":
        return {"ASK_USER"}
    ends = [LOOP_BASE.get(state, state) for state in map(working_state, (old, now))]
    is_reopened = now.reopened_at != old.reopened_at
    first, last = (0, len(order)) if is_reopened or {*ends} - {*order} else sorted(map(order.index, ends))
    states = {*order[first : last + 1]}
    if not states.isdisjoint(INTEGRATION):  # a failed review leads back
        states.add("IMPLEMENT_LOOP")
    return {one for one in states if not any(check_gate(now, name) for name in gates_before(one, session.mode))}


def _count_findings(
    earlier: Sequence[OutputEntry], after: Session, old: SessionStatus, now: SessionStatus
) -> Iterator[Finding]:
    since = dict[tuple[str, str], Sequence[OutputEntry]]()
    least = {(task, loop): old.retries(task, loop) for task, loop in product(old.retry_counts, LOOPS)}
    for i, one, record in added_outputs(after.plan, after.outputs, len(earlier)):
        for key in record.fixed_loops(one.task_id, one.agent):
            is_known = key not in since and is_counted(old, after.outputs[:i], one.agent, one.task_id, key)
            is_free = is_decided(now, since.get(key, earlier), *key, one.at)
            least[key] = (0 if is_free else least.get(key, 0)) + (not is_known)
            since[key] = [one if one.task_id == key[0] else record.last[key[0]]]
            if least[key] == MOST_RETRIES + 1:
                message = f"{key[0]} went through {key[1]} {MOST_RETRIES} times, the limit, and was worked on again."
                yield Finding("retry-budget", message, pointer(OUTPUTS_FILE, i), hint=_HINT)
    for (task, loop), count in least.items():
        counted, least_count = now.retries(task, loop), min(count, MOST_RETRIES)
        if counted < least_count and not is_decided(now, since.get((task, loop), earlier), task, loop):
            entries = f"{short_name(task)} entered {loop} {count_of(least_count, 'time')}"
            message = f"{entries}, but its count is {counted}, and the user did not decide on it since."
            yield Finding("session-altered", message, pointer(STATUS_FILE, "retry_counts", task), hint=ALTERED)


def _question_findings(before: Session, after: Session, old: SessionStatus, now: SessionStatus) -> Iterator[Finding]:
    asked = Counter[str]()
    for _, one, record in added_outputs(after.plan, after.outputs, len(before.outputs)):
        last = record.last.get(one.task_id)
        is_repeated = last is not None and (last.agent, last.summary) == (one.agent, one.summary)
        if (one.agent, one.status) == ("Security", "NEEDS_DECISION") and not is_repeated:
            asked[question_of_security(one.task_id, one.summary)] += 1
    known = {one.decision_id: one.status for one in old.user_decisions}
    security = [one for one in now.user_decisions if is_about_security(one.category)]
    written = Counter(one.question for one in now.user_decisions if one.decision_id not in known)
    written.update(one.question for one in security if known.get(one.decision_id) == "pending")
    spare = [one for one in security if one.decision_id not in known and one.question not in asked]  # in other words
    for question in [*(asked - written).elements()][len(spare) :]:
        message = f"Security asks the user, but `user_decisions` lacks the question: {short_name(question)}"
        yield Finding("session-altered", message, pointer(STATUS_FILE, "user_decisions"), hint=ALTERED)
