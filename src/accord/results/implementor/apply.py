"""Apply the operations of an implementor result in order; nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.core.errors import AccordError, Stopped
from accord.engine.operations import LedgerEntry, apply_in_order
from accord.github.commits import deliver_commit
from accord.github.models import PullsNotAllowed
from accord.github.once import send_once
from accord.results.implementor.facts import our_comment, our_pull
from accord.results.implementor.plan import (
    CreateRevision,
    ImplementOperation,
    LabelRevision,
    LabelWorkItem,
    PushBranch,
    UpdateRevision,
    WriteComment,
)
from accord.results.status import MoveWorkItem, apply_move

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.commits import DeliveredCommit
    from accord.github.models import Pull
    from accord.results.implementor.facts import RevisionFacts
    from accord.results.implementor.plan import RevisionPlan
    from accord.results.run_options import RevisionOptions


@dataclass(frozen=True)
class AppliedRevision:
    """The pull request, the commit that was brought to its branch now, and how the operations ended."""

    pull: Pull | None
    delivery: DeliveredCommit | None
    entries: Sequence[LedgerEntry]
    problem: AccordError | None


def apply_operations(
    github: GitHub, plan: RevisionPlan, facts: RevisionFacts, options: RevisionOptions
) -> AppliedRevision:
    """Apply the operations; return the results, with an entry for each operation."""
    pull, delivery = plan.pull, None

    def apply(operation: ImplementOperation) -> None:
        nonlocal pull, delivery
        match operation:
            case PushBranch():
                delivery = _push(github, operation, facts)
            case CreateRevision():
                pull = _create_revision(github, operation, facts, options.clock)
            case UpdateRevision():
                pull = github.change_pull(operation.pull.number, title=operation.title, body=operation.body)
            case LabelRevision():
                if pull:
                    github.add_labels(pull.number, [operation.label])
            case LabelWorkItem():
                github.add_labels(facts.issue.number, [operation.label])
            case WriteComment():
                _write_comment(github, operation, facts, options.clock)
            case MoveWorkItem():
                apply_move(github, operation)

    entries, problem = apply_in_order(
        plan.operations,
        apply,
        is_dry_run=options.is_dry_run,
        on_entry=options.on_entry,
        target=lambda operation: _target(operation, facts, pull, delivery),
    )
    return AppliedRevision(pull, delivery, entries, problem)


def _push(github: GitHub, operation: PushBranch, facts: RevisionFacts) -> DeliveredCommit:
    if facts.branch is None or operation.upload is None:
        raise ValueError("a push needs a commit")
    git, remote = facts.branch.git, facts.branch.remote
    delivery = deliver_commit(github, git, remote, operation.upload, operation.branch, operation.expected)
    if delivery is None:
        raise Stopped(
            f"The branch {operation.branch} moved while the patch was applied.",
            hint="Run the same command again. It applies the patch on top of the new commits.",
        )
    return delivery


def _create_revision(github: GitHub, operation: CreateRevision, facts: RevisionFacts, clock: Clock) -> Pull:
    def find() -> Pull | None:
        pull, is_written = our_pull(facts, github.pulls_from(operation.branch, state="open"))
        return pull if is_written else None

    try:
        return send_once(
            lambda: github.create_pull(
                operation.title, operation.body, operation.branch, operation.base, draft=operation.is_draft
            ),
            find,
            clock,
        )
    except PullsNotAllowed as refused:
        kept = f"The branch `{operation.branch}` is pushed, so the agent does not need to run again."
        raise PullsNotAllowed(refused.message, hint=f"{refused.hint} {kept}") from refused


def _write_comment(github: GitHub, operation: WriteComment, facts: RevisionFacts, clock: Clock) -> None:
    if operation.comment is not None:
        github.change_comment(operation.comment.id, operation.body)
        return
    send_once(
        lambda: github.create_comment(operation.number, operation.body),
        lambda: our_comment(facts, list(github.comments(operation.number))),
        clock,
    )


def _target(
    operation: ImplementOperation, facts: RevisionFacts, pull: Pull | None, delivery: DeliveredCommit | None
) -> str | None:
    match operation:
        case PushBranch():
            return (delivery.commit if delivery else operation.commit) or None
        case CreateRevision() | UpdateRevision() | LabelRevision():
            return str(pull.number) if pull else None
        case WriteComment() | LabelWorkItem() | MoveWorkItem():
            return str(facts.issue.number)
