"""The history of a repository, which only a board shows: records of runs, and the work on ended pull requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from accord.board.facts import is_shown, loops_in, reader_of, rows_in
from accord.github.models import EmptyRepository, Forbidden, NotThere
from accord.records.chain import read_records

if TYPE_CHECKING:
    from accord.board.facts import Reader
    from accord.board.models import BoardRepository, EndedPull
    from accord.github.client import GitHub

MOST_ENDED = 20
"""Ended pull requests that are read in full, the last changed first."""

KnownPulls = dict[tuple[str, int, datetime | None], "EndedPull"]
"""Ended pull requests by repository, number and last change."""


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
