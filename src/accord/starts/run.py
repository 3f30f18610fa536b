"""The sequence: an event, its facts, a choice, and operations applied in order, each of which may be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from accord.core.clock import parse_timestamp
from accord.core.errors import BrokenContract, Interrupted, Refused
from accord.core.findings import warning
from accord.core.log import log
from accord.engine.operations import Operation, OperationStatus, apply_in_order, skipped_if
from accord.engine.receipts import Receipt, report_errors
from accord.engine.trust import PAUSED, RefusedLabel
from accord.github.comments import show_comment
from accord.github.models import Conflict, NotThere
from accord.results.planner.scope import request_of_spec, run_key_of_spec
from accord.results.status import (
    MoveWorkItem,
    StatusFacts,
    apply_move,
    find_work_item,
    gather_facts,
    plan_cleared,
    plan_move,
)
from accord.starts.choose import Answer, Begin, Halt, check_event, choose
from accord.starts.facts import (
    StartContext,
    approved_specs,
    find_begun,
    find_run,
    item_facts,
    merged_items,
    run_of,
    unblocked_items,
)
from accord.starts.models import ACTIVE, WORKFLOWS, StartEvent, Trigger, key_of
from accord.starts.plan import (
    CancelRun,
    LinkRun,
    PauseLoops,
    React,
    ShowStatus,
    StartWorkflow,
    plan_choice,
    plan_closing,
    plan_ready,
    show_row,
    start_operation,
)
from accord.starts.status import is_dashboard, write_body
from accord.text.markdown import cell

MOST_SPECS = 10
"""Plans that one push starts; the summary names the rest."""

Planned = tuple[tuple["Operation", ...], str]
"""Operations, and a sentence for the summary."""


def start(context: StartContext, event: StartEvent | None, *, is_dry_run: bool = False) -> Receipt:
    """Start what an event asks for, exactly once, and report it. Raises no Problem: the receipt has it."""
    receipt = Receipt("start", context.repository, event.key if event else "")
    with report_errors(context.github, receipt):
        operations, reason = _plan(context, event) if event else ((), "This event starts nothing.")
        receipt.details = {"reason": reason}
        log("start", "%s: %s %s", receipt.run_key, [operation.key for operation in operations], reason)
        apply(context, operations, receipt, is_dry_run=is_dry_run)
    return receipt


def apply(context: StartContext, operations: Sequence[Operation], receipt: Receipt, *, is_dry_run: bool) -> bool:
    """Apply operations and record them; return whether GitHub refused to start a workflow, which a comment shows."""
    entries, error = apply_in_order(operations, partial(_apply, context), is_dry_run=is_dry_run)
    receipt.end(entries, error, is_dry_run=is_dry_run)
    hint = "Nothing to do: only the reaction is left out."
    receipt.findings += [
        warning("comment-gone", f"The {key} does not exist any more.", hint=hint) for key in context.gone
    ]
    position = next((at for at, entry in enumerate(entries) if entry.status is OperationStatus.FAILED), 0)
    if not isinstance(error, Refused) or not isinstance(refused := operations[position], StartWorkflow):
        return False
    shown = next((each for each in operations[position::-1] if isinstance(each, ShowStatus)), None)
    if shown is not None:
        view, key = context.view(shown.number), refused.inputs["start"]
        words = {"state": "failed", "result": f"setup: {cell(context.redact(error.message))}", "next_step": error.hint}
        if row := view.status.row(key) or shown.status.row(key):
            correct(context, [show_row(shown.number, view, row.model_copy(update=words))], receipt)
    return True


def correct(context: StartContext, operations: Sequence[Operation], receipt: Receipt) -> None:
    """Apply what a refusal asks for, and add it to the receipt, whose outcome stays."""
    entries, problem = apply_in_order(operations, partial(_apply, context))
    receipt.operations = [*receipt.operations, *entries]
    if isinstance(problem, Interrupted):
        raise problem


def _plan(context: StartContext, event: StartEvent) -> Planned:
    if reason := check_event(event, context.config):
        return (), reason
    if event.trigger is Trigger.MERGED:
        return _plan_closings(context, event)
    if event.trigger is Trigger.CLOSED:
        issue = context.github.issue(event.number)
        cleared = plan_cleared(issue) if issue else ()
        moves = (*plan_ready(unblocked_items(context.github, event.number)), *cleared)
        return moves, "" if moves else f"No pending item waited for #{event.number} alone."
    if not context.github.may_write(event.sender):
        is_label = event.trigger is Trigger.LABEL
        return _refuse_label(context, event) if is_label else ((), "Only people with write access start agents.")
    if event.trigger is Trigger.SPECS:
        return _plan_specs(context, event)
    if event.trigger is Trigger.DASHBOARD:
        return _plan_ticks(context, event)
    return plan_item(context, event)


def _plan_closings(context: StartContext, event: StartEvent) -> Planned:
    items = list(merged_items(context, event))
    closing = [plan_closing(issue, owner) for issue, owner in items if owner.reason == "merged-elsewhere"]
    closed = {issue.number for issue, owner in items if owner.reason in ("merged-elsewhere", "done")}
    found = (one for number in closed for one in unblocked_items(context.github, number))
    blocked = {  # GitHub reports no closing of our own
        issue.number: (issue, StatusFacts(tuple(n for n in facts.open_blockers or () if n not in closed)))
        for issue, facts in (found if context.config.starts.ready else ())
    }
    moves = (*closing, *plan_ready(blocked.values()))
    return moves, "" if moves else f"No item of #{event.number} is left to close."


def _refuse_label(context: StartContext, event: StartEvent) -> Planned:
    text, facts = RefusedLabel(event.word, event.sender).text, item_facts(context, event)
    is_said = facts is None or event.key in facts.view.status.answered
    return () if facts is None or is_said else tuple(plan_choice(event, Answer(text), facts, None, context.now())), text


def plan_item(context: StartContext, event: StartEvent) -> Planned:
    """Plan what an event of an issue or pull request asks for; its sender may write."""
    facts = item_facts(context, event)
    if facts is None:
        return (), f"#{event.number} does not exist any more."
    if facts.is_dashboard and event.named:
        named = replace(event, number=event.named, named=0)
        found = item_facts(context, named)
        event, facts = (named, found) if found else (event, facts)
    choice = choose(event, facts)
    run, last = None, facts.view.status.last
    if isinstance(choice, Begin):
        row = facts.view.status.row(event.key)
        if row is not None:  # another event with this key may have started it before
            event = replace(event, at=min(event.at, parse_timestamp(row.since)))
        if row is None or not row.run:
            file, is_known = WORKFLOWS[choice.work], row is not None
            run = find_begun(context, file, event.key, event.at, is_known=is_known)
    elif isinstance(choice, Halt) and last is not None and last.state in ACTIVE:
        run = run_of(context, last)
    reason = choice.text if isinstance(choice, Answer) else ""
    return tuple(plan_choice(event, choice, facts, run, context.now())), reason


def _plan_ticks(context: StartContext, event: StartEvent) -> Planned:
    """Plan what the ticked boxes of an edit ask for. Only boxes of a dashboard that our own account wrote count."""
    issue = context.github.issue(event.number)
    if issue is None or not is_dashboard(issue, context.identity):
        return (), f"#{event.number} is not a dashboard of `{context.identity.login}`."
    operations: list[Operation] = []
    reasons: list[str] = []
    for tick in event.ticks:
        of_tick = replace(event, key=key_of(event.key, tick.number), number=tick.number, word=tick.word, ticks=())
        if tick.word != "ready":
            planned, reason = plan_item(context, of_tick)
            operations += planned
            reasons += [reason] if reason else []
            continue
        try:
            item = find_work_item(context.github, tick.number)
            operations.append(plan_move(item, "ready", gather_facts(context.github, item, "ready")))
        except BrokenContract as broken:
            reasons.append(broken.message)
    return tuple(operations), " ".join(reasons)


def _plan_specs(context: StartContext, event: StartEvent) -> Planned:
    paths = approved_specs(context, event)
    chosen, plans = paths[:MOST_SPECS], list[Operation]()
    for path in chosen:
        key = key_of("spec", path, event.head)
        is_started = find_run(context.github, WORKFLOWS["plan"], key, event.at) is not None
        inputs = {"request": request_of_spec(path), "run-key": run_key_of_spec(path), "start": key}
        plans.append(start_operation("plan", inputs, event.at, is_started=is_started))
    reason = "" if chosen else "The push changed no specification with `status: approved`."
    if len(paths) > len(chosen):
        reason = f"One push starts {MOST_SPECS} plans at most. Not started: {', '.join(paths[MOST_SPECS:])}."
    return tuple(plans), reason


def _apply(context: StartContext, operation: Operation) -> OperationStatus | None:
    github = context.github
    match operation:
        case React():
            try:
                github.react(operation.comment_id, operation.reaction)
            except NotThere:  # a person deleted the comment meanwhile; what it asks for is done all the same
                context.gone.append(operation.key)
                return OperationStatus.SKIPPED
        case ShowStatus():
            _show_status(context, operation)
        case StartWorkflow():
            context.started[operation.inputs["start"]] = _start_workflow(context, operation)
        case LinkRun():
            return skipped_if(not _link_run(context, operation))
        case CancelRun():
            github.cancel_run(operation.run_id)
        case PauseLoops():
            github.add_labels(operation.number, [PAUSED])
        case MoveWorkItem():
            apply_move(github, operation)
    return None


def _show_status(context: StartContext, operation: ShowStatus) -> None:
    number = operation.number
    show_comment(
        context.github,
        number,
        write_body(operation.status, number, context.page),
        operation.comments,
        find=lambda: context.view(number).comments,
        is_ours=context.identity.counts,
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
        return github.send_once(lambda: github.dispatch_workflow(file, context.branch, operation.inputs), find)
    except NotThere:
        raise NotThere(
            f"The workflow {file} cannot be started: it is not on the branch {context.branch} of "
            f"{context.repository}, or the token has no access.",
            hint="Install it with `accord init`, and grant the job `actions: write`.",
        ) from None
    except Conflict as refused:
        hint = "Update the workflows of the kit with `accord init`."
        raise Refused(f"The workflow {file} cannot be started. {refused.message}", hint=hint) from None
