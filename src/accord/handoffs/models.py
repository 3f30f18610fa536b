"""The wire format of a handoff: a task, and in its metadata the artifacts of each role.

Source: handoff schema, "Canonical Handoff Metadata Schema" and "Partial/In-Progress Representation". The documents are
open: unknown keys stay as they are. Old names are replaced first.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from accord.core.clock import parse_timestamp
from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.numbers import Integer
from accord.core.shapes import read_shape

OLD_STATUSES = {"todo": "backlog", "ready": "backlog", "in_progress": "implementing"}
TASK_ID = re.compile(r"T-(?:\d{5}|[1-9]\d{5,18})", re.ASCII)
"""Five digits, and more only for numbers that need them: issues continue after 99,999."""

_OLD_KEYS = (
    ("planningArtifact", "implementationSteps", "steps"),
    ("awaitingHumanArtifact", "recommendedDefault", "recommendedOption"),
)
_TESTS: dict[str, Any] = {
    "schemaVersion": "1.0",
    "planned": {"gherkinScenarios": [], "unitTestIntent": [], "integrationTestIntent": [], "notes": None},
    "implemented": {"testsAddedOrUpdated": [], "evidenceLinks": [], "commandsRun": [], "notes": None},
}


def is_task_store(value: Mapping[str, Any]) -> bool:
    """Tell whether an object holds several tasks, by their place or by their id."""
    return isinstance(value.get("tasks"), (list, dict)) and "status" not in value


def normalise(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task in today's form; the argument stays as it is. Normalising twice changes nothing.

    Only missing parts are filled in, so that no text is lost. Raises BrokenContract ``not-a-handoff`` for an object
    that is not a task, or that holds several, as a task store does.
    """
    if is_task_store(task):
        message, hint = "This is a store of tasks, not a handoff.", "Copy the task into a file of its own."
        raise BrokenContract.of(Finding("not-a-handoff", message, "/tasks", hint=hint))
    if "metadata" not in task and "status" not in task:
        message = "A handoff has `status` or `metadata`, but this has neither."
        hint = "Add `status`, such as `backlog`, and `metadata`."
        raise BrokenContract.of(Finding("not-a-handoff", message, hint=hint))
    found = as_patch(task)
    found.setdefault("status", "backlog")
    metadata = found.setdefault("metadata", {})
    if isinstance(metadata, dict) and metadata.get("testingArtifacts") is not None:
        metadata["testingArtifacts"] = _with_defaults(metadata["testingArtifacts"], _TESTS)
    return found


def _with_defaults(value: Any, default: Any) -> Any:
    """Fill in missing parts. Parts of a wrong shape stay, for the schema to refuse."""
    if value is None:
        return copy.deepcopy(default)
    if not (isinstance(value, dict) and isinstance(default, dict)):
        return value
    return {**value, **{key: _with_defaults(value.get(key), part) for key, part in default.items()}}


def as_patch(patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a patch with today's names; defaults are not filled in. Parts that stay are those of the argument."""
    found = dict(patch)
    if isinstance(found.get("status"), str):
        found["status"] = OLD_STATUSES.get(found["status"], found["status"])
    if not isinstance(found.get("metadata"), dict):
        return found
    artifacts = found["metadata"] = dict(found["metadata"])
    for name, old, new in _OLD_KEYS:
        artifact = artifacts.get(name)
        if isinstance(artifact, dict) and old in artifact and new not in artifact:
            artifacts[name] = {new if key == old else key: value for key, value in artifact.items()}
    awaiting = artifacts.get("awaitingHumanArtifact")
    if isinstance(awaiting, dict) and isinstance(awaiting.get("options"), list):
        texts = awaiting["options"]
        options = [{"label": one, "description": ""} if isinstance(one, str) else one for one in texts]
        artifacts["awaitingHumanArtifact"] = {**awaiting, "options": options}
    return found


def next_task_id(ids: Iterable[object]) -> str:
    """Return the id after the highest valid one; T-00001 for the first task."""
    numbers = [int(name[2:]) for name in ids if isinstance(name, str) and TASK_ID.fullmatch(name)]
    return f"T-{max(numbers, default=0) + 1:05d}"


def written_id(task: Any) -> Any:
    """Return the id that a task of any shape holds, valid or not; None without one."""
    metadata = task.get("metadata") if isinstance(task, Mapping) else None
    return metadata.get("canonicalTaskId") if isinstance(metadata, dict) else None


def has_task_id(task: Mapping[str, Any]) -> bool:
    """Tell whether the task has a valid id."""
    return isinstance(found := written_id(task), str) and bool(TASK_ID.fullmatch(found))


Status = Literal["backlog", "planning", "implementing", "review", "verification", "awaiting_human", "done", "cancelled"]


def _check_timestamp(text: str) -> str:
    try:
        parse_timestamp(text if "T" in text else "")
    except ValueError:
        raise ValueError("The value is not a timestamp", "Write one such as 2026-02-18T20:00:00Z.") from None
    return text


Timestamp = Annotated[str, AfterValidator(_check_timestamp), Field(description="ISO-8601 timestamp with a time zone.")]


class _HandoffModel(BaseModel):
    model_config = ConfigDict(
        extra="allow", strict=True, frozen=True, populate_by_name=True, alias_generator=to_camel, defer_build=True
    )


class StageArtifact(_HandoffModel):
    """Keys of every artifact. A superseded artifact counts as absent."""

    status: Literal["draft", "complete", "superseded"] | None = Field(None, description="Superseded counts as absent.")
    updated_at: Timestamp | None = None
    updated_by: str | None = Field(None, description="Id of the last author.")


class TaskWorkflow(_HandoffModel):
    """The owner and branches of the work."""

    owner: str | None = Field(None, description="Person or agent that works on the task.")
    base_branch: str | None = Field(None, description="Immutable once set.")
    branch_name: str | None = Field(None, description="Immutable once set.")
    pull_request_url: str | None = None


class _PlannerOutput(StageArtifact):
    review_references: list[Any] = Field([], description="The architect's references to its review; only grows.")


class PlanningArtifact(_PlannerOutput):
    """The planner's plan; changing goals, steps or risks needs a new transitionNote."""

    created_at: Timestamp | None = Field(None, description="Immutable once set.")
    goals: list[str] = []
    steps: list[str] = []
    risks: list[str] = []


class PlannedTests(_PlannerOutput):
    """The planner's tests; changing them needs a new transitionNote."""

    gherkin_scenarios: list[str] = []
    unit_test_intent: list[str] = []
    integration_test_intent: list[str] = []
    notes: str | None = None


class ImplementedTests(StageArtifact):
    """The existing tests, and evidence that they ran."""

    tests_added_or_updated: list[str] = []
    evidence_links: list[str] = []
    commands_run: list[str] = Field([], description="Only grows.")
    notes: str | None = None


class TestingArtifacts(StageArtifact):
    """Planned and existing tests."""

    __test__ = False

    schema_version: str = "1.0"
    planned: PlannedTests = PlannedTests()
    implemented: ImplementedTests = ImplementedTests()


class ReviewArtifact(StageArtifact):
    """The verdict of the architect, with additions of the reviewer."""

    change_summary: list[str] = Field([], description="Changes; only grows.")
    files_touched: list[str] = []
    known_risks: list[str] = []
    findings: list[Any] = []
    remediation_items: list[Any] = []
    decision: Literal["approved", "changes_requested"] | None = None


class VerificationArtifact(StageArtifact):
    """The tester's evidence."""

    commands: list[str] = []
    result: Literal["passed", "failed"] | None = None
    notes: list[str] = Field([], description="Only grows.")


class AnswerOption(_HandoffModel):
    """One possible answer."""

    label: str
    description: str = ""


class AwaitingHumanArtifact(StageArtifact):
    """A question to a person."""

    question: str = ""
    options: list[AnswerOption] = Field([], description="At least two.")
    recommended_option: str | None = Field(None, description="The label of an option.")
    requested_at: Timestamp | None = None


class DoneArtifact(StageArtifact):
    """The result of the task."""

    completed_at: Timestamp | None = None
    summary: list[str] = []
    verification: list[str] = []


class BlockingReason(_HandoffModel):
    """A reason why a move was refused."""

    code: str = Field(description="Stable name of the reason, such as MISSING_REVIEW_ARTIFACTS.")
    message: str
    path: str = Field("", description="JSON pointer into the task.")


class NextAction(_HandoffModel):
    """Work that the status requires; the id is unique for each entry into the status, so that it is done once."""

    id: str
    type: str


class Transition(_HandoffModel):
    """A move."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    at: Timestamp


class ActionEntry(_HandoffModel):
    """One action of the engine, done or refused."""

    at: Timestamp
    phase: Literal["onEnter", "onExit"]
    status: str
    result: Literal["ok", "error"]
    next_action_count: Integer = 0
    blocking_reason_count: Integer = 0
    action_id: str | None = None
    action_type: str | None = None
    error: str | None = None
    idempotency_key: str | None = None


class WorkflowRuntime(_HandoffModel):
    """The engine's own record; no role may write it."""

    schema_version: str = "1.0"
    last_transition: Transition | None = None
    next_actions: list[NextAction] = []
    blocking_reasons: list[BlockingReason] = []
    judged: dict[str, str] = Field({}, description="Digest of the work that `decision` or `result` judges.")
    judged_by: dict[str, str] = Field({}, description="Id of the actor who gave `decision` or `result` last.")
    worked_by: list[str] = Field([], description="Ids of the actors who wrote `changeSummary` or `filesTouched`.")
    answered: str = Field("", description="Digest of the last question that a person answered.")
    action_history: list[ActionEntry] = Field([], description="Only grows.")


class Metadata(_HandoffModel):
    """The artifacts that the roles hand on."""

    schema_version: str | None = None
    canonical_task_id: str | None = Field(None, description="T- and five digits, or more from 100000 on.")
    workflow: TaskWorkflow | None = None
    planning_artifact: PlanningArtifact | None = None
    testing_artifacts: TestingArtifacts | None = None
    review_artifact: ReviewArtifact | None = None
    verification_artifact: VerificationArtifact | None = None
    awaiting_human_artifact: AwaitingHumanArtifact | None = None
    done_artifact: DoneArtifact | None = None
    retrospectives: list[Any] = []
    transition_note: str | None = Field(None, description="Reason for a change of the plan or its tests; always new.")
    workflow_runtime: WorkflowRuntime | None = None


class Handoff(_HandoffModel):
    """A task and its artifacts."""

    title: str | None = None
    description: str | None = None
    acceptance_criteria: str | list[Any] | dict[str, Any] | None = None
    dependencies: list[Any] | None = None
    status: Status = "backlog"
    completed_at: Timestamp | None = Field(None, description="Set and cleared by the engine.")
    metadata: Metadata = Metadata()

    @model_validator(mode="before")
    @classmethod
    def _read_old_names(cls, value: Any) -> Any:
        return normalise(value) if isinstance(value, dict) else value


def read_handoff(task: Mapping[str, Any]) -> Handoff:
    """Parse a task. Raises BrokenContract with every part that does not have the required shape."""
    return read_shape(Handoff, task)
