"""The result of a run for its status comment: from the jobs of the workflow and the outputs of its agent. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.text.markdown import cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.runner.models import RunOutputs
    from accord.starts.models import RowState, Work

_AGENT_JOBS = ("plan", "implement", "review")
_MOST_ITEMS = 20


@dataclass(frozen=True)
class JobResult:
    """A job of the workflow: GitHub's word for its result, and its outputs."""

    result: str
    outputs: Mapping[str, str]

    def document(self, name: str) -> Any:
        """Return an output that holds JSON; None without one."""
        try:
            return json.loads(self.outputs.get(name) or "null")
        except ValueError:
            return None


@dataclass(frozen=True)
class WorkReport:
    """How a start ended: its state, the result and the next step in words, and its cost."""

    state: RowState
    result: str
    next_step: str = ""
    cost: str = ""


def read_needs(text: str) -> dict[str, JobResult]:
    """Read ``toJSON(needs)`` of a job. Raises ValueError for anything else."""
    document = json.loads(text or "{}")
    if not isinstance(document, dict):
        raise ValueError("not an object")
    return {name: JobResult(str(job.get("result")), job.get("outputs") or {}) for name, job in document.items()}


def report_of(work: Work, jobs: Mapping[str, JobResult], outputs: RunOutputs | None) -> WorkReport:
    """Conclude a run. ``outputs`` are those of the agent, None where it left no record."""
    jobs = {name: job for name, job in jobs.items() if name != "begin"}  # it only wrote the status comment
    cost = cost_of(outputs)
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
    "rejected": ("contract", "The result breaks its contract, so nothing was written.", _RECOVERY["retry"]),
    "refused": ("refused", "GitHub refused what the result asks for.", _RECOVERY["manual"]),
    "stopped": ("stopped", "Applying the result stopped part-way.", "Re-run the failed jobs of the run to continue."),
}


def _failure(jobs: Mapping[str, JobResult], outputs: RunOutputs | None) -> tuple[str, str]:
    """Return the class and the cause of a failure, and the next step."""
    name = next(name for name, job in jobs.items() if job.result == "failure")
    if name in _AGENT_JOBS and outputs is not None and outputs.error_category:
        origin = f" ({outputs.error_type})" if outputs.error_type else ""
        seconds = outputs.retry_after_seconds
        wait = f"Wait {seconds} seconds. " if outputs.error_recovery == "retry" and seconds else ""
        cause = cell(outputs.error_summary)
        return f"{outputs.error_category}{origin}: {cause}", wait + _RECOVERY.get(outputs.error_recovery, "")
    if name in _AGENT_JOBS and outputs is not None:
        return "contract: The agent's result breaks its contract; the run shows the findings.", _RECOVERY["retry"]
    outcome = jobs[name].outputs.get("outcome", "")
    if outcome in _OUTCOMES:
        kind, cause, next_step = _OUTCOMES[outcome]
        return f"{kind}: {cause}", next_step
    return f"job: The job `{cell(name)}` failed; the run shows why.", _RECOVERY["manual"]


def _plan_result(apply: JobResult) -> tuple[RowState, str, str]:
    if apply.outputs.get("outcome") == "planned":
        return "done", "A dry run: nothing was created.", ""
    items = apply.document("items") or {}
    numbers = [f"#{item['id']}" for item in items.values() if str(item.get("id", "")).isdecimal()]
    if numbers:
        more = f" and {len(numbers) - _MOST_ITEMS} more" if len(numbers) > _MOST_ITEMS else ""
        text = f"Work items: {', '.join(numbers[:_MOST_ITEMS])}{more}."
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
    comments = "1 comment" if count == 1 else f"{count} comments"
    return "done", f"Verdict {verdict}, {comments}.", "" if verdict == "approve" else "Address the comments."


_RESULTS = {"plan": _plan_result, "implement": _implement_result, "review": _review_result}
