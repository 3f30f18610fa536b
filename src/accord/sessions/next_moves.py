"""The next moves of a session and its tasks: each with its open requirements and the command to type. Pure.

The moves and their needs are those that the machines judge by. A command names what only the caller knows in capitals:
QUESTION, ANSWER, REASON, OUTPUT.json.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.core.moves import NextMove
from accord.sessions.folder import status_of
from accord.sessions.machine import (
    IMPLEMENTATION,
    INTEGRATION,
    LOOP_BASE,
    MACHINES,
    NEVER,
    ORDER,
    needs_of,
)
from accord.sessions.models import APPROVE_DESIGN, GATE_OF, GATES, LOOPS, REVIEW_STRATEGY
from accord.sessions.moves import check_state, facts_of, facts_of_task, task_facts
from accord.sessions.questions import dispatched_corrector, next_step
from accord.sessions.reviews import LOOP_OF, failed_reviews, open_gates, reviews_of, strategy_of, unreviewed_tasks
from accord.sessions.rules import MOST_RETRIES
from accord.sessions.task_machine import TASK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.sessions.folder import Session
    from accord.sessions.machine import Need, SessionFacts
    from accord.sessions.models import SessionTask

INTO = ".accord/dispatch"
_DETOURS = ("ASK_USER", "BLOCKED")
_WORK = frozenset(ORDER["full"][:-1])
_QUESTIONS = {
    APPROVE_DESIGN: "Is the design approved, or which changes are requested?",
    REVIEW_STRATEGY: "Review per-batch, or single-final?",
}
_WRITERS = {
    "spec.md": "SpecAgent",
    "acceptance.json": "SpecAgent",
    "architecture.md": "Architect",
    "tasks.yaml": "Planner",
    "report.md": "Docs",
}


def next_moves(session: Session) -> list[NextMove]:
    """Return the moves of a session from its state; none where its status cannot be read."""
    if session.status is None:
        return []
    facts = facts_of(session, blocker="REASON", reopens=True)
    return [move for target in _targets(session) if (move := _move(session, target, facts))]


def main_moves(session: Session) -> list[NextMove]:
    """Return the moves that a person reads: without questions, blocks and fixes, unless these are next."""
    moves = next_moves(session)
    status = session.status
    tasks = session.tasks.tasks if session.tasks else []
    loops = {LOOP_OF.get(role, "") for task in tasks for role in failed_reviews(task, session.outputs)}
    loops |= {"FIX_BUILD"} if status and status.last_ci_result == "red" else set()
    found = [move for move in moves if move.to not in _DETOURS and (move.to not in LOOPS or move.to in loops)]
    return found or moves


def task_moves(session: Session, task_id: str) -> list[NextMove]:
    """Return the moves of a task from its status; none for a task that the session does not have."""
    task = session.task(task_id)
    if task is None or session.status is None:
        return []
    moves = (_task_move(session, task, target) for target in TASK.targets(task.status))
    return [move for move in moves if move]


def _command(session: Session, name: str, *words: str) -> str:
    first = ["accord", "dispatch"] if name == "dispatch" else ["accord", "session", name]
    return shlex.join([*first, str(session.folder), *words])


def _dispatch(session: Session, task: str, role: str) -> str:
    return _command(session, "dispatch", task, "--role", role, "--into", INTO)


def taking(session: Session, task: str, role: str) -> str:
    """Return the command that takes an agent's output."""
    return _command(session, "dispatch", task, "--role", role, "--take", "OUTPUT.json")


def following(session: Session, task: str, role: str) -> list[str]:
    """Return the commands after an agent's start: to take its output, or to move on once it wrote the state's files."""
    targets = [move for move in next_moves(session) if any(_WRITERS.get(name) == role for name in move.missing)]
    return [taking(session, task, role), *(_entry(session, move.to) for move in targets[:1])]


def _advance(session: Session, target: str, *words: str) -> str:
    return _command(session, "advance", "--to", target, *words, "--role", "Orchestrator")


def _entry(session: Session, target: str) -> str:
    """Return the command that enters a state; the question of a gate that was never asked enters it, too."""
    status = status_of(session)
    gate = GATE_OF.get(target, "") if status.current_state in _WORK else ""
    return _ask_gate(session, gate) if gate and status.decision(gate) is None else _advance(session, target)


def _targets(session: Session) -> tuple[str, ...]:
    return MACHINES[session.mode].targets(status_of(session).current_state)


def _move(session: Session, target: str, facts: SessionFacts) -> NextMove | None:
    """Return one move; None where nothing that anyone does makes it legal."""
    state = status_of(session).current_state
    task = _fixable(session, target) if target in LOOPS else ""
    if target in LOOPS and not task:
        return None
    facts = replace(facts, **facts_of_task(session, task)) if task else facts
    needs = needs_of(state, target, session.mode, facts)
    if any(need.key == NEVER for need in needs):
        return None
    missing = dict.fromkeys(need.missing for need in needs if need.key not in facts.pending)
    if needs:
        command = _step(session, needs[0])
    elif target == "BLOCKED":
        command = _advance(session, target, "--blocker", "REASON")
    elif target in LOOPS and LOOP_BASE[target] == state:
        command = _command(session, "fix", task, target, "--role", "Orchestrator")
    else:
        command = _command(session, "reopen") if state == "DONE" else _entry(session, target)
    return NextMove(target, tuple(missing), command)


def _fixable(session: Session, loop: str) -> str:
    """Return the task that a fix loop is entered for: the first whose review failed, else the first that fits."""
    if status_of(session).current_state != LOOP_BASE[loop]:  # coming back to a loop needs no task
        return "meta"
    tasks = session.tasks.tasks if session.tasks else []
    if loop == "FIX_BUILD":
        return "meta"
    open_ = [task for task in tasks if task.status in ("in-progress", "implemented", "blocked")]
    failed = [one for one in open_ if loop in {LOOP_OF.get(r) for r in failed_reviews(one, session.outputs)}]
    return next((task.id for task in (*failed, *open_)), "")


def _step(session: Session, need: Need) -> str:
    """Return the command that gets what a move needs."""
    status = status_of(session)
    if need.key in _WRITERS:
        is_lean_plan = session.mode == "lean" and need.key == "tasks.yaml"
        role = "SpecAgent" if is_lean_plan else _WRITERS[need.key]
        goal = ("--goal", "GOAL") if session.acceptance is None and role == "SpecAgent" else ()
        return _command(session, "dispatch", "meta", "--role", role, *goal, "--into", INTO)
    if need.key == "answer":
        return _command(session, "answer", *(f"{decision.decision_id}=ANSWER" for decision in status.pending))
    if need.key in GATES:
        return _gate_step(session, need.key)
    if need.key == "tasks":
        return next_task_step(session)
    if need.key == "ci" and status.current_state == "INTEGRATE":
        return _command(session, "fix", "meta", "FIX_BUILD", "--role", "Orchestrator")
    if need.key == "ci":
        return _command(session, "set", "last_ci_result=green", "--role", "Integrator")
    if need.key == "question":
        return _command(session, "ask", "--question", "QUESTION")
    return _dispatch(session, "meta", need.key.removeprefix("agent "))


def _gate_step(session: Session, decision_id: str) -> str:
    status = status_of(session)
    if GATE_OF.get(status.current_state) != decision_id:
        return _advance(session, GATES[decision_id])
    step = next_step(session).next
    if step == "dispatch-correction":
        return _dispatch(session, "meta", "Architect")
    if step == "verify-correction":
        return taking(session, "meta", dispatched_corrector(status) or "Architect")
    return _ask_gate(session, decision_id)


def _ask_gate(session: Session, decision_id: str) -> str:
    decision = status_of(session).decision(decision_id)
    question = decision.question if decision else _QUESTIONS[decision_id]
    return _command(session, "ask", "--id", decision_id, "--question", question)


def next_task_step(session: Session) -> str:
    """Return the command for the first task that can go on."""
    tasks = session.tasks.tasks if session.tasks else []
    steps = (step for task in tasks if (step := _task_step(session, task)))
    return next(steps, _command(session, "show"))


def _task_step(session: Session, task: SessionTask) -> str:
    """Return the command that takes a task further; empty where it is done or waits for other tasks."""
    if task.status == "completed":
        is_open = bool(unreviewed_tasks([task], session.outputs))
        return _task_command(session, task, "implemented") if is_open else ""
    if status_of(session).current_state in INTEGRATION:
        return _advance(session, "IMPLEMENT_LOOP")
    if task.status == "in-progress":
        return taking(session, task.id, "Coder")
    if task.status != "implemented":
        is_waiting = bool(session.tasks and session.tasks.waits_for(task))
        return "" if is_waiting else _dispatch(session, task.id, "Coder")
    return next(_review_steps(session, task), _task_command(session, task, "completed"))


def _review_steps(session: Session, task: SessionTask) -> Iterator[str]:
    """Yield the command for the first review that an implemented task has not passed."""
    status, outputs = status_of(session), session.outputs
    results = reviews_of(task, outputs)
    for role in failed_reviews(task, outputs):
        loop = LOOP_OF.get(role, "")
        if role == "Coder" or (results[role] in ("FAIL", "BLOCKED") and status.current_state != "IMPLEMENT_LOOP"):
            yield _dispatch(session, task.id, "Coder")
        elif results[role] not in ("FAIL", "BLOCKED"):
            yield _dispatch(session, task.id, role)
        elif status.retries(task.id, loop) >= MOST_RETRIES:
            yield _command(session, "ask", "--question", "QUESTION")
        else:
            yield _command(session, "fix", task.id, loop, "--role", "Orchestrator")
    is_single = session.mode == "full" and strategy_of(status) == "single-final"
    others = session.tasks.tasks if session.tasks else []
    is_early = is_single and any(other.status not in ("implemented", "completed") for other in others)
    for role in open_gates(task, outputs):
        yield "" if is_early else _dispatch(session, "meta" if is_single else task.id, role)


def _task_command(session: Session, task: SessionTask, target: str) -> str:
    return _command(session, "task", task.id, "--to", target, "--role", "Orchestrator")


def _task_move(session: Session, task: SessionTask, target: str) -> NextMove | None:
    """Return one move of a task; None where only a failed review makes it legal and none failed."""
    role = "Coder" if target == "in-progress" or (task.status, target) == ("in-progress", "implemented") else ""
    facts = task_facts(session, task, role or "Orchestrator")
    if task.status == "completed" and not facts.open_gates:
        return None
    command = _task_command(session, task, target)
    missing: tuple[str, ...] = ()
    if target == "in-progress":
        missing, command = facts.waits_for, _dispatch(session, facts.waits_for[0] if facts.waits_for else task.id, role)
    elif role:
        command = taking(session, task.id, role)
    elif target == "completed" and facts.open_gates:
        missing, command = facts.open_gates, _task_step(session, task) or next_task_step(session)
    if check_state(session, IMPLEMENTATION, "tasks move"):
        missing = ("IMPLEMENT_LOOP", *missing)
        command = next((move.command for move in next_moves(session)), command)
    return NextMove(target, missing, command)
