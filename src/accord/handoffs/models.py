"""The wire format of a handoff: a task, and in its metadata what each role left for the next one.

Source: handoff schema, "Canonical Handoff Metadata Schema" and "Partial/In-Progress Representation". The documents are
open: keys that are not listed here stay as they are. Old names are read by ``accord.handoffs.models`` before.
"""

from __future__ import annotations

import copy
import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


OLD_STATUSES = {"todo": "backlog", "ready": "backlog", "in_progress": "implementing"}
TASK_ID = re.compile(r"T-(?:\d{5}|[1-9]\d{5,18})", re.ASCII)
"""Five digits, and more only where the number of the task has them: those of issues go on after 99,999."""

_OLD_KEYS = (
    ("planningArtifact", "implementationSteps", "steps"),
    ("awaitingHumanArtifact", "recommendedDefault", "recommendedOption"),
)
_LISTS = {
    "planned": ("gherkinScenarios", "unitTestIntent", "integrationTestIntent"),
    "implemented": ("testsAddedOrUpdated", "evidenceLinks", "commandsRun"),
}


def normalised(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task in today's form; the given one stays as it is. To normalise twice changes nothing more."""
    found: dict[str, Any] = copy.deepcopy(dict(task))
    status = found.setdefault("status", "backlog")
    if isinstance(status, str):
        found["status"] = OLD_STATUSES.get(status, status)
    metadata = found.setdefault("metadata", {})
    if isinstance(metadata, dict):
        _normalise_metadata(metadata)
    return found


def as_patch(patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a patch in today's names; nothing is filled in, so that it says no more than its author did."""
    found: dict[str, Any] = copy.deepcopy(dict(patch))
    if isinstance(found.get("status"), str):
        found["status"] = OLD_STATUSES.get(found["status"], found["status"])
    if isinstance(found.get("metadata"), dict):
        _rename(found["metadata"])
    return found


def next_task_id(known: Iterable[object]) -> str:
    """Return the id after the highest of those that are well formed; T-00001 where there is none."""
    numbers = [int(name[2:]) for name in known if isinstance(name, str) and TASK_ID.fullmatch(name)]
    return f"T-{max(numbers, default=0) + 1:05d}"


def has_task_id(task: Mapping[str, Any]) -> bool:
    """Tell whether the task has an id of the right form."""
    metadata = task.get("metadata")
    found = metadata.get("canonicalTaskId") if isinstance(metadata, dict) else None
    return isinstance(found, str) and bool(TASK_ID.fullmatch(found))


def _normalise_metadata(metadata: dict[str, Any]) -> None:
    _rename(metadata)
    testing = metadata.get("testingArtifacts")
    if not isinstance(testing, dict):
        return
    if not isinstance(testing.get("schemaVersion"), str):
        testing["schemaVersion"] = "1.0"
    for part, lists in _LISTS.items():
        if not isinstance(testing.get(part), dict):
            testing[part] = {}
        for name in lists:
            if not isinstance(testing[part].get(name), list):
                testing[part][name] = []
        testing[part].setdefault("notes", None)


def _rename(metadata: dict[str, Any]) -> None:
    for name, old, new in _OLD_KEYS:
        artifact = metadata.get(name)
        if isinstance(artifact, dict) and old in artifact and new not in artifact:
            artifact[new] = artifact.pop(old)
    awaiting = metadata.get("awaitingHumanArtifact")
    if isinstance(awaiting, dict) and isinstance(awaiting.get("options"), list):
        awaiting["options"] = [
            {"label": option, "description": ""} if isinstance(option, str) else option
            for option in awaiting["options"]
        ]


Status = Literal["backlog", "planning", "implementing", "review", "verification", "awaiting_human", "done", "cancelled"]
Texts = list[str]


def _moment(text: str) -> str:
    try:
        is_moment = "T" in text and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        is_moment = False
    if not is_moment:
        raise PydanticCustomError("moment", "Input should be a timestamp such as 2026-02-18T20:00:00Z")
    return text


Moment = Annotated[str, AfterValidator(_moment), Field(description="ISO-8601 timestamp with a time zone.")]


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, frozen=True, populate_by_name=True, defer_build=True)


class StageArtifact(_Open):
    """What every artifact may say of itself. A superseded artifact counts as absent."""

    status: Literal["draft", "complete", "superseded"] | None = Field(
        None, description="draft while it is worked on, complete, or superseded: then it counts as absent."
    )
    updated_at: Moment | None = Field(None, alias="updatedAt")
    updated_by: str | None = Field(None, alias="updatedBy", description="Id of the actor who changed it last.")


class Workflow(_Open):
    """Where the work happens."""

    owner: str | None = Field(None, description="Who works on the task.")
    base_branch: str | None = Field(None, alias="baseBranch", description="Never changes once it is set.")
    branch_name: str | None = Field(None, alias="branchName", description="Never changes once it is set.")
    pull_request_url: str | None = Field(None, alias="pullRequestUrl")


class PlanningArtifact(StageArtifact):
    """The planner's plan; changing goals, steps or risks needs a new transitionNote."""

    created_at: Moment | None = Field(None, alias="createdAt", description="Never changes once it is set.")
    goals: Texts = []
    steps: Texts = []
    risks: Texts = []


class Planned(StageArtifact):
    """The planner's tests; changing them needs a new transitionNote."""

    gherkin_scenarios: Texts = Field([], alias="gherkinScenarios")
    unit_test_intent: Texts = Field([], alias="unitTestIntent")
    integration_test_intent: Texts = Field([], alias="integrationTestIntent")
    notes: str | None = None


class Implemented(StageArtifact):
    """The tests that there are, and evidence that they were run."""

    tests_added_or_updated: Texts = Field([], alias="testsAddedOrUpdated")
    evidence_links: Texts = Field([], alias="evidenceLinks")
    commands_run: Texts = Field([], alias="commandsRun", description="Only grows.")
    notes: str | None = None


class TestingArtifacts(_Open):
    """Tests as they were planned and as they are."""

    __test__ = False

    schema_version: str = Field("1.0", alias="schemaVersion")
    planned: Planned = Planned()
    implemented: Implemented = Implemented()


class ReviewArtifact(StageArtifact):
    """The verdict of the architect, which the reviewer enriches."""

    change_summary: Texts = Field([], alias="changeSummary", description="What changed; only grows.")
    files_touched: Texts = Field([], alias="filesTouched")
    known_risks: Texts = Field([], alias="knownRisks")
    findings: list[Any] = []
    remediation_items: list[Any] = Field([], alias="remediationItems")
    decision: Literal["approved", "changes_requested"] | None = None


class VerificationArtifact(StageArtifact):
    """The tester's evidence."""

    commands: Texts = []
    result: Literal["passed", "failed"] | None = None
    notes: Texts = Field([], description="Only grows.")


class Option(_Open):
    """One answer that a person may give."""

    label: str
    description: str = ""


class AwaitingHumanArtifact(StageArtifact):
    """A question to a person."""

    question: str = ""
    options: list[Option] = Field([], description="At least two.")
    recommended_option: str | None = Field(None, alias="recommendedOption", description="The label of an option.")
    requested_at: Moment | None = Field(None, alias="requestedAt")


class DoneArtifact(StageArtifact):
    """What came of the task."""

    completed_at: Moment | None = Field(None, alias="completedAt")
    summary: Texts = []
    verification: Texts = []


class BlockingReason(_Open):
    """Why a move was refused."""

    code: str = Field(description="Stable name of the reason, such as MISSING_REVIEW_ARTIFACTS.")
    message: str
    path: str = Field("", description="JSON pointer into the task.")


class NextAction(_Open):
    """What the status asks somebody to do; the id names this entry into the status, so that it is done once."""

    id: str
    type: str


class Transition(_Open):
    """A move that was made."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    at: Moment


class HistoryEntry(_Open):
    """One thing that the engine did or refused."""

    at: Moment
    phase: Literal["onEnter", "onExit"]
    status: str
    result: Literal["ok", "error"]
    next_action_count: int = Field(0, alias="nextActionCount")
    blocking_reason_count: int = Field(0, alias="blockingReasonCount")
    action_id: str | None = Field(None, alias="actionId")
    action_type: str | None = Field(None, alias="actionType")
    error: str | None = None
    idempotency_key: str | None = Field(None, alias="idempotencyKey")


class WorkflowRuntime(_Open):
    """What the engine keeps; no role may write it."""

    schema_version: str = Field("1.0", alias="schemaVersion")
    last_transition: Transition | None = Field(None, alias="lastTransition")
    next_actions: list[NextAction] = Field([], alias="nextActions")
    blocking_reasons: list[BlockingReason] = Field([], alias="blockingReasons")
    action_history: list[HistoryEntry] = Field([], alias="actionHistory", description="Only grows.")


class Metadata(_Open):
    """What the roles hand on."""

    schema_version: str | None = Field(None, alias="schemaVersion")
    canonical_task_id: str | None = Field(
        None, alias="canonicalTaskId", description="T- and five digits, or more from 100000 on."
    )
    workflow: Workflow | None = None
    planning_artifact: PlanningArtifact | None = Field(None, alias="planningArtifact")
    testing_artifacts: TestingArtifacts | None = Field(None, alias="testingArtifacts")
    review_artifact: ReviewArtifact | None = Field(None, alias="reviewArtifact")
    verification_artifact: VerificationArtifact | None = Field(None, alias="verificationArtifact")
    awaiting_human_artifact: AwaitingHumanArtifact | None = Field(None, alias="awaitingHumanArtifact")
    done_artifact: DoneArtifact | None = Field(None, alias="doneArtifact")
    retrospectives: list[Any] = []
    transition_note: str | None = Field(
        None, alias="transitionNote", description="Why a plan or its tests were changed; new with each such change."
    )
    workflow_runtime: WorkflowRuntime | None = Field(None, alias="workflowRuntime")


class Handoff(_Open):
    """A task and what was handed on with it."""

    title: str | None = None
    description: str | None = None
    acceptance_criteria: Any = Field(None, alias="acceptanceCriteria")
    dependencies: list[Any] | None = None
    status: Status = "backlog"
    completed_at: Moment | None = Field(None, alias="completedAt", description="Set and cleared by the engine.")
    metadata: Metadata = Metadata()

    @model_validator(mode="before")
    @classmethod
    def _read_old_names(cls, value: Any) -> Any:
        return normalised(value) if isinstance(value, dict) else value
