"""Read repositories and documents for an overview: items, pull requests, starts, loops, checks, reviews, held runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from accord.board.documents import read_documents
from accord.board.models import (
    Address,
    BoardItem,
    BoardPull,
    BoardRepository,
    BoardSnapshot,
    EndedPull,
    ItemHandoff,
    Overview,
    join_overviews,
)
from accord.board.work import overview_of_work
from accord.core.clock import time_of
from accord.core.errors import Refused
from accord.core.frozen import Frozen
from accord.engine.owner import items_of_result
from accord.engine.trust import NEEDS_HUMAN, RefusedLabel, read_refused_labels
from accord.git.configuration import item_of_branch
from accord.github.client import GitHub, as_reader
from accord.github.comments import Comment
from accord.github.models import EmptyRepository, Forbidden, Identity, Issue, NotThere, Pull, Review
from accord.github.pulls import closing_references
from accord.github.workflows import WorkflowRun
from accord.handoffs.store import HandoffStore, read_block
from accord.loops.checks import is_of_kit, read_code_checks
from accord.loops.ledger import is_lost
from accord.loops.models import ALL, LoopState
from accord.loops.reviews import is_approved, opinions_of
from accord.loops.state import read_view
from accord.records.chain import read_records
from accord.results.bodies import split_body
from accord.results.labels import KEEPALIVE, has_listener
from accord.results.planner.record import planned_blockers
from accord.results.status import is_work_item
from accord.starts.facts import APPEARS_WITHIN
from accord.starts.models import ACTIVE, PLAN_LABEL, StatusRow
from accord.starts.plan import LOST
from accord.starts.status import is_dashboard, view_of
from accord.text.markers import REVISION, find_markers

MOST_PULLS = 50
"""Pull requests that are read in full, each with some five requests; further ones are counted in a note."""

MOST_COMMENTS = 500
"""The newest comments of the repository that are searched for status comments."""

MOST_CLOSED = 100

MOST_HANDOFFS = 50

MOST_LOOKUPS = 30
"""Items whose blockers are read one by one; of further ones only their number is shown. Workflows that are read."""


_WORKFLOWS = ".github/workflows"
_KEEPALIVE_WORKFLOW = f"{_WORKFLOWS}/accord-keepalive.yml"


class Reader(Frozen):
    """The client with what it read before: our identity."""

    github: GitHub
    identity: Identity

    def is_trusted(self, login: str) -> bool:
        """Tell whether what an account decides counts."""
        return self.github.is_trusted(login, lambda: self.identity)


def read_repository(
    github: GitHub, address: Address, period: timedelta, own: Identity | None = None
) -> BoardRepository:
    """Read what the overview of a repository shows; ``period`` is how far back ended work counts.

    ``own`` is the identity of the token where it is known. Takes one request for each 100 issues and comments, and
    about six for each open pull request that accord works on.
    """
    own = own or github.identity()
    reader = Reader(github, as_reader(own))
    issues = [issue for issue in github.issues(state="open") if not issue.is_pull]
    numbers = {issue.number for issue in issues}
    now = github.server_time()
    by_issue: dict[int, list[Comment]] = defaultdict(list)
    for number, comment in islice(github.recent_comments(now - period), MOST_COMMENTS):  # a start edits its comment
        by_issue[number].append(comment)
    found = {number: rows_in(reader, comments, number, now) for number, comments in by_issue.items()}
    rows = {number: starts for number, starts in found.items() if starts}
    ours = [one for one in issues if is_work_item(one) or one.number in rows or PLAN_LABEL in one.labels]
    pulls, notes = _pulls(reader, now, numbers, {one.number for one in issues if is_work_item(one)})
    changed = [one for one in github.closed_issues(now - period) if one.closed_at and one.closed_at >= now - period]
    handoffs = list(_handoffs(reader, issues, notes))
    closed = (one for one in changed if is_work_item(one))
    ended = (one for one in changed if one.is_pull and _has_work(one, reader))
    return BoardRepository(
        address,
        now,
        own,
        tuple(_items(reader, ours, rows, numbers)),
        tuple(pulls),
        tuple(BoardItem(issue, rows.get(issue.number, ())) for issue in islice(closed, MOST_CLOSED)),
        tuple(_ended_pulls(reader, islice(ended, MOST_CLOSED), numbers)),
        tuple(issue for issue in issues if is_dashboard(issue, own)),
        handoffs=tuple(handoffs),
        notes=tuple(notes),
        has_keepalive=_has_keepalive(github, pulls),
    )


def _has_keepalive(github: GitHub, pulls: Iterable[BoardPull]) -> bool:
    """Return whether a workflow runs keepalive, the kit's first; not asked where no pull request may get its label."""
    if all(KEEPALIVE in pull.pull.labels for pull in pulls):
        return True
    try:
        texts = (github.find_file(path) or b"" for path in islice(_workflow_paths(github), MOST_LOOKUPS))
        return any(has_listener(KEEPALIVE, text.decode("utf-8", "replace")) for text in texts)
    except Refused:  # a token that may not read contents
        return True


def _workflow_paths(github: GitHub) -> Iterator[str]:
    yield _KEEPALIVE_WORKFLOW
    yield from (path for path in github.files_in(_WORKFLOWS) if path.endswith((".yml", ".yaml")))


def _ended_pulls(reader: Reader, ended: Iterable[Issue], open_issues: Set[int]) -> Iterator[EndedPull]:
    """Yield the pull requests that ended. Those of open items are read: how they ended decides what a person does."""
    left = MOST_LOOKUPS
    for one in ended:
        closes = closing_references(one)
        items = tuple(dict.fromkeys((*closes, *items_of_result(one.body))))
        pull, has_branch = None, True
        if left and open_issues & {*items}:
            left -= 1
            with suppress(Forbidden):
                pull = reader.github.pull(one.number)
                has_branch = (
                    pull is None or pull.is_merged or reader.github.ref(f"heads/{pull.head_branch}") is not None
                )
        yield EndedPull(one, items, closes, pull, has_branch)


def _handoffs(reader: Reader, issues: Iterable[Issue], notes: list[str]) -> Iterator[ItemHandoff]:
    """Read the handoffs of the issues whose body shows one: two requests each. Only the ref counts, not the body."""
    shown = [issue for issue in issues if read_block(issue.body) is not None]
    if len(shown) > MOST_HANDOFFS:
        notes.append(f"Only the first {MOST_HANDOFFS} of {len(shown)} handoffs of issues were read.")
    for issue in shown[:MOST_HANDOFFS]:
        try:
            stored = HandoffStore(reader.github, issue.number).newest()
        except (Forbidden, NotThere):
            continue
        except Refused:  # this version cannot read it
            yield ItemHandoff(issue, None)
            continue
        if stored is not None:
            yield ItemHandoff(issue, stored.value)


def rows_in(reader: Reader, comments: Iterable[Comment], number: int, now: datetime) -> tuple[StatusRow, ...]:
    """Return the starts of an item. The last one has failed if GitHub says that its run ended without a report."""
    rows = view_of(comments, reader.identity, number).status.rows
    if not rows or rows[-1].state not in ACTIVE or not _has_ended(reader, rows[-1], now):
        return rows
    return (*rows[:-1], rows[-1].model_copy(update={"state": "failed", "result": LOST}))


def _has_ended(reader: Reader, row: StatusRow, now: datetime) -> bool:
    if not row.run:  # GitHub lists a run that was started within minutes
        since = time_of(row.since)
        return since is None or now - since > APPEARS_WITHIN
    try:
        run = reader.github.workflow_run(row.run)
    except Forbidden:
        return False
    return run is None or run.has_ended


def _items(
    reader: Reader, issues: Iterable[Issue], rows: Mapping[int, tuple[StatusRow, ...]], numbers: Set[int]
) -> Iterator[BoardItem]:
    """Yield the facts of open issues. Blockers that neither a plan of accord nor the body names are asked for."""
    left = MOST_LOOKUPS
    for issue in issues:
        visible = [number for number in split_body(issue.body).blocked_by if number in numbers]
        blockers = {*visible, *(planned_blockers(issue) & numbers)}
        count = (issue.open_blocker_count or 0) + len(visible)
        if len(blockers) != count and left:
            left -= 1
            blockers = {*visible, *(one.number for one in reader.github.blockers(issue.number) if one.is_open)}
        refused = _refused_labels(reader, issue)
        yield BoardItem(issue, rows.get(issue.number, ()), count, tuple(sorted(blockers)), refused)


def _refused_labels(reader: Reader, issue: Issue | Pull) -> tuple[RefusedLabel, ...]:
    return read_refused_labels(reader.github, issue.number, issue.labels, lambda: reader.identity)


def _pulls(reader: Reader, now: datetime, open_issues: Set[int], items: Set[int]) -> tuple[list[BoardPull], list[str]]:
    """Read the open pull requests that accord works on, and what could not be read."""
    ours = [pull for pull in reader.github.open_pulls() if _has_work(pull, reader, items)]
    notes = []
    if len(ours) > MOST_PULLS:
        notes.append(f"Only the first {MOST_PULLS} of {len(ours)} open pull requests were read.")
    held: list[WorkflowRun] = []
    try:
        held += (run for run in reader.github.runs_in("action_required") if run.is_held and not is_of_kit(run))
    except (Forbidden, NotThere):
        notes.append("The token cannot read workflow runs, so runs that wait for approval are not shown.")
    return [_pull(reader, pull, held, now, open_issues) for pull in ours[:MOST_PULLS]], notes


def _has_work(pull: Pull | Issue, reader: Reader, items: Set[int] = frozenset()) -> bool:
    """Tell whether accord works on a pull request: it opened it, a label asks for it, or a writer closes an issue.

    One on a branch of the open ``items`` may have lost all the words that say so.
    """
    if any(label.startswith(("agent:", "agents:", "autofix", NEEDS_HUMAN)) for label in pull.labels):
        return True
    is_on_branch = isinstance(pull, Pull) and item_of_branch(pull.head_branch) in items
    if not is_on_branch and not find_markers(pull.body, REVISION) and not closing_references(pull):
        return False
    return reader.identity.counts(pull.author) or reader.is_trusted(pull.author)


def _pull(reader: Reader, listed: Pull, held: Iterable[WorkflowRun], now: datetime, open_issues: Set[int]) -> BoardPull:
    github, number = reader.github, listed.number
    pull = github.pull(number) or listed
    comments = list(github.comments(number))
    reviews = github.reviews(number)
    opinions = opinions_of(reviews, lambda: reader.identity, reader.is_trusted)
    wants_changes = any(opinion.verdict == "needs-changes" for opinion in opinions)
    deciding = {one.id for one in opinions if (one.verdict == "needs-changes") == wants_changes}
    return BoardPull(
        pull,
        closing_references(pull),
        rows_in(reader, comments, number, now),
        loops_in(comments, reader.identity, number, now),
        (*read_code_checks(github, pull.head_sha)[0], *github.statuses(pull.head_sha)),
        tuple(run for run in held if run.head_sha == pull.head_sha),
        is_approved(opinions, pull.head_sha),
        wants_changes,
        max((one.submitted_at for one in reviews if one.id in deciding and one.submitted_at), default=None),
        bool(items := {*items_of_result(pull.body)}) and not open_issues & items,
        tuple(one for one in reviews if is_shown(one, reader)),
        _refused_labels(reader, pull),
    )


def is_shown(review: Review, reader: Reader) -> bool:
    """Tell whether a review is shown: accord's own, or a verdict of a person with write access."""
    has_verdict = review.state in ("APPROVED", "CHANGES_REQUESTED", "DISMISSED")
    return reader.identity.counts(review.author) or (has_verdict and reader.is_trusted(review.author))


def loops_in(comments: Iterable[Comment], identity: Identity, number: int, now: datetime) -> tuple[LoopState, ...]:
    """Return the states of the loops; a run that can no longer report back does not run."""
    ours = [comment for comment in comments if identity.counts(comment.author)]
    views = (read_view(comment.body, loop, number) for loop in ALL for comment in ours)
    states = (view.value for view in views if view)
    return tuple(
        state.model_copy(update={"running": None}) if state.running and is_lost(state.running, now) else state
        for state in states
    )


MOST_ENDED = 20
"""Ended pull requests that are read in full, the last changed first."""

KnownPulls = dict[str, tuple[EndedPull, ...]]
"""The ended pull requests of the last read by repository."""


def read_snapshot(
    sources: Sequence[tuple[GitHub, Address]], root: Path, period: timedelta, known: KnownPulls | None = None
) -> BoardSnapshot:
    """Read repositories on GitHub and the documents in a folder; with ``known`` also the history that a board shows.

    ``known`` are the ended pull requests of the last read, which those of this one replace.
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


def with_history(facts: BoardRepository, github: GitHub, period: timedelta, known: KnownPulls) -> BoardRepository:
    """Read the history of a repository.

    Takes one request for each hundred records and one more, and two for each ended pull request that is not ``known``.
    """
    reader = Reader(github, as_reader(facts.identity))
    last = {one.number: one for one in known.get(facts.address.repository, ())}
    ended = tuple(_read_ended(one, reader, facts.now, last.get(one.number)) for one in facts.ended[:MOST_ENDED])
    known[facts.address.repository] = ended
    facts = replace(facts, ended=(*ended, *facts.ended[MOST_ENDED:]))
    try:
        return replace(facts, records=read_records(github, facts.now - period))
    except EmptyRepository:
        return facts
    except (Forbidden, NotThere):
        note = "The token cannot read the repository's contents, so records of runs are not shown."
        return replace(facts, notes=(*facts.notes, note))


def _read_ended(ended: EndedPull, reader: Reader, now: datetime, last: EndedPull | None) -> EndedPull:
    """Read the history of a pull request, or take that of the last read if the pull request is unchanged since."""
    issue = ended.issue
    # the end of a run does not always change its pull request
    is_active = last and (any(row.state in ACTIVE for row in last.rows) or any(loop.running for loop in last.loops))
    if last and last.issue.updated_at == issue.updated_at and not is_active:
        return replace(ended, rows=last.rows, loops=last.loops, reviews=last.reviews)
    comments = list(reader.github.comments(issue.number))
    return replace(
        ended,
        rows=rows_in(reader, comments, issue.number, now),
        loops=loops_in(comments, reader.identity, issue.number, now),
        reviews=tuple(one for one in reader.github.reviews(issue.number) if is_shown(one, reader)),
    )
