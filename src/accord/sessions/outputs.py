"""Effects of an agent's output on its session: a pure table, and the changes that it leads to.

Source: global agent contract, "Status enum - usage guide", "Task status lifecycle", "Gates" and "ASK_USER protocol".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import product
from posixpath import normpath
from typing import Literal

from accord.core.documents import short_name
from accord.core.findings import Finding, Severity, finding_of, has_errors, pointer, warning
from accord.core.frozen import Frozen
from accord.sessions.apply import SessionWriter
from accord.sessions.decision_rules import (
    SECURITY,
    correction_of,
    is_about_security,
    is_of_security,
    question_of_security,
    working_state,
)
from accord.sessions.folder import OUTPUTS_FILE, TASKS_FILE, Session, status_of, status_value
from accord.sessions.machine import INTEGRATION, MACHINES, AttemptedMove
from accord.sessions.models import CORRECTORS, LOOPS, REVIEWS, AgentOutput, OutputEntry, ReviewEntry, SessionTask
from accord.sessions.moves import broken_artifacts, check_files, check_work, early_tasks, open_fix, status_in
from accord.sessions.output_rules import code_findings, is_open_concern, severity_of
from accord.sessions.plan import (
    FileOperation,
    StatusStep,
    entry_of,
    plan_entry,
    plan_status,
    repeated_output,
    with_operations,
    write_tasks,
)
from accord.sessions.policy import READ_ONLY, WORK, artifacts_of, check_path, check_task, refuse
from accord.sessions.questions import (
    UserQuestion,
    dispatched_corrector,
    with_correction,
    with_questions,
)
from accord.sessions.rules import MOST_RETRIES
from accord.sessions.run import ROLE
from accord.text.markdown import shorten

_MOST_REMARKS, _MOST_CHARACTERS = 50, 2_000
"""The findings and review comments that are recorded of an output, and the characters of each."""


class OutputEffects(Frozen):
    """The changes that an output causes in a session, ``before``."""

    before: Session
    is_repeated: bool = False
    tasks: tuple[tuple[str, str], ...] = ()
    question: UserQuestion | None = None
    correction: Literal["", "completed", "queued"] = ""
    ends_fix: bool = False
    returns_to_tasks: bool = False
    open_gates: tuple[str, ...] = ()  # reviews that its task, once implemented, has not passed
    findings: tuple[Finding, ...] = ()  # warnings of files that the agent's role may not change

    @property
    def summary(self) -> list[str]:
        """The changes, for people."""
        changes = [f"{name} {status}" for name, status in self.tasks]
        changes += [f"correction of the design {self.correction}"] if self.correction else []
        changes += ["the session goes back to IMPLEMENT_LOOP"] if self.returns_to_tasks else []
        return [*changes, *(["the user is asked"] if self.question else [])]


def moves_between(effects: OutputEffects, after: Session) -> list[str]:
    """Return what moved and was counted in a session beyond the effects of an output, for people."""
    old = {task.id: task.status for task in effects.before.plan} | dict(effects.tasks)
    moves = [f"{task.id} {task.status}" for task in after.plan if task.status != old.get(task.id)]
    was, status = status_of(effects.before), status_of(after)
    for name, loop in product(status.retry_counts, LOOPS):
        if (count := status.retries(name, loop)) > was.retries(name, loop):
            moves.append(f"{loop} of {name} counted, {count} of {MOST_RETRIES}")
    is_moved = status.current_state != was.current_state and not effects.returns_to_tasks
    return [*moves, *([f"the session goes to {status.current_state}"] if is_moved else [])]


def apply_output(writer: SessionWriter, task_id: str, role: str, output: AgentOutput) -> OutputEffects:
    """Apply an output to its session once, as one change, with the record that the gates of its task read."""
    made: list[OutputEffects] = []

    def plan(session: Session) -> list[FileOperation]:
        effects, operations = plan_output(session, task_id, role, output, now=writer.clock.now())
        made.append(effects)
        return operations

    writer.change(plan)
    return made[-1]


def plan_output(
    session: Session, task_id: str, role: str, output: AgentOutput, *, now: datetime
) -> tuple[OutputEffects, list[FileOperation]]:
    """Plan what an output changes: statuses of tasks, its record, and the state and questions of the session.

    A record that is there already means that an earlier try was stopped, or succeeded: only what is missing is planned.
    """
    check_task(session.tasks, task_id)
    foreign = tuple(_foreign_files(session, role, output))
    entry = output_entry(_failed_task(session, task_id, role, output), role, output, now)
    repeated = repeated_output(session, entry)
    changed = [_path_in_project(session, path) for path in output.artifacts.files_changed]
    lacks = check_files(session, role, task_id, changed) if output.status == "OK" else None
    if forbidden := check_work(session, role, task_id) or lacks:
        if repeated:
            return OutputEffects(before=session, is_repeated=True, findings=foreign), []
        raise refuse("The output cannot be taken.", forbidden)
    if output.status == "OK" and TASKS_FILE in artifacts_of(role, session.mode) and (early := early_tasks(session)):
        message = f"Work on {', '.join(early)} has started before the session passed its gates."
        found = Finding("tasks-early", message, pointer(TASKS_FILE), hint="Set these tasks to not-started.")
        raise refuse("The output cannot be taken.", found)
    reported = (*foreign, *code_findings(output, role, working_state(status_of(session))))
    if errors := [one for one in reported if has_errors([one])]:
        raise refuse("The output cannot be taken.", errors)
    record = plan_entry(session, entry, now=now)
    recorded = with_operations(session, record)
    moved = {task.id: task.status if repeated else status_after(recorded, task, entry) for task in session.plan}
    statuses = {task.id: moved[task.id] for task in session.plan if moved[task.id] != task.status}
    operations = [*write_tasks(session, statuses), *record]
    after = with_operations(session, operations)
    if _is_behind(after) and (refusal := _refusal_to_return(after)):
        if role in REVIEWS and not _is_behind(session):
            raise refuse("The output cannot be taken.", finding_of("illegal-move", refusal, "/current_state"))
        statuses, operations, after = {}, record, recorded  # only the record leads back to the tasks
    task = after.task(task_id)
    effects = OutputEffects(
        before=session,
        is_repeated=repeated is not None,
        tasks=tuple(statuses.items()),
        question=_question(session, task_id, output, repeated) if output.status == "NEEDS_DECISION" else None,
        correction=_correction(session, task_id, role, output),
        ends_fix=open_fix(session) == (task_id, role),
        returns_to_tasks=_is_behind(after) and not _refusal_to_return(after),
        open_gates=after.record.open_gates(task.id) if task and task.status == "implemented" else (),
        findings=foreign,
    )
    return effects, [*operations, *_session_operations(after, effects, now)]


def _failed_task(session: Session, task_id: str, role: str, output: AgentOutput) -> str:
    """Return the task that an output is about: a failed review of ``meta`` may send the Coder to one with work."""
    task = session.task(output.next.recommended_task_id)
    has_begun = task is not None and (task.status != "not-started" or task.id in session.record.last)
    is_sent = has_begun and (output.status, output.next.recommended_agent) == ("FAIL", "Coder")
    return output.next.recommended_task_id if is_sent and task_id == "meta" and role in REVIEWS else task_id


def output_entry(task_id: str, role: str, output: AgentOutput, now: datetime) -> OutputEntry:
    """Return the record of an output."""
    concerns = [one for one in output.gates.security_concerns if is_open_concern(one, role)]
    concerns += [one for one in output.artifacts.findings if role == "Security" and not severity_of(one)]
    gates = output.gates.model_dump(include={"meets_definition_of_done", "needs_review", "needs_tests"})
    gates["has_code"] = role == "Integrator" and any(code_findings(output, ""))  # each that not every role may change
    gates["findings"] = _remarks([*output.artifacts.findings, *output.gates.security_concerns])
    gates["review_comments"] = _remarks(output.artifacts.review_comments)
    return entry_of(now, task_id, role, output.status, output.summary, security_concerns=len(concerns), **gates)


def _remarks(entries: Sequence[ReviewEntry]) -> list[str]:
    texts = [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in entries]
    kept, more = texts[:_MOST_REMARKS], len(texts) - _MOST_REMARKS
    return [*(shorten(one, _MOST_CHARACTERS) for one in kept), *([f"{more} more were left out."] if more > 0 else [])]


def status_after(session: Session, task: SessionTask, output: OutputEntry) -> str:
    """Return the new status of a task, in a session that has the record of the output."""
    is_own, role, status = task.id == output.task_id, output.agent, str(task.status)
    if is_own and (role, output.status) == ("Coder", "OK"):
        status = "implemented" if output.meets_definition_of_done or status == "implemented" else "in-progress"
    elif is_own and (output.status == "BLOCKED" or (role, output.status) == ("Coder", "FAIL")):
        return "blocked" if status != "completed" or role in REVIEWS else status
    if session.parts[OUTPUTS_FILE].problem:  # it is unknown which reviews passed
        return status
    if session.record.missed_gates(task.id) and session.record.has_record(task.id):
        return "implemented"
    has_passed = status == "implemented" and not session.record.open_gates(task.id)
    is_reviewed = has_passed and role in REVIEWS and (is_own or output.task_id == "meta")
    return "completed" if is_reviewed and output.status == "OK" else status


def _correction(session: Session, task_id: str, role: str, output: AgentOutput) -> Literal["", "completed", "queued"]:
    """Return what an output makes of a correction of the design: one that is not done is dispatched again."""
    status = status_of(session)
    is_sent = status.current_state == "APPROVE_DESIGN" and correction_of(status) == "dispatched"
    is_done = output.status == "OK" and output.gates.meets_definition_of_done and not broken_artifacts(session, role)
    is_own = role == (dispatched_corrector(status) or role)
    if not (is_sent and is_own and role in CORRECTORS and task_id == "meta"):
        return ""
    return "completed" if is_done else "queued"


def _is_behind(session: Session) -> bool:
    """Return whether a session integrates tasks of which one is open again."""
    return bool(session.unfinished) and status_of(session).current_state in INTEGRATION


def _refusal_to_return(session: Session) -> str:
    state = status_of(session).current_state
    return MACHINES[session.mode].refusal(state, "IMPLEMENT_LOOP", AttemptedMove(session))


def _session_operations(session: Session, effects: OutputEffects, now: datetime) -> list[FileOperation]:
    steps: list[StatusStep] = []
    if progress := effects.correction:
        steps.append(lambda one: with_correction(one, progress))
    if effects.ends_fix:
        steps.append(lambda one: {**status_value(one), "fix_task": None})
    if effects.returns_to_tasks:
        steps.append(lambda one: status_in(one, "IMPLEMENT_LOOP"))
    if question := effects.question:
        steps.append(lambda one: with_questions(one, [question], now=now))
    operations: list[FileOperation] = []
    for step in steps:
        operations = plan_status(with_operations(session, operations), step, role=ROLE, now=now) or operations
    return operations


def _foreign_files(session: Session, role: str, output: AgentOutput) -> Iterator[Finding]:
    """Find the files that an agent reports as changed, and that the contract keeps from its role.

    It is an error where a file is that of another session.
    """
    state, is_lean = working_state(status_of(session)), session.mode == "lean"
    for key in ("files_changed", "tests_added_or_updated"):
        for i, path in enumerate(getattr(output.artifacts, key)):
            if reason := check_path(role, _path_in_project(session, path), session.name, state, is_lean=is_lean):
                message = f"{role} reports a change of `{short_name(path)}`. {reason}"
                place = pointer("artifacts", key, i)
                found = warning("role-forbidden", message, place, hint="Review that change before you continue.")
                hint = "Undo that change, and take the output without the file."
                yield replace(found, severity=Severity.ERROR, hint=hint) if reason == READ_ONLY else found


def _path_in_project(session: Session, path: str) -> str:
    """Return a path relative to the project: agents may also start with the root of the disk or of the repository."""
    path = normpath(path).removeprefix(f"{session.root}/").replace("<session>", session.name)
    folder, work, rest = f"/{path}".partition(f"/{WORK}/")
    return f"{WORK}/{rest}" if work and str(session.root).endswith(folder) else path


def _question(session: Session, task_id: str, output: AgentOutput, repeated: OutputEntry | None) -> UserQuestion | None:
    """Return what Security asks, once for each of its outputs, whatever the user answered."""
    text = question_of_security(task_id, output.summary)
    asked = [one for one in status_of(session).user_decisions if one.question == text]
    times = sum(is_about_security(one.category) for one in asked)
    is_asked = times >= sum(is_of_security(text, None, [one]) for one in session.outputs)
    return None if repeated and is_asked else UserQuestion(text, category=SECURITY)
