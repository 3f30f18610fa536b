"""What missions are written in: the two answers of the contract, and the files that a mission is made of.

The answers are closed and strict: they accept exactly what the contract's JSON Schemas accept. The files are open,
since other tools write them too; only what somebody here reads is described. Source: mission contracts.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

ExecutionMode = Literal["code_change", "planning_artifact"]
WorkPackageStatus = Literal[
    "planned", "claimed", "in_progress", "for_review", "in_review", "approved", "done", "blocked", "canceled"
]
STATUSES: tuple[WorkPackageStatus, ...] = get_args(WorkPackageStatus)
SHARED_WORKSPACE = "planning_artifact_repo_root_shared_workspace"

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:)(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)
_NOT_STARTED: JsonDict = {"properties": {"mission_state": {"const": "not_started"}}, "required": ["mission_state"]}
_PREVIEWED: JsonDict = {
    "required": ["preview_step"],
    "properties": {"preview_step": {"type": "string", "minLength": 1}},
}
_NOT_APPLICABLE: JsonDict = {"properties": {"status": {"const": "not_applicable"}}, "required": ["status"]}
_WITHOUT_TIMES: JsonDict = {
    "properties": {
        "reason": {"const": SHARED_WORKSPACE},
        "minutes_since_commit": {"const": None},
        "last_commit_time": {"const": None},
    }
}


def _moment_text(text: str) -> str:
    """Hold a text against RFC 3339, which JSON Schema's ``date-time`` is; a leap second ends a day in UTC."""
    parts = _RFC3339.fullmatch(text)
    seconds = "59" if parts and parts[2] == "60" else parts[2] if parts else ""
    try:
        if parts is None:
            raise ValueError
        moment = datetime.fromisoformat(f"{parts[1]}{seconds}{parts[4]}".upper())
        if parts[2] == "60" and moment.astimezone(UTC).strftime("%H:%M") != "23:59":
            raise ValueError
    except (ValueError, OverflowError):
        raise ValueError("It is no moment of RFC 3339, such as 2026-11-22T05:00:00Z") from None
    return text


DateTime = Annotated[
    str, StringConstraints(strict=True), AfterValidator(_moment_text), Field(json_schema_extra={"format": "date-time"})
]


def _true(value: Any) -> Any:
    """Refuse the number 1, which Python takes for true and JSON does not."""
    if value is not True:
        raise ValueError("It is not true")
    return value


Text = Annotated[str, StringConstraints(strict=True, min_length=1)]


class NextQueryResponse(BaseModel):
    """Where a mission stands, as the query mode of ``next`` answers. It issues no step, so it names no action."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        strict=True,
        json_schema_extra={"allOf": [{"if": _NOT_STARTED, "then": _PREVIEWED}]},
    )

    kind: Literal["query"]
    agent: str | None
    mission_slug: Text
    mission: Text
    mission_state: Text = Field(description="Fresh runs use 'not_started'. Started runs use the issued step id.")
    preview_step: str | None = None
    timestamp: DateTime
    action: str | None = None
    wp_id: str | None = None
    workspace_path: str | None = None
    prompt_file: str | None = None
    reason: str | None = None
    guard_failures: list[str] = []
    progress: dict[str, Any] | None = None
    origin: dict[str, Any] = {}
    run_id: str | None = None
    step_id: str | None = None
    decision_id: str | None = None
    input_key: str | None = None
    question: str | None = None
    options: list[str] | None = None
    is_query: Annotated[Literal[True], BeforeValidator(_true)]

    @model_validator(mode="after")
    def _previews(self) -> NextQueryResponse:
        if self.mission_state == "not_started" and not self.preview_step:
            raise ValueError("A run that is not started names its first step in preview_step")
        return self


class StaleStatus(BaseModel):
    """Whether work in a lane stands still; work in the repository's root shares one workspace, so nobody can tell."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        strict=True,
        json_schema_extra={"allOf": [{"if": _NOT_APPLICABLE, "then": _WITHOUT_TIMES}]},
    )

    status: Literal["fresh", "stale", "not_applicable"]
    reason: str | None
    minutes_since_commit: float | None
    last_commit_time: DateTime | None

    @model_validator(mode="after")
    def _says_why(self) -> StaleStatus:
        times = (self.minutes_since_commit, self.last_commit_time)
        if self.status == "not_applicable" and (self.reason, *times) != (SHARED_WORKSPACE, None, None):
            raise ValueError(f"not_applicable has the reason {SHARED_WORKSPACE} and no times")
        return self


WorkPackageId = Annotated[str, StringConstraints(pattern=r"^WP[0-9]{2,}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
"""What becomes part of a path or a branch."""


class MissionFileModel(BaseModel):
    """A part of a mission's files: open, and read leniently where older versions of a file were written so."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def _listed(value: Any) -> Any:
    """Read the lists of old files, which were texts: ``"[]"`` or ``"WP01, WP02"``; nothing is an empty list."""
    if value is None:
        return []
    if isinstance(value, str):
        return [item.strip(" \"'") for item in value.strip(" []").split(",") if item.strip(" \"'")]
    return value


Listed = Annotated[list[str], BeforeValidator(_listed)]


def _text_or_nothing(value: Any) -> Any:
    return "" if value is None else value


LenientText = Annotated[str, BeforeValidator(_text_or_nothing)]


class Frontmatter(MissionFileModel):
    """The head of a work package's file."""

    work_package_id: WorkPackageId
    title: LenientText = ""
    work_package_title: LenientText = ""
    dependencies: Listed = []
    execution_mode: LenientText = ""
    owned_files: Listed = []
    authoritative_surface: LenientText = ""
    merge_target_branch: LenientText = ""
    subtasks: Listed = []
    lane: LenientText = ""


class Meta(MissionFileModel):
    """``meta.json``; ``mission`` is how old files name the type."""

    mission_type: LenientText = ""
    mission: LenientText = ""
    target_branch: LenientText = ""


class ExecutionLane(MissionFileModel):
    """Work packages that share one work tree and one branch."""

    lane_id: Name
    wp_ids: list[WorkPackageId] = []


def _distinct_lanes(lanes: list[ExecutionLane]) -> list[ExecutionLane]:
    """Refuse two lanes of one name, which would share a work tree without knowing of each other."""
    names = [lane.lane_id for lane in lanes]
    repeated = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if repeated:
        raise ValueError(f"Two lanes are named {repeated}")
    return lanes


class Lanes(MissionFileModel):
    """``lanes.json``."""

    lanes: Annotated[list[ExecutionLane], AfterValidator(_distinct_lanes)]
    mission_branch: LenientText = ""
    target_branch: LenientText = ""
    planning_artifact_wps: list[WorkPackageId] = []


class WorkspaceContext(MissionFileModel):
    """``.kittify/workspaces/SLUG-LANE.json``: what is remembered of a lane's work tree."""

    mission_slug: LenientText = ""
    feature_slug: LenientText = ""
    wp_id: LenientText = ""
    current_wp: LenientText = ""
    lane_id: Name
    lane_wp_ids: Listed = []
    branch_name: LenientText = ""


def _status(value: Any) -> Any:
    return "in_progress" if value == "doing" else value


def _moment(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError("It is no text")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("It has no zone")
    if not 1970 <= moment.year < 9000:
        raise ValueError("It is no moment at which anything happened")
    return moment


WireStatus = Annotated[WorkPackageStatus, BeforeValidator(_status)]


class StatusEvent(BaseModel):
    """One line of ``status.events.jsonl``. ``execution_mode`` is the strategy of the workspace, not the mode."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    event_id: Text
    mission_slug: LenientText = ""
    wp_id: WorkPackageId
    from_lane: Annotated[str | None, BeforeValidator(_status)] = None
    to_lane: WireStatus
    at: Annotated[datetime, BeforeValidator(_moment)]
    actor: LenientText = ""
    force: bool = False
    execution_mode: LenientText = ""
    reason: str | None = None
    review_ref: str | None = None
    evidence: Any = None
    policy_metadata: Any = None
