"""Leave the public record of a run: in a file of its folder, and at the ref where the token may write.

A record never fails the run that it is about: what goes wrong here is a warning.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.output import one_line, redactor
from accord.cli.step import redact, warn
from accord.core.clock import SystemClock, time_of
from accord.core.errors import AccordError, BrokenContract
from accord.core.numbers import issue_number
from accord.files.store import write_whole
from accord.github.models import EmptyRepository, Forbidden, NotThere
from accord.records.build import (
    AgentFacts,
    Ending,
    JobFacts,
    agent_record,
    apply_record,
    digest_of,
    job_facts,
    read_inputs,
)
from accord.records.chain import append_record, redact_record
from accord.records.models import AgentKind, PublicRecord

if TYPE_CHECKING:
    from accord.engine.receipts import Receipt
    from accord.github.client import Connection
    from accord.runner.models import RunOutputs
    from accord.runner.record import RunRecord

FILE = "run-record.json"


def job_of(repository: str, local_id: str) -> JobFacts:
    """Return the facts of this job; ``local_id`` names the run outside of GitHub Actions."""
    payload: object = None
    with suppress(OSError, ValueError):
        payload = json.loads(Path(os.environ.get("GITHUB_EVENT_PATH", "")).read_bytes())
    action = str(payload.get("action", "")) if isinstance(payload, dict) else ""
    return job_facts(os.environ, repository, local_id, action)


def leave_record(build: Callable[[], PublicRecord], connection: Connection | None, folder: Path | None = None) -> None:
    """Build a record, write it into the folder, and append it to those at the ref. Raises nothing.

    A token that may not write contents only causes a note: the job has its permissions for a reason, and a later job
    of the run may leave the record.
    """
    try:
        record = build()
        if folder is not None:
            path = folder / FILE
            from accord.runner.record import make_writable  # imported here: an apply has no folder of a run

            make_writable(path)
            write_whole(path, redact_record(record, redactor()).as_json() + "\n")
        if connection is not None:
            append_record(connection.github, record, redactor(), SystemClock())
    except EmptyRepository:  # which has no commit yet, and so no refs
        return
    except (Forbidden, NotThere) as refused:
        text = f"The token may not keep the record of this run in the repository: {refused.message}"
        click.echo(f"note: {one_line(redact(text))}", err=True)
    except Exception as error:  # whatever it is, the run ended as it ended
        message = error.message if isinstance(error, AccordError) else f"{type(error).__name__}: {error}"
        warn(f"The record of this run was not kept: {message}")


def agent_facts(run_dir: Path | None, outputs: RunOutputs | None, record: RunRecord | None = None) -> AgentFacts:
    """Return the evidence of an agent's run; ``record`` replaces the folder's, which the agent may have changed."""
    if run_dir is None or not run_dir.is_dir():
        return AgentFacts(outputs)
    if record is None:
        from accord.runner.record import read_record

        try:
            record = read_record(run_dir)
        except BrokenContract:
            return AgentFacts(outputs)
    return AgentFacts(outputs, record.attempts, read_inputs(run_dir), time_of(record.started_at))


def leave_agent_record(
    kind: AgentKind,
    number: int | None,
    job: JobFacts,
    facts: Callable[[], AgentFacts],
    ending: Ending,
    connection: Connection | None,
    folder: Path | None = None,
) -> None:
    """Leave the record of a run of an agent that ended now."""

    def build() -> PublicRecord:
        now = SystemClock().now() if connection is None else connection.github.server_time()
        return agent_record(kind, number, job, facts(), ending, now)

    leave_record(build, connection, folder)


def leave_run_record(
    run_dir: Path, outputs: RunOutputs, record: RunRecord, connection: Connection | None, *, is_kept: bool
) -> None:
    """Leave the record of ``accord run`` or ``accord publish``, at the ref only if it ``is_kept`` there.

    The turn of a loop that the run belongs to adds to it.
    """
    if record.is_skipped:
        return
    repository = connection.repository if connection else os.environ.get("GITHUB_REPOSITORY", "")
    number = issue_number(record.context.pull) or None
    leave_agent_record(
        "run",
        number,
        job_of(repository, f"local-{run_dir.resolve()}"),
        lambda: agent_facts(run_dir, outputs, record),
        Ending(outcome="ended", links={"pull": number} if number else {}),
        connection if is_kept else None,
        run_dir,
    )


def apply_record_of(
    receipt: Receipt, content: bytes, began: datetime, *, work_item: int | None, pull: int | None
) -> Callable[[], PublicRecord]:
    """Return a function that builds the record of an apply that ended now, once, and puts it into the receipt."""

    @cache
    def build() -> PublicRecord:
        job, result = job_of(receipt.repository, "local"), digest_of(receipt.kind, content)
        links = {"issue": work_item, "pull": pull}
        record = apply_record(receipt, job, result, links, (began, SystemClock().now()))
        receipt.details = {**receipt.details, "record": json.loads(record.as_json())}
        return record

    return build
