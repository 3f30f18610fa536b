"""The kinds of documents of this room."""

from __future__ import annotations

from accord.kernel.kinds import Kind
from accord.results.implementor_rules import implementor_findings
from accord.results.models import ImplementorResult, PlannerResult, ReviewerResult
from accord.results.reviewer_rules import reviewer_findings
from accord.results.rules import planner_findings, read_plan

PLANNER = Kind("planner-result", PlannerResult, lambda result: planner_findings(read_plan(result)), {"role": "planner"})
IMPLEMENTOR = Kind("implementor-result", ImplementorResult, implementor_findings, {"role": "implementor"})
REVIEWER = Kind("reviewer-result", ReviewerResult, reviewer_findings, {"role": "reviewer"})
KINDS = (PLANNER, IMPLEMENTOR, REVIEWER)
