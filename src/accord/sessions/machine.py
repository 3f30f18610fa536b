"""The states of a session and of a task, and what each move asks for. Tables and pure guards.

Source: global agent contract; the edges of the session are accord's decision. Facts are gathered by ``facts_of``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from accord.core.machine import Edge, Machine
from accord.sessions.folder import status_of
from accord.sessions.folder_rules import gate_defect
from accord.sessions.models import APPROVE_DESIGN, GATES, LOOPS, REVIEW_STRATEGY
from accord.sessions.rules import MOST_RETRIES
from accord.sessions.stages import LOOP_BASE, ORDER, files_needed, return_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from accord.sessions.folder import Session
    from accord.sessions.models import Mode


@dataclass(frozen=True)
class SessionFacts:
    """What the guards of a session look at.

    ``defects`` says of each file why it cannot be relied on, ``gates`` of each gate's decision why it is not passed,
    ``pending`` maps decisions that wait to the states in which they came up. ``retries`` counts the loops of ``task``.
    """

    defects: Mapping[str, str] = field(default_factory=dict)
    gates: Mapping[str, str] = field(default_factory=dict)
    pending: Mapping[str, str] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()
    ci_result: str = "unknown"
    returns_to: str = ""
    blocked_from: str = ""
    task: str = ""
    retries: Mapping[str, int] = field(default_factory=dict)
    reopens: bool = False


def facts_of(session: Session, *, task: str = "", reopens: bool = False) -> SessionFacts:
    """Gather the facts of a session whose status can be read; ``task`` is the one that a loop of fixes is for."""
    status = status_of(session)
    tasks = session.tasks.tasks if session.tasks else []
    return SessionFacts(
        defects={name: session.defect(name) for name in session.parts},
        gates={decision_id: gate_defect(status, decision_id) for decision_id in GATES},
        pending={decision.decision_id: decision.state_context for decision in status.pending},
        unfinished=tuple(item.id for item in tasks if item.status != "completed"),
        ci_result=status.last_ci_result,
        returns_to=return_state(status),
        blocked_from=status.blocked_from or "",
        task=task,
        retries={loop: status.retries(task, loop) for loop in LOOPS},
        reopens=reopens,
    )


def _files(target: str, mode: Mode) -> Callable[[SessionFacts], str]:
    names = files_needed(target, mode)

    def guard(facts: SessionFacts) -> str:
        missing = [facts.defects.get(name, "") for name in names]
        return " ".join(said for said in missing if said)

    return guard


def _resolved(facts: SessionFacts) -> str:
    if not facts.pending:
        return ""
    return f"Questions wait for the user: {', '.join(facts.pending)}. Resolve them first."


def _approved(facts: SessionFacts) -> str:
    return facts.gates.get(APPROVE_DESIGN, "")


def _strategy_chosen(facts: SessionFacts) -> str:
    return facts.gates.get(REVIEW_STRATEGY, "")


def _all_completed(facts: SessionFacts) -> str:
    return f"Not completed are: {', '.join(facts.unfinished)}." if facts.unfinished else ""


def _not_red(facts: SessionFacts) -> str:
    return "CI is red. Fix the build in FIX_BUILD first." if facts.ci_result == "red" else ""


def _reopened(facts: SessionFacts) -> str:
    return (
        "" if facts.reopens else "A session that is done is read only. Reopen it by accord session reopen to change it."
    )


def _has_question(source: str) -> Callable[[SessionFacts], str]:
    def guard(facts: SessionFacts) -> str:
        if source in facts.pending.values():
            return ""
        return f"No question that came up in {source} waits for the user. Write the question first."

    return guard


def _came_from(target: str) -> Callable[[SessionFacts], str]:
    def guard(facts: SessionFacts) -> str:
        if facts.returns_to == target:
            return ""
        return f"The questions came up in {facts.returns_to or 'no state'}; the session goes back there, to no other."

    return guard


def _blocked_in(target: str) -> Callable[[SessionFacts], str]:
    def guard(facts: SessionFacts) -> str:
        if facts.blocked_from == target:
            return ""
        if not facts.blocked_from:
            return "Nothing says where the session was blocked. Set blocked_from in status.json to that state."
        return f"The session was blocked in {facts.blocked_from}; it goes back there, to no other."

    return guard


def _budget(loop: str) -> Callable[[SessionFacts], str]:
    def guard(facts: SessionFacts) -> str:
        if not facts.task:
            return f"{loop} is for one task, and none is named. Name it."
        if facts.retries.get(loop, 0) < MOST_RETRIES:
            return ""
        return (
            f"{facts.task} went into {loop} {MOST_RETRIES} times, and no more is allowed. Go to ASK_USER, and ask "
            "whether to try another approach, accept it with known issues, simplify it, or give guidance."
        )

    return guard


def _all(*guards: Callable[[SessionFacts], str]) -> Callable[[SessionFacts], str]:
    return lambda facts: " ".join(said for said in (guard(facts) for guard in guards) if said)


_STEPS: dict[tuple[str, str], tuple[str, Callable[[SessionFacts], str]]] = {
    ("APPROVE_DESIGN", "PLAN"): ("design approved", _approved),
    ("REVIEW_STRATEGY", "IMPLEMENT_LOOP"): ("strategy chosen", _all(_approved, _strategy_chosen)),
    ("IMPLEMENT_LOOP", "INTEGRATE"): ("all tasks completed", _all_completed),
    ("INTEGRATE", "RELEASE"): ("all tasks completed, CI not red", _all(_all_completed, _not_red)),
    ("INTEGRATE", "DONE"): ("all tasks completed, CI not red, report", _all(_all_completed, _not_red)),
    ("RELEASE", "DONE"): ("all tasks completed, CI not red, report", _all(_all_completed, _not_red)),
}
"""What single moves ask for besides valid files and no question that waits."""


def _way(mode: Mode) -> Iterator[Edge[SessionFacts]]:
    order = ORDER[mode]
    for source, target in pairwise(order):
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
        yield Edge(state, "ASK_USER", "a question waits", _has_question(state))
        yield Edge("ASK_USER", state, "state_context", _all(_resolved, _came_from(state), _files(state, mode)))
    for state in (*working, "ASK_USER"):
        yield Edge(state, "BLOCKED")
        yield Edge("BLOCKED", state, "blocked_from", _all(_blocked_in(state), _files(state, mode)))
    yield Edge("DONE", "IMPLEMENT_LOOP", "reopened", _all(_reopened, _files("IMPLEMENT_LOOP", mode)))


def _machine(name: str, mode: Mode) -> Machine[SessionFacts]:
    edges = (*_way(mode), *_loops(mode), *_detours(mode))
    return Machine(name, ORDER[mode][0], frozenset({"DONE"}), edges)


SESSION = _machine("session", "full")
LEAN = _machine("lean session", "lean")


def machine_of(mode: Mode) -> Machine[SessionFacts]:
    """Return the machine of a full or of a lean session."""
    return {"full": SESSION, "lean": LEAN}[mode]


@dataclass(frozen=True)
class TaskFacts:
    """What the guards of a task look at.

    ``waits_for`` are dependencies that are not implemented yet, ``open_gates`` says which of the reviews did not pass.
    """

    role: str = ""
    waits_for: tuple[str, ...] = ()
    open_gates: tuple[str, ...] = ()

    def as_role(self, role: str) -> TaskFacts:
        """Return the same facts for another role."""
        return replace(self, role=role)


def _by(*roles: str) -> Callable[[TaskFacts], str]:
    def guard(facts: TaskFacts) -> str:
        return "" if facts.role in roles else f"Only {' or '.join(roles)} may do this, not {facts.role or 'nobody'}."

    return guard


def _started(facts: TaskFacts) -> str:
    if said := _by("Coder")(facts):
        return said
    return f"It waits for {', '.join(facts.waits_for)}; implement these first." if facts.waits_for else ""


def _passed(facts: TaskFacts) -> str:
    if facts.role != "Orchestrator":
        hint = " Set it to implemented." if facts.role == "Coder" else ""
        return f"Only the Orchestrator completes a task, after all its gates have passed; not {facts.role}.{hint}"
    names = ", ".join(facts.open_gates)
    how = "Let them review the task, and take what they return by accord dispatch."
    return f"Not passed are the gates: {names}. {how}" if names else ""


TASK: Machine[TaskFacts] = Machine(
    "task of a session",
    "not-started",
    frozenset({"completed"}),
    (
        Edge("not-started", "in-progress", "Coder, dependencies implemented", _started),
        Edge("in-progress", "implemented", "Coder", _by("Coder")),
        Edge("implemented", "completed", "Orchestrator, all gates passed", _passed),
        Edge("implemented", "in-progress", "Coder, to fix", _by("Coder")),
        Edge("not-started", "blocked"),
        Edge("in-progress", "blocked"),
        Edge("implemented", "blocked"),
        Edge("blocked", "in-progress", "Coder, dependencies implemented", _started),
        Edge("blocked", "not-started", "Orchestrator or Planner", _by("Orchestrator", "Planner")),
    ),
)
