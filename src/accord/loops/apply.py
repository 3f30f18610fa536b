"""Apply what a loop planned: comments, labels, and a workflow to start. Each function may be repeated after a crash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from accord.engine.trust import NEEDS_HUMAN
from accord.github.comments import Comment
from accord.github.models import NotThere
from accord.github.workflows import WorkflowRun
from accord.loops.facts import EndedRun, LoopContext
from accord.loops.models import LoopName, LoopState, PendingEffects
from accord.text.markdown import cell
from accord.text.markers import find_markers, write_marker

ASKS = "loop-asks"
_CLOCKS_DIFFER_SECONDS = 5
"""GitHub's servers among themselves; both times are theirs."""


def apply_effects(run: EndedRun, effects: PendingEffects, workflow: str, *, is_repeated: bool) -> int:
    """Write everything that was planned for a run, some of it again if ``is_repeated``; return the run it started."""
    context = run.context
    run.loop.apply(run, effects)
    if effects.asks:
        ask_once(context, run.loop.name, run.state)
    relabel(context, run.pull.labels, effects.add_labels, effects.remove_labels)
    if not (effects.is_due and workflow):
        return 0
    since = run.state.last.ended_at if run.state.last else context.github.server_time()
    start = WorkflowStart(workflow, "pr_number", context.number, since)
    known = next(runs_of(context, start), None) if is_repeated else None
    return known.id if known else dispatch(context, start)


def ask_once(context: LoopContext, loop: LoopName, state: LoopState, about: str = "") -> None:
    """Comment the notice, once for this reason, run count and subject; GitHub does not notify anyone of an edit."""
    notice = state.notice
    if notice is None:
        return
    head = f"**accord {loop} needs a person** and added the label `{NEEDS_HUMAN}`."
    text = "\n\n".join(filter(None, [head, cell(notice.problem), cell(notice.message)]))
    fields = {"pull": str(context.number), "why": notice.reason, "after": str(state.iterations)}
    comment_once(context, text, ASKS, loop=loop, **fields, **({"about": about} if about else {}))


def comment_once(context: LoopContext, text: str, marker: str, **fields: str) -> None:
    """Comment on the pull request, unless a comment of ours has this marker with these fields."""

    def find() -> Comment | None:
        listed = context.github.comments(context.number)
        ours = (comment for comment in listed if context.identity.counts(comment.author))
        return next((comment for comment in ours if fields in find_markers(comment.body, marker)), None)

    send = partial(context.github.create_comment, context.number, f"{text}\n\n{write_marker(marker, **fields)}")
    context.log.write_once("comment", marker, send, find, context.github, context.number)


def relabel(context: LoopContext, current: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> None:
    """Add and remove labels, where that changes anything."""
    names = {label.casefold() for label in current}
    wanted = {label.casefold() for label in added}
    github, number = context.github, context.number
    if missing := [label for label in dict.fromkeys(added) if label.casefold() not in names]:
        context.log.write("add-labels", ", ".join(missing), lambda: github.add_labels(number, missing), number=number)
    for label in dict.fromkeys(removed):
        if label.casefold() in names - wanted:
            context.log.write("remove-label", label, partial(github.remove_label, number, label), number=number)


class WorkflowStart(NamedTuple):
    """A workflow of the default branch to start; a run since ``since`` whose title has the number is one of it."""

    workflow: str
    name: str  # of the input that gets the number
    number: int
    since: datetime
    option: str = "--dispatch-workflow"  # that names the file


def runs_of(context: LoopContext, start: WorkflowStart) -> Iterator[WorkflowRun]:
    """Yield the runs that the start may have caused, newest first, without the one of this job."""
    since = start.since - timedelta(seconds=_CLOCKS_DIFFER_SECONDS)
    runs = context.github.dispatched_runs(start.workflow, str(start.number), since)
    return (run for run in runs if str(run.id) != context.run_id)


def dispatch(context: LoopContext, start: WorkflowStart) -> int:
    """Start a workflow and return its run, 0 where GitHub does not tell. Raises NotThere where it does not exist."""
    branch = context.github.repository().default_branch
    inputs = {start.name: str(start.number)}

    def send() -> int:
        return context.github.send_once(
            lambda: context.github.dispatch_workflow(start.workflow, branch, inputs),
            lambda: next((run.id for run in runs_of(context, start)), None),
        )

    try:
        return context.log.write("start-workflow", start.workflow, send, number=start.number) or 0
    except NotThere:
        raise NotThere(
            f"The workflow {start.workflow} cannot be started: it is not on the branch {branch} of "
            f"{context.repository}, or the token has no access.",
            hint=f"Pass a file of .github/workflows with `{start.option}`, and grant the token actions: write.",
        ) from None
