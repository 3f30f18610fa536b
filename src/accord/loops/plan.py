"""Plan what follows a run that ended: its iteration, the next decision, and the effects. Nothing is written here.

The plan becomes part of the loop's state before any of it is applied, so a killed process finds it there and continues.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.github.state import Stored
from accord.loops.apply import digest
from accord.loops.facts import gather
from accord.loops.ledger import end_run
from accord.loops.models import ACTS, NEEDS_HUMAN, Closed, PendingEffects
from accord.loops.outputs import iteration_of
from accord.loops.questions import RETRY, settings_of
from accord.loops.state import with_notice

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.github.models import Pull
    from accord.loops.facts import CompletedWork, EndedRun
    from accord.loops.models import ActiveRun, Budgets, Iteration, LoopState

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


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


def plan_end(run: EndedRun, running: ActiveRun, workflow: str) -> Callable[[LoopState], LoopState | None]:
    """Return the step that records the run and its effects; it returns None where another run is in progress."""
    loop, context = run.loop, run.context
    work = loop.complete(run)
    iteration = _iteration(run, running, work)
    ended = end_run(run.state, iteration)
    budgets = settings_of(loop.facts_of(context, run.pull)).budgets
    after = aftermath(ended, budgets, run.outputs.error_summary)
    pull = _pull_after(run, work, iteration, after)
    gathered, _ = gather(loop, context, pull, Stored(ended), for_prompt=False, more=work.facts)
    is_ticked = work.body is not None and work.body != run.pull.body

    def step(state: LoopState) -> LoopState | None:
        if state.running is None or state.running.run_id != context.run_id:
            return None
        ended = end_run(state, iteration)
        decision = work.decision or gathered.decide(ended)
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
            about=running.about,
        )
        worked_in = max(work.worked_in, state.worked_in)
        known = {"verified": work.verified or state.verified, "worked_in": worked_in}
        ended = ended.model_copy(update={"pending": effects, **known})
        problem = after.problem or work.problem
        return with_notice(ended, decision, problem, secrets=context.redact, policy=context.policy)

    return step


def _iteration(run: EndedRun, running: ActiveRun, work: CompletedWork) -> Iteration:
    """Describe the run; files are compared by their tree, so that a revert is recognised."""
    outputs, notice = run.outputs, run.state.notice
    before = _tree(run, running.head_sha)
    has_changed = outputs.changes_made == "true" and outputs.commit_sha
    return iteration_of(
        outputs,
        running,
        number=run.state.iterations,
        now=run.context.github.server_time(),
        kind="fix" if notice is not None and notice.action == "fix" else "run",
        trees=(before, _tree(run, outputs.commit_sha) if has_changed else before),
        tasks_done=work.tasks_done,
    )


def _tree(run: EndedRun, sha: str) -> str:
    commit = run.context.github.commit_object(sha) if _COMMIT.fullmatch(sha) else None
    return commit.tree if commit else ""


def _pull_after(run: EndedRun, work: CompletedWork, iteration: Iteration, after: Aftermath) -> Pull:
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
