"""The check ``accord/handoff`` on a pull request, and the actions of a handoff sent as events.

The gate is closed unless proven open. The pull request's text only names the work item; its handoff is read from the
ref, where only people with write access can write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from accord.core.clock import Clock, attempts, timestamp
from accord.core.errors import AccordError, BrokenContract, Refused, Stopped
from accord.core.findings import Finding, Severity
from accord.core.frozen import Frozen
from accord.engine.operations import OperationLog, OperationStatus
from accord.github.checks import STATUS_CHARS, Check, CommitVerdict
from accord.github.models import Forbidden, Pull
from accord.handoffs.models import Handoff, TaskWorkflow, read_handoff
from accord.handoffs.plan import HandoffDecision, entry_of, runtime_of, with_runtime
from accord.handoffs.rules import handoff_findings
from accord.handoffs.stages import gate_findings
from accord.handoffs.store import START, HandoffStore, LoadedHandoff
from accord.text.markdown import shorten, table
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.sanitise import sanitise_cell, sanitise_line

if TYPE_CHECKING:
    from accord.github.client import GitHub


CHECK_NAME = "accord/handoff"
_MOST_REASONS = 100
_MARK_CHARS = 20


class GateVerdict(Frozen):
    """The status of a pull request's handoff (empty without one), and the reasons that block the pull request."""

    target: str
    status: str = ""
    reasons: tuple[Finding, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether no reason blocks it."""
        return not self.reasons

    @property
    def title(self) -> str:
        """The verdict in one line."""
        if self.is_open:
            return f"The handoff has all artifacts that {self.target} requires."
        more = f" ({len(self.reasons)} reasons)" if len(self.reasons) > 1 else ""
        return f"{self.reasons[0].message}{more}"


def judge_pull(
    github: GitHub, pull: Pull, numbers: Sequence[int], target: str, *, is_independent: bool = False
) -> GateVerdict:
    """Read the handoff and judge it; ``numbers`` are the work items that the pull request closes."""
    if len(numbers) != 1:
        names = ", ".join(f"#{number}" for number in numbers[:5])
        says = f"several work items ({names})" if numbers else "no work item"
        hint = "Add `Closes #N` for one to its body, or pass `--work-item N`."
        return GateVerdict(target, "", (Finding("work-item-unclear", f"#{pull.number} names {says}.", hint=hint),))
    try:
        stored = HandoffStore(github, numbers[0]).load()
    except BrokenContract as broken:
        return GateVerdict(target, "", broken.findings)
    return judge(stored, pull, numbers[0], target, github.clock.now(), is_independent=is_independent)


def judge(
    stored: LoadedHandoff, pull: Pull, number: int, target: str, now: datetime, *, is_independent: bool = False
) -> GateVerdict:
    """Find what blocks a task from ``target``, and whether it belongs to this pull request. Pure.

    ``is_independent`` requires that work, review and verification have several authors.
    """
    if stored.is_new:
        found = Finding("handoff-missing", f"#{number} has no handoff.", hint=START.format(number=number))
        return GateVerdict(target, "", (found,))
    handoff = read_handoff(stored.value)
    gated = gate_findings("", target, handoff.metadata, now)
    problems = dict.fromkeys([*_ownership_findings(handoff, pull), *handoff_findings(handoff, now), *gated])
    required = "not-independent" if is_independent else ""
    blocking = [item for item in problems if item.severity is Severity.ERROR or item.code == required]
    return GateVerdict(target, handoff.status, tuple(replace(item, severity=Severity.ERROR) for item in blocking))


def publish_check(
    github: GitHub,
    pull: Pull,
    judged: GateVerdict,
    redact: Redactor,
    policy: PostingPolicy,
    log: OperationLog,
) -> tuple[Check | None, bool]:
    """Set the check on the head; return it, or None where the token cannot, and whether it is new."""
    verdict, sha = verdict_of(judged, redact, policy), pull.head_sha

    def find() -> Check | None:
        with suppress(Forbidden):
            run = next(iter(github.check_runs(sha, check_name=verdict.name)), None)
            if run and run.mark == verdict.mark:
                return run
        wanted = verdict.name, "passing" if verdict.is_passed else "failing", verdict.title
        with suppress(Forbidden):
            every = github.statuses(sha)
            return next((one for one in every if (one.name, one.state, one.mark) == wanted), None)
        return None

    def send() -> Check:
        try:
            return github.create_check_run(sha, verdict)
        except Forbidden:  # a person's token cannot create check runs
            return github.create_commit_status(sha, verdict)

    with suppress(Forbidden):
        shown = log.write_once("set-check", verdict.name, send, find, github, pull.number)
        return shown, log.entries[-1].status is OperationStatus.DONE
    return None, False


def verdict_of(judged: GateVerdict, redact: Redactor, policy: PostingPolicy) -> CommitVerdict:
    """Return the check: a line, and a table of the reasons."""

    def safe(text: str) -> str:
        return sanitise_cell(text, secrets=redact, policy=policy)

    rows = [[f"`{reason.code}`", safe(reason.path), safe(reason.text)] for reason in judged.reasons]
    status = f"The task is in `{judged.status}`; the check is for `{judged.target}`." if judged.status else ""
    shown = table(["Reason", "Location", "Fix"], rows[:_MOST_REASONS]) if rows else ""
    more = len(rows) - _MOST_REASONS
    parts = [status, shown, f"{more} more reasons are not shown." if more > 0 else ""]
    title = sanitise_line(judged.title, secrets=redact, policy=policy).text
    summary = "\n\n".join(part for part in parts if part)
    mark = hashlib.sha256(f"{judged.is_open}\n{title}\n{summary}".encode()).hexdigest()[:_MARK_CHARS]
    return CommitVerdict(CHECK_NAME, judged.is_open, shorten(title, STATUS_CHARS), summary or title, mark)


def _ownership_findings(handoff: Handoff, pull: Pull) -> Iterator[Finding]:
    workflow = handoff.metadata.workflow or TaskWorkflow()
    branch, url = workflow.branch_name, workflow.pull_request_url
    is_from_here = f"/{pull.head_repository}/pull/".lower() in pull.url.lower()
    if handoff.status == "cancelled":
        message = "The task was cancelled."
        yield Finding("handoff-cancelled", message, "/status", hint="Close the pull request, or reopen the task.")
    if branch and (branch != pull.head_branch or not is_from_here):
        where = pull.head_branch if is_from_here else f"{pull.head_repository}:{pull.head_branch}"
        message = f"The handoff belongs to the branch {branch} of this repository, not to {where}."
        hint = f"Name the work item of this pull request, or open one from {branch}."
        yield Finding("handoff-of-another", message, "/metadata/workflow/branchName", hint=hint)
    if url and url.rstrip("/") != pull.url.rstrip("/"):
        message = f"The handoff belongs to {url}, not to {pull.url}."
        hint = "Name the work item of this pull request, or correct `pullRequestUrl` in its handoff."
        yield Finding("handoff-of-another", message, "/metadata/workflow/pullRequestUrl", hint=hint)


EVENT = "accord-handoff"
WAITS_SECONDS = (5.0, 15.0, 30.0)


class SentAction(Frozen):
    """The result of sending an action. ``error`` is None where it was sent."""

    id: str
    type: str
    error: AccordError | None = None


def open_actions(task: Mapping[str, Any], *, again: bool = False) -> list[dict[str, Any]]:
    """Return the actions that are not sent; with ``again`` also those that GitHub refused for good."""
    runtime = runtime_of(task)
    ended = {
        entry.get("actionId")
        for entry in runtime["actionHistory"]
        if entry.get("result") == "ok" or (entry.get("isTransient") is False and not again)
    }
    return [action for action in runtime["nextActions"] if action["id"] not in ended]


def payload_of(task: Mapping[str, Any], action: Mapping[str, Any], number: int | None) -> dict[str, Any]:
    """Return the payload for the workflow, without texts of the handoff: the workflow reads those itself."""
    return {
        "id": action["id"],
        "type": action["type"],
        "task": task["metadata"].get("canonicalTaskId", ""),
        "status": task["status"],
        "issue": number,
    }


def send_action(action: Mapping[str, Any], send: Callable[[], None], clock: Clock) -> SentAction:
    """Send, again after 5, 15 and 30 seconds where the error is transient. Returns errors instead of raising them."""
    error: AccordError | None = None
    for _ in attempts(clock, WAITS_SECONDS):
        try:
            send()
            error = None
        except (Stopped, Refused) as failed:
            error = failed
        if not isinstance(error, Stopped):
            break
    return SentAction(action["id"], action["type"], error)


def send_and_record(
    github: GitHub,
    action: Mapping[str, Any],
    change: Callable[[Callable[[dict[str, Any]], HandoffDecision], bool], HandoffDecision],
    issue: int | None,
    log: OperationLog,
    clock: Clock,
) -> SentAction | None:
    """Send one action, and record the result; None in a dry run. ``change`` decides about the task and writes it."""

    def send() -> SentAction:
        payload = payload_of(change(HandoffDecision, False).task, action, issue)
        sent = send_action(action, lambda: github.send_event(EVENT, payload), clock)
        change(lambda task: with_sent(task, sent, timestamp(clock.now())), True)
        return sent

    sent = log.write("send-event", f"{action['type']} {action['id']}", send, number=issue or 0)
    if sent and sent.error:
        log.entries[-1] = replace(log.entries[-1], status=OperationStatus.FAILED)
    return sent


def with_sent(task: dict[str, Any], sent: SentAction, at: str) -> HandoffDecision:
    """Return the task with the result of an action recorded; once, if it was sent."""
    runtime = runtime_of(task)
    history = runtime["actionHistory"]
    if any(entry.get("actionId") == sent.id and entry.get("result") == "ok" for entry in history):
        return HandoffDecision(task)
    entry = {
        **entry_of(task, at, "onEnter", sent.type, next_actions=len(runtime["nextActions"])),
        "actionId": sent.id,
        "idempotencyKey": sent.id,
        "result": "error" if sent.error else "ok",
        **({"error": sent.error.message, "isTransient": isinstance(sent.error, Stopped)} if sent.error else {}),
    }
    return HandoffDecision(with_runtime(task, {**runtime, "actionHistory": [*history, entry]}))
