"""Apply a planner result: sanitise, gather facts, check, plan, apply. Everything is decided before the first write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.engine.operations import planned_seconds
from accord.engine.receipts import Item, Outcome, Receipt, reporting
from accord.results.planner.apply import Ledger, apply_operations
from accord.results.planner.checks import check_facts, check_names
from accord.results.planner.facts import gather_facts
from accord.results.planner.plan import AddDependency, compare_items, plan_operations, plan_run
from accord.results.planner.report import change_findings, differences
from accord.results.planner.rules import limit_findings, with_texts
from accord.results.planner.scope import plan_run_key, requested_issue
from accord.results.planner.structure import (
    check_structure,
    gather_structure,
    plan_structure,
    with_removed_parts,
    without_removed_parts,
)
from accord.results.texts import TextSanitizer, errors_as_posted, with_safe_texts
from accord.text.markers import run_token

if TYPE_CHECKING:
    from collections.abc import Iterable

    from accord.core.findings import Finding
    from accord.github.client import GitHub
    from accord.results.planner.facts import PlanFacts
    from accord.results.planner.rules import Plan
    from accord.results.planner.structure import StructureOperation
    from accord.results.run_options import PlanOptions


def apply_plan(github: GitHub, plan: Plan, options: PlanOptions) -> Receipt:
    """Apply a plan exactly once, and report it. Raises no AccordError: the receipt has it."""
    run_key = plan_run_key(plan, options)
    closes = options.closes_vanished
    receipt = Receipt("planner-result", options.repository, run_key)
    with reporting(github, receipt):
        receipt.require([*plan.findings, *limit_findings(plan.result, options.most_items)])
        if not (plan.result.create or plan.result.close or plan.result.update):
            receipt.outcome = Outcome.UNCHANGED
            return receipt
        plan = _sanitised(plan, receipt, options)
        token = run_token(options.repository, run_key)
        facts = gather_facts(github, plan, token, options.clock, requested=requested_issue(options))
        comparisons = compare_items(plan, facts)
        receipt.require(check_facts(plan, facts))
        receipt.require(change_findings(plan, facts, comparisons, closes_vanished=closes))
        operations = plan_operations(plan, facts, comparisons, closes_vanished=closes)
        operations += _structured(github, plan, facts, receipt, options)
        shown = differences(plan, facts, comparisons, closes_vanished=closes, with_texts=options.is_dry_run)
        receipt.details = {"differences": shown} if plan.result.create else {}
        if not options.is_dry_run:
            options.on_warnings(receipt.findings)
        ledger = Ledger(facts, plan_run(plan, facts))
        receipt.end(*apply_operations(github, operations, ledger, options), is_dry_run=options.is_dry_run)
        known = {finding.message for finding in receipt.findings}
        receipt.findings += [finding for finding in ledger.findings if finding.message not in known]
        receipt.estimated_seconds = planned_seconds(operations) if options.is_dry_run else None
        receipt.titles = {item.temp_id: item.title for item in plan.result.create}
        receipt.items = {
            key: Item(str(ledger.issues[key].number), ledger.issues[key].url)
            for key in receipt.titles
            if key in ledger.issues
        }
        receipt.dependencies = [(each.blocker, each.item) for each in operations if isinstance(each, AddDependency)]
    return receipt


def _structured(
    github: GitHub, plan: Plan, facts: PlanFacts, receipt: Receipt, options: PlanOptions
) -> list[StructureOperation]:
    """Plan the structure that the settings ask for; nothing without settings or new items."""
    if options.structure is None or not plan.result.create:
        return []
    structure = gather_structure(github, options.structure, requested_issue(options))
    open_numbers = {number for number, issue in facts.existing.items() if issue and issue.is_open}
    names = [item.temp_id for item in plan.result.create]
    closed = {name for name, issue in facts.items.items() if not issue.is_open}
    blocked = {
        name
        for i, name in enumerate(names)
        if open_numbers.intersection(plan.existing_blockers(i)) or {names[j] for j in plan.blockers(i)} - closed
    }
    operations = list(plan_structure(names, facts.items, structure, blocked))
    structure = with_removed_parts(github, structure, operations, facts.items)
    operations, removed = without_removed_parts(operations, structure, facts.items)
    receipt.require([*check_structure(operations, structure), *removed])
    return operations


def _sanitised(plan: Plan, receipt: Receipt, options: PlanOptions) -> Plan:
    """Sanitise the texts, and check the result again: above all, lengths change."""
    sanitizer = TextSanitizer(options.redact, options.policy)
    names = check_names(plan, options.redact)
    plan = with_texts(plan, with_safe_texts(plan.result, sanitizer))
    receipt.sanitised = sanitizer.sanitised
    receipt.require(
        [*names, *sanitizer.findings, *(errors_as_posted(_of_texts(plan.findings)) if sanitizer.sanitised else [])]
    )
    return plan


def _of_texts(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Return the findings without those of names: an owner whose name was sanitised is only shown otherwise."""
    return (finding for finding in findings if finding.code not in ("unknown-reference", "ambiguous-reference"))
