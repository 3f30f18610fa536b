"""Apply a planner result: sanitise, gather facts, check, plan, apply. Everything is decided before the first write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.github.markers import run_token
from accord.results.operations import Item, Outcome, Receipt, default_run_key, planned_seconds, reporting
from accord.results.planner.apply import Ledger, apply_operations
from accord.results.planner.facts import gather_facts
from accord.results.planner.plan import (
    AddDependency,
    adoption_findings,
    check_facts,
    check_names,
    plan_operations,
    rewritable,
)
from accord.results.planner.rules import with_texts
from accord.results.texts import TextSanitizer, errors_as_posted, with_safe_texts

if TYPE_CHECKING:
    from accord.github.client import GitHub
    from accord.results.operations import RunOptions
    from accord.results.planner.rules import Plan


def apply_plan(github: GitHub, plan: Plan, options: RunOptions) -> Receipt:
    """Apply a plan exactly once, and report it. Raises no AccordError: the receipt has it."""
    run_key = options.run_key or default_run_key(plan.result, options.repository)
    receipt = Receipt("planner-result", options.repository, run_key)
    with reporting(github, receipt):
        receipt.require(plan.findings)
        if not (plan.result.create or plan.result.close or plan.result.update):
            receipt.outcome = Outcome.UNCHANGED
            return receipt
        plan = _sanitised(plan, receipt, options)
        facts = gather_facts(github, plan, run_token(options.repository, run_key), options.clock)
        receipt.require(check_facts(plan, facts))
        operations = plan_operations(plan, facts)
        receipt.require(adoption_findings(operations, facts.token))
        ledger = Ledger(facts, rewritable(plan))
        receipt.end(*apply_operations(github, operations, ledger, options), is_dry_run=options.is_dry_run)
        receipt.estimated_seconds = planned_seconds(operations) if options.is_dry_run else None
        receipt.titles = {item.temp_id: item.title for item in plan.result.create}
        receipt.items = {
            key: Item(str(ledger.issues[key].number), ledger.issues[key].url)
            for key in receipt.titles
            if key in ledger.issues
        }
        receipt.dependencies = [(each.blocker, each.item) for each in operations if isinstance(each, AddDependency)]
    return receipt


def _sanitised(plan: Plan, receipt: Receipt, options: RunOptions) -> Plan:
    """Sanitise the texts, and check the result again: above all, lengths change."""
    sanitizer = TextSanitizer(options.redact, options.policy)
    names = check_names(plan, options.redact)
    plan = with_texts(plan, with_safe_texts(plan.result, sanitizer))
    receipt.sanitised = sanitizer.sanitised
    receipt.require([*names, *sanitizer.findings, *(errors_as_posted(plan.findings) if sanitizer.sanitised else [])])
    return plan
