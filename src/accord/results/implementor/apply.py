"""Carrying out what an implementor's result comes to, one operation after the other; nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.core.errors import AccordError, Stopped
from accord.git.branches import push
from accord.github.once import send_once
from accord.results.implementor.plan import (
    CreateRevision,
    ImplementOperation,
    LabelRevision,
    PushBranch,
    UpdateRevision,
    WriteComment,
)
from accord.results.implementor.revision import our_comment, our_pull
from accord.results.operations import LedgerEntry, MoveWorkItem, OperationStatus, apply_in_order
from accord.results.status import apply_move

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.models import Pull
    from accord.results.implementor.facts import Request, RevisionFacts


@dataclass
class State:
    """What is known while operations are carried out: the pull request, None until there is one."""

    pull: Pull | None


def apply_operations(
    github: GitHub, operations: Sequence[ImplementOperation], facts: RevisionFacts, request: Request, state: State
) -> tuple[list[LedgerEntry], AccordError | None]:
    """Carry out the operations of an implementor's result."""
    return apply_in_order(
        operations,
        lambda operation: _do(github, operation, facts, request, state),
        lambda operation, status: entry_of(operation, status, facts, state),
        request.setting.tell,
    )


def _do(github: GitHub, operation: ImplementOperation, facts: RevisionFacts, request: Request, state: State) -> None:
    clock = request.setting.clock
    match operation:
        case PushBranch():
            _push(operation, facts, request)
        case CreateRevision():
            state.pull = _create_revision(github, operation, facts, clock)
        case UpdateRevision():
            state.pull = github.change_pull(operation.pull.number, title=operation.title, body=operation.body)
        case LabelRevision():
            if state.pull:
                github.add_labels(state.pull.number, [operation.label])
        case WriteComment():
            _write_comment(github, operation, facts, clock)
        case MoveWorkItem():
            apply_move(github, operation.move)


def _push(operation: PushBranch, facts: RevisionFacts, request: Request) -> None:
    branch, remote = facts.branch, request.work.remote
    if branch and not push(branch.git, remote, operation.commit, operation.branch, operation.expected):
        raise Stopped(
            f"The branch {operation.branch} moved while the patch was applied.",
            hint="Run the same command again; it applies the patch on top of what came in between.",
        )


def _create_revision(github: GitHub, operation: CreateRevision, facts: RevisionFacts, clock: Clock) -> Pull:
    def find() -> Pull | None:
        pull, is_written = our_pull(github.pulls_from(operation.branch, state="open"), facts.identity, facts.token)
        return pull if is_written else None

    return send_once(
        lambda: github.create_pull(
            operation.title, operation.body, operation.branch, operation.base, draft=operation.is_draft
        ),
        find,
        clock,
    )


def _write_comment(github: GitHub, operation: WriteComment, facts: RevisionFacts, clock: Clock) -> None:
    if operation.comment is not None:
        github.change_comment(operation.comment.id, operation.body)
        return
    send_once(
        lambda: github.create_comment(operation.number, operation.body),
        lambda: our_comment(list(github.comments(operation.number)), facts.identity, operation.number),
        clock,
    )


def entry_of(operation: ImplementOperation, status: OperationStatus, facts: RevisionFacts, state: State) -> LedgerEntry:
    """Write the receipt's line of an operation."""
    match operation:
        case PushBranch():
            target = operation.commit or None
        case CreateRevision() | UpdateRevision() | LabelRevision():
            target = str(state.pull.number) if state.pull else None
        case WriteComment() | MoveWorkItem():
            target = str(facts.issue.number)
    return LedgerEntry(operation.op, operation.key, status, target)
