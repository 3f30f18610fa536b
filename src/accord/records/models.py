"""The public record of a run: who started it and why, what went in, what it cost, and how it ended.

The names of the fields are those of the document kind ``run-record``. A record holds no text that an agent or a person
wrote freely: only names, numbers, digests and timestamps.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from accord.core.clock import parse_timestamp, time_in_range, timestamp
from accord.runner.causes import Disposition, ErrorCategory

AgentKind = Literal["plan", "implement", "review", "keepalive", "autofix", "verify", "bot-comments", "run"]
"""Runs of an agent: started work, the turns of the loops, and any other run."""

RecordKind = AgentKind | Literal["apply", "turn"]
"""``turn``: a turn of a loop without an agent, such as a merge of the base into the branch."""

AGENT_KINDS: tuple[str, ...] = get_args(AgentKind)

RunCause = Literal[
    "comment", "label", "dashboard", "specification", "pull-request", "review-request", "push", "schedule", "workflow",
    "event", "hand", "unknown",
]  # fmt: skip
"""Why a run began. ``workflow``: another workflow or a loop started it. ``event``: an event, it is unknown which."""

AttemptOutcome = Literal["done", "broken", "failed", "budget", "skipped"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._/:+\[\]-]+")
MOST_ATTEMPTS = 30
_LONGEST_NAME = 100


def name_of(text: str) -> str:
    """Return a name, such as that of a model, with only characters that no page and no message interprets."""
    return re.sub("-{2,}", "-", _UNSAFE.sub("-", text.strip()))[:_LONGEST_NAME]


Name = Annotated[str, StringConstraints(max_length=_LONGEST_NAME), AfterValidator(name_of)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


Moment = Annotated[AwareDatetime, AfterValidator(lambda at: parse_timestamp(timestamp(time_in_range(at))))]
"""A time in whole seconds."""


class _RecordPart(BaseModel):
    """An immutable part of a record. Keys that a later version adds are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class RecordTrigger(_RecordPart):
    """The login that started a run (empty if unknown), the reason, and GitHub's name of the event."""

    cause: RunCause = "unknown"
    by: Name = ""
    event: Name = ""


class RecordInput(_RecordPart):
    """A file that went into a run, by its digest."""

    name: Name
    sha256: Sha256


class RecordAttempt(_RecordPart):
    """One turn of one agent, as in the runner's own record; ``cause`` is why it failed, a stable code."""

    agent: Name = ""
    model: Name = ""
    turn: Count = 1
    outcome: AttemptOutcome
    cause: Name = ""
    tokens_input: Count | None = None
    tokens_output: Count | None = None
    cost_usd: Amount | None = None
    seconds: Amount | None = None
    findings: Count = 0


class RecordResult(_RecordPart):
    """How the run itself ended; what became of its pull request is read from GitHub.

    ``outcome`` is the command's own word (``applied``, ``done``, ``ended``), ``error_category`` that of the runner
    contract, ``error`` another class of failure, such as ``contract``, and ``findings`` how many its result had.
    """

    disposition: Disposition
    outcome: Name = ""
    error_category: ErrorCategory | Literal[""] = ""
    error: Name = ""
    findings: Count | None = None


class RecordLinks(_RecordPart):
    """The issue and the pull request (numbers), the workflow run with its attempt, and a pushed commit."""

    issue: Count | None = None
    pull: Count | None = None
    workflow_run: Count | None = None
    workflow_attempt: Count | None = None
    commit: Name = ""


class PublicRecord(_RecordPart):
    """The record of one run, apply or loop turn. ``seconds`` is how long the agent worked, where one did.

    The same run has the same ``id``: a later version of a record replaces the one before.
    """

    version: Literal[1] = 1
    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    kind: RecordKind
    repository: Name
    trigger: RecordTrigger = RecordTrigger()
    inputs: tuple[RecordInput, ...] = Field((), max_length=50)
    agent: Name = ""
    model: Name = ""
    tokens_input: Count | None = None
    tokens_output: Count | None = None
    cost_usd: Amount | None = None
    started_at: Moment | None = None
    ended_at: Moment
    seconds: Amount | None = None
    attempts: tuple[RecordAttempt, ...] = Field((), max_length=MOST_ATTEMPTS)
    result: RecordResult
    links: RecordLinks = RecordLinks()

    def as_json(self) -> str:
        """Return the JSON text of a record, without what it does not know."""
        known = self.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        return json.dumps({"version": self.version, **known}, separators=(",", ":"))

    @property
    def is_agent_run(self) -> bool:
        """Whether an agent ran, and not only accord."""
        return self.kind in AGENT_KINDS


def record_id(repository: str, *parts: object) -> str:
    """Return the id of a record: the same parts give the same id, in whatever case the repository is written."""
    text = "\n".join([repository.lower(), *map(str, parts)])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def merge_records(old: PublicRecord, new: PublicRecord) -> PublicRecord:
    """Return the next version of a record; it is ``old`` where ``new`` says nothing that ``old`` does not.

    A later version fills in what an earlier one left open. A plain run never hides what a loop or a start said about
    the same run, and an apply that found everything done never hides the one that did it.
    """
    strong, weak = (old, new) if old == new or is_weaker(new, old) else (new, old)
    known = {name: getattr(strong, name) for name in strong.model_fields_set}
    empty = [name for name in PublicRecord.model_fields if getattr(strong, name) in (None, "", ())]
    filled = {name: getattr(weak, name) for name in empty if getattr(weak, name) not in (None, "", ())}
    links = {**weak.links.model_dump(exclude_defaults=True), **strong.links.model_dump(exclude_defaults=True)}
    trigger = strong.trigger if strong.trigger.cause != "unknown" else weak.trigger
    version = PublicRecord(**{**known, **filled, "links": RecordLinks(**links), "trigger": trigger})
    times = {"started_at", "ended_at", "seconds"}
    return old if version.model_dump(exclude=times) == old.model_dump(exclude=times) else version


def joined_runs(records: Iterable[PublicRecord]) -> list[PublicRecord]:
    """Return records in which the plain run of a loop's turn, or of a start, is part of it.

    Both are of one workflow run, which has one turn or one start, and the run names no other pull request.
    """
    found = {record.id: record for record in records}
    turns = (one for one in found.values() if one.is_agent_run and one.kind != "run" and one.links.workflow_run)
    owners = {one.links.workflow_run: one.id for one in turns}
    for record in [one for one in found.values() if one.kind == "run"]:
        owner = found.get(owners.get(record.links.workflow_run, ""))
        if owner and record.links.pull in (None, owner.links.pull):
            found[owner.id] = merge_records(record, owner).model_copy(update={"id": owner.id})
            del found[record.id]
    return list(found.values())


def is_weaker(record: PublicRecord, than: PublicRecord) -> bool:
    """Tell whether a version says less about how the run ended than another version."""
    if record.kind != than.kind:
        return record.kind == "run"
    return record.kind == "apply" and record.result.outcome == "unchanged" and than.result.disposition == "success"
