"""The two ends of a run: it shows in the status comment that it began, and how it ended.

The result comes from the jobs of the workflow and the outputs of its agent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accord.core.clock import timestamp
from accord.core.findings import count_of, names_of
from accord.core.frozen import Frozen
from accord.engine.operations import Operation, skipped_if
from accord.engine.receipts import Receipt, report_errors
from accord.github.models import NotThere
from accord.starts.events import pull_key
from accord.starts.facts import StartContext
from accord.starts.models import RowState, StartEvent, StatusRow, Trigger, Work
from accord.starts.plan import ShowStatus, StartWorkflow, show_row
from accord.starts.run import apply, correct, plan_item
from accord.starts.status import StatusView, write_body
from accord.text.markdown import cell

if TYPE_CHECKING:
    from accord.runner.models import RunOutputs


_AGENT_JOBS = ("plan", "implement", "review")
_MOST_ITEMS = 20


class RunOfWork(Frozen):
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


class JobResult(Frozen):
    """A job of the workflow: GitHub's word for its result, and its outputs."""

    result: str
    outputs: Mapping[str, str]

    def document(self, name: str) -> Any:
        """Return an output that holds JSON; None without one."""
        try:
            return json.loads(self.outputs.get(name) or "null")
        except ValueError:
            return None


class WorkReport(Frozen):
    """How a start ended: its state, the result and the next step in words, and its cost."""

    state: RowState
    result: str
    next_step: str = ""
    cost: str = ""


def begin(context: StartContext, run: RunOfWork, *, is_dry_run: bool = False) -> Receipt:
    """Show that the run began; one that is run again is running since now. Raises no Problem."""
    receipt = Receipt("start", context.repository, run.row_key)
    with report_errors(context.github, receipt):
        view, row = _read(context, run)
        is_new = row.run != run.run_id or row.state != "running"
        since = timestamp(context.now()) if is_new else row.since
        wiped = {"result": "", "next_step": "", "cost": ""}
        update = {"state": "running", "run": run.run_id, "since": since, "agent": row.agent or run.agent, **wiped}
        _show(context, receipt, view, run, row.model_copy(update=update), is_dry_run=is_dry_run)
    return receipt


def end(
    context: StartContext, run: RunOfWork, report: WorkReport, *, revision: tuple[int, str] | None, is_dry_run: bool
) -> Receipt:
    """Show how the run ended, and start what follows. Raises no Problem.

    ``revision`` is a pull request that the run opened, with its head. Where the configuration says that its review
    starts by itself and a bot opened it, the review is started here: GitHub holds the workflow runs that the job's
    own token causes, and ``start`` ignores events of bots.
    """
    receipt = Receipt("start", context.repository, run.row_key)
    with report_errors(context.github, receipt):
        view, row = _read(context, run)
        is_stopped = report.state == row.state == "cancelled"
        update = {"state": report.state, "run": run.run_id, "cost": report.cost}
        update |= {} if is_stopped else {"result": report.result, "next_step": report.next_step}
        follow_up: tuple[Operation, ...] = ()
        pull = context.github.issue(revision[0]) if revision and context.config.starts.pull_requests else None
        if revision and pull and pull.author_is_bot:
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


def _read(context: StartContext, run: RunOfWork) -> tuple[StatusView, StatusRow]:
    if context.github.issue(run.number) is None:
        raise NotThere(f"#{run.number} does not exist.", hint="Start the workflow with the number of an existing one.")
    view, since = context.view(run.number), timestamp(context.now())
    new = StatusRow(key=run.row_key, work=run.work, state="queued", since=since, by=run.by, agent=run.agent)
    return view, view.status.row(run.row_key) or new


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


def read_needs(text: str) -> dict[str, JobResult]:
    """Read ``toJSON(needs)`` of a job. Raises ValueError for anything else."""
    document = json.loads(text or "{}")
    if not isinstance(document, dict):
        raise ValueError("not an object")
    return {name: JobResult(str(job.get("result")), job.get("outputs") or {}) for name, job in document.items()}


def report_of(work: Work, jobs: Mapping[str, JobResult], outputs: RunOutputs | None) -> WorkReport:
    """Conclude a run. ``outputs`` are those of the agent, None where it left no record."""
    cost = cost_of(outputs)
    if reason := next((job.outputs["reason"] for job in jobs.values() if job.outputs.get("reason")), ""):
        return WorkReport("failed", f"refused: {cell(reason)}", "Read it as it is now, then ask again.", cost)
    jobs = {name: job for name, job in jobs.items() if name != "begin"}  # it only wrote the status comment
    results = [job.result for job in jobs.values()]
    if "failure" in results:
        return WorkReport("failed", *_failure(jobs, outputs), cost)
    if "cancelled" in results:
        return WorkReport("cancelled", "The run was cancelled.", _RECOVERY["retry"], cost)
    return WorkReport(*_RESULTS[work](jobs.get("apply") or JobResult("skipped", {})), cost)


def cost_of(outputs: RunOutputs | None) -> str:
    """Return what the agent said about its cost; empty where it said nothing."""
    if outputs is None:
        return ""
    dollars = f"{outputs.cost_usd} US dollars" if outputs.cost_usd else ""
    counts = [(outputs.tokens_input, "in"), (outputs.tokens_output, "out")]
    tokens = ", ".join(f"{int(count):,} tokens {way}" for count, way in counts if count.isdecimal())
    return ", ".join(filter(None, [dollars, tokens]))


_RECOVERY = {
    "retry": "Comment `/accord retry` to start it again.",
    "manual": "Fix the cause, then comment `/accord retry`.",
    "ignore": "Nothing, or comment `/accord retry` to start it again.",
}
_OUTCOMES = {
    "rejected": ("contract: The result breaks its contract, so nothing was written.", _RECOVERY["retry"]),
    "refused": ("refused: GitHub refused what the result asks for.", _RECOVERY["manual"]),
    "stopped": ("stopped: Applying the result stopped part-way.", "Re-run the failed jobs of the run to continue."),
}


def _failure(jobs: Mapping[str, JobResult], outputs: RunOutputs | None) -> tuple[str, str]:
    name = next(name for name, job in jobs.items() if job.result == "failure")
    if name in _AGENT_JOBS and outputs is not None and outputs.error_category:
        origin = f" ({outputs.error_type})" if outputs.error_type else ""
        seconds = outputs.retry_after_seconds
        wait = f"Wait {seconds} seconds. " if outputs.error_recovery == "retry" and seconds else ""
        cause = cell(outputs.error_summary)
        return f"{outputs.error_category}{origin}: {cause}", wait + _RECOVERY.get(outputs.error_recovery, "")
    if name in _AGENT_JOBS and outputs is not None:
        return "contract: The agent's result breaks its contract; the run shows the findings.", _RECOVERY["retry"]
    failed = f"job: The job `{cell(name)}` failed; the run shows why.", _RECOVERY["manual"]
    return _OUTCOMES.get(jobs[name].outputs.get("outcome", ""), failed)


def _plan_result(apply: JobResult) -> tuple[RowState, str, str]:
    if apply.outputs.get("outcome") == "planned":
        return "done", "A dry run: nothing was created.", ""
    items = apply.document("items") or {}
    numbers = [f"#{item['id']}" for item in items.values() if str(item.get("id", "")).isdecimal()]
    if numbers:
        text = f"Work items: {names_of(numbers, _MOST_ITEMS)}."
        return "done", text, "Check them, and move those to ready that agents may start on."
    if apply.outputs.get("outcome") == "applied":
        return "done", "Work items were changed or closed; none is new.", ""
    return "nothing", "The agent found nothing to plan.", ""


def _implement_result(apply: JobResult) -> tuple[RowState, str, str]:
    revision = apply.document("revision") or {}
    number = str(revision.get("id") or "")
    if not number.isdecimal():
        return "done", "The agent opened no pull request.", "Read its comment on this work item."
    if revision.get("draft"):
        return "done", f"Opened #{number} as a draft.", f"Review #{number}, and mark it as ready."
    return "done", f"Opened #{number}.", f"Review #{number}: comment `/accord review` there."


def _review_result(apply: JobResult) -> tuple[RowState, str, str]:
    review = apply.document("review") or {}
    counts = [review.get(name) for name in ("inline", "file_level", "in_body")]
    count = sum(number for number in counts if isinstance(number, int))
    verdict = cell(str(review.get("verdict_requested") or "unknown"))
    if not count and verdict == "approve":
        return "nothing", "The review found nothing to change.", ""
    next_step = "" if verdict == "approve" else "Address the comments."
    return "done", f"Verdict {verdict}, {count_of(count, 'comment')}.", next_step


_RESULTS = {"plan": _plan_result, "implement": _implement_result, "review": _review_result}
