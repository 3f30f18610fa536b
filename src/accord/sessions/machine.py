"""The states of sessions and tasks as tables: their order, the files each needs, and the guard of every move.

Source: global agent contract, "Artifact content validation (gates)", "ASK_USER protocol" and "Task status lifecycle";
the edges of the session are accord's decision. ``plan`` gathers the facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from accord.core.machine import Edge, Machine
from accord.sessions.models import APPROVE_DESIGN, GATES, REVIEW_STRATEGY
from accord.sessions.rules import MOST_RETRIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from accord.sessions.models import Mode, OutputEntry, SessionStatus, SessionTask

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


def files_needed(state: str, mode: Mode) -> tuple[str, ...]:
    """Return the files whose content must be valid before a session enters a state."""
    return tuple(name for name, first in _FIRST_NEEDED[mode].items() if is_at_least(state, first, mode))


def return_state(status: SessionStatus) -> str:
    """Return the state in which the last question came up, pending ones first; empty without a question."""
    questions = status.pending or status.user_decisions
    return questions[-1].state_context if questions else ""


def working_state(status: SessionStatus) -> str:
    """Return the state that work is in, also while the session asks or is blocked; empty when it is not recorded."""
    state: str = status.current_state
    if state == "BLOCKED":
        state = status.blocked_from or ""
    return return_state(status) if state == "ASK_USER" else state


REVIEWS = ("Reviewer", "QA", "Security")


def reviews_of(task: SessionTask, outputs: Sequence[OutputEntry]) -> dict[str, str]:
    """Return the last status of each review of a task, or of ``meta``, since the Coder's last output for it."""
    statuses: dict[str, str] = {}
    for output in outputs:
        if output.agent == "Coder" and output.task_id == task.id:
            statuses.clear()
        elif output.agent in REVIEWS and output.task_id in (task.id, "meta"):
            statuses[output.agent] = output.status
    return statuses


def open_gates(task: SessionTask, outputs: Sequence[OutputEntry]) -> tuple[str, ...]:
    """Return the reviews that a task has not passed, Security where it is at risk; none before any review."""
    if not any(output.agent in REVIEWS for output in outputs):
        return ()
    statuses = reviews_of(task, outputs)
    is_risky = "security" in task.risk_flags or any(_raises_security(output, task) for output in outputs)
    required = REVIEWS if is_risky else REVIEWS[:2]
    return tuple(role for role in required if statuses.get(role) != "OK")


def _raises_security(output: OutputEntry, task: SessionTask) -> bool:
    is_about_it = output.task_id == task.id or (output.task_id == "meta" and output.agent in REVIEWS)
    return is_about_it and (output.agent == "Security" or output.security_concerns > 0)


@dataclass(frozen=True)
class SessionFacts:
    """The facts that the guards of a session read.

    ``problems`` maps files to their problems, ``gates`` decisions to why they do not let the session pass,
    ``pending`` open decisions to the states in which they came up. ``retries`` counts the fix loops of ``task``.
    """

    problems: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, str] = field(default_factory=dict)
    pending: Mapping[str, str] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()
    ci_result: str = "unknown"
    returns_to: str = ""
    blocked_from: str = ""
    task: str = ""
    retries: Mapping[str, int] = field(default_factory=dict)
    reopens: bool = False


def _files(target: str, mode: Mode) -> Callable[[SessionFacts], str]:
    names = files_needed(target, mode)
    return lambda facts: " ".join(facts.problems[name] for name in names if facts.problems.get(name))


def _resolved(facts: SessionFacts) -> str:
    if not facts.pending:
        return ""
    return f"Questions wait for the user: {', '.join(facts.pending)}. Resolve them first."


def _passed_gate(decision_id: str) -> Callable[[SessionFacts], str]:
    return lambda facts: facts.gates.get(decision_id, "")


def _all_completed(facts: SessionFacts) -> str:
    return f"These tasks are not completed: {', '.join(facts.unfinished)}." if facts.unfinished else ""


def _not_red(facts: SessionFacts) -> str:
    return "CI is red. Fix the build in FIX_BUILD first." if facts.ci_result == "red" else ""


def _reopened(facts: SessionFacts) -> str:
    return "" if facts.reopens else "The session is done and read-only. Reopen it with `accord session reopen`."


def _check_question(source: str) -> Callable[[SessionFacts], str]:
    question = f"No question from {source} is pending. Write it with `accord session ask` first."
    return lambda facts: "" if source in facts.pending.values() else question


def _came_from(target: str) -> Callable[[SessionFacts], str]:
    text = "The questions came up in {}. The session can only return there."
    return lambda facts: "" if facts.returns_to == target else text.format(facts.returns_to or "no state")


def _blocked_in(target: str) -> Callable[[SessionFacts], str]:
    def guard(facts: SessionFacts) -> str:
        if facts.blocked_from == target:
            return ""
        if not facts.blocked_from:
            return "The state before the block is not recorded. Set `blocked_from` in status.json."
        return f"The session was blocked in {facts.blocked_from} and can only return there."

    return guard


def _budget(loop: str) -> Callable[[SessionFacts], str]:
    def guard(facts: SessionFacts) -> str:
        if not facts.task:
            return f"{loop} needs a task. Name it with `--task`."
        if facts.retries.get(loop, 0) < MOST_RETRIES:
            return ""
        how = "whether to try another approach, accept it with known issues, simplify it, or give guidance"
        return f"{facts.task} went through {loop} {MOST_RETRIES} times, the limit. Go to ASK_USER and ask {how}."

    return guard


def _all(*guards: Callable[[SessionFacts], str]) -> Callable[[SessionFacts], str]:
    return lambda facts: " ".join(reason for guard in guards if (reason := guard(facts)))


_STEPS: dict[tuple[str, str], tuple[str, Callable[[SessionFacts], str]]] = {
    (APPROVAL, "PLAN"): ("design approved", _passed_gate(APPROVE_DESIGN)),
    (STRATEGY, "IMPLEMENT_LOOP"): ("strategy chosen", _all(*map(_passed_gate, GATES))),
    ("IMPLEMENT_LOOP", "INTEGRATE"): ("all tasks completed", _all_completed),
    ("INTEGRATE", "RELEASE"): ("all tasks completed, CI not red", _all(_all_completed, _not_red)),
    ("INTEGRATE", "DONE"): ("all tasks completed, CI not red, report", _all(_all_completed, _not_red)),
    ("RELEASE", "DONE"): ("all tasks completed, CI not red, report", _all(_all_completed, _not_red)),
}
"""Requirements of single moves besides valid files and no pending question."""


def _steps(mode: Mode) -> Iterator[Edge[SessionFacts]]:
    for source, target in pairwise(ORDER[mode]):
        needs, guard = _STEPS.get((source, target), ("files are valid", lambda _: ""))
        yield Edge(source, target, needs, _all(_resolved, _files(target, mode), guard))


def _loops(mode: Mode) -> Iterator[Edge[SessionFacts]]:
    for loop, base in LOOP_BASE.items():
        needs = f"at most {MOST_RETRIES} times a task"
        yield Edge(base, loop, needs, _all(_resolved, _files(loop, mode), _budget(loop)))
        yield Edge(loop, base, "", _all(_resolved, _files(base, mode)))


def _detours(mode: Mode) -> Iterator[Edge[SessionFacts]]:
    working = [*ORDER[mode][:-1], *LOOP_BASE]
    for state in working:
        yield Edge(state, "ASK_USER", "a question waits", _check_question(state))
        yield Edge("ASK_USER", state, "state_context", _all(_resolved, _came_from(state), _files(state, mode)))
    for state in (*working, "ASK_USER"):
        yield Edge(state, "BLOCKED")
        yield Edge("BLOCKED", state, "blocked_from", _all(_blocked_in(state), _files(state, mode)))
    yield Edge("DONE", "IMPLEMENT_LOOP", "reopened", _all(_reopened, _files("IMPLEMENT_LOOP", mode)))


def _machine(name: str, mode: Mode) -> Machine[SessionFacts]:
    edges = (*_steps(mode), *_loops(mode), *_detours(mode))
    return Machine(name, ORDER[mode][0], frozenset({"DONE"}), edges)


SESSION = _machine("session", "full")
LEAN = _machine("lean session", "lean")
MACHINES: Mapping[Mode, Machine[SessionFacts]] = {"full": SESSION, "lean": LEAN}


@dataclass(frozen=True)
class TaskFacts:
    """The facts that the guards of a task read: dependencies that are open, and reviews that have not passed."""

    role: str = ""
    waits_for: tuple[str, ...] = ()
    open_gates: tuple[str, ...] = ()


def _by(*roles: str) -> Callable[[TaskFacts], str]:
    def guard(facts: TaskFacts) -> str:
        return "" if facts.role in roles else f"Only {' or '.join(roles)} may do this, not {facts.role or 'no role'}."

    return guard


def _started(facts: TaskFacts) -> str:
    if refusal := _by("Coder")(facts):
        return refusal
    return f"It depends on {', '.join(facts.waits_for)}. Implement that first." if facts.waits_for else ""


def _passed(facts: TaskFacts) -> str:
    if facts.role != "Orchestrator":
        hint = " Set it to `implemented`." if facts.role == "Coder" else ""
        return f"Only the Orchestrator completes a task, after all its gates have passed, not {facts.role}.{hint}"
    names = ", ".join(facts.open_gates)
    how = "Have the task reviewed, and record each result with `accord dispatch --take`."
    return f"These gates have not passed: {names}. {how}" if names else ""


TASK: Machine[TaskFacts] = Machine(
    "task of a session",
    "not-started",
    frozenset({"completed"}),
    (
        Edge("not-started", "in-progress", "Coder, dependencies implemented", _started),
        Edge("in-progress", "implemented", "Coder", _by("Coder")),
        Edge("implemented", "completed", "Orchestrator, all gates passed", _passed),
        Edge("implemented", "in-progress", "Coder, to fix", _by("Coder")),
        *(Edge(source, "blocked") for source in ("not-started", "in-progress", "implemented")),
        Edge("blocked", "in-progress", "Coder, dependencies implemented", _started),
        Edge("blocked", "not-started", "Orchestrator or Planner", _by("Orchestrator", "Planner")),
    ),
)
