"""All that a status or a board shows at one time: repositories on GitHub, and documents in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from accord.board.documents import read_documents
from accord.board.facts import Reader, is_shown, loops_in, read_repository, reader_of, rows_in
from accord.board.models import (
    Address,
    BoardRepository,
    BoardSnapshot,
    EndedPull,
    Overview,
    SessionQuestion,
    address_of,
    join_overviews,
)
from accord.board.work import overview_of_work
from accord.core.clock import Clock
from accord.github.client import Connection, GitHub
from accord.github.models import EmptyRepository, Forbidden, NotThere
from accord.kit.many import ManyOutcome, ManyResult, result_of
from accord.records.chain import read_records
from accord.sessions.apply import SessionWriter
from accord.sessions.run import answer

MOST_ENDED = 20
"""Ended pull requests that are read in full, the last changed first."""

KnownPulls = dict[tuple[str, int, datetime | None], "EndedPull"]
"""Ended pull requests by repository, number and last change."""


def read_snapshot(
    sources: Sequence[tuple[GitHub, Address]], root: Path, period: timedelta, known: KnownPulls | None = None
) -> BoardSnapshot:
    """Read repositories on GitHub and the documents in a folder; with ``known`` also the history that a board shows.

    ``known`` are the ended pull requests of earlier reads, to which those of this one are added.
    """
    found = ((github, read_repository(github, address, period)) for github, address in sources)
    repositories = tuple(
        facts if known is None else with_history(facts, github, period, known) for github, facts in found
    )
    now = repositories[0].now
    empty = BoardSnapshot(repositories, Overview(), Overview(), now)
    return with_documents(empty, read_documents(root, now))


def with_documents(snapshot: BoardSnapshot, documents: Overview) -> BoardSnapshot:
    """Return a snapshot with other documents. Pure."""
    work = [overview_of_work(facts) for facts in snapshot.repositories]
    return replace(snapshot, documents=documents, overview=join_overviews(*work, documents))


def answer_question(question: SessionQuestion, text: str, root: Path, clock: Clock) -> Overview:
    """Record the answer of the user as ``accord session answer`` does; return the documents after it.

    Raises BrokenContract where the text does not answer the question, or the question is not open any more.
    """
    answer(SessionWriter(Path(question.folder), clock), {question.decision: text})
    return read_documents(root, clock.now())


def count_work(connection: Connection, sandbox: str | None) -> ManyResult:
    """Count the work of a repository for ``accord repos run status``; what needs a person is a finding."""
    address = address_of(connection.repository, connection.server_url, sandbox)
    sections = overview_of_work(read_repository(connection.github, address, timedelta(days=7))).sections()
    found = [f"{len(entries)} {name.replace('_', ' ')}" for name, entries in sections.items() if entries]
    outcome = ManyOutcome.FINDINGS if sections["needs_you"] else ManyOutcome.UNCHANGED
    return result_of(connection, outcome, ", ".join(found), address.page)


def with_history(facts: BoardRepository, github: GitHub, period: timedelta, known: KnownPulls) -> BoardRepository:
    """Read the history of a repository.

    Takes one request for each hundred records and one more, and two for each ended pull request that is not ``known``.
    """
    reader = reader_of(github, facts.address.repository, facts.identity)
    ended = [_read_ended(one, reader, facts.now, known) for one in facts.ended[:MOST_ENDED]]
    return _with_records(replace(facts, ended=(*ended, *facts.ended[MOST_ENDED:])), github, period)


def _read_ended(ended: EndedPull, reader: Reader, now: datetime, known: KnownPulls) -> EndedPull:
    issue = ended.issue
    key = (reader.repository, issue.number, issue.updated_at)
    if key not in known:
        comments = list(reader.github.comments(issue.number))
        known[key] = replace(
            ended,
            rows=rows_in(reader, comments, issue.number, now),
            loops=loops_in(comments, reader.identity, issue.number, now),
            reviews=tuple(one for one in reader.github.reviews(issue.number) if is_shown(one, reader)),
        )
    return known[key]


def _with_records(facts: BoardRepository, github: GitHub, period: timedelta) -> BoardRepository:
    try:
        return replace(facts, records=read_records(github, facts.now - period))
    except EmptyRepository:
        return facts
    except (Forbidden, NotThere):
        note = "The token cannot read the repository's contents, so records of runs are not shown."
        return replace(facts, notes=(*facts.notes, note))
