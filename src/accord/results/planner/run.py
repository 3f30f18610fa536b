"""Applying a planner result: gather, plan, apply, report. Everything is decided before the first write."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from accord.core.errors import AccordError
from accord.core.findings import has_errors
from accord.github.markers import run_token
from accord.github.pacing import estimate_seconds
from accord.results.operations import (
    Dependency,
    Item,
    OperationStatus,
    Outcome,
    Receipt,
    default_run_key,
    outcome_of,
    with_request_count,
)
from accord.results.planner.apply import Ledger, apply_operations, entry_of
from accord.results.planner.facts import gather_facts
from accord.results.planner.plan import (
    AddDependency,
    CreateWorkItem,
    adoption_findings,
    fact_findings,
    name_findings,
    plan_operations,
    rewritable,
)
from accord.results.planner.rules import with_texts
from accord.results.texts import TextSanitizer, errors_as_posted, posted_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.github.client import GitHub
    from accord.results.operations import RunOptions
    from accord.results.planner.facts import PlanFacts
    from accord.results.planner.plan import PlanOperation
    from accord.results.planner.rules import Plan
    from accord.text.redaction import Redactor


def apply_plan(github: GitHub, plan: Plan, setting: RunOptions) -> Receipt:
    """Carry out a plan that holds, exactly once. Raises nothing of accord's own: the receipt tells.

    Findings in the receipt have no lines; whoever read the file knows them.
    """
    return with_request_count(github, lambda: _applied(github, plan, setting))


def _applied(github: GitHub, plan: Plan, setting: RunOptions) -> Receipt:
    result = plan.result
    run_key = setting.run_key or default_run_key(result, setting.repository)
    receipt = Receipt("planner-result", Outcome.REJECTED, run_key, setting.repository, plan.findings)
    if has_errors(receipt.findings):
        return receipt
    if not (result.create or result.close or result.update):
        return replace(receipt, outcome=Outcome.UNCHANGED)
    plan, receipt = _as_posted(plan, receipt, setting.redact)
    if has_errors(receipt.findings):
        return receipt
    try:
        facts = gather_facts(github, plan, run_token(setting.repository, run_key), setting.clock)
    except AccordError as error:
        return replace(receipt, outcome=outcome_of((), error), error=error)
    receipt = replace(receipt, findings=[*receipt.findings, *fact_findings(plan, facts)])
    if has_errors(receipt.findings):
        return receipt
    return _carried_out(github, plan, facts, receipt, setting)


def _as_posted(plan: Plan, receipt: Receipt, secrets: Redactor) -> tuple[Plan, Receipt]:
    """Make the texts fit to be posted, and hold what came out against the rules once more: lengths above all."""
    desk = TextSanitizer(secrets)
    result = posted_plan(plan.result, desk)
    findings = [*receipt.findings, *name_findings(plan, secrets), *desk.findings]
    plan = with_texts(plan, result)
    if desk.sanitised:
        findings += errors_as_posted(plan.findings)
    return plan, replace(receipt, findings=findings, sanitised=desk.sanitised)


def _carried_out(github: GitHub, plan: Plan, facts: PlanFacts, receipt: Receipt, setting: RunOptions) -> Receipt:
    operations = plan_operations(plan, facts)
    receipt = replace(receipt, findings=[*receipt.findings, *adoption_findings(operations, facts.token)])
    ledger = Ledger(facts.token, facts.identity, facts.read_at, dict(facts.items), rewritable(plan))
    if setting.is_dry_run:
        entries = [entry_of(operation, operation.found or OperationStatus.PLANNED, ledger) for operation in operations]
        seconds = estimate_seconds(*_planned_requests(operations))
        receipt = replace(receipt, outcome=Outcome.PLANNED, operations=entries, estimated_seconds=seconds)
    else:
        entries, problem = apply_operations(github, operations, ledger, setting.clock, setting.tell)
        receipt = replace(receipt, outcome=outcome_of(entries, problem), operations=entries, error=problem)
    titles = {item.temp_id: item.title for item in plan.result.create}
    return replace(receipt, items=_items(plan, ledger), titles=titles, edges=_edges(operations))


def _items(plan: Plan, ledger: Ledger) -> dict[str, Item]:
    wanted = [item.temp_id for item in plan.result.create]
    return {key: Item(str(ledger.issues[key].number), ledger.issues[key].url) for key in wanted if key in ledger.issues}


def _edges(operations: Sequence[PlanOperation]) -> list[Dependency]:
    return [Dependency(entry.item, entry.blocker) for entry in operations if isinstance(entry, AddDependency)]


def _planned_requests(operations: Sequence[PlanOperation]) -> tuple[int, int]:
    """Count the requests to come: those that create content, and the other writes."""
    coming = [operation for operation in operations if operation.found is None]
    content = sum(isinstance(operation, CreateWorkItem) for operation in coming)
    return content, len(coming) - content
