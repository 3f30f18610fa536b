"""A turn of a loop on GitHub: begin it, and end it; and looking through open pull requests for turns that are due.

Between the two the agent runs, in a job that may write nothing. Each gathers first, then decides, then writes what it
has decided into the loop's state, and only then does it. Whatever ends the process, the same command goes on from
there.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from accord.github.once import send_once
from accord.github.port import Forbidden
from accord.kernel.errors import Stopped
from accord.loops.asking import ask_once
from accord.loops.gather import RUNS, gather
from accord.loops.ledger import as_before, ended, settled
from accord.loops.loop import Told
from accord.loops.models import Decision, Ending, LoopState, Running
from accord.loops.outcome import iteration_of
from accord.loops.questions import anew
from accord.loops.questions import begin as begun_by
from accord.loops.reasons import NEEDS_HUMAN, decided
from accord.loops.recovery import Aftermath, aftermath
from accord.loops.settings import read_settings
from accord.loops.state_comment import telling
from accord.loops.store import Kept, change, load
from accord.loops.ticking import tick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from accord.github.pull_port import Pull
    from accord.loops.gather import Gathered
    from accord.loops.loop import Completed, Loop
    from accord.loops.models import Iteration
    from accord.loops.site import Site
    from accord.runner.models import RunOutputs

TRIES = 5
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LEFT = "Nothing is left to do for this run."
_LOST = "This run is not the one under way: it was given up as lost, or never began."


@dataclass(frozen=True)
class Turn:
    """What came of one phase. ``outcome`` says what was written: planned is nothing yet, unchanged nothing at all.

    ``state`` is None where it was not read; ``started`` names the workflow that was started again.
    """

    loop: Loop
    site: Site
    pull: Pull
    outcome: Literal["begun", "asked", "idle", "ended", "unchanged", "planned"]
    decision: Decision
    state: LoopState | None = None
    note: str = ""
    started: str = ""

    @property
    def should_run(self) -> bool:
        """Whether the agent is to run now."""
        return self.outcome in ("begun", "planned") and self.decision.action in RUNS


def begin(loop: Loop, site: Site, *, is_dry_run: bool = False) -> Turn:
    """Decide, and record that a run begins where it does. The same run begins once, however often it asks."""
    known, decision = gather(loop, site)
    if is_dry_run:
        return Turn(loop, site, known.pull, "planned", decision, known.kept.state if known.kept else None)
    try:
        turn = _begun(known, decision) if decision.action in RUNS else _not_begun(known, decision)
        relabel(site, known.pull.labels, turn.decision.add_labels, turn.decision.remove_labels)
    except Forbidden as refused:
        return Turn(loop, site, known.pull, "idle", decided("read-only-token", f"{refused}"))
    return turn


def _begun(known: Gathered, decision: Decision) -> Turn:
    """Record the run by compare-and-set; who comes second learns what the first one has made of it."""
    site, loop = known.site, known.loop
    kept = known.kept or load(site.place(loop.name))
    running = Running(run_id=site.run_id, head_sha=known.pull.head_sha, started_at=site.now(), minutes=site.minutes)

    def step(state: LoopState) -> LoopState | None:
        started = begun_by(_decider(known), known.facts, state, running)
        return None if started is None else telling(started, decision, secrets=site.redact)

    kept = change(site.place(loop.name), kept, step)
    is_ours = kept.state.running is not None and kept.state.running.run_id == site.run_id
    decision = _decider(known)(anew(known.facts, as_before(kept.state, site.run_id)))
    if is_ours and decision.action in RUNS:
        return Turn(loop, site, known.pull, "begun", decision, kept.state)
    return _not_begun(replace(known, kept=kept), decision)


def _not_begun(known: Gathered, decision: Decision) -> Turn:
    """Ask a person where the decision does; else leave everything as it is."""
    site, loop = known.site, known.loop
    if NEEDS_HUMAN not in decision.add_labels:
        return Turn(loop, site, known.pull, "idle", decision, known.kept.state if known.kept else None)
    kept = known.kept or load(site.place(loop.name))
    kept = change(
        site.place(loop.name),
        kept,
        lambda state: telling(settled(anew(known.facts, state)), decision, secrets=site.redact),
    )
    ask_once(site, loop.name, kept.state)
    return Turn(loop, site, known.pull, "asked", decision, kept.state)


def _decider(known: Gathered) -> Callable[[object], Decision]:
    return lambda facts: known.loop.decide(facts, known.site.redact)


def end(loop: Loop, site: Site, outputs: RunOutputs, *, workflow: str = "", is_dry_run: bool = False) -> Turn:
    """Record how the run ended and do what follows; with a ``workflow``, start that again where more is due at once."""
    pull, kept = site.pull(), load(site.place(loop.name))
    told = Told(loop, site, pull, kept.state, outputs)
    if kept.state.running and kept.state.running.run_id == site.run_id:
        plan = _plan(told, kept.state.running, workflow)
        if is_dry_run:
            return _turn(told, "planned", plan(kept.state) or kept.state)
        kept = change(site.place(loop.name), kept, plan)
    ending = kept.state.ending
    if ending is None or ending.run_id != site.run_id:
        is_known = any(iteration.run_id == site.run_id for iteration in kept.state.history)
        return _turn(told, "unchanged", kept.state, _LEFT if is_known else _LOST)
    if is_dry_run:
        return _turn(told, "planned", kept.state)
    _carry_out(told, ending, kept.state, workflow)
    kept = change(site.place(loop.name), kept, lambda state: _done(state, site.run_id))
    return _turn(told, "ended", kept.state, started=workflow if ending.is_due else "")


def _done(state: LoopState, run_id: str) -> LoopState | None:
    is_ours = state.ending is not None and state.ending.run_id == run_id
    return state.model_copy(update={"ending": None}) if is_ours else None


def _turn(
    told: Told, outcome: Literal["ended", "unchanged", "planned"], state: LoopState, note: str = "", started: str = ""
) -> Turn:
    decision = Decision(action="stop", reason="", message=note)
    if state.told is not None:
        decision = Decision(
            action=state.told.action, reason=state.told.reason, message=state.told.message, warnings=state.told.warnings
        )
    return Turn(told.loop, told.site, told.pull, outcome, decision, state, note, started)


def _plan(told: Told, running: Running, workflow: str) -> Callable[[LoopState], LoopState | None]:
    """Decide all that follows the run, before anything is written; the state that this leads to holds it."""
    loop, site = told.loop, told.site
    completed = loop.completed(told)
    iteration = _iteration(told, running, completed)
    after = ended(told.state, iteration)
    budgets = read_settings(told.pull.body, loop.first_facts(site, told.pull).budgets).budgets
    follows = aftermath(after, budgets, told.outputs.error_summary)
    pull = _as_it_will_be(told, running, completed, follows)
    known, _ = gather(loop, site, pull, Kept(after), for_prompt=False)

    def step(state: LoopState) -> LoopState | None:
        if state.running is None or state.running.run_id != site.run_id:
            return None
        over = ended(state, iteration)
        decision = completed.decision or _decider(known)(anew(known.facts, over))
        ending = Ending(
            run_id=site.run_id,
            body="" if completed.body is None or completed.body == told.pull.body else identity_of(completed.body),
            add_labels=(*follows.add_labels, *decision.add_labels),
            remove_labels=(*follows.remove_labels, *decision.remove_labels),
            asks=follows.notify or NEEDS_HUMAN in decision.add_labels,
            is_due=bool(workflow) and decision.action in RUNS,
        )
        return telling(over.model_copy(update={"ending": ending}), decision, follows.said, site.redact)

    return step


def _iteration(told: Told, running: Running, completed: Completed) -> Iteration:
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


def _as_it_will_be(told: Told, running: Running, completed: Completed, follows: Aftermath) -> Pull:
    """Return the pull request as it will be: ticked, relabelled, and at the commit that was pushed.

    GitHub may still tell the head that the run began at.
    """
    pull, outputs = told.pull, told.outputs
    labels = [label for label in pull.labels if label.casefold() not in follows.remove_labels]
    is_behind = pull.head_sha == running.head_sha and outputs.changes_made == "true"
    return replace(
        pull,
        body=pull.body if completed.body is None else completed.body,
        labels=tuple(dict.fromkeys((*labels, *follows.add_labels))),
        head_sha=outputs.commit_sha if is_behind and _COMMIT.fullmatch(outputs.commit_sha) else pull.head_sha,
    )


def identity_of(body: str) -> str:
    """Name a body by a digest."""
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:20]


def _carry_out(told: Told, ending: Ending, state: LoopState, workflow: str) -> None:
    """Do what was decided. Each step finds out whether it was done already, so all of them may be repeated."""
    site = told.site
    if ending.body:
        _tick(told, ending.body)
    told.loop.carry_out(told)
    if ending.asks:
        ask_once(site, told.loop.name, state)
    relabel(site, told.pull.labels, ending.add_labels, ending.remove_labels)
    if ending.is_due and workflow:
        start(site, workflow, site.number)


def _tick(told: Told, wanted: str) -> None:
    """Tick completed tasks in the body as it is now; a body that a person changes meanwhile is read again."""
    pull = told.pull
    for _ in range(TRIES):
        ticked = tick(pull.body, told.outputs)
        if identity_of(pull.body) == wanted or ticked.body == pull.body:
            return
        if told.site.github.change_body(pull.number, was=pull.body, body=ticked.body):
            return
        pull = told.site.pull()
    raise Stopped(f"The body of #{pull.number} changed {TRIES} times in a row.", mend="Run the same command again.")


def relabel(site: Site, there: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> None:
    """Put labels on and take them off, where that changes anything."""
    known = {label.casefold() for label in there}
    wanted = {label.casefold() for label in added}
    if missing := [label for label in dict.fromkeys(added) if label.casefold() not in known]:
        site.github.add_labels(site.number, missing)
    for label in dict.fromkeys(removed):
        if label.casefold() in known - wanted:
            site.github.remove_label(site.number, label)


def start(site: Site, workflow: str, number: int) -> None:
    """Start a workflow of the default branch for a pull request.

    Twice is harmless: the second one finds a run under way, or the next turn due.
    """
    branch = site.github.repository().default_branch
    inputs = {"pr_number": str(number)}
    send_once(lambda: site.github.dispatch_workflow(workflow, branch, inputs), lambda: None, site.clock)


def due(loop: Loop, site: Site) -> Iterator[int]:
    """Name the open pull requests that the loop is on for and that nobody stopped, by what the listing alone tells."""
    for pull in site.github.open_pulls():
        facts = loop.first_facts(replace(site, number=pull.number), pull)
        if loop.decide(facts, site.redact).action in RUNS:
            yield pull.number
