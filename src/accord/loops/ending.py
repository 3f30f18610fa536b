"""What follows a run that ended: decided from facts before anything is written, then carried out.

The decision is written into the loop's state first. Who is killed on the way finds it there, and does the rest.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.core.errors import Stopped
from accord.github.markers import find_markers, write_marker
from accord.github.models import NotThere
from accord.github.once import send_once, send_until_answered
from accord.loops.comments import telling
from accord.loops.facts import RUNS, gather
from accord.loops.keepalive import aftermath, tick
from accord.loops.ledger import ended
from accord.loops.models import NEEDS_HUMAN, Ending
from accord.loops.outputs import iteration_of
from accord.loops.questions import anew, settings_of
from accord.loops.state import Kept
from accord.text.markdown import cell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.github.comments import Comment
    from accord.github.models import Pull
    from accord.loops.context import Site
    from accord.loops.keepalive import Aftermath
    from accord.loops.loop import Completed, EndedRun
    from accord.loops.models import Decision, Iteration, LoopName, LoopState, Running
    from accord.runner.models import RunOutputs


ASKS = "loop-asks"
TRIES = 5


def tick_body(site: Site, pull: Pull, outputs: RunOutputs, wanted: str) -> None:
    """Tick completed tasks in the body as it is now, unless it is the one that is ``wanted`` already.

    A body that a person changes meanwhile is read again. Raises Stopped when that never ends.
    """
    for _ in range(TRIES):
        ticked = tick(pull.body, outputs)
        if identity_of(pull.body) == wanted or ticked.body == pull.body:
            return
        if site.github.change_body(pull.number, was=pull.body, body=ticked.body):
            return
        pull = site.pull()
    raise Stopped(f"The body of #{pull.number} changed {TRIES} times in a row.", hint="Run the same command again.")


def identity_of(body: str) -> str:
    """Name a body by a digest."""
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:20]


def ask_once(site: Site, loop: LoopName, state: LoopState) -> None:
    """Comment what ``state.told`` says, once for this reason after so many runs.

    It is a comment of its own, because nobody is told of one that changes.
    """
    told = state.told
    if told is None:
        return
    said = [f"**accord {loop} needs a person** and has put `{NEEDS_HUMAN}` on.", cell(told.said), cell(told.message)]
    text = "\n\n".join(filter(None, said))
    comment_once(site, text, ASKS, loop=loop, pull=str(site.number), why=told.reason, after=str(state.iterations))


def comment_once(site: Site, text: str, marker: str, **fields: str) -> None:
    """Comment on the pull request, unless a comment of ours has this marker with these fields."""

    def look() -> Comment | None:
        ours = (comment for comment in site.github.comments(site.number) if site.identity.counts(comment.author))
        return next((comment for comment in ours if fields in find_markers(comment.body, marker)), None)

    body = f"{text}\n\n{write_marker(marker, **fields)}"
    if look() is None:
        send_once(lambda: site.github.create_comment(site.number, body), look, site.clock)


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

    Twice is harmless: the second one finds a run under way, or the next turn due. Raises NotThere where the default
    branch has no such workflow.
    """
    branch = site.github.repository().default_branch
    inputs = {"pr_number": str(number)}
    try:
        send_until_answered(lambda: site.github.dispatch_workflow(workflow, branch, inputs), site.clock)
    except NotThere:
        raise NotThere(
            f"The workflow {workflow} cannot be started: {branch} of {site.repository} has none, or the token may not.",
            hint="Name a file of .github/workflows by --dispatch-workflow, and give the token actions: write.",
        ) from None


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
