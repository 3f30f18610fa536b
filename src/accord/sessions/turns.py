"""The turns of a session: it moves on by itself until an agent works, or a person is needed.

Each step is the first command that is proposed to a person, so a session goes the same way by hand and by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from accord.core.errors import BrokenContract
from accord.core.findings import Finding, has_errors
from accord.core.frozen import Frozen
from accord.sessions import run
from accord.sessions.apply import SessionWriter
from accord.sessions.changes import turn_findings
from accord.sessions.decision_rules import is_before
from accord.sessions.folder import TASKS_FILE, Session, status_of
from accord.sessions.folder_rules import folder_findings
from accord.sessions.models import REVIEWS, AgentOutput
from accord.sessions.moves import broken_artifacts, broken_files, check_fixes, command_of
from accord.sessions.next_moves import first_step, main_moves
from accord.sessions.outputs import OutputEffects, apply_output, output_entry, status_after
from accord.sessions.plan import with_operations, write_tasks
from accord.sessions.policy import refuse
from accord.sessions.questions import UserQuestion, dispatched_corrector
from accord.sessions.rules import MOST_RETRIES


class NextActor(Frozen):
    """The next actor: an agent of a role on a task, a person for a reason, or no one once the session is done."""

    task: str = ""
    role: str = ""
    reason: str = ""
    command: str = ""
    goal: str = ""
    loop: str = ""  # the fix loop to enter first
    findings: tuple[Finding, ...] = ()  # why the next move is refused


def stopped_by(broken: BrokenContract) -> NextActor:
    """Return that a person is needed, because the next move is refused."""
    reason = " ".join([broken.message, *(one.text for one in broken.findings)])
    return NextActor(reason=reason, findings=tuple(broken.findings))


AgentCall = Callable[[dict[str, Any]], "AgentOutput | str"]
"""Runs an agent with its input, and returns its output, or why it gave none."""


def move_on(writer: SessionWriter, *, goal: str = "") -> NextActor:
    """Make the moves that need neither an agent nor a person, and return who acts next.

    ``goal`` is that of a new session, which its first agent needs.
    """
    while True:
        session = writer.read()
        if turn := _stopped_actor(session):
            return turn
        try:
            turn = _move(writer, session, goal)
        except BrokenContract as broken:  # earlier moves stay
            turn = stopped_by(broken)
        if turn:
            return turn


def _stopped_actor(session: Session) -> NextActor | None:
    status = status_of(session)
    if status.current_state == "DONE":
        wrong = next((one.message for one in folder_findings(session) if has_errors([one])), "")
        return NextActor(reason=wrong, command=first_step(session).command if wrong else "")
    reason = f"The session is blocked: {status.blocker}" if status.current_state == "BLOCKED" else ""
    reason = reason or " ".join(f"{one.decision_id}: {one.question}" for one in status.pending)
    reopened, is_open = status.reopened_at, bool(session.unfinished or session.record.unreviewed)
    is_open = is_open or status.current_state != "IMPLEMENT_LOOP"
    if not reason and reopened and not is_open and not any(is_before(reopened, one.at) for one in session.outputs[-1:]):
        reason = "The session was reopened, but no task is open. Add one, or move the session on."
    return NextActor(reason=reason, command=first_step(session).command) if reason else None


def _move(writer: SessionWriter, session: Session, goal: str) -> NextActor | None:
    step = first_step(session)
    task, target = step.task, step.target
    if step.name == "dispatch" and step.needs_goal and not goal:
        problems = " ".join(broken_artifacts(session, step.role))
        reason = f"{step.role} has to write files. {problems} Pass it the goal with `--goal`."
        return NextActor(reason=reason)
    status = status_of(session)
    has_input = status.last_correction.input_at is not None and step.role == dispatched_corrector(status)
    if step.role and step.name == "dispatch" and has_input:
        reason = f"{step.role} corrects the design. Take its output, or pass `--failed REASON` where it gave none."
        return NextActor(reason=reason, command=step.command)
    worked_on = session.task(task)
    if step.name == "dispatch" and worked_on and worked_on.status == "blocked":
        command = command_of(session, "task", task, "--to", "not-started", "--role", run.ROLE)
        return NextActor(reason=f"{task} is blocked. Resolve that, then let it begin again.", command=command)
    if step.name == "dispatch" and not broken_files(session, step.role, task):
        return NextActor(task, step.role, goal=goal if step.needs_goal else "")
    if step.name == "fix":
        return NextActor(task, "Integrator" if task == "meta" else "Coder", loop=target)
    if step.name == "advance" and target != "BLOCKED":
        run.advance(writer, target, role=run.ROLE)
    elif step.name == "task":
        run.move_task(writer, task, target, role=run.ROLE)
    elif step.name == "ask" and target:
        run.ask(writer, [UserQuestion(step.question, target)])
    else:
        move = main_moves(session)[0]
        limits = [one for task in session.plan if (one := check_fixes(session, "Coder", task.id))]
        reason = f"{move.to} needs {', '.join(move.missing)}."
        if limits and step.name in ("ask", "set", "waive"):
            reason = limits[0].text if step.name == "waive" else limits[0].message
        return NextActor(reason=reason, command=step.command)
    return None


def start_turn(writer: SessionWriter, turn: NextActor) -> dict[str, Any]:
    """Return the input of the agent whose turn it is, in its fix loop, once its start is recorded."""
    if turn.loop:
        run.start_fix(writer, turn.task, turn.loop, role=run.ROLE)
    return run.start_agent(writer, turn.task, turn.role, goal=turn.goal)


def take_turn(
    writer: SessionWriter, task: str, role: str, output: AgentOutput
) -> tuple[OutputEffects, NextActor | None]:
    """Take an agent's output; return its effects, and why a person is needed, None where the session may go on."""
    effects = apply_output(writer, task, role, output)
    is_answered = not status_of(writer.read()).pending
    if effects.is_repeated and output.status == "NEEDS_DECISION" and is_answered:
        return effects, NextActor(reason=f"{role} on {task} asks again what was decided: {output.summary}")
    if output.status in ("OK", "NEEDS_DECISION", *(("FAIL",) if role in REVIEWS else ())):
        return effects, None
    return effects, NextActor(reason=f"{role} returned {output.status} on {task}: {output.summary}")


def run_session(writer: SessionWriter, work: AgentCall, ask: Callable[[], bool], *, goal: str = "") -> NextActor:
    """Let agents work and the session move on, until a person is needed or it is done; return that turn.

    ``ask`` asks the pending questions, and returns whether the user said anything.
    """
    given: Counter[tuple[str, str]] = Counter()
    while True:
        turn = move_on(writer, goal=goal)
        task, role = turn.task, turn.role
        if not role:
            if status_of(writer.read()).pending and ask():
                continue
            return turn
        given[task, role] += 1
        if given[task, role] > MOST_RETRIES + 1:
            problems = [f"{role} had {MOST_RETRIES + 1} turns on {task}.", *broken_artifacts(writer.read(), role)]
            return NextActor(reason=" ".join([*problems, "The session does not go on."]))
        document, before = start_turn(writer, turn), writer.read()
        output: AgentOutput | str = ""
        try:
            output = work(document)
        finally:  # however the agent ended: the next turn believes the files
            after = writer.read()
            if (worked_on := before.task(task)) and not isinstance(output, str):
                status = status_after(before, worked_on, output_entry(task, role, output, writer.clock.now()))
                expected = with_operations(before, write_tasks(before, {task: status}))
                if expected.parts[TASKS_FILE] == after.parts[TASKS_FILE]:  # the agent gave its task that status
                    before = expected
            if forbidden := list(turn_findings(before, after, role)):
                raise refuse(f"{role} on {task}: the session's files changed in its turn.", forbidden)
        if isinstance(output, str):
            run.fail_agent(writer, task, role, output)
        elif stop := take_turn(writer, task, role, output)[1]:
            return stop
