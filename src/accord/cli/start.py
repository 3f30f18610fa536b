"""``accord start``: start agents on events, and keep the status comment of an item."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import FormatArguments, Group, Number, RepositoryArguments, WritingArguments, command, option
from accord.cli.output import one_line, redactor
from accord.cli.receipts import show_receipt
from accord.cli.sources import AsOfArguments, github_for, policy_at, read_as_of, read_bytes
from accord.cli.step import findings_table, leave_outputs, redact, redacted_cell, report_step
from accord.core.clock import SystemClock, time_of
from accord.core.documents import read_object
from accord.core.errors import BrokenContract, Refused, WrongUsage
from accord.engine.operations import OperationLog
from accord.engine.receipts import Outcome, Receipt
from accord.github.client import Connection
from accord.starts.choose import HEAD_UNKNOWN, head_at
from accord.starts.ends import RunOfWork, WorkReport, begin, end, read_needs, report_of
from accord.starts.events import check_repository, read_event
from accord.starts.facts import StartContext
from accord.starts.models import Work
from accord.starts.run import start as start_work

if TYPE_CHECKING:
    from accord.runner.causes import Disposition
    from accord.runner.models import RunOutputs


start = Group("start", help="Start agents on events, and report their runs.")


class _StartArguments(WritingArguments, RepositoryArguments):
    event: str = option("--event NAME", "Name of the event.", envvar="GITHUB_EVENT_NAME")
    payload: str = option("--payload FILE", "File with the event.", envvar="GITHUB_EVENT_PATH")


@command(_StartArguments, "run", of=start)
def run_command(given: _StartArguments) -> int:
    """Start what an event asks for, exactly once.

    The event is that of the workflow, unless --event and --payload name another. The file
    .github/accord/config.yml of the default branch says which events count.
    """
    if not (given.event and given.payload):
        raise WrongUsage("No event given.", hint="Pass `--event NAME --payload FILE`, or run this in a workflow.")
    document = read_object(read_bytes(given.payload)).value
    happened = read_event(given.event, document)
    with github_for(given) as connection:
        if happened is not None:
            check_repository(document, connection.repository)
        receipt = start_work(_context(connection), happened, is_dry_run=given.dry_run)
    return _report(receipt, given)


class WorkArguments(WritingArguments, RepositoryArguments):
    """The run that a command reports."""

    item: int | None
    work: Work = option("--work", "The kind of work.", among=("plan", "implement", "review"))
    key: str = option("--key KEY", "The workflow's input `start`.")
    agent: str = option("--agent NAME", "The workflow's input `agent`.")


class _BeginArguments(AsOfArguments, WorkArguments):
    item: int | None = option("--item N", "Its issue or pull request.", required=True)
    head: str = option("--head SHA", "Commit to review. Default: the head at that time.")


class _EndArguments(WorkArguments):
    item: int | None = option("--item N", "Its issue or pull request, if it has one.", type=Number(may_be_empty=True))
    needs: str = option("--needs JSON", "The expression toJSON(needs) of the job.")
    run_dir: Path | None = option("--run-dir DIR", "The agent's folder, for the cause of a failure and its cost.")


@command(_BeginArguments, "begin", of=start)
def begin_command(given: _BeginArguments) -> int:
    """Show that a run began, and find the commit to review.

    A step gets it as the output head. A fork whose pull request changed after --as-of is refused.
    """
    run = _run(given)
    if given.head and not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", given.head):
        raise WrongUsage(f"`{given.head[:80]}` is not the full SHA of a commit.", hint="Pass all its digits.")
    with github_for(given) as connection:
        context, head = _context(connection), given.head
        pull = connection.github.pull(run.number) if run.work == "review" and not head else None
        if pull is not None:
            head = head_at(pull, read_as_of(given.as_of, connection.github) or context.now(), connection.repository)
        receipt = begin(context, run, is_dry_run=given.dry_run)
    code = _report(receipt, given)
    if pull is not None and not head:
        problem = Refused(HEAD_UNKNOWN.format(run.number), hint="Start the review again.")
        leave_outputs({"reason": problem.message})
        raise problem
    leave_outputs({"head": head} if head else {})
    return code


@command(_EndArguments, "end", of=start)
def end_command(given: _EndArguments) -> int:
    """Show how a run ended, and keep its record.

    After an implementation, starts the review of its pull request if the configuration has pull-requests: true.
    """
    run = _run(given)
    try:
        jobs = read_needs(given.needs)
    except (ValueError, AttributeError):
        raise WrongUsage("`--needs` is not the JSON of a job's needs.", hint="Pass `${{ toJSON(needs) }}`.") from None
    revision = jobs["apply"].document("revision") if run.work == "implement" and "apply" in jobs else None
    opened = None
    if isinstance(revision, dict) and str(revision.get("id")).isdecimal() and not revision.get("draft"):
        opened = (int(revision["id"]), str(revision.get("head_sha") or ""))
    with github_for(given) as connection:
        outputs = _outputs(given.run_dir, connection)
        report = report_of(run.work, jobs, outputs)
        if run.number:
            receipt = end(_context(connection), run, report, revision=opened, is_dry_run=given.dry_run)
        else:
            receipt = Receipt("start", connection.repository, run.row_key, Outcome.UNCHANGED)
        if not given.dry_run:
            _leave_record(connection, run, report, receipt, outputs, given.run_dir, revision)
    return _report(receipt, given)


def _context(connection: Connection) -> StartContext:
    github, repository, page = connection.github, connection.repository, connection.page
    return StartContext(github, repository, page, SystemClock(), redactor())


def _run(given: WorkArguments) -> RunOfWork:
    run_id, actor = os.environ.get("GITHUB_RUN_ID", ""), os.environ.get("GITHUB_ACTOR", "")
    if not run_id.isdecimal():
        raise WrongUsage("`GITHUB_RUN_ID` is not set.", hint="Run this in a workflow, or set it to the run's number.")
    person = "" if actor.endswith("[bot]") else actor
    return RunOfWork(given.work, given.item or 0, int(run_id), given.key, person, given.agent)


def _outputs(run_dir: Path | None, connection: Connection) -> RunOutputs | None:
    """Conclude the outputs of the agent's run; None where its folder holds no record."""
    if run_dir is None or not run_dir.is_dir():
        return None
    from accord.runner.finish import finish
    from accord.runner.outputs import FinishOptions

    policy = policy_at(connection)
    log = OperationLog(is_dry_run=True)
    options = FinishOptions("", redactor(), policy, SystemClock(), os.environ, log=log)
    try:
        return finish(run_dir, options)
    except BrokenContract:
        return None


_DISPOSITIONS: Mapping[str, Disposition] = {
    "done": "success",
    "nothing": "no-change",
    "failed": "failure",
    "cancelled": "cancelled",
}


def _leave_record(
    connection: Connection,
    run: RunOfWork,
    report: WorkReport,
    receipt: Receipt,
    outputs: RunOutputs | None,
    run_dir: Path | None,
    revision: object,
) -> None:
    from accord.cli.records import agent_facts, job_of, leave_agent_record
    from accord.records.build import Ending, failure_class, trigger_of_start

    shown = receipt.details.get("start") or {}
    cause = shown.get("cause", "") if run.number else "specs"
    trigger = trigger_of_start(cause, shown.get("by", "") or run.by, has_key=bool(run.key))
    disposition = _DISPOSITIONS.get(report.state, "failure")
    if disposition == "success" and outputs is not None and outputs.terminal_disposition == "blocked":
        disposition = "blocked"
    links = {"pull" if run.work == "review" else "issue": run.number} if run.number else {}
    if isinstance(revision, dict) and str(revision.get("id")).isdecimal():
        links["pull"] = int(revision["id"])
    error = failure_class(report.result) if report.state == "failed" else ""
    leave_agent_record(
        run.work,
        run.number or None,
        replace(job_of(connection.repository, str(run.run_id)), trigger=trigger),
        lambda: agent_facts(run_dir, outputs),
        Ending(disposition, report.state, error, links, time_of(shown.get("since", "")), run.agent),
        connection,
    )


def _report(receipt: Receipt, given: FormatArguments) -> int:
    reason, outcome = str(receipt.details.get("reason", "")), receipt.outcome.value
    started = [entry.key for entry in receipt.operations if entry.op == "start-workflow"]
    lines = [f"- {entry.status.value}: {entry.op} {redacted_cell(entry.key)}" for entry in receipt.operations]
    report_step(
        f"start: {outcome}",
        {"outcome": outcome, "reason": reason, "started": json.dumps(started)},
        reason,
        redacted_cell(str(receipt.error)) if receipt.error else "",
        findings_table(receipt.findings),
        "\n".join(lines),
    )
    if reason and not given.is_json:
        click.echo(one_line(redact(reason)))
    return show_receipt(receipt, "-", given)
