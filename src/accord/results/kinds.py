"""The kinds of documents of this room."""

from __future__ import annotations

from accord.core.kinds import Kind
from accord.results.implementor.rules import implementor_findings
from accord.results.models import ImplementorResult, PlannerResult, ReviewerResult
from accord.results.planner.rules import planner_findings, read_plan
from accord.results.reviewer.rules import reviewer_findings

PLANNER = Kind("planner-result", PlannerResult, lambda result: planner_findings(read_plan(result)), {"role": "planner"})
IMPLEMENTOR = Kind("implementor-result", ImplementorResult, implementor_findings, {"role": "implementor"})
REVIEWER = Kind("reviewer-result", ReviewerResult, reviewer_findings, {"role": "reviewer"})
KINDS = (PLANNER, IMPLEMENTOR, REVIEWER)
