"""Statuses of tasks with the guards between them, and the reviews that the outputs of agents give or ask for. Pure.

Source: global agent contract, "Task status lifecycle", "Gates (hard blockers)" and "Universal Output JSON". Which plan
asks for which review is accord's decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from accord.core.frozen import Frozen
from accord.core.machine import Edge, Machine
from accord.sessions.decision_rules import is_before
from accord.sessions.models import LOOPS, REVIEW_STRATEGY, REVIEWS, OutputEntry, SessionMode, SessionStatus, SessionTask

LOOP_OF: Mapping[str, str] = dict(zip(REVIEWS, LOOPS, strict=False))
"""The fix loop that follows a failed review."""

DISPATCHED = "DISPATCHED"
"""The status of the record that an agent was given a task: earlier outputs and reviews of it count no longer."""

FAILED = ("FAIL", "BLOCKED")
"""The results of a review that a fix follows."""

WAIVED = "waived"
_PASSED = ("OK", WAIVED)
_NOT_DONE = "OK, but the definition of done is not met"


def _asked_for(output: OutputEntry) -> Iterator[str]:
    """Yield the reviews that an output asks for."""
    if output.needs_review:
        yield "Reviewer"
    if output.needs_tests:
        yield "QA"
    if output.security_concerns:
        yield "Security"


def _result(output: OutputEntry) -> str:
    """Return the result of a review: its status, unless its own gates contradict an OK."""
    if output.status != "OK":
        return str(output.status)
    if not output.meets_definition_of_done:
        return _NOT_DONE
    return f"OK, but asks for {output.agent} again" if output.agent in _asked_for(output) else "OK"


def reviews_of(task: SessionTask, outputs: Sequence[OutputEntry]) -> dict[str, str]:
    """Return the last result of each review of a task, or of ``meta``, that still counts.

    Work of the Coder ends all of them, as it begins and as it ends. An output that asks for a review ends the earlier
    one.
    """
    results: dict[str, str] = {}
    for output in outputs:
        if output.task_id in (task.id, "meta"):
            record_result(results, task.id, output)
    return results


def record_result(results: dict[str, str], task_id: str, output: OutputEntry) -> None:
    """Change the results of a task's reviews by an output on the task, or on ``meta``."""
    if output.agent == "Coder":
        results.clear()
        if output.status == "OK" and not output.meets_definition_of_done:
            results["Coder"] = _NOT_DONE
    for role in _asked_for(output):
        results.pop(role, None)
    if output.agent in REVIEWS:
        results[output.agent] = _result(output)
    if output.task_id == task_id:
        results.update(dict.fromkeys(output.waived_reviews, WAIVED))


def planned_reviews(task: SessionTask) -> set[str]:
    """Return the reviews that a task's plan asks for beside the Reviewer's."""
    is_run = any(check.startswith("cmd:") for check in task.acceptance_checks)
    return {role for role, asked in (("QA", is_run), ("Security", "security" in task.risk_flags)) if asked}


def open_gates(task: SessionTask, outputs: Sequence[OutputEntry]) -> tuple[str, ...]:
    """Return the reviews that a task has not passed; the Coder where its work is missing or not done.

    The Reviewer is always required, QA where the plan has a check to run, Security where the plan names the risk, and
    both where an output asks for them or they gave one.
    """
    about = [output for output in outputs if output.task_id in (task.id, "meta")]
    asked = planned_reviews(task).union(["Reviewer"], *((output.agent, *_asked_for(output)) for output in about))
    results = reviews_of(task, outputs)
    first = ["Coder"] if "Coder" in results or not has_work(task, outputs) else []
    roles = (*first, *(role for role in REVIEWS if role in asked))
    return tuple(role for role in roles if results.get(role) not in _PASSED)


def failed_reviews(task: SessionTask, outputs: Sequence[OutputEntry]) -> tuple[str, ...]:
    """Return the reviews whose last result keeps a task from being completed."""
    return tuple(role for role, result in reviews_of(task, outputs).items() if result not in _PASSED)


def fixed_loops(
    tasks: Sequence[SessionTask], task_id: str, role: str, outputs: Sequence[OutputEntry]
) -> Iterator[tuple[str, str]]:
    """Yield the tasks and fix loops that new work of a role enters, because the last review or build failed."""
    if role == "Integrator":
        last = _failed_outputs([output for output in outputs if output.task_id == task_id]).get(role)
        yield from [(task_id, "FIX_BUILD")] if last and last.status == "FAIL" else []
    for task in tasks if role == "Coder" else ():
        is_begun = task.status != "not-started" or any(output.task_id == task.id for output in outputs)
        if is_begun and task_id in (task.id, "meta"):
            yield from ((task.id, loop) for loop in failed_loops(reviews_of(task, outputs)))


def failed_loops(results: Mapping[str, str]) -> list[str]:
    """Return the fix loops that follow the results of a task's reviews."""
    return [LOOP_OF[role] for role, result in results.items() if result in FAILED]


def _failed_outputs(outputs: Sequence[OutputEntry]) -> dict[str, OutputEntry]:
    """Return the last output of each agent where that is not OK and was not waived."""
    failed: dict[str, OutputEntry] = {}
    for output in outputs:
        for agent in (output.agent, *output.waived_reviews):
            failed.pop(agent, None)
        if _result(output) != "OK":
            failed[output.agent] = output
    return failed


def open_remarks(task_id: str, role: str, outputs: Sequence[OutputEntry]) -> Iterator[str]:
    """Yield what failed outputs about a task, or ``meta``, say to the role that fixes it, until that is done."""
    about = [output for output in outputs if output.task_id in (task_id, "meta")]
    ends = [i for i, output in enumerate(about, start=1) if output.agent == role and _result(output) == "OK"]
    for agent, output in _failed_outputs(about[ends[-1] if ends else 0 :]).items():
        if agent in (*REVIEWS, "Integrator"):
            texts = (output.summary, *output.findings, *output.review_comments)
            yield from (f"{agent} returned {_result(output)}: {text}" for text in texts)


def has_work(task: SessionTask, outputs: Sequence[OutputEntry]) -> bool:
    """Return whether the Coder implemented a task, or a waiver replaces that.

    Where the session has no output of the Coder, other tools keep its records. A start of the Coder is not an output.
    """
    work = [one for one in outputs if one.agent == "Coder" or "Coder" in one.waived_reviews]
    if all(one.status == DISPATCHED for one in work):
        return True
    own = [one for one in work if one.task_id == task.id]
    return bool(own) and own[-1].status == "OK"


def has_record(task: SessionTask, outputs: Sequence[OutputEntry]) -> bool:
    """Return whether the outputs show who worked on a task, why it needs no review, or that it failed one."""
    own = [output for output in outputs if output.task_id == task.id]
    return any(one.agent == "Coder" or one.waived_reviews for one in own) or bool(failed_reviews(task, outputs))


def unreviewed_tasks(tasks: Sequence[SessionTask], outputs: Sequence[OutputEntry]) -> dict[str, tuple[str, ...]]:
    """Return the completed tasks with reviews that they have not passed.

    Where the session has no output at all, other tools keep its records.
    """
    completed = [task for task in tasks if task.status == "completed" and outputs]
    return {task.id: gates for task in completed if (gates := open_gates(task, outputs))}


def strategy_of(status: SessionStatus) -> str:
    """Return the review strategy that the user chose; empty without an answer."""
    decision = status.decision(REVIEW_STRATEGY)
    return (decision.answer or "") if decision and decision.status == "answered" else ""


def has_passed_meta(role: str, outputs: Sequence[OutputEntry]) -> bool:
    """Return whether the Integrator, or for its final review the Reviewer, passed ``meta`` since the last work.

    A waiver counts as well. For the review, code of the Integrator is work, too; an output on ``meta`` may ask for it.
    """
    has_passed = False
    for output in outputs:
        is_meta = output.task_id == "meta"
        is_asked = role == "Reviewer" and (output.has_code or (is_meta and output.needs_review))
        if output.agent == "Coder" or is_asked:
            has_passed = False
        elif is_meta and role in (output.agent, *output.waived_reviews):
            has_passed = _result(output) == "OK"
    return has_passed


def lacks_final_review(mode: SessionMode, status: SessionStatus, outputs: Sequence[OutputEntry]) -> bool:
    """Return whether a final review is open: per-batch asks for one, and so does code of the Integrator."""
    is_per_batch = mode == "full" and strategy_of(status) == "per-batch"
    return (is_per_batch or any(output.has_code for output in outputs)) and not has_passed_meta("Reviewer", outputs)


def lacks_report(status: SessionStatus, outputs: Sequence[OutputEntry]) -> bool:
    """Return whether the Coder worked since a session was reopened, and no agent that writes the report followed."""
    since, writers = status.reopened_at, ("Docs", "Integrator")
    has_worked = any(one.agent == "Coder" and not is_before(one.at, since) for one in outputs) if since else False
    return has_worked and not any(has_passed_meta(role, outputs) for role in writers)


def held_agents(outputs: Sequence[OutputEntry]) -> dict[str, str]:
    """Return the agents whose last output on ``meta`` is not OK and was not waived, with its result."""
    failed = _failed_outputs([output for output in outputs if output.task_id == "meta"])
    return {agent: _result(output) for agent, output in failed.items()}


class TaskFacts(Frozen):
    """The facts that the guards of a task read."""

    role: str = ""
    waits_for: tuple[str, ...] = ()
    open_gates: tuple[str, ...] = ()  # reviews that have not passed
    waives: bool = False  # the Orchestrator waives them


def _by(*roles: str) -> Callable[[TaskFacts], str]:
    refusal = f"Only {' or '.join(roles)} may do this, not "
    return lambda facts: "" if facts.role in roles else f"{refusal}{facts.role or 'no role'}."


def _check_start(facts: TaskFacts) -> str:
    waiting = f"It depends on {', '.join(facts.waits_for)}. Implement that first." if facts.waits_for else ""
    return _by("Coder")(facts) or waiting


def _check_completion(facts: TaskFacts) -> str:
    if facts.role != "Orchestrator":
        hint = " Set it to `implemented`." if facts.role == "Coder" else ""
        return f"Only the Orchestrator completes a task, after all its gates have passed, not {facts.role}.{hint}"
    names = "" if facts.waives else ", ".join(facts.open_gates)
    how = "Have the task reviewed and take each output with `accord dispatch --take`, or pass `--waive-reviews REASON`."
    return f"These gates have not passed: {names}. {how}" if names else ""


def _check_reopening(facts: TaskFacts) -> str:
    passed = "" if facts.open_gates else "Its reviews have passed. Only a failed review reopens it."
    return _by("Orchestrator", *REVIEWS)(facts) or passed


TASK: Machine[TaskFacts] = Machine(
    "task of a session",
    "not-started",
    frozenset({"completed"}),
    (
        Edge("not-started", "in-progress", "Coder, dependencies implemented", _check_start),
        Edge("in-progress", "implemented", "Coder", _by("Coder")),
        Edge("implemented", "completed", "Orchestrator, all reviews passed or waived", _check_completion),
        Edge("implemented", "in-progress", "Coder, to fix", _by("Coder")),
        Edge("completed", "implemented", "a review failed", _check_reopening),
        *(Edge(source, "blocked") for source in ("not-started", "in-progress", "implemented")),
        Edge("blocked", "in-progress", "Coder, dependencies implemented", _check_start),
        Edge("blocked", "not-started", "Orchestrator or Planner", _by("Orchestrator", "Planner")),
    ),
)
