"""Whether the handoff of a pull request's work item allows it to go on, and the check that says so.

The gate is closed until it is proven open: no work item, no handoff, or one that belongs to another branch or pull
request, and the check fails. Text of a pull request only says which work item it means; what that one holds is read
from where only writers of the repository can write.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.core.errors import AccordError, BrokenContract, Refused, Stopped
from accord.core.findings import Finding, Severity
from accord.github.checks import Shown, Verdict, status_line
from accord.github.models import Forbidden
from accord.github.once import send_once
from accord.handoffs.issues import NO_HANDOFF, Place, load
from accord.handoffs.plan import Decided
from accord.handoffs.rules import handoff_findings, read_handoff
from accord.handoffs.runtime import runtime_of, with_runtime
from accord.handoffs.stages import gate_findings
from accord.text.markdown import cell, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.models import Pull
    from accord.handoffs.issues import Held
    from accord.handoffs.models import Handoff
    from accord.text.redaction import Redactor


CHECK_NAME = "accord/handoff"
_MOST_REASONS = 100
_MARK_CHARS = 20


@dataclass(frozen=True)
class Judged:
    """What was found about a pull request's handoff: its status (empty where there is none), and what blocks it."""

    target: str
    status: str = ""
    reasons: tuple[Finding, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether nothing blocks it."""
        return not self.reasons

    @property
    def title(self) -> str:
        """The verdict in one line."""
        if self.is_open:
            return f"The handoff has all that {self.target} asks for."
        more = f" ({len(self.reasons)} reasons)" if len(self.reasons) > 1 else ""
        return f"{self.reasons[0].message}{more}"


def judge_pull(github: GitHub, pull: Pull, numbers: Sequence[int], target: str, clock: Clock) -> Judged:
    """Gather and judge: ``numbers`` are the work items that the pull request says it closes."""
    if len(numbers) != 1:
        names = ", ".join(f"#{number}" for number in numbers[:5])
        says = f"names several work items ({names})" if numbers else "names no work item"
        message = f'#{pull.number} {says}. Write "Closes #n" for one into its body, or pass --work-item.'
        return Judged(target, "", (Finding("work-item-unclear", message),))
    try:
        held = load(Place(github, numbers[0], clock))
    except BrokenContract as broken:
        return Judged(target, "", broken.findings)
    return judge(held, pull, numbers[0], target)


def judge(held: Held, pull: Pull, number: int, target: str) -> Judged:
    """Tell what keeps a task from standing in ``target``, and whether it is this pull request's task. Pure."""
    if held.is_new:
        return Judged(target, "", (Finding("handoff-missing", NO_HANDOFF.format(number=number)),))
    handoff = read_handoff(held.task)
    found = [*_not_of(handoff, pull), *handoff_findings(handoff), *gate_findings("", target, handoff.metadata)]
    errors = [finding for finding in dict.fromkeys(found) if finding.severity is Severity.ERROR]
    return Judged(target, handoff.status, tuple(errors))


def show(github: GitHub, pull: Pull, judged: Judged, clock: Clock, redact: Redactor) -> tuple[Shown | None, bool]:
    """Set the check on the head of the pull request; return it, and whether it is new.

    None where the token may set none, as on a pull request from a fork.
    """
    verdict = verdict_of(judged, redact)
    sha = pull.head_sha
    try:
        known = github.check_run(sha, verdict.name)
        if known and known.mark == verdict.mark:
            return known, False

        def look() -> Shown | None:
            found = github.check_run(sha, verdict.name)
            return found if found and found.mark == verdict.mark else None

        return send_once(lambda: github.create_check_run(sha, verdict), look, clock), True
    except Forbidden:
        return _show_status(github, sha, verdict, clock)


def verdict_of(judged: Judged, redact: Redactor) -> Verdict:
    """Write the check: a line, and a table of the reasons."""
    rows = [[f"`{reason.code}`", cell(redact(reason.path)), cell(redact(reason.message))] for reason in judged.reasons]
    status = f"The task is in `{judged.status}`; asked is what `{judged.target}` needs." if judged.status else ""
    parts = [status, table(["Reason", "Place", "What to do"], rows[:_MOST_REASONS])] if rows else [status]
    if len(rows) > _MOST_REASONS:
        parts.append(f"{len(rows) - _MOST_REASONS} more are not shown.")
    title, summary = " ".join(redact(judged.title).split()), "\n\n".join(part for part in parts if part)
    mark = hashlib.sha256(f"{judged.is_open}\n{title}\n{summary}".encode()).hexdigest()[:_MARK_CHARS]
    return Verdict(CHECK_NAME, judged.is_open, status_line(title), summary or title, mark)


def _show_status(github: GitHub, sha: str, verdict: Verdict, clock: Clock) -> tuple[Shown | None, bool]:
    def look() -> Shown | None:
        found = github.commit_status(sha, verdict.name)
        is_same = found and found.is_passed == verdict.is_passed and found.mark == verdict.title
        return found if is_same else None

    try:
        known = look()
        if known:
            return known, False
        return send_once(lambda: github.create_commit_status(sha, verdict), look, clock), True
    except Forbidden:
        return None, False


def _not_of(handoff: Handoff, pull: Pull) -> list[Finding]:
    """Name what keeps this pull request from resting on the handoff: none can borrow one that is finished."""
    workflow = handoff.metadata.workflow
    is_from_here = f"/{pull.head_repository}/pull/".lower() in pull.url.lower()
    found = []
    if handoff.status == "cancelled":
        message = "The task was cancelled. Close the pull request, or take the task up again."
        found.append(Finding("handoff-cancelled", message, "/status"))
    if workflow and workflow.branch_name and (workflow.branch_name != pull.head_branch or not is_from_here):
        where = pull.head_branch if is_from_here else f"{pull.head_repository}:{pull.head_branch}"
        message = f"The handoff belongs to the branch {workflow.branch_name} of this repository, not to {where}."
        found.append(Finding("handoff-of-another", message, "/metadata/workflow/branchName"))
    if workflow and workflow.pull_request_url and workflow.pull_request_url.rstrip("/") != pull.url.rstrip("/"):
        message = f"The handoff belongs to {workflow.pull_request_url}, not to {pull.url}."
        found.append(Finding("handoff-of-another", message, "/metadata/workflow/pullRequestUrl"))
    return found


EVENT = "accord-handoff"
WAITS_SECONDS = (5.0, 15.0, 30.0)


@dataclass(frozen=True)
class Sent:
    """What became of one action. ``error`` is None where it was sent."""

    id: str
    type: str
    error: AccordError | None = None


def open_actions(task: Mapping[str, Any], *, again: bool = False) -> list[dict[str, Any]]:
    """List the actions that were not sent. ``again``: those too that were refused for good."""
    runtime = runtime_of(task)
    ended = {
        entry.get("actionId")
        for entry in runtime["actionHistory"]
        if entry.get("result") == "ok" or (entry.get("isTransient") is False and not again)
    }
    return [action for action in runtime["nextActions"] if action["id"] not in ended]


def payload_of(task: Mapping[str, Any], action: Mapping[str, Any], number: int | None) -> dict[str, Any]:
    """Write what the workflow is told. Texts of the handoff are not in it: the workflow reads these where they are."""
    return {
        "id": action["id"],
        "type": action["type"],
        "task": task["metadata"].get("canonicalTaskId", ""),
        "status": task["status"],
        "issue": number,
    }


def deliver(action: Mapping[str, Any], send: Callable[[], None], clock: Clock) -> Sent:
    """Send, and wait for an error that should pass: 5, 15 and 30 seconds. Never raises what GitHub answers."""
    for wait in (*WAITS_SECONDS, None):
        try:
            send()
        except Stopped as stopped:
            if wait is None:
                return Sent(action["id"], action["type"], stopped)
            clock.sleep(wait)
        except Refused as refused:
            return Sent(action["id"], action["type"], refused)
        else:
            break
    return Sent(action["id"], action["type"])


def recorded(task: dict[str, Any], sent: Sent, at: str) -> Decided:
    """Write down what became of an action; once, if it was sent."""
    runtime = runtime_of(task)
    history = runtime["actionHistory"]
    if any(entry.get("actionId") == sent.id and entry.get("result") == "ok" for entry in history):
        return Decided(task)
    entry: dict[str, Any] = {
        "at": at,
        "phase": "onEnter",
        "status": task["status"],
        "result": "error" if sent.error else "ok",
        "nextActionCount": len(runtime["nextActions"]),
        "blockingReasonCount": 0,
        "actionId": sent.id,
        "actionType": sent.type,
        "idempotencyKey": sent.id,
    }
    if sent.error:
        entry |= {"error": sent.error.message, "isTransient": isinstance(sent.error, Stopped)}
    return Decided(with_runtime(task, {**runtime, "actionHistory": [*history, entry]}))
