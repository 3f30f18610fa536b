"""Apply an implementor result: a branch, a pull request, the work item's status. Everything is decided first."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from accord.engine.receipts import Receipt, default_run_key, reporting
from accord.results.implementor.apply import apply_operations
from accord.results.implementor.facts import gather_facts, with_comments, with_commit
from accord.results.implementor.plan import PushBranch, plan_revision
from accord.results.implementor.rules import implementor_findings
from accord.results.texts import TextSanitizer, require_postable, with_safe_texts
from accord.text.markers import run_token

if TYPE_CHECKING:
    from accord.github.client import GitHub
    from accord.results.implementor.apply import AppliedRevision
    from accord.results.implementor.facts import RevisionFacts
    from accord.results.implementor.plan import RevisionPlan
    from accord.results.models import ImplementorResult
    from accord.results.run_options import RevisionOptions


def apply_implementation(github: GitHub, result: ImplementorResult, options: RevisionOptions) -> Receipt:
    """Check an implementor result, apply it exactly once, and report it. Raises no AccordError: the receipt has it."""
    run_key = options.run_key or default_run_key(result, options.repository, options.work_item)
    receipt = Receipt("implementor-result", options.repository, run_key)
    with reporting(github, receipt), ExitStack() as stack:
        receipt.require(implementor_findings(result))
        sanitizer = TextSanitizer(options.redact, options.policy)
        result = with_safe_texts(result, sanitizer)
        require_postable(receipt, sanitizer, implementor_findings(result))
        token = run_token(options.repository, run_key)
        facts = with_commit(gather_facts(github, result, token, sanitizer, options, stack), result, options)
        facts = with_comments(github, facts)
        plan = plan_revision(facts, result, sanitizer, options)
        receipt.findings += plan.findings
        receipt.sanitised = sanitizer.sanitised
        receipt.titles = {"": facts.title}
        applied = apply_operations(github, plan, facts, options)
        receipt.end(applied.entries, applied.problem or plan.refusal, is_dry_run=options.is_dry_run)
        receipt.details = _details(plan, facts, applied)
    return receipt


def _details(plan: RevisionPlan, facts: RevisionFacts, applied: AppliedRevision) -> dict[str, Any]:
    if plan.scope is None or facts.branch is None:
        return {}
    pull, delivery = applied.pull, applied.delivery
    revision = {
        "id": str(pull.number) if pull else None,
        "url": pull.url if pull else None,
        "branch": facts.branch_name,
        "head_sha": delivery.commit if delivery else facts.branch.head,
        "draft": pull.is_draft if pull else plan.is_draft,
    }
    uploads = (operation.upload for operation in plan.operations if isinstance(operation, PushBranch))
    commit = delivery or next(filter(None, uploads), None)
    return {"scope": plan.scope.as_json(), "revision": revision, **({"commit": commit.as_json()} if commit else {})}
