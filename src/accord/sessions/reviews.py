"""Statuses of tasks with the guards between them, and the reviews that the outputs of agents give or ask for. Pure.

Source: global agent contract, "Task status lifecycle", "Gates (hard blockers)" and "Universal Output JSON". Which plan
asks for which review is accord's decision.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from accord.core.frozen import Frozen
from accord.core.machine import Edge, Machine
from accord.sessions.decision_rules import is_before
from accord.sessions.models import LOOPS, REVIEW_STRATEGY, REVIEWS, OutputEntry, SessionMode, SessionStatus, SessionTask
from accord.sessions.policy import REPORTERS

LOOP_OF: Mapping[str, str] = dict(zip(REVIEWS, LOOPS, strict=False))
"""The fix loop that follows a failed review."""

DISPATCHED = "DISPATCHED"
"""The status of the record that an agent was given a task: earlier outputs and reviews of it count no longer."""

FAILED = ("FAIL", "BLOCKED")
"""The results of a review that a fix follows."""

FIXERS = ("Coder", "Integrator")
"""The agents that fix what failed."""

WAIVED = "waived"
_PASSED = ("OK", WAIVED)
_NOT_DONE = "OK, but the definition of done is not met"


def _asked_for(output: OutputEntry) -> Iterator[str]:
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


class ReviewRecord:
    """The results that the outputs of a session give its tasks and ``meta``, added one after the other."""

    def __init__(self, tasks: Sequence[SessionTask], outputs: Iterable[OutputEntry] = ()) -> None:
        self.results = {task.id: dict[str, str]() for task in tasks}
        """The last result of each review of a task that still counts."""
        self.has_code = self._has_begun = False
        self.passed_meta, self._held = set[str](), dict[str, OutputEntry]()
        """The agents that passed ``meta`` since the last work, or were waived.

        For the Reviewer, code of the Integrator is work, too; an output on ``meta`` may ask for it.
        """
        self.last, self.last_statuses = dict[str, OutputEntry](), {task.id: dict[str, str]() for task in tasks}
        """The last output about each task or ``meta``, and the last status of each agent about a task, or ``meta``."""
        self._asked = {task.id: {"Reviewer", *planned_reviews(task)} for task in tasks}
        self._completed = dict.fromkeys(task.id for task in tasks if task.status == "completed")
        self._last_work, self._builds, self._recorded = dict[str, str](), dict[str, str](), set[str]()
        for output in outputs:
            self.add(output)

    def add(self, output: OutputEntry) -> None:
        """Take the next output into account."""
        self.last[output.task_id], is_meta = output, output.task_id == "meta"
        for name in self.results if is_meta else self.results.keys() & {output.task_id}:
            _record_result(self.results[name], name, output)
            self._asked[name].update((output.agent, *_asked_for(output)))
            self.last_statuses[name][output.agent] = output.status
        if output.agent == "Coder" or output.waived_reviews:
            self._recorded.add(output.task_id)
        if "Coder" in (output.agent, *output.waived_reviews):
            self._has_begun |= output.status != DISPATCHED
            self._last_work[output.task_id] = output.status
        if "Integrator" in (output.agent, *output.waived_reviews):
            self._builds[output.task_id] = output.status
        if output.agent == "Coder":
            self.passed_meta.clear()
        elif is_meta:
            change = self.passed_meta.update if _result(output) == "OK" else self.passed_meta.difference_update
            change((output.agent, *output.waived_reviews))
        elif output.status != DISPATCHED and _result(output) != "OK":  # also of a review of all that names a task
            self.passed_meta.discard(output.agent)
        if output.has_code or (is_meta and output.needs_review):
            self.passed_meta.discard("Reviewer")
        if is_meta:
            _record_failure(self._held, output)
        self.has_code |= output.has_code

    def has_work(self, task_id: str) -> bool:
        """Return whether the Coder implemented a task, or a waiver replaces that.

        Where the session has no output of the Coder, other tools keep its records. A start of the Coder is not an
        output.
        """
        return not self._has_begun or self._last_work.get(task_id) == "OK"

    def open_gates(self, task_id: str) -> tuple[str, ...]:
        """Return the reviews that a task has not passed; the Coder where its work is missing or not done.

        The Reviewer is always required, QA where the plan has a check to run, Security where the plan names the risk,
        and both where an output asks for them or they gave one.
        """
        results = self.results[task_id]
        first = ["Coder"] if "Coder" in results or not self.has_work(task_id) else []
        roles = (*first, *(role for role in REVIEWS if role in self._asked[task_id]))
        return tuple(role for role in roles if results.get(role) not in _PASSED)

    def failed_reviews(self, task_id: str) -> tuple[str, ...]:
        """Return the reviews whose last result keeps a task from being completed."""
        return tuple(role for role, result in self.results[task_id].items() if result not in _PASSED)

    def has_record(self, task_id: str) -> bool:
        """Return whether the outputs show who worked on a task, why it needs no review, or that it failed one."""
        return task_id in self._recorded or bool(self.failed_reviews(task_id))

    def fixed_loops(self, task_id: str, role: str, begun: Collection[str] = ()) -> list[tuple[str, str]]:
        """Return the tasks and fix loops that new work of a role enters; ``begun`` ones may lack outputs."""
        if role == "Integrator" and self._builds.get(task_id) == "FAIL":
            return [(task_id, "FIX_BUILD")]
        names = [*self.results] if task_id == "meta" else [task_id]
        failed = [name for name in names if role == "Coder" and (name in self.last or name in begun)]
        results = [(name, *one) for name in failed for one in self.results.get(name, {}).items()]
        return [(name, LOOP_OF[review]) for name, review, result in results if result in FAILED]

    @property
    def unreviewed(self) -> dict[str, tuple[str, ...]]:
        """The completed tasks with reviews that they have not passed."""
        return {name: gates for name in self._completed if (gates := self.missed_gates(name))}

    def missed_gates(self, task_id: str) -> tuple[str, ...]:
        """Return the reviews that a completed task has not passed; none for another task.

        Where the session has no output at all, other tools keep its records.
        """
        return self.open_gates(task_id) if self.last and task_id in self._completed else ()

    def has_interrupted_review(self, task_id: str) -> bool:
        """Return whether a review may have completed a task and not been recorded.

        An OK completes a task only where no other review is missing.
        """
        gates = self.missed_gates(task_id)
        return len(gates) == 1 and gates[0] in REVIEWS and gates[0] not in self.results[task_id]

    @property
    def held_agents(self) -> dict[str, str]:
        """The agents whose last output on ``meta`` is not OK and was not waived, with its result."""
        return {agent: _result(output) for agent, output in self._held.items()}


def added_outputs(
    tasks: Sequence[SessionTask], outputs: Sequence[OutputEntry], start: int
) -> Iterator[tuple[int, OutputEntry, ReviewRecord]]:
    """Yield the outputs from an index on, each with its index and what those before it show."""
    record = ReviewRecord(tasks)
    for i, output in enumerate(outputs):
        if i >= start:
            yield i, output, record
        record.add(output)


def _record_result(results: dict[str, str], task_id: str, output: OutputEntry) -> None:
    """Change the results of a task's reviews by an output on the task, or on ``meta``.

    Work of the Coder ends all of them, as it begins and as it ends. An output that asks for a review ends the earlier
    one.
    """
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


def _record_failure(failed: dict[str, OutputEntry], output: OutputEntry) -> None:
    """Change the last outputs of agents that are not OK and were not waived by an output."""
    for agent in (output.agent, *output.waived_reviews):
        failed.pop(agent, None)
    if _result(output) != "OK":
        failed[output.agent] = output


def asks_again(output: OutputEntry, entry: OutputEntry) -> bool:
    """Return whether an output asks the agent of an earlier one for another, though with the same words.

    Work does, a wish for the review, and another result for the task. A failure asks the agents that fix.
    """
    role, result = entry.agent, _result(output)
    if role in FIXERS and result not in ("OK", DISPATCHED):
        return True
    is_work = output.has_code or ("Coder" in (output.agent, *output.waived_reviews) and output.status != DISPATCHED)
    is_other = (output.agent, output.task_id) == (role, "meta") and result != _result(entry)
    return (is_work and role != "Coder") or is_other or role in _asked_for(output)


def open_remarks(task_id: str, role: str, outputs: Sequence[OutputEntry]) -> Iterator[str]:
    """Yield what failed outputs about a task, or ``meta``, say to the role that fixes it, until that is done."""
    about = [output for output in outputs if output.task_id in (task_id, "meta")]
    ends = [i for i, output in enumerate(about, start=1) if output.agent == role and _result(output) == "OK"]
    failed = dict[str, OutputEntry]()
    for output in about[ends[-1] if ends else 0 :]:
        _record_failure(failed, output)
    for agent, output in failed.items():
        if agent in (*REVIEWS, "Integrator"):
            texts = (output.summary, *output.findings, *output.review_comments)
            yield from (f"{agent} returned {_result(output)}: {text}" for text in texts)


def strategy_of(status: SessionStatus) -> str:
    """Return the review strategy that the user chose; empty without an answer."""
    decision = status.decision(REVIEW_STRATEGY)
    return (decision.answer or "") if decision and decision.status == "answered" else ""


def lacks_final_review(mode: SessionMode, status: SessionStatus, record: ReviewRecord) -> bool:
    """Return whether a final review is open: per-batch asks for one, and so does code of the Integrator."""
    is_asked = record.has_code or (mode == "full" and strategy_of(status) == "per-batch")
    return is_asked and "Reviewer" not in record.passed_meta


def lacks_report(status: SessionStatus, outputs: Sequence[OutputEntry], record: ReviewRecord) -> bool:
    """Return whether the Coder worked since a session was reopened, and no agent that writes the report followed."""
    since = status.reopened_at
    has_worked = any(one.agent == "Coder" and not is_before(one.at, since) for one in outputs) if since else False
    return has_worked and record.passed_meta.isdisjoint(REPORTERS)


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
