"""Carrying out what an implementor's result comes to, one operation after the other; nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accord.github.once import send_once
from accord.kernel.branches import DEFAULT_AUTHOR, Remote, push
from accord.kernel.errors import AccordError, Stopped
from accord.kernel.findings import Finding
from accord.results.apply import in_order
from accord.results.implement_plan import (
    ImplementOperation,
    LabelRevision,
    PushBranch,
    WriteComment,
    WriteRevision,
    our_comment,
    our_pull,
)
from accord.results.operations import Entry, MoveWorkItem, Status
from accord.results.status_run import carry_out_move

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from accord.github.adapter import Adapter
    from accord.github.port import Identity, Issue
    from accord.github.pull_port import Pull
    from accord.kernel.git import Git
    from accord.results.run import Setting
    from accord.results.scope import ScopeReport


@dataclass(frozen=True)
class Implementation:
    """What applying needs besides the result: the work item, the remote, and how to commit."""

    number: int
    remote: Remote
    base: str = ""
    checkout: Path | None = None
    author: str = DEFAULT_AUTHOR
    co_authors: tuple[str, ...] = ()
    commit_prefix: str = "feat"
    protected: tuple[str, ...] = ()


@dataclass
class State:
    """What is known while operations are carried out; ``title`` is the work item's, fit to be posted."""

    issue: Issue
    identity: Identity
    token: str
    title: str
    git: Git | None = None
    pull: Pull | None = None
    head: str = ""
    scope: ScopeReport | None = None
    findings: list[Finding] = field(default_factory=list)


def carry_out(
    github: Adapter,
    operations: Sequence[ImplementOperation],
    state: State,
    work: Implementation,
    setting: Setting,
) -> tuple[list[Entry], AccordError | None]:
    """Carry out the operations of an implementor's result."""
    return in_order(
        operations,
        lambda operation: _do(github, operation, state, work, setting),
        lambda operation, status: entry_of(operation, status, state),
        setting.tell,
    )


def _do(github: Adapter, operation: ImplementOperation, state: State, work: Implementation, setting: Setting) -> None:
    match operation:
        case PushBranch():
            _push(operation, state, work)
        case WriteRevision():
            state.pull = _write_revision(github, operation, state, setting)
        case LabelRevision():
            if state.pull:
                github.add_labels(state.pull.number, [operation.label])
        case WriteComment():
            _write_comment(github, operation, state, setting)
        case MoveWorkItem():
            carry_out_move(github, operation.move)


def _push(operation: PushBranch, state: State, work: Implementation) -> None:
    if state.git and not push(state.git, work.remote, operation.commit, operation.branch, operation.expected):
        raise Stopped(
            f"The branch {operation.branch} moved while the patch was applied.",
            mend="Run the same command again; it applies the patch on top of what came in between.",
        )


def _write_revision(github: Adapter, operation: WriteRevision, state: State, setting: Setting) -> Pull:
    if operation.pull is not None:
        return github.change_pull(operation.pull.number, title=operation.title, body=operation.body)

    def find() -> Pull | None:
        pull, is_written = our_pull(github.pulls_from(operation.branch, state="open"), state.identity, state.token)
        return pull if is_written else None

    return send_once(
        lambda: github.create_pull(
            operation.title, operation.body, operation.branch, operation.base, draft=operation.is_draft
        ),
        find,
        setting.clock,
    )


def _write_comment(github: Adapter, operation: WriteComment, state: State, setting: Setting) -> None:
    if operation.comment is not None:
        github.change_comment(operation.comment.id, operation.body)
        return
    send_once(
        lambda: github.create_comment(operation.number, operation.body),
        lambda: our_comment(list(github.comments(operation.number)), state.identity, operation.number),
        setting.clock,
    )


def entry_of(operation: ImplementOperation, status: Status, state: State) -> Entry:
    """Write the receipt's line of an operation."""
    match operation:
        case PushBranch():
            target = operation.commit or None
        case WriteRevision() | LabelRevision():
            target = str(state.pull.number) if state.pull else None
        case WriteComment() | MoveWorkItem():
            target = str(state.issue.number)
    return Entry(operation.op, operation.key, status, target)
