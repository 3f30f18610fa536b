"""From a choice to operations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from accord.core.clock import timestamp
from accord.engine.operations import Operation, adopted_if, skipped_if
from accord.engine.owner import Owner, next_statuses, owner_of
from accord.engine.trust import PAUSED
from accord.github.comments import Comment
from accord.github.models import Issue
from accord.github.workflows import WorkflowRun
from accord.results.status import MoveWorkItem, StatusFacts, item_state, plan_move, status_if_clear
from accord.starts.choose import Answer, Begin, Halt, ItemFacts, StartChoice
from accord.starts.models import ACTIVE, ITEM_INPUT, WORKFLOWS, ItemStatus, StartEvent, StatusRow
from accord.starts.status import StatusView
from accord.text.markdown import as_code

EYES, CONFUSED = "eyes", "confused"
RETRY = "Comment `/accord retry` to start it again."
LOST = "The run ended without a report."


class React(Operation, op="react"):
    """React to the comment that asked."""

    comment_id: int
    reaction: str


class ShowStatus(Operation, op="show-status", is_content=True):
    """Write the status comment of an item: in the place of the first of ``comments``, which are ours."""

    status: ItemStatus
    comments: tuple[Comment, ...]


class StartWorkflow(Operation, op="start-workflow"):
    """Start a workflow of the default branch; a run of an earlier delivery is looked for ``since`` then."""

    file: str
    inputs: Mapping[str, str]
    since: datetime


class LinkRun(Operation, op="link-run"):
    """Link the run of a start in the status comment: ``run_id``, or else the one that GitHub names as it starts."""

    run_id: int


class CancelRun(Operation, op="cancel-run"):
    """Cancel a run of a workflow."""

    run_id: int


class PauseLoops(Operation, op="pause-loops"):
    """Keep the loops away from a pull request."""


def plan_choice(
    event: StartEvent, choice: StartChoice, facts: ItemFacts, run: WorkflowRun | None, now: datetime
) -> Iterator[Operation]:
    """Yield the operations of a choice, also those that an earlier delivery did.

    ``run`` is the one that this event started already, or the one to stop.
    """
    number = facts.issue.number
    if isinstance(choice, Answer) and choice.is_silent:
        return
    row = facts.view.status.row(event.key)
    is_shown = run is not None or (row is not None and (row.run > 0 or row.state in ACTIVE))
    if event.comment_id:
        found = skipped_if(is_shown and isinstance(choice, Begin))
        reaction = CONFUSED if isinstance(choice, Answer) else EYES
        yield React(f"comment {event.comment_id}", found, event.comment_id, reaction)
    if isinstance(choice, Begin):
        yield from _begin(event, choice, facts, run, now, is_shown=is_shown)
    elif isinstance(choice, Halt):
        yield from _halt(event, facts, run)
    else:
        status = facts.view.status.with_answer(event.key, choice.text)
        yield ShowStatus(f"#{number}", None, status, facts.view.comments, number=number)


def _begin(
    event: StartEvent, choice: Begin, facts: ItemFacts, run: WorkflowRun | None, now: datetime, *, is_shown: bool
) -> Iterator[Operation]:
    status, number = facts.view.status, facts.issue.number
    row = status.row(event.key)
    is_linked = row is not None and row.run > 0
    head = (row.head if row else "") or (facts.head if choice.work == "review" else "")
    queued = StatusRow(
        key=event.key,
        work=choice.work,
        state="queued",
        since=timestamp(now),
        by=event.sender,
        agent=choice.agent,
        cause=event.trigger.value,
        head=head,
    )
    for lost in status.rows:  # nothing runs when a start is planned
        if lost.state in ACTIVE and lost.key != event.key:
            status = status.with_row(lost.model_copy(update={"state": "failed", "result": LOST}))
    inputs = {ITEM_INPUT[choice.work]: str(number), "agent": choice.agent, "start": event.key, "head": head}
    shown = status.with_row(queued)
    yield ShowStatus(f"#{number}", skipped_if(is_shown), shown, facts.view.comments, number=number)
    yield start_operation(choice.work, inputs, event.at, is_started=run is not None or is_linked)
    yield LinkRun(event.key, skipped_if(is_linked), run.id if run else 0, number=number)


def start_operation(work: str, inputs: Mapping[str, str], since: datetime, *, is_started: bool) -> StartWorkflow:
    """Return the start of a workflow by an event of a time, as of which texts are read; empty inputs are left out."""
    inputs = {**inputs, "as-of": timestamp(since)}
    file, given = WORKFLOWS[work], {name: value for name, value in inputs.items() if value}  # type: ignore[index]
    return StartWorkflow(file, adopted_if(is_started), file, given, since)


def show_row(number: int, view: StatusView, row: StatusRow) -> ShowStatus:
    """Return what shows one row of an item in the place of the same row before."""
    return ShowStatus(f"#{number}", None, view.status.with_row(row), view.comments, number=number)


def _halt(event: StartEvent, facts: ItemFacts, run: WorkflowRun | None) -> Iterator[Operation]:
    status, number = facts.view.status, facts.issue.number
    if facts.issue.is_pull:
        is_paused = PAUSED in (label.lower() for label in facts.issue.labels)
        yield PauseLoops(f"#{number}", skipped_if(is_paused), number=number)
    if run is not None:
        yield CancelRun(f"run {run.id}", skipped_if(run.has_ended), run.id)
    row = status.last
    said = f"Stopped by {as_code(event.sender)}."
    if row is not None and row.state in ACTIVE:
        update = {"state": "cancelled", "result": said, "next_step": RETRY, "run": run.id if run else row.run}
        status = status.with_row(row.model_copy(update=update))
    paused = f"{said} Loops leave this pull request alone until the label `{PAUSED}` is removed."
    status = status.with_answer(event.key, paused if facts.issue.is_pull else "")
    yield ShowStatus(f"#{number}", None, status, facts.view.comments, number=number)


def plan_ready(blocked: Iterable[tuple[Issue, StatusFacts]]) -> Iterator[MoveWorkItem]:
    """Yield the moves of pending items whose blockers are all closed now."""
    for issue, facts in blocked:
        if owner_of(item_state(issue, len(facts.open_blockers or ())), None).reason == "not-ready":
            yield plan_move(issue, "ready", facts)


def plan_closing(issue: Issue, owner: Owner) -> MoveWorkItem:
    """Return the one move that closes an item after a merge that did not; a merge approves what is in review."""
    *steps, last = next_statuses(owner, status_if_clear(issue))
    for step in steps:
        issue = replace(issue, labels=plan_move(issue, step).labels)
    return plan_move(issue, last)
