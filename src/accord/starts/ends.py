"""The two ends of a run: it shows in the status comment that it began, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.core.clock import timestamp
from accord.engine.operations import skipped_if
from accord.engine.receipts import Receipt, reporting
from accord.github.models import NotThere
from accord.starts.events import pull_key
from accord.starts.models import StartEvent, StatusRow, Trigger
from accord.starts.plan import ShowStatus, StartWorkflow, show_row
from accord.starts.reports import WorkReport
from accord.starts.run import apply, correct, plan_item
from accord.starts.status import write_body

if TYPE_CHECKING:
    from accord.engine.operations import Operation
    from accord.starts.facts import StartContext
    from accord.starts.models import Work
    from accord.starts.status import StatusView


@dataclass(frozen=True)
class RunOfWork:
    """A workflow run that works on an item. ``key`` is that of its start, empty for a run that a person started."""

    work: Work
    number: int
    run_id: int
    key: str = ""
    by: str = ""
    agent: str = ""

    @property
    def row_key(self) -> str:
        """The key of its row."""
        return self.key or f"run-{self.run_id}"


def begin(context: StartContext, run: RunOfWork, *, is_dry_run: bool = False) -> Receipt:
    """Show that the run began; one that is run again is running since now. Raises no AccordError."""
    receipt = Receipt("start", context.repository, run.row_key)
    with reporting(context.github, receipt):
        view = _view(context, run)
        row = _row(context, view, run)
        is_new = row.run != run.run_id or row.state != "running"
        since = timestamp(context.now()) if is_new else row.since
        wiped = {"result": "", "next_step": "", "cost": ""}
        update = {"state": "running", "run": run.run_id, "since": since, "agent": row.agent or run.agent, **wiped}
        _show(context, receipt, view, run, row.model_copy(update=update), is_dry_run=is_dry_run)
    return receipt


def end(
    context: StartContext, run: RunOfWork, report: WorkReport, *, revision: tuple[int, str] | None, is_dry_run: bool
) -> Receipt:
    """Show how the run ended, and start what follows. Raises no AccordError.

    ``revision`` is a pull request that the run opened, with its head. Where the configuration says that its review
    starts by itself and a bot opened it, the review is started here: GitHub holds the workflow runs that the job's
    own token causes, and ``start`` ignores events of bots.
    """
    receipt = Receipt("start", context.repository, run.row_key)
    with reporting(context.github, receipt):
        view = _view(context, run)
        row = _row(context, view, run)
        is_stopped = report.state == row.state == "cancelled"
        update = {"state": report.state, "run": run.run_id, "cost": report.cost}
        update |= {} if is_stopped else {"result": report.result, "next_step": report.next_step}
        follow_up: tuple[Operation, ...] = ()
        if revision and _needs_review(context, revision[0]):
            number, head = revision
            at = context.now()
            event = StartEvent(Trigger.PULL, pull_key(number, head), at, run.by, number=number, is_pull=True, head=head)
            follow_up, _ = plan_item(context, event)
            if any(isinstance(operation, StartWorkflow) for operation in follow_up):
                update["next_step"] = f"The review of #{number} starts by itself."
        row = row.model_copy(update=update)
        is_refused = _show(context, receipt, view, run, row, follow_up=follow_up, is_dry_run=is_dry_run)
        if is_refused and revision:
            next_step = f"The review of #{revision[0]} could not be started: see its status comment."
            changed = row.model_copy(update={"next_step": next_step})
            correct(context, [show_row(run.number, context.view(run.number), changed)], receipt)
    return receipt


def _needs_review(context: StartContext, number: int) -> bool:
    pull = context.github.issue(number) if context.config.starts.pull_requests else None
    return pull is not None and pull.author_is_bot


def _view(context: StartContext, run: RunOfWork) -> StatusView:
    if context.github.issue(run.number) is None:
        raise NotThere(f"#{run.number} does not exist.", hint="Start the workflow with the number of an existing one.")
    return context.view(run.number)


def _row(context: StartContext, view: StatusView, run: RunOfWork) -> StatusRow:
    """Return the row of the run, a new one for a run that has none."""
    since = timestamp(context.now())
    new = StatusRow(key=run.row_key, work=run.work, state="queued", since=since, by=run.by, agent=run.agent)
    return view.status.row(run.row_key) or new


def _show(
    context: StartContext,
    receipt: Receipt,
    view: StatusView,
    run: RunOfWork,
    row: StatusRow,
    *,
    follow_up: tuple[Operation, ...] = (),
    is_dry_run: bool,
) -> bool:
    """Show the row, and apply what follows; return whether GitHub refused to start a workflow."""
    status = view.status.with_row(row)
    is_shown = [comment.body for comment in view.comments] == [write_body(status, run.number, context.page)]
    shown = ShowStatus(f"#{run.number}", skipped_if(is_shown), status, view.comments, number=run.number)
    start = {"cause": row.cause, "by": row.by, "since": row.since}
    receipt.details = {"reason": "", "state": row.state, "start": start}
    return apply(context, [shown, *follow_up], receipt, is_dry_run=is_dry_run)
