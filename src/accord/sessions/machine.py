"""The states of sessions as tables: their order, the files each needs, and the guards of every move.

Source: global agent contract, "Artifact content validation (gates)", "ASK_USER protocol"; the edges of the
session are accord's decision. ``moves`` gathers the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import partial
from itertools import pairwise

from accord.core.findings import names_of
from accord.core.frozen import Frozen
from accord.core.machine import Edge, Machine, Need
from accord.sessions.decision_rules import is_before
from accord.sessions.models import (
    APPROVE_DESIGN,
    GATE_OF,
    GATES,
    REVIEW_STRATEGY,
    REVIEWS,
    SessionMode,
    SessionStatus,
    UserDecision,
)
from accord.sessions.policy import REPORTERS
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
    "RELEASE": REPORTERS,
}
"""The agents whose last output on ``meta`` must be OK before a session goes on from a state, if they gave one."""


NEVER = "never"
"""The name of a need that nothing fulfils: the move is not one from where the session is."""


class SessionFacts(Frozen):
    """The facts that the guards of a session read."""

    mode: SessionMode = "full"
    state: str = ""  # the one that work is in
    problems: Mapping[str, str] = field(default_factory=dict)  # by file
    gates: Mapping[str, str] = field(default_factory=dict)  # why decisions do not let the session pass
    pending: Mapping[str, str] = field(default_factory=dict)  # open decisions, with the states in which they came up
    unfinished: tuple[str, ...] = ()
    unreviewed: tuple[str, ...] = ()  # completed tasks with reviews that have not passed
    lacks_final_review: bool = False
    lacks_integration: bool = False
    lacks_report: bool = False
    held: Mapping[str, str] = field(default_factory=dict)  # agents with an output that is not OK
    ci_result: str = "unknown"
    returns_to: str = ""
    blocked_from: str = ""
    blocker: str = ""
    task: str = ""
    task_status: str = ""
    exhausted_by_loop: Mapping[str, str] = field(default_factory=dict)  # tasks that entered a fix loop too often
    reopens: bool = False


Guard = Callable[[SessionFacts, str, str], Iterator[Need]]
"""Yields what a move from one state to another still needs."""


def _files(facts: SessionFacts, _: str, target: str) -> Iterator[Need]:
    for name in files_needed(target, facts.mode):
        if problem := facts.problems.get(name):
            is_missing = problem == f"{name} is missing."
            yield Need(f"{problem} {'Write' if is_missing else 'Correct'} it.", name if is_missing else problem, name)


def _gates(facts: SessionFacts, _: str, target: str) -> Iterator[Need]:
    for name in gates_before(target, facts.mode):
        if name in facts.gates:
            yield Need(f"{facts.gates[name]} Ask the user first.", name, name)


def _answers(facts: SessionFacts, *_: str) -> Iterator[Need]:
    if facts.pending:
        names = ", ".join(facts.pending)
        yield Need(f"Questions wait for the user: {names}. Resolve them first.", f"answers to {names}", "answer")


def _tasks(facts: SessionFacts, *_: str) -> Iterator[Need]:
    if (problem := facts.problems.get("outputs.jsonl", "")) and not problem.endswith(" is missing."):
        text = f"The reviews cannot be read, so it is unknown which passed. {problem} Correct it."
        yield Need(text, problem, "outputs")
    if facts.unfinished:
        names = names_of(facts.unfinished)
        yield Need(f"These tasks are not completed: {names}. Complete them.", f"completed tasks: {names}", "tasks")
    if facts.unreviewed:
        names = names_of(facts.unreviewed, between="; ")
        how = "Have them reviewed, or waive that with `accord session task` in IMPLEMENT_LOOP."
        text = f"These tasks are completed without their reviews: {names}. {how}"
        yield Need(text, f"reviews: {names}", "tasks")


def _requires(is_met: Callable[[SessionFacts], bool], *need: str) -> Guard:
    return lambda facts, *_: iter(() if is_met(facts) else (Need(*need),))


_final_review = _requires(
    lambda facts: not facts.lacks_final_review,
    "The session needs a final review. Get an OK of the Reviewer for `meta` after the last work.",
    "final review of meta",
    "agent Reviewer",
)


def _ci(facts: SessionFacts, source: str, _: str) -> Iterator[Need]:
    if facts.ci_result == "red":
        how = "Fix the build in FIX_BUILD first." if source == "INTEGRATE" else "Ask the user how to go on."
        yield Need(f"CI is red. {how}", "CI that is not red", "ci")


def _agents(facts: SessionFacts, source: str, _: str) -> Iterator[Need]:
    for role in AGENTS_OF.get(source, ()):
        if role in facts.held:
            text = f"The last output of {role} is not OK: {facts.held[role]}. Dispatch it again."
            yield Need(text, f"OK of {role}", f"agent {role}")


_WAIVING = "waive that with `accord session task DIR meta --to completed --role Orchestrator --waive-reviews REASON`"
_integration = _requires(
    lambda facts: not facts.lacks_integration or "Integrator" in facts.held,
    f"The Integrator gave no OK for `meta` after the last work. Dispatch it, or {_WAIVING}.",
    "OK of Integrator",
    "agent Integrator",
)
_report = _requires(
    lambda facts: not facts.lacks_report,
    f"The session was reopened and worked on, but no report followed. Dispatch Docs, or {_WAIVING}.",
    "a new report.md",
    "agent Docs",
)
_reopen_request = _requires(
    lambda facts: facts.reopens,
    "The session is done and read-only. Reopen it with `accord session reopen`.",
    "a reopened session",
    "reopen",
)
_blocker = _requires(
    lambda facts: bool(facts.blocker.strip()),
    "BLOCKED needs what blocks the session. Say it with `--blocker`.",
    "a blocker",
)
_failed_review = _requires(
    lambda facts: bool(facts.unfinished or facts.unreviewed),
    "All tasks are completed. Only a failed review leads back to them.",
    "a failed review",
    NEVER,
)


def _has_passed_open(facts: SessionFacts, gate: str) -> bool:
    """Return whether a session passed a gate without its answer, so that it may go back to it from anywhere."""
    decision_id = GATE_OF.get(gate, "")
    return decision_id in facts.gates and decision_id in gates_before(facts.state, facts.mode)


def _open_gate(facts: SessionFacts, _: str, target: str) -> Iterator[Need]:
    if not _has_passed_open(facts, target):
        yield Need(
            f"The session did not pass {target} without its answer. Choose another state.", "an open gate", NEVER
        )


def _question(facts: SessionFacts, source: str, _: str) -> Iterator[Need]:
    if source not in [state for name, state in facts.pending.items() if name not in GATES]:  # a gate asks by itself
        text = f"No question from {source} is pending. Write it with `accord session ask` first."
        yield Need(text, "a question", "question")


def _return(facts: SessionFacts, source: str, target: str) -> Iterator[Need]:
    asks = source == "ASK_USER"
    state, key = (facts.returns_to or "no state", "state_context") if asks else (facts.blocked_from, "blocked_from")
    if state == target or _has_passed_open(facts, target):
        return
    if state and state not in STATES_OF_OTHER_MODE[facts.mode]:
        what = "The questions came up" if asks else "The session was blocked"
        yield Need(f"{what} in {state}. The session can only return there.", f"a return to {target}", NEVER)
    else:
        lacks = (
            f"A {facts.mode} session has no state {state}" if state else "The state before the block is not recorded"
        )
        yield Need(f"{lacks}. {'Correct' if asks else 'Set'} `{key}` in status.json.", key, key)


def _fixable(facts: SessionFacts, source: str, loop: str) -> Iterator[Need]:
    statuses = ("completed",) if source == "INTEGRATE" else ("in-progress", "implemented", "blocked")
    if not facts.task:
        yield Need(f"{loop} needs a task. Enter it with `accord session fix`.", "a task that can be fixed", NEVER)
    elif facts.task != "meta" and facts.task_status not in statuses:
        text = f"{facts.task} is {facts.task_status}. {loop} takes a task that is {' or '.join(statuses)}, or meta."
        yield Need(text, "a task that can be fixed", NEVER)
    if task := facts.exhausted_by_loop.get(loop):
        how = "whether to try another approach, accept it with known issues, simplify it, or give guidance"
        text = f"{task} went through {loop} {MOST_RETRIES} times, the limit. Go to ASK_USER and ask {how}."
        yield Need(text, "a decision of the user", f"question {task} {loop}")


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


def needs_of(source: str, target: str, facts: SessionFacts) -> tuple[Need, ...]:
    """Return what a move of the machine still needs; none where it is legal."""
    entry = () if target in ("ASK_USER", "BLOCKED") else (_files, _gates)
    return tuple(
        need for guard in (*_GUARDS[facts.mode, source, target], *entry) for need in guard(facts, source, target)
    )


def _refusal(source: str, target: str, facts: SessionFacts) -> str:
    return " ".join(need.text for need in needs_of(source, target, facts))


_NAMES: dict[SessionMode, str] = {"full": "session", "lean": "lean session"}
_GUARDS = {(mode, source, target): guards for mode in _NAMES for source, target, _, guards in _edges(mode)}
MACHINES: Mapping[SessionMode, Machine[SessionFacts]] = {
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
    source: str, target: str, facts: SessionFacts, earlier: Callable[[], Iterable[SessionFacts]]
) -> str | None:
    """Return why no moves lead from one state of work to another; None where they do.

    ``facts`` are those of the session after the moves, and ``earlier`` returns those from before and between them; one
    that fulfils all guards of a move is enough. DONE is read-only: the facts of the move into it are the last ones, and
    all its guards count.
    """

    def refusal(begin: str, end: str) -> str:
        is_last = end == "DONE"
        judged = [guard for guard in _GUARDS[facts.mode, begin, end] if is_last or guard in _GUARDS_OF_FILES]

        def needs(one: SessionFacts) -> Iterator[Need]:
            return (need for guard in judged for need in guard(one, begin, end))

        open_needs = [*needs(facts)]
        is_made = not is_last and any(not any(needs(one)) for one in earlier()) if open_needs else True
        return "" if is_made else " ".join(need.text for need in open_needs)

    reached, refused = [source], dict[str, str]()
    for state in reached:
        for mode, begin, end in _GUARDS:
            if (mode, begin) == (facts.mode, state) and end not in (*reached, "ASK_USER", "BLOCKED"):
                if text := refusal(begin, end):
                    refused[end] = text
                elif end == target:
                    return None
                else:
                    reached.append(end)
    nearest = (target, *reversed(ORDER[facts.mode]))
    on_way = (state for state in nearest if state == target or is_at_least(target, state, facts.mode))
    return next((refused[state] for state in on_way if state in refused), "")
