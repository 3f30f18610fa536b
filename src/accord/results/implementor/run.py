"""Applying an implementor's result: a branch, a pull request, the work item's status. Everything is decided first."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accord.core.errors import AccordError, BrokenContract
from accord.core.findings import has_errors
from accord.github.markers import run_token
from accord.results.implementor.apply import State, apply_operations, entry_of
from accord.results.implementor.facts import Request, gather_facts
from accord.results.implementor.plan import plan_revision
from accord.results.implementor.rules import implementor_findings
from accord.results.operations import OperationStatus, Outcome, Receipt, default_run_key, outcome_of, with_request_count
from accord.results.texts import TextSanitizer, posted_summary, says_nothing

if TYPE_CHECKING:
    from accord.github.client import GitHub
    from accord.results.implementor.facts import Implementation, RevisionFacts
    from accord.results.implementor.plan import RevisionPlan
    from accord.results.models import ImplementorResult
    from accord.results.operations import RunOptions


def apply_implementation(
    github: GitHub, result: ImplementorResult, work: Implementation, setting: RunOptions
) -> Receipt:
    """Check an implementor's result, and carry it out exactly once. Raises nothing of ours: the receipt tells."""
    return with_request_count(github, lambda: _applied(github, result, work, setting))


def _applied(github: GitHub, result: ImplementorResult, work: Implementation, setting: RunOptions) -> Receipt:
    run_key = setting.run_key or default_run_key(result, setting.repository, work.number)
    receipt = Receipt("implementor-result", Outcome.REJECTED, run_key, setting.repository, implementor_findings(result))
    if has_errors(receipt.findings):
        return receipt
    desk = TextSanitizer(setting.redact)
    posted = posted_summary(result, desk)
    unfit = says_nothing(implementor_findings(posted)) if desk.sanitised else []
    receipt = replace(receipt, findings=[*receipt.findings, *desk.findings, *unfit], sanitised=desk.sanitised)
    if unfit:
        return receipt
    request = Request(posted, work, run_token(setting.repository, run_key), setting, desk)
    with ExitStack() as stack:
        try:
            facts = gather_facts(github, request, stack)
            plan = plan_revision(facts, request)
        except BrokenContract as broken:
            return replace(receipt, findings=[*receipt.findings, *broken.findings])
        except AccordError as error:
            return replace(receipt, outcome=outcome_of((), error), error=error)
        return _carried_out(github, plan, facts, request, receipt)


def _carried_out(
    github: GitHub, plan: RevisionPlan, facts: RevisionFacts, request: Request, receipt: Receipt
) -> Receipt:
    findings = [*receipt.findings, *plan.findings]
    receipt = replace(receipt, findings=findings, titles={"": facts.title}, sanitised=request.desk.sanitised)
    state = State(plan.pull)
    if request.setting.is_dry_run:
        entries = [entry_of(entry, entry.found or OperationStatus.PLANNED, facts, state) for entry in plan.operations]
        receipt = replace(receipt, outcome=Outcome.PLANNED, operations=entries)
    else:
        entries, problem = apply_operations(github, plan.operations, facts, request, state)
        receipt = replace(receipt, outcome=outcome_of(entries, problem), operations=entries, error=problem)
    return replace(receipt, details=_details(plan, facts, request, state))


def _details(plan: RevisionPlan, facts: RevisionFacts, request: Request, state: State) -> dict[str, Any]:
    if plan.scope is None or facts.branch is None:
        return {}
    pull = state.pull
    revision = {
        "id": str(pull.number) if pull else None,
        "url": pull.url if pull else None,
        "branch": request.work.branch,
        "head_sha": facts.branch.head,
        "draft": pull.is_draft if pull else bool(plan.scope.protected),
    }
    return {"scope": plan.scope.as_json(), "revision": revision}
