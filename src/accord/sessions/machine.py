"""The states of sessions as tables: their order, the files each needs, and the guards of every move.

Source: global agent contract, "Artifact content validation (gates)", "ASK_USER protocol"; the edges of the
session are accord's decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise

from accord.core.findings import names_of
from accord.core.frozen import Frozen
from accord.core.machine import Edge, Machine, Need
from accord.sessions.decision_rules import check_gate, return_state, working_state
from accord.sessions.folder import OUTPUTS_FILE, Session, status_of
from accord.sessions.models import (
    APPROVE_DESIGN,
    GATE_OF,
    GATES,
    REVIEW_STRATEGY,
    REVIEWS,
    SessionMode,
    SessionStatus,
)
from accord.sessions.policy import REPORTERS
from accord.sessions.reviews import ReviewRecord, lacks_final_review, lacks_report
from accord.sessions.rules import MOST_RETRIES, STATES_OF_OTHER_MODE

APPROVAL, STRATEGY = GATES[APPROVE_DESIGN], GATES[REVIEW_STRATEGY]
ORDER: dict[str, tuple[str, ...]] = {
    "full": ("INTAKE", "DESIGN", APPROVAL, "PLAN", STRATEGY, "IMPLEMENT_LOOP", "INTEGRATE", "RELEASE", "DONE"),
    "lean": ("INTAKE_LEAN", "IMPLEMENT_LOOP", "INTEGRATE", "DONE"),
}
"""The states of a session that needs no fixes and no questions."""

LOOP_BASE = {**dict.fromkeys(("FIX_REVIEW", "FIX_TESTS", "FIX_SECURITY"), "IMPLEMENT_LOOP"), "FIX_BUILD": "INTEGRATE"}
"""The fix loops, each with the state that it leaves and returns to."""

_FIRST_NEEDED = {
    "full": {
        "spec.md": "DESIGN",
        "acceptance.json": "DESIGN",
        "architecture.md": "APPROVE_DESIGN",
        "tasks.yaml": "REVIEW_STRATEGY",
        "report.md": "DONE",
    },
    "lean": {**dict.fromkeys(("spec.md", "acceptance.json", "tasks.yaml"), "IMPLEMENT_LOOP"), "report.md": "DONE"},
}


def is_at_least(state: str, wanted: str, mode: SessionMode) -> bool:
    """Return whether a state is ``wanted`` or comes after it; a state outside the order comes before all."""
    order = ORDER[mode]
    state = LOOP_BASE.get(state, state)
    return state in order and wanted in order and order.index(state) >= order.index(wanted)


def gates_before(state: str, mode: SessionMode) -> tuple[str, ...]:
    """Return the decisions of the gates that a session has passed when it is in a state."""
    return tuple(name for name, gate in GATES.items() if state != gate and is_at_least(state, gate, mode))


def files_needed(state: str, mode: SessionMode) -> tuple[str, ...]:
    """Return the files whose content must be valid before a session enters a state."""
    return tuple(name for name, first in _FIRST_NEEDED[mode].items() if is_at_least(state, first, mode))


IMPLEMENTATION = ("IMPLEMENT_LOOP", "FIX_REVIEW", "FIX_TESTS", "FIX_SECURITY")
"""The states in which tasks are worked on."""

INTEGRATION = ("INTEGRATE", "FIX_BUILD", "RELEASE")
_PLANNING = ("PLAN", STRATEGY)
_DESIGN = ("DESIGN", APPROVAL)
_WORKING = ("INTAKE", "INTAKE_LEAN", *_DESIGN, *_PLANNING, *IMPLEMENTATION, *INTEGRATION)

WORK_STATES: Mapping[str, tuple[str, ...]] = {
    "SpecAgent": _WORKING,
    "Researcher": (*_WORKING, "ASK_USER"),
    "Orchestrator": _WORKING,
    **dict.fromkeys(("Architect", "Designer"), (*_DESIGN, *_PLANNING, *IMPLEMENTATION, *INTEGRATION)),
    "Planner": (*_PLANNING, *IMPLEMENTATION, *INTEGRATION),
    "Coder": IMPLEMENTATION,
    **dict.fromkeys((*REVIEWS, "Integrator", "Docs"), (*IMPLEMENTATION, *INTEGRATION)),
}
"""The states in which each agent is dispatched and its output taken: not before its work begins."""

AGENTS_OF: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("INTAKE", "INTAKE_LEAN"), ("SpecAgent",)),
    "DESIGN": ("Researcher", "Architect", "Designer"),
    "PLAN": ("Planner",),
    "INTEGRATE": ("Integrator",),
    "RELEASE": REPORTERS,
}
"""The agents whose last output on ``meta`` must be OK before a session goes on from a state, if they gave one."""


NEVER = "never"
"""The name of a need that nothing fulfils: the move is not one from where the session is."""


class AttemptedMove(Frozen):
    """A move of a session, with what only its caller knows; ``record`` are the results of reviews at its time."""

    session: Session
    task: str = ""  # the one that a fix loop is for
    blocker: str = ""
    reopens: bool = False
    adds_tasks: bool = False  # tasks that are new were open once
    record_then: ReviewRecord | None = None

    @property
    def status(self) -> SessionStatus:
        """The status of the session. Raises BrokenContract where it cannot be read."""
        return status_of(self.session)

    @property
    def record(self) -> ReviewRecord:
        """The results that the outputs gave the tasks and ``meta`` by then."""
        return self.record_then or self.session.record


Guard = Callable[[AttemptedMove, str, str], Iterator[Need]]
"""Yields what a move from one state to another still needs."""


def passed_open(session: Session) -> list[str]:
    """Return the decisions of the gates that a session passed without their answers."""
    status = status_of(session)
    return [name for name in gates_before(working_state(status), session.mode) if check_gate(status, name)]


def _files(move: AttemptedMove, _: str, target: str) -> Iterator[Need]:
    for name in files_needed(target, move.session.mode):
        part = move.session.parts[name]
        if problem := part.problem:
            how = "Write" if part.is_missing else "Correct"
            yield Need(f"{problem} {how} it.", name if part.is_missing else problem, name)


def _gates(move: AttemptedMove, _: str, target: str) -> Iterator[Need]:
    for name in gates_before(target, move.session.mode):
        if reason := check_gate(move.status, name):
            yield Need(f"{reason} Ask the user first.", name, name)


def _answers(move: AttemptedMove, *_: str) -> Iterator[Need]:
    if names := ", ".join(one.decision_id for one in move.status.pending):
        yield Need(f"Questions wait for the user: {names}. Resolve them first.", f"answers to {names}", "answer")


def _tasks(move: AttemptedMove, *_: str) -> Iterator[Need]:
    part = move.session.parts[OUTPUTS_FILE]
    if part.problem and not part.is_missing:
        text = f"The reviews cannot be read, so it is unknown which passed. {part.problem} Correct it."
        yield Need(text, part.problem, "outputs")
    if move.session.unfinished:
        names = names_of(move.session.unfinished)
        yield Need(f"These tasks are not completed: {names}. Complete them.", f"completed tasks: {names}", "tasks")
    if unreviewed := move.record.unreviewed:
        names = names_of([f"{name} ({', '.join(gates)})" for name, gates in unreviewed.items()], between="; ")
        is_cut_off = any(map(move.record.has_interrupted_review, unreviewed))
        again = "Repeat `accord dispatch --take` where it was interrupted. Otherwise, have" if is_cut_off else "Have"
        how = "them reviewed, or waive that with `accord session task` in IMPLEMENT_LOOP."
        text = f"These tasks are completed without their reviews: {names}. {again} {how}"
        yield Need(text, f"reviews: {names}", "tasks")


def _final_review(move: AttemptedMove, *_: str) -> Iterator[Need]:
    is_kept_here = bool(move.record.last) or working_state(move.status) in IMPLEMENTATION
    if is_kept_here and lacks_final_review(move.session.mode, move.status, move.record):
        text = "The session needs a final review. Get an OK of the Reviewer for `meta` after the last work."
        yield Need(text, "final review of meta", "agent Reviewer")


def _ci(move: AttemptedMove, source: str, _: str) -> Iterator[Need]:
    if move.status.last_ci_result == "red":
        how = "Fix the build in FIX_BUILD first." if source == "INTEGRATE" else "Ask the user how to go on."
        yield Need(f"CI is red. {how}", "CI that is not red", "ci")


def _agents(move: AttemptedMove, source: str, _: str) -> Iterator[Need]:
    held = move.record.held_agents
    for role in AGENTS_OF.get(source, ()):
        if role in held:
            text = f"The last output of {role} is not OK: {held[role]}. Dispatch it again."
            yield Need(text, f"OK of {role}", f"agent {role}")


_WAIVING = "waive that with `accord session task DIR meta --to completed --role Orchestrator --waive-reviews REASON`"


def _integration(move: AttemptedMove, *_: str) -> Iterator[Need]:
    if move.record.last and "Integrator" not in {*move.record.passed_meta, *move.record.held_agents}:
        text = f"The Integrator gave no OK for `meta` after the last work. Dispatch it, or {_WAIVING}."
        yield Need(text, "OK of Integrator", "agent Integrator")


def _report(move: AttemptedMove, *_: str) -> Iterator[Need]:
    if lacks_report(move.status, move.session.outputs, move.record):
        text = f"The session was reopened and worked on, but no report followed. Dispatch Docs, or {_WAIVING}."
        yield Need(text, "a new report.md", "agent Docs")


def _reopen_request(move: AttemptedMove, *_: str) -> Iterator[Need]:
    if not move.reopens:
        text = "The session is done and read-only. Reopen it with `accord session reopen`."
        yield Need(text, "a reopened session", "reopen")


def _blocker(move: AttemptedMove, *_: str) -> Iterator[Need]:
    if not move.blocker.strip():
        yield Need("BLOCKED needs what blocks the session. Say it with `--blocker`.", "a blocker")


def _failed_review(move: AttemptedMove, *_: str) -> Iterator[Need]:
    if not (move.adds_tasks or move.session.unfinished or move.record.unreviewed):
        yield Need("All tasks are completed. Only a failed review leads back to them.", "a failed review", NEVER)


def _open_gate(move: AttemptedMove, _: str, target: str) -> Iterator[Need]:
    if GATE_OF.get(target) not in passed_open(move.session):
        text = f"The session did not pass {target} without its answer. Choose another state."
        yield Need(text, "an open gate", NEVER)


def _question(move: AttemptedMove, source: str, _: str) -> Iterator[Need]:
    asked = [one.state_context for one in move.status.pending if one.decision_id not in GATES]  # a gate asks by itself
    if source not in asked:
        text = f"No question from {source} is pending. Write it with `accord session ask` first."
        yield Need(text, "a question", "question")


def _return(move: AttemptedMove, source: str, target: str) -> Iterator[Need]:
    asks, mode = source == "ASK_USER", move.session.mode
    key = "state_context" if asks else "blocked_from"
    state = (return_state(move.status) or "no state") if asks else move.status.blocked_from
    if state == target or GATE_OF.get(target) in passed_open(move.session):
        return
    if state and state not in STATES_OF_OTHER_MODE[mode]:
        what = "The questions came up" if asks else "The session was blocked"
        yield Need(f"{what} in {state}. The session can only return there.", f"a return to {target}", NEVER)
    else:
        lacks = f"A {mode} session has no state {state}" if state else "The state before the block is not recorded"
        yield Need(f"{lacks}. {'Correct' if asks else 'Set'} `{key}` in status.json.", key, key)


def _fixable(move: AttemptedMove, source: str, loop: str) -> Iterator[Need]:
    statuses = ("completed",) if source == "INTEGRATE" else ("in-progress", "implemented", "blocked")
    task = move.session.task(move.task)
    if not move.task:
        yield Need(f"{loop} needs a task. Enter it with `accord session fix`.", "a task that can be fixed", NEVER)
    elif task and task.status not in statuses:
        text = f"{task.id} is {task.status}. {loop} takes a task that is {' or '.join(statuses)}, or meta."
        yield Need(text, "a task that can be fixed", NEVER)
    entered = [(move.task, loop), *move.session.fixed_loops(move.task, "Coder")]
    spent = [name for name, one in entered if one == loop and move.status.retries(name, loop) >= MOST_RETRIES]
    if spent:
        how = "whether to try another approach, accept it with known issues, simplify it, or give guidance"
        text = f"{spent[-1]} went through {loop} {MOST_RETRIES} times, the limit. Go to ASK_USER and ask {how}."
        yield Need(text, "a decision of the user", f"question {spent[-1]} {loop}")


_REVIEWED: tuple[Guard, ...] = (_tasks, _final_review)
_STEPS: dict[tuple[str, str], tuple[str, tuple[Guard, ...]]] = {
    (APPROVAL, "PLAN"): ("design approved", ()),
    (STRATEGY, "IMPLEMENT_LOOP"): ("strategy chosen", ()),
    ("IMPLEMENT_LOOP", "INTEGRATE"): ("all tasks completed and reviewed", _REVIEWED),
    ("INTEGRATE", "RELEASE"): ("all tasks completed, CI not red, Integrator passed", (*_REVIEWED, _ci, _integration)),
    ("INTEGRATE", "DONE"): ("all tasks completed, CI not red, report", (*_REVIEWED, _ci, _report)),
    ("RELEASE", "DONE"): ("all tasks completed, CI not red, report", (*_REVIEWED, _ci, _report)),
}
"""Labels and guards of single steps forward; every step needs valid files, passed gates and no pending question."""


def _edges(mode: SessionMode) -> Iterator[tuple[str, str, str, tuple[Guard, ...]]]:
    working = [*ORDER[mode][:-1], *LOOP_BASE]
    for source, target in pairwise(ORDER[mode]):
        label, guards = _STEPS.get((source, target), ("files are valid", ()))
        yield source, target, label, (_answers, *guards, _agents)
    for loop, base in LOOP_BASE.items():
        yield base, loop, f"at most {MOST_RETRIES} times a task", (_answers, _fixable)
        yield loop, base, "", (_answers,)
    for state in working:
        yield state, "ASK_USER", "a question waits", (_question,)
        yield "ASK_USER", state, "state_context", (_answers, _return)
    for state in (*working, "ASK_USER"):
        yield state, "BLOCKED", "", (_blocker,)
        yield "BLOCKED", state, "blocked_from", (_return,)
    # back to tasks that a review opened again, and to gates that were passed without an answer
    yield "DONE", "IMPLEMENT_LOOP", "reopened", (_reopen_request,)
    for state in INTEGRATION:
        if state in working:
            yield state, "IMPLEMENT_LOOP", "a review failed", (_answers, _failed_review)
    for decision_id, gate in GATES.items() if mode == "full" else ():
        for state in working:
            if decision_id in gates_before(state, mode):
                yield state, gate, "not answered", (_answers, _open_gate)
        yield "DONE", gate, "not answered", (_reopen_request, _open_gate)


def needs_of(source: str, target: str, move: AttemptedMove) -> tuple[Need, ...]:
    """Return what a move of the machine still needs; none where it is legal."""
    entry = () if target in ("ASK_USER", "BLOCKED") else (_files, _gates)
    guards = (*_GUARDS[move.session.mode, source, target], *entry)
    return tuple(need for guard in guards for need in guard(move, source, target))


def _refusal(source: str, target: str, move: AttemptedMove) -> str:
    return " ".join(need.text for need in needs_of(source, target, move))


_NAMES: dict[SessionMode, str] = {"full": "session", "lean": "lean session"}
_GUARDS = {(mode, source, target): guards for mode in _NAMES for source, target, _, guards in _edges(mode)}
MACHINES: Mapping[SessionMode, Machine[AttemptedMove]] = {
    mode: Machine(
        name,
        ORDER[mode][0],
        frozenset({"DONE"}),
        tuple(Edge(source, end, label, partial(_refusal, source, end)) for source, end, label, _ in _edges(mode)),
    )
    for mode, name in _NAMES.items()
}
SESSION, LEAN = MACHINES["full"], MACHINES["lean"]

_GUARDS_OF_FILES = (_tasks, _final_review, _agents, _integration, _failed_review, _open_gate)
"""The guards whose facts the files of a session show, so that they also judge a move that was made in between."""


def refusal_of_way(
    source: str, target: str, last: AttemptedMove, earlier: Callable[[], Iterable[AttemptedMove]]
) -> str | None:
    """Return why no moves lead from one state of work to another; None where they do.

    ``last`` has the session after the moves, and ``earlier`` yields those from before and between them; one that
    fulfils all guards of a move is enough. DONE is read-only: the move into it is the last one, and all its guards
    count.
    """
    mode = last.session.mode

    def refusal(begin: str, end: str) -> str:
        is_last = end == "DONE"
        judged = [guard for guard in _GUARDS[mode, begin, end] if is_last or guard in _GUARDS_OF_FILES]

        def needs(one: AttemptedMove) -> Iterator[Need]:
            return (need for guard in judged for need in guard(one, begin, end))

        open_needs = [*needs(last)]
        is_made = not is_last and any(not any(needs(one)) for one in earlier()) if open_needs else True
        return "" if is_made else " ".join(need.text for need in open_needs)

    reached, refused = [source], dict[str, str]()
    for state in reached:
        for kind, begin, end in _GUARDS:
            if (kind, begin) == (mode, state) and end not in (*reached, "ASK_USER", "BLOCKED"):
                if text := refusal(begin, end):
                    refused[end] = text
                elif end == target:
                    return None
                elif end != "DONE":
                    reached.append(end)
    nearest = (target, *reversed(ORDER[mode]))
    on_way = (state for state in nearest if state == target or is_at_least(target, state, mode))
    return next((refused[state] for state in on_way if state in refused), "")
