"""The repository's configuration: which events start agents, and how results are written.

It is read from the default branch only, so that no agent switches a start on from its own branch.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from accord.core.errors import BrokenContract
from accord.core.findings import DoctorCheck, warning
from accord.core.kinds import KINDS
from accord.git.configuration import (
    BRANCH_PREFIX,
    ConfigFile,
    approvals_in,
    find_config,
    is_prefix,
    unread_configs,
)


class StartSwitches(BaseModel):
    """Whether each kind of event starts anything."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)

    labels: bool = Field(True, description="agents:plan on an issue, agent:NAME on a ready item, agents:review.")
    comments: bool = Field(True, description="/accord plan, implement, review, retry and stop.")
    dashboard: bool = Field(True, description="Ticked boxes of the dashboard, the issue of `accord board issue`.")
    specs: bool = Field(False, description="A push of docs/specs/** with `status: approved` to the default branch.")
    pull_requests: bool = Field(
        False, alias="pull-requests", description="A pull request that is opened or marked ready."
    )
    review_requests: bool = Field(False, alias="review-requests", description="A requested review.")
    ready: bool = Field(False, description="Move items from pending to ready when their blockers are closed.")
    merges: bool = Field(False, description="Close items at merges into other branches than the default one, too.")


def _checked_prefix(value: str) -> str:
    if not is_prefix(value):
        raise ValueError("The value is not the beginning of a branch name", "Write one such as `bots/accord`.")
    return value


class AccordConfig(BaseModel):
    """The configuration of a repository."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    version: Literal[1] = Field(1, description="The version of the format.")
    starts: StartSwitches = Field(default_factory=StartSwitches, description="The events that start agents.")
    approvals: Literal["comment", "approve"] = Field(
        "comment", description="Whether a review that approves is a comment, or an approval on GitHub."
    )
    branch_prefix: Annotated[str, AfterValidator(_checked_prefix)] = Field(
        BRANCH_PREFIX, description="The branches of work items are PREFIX/NUMBER; read from the base of a result."
    )


def read_config(config: ConfigFile) -> AccordConfig:
    """Read the configuration; defaults without a file. Raises BrokenContract, with findings, for a broken one."""
    if config.raw is None:
        return AccordConfig()
    found: AccordConfig = KINDS["accord-config"].read_valid(config.raw, config.path)
    return found


def approves_in(root: Path) -> bool:
    """Return whether the configuration in a directory has approvals posted as such; a broken one does not."""
    try:
        return approvals_in(find_config(partial(_file_in, root))) == "approve"
    except BrokenContract:
        return False


def config_check(root: Path, *, has_starts: bool = True) -> DoctorCheck:
    """Check the configuration in a directory; ``has_starts``: a workflow runs what it switches on."""
    find = partial(_file_in, root)
    config, found = find_config(find), list(unread_configs(find))
    try:
        starts = read_config(config).starts
    except BrokenContract as broken:
        return DoctorCheck("starts", config.path, [*((config.path, each) for each in broken.findings), *found])
    on = [name for name, is_on in starts.model_dump(by_alias=True).items() if is_on]
    if not has_starts and any(getattr(starts, name) for name in starts.model_fields_set):
        message = f"No workflow starts anything, so {', '.join(f'`{name}`' for name in on)} have no effect."
        hint = "Run `accord init --only start`, or remove `starts:`."
        found.append((config.path, warning("starts-unheard", message, "/starts", hint=hint)))
    note = ", ".join(on) or "all events are off"
    return DoctorCheck("starts", note if config.raw is not None else f"no configuration; by default {note}", found)


def _file_in(root: Path, path: str) -> bytes | None:
    return (root / path).read_bytes() if (root / path).is_file() else None
