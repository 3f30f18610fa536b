"""The states of sessions as tables: their order, the files each needs, and the guard of every move.

Source: global agent contract, "Artifact content validation (gates)", "ASK_USER protocol"; the edges of the
session are accord's decision. ``plan`` gathers the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from accord.core.machine import Edge, Machine
from accord.sessions.models import APPROVE_DESIGN, GATES, REVIEW_STRATEGY
from accord.sessions.reviews import REVIEWS
from accord.sessions.rules import MOST_RETRIES
from accord.sessions.times import is_before

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.sessions.models import Mode, SessionStatus, UserDecision

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


def is_at_least(state: str, wanted: str, mode: Mode) -> bool:
    """Return whether a state is ``wanted`` or comes after it; a state outside the order comes before all."""
    order = ORDER[mode]
    state = LOOP_BASE.get(state, state)
    return state in order and wanted in order and order.index(state) >= order.index(wanted)


def gates_before(state: str, mode: Mode) -> tuple[str, ...]:
    """Return the decisions of the gates that a session has passed when it is in a state."""
    return tuple(name for name, gate in GATES.items() if state != gate and is_at_least(state, gate, mode))


def files_needed(state: str, mode: Mode) -> tuple[str, ...]:
    """Return the files whose content must be valid before a session enters a state."""
    return tuple(name for name, first in _FIRST_NEEDED[mode].items() if is_at_least(state, first, mode))


def return_state(status: SessionStatus) -> str:
    """Return the state in which the newest question came up, pending ones first, gates last; empty without one."""
    questions = status.pending or status.user_decisions
    newest: UserDecision | None = None
    for decision in [one for one in questions if one.decision_id not in GATES] or questions:
        if newest is None or not is_before(decision.asked_at, newest.asked_at):
            newest = decision
    return newest.state_context if newest else ""


def working_state(status: SessionStatus) -> str:
    """Return the state that work is in, also while the session asks or is blocked; empty when it is not recorded."""
    state: str = status.current_state
    if state == "BLOCKED":
        state = status.blocked_from or ""
    return return_state(status) if state == "ASK_USER" else state


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
    "RELEASE": ("Docs", "Integrator"),
}
"""The agents whose last output on ``meta`` must be OK before a session goes on from a state, if they gave one."""


@dataclass(frozen=True)
class Need:
    """One requirement of a move: a sentence for its refusal, its short form, and a name for the way to get it."""

    text: str
    missing: str
    key: str = ""


NEVER = "never"
"""The name of a need that nothing fulfils: the move is not one from where the session is."""

Guard = Callable[["SessionFacts"], Iterator[Need]]


@dataclass(frozen=True)
class SessionFacts:
    """The facts that the guards of a session read."""

    state: str = ""  # the one that work is in
    problems: Mapping[str, str] = field(default_factory=dict)  # by file
    gates: Mapping[str, str] = field(default_factory=dict)  # why decisions do not let the session pass
    pending: Mapping[str, str] = field(default_factory=dict)  # open decisions, with the states in which they came up
    unfinished: tuple[str, ...] = ()
    unreviewed: tuple[str, ...] = ()  # completed tasks with reviews that have not passed
    lacks_final_review: bool = False
    held: Mapping[str, str] = field(default_factory=dict)  # agents with an output that is not OK
    ci_result: str = "unknown"
    returns_to: str = ""
    blocked_from: str = ""
    blocker: str = ""
    task: str = ""
    task_status: str = ""
    retries: Mapping[str, int] = field(default_factory=dict)  # the fix loops of the task
    reopens: bool = False


def _files(target: str, mode: Mode) -> Guard:
    names = files_needed(target, mode)

    def guard(facts: SessionFacts) -> Iterator[Need]:
        for name in names:
            if problem := facts.problems.get(name):
                yield Need(problem, name if problem == f"{name} is missing." else problem, name)

    return guard


def _check_answers(facts: SessionFacts) -> Iterator[Need]:
    if facts.pending:
        yield Need(
            f"Questions wait for the user: {', '.join(facts.pending)}. Resolve them first.",
            f"answers to {', '.join(facts.pending)}",
            "answer",
        )


def _check_gates(target: str, mode: Mode) -> Guard:
    names = gates_before(target, mode)

    def guard(facts: SessionFacts) -> Iterator[Need]:
        for name in names:
            if name in facts.gates:
                yield Need(facts.gates[name], name, name)

    return guard


_NAMED = 10


def _first_names(names: Sequence[str], between: str) -> str:
    """Name the first tasks, and say how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{between.join(names[:_NAMED])}{more}"


def _check_tasks(facts: SessionFacts) -> Iterator[Need]:
    if facts.unfinished:
        names = _first_names(facts.unfinished, ", ")
        yield Need(f"These tasks are not completed: {names}.", f"completed tasks: {names}", "tasks")
    if facts.unreviewed:
        names = _first_names(facts.unreviewed, "; ")
        yield Need(f"These tasks are completed without their reviews: {names}.", f"reviews: {names}", "tasks")


def _final_review(facts: SessionFacts) -> Iterator[Need]:
    if facts.lacks_final_review:
        text = "The strategy per-batch needs a final review: an OK of the Reviewer for `meta` after the last work."
        yield Need(text, "final review of meta", "agent Reviewer")


def _check_ci(facts: SessionFacts) -> Iterator[Need]:
    if facts.ci_result == "red":
        yield Need("CI is red. Fix the build in FIX_BUILD first.", "CI that is not red", "ci")


def _check_agents(source: str) -> Guard:
    def guard(facts: SessionFacts) -> Iterator[Need]:
        for role in AGENTS_OF.get(source, ()):
            if role in facts.held:
                text = f"The last output of {role} is not OK: {facts.held[role]}. Dispatch it again."
                yield Need(text, f"OK of {role}", f"agent {role}")

    return guard


def _check_reopened(facts: SessionFacts) -> Iterator[Need]:
    if not facts.reopens:
        text = "The session is done and read-only. Reopen it with `accord session reopen`."
        yield Need(text, "a reopened session", "reopen")


def _open_gate(decision_id: str, mode: Mode) -> Guard:
    """Return the guard of a way back to a gate that a session passed without its answer."""

    def guard(facts: SessionFacts) -> Iterator[Need]:
        if decision_id not in facts.gates or decision_id not in gates_before(facts.state, mode):
            yield Need(f"The session did not pass {GATES[decision_id]} without its answer.", "an open gate", NEVER)

    return guard


def _check_question(source: str) -> Guard:
    def guard(facts: SessionFacts) -> Iterator[Need]:
        if source not in facts.pending.values():
            text = f"No question from {source} is pending. Write it with `accord session ask` first."
            yield Need(text, "a question", "question")

    return guard


def _check_return(target: str) -> Guard:
    def guard(facts: SessionFacts) -> Iterator[Need]:
        if facts.returns_to != target:
            state = facts.returns_to or "no state"
            text = f"The questions came up in {state}. The session can only return there."
            yield Need(text, f"a question of {target}", NEVER)

    return guard


def _check_block(target: str) -> Guard:
    def guard(facts: SessionFacts) -> Iterator[Need]:
        if not facts.blocked_from:
            yield Need("The state before the block is not recorded. Set `blocked_from` in status.json.", "blocked_from")
        elif facts.blocked_from != target:
            text = f"The session was blocked in {facts.blocked_from} and can only return there."
            yield Need(text, f"a block in {target}", NEVER)

    return guard


def _has_blocker(facts: SessionFacts) -> Iterator[Need]:
    if not facts.blocker.strip():
        yield Need("BLOCKED needs what blocks the session. Say it with `--blocker`.", "a blocker")


def _check_unfinished(facts: SessionFacts) -> Iterator[Need]:
    if not facts.unfinished:
        yield Need("All tasks are completed. Only a failed review leads back to them.", "a failed review", NEVER)


def _fixable(loop: str) -> Guard:
    statuses = ("in-progress", "implemented", "blocked") if LOOP_BASE[loop] == "IMPLEMENT_LOOP" else ("completed",)

    def guard(facts: SessionFacts) -> Iterator[Need]:
        if not facts.task:
            yield Need(f"{loop} needs a task. Enter it with `accord session fix`.", "a task that can be fixed", NEVER)
        elif facts.task != "meta" and facts.task_status not in statuses:
            text = f"{facts.task} is {facts.task_status}. {loop} takes a task that is {' or '.join(statuses)}, or meta."
            yield Need(text, "a task that can be fixed", NEVER)
        if facts.retries.get(loop, 0) >= MOST_RETRIES:
            how = "whether to try another approach, accept it with known issues, simplify it, or give guidance"
            text = f"{facts.task} went through {loop} {MOST_RETRIES} times, the limit. Go to ASK_USER and ask {how}."
            yield Need(text, "a decision of the user", "question")

    return guard


def _all(*guards: Guard) -> Guard:
    return lambda facts: (need for guard in guards for need in guard(facts))


def _either(first: Guard, second: Guard) -> Guard:
    """Return a guard that needs nothing where one of two guards does; else it names the needs of the first."""
    return lambda facts: iter(() if not list(second(facts)) else first(facts))


_LABELS: dict[tuple[str, str], tuple[str, Guard]] = {
    (APPROVAL, "PLAN"): ("design approved", _all()),
    (STRATEGY, "IMPLEMENT_LOOP"): ("strategy chosen", _all()),
    ("IMPLEMENT_LOOP", "INTEGRATE"): ("all tasks completed and reviewed", _all(_check_tasks, _final_review)),
    ("INTEGRATE", "RELEASE"): ("all tasks completed, CI not red", _all(_check_tasks, _check_ci)),
    ("INTEGRATE", "DONE"): ("all tasks completed, CI not red, report", _all(_check_tasks, _check_ci)),
    ("RELEASE", "DONE"): ("all tasks completed, CI not red, report", _all(_check_tasks, _check_ci)),
}
"""Requirements of single moves besides valid files, passed gates and no pending question."""

_Edges = dict[tuple[str, str], tuple[str, Guard]]


def _edges(mode: Mode) -> _Edges:
    """Return every move of a mode with its label and its guard."""
    edges: _Edges = {}
    for source, target, label, guard in (*_path(mode), *_detours(mode), *_ways_back(mode)):
        entry = () if target in ("ASK_USER", "BLOCKED") else (_files(target, mode), _check_gates(target, mode))
        edges[source, target] = (label, _all(guard, *entry))
    return edges


def _working(mode: Mode) -> list[str]:
    return [*ORDER[mode][:-1], *LOOP_BASE]


def _path(mode: Mode) -> Iterator[tuple[str, str, str, Guard]]:
    for source, target in pairwise(ORDER[mode]):
        label, guard = _LABELS.get((source, target), ("files are valid", _all()))
        yield source, target, label, _all(_check_answers, guard, _check_agents(source))
    for loop, base in LOOP_BASE.items():
        yield base, loop, f"at most {MOST_RETRIES} times a task", _all(_check_answers, _fixable(loop))
        yield loop, base, "", _check_answers


def _detours(mode: Mode) -> Iterator[tuple[str, str, str, Guard]]:
    for state in _working(mode):
        yield state, "ASK_USER", "a question waits", _check_question(state)
        yield "ASK_USER", state, "state_context", _all(_check_answers, _check_return(state))
    for state in (*_working(mode), "ASK_USER"):
        yield state, "BLOCKED", "", _has_blocker
        yield "BLOCKED", state, "blocked_from", _check_block(state)


def _ways_back(mode: Mode) -> Iterator[tuple[str, str, str, Guard]]:
    """Yield the moves back: to tasks that a review opened again, and to gates that were passed without an answer."""
    yield "DONE", "IMPLEMENT_LOOP", "reopened", _check_reopened
    for state in INTEGRATION:
        if state in _working(mode):
            yield state, "IMPLEMENT_LOOP", "a review failed", _all(_check_answers, _check_unfinished)
    for decision_id, gate in GATES.items() if mode == "full" else ():
        is_open = _open_gate(decision_id, mode)
        for state in _working(mode):
            if decision_id in gates_before(state, mode):
                yield state, gate, "not answered", _all(_check_answers, is_open)
        yield "ASK_USER", gate, "state_context", _all(_check_answers, _either(_check_return(gate), is_open))
        yield "BLOCKED", gate, "blocked_from", _either(_check_block(gate), is_open)
        yield "DONE", gate, "not answered", _all(_check_reopened, is_open)


def _text(guard: Guard) -> Callable[[SessionFacts], str]:
    return lambda facts: " ".join(need.text for need in guard(facts))


def _machine(name: str, mode: Mode) -> Machine[SessionFacts]:
    edges = (Edge(*move, label, _text(guard)) for move, (label, guard) in _EDGES[mode].items())
    return Machine(name, ORDER[mode][0], frozenset({"DONE"}), tuple(edges))


_EDGES: Mapping[Mode, _Edges] = {"full": _edges("full"), "lean": _edges("lean")}
SESSION = _machine("session", "full")
LEAN = _machine("lean session", "lean")
MACHINES: Mapping[Mode, Machine[SessionFacts]] = {"full": SESSION, "lean": LEAN}


def needs_of(source: str, target: str, mode: Mode, facts: SessionFacts) -> tuple[Need, ...]:
    """Return what a move of the machine still needs; none where it is legal."""
    return tuple(_EDGES[mode][source, target][1](facts))
