"""The next moves of a session and its tasks: each with its open requirements and the command to type. Pure.

The moves and their needs are those that the machines judge by. A command names what only the caller knows in capitals:
QUESTION, ANSWER, REASON, STATE, OUTPUT.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from accord.core.frozen import Frozen
from accord.core.machine import Need, NextMove
from accord.sessions import reviews
from accord.sessions.folder import Session, status_of
from accord.sessions.machine import (
    IMPLEMENTATION,
    INTEGRATION,
    LOOP_BASE,
    MACHINES,
    NEVER,
    AttemptedMove,
    files_needed,
    needs_of,
    passed_open,
)
from accord.sessions.models import CORRECTORS, GATE_OF, GATES, LOOPS, REVIEWS, SessionTask
from accord.sessions.moves import (
    broken_files,
    check_state,
    command_of,
    is_decided,
    open_fix,
    spent_fix,
    task_facts,
)
from accord.sessions.policy import INTO, WRITERS
from accord.sessions.questions import GATE_QUESTIONS, dispatched_corrector, next_step

_ORCHESTRATOR = ("--role", "Orchestrator")
_TAKE = ("--take", "OUTPUT.json")
_DETOURS = ("ASK_USER", "BLOCKED")


class ProposedStep(Frozen):
    """A command by its name and what it is about."""

    name: str
    command: str  # to type
    task: str = ""
    role: str = ""
    target: str = ""  # a state, a status of a task, or a decision
    question: str = ""
    needs_goal: bool = False


class SessionMove(NextMove):
    """A move of a session or a task, with its next step as data."""

    step: ProposedStep


def next_moves(session: Session) -> list[SessionMove]:
    """Return the moves of a session from its state; none where its status cannot be read."""
    if session.status is None:
        return []
    wanted = AttemptedMove(session, blocker="REASON", reopens=True)
    targets = MACHINES[session.mode].targets(session.status.current_state)
    return [move for target in targets if (move := _move(target, wanted))]


def main_moves(session: Session) -> list[SessionMove]:
    """Return the moves that a person reads: without questions, blocks and fixes, unless these are next."""
    moves, is_broken = next_moves(session), _is_broken(session)
    is_behind = session.status is not None and session.status.current_state == "RELEASE"  # where no loop fixes it
    failed = {role for task in session.plan for role in session.record.failed_reviews(task.id)}
    loops = {reviews.LOOP_OF.get(role, "") for role in failed}
    shown = {*loops, "FIX_BUILD"} if is_broken else loops
    shown |= {*_DETOURS} if is_broken and is_behind else set()
    return [move for move in moves if move.to not in (*_DETOURS, *LOOPS) or move.to in shown] or moves


def _is_broken(session: Session) -> bool:
    is_red = session.status is not None and session.status.last_ci_result == "red"
    return is_red or session.record.held_agents.get("Integrator") == "FAIL"


def first_step(session: Session) -> ProposedStep:
    """Return the step to propose first; in a fix loop that of a task whose review failed."""
    is_fixing = status_of(session).current_state in LOOPS
    if is_fixing and any(session.record.failed_reviews(task.id) for task in session.plan):
        return next_task_step(session)
    return main_moves(session)[0].step


def task_moves(session: Session, task_id: str) -> list[SessionMove]:
    """Return the moves of a task from its status; none for a task that the session does not have."""
    task = session.task(task_id)
    return moves_of_tasks(session, [task])[task_id] if task else []


def moves_of_tasks(session: Session, tasks: Sequence[SessionTask]) -> dict[str, list[SessionMove]]:
    """Return the moves of tasks from their statuses, by task; what they share is found once."""
    if session.status is None:
        return {task.id: [] for task in tasks}
    next_task, detour = cache(lambda: next_task_step(session)), _detour(session)
    found = {}
    for task in tasks:
        moves = (_task_move(session, task, target, next_task, detour) for target in reviews.TASK.targets(task.status))
        found[task.id] = [move for move in moves if move]
    return found


def _command(session: Session, name: str, *words: str, **about: Any) -> ProposedStep:
    return ProposedStep(name, command_of(session, name, *words), **about)


def _dispatch(session: Session, task: str, role: str, *words: str, needs_goal: bool = False) -> ProposedStep:
    """Return the step that gives an agent a task, or first that to a file or a decision that it needs."""
    if spent := spent_fix(session, role, task):
        return _ask_step(session, *spent)
    if broken := broken_files(session, role, task):
        return _step(session, Need("", "", broken[0]))
    words = words or (*(("--goal", "GOAL") if needs_goal else ()), "--into", INTO)
    words = (task, "--role", role, *words)
    return _command(session, "dispatch", *words, task=task, role=role, needs_goal=needs_goal)


def taking_step(session: Session, task: str, role: str) -> ProposedStep:
    """Return the step that takes an agent's output."""
    words = (task, "--role", role, *_TAKE)
    return _command(session, "dispatch", *words, task=task, role=role)


def _task_command(session: Session, task: str, target: str) -> ProposedStep:
    return _command(session, "task", task, "--to", target, *_ORCHESTRATOR, task=task, target=target)


def _waiver(session: Session, task: str) -> ProposedStep:
    """Return the step with which the Orchestrator, but no turn by itself, completes a task without its reviews."""
    words = (task, "--to", "completed", *_ORCHESTRATOR, "--waive-reviews", "REASON")
    return replace(_command(session, "task", *words, task=task, target="completed"), name="waive")


def _fix(session: Session, task: str, loop: str) -> ProposedStep:
    return _command(session, "fix", task, loop, *_ORCHESTRATOR, task=task, target=loop)


def following_commands(session: Session, task: str, role: str) -> list[str]:
    """Return the commands after an agent's start: to take its output, or to move on once it wrote the state's files."""
    own = {name for name, roles in WRITERS.items() if roles[0] == role}
    targets = [move.to for move in next_moves(session) if own.intersection(move.missing)]
    steps = [taking_step(session, task, role), *(_advance(session, target) for target in targets[:1])]
    return [step.command for step in steps]


def _advance(session: Session, target: str, *words: str) -> ProposedStep:
    return _command(session, "advance", "--to", target, *words, *_ORCHESTRATOR, target=target)


def _move(target: str, wanted: AttemptedMove) -> SessionMove | None:
    session, state = wanted.session, wanted.status.current_state
    task = _fixable(session, target) if target in LOOPS else ""
    if target in LOOPS and not task:
        return None
    needs = needs_of(state, target, replace(wanted, task=task))
    if any(need.key == NEVER for need in needs):
        return None
    fix = open_fix(session) if target == LOOP_BASE.get(state) and not needs else None
    if needs:
        step = _step(session, needs[0])
    elif fix:
        step = _dispatch(session, *fix)
    elif target == "BLOCKED":
        step = _advance(session, target, "--blocker", "REASON")
    elif target in LOOPS and LOOP_BASE[target] == state:
        step = _fix(session, task, target)
    else:
        step = _command(session, "reopen") if state == "DONE" else _advance(session, target)
    pending = [one.decision_id for one in wanted.status.pending]
    missing = dict.fromkeys(need.missing for need in needs if need.key not in pending)
    return SessionMove(target, (*missing,), step.command, step)


def _fixable(session: Session, loop: str) -> str:
    """Return the task that a fix loop is entered for: the first whose review failed, else the first that fits."""
    if loop == "FIX_BUILD" or status_of(session).current_state != LOOP_BASE[loop]:  # to come back needs no task
        return "meta"
    open_ = [task for task in session.plan if task.status in ("in-progress", "implemented", "blocked")]
    failed = [one for one in open_ if loop in map(reviews.LOOP_OF.get, session.record.failed_reviews(one.id))]
    return next((task.id for task in (*failed, *open_)), "")


def _step(session: Session, need: Need) -> ProposedStep:
    """Return the step that gets what a move needs; one that shows the session where only an edit does."""
    status, key = status_of(session), need.key
    gates = passed_open(session)
    if key in WRITERS and (
        status.current_state in (*_DETOURS, "DONE") or (gates and key in files_needed(GATES[gates[0]], session.mode))
    ):  # no agent works there: a person restores the file
        return _command(session, "show")
    if gates and (key in WRITERS or key.startswith("agent ")):
        return _gate_step(session, gates[0])
    if key in WRITERS:
        return _file_step(session, key)
    if key in GATES:
        return _gate_step(session, key)
    if key == "blocked_from" and not status.blocked_from:
        return _command(session, "set", "blocked_from=STATE", *_ORCHESTRATOR)
    if status.current_state == "INTEGRATE" and key in ("ci", "agent Integrator") and _is_broken(session):
        return _way(session, "FIX_BUILD")
    if key.startswith("agent "):
        return _dispatch(session, "meta", key.removeprefix("agent "))
    if key == "answer":
        return _command(session, "answer", *(f"{decision.decision_id}=ANSWER" for decision in status.pending))
    if key == "tasks":
        return next_task_step(session)
    return _ask_step(session, *key.split()[1:]) if key.startswith(("question", "ci")) else _command(session, "show")


def _ask_step(session: Session, *about: str) -> ProposedStep:
    """Return the step that asks the user, or that sets the count of a task and its loop back after the answer."""
    if about and is_decided(status_of(session), session.outputs, *about):
        return _command(session, "set", f"retry_counts.{'.'.join(about)}=0", *_ORCHESTRATOR)
    question = f"{' '.join(about)}: QUESTION" if about else "QUESTION"
    return _command(session, "ask", "--question", question, question=question)


def _file_step(session: Session, name: str) -> ProposedStep:
    """Return the step in which the writer of a file writes it, after the correction that another agent makes."""
    status = status_of(session)
    role = "SpecAgent" if session.mode == "lean" and name == "tasks.yaml" else WRITERS[name][0]
    sent = dispatched_corrector(status) if status.current_state == "APPROVE_DESIGN" else ""
    if sent and role in CORRECTORS:
        return _command(session, "show") if broken_files(session, sent, "meta") else taking_step(session, "meta", sent)
    return _dispatch(session, "meta", role, needs_goal=session.acceptance is None and role == "SpecAgent")


def _gate_step(session: Session, decision_id: str) -> ProposedStep:
    status = status_of(session)
    if GATE_OF.get(status.current_state) != decision_id:
        return _way(session, GATES[decision_id])
    step = next_step(session).next
    if step == "dispatch-correction":
        return _dispatch(session, "meta", "Architect")
    if step == "verify-correction":
        return _dispatch(session, "meta", dispatched_corrector(status) or "Architect", *_TAKE)
    decision = status.decision(decision_id)
    question = decision.question if decision else GATE_QUESTIONS[decision_id]
    words = ("--id", decision_id, "--question", question)
    return _command(session, "ask", *words, target=decision_id, question=question)


def _way(session: Session, target: str) -> ProposedStep:
    """Return the step of a move, or to what it needs; one that shows the session where nothing makes it legal."""
    is_edge = target in MACHINES[session.mode].targets(status_of(session).current_state)
    move = _move(target, AttemptedMove(session)) if is_edge else None
    return move.step if move else _command(session, "show")


def next_task_step(session: Session) -> ProposedStep:
    """Return the step for the first task that can go on, or for a gate that was passed without its answer."""
    if gates := passed_open(session):
        return _gate_step(session, gates[0])
    steps = (step for task in session.plan if (step := _task_step(session, task)))
    return next(steps, _command(session, "show"))


def _task_step(session: Session, task: SessionTask) -> ProposedStep | None:
    """Return the step that takes a task further; None where it is done or waits for other tasks."""
    is_open = task.status != "completed" or bool(session.record.missed_gates(task.id))
    if not is_open or status_of(session).current_state in INTEGRATION:
        return _way(session, "IMPLEMENT_LOOP") if is_open else None
    if task.status == "completed":
        return _missed_step(session, task)
    if task.status != "implemented" and session.waits_for(task):
        return None
    if task.status == "in-progress":
        return _dispatch(session, task.id, "Coder", *_TAKE)
    if task.status != "implemented":
        return _dispatch(session, task.id, "Coder")
    return next(_review_steps(session, task), _task_command(session, task.id, "completed"))


def _missed_step(session: Session, task: SessionTask) -> ProposedStep:
    """Return the step for a completed task without a review: to take it again after an interruption, or to go back."""
    step = next(_review_steps(session, task), None) if session.record.has_interrupted_review(task.id) else None
    if step and step.role:  # another role repairs a file first
        is_review = step.role in session.record.missed_gates(task.id)
        return taking_step(session, step.task, step.role) if is_review else step
    return _task_command(session, task.id, "implemented")


def _review_steps(session: Session, task: SessionTask) -> Iterator[ProposedStep | None]:
    """Yield the step to each review that an implemented task has not passed, None where it waits for other tasks."""
    status, record = status_of(session), session.record
    for role in record.failed_reviews(task.id):
        has_failed, loop = record.results[task.id][role] in reviews.FAILED, reviews.LOOP_OF.get(role, "")
        if has_failed and (spent := spent_fix(session, "Coder", task.id)):
            is_answered = is_decided(status, session.outputs, *spent)
            yield _waiver(session, task.id) if is_answered else _ask_step(session, *spent)
        elif role == "Coder" or (has_failed and status.current_state != "IMPLEMENT_LOOP"):
            yield None if session.waits_for(task) else _dispatch(session, task.id, "Coder")
        elif not has_failed:
            yield _dispatch(session, task.id, role)
        else:
            needs = needs_of("IMPLEMENT_LOOP", loop, AttemptedMove(session, task.id))
            yield _step(session, needs[0]) if needs else _fix(session, task.id, loop)
    strategy = reviews.strategy_of(status) if session.mode == "full" else ""
    is_last = session.is_implemented
    together = {"single-final": REVIEWS, "per-batch": ("Reviewer",) if is_last else ()}
    for role in record.open_gates(task.id):
        is_of_all = role in together.get(strategy, ())
        is_early = bool(session.waits_for(task)) if role == "Coder" else is_of_all and not is_last
        yield None if is_early else _dispatch(session, "meta" if is_of_all else task.id, role)


_Detour = tuple[tuple[str, ...], ProposedStep | None]


def _detour(session: Session) -> _Detour:
    """Return what a session needs before any of its tasks moves, and the step towards that."""
    if not check_state(session, IMPLEMENTATION, "tasks move"):
        return (), None
    waiting = ", ".join(one.decision_id for one in status_of(session).pending)
    needed = f"answers to {waiting}" if waiting else "IMPLEMENT_LOOP"
    return (needed,), next((move.step for move in next_moves(session)), None)


def _task_move(
    session: Session, task: SessionTask, target: str, next_task: Callable[[], ProposedStep], detour: _Detour
) -> SessionMove | None:
    """Return one move of a task; None where only a failed review makes it legal and none failed."""
    role = "Coder" if target == "in-progress" or (task.status, target) == ("in-progress", "implemented") else ""
    facts = task_facts(session, task, role or "Orchestrator")
    if task.status == "completed" and not facts.open_gates:
        return None
    gates = facts.open_gates if target == "completed" else ()
    missing, (needed, step) = facts.waits_for if role else gates, detour
    if step is None and role and missing:
        step = next_task()
    elif step is None and role:
        step = _dispatch(session, task.id, role, *(() if target == "in-progress" else _TAKE))
    elif step is None and missing:
        step = _task_step(session, task) or next_task()
    step = step or _task_command(session, task.id, target)
    return SessionMove(target, (*needed, *missing), step.command, step)
