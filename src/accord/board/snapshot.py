"""All that a status or a board shows at one time: repositories on GitHub, and documents in a folder."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from accord.board.documents import read_documents
from accord.board.facts import read_repository
from accord.board.history import with_history
from accord.board.models import BoardSnapshot, Overview, address_of, join_overviews
from accord.board.work import overview_of_work
from accord.kit.many import ManyOutcome, result_of
from accord.sessions.apply import SessionWriter
from accord.sessions.run import answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.board.history import KnownPulls
    from accord.board.models import Address, SessionQuestion
    from accord.core.clock import Clock
    from accord.github.client import Connection, GitHub
    from accord.kit.many import ManyResult


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
