"""What the documents of a session must say to each other. Pure over a session that was read.

Source: global agent contract, "Required repository artifacts", "ASK_USER protocol" and "Artifact content validation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.kernel.documents import shown
from accord.kernel.findings import Finding, pointer, warning
from accord.sessions.gates import open_gates
from accord.sessions.models import APPROVE_DESIGN, GATES, REVIEW_STRATEGY
from accord.sessions.rules import asks_changes, is_inside, passes_gate, session_name_findings
from accord.sessions.stages import files_needed, is_at_least, working_state

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from accord.sessions.folder import Session
    from accord.sessions.models import Status, Tasks


def folder_findings(session: Session, missing: Collection[str]) -> list[Finding]:
    """Check what concerns more than one file; a file whose shape is wrong is left out.

    ``missing`` are those context files of its tasks that are not there. A finding's path is a pointer into the folder:
    the name of a file, and the place in it.
    """
    found = [*session_name_findings(session.name)]
    status, tasks = session.status, session.tasks
    if session.parts["status.json"].is_missing:
        message = "status.json is missing. Every session has one from its beginning."
        found.append(Finding("artifact-missing", message, "/status.json"))
    if status:
        found += [*_names(session, status), *_artifacts(session, status), *_gates(session, status)]
        found += [*_history(session, status)]
    if status and tasks:
        found += [*_tasks_by_state(session, status, tasks), *_counted_tasks(status, tasks)]
    if tasks:
        found += [*_context_files(tasks, missing), *_reviews(session, tasks)]
    return found


def _names(session: Session, status: Status) -> Iterator[Finding]:
    if status.session != session.name:
        message = f'status.json is of the session "{shown(status.session)}", but lies in "{shown(session.name)}".'
        yield Finding("session-mismatch", message + " Give both one name.", "/status.json/session")


def _artifacts(session: Session, status: Status) -> Iterator[Finding]:
    state = working_state(status)
    for name in files_needed(state, session.mode):
        if session.parts[name].is_missing:
            message = f"{name} is missing, and the session is in {state} already. Write it, or go back."
            yield Finding("artifact-missing", message, pointer(name))


def gate_defect(status: Status, decision_id: str) -> str:
    """Say why a gate's question does not let a session pass; empty when it does."""
    decision = status.decision(decision_id)
    if decision is None:
        return f"{decision_id} was never asked."
    if decision.status != "answered" or not decision.answer:
        return f"{decision_id} is {decision.status}, not answered."
    if passes_gate(decision_id, decision.answer):
        return ""
    wanted = {APPROVE_DESIGN: '"approved"', REVIEW_STRATEGY: '"per-batch" or "single-final"'}
    return f"{decision_id} is not answered with {wanted[decision_id]}."


def _gates(session: Session, status: Status) -> Iterator[Finding]:
    state = working_state(status)
    for decision_id, gate in GATES.items():
        is_past = is_at_least(state, gate, session.mode) and state != gate
        defect = gate_defect(status, decision_id) if is_past and status.current_state != "BLOCKED" else ""
        if defect:
            message = f"The session went past {gate} to {state}, but {defect} Ask the user first."
            yield Finding("gate-open", message, "/status.json/user_decisions")
        decision = status.decision(decision_id)
        if decision and decision.status == "cancelled" and status.current_state == gate:
            message = f"{decision_id} is cancelled, so the session cannot go on. Set it to BLOCKED."
            yield Finding("gate-cancelled", message, "/status.json/current_state")


def _history(session: Session, status: Status) -> Iterator[Finding]:
    decision = status.decision(APPROVE_DESIGN)
    answer = decision.answer if decision and decision.status == "answered" else None
    if answer and asks_changes(answer) and answer not in [entry.answer for entry in session.history]:
        message = "The user asked for changes of the design, and approve-design-history.jsonl does not say so. Add it."
        yield Finding("history-missing", message, "/status.json/user_decisions")
    if session.history and decision is None:
        message = f"The history tells of changes of the design, but {APPROVE_DESIGN} was never asked."
        yield warning("history-without-question", message, "/status.json/user_decisions")


def _tasks_by_state(session: Session, status: Status, tasks: Tasks) -> Iterator[Finding]:
    state = working_state(status)
    unfinished = [task.id for task in tasks.tasks if task.status != "completed"]
    begun = [task.id for task in tasks.tasks if task.status in ("in-progress", "implemented", "completed")]
    if state and begun and not is_at_least(state, "IMPLEMENT_LOOP", session.mode):
        message = f"The session is in {state}, and worked on are already: {', '.join(begun)}. Pass the gates first."
        yield warning("tasks-early", message, "/status.json/current_state")
    if state in ("INTEGRATE", "RELEASE", "DONE", "FIX_BUILD") and unfinished:
        message = f"The session is in {state}, but not completed are: {', '.join(unfinished)}."
        yield Finding("tasks-open", message, "/status.json/current_state")


def _counted_tasks(status: Status, tasks: Tasks) -> Iterator[Finding]:
    for name in status.retry_counts:
        if name != "meta" and tasks.task(name) is None:
            message = f'Retries are counted for "{shown(name)}", which is no task. Correct the id.'
            yield warning("task-unknown", message, pointer("status.json", "retry_counts", name))


def _reviews(session: Session, tasks: Tasks) -> Iterator[Finding]:
    for i, task in enumerate(tasks.tasks):
        if task.status == "completed" and (gates := open_gates(task, session.outputs)):
            message = (
                f"{task.id} is completed, but not passed are: {', '.join(gates)}. Let them review it as it is now."
            )
            yield warning("review-open", message, pointer("tasks.yaml", "tasks", i, "status"))


def _context_files(tasks: Tasks, missing: Collection[str]) -> Iterator[Finding]:
    for i, task in enumerate(tasks.tasks):
        for j, path in enumerate(task.context_files):
            if path in missing and is_inside(path):
                message = f'{task.id} is to be read with "{shown(path)}", which is not there. Write it or correct it.'
                yield warning("context-file-missing", message, pointer("tasks.yaml", "tasks", i, "context_files", j))
