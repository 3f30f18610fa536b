"""The settings of plans, ``.github/plan.yml``: where new items belong and whom they are assigned to."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from accord.core.errors import BrokenContract
from accord.core.findings import has_errors
from accord.core.kinds import KINDS
from accord.core.numbers import Integer
from accord.core.shapes import read_shape
from accord.files.yaml import read_mapping


class IssueStructure(BaseModel):
    """The structure of open items whose work has not begun; each part is set where an item has none of it yet."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)

    parent: Integer | Literal["request"] | None = Field(
        None, description="The issue whose sub-issues the items are; request is the issue of `--request`."
    )
    milestone: str | None = Field(
        None, min_length=1, max_length=255, description="Title of a milestone of the repository."
    )
    type: str | None = Field(None, min_length=1, max_length=100, description="The issue type of the organisation.")
    assign: list[str] = Field([], max_length=10, description="Logins to assign, or names of agents with an account.")


class PlanSettings(BaseModel):
    """The settings of plans."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    version: Literal[1] = Field(1, description="The version of the format.")
    plan: IssueStructure = Field(description="The structure of the items.")


def read_settings(raw: bytes, path: str) -> IssueStructure:
    """Read the settings of plans. Raises BrokenContract, with findings, for a broken file."""
    document = read_mapping(raw)
    findings = KINDS["plan-settings"].check(document)
    if has_errors(findings):
        line = f":{findings[0].line}" if findings[0].line else ""
        raise BrokenContract(f"{path}{line}: {findings[0].text}", findings=findings)
    return read_shape(PlanSettings, document.value).plan
