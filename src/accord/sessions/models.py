"""The wire format of sessions: inputs and outputs of agents, and the documents of a session folder.

Source: global agent contract. All documents are open: keys outside the contract are kept. Models are for reading and
checking; a write changes a few places of the document as it was read, so that nothing else moves.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from accord.core.numbers import Integer

_Maker = Literal["SpecAgent", "Architect", "Planner", "Designer", "Researcher", "Coder"]
ReviewRole = Literal["Reviewer", "QA", "Security"]
Role = Literal[_Maker, ReviewRole, "Integrator", "Docs", "Orchestrator"]
"""The canonical names of agents."""

_Planning = Literal["INTAKE", "INTAKE_LEAN", "DESIGN", "APPROVE_DESIGN", "PLAN", "REVIEW_STRATEGY"]
FixLoop = Literal["FIX_REVIEW", "FIX_TESTS", "FIX_SECURITY", "FIX_BUILD"]
State = Literal[_Planning, "IMPLEMENT_LOOP", "INTEGRATE", "RELEASE", "DONE", "ASK_USER", FixLoop, "BLOCKED"]
Corrector = Literal["SpecAgent", "Architect", "Designer"]
SessionMode = Literal["full", "lean"]
TaskStatus = Literal["not-started", "in-progress", "implemented", "completed", "blocked"]
DecisionStatus = Literal["pending", "answered", "cancelled", "skipped"]
CorrectionStatus = Literal["none", "queued", "dispatched", "completed"]
OutputStatus = Literal["OK", "BLOCKED", "NEEDS_INFO", "NEEDS_DECISION", "FAIL"]
RiskFlag = Literal["security", "perf", "breaking-change", "none"]
ProjectType = Literal["web", "api", "cli", "lib", "mixed"]
CiStatus = Literal["unknown", "green", "red"]

ROLES: tuple[str, ...] = get_args(Role)
REVIEWS: tuple[str, ...] = get_args(ReviewRole)
STATES: tuple[str, ...] = get_args(State)
LOOPS: tuple[str, ...] = get_args(FixLoop)
CORRECTION_STAGES: tuple[CorrectionStatus, ...] = ("none", "queued", "dispatched", "completed")
"""The statuses of a correction of the design, in their order."""

CORRECTORS: tuple[str, ...] = get_args(Corrector)
"""The agents that correct a design."""

APPROVE_DESIGN = "UD-APPROVE-DESIGN"
REVIEW_STRATEGY = "UD-REVIEW-STRATEGY"
GATES: dict[str, State] = {APPROVE_DESIGN: "APPROVE_DESIGN", REVIEW_STRATEGY: "REVIEW_STRATEGY"}
"""The decisions that every full session needs, each with its state."""
GATE_OF: dict[str, str] = {state: decision_id for decision_id, state in GATES.items()}
"""The decision of each gate state."""

_DECISION_ID = r"^UD-([1-9][0-9]{0,8}|APPROVE-DESIGN|REVIEW-STRATEGY)$"
_TASK_ID = r"^T-[0-9]{3,}$"
_TASK_OR_META = r"^(T-[0-9]{3,}|meta)$"

ReviewEntry = str | dict[str, Any]
"""A comment or finding: a text, or an object with any keys."""


def _check_as_text(value: Any) -> Any:
    """Return the text of an unquoted ``- cmd: npm test``, which YAML reads as a mapping."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((key, content),) = value.items()
    if isinstance(content, (dict, list)):
        return value
    text = "" if content is None else str(content).lower() if isinstance(content, bool) else str(content)
    return f"{key}: {text}"


def _as_flag(value: Any) -> Any:
    """Return a flag as the contract spells it: `Security` is `security`."""
    return re.sub(r"[\s_]+", "-", value.strip().lower()) if isinstance(value, str) else value


def _with_text(value: str) -> str:
    if not value.strip():
        raise ValueError("The text is empty", "Write it.")
    return value


def _if_waived(value: list[str], line: ValidationInfo) -> list[str]:
    """Return the reviews only in the Orchestrator's OK: no other line waives any."""
    return value if (line.data.get("agent"), line.data.get("status")) == ("Orchestrator", "OK") else []


_TEXT_AS_LIST = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
_AS_LIST = BeforeValidator(lambda value: [] if value is None else [value] if isinstance(value, str) else value)
Texts = Annotated[list[str], _AS_LIST]
"""A list of texts; a single one or none is read as a list."""

AcceptanceCheck = Annotated[str, BeforeValidator(_check_as_text)]
"""One acceptance check: ``cmd: …`` is run, ``manual: …`` is done by a person."""

Text = Annotated[str, AfterValidator(_with_text)]
"""A text that is not blank."""


class OpenModel(BaseModel):
    """A part of a document that may have more keys than the contract."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, populate_by_name=True, defer_build=True)


class ChangedFile(OpenModel):
    """A file that the session changed."""

    path: Text = Field(description="Path of the file, relative to the repository.")
    change_type: Literal["added", "modified", "deleted", "renamed"] = Field(description="The kind of the change.")
    old_path: str | None = Field(None, description="The previous path of a renamed file.")


class InputTask(OpenModel):
    """The task of an agent."""

    id: str = Field(pattern=_TASK_OR_META, description="The task's id, T-XXX, or meta for the whole session.")
    title: Text = Field(description="A short title.")
    goal: Text = Field(description="The goal.")
    non_goals: list[str] = Field(description="Excluded goals.")
    context_files: list[str] = Field(description="Files to read first; all must exist.")
    session_changed_files: list[ChangedFile] = Field(
        [], description="Files that the session changed; required for the Reviewer, empty for all others."
    )
    constraints: list[str] = Field(description="Hard constraints.")
    acceptance_checks: list[AcceptanceCheck] = Field(description="Checks of the result, each cmd: or manual:.")
    risk_flags: list[Annotated[RiskFlag, BeforeValidator(_as_flag)]] = Field(description="Risks.")


class RepositoryState(OpenModel):
    """The state of the repository."""

    branch: Text = Field(description="The current branch.")
    ci_status: CiStatus = Field(description="The last result of CI.")
    last_failed_step: str | None = Field(None, description="The step that failed last, if any.")


class AgentInput(OpenModel):
    """The input of an agent: one JSON object."""

    task: InputTask = Field(description="The task.")
    project_type: ProjectType = Field(description="The kind of project, which selects checks.")
    repo_state: RepositoryState = Field(description="The state of the repository.")
    tools_available: list[str] = Field(description="The tools that the agent may use.")
    artifact_list: list[str] = Field([], description="Existing artifacts of the session.")
    agent: Role | None = Field(None, description="The agent that gets the input.")


class OutputArtifacts(OpenModel):
    """The results of an agent. Roles may add keys."""

    files_to_create_or_update: list[str] = Field([], description="Files to be written later.")
    files_changed: list[str] = Field([], description="Written files.")
    tests_added_or_updated: list[str] = Field([], description="Tests among the files.")
    commands_to_run: list[str] = Field(description="Commands that check the result.")
    manual_steps: list[str] = Field([], description="Steps for a person.")
    review_comments: list[ReviewEntry] = Field([], description="Review comments.")
    findings: list[ReviewEntry] = Field([], description="Findings.")
    notes: list[str] = Field(description="Assumptions, trade-offs, links to files.")


class OutputGates(OpenModel):
    """The agent's assessment for the next gates."""

    meets_definition_of_done: bool = Field(description="Whether the definition of done is met.")
    needs_review: bool = Field(description="Whether a review must follow.")
    needs_tests: bool = Field(description="Whether tests must follow.")
    security_concerns: list[ReviewEntry] = Field(description="Security concerns.")


class OutputNext(OpenModel):
    """The recommended next agent and task."""

    recommended_agent: Role = Field(description="The next agent, by its canonical name.")
    recommended_task_id: str = Field(
        pattern=r"^(T-[0-9]{3,}|meta|same)$", description="The next task, T-XXX or meta; same is accepted."
    )
    reason: str = Field(description="The reason, in short.")


class AgentOutput(OpenModel):
    """The output of an agent: one JSON object, with no text around it."""

    status: OutputStatus = Field(
        description="OK, BLOCKED and FAIL for every agent; NEEDS_INFO for the Researcher, NEEDS_DECISION for Security."
    )
    summary: Text = Field(description="The result in one to three sentences.")
    artifacts: OutputArtifacts = Field(description="The results of the agent.")
    gates: OutputGates = Field(description="The agent's assessment for the next gates.")
    next: OutputNext = Field(description="The recommended next agent and task.")
    agent: Role | None = Field(None, description="The agent that wrote the output.")


class UserDecision(OpenModel):
    """A question to the user and its outcome. Only a person resolves those with ``category: security``."""

    decision_id: str = Field(pattern=_DECISION_ID, description="UD-<N>, UD-APPROVE-DESIGN or UD-REVIEW-STRATEGY.")
    question: Text = Field(description="The question.")
    status: DecisionStatus = Field(description="The status of the question.")
    answer: str | None = Field(None, description="The user's answer.")
    asked_at: str = Field(description="Time of the question, ISO-8601.")
    resolved_at: str | None = Field(None, description="Time of the resolution, ISO-8601.")
    state_context: State = Field(description="The state in which the question came up.")
    resolution_reason: str | None = Field(None, description="The reason of a cancelled or skipped question.")
    category: str | None = Field(None, description="The subject; security has its own rule.")


class CorrectionDispatch(OpenModel):
    """The last dispatch of a correction of the design."""

    agent: Corrector | None = Field(None, description="The agent.")
    task_id: Literal["meta"] | None = Field(None, description="Always meta.")
    at: str | None = Field(None, description="The time, ISO-8601.")
    input_at: str | None = Field(None, description="When accord gave the agent its input, ISO-8601; a key of accord.")


class DesignApproval(OpenModel):
    """The progress of a correction of the design; null and missing mean none."""

    correction_status: CorrectionStatus | None = Field(None, description="The status of the correction.")
    last_correction_dispatch: CorrectionDispatch | None = Field(None, description="The last dispatch.")


class GateTracking(OpenModel):
    """The Orchestrator's record of the gate APPROVE_DESIGN."""

    approve_design: DesignApproval | None = Field(
        None, alias="APPROVE_DESIGN", description="Corrections of the design."
    )


class RuntimeFlags(OpenModel):
    """The Orchestrator's findings about the repository."""

    copilot_instructions_exists: bool = Field(description="Whether instructions for Copilot exist.")
    copilot_checked_at: str = Field(description="Time of that check, ISO-8601.")


class RetryCounts(OpenModel):
    """How often a task entered each fix loop."""

    fix_review: Integer = Field(0, ge=0, alias="FIX_REVIEW", description="After a review.")
    fix_tests: Integer = Field(0, ge=0, alias="FIX_TESTS", description="After tests.")
    fix_security: Integer = Field(0, ge=0, alias="FIX_SECURITY", description="After a security review.")
    fix_build: Integer = Field(0, ge=0, alias="FIX_BUILD", description="After a build.")

    def of(self, loop: str) -> int:
        """Return the count of one loop."""
        return int(getattr(self, loop.lower()))


class FixEntry(OpenModel):
    """The last entry of a task into a fix loop."""

    outputs: Integer = Field(ge=0, description="How many outputs there were.")
    count: Integer = Field(ge=0, description="The count of the loop, this entry included.")


class SessionStatus(OpenModel):
    """``status.json``: the state of the session. Only ``tasks.yaml`` has the status of tasks."""

    current_state: State = Field(description="The state of the session.")
    session: str = Field(description="The session's name, as its folder: YYYY-MM-DD_short-slug.")
    assumptions: list[str] = Field(description="Assumptions.")
    user_decisions: list[UserDecision] = Field(description="Questions to the user.")
    gate_tracking: GateTracking | None = Field(None, description="Written only by the Orchestrator.")
    runtime_flags: RuntimeFlags | None = Field(None, description="Written only by the Orchestrator.")
    retry_counts: dict[str, RetryCounts] = Field(description="Counts of fix loops, by task.")
    known_issues: list[str] = Field(description="Known issues.")
    last_ci_result: CiStatus = Field(description="The last result of CI.")
    last_update: str = Field(description="Time of the last change, ISO-8601.")
    mode: SessionMode | None = Field(None, description="Whether the session is full or lean.")
    blocker: str | None = Field(None, description="The reason of a blocked session.")
    blocked_from: State | None = Field(None, description="The state that a blocked session returns to.")
    reopened_at: str | None = Field(None, description="Time of the last reopening, ISO-8601.")
    fix_task: str | None = Field(None, pattern=_TASK_OR_META, description="The task that waits for the work of a fix.")
    fix_entries: dict[str, dict[str, FixEntry]] = Field({}, description="The last entry of a task into each fix loop.")

    def decision(self, decision_id: str) -> UserDecision | None:
        """Return the decision with this id."""
        return next((decision for decision in self.user_decisions if decision.decision_id == decision_id), None)

    @property
    def pending(self) -> tuple[UserDecision, ...]:
        """The questions that wait for the user."""
        return tuple(decision for decision in self.user_decisions if decision.status == "pending")

    @property
    def _approval(self) -> DesignApproval:
        return (self.gate_tracking and self.gate_tracking.approve_design) or DesignApproval()

    @property
    def correction_status(self) -> CorrectionStatus:
        """The status of the correction of the design; none where it is missing."""
        return self._approval.correction_status or "none"

    @property
    def last_correction(self) -> CorrectionDispatch:
        """The last dispatch of a correction of the design; empty without one."""
        return self._approval.last_correction_dispatch or CorrectionDispatch()

    def retries(self, task_id: str, loop: str) -> int:
        """Return how often a task entered a fix loop."""
        counts = self.retry_counts.get(task_id)
        return counts.of(loop) if counts else 0


class SessionProject(OpenModel):
    """The project of the tasks."""

    name: str | None = Field(None, description="The project's name.")
    definition_of_done: list[str] = Field([], description="Criteria for every task.")


class SessionTask(OpenModel):
    """One task. ``deps`` is read as ``depends_on``; an unquoted ``- cmd: npm test`` is read as the text it means."""

    id: str = Field(pattern=_TASK_ID, description="The task's id, T-XXX.")
    status: TaskStatus = Field(description="The status of the task.")
    goal: Text = Field(description="The goal.")
    acceptance_checks: list[AcceptanceCheck] = Field(min_length=1, description="Checks, each cmd: or manual:.")
    title: str | None = Field(None, description="A short title.")
    type: str | None = Field(None, description="feat, fix, refactor, chore, test or docs.")
    depends_on: Texts = Field(
        [], validation_alias=AliasChoices("depends_on", "deps"), description="Tasks that this one depends on."
    )
    non_goals: Texts = Field([], description="Excluded goals.")
    context_files: Texts = Field([], description="Files to read first.")
    files_expected: Texts = Field([], description="Files that will change.")
    risk_flags: Annotated[list[Annotated[str, BeforeValidator(_as_flag)]], _AS_LIST] = Field([], description="Risks.")
    done_when: Texts = Field([], description="Criteria for a finished task.")


class SessionTasks(OpenModel):
    """``tasks.yaml``: the plan, with the status of each task."""

    project: SessionProject | None = Field(None, description="The project of the tasks.")
    tasks: list[SessionTask] = Field(min_length=1, description="The tasks.")

    def task(self, task_id: str) -> SessionTask | None:
        """Return the task with this id."""
        return next((task for task in self.tasks if task.id == task_id), None)


class AcceptanceCriterion(OpenModel):
    """One acceptance criterion and its checks."""

    id: Text = Field(description="The criterion's id, AC-XXX.")
    description: Text = Field(description="The criterion.")
    verify: Annotated[list[AcceptanceCheck], _TEXT_AS_LIST] = Field(min_length=1, description="Its checks.")


class Acceptance(OpenModel):
    """``acceptance.json``: the criteria for the session's result. ``criteria`` is read as ``acceptance_criteria``."""

    acceptance_criteria: list[AcceptanceCriterion] = Field(
        min_length=1, validation_alias=AliasChoices("acceptance_criteria", "criteria"), description="The criteria."
    )


class DecisionHistoryEntry(OpenModel):
    """A line of ``approve-design-history.jsonl``: one request of changes of the design."""

    at: str = Field(description="The time, ISO-8601.")
    decision_id: str = Field(pattern=_DECISION_ID, description="UD-APPROVE-DESIGN.")
    answer: str = Field(description="The answer: changes-requested: and the changes.")
    state_context: State = Field(description="The state of the session at that time.")


class OutputEntry(OpenModel):
    """A line of ``outputs.jsonl``: the parts of an agent's output that the task's gates depend on."""

    at: str = Field(description="Time of the record, ISO-8601.")
    task_id: str = Field(pattern=_TASK_OR_META, description="The task of the output, or meta.")
    agent: Role = Field(description="The agent that wrote the output.")
    status: OutputStatus | Literal["DISPATCHED"] = Field(description="The output's status; DISPATCHED before it.")
    summary: Text = Field(description="The output's summary.")
    security_concerns: Integer = Field(ge=0, description="The number of its security concerns that count.")
    meets_definition_of_done: bool = Field(True, description="Whether the agent says that its work is done.")
    needs_review: bool = Field(False, description="Whether a review must follow.")
    needs_tests: bool = Field(False, description="Whether tests must follow.")
    findings: Texts = Field([], description="Findings and security concerns; an object as JSON.")
    review_comments: Texts = Field([], description="Review comments; an object as JSON.")
    has_code: bool = Field(False, description="Whether the Integrator reports code, tests or configuration as changed.")
    waived_reviews: Annotated[list[str], AfterValidator(_if_waived)] = Field(
        [], description="The reviews that the Orchestrator waived, for the summary."
    )
