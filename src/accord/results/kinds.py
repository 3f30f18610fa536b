"""The kinds of documents of this room."""

from __future__ import annotations

from accord.kernel.kinds import Kind
from accord.results.models import PlannerResult
from accord.results.rules import planner_findings, read_plan

PLANNER = Kind("planner-result", PlannerResult, lambda result: planner_findings(read_plan(result)), {"role": "planner"})
KINDS = (PLANNER,)
