"""The wire format of agent results (workflow contracts, "Structured Output Formats"). Rules are elsewhere."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from accord.core.numbers import Integer

ItemId = Annotated[str, Field(description="Number of an existing work item, written 42 or #42.")]


class _Closed(BaseModel):
    """Results are closed: a key that the contract does not know is an error, not something to drop in silence."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True, defer_build=True)


class PlannedWorkItem(_Closed):
    """A work item that does not exist yet."""

    temp_id: str = Field(
        alias="tempID",
        description="Name of the new item within this result, unique and not empty; other items refer to it by this.",
    )
    title: str = Field(description="Title of the issue, at most 256 characters.")
    body: str = Field(description="Markdown that follows the task or the refinement template of the contract.")
    labels: list[str] = Field(
        description="Exactly one label each of type, status (status:pending), priority and complexity; "
        "a refinement has no complexity label."
    )
    blocked_by: list[str] = Field(
        alias="blockedBy",
        description="Blockers to close first: tempIDs of this result, or numbers of existing work items.",
    )


class PlannedWorkItemUpdate(_Closed):
    """A change to a work item that exists."""

    work_item_id: ItemId = Field(alias="workItemID")
    body: str | None = Field(description="The new body, following the template; null leaves it unchanged.")
    labels: list[str] | None = Field(
        description="The new labels, replacing the old ones except type and status; null leaves them unchanged."
    )


class PlannerResult(_Closed):
    """Every create, close and update of one planning run. A run with nothing to do has three empty lists."""

    role: Literal["planner"] = Field(description="Says that this is the result of a planner.")
    create: list[PlannedWorkItem] = Field(description="New work items.")
    close: list[ItemId] = Field(description="Existing work items that the plan no longer wants.")
    update: list[PlannedWorkItemUpdate] = Field(description="Existing work items that the plan changes.")


class ImplementorResult(_Closed):
    """The result of one work item. ``patch`` is filled in by the adapter from the work tree, not by the agent."""

    role: Literal["implementor"] = Field(description="Says that this is the result of an implementor.")
    outcome: Literal["completed", "blocked", "validation-failure"] = Field(
        description="completed: implemented and validated; blocked: something outside the agent's control stops it; "
        "validation-failure: a check fails for a reason outside the agent's scope, or its debugging limit is reached."
    )
    patch: str | None = Field(description="The change as a git patch when completed, else null; accord fills it in.")
    summary: str = Field(
        description="A report: what was done and tested; when blocked: Type, description, spec reference, options with "
        "trade-offs, recommendation and impact; on validation-failure: the step, what was tried, why it is outside."
    )


class AgentReviewComment(_Closed):
    """A finding, or with the prefix [Warning] a warning, about one file."""

    path: str = Field(description="Path of the file, relative to the repository.")
    line: Integer | None = Field(description="Line of the new version of the file; null for the file as a whole.")
    body: str = Field(
        description="The labels What (is wrong), Why (it is wrong) and Fix, each with text; or [Warning] and a text."
    )


class AgentReview(_Closed):
    """A verdict on a revision, and what it rests on."""

    verdict: Literal["approve", "needs-changes"] = Field(
        description="approve: nothing to change, warnings at most; needs-changes: at least one finding."
    )
    summary: str = Field(description="Overview of the review; lists the warnings of an approval.")
    comments: list[AgentReviewComment] = Field(description="Findings and warnings; an approval has warnings only.")


class ReviewerResult(_Closed):
    """The result of one review."""

    role: Literal["reviewer"] = Field(description="Says that this is the result of a reviewer.")
    review: AgentReview = Field(description="The review.")
