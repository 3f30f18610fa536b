"""Rules across the documents of a session. Pure over a session that was read.

Source: global agent contract, "Required repository artifacts" and "ASK_USER protocol".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from accord.core.documents import short_name
from accord.core.findings import Finding, Severity, pointer, warning
from accord.sessions.decision_rules import (
    GATE_MISSING,
    SECURITY,
    check_gate,
    is_about_security,
    is_change_request,
    is_of_security,
    working_state,
)
from accord.sessions.folder import Session, read_session
from accord.sessions.machine import AGENTS_OF, INTEGRATION, files_needed, gates_before, is_at_least
from accord.sessions.models import APPROVE_DESIGN, GATES, SessionStatus, SessionTasks
from accord.sessions.moves import early_tasks, gate_hint
from accord.sessions.replay import proven_counts
from accord.sessions.reviews import ReviewRecord, lacks_final_review
from accord.sessions.rules import is_inside, session_name_findings


def check_session(folder: Path) -> list[tuple[Path, str, list[Finding]]]:
    """Check a session's folder: the rules across files first, then every file in it."""
    return check_documents(read_session(folder))


def check_documents(session: Session) -> list[tuple[Path, str, list[Finding]]]:
    """Check the documents of a session, written or only planned, like ``check_session``."""
    parts = [part for part in session.parts.values() if not part.is_missing]
    return [
        (session.folder, "session", folder_findings(session)),
        *((session.folder / part.name, part.kind, list(part.findings)) for part in parts),
    ]


def folder_findings(session: Session) -> list[Finding]:
    """Check what concerns more than one file.

    A finding's path is a pointer into the folder: the name of a file, and the place in it.
    """
    found = [*session_name_findings(session.name)]
    status, tasks = session.status, session.tasks
    if session.parts["status.json"].is_missing:
        hint = "Create the session with `accord session new`."
        found.append(Finding("artifact-missing", "status.json is missing.", "/status.json", hint=hint))
    if status:
        found += [*_artifacts(session, status), *_gates(session, status), *_decisions(session, status)]
    if status and tasks:
        found += [*_tasks_by_state(session, status, tasks), *_final_review(session, status)]
        found += [replace(one, severity=Severity.WARNING) for one in proven_counts(session, status)]
    if tasks:
        found += _tasks(session, tasks)
    return found


def _artifacts(session: Session, status: SessionStatus) -> Iterator[Finding]:
    if status.session != session.name:
        named = short_name(status.session)
        message = f"status.json names the session `{named}`, but its folder is `{short_name(session.name)}`."
        yield Finding("session-mismatch", message, "/status.json/session", hint="Give both the same name.")
    state = working_state(status)
    for name in files_needed(state, session.mode):
        if session.parts[name].is_missing:
            message = f"{name} is missing, but the session is already in {state}."
            yield Finding("artifact-missing", message, pointer(name), hint="Write the file, or go back a state.")


def _gates(session: Session, status: SessionStatus) -> Iterator[Finding]:
    state = working_state(status)
    passed = gates_before(state, session.mode) if status.current_state != "BLOCKED" else ()
    for decision_id, gate in GATES.items():
        if decision_id in passed and (reason := check_gate(status, decision_id)):
            message = f"The session passed {gate} and is in {state}, but {reason}"
            yield Finding("gate-open", message, "/status.json/user_decisions", hint=gate_hint(session, decision_id))
        decision = status.decision(decision_id)
        is_blocked = status.current_state == "BLOCKED" and GATE_MISSING in (status.blocker or "")
        if decision and decision.status == "cancelled" and status.current_state in (gate, "BLOCKED") and not is_blocked:
            message = f"{decision_id} is cancelled, so the session cannot continue."
            hint = f"Move it to BLOCKED, with {GATE_MISSING} as `blocker`."
            yield Finding("gate-cancelled", message, "/status.json/current_state", hint=hint)


def _decisions(session: Session, status: SessionStatus) -> Iterator[Finding]:
    """Find requests without their lines, and questions of Security without category, which silence could cancel."""
    decision = status.decision(APPROVE_DESIGN)
    answer = decision.answer if decision and decision.status == "answered" else None
    if answer and is_change_request(answer) and answer not in [entry.answer for entry in session.history]:
        message = "The user requested changes of the design, but approve-design-history.jsonl lacks them."
        yield Finding("history-missing", message, "/status.json/user_decisions", hint="Add the line.")
    if session.history and decision is None:
        message = f"The history has requested changes of the design, but {APPROVE_DESIGN} was never asked."
        yield warning("history-without-question", message, "/status.json/user_decisions", hint="Restore the decision.")
    for i, one in enumerate(status.user_decisions):
        is_of_it = is_of_security(one.question, one.category, session.outputs)
        if is_of_it and not is_about_security(one.category):
            message = f"{one.decision_id} has no category, but Security asked it."
            place, hint = pointer("status.json", "user_decisions", i), f'Add `"category": "{SECURITY}"`.'
            yield Finding("category-missing", message, place, hint=hint)


def _tasks_by_state(session: Session, status: SessionStatus, tasks: SessionTasks) -> Iterator[Finding]:
    state, place = working_state(status), "/status.json/current_state"
    if early := early_tasks(session):
        message = f"The session is in {state or status.current_state}, but work has started on {', '.join(early)}."
        yield warning("tasks-early", message, place, hint="Pass the gates first.")
    if session.unfinished and state in (*INTEGRATION, "DONE"):
        message = f"The session is in {state}, but these tasks are not completed: {', '.join(session.unfinished)}."
        hint = "Complete them, or move the session back to IMPLEMENT_LOOP."
        yield Finding("tasks-open", message, place, hint=hint)
    named = [("`retry_counts`", pointer("status.json", "retry_counts", name), name) for name in status.retry_counts]
    named += [("`fix_task`", pointer("status.json", "fix_task"), status.fix_task)] if status.fix_task else []
    named += dict.fromkeys(("outputs.jsonl", pointer("outputs.jsonl"), one.task_id) for one in session.outputs)
    for what, path, name in named:
        if name != "meta" and tasks.task(name) is None:
            message = f"{what} has the unknown task `{short_name(name)}`."
            yield warning("task-unknown", message, path, hint="Correct the id.")


def _final_review(session: Session, status: SessionStatus) -> Iterator[Finding]:
    """Check the final review, where work or reviews are recorded; that of the Integrator's code follows INTEGRATE."""
    state, mode = working_state(status), session.mode
    is_integrated = state in ("RELEASE", "DONE")
    outputs = [one for one in session.outputs if is_integrated or not one.has_code]
    others = {role for stage, roles in AGENTS_OF.items() if is_at_least(state, stage, mode) for role in roles}
    is_recorded = any(one.agent not in others or one.has_code for one in outputs)
    is_open = lacks_final_review(mode, status, ReviewRecord((), outputs))
    if is_recorded and is_open and is_at_least(state, "INTEGRATE", mode):
        left = "INTEGRATE" if is_integrated else "IMPLEMENT_LOOP"
        message = f"The session passed {left} without the final review of `meta` after the last work."
        yield Finding("review-open", message, "/status.json/current_state", hint="Have the Reviewer review `meta`.")


def _tasks(session: Session, tasks: SessionTasks) -> Iterator[Finding]:
    for i, task in enumerate(tasks.tasks):
        for j, path in enumerate(task.context_files):
            if path in session.missing and is_inside(path):
                message = f"{task.id} needs the file `{short_name(path)}`, which does not exist."
                place = pointer("tasks.yaml", "tasks", i, "context_files", j)
                yield warning("context-file-missing", message, place, hint="Write it, or correct the path.")
        if task.status == "completed" and (gates := session.record.open_gates(task.id)):
            message = f"{task.id} is completed without an OK of {', '.join(gates)}."
            hint = "Set it back to implemented and take these outputs, or waive them with a reason."
            found = Finding("review-open", message, pointer("tasks.yaml", "tasks", i, "status"), hint=hint)
            yield found if session.record.has_record(task.id) else replace(found, severity=Severity.WARNING)
