"""The wire format of missions: the two answers of the contract, and the files of a mission.

The answers are closed and strict: they accept exactly what the contract's JSON Schemas accept. The files are open,
since other tools write them too; the models have only the keys that accord reads. Source: mission contracts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from accord.core.clock import parse_timestamp, time_in_range, time_of
from accord.core.numbers import issue_number
from accord.core.shapes import unread_keys

ExecutionMode = Literal["code_change", "planning_artifact"]
WorkPackageStatus = Literal[
    "planned", "claimed", "in_progress", "for_review", "in_review", "approved", "done", "blocked", "canceled"
]
STATUSES: tuple[WorkPackageStatus, ...] = get_args(WorkPackageStatus)
WORKTREES = ".worktrees"
"""The directory of the work trees of lanes."""

PLANNING_LANE = "lane-planning"
"""The lane that is the repository's root: its work packages are planning artifacts."""

BRANCHES = "kitty/mission-"
"""The beginning of the names of lanes' branches; the rest is the name of the work tree."""

SHARED_WORKSPACE = "planning_artifact_repo_root_shared_workspace"

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:)(\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)


def _check_rfc3339(text: str) -> str:
    """Check a text against RFC 3339, the ``date-time`` of JSON Schema; a leap second must end a day in UTC."""
    with suppress(ValueError):
        if parts := _RFC3339.fullmatch(text):
            is_leap = parts[2] == "60"
            time = parse_timestamp(f"{parts[1]}{'59' if is_leap else parts[2]}{parts[3]}".upper())
            if not is_leap or time.strftime("%H:%M") == "23:59":
                return text
    raise ValueError("The value is not an RFC 3339 timestamp", "Write one such as 2026-11-22T05:00:00Z.")


_FORMAT = Field(json_schema_extra={"format": "date-time"})
DateTime = Annotated[str, StringConstraints(strict=True), AfterValidator(_check_rfc3339), _FORMAT]


def _true(value: Any) -> Any:
    """Refuse the number 1, which equals true in Python but not in JSON."""
    if value is not True:
        raise ValueError("The value is not true", "Write true.")
    return value


StrictText = Annotated[str, StringConstraints(strict=True, min_length=1)]


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)


def _when(key: str, value: str, then: JsonDict) -> JsonDict:
    condition: JsonDict = {"properties": {key: {"const": value}}, "required": [key]}
    return {"allOf": [{"if": condition, "then": then}]}


_PREVIEWED: JsonDict = {
    "required": ["preview_step"],
    "properties": {"preview_step": {"type": "string", "minLength": 1}},
}
_WITHOUT_TIMES: JsonDict = {
    "properties": {
        "reason": {"const": SHARED_WORKSPACE},
        "minutes_since_commit": {"const": None},
        "last_commit_time": {"const": None},
    }
}


class NextQueryResponse(_Answer):
    """The state of a mission, as the query mode of ``next`` answers. It issues no step, so ``action`` is null."""

    model_config = ConfigDict(json_schema_extra=_when("mission_state", "not_started", _PREVIEWED))

    kind: Literal["query"]
    agent: str | None
    mission_slug: StrictText
    mission: StrictText
    mission_state: StrictText = Field(description="Fresh runs use 'not_started'. Started runs use the issued step id.")
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
            raise ValueError("A run that is not started needs its first step in preview_step", "Add it.")
        return self


class StaleStatus(_Answer):
    """Whether work in a lane is stale; work in the repository's root shares one workspace, so it does not apply."""

    model_config = ConfigDict(json_schema_extra=_when("status", "not_applicable", _WITHOUT_TIMES))

    status: Literal["fresh", "stale", "not_applicable"]
    reason: str | None
    minutes_since_commit: float | None
    last_commit_time: DateTime | None

    @model_validator(mode="after")
    def _says_why(self) -> StaleStatus:
        times = (self.minutes_since_commit, self.last_commit_time)
        if self.status == "not_applicable" and (self.reason, *times) != (SHARED_WORKSPACE, None, None):
            raise ValueError(f"not_applicable needs the reason {SHARED_WORKSPACE} and no times", "Write these.")
        return self


WorkPackageId = Annotated[str, StringConstraints(pattern=r"^WP[0-9]{2,}$")]
PathName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
"""A name that becomes part of a path or a branch."""


class MissionFileModel(BaseModel):
    """A part of a mission's files: open, and lenient towards older versions of the files."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def _to_list(value: Any) -> Any:
    """Return a list; old files have texts such as ``"[]"`` or ``"WP01, WP02"``, and null is an empty list."""
    if value is None:
        return []
    if isinstance(value, str):
        return [item.strip(" \"'") for item in value.strip(" []").split(",") if item.strip(" \"'")]
    return value


Listed = Annotated[list[str], BeforeValidator(_to_list)]


def first_name(text: str) -> str:
    """Return the name with which the line of a subtask begins, such as ``T001``; empty without one."""
    return next(iter(re.findall(r"\A\W*(\w+)", text)), "")


def _to_names(value: Any) -> Any:
    """Return the names of subtasks, which may also be whole lines or objects, such as ``{T001: text}``."""
    names = []
    for one in _to_list(list(value) if isinstance(value, dict) else value):
        if isinstance(one, dict):
            texts = (text for text in (one if len(one) == 1 else one.values()) if isinstance(text, str))
            one = one.get("id") or one.get("title") or next(texts, "")
        names.append(first_name(str(one)) if isinstance(one, (str, int)) else one)
    return names


LenientText = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class Frontmatter(MissionFileModel):
    """The head of a work package's file."""

    model_config = ConfigDict(extra="allow")  # to find misspelt keys

    work_package_id: WorkPackageId
    title: LenientText = ""
    work_package_title: LenientText = ""
    dependencies: Listed = []
    execution_mode: LenientText = ""
    owned_files: Listed = []
    authoritative_surface: LenientText = ""
    merge_target_branch: LenientText = ""
    subtasks: Annotated[list[str], BeforeValidator(_to_names)] = []
    lane: LenientText = ""
    work_item: Annotated[int, BeforeValidator(issue_number)] = 0

    def order_problem(self, others: Collection[str]) -> str:
        """Return why ``others`` may have to come first, where a key that seems to say so is not read; else nothing."""
        keys, order = self.model_extra or {}, "dependencies"
        found = unread_keys(self, "", order, others, self.work_package_id)
        return next((one.text for key, meant, one in found if meant == order and keys[key]), "")


class Meta(MissionFileModel):
    """``meta.json``; old files name the type ``mission``."""

    mission_id: LenientText = ""
    mission_slug: LenientText = ""
    mission_type: LenientText = ""
    mission: LenientText = ""
    target_branch: LenientText = ""

    @property
    def type(self) -> str:
        """The type of the mission."""
        return self.mission_type or self.mission


class ExecutionLane(MissionFileModel):
    """Work packages that share one work tree and one branch."""

    lane_id: PathName
    wp_ids: list[WorkPackageId] = []


def _distinct_lanes(lanes: list[ExecutionLane]) -> list[ExecutionLane]:
    for name, count in Counter(lane.lane_id for lane in lanes).items():
        if count > 1:
            raise ValueError(f"Two lanes are named {name}", "Give one of them another name.")
    return lanes


class Lanes(MissionFileModel):
    """``lanes.json``."""

    lanes: Annotated[list[ExecutionLane], AfterValidator(_distinct_lanes)]
    mission_branch: LenientText = ""
    target_branch: LenientText = ""
    planning_artifact_wps: list[WorkPackageId] = []

    @cached_property
    def lanes_of(self) -> dict[str, list[ExecutionLane]]:
        """The lanes of each work package that have a work tree."""
        found: dict[str, list[ExecutionLane]] = {}
        for lane in (each for each in self.lanes if each.lane_id != PLANNING_LANE):
            for wp_id in dict.fromkeys(lane.wp_ids):
                found.setdefault(wp_id, []).append(lane)
        return found

    @cached_property
    def planning(self) -> frozenset[str]:
        """The work packages that are listed as planning artifacts."""
        in_root = (lane.wp_ids for lane in self.lanes if lane.lane_id == PLANNING_LANE)
        return frozenset(chain(self.planning_artifact_wps, *in_root))


class WorkspaceContext(MissionFileModel):
    """``.kittify/workspaces/SLUG-LANE.json``: the recorded work tree of a lane."""

    mission_slug: LenientText = ""
    feature_slug: LenientText = ""
    wp_id: LenientText = ""
    current_wp: LenientText = ""
    lane_id: PathName
    lane_wp_ids: Listed = []
    branch_name: LenientText = ""


def as_status(value: Any) -> Any:
    """Return a status by its name of today."""
    return "in_progress" if value == "doing" else value


def _actor(value: Any) -> Any:
    """Return the name of an actor, which newer logs write as an object of tool, role and more."""
    if isinstance(value, dict):
        names = (value.get(key) for key in ("tool", "id", "name", "role"))
        return next((name for name in names if isinstance(name, str) and name), "")
    return "" if value is None else value


class StatusEvent(BaseModel):
    """One line of ``status.events.jsonl``. ``execution_mode`` is the strategy of the workspace, not the mode."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    event_id: StrictText
    mission_slug: LenientText = ""
    wp_id: WorkPackageId
    from_lane: Annotated[str | None, BeforeValidator(as_status)] = None
    to_lane: Annotated[WorkPackageStatus, BeforeValidator(as_status)]
    at: Annotated[datetime, BeforeValidator(lambda value: time_in_range(time_of(str(value)) or datetime.min))]
    actor: Annotated[str, BeforeValidator(_actor)] = ""
    force: bool = False
    execution_mode: LenientText = ""
    reason: str | None = None
    review_ref: str | None = None
    evidence: Any = None
    policy_metadata: Any = None
    is_foreign: bool = Field(False, exclude=True, description="It names another mission; no key of the line.")

    @property
    def review(self) -> dict[str, str]:
        """The values of the review in the evidence as texts, such as ``verdict``."""
        review = self.evidence.get("review") if isinstance(self.evidence, dict) else None
        values = {**review, "reviewer": _actor(review.get("reviewer"))} if isinstance(review, dict) else {}
        return {key: str(value).strip() for key, value in values.items() if value not in (None, "")}

    @property
    def is_denied(self) -> bool:
        """Whether the evidence has another verdict than an approval."""
        return (self.review.get("verdict") or "approved").casefold() != "approved"
