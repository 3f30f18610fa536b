"""Apply an implementor result: a branch, a pull request, the work item's status. Everything is decided first."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from accord.core.errors import Refused, Stopped
from accord.engine.lease import Lease, write_alone
from accord.engine.operations import OperationStatus, apply_in_order
from accord.engine.receipts import Receipt, default_run_key, report_errors
from accord.github.client import GitHub
from accord.github.commits import DeliveredCommit, deliver_commit
from accord.github.models import Pull, PullsNotAllowed
from accord.results.implementor.facts import (
    RevisionFacts,
    gather_facts,
    our_comment,
    our_pull,
    with_comments,
    with_commit,
    with_later_changes,
)
from accord.results.implementor.plan import (
    CreateRevision,
    ImplementOperation,
    LabelRevision,
    LabelWorkItem,
    PushBranch,
    RevisionPlan,
    UpdateRevision,
    WriteComment,
    plan_refused_push,
    plan_revision,
)
from accord.results.implementor.rules import implementor_findings, summary_findings
from accord.results.status import MoveWorkItem, apply_move
from accord.results.texts import TextSanitizer, require_postable, with_safe_texts
from accord.text.markers import run_token

if TYPE_CHECKING:
    from accord.results.models import ImplementorResult
    from accord.results.run_options import RevisionOptions


def apply_implementation(github: GitHub, result: ImplementorResult, options: RevisionOptions) -> Receipt:
    """Check an implementor result, apply it exactly once, and report it. Raises no Problem: the receipt has it."""
    lease = Lease(github, f"item-{options.work_item}", options)
    return write_alone(lambda: _apply_implementation(github, result, options, lease))


def _apply_implementation(github: GitHub, result: ImplementorResult, options: RevisionOptions, lease: Lease) -> Receipt:
    run_key = options.run_key or default_run_key(result, options.repository, options.work_item)
    receipt = Receipt("implementor-result", options.repository, run_key)
    with report_errors(github, receipt), lease, ExitStack() as stack:
        receipt.require(implementor_findings(result))
        sanitizer = TextSanitizer(options.redact, options.policy)
        result = with_safe_texts(result, sanitizer)
        require_postable(receipt, sanitizer, partial(summary_findings, result))
        token = run_token(options.repository, run_key)
        lease.wait()
        facts = with_commit(gather_facts(github, result, token, sanitizer, options, stack), result, options)
        facts = with_later_changes(github, with_comments(github, facts))
        plan = plan_revision(facts, result, sanitizer, options)
        receipt.findings += plan.findings
        receipt.sanitised = sanitizer.sanitised
        receipt.titles = {"": facts.title}
        applied = _Applied(plan.pull)
        planned = plan

        def plan_again(_: object) -> Sequence[ImplementOperation]:
            nonlocal plan
            if applied.refused and plan is planned:
                plan = plan_refused_push(planned, applied.known or facts, applied.refused, sanitizer)
            return plan.operations

        entries, problem = apply_in_order(
            plan.operations,
            lambda operation: _apply(github, operation, facts, applied),
            plan_again=plan_again,
            is_dry_run=options.is_dry_run,
            on_entry=options.on_entry,
            target=lambda operation: _target(operation, facts, applied),
            before_write=lease.keep,
        )
        receipt.end(entries, plan.refusal or problem, is_dry_run=options.is_dry_run)
        receipt.details = _details(plan, facts, applied)
    return receipt


def _details(plan: RevisionPlan, facts: RevisionFacts, applied: _Applied) -> dict[str, Any]:
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


@dataclass
class _Applied:
    """The pull request and the commit of a run, as far as they exist."""

    pull: Pull | None
    delivery: DeliveredCommit | None = None
    refused: Refused | None = None  # why the commit could not be pushed
    known: RevisionFacts | None = None  # read after that, with the comments


def _apply(
    github: GitHub, operation: ImplementOperation, facts: RevisionFacts, applied: _Applied
) -> OperationStatus | None:
    match operation:
        case PushBranch():
            try:
                applied.delivery = _push(github, operation, facts)
            except Refused as problem:
                known = replace(facts, comments=tuple(github.comments(facts.issue.number)))
                applied.refused, applied.known = problem, with_later_changes(github, known)
                return OperationStatus.FAILED
        case CreateRevision():
            applied.pull = _create_revision(github, operation, facts)
        case UpdateRevision():
            number = operation.pull.number
            applied.pull = github.change_pull(number, title=operation.title, body=operation.body)
        case LabelRevision() if applied.pull:
            github.add_labels(applied.pull.number, [operation.key])
        case LabelWorkItem():
            github.add_labels(facts.issue.number, [operation.key])
        case WriteComment():
            _write_comment(github, operation, facts)
        case MoveWorkItem():
            apply_move(github, operation)
    return None


def _push(github: GitHub, operation: PushBranch, facts: RevisionFacts) -> DeliveredCommit:
    if facts.branch is None or operation.upload is None:
        raise ValueError("a push needs a commit")
    git, remote = facts.branch.git, facts.branch.remote
    delivery = deliver_commit(github, git, remote, operation.upload, operation.key, operation.expected)
    if delivery is None:
        hint = "Run the same command again. It applies the patch on top of the new commits."
        raise Stopped(f"The branch {operation.key} moved while the patch was applied.", hint=hint)
    return delivery


def _create_revision(github: GitHub, operation: CreateRevision, facts: RevisionFacts) -> Pull:
    def find() -> Pull | None:
        pull, is_written = our_pull(facts, github.pulls_from(operation.key, state="open"))
        return pull if is_written else None

    def send() -> Pull:
        texts = operation.title, operation.body
        return github.create_pull(*texts, operation.key, operation.base, draft=operation.is_draft)

    try:
        return github.send_once(send, find)
    except PullsNotAllowed as refused:
        kept = f"The branch `{operation.key}` is pushed, so the agent does not need to run again."
        raise PullsNotAllowed(refused.message, hint=f"{refused.hint} {kept}") from refused


def _write_comment(github: GitHub, operation: WriteComment, facts: RevisionFacts) -> None:
    if operation.comment is not None:
        github.change_comment(operation.comment.id, operation.body)
        return
    github.send_once(
        lambda: github.create_comment(operation.number, operation.body),
        lambda: our_comment(facts, list(github.comments(operation.number))),
    )


def _target(operation: ImplementOperation, facts: RevisionFacts, applied: _Applied) -> str | None:
    match operation:
        case PushBranch():
            return (applied.delivery.commit if applied.delivery else operation.commit) or None
        case CreateRevision() | UpdateRevision() | LabelRevision():
            return str(applied.pull.number) if applied.pull else None
        case WriteComment() | LabelWorkItem() | MoveWorkItem():
            return str(facts.issue.number)
