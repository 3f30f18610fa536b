"""The pages of the board: HTML of an overview, its facts, and the timeline of each work item. Pure.

All text on a page is untrusted: Jinja escapes it, and ``clean`` takes out secrets and hidden characters. A page holds
no script of its own, and its links stay in one folder, so that the same pages can be served and written as files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from accord.board import charts
from accord.board.models import (
    HEADINGS,
    WITH_COMMAND,
    BoardItem,
    BoardPull,
    BoardRepository,
    BoardSnapshot,
    EndedPull,
    Entry,
)
from accord.core.clock import time_of
from accord.core.errors import AccordError
from accord.core.findings import count_of
from accord.core.frozen import Frozen
from accord.github.models import Review
from accord.loops.models import Iteration, LoopState
from accord.results.labels import Category, in_category
from accord.results.status import WORK_ITEM, item_state
from accord.starts.models import ACTIVE, StatusRow
from accord.text.markers import REVIEW, find_markers

HERE = Path(__file__).parent
GENERATOR = '<meta name="generator" content="accord board">'
"""The line by which a page of the board is recognised."""
TABS = {
    "index.html": "Overview",
    "items.html": "Items",
    "graph.html": "Dependencies",
    "documents.html": "Documents",
    "charts.html": "Charts",
}
UNCLEAR = "unclear"
COLUMNS = (*(status for status in WORK_ITEM.states if status != "closed"), UNCLEAR)
"""The columns of the page of items: the statuses in their order, and items without exactly one."""

_LABEL_CHARS = 30
ALL_GROUPS = "graph-all.html"
MOST_GROUPS = 12
"""Groups of the first page of the graph; another one has all, because a browser takes long to read thousands."""

MOST_EDGES = 2000
"""Arrows of the graph: drawing takes time for each pair that crosses a layer."""

EventKind = Literal["item", "run", "pull", "review", "loop"]

_NOUNS = {"plan": "Plan", "implement": "Implementation", "review": "Review"}
_VERDICTS = {"APPROVED": "approves", "CHANGES_REQUESTED": "requests changes", "DISMISSED": "reviewed; dismissed since"}
_OWN_VERDICTS = {"approve": "approves", "needs-changes": "requests changes"}


class PlacedItem(NamedTuple):
    """A work item, its repository, and the name of its page."""

    facts: BoardRepository
    item: BoardItem
    page: str

    @property
    def number(self) -> int:
        """The number of the issue."""
        return self.item.issue.number


def items_of(snapshot: BoardSnapshot) -> list[PlacedItem]:
    """Return the open and closed items of all repositories.

    The page of an item is named by its number, and by its repository too if that is not the first.
    """
    return [
        PlacedItem(facts, item, _page_of(facts, item.issue.number, has_name=bool(position)))
        for position, facts in enumerate(snapshot.repositories)
        for item in {item.issue.number: item for item in (*facts.closed, *facts.items)}.values()
    ]


def _page_of(facts: BoardRepository, number: int, *, has_name: bool) -> str:
    name = f"{facts.address.repository.replace('/', '~')}-" if has_name else ""
    return f"item-{name}{number}.html"


def page_names(snapshot: BoardSnapshot) -> Iterator[str]:
    """Yield the names of all pages."""
    items = items_of(snapshot)
    yield from TABS
    if len(graph_of(items)["drawings"]) > MOST_GROUPS:
        yield ALL_GROUPS
    yield from (placed.page for placed in items)


def render_page(
    name: str, snapshot: BoardSnapshot, clean: Callable[[str], str], mark: str | None = None, token: str = ""
) -> str | None:
    """Return the HTML of a page; None for an unknown name.

    A page with a mark asks the server for later ones. One with a token has fields for answers.
    """
    found = _context(name, snapshot, items_of(snapshot))
    if found is None:
        return None
    template, context = found
    return _render(template, {**context, "name": name, "mark": mark, "token": token}, snapshot, clean)


def render_refusal(error: AccordError, snapshot: BoardSnapshot, clean: Callable[[str], str]) -> str:
    """Return the page that says why an answer was not recorded."""
    context = {"error": error, "findings": getattr(error, "findings", ()), "name": "", "mark": None, "token": ""}
    return _render("refusal.html", context, snapshot, clean)


def _render(template: str, context: dict[str, Any], snapshot: BoardSnapshot, clean: Callable[[str], str]) -> str:
    common = {
        "tabs": TABS,
        "headings": HEADINGS,
        "addresses": [facts.address for facts in snapshot.repositories],
        "counts": {section: len(entries) for section, entries in snapshot.overview.sections().items()},
        "at": snapshot.at,
        "problem": snapshot.problem,
        "notes": snapshot.overview.notes,
        "pages": {(placed.facts.address.repository, placed.number): placed.page for placed in items_of(snapshot)},
        "with_command": WITH_COMMAND,
        "clean": clean,
    }
    return _environment().get_template(template).render(common | context)


def _context(name: str, snapshot: BoardSnapshot, items: Sequence[PlacedItem]) -> tuple[str, dict[str, Any]] | None:
    if name == "index.html":
        return "overview.html", {"sections": snapshot.overview.sections()}
    if name == "documents.html":
        return "overview.html", {"sections": snapshot.documents.sections()}
    if name == "items.html":
        return "items.html", {"columns": columns_of(items), "status_of": item_status}
    if name in ("graph.html", ALL_GROUPS):
        found = graph_of(items)
        shown = found["drawings"][: MOST_GROUPS if name != ALL_GROUPS else None]
        left_out = len(found["drawings"]) - len(shown)
        return "graph.html", {**found, "drawings": shown, "left_out": left_out, "all_groups": ALL_GROUPS}
    if name == "charts.html":
        return "charts.html", {"charts": charts.charts_of(snapshot.repositories), "size": charts}
    for placed in items:  # a link with the repository's name also leads to the first repository
        if name in (placed.page, _page_of(placed.facts, placed.number, has_name=True)):
            return "item.html", story_of(placed, snapshot)
    return None


def item_status(item: BoardItem) -> str:
    """Return the status of an item, or that it is unclear."""
    return item_state(item.issue).status or UNCLEAR


def columns_of(items: Iterable[PlacedItem]) -> Mapping[str, list[PlacedItem]]:
    """Return the open work items by status; requests without a type label are in no column."""
    columns: dict[str, list[PlacedItem]] = {status: [] for status in COLUMNS}
    for placed in items:
        if placed.item.issue.is_open and in_category(placed.item.issue.labels, Category.TYPE):
            columns[item_status(placed.item)].append(placed)
    return {status: found for status, found in columns.items() if found or status != UNCLEAR}


def graph_of(items: Iterable[PlacedItem]) -> dict[str, Any]:
    """Return a drawing of each group of open work items: what blocks what, the longest chain, and which are ready.

    Nodes are positions in ``nodes``, from 0.
    """
    nodes = [placed for found in columns_of(items).values() for placed in found]
    position = {(placed.facts.address.repository, placed.number): node for node, placed in enumerate(nodes)}
    found = (
        (position.get((placed.facts.address.repository, blocker)), node)
        for node, placed in enumerate(nodes)
        for blocker in placed.item.blockers
    )
    edges = [(blocker, node) for blocker, node in found if blocker is not None][:MOST_EDGES]
    drawings = [charts.draw_graph(group) for group in charts.graph_groups(edges)]
    linked = {node for drawing in drawings for node in drawing.boxes}
    chain = charts.longest_path(edges)
    return {
        "drawings": drawings,
        "single": [placed for node, placed in enumerate(nodes) if node not in linked],
        "nodes": nodes,
        "critical": frozenset(chain),
        "links_of_chain": frozenset(pairwise(chain)),
        "chain": [nodes[node] for node in chain],
        "ready": {
            node
            for node, placed in enumerate(nodes)
            if not placed.item.open_blockers and item_status(placed.item) == "ready"
        },
        "size": charts,
        "status_of": item_status,
        "label_chars": _LABEL_CHARS,
    }


def story_of(placed: PlacedItem, snapshot: BoardSnapshot) -> dict[str, Any]:
    """Return all that is known of one item: its starts, its pull requests with loops and checks, and its neighbours."""
    facts, number = placed.facts, placed.number
    pulls: list[BoardPull] = [pull for pull in facts.pulls if number in pull.items]
    ids = {f"#{number}", *(f"#{pull.pull.number}" for pull in pulls)}
    entries: list[Entry] = [
        entry
        for entries in snapshot.overview.sections().values()
        for entry in entries
        if entry.id in ids and entry.repository == facts.address.repository
    ]
    worked = [pull for pull in facts.all_pulls if number in pull.items]
    rows = [*placed.item.rows, *(row for pull in worked for row in pull.rows)]
    dollars = sum(charts.dollars_in(row.cost) or 0 for row in rows)
    dollars += sum(loop.cost_usd for pull in worked for loop in pull.loops)
    return {
        "repository": facts.address.repository,
        "page": facts.address.page,
        "item": placed.item,
        "status": item_status(placed.item),
        "pulls": pulls,
        "timeline": timeline_of(facts, placed.item),
        "dollars": dollars,
        "entries": entries,
        "blocking": [other.issue.number for other in facts.items if number in other.blockers],
    }


def safe_url(url: str) -> str:
    """Return an address that a page may link to; empty for one with another scheme."""
    return url if url.startswith(("https://", "http://")) else ""


def duration_text(seconds: float) -> str:
    """Return a duration in words: seconds below two minutes, else minutes, or hours from two on."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(HERE / "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["safe_url"] = safe_url
    environment.filters["duration"] = duration_text
    environment.filters["day"] = lambda at: at.strftime("%Y-%m-%d %H:%M") if at else ""
    return environment


class TimelineEvent(Frozen):
    """One line of a timeline."""

    at: datetime | None
    kind: EventKind
    text: str  # may hold untrusted text
    detail: str = ""  # may hold untrusted text
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
        url = facts.address.run_page(row.run)
        text = f"{_NOUNS[row.work]}{where}{agent}{asker}: {row.state}"
        cost = row.cost or (charts.dollars_text(record.cost_usd) if record else "")
        seconds = record.seconds or 0 if record else 0
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
            url = facts.address.run_page(links.workflow_run)
            is_good = record.result.disposition in ("success", "patch")
            detail = record.result.error_category or record.result.error
            cost, seconds = charts.dollars_text(record.cost_usd), record.seconds or 0
            yield TimelineEvent(record.ended_at, "run", text, detail, is_good, url, cost, seconds)


def _of_pull(facts: BoardRepository, pull: BoardPull | EndedPull) -> Iterator[TimelineEvent]:
    one = pull.issue if isinstance(pull, EndedPull) else pull.pull
    name, draft = f"#{one.number}", " as a draft" if isinstance(pull, BoardPull) and pull.pull.is_draft else ""
    yield TimelineEvent(one.created_at, "pull", f"Pull request {name} opened{draft}", one.title, url=one.url)
    yield from _runs(facts, pull.rows, f" of {name}")
    yield from (event for review in pull.reviews if (event := _of_review(review, name)))
    for loop in pull.loops:
        yield from (_of_iteration(facts, loop, run) for run in loop.history)
        if loop.running:
            at, url = loop.running.started_at, facts.address.run_page(loop.running.run_id)
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
        f"{count_of(run.tasks_done, 'task')} done",
        *([] if run.changes_made else ["no changes"]),
        *([run.category] if run.category and not is_good else []),
    ]
    text = f"{_title(loop)}, run {run.number}: {'succeeded' if is_good else 'failed'}"
    cost = charts.dollars_text(run.cost_usd)
    url = facts.address.run_page(run.run_id)
    return TimelineEvent(run.ended_at, "loop", text, ", ".join(detail), is_good, url, cost, run.seconds)


def _title(loop: LoopState) -> str:
    return loop.loop.capitalize().replace("-", " ")
