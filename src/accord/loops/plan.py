"""Plan how a turn changes the loop's state: a run begins, none begins, or one ended. Nothing is written here.

Effects of a run become part of the state before any is applied, so a killed process finds them there and continues.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from accord.core.findings import sentence
from accord.engine.trust import NEEDS_HUMAN, RETRY
from accord.github.models import Pull
from accord.loops.facts import CompletedWork, EndedRun, Gathered
from accord.loops.ledger import begin_run, end_run, settled_state
from accord.loops.models import (
    ACTS,
    APPROVALS,
    PERSONS_STOP,
    RUNS,
    ActiveRun,
    Budgets,
    Iteration,
    LoopDecision,
    LoopFacts,
    LoopState,
    PendingEffects,
)
from accord.loops.outputs import texts_in
from accord.loops.questions import FactsT, with_state
from accord.loops.state import CONTINUES
from accord.loops.texts import digest
from accord.runner.models import RunOutputs


def start_run(
    decide: Callable[[FactsT], LoopDecision], facts: FactsT, state: LoopState, running: ActiveRun
) -> LoopState | None:
    """Return the state with this run in progress; None where these facts with this state lead to no run."""
    if state.running is not None and state.running.run_id == running.run_id:
        return state.model_copy(update={"running": state.running.model_copy(update={"about": running.about})})
    updated = with_state(facts, state)
    return begin_run(settled_state(updated), running) if decide(updated).action in RUNS else None


def next_state(
    facts: LoopFacts,
    state: LoopState,
    decision: LoopDecision,
    with_notice: Callable[[LoopState, LoopDecision], LoopState],
) -> LoopState | None:
    """Return the state after a decision not to run; None where nothing changes that people read."""
    settled = settled_state(with_state(facts, state))
    noted, shown = with_notice(settled, decision), settled.notice
    promises = settled.running is None and shown is not None and shown.action in CONTINUES
    is_lost = state.running is not None and settled.running is None
    if NEEDS_HUMAN in decision.add_labels or is_lost:
        return noted
    if decision.reason in PERSONS_STOP:
        return noted if promises else None
    waits_for_approval = promises and shown is not None and shown.reason in APPROVALS
    return noted if noted != settled and (decision.reason in APPROVALS or waits_for_approval) else None


class Aftermath(NamedTuple):
    """Labels to add and remove after a run, and its ``problem``."""

    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    problem: str = ""


def aftermath(state: LoopState, budgets: Budgets, outputs: RunOutputs, *, is_over: bool = False) -> Aftermath:
    """Return what the last iteration requires; a missing or unknown suggestion counts as ``manual``.

    Where the pull request ``is_over``, a person is needed only for changes that went to a branch of their own.
    """
    last, summary = state.last, outputs.error_summary
    if last is None or last.exit_code == "0":
        late = f"The run ended later. {' '.join(texts_in(outputs.run_warnings))}"
        is_late = is_over and outputs.changes_made == "true"
        return Aftermath((NEEDS_HUMAN,), (RETRY,), late) if is_late else Aftermath(remove_labels=(RETRY,))
    problem = f"The agent's run failed ({last.category or 'unknown'}): {summary or 'no summary was given.'}"
    if last.is_over_budget:
        problem = f"The run spent its budget: {summary}"
    if last.recovery == "ignore" or is_over:
        return Aftermath(remove_labels=(RETRY,) if is_over else (), problem=problem)
    if last.recovery == "retry" and state.transient_in_a_row <= budgets.transient:
        return Aftermath(add_labels=(RETRY,), problem=problem)
    problem = f"{sentence(problem)} A person is needed."
    return Aftermath(add_labels=(NEEDS_HUMAN,), remove_labels=(RETRY,), problem=problem)


def plan_end(
    run: EndedRun, work: CompletedWork, iteration: Iteration, after: Aftermath, gathered: Gathered, workflow: str
) -> Callable[[LoopState], LoopState | None]:
    """Return the step that records the run and its effects; it returns None where another run is in progress."""
    context = run.context
    is_ticked = work.body is not None and work.body != run.pull.body

    def step(state: LoopState) -> LoopState | None:
        if state.running is None or state.running.run_id != context.run_id:
            return None
        recorded = end_run(state, iteration)
        decision = work.decision or gathered.decide(recorded)
        labels = (*after.add_labels, *decision.add_labels)
        effects = PendingEffects(
            run_id=context.run_id,
            body=digest(work.body or "") if is_ticked else "",
            item=work.item if is_ticked else 0,
            add_labels=labels,
            remove_labels=(*after.remove_labels, *decision.remove_labels),
            asks=NEEDS_HUMAN in labels,
            is_due=bool(workflow) and decision.action in ACTS,
            about=state.running.about,
        )
        known = {"verified": work.verified or state.verified, "worked_in": max(work.worked_in, state.worked_in)}
        recorded = recorded.model_copy(update={"pending": effects, **known})
        return context.with_notice(recorded, decision, after.problem or work.problem)

    return step


def pull_after(run: EndedRun, work: CompletedWork, iteration: Iteration, after: Aftermath) -> Pull:
    """Return the pull request with the effects applied; GitHub may still report the old head."""
    pull, running = run.pull, run.state.running
    labels = [label for label in pull.labels if label.casefold() not in after.remove_labels]
    is_behind = running is not None and pull.head_sha == running.head_sha
    is_pushed = iteration.changes_made and bool(iteration.tree)
    return replace(
        pull,
        body=pull.body if work.body is None else work.body,
        labels=tuple(dict.fromkeys((*labels, *after.add_labels))),
        head_sha=run.outputs.commit_sha if is_behind and is_pushed else pull.head_sha,
        is_mergeable=None if is_pushed else pull.is_mergeable,
    )
