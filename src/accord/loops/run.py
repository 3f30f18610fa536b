"""One turn of a loop: facts, decision, plan, apply. It begins, the agent runs in a job without write access, it ends.

Both phases store what they decided before they apply it; the same command continues after a crash.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from accord.core.frozen import Frozen
from accord.engine.trust import NEEDS_HUMAN
from accord.git.branches import Remote, fetch_refs
from accord.git.program import Git, token_config
from accord.github.models import Forbidden, Pull
from accord.github.state import Stored
from accord.loops.apply import apply_effects, ask_once, comment_once, relabel
from accord.loops.bot_comments import BotComments
from accord.loops.facts import EndedRun, Gathered, Loop, LoopContext, gather, read_end, read_state, with_trust
from accord.loops.keepalive import Autofix, Keepalive
from accord.loops.ledger import TurnProgress, end_run, progress_of, settled_state, state_before
from accord.loops.models import (
    ACTS,
    APPROVALS,
    PERSONS_STOP,
    RUNS,
    ActiveRun,
    LoopDecision,
    LoopState,
    decision_for,
)
from accord.loops.plan import aftermath, next_state, plan_end, pull_after, start_run
from accord.loops.questions import settings_of, with_state
from accord.loops.verify import Verify
from accord.runner.models import RunOutputs

_OFF = ("not-enabled", "label-not-allowed", "no-tasks")
LABEL_REFUSED = "label-refused"

LOOPS: dict[str, Loop] = {loop.name: loop() for loop in (Keepalive, Autofix, Verify, BotComments)}


TurnOutcome = Literal["begun", "acted", "asked", "idle", "ended", "unchanged", "planned"]


class Turn(Frozen):
    """The result of one phase: what was written, the decision, the state where it was read, and what was started."""

    loop: Loop
    context: LoopContext
    pull: Pull
    outcome: TurnOutcome
    decision: LoopDecision
    state: LoopState | None = None
    note: str = ""
    started: str = ""

    @property
    def started_run(self) -> int:
        """The workflow run that was started; 0 without one, or where GitHub does not tell."""
        return self.state.started_run if self.state else 0

    @property
    def should_run(self) -> bool:
        """Whether the agent is to run now."""
        return self.outcome in ("begun", "planned") and self.decision.action in RUNS


def begin(
    loop: Loop,
    context: LoopContext,
    *,
    ready: Callable[[LoopDecision], None] = lambda _: None,
    is_dry_run: bool = False,
) -> Turn:
    """Decide, and record the run once. ``ready`` is called before, and raises where the run could not take place."""
    context.log.is_dry_run = is_dry_run
    gathered, decision = gather(loop, context)
    if (decision.reason in PERSONS_STOP and context.by_person) or decision.reason in APPROVALS:
        gathered = read_state(gathered)
    try:
        for settle in loop.settling:
            if (settled := settle(gathered)) is not gathered:
                gathered, decision = settled, settled.decide()
        planned = _turn(gathered, "planned", decision)
        if decision.action in RUNS:
            if not is_dry_run:
                ready(decision)
            turn = _record_run(gathered, decision)
        elif decision.action in ACTS:
            turn = _act(gathered, decision)
        else:
            turn = _record_stop(gathered, decision)
        if turn.decision.reason == "label-not-allowed":
            comment_once(context, turn.decision.message, LABEL_REFUSED, about=turn.decision.about)
        relabel(context, gathered.pull.labels, turn.decision.add_labels, turn.decision.remove_labels)
    except Forbidden as refused:
        store = context.store(loop.name)
        with suppress(Forbidden):  # no agent runs where only half of its beginning may be written: the commits count
            store.update(store.newest() or store.load(), lambda state: state_before(state, context.run_id))
        return Turn(loop, context, gathered.pull, "idle", decision_for("read-only-token", f"{refused}"))
    return planned if is_dry_run else turn


def _turn(gathered: Gathered, outcome: TurnOutcome, decision: LoopDecision) -> Turn:
    state = gathered.stored.value if gathered.stored else None
    return Turn(gathered.loop, gathered.context, gathered.pull, outcome, decision, state)


def _record_run(gathered: Gathered, decision: LoopDecision) -> Turn:
    """Record the run by compare-and-set; of two, the second decides again on the state of the first."""
    context, loop = gathered.context, gathered.loop
    store = context.store(loop.name)
    running = ActiveRun(
        run_id=context.run_id,
        head_sha=gathered.pull.head_sha,
        started_at=context.github.server_time(),
        minutes=context.minutes,
        about=loop.subjects(gathered.facts),
    )

    def step(state: LoopState) -> LoopState | None:
        started = start_run(lambda known: loop.decide(known, context.redact), gathered.facts, state, running)
        return None if started is None else context.with_notice(started, decision)

    stored = store.update(gathered.stored or store.load(), step)
    gathered = replace(gathered, stored=stored)
    decision = gathered.decide(state_before(stored.value, context.run_id))
    if progress_of(stored.value, context.run_id) == "running" and decision.action in RUNS:
        return _turn(gathered, "begun", decision)
    return _record_stop(gathered, decision)


def _act(gathered: Gathered, decision: LoopDecision) -> Turn:
    """Carry out an action without an agent; what it may ask of a person is recorded like any question.

    An announcement is recorded before, since it finds itself again, and a review after, since only that prevents two.
    """
    loop = gathered.loop
    if decision.action == "announce":
        gathered = _record_act(gathered, decision)
    result = loop.act(gathered, decision)
    if NEEDS_HUMAN in result.add_labels:
        return _record_stop(gathered, result)
    if decision.action == "review":
        gathered = _record_act(gathered, result, review_of=gathered.pull.head_sha)
    return _turn(gathered, "acted", result)


def _record_act(gathered: Gathered, decision: LoopDecision, **known: str) -> Gathered:
    context = gathered.context

    def step(state: LoopState) -> LoopState:
        settled = settled_state(with_state(gathered.facts, state)).model_copy(update=known)
        return context.with_notice(settled, decision)

    store = context.store(gathered.loop.name)
    return replace(gathered, stored=store.update(gathered.stored or store.load(), step))


def _record_stop(gathered: Gathered, decision: LoopDecision) -> Turn:
    """Record what a decision not to run changes; nothing is read where the facts already show that nothing does."""
    context, facts, asks = gathered.context, gathered.facts, NEEDS_HUMAN in decision.add_labels

    def step(state: LoopState) -> LoopState | None:
        return next_state(facts, state, decision, context.with_notice)

    if gathered.stored or step(facts.state):
        store = context.store(gathered.loop.name)
        gathered = replace(gathered, stored=store.update(gathered.stored or store.load(), step))
    if asks and gathered.stored:
        ask_once(context, gathered.loop.name, gathered.stored.value, decision.about)
    return _turn(gathered, "asked" if asks else "idle", decision)


def read_progress(loop: Loop, context: LoopContext) -> TurnProgress:
    """Read how far this run got."""
    return progress_of(context.store(loop.name).load().value, context.run_id)


def end(loop: Loop, context: LoopContext, outputs: RunOutputs, *, workflow: str = "", is_dry_run: bool = False) -> Turn:
    """Record how the run ended and apply what follows; start ``workflow`` again where more is due at once."""
    context.log.is_dry_run = is_dry_run
    store = context.store(loop.name)
    pull, stored = context.pull(), store.load()
    run = EndedRun(loop, context, pull, stored.value, outputs)
    is_repeated = True
    if stored.value.running and stored.value.running.run_id == context.run_id:
        is_repeated = False
        work, iteration = read_end(run, stored.value.running)
        recorded = end_run(stored.value, iteration)
        is_over = loop.changes_code and pull.state != "open"
        after = aftermath(recorded, settings_of(loop.facts_of(context, pull)).budgets, outputs, is_over=is_over)
        pull = pull_after(run, work, iteration, after)
        gathered, _ = gather(
            loop, context, pull, Stored(recorded), for_prompt=False, decides_trust=False, more=work.facts
        )
        stored = store.update(stored, plan_end(run, work, iteration, after, gathered, workflow))
    effects = stored.value.pending
    if effects is None or effects.run_id != context.run_id:
        note = "This run is not in progress: it was given up as lost, or never began."
        if progress_of(stored.value, context.run_id) == "settled":
            note = "Nothing is left to do for this run."
        return _end_turn(run, "unchanged", stored.value, note)
    started_run = apply_effects(replace(run, state=stored.value), effects, workflow, is_repeated=is_repeated)

    def settle(state: LoopState) -> LoopState | None:
        if progress_of(state, context.run_id) != "ended":
            return None
        return state.model_copy(update={"pending": None, "started_run": started_run})

    kept = store.update(stored, settle)
    if is_dry_run:
        return _end_turn(run, "planned", stored.value)
    return _end_turn(run, "ended", kept.value, started=workflow if effects.is_due else "")


def _end_turn(run: EndedRun, outcome: TurnOutcome, state: LoopState, note: str = "", started: str = "") -> Turn:
    decision = LoopDecision(action="stop", reason="", message=note)
    if state.notice is not None:
        decision = LoopDecision.model_validate(state.notice.model_dump(exclude={"problem"}))
    return Turn(run.loop, run.context, run.pull, outcome, decision, state, note, started)


def pulls_due(loop: Loop, context: LoopContext) -> Iterator[int]:
    """Yield the open pull requests with work to do, judged by the listing where that may mean a run of the agent."""
    for pull in context.github.open_pulls():
        about = replace(context, number=pull.number, stores={})
        facts = loop.facts_of(about, pull)
        decision = loop.decide(facts, context.redact)
        if decision.action in RUNS:
            decision = with_trust(Gathered(loop, about, pull, facts)).decide()
        has_upkeep = loop.has_upkeep and facts.pull.is_ours and decision.reason in _OFF
        if has_upkeep or (decision.action in ACTS and decision.action not in RUNS):
            _, decision = gather(loop, about, for_prompt=False)
        if decision.action in ACTS:
            yield pull.number


def check_out(pull: Pull, remote: Remote, directory: Path) -> Path:
    """Clone the pull request's branch (unless it is merged) and its base into a directory, without the token."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    git = Git(directory, config=token_config(remote.server_url, remote.token))
    git("init", "--quiet", "--template=", "--initial-branch", "none")
    branches = (pull.base_branch, *(() if pull.merge_commit else (pull.head_branch,)))
    fetch_refs(git, remote, {branch: branch for branch in branches})
    git("checkout", "--quiet", pull.merge_commit or pull.head_branch)
    return directory
