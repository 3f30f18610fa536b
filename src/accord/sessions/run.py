"""The commands of a session, each one or a few planned changes: moves, tasks, questions and answers.

Source: global agent contract, "ASK_USER protocol". Whatever ends the process, the same command continues from there.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from accord.core.clock import Clock
from accord.core.documents import short_name
from accord.core.errors import BrokenContract, Stopped
from accord.core.findings import Finding
from accord.sessions import questions
from accord.sessions.apply import SessionWriter
from accord.sessions.decision_rules import correction_of, return_state
from accord.sessions.dispatch import agent_input
from accord.sessions.folder import HISTORY_FILE, Session, status_of, status_value
from accord.sessions.models import APPROVE_DESIGN, CORRECTORS, GATES, LOOPS, SessionStatus, UserDecision
from accord.sessions.moves import (
    asking_hint,
    broken_artifacts,
    check_work,
    is_decided,
    reopened_status,
    status_in,
)
from accord.sessions.plan import (
    FileOperation,
    StatusStep,
    plan_line,
    plan_meta_waiver,
    plan_status,
    plan_task,
    plan_work,
    with_operations,
)
from accord.sessions.policy import WORK, Setting, check_task, refuse, with_settings

if TYPE_CHECKING:
    Prompt = Callable[[UserDecision, str], str | None]
    """Asks the user, with what was wrong with the last answer. Returns None at the end of the input."""

ROLE = "Orchestrator"
"""The single writer of decisions."""


def create_session(root: Path, slug: str, *, is_lean: bool, clock: Clock, is_dry_run: bool = False) -> SessionWriter:
    """Create a session, named by the day and the slug. Raises ``session-exists``, or ``path-outside`` for a link."""
    folder = root / WORK / f"{clock.now():%Y-%m-%d}_{slug}"
    if links := [one for one in (root / WORK, folder) if one.is_symlink()]:
        hint = "Replace it with a directory in the repository."
        finding = Finding("path-outside", f"{links[0]} is a link.", hint=hint)
        raise refuse("The session cannot be created.", finding)
    first: dict[str, Any] = {
        "current_state": "INTAKE_LEAN" if is_lean else "INTAKE",
        "session": folder.name,
        "mode": "lean" if is_lean else "full",
        "assumptions": [],
        "user_decisions": [],
        "retry_counts": {},
        "known_issues": [],
        "last_ci_result": "unknown",
    }
    writer = SessionWriter(folder, clock, is_dry_run=is_dry_run)
    writer.create(first)
    return writer


def advance(writer: SessionWriter, target: str, *, role: str, blocker: str = "") -> SessionStatus:
    """Move a session to a state, once its guards allow it; one that is there already, DONE included, stays there."""
    status = writer.read().status
    if status and status.current_state == target == "DONE":
        return status

    def step(session: Session) -> dict[str, Any]:
        value = status_in(session, target, blocker=blocker)
        return questions.with_gate_asked(session, value, now=writer.clock.now())

    return writer.change_status(step, role=role)


def start_fix(writer: SessionWriter, task: str, loop: str, *, role: str) -> SessionStatus:
    """Enter a fix loop for a task, and count it; the fourth time is refused."""
    return writer.change_status(lambda session: status_in(session, loop, task=task), role=role)


def reopen(writer: SessionWriter) -> SessionStatus:
    """Reopen a session that was done, as the Orchestrator: it goes back to IMPLEMENT_LOOP."""
    now = writer.clock.now()

    def step(session: Session) -> dict[str, Any]:
        return questions.with_gate_asked(session, reopened_status(session, now=now), now=now)

    return writer.change_status(step, role=ROLE, reopens=True)


def move_task(writer: SessionWriter, task: str, target: str, *, role: str, waiver: str = "") -> Session:
    """Set the status of one task, once its lifecycle, its dependencies, its reviews and the role allow it.

    ``waiver`` is why the Orchestrator completes it without its reviews. For ``meta`` it replaces the final review, and
    outputs on ``meta`` that are not OK.
    """
    if task == "meta" and waiver and target == "completed":
        return writer.change(lambda session: plan_meta_waiver(session, waiver, role=role, now=writer.clock.now()))
    now = writer.clock.now()
    return writer.change(lambda session: plan_task(session, task, target, role=role, now=now, waiver=waiver))


def start_agent(writer: SessionWriter, task: str, role: str, *, goal: str = "") -> dict[str, Any]:
    """Return the input of an agent, once its start is recorded: its task in progress, or its correction of a design."""
    document = agent_input(writer.read(), task, role, goal=goal)
    writer.change(lambda session: plan_start(session, task, role, now=writer.clock.now()))
    return document


def plan_start(session: Session, task_id: str, role: str, *, now: datetime) -> list[FileOperation]:
    """Plan what is recorded when an agent starts on a task, or on ``meta``."""
    if forbidden := check_work(session, role, task_id):
        raise refuse(f"{role} cannot be dispatched.", forbidden)
    task, status = session.task(task_id), status_of(session)
    if role == "Coder" and task:
        moved = plan_task(session, task_id, "in-progress", role=role, now=now)
        return moved or plan_work(session, task_id, "in-progress", now=now)
    if status.current_state != "APPROVE_DESIGN" or role not in CORRECTORS or task_id != "meta":
        return []
    sent, is_broken = questions.dispatched_corrector(status), bool(broken_artifacts(session, role))
    is_sent = bool(sent) and (sent != role or status.last_correction.input_at is not None)
    if is_sent or (correction_of(status) == "completed" and not is_broken):
        message = f"The correction of the design {f'was dispatched to {sent} already' if sent else 'is completed'}."
        hint = "Run `accord session resume` to see what is next."
        raise refuse(f"{role} cannot be dispatched.", Finding("correction-open", message, hint=hint))
    step = questions.next_at_gate(status, APPROVE_DESIGN).next  # whatever else waits
    if step not in ("dispatch-correction", "verify-correction"):
        return []
    return _plan_step(
        session, lambda one: questions.with_dispatched_correction(one, role, now=now, has_input=True), now=now
    )


def set_values(writer: SessionWriter, settings: Sequence[Setting], *, role: str) -> SessionStatus:
    """Set values of ``status.json`` that no other command sets, as far as the role may change them."""
    now = writer.clock.now()

    def plan(session: Session) -> list[FileOperation]:
        value = with_settings(status_value(session), session.tasks, settings, now=now)
        operations = plan_status(session, lambda _: value, role=role, now=now)
        old, new = status_of(session), status_of(with_operations(session, operations))
        for fix in product(old.retry_counts, LOOPS):
            if new.retries(*fix) < old.retries(*fix) and not is_decided(new, session.outputs, *fix):
                message = f"{short_name(fix[0])} went through {fix[1]}, and the user did not decide on it since."
                raise refuse("The count stays.", Finding("retry-budget", message, hint=asking_hint(session, *fix)))
        return operations

    return status_of(writer.change(plan))


def fail_agent(writer: SessionWriter, task: str, role: str, reason: str) -> SessionStatus:
    """Block a session whose agent gave no output after all its retries; no other role does its work."""
    if not reason.strip():
        finding = Finding("reason-missing", "No reason given.", hint="Say with `--failed` why the agent failed.")
        raise refuse("The session cannot be blocked.", finding)
    session = writer.read()
    check_task(session.tasks, task)
    if task == "meta" and questions.dispatched_corrector(status_of(session)) == role:
        writer.change_status(lambda one: questions.with_correction(one, "queued"), role=ROLE)
    blocker = f"subagent_failure: {role} on {task}: {reason.strip()}"
    return advance(writer, "BLOCKED", role=ROLE, blocker=blocker)


def ask(writer: SessionWriter, wanted: Sequence[questions.UserQuestion]) -> SessionStatus:
    """Write questions as pending and verify them, before the user sees them."""
    now = writer.clock.now()

    def step(session: Session) -> dict[str, Any]:
        return questions.with_questions(session, wanted, now=now)

    return status_of(writer.change(lambda session: _plan_step(session, step, now=now)))


def _plan_step(session: Session, step: StatusStep, *, now: datetime) -> list[FileOperation]:
    """Plan a change of the status, after the line of requested changes where only the status has them."""
    return [*_plan_line(session, {}, now=now), *plan_status(session, step, role=ROLE, now=now)]


def _plan_line(session: Session, answers: Mapping[str, str], *, now: datetime) -> list[FileOperation]:
    line = questions.request_line(session, answers, now=now)
    return [plan_line(session, HISTORY_FILE, line)] if line else []


def answer(writer: SessionWriter, answers: Mapping[str, str], *, is_final: bool = False) -> None:
    """Record answers; requested changes of the design reach the history first, and only once."""
    now = writer.clock.now()

    def step(session: Session) -> dict[str, Any]:
        closes = [decision.decision_id for decision in status_of(session).user_decisions] if is_final else []
        return questions.with_answers(session, answers, now=now, closes=closes)

    def plan(session: Session) -> list[FileOperation]:
        operations = plan_status(session, step, role=ROLE, now=now)
        return [*_plan_line(session, answers, now=now), *operations] if operations else []

    writer.change(plan)


def close_question(
    writer: SessionWriter, decision_id: str, how: Literal["cancelled", "skipped"], reason: str
) -> SessionStatus:
    """Record that a question was cancelled or skipped."""
    return writer.change_status(
        lambda session: questions.with_closed_question(session, decision_id, how, reason, now=writer.clock.now()),
        role=ROLE,
    )


def resume(writer: SessionWriter, *, agent: str = "Architect") -> questions.SessionStep:
    """Find the next step, and record first what must be durable before it: that ``agent`` corrects the design."""
    session = writer.read()
    found = questions.next_step(session)
    if found.next == "done":
        return found
    now = writer.clock.now()

    def step(session: Session) -> dict[str, Any]:
        nonlocal found
        found = questions.next_step(session)  # under the lock, so that two processes do not both dispatch an agent
        if found.next == "dispatch-correction":
            return questions.with_dispatched_correction(session, agent, now=now)
        status = status_of(session)
        is_answered = status.current_state == "ASK_USER" and found.next == "continue"
        return status_in(session, return_state(status)) if is_answered else status_value(session)

    writer.change(lambda session: _plan_step(session, step, now=now))
    return found


DEFER = "/defer"
"""The command with which a user defers a question, followed by a reason."""


def interview(writer: SessionWriter, prompt: Prompt) -> bool:
    """Ask every pending question; return whether the user wrote anything at all.

    An empty answer does not count. At the end of the input, or of the questions, those without an answer are cancelled,
    except gates and questions about security. Where the user wrote nothing, nothing changes.
    """
    waiting = status_of(writer.read()).pending
    lines: list[str] = []
    settled = ""

    def prompt_once(decision: UserDecision, problem: str) -> str | None:
        line = prompt(decision, problem)
        lines.extend([] if line is None else [line])
        return line

    for decision in waiting:
        settled = _settle(writer, decision, prompt_once)
        if settled:
            break
    if lines and settled != "blocked":
        names = [decision.decision_id for decision in waiting]
        writer.change_status(
            lambda session: questions.with_answers(session, {}, now=writer.clock.now(), closes=names), role=ROLE
        )
    return bool(lines)


def _settle(writer: SessionWriter, decision: UserDecision, prompt: Prompt) -> Literal["", "blocked", "ended"]:
    """Ask one question, repeatedly while it needs an answer; return why no other question follows."""
    name, problem = decision.decision_id, ""
    session = writer.read()
    tries = 1 + questions.MAX_REPEATS if questions.needs_answer(session, decision) else 1
    for _ in range(tries):
        line = prompt(decision, problem)
        if line is None:
            return "ended"
        word, _, rest = line.strip().partition(" ")
        reason = questions.deferral(session, name, rest.strip()) if word == DEFER else None
        problem = answer_problem(name, line) if reason is None else "" if reason else _NO_REASON
        if not problem:
            _record_answer(writer, name, line.strip(), reason)
            return "blocked" if name in GATES and reason else ""
    if name not in GATES:
        return ""
    close_question(writer, name, "cancelled", f"no valid answer in {tries} tries")
    return "blocked"


_NO_REASON = f"No reason given. Write `{DEFER} REASON`."


def answer_problem(name: str, text: str) -> str:
    """Return why a text does not answer the question; empty when it does."""
    try:
        questions.normalize_answer(name, text)
    except BrokenContract as broken:
        return broken.findings[0].text
    return ""


def _record_answer(writer: SessionWriter, name: str, text: str, reason: str | None) -> None:
    """Write the user's answer. Raises Stopped, with the command that writes it later, when the disk refuses it."""
    try:
        if reason is None:
            answer(writer, {name: text})
        else:
            close_question(writer, name, "cancelled", reason)
    except Stopped as stopped:
        folder = str(writer.folder)
        words = ["answer", folder, f"{name}={text}"] if reason is None else ["cancel", folder, name, "--reason", reason]
        raise Stopped(
            f"The answer to {name} could not be written. {stopped.message}",
            hint=f"Fix that, then record the answer with `{shlex.join(['accord', 'session', *words])}`",
        ) from stopped
