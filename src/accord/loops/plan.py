"""Plan what follows a run that ended: its iteration, the next decision, and the effects. Nothing is written here.

The plan becomes part of the loop's state before any of it is applied, so a killed process finds it there and continues.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from accord.loops.ledger import end_run
from accord.loops.models import ACTS, NEEDS_HUMAN, Closed, PendingEffects
from accord.loops.questions import RETRY
from accord.loops.state import with_notice
from accord.loops.texts import digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.github.models import Pull
    from accord.loops.facts import EndedRun, EndFacts, Gathered
    from accord.loops.models import Budgets, LoopState


class Aftermath(Closed):
    """Labels to add and remove after a run, and its ``problem``."""

    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    problem: str = ""


def aftermath(state: LoopState, budgets: Budgets, summary: str) -> Aftermath:
    """Return what the last iteration requires; a missing or unknown suggestion counts as ``manual``."""
    last = state.last
    if last is None or last.exit_code == "0":
        return Aftermath(remove_labels=(RETRY,))
    problem = f"The agent's run failed ({last.category or 'unknown'}): {summary or 'no summary was given.'}"
    if last.is_over_budget:
        problem = f"The run spent its budget: {summary}"
    if last.recovery == "ignore":
        return Aftermath(problem=problem)
    if last.recovery == "retry" and state.transient_in_a_row <= budgets.transient:
        return Aftermath(add_labels=(RETRY,), problem=problem)
    problem = f"{problem} A person is needed."
    return Aftermath(add_labels=(NEEDS_HUMAN,), remove_labels=(RETRY,), problem=problem)


def plan_end(
    run: EndedRun, ended: EndFacts, after: Aftermath, gathered: Gathered, workflow: str
) -> Callable[[LoopState], LoopState | None]:
    """Return the step that records the run and its effects; it returns None where another run is in progress."""
    context, work = run.context, ended.work
    is_ticked = work.body is not None and work.body != run.pull.body

    def step(state: LoopState) -> LoopState | None:
        if state.running is None or state.running.run_id != context.run_id:
            return None
        recorded = end_run(state, ended.iteration)
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
            reruns=decision.reruns,
            about=state.running.about,
        )
        worked_in = max(work.worked_in, state.worked_in)
        known = {"verified": work.verified or state.verified, "worked_in": worked_in}
        recorded = recorded.model_copy(update={"pending": effects, **known})
        problem = after.problem or work.problem
        return with_notice(recorded, decision, problem, secrets=context.redact, policy=context.policy)

    return step


def pull_after(run: EndedRun, ended: EndFacts, after: Aftermath) -> Pull:
    """Return the pull request with the effects applied; GitHub may still report the old head."""
    pull, running, work, iteration = run.pull, run.state.running, ended.work, ended.iteration
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
