"""The wire format of sessions: what agents are given and give back, and the documents of a session folder.

Source: global agent contract. All documents are open: keys that the contract does not name are kept. Models are for
reading and judging; a document is written from what was read, changed at a few places, so that nothing else moves.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

Role = Literal[
    "SpecAgent",
    "Architect",
    "Planner",
    "Designer",
    "Researcher",
    "Coder",
    "Reviewer",
    "QA",
    "Security",
    "Integrator",
    "Docs",
    "Orchestrator",
]
"""The canonical names of agents; dispatches and recommendations use exactly these."""

State = Literal[
    "INTAKE",
    "INTAKE_LEAN",
    "DESIGN",
    "APPROVE_DESIGN",
    "PLAN",
    "REVIEW_STRATEGY",
    "IMPLEMENT_LOOP",
    "INTEGRATE",
    "RELEASE",
    "DONE",
    "ASK_USER",
    "FIX_REVIEW",
    "FIX_TESTS",
    "FIX_SECURITY",
    "FIX_BUILD",
    "BLOCKED",
]
Corrector = Literal["SpecAgent", "Architect", "Designer"]
Loop = Literal["FIX_REVIEW", "FIX_TESTS", "FIX_SECURITY", "FIX_BUILD"]
Mode = Literal["full", "lean"]
TaskStatus = Literal["not-started", "in-progress", "implemented", "completed", "blocked"]
DecisionStatus = Literal["pending", "answered", "cancelled", "skipped"]
CorrectionStatus = Literal["none", "queued", "dispatched", "completed"]
OutputStatus = Literal["OK", "BLOCKED", "NEEDS_INFO", "NEEDS_DECISION", "FAIL"]
RiskFlag = Literal["security", "perf", "breaking-change", "none"]
ProjectType = Literal["web", "api", "cli", "lib", "mixed"]
CiStatus = Literal["unknown", "green", "red"]

ROLES: tuple[str, ...] = get_args(Role)
STATES: tuple[str, ...] = get_args(State)
LOOPS: tuple[str, ...] = get_args(Loop)
CORRECTORS: tuple[str, ...] = get_args(Corrector)
"""Who is sent to correct a design that the user wants changed."""

APPROVE_DESIGN = "UD-APPROVE-DESIGN"
REVIEW_STRATEGY = "UD-REVIEW-STRATEGY"
GATES: dict[str, State] = {APPROVE_DESIGN: "APPROVE_DESIGN", REVIEW_STRATEGY: "REVIEW_STRATEGY"}
"""The decisions that every full session needs, each with the state that asks for it."""
GATE_OF: dict[str, str] = {state: decision_id for decision_id, state in GATES.items()}
"""The other way round: the decision that a state asks for."""

_DECISION_ID = r"^UD-([1-9][0-9]{0,8}|APPROVE-DESIGN|REVIEW-STRATEGY)$"
_TASK_ID = r"^T-[0-9]{3,}$"
_TASK_OR_META = r"^(T-[0-9]{3,}|meta)$"

Entry = str | dict[str, Any]
"""A comment or finding: a text, or an object with keys of the agent's own."""


def _check_as_text(value: Any) -> Any:
    """Put right what YAML makes of an unquoted ``- cmd: npm test``: a mapping of one key."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((key, said),) = value.items()
    if isinstance(said, (dict, list)):
        return value
    text = "" if said is None else str(said).lower() if isinstance(said, bool) else str(said)
    return f"{key}: {text}"


def _as_list(value: Any) -> Any:
    return [] if value is None else [value] if isinstance(value, str) else value


def _with_text(value: str) -> str:
    if not value.strip():
        raise ValueError("The text is empty")
    return value


Check = Annotated[str, BeforeValidator(_check_as_text)]
"""One acceptance check: ``cmd: …`` is run, ``manual: …`` is done by a person."""

Text = Annotated[str, AfterValidator(_with_text)]
"""A text that says something."""


class OpenModel(BaseModel):
    """A part of a document that may hold more than the contract names."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, populate_by_name=True, defer_build=True)


class ChangedFile(OpenModel):
    """A file that the session changed so far."""

    path: Text = Field(description="Path of the file, relative to the repository.")
    change_type: Literal["added", "modified", "deleted", "renamed"] = Field(description="What became of it.")
    old_path: str | None = Field(None, description="Where it was before; required when it was renamed.")


class InputTask(OpenModel):
    """What the agent is to do."""

    id: str = Field(pattern=_TASK_OR_META, description="The task's id, T-XXX; meta for the session as a whole.")
    title: Text = Field(description="A short title.")
    goal: Text = Field(description="What to achieve.")
    non_goals: list[str] = Field(description="What not to do.")
    context_files: list[str] = Field(description="Files to read before starting; all must be there.")
    session_changed_files: list[ChangedFile] = Field(
        [], description="What the session changed so far; required for the Reviewer, empty for all others."
    )
    constraints: list[str] = Field(description="Hard constraints.")
    acceptance_checks: list[Check] = Field(description="How the result is checked, each cmd: or manual:.")
    risk_flags: list[RiskFlag] = Field(description="What to be careful about.")


class RepositoryState(OpenModel):
    """The repository as the agent finds it."""

    branch: Text = Field(description="The branch that is worked on.")
    ci_status: CiStatus = Field(description="The last result of CI.")
    last_failed_step: str | None = Field(None, description="The step that failed last, if any.")


class AgentInput(OpenModel):
    """What an agent is given: one JSON object."""

    task: InputTask = Field(description="What the agent is to do.")
    project_type: ProjectType = Field(description="Which checks apply: those for this kind of project.")
    repo_state: RepositoryState = Field(description="The repository as the agent finds it.")
    tools_available: list[str] = Field(description="The tools that the agent may use.")
    artifact_list: list[str] = Field([], description="Files that exist.")
    agent: Role | None = Field(None, description="The agent that is meant, where the sender says so.")


class OutputArtifacts(OpenModel):
    """What the agent made and found. Roles add keys of their own."""

    files_to_create_or_update: list[str] = Field([], description="Files that are still to be written.")
    files_changed: list[str] = Field([], description="Files that were written.")
    tests_added_or_updated: list[str] = Field([], description="Tests among them.")
    commands_to_run: list[str] = Field(description="Commands that check the result.")
    manual_steps: list[str] = Field([], description="What a person has to do.")
    review_comments: list[Entry] = Field([], description="Comments of a review, as texts or objects.")
    findings: list[Entry] = Field([], description="Findings, as texts or objects.")
    notes: list[str] = Field(description="Assumptions, trade-offs, links to files.")


class OutputGates(OpenModel):
    """What the agent says about the gates that follow."""

    meets_definition_of_done: bool = Field(description="Whether the definition of done is met.")
    needs_review: bool = Field(description="Whether a review must follow.")
    needs_tests: bool = Field(description="Whether tests must follow.")
    security_concerns: list[Entry] = Field(description="Concerns about security, as texts or objects.")


class OutputNext(OpenModel):
    """Who should go on with what."""

    recommended_agent: Role = Field(description="The agent to go on, by its canonical name.")
    recommended_task_id: str = Field(
        pattern=r"^(T-[0-9]{3,}|meta|same)$", description="The task to go on with, T-XXX or meta; same is read too."
    )
    reason: str = Field(description="Why, in short.")


class AgentOutput(OpenModel):
    """What an agent gives back: one JSON object and nothing around it."""

    status: OutputStatus = Field(
        description="OK, BLOCKED and FAIL for every agent; NEEDS_INFO for the Researcher, NEEDS_DECISION for Security."
    )
    summary: Text = Field(description="What happened, in one to three sentences.")
    artifacts: OutputArtifacts = Field(description="What the agent made and found.")
    gates: OutputGates = Field(description="What the agent says about the gates that follow.")
    next: OutputNext = Field(description="Who should go on with what.")
    agent: Role | None = Field(None, description="The agent that speaks, where it says so.")


class UserDecision(OpenModel):
    """A question to the user, and what became of it. ``category: security`` marks what only a person may resolve."""

    decision_id: str = Field(pattern=_DECISION_ID, description="UD-<N>, UD-APPROVE-DESIGN or UD-REVIEW-STRATEGY.")
    question: Text = Field(description="What is asked.")
    status: DecisionStatus = Field(description="Whether it waits, was answered, cancelled or skipped.")
    answer: str | None = Field(None, description="What the user answered.")
    asked_at: str = Field(description="When it was asked, ISO-8601.")
    resolved_at: str | None = Field(None, description="When it was resolved, ISO-8601.")
    state_context: State = Field(description="The state in which the question came up, which the session returns to.")
    resolution_reason: str | None = Field(None, description="Why it was cancelled or skipped.")
    category: str | None = Field(None, description="What the question is about; security has a rule of its own.")


class CorrectionDispatch(OpenModel):
    """The last agent that was sent to correct the design."""

    agent: Corrector | None = Field(None, description="The agent.")
    task_id: Literal["meta"] | None = Field(None, description="Always meta.")
    at: str | None = Field(None, description="When, ISO-8601.")


class DesignApproval(OpenModel):
    """How far the correction is that the user asked for; null and missing mean none."""

    correction_status: CorrectionStatus | None = Field(None, description="How far the correction is.")
    last_correction_dispatch: CorrectionDispatch | None = Field(None, description="Who was sent, and when.")


class GateTracking(OpenModel):
    """What the Orchestrator remembers of the gate APPROVE_DESIGN."""

    approve_design: DesignApproval | None = Field(
        None, alias="APPROVE_DESIGN", description="Corrections of the design."
    )


class RuntimeFlags(OpenModel):
    """What the Orchestrator found out about the repository."""

    copilot_instructions_exists: bool = Field(description="Whether there are instructions for Copilot.")
    copilot_checked_at: str = Field(description="When that was looked up, ISO-8601.")


class RetryCounts(OpenModel):
    """How often a task went into each loop of fixes."""

    fix_review: int = Field(0, ge=0, alias="FIX_REVIEW", description="After a review.")
    fix_tests: int = Field(0, ge=0, alias="FIX_TESTS", description="After tests.")
    fix_security: int = Field(0, ge=0, alias="FIX_SECURITY", description="After a look at security.")
    fix_build: int = Field(0, ge=0, alias="FIX_BUILD", description="After a build.")

    def of(self, loop: str) -> int:
        """Return the count of one loop."""
        count: int = getattr(self, loop.lower())
        return count


class SessionStatus(OpenModel):
    """``status.json``: where the session stands. What becomes of single tasks is kept in ``tasks.yaml`` alone."""

    current_state: State = Field(description="Where the session stands.")
    session: str = Field(description="The session's name, as its folder: YYYY-MM-DD_short-slug.")
    assumptions: list[str] = Field(description="What is taken for granted.")
    user_decisions: list[UserDecision] = Field(description="What the user was asked.")
    gate_tracking: GateTracking | None = Field(None, description="Written by the Orchestrator alone.")
    runtime_flags: RuntimeFlags | None = Field(None, description="Written by the Orchestrator alone.")
    retry_counts: dict[str, RetryCounts] = Field(description="Loops of fixes, for each task.")
    known_issues: list[str] = Field(description="What is known to be wrong.")
    last_ci_result: CiStatus = Field(description="The last result of CI.")
    last_update: str = Field(description="When this was written, ISO-8601.")
    mode: Mode | None = Field(None, description="Whether the session is full or lean.")
    blocker: str | None = Field(None, description="Why the session is blocked.")
    blocked_from: State | None = Field(None, description="The state that a blocked session returns to.")
    reopened_at: str | None = Field(None, description="When a session that was done was opened again, ISO-8601.")

    def decision(self, decision_id: str) -> UserDecision | None:
        """Return the decision with this id."""
        return next((decision for decision in self.user_decisions if decision.decision_id == decision_id), None)

    @property
    def pending(self) -> tuple[UserDecision, ...]:
        """The decisions that wait for the user."""
        return tuple(decision for decision in self.user_decisions if decision.status == "pending")

    @property
    def correction_status(self) -> CorrectionStatus:
        """How far the correction of the design is; what is not said means none."""
        approval = self.gate_tracking.approve_design if self.gate_tracking else None
        return (approval.correction_status if approval else None) or "none"

    @property
    def has_gates(self) -> bool:
        """Whether one of the questions of a full session was ever put."""
        return any(decision.decision_id in GATES for decision in self.user_decisions)

    def retries(self, task_id: str, loop: str) -> int:
        """Return how often a task went into a loop of fixes."""
        counts = self.retry_counts.get(task_id)
        return counts.of(loop) if counts else 0


class SessionProject(OpenModel):
    """What the tasks belong to."""

    name: str | None = Field(None, description="The project's name.")
    definition_of_done: list[str] = Field([], description="What holds for every task.")


class SessionTask(OpenModel):
    """One task. ``deps`` is read as ``depends_on``; an unquoted ``- cmd: npm test`` is read as the text it means."""

    id: str = Field(pattern=_TASK_ID, description="The task's id, T-XXX.")
    status: TaskStatus = Field(description="How far the task is; the only place that says so.")
    goal: Text = Field(description="What to achieve.")
    acceptance_checks: list[Check] = Field(min_length=1, description="How it is checked, each cmd: or manual:.")
    title: str | None = Field(None, description="A short title.")
    type: str | None = Field(None, description="feat, fix, refactor, chore, test or docs.")
    depends_on: Annotated[list[str], BeforeValidator(_as_list)] = Field(
        [], validation_alias=AliasChoices("depends_on", "deps"), description="Tasks that come before this one."
    )
    non_goals: Annotated[list[str], BeforeValidator(_as_list)] = Field([], description="What not to do.")
    context_files: Annotated[list[str], BeforeValidator(_as_list)] = Field([], description="Files to read before.")
    files_expected: Annotated[list[str], BeforeValidator(_as_list)] = Field([], description="Files that will change.")
    risk_flags: Annotated[list[str], BeforeValidator(_as_list)] = Field([], description="What to be careful about.")
    done_when: Annotated[list[str], BeforeValidator(_as_list)] = Field([], description="When the task is done.")


class SessionTasks(OpenModel):
    """``tasks.yaml``: the plan, and how far each task is."""

    project: SessionProject | None = Field(None, description="What the tasks belong to.")
    tasks: list[SessionTask] = Field(min_length=1, description="The tasks.")

    def task(self, task_id: str) -> SessionTask | None:
        """Return the task with this id."""
        return next((task for task in self.tasks if task.id == task_id), None)

    def waits_for(self, task: SessionTask) -> tuple[str, ...]:
        """Return the dependencies of a task that are not implemented yet."""
        ready = {other.id for other in self.tasks if other.status in ("implemented", "completed")}
        return tuple(name for name in task.depends_on if name not in ready)


class AcceptanceCriterion(OpenModel):
    """One acceptance criterion and how it is verified."""

    id: Text = Field(description="The criterion's id, AC-XXX.")
    description: Text = Field(description="What must hold.")
    verify: Annotated[list[Check], BeforeValidator(_as_list)] = Field(min_length=1, description="How it is verified.")


class Acceptance(OpenModel):
    """``acceptance.json``: what the session's result is held against."""

    acceptance_criteria: list[AcceptanceCriterion] = Field(min_length=1, description="The criteria.")


class DecisionHistoryEntry(OpenModel):
    """A line of ``approve-design-history.jsonl``: one time that the user asked for changes of the design."""

    at: str = Field(description="When, ISO-8601.")
    decision_id: str = Field(pattern=_DECISION_ID, description="UD-APPROVE-DESIGN.")
    answer: str = Field(description="What the user answered: changes-requested: and what to change.")
    state_context: State = Field(description="The state of the session then.")


class OutputEntry(OpenModel):
    """A line of ``outputs.jsonl``: what an agent gave back for a task, as far as the task's gates depend on it."""

    at: str = Field(description="When it was taken, ISO-8601.")
    task_id: str = Field(pattern=_TASK_OR_META, description="The task that it was for, or meta.")
    agent: Role = Field(description="The agent that gave it back.")
    status: OutputStatus = Field(description="The output's status.")
    summary: Text = Field(description="The output's summary.")
    security_concerns: int = Field(ge=0, description="How many concerns about security it named.")
