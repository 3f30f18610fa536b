"""Changes of a session's files, held against what its commands could have made of them.

Source: global agent contract, "Required repository artifacts", "ASK_USER protocol" and "Task status lifecycle".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from accord.core.documents import short_name
from accord.core.findings import Finding, Severity, pointer
from accord.git.program import Git, file_at
from accord.sessions.decision_rules import (
    closing_finding,
    correction_of,
    is_about_security,
    is_before,
    is_change_request,
    is_of_security,
    state_behind_block,
    working_state,
)
from accord.sessions.folder import (
    FILES,
    HISTORY_FILE,
    OUTPUTS_FILE,
    STATUS_FILE,
    TASKS_FILE,
    Part,
    Session,
    read_parts,
    status_of,
)
from accord.sessions.machine import AttemptedMove, refusal_of_way
from accord.sessions.models import (
    APPROVE_DESIGN,
    CORRECTION_STAGES,
    CORRECTORS,
    GATES,
    OutputEntry,
    SessionStatus,
    UserDecision,
)
from accord.sessions.moves import early_tasks
from accord.sessions.policy import CODE_WRITERS, WORK, artifacts_of, forbidden_status, is_forbidden_code
from accord.sessions.questions import repeat_finding
from accord.sessions.replay import ALTERED, line_findings, uncounted_loop
from accord.sessions.reviews import added_outputs, planned_reviews

_QUESTION, _ANSWER = ("question", "asked_at", "state_context"), ("status", "answer", "resolved_at")
"""Keys of a question's record: those that it is written with, and those of its answer."""


def change_findings(root: Path, name: str, start: str) -> Iterator[Finding]:
    """Find what a session's files became since a commit without a command that makes them so."""
    folder, git = root / WORK / name, Git(root)
    before = {file: Part(file, file_at(git, start, f"./{WORK}/{name}/{file}")) for file in FILES}
    return hand_edits(Session(folder, before), Session(folder, read_parts(folder)))


def hand_edits(before: Session, after: Session) -> Iterator[Finding]:
    """Find what no command makes of a session, however many of them are between its two forms. Pure."""
    if before.status and before.status.current_state != "DONE" and after.parts[STATUS_FILE].raw is None:
        message = f"This change removes {STATUS_FILE} of {after.name}, which was in {before.status.current_state}."
        yield Finding("artifact-missing", message, pointer(STATUS_FILE), hint="Restore the session.")
    elif before.status:
        yield from _status_findings(before, before.status, after)
    if after.status:
        yield from (*_design_findings(before, after, after.status), *line_findings(before, after, after.status))
        known = {one.code for one in before.parts[STATUS_FILE].findings}
        for one in after.parts[STATUS_FILE].findings:
            if one.code in ("blocker-missing", "decision-order") and one.code not in known:
                yield replace(one, severity=Severity.ERROR, path=pointer(STATUS_FILE) + one.path, line=None)
    for file in (HISTORY_FILE, OUTPUTS_FILE):  # a line that is not an entry counts for nothing, and may be corrected
        entries = before.parts[file].model or []
        if (after.parts[file].model or [])[: len(entries)] != entries:
            message = f"This change removes or alters entries of {file}, which may only grow."
            yield Finding("history-shortened", message, hint="Restore them.")
    yield from _task_findings(before, after)


def _status_findings(before: Session, old: SessionStatus, after: Session) -> Iterator[Finding]:
    now = after.status
    is_reopened = now is not None and (now.current_state != "DONE" or now.reopened_at != old.reopened_at)
    if old.current_state == "DONE" and not is_reopened:
        message = f"{after.name} was done before this change and is read-only."
        yield Finding("session-done", message, hint="Undo the change. Then create a new session, or reopen this one.")
    if now is None:
        return
    place, state, target = pointer(STATUS_FILE, "current_state"), working_state(old), working_state(now)
    if before.mode != after.mode:
        message = f"This change makes a session of the mode {before.mode} one of the mode {after.mode}."
        yield Finding("session-altered", message, pointer(STATUS_FILE, "mode"), hint=ALTERED)
    elif state and target and (refusal := _refusal_of_way(before, after, state, target)) is not None:
        message = f"This change takes the session from {state} to {target}, where no move leads. {refusal}"
        yield Finding("session-altered", message.strip(), place, hint=ALTERED)
    elif state and (loop := uncounted_loop(before.outputs, old, now)):
        message = f"This change takes the session from {state} to {loop}, but counts no entry of it."
        yield Finding("session-altered", message, place, hint=ALTERED)
    elif state_behind_block(old) != "ASK_USER" == state_behind_block(now) and not _has_asked(old, now):
        message = f"This change takes the session from {state or old.current_state} to ASK_USER without a question."
        yield Finding("session-altered", message, place, hint=ALTERED)
    yield from _decision_findings(before, old, after, now)


def _has_asked(old: SessionStatus, now: SessionStatus) -> bool:
    """Return whether a question waited before a change, or came up in it; a gate asks in its own state."""
    resolved = {one.decision_id for one in old.user_decisions if one.status != "pending"}
    return any(one.decision_id not in GATES.keys() | resolved for one in now.user_decisions)


def _refusal_of_way(before: Session, after: Session, source: str, target: str) -> str | None:
    """Return why no moves lead from one state of work to another during a change; None where they do."""
    if status_of(after).reopened_at != status_of(before).reopened_at:
        source = "IMPLEMENT_LOOP"  # it was done in between
    if source == target:
        return None

    def earlier() -> Iterator[AttemptedMove]:
        yield AttemptedMove(before)
        for _, _, record in added_outputs(after.plan, after.outputs, len(before.outputs)):
            yield AttemptedMove(after, record_then=record)

    adds_tasks = any(before.task(task.id) is None for task in after.plan)
    return refusal_of_way(source, target, AttemptedMove(after, adds_tasks=adds_tasks), earlier)


def _decision_findings(before: Session, old: SessionStatus, after: Session, now: SessionStatus) -> Iterator[Finding]:
    place = pointer(STATUS_FILE, "user_decisions")
    wrong = {one.path for one in before.parts[STATUS_FILE].findings}
    for i, decision in enumerate(old.user_decisions):
        kept = now.decision(decision.decision_id)
        keys = _altered_keys(decision, kept) if kept else []
        named = ", ".join(f"`{key}`" for key in keys if pointer("user_decisions", i, key) not in wrong)
        reason = f"No command changes {named}." if named else ""
        if kept and named and decision.decision_id in GATES:
            is_over = kept.asked_at != decision.asked_at or any(map(_is_done, _corrections(after, len(before.outputs))))
            correction = "completed" if is_over else correction_of(old)
            found = repeat_finding(decision.decision_id, decision.answer or "", correction)
            reason = found.message if found else ""
        if reason or kept is None:
            did = "alters" if kept else "removes"
            message = f"This change {did} {decision.decision_id}, which was {decision.status}. {reason}"
            yield Finding("session-altered", message.strip(), place, hint=ALTERED)
    for i, kept in enumerate(now.user_decisions):
        asked = old.decision(kept.decision_id)
        if kept != asked:
            category = asked.category if asked and is_about_security(asked.category) else kept.category
            is_security = is_of_security(kept.question, category, after.outputs)
            found = closing_finding(kept, f"{place}/{i}", is_security=is_security)
            yield from [found] if found else []


def _altered_keys(decision: UserDecision, kept: UserDecision) -> list[str]:
    """Return the keys of a question's record that changed, and that no command changes once it is asked or answered.

    A gate has one record for all its questions: only an answer holds it.
    """
    fixed: tuple[str, ...] = _QUESTION if decision.status == "pending" else (*_QUESTION, *_ANSWER, "resolution_reason")
    if decision.decision_id in GATES:
        fixed = (*_QUESTION, *_ANSWER) if decision.status == "answered" else ()
    keys = [key for key in fixed if getattr(kept, key) != getattr(decision, key)]
    is_lost = is_about_security(decision.category) and not is_about_security(kept.category)
    return [*keys, *(["category"] if is_lost else [])]


def _design_findings(before: Session, after: Session, now: SessionStatus) -> Iterator[Finding]:
    """Find requests without a line, and corrections that are set back, or over without the OK of the agent sent."""
    old, said = before.status, now.decision(APPROVE_DESIGN)
    was, stage = (old.decision(APPROVE_DESIGN), correction_of(old)) if old else (None, "none")
    is_same = (was and (was.asked_at, was.answer)) == (said and (said.asked_at, said.answer))
    request, lines = _request_of(said), [*enumerate(after.history)]
    lines = [(i, one) for i, one in lines if one.answer == request]
    is_again = was is not None and not is_same and _request_of(was) in ("", request)
    asked_at, known = (said.asked_at if said else None) or "", len(before.history)
    if is_again and lines and not any(i >= known or not is_before(one.at, asked_at) for i, one in lines):
        message = f"{APPROVE_DESIGN} requests changes once more, but {HISTORY_FILE} has no new line."
        yield Finding("history-missing", message, pointer(HISTORY_FILE), hint="Add the line.")
    is_back = CORRECTION_STAGES.index(now.correction_status) < CORRECTION_STAGES.index(stage)
    if (stage, now.correction_status) == ("dispatched", "queued"):  # an agent that failed is sent no longer
        is_back = bool(_corrections(after) and now.last_correction.agent)
    if old and old.correction_status != "completed" == now.correction_status:
        is_back |= correction_of(now) == "queued"  # the dispatch was for an earlier request
    if old and not request and _sets_correction(old, now, is_same=is_same, is_open=bool(said and not said.answer)):
        message = "This change records a correction of the design that no answer requests."
        yield Finding("session-altered", message, pointer(STATUS_FILE, "gate_tracking"), hint=ALTERED)
    dropped = [request] if is_same and is_back and request else []
    for text in (*dropped, *_dropped_requests(before, after, now)):
        message = f"This change drops a correction of the design, or lacks the OK of its agent: {short_name(text)}"
        yield Finding("session-altered", message, pointer(STATUS_FILE, "gate_tracking"), hint=ALTERED)


def _sets_correction(old: SessionStatus, now: SessionStatus, *, is_same: bool, is_open: bool) -> bool:
    """Return whether a change writes the progress of a correction, or its dispatch, where no answer requests one.

    A question that was asked again since the change began keeps them of a request in between.
    """
    sent, known = ((one.last_correction.agent, one.last_correction.at) for one in (now, old))
    stages = (old.correction_status, "none", *(["completed"] if is_open and not is_same else []))
    return now.correction_status not in stages or (is_same and sent not in (known, (None, None)))


def _dropped_requests(before: Session, after: Session, now: SessionStatus) -> Iterator[str]:
    """Yield the requests from before a change or in it that are over without an OK of the agent that was sent.

    Where no agent that corrects a design has an output, other tools keep the outputs: then it was sent since, at least.
    """
    old, last, own = before.status, now.decision(APPROVE_DESIGN), _corrections(after)
    was = old.decision(APPROVE_DESIGN) if old else None
    sent = {one.last_correction.agent for one in (old, now) if one}
    first = [(_request_of(was), was.resolved_at or "")] if was and old and correction_of(old) != "completed" else []
    added = [(one.answer, one.at) for one in after.history[len(before.history) :] if one.answer != _request_of(was)]
    requests = [one for one in (*first, *added) if one[0]]
    for (text, at), (_, until) in pairwise([*requests, ("", "")]):
        done = (one for one in own if _is_done(one) and not (is_before(one.at, at) or is_before(until, one.at)))
        passed = {one.agent for one in done if one not in before.outputs or is_before(at, one.at)}
        is_sent = not is_before(now.last_correction.at or "", at)
        is_done = bool(passed if until else passed & sent) if own else is_sent
        is_under_way = not until and text == _request_of(last) and correction_of(now) != "completed"
        if not (is_done or is_under_way):
            yield text


def _corrections(session: Session, start: int = 0) -> list[OutputEntry]:
    return [one for one in session.outputs[start:] if one.task_id == "meta" and one.agent in CORRECTORS]


def _is_done(output: OutputEntry) -> bool:
    return output.status == "OK" and output.meets_definition_of_done


def _request_of(decision: UserDecision | None) -> str:
    answer = decision.answer if decision and decision.status == "answered" else None
    return answer if answer and is_change_request(answer) else ""


def _task_findings(before: Session, after: Session) -> Iterator[Finding]:
    """Find begun tasks that are gone, and tasks that lost reviews or moved on without a record of work or reviews."""
    known, record = {task.id: task.status for task in before.plan}, after.record
    early, said = early_tasks(after), {one.task_id for one in after.outputs[len(before.outputs) :]}
    if begun := [one.id for one in after.plan if one.id in early and one.status != known.get(one.id)]:
        message = f"This change starts work on {', '.join(begun)} before the session passed its gates."
        place, hint = pointer(STATUS_FILE, "current_state"), "Set them to not-started, and pass the gates first."
        yield Finding("tasks-early", message, place, hint=hint)
    for name in known.keys() - {task.id for task in after.plan} if after.tasks else ():
        if known[name] != "not-started":
            message = f"This change removes {name}, which was {known[name]}."
            yield Finding("session-altered", message, pointer(TASKS_FILE, "tasks"), hint=ALTERED)
    for i, task in enumerate(after.plan):
        old = before.task(task.id)
        lost = planned_reviews(old) - planned_reviews(task) if old and old.status != "completed" else ()
        if lost:
            message = f"This change takes what asks for {' and '.join(sorted(lost))} from {task.id}."
            hint = "Restore its risk flag or its check. Waive the review with a reason once the task is implemented."
            yield Finding("session-altered", message, pointer(TASKS_FILE, "tasks", i), hint=hint)
        is_set_back = old is not None and old.status == "completed" != task.status
        if is_set_back and said.isdisjoint((task.id, "meta")) and not record.open_gates(task.id):
            message = f"This change sets {task.id} from completed to {task.status} without a new output for it."
            hint = "Set it to completed. A failed review, or new work of the Coder, opens it again."
            yield Finding("session-altered", message, pointer(TASKS_FILE, "tasks", i, "status"), hint=hint)
        is_new = known.get(task.id) not in (task.status, "completed")
        is_shown = record.has_work(task.id) if task.status == "implemented" else record.has_record(task.id)
        is_judged = is_new and task.status in ("implemented", "completed") and not is_shown
        if is_judged and (gates := record.open_gates(task.id)):
            names = ", ".join(gates if task.status == "completed" else gates[:1])
            message = f"This change sets {task.id} to {task.status}, but outputs.jsonl has no OK of {names} for it."
            hint = (
                "Set it back, and take each output with `accord dispatch --take`, or waive the reviews with a reason."
            )
            yield Finding("review-open", message, pointer(TASKS_FILE, "tasks", i, "status"), hint=hint)


def foreign_changes(session: Session, role: str, paths: Iterable[str]) -> Iterator[Finding]:
    """Find files of the repository that changed in a role's turn, and that the contract keeps from it ("Rules").

    Those of the session's own folder are judged by ``turn_findings``.
    """
    state = working_state(session.status) if session.status else ""
    hint = "Undo it, or commit it if you made it. Then run the command again."
    for path in paths:
        _, work, rest = f"/{path}".partition(f"/{WORK}/")
        if work and not rest.startswith(f"{session.name}/"):
            message = f"`{short_name(path)}` changed in the turn of {role}, and other sessions are read-only."
            yield Finding("role-forbidden", message, hint=hint)
        elif not work and is_forbidden_code(role, path, state):
            message = f"`{short_name(path)}` changed in the turn of {role}. {CODE_WRITERS}"
            yield Finding("role-forbidden", message, hint=hint)


def turn_findings(before: Session, after: Session, role: str) -> Iterator[Finding]:
    """Find changes of the session's files in a role's turn that only accord, a person or another role makes."""
    hint = "Restore it, or keep it if you made it. Then run the command again."
    for name, part in after.parts.items():
        old, is_own = before.parts[name], name in artifacts_of(role, before.mode)
        if part == old:
            continue
        if name == STATUS_FILE:
            value = part.value if isinstance(part.value, dict) else {}
            for found in forbidden_status(role, old.value, value):
                yield replace(found, path=pointer(name) + found.path, hint=hint)
        elif not is_own:
            yield Finding("role-forbidden", f"{name} changed in the turn of {role}.", pointer(name), hint=hint)
        elif name == TASKS_FILE:
            for i, task in enumerate(after.plan):
                known = before.task(task.id)
                if task.status != (was := known.status if known else "not-started"):
                    message = f"{task.id} went from {was} to {task.status} in the turn of {role}."
                    yield Finding("role-forbidden", message, pointer(name, "tasks", i, "status"), hint=hint)
