"""Applying a planner result: gather, plan, apply, report. Everything is decided before the first write."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.github.markers import run_token
from accord.github.pacing import estimate_seconds
from accord.kernel.errors import AccordError, Refused
from accord.kernel.findings import has_errors
from accord.results.apply import Ledger, Tell, carry_out, entry_of
from accord.results.facts import gather
from accord.results.operations import (
    AddDependency,
    CreateWorkItem,
    Entry,
    Operation,
    Status,
)
from accord.results.plan import fact_findings, plan_operations, redaction_findings
from accord.results.receipts import Edge, Item, Outcome, Receipt, outcome_of
from accord.results.rules import item_number, planner_findings, read_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.github.port import GitHub
    from accord.kernel.clock import Clock
    from accord.kernel.redaction import Redactor
    from accord.results.models import PlannerResult
    from accord.results.rules import Plan

KIND = "planner-result"


def _say_nothing(entry: Entry, ended: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Setting:
    """What a run is given besides its result. ``tell`` is called with each operation as it ends."""

    repository: str
    clock: Clock
    redact: Redactor
    run_key: str = ""
    is_dry_run: bool = False
    tell: Tell = _say_nothing


def default_run_key(result: PlannerResult, repository: str) -> str:
    """Derive the scope of exactly-once from what is applied and where: the same result there is the same run."""
    canonical = json.dumps(result.model_dump(by_alias=True), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{repository.lower()}\n{canonical}".encode()).hexdigest()[:20]


def apply_plan(github: GitHub, result: PlannerResult, setting: Setting) -> Receipt:
    """Check a planner result, and carry it out exactly once. Never raises an error of accord: the receipt tells.

    Findings in the receipt have no lines; whoever read the file knows them.
    """
    run_key = setting.run_key or default_run_key(result, setting.repository)
    plan = read_plan(result)
    receipt = Receipt(KIND, Outcome.REJECTED, run_key, setting.repository, planner_findings(plan))
    if has_errors(receipt.findings):
        return receipt
    if not (result.create or result.close or result.update):
        return replace(receipt, outcome=Outcome.UNCHANGED)
    token = run_token(setting.repository, run_key)
    try:
        facts = gather(github, plan, token)
    except AccordError as error:
        ended = Outcome.REFUSED if isinstance(error, Refused) else Outcome.STOPPED
        return _counted(replace(receipt, outcome=ended, error=error), github)
    findings = [*receipt.findings, *redaction_findings(plan, setting.redact), *fact_findings(plan, facts)]
    receipt = replace(receipt, findings=findings)
    if has_errors(findings):
        return _counted(receipt, github)
    operations = plan_operations(plan, facts, setting.redact)
    receipt = replace(
        receipt,
        titles={item.temp_id: setting.redact(item.title) for item in result.create},
        edges=_edges(operations),
    )
    names = {name for name in plan.positions if item_number(name) is None}
    ledger = Ledger(token, facts.identity, dict(facts.items), names)
    if setting.is_dry_run:
        entries = [entry_of(operation, operation.found or Status.PLANNED, ledger) for operation in operations]
        seconds = estimate_seconds(*_planned_requests(operations))
        receipt = replace(receipt, outcome=Outcome.PLANNED, operations=entries, estimated_seconds=seconds)
    else:
        entries, problem = carry_out(github, operations, ledger, setting.clock, setting.tell)
        ended = outcome_of(entries, problem, github.requests)
        receipt = replace(receipt, outcome=ended, operations=entries, error=problem)
    return _counted(replace(receipt, items=_items(plan, ledger)), github)


def _items(plan: Plan, ledger: Ledger) -> dict[str, Item]:
    wanted = [item.temp_id for item in plan.result.create]
    return {key: Item(str(ledger.issues[key].number), ledger.issues[key].url) for key in wanted if key in ledger.issues}


def _edges(operations: Sequence[Operation]) -> list[Edge]:
    return [
        Edge(
            operation.item,
            operation.blocker if isinstance(operation.blocker, str) else f"#{operation.blocker.number}",
        )
        for operation in operations
        if isinstance(operation, AddDependency)
    ]


def _planned_requests(operations: Sequence[Operation]) -> tuple[int, int]:
    """Count the requests to come: those that create content, and the other writes."""
    coming = [operation for operation in operations if operation.found is None]
    content = sum(isinstance(operation, CreateWorkItem) for operation in coming)
    return content, len(coming) - content


def _counted(receipt: Receipt, github: GitHub) -> Receipt:
    return replace(receipt, reads=github.requests.read, writes=github.requests.write)
