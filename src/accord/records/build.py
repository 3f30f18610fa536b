"""Records from the evidence of a command: the environment of its job, the agent's folder, outputs and receipts.

All functions are pure, except ``read_inputs``, which reads files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from accord.core.clock import timestamp
from accord.core.frozen import Frozen
from accord.records.models import (
    MOST_ATTEMPTS,
    AgentKind,
    PublicRecord,
    RecordAttempt,
    RecordInput,
    RecordKind,
    RecordLinks,
    RecordResult,
    RecordTrigger,
    RunCause,
    name_of,
    record_id,
)
from accord.runner.causes import Disposition, ErrorCategory

if TYPE_CHECKING:
    from accord.engine.receipts import Receipt
    from accord.runner.models import RunOutputs
    from accord.runner.record import Attempt

CATEGORIES: tuple[str, ...] = get_args(ErrorCategory)
_DISPOSITIONS: tuple[Disposition, ...] = get_args(Disposition)
OTHER_CLASSES = ("contract", "refused", "stopped", "rejected", "job", "setup", "lost", "budget")
"""Classes of failures that are not the agent's: of applying a result, of a job, of starting it."""

_CAUSES: Mapping[str, RunCause] = {
    "": "hand",
    "issue_comment": "comment",
    "issues": "label",
    "pull_request": "pull-request",
    "pull_request_target": "pull-request",
    "push": "push",
    "repository_dispatch": "event",
    "schedule": "schedule",
    "workflow_call": "workflow",
    "workflow_dispatch": "hand",
    "workflow_run": "workflow",
}
"""The cause that an event of GitHub shows by its name; by default ``event``."""


class JobFacts(Frozen):
    """The job that a command runs in. ``run_id`` names the run in every job of it, also at a terminal."""

    repository: str
    run_id: str
    trigger: RecordTrigger
    workflow_run: int | None = None
    workflow_attempt: int | None = None

    def record(
        self, kind: RecordKind, subject: tuple[object, ...], links: Mapping[str, Any], **more: Any
    ) -> PublicRecord:
        """Return a record of this job; ``subject`` identifies it among all of the repository."""
        return PublicRecord(
            id=record_id(self.repository, *subject),
            kind=kind,
            repository=self.repository,
            trigger=self.trigger,
            links=RecordLinks(workflow_run=self.workflow_run, workflow_attempt=self.workflow_attempt, **links),
            **more,
        )


def job_facts(environment: Mapping[str, str], repository: str, local_id: str, action: str = "") -> JobFacts:
    """Return the facts of a job; ``local_id`` names the run outside of GitHub Actions, ``action`` is that of the event.

    A person starts what runs at a terminal, and what an account of a bot dispatched another workflow started.
    """
    run_id, number = environment.get("GITHUB_RUN_ID", ""), environment.get("GITHUB_RUN_ATTEMPT", "")
    event, by = environment.get("GITHUB_EVENT_NAME", ""), environment.get("GITHUB_ACTOR", "")
    cause: RunCause = _CAUSES.get(event, "event")
    if action in ("labeled", "unlabeled"):
        cause = "label"
    elif event == "workflow_dispatch" and by.endswith("[bot]"):
        cause = "workflow"
    return JobFacts(
        repository,
        run_id or local_id,
        RecordTrigger(cause=cause, by=by[:100], event=event[:100]),
        int(run_id) if run_id.isdecimal() else None,
        int(number) if number.isdecimal() else None,
    )


def trigger_of_start(cause: str, by: str, *, has_key: bool) -> RecordTrigger:
    """Return the trigger of started work; ``cause`` is the event's line of the configuration, empty if unknown."""
    from accord.starts.models import Trigger  # imported here: an apply needs neither this nor the folder of a run

    causes: Mapping[str, RunCause] = {
        Trigger.LABEL: "label",
        Trigger.COMMENT: "comment",
        Trigger.DASHBOARD: "dashboard",
        Trigger.SPECS: "specification",
        Trigger.PULL: "pull-request",
        Trigger.REVIEW_REQUEST: "review-request",
    }
    found: RunCause = causes.get(cause, "event") if has_key else "hand"
    return RecordTrigger(cause=found, by=by, event="workflow_dispatch")


class AgentFacts(Frozen):
    """The evidence of an agent's run: its outputs, and from its folder the attempts, inputs and the time it began."""

    outputs: RunOutputs | None = None
    attempts: tuple[Attempt, ...] = ()
    inputs: tuple[RecordInput, ...] = ()
    started_at: datetime | None = None


def read_inputs(run_dir: Path) -> tuple[RecordInput, ...]:
    """Return the digests of what an agent was given: its prompt, and the schema of its result."""
    from accord.runner.record import PROMPT, SCHEMA, open_regular

    found = []
    for name in (PROMPT, SCHEMA):
        with suppress(OSError), open_regular(run_dir / name) as file:
            found.append(digest_of(name, file.read()))
    return tuple(found)


def digest_of(name: str, content: bytes) -> RecordInput:
    """Return an input by its content."""
    return RecordInput(name=name_of(name), sha256=hashlib.sha256(content).hexdigest())


class Ending(Frozen):
    """How a run of an agent ended, where the command knows more than the agent's outputs; ``agent`` was asked for."""

    disposition: Disposition | None = None
    outcome: str = ""
    error: str = ""
    links: Mapping[str, Any] = field(default_factory=dict)
    started_at: datetime | None = None
    agent: str = ""


def agent_record(
    kind: AgentKind, number: int | None, job: JobFacts, facts: AgentFacts, ending: Ending, now: datetime
) -> PublicRecord:
    """Return the record of a run of an agent for an issue or a pull request, None for neither."""
    outputs = facts.outputs
    seconds = _number(outputs.duration_seconds) if outputs else None
    started = facts.started_at or ending.started_at
    if started is None and seconds is not None:
        started = now - timedelta(seconds=seconds)
    said = outputs.terminal_disposition if outputs else ""
    by_code: Disposition = "success" if outputs and outputs.exit_code == "0" else "failure"
    disposition = ending.disposition or next((one for one in _DISPOSITIONS if one == said), by_code)
    category = outputs.error_category if outputs and outputs.error_category in CATEGORIES else ""
    attempts = [{**dict(one), "seconds": one.duration_seconds} for one in facts.attempts] or _attempts(outputs)
    commit = outputs.commit_sha if outputs else ""
    began = timestamp(facts.started_at) if facts.started_at else ""
    subject = began if kind == "run" or not number else number
    return job.record(
        kind,
        ("agent", job.run_id, subject),
        {"commit": commit, **ending.links},
        inputs=facts.inputs,
        agent=name_of((outputs.agent_name if outputs else "") or ending.agent),
        model=name_of(outputs.agent_model) if outputs else "",
        tokens_input=_to_count(outputs.tokens_input) if outputs else None,
        tokens_output=_to_count(outputs.tokens_output) if outputs else None,
        cost_usd=_number(outputs.cost_usd) if outputs else None,
        started_at=started,
        ended_at=now,
        seconds=seconds,
        attempts=tuple(map(_record_attempt, attempts[-MOST_ATTEMPTS:])),
        result=RecordResult(
            disposition=disposition,
            outcome=name_of(ending.outcome),
            error_category=category if disposition == "failure" else "",
            error=name_of(ending.error) if disposition == "failure" else "",
            findings=len(attempts[-1]["findings"]) if attempts else None,
        ),
    )


def _record_attempt(entry: Mapping[str, Any]) -> RecordAttempt:
    return RecordAttempt(
        agent=name_of(str(entry["agent"])),
        model=name_of(entry.get("model", "")),
        turn=_to_count(entry["turn"]) or 0,
        outcome=entry["outcome"],
        cause=name_of(entry.get("cause", "")),
        tokens_input=_to_count(entry.get("tokens_input")),
        tokens_output=_to_count(entry.get("tokens_output")),
        cost_usd=_number(entry["cost_usd"]),
        seconds=_number(entry["seconds"]),
        findings=len(entry["findings"]),
    )


def _attempts(outputs: RunOutputs | None) -> list[dict[str, Any]]:
    """Read the output ``attempts``, which the runner wrote; none where it does not have that form."""
    keys = {"agent", "turn", "outcome", "cost_usd", "seconds", "findings"}
    try:
        entries = json.loads(outputs.attempts if outputs else "") or []
    except ValueError:
        return []
    return [entry for entry in entries if isinstance(entry, dict) and keys <= entry.keys()]


def _number(value: object) -> float | None:
    """Return a number that a record may hold; None for any other text or value."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if 0 <= number <= 1e9 else None


def _to_count(value: object) -> int | None:
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdecimal() and len(value) < 19 else None
    return value if isinstance(value, int) and 0 <= value < 10**18 else None


def apply_record(
    receipt: Receipt,
    job: JobFacts,
    result: RecordInput,
    links: Mapping[str, int | None],
    times: tuple[datetime, datetime],
) -> PublicRecord:
    """Return the record of an apply, which is the same whenever the same result is applied.

    ``result`` is the file, ``links`` has the issue and the pull request as given, and ``times`` the begin and the end.
    """
    began, ended = times
    outcome = receipt.outcome.value
    revision = receipt.details.get("revision") or {}
    opened = str(revision.get("id") or "")
    found: Mapping[str, Disposition] = {"applied": "success", "unchanged": "no-change"}
    disposition = found.get(outcome, "failure")
    return job.record(
        "apply",
        ("apply", receipt.kind, receipt.run_key, result.sha256),
        {**links, **({"pull": int(opened)} if opened.isdecimal() else {})},
        inputs=(result,),
        started_at=began,
        ended_at=ended,
        result=RecordResult(
            disposition=disposition,
            outcome=outcome,
            error={"rejected": "contract"}.get(outcome, outcome) if disposition == "failure" else "",
            findings=len(receipt.findings),
        ),
    )


def turn_record(job: JobFacts, pull: int, outcome: str, at: datetime, *, asks: bool) -> PublicRecord:
    """Return the record of a turn of a loop without an agent; one that ``asks`` waits for a person."""
    result = RecordResult(disposition="blocked" if asks else "success", outcome=name_of(outcome))
    return job.record("turn", ("turn", job.run_id, pull, outcome), {"pull": pull}, ended_at=at, result=result)


def failure_class(result: str) -> str:
    """Return the class of a failure in a status comment, such as ``transient (agent): …``; else ``unknown``."""
    word = result.partition(":")[0].partition(" ")[0].strip().lower()
    if "ended without a report" in result:
        return "lost"
    return word if word in (*CATEGORIES, *OTHER_CLASSES) else "unknown"
