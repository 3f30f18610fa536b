"""A turn of a loop on GitHub: begin it, and end it; and looking through open pull requests for turns that are due.

Between the two the agent runs, in a job that may write nothing. Each gathers first, then decides, then writes what it
has decided into the loop's state, and only then does it. Whatever ends the process, the same command goes on from
there.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from accord.github.models import Forbidden
from accord.loops import autofix, bot_comments, keepalive, verify
from accord.loops import bot_comments as answering
from accord.loops import verdicts as verifying
from accord.loops.comments import promises_more, telling
from accord.loops.ending import ask_once, carry_out, finished, plan, relabel
from accord.loops.facts import RUNS, gather, with_checks, with_logs, with_state
from accord.loops.keepalive import tick
from accord.loops.ledger import as_before, settled
from accord.loops.loop import Completed, EndedRun, Loop
from accord.loops.models import NEEDS_HUMAN, PERSONS_STOP, CheckFacts, Decision, Running, decided
from accord.loops.questions import anew
from accord.loops.questions import begin as begun_by
from accord.loops.state import change, load, newest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accord.github.models import Pull
    from accord.loops.context import Site
    from accord.loops.facts import Gathered
    from accord.loops.loop import EndedRun, Loop
    from accord.loops.models import LoopState
    from accord.runner.models import RunOutputs


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


def begin(
    loop: Loop, site: Site, *, ready: Callable[[Decision], None] = lambda _: None, is_dry_run: bool = False
) -> Turn:
    """Decide, and record that a run begins where it does. The same run begins once, however often it asks.

    ``ready`` is asked before anything is written for a run, and raises where that could not take place.
    """
    known, decision = gather(loop, site)
    if decision.reason in PERSONS_STOP and site.by_person:
        known = with_state(known)
    if is_dry_run:
        return Turn(loop, site, known.pull, "planned", decision, known.kept.state if known.kept else None)
    if decision.action in RUNS:
        ready(decision)
    try:
        turn = _begun(known, decision) if decision.action in RUNS else _not_begun(known, decision)
        relabel(site, known.pull.labels, turn.decision.add_labels, turn.decision.remove_labels)
    except Forbidden as refused:
        _take_back(loop, site)
        return Turn(loop, site, known.pull, "idle", decided("read-only-token", f"{refused}"))
    return turn


def _take_back(loop: Loop, site: Site) -> None:
    """Count the run as never begun: where only half of what begins it may be written, no agent runs."""
    place = site.place(loop.name)
    with suppress(Forbidden):  # the comment may be what the token may not write; the commits count
        change(place, newest(place), lambda state: as_before(state, site.run_id))


def _begun(known: Gathered, decision: Decision) -> Turn:
    """Record the run by compare-and-set; who comes second learns what the first one has made of it."""
    site, loop = known.site, known.loop
    kept = known.kept or load(site.place(loop.name))
    running = Running(
        run_id=site.run_id,
        head_sha=known.pull.head_sha,
        started_at=site.now(),
        minutes=site.minutes,
        about=loop.given(known),
    )

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
    """Ask a person where the decision does, record a run that was lost, so that the pause after it can end, and tell
    that a person has stopped the loop where the comment still promises more.

    Else everything is left as it is.
    """
    site, loop = known.site, known.loop
    state = settled(known.facts)
    asks = NEEDS_HUMAN in decision.add_labels
    is_lost = known.facts.state.running is not None and state.running is None
    is_stopped = decision.reason in PERSONS_STOP and promises_more(state)
    if not asks and not is_lost and not is_stopped:
        return Turn(loop, site, known.pull, "idle", decision, known.kept.state if known.kept else None)
    place = site.place(loop.name)

    def step(state: LoopState) -> LoopState | None:
        found = settled(anew(known.facts, state))
        is_wanted = asks or found != state or (is_stopped and promises_more(found))
        return telling(found, decision, secrets=site.redact) if is_wanted else None

    kept = change(place, known.kept or load(place), step)
    if asks:
        ask_once(site, loop.name, kept.state)
    return Turn(loop, site, known.pull, "asked" if asks else "idle", decision, kept.state)


def _decider(known: Gathered) -> Callable[[object], Decision]:
    return lambda facts: known.loop.decide(facts, known.site.redact)


def end(loop: Loop, site: Site, outputs: RunOutputs, *, workflow: str = "", is_dry_run: bool = False) -> Turn:
    """Record how the run ended and do what follows; with a ``workflow``, start that again where more is due at once."""
    pull, kept = site.pull(), load(site.place(loop.name))
    told = EndedRun(loop, site, pull, kept.state, outputs)
    if kept.state.running and kept.state.running.run_id == site.run_id:
        step = plan(told, kept.state.running, workflow)
        if is_dry_run:
            return _turn(told, "planned", step(kept.state) or kept.state)
        kept = change(site.place(loop.name), kept, step)
    ending = kept.state.ending
    if ending is None or ending.run_id != site.run_id:
        is_known = any(iteration.run_id == site.run_id for iteration in kept.state.history)
        return _turn(told, "unchanged", kept.state, _LEFT if is_known else _LOST)
    if is_dry_run:
        return _turn(told, "planned", kept.state)
    carry_out(told, ending, kept.state, workflow)
    kept = change(site.place(loop.name), kept, lambda state: finished(state, site.run_id))
    return _turn(told, "ended", kept.state, started=workflow if ending.is_due else "")


def _turn(
    told: EndedRun,
    outcome: Literal["ended", "unchanged", "planned"],
    state: LoopState,
    note: str = "",
    started: str = "",
) -> Turn:
    decision = Decision(action="stop", reason="", message=note)
    if state.told is not None:
        decision = Decision(
            action=state.told.action, reason=state.told.reason, message=state.told.message, warnings=state.told.warnings
        )
    return Turn(told.loop, told.site, told.pull, outcome, decision, state, note, started)


def due(loop: Loop, site: Site) -> Iterator[int]:
    """Name the open pull requests that the loop is on for and that nobody stopped, by what the listing alone tells."""
    for pull in site.github.open_pulls():
        facts = loop.first_facts(replace(site, number=pull.number), pull)
        if loop.decide(facts, site.redact).action in RUNS:
            yield pull.number


_NOT_KNOWN = ("not known yet",)


def _keepalive_facts(site: Site, pull: Pull) -> keepalive.KeepaliveFacts:
    return keepalive.KeepaliveFacts(
        now=site.now(),
        pull=site.pull_facts(pull),
        agents=site.agents,
        token=site.token,
        checks=CheckFacts(head_sha=pull.head_sha, passing=_NOT_KNOWN),
    )


def _autofix_facts(site: Site, pull: Pull) -> autofix.AutofixFacts:
    return autofix.AutofixFacts(
        now=site.now(),
        pull=site.pull_facts(pull),
        agents=site.agents,
        token=site.token,
        checks=CheckFacts(head_sha=pull.head_sha, failing=_NOT_KNOWN),
    )


def _tasks(told: EndedRun) -> Completed:
    ticked = tick(told.pull.body, told.outputs)
    return Completed(len(ticked.done), ticked.body)


LOOPS: dict[str, Loop] = {
    "keepalive": Loop(
        "keepalive",
        _keepalive_facts,
        (with_state, with_checks),
        keepalive.decide,
        (with_logs,),
        completed=_tasks,
    ),
    "autofix": Loop("autofix", _autofix_facts, (with_checks, with_state), autofix.decide, (with_logs,)),
    "verify": Loop(
        "verify",
        verifying.first_facts,
        (with_state, verifying.with_work_items),
        verify.decide,
        (verifying.with_diff,),
        completed=verifying.completed,
        carry_out=verifying.carry_out,
        given=verifying.given,
        schema="verdict",
        is_swept=False,
        changes_code=False,
    ),
    "bot-comments": Loop(
        "bot-comments",
        answering.first_facts,
        (answering.with_threads, with_state),
        bot_comments.decide,
        completed=answering.completed,
        carry_out=answering.carry_out,
        given=answering.given,
        schema="thread-answers",
    ),
}
