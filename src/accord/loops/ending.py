"""What follows a run that ended: decided from facts before anything is written, then carried out.

The decision is written into the loop's state first. Who is killed on the way finds it there, and does the rest.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.loops.effects import ask_once, identity_of, relabel, start, tick_body
from accord.loops.gather import RUNS, gather
from accord.loops.ledger import ended
from accord.loops.models import Ending
from accord.loops.outcome import iteration_of
from accord.loops.questions import anew, settings_of
from accord.loops.reasons import NEEDS_HUMAN
from accord.loops.recovery import aftermath
from accord.loops.state_comment import telling
from accord.loops.store import Kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.github.pull_port import Pull
    from accord.loops.loop import Completed, EndedRun
    from accord.loops.models import Decision, Iteration, LoopState, Running
    from accord.loops.recovery import Aftermath
    from accord.loops.site import Site

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def plan(told: EndedRun, running: Running, workflow: str) -> Callable[[LoopState], LoopState | None]:
    """Return the step of the state, for its compare-and-set, that records the run and all that follows it.

    It returns None where this run is not the one under way. ``workflow`` is started again where more is due at once.
    """
    loop, site = told.loop, told.site
    completed = loop.completed(told)
    iteration = _iteration(told, running, completed)
    after = ended(told.state, iteration)
    budgets = settings_of(loop.first_facts(site, told.pull)).budgets
    follows = aftermath(after, budgets, told.outputs.error_summary)
    pull = _as_it_will_be(told, completed, iteration, follows)
    known, _ = gather(loop, site, pull, Kept(after), for_prompt=False, more=completed.facts)

    def step(state: LoopState) -> LoopState | None:
        if state.running is None or state.running.run_id != site.run_id:
            return None
        over = ended(state, iteration)
        decision = completed.decision or loop.decide(anew(known.facts, over), site.redact)
        ending = _ending(told, completed, follows, decision, workflow).model_copy(update={"about": running.about})
        update = {"ending": ending, "verified": completed.verified or state.verified}
        return telling(over.model_copy(update=update), decision, follows.said or completed.said, site.redact)

    return step


def _ending(told: EndedRun, completed: Completed, follows: Aftermath, decision: Decision, workflow: str) -> Ending:
    """Write down what is to be done."""
    is_ticked = completed.body is not None and completed.body != told.pull.body
    return Ending(
        run_id=told.site.run_id,
        body=identity_of(completed.body or "") if is_ticked else "",
        add_labels=(*follows.add_labels, *decision.add_labels),
        remove_labels=(*follows.remove_labels, *decision.remove_labels),
        asks=follows.notify or NEEDS_HUMAN in decision.add_labels,
        is_due=bool(workflow) and decision.action in RUNS,
    )


def carry_out(told: EndedRun, ending: Ending, state: LoopState, workflow: str) -> None:
    """Do what was written down; all of it may be repeated."""
    site = told.site
    if ending.body:
        tick_body(site, told.pull, told.outputs, ending.body)
    told.loop.carry_out(replace(told, state=state), ending)
    if ending.asks:
        ask_once(site, told.loop.name, state)
    relabel(site, told.pull.labels, ending.add_labels, ending.remove_labels)
    if ending.is_due and workflow:
        start(site, workflow, site.number)


def finished(state: LoopState, run_id: str) -> LoopState | None:
    """Forget what was to be done for a run; None where there is nothing."""
    is_ours = state.ending is not None and state.ending.run_id == run_id
    return state.model_copy(update={"ending": None}) if is_ours else None


def _iteration(told: EndedRun, running: Running, completed: Completed) -> Iteration:
    """Describe the run; its files are known by their tree, so that what was there before is seen again."""
    site, outputs = told.site, told.outputs
    before = _tree(site, running.head_sha)
    has_changed = outputs.changes_made == "true" and outputs.commit_sha
    was = told.state.told
    return iteration_of(
        outputs,
        running,
        number=told.state.iterations,
        now=site.now(),
        kind="fix" if was is not None and was.action == "fix" else "run",
        trees=(before, _tree(site, outputs.commit_sha) if has_changed else before),
        tasks_done=completed.tasks_done,
    )


def _tree(site: Site, sha: str) -> str:
    commit = site.github.commit_object(sha) if _COMMIT.fullmatch(sha) else None
    return commit.tree if commit else ""


def _as_it_will_be(told: EndedRun, completed: Completed, iteration: Iteration, follows: Aftermath) -> Pull:
    """Return the pull request as it will be: ticked, relabelled, and at the commit that was pushed.

    GitHub may still tell the head that the run began at.
    """
    pull, outputs = told.pull, told.outputs
    labels = [label for label in pull.labels if label.casefold() not in follows.remove_labels]
    running = told.state.running
    is_behind = running is not None and pull.head_sha == running.head_sha
    is_pushed = iteration.changes_made and bool(iteration.tree)
    return replace(
        pull,
        body=pull.body if completed.body is None else completed.body,
        labels=tuple(dict.fromkeys((*labels, *follows.add_labels))),
        head_sha=outputs.commit_sha if is_behind and is_pushed else pull.head_sha,
    )
