"""The timeline of one work item: its start, runs, pull requests, reviews, turns of loops, and its end. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from accord.board.models import BoardItem, BoardPull, BoardRepository, EndedPull
from accord.core.clock import time_of
from accord.github.models import Review
from accord.loops.models import Iteration, LoopState
from accord.records.models import PublicRecord
from accord.starts.models import ACTIVE, StatusRow
from accord.text.markers import REVIEW, find_markers

EventKind = Literal["item", "run", "pull", "review", "loop"]

_NOUNS = {"plan": "Plan", "implement": "Implementation", "review": "Review"}
_VERDICTS = {"APPROVED": "approves", "CHANGES_REQUESTED": "requests changes", "DISMISSED": "reviewed; dismissed since"}
_OWN_VERDICTS = {"approve": "approves", "needs-changes": "requests changes"}


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One line of a timeline. ``text`` and ``detail`` may hold untrusted text."""

    at: datetime | None
    kind: EventKind
    text: str
    detail: str = ""
    is_good: bool | None = None  # None where it is neither good nor bad
    url: str = ""
    cost: str = ""  # in words
    seconds: float = 0


def timeline_of(facts: BoardRepository, item: BoardItem) -> list[TimelineEvent]:
    """Return the events of an item, the oldest first; those without a time come last."""
    number = item.issue.number
    found = [TimelineEvent(item.issue.created_at, "item", f"Created by {item.issue.author}"), *_runs(facts, item.rows)]
    for pull in facts.all_pulls:
        if number in pull.items:
            found += _of_pull(facts, pull)
    if item.issue.closed_at:
        is_dropped = item.issue.state_reason == "not_planned"
        text = "Closed as not planned" if is_dropped else "Completed"
        found.append(TimelineEvent(item.issue.closed_at, "item", text, is_good=not is_dropped))
    found += _record_events(facts, number)
    latest = datetime.max.replace(tzinfo=UTC)
    return sorted(found, key=lambda event: event.at or latest)


def _runs(facts: BoardRepository, rows: Sequence[StatusRow], where: str = "") -> Iterator[TimelineEvent]:
    recorded = {one.links.workflow_run: one for one in facts.records if one.links.workflow_run and one.is_agent_run}
    for row in rows:
        record = recorded.get(row.run)
        agent = f" by {row.agent}" if row.agent else ""
        asker = f", asked for by {row.by}" if row.by else ""
        is_good = None if row.state in ACTIVE or row.state == "nothing" else row.state == "done"
        url = f"{facts.address.page}/actions/runs/{row.run}" if row.run else ""
        text = f"{_NOUNS[row.work]}{where}{agent}{asker}: {row.state}"
        cost, seconds = (row.cost or _cost(record), record.seconds or 0) if record else (row.cost, 0)
        yield TimelineEvent(time_of(row.since), "run", text, row.result, is_good, url, cost, seconds)


def _record_events(facts: BoardRepository, number: int) -> Iterator[TimelineEvent]:
    """Yield the runs on an item that only their records know: status comments keep the newest ones only."""
    shown = {str(row.run) for row in facts.rows} | {run.run_id for loop in facts.loops for run in loop.history}
    pulls = {pull.number for pull in facts.all_pulls if number in pull.items}
    for record in facts.records:
        links = record.links
        is_of_item = links.issue == number or links.pull in pulls
        if record.is_agent_run and is_of_item and str(links.workflow_run) not in shown:
            agent = f" by {record.agent}" if record.agent else ""
            text = f"{_NOUNS.get(record.kind, record.kind.capitalize())}{agent}: {record.result.disposition}"
            url = _run_url(facts, str(links.workflow_run))
            is_good = record.result.disposition in ("success", "patch")
            detail = record.result.error_category or record.result.error
            yield TimelineEvent(record.ended_at, "run", text, detail, is_good, url, _cost(record), record.seconds or 0)


def _cost(record: PublicRecord) -> str:
    return f"{record.cost_usd:.2f} US dollars" if record.cost_usd is not None else ""


def _of_pull(facts: BoardRepository, pull: BoardPull | EndedPull) -> Iterator[TimelineEvent]:
    one = pull.issue if isinstance(pull, EndedPull) else pull.pull
    name, draft = f"#{one.number}", " as a draft" if isinstance(pull, BoardPull) and pull.pull.is_draft else ""
    yield TimelineEvent(one.created_at, "pull", f"Pull request {name} opened{draft}", one.title, url=one.url)
    yield from _runs(facts, pull.rows, f" of {name}")
    yield from (event for review in pull.reviews if (event := _of_review(review, name)))
    for loop in pull.loops:
        yield from (_of_iteration(facts, loop, run) for run in loop.history)
        if loop.running:
            at, url = loop.running.started_at, _run_url(facts, loop.running.run_id)
            yield TimelineEvent(at, "loop", f"{_title(loop)}, run {loop.iterations}: running", url=url)
        if loop.notice:
            after = loop.last.ended_at if loop.last else None
            yield TimelineEvent(after, "loop", f"{_title(loop)}: {loop.notice.action}", loop.notice.message)
    if isinstance(pull, EndedPull):
        is_merged, ended_at = pull.issue.merged_at is not None, pull.issue.merged_at or pull.issue.closed_at
        text = f"Pull request {name} {'merged' if is_merged else 'closed without merging'}"
        yield TimelineEvent(ended_at, "pull", text, is_good=is_merged, url=one.url)


def _of_review(review: Review, name: str) -> TimelineEvent | None:
    """Return the event of a review with a verdict; the marker of accord's own has its verdict."""
    asks = [fields.get("asks", "") for fields in find_markers(review.body, REVIEW)]
    word = _VERDICTS.get(review.state) or (_OWN_VERDICTS.get(asks[0]) if asks else None)
    if word is None:
        return None
    author = "accord" if asks else review.author
    is_good = {"approves": True, "requests changes": False}.get(word)
    return TimelineEvent(review.submitted_at, "review", f"{author} {word} ({name})", is_good=is_good, url=review.url)


def _of_iteration(facts: BoardRepository, loop: LoopState, run: Iteration) -> TimelineEvent:
    is_good = run.exit_code == "0"
    detail = [
        f"{run.tasks_done} {'task' if run.tasks_done == 1 else 'tasks'} done",
        *([] if run.changes_made else ["no changes"]),
        *([run.category] if run.category and not is_good else []),
    ]
    text = f"{_title(loop)}, run {run.number}: {'succeeded' if is_good else 'failed'}"
    cost = f"{run.cost_usd:.2f} US dollars" if run.cost_usd is not None else ""
    url = _run_url(facts, run.run_id)
    return TimelineEvent(run.ended_at, "loop", text, ", ".join(detail), is_good, url, cost, run.seconds)


def _title(loop: LoopState) -> str:
    return loop.loop.capitalize().replace("-", " ")


def _run_url(facts: BoardRepository, run_id: str) -> str:
    return f"{facts.address.page}/actions/runs/{run_id}" if run_id.isdecimal() else ""
