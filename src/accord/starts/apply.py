"""Apply what was planned. Each function may be repeated after a crash."""

from __future__ import annotations

from collections.abc import Sequence

from accord.core.errors import AccordError, Refused
from accord.engine.operations import LedgerEntry, Operation, apply_in_order, skipped_if
from accord.engine.trust import PAUSED
from accord.github.comments import show_comment
from accord.github.models import Conflict, NotThere
from accord.github.once import send_once
from accord.results.status import MoveWorkItem, apply_move
from accord.starts.facts import StartContext, find_run
from accord.starts.plan import CancelRun, LinkRun, PauseLoops, React, ShowStatus, StartWorkflow
from accord.starts.status import write_body


def apply_operations(
    context: StartContext, operations: Sequence[Operation], *, is_dry_run: bool = False
) -> tuple[list[LedgerEntry], AccordError | None]:
    """Apply operations in order; return an entry for each, and the error that ended it."""
    return apply_in_order(operations, lambda each: skipped_if(not _apply(context, each)), is_dry_run=is_dry_run)


def _apply(context: StartContext, operation: Operation) -> bool:
    """Apply an operation; return whether there was still something to do."""
    github = context.github
    match operation:
        case React():
            try:
                github.react(operation.comment_id, operation.reaction)
            except NotThere:  # a person deleted the comment meanwhile; what it asks for is done all the same
                context.gone.append(operation.key)
                return False
        case ShowStatus():
            _show_status(context, operation)
        case StartWorkflow():
            context.started[operation.inputs["start"]] = _start_workflow(context, operation)
        case LinkRun():
            return _link_run(context, operation)
        case CancelRun():
            github.cancel_run(operation.run_id)
        case PauseLoops():
            github.add_labels(operation.number, [PAUSED])
        case MoveWorkItem():
            apply_move(github, operation)
    return True


def _show_status(context: StartContext, operation: ShowStatus) -> None:
    """Write the status comment where it differs, and delete further ones of ours."""
    number = operation.number
    show_comment(
        context.github,
        number,
        write_body(operation.status, number, context.page),
        operation.comments,
        find=lambda: context.view(number).comments,
        is_ours=context.identity.counts,
        clock=context.clock,
    )


def _link_run(context: StartContext, operation: LinkRun) -> bool:
    """Put the run into its row; return False if GitHub does not tell which it is, or the run did so itself."""
    run_id = operation.run_id or context.started.get(operation.key, 0)
    view = context.view(operation.number) if run_id else None
    row = view.status.row(operation.key) if view else None
    if view is None or row is None or row.run:
        return False
    status = view.status.with_row(row.model_copy(update={"run": run_id}))
    _show_status(context, ShowStatus(operation.key, None, status, view.comments, number=operation.number))
    return True


def _start_workflow(context: StartContext, operation: StartWorkflow) -> int:
    """Start a workflow once, found again by the key in its title, and return its run, 0 where GitHub does not tell."""
    github, file, key = context.github, operation.file, operation.inputs["start"]

    def find() -> int | None:
        run = find_run(github, file, key, operation.since)
        return run.id if run else None

    try:
        return send_once(lambda: github.dispatch_workflow(file, context.branch, operation.inputs), find, context.clock)
    except NotThere:
        raise NotThere(
            f"The workflow {file} cannot be started: it is not on the branch {context.branch} of "
            f"{context.repository}, or the token has no access.",
            hint="Install it with `accord init`, and grant the job `actions: write`.",
        ) from None
    except Conflict as refused:
        hint = "Update the workflows of the kit with `accord init`."
        raise Refused(f"The workflow {file} cannot be started. {refused.message}", hint=hint) from None
