"""The runs of a period in a repository: its records, and the runs that only comments tell of.

A status comment holds the last starts of an item, and the comment of a loop its last iterations. Both are older than
records, and stay where no job may write one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from accord.core.clock import time_of
from accord.github.client import INSTALLATION_LOGIN
from accord.loops.models import ALL
from accord.loops.state import read_view
from accord.records.build import failure_class
from accord.records.chain import read_records
from accord.records.models import PublicRecord, RecordLinks, RecordResult, RecordTrigger, name_of, record_id
from accord.starts.models import ACTIVE
from accord.starts.status import read_body
from accord.text.markers import REVISION, find_markers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from accord.github.client import GitHub
    from accord.github.comments import Comment
    from accord.github.models import Identity, Pull
    from accord.loops.models import Iteration, LoopName
    from accord.runner.models import Disposition
    from accord.starts.models import StatusRow

MOST_COMMENTS = 3000
"""The newest comments of the repository that are searched for runs: 30 requests."""


@dataclass(frozen=True)
class RunHistory:
    """The runs of a repository that ended in a period, oldest first, and the pull requests that accord opened.

    ``options`` name the repository in commands. ``pulls`` were opened, merged or closed in the period. ``notes`` say
    what could not be read.
    """

    repository: str
    options: tuple[str, ...]
    since: datetime
    until: datetime
    records: tuple[PublicRecord, ...] = ()
    pulls: tuple[Pull, ...] = ()
    notes: tuple[str, ...] = ()


def read_history(github: GitHub, repository: str, options: tuple[str, ...], since: datetime) -> RunHistory:
    """Read the runs since then: one request for each hundred records, comments and pull requests, and three more."""
    identity = github.identity()
    if identity.is_person:  # their token reads, but accord wrote as the workflow's
        identity = replace(identity, others=(*identity.others, INSTALLATION_LOGIN))
    records = read_records(github, since)
    comments = list(islice(github.recent_comments(since), MOST_COMMENTS + 1))
    notes = []
    if len(comments) > MOST_COMMENTS:
        notes.append(f"{repository}: only the newest {MOST_COMMENTS} comments were searched for runs without a record.")
    older = runs_in_comments(comments[:MOST_COMMENTS], identity, repository, since, records)
    pulls = [pull for pull in github.pulls_changed_since(since) if is_result(pull, identity) and _is_in(pull, since)]
    found = sorted((*records, *older), key=lambda record: record.ended_at)
    return RunHistory(repository, options, since, github.server_time(), tuple(found), tuple(pulls), tuple(notes))


def is_result(pull: Pull, identity: Identity) -> bool:
    """Tell whether accord opened a pull request with the result of an implementor."""
    return identity.counts(pull.author) and bool(find_markers(pull.body, REVISION))


def _is_in(pull: Pull, since: datetime) -> bool:
    """Tell whether a pull request was opened, merged or closed in the period."""
    ended = pull.merged_at or pull.closed_at
    return any(moment is not None and moment >= since for moment in (pull.created_at, ended))


def runs_in_comments(
    comments: Iterable[tuple[int, Comment]],
    identity: Identity,
    repository: str,
    since: datetime,
    known: Iterable[PublicRecord],
) -> list[PublicRecord]:
    """Return the runs that only comments of ours tell of; ``known`` are those with a record. Pure."""
    by_item: dict[int, list[Comment]] = defaultdict(list)
    for number, comment in comments:
        if identity.counts(comment.author):
            by_item[number].append(comment)
    ids = {record.id for record in known}
    found: dict[str, PublicRecord] = {}
    for number, ours in by_item.items():
        for record in _of_item(number, ours, repository):
            if record.id not in ids and record.ended_at >= since:
                found.setdefault(record.id, record)
    return list(found.values())


def _of_item(number: int, comments: Iterable[Comment], repository: str) -> Iterator[PublicRecord]:
    for comment in comments:
        status = read_body(comment.body, number)
        for row in status.rows if status else ():
            if row.state not in ACTIVE and (record := record_of_row(row, number, repository)) is not None:
                yield record
        for loop in ALL:
            view = read_view(comment.body, loop, number)
            for iteration in view.state.history if view and view.state else ():
                yield record_of_iteration(iteration, loop, number, repository)


_DOLLARS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) US dollars")
_TOKENS = re.compile(r"([0-9,]{1,30}) tokens (in|out)")
_OPENED = re.compile(r"Opened #([0-9]{1,10})")
_DISPOSITIONS: dict[str, Disposition] = {
    "done": "success",
    "nothing": "no-change",
    "failed": "failure",
    "cancelled": "cancelled",
}


def record_of_row(row: StatusRow, number: int, repository: str) -> PublicRecord | None:
    """Return what a row of a status comment says of a run; None without a time. It does not say when the run ended."""
    at = time_of(row.since)
    if at is None:
        return None
    cost = _DOLLARS.search(row.cost)
    tokens = {way: int(count.replace(",", "") or 0) for count, way in _TOKENS.findall(row.cost)}
    disposition = _DISPOSITIONS[row.state]
    if row.work == "implement" and "opened no pull request" in row.result:
        disposition = "blocked"
    opened = _OPENED.search(row.result) if row.work == "implement" else None
    links = {"pull": number} if row.work == "review" else {"issue": number}
    links |= {"pull": int(opened[1])} if opened else {}
    return PublicRecord(
        id=record_id(repository, "agent", row.run or row.key, number),
        kind=row.work,
        repository=repository,
        trigger=RecordTrigger(cause="hand" if row.key.startswith("run-") else "event", by=name_of(row.by)),
        agent=name_of(row.agent),
        tokens_input=tokens.get("in"),
        tokens_output=tokens.get("out"),
        cost_usd=float(cost[1]) if cost else None,
        started_at=at,
        ended_at=at,
        result=RecordResult(
            disposition=disposition, outcome=row.state, error=failure_class(row.result) if row.state == "failed" else ""
        ),
        links=RecordLinks(workflow_run=row.run or None, **links),
        source="status-comment",
    )


def record_of_iteration(iteration: Iteration, loop: LoopName, pull: int, repository: str) -> PublicRecord:
    """Return what the state of a loop says of one of its runs. It names neither agent nor model."""
    failed = iteration.exit_code != "0"
    disposition: Disposition = "failure" if failed else "success" if iteration.changes_made else "no-change"
    if failed and iteration.recovery == "ignore":
        disposition = "cancelled"
    run = iteration.run_id
    return PublicRecord(
        id=record_id(repository, "agent", run, pull),
        kind=loop,
        repository=repository,
        cost_usd=iteration.cost_usd,
        ended_at=iteration.ended_at,
        seconds=iteration.seconds,
        result=RecordResult(
            disposition=disposition,
            outcome="ended",
            error_category=iteration.category if disposition == "failure" else "",
            error="budget" if iteration.is_over_budget else "",
        ),
        links=RecordLinks(
            pull=pull, workflow_run=int(run) if run.isdecimal() else None, commit=name_of(iteration.head_sha)
        ),
        source="loop-comment",
    )
