"""One turn of a loop: facts, decision, plan, apply. It begins, the agent runs in a job without write access, it ends.

Both phases store what they decided before they apply it; the same command continues after a crash. The
``QUESTIONS`` of a loop's module stop it.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from accord.git.branches import fetch_ref
from accord.git.program import Git, token_config
from accord.github.models import Forbidden
from accord.github.state import Stored
from accord.loops import autofix, bot_comments, keepalive, verify
from accord.loops.apply import apply_effects, ask_once, relabel, rerun_held, without_effects
from accord.loops.facts import EndedRun, gather, read_end, read_state
from accord.loops.ledger import end_run, settled_state, state_before
from accord.loops.models import (
    ACTS,
    APPROVALS,
    NEEDS_HUMAN,
    PERSONS_STOP,
    RUNS,
    ActiveRun,
    LoopDecision,
    decision_for,
)
from accord.loops.plan import aftermath, plan_end, pull_after
from accord.loops.questions import start_run, with_state
from accord.loops.state import promises_more, waits_for_approval, with_notice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from accord.git.branches import Remote
    from accord.github.models import Pull
    from accord.loops.facts import Gathered, Loop, LoopContext
    from accord.loops.models import LoopState
    from accord.runner.models import RunOutputs

LOOPS: dict[str, Loop] = {module.LOOP.name: module.LOOP for module in (keepalive, autofix, verify, bot_comments)}

_MAY_NOT_RERUN = "The token may not start held workflow runs. Grant it actions: write, or approve them yourself."
_FINISHED = "Nothing is left to do for this run."
_NOT_RUNNING = "This run is not in progress: it was given up as lost, or never began."


@dataclass(frozen=True)
class Turn:
    """The result of one phase: what was written, the decision, the state where it was read, and what was started."""

    loop: Loop
    context: LoopContext
    pull: Pull
    outcome: Literal["begun", "acted", "asked", "idle", "ended", "unchanged", "planned"]
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
    planned = _turn(gathered, "planned", decision)
    try:
        loop.settle(gathered)
        if decision.action in RUNS:
            if not is_dry_run:
                ready(decision)
            turn = _record_run(gathered, decision)
        elif decision.action in ACTS:
            turn = _act(gathered, decision)
        else:
            turn = _record_stop(gathered, decision)
        relabel(context, gathered.pull.labels, turn.decision.add_labels, turn.decision.remove_labels)
        if not rerun_held(context, turn.decision.reruns):
            turn = replace(turn, note=_MAY_NOT_RERUN)
    except Forbidden as refused:
        _undo_begin(loop, context)
        return Turn(loop, context, gathered.pull, "idle", decision_for("read-only-token", f"{refused}"))
    return planned if is_dry_run else turn


def _turn(
    gathered: Gathered, outcome: Literal["begun", "acted", "asked", "idle", "planned"], decision: LoopDecision
) -> Turn:
    state = gathered.stored.value if gathered.stored else None
    return Turn(gathered.loop, gathered.context, gathered.pull, outcome, decision, state)


def _undo_begin(loop: Loop, context: LoopContext) -> None:
    """Take the run back: no agent runs where only half of its beginning may be written."""
    store = context.store(loop.name)
    with suppress(Forbidden):  # the token may not write the comment; the commits count
        store.update(store.newest() or store.load(), lambda state: state_before(state, context.run_id))


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
        started = start_run(lambda facts: loop.decide(facts, context.redact), gathered.facts, state, running)
        return (
            None if started is None else with_notice(started, decision, secrets=context.redact, policy=context.policy)
        )

    stored = store.update(gathered.stored or store.load(), step)
    gathered = replace(gathered, stored=stored)
    decision = gathered.decide(state_before(stored.value, context.run_id))
    is_ours = stored.value.running is not None and stored.value.running.run_id == context.run_id
    if is_ours and decision.action in RUNS:
        return _turn(gathered, "begun", decision)
    return _record_stop(gathered, decision)


def _act(gathered: Gathered, decision: LoopDecision) -> Turn:
    """Carry out an action without an agent; what it may ask of a person is recorded like any question.

    An announcement is recorded before, because it finds itself again. A review is recorded after, because only the
    record prevents a second one. An update of the branch is its own record.
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
        return with_notice(settled, decision, secrets=context.redact, policy=context.policy)

    store = context.store(gathered.loop.name)
    return replace(gathered, stored=store.update(gathered.stored or store.load(), step))


def _record_stop(gathered: Gathered, decision: LoopDecision) -> Turn:
    """Record what a decision not to run changes: a person is asked, a run was lost, or the notice is out of date."""
    context, facts = gathered.context, gathered.facts
    asks = NEEDS_HUMAN in decision.add_labels

    def needs_notice(settled: LoopState) -> bool:
        if asks or decision.reason in PERSONS_STOP:
            return asks or promises_more(settled)
        is_about_approval = decision.reason in APPROVALS or waits_for_approval(settled)
        return is_about_approval and with_own_notice(settled) != settled

    def with_own_notice(settled: LoopState) -> LoopState:
        return with_notice(settled, decision, secrets=context.redact, policy=context.policy)

    def step(state: LoopState) -> LoopState | None:
        settled = settled_state(with_state(facts, state))
        return with_own_notice(settled) if needs_notice(settled) or settled != state else None

    settled = settled_state(facts)
    is_lost = facts.state.running is not None and settled.running is None
    if not (is_lost or needs_notice(settled) or decision.reason in APPROVALS):  # a killed turn may have shown nothing
        known = gathered.stored
        if (
            known and known.link and not (known.is_shown or context.log.is_dry_run)
        ):  # its writer was killed before it could show it
            gathered = replace(gathered, stored=context.store(gathered.loop.name).show(known))
        return _turn(gathered, "idle", decision)
    store = context.store(gathered.loop.name)
    stored = store.update(gathered.stored or store.load(), step)
    if asks:
        ask_once(context, gathered.loop.name, stored.value, decision.about)
    return _turn(replace(gathered, stored=stored), "asked" if asks else "idle", decision)


def end(loop: Loop, context: LoopContext, outputs: RunOutputs, *, workflow: str = "", is_dry_run: bool = False) -> Turn:
    """Record how the run ended and apply what follows; start ``workflow`` again where more is due at once."""
    context.log.is_dry_run = is_dry_run
    store = context.store(loop.name)
    pull, stored = context.pull(), store.load()
    run = EndedRun(loop, context, pull, stored.value, outputs)
    is_repeated = True
    if stored.value.running and stored.value.running.run_id == context.run_id:
        is_repeated = False
        ended = read_end(run, stored.value.running)
        recorded = end_run(stored.value, ended.iteration)
        after = aftermath(recorded, ended.budgets, outputs.error_summary)
        pull, more = pull_after(run, ended, after), ended.work.facts
        gathered, _ = gather(loop, context, pull, Stored(recorded), for_prompt=False, more=more)
        stored = store.update(stored, plan_end(run, ended, after, gathered, workflow))
    effects = stored.value.pending
    if effects is None or effects.run_id != context.run_id:
        is_known = any(iteration.run_id == context.run_id for iteration in stored.value.history)
        return _end_turn(run, "unchanged", stored.value, _FINISHED if is_known else _NOT_RUNNING)
    started_run = apply_effects(replace(run, state=stored.value), effects, workflow, is_repeated=is_repeated)
    kept = store.update(stored, lambda state: without_effects(state, context.run_id, started_run))
    if is_dry_run:
        return _end_turn(run, "planned", stored.value)
    return _end_turn(run, "ended", kept.value, started=workflow if effects.is_due else "")


def _end_turn(
    run: EndedRun,
    outcome: Literal["ended", "unchanged", "planned"],
    state: LoopState,
    note: str = "",
    started: str = "",
) -> Turn:
    decision = LoopDecision(action="stop", reason="", message=note)
    if state.notice is not None:
        decision = LoopDecision.model_validate(state.notice.model_dump(exclude={"problem"}))
    return Turn(run.loop, run.context, run.pull, outcome, decision, state, note, started)


def pulls_due(loop: Loop, context: LoopContext) -> Iterator[int]:
    """Yield the open pull requests with work to do, judged by the listing where that may mean a run of the agent.

    Other actions need more facts, and reading those costs less than starting a workflow in vain.
    """
    for pull in context.github.open_pulls():
        about = replace(context, number=pull.number, stores={})
        facts = loop.facts_of(about, pull)
        decision = loop.decide(facts, context.redact)
        has_upkeep = loop.has_upkeep and facts.pull.is_ours and decision.reason in ("not-enabled", "no-tasks")
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
    for branch in dict.fromkeys((pull.base_branch, *(() if pull.merge_commit else (pull.head_branch,)))):
        fetch_ref(git, remote, f"refs/heads/{branch}", branch)
    git("checkout", "--quiet", pull.merge_commit or pull.head_branch)
    return directory
